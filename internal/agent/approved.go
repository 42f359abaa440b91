package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/progress"
)

// waitError has a run wait until people decided about its change.
type waitError struct{ job approval.Job }

func (e *waitError) Error() string { return "job " + e.job.Job + " waits for a decision" }

// asked puts a change that people must agree to to them, where that is why it may not be
// handed over (spec/chat §7).
func (r *run) asked(ctx context.Context, err error) error {
	held := (*delivery.HeldError)(nil)
	if !errors.As(err, &held) {
		return err
	}
	jobs, err := r.Delivery.Approvals()
	if err != nil {
		return err
	}
	id, err := approval.NewJob(r.Now(), time.Local, rand.Reader)
	if err != nil {
		return err
	}
	d := held.Draft
	d.Summary = []string{progress.OneLine(progress.Cut(delivery.ParseMessage(r.lead.answer).Subject, 200))}
	job, err := jobs.Ask(ctx, r.ledger, id, d, r.out.Workspace)
	if refused := (*approval.RefusedError)(nil); errors.As(err, &refused) {
		return &delivery.TaskError{Err: refused.Err}
	}
	if err != nil {
		return err
	}
	return &waitError{job}
}

// requestApproval is the comment that asks for a decision.
func (r *run) requestApproval(ctx context.Context, job approval.Job) (*contextstore.Effect, error) {
	jobs, err := r.Delivery.Approvals()
	if err != nil {
		return nil, err
	}
	a, err := jobs.Request(r.Lang, job)
	if err != nil {
		return nil, err
	}
	return r.out.Question(ctx, job.Job+"-"+job.Short(), r.Lang.T("agent.asks_approval")+"\n\n"+approval.Markdown(r.Lang, a, "/approve", "/deny"))
}
