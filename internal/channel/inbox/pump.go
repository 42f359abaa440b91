package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
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

// Worker is who works on what the inbox holds.
type Worker struct {
	Handler   channel.EventHandler
	Receivers []channel.Receiver // events of other kinds wait until there is one again
}

// Run works on what waits and on what comes until ctx ends, and waits for those that it works
// on: they come again at the next start.
func (b *Inbox) Run(ctx context.Context, w Worker) {
	p := &pump{Worker: w, b: b, receivers: map[channel.Kind]channel.Receiver{}, queues: make(chan struct{}, maxQueues), atOnce: make(chan struct{}, maxAtOnce)}
	for _, r := range w.Receivers {
		p.receivers[r.Kind()] = r
	}
	var work sync.WaitGroup
	b.mu.Lock()
	b.begin = func(q *queue) { work.Go(func() { p.work(ctx, q) }) }
	for _, q := range b.queues {
		b.begin(q)
	}
	b.mu.Unlock()
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
	work.Wait()
}

// pump is one Run.
type pump struct {
	Worker
	b              *Inbox
	receivers      map[channel.Kind]channel.Receiver
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
		e := q.events[0]
		p.b.mu.Unlock()
		r := p.receivers[channel.Kind(e.Channel)]
		if r == nil || ctx.Err() != nil {
			return // it waits for another Run
		}
		err := p.try(ctx, r, e)
		if ctx.Err() != nil {
			return
		}
		done := contextstore.Settled{Seq: e.Seq}
		if err != nil {
			done.Failed = err.Error()
			p.b.log.Error("An event is given up: "+done.Failed, "channel", e.Channel, "event", e.ID)
		}
		if werr := p.b.write(context.WithoutCancel(ctx), &change{settle: []contextstore.Settled{done}, done: make(chan struct{})}); werr != nil {
			p.b.log.Error("An event that was worked on will come again: "+werr.Error(), "channel", e.Channel, "event", e.ID)
		}
		p.b.mu.Lock()
		q.events = slices.Delete(q.events, 0, 1)
		p.b.waiting--
		p.b.mu.Unlock()
	}
}

// try works on an event, as often as it takes within giveUp. Its error is the last one.
func (p *pump) try(ctx context.Context, r channel.Receiver, e contextstore.Incoming) error {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = firstRetry, lastRetry
	slots := p.queues
	if e.Queue == "" {
		slots = p.atOnce
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return struct{}{}, ctx.Err()
		}
		body, err := p.b.store.InboxBody(ctx, e.Seq)
		if errors.Is(err, sql.ErrNoRows) {
			return struct{}{}, backoff.Permanent(err)
		}
		if err == nil {
			err = receive(ctx, r, event(e, body), p.Handler)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(giveUp), backoff.WithNotify(func(err error, wait time.Duration) {
		p.b.log.Warn(fmt.Sprintf("An event is tried again in %s: %v", wait.Round(time.Second), err), "channel", e.Channel, "event", e.ID)
	}))
	return err
}

// receive has an event worked on. One that makes its receiver panic is not to take the
// daemon, and at each start again, with it.
func receive(ctx context.Context, r channel.Receiver, e channel.Event, h channel.EventHandler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return r.Receive(ctx, e, h)
}

func event(e contextstore.Incoming, body []byte) channel.Event {
	return channel.Event{Channel: channel.Kind(e.Channel), ID: e.ID, Queue: e.Queue, Body: body, ReceivedAt: e.ReceivedAt.Time}
}

var _ channel.Inbox = (*Inbox)(nil)
