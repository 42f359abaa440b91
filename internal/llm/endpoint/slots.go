package endpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
)

// Priority is who goes first when several wait for one endpoint.
type Priority int

// The priorities, lowest first.
const (
	PriorityCoder  Priority = iota // nobody is waiting at a keyboard
	PriorityWorker                 // of a chat turn
	PriorityChat                   // somebody is
)

// Slots limits how many calls one endpoint gets at once from all processes
// that use the same directory. The locks are the kernel's, on single bytes of
// one file: a process that dies frees what it held, and leaves the line. Who
// waits is served by priority, and within one in the order of arrival.
//
// The bytes that are locked lie far behind those that are written:
//
//	slots   one byte for each call that may run
//	queue   one byte for each that waits: higher priorities first, then by ticket
//	seats   one byte for each who holds or waits, whose record tells who it is
type Slots struct {
	endpoint string
	path     string
	limit    int
	now      func() time.Time

	mu   sync.Mutex
	free chan struct{} // closed and replaced when a slot of this process is freed
}

// Where the locks lie in the file.
const (
	region    = int64(1) << 40
	slotAt    = 1 * region
	seatAt    = 2 * region
	queueAt   = 3 * region // and a region for each further priority
	maxLimit  = 1024
	fileClass = ".slots"
)

// How often those look who wait, because a slot of another process may be
// free: the first in line, and the others.
const (
	pollFirst = 5 * time.Millisecond
	pollRest  = 20 * time.Millisecond
)

// tellEvery is how often someone who waits is told about it again.
const tellEvery = 30 * time.Second

// OpenSlots returns the slots of an endpoint, limit of them, from 1 to 1024.
// endpoint names it among all that use dir: its address, without credentials.
// dir must be on a file system with kernel locks; it is created if missing.
// Processes that give other limits keep to their own. A nil now is time.Now.
func OpenSlots(fs *disk.FS, dir, endpoint string, limit int, now func() time.Time) (*Slots, error) {
	if limit < 1 || limit > maxLimit {
		return nil, fmt.Errorf("slots of %s: a limit of %d is not from 1 to %d", endpoint, limit, maxLimit)
	}
	if now == nil {
		now = time.Now
	}
	sum := sha256.Sum256([]byte(endpoint))
	s := &Slots{endpoint: endpoint, path: filepath.Join(dir, fmt.Sprintf("%x%s", sum[:8], fileClass)), limit: limit, now: now, free: make(chan struct{})}
	if err := fs.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("slots of %s: %w", endpoint, err)
	}
	f, err := fs.OpenAppend(s.path) // never replaced: two files would be two sets of slots
	if err != nil {
		return nil, fmt.Errorf("slots of %s: %w", endpoint, err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("slots of %s: %w", endpoint, err)
	}
	h, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("slots of %s: %w", endpoint, err)
	}
	defer func() { _ = h.Close() }() // what was written is for people
	writeHeader(h, endpoint)
	return s, nil
}

// Endpoint is the name that the slots were opened with.
func (s *Slots) Endpoint() string { return s.endpoint }

// Slot is the right to make one call. It is given back by Release, or by the
// death of the process.
type Slot struct {
	once sync.Once
	s    *Slots
	c    *claim
}

// Release gives the slot back; a second time it does nothing.
func (l *Slot) Release() {
	l.once.Do(func() {
		l.c.close()
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		close(l.s.free)
		l.s.free = make(chan struct{})
	})
}

// freed returns what is closed when this process frees a slot.
func (s *Slots) freed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// Acquire waits for a slot until ctx ends. who is shown to others; waiting, if
// not nil, is told when a wait begins and each half minute of it. An error is
// ctx's, or of the file.
func (s *Slots) Acquire(ctx context.Context, p Priority, who string, waiting func(ahead int, waited time.Duration)) (*Slot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p = min(max(p, PriorityCoder), PriorityChat)
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("slots of %s: %w", s.endpoint, err)
	}
	c := &claim{f: f}
	err = s.stand(ctx, c, p, who, waiting)
	if err != nil {
		c.close()
		if ctx.Err() == nil {
			err = fmt.Errorf("slots of %s: %w", s.endpoint, err)
		}
		return nil, err
	}
	return &Slot{s: s, c: c}, nil
}

