package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
	"toritsugi/internal/workspace"
)

// maxPatch is how much of a patch is searched for secrets; a larger one is refused.
const maxPatch = 64 << 20

// commit records the tree as one commit on the base, with the id, and
// returns its hash, "" where nothing changed.
func (r *run) commit(ctx context.Context) (string, error) {
	return r.commitTree(ctx, r.ws, r.ledger.Metadata(), r.final)
}

// commitTree is commit for a run that need not be worked on; said is what the
// model says of it. A patch that holds a secret is refused, never rewritten
// (DESIGN §2.7).
func (a *Agent) commitTree(ctx context.Context, ws *workspace.Workspace, m contextstore.Metadata, said string) (string, error) {
	var patch limited
	if err := ws.PatchText(ctx, &patch); err != nil {
		return "", err
	}
	if found := a.Secrets(addedLines(patch.String())); len(found) > 0 {
		return "", &taskError{i18n.E("agent.secret_in_patch", strings.Join(found, ", "))}
	}
	id, w := m.TaskKey.ID, wordsOf(said)
	if w.subject == "" {
		w.subject = fmt.Sprintf("%s (#%s)", subject(m.Title), id)
	}
	message, err := a.message(w.subject + "\n\n" + wrapped(cut(w.body, 4000)))
	if err != nil {
		return "", err
	}
	hash, err := ws.Commit(ctx, workspace.CommitOptions{
		Message: message, Reword: said != "",
		Trailers:   []workspace.Trailer{{Key: "Issue", Value: id}, {Key: "Tori-Run", Value: m.UUID}},
		AuthorName: a.AuthorName, AuthorEmail: a.AuthorEmail, When: a.Now(),
	})
	if errors.Is(err, workspace.ErrNothingToCommit) {
		err = nil
	}
	if hash == ws.Base() {
		hash = ""
	}
	return hash, err
}

// subject is the first line of a commit whose words have none: what was asked for.
func subject(title string) string {
	title = strings.Join(strings.Fields(title), " ")
	if runes := []rune(title); len(runes) > 60 {
		title = strings.TrimSpace(string(runes[:59])) + "…"
	}
	return title
}

// limited collects up to maxPatch bytes.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPatch {
		return 0, &taskError{i18n.E("agent.patch_too_large", maxPatch>>20)}
	}
	return l.Builder.Write(p)
}

// addedLines are the lines that a patch adds, and the names of its files; what
// it removes or shows as context was in the repository before.
func addedLines(patch string) string {
	var b strings.Builder
	for line := range strings.Lines(patch) {
		if strings.HasPrefix(line, "+") {
			b.WriteString(line[1:])
		}
	}
	return b.String()
}

// taskError is the task's own failure, as against trouble of the world.
type taskError struct{ error }

func (e *taskError) Unwrap() error { return e.error }

// handOver makes sure that the branch can be put into the user's repository.
// It is the transition that promises it, and the outbox that does it. more
// reports that somebody said something since the last answer, while the checks
// ran or the forge was asked: then nothing is handed over yet.
func (r *run) handOver(ctx context.Context, loop *turn.Loop) (more bool, err error) {
	if more, err = r.objected(ctx, loop); err != nil || more {
		return more, err
	}
	if err := r.ledger.Activity(contextstore.Completing, "hand_over"); err != nil {
		return false, err
	}
	if r.report.Commit == "" {
		return false, nil
	}
	if r.Host == nil {
		if err := r.ws.CheckDeliver(ctx); err != nil {
			return false, err
		}
		return false, r.mayPush(ctx)
	}
	if err := r.mayPush(ctx); err != nil {
		return false, err
	}
	if err := r.mayHand(ctx); err != nil {
		return false, err
	}
	if more, err = r.objected(ctx, loop); err != nil || more {
		return more, err
	}
	r.handed = true
	return false, r.propose(ctx)
}

// concludes makes how the work ended the outcome: in the language of the comments,
// in that of who started the run, and in that of the record.
func (r *run) concludes(end func(l i18n.Lang) task.Outcome) {
	r.report.Outcome = end(r.Lang)
	r.report.Outcome.Reason = r.Store.Redact(r.report.Outcome.Reason)
	r.report.Reason = r.Store.Redact(end(r.Reader).Reason)
	r.recorded = r.Store.Redact(end(i18n.English).Reason)
}

// adds says something more about how the run ended.
func (r *run) adds(key string, args ...any) {
	r.report.Outcome.Reason += "; " + r.Store.Redact(r.Lang.T(key, args...))
	r.report.Reason += "; " + r.Store.Redact(r.Reader.T(key, args...))
	r.recorded += "; " + r.Store.Redact(i18n.English.T(key, args...))
}

