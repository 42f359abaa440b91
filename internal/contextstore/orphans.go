package contextstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// workLock is the file whose descriptor every child process of an owner
// inherits. While a child lives, so does the lock: a push, a build or an MCP
// server that outlived its owner keeps the next one out (PROTOCOL "Claim" 4).
const workLock = "work.lock"

// OrphansError says that the owner of a context is gone and processes that it
// started are not. They work on the same files as the next owner would.
type OrphansError struct {
	UUID string
	PIDs []int // as far as they can be seen by this user
}

func (e *OrphansError) Error() string {
	return fmt.Sprintf("processes of the former owner of %s still run: %v", e.UUID, e.PIDs)
}

// Orphans returns the processes that hold the context's work.lock: children of
// a former owner, where the context has no owner now.
func (s *Store) Orphans(uuid string) ([]int, error) {
	dir, err := s.dir(uuid)
	if err != nil {
		return nil, err
	}
	return holders(filepath.Join(dir, workLock))
}

// deathWait is how long killed processes may take to be gone.
const deathWait = 5 * time.Second

// EndOrphans waits up to grace for the processes that a dead owner of the
// context left behind, then kills those that remain, and returns their ids. It
// kills nothing while the context has an owner (ErrBusy).
func (s *Store) EndOrphans(ctx context.Context, uuid string, grace time.Duration) ([]int, error) {
	left, err := s.orphansAfter(ctx, uuid, grace)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	killed, err := s.killOrphans(uuid)
	if err != nil {
		return killed, err
	}
	if left, err = s.orphansAfter(ctx, uuid, deathWait); err == nil && len(left) > 0 {
		err = &OrphansError{uuid, left}
	}
	return killed, err
}

// orphansAfter returns the orphans that are still there after a time, or as
// soon as there are none.
func (s *Store) orphansAfter(ctx context.Context, uuid string, wait time.Duration) ([]int, error) {
	deadline := time.Now().Add(wait)
	for {
		left, err := s.Orphans(uuid)
		if err != nil || len(left) == 0 || !time.Now().Before(deadline) {
			return left, err
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Store) killOrphans(uuid string) ([]int, error) {
	dir, err := s.dir(uuid)
	if err != nil {
		return nil, err
	}
	// The lock keeps a new owner from starting children while we look.
	f, err := lockFileAt(filepath.Join(dir, lockFile))
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%s: %w", uuid, ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	pids, err := holders(filepath.Join(dir, workLock))
	for _, pid := range pids {
		if kerr := unix.Kill(pid, unix.SIGKILL); kerr != nil && !errors.Is(kerr, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("kill process %d: %w", pid, kerr))
		}
	}
	return pids, err
}

// holders finds the processes, other than this one, that have path open. Only
// those of the same user can be looked into. A kernel lock of this kind tells
// no process id, since it belongs to whoever shares the descriptor.
func holders(path string) ([]int, error) {
	want, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		fds, err := filepath.Glob(filepath.Join("/proc", p.Name(), "fd", "*"))
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err != nil || !strings.HasSuffix(to, "/"+workLock) {
				continue
			}
			if have, err := os.Stat(fd); err == nil && os.SameFile(want, have) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids, nil
}
