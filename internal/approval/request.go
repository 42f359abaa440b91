package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/workspace"
)

// Request is a job as its approvers see it, every field of spec/chat §7 in the language of
// the session. What it quotes is redacted.
func (j *Jobs) Request(l i18n.Lang, job Job) (channel.Approval, error) {
	a := channel.Approval{Job: job.Job, Hash: job.Short(), Title: job.Title, Summary: job.Summary, CoderRisk: job.CoderRisk,
		Notes: job.Notes, Tests: job.Tests, Checks: job.Checks,
		Status: string(job.State.Status), Expires: job.State.Expires, Approver: job.State.Approver, DecidedAt: job.State.Decided, Cost: costText(l, job.Cost)}
	if len(a.Summary) == 0 {
		a.Summary = []string{job.Title}
	}
	for _, f := range ordered(job.Files) {
		a.Files = append(a.Files, channel.File{Path: f.Path, From: f.From, Action: string(f.Action), Added: f.Added, Removed: f.Removed})
	}
	a.Commands = job.Commands
	for _, r := range job.Risks {
		a.Risks = append(a.Risks, r.Text(l))
	}
	a.Judged = job.judged(l)
	a.Reversible, a.Why = job.reversible(l)
	if job.Patch != "" {
		raw, err := j.Patch(job)
		if err != nil {
			return a, err
		}
		a.Diff = j.Store.Redact(strings.ToValidUTF8(string(raw), "\uFFFD"))
	}
	return a, nil
}

// Patch reads the patch of a job wherever its run lies by now.
func (j *Jobs) Patch(job Job) ([]byte, error) {
	return contextstore.InDir(j.Store.BaseDir, job.Run, func(dir string) ([]byte, error) {
		job.Dir = dir
		return job.ReadPatch()
	})
}

// ordered are files with what cannot be overlooked first: deletes, renames, modes.
func ordered(files []File) []File {
	rank := func(f File) int {
		switch {
		case f.Action == workspace.PatchDelete:
			return 0
		case f.Action == workspace.PatchRename:
			return 1
		case f.Action == workspace.PatchMode, f.Mode == workspace.ModeLink, f.Mode == workspace.ModeProgram:
			return 2
		}
		return 3
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return rank(a) - rank(b) })
	return files
}

// Text is a risk in one line.
func (r Risk) Text(l i18n.Lang) string {
	text := l.T("approval.risk_" + string(r.Kind))
	details := strings.Join(r.Details, ", ")
	if more := r.Count - len(r.Details); more > 0 && len(r.Details) > 0 {
		details += " " + l.T("approval.more", more)
	}
	if details == "" {
		return text
	}
	return text + ": " + details
}

// judged says what led the coder, and what remains open by its own word.
func (j Job) judged(l i18n.Lang) (lines []string) {
	v := j.Judged
	if v == nil || v.Criteria == 0 && v.Subtasks <= 1 && len(v.Open) == 0 {
		return nil
	}
	lines = []string{l.T("approval.judged_plan", v.Subtasks)}
	if v.Criteria > 0 {
		lines[0] = l.T("approval.judged", v.Met, v.Criteria, v.Subtasks)
	}
	for _, o := range v.Open {
		lines = append(lines, l.T("approval.open", l.Translate(o)))
	}
	return lines
}

// Denial says by whom a job was denied, and why.
func (j Job) Denial(l i18n.Lang) string {
	switch s := j.State; {
	case s.Approver == System:
		return l.T("approval.denied_" + s.Reason)
	case s.Reason == "":
		return l.T("approval.denied_by", s.Approver)
	default:
		return l.T("approval.denied_for", s.Approver, s.Reason)
	}
}

// reversible says whether tori rollback can take a job back, and why.
func (j Job) reversible(l i18n.Lang) (bool, string) {
	switch {
	case !j.Grantable():
		return false, l.T("approval.why_none")
	case len(j.Commands) > 0:
		return false, l.T("approval.why_commands")
	}
	return true, l.T("approval.why_"+string(j.Deliver), j.Job)
}

// costText is an estimate for people, "" where nothing is known.
func costText(l i18n.Lang, c Cost) string {
	if c == (Cost{}) {
		return ""
	}
	text := l.T("approval.cost", c.Tokens)
	if c.MicroUSD > 0 {
		text += " " + fmt.Sprintf("($%.4f)", float64(c.MicroUSD)/1e6)
	}
	if c.Hint > 0 {
		text += l.T("approval.cost_hint", c.Hint)
	}
	if c.Near {
		text += l.T("approval.cost_near")
	}
	return text
}

// Markdown is the request as a text, for members of channel without a form of their own
// and for the command line; grant and deny are the commands that decide there.
func Markdown(l i18n.Lang, a channel.Approval, grant, deny string) string {
	var b strings.Builder
	for _, r := range a.Rows(l, func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }) {
		text := r.Text
		switch r.Kind {
		case channel.TitleRow:
			text = "**" + text + "**"
		case channel.ItemRow:
			text = "- " + text
		case channel.CommandRow:
			text = "- `" + strings.ReplaceAll(text, "`", "ˋ") + "`"
		case channel.FileRow:
			text = fmt.Sprintf("- %s %s (+%d −%d)", text, r.File.Name(), r.File.Added, r.File.Removed)
		}
		b.WriteString(text + "\n")
	}
	if a.Status == string(Pending) {
		b.WriteString(grant + " " + a.Job + " " + a.Hash + "\n" + deny + " " + a.Job + " " + a.Hash + "\n")
	}
	return b.String()
}

// Text is the step in words.
func (s Step) Text(l i18n.Lang) string { return l.T("approval.step_" + string(s)) }

// Outcome tells in one line what became of the application of a job.
func (a Application) Outcome(l i18n.Lang) string {
	switch {
	case !a.Begun:
		return l.T("approval.not_begun")
	case a.Applied():
		return l.T("approval.applied", a.Where)
	case a.Step == StepFailed:
		return l.T("approval.not_applied", a.At.Text(l), a.Reason)
	}
	return l.T("approval.under_way", a.Step.Text(l), a.Attempt)
}
