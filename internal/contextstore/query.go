package contextstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/task"

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
	Until  time.Time // created before
	Text   string    // in the title, or how the uuid begins; read row by row
	Limit  int       // 1 to 1000; 0 means 50
	After  string    // the cursor of the last row seen
}

// Page is a part of a listing, newest first.
type Page struct {
	Rows []Row
	// Total counts all rows that the filter takes, whatever After and Limit say.
	Total int64
	// AtLeast says that there are more than Total: counting a filter of several
	// conditions ends at countLimit.
	AtLeast bool
	// Next is the cursor of the last row, "" where no row follows.
	Next string
}

const (
	defaultLimit = 50
	maxLimit     = 1000
	countLimit   = 1000
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
		return "1"
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
		w.add("created_at>=?", Time{Time: f.Since}.String())
	}
	if !f.Until.IsZero() {
		w.add("created_at<?", Time{Time: f.Until}.String())
	}
	if f.Text != "" {
		like := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(f.Text)
		w.add(`(title LIKE ? ESCAPE '\' OR uuid LIKE ? ESCAPE '\')`, "%"+like+"%", like+"%")
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

// list returns the newest rows that a filter takes, of equal times the one that
// was added last first. Source: store-v2 §9.2.
func (i *index) list(ctx context.Context, f Filter) (p Page, err error) {
	w, limit, err := f.page()
	if err != nil {
		return p, err
	}
	if err := i.refresh(ctx); err != nil {
		return p, err
	}
	err = i.use(func(h *handles) error {
		p.Rows, err = rowsOf(ctx, h.r, listSQL(w), append(w.args, limit+1)...)
		if err != nil {
			return err
		}
		if len(p.Rows) > limit {
			p.Rows = p.Rows[:limit]
			p.Next = p.Rows[limit-1].cursor()
		}
		if f.After == "" && p.Next == "" {
			p.Total = int64(len(p.Rows))
			return nil
		}
		p.Total, p.AtLeast, err = f.count(ctx, h.r)
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
		limit = defaultLimit
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
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r Row
		if err := rows.Scan(r.fields()...); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// count tells how many rows a filter takes: exactly, from the counters, where it
// asks for no more than status and user; else at most countLimit of them.
func (f Filter) count(ctx context.Context, db *sql.DB) (n int64, more bool, err error) {
	if (f == Filter{Status: f.Status, User: f.User, Limit: f.Limit, After: f.After}) {
		n, err = f.countAll(ctx, db)
		return n, false, err
	}
	w := f.where()
	err = db.QueryRowContext(ctx, countSQL(w), append(w.args, countLimit+1)...).Scan(&n)
	return min(n, countLimit), n > countLimit, err
}

func countSQL(w *where) string {
	return `SELECT count(*) FROM (SELECT 1 FROM tasks INDEXED BY ` + w.index + ` WHERE ` + w.String() + ` ORDER BY created_at DESC LIMIT ?)`
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

// batch is how many rows open and pendingOutbox read at once.
const batch = 500

// open calls f for each row whose run has not ended, or whose end is not
// finished, by uuid. Between the calls it holds nothing, so f may use the index.
func (i *index) open(ctx context.Context, f func(Row) error) error {
	if i == nil {
		return nil
	}
	if err := i.refresh(ctx); err != nil {
		return err
	}
	for after := ""; ; {
		var rows []Row
		err := i.use(func(h *handles) (err error) {
			db := h.w // connected already when a program starts; another connection costs more than the question
			if db == nil {
				db = h.r
			}
			rows, err = rowsOf(ctx, db, `SELECT rowid, `+columns+` FROM tasks WHERE (`+unfinished+`) AND uuid > ? ORDER BY uuid LIMIT ?`, after, batch)
			return err
		})
		if err != nil {
			return fmt.Errorf("list what is under way: %w", err)
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

// pendingOutbox calls f for each run that has something to deliver, by uuid.
// Between the calls it holds nothing, so f may use the index.
func (i *index) pendingOutbox(ctx context.Context, f func(Owing) error) error {
	if i == nil {
		return nil
	}
	if err := i.refresh(ctx); err != nil {
		return err
	}
	for after := ""; ; {
		var all []Owing
		err := i.use(func(h *handles) error {
			rows, err := h.r.QueryContext(ctx, `SELECT uuid, task_source, status FROM tasks WHERE outbox_pending > 0 AND uuid > ? ORDER BY uuid LIMIT ?`, after, batch)
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				var o Owing
				if err := rows.Scan(&o.UUID, &o.Source, &o.Status); err != nil {
					return err
				}
				all = append(all, o)
			}
			return rows.Err()
		})
		if err != nil {
			return fmt.Errorf("list what is to be delivered: %w", err)
		}
		for _, o := range all {
			if err := f(o); err != nil {
				return err
			}
		}
		if len(all) < batch {
			return nil
		}
		after = all[batch-1].UUID
	}
}
