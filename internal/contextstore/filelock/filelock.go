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
var ErrLocked = errors.New("locked")

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

// Held reports whether somebody else holds a lock on the file. It takes none.
func Held(f *os.File) bool {
	probe := unix.Flock_t{Type: unix.F_WRLCK}
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &probe) == nil && probe.Type != unix.F_UNLCK
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

// WaitFor takes the lock on a whole open file, waiting no longer than timeout:
// ErrLocked then.
func WaitFor(ctx context.Context, f *os.File, kind Kind, timeout time.Duration) error {
	short, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := Wait(short, f, Whole, kind)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = ErrLocked
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
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
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, disk.FileMode)
	if err != nil {
		return nil, err
	}
	if err := WaitFor(ctx, f, Exclusive, timeout); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { Close(f) }, nil
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
