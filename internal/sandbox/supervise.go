package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// supervisor ends a command that does not end by itself.
type supervisor struct {
	p      *process
	child  child
	exited chan struct{} // closed when the command has ended
	done   chan struct{} // closed when the supervisor has ended what it ended

	mu    sync.Mutex // held while it looks; decides between over and act
	ended bool       // the command has ended by itself
	acts  bool       // the supervisor ends it
	why   reason
	limit string
	err   error // of ending it; read after done
}

// supervise starts to watch a command. The caller waits for the command and
// then calls over.
func (p *process) supervise(ctx context.Context, c child, j job, out *output) *supervisor {
	s := &supervisor{p: p, child: c, exited: make(chan struct{}), done: make(chan struct{})}
	w := newWatcher(p.watch, j.limits, j.disks, j.together)
	w.inst, w.mend = p.inst, j.after
	go func() {
		defer close(s.done)
		defer j.together.drop(w)
		if s.watch(ctx, j.Timeout, w, out) {
			s.end()
		}
	}()
	return s
}

// over tells that the command has ended, and reports whether that was by
// itself. Then the supervisor does nothing any more; else it is at work, and
// done is waited for.
func (s *supervisor) over() bool {
	s.mu.Lock() // a look that is under way comes to its end
	defer s.mu.Unlock()
	s.ended = true
	close(s.exited)
	return !s.acts
}

// act makes the supervisor the one who ends the command, unless it has ended.
func (s *supervisor) act(why reason, limit string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.acts, s.why, s.limit = true, why, limit
	return true
}

// watch looks now and then, and reports that something else than the command
// decides that it ends.
func (s *supervisor) watch(ctx context.Context, timeout time.Duration, w *watcher, out *output) bool {
	look := time.NewTimer(watchFirst)
	defer look.Stop()
	var expired <-chan time.Time
	if timeout > 0 {
		expired = time.After(timeout)
	}
	// A tree of millions of files takes a while to be counted, which nobody waits
	// for: neither the command's end nor its being ended.
	ctx, cancel := context.WithCancel(ctx)
	var counting sync.WaitGroup
	defer counting.Wait()
	defer cancel()
	var counted chan string
	wait, begin := watchFirst, time.Now()
	for {
		select {
		case <-s.exited:
			return false
		case <-expired:
			return s.act(outOfTime, "")
		case <-ctx.Done():
			return s.act(cancelled, "")
		case <-out.full:
			return s.act(overLimit, limitOutput)
		case limit := <-counted:
			return s.act(overLimit, limit)
		case <-look.C:
		}
		if counted == nil && time.Since(begin) >= censusFirst {
			counted = make(chan string, 1)
			count := fileCount{w.disks, w.limits.NewFiles, w.limits.Disk, w.since, w.sum, w.open}
			counting.Go(func() {
				if limit := count.watch(ctx); limit != "" {
					counted <- limit
				}
			})
		}
		limit := ""
		s.mu.Lock()
		if !s.ended {
			limit = w.look()
		}
		s.mu.Unlock()
		if limit != "" {
			return s.act(overLimit, limit)
		}
		if wait = min(2*wait, watchLast); w.low { // memory takes gigabytes in a second that the disk then has not
			wait = watchFirst
		}
		look.Reset(wait)
	}
}

// end ends the command and its tree: at once past a limit, else with SIGTERM
// and a grace period before.
func (s *supervisor) end() {
	over := false
	if p := s.p; (s.why == outOfTime || s.why == cancelled) && p.terminate != nil && p.terminate() == nil {
		over = s.withinGrace()
	}
	if s.p.group != nil {
		s.p.group.kill()
	}
	if s.p.end != nil {
		s.err = s.p.end()
	}
	if !over && !s.withinGrace() {
		s.err = errors.Join(s.err, s.child.kill())
	}
}

// withinGrace waits for the command's end, for as long as grace.
func (s *supervisor) withinGrace() bool {
	select {
	case <-s.exited:
		return true
	case <-time.After(grace):
		return false
	}
}
