package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// PoolOptions are what a Pool is made of. All but Stats and Queue must be set.
type PoolOptions struct {
	Store *contextstore.Store
	// Queue wakes the pools of all processes; nil where this one finds in the ledger what waits.
	Queue   Queue
	Sources map[string]bool // of tasks that are claimed
	Limits  Limits
	// Work works on a claimed run until it ends or ctx does; the context is its to
	// close.
	Work func(ctx context.Context, c *contextstore.Context) (agent.Report, error)
	// Claim takes a run that waits; see contextstore.Store.Claim.
	Claim func(ctx context.Context, uuid string) (*contextstore.Context, error)
	// Ended hears of each run that was given up.
	Ended func(k task.Key, r agent.Report, err error)
	Log   *slog.Logger
	Now   func() time.Time
	Stats *Stats
}

// Pool claims what waits, the oldest first, and has it worked on, so many at a
// time. With a Queue the limits of a repository and of a user hold over all pools.
type Pool struct {
	PoolOptions

	wake    bell
	mu      sync.Mutex
	busy    map[string]*slot
	resting retries // runs that could not be begun
	closed  error   // why nothing is begun, nil where something is
	running sync.WaitGroup
}

// Limits are how much is worked on at once; 0 for no limit.
type Limits struct{ Max, PerSource, PerRepository, PerUser int }

// slot is a run that is being worked on.
type slot struct {
	waiting    contextstore.Waiting
	repository string
	cancel     context.CancelCauseFunc
	claimed    bool
	ending     bool // because of Hold
}

// NewPool returns a pool that Run sets going.
func NewPool(o PoolOptions) *Pool {
	return &Pool{PoolOptions: o, wake: newBell(), busy: map[string]*slot{}, resting: retries{most: mostRetry}}
}

// Wake makes the pool look for work at once.
func (p *Pool) Wake() { p.wake.ring() }

// look is how often a pool looks for work that nobody woke it for: what another
// process put into the queue.
const look = 5 * time.Second

// Run claims and works until ctx ends, then ends what it works on with
// agent.ErrShutdown, which puts it back into the queue, and waits for that.
func (p *Pool) Run(ctx context.Context) {
	// Runs outlive ctx for as long as they need to put down what they hold.
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	if p.Queue != nil {
		defer context.AfterFunc(ctx, func() { stop(agent.ErrShutdown) })()
		p.woken(ctx, work)
		return
	}
	t := time.NewTicker(look)
	defer t.Stop()
	for {
		if err := p.fill(ctx, work); err != nil && ctx.Err() == nil {
			p.Log.Error("Cannot look for work: " + err.Error())
		}
		select {
		case <-ctx.Done():
			stop(agent.ErrShutdown)
			p.running.Wait()
			return
		case <-p.wake:
		case <-t.C:
		}
	}
}

// Close begins nothing until Release, for a reason. What is worked on goes on: the runs
// of the uuids.
func (p *Pool) Close(cause error) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = cause
	return slices.Collect(maps.Keys(p.busy))
}

// Hold ends what is worked on for a reason, and begins nothing until Release. It
// returns at once.
func (p *Pool) Hold(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil && p.Queue != nil {
		p.Queue.Take(false)
	}
	p.closed = cause
	for _, s := range p.busy {
		s.cancel(cause)
		s.ending = true
	}
}

// Ending reports whether a run that Hold ended is still on its way.
func (p *Pool) Ending(uuid string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.busy[uuid]
	return s != nil && s.ending
}

// Release lets the pool begin again.
func (p *Pool) Release() {
	p.mu.Lock()
	held := p.closed != nil
	if held && p.Queue != nil {
		p.Queue.Take(true)
	}
	p.closed = nil
	p.mu.Unlock()
	if held {
		p.Wake()
	}
}

// Busy is how many runs are worked on.
func (p *Pool) Busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.busy)
}

// Works reports whether a run is worked on.
func (p *Pool) Works(uuid string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.busy[uuid]
	return s != nil && s.claimed
}

// Waits reports whether a run that is in the queue is left alone for a while,
// because it could not be begun.
func (p *Pool) Waits(uuid string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resting.waits(uuid, p.Now()) || p.closed != nil
}

// page is how many waiting runs are read at once.
const page = 200

// fill begins work on what may begin now. It reads the queue only as far as
// there is room, or until its end where limits keep what is first back.
func (p *Pool) fill(ctx, work context.Context) error {
	for after := ""; ; {
		if p.full() || ctx.Err() != nil {
			return nil
		}
		waiting, err := p.Store.Queued(ctx, after, page)
		if err != nil {
			return err
		}
		for _, w := range waiting {
			after = w.Cursor
			if run, ok := p.reserve(work, w, nil); ok {
				p.running.Go(func() {
					p.run(run, w, func() {})
					p.Wake()
				})
			}
			if p.full() || ctx.Err() != nil {
				return nil
			}
		}
		if len(waiting) < page {
			return nil
		}
	}
}

