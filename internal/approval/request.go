package approval

import (
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
	"toritsugi/internal/workspace"
)

// Request is a job as its approvers see it, every field of spec/chat §7 in the language of
// the session. What it quotes is redacted.
func (j *Jobs) Request(l i18n.Lang, job Job) (channel.Approval, error) {
	a := channel.Approval{Job: job.Job, Hash: job.Short(), Title: job.Title, Summary: job.Summary, CoderRisk: job.CoderRisk,
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
		v, err := j.Store.View(job.Run) // the run may have moved since the job was read
		if err != nil {
			return a, err
		}
		job.Dir = v.Dir
		raw, err := job.ReadPatch()
		if err != nil {
			return a, err
		}
		a.Diff = j.Store.Redact(strings.ToValidUTF8(string(raw), "\uFFFD"))
	}
	return a, nil
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
	if v == nil {
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
	return true, l.T("approval.why_" + string(j.Deliver))
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
// and for the command line: the fields in the order of spec/chat §7, the diff not.
func Markdown(l i18n.Lang, a channel.Approval) string {
	var b strings.Builder
	line := func(key string, args ...any) { b.WriteString(l.T(key, args...) + "\n") }
	b.WriteString("**" + a.Title + "**\n")
	line("approval.job", a.Job)
	for _, s := range a.Summary {
		b.WriteString(s + "\n")
	}
	line("approval.files", len(a.Files))
	for _, f := range a.Files {
		b.WriteString("- " + l.T("approval.action_"+f.Action) + " " + f.Name() + fmt.Sprintf(" (+%d −%d)\n", f.Added, f.Removed))
	}
	if line("approval.environment"); len(a.Commands) == 0 {
		line("approval.no_commands")
	}
	for _, c := range a.Commands {
		b.WriteString("- `" + strings.ReplaceAll(c, "`", "ˋ") + "`\n")
	}
	if line("approval.risks"); len(a.Risks) == 0 {
		line("approval.no_risks")
	}
	for _, r := range a.Risks {
		b.WriteString("- " + r + "\n")
	}
	if a.CoderRisk != "" {
		line("approval.coder_risk", a.CoderRisk)
	}
	for _, s := range a.Judged {
		b.WriteString(s + "\n")
	}
	if a.Reversible {
		line("approval.reversible", a.Why)
	} else {
		line("approval.not_reversible", a.Why)
	}
	if a.Cost != "" {
		line("approval.cost_estimate", a.Cost)
	}
	if a.Status == string(Pending) {
		if !a.Expires.IsZero() {
			line("approval.until", a.Expires.UTC().Format("2006-01-02 15:04"))
		}
		b.WriteString("/approve " + a.Job + " " + a.Hash + "\n/deny " + a.Job + " " + a.Hash + "\n")
	}
	return b.String()
}

// Outcome tells in one line what became of the application of a job.
func (a Application) Outcome(l i18n.Lang) string {
	switch {
	case !a.Begun:
		return l.T("approval.not_begun")
	case a.Applied():
		return l.T("approval.applied", a.Where)
	case a.Step == StepFailed:
		return l.T("approval.not_applied", string(a.At), a.Reason)
	}
	return l.T("approval.under_way", string(a.Step), a.Attempt)
}
