package agent

import (
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
	"toritsugi/internal/verdict"
)

// settled reports whether all was verified: no check is red or was left out, and
// nothing is open.
func (r *run) settled() bool {
	v := verdict.Of(r.verify.Before, r.verify.after)
	return len(v.Red) == 0 && r.settledBut(v)
}

// settledBut is settled, apart from checks that stay red.
func (r *run) settledBut(v verdict.Verdict) bool {
	return !v.None && len(v.Empty)+len(v.NotFound)+len(r.verify.NotRun)+len(r.lead.judged.Open) == 0 && r.decided() == "" && !r.verify.review.failed
}

// description is the text of the pull request: what was changed and why, how that
// was verified, and what is left open.
func (r *run) description(l i18n.Lang) string {
	text := r.said(l) + r.account(l)
	if r.Scripted {
		text += "\n" + l.T("agent.scripted") + "\n"
	}
	return strings.TrimLeft(text, "\n") + "\n" + l.T("agent.comment_run", r.ledger.UUID(), r.ledger.UUID()[:8]) + "\n"
}

// account is what we say of the work: how it was verified, what is open, and what a
// reviewer should look at.
func (r *run) account(l i18n.Lang) string {
	needs := r.verify.NeedsText(l)
	if needs != "" {
		needs = "\n⚠️ " + needs + "\n"
	}
	return r.evidence(l) + needs + r.openPoints(l) + r.notes(l)
}

// shownCriterion is how much of a criterion, and of what shows it, a table holds, in
// characters.
const shownCriterion = 300

// evidence is how the work was verified: each check before the change and after it,
// and each criterion with what shows that it is met.
func (r *run) evidence(l i18n.Lang) string {
	var b strings.Builder
	if len(r.verify.Before)+len(r.verify.after) > 0 {
		b.WriteString("\n" + l.T("agent.table_checks") + "\n|---|---|---|\n")
		for _, c := range r.verify.Before {
			b.WriteString("| " + cell(progress.Span(c.Command)) + " | " + verdict.Result(l, c) + " | " + r.now(l, c.Command) + " |\n")
		}
		for _, c := range r.verify.after {
			if !slices.ContainsFunc(r.verify.Before, func(was contextstore.CheckRun) bool { return was.Command == c.Command }) {
				b.WriteString("| " + cell(progress.Span(c.Command)) + " | | " + r.now(l, c.Command) + " |\n")
			}
		}
	}
	for i, c := range r.lead.judged.Criteria {
		if i == 0 {
			b.WriteString("\n" + l.T("agent.table_criteria") + "\n|---|---|---|\n")
		}
		met := "❌"
		if c.Met {
			met = "✅"
		}
		b.WriteString("| " + cell(r.Delivery.Plain(l.Retold(c.Criterion), shownCriterion)) + " | " + met + " | " + cell(r.Delivery.Plain(l.Retold(c.Evidence), shownCriterion)) + " |\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + l.T("agent.how_verified") + "\n" + b.String()
}

// now is how the check of a command ended after the change, and what is other than
// before; "" where it did not run.
func (r *run) now(l i18n.Lang, command string) string {
	i := slices.IndexFunc(r.verify.after, func(c contextstore.CheckRun) bool { return c.Command == command })
	if i < 0 {
		return ""
	}
	text := verdict.Result(l, r.verify.after[i])
	if news := verdict.Compare(r.verify.Before, r.verify.after[i]).Text(l, r.testSpan); news != "" {
		text += "; " + cell(news)
	}
	return text
}

// testSpan is the name of a test where people read it.
func (r *run) testSpan(name string) string {
	return progress.Span(cutLine(progress.OneLine(r.Store.Redact(name))))
}

// cell is a text as it stands in a table of Markdown.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// openPoints lists what a reviewer has to know is not settled.
func (r *run) openPoints(l i18n.Lang) string {
	if s := r.report.Outcome.Status; s != "" && s != task.Completed { // its reason says more
		return ""
	}
	var b strings.Builder
	v := verdict.Of(r.verify.Before, r.verify.after)
	switch {
	case v.None && len(v.NotFound)+len(r.verify.NotRun) > 0:
		b.WriteString("- " + l.T("agent.open_not_run") + "\n")
	case v.None:
		b.WriteString("- " + l.T("agent.open_unverified") + "\n")
	}
	if names := r.decided(); names != "" && !v.None && len(v.Red) == 0 {
		b.WriteString("- " + l.T("scan.open", names) + "\n")
	}
	if r.verify.review.failed {
		b.WriteString("- " + l.T("scan.failed") + "\n")
	}
	for _, p := range r.lead.judged.Open {
		b.WriteString("- " + cutLine(progress.OneLine(l.Retold(r.Store.Redact(p)))) + "\n")
	}
	for _, c := range v.NotFound {
		b.WriteString("- " + l.T("agent.open_not_found", "`"+c.Command+"`") + "\n")
	}
	if left := r.verify.NotRunText(l); left != "" {
		b.WriteString("- " + l.T("agent.open_left_out", left) + "\n")
	}
	if left := r.leftOut(l); left != "" {
		b.WriteString("- " + r.Store.Redact(left) + "\n")
	}
	for _, c := range v.Empty {
		b.WriteString("- " + l.T("agent.open_empty", "`"+c.Command+"`") + "\n")
	}
	_, _, red := v.StillRed(l) // the table says of the others
	for _, c := range red {
		b.WriteString("- " + l.T("agent.open_red", "`"+c.Command+"`") + "\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + l.T("agent.open_points") + "\n\n" + b.String()
}