// stand takes a ticket and then, when nobody is before it, a slot.
func (s *Slots) stand(ctx context.Context, c *claim, p Priority, who string, waiting func(int, time.Duration)) error {
	since := s.now()
	party := Party{Who: who, PID: os.Getpid(), Priority: p, Since: since}
	ticket, err := c.ticket(p)
	if err != nil {
		return err
	}
	seat := c.sit()
	var told time.Time
	for {
		freed := s.freed() // before looking, so that nothing is missed
		_, others, err := c.probe(queueAt, ticket)
		if err != nil {
			return err
		}
		if !others {
			got, err := c.anySlot(s.limit)
			if err != nil {
				return err
			}
			if got {
				c.unlock(ticket)
				party.Holding, party.Since = true, s.now()
				c.note(seat, party)
				return nil
			}
		}
		if told.IsZero() {
			c.note(seat, party)
		}
		if now := s.now(); told.IsZero() || now.Sub(told) >= tellEvery {
			told = now
			if err := c.tell(waiting, ticket, now.Sub(since)); err != nil {
				return err
			}
		}
		pause := pollRest
		if !others {
			pause = pollFirst
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-freed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// tell says how many are before ticket, if waiting is to be told.
func (c *claim) tell(waiting func(int, time.Duration), ticket int64, waited time.Duration) error {
	if waiting == nil {
		return nil
	}
	ahead, err := c.held(queueAt, ticket)
	if err == nil {
		waiting(len(ahead), waited)
	}
	return err
}

// claim is the locks of one call. They belong to its open file description,
// not to the process, so that several of one process stand in line too.
type claim struct{ f *os.File }

var errTaken = errors.New("taken")

// lock takes a byte without waiting; errTaken if another has it.
func (c *claim) lock(at int64) error {
	err := unix.FcntlFlock(c.f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errTaken
	}
	return err
}

func (c *claim) unlock(at int64) {
	_ = unix.FcntlFlock(c.f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: at, Len: 1})
}

// close gives everything up. It is undone before the file is closed: a child
// that is being started, for anything, has a copy of the descriptor for a moment.
func (c *claim) close() {
	_ = unix.FcntlFlock(c.f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK})
	_ = c.f.Close()
}

// probe returns a byte from from on and below to that another holds.
func (c *claim) probe(from, to int64) (at int64, found bool, err error) {
	if from >= to {
		return 0, false, nil
	}
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: from, Len: to - from}
	if err := unix.FcntlFlock(c.f.Fd(), unix.F_OFD_GETLK, &l); err != nil {
		return 0, false, err
	}
	return l.Start, l.Type != unix.F_UNLCK, nil
}

// held returns the bytes that others hold, in no order.
func (c *claim) held(from, to int64) ([]int64, error) {
	at, found, err := c.probe(from, to)
	if err != nil || !found {
		return nil, err
	}
	below, err := c.held(from, at)
	if err != nil {
		return nil, err
	}
	above, err := c.held(at+1, to)
	return append(append(below, at), above...), err
}

// ticket takes the byte behind all that wait with priority p.
func (c *claim) ticket(p Priority) (int64, error) {
	from := queueAt + int64(PriorityChat-p)*region
	for next := from; ; {
		at, found, err := c.probe(next, from+region)
		if err != nil {
			return 0, err
		}
		if found {
			next = at + 1
			continue
		}
		if err := c.lock(next); !errors.Is(err, errTaken) {
			return next, err
		}
	}
}

// anySlot takes a slot if one is free.
func (c *claim) anySlot(limit int) (bool, error) {
	for i := range int64(limit) {
		if err := c.lock(slotAt + i); !errors.Is(err, errTaken) {
			return err == nil, err
		}
	}
	return false, nil
}
