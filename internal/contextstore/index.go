package contextstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"toritsugi/internal/task"
)

// index is tasks.db: a copy of what the directories say, for listing and for
// the one-live-run rule. It can be deleted; no error of it fails a task.
type index struct {
	db      *sql.DB
	update  *sql.Stmt
	updates atomic.Int64
}

// openIndex opens base/tasks.db and brings its schema up to date. Processes
// that start at once on an empty directory take turns by a lock on .house.
func openIndex(ctx context.Context, base string) (*index, error) {
	house, err := os.OpenFile(filepath.Join(base, ".house"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = house.Close() }()
	if err := setLock(house, unix.F_OFD_SETLKW, unix.F_WRLCK); err != nil {
		return nil, fmt.Errorf("lock %s: %w", house.Name(), err)
	}
	path := filepath.Join(base, "tasks.db")
	// busy_timeout comes first: switching to WAL itself may find the file busy.
	q := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)"}, "_txlock": {"immediate"}}
	// SQLite gives its side files the mode of the database.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	i := &index{db: db}
	if err := i.migrate(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	// From here on a database that somebody else has locked is passed over: the
	// next update makes up for it.
	if _, err := db.ExecContext(ctx, "PRAGMA busy_timeout=250"); err != nil {
		_ = db.Close()
		return nil, err
	}
	return i, nil
}

func (i *index) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, i.db, files, goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	if _, err = p.Up(ctx); err != nil {
		return err
	}
	i.update, err = i.db.PrepareContext(ctx, `UPDATE tasks SET status=?, started_at=?, completed_at=?, process_id=?, hostname=?,
		llm_call_count=?, tool_call_count=?, total_tokens=?, compression_count=?, error_message=?, generation=?
		WHERE uuid=? AND generation<=?`)
	return err
}

func (i *index) close() error {
	if i == nil {
		return nil
	}
	return errors.Join(i.update.Close(), i.db.Close())
}

// tries is how often a write is made before its error counts (store-v3 §11.3).
const tries = 3

func retry(f func() error) (err error) {
	for range tries {
		if err = f(); err == nil || isUnique(err) {
			return err
		}
	}
	return err
}

func isUnique(err error) bool {
	return err != nil && strings.Contains(err.Error(), "UNIQUE constraint")
}

// insert adds the row of a new context, or leaves an existing one.
func (i *index) insert(ctx context.Context, m Metadata, s State) error {
	if i == nil {
		return nil
	}
	return retry(func() error {
		_, err := i.db.ExecContext(ctx, `INSERT INTO tasks (uuid, task_source, owner, repo, task_type, task_id, status, created_at,
			started_at, completed_at, process_id, hostname, llm_provider, model, context_length, llm_call_count, tool_call_count,
			total_tokens, compression_count, error_message, user, generation) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
			ON CONFLICT(uuid) DO NOTHING`,
			m.UUID, m.TaskKey.Source, m.TaskKey.Owner, m.TaskKey.Repo, m.TaskKey.Type, m.TaskKey.ID, s.TaskStatus, m.CreatedAt.String(),
			null(s.StartedAt.String()), null(s.CompletedAt.String()), m.ProcessID, m.Hostname, m.Config.Provider, m.Config.Model,
			m.Config.ContextLength, s.LLMCallCount, s.ToolCallCount, s.TotalTokensUsed, s.CompressionCount, s.Error, null(m.User), s.Generation)
		return err
	})
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// put writes the state to the row unless the row belongs to a later owner, in
// which case it returns ErrNotOwner. A lost row is inserted anew.
func (i *index) put(ctx context.Context, m Metadata, s State) error {
	if i == nil {
		return nil
	}
	var n int64
	err := retry(func() error {
		i.updates.Add(1)
		r, err := i.update.ExecContext(ctx, s.TaskStatus, null(s.StartedAt.String()), null(s.CompletedAt.String()), s.ProcessID, s.Hostname,
			s.LLMCallCount, s.ToolCallCount, s.TotalTokensUsed, s.CompressionCount, s.Error, s.Generation, m.UUID, s.Generation)
		if err == nil {
			n, err = r.RowsAffected()
		}
		return err
	})
	if err != nil || n == 1 {
		return err
	}
	g, err := i.generation(ctx, m.UUID)
	if err != nil {
		return err
	}
	if g > s.Generation {
		return fmt.Errorf("row of %s has generation %d, ours is %d: %w", m.UUID, g, s.Generation, ErrNotOwner)
	}
	return i.insert(ctx, m, s)
}

// generation returns the row's generation, 0 where there is no row.
func (i *index) generation(ctx context.Context, uuid string) (g int64, err error) {
	if i == nil {
		return 0, nil
	}
	err = i.db.QueryRowContext(ctx, `SELECT generation FROM tasks WHERE uuid=?`, uuid).Scan(&g)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return g, err
}

// live returns the uuid of the run that is not final for a key, "" for none.
func (i *index) live(ctx context.Context, k task.Key) (uuid string, err error) {
	if i == nil {
		return "", nil
	}
	err = i.db.QueryRowContext(ctx, `SELECT uuid FROM tasks WHERE task_source=? AND owner=? AND repo=? AND task_type=? AND task_id=?
		AND status NOT IN ('completed','stopped','failed')`, k.Source, k.Owner, k.Repo, k.Type, k.ID).Scan(&uuid)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return uuid, err
}

// drop deletes the row of a context whose directory is gone.
func (i *index) drop(ctx context.Context, uuid string) error {
	_, err := i.db.ExecContext(ctx, `DELETE FROM tasks WHERE uuid=?`, uuid)
	return err
}
