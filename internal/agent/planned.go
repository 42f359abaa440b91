package agent

import (
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
)

// shownSubtasks is how many subtasks a comment lists, and shownIssues how many
// findings of the verification.
const (
	shownSubtasks = 30
	shownIssues   = 3
)

// phases are those of a plan, in order; the others come up in between.
var phases = []string{planning.PhasePlanning, planning.PhaseExecution, planning.PhaseVerification, planning.PhaseCompletion}

// planText is how far the plan is, for a comment: the phases, and the checklist
// with what became of each subtask. "" where no plan leads the run.
func (r *run) planText(l i18n.Lang) string {
	lead := r.led.Load()
	if lead == nil {
		return ""
	}
	v := lead.View()
	var b strings.Builder
	b.WriteString("\n" + chain(l, v.Phase) + "\n")
	if v.Plan == nil {
		return b.String()
	}
	if v.Goal != "" {
		b.WriteString("\n🎯 " + r.plainLine(v.Goal) + "\n")
	}
	if v.Uncertain {
		b.WriteString("\n⚠️ " + l.T("agent.plan_uncertain", int(100**v.Plan.Goal.Confidence)) + "\n")
	}
	b.WriteString("\n" + r.checklist(v))
	if more := len(v.Items) - shownSubtasks; more > 0 {
		b.WriteString("- " + l.T("agent.comment_more", more) + "\n")
	}
	if v.Revisions+v.Replans > 0 {
		b.WriteString("\n" + l.T("agent.plan_changes", v.Revisions, v.Replans) + "\n")
	}
	if v.Rounds > 0 && !v.Passed {
		for _, issue := range v.Issues[:min(len(v.Issues), shownIssues)] {
			b.WriteString("- ⚠️ " + r.plainLine(issue) + "\n")
		}
	}
	for _, a := range v.Plan.Goal.Assumptions[:min(len(v.Plan.Goal.Assumptions), shownIssues)] {
		b.WriteString("- " + l.T("agent.plan_assumed", r.plainLine(a.Value)) + "\n")
	}
	for _, g := range v.Plan.Goal.Gaps[:min(len(v.Plan.Goal.Gaps), shownIssues)] {
		b.WriteString("- " + l.T("agent.plan_gap", r.plainLine(g.Description)) + "\n")
	}
	return b.String()
}

// checklist ticks each subtask by its result.
func (r *run) checklist(v planning.View) string {
	var b strings.Builder
	for _, it := range v.Items[:min(len(v.Items), shownSubtasks)] {
		box, mark := "[ ]", ""
		switch it.Status {
		case planning.Done:
			box = "[x]"
		case planning.Failed, planning.Blocked:
			mark = "❌ "
		case planning.Skipped:
			mark = "⏭️ "
		default:
			if it.ID == v.Current {
				mark = "▶️ "
			}
		}
		b.WriteString("- " + box + " " + mark + "**" + r.plainLine(it.ID) + "**: " + r.plainLine(it.Text) + "\n")
	}
	return b.String()
}

// plainLine is a text of the model on one line, with nothing in it that would be more
// than text.
func (r *run) plainLine(s string) string {
	return cutLine(strings.NewReplacer("<", "‹", ">", "›", "`", "'", "*", "∗", "[", "［", "]", "］").Replace(oneLine(r.Store.Redact(s))))
}

// chain are the phases, with where the run is.
func chain(l i18n.Lang, at string) string {
	now := -1
	for i, p := range phases {
		if p == at {
			now = i
		}
	}
	if at == planning.PhaseReflection || at == planning.PhaseReplan {
		now = 1
	}
	var all []string
	for i, p := range phases {
		text := l.T("agent.phase_" + p)
		switch {
		case i < now || at == planning.PhaseCompletion:
			text = "✅ " + text
		case i == now:
			text = "▶️ " + text
			if p == planning.PhaseExecution && at != p {
				text += " (" + l.T("agent.phase_"+at) + ")"
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, " → ")
}
