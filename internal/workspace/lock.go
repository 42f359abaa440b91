package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errBusy says that somebody else holds a lock.
var errBusy = errors.New("in use")

// lockWait is how often a lock that somebody holds is tried again.
const lockWait = 20 * time.Millisecond

// lockKind is who else may hold a lock.
type lockKind int16

const (
	shared    = lockKind(unix.F_RDLCK)
	exclusive = lockKind(unix.F_WRLCK)
)

// takeLock takes the open-file-description lock on path, which it makes where
// it is missing, or returns errBusy. The lock ends with release, or
// with the process.
func takeLock(path string, kind lockKind) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: int16(kind), Whence: 0}); err != nil {
			_ = f.Close()
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
				return nil, errBusy
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// Whoever held it may have removed or moved the file in the meantime.
		a, err := f.Stat()
		if err == nil {
			if b, serr := os.Lstat(path); serr == nil && os.SameFile(a, b) {
				return f, nil
			}
		}
		_ = release(f)
	}
}

// release gives a lock back. Closing alone would not: a process that is being
// started at this moment has the file open until it executes its program.
func release(f *os.File) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Whence: 0})
	return errors.Join(err, f.Close())
}

// change makes a lock that is held one of another kind, or returns errBusy and
// leaves it as it is.
func change(f *os.File, kind lockKind) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: int16(kind), Whence: 0})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errBusy
	}
	return err
}

// waitLock takes the lock on path as soon as it is free.
func waitLock(ctx context.Context, path string, kind lockKind) (*os.File, error) {
	for {
		f, err := takeLock(path, kind)
		if !errors.Is(err, errBusy) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockWait):
		}
	}
}
