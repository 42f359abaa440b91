package agent

import (
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
	"toritsugi/internal/verdict"
)

// shownLeft is how many paths that were left out are named.
const shownLeft = 3

// leftOut says what the commit is without, "" for nothing.
func (r *verification) leftOut(lang i18n.Lang) string {
	if r.left.All == 0 {
		return ""
	}
	shown, _ := progress.First(r.left.Paths, shownLeft)
	names := strings.Join(shown, ", ")
	if more := r.left.All - len(shown); more > 0 {
		names += ", " + lang.T("agent.comment_more", more)
	}
	return lang.T("agent.left_out", names)
}

// summary says in one line what the checks showed, and what they could not.
func (r *verification) summary(l i18n.Lang) string {
	v := verdict.Of(r.Before, r.after)
	text := r.shown(l, v)
	if len(v.NotFound) > 0 {
		text = l.T("agent.also_not_found", text, verdict.Commands(v.NotFound))
	}
	if left := r.NotRunText(l); left != "" {
		text = l.T("agent.also_not_run", text, left)
	}
	if len(r.judged.Open) > 0 {
		text = l.T("agent.also_open", text, openPoints(l, r.judged.Open))
	}
	return text
}

// shown is summary for the checks that could be run.
func (r *verification) shown(l i18n.Lang, v verdict.Verdict) string {
	able := len(v.NotFound)+len(r.NotRun) == 0
	text, known, red := v.StillRed(l)
	switch {
	case v.None && !able && r.commit == "":
		return l.T("agent.no_change_not_run")
	case v.None && !able:
		return l.T("agent.unverified_not_run")
	case v.None && r.commit == "":
		return l.T("agent.no_change_none")
	case v.None:
		return l.T("agent.unverified_none")
	case len(red) > 0 && len(known) > 0:
		return l.T("agent.also_known", l.T("agent.unverified_red", verdict.Commands(red)), verdict.Commands(known), text)
	case len(red) > 0:
		return l.T("agent.unverified_red", verdict.Commands(red))
	case len(known) > 0:
		return text + ": " + verdict.Commands(known)
	case len(v.Empty) > 0:
		return l.T("agent.unverified_empty", verdict.Commands(v.Empty))
	case r.decided() != "":
		return l.T("scan.unverified", verdict.Commands(verdict.Ran(r.after, v.NotFound)), r.decided())
	case r.review.failed:
		return l.T("scan.unread", verdict.Commands(verdict.Ran(r.after, v.NotFound)))
	case r.commit == "":
		return l.T("agent.no_change", verdict.Commands(verdict.Ran(r.after, v.NotFound)))
	}
	return l.T("agent.verified", verdict.Commands(verdict.Ran(r.after, v.NotFound)))
}

// comment is the text that people read under the issue: how the run ended, what was
// changed and why, how that was verified, what is open, and the rest.
func (r *run) comment(l i18n.Lang) string {
	if r.out.Reviews() {
		return r.reviewEnded(l)
	}
	var b strings.Builder
	o := r.report.Outcome
	if r.left && o.Status == task.Completed { // where to, the delivery adds
		return l.T("agent.comment_run", r.ledger.UUID(), contextstore.Short(r.ledger.UUID())) + "\n"
	}
	done := o.Status == task.Completed && r.report.Commit != ""
	b.WriteString(r.headline(l) + "\n")
	if !done { // else it is what the rest says
		reason := o.Reason
		if !r.out.Here() {
			reason = r.Delivery.Public(reason)
		}
		b.WriteString("\n" + reason + "\n")
	}
	if stands := r.handover(l); stands != "" {
		b.WriteString(stands)
	} else {
		b.WriteString(r.said(l))
	}
	b.WriteString(r.verify.account(l, o.Status == task.Completed) + r.notShown(l))
	switch {
	case r.report.Commit != "" && o.Status == task.Completed:
		b.WriteString("\n" + l.T("agent.comment_commit", delivery.Short(r.report.Commit), r.report.Branch) + "\n")
	case r.out.Delivers && len(r.report.Files) > 0:
		b.WriteString("\n" + r.out.Place.Saved(l) + "\n")
	case !r.out.Here() && len(r.report.Files) > 0:
		b.WriteString("\n" + l.T("agent.comment_kept_here")) // where is nobody's business but ours
		if o.Status.Final() {
			b.WriteString(l.T("agent.retry_without"))
		}
		b.WriteString("\n")
	case r.report.Tree != "" && len(r.report.Files) > 0:
		b.WriteString("\n" + l.T("agent.comment_kept", r.report.Tree) + "\n")
	}
	if r.out.Here() { // else what is folded has them
		b.WriteString(delivery.List(l, r.report.Files))
	}
	b.WriteString(r.talk.Asked(l))
	if r.end.setup != nil && r.end.setup.Output != "" {
		b.WriteString("\n" + l.T("agent.comment_setup") + "\n\n" + progress.Fenced(progress.Tail(r.end.setup.Output, 4000)))
	}
	if r.out.Here() {
		rep := r.reported()
		if done { // what was said above tells it
			rep.Goal = ""
			if len(rep.Items) == 1 && rep.Items[0].Status == planning.Done {
				rep.Items = nil
			}
		}
		b.WriteString(rep.PlanText(l, false))
	}
	if r.Scripted {
		b.WriteString("\n" + l.T("agent.scripted") + "\n")
	}
	if r.served() && o.Status == task.Paused {
		b.WriteString("\n" + l.T("agent.comment_resume") + "\n")
	}
	if len(r.end.late) > 0 {
		b.WriteString("\n" + l.T("agent.comment_unheard") + "\n" + delivery.List(l, r.end.late))
	}
	b.WriteString(r.withheldNotice(l) + r.inheritanceNotice(l))
	b.WriteString("\n" + l.T("agent.comment_run", r.ledger.UUID(), contextstore.Short(r.ledger.UUID())) + "\n")
	return b.String()
}

// headline is the first line of a comment: how the run ended.
func (r *run) headline(l i18n.Lang) string {
	o, v := r.report.Outcome, verdict.Of(r.verify.Before, r.verify.after)
	switch known, _, red := v.StillRed(l); {
	case o.Status == task.Completed && r.report.Commit == "":
		return l.T("agent.comment_no_change") // whoever asked for one must not take it for done
	case !o.Unverified:
		return l.T("agent.comment_" + string(o.Status))
	case known != "" && len(red) == 0 && r.verify.settledBut(v):
		return l.T("agent.comment_known", known)
	}
	return l.T("agent.comment_unverified")
}

// said is what the model says of its work, for readers of a language; quoted, for it
// is its word and not ours. "" where it said nothing.
func (r *run) said(l i18n.Lang) string {
	text := r.lead.answer
	if lead := r.lead.planned.Load(); lead != nil && text != "" {
		text = lead.Words(l)
	}
	w := delivery.ParseMessage(text)
	if text = progress.Head(w.Body, 4000); w.Subject != "" {
		text = "**" + progress.Plain(w.Subject) + "**\n\n" + text
	}
	if text == "" {
		return ""
	}
	return "\n" + progress.Quote(text) + "\n"
}
