package agent

import (
	"context"
	"errors"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// endDetails is how the run ends, as far as it is known.
type endDetails struct {
	askedBy  string   // who paused or stopped the run
	recorded string   // why it ended, as the record says it
	late     []string // addresses of what was said too late

	day     bool // a limit of the day pauses the run
	barred  bool // the forge does not let it push
	cutOff  bool // a budget ended the run, and the model wrote no word for who goes on
	summary bool // a model is to sum the run up, once it is over
	silent  bool // the comment on the end may not be posted

	setup    *contextstore.CheckRun // the setup command that failed
	question *contextstore.Effect   // the comment that asks the open one, or for a decision
	approval *approval.Job          // that the run waits for
}

// finish turns how the work ended into the outcome, puts together what people are to
// see of it, and makes the transition. working is the context that the work had,
// process that of who started the run.
func (r *run) finish(working, process context.Context, err error) error {
	r.recount()
	if nerr := r.talk.Close(); nerr != nil {
		r.log.Warn("What was told may be told again: " + nerr.Error())
	}
	c := r.causeOf(working, err)
	r.concludes(c.outcome)
	r.noteCause(c)
	r.stoppedMeanwhile()
	looking, done := lastLook(working, process)
	defer done()
	ctx, o := context.WithoutCancel(process), &r.report.Outcome
	if o.Status == task.Queued {
		if werr := r.Delivery.Waiting(ctx, r.ledger, o.Reason); werr != nil {
			r.log.Warn("Why the run waits is not told: " + r.Store.Redact(werr.Error()))
		}
	}
	r.end.late = r.talk.Late(ctx, o.Status)
	ended := errors.Join(err, c.ctx)
	r.noteHandover(ended)
	r.speak(ctx, looking)
	if r.stoppedMeanwhile() {
		r.speak(ctx, looking)
	}
	if o.Status.Final() {
		o.Summary = r.facts() + r.recorded() + r.learned()
		r.end.summary = r.owesSummary(process, ended)
	}
	r.settleDay(ctx)
	r.keepWork(ctx)
	if err = r.transition(ctx); err == nil {
		r.showEnd(ctx)
	}
	r.report.Dir = r.ledger.Dir()
	return err
}

// keepTime is how long the end of a run waits for its workspace to be stored.
const keepTime = 30 * time.Second

// keepWork has what is still needed of the workspace stored, for who goes on with it on another
// machine: a later owner, or who delivers its commit. It ends the storing.
func (r *run) keepWork(ctx context.Context) {
	k := r.out.Keeper
	defer k.Close()
	if k == nil || r.report.Outcome.Status.Final() && r.report.Commit == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	s, err := r.out.Workspace.Snapshot(ctx, "end")
	if err == nil {
		k.Keep(s)
		err = k.Flush(ctx)
	}
	if err != nil {
		r.log.Warn("The last changes in the workspace are not stored, only this machine has them: " + r.Store.Redact(err.Error()))
	}
}

// stoppedMeanwhile ends a run for good that is being paused, where somebody stops it before
// it is, and reports whether it did.
func (r *run) stoppedMeanwhile() bool {
	q, requested := r.ledger.Request()
	var stop error
	switch {
	case r.report.Outcome.Status != task.Paused:
		return false
	case requested && q.Action == contextstore.Stop:
		r.end.askedBy, stop = q.By, &requestError{q}
	case r.StopAsked != nil && r.StopAsked():
		stop = context.Canceled
	default:
		return false
	}
	r.concludes(cause{r, stop, stop}.outcome)
	return true
}

// noteCause notes what the end of the run needs of its cause besides the outcome.
func (r *run) noteCause(c cause) {
	if q := c.asked(); q != nil && c.err != nil {
		r.end.askedBy = q.By
	}
	if c.ctx == nil {
		r.end.day = failed[*contextstore.DayError](c)
		if e := as[*checkrun.SetupError](c); e != nil {
			r.end.setup = &e.Run
		}
	}
	if w := as[*waitError](c); w != nil && c.ctx == nil {
		r.end.approval = &w.job
	}
	r.end.barred = failed[*delivery.PermissionError](c)
}

// concludes makes how the work ended the outcome: in the language of the comments,
// in that of who started the run, and in that of the record.
func (r *run) concludes(end func(l i18n.Lang) task.Outcome) {
	r.report.Outcome = end(r.Lang)
	r.report.Outcome.Reason = r.Store.Redact(r.report.Outcome.Reason)
	r.report.Reason = r.Store.Redact(end(r.Reader).Reason)
	r.end.recorded = r.Store.Redact(end(i18n.English).Reason)
}

// adds says something more about how the run ended.
func (r *run) adds(key string, args ...any) {
	r.report.Outcome.Reason += "; " + r.Store.Redact(r.Lang.T(key, args...))
	r.report.Reason += "; " + r.Store.Redact(r.Reader.T(key, args...))
	r.end.recorded += "; " + r.Store.Redact(i18n.English.T(key, args...))
}

// tells reports whether the world hears of how the run stands.
func (r *run) tells() bool {
	s := r.report.Outcome.Status
	return s.Final() || s == task.AwaitingApproval || s == task.Paused && r.served()
}

// speak puts together the comment on the end of the run and asks the broker
// whether it may be posted. A run whose comment may not be posted is not
// completed: nobody would hear of it. looking is the context of git.
func (r *run) speak(ctx, looking context.Context) {
	o := &r.report.Outcome
	reviews := r.out.Reviews()
	if r.out.Workspace != nil && r.report.Files == nil && !reviews && o.Status != task.Completed {
		r.noteFiles(looking) // what was done until then is in the tree: say so
	}
	if !r.tells() || reviews && o.Status == task.Completed { // the review says it
		return
	}
	if !r.out.Here() && !reviews && (o.Status == task.Stopped || o.Status == task.Failed) {
		r.salvage(looking)
	}
	if o.Status == task.AwaitingApproval {
		var err error
		if r.end.approval != nil {
			r.end.question, err = r.requestApproval(ctx, *r.end.approval)
		} else {
			var q planning.Question
			if q, r.end.question, err = r.talk.Put(ctx); q.ID != "" {
				r.report.Question = &q
			}
		}
		if err != nil {
			o.Status = task.Paused
			r.adds("agent.not_told", err)
		}
	}
	r.report.Comment = r.comment(r.Lang)
	if r.out.Order.Silent() {
		return // nobody to tell
	}
	text, reason := r.out.MayComment(ctx, o.Status, r.report.Comment, r.folded())
	if reason == nil {
		r.report.Comment = text
		r.answerRemarks(ctx)
		return
	}
	r.end.silent = true
	if o.Status != task.Completed {
		r.adds("agent.not_told", reason)
		return
	}
	r.concludes(r.causeOf(ctx, i18n.E("agent.not_told", reason)).outcome)
}

// mostAnswers is how many remarks a run answers.
const mostAnswers = 30

// answerRemarks has the remarks on lines that the run was told answered where they stand: by
// what the model said of each, and by the commit. Of work that is not done nothing is said there.
func (r *run) answerRemarks(ctx context.Context) {
	if r.report.Outcome.Status != task.Completed {
		return
	}
	commit := delivery.Short(r.report.Commit)
	all, more := progress.First(r.talk.RemarkAnswers(), mostAnswers)
	if more > 0 {
		r.log.Warn("Not all remarks are answered", "left", more)
	}
	for _, a := range all {
		text := a.Text
		switch {
		case commit != "" && text == "":
			text = r.Lang.T("agent.answer_commit", commit)
		case commit != "":
			text += "\n\n" + r.Lang.T("agent.comment_commit", commit, r.report.Branch)
		case text == "":
			continue
		}
		if err := r.out.Answer(ctx, a.Thread, text); err != nil {
			r.log.Warn("A remark is not answered: "+r.Store.Redact(err.Error()), "remark", a.Thread)
		}
	}
}

// noteFiles notes which files differ from the base, if git can tell.
func (r *run) noteFiles(ctx context.Context) {
	if changes, err := r.out.Workspace.ChangedFiles(ctx); err == nil {
		r.report.Files = workspace.Paths(changes)
	}
}

// salvage hands over what an ended run leaves in its workspace.
func (r *run) salvage(ctx context.Context) {
	hash, err := r.out.Salvage(ctx, r.lead.answer)
	if hash != "" {
		if r.report.Commit = hash; len(r.report.Files) == 0 {
			r.noteFiles(ctx)
		}
	}
	if err != nil {
		r.log.Warn("What was done so far stays in the workspace: " + r.Store.Redact(err.Error()))
	}
}

// effects are what the world must see of how the run stands, and what is owed later.
func (r *run) effects() (all []contextstore.Effect, err error) {
	o := r.report.Outcome
	if r.tells() {
		end := delivery.End{Status: o.Status, Commit: r.report.Commit, Question: r.end.question}
		if !r.end.silent {
			end.Comment = r.report.Comment
		}
		if all, err = r.out.Effects(end); err != nil {
			return nil, err
		}
	}
	if r.end.summary {
		e, err := delivery.NewEffect(r.ledger.UUID()+"."+EffectSummary, EffectSummary, summaryEffect{r.facts(), r.learned()})
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// transition makes the transition; where the task is over, with what people are to see.
func (r *run) transition(ctx context.Context) error {
	o := r.report.Outcome
	effects, err := r.effects()
	if err != nil {
		return errors.Join(err, r.ledger.Close())
	}
	if err := r.out.WaitForPermission(ctx, r.ledger.UUID(), r.end.barred && o.Status == task.Paused); err != nil {
		r.log.Warn(err.Error())
	}
	err = r.ledger.Transition(ctx, o, effects...)
	switch {
	case errors.As(err, new(*contextstore.UnfinishedError)):
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

// Resumable reports an error of Execute after which the run is not closed, and
// can be resumed when what the error says is mended.
func Resumable(err error) bool {
	return errors.As(err, new(*openError))
}
