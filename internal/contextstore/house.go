package contextstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/i18n"
)

// houseFile is the file whose bytes are the locks of a base directory.
const houseFile = ".house"

// The bytes of .house. The locks are of the open file description: two stores
// of one process exclude each other as two processes do.
const (
	byteHouse = iota // shared by whoever has the store open, exclusive for who must be alone
	byteTurn         // a short turn for opening and creating databases
	byteAlone        // at most one waits to be alone, so that two do not wait for each other
)

// house is a process's place in a base directory (PROTOCOL "Start-up"). Its
// methods may be called from several goroutines.
type house struct {
	path   string
	f      *os.File
	turns  chan struct{} // one turn within this handle: its own locks do not exclude it
	alones chan struct{}
	alone  atomic.Bool // byteHouse is held exclusively
	shared atomic.Bool // byteHouse is held at all

	patience time.Duration // of migrate
}

// patienceForOld is how long a program that starts on an old database waits for
// the processes that still use it.
const patienceForOld = 10 * time.Second

// openHouse takes base's house lock, shared, until close. While a process holds
// it exclusively (reindex, restore, migration) openHouse waits until ctx ends.
func openHouse(ctx context.Context, base string) (*house, error) {
	path := filepath.Join(base, houseFile)
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		h := &house{path: path, f: f, turns: make(chan struct{}, 1), alones: make(chan struct{}, 1), patience: patienceForOld}
		if err := h.await(ctx, byteHouse, unix.F_RDLCK); err != nil {
			h.close()
			if ctx.Err() != nil {
				return nil, i18n.E("ledger.house_wait", base, err)
			}
			return nil, err
		}
		h.shared.Store(true)
		// It may have been removed between open and lock.
		if same(f, path) {
			return h, nil
		}
		h.close()
	}
}

// close gives up every lock.
func (h *house) close() { _ = h.f.Close() }

// exclusive waits until no other process has the store open, and keeps them out
// until release is called: for reindex and restore. The wait is bounded by ctx,
// and the error then says that other processes are running. Of two that want to
// be alone the second is refused at once: each holds what the other waits for.
func (h *house) exclusive(ctx context.Context) (release func(), err error) {
	leave, err := enter(ctx, h.alones)
	if err != nil {
		return nil, err
	}
	if !same(h.f, h.path) {
		leave()
		return nil, i18n.E("ledger.house_moved", h.path)
	}
	err = h.lock(byteAlone, unix.F_WRLCK)
	if err != nil {
		leave()
		if errors.Is(err, errLocked) {
			return nil, i18n.E("ledger.house_taken", filepath.Dir(h.path), err)
		}
		return nil, err
	}
	if err := h.upgrade(ctx); err != nil {
		h.unlock(byteAlone)
		leave()
		return nil, err
	}
	return func() {
		h.downgrade()
		h.unlock(byteAlone)
		leave()
	}, nil
}

// migrate calls do alone, if needed still says so when no other process can be
// at it: of several that start on an old database one migrates and the others
// wait. The shared lock is given up meanwhile, so nothing of the base may be
// open; where it could not be taken back before ctx ended, isHeld says so.
func (h *house) migrate(ctx context.Context, needed func() (bool, error), do func() error) (err error) {
	leave, err := enter(ctx, h.alones)
	if err != nil {
		return err
	}
	defer leave()
	h.shared.Store(false)
	h.unlock(byteHouse)
	err = h.await(ctx, byteAlone, unix.F_WRLCK)
	if err == nil {
		defer h.unlock(byteAlone)
	}
	back := h.await(ctx, byteHouse, unix.F_RDLCK)
	h.shared.Store(back == nil)
	if err := errors.Join(err, back); err != nil {
		return i18n.E("ledger.house_wait", filepath.Dir(h.path), err)
	}
	if still, err := needed(); err != nil || !still {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	if err := h.upgrade(bounded); err != nil {
		return err
	}
	defer h.downgrade()
	return do()
}

// turn waits for a short turn among processes that all have the store open.
func (h *house) turn(ctx context.Context) (release func(), err error) {
	leave, err := enter(ctx, h.turns)
	if err != nil {
		return nil, err
	}
	if err := h.await(ctx, byteTurn, unix.F_WRLCK); err != nil {
		leave()
		return nil, err
	}
	return func() {
		h.unlock(byteTurn)
		leave()
	}, nil
}

// isAlone reports that this handle holds the house exclusively.
func (h *house) isAlone() bool { return h.alone.Load() }

// isHeld reports that this handle holds the house, shared or exclusively.
func (h *house) isHeld() bool { return h.shared.Load() }

func (h *house) upgrade(ctx context.Context) error {
	if err := h.await(ctx, byteHouse, unix.F_WRLCK); err != nil {
		if ctx.Err() != nil {
			return i18n.E("ledger.house_busy", filepath.Dir(h.path), err)
		}
		return err
	}
	h.alone.Store(true)
	return nil
}

// downgrade turns the exclusive lock back into a shared one; the kernel does so
// in one step and without waiting.
func (h *house) downgrade() {
	h.alone.Store(false)
	_ = h.lock(byteHouse, unix.F_RDLCK)
}

func (h *house) unlock(at int64) { _ = h.lock(at, unix.F_UNLCK) }

// lock takes a lock on one byte without waiting; errLocked if it is taken.
func (h *house) lock(at int64, kind int16) error {
	err := unix.FcntlFlock(h.f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: at, Len: 1})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errLocked
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", h.path, err)
	}
	return nil
}

// await polls for a lock: a wait in the kernel could not be given up when ctx
// ends. The intervals grow from 1 ms to 50 ms.
func (h *house) await(ctx context.Context, at int64, kind int16) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if err := h.lock(at, kind); !errors.Is(err, errLocked) {
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

// enter takes the one place of c until leave is called. A place that is free is
// had even if ctx has ended, so that what is then reported is the lock.
func enter(ctx context.Context, c chan struct{}) (leave func(), err error) {
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	default:
	}
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