// conclude turns how the work ended into the outcome of the task. What was not
// the task's own failure (no model, no disk) pauses it where there is something
// to go on with.
func (r *run) conclude(ctx context.Context, err error, lang i18n.Lang) task.Outcome {
	o := r.ended(ctx, err, lang)
	if left := r.leftOut(lang); left != "" && (o.Status == task.Completed || o.Status == task.Failed) {
		o.Reason = lang.T("agent.but", o.Reason, left)
	}
	return o
}

// shownLeft is how many paths that were left out are named.
const shownLeft = 3

// leftOut says what the commit is without, "" for nothing.
func (r *run) leftOut(lang i18n.Lang) string {
	n := r.left.All
	if n == 0 {
		return ""
	}
	names := strings.Join(r.left.Paths[:min(len(r.left.Paths), shownLeft)], ", ")
	if n > shownLeft {
		names += ", " + lang.T("agent.comment_more", n-shownLeft)
	}
	return lang.T("agent.left_out", names)
}

// ended is conclude without what the commit is without.
func (r *run) ended(ctx context.Context, err error, lang i18n.Lang) task.Outcome {
	if err == nil {
		return task.Outcome{Status: task.Completed, Reason: r.verification(lang), Unverified: r.report.Commit != "" && !r.settled()}
	}
	var model *llm.Error
	var budget *turn.BudgetError
	var day *contextstore.DayError
	var small *memory.TooSmallError
	var checks *checksError
	var own *taskError
	var barred *barredError
	var setup *setupError
	var asked *requestError
	var open *openPointsError
	var stuck *planning.StuckError
	var waiting *tool.WaitError
	o := task.Outcome{Status: task.Failed}
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errOverTime):
		o.Reason, o.TimedOut = lang.T("agent.budget", r.Budget.Time, r.Budget.Time, turn.KeyTime), true
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), ErrShutdown):
		o.Status = task.Queued // no fault of the run: the next process goes on with it
	case ctx.Err() != nil && errors.As(context.Cause(ctx), &asked):
		o.Status, o.Reason, r.askedBy = asked.status(), lang.T("agent.asked_"+string(asked.Action), asked.By), asked.By
	case ctx.Err() != nil && r.StopAsked != nil && r.StopAsked():
		o.Status, o.Reason = task.Stopped, lang.T("agent.stopped")
	case ctx.Err() != nil:
		o.Status, o.Reason = task.Paused, lang.T("agent.paused")
	case errors.As(err, &day):
		o.Status, o.Reason, r.rests = task.Paused, r.dayReason(lang, day), true
	case r.Host != nil && (r.ws == nil || r.ledger.State().LLMCallCount == 0) && later(err):
		o.Status, o.Reason = task.Queued, lang.Error(err) // nothing was begun that could have failed
	case errors.As(err, &waiting) && waiting.Cause != nil && later(waiting.Cause):
		o.Status, o.Reason = task.Queued, lang.Error(waiting.Cause) // somebody said something, and it is still to be read
	case errors.As(err, &waiting):
		o.Status, o.Reason = task.AwaitingApproval, lang.T("agent.waits_for_answer", cutLine(oneLine(lang.Retold(waiting.For))))
		if waiting.Cause != nil {
			o.Reason += "; " + lang.Error(waiting.Cause)
		}
	case errors.As(err, &checks):
		o.Reason = lang.T(checks.key, commands(checks.runs))
	case errors.As(err, &open):
		o.Reason = lang.T("agent.open_points_failed", openPoints(lang, open.points))
	case errors.As(err, &stuck):
		o.Reason = lang.T("agent.stuck", stuck.What(lang))
	case errors.As(err, &setup):
		o.Reason = setup.reason(lang)
		r.unready = &setup.run
	case errors.As(err, &budget):
		o.Reason, o.TimedOut = budgetReason(lang, budget), budget.Key == turn.KeyTime
	case errors.As(err, &small):
		o.Reason = lang.T("agent.window_too_small", small.Tokens, small.Limit)
		if small.Refused {
			o.Reason = lang.T("agent.window_refused", r.Client.Provider()+"/"+r.Client.Model(), small.Tokens)
		}
		if r.ledger.State().LLMCallCount > 0 {
			o.Status = task.Paused // a larger context_length lets it go on
		}
	case errors.Is(err, turn.ErrCutOff):
		o.Reason = lang.T("agent.cut_off", r.Client.Provider()+"/"+r.Client.Model())
	case errors.Is(err, turn.ErrNonsense):
		o.Reason = lang.T("agent.nonsense", r.Client.Provider()+"/"+r.Client.Model())
	case errors.As(err, &model):
		o.Reason = lang.T("agent.model", r.Client.Provider()+"/"+r.Client.Model(), model.Explain(lang))
		if model.Kind != llm.KindScriptEnded && r.ledger.State().LLMCallCount > 0 {
			o.Status = task.Paused
		}
	case errors.As(err, &barred):
		o.Status, o.Reason = task.Paused, lang.T("agent.barred", lang.Error(barred.error))
	case diskTrouble(err):
		o.Status, o.Reason = task.Paused, lang.T("agent.disk", err)
	case errors.As(err, &own):
		o.Reason = lang.Error(own.error)
	default: // a repository that moved, git that finds no room, a branch in the way …
		o.Reason = lang.Error(err)
		if r.ledger.State().LLMCallCount > 0 {
			o.Status = task.Paused
		}
	}
	return o
}

