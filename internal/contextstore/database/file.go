package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"modernc.org/sqlite"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// File is one SQLite file of a base directory, reopened when somebody
// deletes or replaces it. Its methods may be called from several goroutines.
type File struct {
	Schema
	Path string
	Base *Base // nil for a reader
	// Fill fills a database that is being made, before others can see it; may be nil.
	Fill func(ctx context.Context, w Writer) error
	// Statements are kept prepared on the writing connection, by name.
	Statements map[string]string

	mu    sync.RWMutex // held for reading by whoever uses h, for writing by who swaps it
	h     *Handles
	lacks atomic.Bool // a part of the schema was missed since h was opened
}

// Writer is a database or a transaction.
type Writer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Open opens a database in its place: a File in a directory, its tables on a server.
func (b *Base) Open(ctx context.Context, d *File) (Database, error) {
	if b.server != nil {
		return b.server.open(ctx, b, d)
	}
	return d, d.Open(ctx)
}

// Renew is Open for a database that is about to be filled anew: see File.Renew.
func (b *Base) Renew(ctx context.Context, d *File) (Database, error) {
	if b.server != nil {
		return b.server.open(ctx, b, d)
	}
	return d, d.Renew(ctx)
}

// Open opens the database, makes it where there is none and brings an older one up to
// date, for which no other process may be running.
func (d *File) Open(ctx context.Context) error {
	h, err := d.take(ctx)
	if errors.Is(err, ErrOlder) {
		old := func() (bool, error) {
			h, err := d.take(ctx)
			if err == nil {
				err = h.Close()
			}
			if errors.Is(err, ErrOlder) {
				return true, nil
			}
			return false, err
		}
		if err := d.Base.migrate(ctx, old, func() error { return d.migrate(ctx) }); err != nil {
			return err
		}
		h, err = d.take(ctx)
	}
	if err != nil {
		return err
	}
	d.h = h
	return nil
}

// take opens the file in a turn of its own.
func (d *File) take(ctx context.Context) (*Handles, error) {
	release, err := d.Base.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return d.takeTurn(ctx)
}

