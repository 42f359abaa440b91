// Package database opens the SQLite files of a base directory, or the same tables in a schema of
// PostgreSQL: makes them, brings them up to date, notices that a file was deleted or replaced. The
// lock of the place is with it, by which the processes that share it take turns.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"
	"modernc.org/sqlite" // the driver "sqlite"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
)

// Schema says what a database of the base directory is. One that can be derived (SQL) is
// made anew where it is older than this program or lacks a part; else its Migrations bring
// it up to date.
type Schema struct {
	File       string   // in the base directory
	SQL        string   // makes all of it, the table of versions and this program's version in it too
	Version    int64    // that SQL makes
	Migrations []string // SQL of one that cannot be derived: the first makes version 1
	Sync       string   // PRAGMA synchronous
	Busy       int      // ms to wait for another process's write, once it is open
	Erase      bool     // what is removed from it is overwritten
	Postgres   []string // the migrations of its tables in PostgreSQL; nil for what lies in files only
	Newer      string   // texts: written by a newer program
	Broken     string   // no database, or a malformed one
}

// openingBusy is how long, in ms, opening waits for another process: switching
// to WAL and recovery need the file alone for a moment.
const openingBusy = 10_000

// Errors of opening a database, wrapped in their texts.
var (
	ErrNewer  = errors.New("newer schema")
	ErrOlder  = errors.New("older schema")
	ErrBroken = errors.New("unreadable")
	ErrLacks  = errors.New("a part is missing") // of what is derived: it is made anew; of a server: nothing is there yet
	ErrClosed = errors.New("the store is closed")

	ErrReadOnly = errors.New("opened for reading only")
)

// Database is an open one: a File of a base directory, or Tables of a server. Its methods may
// be called from several goroutines.
type Database interface {
	// Use calls f with the handles, which stay open until f returns.
	Use(f func(h *Handles) error) error
	// Write is Use for those who need the writing connection, which a reader lacks.
	Write(f func(h *Handles) error) error
	// Check reopens a file that was deleted or replaced, and reports that it did.
	Check(ctx context.Context) (reopened bool, err error)
	// Compact gives back the room that deleted rows left, and returns how many bytes that were.
	Compact(ctx context.Context) (freed int64, err error)
	// Replace begins anew where what is there turned out to be malformed.
	Replace(ctx context.Context) error
	Close() error
}

// Handles are the connections to one file, or to the server.
type Handles struct {
	W        *sql.DB         // of a file: one connection, BEGIN IMMEDIATE; nil for a reader
	R        *sql.DB         // of a file: four, query_only
	Stmts    map[string]Stmt // on W
	Postgres bool
	id       fileID
	alone    func(context.Context, *sql.Tx) error // begins a transaction as the only one that writes
}

// Stmt is a statement that is asked for often.
type Stmt interface {
	ExecContext(ctx context.Context, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, args ...any) (*sql.Rows, error)
	Close() error
}

// Begin begins a transaction that writes, as the only one: it waits for another's.
func (h *Handles) Begin(ctx context.Context) (*sql.Tx, error) {
	tx, err := h.W.BeginTx(ctx, nil) // of a file immediate: see connect
	if err == nil && h.alone != nil {
		if err = h.alone(ctx, tx); err != nil {
			return nil, errors.Join(err, tx.Rollback())
		}
	}
	return tx, err
}

// fileID tells a file from another that took its name.
type fileID struct{ dev, ino uint64 }

// fileIDOf returns the identity of the file at path. It must not open it: closing
// any descriptor of a file drops the POSIX locks that SQLite holds on it.
func fileIDOf(path string) (fileID, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fileID{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return fileID{uint64(st.Dev), uint64(st.Ino)}, nil //nolint:unconvert // the widths differ by platform
}

// dsn names a file whatever characters its path holds; pragmas run in order.
func dsn(path string, query url.Values) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}

// regular refuses what is no plain file: SQLite would wait at a pipe.
func regular(path string) error {
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("it is no plain file: %w", ErrBroken)
	}
	return err
}

