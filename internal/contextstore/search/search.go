// Package search keeps search.db: the terms of what ended runs were asked, planned, said and did,
// and finds runs by words, and runs that are like another. The texts are read from the files of
// those that are found. The file can be deleted; no error of it fails a task.
package search

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // search.sql
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// File is the name of the database in a base directory.
const File = "search.db"

//go:embed search.sql
var searchSQL string

var schema = sync.OnceValue(func() database.Schema {
	return database.Schema{File: File, SQL: searchSQL, Version: 2, Sync: "NORMAL", Busy: 5000, Newer: "search.newer", Broken: "search.broken"}
})

// DB is an open search.db. Its methods may be called from several goroutines.
type DB struct {
	file     *database.File
	base     *database.Base // nil for a reader
	dir      string         // the base directory
	reader   reader
	vectors  Vectors
	readOnly error // why what is new cannot be put into it; nil where it can
}

// Options are where what is looked for lies.
type Options struct {
	BaseDir string
	Plans   string // planning.history.directory, absolute; "" where the histories lie in their contexts
	Vectors Vectors
}

// Exists reports whether a base directory has a search.db.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, File))
	return err == nil
}

// Verify reports why the search.db of a base directory cannot be used. That there is none is no
// error. It reads all of it and writes nothing.
func Verify(ctx context.Context, dir string) error { return schema().Verify(ctx, dir) }

// Open opens the search.db of a base directory and makes it, with nothing in it, where there is
// none: CatchUp fills it. Of a directory that cannot be written, or belongs to somebody else, it is
// opened for reading, and an error where there is none.
func Open(ctx context.Context, o Options) (*DB, error) {
	d, err := newDB(ctx, o)
	if err != nil {
		return nil, err
	}
	if d.readOnly = writable(d.dir); d.readOnly == nil {
		if d.base, err = database.Enter(ctx, d.dir); err != nil {
			return nil, fmt.Errorf("open %s: %w", d.file.Path, err)
		}
		d.file.Base = d.base
		err = d.file.Open(ctx)
	} else if err = d.file.OpenToRead(ctx); errors.Is(err, fs.ErrNotExist) {
		err = i18n.E("search.none", d.file.Path, d.readOnly)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", d.file.Path, err), d.Close())
	}
	return d, nil
}

func newDB(ctx context.Context, o Options) (*DB, error) {
	dir, err := filepath.Abs(o.BaseDir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, i18n.E("contextstore.no_base", dir, err)
	}
	if err := contextstore.RefuseAncestor(ctx, dir); err != nil {
		return nil, err
	}
	return &DB{dir: dir, reader: reader{o.Plans}, vectors: o.Vectors, file: &database.File{Schema: schema(), Path: filepath.Join(dir, File)}}, nil
}

// writable reports why files of ours cannot be made in a directory; what root makes in that of
// somebody else would be kept from its owner.
func writable(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner := disk.OwnerOf(st); owner >= 0 && owner != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d: %w", dir, owner, fs.ErrPermission)
	}
	f, err := os.CreateTemp(dir, ".probe-*") // rights do not tell of disks that are read-only
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// ReadOnly is why runs that ended since cannot be put into the database; nil where they can.
func (d *DB) ReadOnly() error { return d.readOnly }

// Close closes the database.
func (d *DB) Close() error {
	err := d.file.Close()
	if d.base != nil {
		d.base.Close()
	}
	return err
}

// document is what is kept of a run.
type document struct {
	uuid  string
	ended int64 // ms since 1970
	facet string
	terms [parts]string
}

func (d *document) size() (n int) {
	for _, t := range d.terms {
		n += len(t)
	}
	return n
}

// document reads a run. One that cannot be read is kept with nothing in it: it is not looked at again.
func (d *DB) document(ctx context.Context, dir string) (document, error) {
	doc := document{uuid: filepath.Base(dir)}
	v, err := contextstore.ReadView(dir)
	if err != nil {
		if _, gone := disk.Stat(dir); gone != nil {
			return doc, gone
		}
		return doc, nil
	}
	ended := v.State.CompletedAt
	if ended.IsZero() {
		ended = v.State.UpdatedAt
	}
	doc.ended = max(ended.UnixMilli(), 1)
	doc.facet = facets(v)
	var texts [parts]strings.Builder
	err = d.reader.eachLine(ctx, v, func(Part) bool { return true }, func(l Line) bool {
		b := &texts[l.Part]
		if b.Len() > 0 {
			b.WriteString(" " + gap + " ")
		}
		for i, t := range tokenize(l.Text) {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(t.term)
		}
		return true
	})
	for p := range texts {
		doc.terms[p] = texts[p].String()
	}
	if ctx.Err() == nil && errors.Is(err, fs.ErrNotExist) { // retention removed a file, or the run, meanwhile
		_, gone := disk.Stat(dir)
		return doc, gone
	}
	return doc, err
}

