// Package dispatch finds work at the forges that are watched, claims it for a pool of runs,
// delivers the outward effects of their transitions as often as it takes, once in effect
// (DESIGN §2.6), and looks after runs whose owner died.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
)

// Outbox delivers what transitions have promised. Store, Handlers and Log must
// be set.
type Outbox struct {
	Store    *contextstore.Store
	Handlers map[string]delivery.Handler // by kind
	Log      *slog.Logger

	// Lasting reports whether the other side will never take an effect that
	// failed like this. It is then acknowledged with why, and what is behind it
	// need not wait; nil for never.
	Lasting func(error) bool
	// Explain is why, as people read it; nil for the error's own words.
	Explain func(error) string
	// Held reports whether an effect that failed like this is refused for now, so
	// that others may yet be taken: those of the kinds in Apart are delivered all
	// the same. Nil for never.
	Held func(error) bool
	// Apart are, by kind, the kinds of effects that an effect can be delivered
	// without.
	Apart map[string][]string
	// Meanwhile says, by kind, why an effect before this one is not delivered yet.
	// What it does is no delivery, and done again at the next attempt.
	Meanwhile map[string]func(ctx context.Context, uuid string, e contextstore.Effect, why error) error
	// Later are the kinds of effects that nobody waits for: they are left to
	// DeliverLater.
	Later []string
	// Mine reports whether DeliverAll is to deliver for a run; nil for all.
	Mine func(m contextstore.Metadata) bool
	// Stats counts, may be nil.
	Stats *Stats
}

// Deliver delivers the effects of one run in their order. It stops at the first
// that fails, or leaves out what needs that one: a comment that speaks of a branch
// is not posted before the branch is there. What is left is delivered by a later call. While another process
// delivers them Deliver waits for it.
func (o *Outbox) Deliver(ctx context.Context, uuid string) error {
	return o.deliver(ctx, uuid, patience)
}

// patience is how long to wait for another process that delivers the same: as
// long as a push takes.
const patience = time.Minute

// DeliverLater delivers the effects of one run whose kinds are in Later, with a
// handler of its own. The error is the handler's, of what it tries again.
func (o *Outbox) DeliverLater(ctx context.Context, uuid string, h delivery.Handler) error {
	effects, release, err := o.take(ctx, uuid, 0, true)
	if err != nil || len(effects) == 0 {
		return err
	}
	defer release()
	for _, e := range effects {
		result, err := h(ctx, uuid, e)
		if err != nil {
			return err
		}
		if err := o.Store.Acknowledge(context.WithoutCancel(ctx), uuid, e, result); err != nil {
			return err
		}
	}
	return nil
}

// take locks the outbox of a run that has something to deliver, now or later, and
// returns that; release is to be called where it is not empty.
func (o *Outbox) take(ctx context.Context, uuid string, wait time.Duration, later bool) (effects []contextstore.Effect, release func(), err error) {
	left := func() bool {
		if effects, err = o.Store.Undelivered(ctx, uuid); err != nil {
			err = fmt.Errorf("outbox of %s: %w", uuid, err)
		}
		effects = slices.DeleteFunc(effects, func(e contextstore.Effect) bool { return slices.Contains(o.Later, e.Kind) != later })
		return err == nil && len(effects) > 0
	}
	if !left() {
		return nil, nil, err
	}
	if later {
		release, err = o.Store.LockLater(ctx, uuid)
	} else {
		release, err = o.Store.LockOutbox(ctx, uuid, wait)
	}
	if err != nil {
		return nil, nil, err
	}
	if !left() { // by now
		release()
		return nil, nil, err
	}
	return effects, release, nil
}

func (o *Outbox) deliver(ctx context.Context, uuid string, wait time.Duration) error {
	effects, release, err := o.take(ctx, uuid, wait, false)
	if err != nil || len(effects) == 0 {
		return err
	}
	defer release()
	var held []contextstore.Effect
	var why error // the first of them is
	for _, e := range effects {
		if !o.apart(e, held) {
			if say := o.Meanwhile[e.Kind]; say != nil {
				if err := say(ctx, uuid, e, why); err != nil && ctx.Err() == nil {
					o.Log.Warn("Not said meanwhile: "+err.Error(), "uuid", uuid, "key", e.Key)
				}
			}
			continue
		}
		err := o.one(ctx, uuid, e)
		if err != nil && (o.Held == nil || !o.Held(err)) {
			return err
		}
		if err != nil {
			held = append(held, e)
			if why == nil {
				why = err
			}
		}
	}
	return why
}

// apart reports whether an effect can be delivered without the ones that are held.
func (o *Outbox) apart(e contextstore.Effect, held []contextstore.Effect) bool {
	for _, h := range held {
		if !slices.Contains(o.Apart[e.Kind], h.Kind) {
			return false
		}
	}
	return true
}

// one delivers one effect and acknowledges it.
func (o *Outbox) one(ctx context.Context, uuid string, e contextstore.Effect) error {
	h, ok := o.Handlers[e.Kind]
	if !ok {
		return fmt.Errorf("outbox of %s: effect %s is of kind %q, which this program cannot deliver", uuid, e.Key, e.Kind)
	}
	result, err := h(ctx, uuid, e)
	if err != nil && o.Lasting != nil && o.Lasting(err) {
		o.Log.Error("Will never be taken: "+e.Kind+": "+err.Error(), "uuid", uuid, "key", e.Key)
		result, err = delivery.NotDelivered+o.explain(err), nil
	}
	o.Stats.delivered(err)
	if err != nil {
		return err
	}
	if err := o.Store.Acknowledge(ctx, uuid, e, result); err != nil {
		return err
	}
	o.Log.Info("Delivered: "+e.Kind, "uuid", uuid, "key", e.Key, "result", result)
	return nil
}

func (o *Outbox) explain(err error) string {
	if o.Explain == nil {
		return err.Error()
	}
	return o.Explain(err)
}

// DeliverAll delivers what earlier runs left. A run whose delivery fails is
// logged and does not keep the others waiting; one that another process is
// delivering is left to it.
func (o *Outbox) DeliverAll(ctx context.Context) {
	uuids, err := o.Store.WithUndelivered(ctx)
	if err != nil {
		o.Log.Warn("outbox: " + err.Error())
	}
	for _, uuid := range uuids {
		if m, err := o.Store.Metadata(uuid); err == nil && o.Mine != nil && !o.Mine(m) {
			continue
		}
		if err := o.deliver(ctx, uuid, 0); err != nil && !errors.Is(err, contextstore.ErrDelivering) {
			o.Log.Warn("Not delivered yet: "+err.Error(), "uuid", uuid)
		}
		if ctx.Err() != nil {
			return
		}
	}
}
