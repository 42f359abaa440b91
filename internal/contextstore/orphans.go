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

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// workLock is the file whose descriptor every child process of an owner
// inherits. While a child lives, so does the lock: a push, a build or an MCP
// server that outlived its owner keeps the next one out (PROTOCOL "Claim" 4).
const workLock = "work.lock"

// workPath is where the work.lock of a context lies: on this machine, whoever keeps the
// context, since its children are here.
func workPath(dir string) string {
	if disk.At(dir) == nil {
		return filepath.Join(dir, workLock)
	}
	return filepath.Join(filepath.Dir(filepath.Dir(dir)), "work", filepath.Base(dir), workLock)
}

// OrphansError says that the owner of a context is gone and processes that it
// started are not. They work on the same files as the next owner would.
type OrphansError struct {
	UUID string
	PIDs []int // as far as they can be seen by this user
}

func (e *OrphansError) Error() string {
	return fmt.Sprintf("processes of the former owner of %s still run: %v", e.UUID, e.PIDs)
}

// orphansError is an *OrphansError as people read it. Processes of another user,
// or of another container, are not seen.
func orphansError(uuid string, pids []int) error {
	seen := strings.Trim(fmt.Sprint(pids), "[]")
	if seen == "" {
		seen = "?"
	}
	return i18n.E("contextstore.orphans", uuid, seen).Of(&OrphansError{uuid, pids})
}

// Orphans returns the processes that hold the context's work.lock: children of
// a former owner, where the context has no owner now.
func (s *Store) Orphans(uuid string) ([]int, error) {
	dir, err := s.dir(uuid)
	if err != nil {
		return nil, err
	}
	return holders(workPath(dir))
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
		err = orphansError(uuid, left)
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
	at := filepath.Join(dir, LockFile)
	l, err := filelock.Take(at, os.O_CREATE)
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fmt.Errorf("%s: %w", uuid, ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		// It was made here where no owner is named in it: the last one had gone.
		if st, err := disk.Stat(at); err == nil && st.Size() == 0 {
			_ = s.FS.Remove(at) // what stays is nobody's, and told by a check
		}
		l.Release()
	}()
	path := workPath(dir)
	all, err := holders(path)
	if err != nil {
		return nil, err
	}
	var killed []int
	for _, pid := range all {
		done, kerr := killHolder(pid, path)
		if err = errors.Join(err, kerr); done {
			killed = append(killed, pid)
		}
	}
	return killed, err
}

// killHolder kills a process if it holds the lock on path. The process is pinned
// first: its id may have become another's since it was found.
func killHolder(pid int, path string) (done bool, err error) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false, fmt.Errorf("kill process %d: %w", pid, err)
	}
	defer func() { _ = p.Release() }()
	want, err := os.Stat(path)
	if err != nil || !holds(pid, want) {
		return false, err
	}
	if err := p.Kill(); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			return false, nil
		}
		return false, fmt.Errorf("kill process %d: %w", pid, err)
	}
	return true, nil
}

// holders finds the processes, other than this one, that share the lock on
// path. Only those of the same user can be looked into. A kernel lock of this
// kind tells no process id, since it belongs to whoever shares the descriptor.
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
		if pid, err := strconv.Atoi(p.Name()); err == nil && pid != os.Getpid() && holds(pid, want) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// holds reports whether a process has a descriptor of the file that its lock
// belongs to: not one of its own, as somebody has who copies or reads the file.
func holds(pid int, file os.FileInfo) bool {
	for _, fd := range descriptors(pid, file, workLock) {
		// A line for each lock of the descriptor (proc(5), "fdinfo").
		info, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "fdinfo", fd))
		if err == nil && strings.Contains(string(info), "\nlock:") {
			return true
		}
	}
	return false
}

// descriptors are those that a process has of a file of this name.
func descriptors(pid int, file os.FileInfo, name string) (found []string) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	fds, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, fd := range fds {
		path := filepath.Join(dir, fd.Name())
		if to, err := os.Readlink(path); err != nil || !strings.HasSuffix(to, "/"+name) {
			continue
		}
		if have, err := os.Stat(path); err == nil && os.SameFile(file, have) {
			found = append(found, fd.Name())
		}
	}
	return found
}

// ownedWithoutLock returns the owner of a running context whose lock files
// somebody removed, though it lives and writes; ok is false where there is none.
func (s *Store) ownedWithoutLock(dir string) (o Owner, ok bool) {
	if filepath.Base(filepath.Dir(dir)) != DirRunning || locked(dir) {
		return o, false
	}
	st, err := ReadState(dir)
	if err != nil || st.BootID != s.boot || st.ProcessID == os.Getpid() {
		return o, false
	}
	file, err := disk.Stat(filepath.Join(dir, Messages))
	if err != nil {
		return o, false
	}
	return Owner{ProcessID: st.ProcessID, Hostname: st.Hostname}, len(descriptors(st.ProcessID, file, Messages)) > 0
}
