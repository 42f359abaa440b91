// Package disktest tries programs that write through disk: it stops them at a
// call, makes a call fail, and replays what they wrote into the states that a
// power cut may leave behind (PROTOCOL "One seam"). Only tests import it.
package disktest

import (
	"errors"
	"sync"

	"toritsugi/internal/disk"
)

// ErrStopped is the result of every call of a program that was stopped.
var ErrStopped = errors.New("the program was stopped here")

// Stopper ends a program at one of its calls, as SIGKILL does: that call and
// all later ones are not made. Its Before goes into disk.FS.Before.
type Stopper struct {
	// At is the call to stop at, counted from 1; 0 only counts.
	At int
	// Torn lets the call at which the program is stopped write half of its bytes.
	Torn bool

	mu    sync.Mutex
	calls int
	hit   disk.Op
}

// Before counts a call and stops the program from At on.
func (s *Stopper) Before(op disk.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.At == 0 || s.calls < s.At {
		return nil
	}
	if s.calls > s.At {
		return ErrStopped
	}
	s.hit = op
	if s.Torn && op.Bytes > 1 {
		return &disk.ShortWrite{N: op.Bytes / 2, Err: ErrStopped}
	}
	return ErrStopped
}

// Calls is how many calls were asked for, those after the stop included.
func (s *Stopper) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Hit is the call that was stopped at; its Kind is "" if none was.
func (s *Stopper) Hit() disk.Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hit
}

// Failer makes one call fail and lets all others through: a fault of the disk
// that the program lives to see. Its Before goes into disk.FS.Before.
type Failer struct {
	// At is the call that fails, counted from 1.
	At int
	// Err is its error, EIO or ENOSPC as a rule.
	Err error
	// Short lets a call that writes write half of its bytes first.
	Short bool

	mu    sync.Mutex
	calls int
	hit   disk.Op
}

// Before counts a call and fails it if its turn has come.
func (f *Failer) Before(op disk.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.calls != f.At {
		return nil
	}
	f.hit = op
	if f.Short && op.Bytes > 1 {
		return &disk.ShortWrite{N: op.Bytes / 2, Err: f.Err}
	}
	return f.Err
}

// Hit is the call that failed; its Kind is "" if none did.
func (f *Failer) Hit() disk.Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}
