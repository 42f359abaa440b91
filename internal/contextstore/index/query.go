package index

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/task"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/jsonl"
)

// Filter says which rows a listing holds; a zero field asks nothing.
type Filter struct {
	Status task.Status
	User   string
	Source string // the task key, whole or in part
	Owner  string
	Repo   string
	Type   string
	ID     string
	Since  time.Time // created then or later
	Limit  int       // 1 to 1000; 0 means 50
	After  string    // the cursor of the last row seen
}

// Page is a part of a listing, newest first.
type Page struct {
	Rows []Row
	// Total counts all rows that a filter takes which asks for no more than status and
	// user, whatever After and Limit say; else those of the page.
	Total int64
	// Next is the cursor of the last row, "" where no row follows.
	Next string
}

const (
	DefaultLimit = 50 // rows of a Page where Filter says nothing
	maxLimit     = 1000
)

// where is a condition under construction.
type where struct {
	index string // that serves it
	terms []string
	args  []any
}

func (w *where) add(term string, args ...any) {
	w.terms = append(w.terms, term)
	w.args = append(w.args, args...)
}

func (w *where) String() string {
	if len(w.terms) == 0 {
		return "true"
	}
	return strings.Join(w.terms, " AND ")
}

// index returns the index that holds what the filter asks for in the order of
// the listing. It is named in the query: SQLite has no statistics to choose by.
func (f Filter) index() string {
	switch {
	case f.ID != "":
		return "idx_tasks_id_created"
	case f.Owner != "" && f.Repo != "":
		return "idx_tasks_owner_repo"
	case f.Repo != "":
		return "idx_tasks_repo_created"
	case f.Owner != "":
		return "idx_tasks_owner_created"
	case f.User != "" && f.Status != "":
		return "idx_tasks_user_status"
	case f.User != "":
		return "idx_tasks_user_created"
	case f.Status != "":
		return "idx_tasks_status_created"
	case f.Source != "":
		return "idx_tasks_source_created"
	}
	return "idx_tasks_created_at"
}

// where returns the filter's condition.
func (f Filter) where() *where {
	w := &where{index: f.index()}
	for _, c := range []struct{ column, value string }{
		{"task_id", f.ID}, {"owner", f.Owner}, {"repo", f.Repo}, {"user", f.User}, {"status", string(f.Status)}, {"task_source", f.Source},
		{"task_type", f.Type},
	} {
		if c.value != "" {
			w.add(c.column+"=?", c.value)
		}
	}
	// Times are of fixed width, so their texts compare as they do (spec/README
	// "ids and times"); datetime() would keep the index out.
	if !f.Since.IsZero() {
		w.add("created_at>=?", jsonl.Time{Time: f.Since}.String())
	}
	return w
}

// cursor is where in a listing a row stands.
func (r Row) cursor() string { return r.CreatedAt.String() + "." + strconv.FormatInt(r.id, 10) }

// after restricts a condition to what follows a cursor.
func (w *where) after(cursor string) error {
	at := strings.LastIndexByte(cursor, '.')
	if at < 0 {
		return i18n.E("ledger.bad_cursor", cursor)
	}
	id, err := strconv.ParseInt(cursor[at+1:], 10, 64)
	if err != nil || len(cursor[:at]) != len(jsonl.TimeLayout) {
		return i18n.E("ledger.bad_cursor", cursor)
	}
	w.add("(created_at, rowid) < (?, ?)", cursor[:at], id)
	return nil
}

// List returns the newest rows that a filter takes, of equal times the one that
// was added last first. Source: store-v2 §9.2.
func (i *Index) List(ctx context.Context, f Filter) (p Page, err error) {
	w, limit, err := f.page()
	if err != nil {
		return p, err
	}
	if err := i.Refresh(ctx); err != nil {
		return p, err
	}
	err = i.file.Use(func(h *database.Handles) error {
		p.Rows, err = rowsOf(ctx, h.R, listSQL(w), append(w.args, limit+1)...)
		if err != nil {
			return err
		}
		if len(p.Rows) > limit {
			p.Rows = p.Rows[:limit]
			p.Next = p.Rows[limit-1].cursor()
		}
		p.Total = int64(len(p.Rows))
		if (f.After != "" || p.Next != "") && (f == Filter{Status: f.Status, User: f.User, Limit: f.Limit, After: f.After}) {
			p.Total, err = f.countAll(ctx, h.R)
		}
		return err
	})
	if err != nil {
		return Page{}, fmt.Errorf("list the index: %w", err)
	}
	return p, nil
}