// facets are terms by which runs are chosen: status, user, repository in each of its spellings,
// place.
func facets(v contextstore.View) string {
	k := v.Metadata.TaskKey
	all := []string{facet("status", string(v.Status())), facet("user", v.Metadata.User), placeOf(k)}
	for name := strings.TrimPrefix(k.Owner+"/"+k.Repo, "/"); ; {
		all = append(all, facet("repo", name))
		_, rest, more := strings.Cut(name, "/")
		if !more {
			return strings.Join(all, " ")
		}
		name = rest
	}
}

// facet is a value as a term: letters and digits, whatever stands in it. The case of names does not
// count.
func facet(kind, value string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind + "\x00" + strings.ToLower(value)))
	return kind + strconv.FormatUint(h.Sum64(), 36)
}

// put writes documents, in one transaction.
func (d *DB) put(ctx context.Context, docs []document) error {
	if len(docs) == 0 {
		return nil
	}
	// In the order of their numbers FTS5 sorts them all at once.
	slices.SortFunc(docs, func(a, b document) int { return cmp.Compare(a.ended, b.ended) })
	err := d.change(ctx, func(tx *sql.Tx) error {
		for _, doc := range docs {
			if err := remove(ctx, tx, doc.uuid); err != nil {
				return err
			}
		}
		for _, doc := range docs {
			if err := insert(ctx, tx, doc); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", d.file.Path, err)
	}
	return nil
}

func (d *DB) change(ctx context.Context, f func(tx *sql.Tx) error) error {
	return d.file.Write(func(h *database.Handles) error {
		tx, err := h.W.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
}

func remove(ctx context.Context, tx *sql.Tx, uuid string) error {
	var id int64
	err := tx.QueryRowContext(ctx, `DELETE FROM runs WHERE uuid=? RETURNING id`, uuid).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	for _, q := range []string{`DELETE FROM texts WHERE rowid=?`, `DELETE FROM vectors WHERE id=?`} {
		if err == nil {
			_, err = tx.ExecContext(ctx, q, id)
		}
	}
	return err
}

// insert puts a document in. Where many runs ended at once, or nothing tells when, a free number
// comes after a few tries: each is among twice as many as the one before.
func insert(ctx context.Context, tx *sql.Tx, doc document) error {
	of := fnv.New64a()
	_, _ = of.Write([]byte(doc.uuid))
	for id, most := doc.ended, uint64(1); ; most *= 2 {
		r, err := tx.ExecContext(ctx, `INSERT INTO runs (id, uuid) VALUES (?, ?) ON CONFLICT(id) DO NOTHING`, id, doc.uuid)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			if err != nil {
				return err
			}
			id = doc.ended + 1 + int64(of.Sum64()>>20%most) //nolint:gosec // of most
			_, _ = of.Write([]byte{0})
			continue
		}
		t := doc.terms
		_, err = tx.ExecContext(ctx, `INSERT INTO texts (rowid, facet, title, request, summary, plan, messages, tools) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			id, doc.facet, t[Title], t[Request], t[SummaryPart], t[Plan], t[MessagesPart], t[ToolsPart])
		return err
	}
}

// Update brings what is kept of a run in line with its files: it ended, its summary or its logs
// changed, or it is gone. Of one that has not ended nothing is kept.
func (d *DB) Update(ctx context.Context, uuid string) error {
	if _, err := d.file.Check(ctx); err != nil {
		return err
	}
	dir := filepath.Join(d.dir, contextstore.DirCompleted, uuid)
	doc, err := d.document(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return d.change(ctx, func(tx *sql.Tx) error { return remove(ctx, tx, uuid) })
	}
	if err != nil {
		return err
	}
	return d.put(ctx, []document{doc})
}
