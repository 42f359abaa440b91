package contextstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"
	versions "github.com/pressly/goose/v3/database"
	"golang.org/x/sys/unix"
	"modernc.org/sqlite" // the driver "sqlite"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

//go:embed migrations/*.sql migrations/whole/*.sql migrations/house/*.sql
var migrations embed.FS

// schema says what a database of the base directory is.
type schema struct {
	file       string // in the base directory
	migrations string // directory of the embedded files
	whole      string // embedded file with what all of them lead to; "" where they are quick enough
	sync       string // PRAGMA synchronous
	making     bool   // nobody else sees it yet, see create
	busy       int    // ms to wait for another process's write, once it is open
	newer      string // texts: written by a newer program
	broken     string // no database, or a malformed one
}

// openingBusy is how long, in ms, opening waits for another process: switching
// to WAL and recovery need the file alone for a moment.
const openingBusy = 10_000

// Errors of opening a database, wrapped in their texts.
var (
	errNewer  = errors.New("newer schema")
	errOlder  = errors.New("older schema")
	errBroken = errors.New("unreadable")
	errLacks  = errors.New("a part is missing") // of what is derived: it is made anew
	errClosed = errors.New("the store is closed")

	errReadOnly = errors.New("opened for reading only")
)

// database is one SQLite file of a base directory, reopened when somebody
// deletes or replaces it. Its methods may be called from several goroutines.
type database struct {
	schema
	path  string
	house *house // nil for a reader
	// fresh fills a database that is being made, before others can see it and
	// before it is ready.
	fresh func(ctx context.Context, h *handles) error
	// ready prepares what the owner needs of newly opened handles.
	ready func(ctx context.Context, h *handles) error

	mu    sync.RWMutex // held for reading by whoever uses h, for writing by who swaps it
	h     *handles
	lacks atomic.Bool // a part of the schema was missed since h was opened
}

// handles are the connections to one file.
type handles struct {
	w     *sql.DB // one connection, BEGIN IMMEDIATE; nil for a reader
	r     *sql.DB // four, query_only
	id    fileID
	stmts map[string]*sql.Stmt // on w
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
		err = fmt.Errorf("it is no plain file: %w", errBroken)
	}
	return err
}

// connect opens the file, which must exist; nothing is written yet.
func (s schema) connect(path string) (*handles, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	busy := fmt.Sprintf("busy_timeout(%d)", openingBusy)
	// busy_timeout comes first: switching to WAL itself may find the file busy.
	pragmas := []string{busy, "journal_mode(WAL)", "synchronous(" + s.sync + ")"}
	if s.making {
		pragmas = []string{"journal_mode(MEMORY)", "synchronous(OFF)"}
	}
	w, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_pragma": pragmas}))
	if err != nil {
		return nil, err
	}
	w.SetMaxOpenConns(1)
	// schema_version makes a new connection read at once: its file and the WAL
	// beside it then belong together.
	r, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"rw"},
		"_pragma": {busy, "schema_version", "query_only(1)"}}))
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	r.SetMaxOpenConns(4)
	r.SetMaxIdleConns(4)
	r.SetConnMaxIdleTime(time.Minute)
	return &handles{w: w, r: r, stmts: map[string]*sql.Stmt{}}, nil
}

// prepare makes a statement on the writing connection under a name.
func (h *handles) prepare(ctx context.Context, name, query string) error {
	s, err := h.w.PrepareContext(ctx, query) //nolint:sqlclosecheck // close closes it
	if err != nil {
		return fmt.Errorf("prepare %s: %w", name, err)
	}
	h.stmts[name] = s
	return nil
}

