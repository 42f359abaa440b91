package contextstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Mark returns what SetMark kept under a scope and a name, "" where nothing was.
func (s *Store) Mark(ctx context.Context, scope, name string) (string, error) {
	return s.houseDB.Mark(ctx, scope, name)
}

// Mark is Store.Mark.
func (d *HouseDB) Mark(ctx context.Context, scope, name string) (value string, err error) {
	err = d.use(ctx, func(h *database.Handles) error {
		return h.R.QueryRowContext(ctx, `SELECT value FROM marks WHERE scope=? AND name=?`, scope, name).Scan(&value)
	})
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read the mark %s of %s: %w", name, scope, err)
	}
	return value, nil
}

// Marks returns the names under which something is kept in a scope, in their order.
func (s *Store) Marks(ctx context.Context, scope string) (names []string, err error) {
	names, err = list(ctx, s.houseDB, database.Text, `SELECT name FROM marks WHERE scope=? ORDER BY name`, scope)
	if err != nil {
		return nil, fmt.Errorf("read the marks of %s: %w", scope, err)
	}
	return names, nil
}

// MarkOnce is Mark of what is kept once and never changed: value makes it where nothing is.
func (s *Store) MarkOnce(ctx context.Context, scope, name string, value func() string) (string, error) {
	if kept, err := s.Mark(ctx, scope, name); kept != "" || err != nil {
		return kept, err
	}
	err := s.keepMark(ctx, scope, name, `INSERT INTO marks (scope, name, value, marked_at) VALUES (?,?,?,?) ON CONFLICT(scope, name) DO NOTHING`, scope, name, value(), s.now().String())
	if err != nil {
		return "", err
	}
	return s.Mark(ctx, scope, name)
}

// SetMark keeps a short value durably in house.db: what a door must remember
// and no directory can tell, as how far the comments of a repository were read. "" forgets it.
func (s *Store) SetMark(ctx context.Context, scope, name, value string) error {
	if value == "" {
		return s.keepMark(ctx, scope, name, `DELETE FROM marks WHERE scope=? AND name=?`, scope, name)
	}
	return s.keepMark(ctx, scope, name, `INSERT INTO marks (scope, name, value, marked_at) VALUES (?,?,?,?)
		ON CONFLICT(scope, name) DO UPDATE SET value=excluded.value, marked_at=excluded.marked_at`, scope, name, value, s.now().String())
}

// keepMark changes a mark by one statement, which needs no transaction.
func (s *Store) keepMark(ctx context.Context, scope, name, query string, args ...any) error {
	err := s.houseDB.use(ctx, func(h *database.Handles) error {
		return database.Retry(ctx, func() error {
			_, err := h.W.ExecContext(ctx, query, args...)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("keep the mark %s of %s: %w", name, scope, err)
	}
	return nil
}

// Alone is the right to be the only one of a kind in a base directory.
type Alone struct {
	lock disk.Lock
	path string
}

// Alone makes the caller the only one of its kind in the base directory, until it is
// released or the process ends. ErrBusy: there is one.
func (s *Store) Alone(kind string) (*Alone, error) {
	path := alonePath(s.BaseDir, kind)
	verbs := map[string]string{"retention": "cleanup", "maintenance": "maintain", "inbox": "serve"}
	l, err := filelock.Take(path, os.O_CREATE)
	if errors.Is(err, filelock.ErrLocked) {
		return nil, i18n.E("contextstore.alone", cmp.Or(verbs[kind], kind), s.BaseDir).Of(ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	return &Alone{l, path}, nil
}

// Held reports whether the caller is the only one still: another may be, after a while in which
// the database could not be reached, or this process did not run.
func (a *Alone) Held() bool { return a.lock.Held(a.path) }

// Release gives the right up.
func (a *Alone) Release() { a.lock.Release() }

// IsAlone reports whether some process is the only one of its kind (Store.Alone) in a base directory
// now. It takes no lock.
func IsAlone(base, kind string) bool {
	return filelock.Locked(alonePath(base, kind))
}

func alonePath(base, kind string) string { return filepath.Join(base, "."+kind+".lock") }
