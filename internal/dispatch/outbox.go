// Package dispatch carries out what the ledger has committed: it delivers the
// outward effects of transitions, as often as it takes, once in effect
// (DESIGN §2.6). It knows the kinds of effects only by name.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"toritsugi/internal/contextstore"
)

// Handler makes one effect happen and returns what came of it, for people: a
// URL, a commit. It looks for the effect's key first and does nothing where the
// effect is there already.
type Handler func(ctx context.Context, uuid string, e contextstore.Effect) (result string, err error)

// Outbox delivers what transitions have promised. All fields must be set.
type Outbox struct {
	Store    *contextstore.Store
	Handlers map[string]Handler // by kind
	Log      *slog.Logger
}

// Deliver delivers the effects of one run in their order. It stops at the first
// that fails: a comment that speaks of a branch is not posted before the branch
// is there. What is left is delivered by a later call. While another process
// delivers them Deliver waits for it.
func (o *Outbox) Deliver(ctx context.Context, uuid string) error {
	return o.deliver(ctx, uuid, patience)
}

// patience is how long to wait for another process that delivers the same: as
// long as a push takes.
const patience = time.Minute

func (o *Outbox) deliver(ctx context.Context, uuid string, wait time.Duration) error {
	effects, err := o.Store.Undelivered(ctx, uuid)
	if err != nil {
		return fmt.Errorf("outbox of %s: %w", uuid, err)
	}
	if len(effects) == 0 {
		return nil
	}
	release, err := o.Store.LockOutbox(ctx, uuid, wait)
	if err != nil {
		return err
	}
	defer release()
	if effects, err = o.Store.Undelivered(ctx, uuid); err != nil { // what is left by now
		return fmt.Errorf("outbox of %s: %w", uuid, err)
	}
	for _, e := range effects {
		h, ok := o.Handlers[e.Kind]
		if !ok {
			return fmt.Errorf("outbox of %s: effect %s is of kind %q, which this program cannot deliver", uuid, e.Key, e.Kind)
		}
		result, err := h(ctx, uuid, e)
		if err != nil {
			return err
		}
		if err := o.Store.Acknowledge(ctx, uuid, e, result); err != nil {
			return err
		}
		o.Log.Info("Delivered: "+e.Kind, "uuid", uuid, "key", e.Key, "result", result)
	}
	return nil
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
		if err := o.deliver(ctx, uuid, 0); err != nil && !errors.Is(err, contextstore.ErrDelivering) {
			o.Log.Warn("Not delivered yet: "+err.Error(), "uuid", uuid)
		}
		if ctx.Err() != nil {
			return
		}
	}
}
