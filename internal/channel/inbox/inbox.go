// Package inbox keeps what vendors send until it has been worked on: on the disk before its
// vendor is told that it came, one after another within a queue, again where the program was
// killed. What answers it knows messages by their ids, so that twice is once.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
)

// The bounds of an inbox.
const (
	MaxID      = 256    // bytes of an id or a queue's name
	maxWaiting = 10_000 // events of a channel
)

// Errors of Put: the vendor has to send the event again, or cannot have it taken.
var (
	ErrFull     = errors.New("as many events wait as may")
	ErrTooLarge = errors.New("an event is larger than one may be")
)

// Inbox is a channel.Inbox in the house.db of a base directory. What is in it one process
// works on, which has taken it; others may put into it (Beside).
type Inbox struct {
	store  *contextstore.Store
	log    *slog.Logger
	now    func() time.Time
	taken  *contextstore.Alone // nil where another has it
	shared bool                // others put into it

	turn chan struct{}  // holds one token while nobody writes
	work sync.WaitGroup // what Run has begun

	mu      sync.Mutex
	changes []*change         // that wait for the next transaction
	queues  map[string]*queue // that have events which wait, by channel and name
	waiting map[channel.Kind]int
	known   map[int64]bool // numbers of events in queues, or worked on and not settled yet
	begin   func(q *queue) // has a queue worked on; nil while nobody works
}

// queue is a line of events that wait for each other.
type queue struct {
	key    string // of Inbox.queues
	events []contextstore.Incoming
}

// change is what one caller wants written.
type change struct {
	add    []contextstore.Incoming
	settle []contextstore.Settled
	err    error
	done   chan struct{} // closed when it is on the disk, or err says why it is not
}

// Open takes the inbox of a base directory, with what waits in it. It fails with
// contextstore.ErrBusy where another process has it.
func Open(ctx context.Context, store *contextstore.Store, log *slog.Logger, now func() time.Time) (*Inbox, error) {
	b := Beside(store, log, now)
	b.shared = false
	if err := b.Take(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// Beside is an inbox that other processes put into, too. Until it is taken, what is put in is
// worked on by whichever of them has.
func Beside(store *contextstore.Store, log *slog.Logger, now func() time.Time) *Inbox {
	b := &Inbox{store: store, log: log, now: now, shared: true, turn: make(chan struct{}, 1), queues: map[string]*queue{}, waiting: map[channel.Kind]int{}, known: map[int64]bool{}}
	b.turn <- struct{}{}
	return b
}

// Take takes an inbox that others have put into, as Open does.
func (b *Inbox) Take(ctx context.Context) (err error) {
	b.mu.Lock()
	b.taken, err = b.store.Alone("inbox")
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if err = b.look(ctx); err != nil {
		b.Close()
	}
	return err
}

// look lines up what waits and is not known here.
func (b *Inbox) look(ctx context.Context) error {
	<-b.turn // nothing is settled meanwhile
	defer func() { b.turn <- struct{}{} }()
	all, err := b.store.WaitingInbox(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived(all)
	return err
}

// Close gives the inbox up. Nobody may put into it, or run it, any more.
func (b *Inbox) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken != nil {
		b.taken.Release()
	}
	b.taken = nil
}

// Waiting is how many events wait or are worked on.
func (b *Inbox) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := 0
	for _, n := range b.waiting {
		all += n
	}
	return all
}

// left notes that events of a channel do not wait any more. Its caller holds mu.
func (b *Inbox) left(k channel.Kind, n int) {
	if b.waiting[k] -= n; b.waiting[k] == 0 {
		delete(b.waiting, k)
	}
}

// Put implements channel.Inbox. Callers that come at once share a transaction. The events are
// of one channel.
func (b *Inbox) Put(ctx context.Context, events ...channel.Event) error {
	add := make([]contextstore.Incoming, len(events))
	for i, e := range events {
		switch {
		case e.Channel == "", e.ID == "", len(e.ID) > MaxID, len(e.Queue) > MaxID:
			return fmt.Errorf("an event of channel %q needs an id of 1 to %d bytes, and a queue of at most as many", e.Channel, MaxID)
		case len(e.Body) > channel.MaxEvent:
			return fmt.Errorf("%d bytes of %d: %w", len(e.Body), channel.MaxEvent, ErrTooLarge)
		}
		add[i] = contextstore.Incoming{Channel: string(e.Channel), ID: e.ID, Queue: e.Queue, Body: e.Body, ReceivedAt: contextstore.Time{Time: e.ReceivedAt}}
	}
	if len(add) == 0 {
		return nil
	}
	return b.write(ctx, &change{add: add, done: make(chan struct{})})
}

// write returns when c is on the disk: with whatever others want written meanwhile.
func (b *Inbox) write(ctx context.Context, c *change) error {
	b.mu.Lock()
	b.changes = append(b.changes, c)
	b.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err() // it may be written all the same
	case <-b.turn:
	}
	defer func() { b.turn <- struct{}{} }()
	b.flush(ctx)
	<-c.done // by this flush, or by the one before
	return c.err
}

