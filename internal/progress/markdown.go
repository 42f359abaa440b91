package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
)

// maxItems is how many subtasks a checklist shows.
const maxItems = 30

// Size is the most bytes of a whole report as Markdown. GitHub takes 65,536
// characters; there is room for what is put below a comment later.
const Size = 60_000

// Markdown is the whole report, cleaned by f, in at most most bytes where that can
// be: the oldest of the history goes first, then all of it, then the checklist is
// told in numbers.
func (r *Report) Markdown(l i18n.Lang, f *broker.Filter, most int) (string, error) {
	text, _, err := f.Clean(broker.Markdown, r.Head(l, false))
	if err == nil && len(text) > most {
		text, _, err = f.Clean(broker.Markdown, r.Head(l, true))
	}
	if err != nil {
		return "", err
	}
	text = strings.TrimRight(text, "\n") + "\n"
	if fold, _, err := f.Collapse(r.Fold(l), most-len(text)-1); err == nil && fold != "" { // else the rest is worth showing
		text += "\n" + fold
	}
	return text, nil
}

// Head is what a report says above its history. What is others' text in it is
// nothing but text; secrets are the caller's business.
func (r *Report) Head(l i18n.Lang, short bool) string {
	var b strings.Builder
	b.WriteString(r.title(l) + "\n\n")
	if r.Reason != "" {
		b.WriteString(strings.ReplaceAll(Plain(r.Reason), "\\`", "`") + "\n\n") // our words, with commands as code
	}
	by := l.T("progress.model", Span(r.Model))
	if r.By != "" {
		by = l.T("progress.asked", Plain(r.By), Span(r.Model))
	}
	b.WriteString("- " + by + "\n")
	if r.Ended == "" {
		b.WriteString("- " + l.T("progress.stage", r.stage(l, Span(r.Branch))) + "\n")
	}
	b.WriteString("- " + l.T("progress.counts", r.Calls, r.Tools, r.Tokens, r.cost(l)) + "\n")
	b.WriteString("- " + l.T("progress.since", Clock(r.Started), Clock(r.Updated)) + "\n")
	b.WriteString(r.PlanText(l, short))
	for _, note := range r.Notes {
		if note = strings.Trim(note, "\n"); note != "" {
			b.WriteString("\n" + note + "\n")
		}
	}
	if r.Scripted {
		b.WriteString("\n" + l.T("agent.scripted") + "\n")
	}
	return b.String()
}

// cost is what the calls took, behind a comma; "" where they cost nothing.
func (r *Report) cost(l i18n.Lang) string {
	switch {
	case r.Unpriced > 0 && r.MicroUSD > 0 && !r.Scripted:
		return l.T("progress.comma") + l.T("progress.cost_at_least", contextstore.Dollars(r.MicroUSD))
	case r.Unpriced > 0 && !r.Scripted:
		return l.T("progress.comma") + l.T("progress.cost_unknown")
	case r.MicroUSD > 0:
		return l.T("progress.comma") + contextstore.Dollars(r.MicroUSD)
	}
	return ""
}

func (r *Report) title(l i18n.Lang) string {
	if r.Ended == "" {
		return l.T("progress.title")
	}
	if r.Ended == task.Completed && r.Unverified {
		return l.T("agent.comment_unverified")
	}
	return l.T("agent.comment_" + string(r.Ended))
}

func (r *Report) stage(l i18n.Lang, branch string) string {
	if r.Stage == Working {
		return l.T("progress.working", branch)
	}
	return l.T("progress." + string(r.Stage))
}

// PlanText is how far the plan is: the phases, how the task is understood, and the
// checklist with what became of each subtask, or of their number where it is to be
// short. "" where no plan leads the run.
func (r *Report) PlanText(l i18n.Lang, short bool) string {
	if r.Phase == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + r.Chain(l) + "\n")
	if r.Understood == nil {
		return b.String()
	}
	if r.Goal != "" {
		b.WriteString("\n🎯 " + Plain(r.Goal) + "\n")
	}
	if u := r.Understood; u.Uncertain {
		b.WriteString("\n⚠️ " + l.T("agent.plan_uncertain") + "\n")
	}
	if u := r.Understood.text(l); u != "" {
		b.WriteString("\n" + u + "\n")
	}
	if short || len(r.Items) > 0 {
		b.WriteString("\n" + r.checklist(l, short))
	}
	if r.Revisions+r.Replans > 0 {
		b.WriteString("\n" + l.T("agent.plan_changes", r.Revisions, r.Replans) + "\n")
	}
	b.WriteString(r.notes(l))
	return b.String()
}

