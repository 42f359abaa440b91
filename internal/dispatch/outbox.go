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
	"toritsugi/internal/i18n"
	"toritsugi/internal/telemetry"
)

// Outbox delivers what transitions have promised.
type Outbox struct {
	Store    *contextstore.Store
	Handlers map[string]delivery.Handler // by kind
	Log      *slog.Logger

	// Lang is that in which people read why an effect is never taken.
	Lang i18n.Lang
	// Meanwhile says what a comment will say, and why an effect before it is not
	// delivered yet. That is no delivery, and done again at the next attempt; nil for
	// nothing.
	Meanwhile func(ctx context.Context, uuid string, e contextstore.Effect, why error) error
	// Later is the kind of effects that nobody waits for: they are left to
	// DeliverLater.
	Later string
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
		result, err := handed(ctx, uuid, e, h)
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
		effects = slices.DeleteFunc(effects, func(e contextstore.Effect) bool { return (e.Kind == o.Later) != later })
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
	held := false
	var why error // of the first that is held
	for _, e := range effects {
		if held {
			if e.Kind == delivery.EffectComment && o.Meanwhile != nil {
				if err := o.Meanwhile(ctx, uuid, e, why); err != nil && ctx.Err() == nil {
					o.Log.Warn("Not said meanwhile: "+err.Error(), "uuid", uuid, "key", e.Key)
				}
			}
			continue
		}
		err := o.one(ctx, uuid, e)
		if err != nil && !delivery.Held(err) {
			return err
		}
		if err != nil {
			// What speaks of a branch or a pull request waits for it; without a comment or
			// labels the rest is delivered all the same.
			held = e.Kind != delivery.EffectComment && e.Kind != delivery.EffectLabels
			if why == nil {
				why = err
			}
		}
	}
	return why
}

// handed has an effect delivered, as a span of the run.
func handed(ctx context.Context, uuid string, e contextstore.Effect, h delivery.Handler) (string, error) {
	ctx, span := telemetry.StartRun(ctx, uuid, "effect", e.Kind)
	span.Text("tori.effect.kind", e.Kind)
	result, err := h(ctx, uuid, e)
	span.End(err)
	return result, err
}

// one delivers one effect and acknowledges it.
func (o *Outbox) one(ctx context.Context, uuid string, e contextstore.Effect) error {
	h, ok := o.Handlers[e.Kind]
	if !ok {
		return fmt.Errorf("outbox of %s: effect %s is of kind %q, which this program cannot deliver", uuid, e.Key, e.Kind)
	}
	result, err := handed(ctx, uuid, e, h)
	if err != nil && delivery.Lasting(err) {
		o.Log.Error("Will never be taken: "+e.Kind+": "+err.Error(), "uuid", uuid, "key", e.Key)
		result, err = delivery.NotDelivered+o.Lang.Error(err), nil
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

// DeliverAll delivers what earlier runs left. A run whose delivery fails is
// logged and does not keep the others waiting; one that another process is
// delivering is left to it.
func (o *Outbox) DeliverAll(ctx context.Context) {
	uuids, err := o.Store.WithUndelivered(ctx)
	if err != nil && ctx.Err() == nil {
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