// verification says in one line what the checks showed, and what they could not.
func (r *run) verification(l i18n.Lang) string {
	v := judge(r.before, r.after)
	text := r.shown(l, v)
	if len(v.notFound) > 0 {
		text = l.T("agent.also_not_found", text, commands(v.notFound))
	}
	if left := r.notRunText(l); left != "" {
		text = l.T("agent.also_not_run", text, left)
	}
	if len(r.judged.Open) > 0 {
		text = l.T("agent.also_open", text, openPoints(l, r.judged.Open))
	}
	return text
}

// shown is verification for the checks that could be run.
func (r *run) shown(l i18n.Lang, v verdict) string {
	able := len(v.notFound)+len(r.notRun) == 0
	text, known, red := r.stillRed(l, v)
	switch {
	case v.none && !able && r.report.Commit == "":
		return l.T("agent.no_change_not_run")
	case v.none && !able:
		return l.T("agent.unverified_not_run")
	case v.none && r.report.Commit == "":
		return l.T("agent.no_change_none")
	case v.none:
		return l.T("agent.unverified_none")
	case len(red) > 0 && len(known) > 0:
		return l.T("agent.also_known", l.T("agent.unverified_red", commands(red)), commands(known), text)
	case len(red) > 0:
		return l.T("agent.unverified_red", commands(red))
	case len(known) > 0:
		return text + ": " + commands(known)
	case len(v.empty) > 0:
		return l.T("agent.unverified_empty", commands(v.empty))
	case r.decided() != "":
		return l.T("scan.unverified", commands(ran(r.after, v.notFound)), r.decided())
	case r.review.failed:
		return l.T("scan.unread", commands(ran(r.after, v.notFound)))
	case r.report.Commit == "":
		return l.T("agent.no_change", commands(ran(r.after, v.notFound)))
	}
	return l.T("agent.verified", commands(ran(r.after, v.notFound)))
}

// ran are the checks that could be run.
func ran(all, notFound []contextstore.CheckRun) []contextstore.CheckRun {
	return slices.DeleteFunc(slices.Clone(all), func(c contextstore.CheckRun) bool {
		return slices.ContainsFunc(notFound, func(n contextstore.CheckRun) bool { return n.Command == c.Command })
	})
}

func commands(runs []contextstore.CheckRun) string {
	var names []string
	for _, c := range runs {
		names = append(names, "`"+c.Command+"`")
	}
	return strings.Join(names, ", ")
}

// end makes the transition; where the task is over, with what people are to see.
func (r *run) end(ctx context.Context) error {
	o := &r.report.Outcome
	var effects []contextstore.Effect
	if r.tells() {
		var err error
		if effects, err = r.effects(); err != nil {
			return errors.Join(err, r.ledger.Close())
		}
	}
	if r.owes {
		e, err := effect(r.ledger.UUID()+"."+EffectSummary, EffectSummary, summaryEffect{r.facts(), r.learned()})
		if err != nil {
			return errors.Join(err, r.ledger.Close())
		}
		effects = append(effects, e)
	}
	if err := r.bar(ctx, r.barred && o.Status == task.Paused); err != nil {
		r.log.Warn(err.Error())
	}
	err := r.ledger.Transition(ctx, *o, effects...)
	var unfinished *contextstore.UnfinishedError
	switch {
	case errors.As(err, &unfinished):
		r.log.Warn(err.Error() + "; the next opener does it")
	case errors.Is(err, contextstore.ErrNotOwner):
		return errors.Join(err, r.ledger.Close())
	case err != nil:
		_ = r.ledger.Close() // the error would be the same one again
		return &openError{i18n.E("agent.transition", r.ledger.UUID(), o.Status, err)}
	}
	switch o.Status {
	case task.Completed:
		r.log.Info("Task completed successfully", "commit", r.report.Commit)
	case task.Failed:
		r.log.Error("Task failed: " + r.report.Reason)
	default:
		r.log.Info("Task " + string(o.Status) + ": " + r.report.Reason)
	}
	return nil
}

// openError says that the run could not be closed: its context is as good as
// after a crash, and can be resumed.
type openError struct{ error }

func (e *openError) Unwrap() error { return e.error }

