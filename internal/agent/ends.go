package agent

import (
	"context"
	"errors"
	"syscall"

	"toritsugi/internal/approval"
	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
	"toritsugi/internal/verdict"
)

// endRule is how a run ends by one kind of cause.
type endRule struct {
	name   string
	is     func(c cause) bool
	status task.Status
	// resumable pauses a run that has called a model: it has something to go on with,
	// once what ended it is mended.
	resumable bool
	reason    func(c cause, l i18n.Lang) string
}

// cause is what ended the work: an error, nil where the work is done, and what ended
// the run's context, nil where that goes on.
type cause struct {
	r   *run
	err error
	ctx error
}

// endRules are all ways in which a run ends: the first row whose cause it is counts. What is not the
// task's own failure (no model, no disk) pauses the run where there is something to go
// on with.
var endRules = []endRule{
	{"the work goes on at the draft", func(c cause) bool { return c.err == nil && c.r.left }, task.Completed, false, text("agent.left")},
	{"the work is done", func(c cause) bool { return c.err == nil }, task.Completed, false,
		func(c cause, l i18n.Lang) string {
			if c.r.review != nil {
				return l.T("review.done", len(c.r.review.done.Findings))
			}
			return c.r.verify.summary(l)
		}},

	// Somebody or something ended the run's context.
	{"its time is used up", ended(ErrOverTime), task.Failed, false,
		func(c cause, l i18n.Lang) string {
			most := c.r.Limits.Run.Time
			return l.T("agent.budget", most, most, turn.KeyTime)
		}},
	{"the process shuts down", ended(ErrShutdown), task.Queued, false, // no fault of the run: the next process goes on with it
		func(cause, i18n.Lang) string { return "" }},
	{"a stop was requested", func(c cause) bool {
		q := c.asked()
		return q != nil && q.Action == contextstore.Stop
	}, task.Stopped, false, askedFor},
	{"a pause was requested", func(c cause) bool { return c.asked() != nil }, task.Paused, false, askedFor},
	{"interrupted for good", func(c cause) bool { return c.ctx != nil && c.r.StopAsked != nil && c.r.StopAsked() }, task.Stopped, false, text("agent.stopped")},
	{"interrupted", func(c cause) bool { return c.ctx != nil }, task.Paused, false, text("agent.paused")},

	// It waits.
	{"a day's budget is used up", failed[*contextstore.DayError], task.Paused, false,
		func(c cause, l i18n.Lang) string { return c.r.dayReason(l, as[*contextstore.DayError](c)) }},
	{"the forge cannot be had at the start", func(c cause) bool { return c.r.served() && !c.r.begun() && delivery.Passing(c.err) }, task.Queued, false, itself}, // nothing was begun that could have failed
	{"an answer cannot be read now", func(c cause) bool {
		w := as[*tool.WaitError](c)
		return w != nil && w.Cause != nil && delivery.Passing(w.Cause)
	}, task.Queued, false, // somebody said something, and it is still to be read
		func(c cause, l i18n.Lang) string { return l.Error(as[*tool.WaitError](c).Cause) }},
	{"people owe an answer", failed[*tool.WaitError], task.AwaitingApproval, false,
		func(c cause, l i18n.Lang) string {
			w := as[*tool.WaitError](c)
			reason := l.T("agent.waits_for_answer", cutLine(progress.OneLine(l.Translate(w.For))))
			if w.Cause != nil {
				reason += "; " + l.Error(w.Cause)
			}
			return reason
		}},

	{"people must agree to the change", failed[*waitError], task.AwaitingApproval, false,
		func(c cause, l i18n.Lang) string { return l.T("job.waits", as[*waitError](c).job.Job) }},
	{"people denied the change", failed[*approval.DecidedError], task.Stopped, false,
		func(c cause, l i18n.Lang) string { return l.Error(as[*approval.DecidedError](c)) }},

	// The work does not pass.
	{"checks fail", failed[*checksError], task.Failed, false,
		func(c cause, l i18n.Lang) string {
			e := as[*checksError](c)
			return l.T(e.key, verdict.Commands(e.runs))
		}},
	{"points stay open", failed[*openPointsError], task.Failed, false,
		func(c cause, l i18n.Lang) string {
			return l.T("agent.open_points_failed", openPoints(l, as[*openPointsError](c).points))
		}},
	{"the plan is stuck", failed[*planning.StuckError], task.Failed, false,
		func(c cause, l i18n.Lang) string { return l.T("agent.stuck", as[*planning.StuckError](c).What(l)) }},
	{"the calls go round in circles", failed[*turn.CircleError], task.Failed, false,
		func(c cause, l i18n.Lang) string { return l.T("agent.stuck", as[*turn.CircleError](c).What(l)) }},
	{"the setup fails", failed[*checkrun.SetupError], task.Failed, false,
		func(c cause, l i18n.Lang) string { return as[*checkrun.SetupError](c).Reason(l) }},

	// A limit, or the model.
	{"a budget is used up", failed[*turn.BudgetError], task.Failed, false,
		func(c cause, l i18n.Lang) string { return budgetReason(l, as[*turn.BudgetError](c)) }},
	{"the window is too small", failed[*memory.TooSmallError], task.Failed, true, // a larger context_length lets it go on
		func(c cause, l i18n.Lang) string {
			e := as[*memory.TooSmallError](c)
			if e.Refused {
				return l.T("agent.window_refused", c.r.model(), e.Tokens)
			}
			return l.T("agent.window_too_small", e.Tokens, e.Limit)
		}},
	{"answers are cut off", is(turn.ErrCutOff), task.Failed, false, ofModel("agent.cut_off")},
	{"answers are no answers", is(turn.ErrNonsense), task.Failed, false, ofModel("agent.nonsense")},
	{"the script has ended", func(c cause) bool {
		e := as[*llm.Error](c)
		return e != nil && e.Kind == llm.KindScriptEnded
	}, task.Failed, false, modelError},
	{"the model cannot be had", failed[*llm.Error], task.Failed, true, modelError},

	// The world.
	{"the forge does not let it push", failed[*delivery.PermissionError], task.Paused, false,
		func(c cause, l i18n.Lang) string {
			return l.T("agent.barred", l.Error(as[*delivery.PermissionError](c).Err))
		}},
	{"people took its branch or draft away", failed[*delivery.EndedError], task.Stopped, false,
		func(c cause, l i18n.Lang) string { return l.Error(as[*delivery.EndedError](c).Err) }},
	{"the disk fails", func(c cause) bool { return diskTrouble(c.err) }, task.Paused, false,
		func(c cause, l i18n.Lang) string { return l.T("agent.disk", c.err) }},
	{"the task itself is at fault", failed[*delivery.TaskError], task.Failed, false,
		func(c cause, l i18n.Lang) string { return l.Error(as[*delivery.TaskError](c).Err) }},
	{"anything else", func(cause) bool { return true }, task.Failed, true, itself}, // a repository that moved, git that finds no room, a branch in the way …
}

