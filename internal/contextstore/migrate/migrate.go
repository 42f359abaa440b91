// Package migrate copies all that a base directory holds of runs and conversations into another
// one, whoever keeps either: files, SQLite or PostgreSQL. It reads and writes only through disk,
// by the files of contexts, so that every line stays what it is byte by byte.
package migrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
	Progress func(Report)        // hears after each context; may be nil
	Redact   func(string) string // what the texts of a run of an older edition pass, which nobody may have masked
}

// Report is what came of it. Contexts and conversations count alike.
type Report struct {
	Copied int64 `json:"copied"`
	There  int64 `json:"there"` // were there already, the same byte by byte
	Bytes  int64 `json:"bytes"` // of those that were copied
	Rows   int64 `json:"rows"`  // of house.db

	Notes []Note `json:"notes,omitempty"` // of runs of an older edition
}

func (r *Report) note(uuid, kind string) { r.Notes = append(r.Notes, Note{uuid, kind}) }

// files lie in the base directory itself.
var files = []string{"audit.jsonl", "auto_approve.jsonl"}

// alone is how long other programs may take to leave a base directory.
const alone = 10 * time.Second

// Run copies what is not there yet. Nobody else may use either directory meanwhile. What it has
// copied is there whole, whenever it is stopped; called again it goes on. What is there already and
// differs is an error: it is not overwritten. The rows of the tasks are left to a rebuild.
func Run(ctx context.Context, o Options) (r Report, err error) {
	edition := contextstore.EditionOf(ctx, o.From)
	var from, to *database.Base
	if edition == 0 { // else nothing is made there
		var out func()
		if from, out, err = enter(ctx, o.From); err != nil {
			return r, err
		}
		defer out()
	}
	if !o.DryRun {
		if err := contextstore.RefuseAncestor(ctx, o.To); err != nil {
			return r, err
		}
		var out func()
		if to, out, err = enter(ctx, o.To); err != nil {
			return r, err
		}
		defer out()
	}
	if err := o.areas(ctx, &r); err != nil {
		return r, err
	}
	if edition == contextstore.StoreV3 {
		if err := o.rows(ctx, &r); err != nil {
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
	if edition == 0 {
		r.Rows, err = contextstore.CopyHouse(ctx, o.From, from, o.To, to)
	}
	return r, err
}

// areas copies all contexts and conversations.
func (o Options) areas(ctx context.Context, r *Report) (err error) {
	var look contextstore.Looker
	defer func() { err = errors.Join(err, look.Close()) }()
	for _, area := range append(slices.Clone(contextstore.StatusDirs), filepath.Base(contextstore.SessionsDir(""))) {
		if !o.DryRun {
			if err := o.FS.MkdirAll(filepath.Join(o.To, area)); err != nil {
				return err
			}
		}
		err := contextstore.Walk(o.From, []string{area}, func(dir string) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, held := contextstore.ReadOwner(dir); held {
				return i18n.E("migrate.held", dir)
			}
			s, to := source{dir: dir}, area
			if v, err := look.View(dir); err == nil && v.Edition != 0 {
				if s, to, err = o.brought(r, v); err != nil {
					return err
				}
			}
			if err := o.one(r, s, filepath.Join(o.To, to, filepath.Base(dir))); err != nil {
				return err
			}
			if o.Progress != nil {
				o.Progress(*r)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
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

// source is a context as it is to stand where it is copied to.
type source struct {
	dir   string            // "" where there is none
	put   map[string][]byte // files that take the place of those in dir, or stand beside them
	more  []byte            // behind the last line of its summaries
	clean func(string) string
}

// one copies a context, under another name first, and compares what is there with what was read.
func (o Options) one(r *Report, from source, to string) error {
	want, size, err := from.sum()
	if err != nil {
		return err
	}
	if disk.Exists(to) {
		got, _, err := source{dir: to}.sum()
		if err == nil && got != want {
			err = i18n.E("migrate.differs", to, from.name(to))
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
	if err := errors.Join(o.FS.MkdirAll(tmp), from.each(func(name string, dir bool) error {
		if dir {
			return o.FS.MkdirAll(filepath.Join(tmp, name))
		}
		return o.FS.Write(filepath.Join(tmp, name), func(w io.Writer) error { return from.write(name, w) })
	})); err != nil {
		return err
	}
	if got, _, err := (source{dir: tmp}).sum(); err != nil || got != want {
		return errors.Join(i18n.E("migrate.damaged", tmp, from.name(to)), err)
	}
	return o.FS.Rename(tmp, to)
}

// name is what a source is called.
func (s source) name(to string) string { return cmp.Or(s.dir, filepath.Base(to)) }

// file copies a file of the base directory that is not there yet.
func (o Options) file(from, to string) error {
	if !disk.Exists(from) || disk.Exists(to) {
		return nil
	}
	return o.FS.CopyFile(from, to)
}

// each calls f for each file and directory of a context by its name there, in the order of the
// names. Locks mean nothing without who holds them, and temporary files are no part of it.
func (s source) each(f func(name string, dir bool) error) (err error) {
	entries := map[string]bool{}
	for name := range s.put {
		entries[name] = false
	}
	if s.dir != "" {
		err = disk.Walk(s.dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(s.dir, path)
			if err != nil || !e.IsDir() && contextstore.Passing(e.Name()) {
				return err
			}
			entries[name] = e.IsDir()
			return nil
		})
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err == nil {
			err = f(name, entries[name])
		}
	}
	return err
}

// write writes what a file is to hold.
func (s source) write(name string, w io.Writer) error {
	if b, ok := s.put[name]; ok {
		_, err := w.Write(b)
		return err
	}
	f, err := disk.OpenPlain(filepath.Join(s.dir, name))
	if err != nil {
		return err
	}
	if s.clean != nil && slices.Contains(logs, name) {
		err = s.lines(name, f, w)
	} else {
		_, err = io.Copy(w, f)
	}
	return errors.Join(err, f.Close())
}

// sum is a hash of the names and contents of a context's files, and how many bytes they have.
// Directories count by what is in them.
func (s source) sum() (hash [sha256.Size]byte, size int64, err error) {
	h := sha256.New()
	err = s.each(func(name string, dir bool) error {
		if dir {
			return nil
		}
		one := sha256.New()
		n := counter(0)
		err := s.write(name, io.MultiWriter(one, &n))
		size += int64(n)
		_, _ = fmt.Fprintf(h, "%q %d %x\n", name, n, one.Sum(nil))
		return err
	})
	return [sha256.Size]byte(h.Sum(nil)), size, err
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
