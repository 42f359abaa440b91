package tables

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/disk"
)

// engines open the same tables as often as they are asked to, as so many processes do, each with
// the base directory of its own that they are mounted at.
var engines = map[string]func(t *testing.T) func(o Options) *DB{
	"sqlite": func(t *testing.T) func(Options) *DB {
		dir := t.TempDir()
		return func(o Options) *DB {
			o.Base = filepath.Join(t.TempDir(), "base")
			ok(t, os.Mkdir(o.Base, 0o700))
			ok(t, os.Symlink(filepath.Join(dir, File), filepath.Join(o.Base, File)))
			d, err := OpenSQLite(t.Context(), o, false)
			ok(t, err)
			return d
		}
	},
	"postgres": func(t *testing.T) func(Options) *DB {
		url := pgtest.URL(t)
		return func(o Options) *DB {
			o.Base = t.TempDir()
			s, err := database.Dial(t.Context(), database.ServerOptions{URL: url})
			ok(t, err)
			t.Cleanup(s.Close)
			d, err := OpenPostgres(t.Context(), o, s)
			ok(t, err)
			return d
		}
	},
}

// eachEngine runs a test with each engine.
func eachEngine(t *testing.T, f func(t *testing.T, open func(Options) *DB)) {
	t.Helper()
	for name, of := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := of(t)
			f(t, func(o Options) *DB {
				d := open(o)
				t.Cleanup(disk.Mount(d.Base, d))
				t.Cleanup(func() { _ = d.Close() })
				return d
			})
		})
	}
}

// lease is renewed every 5 s.
const lease = 20 * time.Second

// An owner that stood still while its lease ended, and another took the context over, writes
// nothing more: neither what it had begun to write nor anything new.
func TestAFrozenOwnerWritesNothing(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, open func(Options) *DB) {
		a, b := open(Options{Lease: lease}), open(Options{Lease: lease})
		w := &disk.FS{}
		at := func(d *DB, name string) string { return filepath.Join(d.Base, "running", "r", name) }
		ok(t, w.MkdirAll(filepath.Join(a.Base, "running", "r")))
		held, err := a.Lock(at(a, disk.OwnerLock), true)
		ok(t, err)
		f, err := w.OpenAppend(at(a, "messages.jsonl"))
		ok(t, err)
		_, err = f.Append([]byte("{\"seq\":1}\n"))
		ok(t, errors.Join(err, f.Sync()))
		if _, err := b.Lock(at(b, disk.OwnerLock), true); !errors.Is(err, disk.ErrLocked) {
			t.Fatalf("of two owners: %v", err)
		}
		if !b.Locked(at(b, disk.OwnerLock)) {
			t.Error("it does not count as held")
		}
		until := func() (ms int64) {
			ok(t, b.query(`SELECT max(until_ms) FROM locks`, nil, func(scan func(...any) error) error { return scan(&ms) }))
			return ms
		}
		for first, end := until(), time.Now().Add(time.Minute); until() == first; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the lease is not renewed")
			}
		}
		var taken disk.Lock
		for end := time.Now().Add(time.Minute); taken == nil && time.Now().Before(end); { // as where a stands still
			ok(t, b.engine.run(t.Context(), []stmt{{sql: `UPDATE locks SET until_ms = 0`}}, true))
			if taken, err = b.Lock(at(b, disk.OwnerLock), true); err != nil && !errors.Is(err, disk.ErrLocked) {
				t.Fatal(err)
			}
		}
		if taken == nil {
			t.Fatal("nobody may take over what nobody renews")
		}
		if _, err = f.Append([]byte("{\"seq\":2}\n")); err == nil {
			err = f.Sync()
		}
		if !errors.Is(err, disk.ErrNotOwner) {
			t.Errorf("it wrote on: %v", err)
		}
		if err := w.Replace(at(a, "state.json"), []byte("{}"), true); !errors.Is(err, disk.ErrNotOwner) {
			t.Errorf("it wrote its state: %v", err)
		}
		if err := w.Rename(filepath.Join(a.Base, "running", "r"), filepath.Join(a.Base, "completed", "r")); !errors.Is(err, disk.ErrNotOwner) {
			t.Errorf("it moved the directory: %v", err)
		}
		if held.Held(at(a, disk.OwnerLock)) {
			t.Error("it believes that it is the owner")
		}
		held.Release()
		if !b.Locked(at(b, disk.OwnerLock)) {
			t.Error("it gave up the other's lock")
		}
		g, err := w.OpenAppend(at(b, "messages.jsonl"))
		ok(t, err)
		_, err = g.Append([]byte("{\"seq\":3}\n"))
		ok(t, errors.Join(err, g.Close()))
		if got := read(t, at(b, "messages.jsonl")); got != "{\"seq\":1}\n{\"seq\":3}\n" {
			t.Errorf("%q", got)
		}
		taken.Release()
		again, err := a.Lock(at(a, disk.OwnerLock), false)
		ok(t, err)
		again.Release()
		if err := w.Remove(at(a, disk.OwnerLock)); err != nil {
			t.Error(err)
		}
		if _, err := a.Lock(at(a, disk.OwnerLock), false); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the lock of a file that is gone: %v", err)
		}
	})
}

