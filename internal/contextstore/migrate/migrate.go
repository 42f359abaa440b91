// Package migrate copies all that a base directory holds of runs and conversations into another
// one, whoever keeps either: files, SQLite or PostgreSQL. It reads and writes only through disk,
// by the files of contexts, so that every line stays what it is byte by byte.
package migrate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Options say what is copied, and where to.
type Options struct {
	From, To string // base directories
	DryRun   bool   // look, and copy nothing
	FS       *disk.FS
	Progress func(Report) // hears after each context; may be nil
}

// Report is what came of it. Contexts and conversations count alike.
type Report struct {
	Copied int64 `json:"copied"`
	There  int64 `json:"there"` // were there already, the same byte by byte
	Bytes  int64 `json:"bytes"` // of those that were copied
	Rows   int64 `json:"rows"`  // of house.db
}

// files lie in the base directory itself.
var files = []string{"audit.jsonl", "auto_approve.jsonl"}

// alone is how long other programs may take to leave a base directory.
const alone = 10 * time.Second

// Run copies what is not there yet. Nobody else may use either directory meanwhile. What it has
// copied is there whole, whenever it is stopped; called again it goes on. What is there already and
// differs is an error: it is not overwritten. The rows of the tasks are left to a rebuild.
func Run(ctx context.Context, o Options) (r Report, err error) {
	from, leave, err := enter(ctx, o.From)
	if err != nil {
		return r, err
	}
	defer leave()
	var to *database.Base
	if !o.DryRun {
		if to, leave, err = enter(ctx, o.To); err != nil {
			return r, err
		}
		defer leave()
	}
	for _, area := range append(slices.Clone(contextstore.StatusDirs), filepath.Base(contextstore.SessionsDir(""))) {
		if !o.DryRun {
			if err := o.FS.MkdirAll(filepath.Join(o.To, area)); err != nil {
				return r, err
			}
		}
		err := contextstore.Walk(o.From, []string{area}, func(dir string) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := o.one(&r, dir, filepath.Join(o.To, area, filepath.Base(dir))); err != nil {
				return err
			}
			if o.Progress != nil {
				o.Progress(r)
			}
			return nil
		})
		if err != nil {
			return r, err
		}
	}
	if o.DryRun {
		return r, nil
	}
	for _, name := range files {
		if err := o.file(filepath.Join(o.From, name), filepath.Join(o.To, name)); err != nil {
			return r, err
		}
	}
	r.Rows, err = contextstore.CopyHouse(ctx, o.From, from, o.To, to)
	return r, err
}

// enter has a base directory for this program alone.
func enter(ctx context.Context, base string) (b *database.Base, leave func(), err error) {
	short, cancel := context.WithTimeout(ctx, alone)
	defer cancel()
	if b, err = database.Enter(short, base); err != nil {
		return nil, nil, err
	}
	release, err := b.Exclusive(short)
	if err != nil {
		b.Close()
		return nil, nil, err
	}
	return b, func() { release(); b.Close() }, nil
}

// one copies a context, under another name first, and compares what is there with what was read.
func (o Options) one(r *Report, from, to string) error {
	if _, held := contextstore.ReadOwner(from); held {
		return i18n.E("migrate.held", from)
	}
	want, size, err := sum(from)
	if err != nil {
		return err
	}
	if disk.Exists(to) {
		got, _, err := sum(to)
		if err == nil && got != want {
			err = i18n.E("migrate.differs", to, from)
		}
		r.There++
		return err
	}
	r.Copied++
	r.Bytes += size
	if o.DryRun {
		return nil
	}
	tmp := filepath.Join(filepath.Dir(to), ".tmp-migrate-"+filepath.Base(to))
	if err := o.FS.RemoveAll(tmp); err != nil {
		return err
	}
	if err := each(from, func(name string, e fs.DirEntry) error {
		if e.IsDir() {
			return o.FS.MkdirAll(filepath.Join(tmp, name))
		}
		return o.FS.CopyFile(filepath.Join(from, name), filepath.Join(tmp, name))
	}); err != nil {
		return err
	}
	if got, _, err := sum(tmp); err != nil || got != want {
		return errors.Join(i18n.E("migrate.damaged", tmp, from), err)
	}
	return o.FS.Rename(tmp, to)
}

// file copies a file of the base directory that is not there yet.
func (o Options) file(from, to string) error {
	if !disk.Exists(from) || disk.Exists(to) {
		return nil
	}
	return o.FS.CopyFile(from, to)
}

// each calls f for each file and directory of a context by its name there, in the order of the
// names. Locks mean nothing without who holds them, and temporary files are no part of it.
func each(dir string, f func(name string, e fs.DirEntry) error) error {
	entries := map[string]fs.DirEntry{}
	var names []string
	err := disk.Walk(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !e.IsDir() && contextstore.Passing(e.Name()) {
			return err
		}
		names, entries[name] = append(names, name), e
		return nil
	})
	slices.Sort(names)
	for _, name := range names {
		if err == nil {
			err = f(name, entries[name])
		}
	}
	return err
}

// sum is a hash of the names and contents of a context's files, and how many bytes they have.
// Directories count by what is in them.
func sum(dir string) (hash [sha256.Size]byte, size int64, err error) {
	h := sha256.New()
	err = each(dir, func(name string, e fs.DirEntry) error {
		if e.IsDir() {
			return nil
		}
		f, err := disk.OpenPlain(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		one := sha256.New()
		n, err := io.Copy(one, f)
		size += n
		_, _ = fmt.Fprintf(h, "%q %d %x\n", name, n, one.Sum(nil))
		return errors.Join(err, f.Close())
	})
	return [sha256.Size]byte(h.Sum(nil)), size, err
}
