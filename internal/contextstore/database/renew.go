package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"toritsugi/internal/i18n"
)

// Renew opens a database that is about to be filled anew, which needs the base
// directory exclusively. A file that cannot be used — malformed, of another program or a
// newer one — is moved aside, to NAME.broken-1 and so on, and a new one made in its place.
func (d *File) Renew(ctx context.Context) error {
	if !d.Base.Alone() {
		return fmt.Errorf("renew %s: others may use it", d.Path)
	}
	h, err := d.take(ctx)
	switch {
	case errors.Is(err, ErrOlder):
		if err = d.migrate(ctx); err == nil {
			h, err = d.take(ctx)
		}
	case errors.Is(err, ErrBroken), errors.Is(err, ErrNewer):
		if err = d.setAside(); err == nil {
			h, err = d.take(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("renew %s: %w", d.Path, err)
	}
	d.h = h
	return nil
}

// Replace moves a file that turned out to be malformed aside and opens a new one.
func (d *File) Replace(ctx context.Context) error {
	release, err := d.Base.Turn(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := d.setAside(); err != nil {
		return err
	}
	h, err := d.takeTurn(ctx)
	if err != nil {
		return err
	}
	return d.swap(h)
}

// setAside gives a file that cannot be used another name, with its WAL.
func (d *File) setAside() error {
	var aside string
	for n := 1; ; n++ {
		aside = fmt.Sprintf("%s.broken-%d", d.Path, n)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
	}
	if err := os.Rename(d.Path, aside); err != nil {
		return err
	}
	for _, side := range []string{"-wal", "-shm"} {
		if err := os.Rename(d.Path+side, aside+side); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Verify reports why the database of a base directory cannot be used. That there is none
// is no error. It writes nothing.
func (s Schema) Verify(ctx context.Context, dir string) error {
	d := &File{Schema: s, Path: filepath.Join(dir, s.File)}
	if _, err := os.Stat(d.Path); err != nil {
		return nil //nolint:nilerr // whether dir can be read is told elsewhere
	}
	var h *Handles
	var err error
	if _, used := os.Stat(d.Path + "-shm"); used == nil {
		h, err = d.reader(ctx)
	} else { // nobody has it open: it can be read without making anything beside it
		h, err = d.connectReader(ctx, "immutable", "1")
	}
	if errors.Is(err, ErrOlder) { // whoever opens it brings it up to date
		return nil
	}
	if err != nil {
		return err
	}
	var said string
	err = d.explain(h.R.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&said))
	if err == nil && said != "ok" {
		err = i18n.E(d.Broken, d.Path, said).Of(ErrBroken)
	}
	return errors.Join(err, h.Close())
}
