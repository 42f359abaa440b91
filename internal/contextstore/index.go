package contextstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"modernc.org/sqlite"

	"toritsugi/internal/task"
)

// What a run that has not ended looks like, and one whose end may not be
// finished. Indexes are partial by exactly these words.
const (
	live       = `status NOT IN ('completed', 'stopped', 'failed')`
	unfinished = live + ` OR phase <> ''`
)

// index is tasks.db: a copy of what the directories say, for listing and for
// the one-live-run rule. It can be deleted, also while it is open; no error of
// it fails a task. Its methods may be called from several goroutines; those
// that change or ask for single rows do nothing where there is no index (nil).
type index struct {
	*database
	base    string
	acks    *houseDB // tells which effects were delivered; nil counts all as pending
	updates atomic.Int64
	renewed atomic.Bool // reopened, and check has not told yet
}

var indexSchema = schema{
	file: "tasks.db", migrations: "migrations", whole: "migrations/whole/tasks.sql", sync: "NORMAL", busy: 250,
	newer: "ledger.newer_index", broken: "ledger.broken_index",
}

func newIndex(base string, h *house, acks *houseDB) *index {
	i := &index{base: base, acks: acks}
	i.database = &database{schema: indexSchema, path: filepath.Join(base, indexSchema.file), house: h, fresh: i.begin, ready: i.prepare}
	return i
}

// openIndex opens base/tasks.db. Where there is none it is made, with the runs
// that have not ended: without them a second run of the same key would not be
// refused. An older one is migrated, which no other process may be there for.
// The error of one that a newer program made, or that is no database, says what
// to do about it.
func openIndex(ctx context.Context, base string, h *house, acks *houseDB) (*index, error) {
	i := newIndex(base, h, acks)
	if err := i.attach(ctx); err != nil {
		return nil, fmt.Errorf("open the index: %w", err)
	}
	return i, nil
}