// StillOpen reports an error of Execute after which the run is not closed, and
// can be resumed when what the error says is mended.
func StillOpen(err error) bool {
	var e *openError
	return errors.As(err, &e)
}

// comment is the text that people read under the issue: how the run ended, what was
// changed and why, how that was verified, what is open, and the rest.
func (r *run) comment(l i18n.Lang) string {
	var b strings.Builder
	o := r.report.Outcome
	done := o.Status == task.Completed && r.report.Commit != ""
	b.WriteString(r.headline(l) + "\n")
	if !done { // else it is what the rest says
		reason := o.Reason
		if r.Host != nil {
			reason = r.public(reason)
		}
		b.WriteString("\n" + reason + "\n")
	}
	if stands := r.composed(l); stands != "" {
		b.WriteString(stands)
	} else {
		b.WriteString(r.said(l))
	}
	b.WriteString(r.account(l))
	switch {
	case r.report.Commit != "" && o.Status == task.Completed:
		b.WriteString("\n" + l.T("agent.comment_commit", short(r.report.Commit), r.report.Branch) + "\n")
	case r.handed && len(r.report.Files) > 0:
		b.WriteString("\n" + l.T("agent.comment_saved", r.report.Branch) + "\n")
	case r.Host != nil && len(r.report.Files) > 0:
		b.WriteString("\n" + l.T("agent.comment_kept_here") + "\n") // where is nobody's business but ours
	case r.report.Tree != "" && len(r.report.Files) > 0:
		b.WriteString("\n" + l.T("agent.comment_kept", r.report.Tree) + "\n")
	}
	if r.Host == nil { // else what is folded has them
		b.WriteString(listed(l, r.report.Files))
	}
	b.WriteString(r.askedText(l))
	if r.unready != nil && r.unready.Output != "" {
		b.WriteString("\n" + l.T("agent.comment_setup") + "\n\n" + fenced(cutFront(r.unready.Output, 4000)))
	}
	if r.Host == nil {
		rep := r.reported()
		b.WriteString(rep.PlanText(l, false))
	}
	if r.Scripted {
		b.WriteString("\n" + l.T("agent.scripted") + "\n")
	}
	if r.Host != nil && o.Status == task.Paused {
		b.WriteString("\n" + l.T("agent.comment_resume") + "\n")
	}
	if len(r.unheard) > 0 {
		b.WriteString("\n" + l.T("agent.comment_unheard") + "\n" + listed(l, r.unheard))
	}
	b.WriteString(r.withheldNotice(l) + r.heritageNotice(l))
	b.WriteString("\n" + l.T("agent.comment_run", r.ledger.UUID(), r.ledger.UUID()[:8]) + "\n")
	return b.String()
}

// headline is the first line of a comment: how the run ended.
func (r *run) headline(l i18n.Lang) string {
	o, v := r.report.Outcome, judge(r.before, r.after)
	switch known, _, red := r.stillRed(l, v); {
	case !o.Unverified:
		return l.T("agent.comment_" + string(o.Status))
	case known != "" && len(red) == 0 && r.settledBut(v):
		return l.T("agent.comment_known", known)
	}
	return l.T("agent.comment_unverified")
}

// said is what the model says of its work, for readers of a language; quoted, for it
// is its word and not ours. "" where it said nothing.
func (r *run) said(l i18n.Lang) string {
	text := r.final
	if lead := r.led.Load(); lead != nil && text != "" {
		text = lead.Words(l)
	}
	w := wordsOf(text)
	if text = cut(w.body, 4000); w.subject != "" {
		text = "**" + progress.Plain(w.subject) + "**\n\n" + text
	}
	if text == "" {
		return ""
	}
	return "\n" + quote(text) + "\n"
}

// shownFiles is how many files a comment lists.
const shownFiles = 20

// listed are the first of some files, as a list.
func listed(l i18n.Lang, files []string) string {
	var b strings.Builder
	for i, f := range files {
		if i == shownFiles {
			b.WriteString("- " + l.T("agent.comment_more", len(files)-i) + "\n")
			break
		}
		b.WriteString("- " + f + "\n")
	}
	return b.String()
}

func result(l i18n.Lang, c contextstore.CheckRun) string {
	switch {
	case c.Passed():
		return l.T("agent.passed")
	case c.TimedOut:
		return l.T("agent.timed_out")
	case c.Limit != "":
		return l.T("agent.over_limit", limitText(l, c.Limit, c.Bound))
	}
	return l.T("agent.failed", c.ExitCode)
}

// limitText names a limit of the sandbox, and how much it allows; "" for none.
func limitText(l i18n.Lang, limit, bound string) string {
	switch {
	case limit == "":
		return ""
	case bound == "":
		return l.T("limit." + limit)
	}
	return l.T("limit."+limit, bound)
}

func quote(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n> ")
}

func short(hash string) string { return hash[:min(10, len(hash))] }
