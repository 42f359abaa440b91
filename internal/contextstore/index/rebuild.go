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
	if i.file.Base == nil || !i.file.Base.Alone() {
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
		if _, err := h.W.ExecContext(ctx, rebuildCache); err != nil {
			return err
		}
		defer func() {
			_, cerr := h.W.ExecContext(context.WithoutCancel(ctx), `PRAGMA cache_size=-2000`)
			err = errors.Join(err, cerr)
		}()
		tx, err := h.W.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		rows, err = i.refill(ctx, tx, fill, conflict)
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
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
	err = execAll(ctx, tx, []string{
		`CREATE TEMP TABLE known (uuid TEXT PRIMARY KEY, generation INTEGER) WITHOUT ROWID`,
		`INSERT INTO known SELECT uuid, generation FROM tasks WHERE generation > 0 ORDER BY uuid`,
		`DELETE FROM tasks`, `DELETE FROM task_days`, `DELETE FROM task_months`, `DELETE FROM task_repo_days`, `DELETE FROM task_repo_months`, `DELETE FROM task_sums`, `DELETE FROM task_repos`,
	})
	if err != nil {
		return 0, err
	}
	rows, err = i.fill(ctx, tx, fill, conflict)
	if err != nil {
		return 0, err
	}
	// Summed up at the end, counters cost a fraction of what they do row by row.
	return rows, execAll(ctx, tx, slices.Concat(countersSQL(), triggers, indexes, []string{`DROP TABLE known`}))
}

// takeOff drops the indexes or triggers of tasks and returns what makes them
// again. The index that holds the one-live-run rule stays.
func takeOff(ctx context.Context, tx *sql.Tx, kind string) (again []string, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT name, sql FROM sqlite_master WHERE tbl_name='tasks' AND type=? AND sql IS NOT NULL
		AND name<>'idx_tasks_live_key'`, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var drops []string
	for rows.Next() {
		var name, query string
		if err := rows.Scan(&name, &query); err != nil {
			return nil, err
		}
		drops = append(drops, `DROP `+kind+` "`+strings.ReplaceAll(name, `"`, `""`)+`"`)
		again = append(again, query)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
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

// fill adds the rows.
func (i *Index) fill(ctx context.Context, tx *sql.Tx, fill func(add func(Row) error) error, conflict func(string, Row)) (rows int64, err error) {
	insert, err := tx.PrepareContext(ctx, insertSQL)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	known, err := tx.PrepareContext(ctx, `SELECT generation FROM known WHERE uuid=?`)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, known.Close()) }()
	err = fill(func(r Row) error {
		var g int64
		if err := known.QueryRowContext(ctx, r.UUID).Scan(&g); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		r.Generation = max(r.Generation, g)
		result, err := insert.ExecContext(ctx, r.values()...)
		switch {
		case database.IsUnique(err):
			var stands string
			err := tx.QueryRowContext(ctx, `SELECT uuid FROM tasks WHERE task_source=? AND owner=? AND repo=? AND task_type=? AND task_id=?
				AND `+live, r.Key.Source, r.Key.Owner, r.Key.Repo, r.Key.Type, r.Key.ID).Scan(&stands)
			if err != nil {
				return err
			}
			conflict(stands, r)
			return nil
		case err != nil:
			return err
		}
		n, err := result.RowsAffected()
		if err == nil && n == 0 {
			conflict(r.UUID, r)
		}
		rows += n
		return err
	})
	return rows, err
}
