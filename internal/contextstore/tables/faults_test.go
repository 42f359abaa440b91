package tables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/disk"
)

// faulty is SQLite that lets transactions wait as PostgreSQL does, and that fails once where it is
// told to.
type faulty struct {
	engine
	mu      sync.Mutex
	before  func() error // the next transaction is made
	after   func() error // it was committed
	queried func()       // the next query was answered
	twice   bool         // the answer of each other query gets lost
	queries int
}

var errGone = errors.New("the connection is gone")

func (f *faulty) atOnce() bool { return false }

func (f *faulty) unreachable(err error) bool {
	return errors.Is(err, errGone) || f.engine.unreachable(err)
}

func (f *faulty) next(p *func() error) error {
	f.mu.Lock()
	g := *p
	*p = nil
	f.mu.Unlock()
	if g == nil {
		return nil
	}
	return g()
}

func (f *faulty) run(ctx context.Context, all []stmt, durable bool) error {
	if err := f.next(&f.before); err != nil {
		return err
	}
	if err := f.engine.run(ctx, all, durable); err != nil {
		return err
	}
	return f.next(&f.after)
}

func (f *faulty) query(ctx context.Context, text string, args []any, each func(scan func(...any) error) error) error {
	err := f.engine.query(ctx, text, args, each)
	f.mu.Lock()
	g := f.queried
	f.queried = nil
	f.queries++
	lost := f.twice && f.queries%2 == 1
	f.mu.Unlock()
	if g != nil {
		g()
	}
	if err == nil && lost {
		err = errGone
	}
	return err
}

// faulted is a context that is owned, in a DB with faults.
func faulted(t *testing.T) (d *DB, f *faulty, dir string, l disk.Lock) {
	t.Helper()
	d = openSQLite(t, t.TempDir())
	f = &faulty{engine: d.engine}
	d.engine = f
	mount(t, d)
	dir = filepath.Join(d.Base, "running", "r")
	ok(t, (&disk.FS{}).MkdirAll(dir))
	l, err := d.Lock(filepath.Join(dir, disk.OwnerLock), true)
	ok(t, err)
	return d, f, dir, l
}

func begunFile(t *testing.T, dir string) *disk.File {
	t.Helper()
	h, err := (&disk.FS{}).OpenAppend(filepath.Join(dir, "messages.jsonl"))
	ok(t, err)
	_, err = h.Append([]byte("a\n"))
	ok(t, err)
	return h
}

// A commit that somebody else caused, and that failed, is told to who wrote: nothing counts as
// written that is not, and the file is as long as its lines.
func TestAFailedCommitIsTheWriters(t *testing.T) {
	t.Parallel()
	_, f, dir, _ := faulted(t)
	h := begunFile(t, dir)
	full := errors.New("disk full")
	f.before = func() error { return full }
	if _, err := disk.Stat(filepath.Join(dir, "messages.jsonl")); !errors.Is(err, full) { // a reader in the same process
		t.Error(err)
	}
	if err := h.Sync(); !errors.Is(err, full) {
		t.Errorf("acknowledged: %v", err)
	}
	if _, err := h.Append([]byte("b\n")); err == nil {
		t.Error("it goes on behind a hole")
	}
	if got := read(t, filepath.Join(dir, "messages.jsonl")); got != "" {
		t.Errorf("%q", got)
	}
}

// What is committed between two looks is seen.
func TestACommitBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	d, f, dir, _ := faulted(t)
	h := begunFile(t, dir)
	var q *queue
	for _, of := range d.queues {
		q = of
	}
	f.queried = func() { ok(t, q.flush()) }
	st, err := disk.Stat(filepath.Join(dir, "messages.jsonl"))
	ok(t, err)
	if st.Size() != h.Size() {
		t.Errorf("%d of %d bytes", st.Size(), h.Size())
	}
}

