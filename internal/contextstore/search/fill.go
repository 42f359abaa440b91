package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// How much is written at once: runs, and bytes of their terms.
const (
	batchRuns  = 200
	batchBytes = 8 << 20
)

// CatchUp puts in the runs that ended and were not put in, and takes out those that are gone: after
// a kill, a deleted file, or the work of an older program. Where nothing came or went since it last
// looked it costs one stat. progress hears how many runs were read so far; may be nil.
func (d *DB) CatchUp(ctx context.Context, progress func(runs int64)) error {
	if d.readOnly != nil {
		return nil
	}
	if _, err := d.file.Check(ctx); err != nil {
		return err
	}
	st, err := disk.Stat(filepath.Join(d.dir, contextstore.DirCompleted))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	now := strconv.FormatInt(st.ModTime().UnixNano(), 10)
	known, err := d.meta(ctx, "seen")
	if err != nil || known == now && !st.ModTime().IsZero() {
		return err
	}
	same, err := d.same(ctx)
	if err == nil && !same {
		var there int64
		if there, err = d.fill(ctx, progress); err == nil {
			err = d.prune(ctx, there)
		}
	}
	// A clock is coarse: what comes a moment later may bear the same time.
	if err == nil && time.Since(st.ModTime()) > time.Second {
		err = d.change(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO search_meta VALUES ('seen', ?) ON CONFLICT DO UPDATE SET value=excluded.value`, now)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("bring %s up to date: %w", d.file.Path, err)
	}
	return nil
}

func (d *DB) meta(ctx context.Context, key string) (value string, err error) {
	err = d.file.Use(func(h *database.Handles) error {
		return h.R.QueryRowContext(ctx, `SELECT value FROM search_meta WHERE key=?`, key).Scan(&value)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return value, err
}

// same reports whether as many runs are kept as there are: whoever adds or removes one says so, and
// one at a time may be cut short at it.
func (d *DB) same(ctx context.Context) (bool, error) {
	there := int64(0)
	err := disk.Entries(filepath.Join(d.dir, contextstore.DirCompleted), func(e fs.DirEntry) error {
		if e.Name()[0] != '.' {
			there++
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	kept, err := d.count(ctx)
	return kept == there, err
}

func (d *DB) count(ctx context.Context) (n int64, err error) {
	err = d.file.Use(func(h *database.Handles) error {
		return h.R.QueryRowContext(ctx, `SELECT count(*) FROM runs`).Scan(&n)
	})
	return n, err
}

// fill puts in what is missing and returns how many runs there are.
func (d *DB) fill(ctx context.Context, progress func(int64)) (there int64, err error) {
	var docs []document
	size, read := 0, int64(0)
	flush := func() error {
		err := d.put(ctx, docs)
		docs, size = docs[:0], 0
		return err
	}
	err = contextstore.Walk(d.dir, []string{contextstore.DirCompleted}, func(dir string) error {
		there++
		if in, err := d.has(ctx, filepath.Base(dir)); err != nil || in {
			return err
		}
		doc, err := d.document(ctx, dir)
		if errors.Is(err, fs.ErrNotExist) {
			there--
			return nil
		}
		if err != nil {
			return err
		}
		if read++; progress != nil {
			progress(read)
		}
		docs, size = append(docs, doc), size+doc.size()
		if len(docs) >= batchRuns || size >= batchBytes {
			return flush()
		}
		return nil
	})
	return there, errors.Join(err, flush())
}

func (d *DB) has(ctx context.Context, uuid string) (in bool, err error) {
	err = d.file.Use(func(h *database.Handles) error {
		return h.R.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM runs WHERE uuid=?)`, uuid).Scan(&in)
	})
	return in, err
}

// prune takes out the runs that are gone, where there are more in it than there should be.
func (d *DB) prune(ctx context.Context, there int64) error {
	kept, err := d.count(ctx)
	if err != nil || kept <= there {
		return err
	}
	for after := ""; ; {
		uuids, err := database.List(ctx, d.file, database.Text, `SELECT uuid FROM runs WHERE uuid > ? ORDER BY uuid LIMIT ?`, after, batchRuns)
		if err != nil || len(uuids) == 0 {
			return err
		}
		after = uuids[len(uuids)-1]
		err = d.change(ctx, func(tx *sql.Tx) error {
			for _, uuid := range uuids {
				if _, err := disk.Lstat(filepath.Join(d.dir, contextstore.DirCompleted, uuid)); !errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err := remove(ctx, tx, uuid); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// Rebuild makes the search.db of a base directory anew, for which no other process may use the
// directory. A file that cannot be used is moved aside. runs is how many are in it.
func Rebuild(ctx context.Context, o Options, progress func(runs int64)) (runs int64, err error) {
	d, err := newDB(ctx, o)
	if err != nil {
		return 0, err
	}
	if d.readOnly = writable(d.dir); d.readOnly != nil {
		return 0, i18n.E("contextstore.base_dir", d.dir, d.readOnly)
	}
	if d.base, err = database.Enter(ctx, d.dir); err != nil {
		return 0, err
	}
	d.file.Base = d.base
	defer func() { err = errors.Join(err, d.Close()) }()
	release, err := d.base.Exclusive(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	if err := d.file.Renew(ctx); err != nil {
		return 0, err
	}
	err = d.change(ctx, func(tx *sql.Tx) error {
		for _, q := range []string{`INSERT INTO texts (texts) VALUES ('delete-all')`, `DELETE FROM runs`, `DELETE FROM vectors`, `DELETE FROM search_meta`} {
			if _, err := tx.ExecContext(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = d.CatchUp(ctx, func(n int64) {
			if runs = n; progress != nil {
				progress(n)
			}
		})
	}
	return runs, err
}
