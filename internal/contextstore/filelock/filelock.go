// Package filelock takes the kernel's locks on files. They belong to the open file
// description: whoever inherits a descriptor shares its lock, and two of one process
// exclude each other.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
)

// ErrLocked says that somebody else holds the lock.
var ErrLocked = disk.ErrLocked

// Kind is what a lock is changed to.
type Kind int16

// The kinds of a lock.
const (
	Exclusive Kind = unix.F_WRLCK
	Shared    Kind = unix.F_RDLCK
	None      Kind = unix.F_UNLCK
)

// Whole is the range of a lock on a whole file.
var Whole = Range{}

// Range are the bytes of a file that a lock is on: Len of them, 0 for all that follow.
type Range struct{ Start, Len int64 }

// Byte is the range of one byte.
func Byte(at int64) Range { return Range{at, 1} }

// Set changes the lock without waiting; ErrLocked where somebody else's is in the way.
func Set(f *os.File, r Range, kind Kind) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: int16(kind), Start: r.Start, Len: r.Len})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// Wait is Set that tries until ctx ends, whose error it then returns.
func Wait(ctx context.Context, f *os.File, r Range, kind Kind) error {
	return Poll(ctx, func() error { return Set(f, r, kind) })
}

// Poll takes a lock by trying until ctx ends, whose error it then returns: a wait in the
// kernel could not be given up. The intervals grow from 1 ms to 50 ms.
func Poll(ctx context.Context, try func() error) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if err := try(); !errors.Is(err, ErrLocked) {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}

// Open opens the file at path with more flags and takes its lock without waiting;
// ErrLocked.
func Open(path string, flags int) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, flags|os.O_RDWR, disk.FileMode)
		if err != nil {
			return nil, err
		}
		if err := Set(f, Whole, Exclusive); err != nil {
			_ = f.Close()
			return nil, err
		}
		// A former owner may have removed or moved the file between open and lock.
		if Same(f, path) {
			return f, nil
		}
		_ = f.Close()
	}
}

// OpenWait locks a file that is there for its lock alone, until release is called. It
// waits no longer than timeout: ErrLocked then. The file stays: a lock file that is
// removed may have two holders.
func OpenWait(ctx context.Context, path string, timeout time.Duration) (release func(), err error) {
	l, err := TakeWait(ctx, path, os.O_CREATE|os.O_RDWR, Exclusive, timeout)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

// held is a lock of the kernel as a disk.Lock.
type held struct{ f *os.File }

// Write implements disk.Lock: in place, for a replaced lock file would have two owners.
func (h held) Write(b []byte) error {
	if _, err := h.f.WriteAt(b, 0); err != nil {
		return err
	}
	return h.f.Truncate(int64(len(b)))
}

// Held implements disk.Lock.
func (h held) Held(path string) bool { return Same(h.f, path) }

// Release implements disk.Lock.
func (h held) Release() { Close(h.f) }

// Take takes the lock on the file at path, whoever keeps it, without waiting; ErrLocked.
// flags are more than those to read and write it.
func Take(path string, flags int) (disk.Lock, error) {
	if p := disk.At(path); p != nil {
		return p.Lock(path, flags&os.O_CREATE != 0)
	}
	f, err := Open(path, flags)
	if err != nil {
		return nil, err
	}
	return held{f}, nil
}

// TakeWait is Take that waits no longer than timeout: ErrLocked then. Links are not
// followed, and the file may be opened for reading alone. A place knows no shared locks.
func TakeWait(ctx context.Context, path string, flags int, kind Kind, timeout time.Duration) (disk.Lock, error) {
	short, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	l, err := takeWait(short, path, flags, kind)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = ErrLocked
	}
	if err != nil && !errors.As(err, new(*os.PathError)) {
		err = fmt.Errorf("lock %s: %w", path, err)
	}
	return l, err
}

func takeWait(ctx context.Context, path string, flags int, kind Kind) (l disk.Lock, err error) {
	if p := disk.At(path); p != nil {
		err = Poll(ctx, func() (err error) {
			l, err = p.Lock(path, flags&os.O_CREATE != 0)
			return err
		})
		return l, err
	}
	for {
		f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW, disk.FileMode)
		if err != nil {
			return nil, err
		}
		if err := Wait(ctx, f, Whole, kind); err != nil {
			_ = f.Close()
			return nil, err
		}
		if Same(f, path) {
			return held{f}, nil
		}
		_ = f.Close() // it was moved or removed before it could be held
	}
}

// Locked reports whether somebody holds the lock on the file at path. It takes none, and
// works on a read-only disk.
func Locked(path string) bool {
	if p := disk.At(path); p != nil {
		return p.Locked(path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only looked at
	probe := unix.Flock_t{Type: unix.F_WRLCK}
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &probe) == nil && probe.Type != unix.F_UNLCK
}

// Close gives the lock up and closes the file. The lock goes first: a child that is
// being started, for anything, has a copy of the descriptor for a moment.
func Close(f *os.File) {
	_ = Set(f, Whole, None)
	_ = f.Close()
}

// Same reports whether path still names the open file.
func Same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