// notes are what the verification found, what is assumed and what is not known.
func (r *Report) notes(l i18n.Lang) string {
	var all []string
	if v := r.Verified; v != nil && (r.Ended != task.Completed || r.Unverified || !v.Passed || v.Round > 1 || len(v.Issues) > 0) { // else the phases say it
		how := "progress.not_passed"
		switch {
		case v.Passed && r.Unverified:
			how = "progress.judged"
		case v.Passed:
			how = "progress.verified"
		case v.Unread:
			how = "progress.verification_unread"
		}
		all = append(all, l.T(how, v.Round))
		for _, issue := range v.Issues {
			all = append(all, "⚠️ "+Plain(l.Translate(issue)))
		}
	}
	for _, a := range r.Ambiguities {
		all = append(all, l.T("agent.plan_ambiguous", Plain(a.Item), Plain(a.Selected)))
	}
	for _, a := range r.Assumptions {
		all = append(all, l.T("agent.plan_assumed", Plain(a)))
	}
	for _, g := range r.Gaps {
		all = append(all, l.T("agent.plan_gap", Plain(l.Translate(g))))
	}
	if all == nil {
		return ""
	}
	return "\n- " + strings.Join(all, "\n- ") + "\n"
}

// text is an understanding in one line, "" where nothing was said of it.
func (u *Understanding) text(l i18n.Lang) string {
	var all []string
	if u.Type != "" {
		all = append(all, l.T("progress.type", Plain(kind(l, u.Type))))
	}
	if len(u.Deliverables) > 0 {
		all = append(all, l.T("progress.deliverables", Plain(strings.Join(u.Deliverables, "; "))))
	}
	if len(u.In) > 0 {
		all = append(all, l.T("progress.in_scope", Plain(strings.Join(u.In, "; "))))
	}
	if len(u.Out) > 0 {
		all = append(all, l.T("progress.out_of_scope", Plain(strings.Join(u.Out, "; "))))
	}
	return strings.Join(all, l.T("progress.comma"))
}

// checklist ticks each subtask by its result.
func (r *Report) checklist(l i18n.Lang, short bool) string {
	over, bad := r.done()
	if short {
		return l.T("progress.checked", over, len(r.Items), bad) + "\n"
	}
	var b strings.Builder
	marks := map[string]string{"": "[ ] ", here: "[ ] ▶️ ", planning.Done: "[x] ", planning.Failed: "[ ] ❌ ", planning.Blocked: "[ ] ❌ ", planning.Skipped: "[ ] ⏭️ "}
	for _, it := range r.Items[:min(len(r.Items), maxItems)] {
		b.WriteString("- " + marks[r.how(it)] + "**" + Plain(planning.Title(l, it.ID)) + "**: " + Plain(l.Translate(it.Text)) + "\n")
	}
	if more := len(r.Items) - maxItems; more > 0 {
		b.WriteString("- " + l.T("agent.comment_more", more) + "\n")
	}
	return b.String()
}

// phases are those of a plan, in order; the others come up in between.
var phases = []string{planning.PhasePlanning, planning.PhaseExecution, planning.PhaseVerification, planning.PhaseCompletion}

// stand is how a phase stands.
type stand int

const (
	ahead   stand = iota // not reached, or to be done again
	current              // the run is in it, or ended or waits in it
	over                 // it happened, as it should
	amiss                // it happened, and not as it should
	without              // the run is completed without it
)

// stands is how each of the phases stands, by what happened: nothing is over since
// something else came after it.
func (r *Report) stands() (all [4]stand) {
	at := r.Phase
	switch {
	case r.Ended == task.Completed:
		at = ""
	case at == planning.PhaseReflection || at == planning.PhaseReplan:
		at = planning.PhaseExecution
	}
	_, bad := r.done()
	planned, fallback := r.Understood != nil, r.Understood != nil && r.Understood.Fallback
	done := []bool{planned && !fallback, r.Worked && bad == 0, r.Passed && !r.Unverified, r.Ended == task.Completed}
	failed := []bool{fallback, r.Worked && bad > 0, r.Verified != nil && (!r.Passed || r.Unverified) && r.Ended == task.Completed, false}
	for i, p := range phases {
		switch {
		case p == at:
			all[i] = current
		case done[i]:
			all[i] = over
		case failed[i]:
			all[i] = amiss
		case r.Ended == task.Completed:
			all[i] = without
		}
	}
	return all
}

// Chain are the phases, with where the run is or how it ended there.
func (r *Report) Chain(l i18n.Lang) string {
	return r.chain(l, " → ", map[stand]string{over: "✅ ", amiss: "⚠️ ", without: "⏭️ "}, map[task.Status]string{
		"": "▶️ ", task.Failed: "❌ ", task.Stopped: "⏹️ ", task.Paused: "⏸️ ", task.AwaitingApproval: "❓ "})
}

// chain joins the phases, each behind the mark of how it stands; here is that of the
// one that the run is in, by how the run ended.
func (r *Report) chain(l i18n.Lang, join string, marks map[stand]string, here map[task.Status]string) string {
	var all []string
	for i, s := range r.stands() {
		text := l.T("agent.phase_" + phases[i])
		if s != current {
			all = append(all, marks[s]+text)
			continue
		}
		if r.Phase != phases[i] {
			text += " (" + l.T("agent.phase_"+r.Phase) + ")"
		}
		all = append(all, here[r.Ended]+text)
	}
	return strings.Join(all, join)
}

