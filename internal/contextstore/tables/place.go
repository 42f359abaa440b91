package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/disk"
)

// Stat implements disk.Place.
func (d *DB) Stat(path string) (fs.FileInfo, error) {
	p, err := d.at("stat", path)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	if p.isArea() {
		return info{name: name, dir: true}, nil
	}
	r, err := d.current(p, false)
	if err == nil && p.isContext() {
		return info{name: name, dir: true, id: r.context, changed: r.made}, nil
	}
	if err == nil && !r.found {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return r.info(name), nil
}

// FindDir implements disk.Place: the paths are of contexts.
func (d *DB) FindDir(paths []string) (string, error) {
	var which []string
	var args []any
	called := map[place]string{}
	for _, path := range paths {
		p, err := d.at("find", path)
		if err != nil {
			return "", err
		}
		which, args = append(which, "area = ? AND name = ?"), append(args, p.area, p.name)
		called[p] = path
	}
	found := ""
	err := d.query(`SELECT area, name FROM contexts WHERE `+strings.Join(which, " OR "), args, func(scan func(...any) error) error {
		var p place
		err := scan(&p.area, &p.name)
		found = called[p]
		return err
	}, func() { found = "" })
	if err == nil && found == "" {
		err = fs.ErrNotExist
	}
	return found, err
}

// entriesAtOnce is how many contexts are listed at a time.
const entriesAtOnce = 1000

// Entries implements disk.Place.
func (d *DB) Entries(path string, f func(fs.DirEntry) error) error {
	p, err := d.at("read", path)
	if err != nil {
		return err
	}
	if p.isArea() {
		return d.contexts(p.area, f)
	}
	r, err := d.current(p, false)
	if err == nil {
		if q := d.pending(r.context, ""); q != nil {
			err = q.flush()
		}
	}
	if err == nil && !p.isContext() && (!r.found || r.size >= 0) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return &fs.PathError{Op: "read", Path: path, Err: err}
	}
	var all []info
	prefix := ""
	if !p.isContext() {
		prefix = p.file + "/"
	}
	err = d.query(`SELECT id, name, size, version, changed_at FROM files WHERE context = ?`, []any{r.context}, func(scan func(...any) error) error {
		var i info
		if err := scan(&i.id, &i.name, &i.size, &i.version, &i.changed); err != nil {
			return err
		}
		if rest, below := strings.CutPrefix(i.name, prefix); below && rest != "" && !strings.Contains(rest, "/") {
			i.name, i.dir = rest, i.size < 0
			all = append(all, i)
		}
		return nil
	}, func() { all = nil })
	for _, i := range all {
		if err == nil {
			err = f(fs.FileInfoToDirEntry(i))
		}
	}
	return err
}

// contexts calls f for each context of an area.
func (d *DB) contexts(area string, f func(fs.DirEntry) error) error {
	for after := ""; ; {
		var some []info
		err := d.query(fmt.Sprintf(`SELECT id, name, made_at FROM contexts WHERE area = ? AND name > ? ORDER BY name LIMIT %d`, entriesAtOnce), []any{area, after}, func(scan func(...any) error) error {
			i := info{dir: true}
			err := scan(&i.id, &i.name, &i.changed)
			some = append(some, i)
			return err
		}, func() { some = nil })
		if err != nil {
			return err
		}
		for _, i := range some {
			if err := f(fs.FileInfoToDirEntry(i)); err != nil {
				return err
			}
			after = i.name
		}
		if len(some) < entriesAtOnce {
			return nil
		}
	}
}

// Replace implements disk.Place.
func (d *DB) Replace(path string, data []byte, durable bool) error {
	p, err := d.at("replace", path)
	if err != nil {
		return err
	}
	id, err := d.contextOf(p)
	if err != nil {
		return &fs.PathError{Op: "replace", Path: path, Err: err}
	}
	version := number()
	o := op{file: p.file, replace: true, bytes: len(data), stmts: []stmt{
		{sql: `INSERT INTO files (context, name, size, version, changed_at) SELECT id, ?, ?, ?, {now} FROM contexts WHERE id = ?
			ON CONFLICT (context, name) DO UPDATE SET size = excluded.size, version = excluded.version, changed_at = excluded.changed_at`, args: []any{p.file, int64(len(data)), version, id}, must: mustExist},
		{sql: `DELETE FROM lines WHERE file = (SELECT id FROM files WHERE context = ? AND name = ?)`, args: []any{id, p.file}},
	}}
	for _, s := range rows(0, 0, bytes.Clone(data)) {
		o.stmts = append(o.stmts, stmt{sql: `INSERT INTO lines (file, at, raw) SELECT id, ?, ? FROM files WHERE context = ? AND name = ?`,
			args: []any{s.args[1], s.args[2], id, p.file}})
	}
	o.done = func() (there bool, err error) {
		r, err := d.look(p, false)
		return r.version == version, err
	}
	q := d.queueOf(id)
	if durable || q.holder() == nil {
		return errors.Join(q.flush(o), q.leave())
	}
	err = q.put(o)
	q.part()
	return err
}