func (p *Pool) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed != nil || p.Limits.Max > 0 && len(p.busy) >= p.Limits.Max
}

// reserve takes a place for a run, if the limits leave one beside what this pool and others work on.
func (p *Pool) reserve(work context.Context, w contextstore.Waiting, others []slot) (context.Context, bool) {
	if !served(p.Store, p.Sources, w.Key.Source, w.UUID) {
		return nil, false // somebody's own, on this machine
	}
	repository := repository(p.Store, w)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil || p.busy[w.UUID] != nil || p.resting.waits(w.UUID, p.Now()) || !p.allows(w, repository, others) {
		return nil, false
	}
	run, cancel := context.WithCancelCause(work)
	p.busy[w.UUID] = &slot{waiting: w, repository: repository, cancel: cancel}
	return run, true
}

// allows reports whether the limits leave a place for a run. Its caller has mu.
func (p *Pool) allows(w contextstore.Waiting, repository string, others []slot) bool {
	source, same, user := 0, 0, 0
	count := func(s slot) {
		if s.repository == repository {
			same++
		}
		if s.waiting.User == w.User {
			user++
		}
	}
	for _, s := range p.busy {
		if s.waiting.Key.Source == w.Key.Source {
			source++
		}
		count(*s)
	}
	for _, s := range others {
		if p.busy[s.waiting.UUID] == nil {
			count(s)
		}
	}
	l := p.Limits
	return (l.PerSource == 0 || source < l.PerSource) && (l.PerRepository == 0 || same < l.PerRepository) && (l.PerUser == 0 || user < l.PerUser)
}

// run claims a run that has a place, and has it worked on; claimed is called once it is claimed or
// cannot be. It returns after how long to try again where it could not be claimed.
func (p *Pool) run(ctx context.Context, w contextstore.Waiting, claimed func()) (again time.Duration) {
	report, err := p.one(ctx, w, claimed)
	gone := errors.Is(err, contextstore.ErrEnded) || errors.Is(err, contextstore.ErrNotFound)
	again = pause(ctx, report, err)
	if gone {
		again = 0 // it ended between the look at the queue and the claim
	}
	p.mu.Lock()
	p.busy[w.UUID].cancel(nil)
	delete(p.busy, w.UUID)
	if again == 0 {
		p.resting.worked(w.UUID)
	} else if again = p.resting.failed(w.UUID, p.Now(), again, 0); err == nil {
		again = 0 // it was put into the queue anew
	}
	p.mu.Unlock()
	if !gone {
		p.Ended(w.Key, report, err)
	}
	return again
}

// The pauses before a run is claimed again that could not be begun.
const (
	retryClaim = 10 * time.Second
	retryStart = time.Minute
	mostRetry  = 15 * time.Minute
)

// pause is how long a run that is still in the queue is left alone.
func pause(ctx context.Context, r agent.Report, err error) time.Duration {
	switch {
	case ctx.Err() != nil:
		return 0
	case err != nil:
		return retryClaim
	case r.Outcome.Status == task.Queued:
		return retryStart // what it needs at its start cannot be had now
	}
	return 0
}

func (p *Pool) one(ctx context.Context, w contextstore.Waiting, claimed func()) (agent.Report, error) {
	log := p.Log.With("uuid", w.UUID)
	c, err := p.Claim(ctx, w.UUID)
	claimed()
	switch {
	case errors.Is(err, contextstore.ErrBusy) || errors.Is(err, contextstore.ErrEnded) || errors.Is(err, contextstore.ErrNotFound):
		return agent.Report{}, err // another process was quicker
	case err != nil:
		log.Error("Cannot be claimed: " + err.Error())
		return agent.Report{}, err
	}
	p.mu.Lock()
	p.busy[w.UUID].claimed = true
	p.mu.Unlock()
	p.Stats.began()
	report, err := p.work(ctx, c)
	p.Stats.ended(report.Outcome.Status)
	if err != nil {
		log.Error("Not closed: " + err.Error())
	}
	return report, err
}

// work has a run worked on. One that panics takes no other one with it: it is left
// as a dead owner leaves it, and counted like that.
func (p *Pool) work(ctx context.Context, c *contextstore.Context) (report agent.Report, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.Join(fmt.Errorf("panic: %v\n%s", v, debug.Stack()), c.Close())
		}
	}()
	return p.Work(ctx, c)
}
