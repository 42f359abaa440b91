package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/task"
	"toritsugi/internal/turn"
	"toritsugi/internal/workspace"
)

// maxPatch is how much of a patch is searched for secrets; a larger one is refused.
const maxPatch = 64 << 20

// commit records the tree as one commit on the base, with the id, and
// returns its hash, "" where nothing changed. A patch that holds a secret is
// refused, never rewritten (DESIGN §2.7).
func (r *run) commit(ctx context.Context) (string, error) {
	var patch limited
	if err := r.ws.PatchText(ctx, &patch); err != nil {
		return "", err
	}
	if found := r.Secrets(addedLines(patch.String())); len(found) > 0 {
		return "", &taskError{i18n.E("agent.secret_in_patch", strings.Join(found, ", "))}
	}
	id := r.ledger.Metadata().TaskKey.ID
	message, err := r.message(fmt.Sprintf("%s (#%s)\n\n%s", subject(r.ledger.Metadata().Title), id, cut(strings.TrimSpace(r.final), 4000)))
	if err != nil {
		return "", err
	}
	hash, err := r.ws.Commit(ctx, workspace.CommitOptions{
		Message:    message,
		Trailers:   []workspace.Trailer{{Key: "Issue", Value: id}, {Key: "Tori-Run", Value: r.ledger.UUID()}},
		AuthorName: r.AuthorName, AuthorEmail: r.AuthorEmail, When: r.Now(),
	})
	if errors.Is(err, workspace.ErrNothingToCommit) {
		err = nil
	}
	if hash == r.ws.Base() {
		hash = ""
	}
	return hash, err
}

// subject is a commit's first line: one line, not too long.
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
// It is the transition that promises it, and the outbox that does it.
func (r *run) handOver(ctx context.Context) error {
	if err := r.ledger.Activity(contextstore.Completing, "hand_over"); err != nil {
		return err
	}
	if r.report.Commit == "" {
		return nil
	}
	if err := r.ws.CheckDeliver(ctx); err != nil {
		return err
	}
	return r.mayPush(ctx)
}

// conclude turns how the work ended into the outcome of the task. What was not
// the task's own failure (no model, no disk) pauses it where there is something
// to go on with.
func (r *run) conclude(ctx context.Context, err error, lang i18n.Lang) task.Outcome {
	if err == nil {
		return task.Outcome{Status: task.Completed, Reason: r.verification(lang)}
	}
	var model *llm.Error
	var budget *turn.BudgetError
	var small *memory.TooSmallError
	var checks *checksError
	var own *taskError
	var setup *setupError
	var asked *requestError
	o := task.Outcome{Status: task.Failed}
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errOverTime):
		o.Reason = lang.T("agent.budget", r.Budget.Time, r.Budget.Time, "budget.max_minutes")
	case ctx.Err() != nil && errors.As(context.Cause(ctx), &asked):
		o.Status, o.Reason = asked.status(), lang.T("agent.asked_"+string(asked.Action), asked.By)
	case ctx.Err() != nil && r.StopAsked != nil && r.StopAsked():
		o.Status, o.Reason = task.Stopped, lang.T("agent.stopped")
	case ctx.Err() != nil:
		o.Status, o.Reason = task.Paused, lang.T("agent.paused")
	case errors.As(err, &checks):
		o.Reason = lang.T(checks.key, commands(checks.runs))
	case errors.As(err, &setup):
		o.Reason = setup.reason(lang)
		r.unready = &setup.run
	case errors.As(err, &budget):
		o.Reason = lang.T("agent.budget", budget.Taken, budget.Limit, budget.Key)
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

