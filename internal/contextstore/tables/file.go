package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"toritsugi/internal/disk"
)

// info describes a file or a directory.
type info struct {
	name          string
	size, version int64
	id, changed   int64
	dir           bool
}

// Name implements fs.FileInfo.
func (i info) Name() string { return i.name }

// Size implements fs.FileInfo.
func (i info) Size() int64 { return max(i.size, 0) }

// Mode implements fs.FileInfo: what is in the database is its owner's.
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | disk.DirMode
	}
	return disk.FileMode
}

// ModTime implements fs.FileInfo; zero of what no row tells of.
func (i info) ModTime() time.Time {
	if i.changed == 0 {
		return time.Time{}
	}
	return time.UnixMilli(i.changed)
}

// IsDir implements fs.FileInfo.
func (i info) IsDir() bool { return i.dir }

// Sys implements fs.FileInfo.
func (i info) Sys() any { return disk.FileID{File: i.id, Version: i.version ^ i.size<<1} }

// extents reads what the lines of a file hold.
type extents struct {
	db      *DB
	file    int64
	version int64 // that is read; another one is another file
	at      int64 // where buf begins
	buf     []byte
}

// ahead is how much is read at a time, in bytes, at the least.
const ahead = 8 << 10

// readAt reads of the first size bytes.
func (e *extents) readAt(p []byte, off, size int64) (n int, err error) {
	for n < len(p) && off < size {
		if i := off - e.at; i >= 0 && i < int64(len(e.buf)) {
			c := copy(p[n:], e.buf[i:])
			n, off = n+c, off+int64(c)
			continue
		}
		if err := e.fetch(off, min(max(int64(len(p)-n), ahead), size-off)); err != nil {
			return n, err
		}
		if len(e.buf) == 0 {
			return n, io.ErrUnexpectedEOF // it was cut or replaced
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// fetch reads want bytes from off on.
func (e *extents) fetch(off, want int64) error {
	e.at, e.buf = off, e.buf[:0]
	next := off
	var object string // that holds what begins at from
	var from int64
	err := e.db.query(`SELECT at, substr(raw, CAST(CASE WHEN at < ? THEN ? - at ELSE 0 END + 1 AS INTEGER), CAST(? AS INTEGER)), coalesce(object, '') FROM lines
		WHERE file = ? AND at < ? AND at >= coalesce((SELECT max(at) FROM lines WHERE file = ? AND at <= ?), 0)
			AND EXISTS (SELECT 1 FROM files WHERE id = ? AND version = ?) ORDER BY at`,
		[]any{off, off, want, e.file, off + want, e.file, off, e.file, e.version}, func(scan func(...any) error) error {
			var at int64
			var raw []byte
			var name string
			if err := scan(&at, &raw, &name); err != nil {
				return err
			}
			if name != "" && object == "" {
				object, from = name, at
			}
			if max(at, off) == next { // else there is a hole, or nothing of it behind off
				e.buf = append(e.buf, raw[:min(int64(len(raw)), off+want-next)]...)
				next = off + int64(len(e.buf))
			}
			return nil
		}, func() { e.buf, next, object = e.buf[:0], off, "" })
	if err == nil && object != "" {
		e.at = from
		e.buf, err = e.db.object(object)
	}
	return err
}

// opened is a file that is open for reading.
type opened struct {
	mu sync.Mutex
	extents
	path  string
	row   row
	whole *bytes.Reader // all of it, where it is little
	pos   int64
}

// Open implements disk.Place.
func (d *DB) Open(path string) (disk.Plain, error) {
	p, err := d.at("open", path)
	if err != nil {
		return nil, err
	}
	r, err := d.current(p, true)
	switch {
	case err == nil && (r.size < 0 || p.file == ""):
		err = disk.ErrNotPlain
	case err == nil && !r.found:
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	o := &opened{extents: extents{db: d, file: r.id, version: r.version}, path: path, row: r}
	if r.whole {
		o.whole = bytes.NewReader(r.raw)
	}
	o.row.raw = nil
	return o, nil
}

// current is look once what is written here is committed.
func (d *DB) current(p place, content bool) (row, error) {
	for {
		before := d.commits.Load()
		r, err := d.look(p, content)
		if err != nil {
			return r, err
		}
		if q := d.pending(r.context, p.file); q != nil {
			if err := q.flush(); err != nil {
				return r, err
			}
		} else if d.commits.Load() == before || d.engine.atOnce() {
			return r, nil
		}
	}
}

// Name implements disk.Plain.
func (o *opened) Name() string { return o.path }

// Stat implements disk.Plain: as the file is now, or was when it was last there.
func (o *opened) Stat() (fs.FileInfo, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q := o.db.pending(o.row.context, ""); q != nil {
		if err := q.flush(); err != nil {
			return nil, err
		}
	}
	err := o.db.query(`SELECT size, version, changed_at FROM files WHERE id = ?`, []any{o.file}, func(scan func(...any) error) error {
		return scan(&o.row.size, &o.row.version, &o.row.changed)
	})
	if o.whole != nil && o.row.version == o.version && o.row.size != o.whole.Size() {
		o.whole = nil // it grew
	}
	return o.row.info(filepath.Base(o.path)), err
}

func (r row) info(name string) info {
	return info{name: name, size: r.size, version: r.version, id: r.id, changed: r.changed, dir: r.size < 0}
}

// ReadAt implements io.ReaderAt.
func (o *opened) ReadAt(p []byte, off int64) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.whole != nil {
		return o.whole.ReadAt(p, off)
	}
	return o.readAt(p, off, o.row.size)
}

// Read implements io.Reader.
func (o *opened) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := o.ReadAt(p, o.pos)
	o.pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Seek implements io.Seeker.
func (o *opened) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.pos
	case io.SeekEnd:
		offset += o.row.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek in %s: before its beginning", o.path)
	}
	o.pos = offset
	return offset, nil
}

// Close implements io.Closer.
func (o *opened) Close() error { return nil }

// appended is a file that is appended to.
type appended struct {
	extents
	queue *queue
	name  string
	owner *lock // of the context when it was opened, nil where nobody here was

	mu        sync.Mutex
	size      int64 // with what is not committed
	committed int64
	closed    bool
	err       error // why something of it was not committed: it takes no more
}

// longest is the longest row, in bytes.
const longest = 1 << 20

// Append implements disk.Place.
func (d *DB) Append(path string, fresh bool) (disk.Appended, error) {
	p, err := d.at("open", path)
	if err != nil {
		return nil, err
	}
	r, err := d.current(p, false)
	if err == nil && r.found && fresh {
		err = fs.ErrExist
	}
	if err == nil && (p.file == "" || r.found && r.size < 0) {
		err = disk.ErrNotPlain
	}
	if err == nil && !r.found {
		r, err = d.make(p, r.context, 0, fresh)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	q := d.queueOf(r.context)
	return &appended{extents: extents{db: d, file: r.id, version: r.version}, queue: q, name: p.file, owner: q.holder(), size: r.size, committed: r.size}, nil
}

// make makes a file of a context, or with size -1 a directory.
func (d *DB) make(p place, context, size int64, fresh bool) (row, error) {
	q := d.queueOf(context)
	version := number()
	err := q.flush(op{file: p.file, stmts: []stmt{{
		sql:  `INSERT INTO files (context, name, size, version, changed_at) SELECT id, ?, ?, ?, {now} FROM contexts WHERE id = ? ON CONFLICT DO NOTHING`,
		args: []any{p.file, size, version, context}}}})
	if err = errors.Join(err, q.leave()); err != nil {
		return row{}, err
	}
	r, err := d.look(p, false)
	switch {
	case err != nil:
	case !r.found:
		err = fs.ErrNotExist
	case fresh && r.version != version:
		err = fs.ErrExist
	}
	return r, err
}

// Size implements disk.Appended.
func (a *appended) Size() int64 { size, _, _ := a.state(); return size }

// state is how much was written and committed, and why it takes no more.
func (a *appended) state() (size, committed int64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return a.size, a.committed, fs.ErrClosed
	}
	return a.size, a.committed, a.err
}

// fail has it take no more.
func (a *appended) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = err
	}
}