// Where the answer of a transaction gets lost, what it did is not done again.
func TestALostAnswer(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(d *DB, dir string, h *disk.File) error{
		"sync":  func(_ *DB, _ string, h *disk.File) error { return h.Sync() },
		"mkdir": func(d *DB, dir string, _ *disk.File) error { return d.Mkdir(filepath.Join(dir, "planning")) },
		"cut":   func(_ *DB, _ string, h *disk.File) error { return h.Truncate(2) },
		"unlock": func(d *DB, dir string, _ *disk.File) error {
			return d.Remove(filepath.Join(dir, disk.OwnerLock), false)
		},
		"rename": func(d *DB, dir string, h *disk.File) error {
			return d.Rename(dir, filepath.Join(d.Base, "paused", "r"))
		},
		"rename a file": func(d *DB, dir string, h *disk.File) error {
			return errors.Join(h.Sync(), d.Rename(filepath.Join(dir, "messages.jsonl"), filepath.Join(dir, "x")))
		},
		"replace": func(d *DB, dir string, _ *disk.File) error {
			return d.Replace(filepath.Join(dir, "state.json"), []byte("{}"), true)
		},
		"remove all": func(d *DB, dir string, _ *disk.File) error { return d.Remove(dir, true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, f, dir, _ := faulted(t)
			h := begunFile(t, dir)
			f.after = func() error { return errGone }
			if err := do(d, dir, h); err != nil {
				t.Error(err)
			}
			if name == "sync" || name == "mkdir" {
				ok(t, h.Sync())
				if got := read(t, filepath.Join(dir, "messages.jsonl")); got != "a\n" {
					t.Errorf("%q", got)
				}
			}
		})
	}
	t.Run("of what was not done", func(t *testing.T) {
		t.Parallel()
		d, f, dir, _ := faulted(t)
		h := begunFile(t, dir)
		f.before = func() error { return errGone }
		if err := d.Rename(filepath.Join(dir, "no"), filepath.Join(dir, "b")); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		ok(t, h.Sync())
		if got := read(t, filepath.Join(dir, "messages.jsonl")); got != "a\n" {
			t.Errorf("%q", got)
		}
	})
}

// A list whose answer gets lost is told once.
func TestAListIsToldOnce(t *testing.T) {
	t.Parallel()
	_, f, dir, _ := faulted(t)
	ok(t, (&disk.FS{}).Replace(filepath.Join(dir, "x"), []byte("x"), true))
	f.twice = true
	if got := names(t, dir); len(got) != 2 {
		t.Error(got)
	}
	if got := names(t, filepath.Dir(dir)); len(got) != 1 {
		t.Error(got)
	}
}

// A context that is moved while its lock is taken is not locked where it was.
func TestALockOfWhatMoves(t *testing.T) {
	t.Parallel()
	d, f, dir, l := faulted(t)
	w := &disk.FS{}
	to := filepath.Join(d.Base, "completed", "r")
	ok(t, d.engine.run(t.Context(), []stmt{{sql: `UPDATE locks SET until_ms = 0`}}, true))
	f.queried = func() {
		ok(t, w.Rename(dir, to))
		ok(t, w.Remove(filepath.Join(to, disk.OwnerLock)))
		l.Release()
	}
	if _, err := d.Lock(filepath.Join(dir, disk.OwnerLock), true); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if disk.Exists(filepath.Join(to, disk.OwnerLock)) {
		t.Error("a lock was left there")
	}
}

// Where a lease ended, and this process itself took the context over and gave it up, who owned it
// before writes nothing.
func TestTakenOverInOneProcess(t *testing.T) {
	t.Parallel()
	d, f, dir, l := faulted(t)
	h := begunFile(t, dir)
	ok(t, h.Sync())
	ok(t, f.engine.run(t.Context(), []stmt{{sql: `UPDATE locks SET until_ms = 0`}}, true))
	again, err := d.Lock(filepath.Join(dir, disk.OwnerLock), true)
	ok(t, err)
	again.Release()
	if _, err = h.Append([]byte("b\n")); err == nil {
		err = h.Sync()
	}
	if !errors.Is(err, disk.ErrNotOwner) {
		t.Errorf("written without a lock: %v", err)
	}
	if err := (&disk.FS{}).Replace(filepath.Join(dir, "state.json"), nil, true); !errors.Is(err, disk.ErrNotOwner) {
		t.Errorf("replaced without a lock: %v", err)
	}
	l.Release()
}

func TestReplaceOfWhatIsRemoved(t *testing.T) {
	t.Parallel()
	d, f, dir, l := faulted(t)
	l.Release()
	w := &disk.FS{}
	f.queried = func() { ok(t, w.RemoveAll(dir)) }
	if err := w.Replace(filepath.Join(dir, "request.json"), []byte("{}"), true); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	var n int
	ok(t, d.query(`SELECT count(*) FROM files f WHERE NOT EXISTS (SELECT 1 FROM contexts c WHERE c.id = f.context)`, nil, func(scan func(...any) error) error { return scan(&n) }))
	if n > 0 {
		t.Errorf("%d files of no context", n)
	}
}

