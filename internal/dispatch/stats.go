package dispatch

import (
	"maps"
	"sync"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// Stats counts what a daemon did since it started. Its methods are safe for
// concurrent use, and do nothing on nil.
type Stats struct {
	mu sync.Mutex
	c  Counts
}

// Counts are the figures of Stats.
type Counts struct {
	Began      int64
	Ended      map[task.Status]int64 // how runs left the pool
	Recovered  int64                 // runs taken over from dead owners
	Delivered  int64                 // effects
	Failed     int64                 // attempts to deliver one
	Polls      map[string]int64      // by source
	PollErrors map[string]int64
	PollTime   map[string]time.Duration // of the last one
	PolledAt   map[string]time.Time     // when one last succeeded
	Refused    map[string]bool          // the last one was, because of the login
	Stale      int                      // owners that live and show no sign of it
	Free       uint64                   // bytes
	NoSpace    bool
}

func (s *Stats) change(f func(*Counts)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.c)
}

// Counts returns a copy of the figures.
func (s *Stats) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.c
	c.Ended, c.Polls, c.PollErrors = maps.Clone(c.Ended), maps.Clone(c.Polls), maps.Clone(c.PollErrors)
	c.PollTime, c.PolledAt, c.Refused = maps.Clone(c.PollTime), maps.Clone(c.PolledAt), maps.Clone(c.Refused)
	return c
}

func set[K comparable, V any](m *map[K]V, k K, f func(V) V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = f((*m)[k])
}

func one(n int64) int64 { return n + 1 }

func (s *Stats) began()     { s.change(func(c *Counts) { c.Began++ }) }
func (s *Stats) recovered() { s.change(func(c *Counts) { c.Recovered++ }) }
func (s *Stats) ended(st task.Status) {
	s.change(func(c *Counts) { set(&c.Ended, st, one) })
}
func (s *Stats) staled(n int) { s.change(func(c *Counts) { c.Stale = n }) }
func (s *Stats) space(free uint64, none bool) {
	s.change(func(c *Counts) { c.Free, c.NoSpace = free, none })
}

func (s *Stats) delivered(err error) {
	s.change(func(c *Counts) {
		if err != nil {
			c.Failed++
		} else {
			c.Delivered++
		}
	})
}

func (s *Stats) polled(source string, began, now time.Time, err error) {
	s.change(func(c *Counts) {
		set(&c.Polls, source, one)
		set(&c.PollTime, source, func(time.Duration) time.Duration { return now.Sub(began) })
		set(&c.Refused, source, func(bool) bool { return forge.Is(err, forge.Unauthorized) })
		if err != nil {
			set(&c.PollErrors, source, one)
			return
		}
		set(&c.PolledAt, source, func(time.Time) time.Time { return now })
	})
}
