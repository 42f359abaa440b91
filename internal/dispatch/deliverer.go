package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
)

// Deliverer delivers what the outboxes of all runs hold, until it is in effect:
// what fails is tried again, with pauses that grow. Its exported fields are set
// once.
type Deliverer struct {
	Outbox  *Outbox
	Store   *contextstore.Store
	Sources map[string]bool // of tasks whose effects are delivered
	Watches map[string]*Watch
	Log     *slog.Logger
	Now     func() time.Time

	wake chan struct{}
	late retries // by uuid
}

// The pauses between two attempts to deliver the effects of one run.
const (
	firstPause = 5 * time.Second
	lastPause  = 15 * time.Minute
)

// sweep is how often the outboxes are looked through without being woken.
const sweep = 10 * time.Second

// sideBySide is how many runs' effects are delivered side by side.
const sideBySide = 4

// NewDeliverer prepares a deliverer; the fields of c are taken over.
func NewDeliverer(c Deliverer) *Deliverer {
	c.wake, c.late.most = make(chan struct{}, 1), lastPause
	return &c
}

// Wake makes the deliverer look at once.
func (c *Deliverer) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends.
func (c *Deliverer) Run(ctx context.Context) {
	t := time.NewTicker(sweep)
	defer t.Stop()
	if _, err := c.Store.WithUndelivered(ctx); err != nil { // mends the rows that are behind
		c.Log.Warn("outbox: " + err.Error())
	}
	for {
		c.Sweep(ctx)
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-t.C:
		}
	}
}

// Sweep tries once to deliver what is due. Runs that have ended come first: what
// they have to say is waited for, the labels of queued ones less so.
func (c *Deliverer) Sweep(ctx context.Context) {
	var ended, others []string
	owing := map[string]bool{}
	err := c.Store.Owing(ctx, func(o contextstore.Owing) error {
		if !served(c.Store, c.Sources, o.Source, o.UUID) {
			return nil
		}
		owing[o.UUID] = true
		if c.late.waits(o.UUID, c.Now()) {
			return nil
		}
		if d := c.Watches[o.Source]; d != nil && c.Now().Before(d.heldUntil()) {
			return nil
		}
		if o.Status.Final() {
			ended = append(ended, o.UUID)
		} else {
			others = append(others, o.UUID)
		}
		return nil
	})
	if err != nil {
		c.Log.Warn("outbox: " + err.Error())
	}
	for uuid := range c.late.all {
		if !owing[uuid] {
			c.late.worked(uuid)
		}
	}
	c.each(ctx, append(ended, others...))
}

// each delivers for many runs, a few side by side. It ends early when there is
// something new, which may come first.
func (c *Deliverer) each(ctx context.Context, uuids []string) {
	var all sync.WaitGroup
	var mu sync.Mutex
	places := make(chan struct{}, sideBySide)
	for n, uuid := range uuids {
		if ctx.Err() != nil || n >= sideBySide && len(c.wake) > 0 {
			break
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			err := c.Outbox.deliver(ctx, uuid, 0)
			if errors.Is(err, contextstore.ErrDelivering) || ctx.Err() != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			c.settle(uuid, err)
		})
	}
	all.Wait()
}

// settle notes how an attempt went.
func (c *Deliverer) settle(uuid string, err error) {
	if err == nil {
		c.late.worked(uuid)
		return
	}
	var least time.Duration
	if e := (*forge.Error)(nil); errors.As(err, &e) {
		least = e.Wait
	}
	wait := c.late.failed(uuid, c.Now(), firstPause, least)
	if v, verr := c.Store.View(uuid); verr == nil {
		if d := c.Watches[v.Metadata.TaskKey.Source]; d != nil && forge.Is(err, forge.RateLimited) {
			d.holdOff(err, c.Now())
		}
	}
	c.Log.Warn("Not delivered yet: "+err.Error(), "uuid", uuid, "next_try_in", wait.Round(time.Second))
}