// Connect opens the file at path, which must exist; nothing is written yet.
func (s Schema) Connect(path string) (*Handles, error) {
	// busy_timeout comes first: switching to WAL itself may find the file busy.
	pragmas := []string{busyPragma, "journal_mode(WAL)", "synchronous(" + s.Sync + ")"}
	if s.Erase {
		pragmas = append(pragmas, "secure_delete(1)")
	}
	return connect(path, pragmas...)
}

var busyPragma = fmt.Sprintf("busy_timeout(%d)", openingBusy)

func connect(path string, pragmas ...string) (*Handles, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	w, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_pragma": pragmas}))
	if err != nil {
		return nil, err
	}
	w.SetMaxOpenConns(1)
	// schema_version makes a new connection read at once: its file and the WAL
	// beside it then belong together.
	r, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"rw"},
		"_pragma": {busyPragma, "schema_version", "query_only(1)"}}))
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	r.SetMaxOpenConns(4)
	r.SetMaxIdleConns(4)
	r.SetConnMaxIdleTime(time.Minute)
	return &Handles{W: w, R: r, Stmts: map[string]Stmt{}}, nil
}

// Close closes the connections.
func (h *Handles) Close() error {
	var errs []error
	for _, s := range h.Stmts {
		errs = append(errs, s.Close())
	}
	for _, db := range []*sql.DB{h.R, h.W} { // the last one to close empties the WAL
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// latest is the schema version of this program.
func (s Schema) latest() int64 { return max(s.Version, int64(len(s.Migrations))) }

// partOf finds what a statement of a schema makes.
var partOf = lazyregexp.New(`(?m)^CREATE (?:UNIQUE )?(?:TABLE|INDEX|TRIGGER|VIEW) "?(\w+)`)

// version returns a database's schema version. One with nothing in it, and one of
// this program's version that somebody dropped a part of, is ErrLacks where all
// of it can be derived; else the first has version 0. Tables that no migration of
// ours made are ErrBroken.
func (s Schema) version(ctx context.Context, db *sql.DB) (v int64, err error) {
	var parts, ours string
	err = db.QueryRowContext(ctx, `SELECT coalesce(group_concat(name), ''), coalesce(max(CASE name WHEN 'goose_db_version' THEN name END), '') FROM sqlite_master`).Scan(&parts, &ours)
	if err != nil {
		return 0, err
	}
	if parts != "" {
		if ours == "" {
			return 0, fmt.Errorf("its tables were made by another program: %w", ErrBroken)
		}
		if err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&v); err != nil {
			return 0, err
		}
	}
	if s.Migrations != nil || v != s.latest() && parts != "" {
		return v, nil
	}
	there := strings.Split(parts, ",")
	for _, m := range partOf().FindAllStringSubmatch(s.SQL, -1) {
		if !slices.Contains(there, m[1]) {
			return v, fmt.Errorf("%s is not in it: %w", m[1], ErrLacks)
		}
	}
	return v, nil
}

// up makes the schema in a database with nothing in it, or brings an older one up to date.
func (s Schema) up(ctx context.Context, db *sql.DB) error {
	if s.Migrations == nil {
		_, err := db.ExecContext(ctx, s.SQL)
		return err
	}
	return migrate(ctx, db, goose.DialectSQLite3, s.Migrations, nil)
}

// migrate runs the scripts that a database lacks; the first makes version 1, and then is called
// in its transaction, where it is not nil.
func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect, scripts []string, then func(context.Context, *sql.Tx) error, options ...goose.ProviderOption) error {
	// As functions: goose's reader of SQL files takes 16 MiB (3.27).
	var all []*goose.Migration
	for i, script := range scripts {
		all = append(all, goose.NewGoMigration(int64(i+1), &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, script)
			if err == nil && i == 0 && then != nil {
				err = then(ctx, tx)
			}
			return err
		}}, nil))
	}
	p, err := goose.NewProvider(dialect, db, nil, append(options, goose.WithGoMigrations(all...), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))...)
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// OpenToRead opens the file, which must exist, for reading only, also on a disk that
// cannot be written.
func (d *File) OpenToRead(ctx context.Context) (err error) {
	d.h, err = d.reader(ctx)
	return err
}

