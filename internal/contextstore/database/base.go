package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/i18n"
)

// lockFile is the file whose bytes are the locks of a base directory.
const lockFile = ".house"

// The locks of a base, as bytes of .house or as numbers of advisory locks. Two stores of
// one process exclude each other as two processes do.
const (
	byteHouse = iota // shared by whoever has the store open, exclusive for who must be alone
	byteTurn         // a short turn for opening and creating databases
	byteAlone        // at most one waits to be alone, so that two do not wait for each other
	byteWrite        // of a transaction in PostgreSQL: one writes to house.db at a time
)

// locks are what Base takes: the kernel's on a file, or a server's.
type locks interface {
	// set changes a lock without waiting; filelock.ErrLocked where somebody else's is in the way.
	set(at int64, kind filelock.Kind) error
	// wait is set that tries until ctx ends.
	wait(ctx context.Context, at int64, kind filelock.Kind) error
	// same reports whether who comes now would meet these locks.
	same() bool
	close()
}

// Base is a process's place in a base directory (PROTOCOL "Start-up"), or in a schema of a
// server. Its methods may be called from several goroutines.
type Base struct {
	name   string // as people know the place
	at     string // and where its locks are
	locks  locks
	server *Server       // nil for a directory
	turns  chan struct{} // one turn within this handle: its own locks do not exclude it
	alones chan struct{}
	alone  atomic.Bool // byteHouse is held exclusively
	shared atomic.Bool // byteHouse is held at all

	patience time.Duration // of migrate
}

// patienceForOld is how long a program that starts on an old database waits for
// the processes that still use it.
const patienceForOld = 10 * time.Second

// Enter takes the lock of a base directory, shared, until close. While a process holds
// it exclusively (reindex, restore, migration) Enter waits until ctx ends.
func Enter(ctx context.Context, dir string) (*Base, error) {
	if s := ServerOf(dir); s != nil {
		return s.Enter(ctx)
	}
	path := filepath.Join(dir, lockFile)
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		l := fileLocks{f}
		b, err := come(ctx, dir, path, l)
		if err != nil {
			return nil, err
		}
		// It may have been removed between open and lock.
		if l.same() {
			return b, nil
		}
		b.Close()
	}
}

// come takes the shared lock of a place.
func come(ctx context.Context, name, at string, l locks) (*Base, error) {
	b := &Base{name: name, at: at, locks: l, turns: make(chan struct{}, 1), alones: make(chan struct{}, 1), patience: patienceForOld}
	if err := b.locks.wait(ctx, byteHouse, filelock.Shared); err != nil {
		b.Close()
		if ctx.Err() != nil {
			return nil, i18n.E("ledger.house_wait", name).Of(err)
		}
		return nil, err
	}
	b.shared.Store(true)
	return b, nil
}

// fileLocks are locks on the bytes of .house.
type fileLocks struct{ f *os.File }

func (l fileLocks) set(at int64, kind filelock.Kind) error {
	return filelock.Set(l.f, filelock.Byte(at), kind)
}

func (l fileLocks) wait(ctx context.Context, at int64, kind filelock.Kind) error {
	return filelock.Wait(ctx, l.f, filelock.Byte(at), kind)
}

func (l fileLocks) same() bool { return filelock.Same(l.f, l.f.Name()) }

func (l fileLocks) close() { filelock.Close(l.f) }

// Server is where the databases of the place lie; nil for a directory.
func (b *Base) Server() *Server { return b.server }

// Close gives up every lock.
func (b *Base) Close() { b.locks.close() }

// Exclusive waits until no other process has the store open, and keeps them out
// until release is called: for reindex and restore. The wait is bounded by ctx,
// and the error then says that other processes are running. Of two that want to
// be alone the second is refused at once: each holds what the other waits for.
func (b *Base) Exclusive(ctx context.Context) (release func(), err error) {
	leave, err := enter(ctx, b.alones)
	if err != nil {
		return nil, err
	}
	if !b.locks.same() {
		leave()
		return nil, i18n.E("ledger.house_moved", b.at)
	}
	if err := b.locks.set(byteAlone, filelock.Exclusive); err != nil {
		leave()
		if errors.Is(err, filelock.ErrLocked) {
			return nil, i18n.E("ledger.house_taken", b.name).Of(err)
		}
		return nil, err
	}
	if err := b.upgrade(ctx); err != nil {
		b.unlock(byteAlone)
		leave()
		return nil, err
	}
	return func() {
		b.downgrade()
		b.unlock(byteAlone)
		leave()
	}, nil
}

// migrate calls do alone, if needed still says so when no other process can be
// at it: of several that start on an old database one migrates and the others
// wait. The shared lock is given up meanwhile, so nothing of the base may be
// open; where it could not be taken back before ctx ended, Held says so.
func (b *Base) migrate(ctx context.Context, needed func() (bool, error), do func() error) (err error) {
	leave, err := enter(ctx, b.alones)
	if err != nil {
		return err
	}
	defer leave()
	b.shared.Store(false)
	b.unlock(byteHouse)
	err = b.locks.wait(ctx, byteAlone, filelock.Exclusive)
	if err == nil {
		defer b.unlock(byteAlone)
	}
	back := b.locks.wait(ctx, byteHouse, filelock.Shared)
	b.shared.Store(back == nil)
	if err = errors.Join(err, back); err != nil && ctx.Err() != nil {
		return i18n.E("ledger.house_wait", b.name).Of(err)
	} else if err != nil {
		return err
	}
	if still, err := needed(); err != nil || !still {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	if err := b.upgrade(bounded); err != nil {
		return err
	}
	defer b.downgrade()
	return do()
}

// Turn waits for a short turn among processes that all have the store open.
func (b *Base) Turn(ctx context.Context) (release func(), err error) {
	leave, err := enter(ctx, b.turns)
	if err != nil {
		return nil, err
	}
	if err := b.locks.wait(ctx, byteTurn, filelock.Exclusive); err != nil {
		leave()
		return nil, err
	}
	return func() {
		b.unlock(byteTurn)
		leave()
	}, nil
}

// Alone reports that this handle holds the house exclusively.
func (b *Base) Alone() bool { return b.alone.Load() }

// Held reports that this handle holds the house, shared or exclusively.
func (b *Base) Held() bool { return b.shared.Load() }

func (b *Base) upgrade(ctx context.Context) error {
	if err := b.locks.wait(ctx, byteHouse, filelock.Exclusive); err != nil {
		if ctx.Err() != nil {
			return i18n.E("ledger.house_busy", b.name).Of(err)
		}
		return err
	}
	b.alone.Store(true)
	return nil
}

// downgrade turns the exclusive lock back into a shared one; the kernel does so
// in one step and without waiting.
func (b *Base) downgrade() {
	b.alone.Store(false)
	_ = b.locks.set(byteHouse, filelock.Shared)
}

func (b *Base) unlock(at int64) { _ = b.locks.set(at, filelock.None) }

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
