package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
)

// Deliverer delivers what the outboxes of all runs hold, until it is in effect:
// what fails is tried again, with pauses that grow. Each source has its own turn: a forge that
// hangs keeps no other waiting. Its exported fields are set once.
type Deliverer struct {
	Outbox  *Outbox
	Store   *contextstore.Store
	Sources map[string]bool // of tasks whose effects are delivered
	Watches map[string]*Watch
	Log     *slog.Logger
	Now     func() time.Time
	// Here reports whether what a run delivers may lie on this machine alone; nil delivers for all.
	Here func(uuid string) bool

	wake  bell
	lanes lanes

	mu   sync.Mutex
	late retries // by uuid
}

// The pauses between two attempts to deliver the effects of one run.
const (
	firstPause = 5 * time.Second
	lastPause  = 15 * time.Minute
)

// sweep is how often the outboxes are looked through without being woken.
const sweep = 10 * time.Second

// sideBySide is how many runs' effects are delivered side by side to one source.
const sideBySide = 4

// NewDeliverer prepares a deliverer; d is completed.
func NewDeliverer(d *Deliverer) *Deliverer {
	d.wake, d.late.most = newBell(), lastPause
	return d
}

// Wake makes the deliverer look at once.
func (d *Deliverer) Wake() { d.wake.ring() }

// Run delivers until ctx ends.
func (d *Deliverer) Run(ctx context.Context) {
	t := time.NewTicker(sweep)
	defer t.Stop()
	defer d.lanes.wait()
	if _, err := d.Store.WithUndelivered(ctx); err != nil && ctx.Err() == nil { // mends the rows that are behind
		d.Log.Warn("outbox: " + err.Error())
	}
	for {
		d.sweep(ctx)
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-t.C:
		}
	}
}

// Sweep tries once to deliver what is due, and returns when that is done.
func (d *Deliverer) Sweep(ctx context.Context) {
	d.sweep(ctx)
	d.lanes.wait()
}

// owed are the runs of a source that have something to deliver. Those that have ended come
// first: what they have to say is waited for, the labels of queued ones less so.
type owed struct{ ended, others []string }

// sweep begins to deliver what is due, for each source that nothing is being delivered to.
func (d *Deliverer) sweep(ctx context.Context) {
	due := map[string]*owed{}
	owing := map[string]bool{}
	err := d.Store.EachUndelivered(ctx, func(o contextstore.Undelivered) error {
		if !served(d.Store, d.Sources, o.Source, o.UUID) || d.Here != nil && !d.Here(o.UUID) {
			return nil
		}
		owing[o.UUID] = true
		if d.waits(o.UUID) {
			return nil
		}
		if w := d.Watches[o.Source]; w != nil && d.Now().Before(w.heldUntil()) {
			return nil
		}
		at := due[o.Source]
		if at == nil {
			at = &owed{}
			due[o.Source] = at
		}
		if o.Status.Final() {
			at.ended = append(at.ended, o.UUID)
		} else {
			at.others = append(at.others, o.UUID)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		d.Log.Warn("outbox: " + err.Error())
	}
	d.forget(owing)
	for source, at := range due {
		d.lanes.start(source, func(more func() bool) { d.each(ctx, append(at.ended, at.others...), more) }, d.Wake)
	}
}

func (d *Deliverer) waits(uuid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.late.waits(uuid, d.Now())
}

// forget forgets the failures of runs that owe nothing any more.
func (d *Deliverer) forget(owing map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.late.all, func(uuid string, _ retry) bool { return !owing[uuid] })
}

// Late counts the runs whose effects the world lacks since before a time, and names one of
// them. What nobody waits for does not count.
func (d *Deliverer) Late(ctx context.Context, before time.Time) (n int, uuid string, err error) {
	err = d.Store.EachUndelivered(ctx, func(o contextstore.Undelivered) error {
		if !o.Since.Before(before) || !served(d.Store, d.Sources, o.Source, o.UUID) {
			return nil
		}
		all, err := d.Store.Undelivered(ctx, o.UUID) // the row may be behind
		if err == nil && slices.ContainsFunc(all, func(e contextstore.Effect) bool { return e.Kind != d.Outbox.Later }) {
			n, uuid = n+1, o.UUID
		}
		return ctx.Err()
	})
	return n, uuid, err
}

// each delivers for many runs, a few side by side. It ends early when there is
// more, which may come first.
func (d *Deliverer) each(ctx context.Context, uuids []string, more func() bool) {
	var all sync.WaitGroup
	places := make(chan struct{}, sideBySide)
	for n, uuid := range uuids {
		if ctx.Err() != nil || n >= sideBySide && more() {
			break
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			err := d.Outbox.deliver(ctx, uuid, 0)
			if !errors.Is(err, contextstore.ErrDelivering) && ctx.Err() == nil {
				d.settle(uuid, err)
			}
		})
	}
	all.Wait()
}

// settle notes how an attempt went.
func (d *Deliverer) settle(uuid string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.late.worked(uuid)
		return
	}
	var least time.Duration
	if e := (*forge.Error)(nil); errors.As(err, &e) {
		least = e.Wait
	}
	wait := d.late.failed(uuid, d.Now(), firstPause, least)
	if v, verr := d.Store.View(uuid); verr == nil {
		if w := d.Watches[v.Metadata.TaskKey.Source]; w != nil && forge.Is(err, forge.RateLimited) {
			w.holdOff(err, d.Now())
		}
	}
	d.Log.Warn("Not delivered yet: "+err.Error(), "uuid", uuid, "next_try_in", wait.Round(time.Second))
}