// Of many that want a lock one has it at a time.
func TestALockExcludes(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, open func(Options) *DB) {
		all := []*DB{open(Options{}), open(Options{}), open(Options{})}
		w := &disk.FS{}
		ok(t, w.MkdirAll(filepath.Join(all[0].Base, "sessions", "s")))
		var inside, times atomic.Int64
		var wg sync.WaitGroup
		for n := range 6 {
			wg.Go(func() {
				path := filepath.Join(all[n%3].Base, "sessions", "s", ".turn")
				for got := 0; got < 10; {
					l, err := all[n%3].Lock(path, true)
					if errors.Is(err, disk.ErrLocked) {
						time.Sleep(time.Millisecond)
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) != 1 {
						t.Error("two have it")
					}
					times.Add(1)
					inside.Add(-1)
					l.Release()
					got++
				}
			})
		}
		wg.Wait()
		if times.Load() != 60 {
			t.Errorf("%d times", times.Load())
		}
	})
}

// A lock whose process is known to be gone is free at once.
func TestALockOfADeadProcessIsFree(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, open func(Options) *DB) {
		d := open(Options{Lease: time.Hour})
		ok(t, (&disk.FS{}).MkdirAll(filepath.Join(d.Base, "running", "r")))
		path := filepath.Join(d.Base, "running", "r", disk.OwnerLock)
		_, err := d.Lock(path, true)
		ok(t, err)
		c := exec.Command("sleep", "60")
		ok(t, c.Start())
		boot, _, _ := strings.Cut(self(), "/")
		token := fmt.Sprintf("%s/%d/%s/x", boot, c.Process.Pid, begun(c.Process.Pid))
		ok(t, d.engine.run(t.Context(), []stmt{{sql: `UPDATE locks SET token = ?`, args: []any{token}, must: mustExist}}, true))
		if _, err := d.Lock(path, true); !errors.Is(err, disk.ErrLocked) {
			t.Errorf("its process lives: %v", err)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		if d.Locked(path) {
			t.Error("it counts as held")
		}
		l, err := d.Lock(path, true)
		ok(t, err)
		l.Release()
	})
}

// What is written while the server is away is there once it is back, once and in order.
func TestTheServerRestarts(t *testing.T) {
	t.Parallel()
	server := pgtest.Own(t)
	var waits, back atomic.Int64
	s, err := database.Dial(t.Context(), database.ServerOptions{URL: server.URL()})
	ok(t, err)
	t.Cleanup(s.Close)
	d, err := OpenPostgres(t.Context(), Options{Base: t.TempDir(), Waiting: func(err error) {
		if err != nil {
			waits.Add(1)
		} else {
			back.Add(1)
		}
	}}, s)
	ok(t, err)
	mount(t, d)
	t.Cleanup(func() { ok(t, d.Close()) })
	w := &disk.FS{}
	dir := filepath.Join(d.Base, "running", "r")
	ok(t, w.MkdirAll(dir))
	l, err := d.Lock(filepath.Join(dir, disk.OwnerLock), true)
	ok(t, err)
	defer l.Release()
	f, err := w.OpenAppend(filepath.Join(dir, "messages.jsonl"))
	ok(t, err)
	var want strings.Builder
	for n := range 60 {
		line := fmt.Sprintf("{\"seq\":%d}\n", n+1)
		_, err := f.Append([]byte(line))
		ok(t, errors.Join(err, f.Sync()))
		want.WriteString(line)
		if n%20 == 10 {
			server.Stop(t)
			time.AfterFunc(200*time.Millisecond, func() { server.Start(t) })
		}
		time.Sleep(20 * time.Millisecond)
	}
	ok(t, f.Close())
	if got := read(t, filepath.Join(dir, "messages.jsonl")); got != want.String() {
		t.Errorf("%s", got)
	}
	if waits.Load() == 0 || waits.Load() != back.Load() {
		t.Errorf("told of %d absences and %d returns", waits.Load(), back.Load())
	}
}

// A lock whose release did not reach the database ends with its lease, and others that are held are renewed.
func TestReleasedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, open func(Options) *DB) {
		a := open(Options{})
		until := map[string]int64{}
		look := func() {
			t.Helper()
			ok(t, a.query(`SELECT name, until_ms FROM locks`, nil, func(scan func(...any) error) error {
				var name string
				var ms int64
				err := scan(&name, &ms)
				until[name] = ms
				return err
			}))
		}
		var all []*lock
		for _, name := range []string{".serve.lock", ".keep.lock", ".inbox.lock"} {
			l, err := a.Lock(filepath.Join(a.Base, name), true)
			ok(t, err)
			all = append(all, l.(*lock))
		}
		ok(t, a.engine.run(t.Context(), []stmt{{sql: `UPDATE locks SET until_ms = 7`}, {sql: `DELETE FROM locks WHERE name = ?`, args: []any{".inbox.lock"}}}, true))
		a.mu.Lock()
		delete(a.locks, all[1])
		a.mu.Unlock()
		a.back <- struct{}{} // the database can be reached again
		for end := time.Now().Add(time.Minute); all[2].Held("") && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			look()
		}
		look()
		if until[".serve.lock"] <= 7 || until[".keep.lock"] != 7 || !all[0].Held("") || all[2].Held("") {
			t.Errorf("the leases end at %v", until)
		}
	})
}
