package fsck

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/index"
)

// rows are those of tasks.db as a check reads and mends them.
type rows struct {
	*index.Index
	house *contextstore.HouseDB // nil where the check only reads
	base  *database.Base
}

// openRows opens an existing tasks.db, read-only unless write is set; nil
// where there is none: it may be deleted at any time. Who writes is one of the
// processes that use the base.
func openRows(ctx context.Context, base string, write bool) (r *rows, err error) {
	if _, err := os.Stat(filepath.Join(base, index.File)); errors.Is(err, os.ErrNotExist) && database.ServerOf(base) == nil {
		return nil, nil
	}
	r = &rows{}
	if !write {
		r.Index, err = index.OpenReader(ctx, base)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	if r.base, err = database.Enter(ctx, base); err != nil {
		return nil, err
	}
	if r.house, err = contextstore.OpenHouseDB(ctx, base, r.base); err == nil {
		r.Index, err = index.Open(ctx, base, r.base, contextstore.NewRows(base, r.house))
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *rows) close() error {
	if r == nil {
		return nil
	}
	err := errors.Join(r.Close(), r.house.Close())
	if r.base != nil {
		r.base.Close()
	}
	return err
}

// put writes the row that a context should have, whole.
func (r *rows) put(ctx context.Context, m contextstore.Metadata, s contextstore.State) error {
	row, err := r.house.Row(ctx, m, s)
	if err != nil {
		return err
	}
	return r.Replace(ctx, row)
}
