package tables

import (
	"errors"
	"time"

	"toritsugi/internal/i18n"
)

const (
	// movedFrom is how large a file is, in bytes, that is worth an object.
	movedFrom = 8 << 10
	// objectBytes is how much one object holds at most, in bytes; as much is held in memory.
	objectBytes = 4 << 20
)

// MoveOut has objects hold what the large files of a context hold that no SQL looks into: compressed
// logs, output, images. put stores a piece, whose name no other has; it is referred to within a time
// by the database's clock, or never. A file is read as before.
func (d *DB) MoveOut(path string, within time.Duration, put func(data []byte) (name string, err error)) error {
	p, err := d.at("move out", path)
	if err != nil {
		return err
	}
	r, err := d.current(p, false)
	if err != nil {
		return err
	}
	var files []row
	var until int64 // ms since 1970
	err = d.query(`SELECT f.id, f.size, f.version, {now} + CAST(? AS BIGINT) FROM files f WHERE f.context = ? AND f.size >= ? AND f.name NOT LIKE '%.json' AND f.name NOT LIKE '%.jsonl'
		AND NOT EXISTS (SELECT 1 FROM lines l WHERE l.file = f.id AND l.object IS NOT NULL)`, []any{within.Milliseconds(), r.context, int64(movedFrom)}, func(scan func(...any) error) error {
		f := row{context: r.context}
		err := scan(&f.id, &f.size, &f.version, &until)
		files = append(files, f)
		return err
	}, func() { files = nil })
	for _, f := range files {
		if err == nil {
			err = d.moveOut(f, until, put)
		}
	}
	return err
}

// moveOut is MoveOut of a file.
func (d *DB) moveOut(f row, until int64, put func([]byte) (string, error)) error {
	o := op{stmts: []stmt{
		{sql: `SELECT 1 FROM contexts WHERE id = ? AND {now} < ?`, args: []any{f.context, until}, must: mustSoon},
		{sql: `UPDATE files SET size = size WHERE id = ? AND version = ? AND size = ?`, args: []any{f.id, f.version, f.size}, must: mustSize},
		{sql: `DELETE FROM lines WHERE file = ?`, args: []any{f.id}},
	}}
	from := extents{db: d, file: f.id, version: f.version}
	var name string
	for at := int64(0); at < f.size; {
		b := make([]byte, min(objectBytes, f.size-at))
		if _, err := from.readAt(b, at, f.size); err != nil {
			return err
		}
		var err error
		if name, err = put(b); err != nil {
			return err
		}
		o.stmts = append(o.stmts, stmt{sql: `INSERT INTO lines (file, at, raw, object) VALUES (?, ?, ?, ?)`, args: []any{f.id, at, []byte{}, name}})
		at += int64(len(b))
	}
	o.done = func() (there bool, err error) {
		err = d.query(`SELECT count(*) > 0 FROM lines WHERE file = ? AND object = ?`, []any{f.id, name}, func(scan func(...any) error) error { return scan(&there) })
		return there, err
	}
	q := d.queueOf(f.context)
	return errors.Join(q.flush(o), q.leave())
}

// Objects are the names of the objects that the files of a context refer to.
func (d *DB) Objects(path string) (names []string, err error) {
	p, err := d.at("list objects", path)
	if err != nil {
		return nil, err
	}
	r, err := d.current(p, false)
	if err != nil {
		return nil, err
	}
	err = d.query(`SELECT l.object FROM files f JOIN lines l ON l.file = f.id WHERE f.context = ? AND f.size >= ? AND l.object IS NOT NULL`, []any{r.context, int64(movedFrom)}, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	}, func() { names = nil })
	return names, err
}

// object reads an object.
func (d *DB) object(name string) ([]byte, error) {
	if d.Object == nil {
		return nil, i18n.E("ledger.no_bucket", name)
	}
	b, err := d.Object(d.ctx, name, objectBytes)
	if err != nil { // without a cause: an object that is missing is no file that is missing
		return nil, &i18n.Error{Key: "ledger.object", Args: []any{err}}
	}
	return b, nil
}
