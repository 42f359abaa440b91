package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
)

// How much is worked on at once: turns wait for their models, so that many of them cost
// little. What waits for nobody has a bound of its own, since it may take back what goes on.
const (
	maxQueues = 256
	maxAtOnce = 64
	// maxGathered is how many events one look answers.
	maxGathered = 1000
)

// How an event is tried again that could not be worked on, and for how long its id is known
// once it is settled: vendors send again for a day at most.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
	giveUp     = time.Hour
	keepIDs    = channel.KeepIDs
	cleanEvery = 24 * time.Hour
)

// Worker is who works on what the inbox holds. Events of other kinds wait until there is
// somebody again.
type Worker struct {
	Handler   channel.EventHandler
	Receivers []channel.Receiver
	Gatherers []Gatherer
}

// Gatherer works on events that say nothing but where to look: all that wait in a queue are
// answered by one look.
type Gatherer interface {
	Kind() channel.Kind
	// Gather returns once what all the events are about was looked at. With an error they
	// stay in the inbox and are tried again later.
	Gather(ctx context.Context, events []channel.Event) error
}

// Run works on what waits and on what comes until ctx ends, and waits for those that it works
// on: they come again at the next start.
func (b *Inbox) Run(ctx context.Context, w Worker) {
	p := &pump{Worker: w, b: b, receivers: map[channel.Kind]channel.Receiver{}, gatherers: map[channel.Kind]Gatherer{}, queues: make(chan struct{}, maxQueues), atOnce: make(chan struct{}, maxAtOnce)}
	for _, r := range w.Receivers {
		p.receivers[r.Kind()] = r
	}
	for _, g := range w.Gatherers {
		p.gatherers[g.Kind()] = g
	}
	b.mu.Lock()
	b.begin = func(q *queue) { b.work.Go(func() { p.work(ctx, q) }) }
	for _, q := range b.queues {
		b.begin(q)
	}
	b.mu.Unlock()
	if b.shared {
		b.work.Go(func() { b.watch(ctx) })
	}
	clean := time.NewTicker(cleanEvery)
	defer clean.Stop()
	for ctx.Err() == nil {
		if err := b.store.ForgetInbox(ctx, b.now().Add(-keepIDs)); err != nil && ctx.Err() == nil {
			b.log.Warn("Old events stay known: " + err.Error())
		}
		select {
		case <-ctx.Done():
		case <-clean.C:
		}
	}
	b.mu.Lock()
	b.begin = nil
	b.mu.Unlock()
	b.work.Wait()
}

// lookEvery is how often it is looked for what others have put in.
const lookEvery = 500 * time.Millisecond

// watch lines up what others put in, until ctx ends.
func (b *Inbox) watch(ctx context.Context) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	var said channel.Throttle
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := b.look(ctx); err != nil && ctx.Err() == nil && said.Due(b.now(), time.Minute) {
			b.log.Warn("What others put into the inbox waits: " + err.Error())
		}
	}
}

// pump is one Run.
type pump struct {
	Worker
	b              *Inbox
	receivers      map[channel.Kind]channel.Receiver
	gatherers      map[channel.Kind]Gatherer
	queues, atOnce chan struct{}
}

// work works on the events of a queue until it is empty, or ctx ends.
func (p *pump) work(ctx context.Context, q *queue) {
	for {
		p.b.mu.Lock()
		if len(q.events) == 0 {
			delete(p.b.queues, q.key)
			p.b.mu.Unlock()
			return
		}
		e, batch := q.events[0], q.events[:1:1]
		r, g := p.receivers[channel.Kind(e.Channel)], p.gatherers[channel.Kind(e.Channel)]
		if g != nil {
			batch = slices.Clone(q.events[:min(len(q.events), maxGathered)])
		}
		p.b.mu.Unlock()
		if r == nil && g == nil || ctx.Err() != nil {
			return // it waits for another Run
		}
		var err error
		if g != nil {
			err = p.try(ctx, nil, batch, g.Gather)
		} else {
			err = p.try(ctx, p.slots(e), batch, func(ctx context.Context, all []channel.Event) error { return r.Receive(ctx, all[0], p.Handler) })
		}
		if ctx.Err() != nil {
			return
		}
		done := make([]contextstore.Settled, len(batch))
		for i, e := range batch {
			done[i].Seq = e.Seq
			if err != nil {
				done[i].Failed = err.Error()
				p.b.log.Error("An event is given up: "+done[i].Failed, "channel", e.Channel, "event", e.ID)
			}
		}
		settled := &change{settle: done, done: make(chan struct{})}
		if g != nil {
			p.b.later(ctx, settled)
		} else if werr := p.b.write(context.WithoutCancel(ctx), settled); werr != nil {
			p.b.log.Error("An event that was worked on will come again: "+werr.Error(), "channel", e.Channel, "event", e.ID)
		}
		p.b.mu.Lock()
		q.events = slices.Delete(q.events, 0, len(batch))
		p.b.left(channel.Kind(e.Channel), len(batch))
		p.b.mu.Unlock()
	}
}

// slots bound what is worked on at once beside an event.
func (p *pump) slots(e contextstore.Incoming) chan struct{} {
	if e.Queue == "" {
		return p.atOnce
	}
	return p.queues
}

// try works on events of a queue, as often as it takes within giveUp. Its error is the last one.
// slots bound how much is worked on at once, nil for no bound.
func (p *pump) try(ctx context.Context, slots chan struct{}, batch []contextstore.Incoming, work func(context.Context, []channel.Event) error) error {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = firstRetry, lastRetry
	e := batch[0]
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		if slots != nil {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
				return struct{}{}, ctx.Err()
			}
		}
		all := make([]channel.Event, len(batch))
		for i, e := range batch {
			body, err := p.b.store.InboxBody(ctx, e.Seq)
			if errors.Is(err, sql.ErrNoRows) {
				err = backoff.Permanent(err)
			}
			if err != nil {
				return struct{}{}, err
			}
			all[i] = event(e, body)
		}
		return struct{}{}, guarded(ctx, all, work)
	}, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(giveUp), backoff.WithNotify(func(err error, wait time.Duration) {
		p.b.log.Warn(fmt.Sprintf("An event is tried again in %s: %v", wait.Round(time.Second), err), "channel", e.Channel, "event", e.ID)
	}))
	return err
}

// guarded has events worked on. One that makes its receiver panic is not to take the
// daemon, and at each start again, with it.
func guarded(ctx context.Context, all []channel.Event, work func(context.Context, []channel.Event) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return work(ctx, all)
}

func event(e contextstore.Incoming, body []byte) channel.Event {
	return channel.Event{Channel: channel.Kind(e.Channel), ID: e.ID, Queue: e.Queue, Body: body, ReceivedAt: e.ReceivedAt.Time}
}

var _ channel.Inbox = (*Inbox)(nil)
