// Package index keeps tasks.db, or its tables in PostgreSQL: a row for each run, copied from what the
// directories say, for listings and for the rule that a task has one live run. It knows rows alone.
// The file can be deleted, also while it is open; no error of it fails a task.
package index

import (
	"context"
	"database/sql"
	_ "embed" // the tables
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// What a run that has not ended looks like, and one whose end may not be
// finished. Indexes are partial by exactly these words.
const (
	live       = `status NOT IN ('completed', 'stopped', 'failed')`
	unfinished = live + ` OR phase <> ''`
)

// ErrNewerOwner says that a row is of a later owner than who writes it.
var ErrNewerOwner = errors.New("the row belongs to a later owner")

// File is the name of the index in a base directory.
const File = "tasks.db"

// The tables, and what SQLite and PostgreSQL have of their own.
var (
	//go:embed tasks.sql
	tasksSQL string
	//go:embed sqlite.sql
	sqliteSQL string
	//go:embed postgres.sql
	postgresSQL string
)

// version is that of tasks.db in SQLite.
const version = 5

// schema is what both are made of. The first script of PostgreSQL makes the tables; each later one
// is a change of them, with all of postgres.sql behind it.
var schema = sync.OnceValue(func() database.Schema {
	return database.Schema{File: File, SQL: sqlOf(tasksSQL + sqliteSQL), Version: version, Sync: "NORMAL", Busy: 250, Newer: "ledger.newer_index", Broken: "ledger.broken_index",
		Postgres: []string{database.Translated(sqlOf(tasksSQL)) + postgresOf(postgresSQL), endsCounted()}}
})

// Index is an open tasks.db. Its methods may be called from several goroutines; those
// that change or ask for single rows do nothing where there is no index (nil).
type Index struct {
	file    database.Database
	base    *database.Base // nil for a reader
	path    string
	dir     string // the base directory; "" where everything lies on a server
	updates atomic.Int64
	renewed atomic.Bool // reopened, and Check has not told yet
}

// Fill hands the rows of a new index to add, those of runs that have not ended first,
// and says whether these are all that there are. add leaves out a second live run of a key.
type Fill func(ctx context.Context, add func(Row) error) (complete bool, err error)

// Open opens the tasks.db of a base directory, or the tables of a server that base is in. Where
// there is none, or an older one, it is made, with the rows that fill tells; of an older file no
// other process may be there. The error of one that a newer program made, or that is no database,
// says what to do about it.
func Open(ctx context.Context, dir string, base *database.Base, fill Fill) (*Index, error) {
	i, f := newIndex(dir, base, fill)
	var err error
	if i.file, err = base.Open(ctx, f); err != nil {
		return nil, fmt.Errorf("open the index: %w", err)
	}
	return i, nil
}

// Renew is Open for a rebuild, which needs the base directory exclusively: a file that
// cannot be used is moved aside.
func Renew(ctx context.Context, dir string, base *database.Base) (i *Index, err error) {
	i, f := newIndex(dir, base, func(context.Context, func(Row) error) (bool, error) { return false, nil })
	i.file, err = base.Renew(ctx, f)
	return i, err
}

// OpenReader opens tasks.db for reading only, also on a disk that cannot be
// written and without the base directory's lock. An error where there is none, or one of
// another version: then the directories tell.
func OpenReader(ctx context.Context, dir string) (*Index, error) {
	if s := database.ServerOf(dir); s != nil {
		return ReadServer(ctx, s)
	}
	i, f := newIndex(dir, nil, nil)
	if _, err := os.Stat(f.Path); err != nil {
		return nil, i18n.E("ledger.no_index", f.Path, err)
	}
	i.file = f
	err := f.OpenToRead(ctx)
	if err == nil {
		err = f.Use(func(h *database.Handles) error {
			_, err := rowsOf(ctx, h.R, rowSQL, "")
			return database.Misshapen(err)
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the index for reading: %w", err), f.Close())
	}
	return i, nil
}

// ReadServer opens the index of a server for reading only.
func ReadServer(ctx context.Context, s *database.Server) (*Index, error) {
	t, err := s.OpenToRead(ctx, schema())
	if err != nil {
		return nil, fmt.Errorf("open the index for reading: %w", err)
	}
	return &Index{file: t, path: s.Name()}, nil
}

func newIndex(dir string, base *database.Base, fill Fill) (*Index, *database.File) {
	f := &database.File{Schema: schema(), Path: filepath.Join(dir, File), Base: base,
		Statements: map[string]string{"turn": turnSQL, "update": updateSQL, "insert": insertSQL}}
	f.Fill = func(ctx context.Context, w database.Writer) error {
		complete, err := fill(ctx, func(r Row) error {
			_, err := w.ExecContext(ctx, addSQL, r.values()...)
			return err
		})
		if err != nil {
			return err
		}
		return setComplete(ctx, w, complete)
	}
	i := &Index{base: base, path: f.Path, dir: dir}
	if base != nil && base.Server() != nil {
		i.path = base.Server().Name()
	}
	return i, f
}

// Path is where the file lies, or the tables.
func (i *Index) Path() string { return i.path }

// Updates is how often a row was put since the index was opened.
func (i *Index) Updates() int64 { return i.updates.Load() }

// Compact is File.Compact of tasks.db.
func (i *Index) Compact(ctx context.Context) (freed int64, err error) {
	if i == nil {
		return 0, nil
	}
	return i.file.Compact(ctx)
}

// Close closes the index.
func (i *Index) Close() error {
	if i == nil {
		return nil
	}
	return i.file.Close()
}

// The statements that are kept prepared. A turn changes no column that has an
// index, so the one that does no more than that goes first.
const (
	turnSQL = `UPDATE tasks SET started_at=?, completed_at=?, process_id=?, hostname=?, llm_call_count=?, tool_call_count=?, total_tokens=?,
		compression_count=?, error_message=?, generation=?, heartbeat_at=?, message_count=?, bytes=?, compression_failures=?, ` + spendingSet + `
		WHERE uuid=? AND generation<=? AND status=? AND phase=? AND outbox_pending=?`
	updateSQL = `UPDATE tasks SET started_at=?, completed_at=?, process_id=?, hostname=?, llm_call_count=?, tool_call_count=?, total_tokens=?,
		compression_count=?, error_message=?, generation=?, heartbeat_at=?, message_count=?, bytes=?, compression_failures=?, ` + spendingSet + `,
		status=?, phase=?, outbox_pending=?
		WHERE uuid=? AND generation<=?`
	insertSQL = `INSERT INTO tasks (` + columns + `) VALUES (` + placeholders + `) ON CONFLICT(uuid) DO NOTHING`
	addSQL    = `INSERT INTO tasks (` + columns + `) VALUES (` + placeholders + `) ON CONFLICT DO NOTHING` // nor a second live run of a key
)

// changing are the values of columns that change while a run is under way.
func (r Row) changing() []any {
	return append([]any{
		database.Null(r.StartedAt.String()), database.Null(r.CompletedAt.String()), r.ProcessID, r.Hostname, r.LLMCalls, r.ToolCalls, r.Tokens,
		r.Compressions, database.Null(r.Error), r.Generation, database.Null(r.HeartbeatAt.String()), r.MessageCount, r.Bytes, r.Failures,
	}, r.Spending.values()...)
}

// Insert adds the row of a new run, or leaves an existing one. A second
// Live run of a key is an error that database.IsUnique recognises.
func (i *Index) Insert(ctx context.Context, r Row) error {
	if i == nil {
		return nil
	}
	return i.file.Write(func(h *database.Handles) error { return insertRow(ctx, h, r) })
}

func insertRow(ctx context.Context, h *database.Handles, r Row) error {
	return database.Retry(ctx, func() error {
		_, err := h.Stmts["insert"].ExecContext(ctx, r.values()...)
		return err
	})
}

// Put updates a row unless it belongs to a later owner: ErrNewerOwner. A lost row is
// inserted anew.
func (i *Index) Put(ctx context.Context, r Row) error {
	if i == nil {
		return nil
	}
	return i.file.Write(func(h *database.Handles) error {
		i.updates.Add(1)
		changing := r.changing()
		done, err := updated(ctx, h.Stmts["turn"], append(changing, r.UUID, r.Generation, string(r.Status), r.Phase, r.OutboxPending))
		if err != nil || done {
			return err
		}
		done, err = updated(ctx, h.Stmts["update"], append(changing, string(r.Status), r.Phase, r.OutboxPending, r.UUID, r.Generation))
		if err != nil || done {
			return err
		}
		g, err := generation(ctx, h, r.UUID)
		if err != nil {
			return err
		}
		if g > r.Generation {
			return fmt.Errorf("row of %s has generation %d, ours is %d: %w", r.UUID, g, r.Generation, ErrNewerOwner)
		}
		return insertRow(ctx, h, r)
	})
}

// updated runs an update and reports whether it found its row.
func updated(ctx context.Context, s database.Stmt, args []any) (found bool, err error) {
	err = database.Retry(ctx, func() error {
		r, err := s.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		found = n > 0
		return err
	})
	return found, err
}

// Generation returns the row's generation, 0 where there is no row.
func (i *Index) Generation(ctx context.Context, uuid string) (g int64, err error) {
	if i == nil {
		return 0, nil
	}
	err = i.file.Write(func(h *database.Handles) error {
		g, err = generation(ctx, h, uuid)
		return err
	})
	return g, err
}

func generation(ctx context.Context, h *database.Handles, uuid string) (g int64, err error) {
	err = h.W.QueryRowContext(ctx, `SELECT generation FROM tasks WHERE uuid=?`, uuid).Scan(&g)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return g, err
}

// Live returns the uuid of the run that is not final for a key, "" for none.
func (i *Index) Live(ctx context.Context, k task.Key) (uuid string, err error) {
	if i == nil {
		return "", nil
	}
	err = i.file.Use(func(h *database.Handles) error {
		db := h.W // open already, also where the file was deleted
		if db == nil {
			db = h.R
		}
		return db.QueryRowContext(ctx, `SELECT uuid FROM tasks WHERE task_source=? AND owner=? AND repo=? AND task_type=? AND task_id=?
			AND `+live, k.Source, k.Owner, k.Repo, k.Type, k.ID).Scan(&uuid)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return uuid, err
}

// Replace writes a row whole, whoever it belongs to; a generation that is known to be
// higher stays.
func (i *Index) Replace(ctx context.Context, r Row) error {
	g, err := i.Generation(ctx, r.UUID)
	if err != nil {
		return err
	}
	r.Generation = max(r.Generation, g)
	if err := i.Drop(ctx, r.UUID); err != nil {
		return err
	}
	return i.Insert(ctx, r)
}

// Drop deletes the row of a context whose directory is gone.
func (i *Index) Drop(ctx context.Context, uuid string) error {
	if i == nil {
		return nil
	}
	return i.file.Write(func(h *database.Handles) error {
		return database.Retry(ctx, func() error {
			_, err := h.W.ExecContext(ctx, `DELETE FROM tasks WHERE uuid=?`, uuid)
			return err
		})
	})
}

// Check notices that somebody deleted or replaced tasks.db while it was open
// and opens it anew, or makes it anew with the runs that have not ended. What
// this process wrote in between is lost: after true its callers put the rows of
// the contexts they own, and the index counts as incomplete. It costs one stat
// where nothing happened.
func (i *Index) Check(ctx context.Context) (reopened bool, err error) {
	if i == nil {
		return false, nil
	}
	err = i.Refresh(ctx)
	return i.renewed.Swap(false), err
}

// Refresh is Check for those who put no rows.
func (i *Index) Refresh(ctx context.Context) error {
	reopened, err := i.file.Check(ctx)
	if err != nil {
		return fmt.Errorf("open the index anew: %w", err)
	}
	if !reopened {
		return nil
	}
	i.renewed.Store(true)
	return i.SetComplete(ctx, false)
}

// Complete reports whether the index holds every context that the directories
// hold. One that was made anew beside more contexts than it takes in does not,
// until reindex, nor does one that could not be told of a run.
func (i *Index) Complete(ctx context.Context) (yes bool, err error) {
	if i == nil || i.Behind() {
		return false, nil
	}
	return i.Filled(ctx)
}

// Filled is Complete, but for runs that it could not be told of.
func (i *Index) Filled(ctx context.Context) (yes bool, err error) {
	err = i.file.Use(func(h *database.Handles) error {
		err := h.R.QueryRowContext(ctx, `SELECT value='1' FROM index_meta WHERE key='complete'`).Scan(&yes)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return yes, err
}

// SetComplete notes that every context has its row, or that one may lack it.
func (i *Index) SetComplete(ctx context.Context, yes bool) error {
	if i == nil {
		return nil
	}
	return i.file.Write(func(h *database.Handles) error {
		return database.Retry(ctx, func() error { return setComplete(ctx, h.W, yes) })
	})
}

func setComplete(ctx context.Context, db database.Writer, yes bool) error {
	_, err := db.ExecContext(ctx, `INSERT INTO index_meta VALUES ('complete', ?) ON CONFLICT(key) DO UPDATE SET value=excluded.value`, map[bool]string{true: "1", false: "0"}[yes])
	return err
}
