package tables

import (
	"context"
	"database/sql"
	_ "embed" // schema.sql
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	driver "modernc.org/sqlite"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/disk"
)

//go:embed schema.sql
var schemaSQL string

// File is the name of the SQLite database of a base directory.
const File = "ledger.db"

// objectSQL is what version 2 of the tables adds to schema.sql: the object of a bucket that holds what
// the row of a line stands for (MoveOut).
const objectSQL = `ALTER TABLE lines ADD COLUMN object TEXT`

// schemaVersion is kept in the file, as its user_version.
const schemaVersion = 2

// busy is how long a statement waits for another process's, in ms.
const busy = 10_000

// sqlite is an engine.
type sqlite struct {
	h *database.Handles

	mu     sync.Mutex
	noSync bool // durability "os"
	full   bool // PRAGMA synchronous of the writing connection
}

// sqliteJSON is a line as JSON.
const sqliteJSON = "CASE WHEN json_valid(CAST(l.raw AS TEXT)) THEN CAST(l.raw AS TEXT) END"

// OpenSQLite opens the ledger.db of a base directory, which is made where it is missing.
// With noSync, commits are left to the kernel to sync (durability "os").
func OpenSQLite(ctx context.Context, o Options, noSync bool) (*DB, error) {
	path := filepath.Join(o.Base, File)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, disk.FileMode) // SQLite would make it for others to read
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	h, err := database.Schema{File: File, Sync: "FULL"}.Connect(path)
	if err != nil {
		return nil, err
	}
	e := &sqlite{h: h, noSync: noSync, full: true}
	if err := e.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), h.Close())
	}
	return start(o, e)
}

// prepare makes the tables where they are missing.
func (e *sqlite) prepare(ctx context.Context) error {
	if _, err := e.h.W.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout=%d", busy)); err != nil {
		return err
	}
	return e.inTx(ctx, func(tx *sql.Tx) error {
		var v int
		if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&v); err != nil || v == schemaVersion {
			return err
		}
		if v > schemaVersion {
			return fmt.Errorf("its tables are of version %d, and this program knows version %d: %w", v, schemaVersion, database.ErrNewer)
		}
		script := objectSQL + fmt.Sprintf(";\nPRAGMA user_version=%d;", schemaVersion)
		if v == 0 {
			script = strings.ReplaceAll(schemaSQL, "{json}", sqliteJSON) + script
		}
		_, err := tx.ExecContext(ctx, script)
		return err
	})
}

func (e *sqlite) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := e.h.W.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(trouble(err), tx.Rollback())
	}
	return trouble(tx.Commit())
}

// trouble gives an error of the disk the name that it has elsewhere: SQLITE_FULL and SQLITE_IOERR.
func trouble(err error) error {
	var s *driver.Error
	switch {
	case !errors.As(err, &s):
		return err
	case s.Code()&0xff == 13:
		return errors.Join(syscall.ENOSPC, err)
	case s.Code()&0xff == 10:
		return errors.Join(syscall.EIO, err)
	}
	return err
}

// sqliteNow is the time in ms since 1970.
const sqliteNow = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`

func sqliteText(text string) string {
	return strings.NewReplacer("{now}", sqliteNow, "{each}", "json_each(?)").Replace(text)
}

// atOnce implements engine: what is in the WAL survives the process.
func (e *sqlite) atOnce() bool { return true }

// run implements engine.
func (e *sqlite) run(ctx context.Context, all []stmt, durable bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if durable = durable && !e.noSync; durable != e.full {
		mode := "NORMAL" // the WAL is not synced at a commit
		if durable {
			mode = "FULL"
		}
		if _, err := e.h.W.ExecContext(ctx, "PRAGMA synchronous="+mode); err != nil {
			return err
		}
		e.full = durable
	}
	return e.inTx(ctx, func(tx *sql.Tx) error {
		for _, s := range all {
			if strings.HasPrefix(s.sql, "SELECT") {
				var one int
				err := tx.QueryRowContext(ctx, sqliteText(s.sql), s.args...).Scan(&one)
				if errors.Is(err, sql.ErrNoRows) {
					err = demanded(s.must)
				}
				if err != nil {
					return err
				}
				continue
			}
			r, err := tx.ExecContext(ctx, sqliteText(s.sql), s.args...)
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); s.must != "" && (err != nil || n == 0) {
				return errors.Join(demanded(s.must), err)
			}
		}
		return nil
	})
}

// query implements engine.
func (e *sqlite) query(ctx context.Context, text string, args []any, each func(scan func(...any) error) error) error {
	return database.Each(ctx, e.h.R, func(rows *sql.Rows) error { return each(rows.Scan) }, sqliteText(text), args...)
}

// unreachable implements engine: another process writes for longer than is waited for. An error of
// the disk is told.
func (e *sqlite) unreachable(err error) bool {
	var s *driver.Error
	return errors.As(err, &s) && (s.Code()&0xff == busyCode || s.Code()&0xff == lockedCode)
}

// SQLITE_BUSY and SQLITE_LOCKED.
const (
	busyCode   = 5
	lockedCode = 6
)

func (e *sqlite) close() error { return e.h.Close() }