// begin fills a new index with the runs that have not ended, and with those
// that have if they are not too many.
func (i *index) begin(ctx context.Context, h *handles) error {
	ended := 0
	err := walk(i.base, func(dir string) error { // the runs that have not ended come first
		if filepath.Base(filepath.Dir(dir)) == dirCompleted {
			if ended++; ended > beginEnded {
				return errEnough
			}
		}
		v, err := view(dir)
		if err != nil {
			return nil // what cannot be read is shown by a listing of the directories
		}
		v.State.TaskStatus = v.Status()
		r, _ := i.rowBy(ctx, v.Metadata, v.State, (*houseDB).stored) // if house.db cannot be read all effects count as pending
		if _, err := h.w.ExecContext(ctx, insertSQL, r.values()...); !isUnique(err) {
			return err
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return setComplete(ctx, h.w, ended <= beginEnded)
}

// beginEnded is how many runs that have ended a new index takes in at once; more
// of them tori serve adds (FillIndex), or tori reindex.
const beginEnded = 1000

var errEnough = errors.New("enough")

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
	insertSQL = `INSERT INTO tasks (` + columns + `) VALUES (` + marks + `) ON CONFLICT(uuid) DO NOTHING`
)

func (i *index) prepare(ctx context.Context, h *handles) error {
	return errors.Join(h.prepare(ctx, "turn", turnSQL), h.prepare(ctx, "update", updateSQL), h.prepare(ctx, "insert", insertSQL))
}

// changing are the values of columns that change while a run is under way.
func (r Row) changing() []any {
	return append([]any{
		null(r.StartedAt.String()), null(r.CompletedAt.String()), r.ProcessID, r.Hostname, r.LLMCalls, r.ToolCalls, r.Tokens,
		r.Compressions, null(r.Error), r.Generation, null(r.HeartbeatAt.String()), r.MessageCount, r.Bytes, r.Failures,
	}, r.Spending.values()...)
}

func (i *index) close() error {
	if i == nil {
		return nil
	}
	return i.database.close()
}

// tries is how often a write is made before its error counts (store-v3 §11.3).
const tries = 3

func retry(ctx context.Context, f func() error) (err error) {
	for range tries {
		if err = f(); err == nil || isUnique(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// isUnique reports that a row like it exists: 2067 is SQLITE_CONSTRAINT_UNIQUE.
func isUnique(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == 2067
}

// row is rowOf with the effects that were delivered taken off.
func (i *index) row(ctx context.Context, m Metadata, s State) (Row, error) {
	return i.rowBy(ctx, m, s, (*houseDB).acked)
}

func (i *index) rowBy(ctx context.Context, m Metadata, s State, read func(*houseDB, context.Context, string) (map[string]string, error)) (Row, error) {
	r := rowOf(m, s)
	if r.OutboxPending == 0 || i.acks == nil {
		return r, nil
	}
	acked, err := read(i.acks, ctx, m.UUID)
	if err != nil {
		return r, fmt.Errorf("count what %s has yet to deliver: %w", m.UUID, err)
	}
	for _, e := range s.Outbox {
		if _, ok := acked[e.Key]; ok {
			r.OutboxPending--
		}
	}
	return r, nil
}

// insert adds the row of a new context, or leaves an existing one. A second
// live run of a key is an error that isUnique recognises.
func (i *index) insert(ctx context.Context, m Metadata, s State) error {
	if i == nil {
		return nil
	}
	r, err := i.row(ctx, m, s)
	return errors.Join(err, i.write(func(h *handles) error { return insertRow(ctx, h, r) }))
}

func insertRow(ctx context.Context, h *handles, r Row) error {
	return retry(ctx, func() error {
		_, err := h.stmts["insert"].ExecContext(ctx, r.values()...)
		return err
	})
}

// put writes the state to the row unless the row belongs to a later owner, in
// which case it returns ErrNotOwner. A lost row is inserted anew.
func (i *index) put(ctx context.Context, m Metadata, s State) error {
	if i == nil {
		return nil
	}
	r, err := i.row(ctx, m, s)
	return errors.Join(err, i.write(func(h *handles) error {
		i.updates.Add(1)
		changing := r.changing()
		done, err := updated(ctx, h.stmts["turn"], append(changing, r.UUID, r.Generation, string(r.Status), r.Phase, r.OutboxPending))
		if err != nil || done {
			return err
		}
		done, err = updated(ctx, h.stmts["update"], append(changing, string(r.Status), r.Phase, r.OutboxPending, r.UUID, r.Generation))
		if err != nil || done {
			return err
		}
		g, err := generation(ctx, h, r.UUID)
		if err != nil {
			return err
		}
		if g > r.Generation {
			return fmt.Errorf("row of %s has generation %d, ours is %d: %w", r.UUID, g, r.Generation, ErrNotOwner)
		}
		return insertRow(ctx, h, r)
	}))
}

// updated runs an update and reports whether it found its row.
func updated(ctx context.Context, s *sql.Stmt, args []any) (found bool, err error) {
	err = retry(ctx, func() error {
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

// generation returns the row's generation, 0 where there is no row.
func (i *index) generation(ctx context.Context, uuid string) (g int64, err error) {
	if i == nil {
		return 0, nil
	}
	err = i.write(func(h *handles) error {
		g, err = generation(ctx, h, uuid)
		return err
	})
	return g, err
}

func generation(ctx context.Context, h *handles, uuid string) (g int64, err error) {
	err = h.w.QueryRowContext(ctx, `SELECT generation FROM tasks WHERE uuid=?`, uuid).Scan(&g)
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
	err = i.use(func(h *handles) error {
		db := h.w // open already, also where the file was deleted
		if db == nil {
			db = h.r
		}
		return db.QueryRowContext(ctx, `SELECT uuid FROM tasks WHERE task_source=? AND owner=? AND repo=? AND task_type=? AND task_id=?
			AND `+live, k.Source, k.Owner, k.Repo, k.Type, k.ID).Scan(&uuid)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return uuid, err
}

// drop deletes the row of a context whose directory is gone.
func (i *index) drop(ctx context.Context, uuid string) error {
	if i == nil {
		return nil
	}
	return i.write(func(h *handles) error {
		return retry(ctx, func() error {
			_, err := h.w.ExecContext(ctx, `DELETE FROM tasks WHERE uuid=?`, uuid)
			return err
		})
	})
}

// check notices that somebody deleted or replaced tasks.db while it was open
// and opens it anew, or makes it anew with the runs that have not ended. What
// this process wrote in between is lost: after true its callers put the rows of
// the contexts they own, and the index counts as incomplete. It costs one stat
// where nothing happened.
func (i *index) check(ctx context.Context) (reopened bool, err error) {
	if i == nil {
		return false, nil
	}
	err = i.refresh(ctx)
	return i.renewed.Swap(false), err
}

// refresh is check for those who put no rows.
func (i *index) refresh(ctx context.Context) error {
	reopened, err := i.database.check(ctx)
	if err != nil {
		return fmt.Errorf("open the index anew: %w", err)
	}
	if !reopened {
		return nil
	}
	i.renewed.Store(true)
	return i.setComplete(ctx, false)
}

// complete reports whether the index holds every context that the directories
// hold. One that was made anew beside more contexts than it takes in does not,
// until reindex, nor does one that could not be told of a run.
func (i *index) complete(ctx context.Context) (yes bool, err error) {
	if i == nil || i.behind() {
		return false, nil
	}
	return i.filled(ctx)
}

// filled is complete, but for runs that it could not be told of.
func (i *index) filled(ctx context.Context) (yes bool, err error) {
	err = i.use(func(h *handles) error {
		err := h.r.QueryRowContext(ctx, `SELECT value='1' FROM index_meta WHERE key='complete'`).Scan(&yes)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return yes, err
}

// setComplete notes that every context has its row, or that one may lack it.
func (i *index) setComplete(ctx context.Context, yes bool) error {
	if i == nil {
		return nil
	}
	return i.write(func(h *handles) error {
		return retry(ctx, func() error { return setComplete(ctx, h.w, yes) })
	})
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func setComplete(ctx context.Context, db execer, yes bool) error {
	_, err := db.ExecContext(ctx, `INSERT INTO index_meta VALUES ('complete', ?) ON CONFLICT DO UPDATE SET value=excluded.value`, map[bool]string{true: "1", false: "0"}[yes])
	return err
}
