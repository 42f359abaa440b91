package contextstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
)

// checkRows are the rows of tasks.db as a check reads and mends them.
type checkRows struct {
	*index
	acks  *houseDB // nil where the check only reads
	house *house
}

// openCheckRows opens an existing tasks.db, read-only unless write is set; nil
// where there is none: it may be deleted at any time. Who writes is one of the
// processes that use the base.
func openCheckRows(ctx context.Context, base string, write bool) (r *checkRows, err error) {
	if _, err := os.Stat(filepath.Join(base, indexSchema.file)); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	r = &checkRows{}
	if !write {
		if r.index, err = openReader(ctx, base); err != nil {
			return nil, err
		}
		_, _, err = r.row(ctx, "")
		if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code() == 1 { // a table is not as we make it
			err = r.explain(errors.Join(errBroken, err))
		}
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		return r, nil
	}
	if r.house, err = openHouse(ctx, base); err != nil {
		return nil, err
	}
	if r.acks, err = openHouseDB(ctx, base, r.house); err == nil {
		r.index, err = openIndex(ctx, base, r.house, r.acks)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *checkRows) close() error {
	if r == nil {
		return nil
	}
	var err error
	if r.index != nil {
		err = r.index.close()
	}
	if r.acks != nil {
		err = errors.Join(err, r.acks.close())
	}
	if r.house != nil {
		r.house.close()
	}
	return err
}

// row returns the row of a context, false where there is none.
func (r *checkRows) row(ctx context.Context, uuid string) (row Row, ok bool, err error) {
	err = r.use(func(h *handles) error {
		rows, err := rowsOf(ctx, h.r, `SELECT rowid, `+columns+` FROM tasks WHERE uuid=?`, uuid)
		if ok = len(rows) > 0; ok {
			row = rows[0]
		}
		return err
	})
	return row, ok, err
}

// want is the row that a context should have.
func (r *checkRows) want(ctx context.Context, m Metadata, s State) (Row, error) {
	if r.acks == nil {
		return rowOf(m, s), nil
	}
	return r.index.row(ctx, m, s)
}

// put writes a row whole; a generation that is known to be higher stays.
func (r *checkRows) put(ctx context.Context, m Metadata, s State) error {
	g, err := r.generation(ctx, m.UUID)
	if err != nil {
		return err
	}
	s.Generation = max(s.Generation, g)
	if err := r.drop(ctx, m.UUID); err != nil {
		return err
	}
	return r.insert(ctx, m, s)
}

// each calls f with the uuid of every row; it reads page by page, so that f may
// change rows.
func (r *checkRows) each(ctx context.Context, f func(uuid string) error) error {
	for last := ""; ; {
		var rows []Row
		err := r.use(func(h *handles) (err error) {
			rows, err = rowsOf(ctx, h.r, `SELECT rowid, `+columns+` FROM tasks WHERE uuid > ? ORDER BY uuid LIMIT ?`, last, batch)
			return err
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := f(row.UUID); err != nil {
				return err
			}
		}
		if len(rows) < batch {
			return nil
		}
		last = rows[batch-1].UUID
	}
}

// checkHouseDB reports why house.db cannot be used: no run can then begin. That
// there is none is no damage, deliveries look for their own marks.
func checkHouseDB(ctx context.Context, base string) error {
	d := &database{schema: houseSchema, path: filepath.Join(base, houseSchema.file)}
	if _, err := os.Stat(d.path); err != nil {
		return nil //nolint:nilerr // whether base can be read is told elsewhere
	}
	var h *handles
	var err error
	if _, used := os.Stat(d.path + "-shm"); used == nil {
		h, err = d.openToRead(ctx)
	} else { // nobody has it open: it can be read without making anything beside it
		h, err = d.connectReader(ctx, "immutable", "1")
	}
	if errors.Is(err, errOlder) { // whoever opens it brings it up to date
		return nil
	}
	if err != nil {
		return err
	}
	var said string
	err = d.explain(h.r.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&said))
	if err == nil && said != "ok" {
		err = because(errBroken, d.broken, d.path, said)
	}
	return errors.Join(err, h.close())
}
