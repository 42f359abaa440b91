package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"toritsugi/internal/contextstore/database"
)

// Ancestor is the tasks.db that a program by store-v3 §2.2 alone made, open for reading. There it
// is the authority: no file tells what became of a run.
type Ancestor struct {
	db   *sql.DB
	Path string
}

// ErrOurs says that a tasks.db is one of this program, or no database of tasks at all.
var ErrOurs = errors.New("no tasks.db of store-v3")

// OpenAncestor opens the tasks.db of a base directory; ErrOurs, or fs.ErrNotExist where there is none.
func OpenAncestor(ctx context.Context, dir string) (*Ancestor, error) {
	a := &Ancestor{Path: filepath.Join(dir, File)}
	var err error
	if a.db, err = database.OpenForeign(ctx, a.Path); err != nil {
		return nil, err
	}
	var tables, ours int
	err = a.db.QueryRowContext(ctx, `SELECT count(*), count(CASE WHEN name='goose_db_version' THEN 1 END) FROM sqlite_master
		WHERE name IN ('tasks', 'goose_db_version')`).Scan(&tables, &ours)
	if err == nil && (tables != 1 || ours != 0) {
		err = ErrOurs
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Close closes it.
func (a *Ancestor) Close() error {
	if a == nil {
		return nil
	}
	return a.db.Close()
}

// Row returns the row of a run, false where there is none.
func (a *Ancestor) Row(ctx context.Context, uuid string) (row Row, ok bool, err error) {
	err = a.each(ctx, func(r Row) error { row, ok = r, true; return nil }, ` WHERE uuid=?`, uuid)
	return row, ok, err
}

// Each calls f for every row, in the order of their uuids.
func (a *Ancestor) Each(ctx context.Context, f func(Row) error) error {
	return a.each(ctx, f, ` ORDER BY uuid`)
}

func (a *Ancestor) each(ctx context.Context, f func(Row) error, where string, args ...any) (err error) {
	rows, err := a.db.QueryContext(ctx, `SELECT rowid, `+specified+` FROM tasks`+where, args...)
	if err != nil {
		return fmt.Errorf("read %s: %w", a.Path, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r Row
		if err := rows.Scan(r.fields()[:2+strings.Count(specified, ",")]...); err != nil {
			return fmt.Errorf("read %s: %w", a.Path, err)
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return rows.Err()
}
