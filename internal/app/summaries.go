package app

import (
	"context"
	"errors"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/llm"
	"toritsugi/internal/models"
	"toritsugi/internal/order"
)

// sumUp has the final summary made that a run owes, once the world has seen the
// rest: whoever ends the process meanwhile does without it. So do runs on this
// machine whose process died before they had one, and that nobody took up again.
func (s *system) sumUp(ctx context.Context, id string, a *agent.Agent) {
	given := func(why string) delivery.Handler {
		return func(context.Context, string, contextstore.Effect) (string, error) {
			return delivery.NotDelivered + why, nil
		}
	}
	box := s.outbox()
	err := box.DeliverLater(ctx, id, a.Summarise)
	all, lerr := s.store.WithUndelivered(context.WithoutCancel(ctx))
	for _, uuid := range all {
		m, merr := s.store.Metadata(uuid)
		if merr != nil || !order.ByHand(m) {
			continue
		}
		why := "its process died"
		if uuid == id {
			why = "interrupted"
		}
		if derr := box.DeliverLater(context.WithoutCancel(ctx), uuid, given(why)); derr != nil && !errors.Is(derr, contextstore.ErrDelivering) {
			err = errors.Join(err, derr)
		}
	}
	if err = errors.Join(err, lerr); err != nil && ctx.Err() == nil {
		s.log.Debug("No final summary was made by a model; the one that was put together from the records stands: " + err.Error())
	}
}

// summarise makes the final summary of a run that a process owed which died, by
// the model that would work on the run now.
func (s *system) summarise(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
	m, err := s.store.Metadata(uuid)
	if err != nil {
		return "", err
	}
	if s.models == nil {
		if err = s.openModels(); err != nil {
			return "", err
		}
		defer func() { _ = s.models.Close() }() // what it looked after is no longer called
	}
	one, done, err := s.forRun(ctx, m)
	var client llm.Client
	var spec models.Spec
	if err == nil {
		defer done()
		client, spec, err = one.client(ctx, "tori summary "+contextstore.Short(uuid))
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil { // the one that was put together from the records stands
		return delivery.NotDelivered + s.env.Lang.Error(err), nil
	}
	return one.agent(client, &spec, m.TaskKey, s.walls).Summarise(ctx, uuid, e)
}