// page returns the condition of the page that is asked for, and its size.
func (f Filter) page() (w *where, limit int, err error) {
	w, limit = f.where(), min(f.Limit, maxLimit)
	if limit <= 0 {
		limit = DefaultLimit
	}
	if f.After != "" {
		err = w.after(f.After)
	}
	return w, limit, err
}

func listSQL(w *where) string {
	return `SELECT rowid, ` + columns + ` FROM tasks INDEXED BY ` + w.index + ` WHERE ` + w.String() + ` ORDER BY created_at DESC, rowid DESC LIMIT ?`
}

// rowsOf runs a query that selects rowid and columns.
func rowsOf(ctx context.Context, db *sql.DB, query string, args ...any) (all []Row, err error) {
	return database.Read(ctx, db, scanned, query, args...)
}

// scanned reads a row of rowid and columns.
func scanned(rows *sql.Rows) (r Row, err error) {
	err = rows.Scan(r.fields()...)
	return r, err
}

// byOpen makes SQLite read the few rows that have not ended, however small it
// thinks another index is.
const byOpen = `INDEXED BY idx_tasks_open`

func (f Filter) countAll(ctx context.Context, db *sql.DB) (int64, error) {
	var ended, open int64
	var done, going where
	going.add(live)
	for _, w := range []*where{&done, &going} {
		if f.Status != "" {
			w.add("status=?", string(f.Status))
		}
		if f.User != "" {
			w.add("user=?", f.User)
		}
	}
	if f.Status == "" || f.Status.Final() {
		err := db.QueryRowContext(ctx, `SELECT coalesce(sum(tasks), 0) FROM task_months WHERE `+done.String(), done.args...).Scan(&ended)
		if err != nil {
			return 0, err
		}
	}
	if !f.Status.Final() {
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM tasks `+byOpen+` WHERE `+going.String(), going.args...).Scan(&open)
		if err != nil {
			return 0, err
		}
	}
	return ended + open, nil
}

// batch is how many rows are read at once.
const batch = 500

// Unfinished calls f for each row whose run has not ended, or whose end is not
// finished, by uuid. Between the calls it holds nothing, so f may use the index.
func (i *Index) Unfinished(ctx context.Context, f func(Row) error) error {
	return i.listed(ctx, unfinished, f)
}

// Pending calls f for each run that has something to deliver, by uuid.
// Between the calls it holds nothing, so f may use the index.
func (i *Index) Pending(ctx context.Context, f func(Row) error) error {
	return i.listed(ctx, `outbox_pending > 0`, f)
}

func (i *Index) listed(ctx context.Context, condition string, f func(Row) error) error {
	if i == nil {
		return nil
	}
	if err := i.Refresh(ctx); err != nil {
		return err
	}
	if err := i.inBatches(ctx, condition, f); err != nil {
		return fmt.Errorf("list the index: %w", err)
	}
	return nil
}

// Waiting is a run that waits to be claimed.
type Waiting struct {
	UUID string
	Key  task.Key
	User string
	// Cursor is where in the queue it stands.
	Cursor string
}

// Queued lists the runs that wait to be claimed, the oldest first: at most limit behind a
// cursor, "" for the start. A cursor is the time of creation and the uuid, so that
// it means the same in the index and in the directories.
func (i *Index) Queued(ctx context.Context, after string, limit int) (all []Waiting, err error) {
	if err := i.Refresh(ctx); err != nil {
		return nil, err
	}
	at, uuid, _ := strings.Cut(after, " ")
	all, err = database.List(ctx, i.file, func(rows *sql.Rows) (w Waiting, err error) {
		var created string
		err = rows.Scan(&w.UUID, &w.Key.Source, &w.Key.Owner, &w.Key.Repo, &w.Key.Type, &w.Key.ID, &w.User, &created)
		w.Cursor = created + " " + w.UUID
		return w, err
	}, `SELECT uuid, task_source, owner, repo, task_type, task_id, coalesce(user, ''), created_at
		FROM tasks INDEXED BY idx_tasks_status_created WHERE status = 'queued' AND created_at >= ? AND (created_at, uuid) > (?, ?)
		ORDER BY created_at, uuid LIMIT ?`, at, at, uuid, limit)
	if err != nil {
		return nil, fmt.Errorf("list what is queued: %w", err)
	}
	return all, nil
}

// endedSQL is the query of inherit §4.1.2, for more than one. Times are of fixed width, so
// their texts compare as they do.
const endedSQL = `SELECT rowid, ` + columns + ` FROM tasks INDEXED BY idx_tasks_id_created
	WHERE task_id=? AND task_source=? AND owner=? AND repo=? AND task_type=? AND status IN ('completed', 'stopped') AND completed_at>=?
	ORDER BY completed_at DESC, rowid DESC LIMIT ?`

// Ended returns the rows of a key's runs that were completed or stopped at or after a time,
// the latest first, at most so many. An error wraps database.ErrUnreachable where trying
// again may help.
func (i *Index) Ended(ctx context.Context, k task.Key, since time.Time, most int) (rows []Row, err error) {
	if err := i.Refresh(ctx); err != nil {
		return nil, database.Unreachable(err)
	}
	rows, err = database.List(ctx, i.file, scanned, endedSQL, k.ID, k.Source, k.Owner, k.Repo, k.Type, jsonl.Time{Time: since}.String(), most)
	if err != nil {
		return nil, fmt.Errorf("look for the last ended runs of %s: %w", k, database.Unreachable(err))
	}
	return rows, nil
}

// Tally is what runs that ended took.
type Tally struct {
	Runs     int64 `json:"runs"`
	Tokens   int64 `json:"tokens"`
	MicroUSD int64 `json:"cost_micro_usd"` // of the calls whose price was known
}

// EndedFrom sums, by status, the runs that ended on a day of the universal time ("2026-05-30") or
// later. It reads counters of days, not rows.
func (i *Index) EndedFrom(ctx context.Context, day string) (map[task.Status]Tally, error) {
	if err := i.Refresh(ctx); err != nil {
		return nil, err
	}
	all := map[task.Status]Tally{}
	err := i.file.Use(func(h *database.Handles) error {
		return database.Each(ctx, h.R, func(rows *sql.Rows) error {
			var s task.Status
			var t Tally
			err := rows.Scan(&s, &t.Runs, &t.Tokens, &t.MicroUSD)
			all[s] = t
			return err
		}, `SELECT status, sum(tasks), sum(tokens), sum(cost_micro_usd) FROM task_days WHERE day>=? GROUP BY status`, day)
	})
	if err != nil {
		return nil, fmt.Errorf("count what ended: %w", err)
	}
	return all, nil
}

// CountEnded counts the rows of runs that have ended.
func (i *Index) CountEnded(ctx context.Context) (n int, err error) {
	err = i.file.Write(func(h *database.Handles) error {
		return h.W.QueryRowContext(ctx, `SELECT coalesce(sum(tasks), 0) FROM task_months`).Scan(&n)
	})
	return n, err
}

const rowSQL = `SELECT rowid, ` + columns + ` FROM tasks WHERE uuid=?`

// Row returns the row of a run, false where there is none.
func (i *Index) Row(ctx context.Context, uuid string) (row Row, ok bool, err error) {
	rows, err := database.List(ctx, i.file, scanned, rowSQL, uuid)
	if ok = len(rows) > 0; ok {
		row = rows[0]
	}
	return row, ok, err
}

// Each calls f for every row, by uuid. Between the calls it holds nothing, so f may
// change rows.
func (i *Index) Each(ctx context.Context, f func(Row) error) error {
	return i.inBatches(ctx, `true`, f)
}

// inBatches calls f for each row of a condition, by uuid. Between the calls it holds
// nothing, so f may use the index.
func (i *Index) inBatches(ctx context.Context, condition string, f func(Row) error) error {
	for after := ""; ; {
		var rows []Row
		err := i.file.Use(func(h *database.Handles) (err error) {
			db := h.W // connected already when a program starts; another connection costs more than the question
			if db == nil {
				db = h.R
			}
			rows, err = rowsOf(ctx, db, `SELECT rowid, `+columns+` FROM tasks WHERE (`+condition+`) AND uuid > ? ORDER BY uuid LIMIT ?`, after, batch)
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := f(r); err != nil {
				return err
			}
		}
		if len(rows) < batch {
			return nil
		}
		after = rows[batch-1].UUID
	}
}