// Fold is the history, for what stands closed below a comment.
func (r *Report) Fold(l i18n.Lang) broker.CollapsedList {
	h := r.History
	x := broker.CollapsedList{Title: l.T("progress.history", int64(len(h.Entries))+h.Dropped)}
	if h.More {
		x.Title = l.T("progress.history_since", int64(len(h.Entries))+h.Dropped)
	}
	x.Dropped = func(n int) string {
		if int64(n)+h.Dropped == 0 {
			return ""
		}
		return l.T("progress.dropped", int64(n)+h.Dropped)
	}
	day := r.Started.UTC().Format(time.DateOnly)
	for _, e := range h.Entries {
		at := e.At.UTC().Format(time.TimeOnly)
		if d := e.At.UTC().Format(time.DateOnly); d != day {
			at, day = d+" "+at, d
		}
		x.Lines = append(x.Lines, at+" "+e.markdown(l))
	}
	return x
}

// markdown is an entry in words.
func (e Entry) markdown(l i18n.Lang) string {
	name, text := Plain(e.Name), Plain(e.Text)
	switch e.Kind {
	case KindPhase:
		return "▶️ " + joined(": ", l.T("agent.phase_"+e.Result), Plain(planning.Title(l, e.Name)))
	case KindSaid:
		return "💬 " + text
	case KindTool:
		on := joined(":", e.Text, strings.Join(e.Parts, ","))
		if on != "" {
			on = Span(on)
		}
		how := l.T("progress." + e.Result)
		if e.N > 1 {
			how += fmt.Sprintf(" (×%d)", e.N)
		}
		return "🔧 " + joined(" ", "**"+name+"**", on) + " → " + how
	case KindError:
		return "⚠️ " + joined(": ", name, text)
	case KindUnderstood:
		return "🎯 " + joined(": ", l.T("progress.understood"), joined(" — ", Plain(kind(l, e.Name)), text))
	case KindCollected:
		return "🔍 " + l.T("progress.collected", e.N)
	case KindRevision:
		return "📝 " + joined(": ", l.T("progress.revised", e.N), text)
	case KindReplan:
		how := l.T("progress.replanned", name, e.N)
		if e.N == 0 {
			how = l.T("progress.decided", name)
		}
		if e.Why != "" {
			how += " — " + l.T("progress.overridden", Plain(e.Wished), Plain(e.Why))
		}
		if e.Doubt {
			how = "⚠️ " + how + " — " + l.T("progress.doubtful")
		}
		return "🔁 " + joined(": ", how, text)
	case KindVerification:
		return "🔎 " + joined(": ", l.T("progress.verification_"+e.Result), text)
	case KindCheck:
		return "🧪 " + Span(e.Name) + " → " + l.T("progress."+e.Result)
	case KindAssumption:
		return "💡 " + l.T("agent.plan_assumed", text)
	case KindSummary:
		return "🏁 " + joined(": ", "**"+Plain(planning.Title(l, e.Name))+"** "+ended(l, e.Result), text)
	case KindQuestion:
		return "❓ " + text
	case KindAnswer:
		return "↩️ " + joined(": ", name, text)
	}
	return text
}

// kind is a type of task, as a plan names it, in words: one that we do not know as
// it is.
func kind(l i18n.Lang, name string) string {
	switch name {
	case "bug_fix", "feature", "refactoring", "documentation", "test", "question", "other":
		return l.T("progress.type_" + name)
	}
	return name
}

// ended is how a subtask ended, in words: a status that we do not know as it is.
func ended(l i18n.Lang, status string) string {
	switch status {
	case planning.Done, planning.Failed, planning.Blocked, planning.Skipped:
		return l.T("progress.subtask_" + status)
	}
	return Plain(status)
}

// joined puts a mark between two texts, where both are there.
func joined(mark, a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + mark + b
}

var noMarkup = strings.NewReplacer("<", "&lt;", "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, `\`, `\\`)

// Plain is a text of others as Markdown with nothing in it that would be more than
// text (CommonMark 0.31 §2.4).
func Plain(s string) string { return noMarkup.Replace(OneLine(s)) }

// Span is a text on one line as code, whatever it holds (CommonMark 0.31 §6.1).
func Span(s string) string {
	s = OneLine(s)
	if !strings.Contains(s, "`") {
		return "`" + s + "`"
	}
	runs := strings.FieldsFunc(s, func(c rune) bool { return c != '`' })
	slices.SortFunc(runs, func(a, b string) int { return len(b) - len(a) })
	fence := runs[0] + "`"
	return fence + " " + s + " " + fence
}
