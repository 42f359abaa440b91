package conversation

import (
	"context"
	"sync"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/routing"
)

// maxWaiting is how many messages of one session wait for their turn at most; further
// ones are refused, so that a channel that floods fills no memory.
const maxWaiting = 32

// turnWait is how long a turn waits for one of another process in the same session.
const turnWait = 2 * time.Minute

// turnQueue has the turns of a session follow each other. Waiting on a channel is first
// come, first served.
type turnQueue struct {
	free chan struct{} // holds one token while no turn goes on
	in   int           // turns that go on or wait; guarded by Engine.mu

	mu      sync.Mutex
	stop    context.CancelCauseFunc // of the turn that goes on; nil for none
	message string                  // that it answers; "" for none
	now     []activity              // who works in it
}

// activity is somebody at work, for who asks.
type activity struct {
	Alias string
	Route routing.Route
	Since time.Time
}

// errStopped is the cause of a turn that somebody stopped by /stop.
var errStopped = i18n.E("conversation.stopped")

// enter waits for the session's turn to answer a message, "" for none, and returns a context
// for it that /stop ends, and who takes the message back or changes it.
func (e *Engine) enter(ctx context.Context, x session, message string) (context.Context, *turnQueue, func(), error) {
	e.mu.Lock()
	l := e.lanes[x.ID]
	if l == nil {
		l = &turnQueue{free: make(chan struct{}, 1)}
		l.free <- struct{}{}
		e.lanes[x.ID] = l
	}
	if l.in > maxWaiting {
		e.mu.Unlock()
		return nil, nil, nil, i18n.E("conversation.too_many", maxWaiting)
	}
	l.in++
	e.mu.Unlock()
	gone := func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if l.in--; l.in == 0 {
			delete(e.lanes, x.ID)
		}
	}
	select {
	case <-l.free:
	case <-ctx.Done():
		gone()
		return nil, nil, nil, ctx.Err()
	}
	release, err := x.Turn(ctx, turnWait)
	if err != nil {
		l.free <- struct{}{}
		gone()
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(llm.Awaited(ctx))
	l.mu.Lock()
	l.stop, l.message = cancel, message
	l.mu.Unlock()
	return ctx, l, func() {
		l.mu.Lock()
		l.stop, l.message, l.now = nil, "", nil
		l.mu.Unlock()
		cancel(nil)
		release()
		l.free <- struct{}{}
		gone()
	}, nil
}

// stopTurn ends the turn that goes on in a session, where message is not "" only one that
// answers that, and reports whether there is one.
func (e *Engine) stopTurn(id, message string, why error) bool {
	e.mu.Lock()
	l := e.lanes[id]
	e.mu.Unlock()
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil || message != "" && l.message != message {
		return false
	}
	l.stop(why)
	return true
}

// begins notes that somebody works until the returned function is called.
func (l *turnQueue) begins(d activity) (ends func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = append(l.now, d)
	n := len(l.now)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n <= len(l.now) {
			l.now = l.now[:n-1]
		}
	}
}

// working is who works in a session of this process.
func (e *Engine) working(id string) []activity {
	e.mu.Lock()
	l := e.lanes[id]
	e.mu.Unlock()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]activity(nil), l.now...)
}