// endOf is the row of what ended the work.
func endOf(c cause) endRule {
	for _, e := range endRules {
		if e.is(c) {
			return e
		}
	}
	return endRule{} // the last row takes any cause
}

// outcome is how the run ends by a cause, for readers of a language.
func (c cause) outcome(l i18n.Lang) task.Outcome {
	e, r := endOf(c), c.r
	o := task.Outcome{Status: e.status, Reason: e.reason(c, l)}
	if e.resumable && r.ledger.State().LLMCallCount > 0 {
		o.Status = task.Paused
	}
	if o.Status == task.Completed {
		o.Unverified = r.report.Commit != "" && !r.left && !r.verify.settled()
	}
	budget := as[*turn.BudgetError](c)
	o.TimedOut = o.Status == task.Failed && (c.ctx != nil || budget != nil && budget.Key == turn.KeyTime)
	if left := r.verify.leftOut(l); left != "" && (o.Status == task.Completed || o.Status == task.Failed) {
		o.Reason = l.T("agent.but", o.Reason, left)
	}
	return o
}

// begun reports whether the run has a workspace and a model was called.
func (r *run) begun() bool { return r.out.Workspace != nil && r.ledger.State().LLMCallCount > 0 }

// model names the model that works.
func (r *run) model() string { return r.Client.Provider() + "/" + r.Client.Model() }

// as is the error of a type among a cause's, nil for none.
func as[E error](c cause) E {
	e, _ := errors.AsType[E](c.err)
	return e
}

// failed reports whether there is an error of a type among a cause's.
func failed[E error](c cause) bool {
	_, ok := errors.AsType[E](c.err)
	return ok
}

func is(target error) func(cause) bool {
	return func(c cause) bool { return errors.Is(c.err, target) }
}

func ended(by error) func(cause) bool {
	return func(c cause) bool { return errors.Is(c.ctx, by) }
}

// asked is what somebody requested that ended the run's context; nil for nothing.
func (c cause) asked() *requestError {
	q, _ := errors.AsType[*requestError](c.ctx)
	return q
}

func askedFor(c cause, l i18n.Lang) string {
	q := c.asked()
	return l.Asked(string(q.Action), q.By)
}

func text(key string) func(cause, i18n.Lang) string {
	return func(_ cause, l i18n.Lang) string { return l.T(key) }
}

func ofModel(key string) func(cause, i18n.Lang) string {
	return func(c cause, l i18n.Lang) string { return l.T(key, c.r.model()) }
}

func modelError(c cause, l i18n.Lang) string {
	return l.T("agent.model", c.r.model(), as[*llm.Error](c).Explain(l))
}

func itself(c cause, l i18n.Lang) string { return l.Error(c.err) }

// diskTrouble reports an error that more room or another disk would mend.
func diskTrouble(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EFBIG, disk.ErrPoisoned} {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.As(err, new(*contextstore.NoSpaceError))
}

// causeOf is the cause of an end with an error, in a context.
func (r *run) causeOf(ctx context.Context, err error) cause {
	return cause{r, err, context.Cause(ctx)}
}
