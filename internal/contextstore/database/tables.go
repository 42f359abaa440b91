package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"toritsugi/internal/i18n"
)

// Tables are those of a Schema on a server.
type Tables struct {
	server *Server
	base   *Base // nil for a reader
	h      *Handles
	closed atomic.Bool
}

var _, _ Database = (*File)(nil), (*Tables)(nil)

// open brings the tables of a schema up to date, or makes them, in a turn of its own, and opens
// them. Programs of the version before go on beside it; none begins.
func (s *Server) open(ctx context.Context, b *Base, d *File) (Database, error) {
	t := s.tables(b, d)
	release, err := b.Turn(ctx)
	if err == nil {
		defer release()
		err = t.bringUp(ctx, d)
	}
	if err != nil {
		return nil, errors.Join(s.Explain(err), t.Close())
	}
	return t, nil
}

// OpenToRead opens the tables of a schema, which must be there, for reading only.
func (s *Server) OpenToRead(ctx context.Context, d Schema) (*Tables, error) {
	t := s.tables(nil, &File{Schema: d})
	v, err := d.tablesVersion(ctx, t.h.R)
	if err == nil {
		err = d.expectTables(s.name, v)
	}
	if err != nil {
		return nil, errors.Join(s.Explain(err), t.Close())
	}
	return t, nil
}

// tables are opened ones, whatever the server has of them.
func (s *Server) tables(b *Base, d *File) *Tables {
	t := &Tables{server: s, base: b, h: &Handles{R: s.DB(), Stmts: map[string]Stmt{}, Postgres: true}}
	if b == nil {
		return t
	}
	t.h.W, t.h.alone = t.h.R, s.alone
	for name, query := range d.Statements {
		t.h.Stmts[name] = text{t.h.W, query}
	}
	return t
}

// alone has a transaction be the only one of its kind: who writes to house.db decides by what it
// has read.
func (s *Server) alone(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(?::int4, ?::int4)`, s.schema, byteWrite)
	return err
}

// text is a statement that each connection of the pool keeps prepared by its text.
type text struct {
	db    *sql.DB
	query string
}

// ExecContext runs it.
func (t text) ExecContext(ctx context.Context, args ...any) (sql.Result, error) {
	return t.db.ExecContext(ctx, t.query, args...)
}

// QueryContext asks it.
func (t text) QueryContext(ctx context.Context, args ...any) (*sql.Rows, error) {
	return t.db.QueryContext(ctx, t.query, args...)
}

// Close does nothing: it goes with the connections.
func (t text) Close() error { return nil }

// versions is the table of the versions of a schema's tables.
func (s Schema) versions() string { return "goose_" + strings.TrimSuffix(s.File, ".db") }

// tablesVersion is 0 where there are no tables.
func (s Schema) tablesVersion(ctx context.Context, db *sql.DB) (v int64, err error) {
	var there bool
	err = db.QueryRowContext(ctx, `SELECT to_regclass(?) IS NOT NULL`, s.versions()).Scan(&there)
	if err == nil && there {
		err = db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+s.versions()+` WHERE is_applied`).Scan(&v)
	}
	return v, err
}

// expectTables returns an error for any version but this program's.
func (s Schema) expectTables(name string, v int64) error {
	switch want := int64(len(s.Postgres)); {
	case v == 0: // there is none yet
		return i18n.E("postgres.older", name, v, s.versions(), want).Of(fmt.Errorf("%w: %w", ErrOlder, fs.ErrNotExist))
	case v > want:
		return i18n.E("postgres.newer", name, v, s.versions(), want).Of(ErrNewer)
	case v < want:
		return i18n.E("postgres.older", name, v, s.versions(), want).Of(ErrOlder)
	}
	return nil
}

func (t *Tables) bringUp(ctx context.Context, d *File) error {
	v, err := d.tablesVersion(ctx, t.h.R)
	if err != nil {
		return err
	}
	if err := d.expectTables(t.server.name, v); !errors.Is(err, ErrOlder) || t.h.W == nil {
		return err
	}
	var fill func(context.Context, *sql.Tx) error
	if d.Fill != nil {
		fill = func(ctx context.Context, tx *sql.Tx) error { return d.Fill(ctx, tx) }
	}
	return migrate(ctx, t.h.W, goose.DialectPostgres, d.Postgres, fill, goose.WithTableName(d.versions()))
}

// Use calls f with the handles.
func (t *Tables) Use(f func(h *Handles) error) error {
	if t.closed.Load() {
		return ErrClosed
	}
	return t.server.Explain(f(t.h))
}

// Write is Use for those who need to write.
func (t *Tables) Write(f func(h *Handles) error) error {
	return t.Use(func(h *Handles) error {
		if h.W == nil {
			return ErrReadOnly
		}
		return f(h)
	})
}

// Check looks now and then whether the connection with the locks still lives. Tables are never
// replaced while they are open.
func (t *Tables) Check(ctx context.Context) (reopened bool, err error) {
	if t.base == nil {
		return false, nil
	}
	if err = t.base.locks.(*advisory).alive(ctx); errors.Is(err, errLost) {
		t.base.alone.Store(false)
	}
	return false, t.server.Explain(err)
}

// Compact does nothing: the server gives room back by itself (autovacuum).
func (t *Tables) Compact(context.Context) (freed int64, err error) { return 0, nil }

// Replace is an error: a server mends its own tables.
func (t *Tables) Replace(context.Context) error {
	return fmt.Errorf("replace the tables of %s: %w", t.server.name, ErrBroken)
}

// Close closes the handles, the pool stays.
func (t *Tables) Close() error {
	t.closed.Store(true)
	return t.h.R.Close()
}

// stateOf is the SQLSTATE of an error of PostgreSQL, "" for another one.
func stateOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// away reports whether an error of PostgreSQL may be gone a moment later: the server cannot be
// reached or became a replica, a statement waited too long or met another's locks.
func away(err error) bool {
	state := stateOf(err)
	return unreached(err) || strings.HasPrefix(state, "40") || state == "25006" || state == "55P03" || state == "57014"
}

// unreached reports whether an error of PostgreSQL is that of a connection: there is none, it was
// ended, there are too many, or the server starts or stops.
func unreached(err error) bool {
	if state := stateOf(err); state != "" {
		return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P") || state == "53300"
	}
	var connect *pgconn.ConnectError
	var network *net.OpError
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, pgconn.ErrReadOnlyConnection) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn)
}

// Explain gives an error of the server the text that says what to do.
func (s *Server) Explain(err error) error {
	if e := (*i18n.Error)(nil); err == nil || errors.As(err, &e) {
		return err
	}
	switch state := stateOf(err); {
	case state == "25006" || errors.Is(err, pgconn.ErrReadOnlyConnection):
		s.pool.Reset() // it may have another server behind it now
		return i18n.E("postgres.read_only", s.name).Of(errors.Join(ErrUnreachable, err))
	case state == "53100":
		return i18n.E("postgres.disk_full", s.name, err).Of(errors.Join(syscall.ENOSPC, err))
	case state == "42501":
		return i18n.E("postgres.rights", s.name, err).Of(err)
	case strings.HasPrefix(state, "28"), state == "3D000":
		return i18n.E("postgres.login", s.name, err).Of(err)
	case unreached(err):
		return i18n.E("postgres.unreachable", s.name, err).Of(errors.Join(ErrUnreachable, err))
	}
	return err
}
