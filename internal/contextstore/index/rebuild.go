package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/contextstore/database"
)

// Rebuild makes every row anew from what fill adds, in one transaction: until it
// ends others see the old rows, and an error leaves them as they were. It needs
// the house exclusively, and fill must not use the index otherwise. A row keeps
// the highest generation that was known of its uuid.
//
// A row that cannot be beside one that was added before it — a second live run
// of a key, or the same uuid once more — is left out and given to conflict, with
// the uuid of the row that stands. The file is never deleted. rows counts what
// the index then holds; the index is complete if nothing was left out and whole,
// which the caller says by SetComplete. If the file turns out to be malformed it
// is moved aside and fill called once more, for a new one.
func (i *Index) Rebuild(ctx context.Context, fill func(add func(Row) error) error, conflict func(stands string, left Row)) (rows int64, err error) {
	if i.base == nil || !i.base.Alone() {
		return 0, fmt.Errorf("rebuild the index: the house is not held exclusively")
	}
	rows, err = i.remake(ctx, fill, conflict)
	if errors.Is(err, database.ErrBroken) {
		// It could be opened and read, but not all of it: begin with a new file.
		if err = i.file.Replace(ctx); err == nil {
			rows, err = i.remake(ctx, fill, conflict)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("rebuild the index: %w", err)
	}
	return rows, nil
}

func (i *Index) remake(ctx context.Context, fill func(add func(Row) error) error, conflict func(string, Row)) (rows int64, err error) {
	err = i.file.Write(func(h *database.Handles) (err error) {
		if !h.Postgres {
			if _, err := h.W.ExecContext(ctx, rebuildCache); err != nil {
				return err
			}
			defer func() {
				_, cerr := h.W.ExecContext(context.WithoutCancel(ctx), `PRAGMA cache_size=-2000`)
				err = errors.Join(err, cerr)
			}()
		}
		tx, err := h.W.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if h.Postgres {
			rows, err = i.refillTables(ctx, tx, fill, conflict)
		} else {
			rows, err = i.refill(ctx, tx, fill, conflict)
		}
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		if h.Postgres {
			return nil
		}
		// The WAL has grown to the size of the index.
		_, err = h.W.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
		return err
	})
	return rows, err
}

// rebuildCache is room for the pages of a million uuids, 64 MiB: uuids come in
// any order, and a page that finds no room goes to the WAL each time it changes.
const rebuildCache = `PRAGMA cache_size=-65536`

// rowsAtOnce are added to PostgreSQL with one statement: asking takes longer than adding.
const rowsAtOnce = 100

// keepHighest gives rows the generations that were known where those are higher.
const keepHighest = `UPDATE tasks SET generation=k.generation FROM known AS k WHERE k.uuid=tasks.uuid AND k.generation>tasks.generation`

// keepKnown keeps the generations in a table known and empties the others.
func keepKnown(ctx context.Context, tx *sql.Tx) error {
	empty := []string{
		`CREATE TEMP TABLE known (uuid TEXT PRIMARY KEY, generation INTEGER) WITHOUT ROWID`,
		`INSERT INTO known SELECT uuid, generation FROM tasks WHERE generation > 0 ORDER BY uuid`,
		`DELETE FROM tasks`,
	}
	for _, c := range counters {
		empty = append(empty, `DELETE FROM `+c.table)
	}
	return execAll(ctx, tx, empty)
}

func (i *Index) refill(ctx context.Context, tx *sql.Tx, fill func(add func(Row) error) error, conflict func(string, Row)) (rows int64, err error) {
	// Sorted at the end, indexes cost a fraction of what they do row by row.
	indexes, err := takeOff(ctx, tx, "index")
	if err != nil {
		return 0, err
	}
	triggers, err := takeOff(ctx, tx, "trigger")
	if err != nil {
		return 0, err
	}
	if err := keepKnown(ctx, tx); err != nil {
		return 0, err
	}
	insert, err := tx.PrepareContext(ctx, addSQL)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	rows, err = i.fill(ctx, tx, fill, conflict, 1, func(all []Row) (left []Row, err error) {
		result, err := insert.ExecContext(ctx, all[0].values()...)
		if err != nil {
			return nil, err
		}
		n, err := result.RowsAffected()
		return all[n:], err
	})
	if err != nil {
		return 0, err
	}
	// Summed up at the end, counters cost a fraction of what they do row by row.
	return rows, execAll(ctx, tx, slices.Concat([]string{keepHighest}, countersSQL(false), triggers, indexes, []string{`DROP TABLE known`}))
}

// refillTables is refill in PostgreSQL, where the indexes stay: who reads sees the old rows until the
// end, and would wait for an index that is taken off.
func (i *Index) refillTables(ctx context.Context, tx *sql.Tx, fill func(add func(Row) error) error, conflict func(string, Row)) (rows int64, err error) {
	if err := execAll(ctx, tx, []string{`ALTER TABLE tasks DISABLE TRIGGER USER`}); err != nil {
		return 0, err
	}
	if err := keepKnown(ctx, tx); err != nil {
		return 0, err
	}
	rows, err = i.fill(ctx, tx, fill, conflict, rowsAtOnce, func(all []Row) (left []Row, err error) {
		var values []any
		for _, r := range all {
			values = append(values, r.values()...)
		}
		query := strings.Replace(addSQL, `(`+placeholders+`)`, `(`+strings.Repeat(placeholders+`),(`, len(all)-1)+placeholders+`)`, 1)
		added, err := database.Read(ctx, tx, database.Text, query+` RETURNING uuid`, values...)
		for _, r := range all {
			if len(added) > 0 && added[0] == database.Kept(r.UUID) { // in the order of the values
				added = added[1:]
			} else {
				left = append(left, r)
			}
		}
		return left, err
	})
	if err != nil {
		return 0, err
	}
	return rows, execAll(ctx, tx, append(append([]string{keepHighest}, countersSQL(true)...), `ALTER TABLE tasks ENABLE TRIGGER USER`, `DROP TABLE known`,
		`ANALYZE tasks, task_days, task_months, task_repo_days, task_repo_months, task_sums, task_repos`))
}

// takeOff drops the indexes or triggers of tasks and returns what makes them
// again. The index that holds the one-live-run rule stays.
func takeOff(ctx context.Context, tx *sql.Tx, kind string) (again []string, err error) {
	var drops []string
	err = database.Each(ctx, tx, func(rows *sql.Rows) error {
		var name, query string
		err := rows.Scan(&name, &query)
		drops = append(drops, `DROP `+kind+` "`+strings.ReplaceAll(name, `"`, `""`)+`"`)
		again = append(again, query)
		return err
	}, `SELECT name, sql FROM sqlite_master WHERE tbl_name='tasks' AND type=? AND sql IS NOT NULL
		AND name<>'idx_tasks_live_key'`, kind)
	if err != nil {
		return nil, err
	}
	return again, execAll(ctx, tx, drops)
}

func execAll(ctx context.Context, tx *sql.Tx, queries []string) error {
	for _, q := range queries {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// fill adds the rows, so many at once; add returns those that could not be beside others.
func (i *Index) fill(ctx context.Context, tx *sql.Tx, fill func(add func(Row) error) error, conflict func(string, Row), most int, add func([]Row) ([]Row, error)) (rows int64, err error) {
	var all []Row
	put := func() error {
		if len(all) == 0 {
			return nil
		}
		left, err := add(all)
		rows += int64(len(all) - len(left))
		for _, r := range left {
			if err == nil {
				err = i.standing(ctx, tx, r, conflict)
			}
		}
		all = all[:0]
		return err
	}
	err = fill(func(r Row) error {
		if all = append(all, r); len(all) < most {
			return nil
		}
		return put()
	})
	if err == nil {
		err = put()
	}
	return rows, err
}

// standing tells conflict of the row in whose way another one is.
func (i *Index) standing(ctx context.Context, tx *sql.Tx, r Row, conflict func(string, Row)) error {
	var stands string
	err := tx.QueryRowContext(ctx, `SELECT uuid FROM tasks WHERE uuid=? OR task_source=? AND owner=? AND repo=? AND task_type=? AND task_id=? AND `+live+
		` ORDER BY uuid=? DESC LIMIT 1`, r.UUID, r.Key.Source, r.Key.Owner, r.Key.Repo, r.Key.Type, r.Key.ID, r.UUID).Scan(&stands)
	if err == nil {
		conflict(stands, r)
	}
	return err
}