// Several read one file at once, and what they read is what is there.
func TestParallelReads(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, base string, w *disk.FS) {
		dir := filepath.Join(base, "running", "r")
		ok(t, w.MkdirAll(dir))
		h, err := w.OpenAppend(filepath.Join(dir, "messages.jsonl"))
		ok(t, err)
		var all []byte
		for n := range 400 {
			all = fmt.Appendf(all, "%099d\n", n)
		}
		_, err = h.Append(all)
		ok(t, err)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 30 {
					n := (i*7 + g*97) % 400
					p := make([]byte, 100)
					if _, err := h.ReadAt(p, int64(n)*100); err != nil || string(p) != fmt.Sprintf("%099d\n", n) {
						t.Errorf("%q %v", p, err)
					}
				}
			})
		}
		wg.Wait()
		ok(t, h.Close())
	})
}

// Of a file that is replaced while it is read nothing is mixed.
func TestReplacedWhileItIsRead(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, base string, w *disk.FS) {
		path := filepath.Join(base, "running", "r", "x")
		ok(t, w.MkdirAll(filepath.Dir(path)))
		ok(t, w.Replace(path, bytes.Repeat([]byte("a"), 200<<10), true))
		h, err := disk.OpenPlain(path)
		ok(t, err)
		b := make([]byte, 100<<10)
		_, err = h.ReadAt(b[:50<<10], 0)
		ok(t, err)
		ok(t, w.Replace(path, bytes.Repeat([]byte("b"), 200<<10), true))
		if _, err = h.ReadAt(b[50<<10:], 50<<10); err == nil && strings.Trim(string(b), "a") != "" {
			t.Error("half of the old, half of the new")
		}
		ok(t, h.Close())
	})
}

// However a file comes, a line of it is a row, and one that is odd spoils no other.
func TestALineIsARow(t *testing.T) {
	t.Parallel()
	s, err := database.Dial(t.Context(), database.ServerOptions{URL: pgtest.URL(t)})
	ok(t, err)
	t.Cleanup(s.Close)
	server, err := OpenPostgres(t.Context(), Options{Base: t.TempDir()}, s)
	ok(t, err)
	t.Cleanup(func() { ok(t, server.Close()) })
	for name, d := range map[string]*DB{"sqlite": openSQLite(t, t.TempDir()), "postgres": server} {
		mount(t, d)
		dir := filepath.Join(d.Base, "running", "r")
		w := &disk.FS{}
		ok(t, w.MkdirAll(dir))
		var all bytes.Buffer
		for n := range 1000 {
			_, _ = fmt.Fprintf(&all, "{\"seq\":%d,\"content\":%q}\n", n+1, strings.Repeat("x", 90))
		}
		rows := func() (n int) {
			ok(t, d.query(`SELECT count(*) FROM messages WHERE seq > 0`, nil, func(scan func(...any) error) error { return scan(&n) }))
			return n
		}
		path := filepath.Join(dir, "messages.jsonl")
		ok(t, w.Write(path, func(o io.Writer) error {
			_, err := io.CopyBuffer(o, struct{ io.Reader }{bytes.NewReader(all.Bytes())}, make([]byte, 32<<10))
			return err
		}))
		if n := rows(); n != 1000 {
			t.Errorf("%s: %d rows of a copy", name, n)
		}
		all.WriteString("{\"seq\":\"x\"}\n{\"content\":\"a\\u0000b\"}\n{\"content\":\"\\ud800\"}\n[1]\n5\n\xff\n{\"torn")
		ok(t, w.Replace(path, all.Bytes(), true))
		if n := rows(); n != 1000 {
			t.Errorf("%s: %d rows of a file with odd lines", name, n)
		}
		if got := read(t, path); got != all.String() {
			t.Errorf("%s: it is another", name)
		}
	}
}

// What is given up as the DB is closed says why it waited, and nobody is told that the database is back.
func TestClosedWhileItIsAway(t *testing.T) {
	t.Parallel()
	d := openSQLite(t, t.TempDir())
	d.engine = &faulty{engine: d.engine}
	var told []error
	d.Waiting = func(err error) { told = append(told, err) }
	calls := 0
	err := d.reach(func(ctx context.Context) error {
		if calls++; calls == 1 {
			return errGone
		}
		d.stop()
		<-ctx.Done()
		return ctx.Err()
	}, nil)
	if !errors.Is(err, errGone) || len(told) != 1 || !errors.Is(told[0], errGone) {
		t.Errorf("%v, told %v", err, told)
	}
}
