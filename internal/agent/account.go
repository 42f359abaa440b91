package agent

import (
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/progress"
	"toritsugi/internal/verdict"
)

// settled reports whether all was verified: no check is red or was left out, and
// nothing is open.
func (r *verification) settled() bool {
	v := verdict.Of(r.Before, r.after)
	return len(v.Red) == 0 && r.settledBut(v)
}

// settledBut is settled, apart from checks that stay red.
func (r *verification) settledBut(v verdict.Verdict) bool {
	return !v.None && len(v.Empty)+len(v.NotFound)+len(r.NotRun)+len(r.judged.Open) == 0 && r.decided() == "" && !r.review.failed
}

// description is the text of the pull request: what was changed and why, how that
// was verified, and what is left open.
func (r *run) description(l i18n.Lang) string {
	text := r.said(l) + r.verify.account(l, true) + r.notShown(l)
	if r.Scripted {
		text += "\n" + l.T("agent.scripted") + "\n"
	}
	return strings.TrimLeft(text, "\n") + "\n" + l.T("agent.comment_run", r.ledger.UUID(), contextstore.Short(r.ledger.UUID())) + "\n"
}

// account is what we say of the work: how it was verified, what is open where that is
// wanted, and what a reviewer should look at.
func (r *verification) account(l i18n.Lang, open bool) string {
	needs := r.NeedsText(l)
	if needs != "" {
		needs = "\n⚠️ " + needs + "\n"
	}
	points := ""
	if open {
		points = r.openPoints(l)
	}
	return r.evidence(l) + needs + points + r.notes(l)
}

// shownCriterion is how much of a criterion, and of what shows it, a table holds, in
// characters.
const shownCriterion = 300

// evidence is how the work was verified: each check before the change and after it,
// and each criterion with what shows that it is met.
func (r *verification) evidence(l i18n.Lang) string {
	var b strings.Builder
	if len(r.Before)+len(r.after) > 0 {
		b.WriteString("\n" + l.T("agent.table_checks") + "\n|---|---|---|\n")
		for _, c := range r.Before {
			b.WriteString("| " + cell(progress.Span(c.Command)) + " | " + verdict.Result(l, c) + " | " + r.now(l, c.Command) + " |\n")
		}
		for _, c := range r.after {
			if !slices.ContainsFunc(r.Before, func(was contextstore.CheckRun) bool { return was.Command == c.Command }) {
				b.WriteString("| " + cell(progress.Span(c.Command)) + " | | " + r.now(l, c.Command) + " |\n")
			}
		}
	}
	for i, c := range r.judged.Criteria {
		if i == 0 {
			b.WriteString("\n" + l.T("agent.table_criteria") + "\n|---|---|---|\n")
		}
		met := "❌"
		switch {
		case c.Met && c.Evidence == "":
			met = "⚠️"
		case c.Met:
			met = "✅"
		}
		b.WriteString("| " + cell(r.delivery.Plain(l.Translate(c.Criterion), shownCriterion)) + " | " + met + " | " + cell(r.delivery.Plain(l.Translate(c.Evidence), shownCriterion)) + " |\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + l.T("agent.how_verified") + "\n" + b.String()
}

// now is how the check of a command ended after the change, and what is other than
// before; "" where it did not run.
func (r *verification) now(l i18n.Lang, command string) string {
	i := slices.IndexFunc(r.after, func(c contextstore.CheckRun) bool { return c.Command == command })
	if i < 0 {
		return ""
	}
	text := verdict.Result(l, r.after[i])
	if news := verdict.Compare(r.Before, r.after[i]).Text(l, r.testSpan); news != "" {
		text += "; " + cell(news)
	}
	return text
}

// testSpan is the name of a test where people read it.
func (r *verification) testSpan(name string) string {
	return progress.Span(cutLine(progress.OneLine(r.Store.Redact(name))))
}

// cell is a text as it stands in a table of Markdown.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// openPoints lists what a reviewer has to know is not settled.
func (r *verification) openPoints(l i18n.Lang) string {
	var b strings.Builder
	v := verdict.Of(r.Before, r.after)
	switch {
	case v.None && len(v.NotFound)+len(r.NotRun) > 0:
		b.WriteString("- " + l.T("agent.open_not_run") + "\n")
	case v.None:
		b.WriteString("- " + l.T("agent.open_unverified") + "\n")
	}
	if !v.None && r.untested() {
		b.WriteString("- " + l.T("agent.open_untested") + "\n")
	}
	if names := r.decided(); names != "" && !v.None && len(v.Red) == 0 {
		b.WriteString("- " + l.T("scan.open", names) + "\n")
	}
	if r.review.failed {
		b.WriteString("- " + l.T("scan.failed") + "\n")
	}
	for _, p := range r.judged.Open {
		b.WriteString("- " + cutLine(progress.OneLine(l.Translate(r.Store.Redact(p)))) + "\n")
	}
	for _, c := range v.NotFound {
		b.WriteString("- " + l.T("agent.open_not_found", "`"+c.Command+"`") + "\n")
	}
	if left := r.NotRunText(l); left != "" {
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