// WriteAt implements disk.Appended.
func (a *appended) WriteAt(b []byte, end int64) (int, error) {
	size, _, err := a.state()
	if err == nil && end != size {
		err = fmt.Errorf("write at %d of %d bytes: %w", end, size, errSize)
	}
	if err != nil {
		return 0, err
	}
	if len(b) == 0 {
		return 0, nil
	}
	b = bytes.Clone(b) // until it is committed
	o := op{file: a.name, bytes: len(b), owner: a.owner, failed: a.fail, stmts: []stmt{{
		sql:  `UPDATE files SET size = ?, changed_at = {now} WHERE id = ? AND size = ?`,
		args: []any{end + int64(len(b)), a.file, end}, must: mustSize}}}
	o.stmts = append(o.stmts, rows(a.file, end, b)...)
	o.stmts[1].joined = true
	last := o.stmts[len(o.stmts)-1].args[1:3]
	o.done = func() (there bool, err error) {
		err = a.db.query(`SELECT count(*) > 0 FROM lines WHERE file = ? AND at = ? AND raw = ?`, []any{a.file, last[0], last[1]}, func(scan func(...any) error) error { return scan(&there) })
		return there, err
	}
	if err := a.queue.put(o); err != nil {
		return 0, err
	}
	a.mu.Lock()
	a.size = end + int64(len(b))
	a.mu.Unlock()
	return len(b), nil
}