// settleWithin is how long it may take until it is on the disk that events were gathered: with
// the events that come meanwhile, it costs no sync of its own.
const settleWithin = time.Second

// later has c written with what others write next, or by itself within settleWithin. What a kill
// keeps from the disk is gathered once more, which is harmless.
func (b *Inbox) later(ctx context.Context, c *change) {
	b.mu.Lock()
	b.changes = append(b.changes, c)
	b.mu.Unlock()
	b.work.Go(func() {
		wait := time.NewTimer(settleWithin)
		defer wait.Stop()
		select {
		case <-c.done:
			return
		case <-wait.C:
		case <-ctx.Done():
		}
		select {
		case <-c.done:
		case <-b.turn:
			b.flush(context.WithoutCancel(ctx))
			b.turn <- struct{}{}
		}
		if <-c.done; c.err != nil {
			b.log.Error("Events that were worked on will come again: "+c.err.Error(), "events", len(c.settle))
		}
	})
}

// flush writes all that waits to be. Its caller has the turn.
func (b *Inbox) flush(ctx context.Context) {
	b.mu.Lock()
	all := b.changes
	b.changes = nil
	waiting := maps.Clone(b.waiting)
	b.mu.Unlock()
	var add []contextstore.Incoming
	var settle []contextstore.Settled
	for _, c := range all {
		if len(c.add) > 0 {
			k := channel.Kind(c.add[0].Channel)
			if waiting[k]+len(c.add) > maxWaiting {
				c.err = fmt.Errorf("%d: %w", maxWaiting, ErrFull)
				continue
			}
			waiting[k] += len(c.add)
		}
		add, settle = append(add, c.add...), append(settle, c.settle...)
	}
	fresh, err := b.store.ChangeInbox(context.WithoutCancel(ctx), add, settle) // others wait for it, too
	b.mu.Lock()
	if err == nil {
		b.arrived(fresh)
		for _, e := range settle {
			delete(b.known, e.Seq)
		}
	}
	b.mu.Unlock()
	for _, c := range all {
		if c.err == nil {
			c.err = err
		}
		close(c.done)
	}
}

// arrived lines events up, where the inbox is taken. Its caller holds mu.
func (b *Inbox) arrived(all []contextstore.Incoming) {
	if b.taken == nil {
		return
	}
	for _, e := range all {
		if b.known[e.Seq] {
			continue
		}
		b.known[e.Seq] = true
		e.Body = nil // it is read when it is worked on
		b.waiting[channel.Kind(e.Channel)]++
		key := e.Channel + "\x00" + e.Queue
		if e.Queue == "" {
			key += "\x00" + e.ID
		}
		q := b.queues[key]
		if q == nil {
			q = &queue{key: key}
			b.queues[key] = q
			if b.begin != nil {
				b.begin(q)
			}
		}
		q.events = append(q.events, e)
	}
}