// contextOf is the number of the context that a place lies in.
func (d *DB) contextOf(p place) (id int64, err error) {
	lost := false
	d.mu.Lock()
	for l := range d.locks {
		if l.name == disk.OwnerLock && l.at.area == p.area && l.at.name == p.name {
			if lost = lost || l.lost; !l.lost {
				id = l.queue.context
			}
		}
	}
	d.mu.Unlock()
	switch {
	case id != 0:
		return id, nil
	case lost: // who held it writes on, and knows nothing of it yet
		return 0, disk.ErrNotOwner
	}
	r, err := d.look(p, false)
	return r.context, err
}

// Rename implements disk.Place.
func (d *DB) Rename(from, to string) error {
	a, err := d.at("rename", from)
	if err != nil {
		return err
	}
	b, err := d.at("rename", to)
	if err != nil {
		return err
	}
	id, err := d.contextOf(a)
	if err != nil {
		return &fs.PathError{Op: "rename", Path: from, Err: err}
	}
	q := d.queueOf(id)
	switch {
	case a.isContext() && b.isContext():
		err = q.flush(op{stmts: []stmt{{sql: `UPDATE contexts SET area = ?, name = ? WHERE id = ? AND area = ? AND name = ?`, args: []any{b.area, b.name, id, a.area, a.name}, must: mustExist}},
			done: func() (bool, error) { r, err := d.look(b, false); return r.context == id, err }})
		if database.IsUnique(err) {
			err = fs.ErrExist
		}
		if err == nil {
			d.moved(id, b)
		}
	case a.file != "" && b.file != "" && a.area == b.area && a.name == b.name:
		var r row
		if r, err = d.current(a, false); err == nil && !r.found {
			err = fs.ErrNotExist
		}
		if err != nil {
			break
		}
		err = q.flush(op{stmts: []stmt{
			{sql: `DELETE FROM lines WHERE file = (SELECT id FROM files WHERE context = ? AND name = ?)`, args: []any{id, b.file}},
			{sql: `DELETE FROM files WHERE context = ? AND name = ?`, args: []any{id, b.file}},
			{sql: `UPDATE files SET name = ?, changed_at = {now} WHERE context = ? AND name = ?`, args: []any{b.file, id, a.file}, must: mustExist},
		}, done: func() (bool, error) { now, err := d.look(b, false); return now.id == r.id, err }})
	default:
		err = errors.New("only within one context, or a whole one")
	}
	if err = errors.Join(err, q.leave()); err != nil {
		return fmt.Errorf("rename %s to %s: %w", from, to, err)
	}
	return nil
}

// moved tells the locks of a context where it lies now.
func (d *DB) moved(id int64, to place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.locks {
		if l.queue.context == id {
			l.at.area, l.at.name = to.area, to.name
		}
	}
}

// Remove implements disk.Place.
func (d *DB) Remove(path string, all bool) error {
	p, err := d.at("remove", path)
	if err != nil {
		return err
	}
	if p.isArea() {
		return &fs.PathError{Op: "remove", Path: path, Err: errors.New("it is a directory of contexts")}
	}
	id, err := d.contextOf(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	q := d.queueOf(id)
	o := op{}
	which, args := `context = ? AND name = ?`, []any{id, p.file}
	switch {
	case p.isContext() && !all:
		which, args = `context = ? AND 1 = 0`, []any{id} // as a directory with something in it stays
		o.stmts = append(o.stmts, stmt{sql: `DELETE FROM contexts WHERE id = ? AND NOT EXISTS (SELECT 1 FROM files WHERE context = ?)`, args: []any{id, id}, must: mustBeEmpty})
	case p.isContext():
		which, args = `context = ?`, []any{id}
	case all:
		which, args = `context = ? AND (name = ? OR substr(name, 1, CAST(? AS INTEGER)) = ?)`, []any{id, p.file, int64(len([]rune(p.file)) + 1), p.file + "/"}
	}
	o.stmts = append(o.stmts,
		stmt{sql: `DELETE FROM lines WHERE file IN (SELECT id FROM files WHERE ` + which + `)`, args: args},
		stmt{sql: `DELETE FROM locks WHERE ` + which, args: args},
		stmt{sql: `DELETE FROM files WHERE ` + which, args: args})
	if p.file == "" || filepath.Base(p.file) == disk.OwnerLock { // with it goes what the next attempt would demand
		o.done = func() (bool, error) {
			r, err := d.look(p, false)
			if errors.Is(err, fs.ErrNotExist) {
				return true, nil
			}
			return err == nil && (r.context != id || p.file != "" && !r.found), err
		}
	}
	if p.isContext() && all {
		o.stmts = append(o.stmts, stmt{sql: `DELETE FROM contexts WHERE id = ?`, args: []any{id}})
	}
	if err := errors.Join(q.flush(o), q.leave()); err != nil {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

// Mkdir implements disk.Place.
func (d *DB) Mkdir(path string) error {
	p, err := d.at("mkdir", path)
	switch {
	case err != nil:
		return err
	case p.isArea():
		return nil
	case p.isContext():
		err = d.commit([]stmt{{sql: `INSERT INTO contexts (area, name, made_at) VALUES (?, ?, {now}) ON CONFLICT DO NOTHING`, args: []any{p.area, p.name}}}, true, nil)
	default:
		var r row
		if r, err = d.look(p, false); err == nil && !r.found {
			_, err = d.make(p, r.context, -1, false)
		}
	}
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return nil
}