// takeTurn opens the file, or makes it; the caller has the turn.
func (d *File) takeTurn(ctx context.Context) (*Handles, error) {
	st, err := os.Stat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && st.Mode().IsRegular() && st.Size() == 0:
		if err := d.create(ctx); err != nil {
			return nil, fmt.Errorf("create %s: %w", d.Path, err)
		}
	case err != nil:
		return nil, err
	}
	h, v, err := d.inspect(ctx)
	if err == nil && v == 0 { // a database with nothing in it
		err = errors.Join(ErrLacks, h.Close())
	}
	if errors.Is(err, ErrLacks) {
		if err := d.create(ctx); err != nil {
			return nil, fmt.Errorf("create %s: %w", d.Path, err)
		}
		h, v, err = d.inspect(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := d.settle(ctx, h, v); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// inspect connects and reads the schema version.
func (d *File) inspect(ctx context.Context) (*Handles, int64, error) {
	h, err := d.Connect(d.Path)
	if err != nil {
		return nil, 0, d.explain(err)
	}
	v, err := d.version(ctx, h.W)
	if err == nil {
		h.id, err = fileIDOf(d.Path)
	}
	if err != nil {
		return nil, 0, errors.Join(d.explain(err), h.Close())
	}
	return h, v, nil
}

// settle refuses what is not of this program's version and prepares the rest.
func (d *File) settle(ctx context.Context, h *Handles, v int64) error {
	if err := d.expect(v); err != nil {
		return err
	}
	// From here on a database that somebody else has locked is not waited for as
	// long as at the start.
	if _, err := h.W.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout=%d", d.Busy)); err != nil {
		return err
	}
	return d.explain(h.prepare(ctx, d.Statements))
}

// prepare makes statements on the writing connection.
func (h *Handles) prepare(ctx context.Context, statements map[string]string) error {
	for name, query := range statements {
		s, err := h.W.PrepareContext(ctx, query) //nolint:sqlclosecheck // Close closes it
		if err != nil {
			return fmt.Errorf("prepare %s: %w", name, Misshapen(err))
		}
		h.Stmts[name] = s
	}
	return nil
}

// expect returns an error for any schema version but this program's.
func (d *File) expect(v int64) error {
	switch want := d.latest(); {
	case v > want:
		return i18n.E(d.Newer, d.Path, v, want).Of(ErrNewer)
	case v < want:
		return i18n.E("ledger.older", d.Path, v, want).Of(ErrOlder)
	}
	return nil
}

// explain gives an error that says that the file is no database, a malformed one
// or one that lacks a part, the text that says what to do.
func (d *File) explain(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && (e.Code()&0xff == 11 || e.Code()&0xff == 26) || errors.Is(err, ErrBroken) {
		return i18n.E(d.Broken, d.Path, err).Of(ErrBroken)
	}
	dir := filepath.Dir(d.Path)
	if left, _ := disk.Free(dir); e != nil && noRoom(e.Code(), left) {
		return i18n.E("ledger.disk_full", dir, err).Of(syscall.ENOSPC)
	}
	if errors.Is(err, ErrLacks) {
		return i18n.E(d.Broken, d.Path, err).Of(ErrLacks)
	}
	return err
}

// noRoom reports whether an error code of SQLite says that a file system is full that has so
// many bytes left: of what it cannot write it often says no more than that.
func noRoom(code int, left uint64) bool {
	const full, ioErr, least = 13, 10, 1 << 20
	return code&0xff == full || code&0xff == ioErr && left < least
}

// migrate brings an older file up to date, or makes it anew; the caller is alone.
func (d *File) migrate(ctx context.Context) error {
	if d.Migrations == nil {
		release, err := d.Base.Turn(ctx)
		if err != nil {
			return err
		}
		defer release()
		return d.create(ctx)
	}
	h, v, err := d.inspect(ctx)
	if err != nil {
		return err
	}
	if err := d.up(ctx, h.W); err != nil {
		err = fmt.Errorf("bring %s up to date from version %d: %w", d.Path, v, d.explain(err))
		return errors.Join(err, h.Close())
	}
	return h.Close()
}

// create makes the database beside its place and moves it there whole, so that
// nobody ever finds half a schema; the caller has the turn. What is left of a
// deleted one's WAL is removed: SQLite would replay it into the new file.
func (d *File) create(ctx context.Context) (err error) {
	base := filepath.Dir(d.Path)
	tmp := filepath.Join(base, "."+d.File+".new")
	for _, f := range []string{tmp, tmp + "-journal", tmp + "-wal", tmp + "-shm", d.Path + "-wal", d.Path + "-shm"} {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// SQLite gives its side files the mode of the database.
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, disk.FileMode)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	// It is synced once, when it is whole. Without a log of its own it needs none
	// of the files, syncs and checkpoints that the switch to WAL costs.
	h, err := connect(tmp, "journal_mode(MEMORY)", "synchronous(OFF)")
	if err != nil {
		return err
	}
	err = d.up(ctx, h.W)
	if err == nil && d.Fill != nil {
		err = d.Fill(ctx, h.W)
	}
	if err := errors.Join(err, h.Close()); err != nil {
		return err
	}
	if err := finishWhole(tmp); err != nil {
		return err
	}
	return (&disk.FS{}).Rename(tmp, d.Path)
}

// finishWhole marks a database that is written and closed as one with a WAL and
// makes it durable. The mark is the versions for writing and reading, bytes 18
// and 19 (SQLite, "Database File Format" 1.3.3); a connection that set it would
// write it through a journal.
func finishWhole(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{2, 2}, 18)
	return errors.Join(err, f.Sync(), f.Close())
}

// Check reopens the database if its file was deleted or replaced or lacks a part,
// and reports that it did: what was written since is then lost. It costs one stat where
// nothing happened. On an error the file that is open stays in use.
func (d *File) Check(ctx context.Context) (reopened bool, err error) {
	if d.Base == nil || d.current() {
		return false, nil
	}
	release, err := d.Base.Turn(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	if d.current() { // another goroutine was first
		return false, nil
	}
	h, err := d.takeTurn(ctx)
	if err != nil {
		return false, err
	}
	return true, d.swap(h)
}

// swap puts new handles in the place of the old ones once nobody uses these.
func (d *File) swap(h *Handles) error {
	d.mu.Lock()
	old := d.h
	if old == nil { // closed meanwhile
		d.mu.Unlock()
		return errors.Join(ErrClosed, h.Close())
	}
	d.h = h
	d.lacks.Store(false)
	d.mu.Unlock()
	_ = old.Close() // of a file that is gone
	return nil
}

func (d *File) current() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.h == nil {
		return true
	}
	id, err := fileIDOf(d.Path)
	return err == nil && id == d.h.id && !d.lacks.Load()
}

// Use calls f with the handles, which stay open until f returns. f must not use
// the database otherwise: a swap that waits keeps new users out.
func (d *File) Use(f func(h *Handles) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.h == nil {
		return ErrClosed
	}
	err := f(d.h)
	if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code() == 1 && strings.Contains(err.Error(), "no such ") {
		d.lacks.Store(true) // somebody dropped it: check makes it anew
	}
	return d.explain(err)
}

// Write is Use for those who need the writing connection, which a reader lacks.
func (d *File) Write(f func(h *Handles) error) error {
	return d.Use(func(h *Handles) error {
		if h.W == nil {
			return ErrReadOnly
		}
		return f(h)
	})
}

// Close closes the database; who uses it goes on to the end.
func (d *File) Close() error {
	d.mu.Lock()
	h := d.h
	d.h = nil
	d.mu.Unlock()
	if h == nil {
		return nil
	}
	return h.Close()
}