func (d *File) reader(ctx context.Context) (*Handles, error) {
	h, err := d.connectReader(ctx, "mode", "ro")
	if err != nil && !errors.Is(err, ErrBroken) && !errors.Is(err, ErrLacks) && !errors.Is(err, ErrNewer) && !errors.Is(err, ErrOlder) {
		// A WAL needs a file beside it that can be written. Without a WAL the file
		// can be read as it is.
		if st, serr := os.Stat(d.Path + "-wal"); serr == nil && st.Size() > 0 {
			return nil, i18n.E("ledger.stale_index", d.Path, d.File+"-wal").Of(err)
		}
		h, err = d.connectReader(ctx, "immutable", "1")
	}
	return h, err
}

func (d *File) connectReader(ctx context.Context, key, value string) (*Handles, error) {
	if err := regular(d.Path); err != nil {
		return nil, d.explain(err)
	}
	r, err := sql.Open("sqlite", dsn(d.Path, url.Values{"mode": {"ro"}, key: {value},
		"_pragma": {busyPragma, "query_only(1)"}}))
	if err != nil {
		return nil, err
	}
	r.SetMaxOpenConns(4)
	h := &Handles{R: r}
	v, err := d.version(ctx, r)
	if err == nil {
		err = d.expect(v)
	}
	if err != nil {
		return nil, errors.Join(d.explain(err), h.Close())
	}
	return h, nil
}

// tries is how often a write is made before its error counts (store-v3 §11.3).
const tries = 3

// Misshapen gives the error of a query, by which a table is not as we make it, the cause
// ErrBroken: SQLITE_ERROR, or PostgreSQL's that there is no such table, column or function.
func Misshapen(err error) error {
	if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code() == 1 || slices.Contains([]string{"42P01", "42703", "42883"}, stateOf(err)) {
		return errors.Join(ErrBroken, err)
	}
	return err
}

// Retry makes a write again that fails for another reason than its content.
func Retry(ctx context.Context, f func() error) (err error) {
	for range tries {
		if err = f(); err == nil || IsUnique(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// IsUnique reports that a row like it exists: SQLITE_CONSTRAINT_UNIQUE, or PostgreSQL's
// unique_violation.
func IsUnique(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == 2067 || stateOf(err) == "23505"
}

// ErrUnreachable marks an error of a database that may be gone a moment later:
// the file is locked, cannot be opened or read now; the server cannot be reached.
var ErrUnreachable = errors.New("the database cannot be reached")

// Unreachable marks the errors of a connection: SQLite's BUSY, LOCKED, IOERR,
// CANTOPEN and PROTOCOL, and those of a server that away tells.
func Unreachable(err error) error {
	var e *sqlite.Error
	if errors.Is(err, ErrClosed) || away(err) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case 5, 6, 10, 14, 15:
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
	return err
}

// Null is a text as a column holds it that has NULL for none.
func Null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Snapshot copies a database as it is at one moment, while others write to it, into a file that
// is not there yet; its free pages, and what was deleted on them, are left out. A database that
// does not exist is fs.ErrNotExist.
func Snapshot(ctx context.Context, path, to string) error {
	if err := regular(path); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, disk.FileMode) // SQLite would make it for others to read
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	err = vacuumInto(ctx, path, to, "mode", "ro")
	if err != nil && ctx.Err() == nil { // see File.reader: a disk that cannot be written
		if st, serr := os.Stat(path + "-wal"); serr != nil || st.Size() == 0 {
			if vacuumInto(ctx, path, to, "immutable", "1") == nil {
				return nil
			}
		}
	}
	return err
}

func vacuumInto(ctx context.Context, path, to, key, value string) error {
	db, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"ro"}, key: {value}, "_pragma": {busyPragma}}))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, to)
	return errors.Join(err, db.Close())
}
