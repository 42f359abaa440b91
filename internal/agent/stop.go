package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"toritsugi/internal/contextstore"
)

// ErrOverTime is the cause of a run that used up budget.max_minutes.
var ErrOverTime = errors.New("the time of the run is used up")

// ErrShutdown is the cause that ends a run's context where the process shuts down:
// the run goes back into the queue.
var ErrShutdown = errors.New("the process ends")

// requestError is the cause that ends a run's context after tori pause or tori stop.
type requestError struct{ contextstore.Request }

func (e *requestError) Error() string { return string(e.Action) + " was asked by " + e.By }

// PauseFor is the cause that ends a run's context to pause it; by is who or what asked.
func PauseFor(by string) error {
	return &requestError{contextstore.Request{Action: contextstore.Pause, By: by}}
}

// lookEvery is how often a run looks for a request to pause or to stop it.
const lookEvery = 500 * time.Millisecond

// Asked is what was asked of a run whose context ended by that cause.
func Asked(cause error) (q contextstore.Request, ok bool) {
	var e *requestError
	if ok = errors.As(cause, &e); ok {
		q = e.Request
	}
	return q, ok
}

// WatchRequests ends ctx when the run of a context is asked to pause or to stop, or has used up its
// time, pauses not counted; 0 is no limit. The cause is ErrOverTime, or one for Asked. The
// caller calls done.
func WatchRequests(ctx context.Context, c *contextstore.Context, most time.Duration) (watched context.Context, done func()) {
	free := func() {}
	if most > 0 {
		left := most - time.Duration(c.State().ActiveMS)*time.Millisecond
		ctx, free = context.WithTimeoutCause(ctx, max(left, 0), ErrOverTime)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		for {
			if q, ok := c.Request(); ok {
				cancel(&requestError{q})
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
	})
	return ctx, func() { cancel(nil); looking.Wait(); free() }
}

// How long git may look at the tree, or save it, once somebody wants the run ended: while
// they wait for the process, and where they asked for it from elsewhere.
const (
	lastLookTime = 10 * time.Second
	lastSaveTime = time.Minute
)

// lastLook is the context of what git does once a run ended: where somebody stops it, by
// the context of the work or of the process, before or while git looks, they do not wait
// for long.
func lastLook(working, process context.Context) (context.Context, context.CancelFunc) {
	look, cancel := context.WithCancel(context.WithoutCancel(process))
	bound := func(ctx context.Context, most time.Duration) (release func() bool) {
		return context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), ErrOverTime) {
				return // nobody waits
			}
			t := time.NewTimer(most)
			defer t.Stop()
			select {
			case <-t.C:
				cancel()
			case <-look.Done():
			}
		})
	}
	one, other := bound(working, lastSaveTime), bound(process, lastLookTime)
	return look, func() { one(); other(); cancel() }
}