// verification says in one line what the checks showed.
func (r *run) verification(l i18n.Lang) string {
	v := judge(r.before, r.after)
	switch {
	case v.none && r.report.Commit == "":
		return l.T("agent.no_change_none")
	case v.none:
		return l.T("agent.unverified_none")
	case len(v.red) > 0:
		return l.T("agent.unverified_red", commands(v.red))
	case r.report.Commit == "":
		return l.T("agent.no_change", commands(r.after))
	}
	return l.T("agent.verified", commands(r.after))
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
	if o.Status.Final() {
		o.Summary = r.summary()
		var err error
		if effects, err = r.effects(); err != nil {
			return errors.Join(err, r.ledger.Close())
		}
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

// comment is the text that people read under the issue.
func (r *run) comment(l i18n.Lang) string {
	var b strings.Builder
	o := r.report.Outcome
	b.WriteString(l.T("agent.comment_"+string(o.Status)) + "\n\n" + o.Reason + "\n")
	if r.report.Commit != "" && o.Status == task.Completed {
		b.WriteString("\n" + l.T("agent.comment_commit", short(r.report.Commit), r.report.Branch) + "\n")
	} else if r.report.Tree != "" && len(r.report.Files) > 0 {
		b.WriteString("\n" + l.T("agent.comment_kept", r.report.Tree) + "\n")
	}
	for i, f := range r.report.Files {
		if i == 20 {
			b.WriteString("- " + l.T("agent.comment_more", len(r.report.Files)-i) + "\n")
			break
		}
		b.WriteString("- " + f + "\n")
	}
	if len(r.before)+len(r.after) > 0 {
		b.WriteString("\n" + l.T("agent.comment_checks") + "\n")
		for _, c := range r.before {
			b.WriteString("- " + l.T("agent.comment_before", c.Command, result(l, c)) + "\n")
		}
		for _, c := range r.after {
			b.WriteString("- " + l.T("agent.comment_after", c.Command, result(l, c)) + "\n")
		}
	}
	if r.unready != nil && r.unready.Output != "" {
		b.WriteString("\n" + l.T("agent.comment_setup") + "\n\n" + fenced(cutFront(r.unready.Output, 4000)))
	}
	if r.final != "" {
		b.WriteString("\n" + l.T("agent.comment_said") + "\n\n" + quote(cut(r.final, 4000)) + "\n")
	}
	if r.Scripted {
		b.WriteString("\n" + l.T("agent.scripted") + "\n")
	}
	b.WriteString("\n" + l.T("agent.comment_run", r.ledger.UUID(), r.ledger.UUID()[:8]) + "\n")
	return b.String()
}

func result(l i18n.Lang, c contextstore.CheckRun) string {
	switch {
	case c.Passed():
		return l.T("agent.passed")
	case c.TimedOut:
		return l.T("agent.timed_out")
	}
	return l.T("agent.failed", c.ExitCode)
}

func quote(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n> ")
}

func short(hash string) string { return hash[:min(10, len(hash))] }

// summary is the final summary: what later runs of the same issue may inherit,
// put together from the records without a model (store-v2 §4.4).
func (r *run) summary() string {
	var b strings.Builder
	o := r.report.Outcome
	fmt.Fprintf(&b, "Task: %s (#%s)\nOutcome: %s. %s\n", r.ledger.Metadata().Title, r.ledger.Metadata().TaskKey.ID, o.Status, o.Reason)
	if r.report.Commit != "" {
		fmt.Fprintf(&b, "Commit: %s on %s\n", r.report.Commit, r.report.Branch)
	}
	if len(r.report.Files) > 0 {
		fmt.Fprintf(&b, "Changed: %s\n", strings.Join(r.report.Files[:min(50, len(r.report.Files))], ", "))
	}
	for _, c := range r.after {
		fmt.Fprintf(&b, "Check `%s`: exit code %d\n", c.Command, c.ExitCode)
	}
	if r.final != "" {
		fmt.Fprintf(&b, "Last answer: %s\n", cut(r.final, 4000))
	}
	if r.Scripted {
		b.WriteString("The answers came from a script; no model was called.\n")
	}
	return b.String()
}