func (h *handles) close() error {
	var errs []error
	for _, s := range h.stmts {
		errs = append(errs, s.Close())
	}
	for _, db := range []*sql.DB{h.r, h.w} { // the last one to close empties the WAL
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// latest is the newest schema version that this program has.
func (s schema) latest() (n int64, err error) {
	files, err := fs.Glob(migrations, s.migrations+"/*.sql")
	for _, f := range files {
		v, perr := versionOf(f)
		if perr != nil {
			return 0, perr
		}
		n = max(n, v)
	}
	return n, err
}

// versionOf is the schema version that a migration leads to.
func versionOf(file string) (int64, error) {
	number, _, _ := strings.Cut(filepath.Base(file), "_")
	return strconv.ParseInt(number, 10, 64)
}

// partOf finds what a statement of a schema makes.
var partOf = regexp.MustCompile(`(?m)^CREATE (?:UNIQUE )?(?:TABLE|INDEX|TRIGGER|VIEW) "?(\w+)`)

// version returns a database's schema version. One with nothing in it, and one of
// this program's version that somebody dropped a part of, is errLacks where all
// of it can be derived; else the first has version 0. Tables that no migration of
// ours made are errBroken.
func (s schema) version(ctx context.Context, db *sql.DB) (v int64, err error) {
	var parts, ours string
	err = db.QueryRowContext(ctx, `SELECT coalesce(group_concat(name), ''), coalesce(max(CASE name WHEN 'goose_db_version' THEN name END), '') FROM sqlite_master`).Scan(&parts, &ours)
	if err != nil {
		return 0, err
	}
	if parts != "" {
		if ours == "" {
			return 0, fmt.Errorf("its tables were made by another program: %w", errBroken)
		}
		if err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&v); err != nil {
			return 0, err
		}
	}
	if s.whole == "" {
		return v, nil
	}
	if want, err := s.latest(); err != nil || v != want && parts != "" {
		return v, err
	}
	whole, err := migrations.ReadFile(s.whole)
	if err != nil {
		return v, err
	}
	there := strings.Split(parts, ",")
	for _, m := range partOf.FindAllSubmatch(whole, -1) {
		if !slices.Contains(there, string(m[1])) {
			return v, fmt.Errorf("%s is not in it: %w", m[1], errLacks)
		}
	}
	return v, nil
}

// up brings the schema up to date.
func (s schema) up(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, s.migrations)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// lay gives a database with nothing in it the schema that up would bring it to,
// in one transaction: a start on a new directory takes half the time so. For each
// column that a migration adds, SQLite reads its whole schema again; what they
// lead to is therefore kept as one file where there is one.
func (s schema) lay(ctx context.Context, db *sql.DB) error {
	files, err := fs.Glob(migrations, s.migrations+"/*.sql") // in order
	if err != nil {
		return err
	}
	known, err := versions.NewStore(goose.DialectSQLite3, goose.DefaultTablename)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing, after the commit
	if s.whole != "" {
		err = execFile(ctx, tx, s.whole) // has the table of versions
	} else {
		err = known.CreateVersionTable(ctx, tx)
	}
	if err != nil {
		return err
	}
	if err := known.Insert(ctx, tx, versions.InsertRequest{Version: 0}); err != nil {
		return err
	}
	for _, f := range files {
		v, err := versionOf(f)
		if err != nil {
			return err
		}
		if s.whole == "" {
			if err := execFile(ctx, tx, f); err != nil {
				return err
			}
		}
		if err := known.Insert(ctx, tx, versions.InsertRequest{Version: v}); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// execFile does what an embedded file says, of a migration its way up.
func execFile(ctx context.Context, tx *sql.Tx, file string) error {
	text, err := migrations.ReadFile(file)
	if err != nil {
		return err
	}
	up, _, _ := strings.Cut(string(text), "-- +goose Down") // the other marks are comments
	if _, err := tx.ExecContext(ctx, up); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// attach opens the database, makes it where there is none and migrates an older
// one, for which no other process may be running.
func (d *database) attach(ctx context.Context) error {
	h, err := d.take(ctx)
	if errors.Is(err, errOlder) {
		old := func() (bool, error) {
			h, err := d.take(ctx)
			if err == nil {
				err = h.close()
			}
			if errors.Is(err, errOlder) {
				return true, nil
			}
			return false, err
		}
		if err := d.house.migrate(ctx, old, func() error { return d.migrate(ctx) }); err != nil {
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
func (d *database) take(ctx context.Context) (*handles, error) {
	release, err := d.house.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return d.takeTurn(ctx)
}

// takeTurn opens the file, or makes it; the caller has the turn.
func (d *database) takeTurn(ctx context.Context) (*handles, error) {
	st, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && st.Mode().IsRegular() && st.Size() == 0:
		if err := d.create(ctx); err != nil {
			return nil, fmt.Errorf("create %s: %w", d.path, err)
		}
	case err != nil:
		return nil, err
	}
	h, v, err := d.inspect(ctx)
	if err == nil && v == 0 { // a database with nothing in it
		err = errors.Join(errLacks, h.close())
	}
	if errors.Is(err, errLacks) {
		if err := d.create(ctx); err != nil {
			return nil, fmt.Errorf("create %s: %w", d.path, err)
		}
		h, v, err = d.inspect(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := d.settle(ctx, h, v); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// inspect connects and reads the schema version.
func (d *database) inspect(ctx context.Context) (*handles, int64, error) {
	h, err := d.connect(d.path)
	if err != nil {
		return nil, 0, d.explain(err)
	}
	v, err := d.version(ctx, h.w)
	if err == nil {
		h.id, err = fileIDOf(d.path)
	}
	if err != nil {
		return nil, 0, errors.Join(d.explain(err), h.close())
	}
	return h, v, nil
}

// settle refuses what is not of this program's version and prepares the rest.
func (d *database) settle(ctx context.Context, h *handles, v int64) error {
	if err := d.expect(v); err != nil {
		return err
	}
	// From here on a database that somebody else has locked is not waited for as
	// long as at the start.
	if _, err := h.w.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout=%d", d.busy)); err != nil {
		return err
	}
	err := d.ready(ctx, h)
	if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code() == 1 { // SQLITE_ERROR: a table is not as we make it
		err = errors.Join(errBroken, err)
	}
	return d.explain(err)
}

// expect returns an error for any schema version but this program's.
func (d *database) expect(v int64) error {
	want, err := d.latest()
	switch {
	case err != nil:
		return err
	case v > want:
		return because(errNewer, d.newer, d.path, v, want)
	case v < want:
		return because(errOlder, "ledger.older", d.path, v, want)
	}
	return nil
}

// explain gives an error that says that the file is no database, a malformed one
// or one that lacks a part, the text that says what to do.
func (d *database) explain(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && (e.Code()&0xff == 11 || e.Code()&0xff == 26) || errors.Is(err, errBroken) {
		return because(errBroken, d.broken, d.path, err)
	}
	if errors.Is(err, errLacks) {
		return because(errLacks, d.broken, d.path, err)
	}
	return err
}

// because is a text with a cause that callers decide on.
func because(cause error, key string, args ...any) error {
	e := i18n.E(key, args...)
	e.Err = cause
	return e
}

// migrate brings an older file up to date; the caller is alone.
func (d *database) migrate(ctx context.Context) error {
	h, v, err := d.inspect(ctx)
	if err != nil {
		return err
	}
	if err := d.up(ctx, h.w); err != nil {
		err = fmt.Errorf("bring %s up to date from version %d: %w", d.path, v, d.explain(err))
		return errors.Join(err, h.close())
	}
	return h.close()
}

// create makes the database beside its place and moves it there whole, so that
// nobody ever finds half a schema; the caller has the turn. What is left of a
// deleted one's WAL is removed: SQLite would replay it into the new file.
func (d *database) create(ctx context.Context) (err error) {
	base := filepath.Dir(d.path)
	tmp := filepath.Join(base, "."+d.file+".new")
	for _, f := range []string{tmp, tmp + "-journal", tmp + "-wal", tmp + "-shm", d.path + "-wal", d.path + "-shm"} {
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
	making := d.schema
	making.making = true
	h, err := making.connect(tmp)
	if err != nil {
		return err
	}
	err = d.lay(ctx, h.w)
	if err == nil && d.fresh != nil {
		err = d.fresh(ctx, h)
	}
	if err := errors.Join(err, h.close()); err != nil {
		return err
	}
	if err := finishWhole(tmp); err != nil {
		return err
	}
	return (&disk.FS{}).Rename(tmp, d.path)
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

// check reopens the database if its file was deleted or replaced or lacks a part,
// and reports that it did: what was written since is then lost. It costs one stat where
// nothing happened. On an error the file that is open stays in use.
func (d *database) check(ctx context.Context) (reopened bool, err error) {
	if d.house == nil || d.current() {
		return false, nil
	}
	release, err := d.house.turn(ctx)
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
func (d *database) swap(h *handles) error {
	d.mu.Lock()
	old := d.h
	if old == nil { // closed meanwhile
		d.mu.Unlock()
		return errors.Join(errClosed, h.close())
	}
	d.h = h
	d.lacks.Store(false)
	d.mu.Unlock()
	_ = old.close() // of a file that is gone
	return nil
}

func (d *database) current() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.h == nil {
		return true
	}
	id, err := fileIDOf(d.path)
	return err == nil && id == d.h.id && !d.lacks.Load()
}

// use calls f with the handles, which stay open until f returns. f must not use
// the database otherwise: a swap that waits keeps new users out.
func (d *database) use(f func(h *handles) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.h == nil {
		return errClosed
	}
	err := f(d.h)
	if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code() == 1 && strings.Contains(err.Error(), "no such ") {
		d.lacks.Store(true) // somebody dropped it: check makes it anew
	}
	return d.explain(err)
}

// write is use for those who need the writing connection, which a reader lacks.
func (d *database) write(f func(h *handles) error) error {
	return d.use(func(h *handles) error {
		if h.w == nil {
			return errReadOnly
		}
		return f(h)
	})
}

func (d *database) close() error {
	d.mu.Lock()
	h := d.h
	d.h = nil
	d.mu.Unlock()
	if h == nil {
		return nil
	}
	return h.close()
}
