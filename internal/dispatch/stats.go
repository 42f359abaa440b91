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
	Began     int64
	Ended     map[task.Status]int64 // how runs left the pool
	Recovered int64                 // runs taken over from dead owners
	Delivered int64                 // effects
	Failed    int64                 // attempts to deliver one
	Polls     map[string]Polls      // by source
	Stale     int                   // owners that live and show no sign of it
	Free      uint64                // bytes
	NoSpace   bool
}

// Polls are the looks at one source.
type Polls struct {
	All, Errors int64
	Took        time.Duration // the last one
	At          time.Time     // when one last succeeded; zero for never
	Refused     bool          // the last one was, because of the login
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
	c.Ended, c.Polls = maps.Clone(c.Ended), maps.Clone(c.Polls)
	return c
}

func (s *Stats) began()     { s.change(func(c *Counts) { c.Began++ }) }
func (s *Stats) recovered() { s.change(func(c *Counts) { c.Recovered++ }) }
func (s *Stats) ended(st task.Status) {
	s.change(func(c *Counts) {
		if c.Ended == nil {
			c.Ended = map[task.Status]int64{}
		}
		c.Ended[st]++
	})
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
		if c.Polls == nil {
			c.Polls = map[string]Polls{}
		}
		p := c.Polls[source]
		p.All, p.Took, p.Refused = p.All+1, now.Sub(began), forge.Is(err, forge.Unauthorized)
		if err != nil {
			p.Errors++
		} else {
			p.At = now
		}
		c.Polls[source] = p
	})
}
