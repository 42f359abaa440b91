package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/disk"
)

// kinds are who may keep the files of a base directory: the kernel, and the engines.
var kinds = map[string]func(t *testing.T, base string){
	"kernel": func(*testing.T, string) {},
	"sqlite": func(t *testing.T, base string) { mount(t, openSQLite(t, base)) },
	"postgres": func(t *testing.T, base string) {
		s, err := database.Dial(t.Context(), database.ServerOptions{URL: pgtest.URL(t)})
		ok(t, err)
		t.Cleanup(s.Close)
		d, err := OpenPostgres(t.Context(), Options{Base: base}, s)
		ok(t, err)
		t.Cleanup(func() { ok(t, d.Close()) })
		mount(t, d)
	},
}

func openSQLite(t *testing.T, base string) *DB {
	t.Helper()
	d, err := OpenSQLite(t.Context(), Options{Base: base}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func mount(t *testing.T, d *DB) {
	t.Helper()
	t.Cleanup(disk.Mount(d.Base, d))
}

// everywhere runs a test with each kind, in a base directory of its own.
func everywhere(t *testing.T, f func(t *testing.T, base string, disk *disk.FS)) {
	t.Helper()
	for name, keep := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			keep(t, base)
			fs := &disk.FS{}
			for _, a := range areas {
				ok(t, fs.MkdirAll(filepath.Join(base, a)))
			}
			f(t, base, fs)
		})
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := disk.Read(path, disk.MaxWhole)
	ok(t, err)
	return string(b)
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	ok(t, disk.Entries(dir, func(e fs.DirEntry) error {
		st, err := e.Info()
		ok(t, err)
		name := e.Name()
		if e.IsDir() {
			name += "/"
		} else {
			name += fmt.Sprint(" ", st.Size())
		}
		all = append(all, name)
		return nil
	}))
	slices.Sort(all)
	return all
}

func TestFilesAndDirectories(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, base string, d *disk.FS) {
		run := filepath.Join(base, "queued", "a-b")
		if _, err := disk.Stat(run); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if err := d.Replace(filepath.Join(run, "x"), nil, true); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file in no directory: %v", err)
		}
		ok(t, d.MkdirAll(run))
		ok(t, d.MkdirAll(run)) // again
		ok(t, d.MkdirAll(filepath.Join(run, "images", "deep")))
		ok(t, d.Replace(filepath.Join(run, "state.json"), []byte(`{"a":1}`), true))
		ok(t, d.Replace(filepath.Join(run, "state.json"), []byte(`{}`), false))
		ok(t, d.Replace(filepath.Join(run, "images", "1.png"), bytes.Repeat([]byte("x"), 3<<20), true))
		if got := names(t, run); !slices.Equal(got, []string{"images/", "state.json 2"}) {
			t.Error(got)
		}
		if got := names(t, filepath.Join(run, "images")); !slices.Equal(got, []string{"1.png 3145728", "deep/"}) {
			t.Error(got)
		}
		if got := read(t, filepath.Join(run, "state.json")); got != "{}" {
			t.Error(got)
		}
		if got := read(t, filepath.Join(run, "images/1.png")); len(got) != 3<<20 || strings.Trim(got, "x") != "" {
			t.Error(len(got))
		}
		to := filepath.Join(base, "running", "a-b")
		ok(t, d.Rename(run, to))
		if _, err := disk.Stat(run); !errors.Is(err, fs.ErrNotExist) {
			t.Error("it is still where it was", err)
		}
		if st, err := disk.Stat(to); err != nil || !st.IsDir() {
			t.Error(err)
		}
		ok(t, d.MkdirAll(run))
		ok(t, d.Replace(filepath.Join(run, "metadata.json"), []byte("other"), true))
		if err := d.Rename(to, run); err == nil {
			t.Error("a directory was moved over another")
		}
		if got := names(t, filepath.Join(base, "running")); !slices.Equal(got, []string{"a-b/"}) {
			t.Error(got)
		}
		ok(t, d.Rename(filepath.Join(to, "state.json"), filepath.Join(to, "images", "s")))
		ok(t, d.Remove(filepath.Join(to, "state.json"))) // is not there
		ok(t, d.RemoveAll(filepath.Join(to, "images")))
		if got := names(t, to); len(got) != 0 {
			t.Error(got)
		}
		ok(t, d.Write(filepath.Join(to, "a.gz"), func(w io.Writer) error { _, err := w.Write([]byte("zipped")); return err }))
		if got := read(t, filepath.Join(to, "a.gz")); got != "zipped" {
			t.Error(got)
		}
		if err := d.Remove(to); err == nil {
			t.Error("a directory with something in it was removed as a file")
		}
		var seen []string
		ok(t, disk.Walk(base, func(path string, e fs.DirEntry, err error) error {
			ok(t, err)
			if !strings.HasPrefix(e.Name(), File) {
				seen = append(seen, strings.TrimPrefix(path, base))
			}
			return nil
		}))
		_ = seen // below the base directory itself the kernel's alone are walked
		ok(t, d.RemoveAll(to))
		ok(t, d.RemoveAll(to))
		if _, err := disk.Read(filepath.Join(to, "a.gz"), 10); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if _, err := disk.OpenPlain(run); !errors.Is(err, disk.ErrNotPlain) {
			t.Errorf("a directory was opened: %v", err)
		}
	})
}

