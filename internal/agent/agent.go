// Package agent carries one task from its start to its end: prepare, lead the model, verify,
// hand over, and make the one transition. The outcome that it states is what happened; what
// goes out is delivery's, what people say is dialogue's.
package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
	"toritsugi/internal/telemetry"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
)

// Execute works on a claimed context until it ends, pauses, or cannot go on,
// and makes the transition. The error says that the transition itself failed;
// the context can then be claimed again.
func (a *Agent) Execute(ctx context.Context, c *contextstore.Context) (Report, error) {
	r, err := newRun(a, c)
	if err != nil {
		return Report{UUID: c.UUID()}, errors.Join(err, c.Close())
	}
	r.log.Info("Task started: "+c.Metadata().TaskKey.String(), "generation", c.State().Generation)
	working, unwatch := WatchRequests(ctx, c, r.Limits.Run.Time)
	defer unwatch()
	err = r.work(working)
	if r.screen.hide != nil {
		r.screen.hide() // the outbox posts what comes after
	}
	defer r.release()
	if errors.Is(err, contextstore.ErrNotOwner) {
		// Another process owns the run now, and reports on it.
		return r.report, errors.Join(err, c.Close())
	}
	telemetry.Phase(ctx, planning.PhaseCompletion, 0)
	err = r.finish(working, ctx, err)
	return r.report, err
}

// work does everything up to the transition; nil means that the work is done and
// handed over.
func (r *run) work(ctx context.Context) error {
	defer r.close()
	telemetry.Phase(ctx, phasePrepare, 0)
	if err := r.openWorkspace(ctx); err != nil {
		return err
	}
	if r.DraftFirst && r.out.LeavesWork() && r.ledger.LastSeq() == 0 {
		return r.leaveWork(ctx)
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	for {
		if again, err := r.attempt(ctx); err != nil || !again {
			return err
		}
	}
}

// phasePrepare is what a run is in, as traces have it, before those of planning.
const phasePrepare = "preparation"

// attempt lets the model work until its last answer, and takes that one to its end
// unless something sends the model back to work: a person, a check that fails, or the
// judgement of a criterion.
func (r *run) attempt(ctx context.Context) (again bool, err error) {
	if r.lead.answer, err = r.lead.run(ctx); err != nil {
		return false, err
	}
	if r.review != nil {
		return false, r.review.handOver(ctx)
	}
	for _, stage := range []func(context.Context) (again bool, err error){r.objected, r.verified, r.judged, r.propose} {
		if again, err := stage(ctx); err != nil || again {
			return again, err
		}
	}
	return false, nil
}

// run is one execution of a task by this process: what its stages share, and the state
// of each.
type run struct {
	*Agent
	ledger *contextstore.Context
	log    *slog.Logger
	start  memory.FirstMessages // how far the first messages are
	days   *turn.DayBudget      // nil where no day has a limit

	out    *delivery.Run      // where the work goes on, and what goes out
	talk   *dialogue.Dialogue // with people
	env    environment        // that commands run in
	past   inheritance        // from earlier runs
	lead   coordination       // of the model
	verify verification
	review *reviewer // nil in runs that do not review
	screen display
	end    endDetails
	left   bool // to the task of a draft, which goes on with the work
	report Report
}

// newRun is a run of which nothing is read yet.
func newRun(a *Agent, c *contextstore.Context) (r *run, err error) {
	r = &run{Agent: a, ledger: c, log: a.Log, env: environment{jobs: tool.NewJobs()}, report: Report{UUID: c.UUID()}}
	if r.out, err = a.Delivery.NewRun(c); err != nil {
		return nil, err
	}
	r.talk = dialogue.New(r.out, a.Dialogue, min(maxIssueText, a.Window.Tokens/2*bytesPerToken))
	r.talk.Record, r.talk.Masks = r.record, r.standIns
	return r, nil
}

// Report is how a run ended, for the one who started it.
type Report struct {
	UUID    string
	Outcome task.Outcome
	Reason  string // the outcome's, in the reader's language
	Commit  string
	Branch  string
	Files   []string
	Dir     string // of the context, as the outcome left it
	Tree    string // of the workspace
	Comment string // the text that is posted, or would be

	Question *planning.Question // that people owe an answer to; nil where none is waited for

	ToolTime time.Duration
	// Undelivered is why not all of what the outcome promises is delivered yet.
	Undelivered error
}

// served reports whether somebody asked for the run where it is watched for, and not by
// tori run.
func (r *run) served() bool { return !r.out.Order.ByHand() }