// rows are the statements that write bytes of a file, a row for each line.
func rows(file, at int64, b []byte) (all []stmt) {
	for len(b) > 0 {
		n := min(len(b), longest)
		if i := bytes.IndexByte(b[:n], '\n'); i >= 0 {
			n = i + 1
		}
		all = append(all, stmt{sql: `INSERT INTO lines (file, at, raw) VALUES (?, ?, ?)`, args: []any{file, at, b[:n]}})
		at, b = at+int64(n), b[n:]
	}
	return all
}

// ReadAt implements disk.Appended.
func (a *appended) ReadAt(p []byte, off int64) (int, error) {
	size, committed, err := a.state()
	if err == nil && off+int64(len(p)) > committed && committed < size {
		err = a.Sync()
	}
	if err != nil {
		return 0, err
	}
	// Several may read at once, and an idle context stays small (DESIGN §9).
	e := extents{db: a.db, file: a.file, version: a.version}
	return e.readAt(p, off, size)
}

// Sync implements disk.Appended.
func (a *appended) Sync() error {
	size, _, err := a.state()
	if err == nil {
		err = a.queue.flush()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		err = a.err
	}
	if err == nil {
		a.committed = max(a.committed, size)
	}
	return err
}

// Truncate implements disk.Appended.
func (a *appended) Truncate(size int64) error {
	if _, _, err := a.state(); err != nil {
		return err
	}
	o := op{file: a.name, owner: a.owner, stmts: []stmt{
		{sql: `UPDATE files SET size = ?, changed_at = {now} WHERE id = ? AND size >= ?`, args: []any{size, a.file, size}, must: mustSize},
		{sql: `UPDATE lines SET raw = substr(raw, 1, CAST(? - at AS INTEGER)) WHERE file = ? AND at < ? AND at = (SELECT max(at) FROM lines WHERE file = ? AND at < ?)`, args: []any{size, a.file, size, a.file, size}},
		{sql: `DELETE FROM lines WHERE file = ? AND at >= ?`, args: []any{a.file, size}},
	}}
	if err := a.queue.flush(o); err != nil {
		return err
	}
	a.mu.Lock()
	a.size, a.committed = size, size
	a.mu.Unlock()
	return nil
}

// Close implements io.Closer.
func (a *appended) Close() error {
	a.mu.Lock()
	was, failed := a.closed, a.err
	a.closed = true
	a.mu.Unlock()
	if was {
		return fs.ErrClosed
	}
	return errors.Join(a.queue.leave(), failed)
}