// What is read of a file that grows is what was written, wherever it is read, by who writes it
// and by others.
func TestAppended(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, base string, d *disk.FS) {
		dir := filepath.Join(base, "running", "r")
		ok(t, d.MkdirAll(dir))
		path := filepath.Join(dir, "messages.jsonl")
		f, err := d.OpenAppend(path)
		ok(t, err)
		random := rand.New(rand.NewPCG(1, 2))
		var want []byte
		for n := range 200 {
			line := append(bytes.Repeat([]byte{byte('a' + n%26)}, random.IntN(3000)), '\n')
			if n == 100 {
				line = append(bytes.Repeat([]byte("long"), 600_000), '\n')
			}
			at, err := f.Append(line)
			ok(t, err)
			if at != int64(len(want)) {
				t.Fatal(at)
			}
			want = append(want, line...)
			switch n % 7 {
			case 0:
				ok(t, f.Sync())
			case 3:
				cut := int64(len(want) - random.IntN(len(line)))
				ok(t, f.Truncate(cut))
				want = want[:cut]
			}
			off := random.IntN(len(want) + 1)
			p := make([]byte, random.IntN(5000))
			got, err := f.ReadAt(p, int64(off))
			if !bytes.Equal(p[:got], want[off:min(off+len(p), len(want))]) || got < len(p) && !errors.Is(err, io.EOF) {
				t.Fatalf("%d at %d of %d: %d, %v", len(p), off, len(want), got, err)
			}
		}
		ok(t, f.Close())
		if read(t, path) != string(want) {
			t.Error("read as a whole it is another")
		}
		o, err := disk.OpenPlain(path)
		ok(t, err)
		for range 100 {
			off := random.IntN(len(want) + 1)
			p := make([]byte, random.IntN(50_000))
			got, err := o.ReadAt(p, int64(off))
			if !bytes.Equal(p[:got], want[off:min(off+len(p), len(want))]) || got < len(p) && !errors.Is(err, io.EOF) {
				t.Fatalf("%d at %d of %d: %d, %v", len(p), off, len(want), got, err)
			}
		}
		_, err = o.Seek(-3, io.SeekEnd)
		ok(t, err)
		if rest, err := io.ReadAll(o); err != nil || string(rest) != string(want[len(want)-3:]) {
			t.Errorf("%q %v", rest, err)
		}
		ok(t, o.Close())
		// It goes on where it was, and a reader sees it grow.
		o, err = disk.OpenPlain(path)
		ok(t, err)
		f, err = d.OpenAppend(path)
		ok(t, err)
		if f.Size() != int64(len(want)) {
			t.Error(f.Size())
		}
		_, err = f.Append([]byte("more\n"))
		ok(t, err)
		if st, err := o.Stat(); err != nil || st.Size() != int64(len(want))+5 {
			t.Error(st, err)
		}
		p := make([]byte, 5)
		if _, err := o.ReadAt(p, int64(len(want))); err != nil || string(p) != "more\n" {
			t.Errorf("%q %v", p, err)
		}
		ok(t, errors.Join(f.Close(), o.Close()))
		if _, err := d.Create(path); !errors.Is(err, fs.ErrExist) {
			t.Error("a file that is there was made", err)
		}
	})
}

// Who only looks makes neither a schema nor tables.
func TestNothingIsMadeByLooking(t *testing.T) {
	t.Parallel()
	at := pgtest.URL(t)
	dial := func(o database.ServerOptions) (*database.Server, error) {
		s, err := database.Dial(t.Context(), o)
		if err == nil {
			t.Cleanup(s.Close)
		}
		return s, err
	}
	for range 2 {
		if _, err := dial(database.ServerOptions{URL: at, Existing: true}); !errors.Is(err, database.ErrLacks) {
			t.Errorf("a schema that is not there: %v", err)
		}
	}
	s, err := dial(database.ServerOptions{URL: at})
	ok(t, err)
	for range 2 {
		if err := On(t.Context(), s); !errors.Is(err, database.ErrLacks) {
			t.Errorf("tables that are not there: %v", err)
		}
	}
	d, err := OpenPostgres(t.Context(), Options{Base: t.TempDir()}, s)
	ok(t, err)
	ok(t, d.Close())
	ok(t, On(t.Context(), s))
}
