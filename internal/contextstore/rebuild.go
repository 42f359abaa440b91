package contextstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
)

// renewIndex opens tasks.db for a rebuild, which needs the house exclusively. A
// file that cannot be used — malformed, of another program or a newer one — is
// moved aside, to tasks.db.broken-1 and so on, and a new one made in its place.
func renewIndex(ctx context.Context, base string, h *house, acks *houseDB) (*index, error) {
	if !h.isAlone() {
		return nil, fmt.Errorf("renew the index: the house is not held exclusively")
	}
	i := newIndex(base, h, acks)
	c, err := i.take(ctx)
	switch {
	case errors.Is(err, errOlder):
		if err = i.migrate(ctx); err == nil {
			c, err = i.take(ctx)
		}
	case errors.Is(err, errBroken), errors.Is(err, errNewer):
		if err = i.setAside(); err == nil {
			c, err = i.take(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("renew the index: %w", err)
	}
	i.h = c
	return i, nil
}

// setAside gives a file that cannot be used another name, with its WAL.
func (i *index) setAside() error {
	var aside string
	for n := 1; ; n++ {
		aside = fmt.Sprintf("%s.broken-%d", i.path, n)
		if _, err := os.Lstat(aside); errors.Is(err, os.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
	}
	if err := os.Rename(i.path, aside); err != nil {
		return err
	}
	for _, side := range []string{"-wal", "-shm"} {
		if err := os.Rename(i.path+side, aside+side); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// rebuild makes every row anew from what fill adds, in one transaction: until it
// ends others see the old rows, and an error leaves them as they were. It needs
// the house exclusively, and fill must not use the index otherwise. A row keeps
// the highest generation that was known of its uuid.
//
// A row that cannot be beside one that was added before it — a second live run
// of a key, or the same uuid once more — is left out and given to conflict, with
// the uuid of the row that stands. The file is never deleted. rows counts what
// the index then holds; the index is complete if nothing was left out and whole,
// which the caller says by setComplete. If the file turns out to be malformed it
// is moved aside and fill called once more, for a new one.
func (i *index) rebuild(ctx context.Context, fill func(add func(Metadata, State) error) error, conflict func(stands string, left Row)) (rows int64, err error) {
	if i.house == nil || !i.house.isAlone() {
		return 0, fmt.Errorf("rebuild the index: the house is not held exclusively")
	}
	rows, err = i.remake(ctx, fill, conflict)
	if errors.Is(err, errBroken) {
		// It could be opened and read, but not all of it: begin with a new file.
		if err = i.replace(ctx); err == nil {
			rows, err = i.remake(ctx, fill, conflict)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("rebuild the index: %w", err)
	}
	return rows, nil
}

// replace moves a malformed file aside and opens a new one.
func (i *index) replace(ctx context.Context) error {
	release, err := i.house.turn(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := i.setAside(); err != nil {
		return err
	}
	h, err := i.takeTurn(ctx)
	if err != nil {
		return err
	}
	return i.swap(h)
}

func (i *index) remake(ctx context.Context, fill func(add func(Metadata, State) error) error, conflict func(string, Row)) (rows int64, err error) {
	err = i.write(func(h *handles) (err error) {
		if _, err := h.w.ExecContext(ctx, rebuildCache); err != nil {
			return err
		}
		defer func() {
			_, cerr := h.w.ExecContext(context.WithoutCancel(ctx), `PRAGMA cache_size=-2000`)
			err = errors.Join(err, cerr)
		}()
		tx, err := h.w.BeginTx(ctx, nil)
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
		_, err = h.w.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
		return err
	})
	return rows, err
}

// rebuildCache is room for the pages of a million uuids, 64 MiB: uuids come in
// any order, and a page that finds no room goes to the WAL each time it changes.
const rebuildCache = `PRAGMA cache_size=-65536`

func (i *index) refill(ctx context.Context, tx *sql.Tx, fill func(add func(Metadata, State) error) error, conflict func(string, Row)) (rows int64, err error) {
	// Sorted at the end, indexes cost a fraction of what they do row by row.
	indexes, err := takeOff(ctx, tx, "index")
	if err != nil {
		return 0, err
	}
	triggers, err := takeOff(ctx, tx, "trigger")
	if err != nil {
		return 0, err
	}
	err = execAll(ctx, tx, append([]string{
		`CREATE TEMP TABLE known (uuid TEXT PRIMARY KEY, generation INTEGER) WITHOUT ROWID`,
		`INSERT INTO known SELECT uuid, generation FROM tasks WHERE generation > 0 ORDER BY uuid`,
		`DELETE FROM tasks`, `DELETE FROM task_days`, `DELETE FROM task_months`,
	}, triggers...))
	if err != nil {
		return 0, err
	}
	rows, err = i.fill(ctx, tx, fill, conflict)
	if err != nil {
		return 0, err
	}
	return rows, execAll(ctx, tx, append(indexes, `DROP TABLE known`))
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
func (i *index) fill(ctx context.Context, tx *sql.Tx, fill func(add func(Metadata, State) error) error, conflict func(string, Row)) (rows int64, err error) {
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
	err = fill(func(m Metadata, s State) error {
		r, err := i.row(ctx, m, s)
		if err != nil {
			return err
		}
		var g int64
		if err := known.QueryRowContext(ctx, r.UUID).Scan(&g); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		r.Generation = max(r.Generation, g)
		result, err := insert.ExecContext(ctx, r.values()...)
		switch {
		case isUnique(err):
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
