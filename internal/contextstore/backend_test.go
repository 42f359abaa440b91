package contextstore

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
)

// backend is who keeps the contexts of the tests: "" the kernel, else sqlite or postgres. It is asked for
// while tests run: of what is asked before, go test does not know that its kept results depend on it.
var backend = sync.OnceValue(func() string { return os.Getenv("TORI_TEST_BACKEND") })

var mountedBases sync.Map

// placed has the backend of the tests keep the contexts of a base directory; those that lie
// in it as files are moved in.
func placed(t testing.TB, base string) {
	t.Helper()
	if backend() == "" {
		return
	}
	if _, there := mountedBases.LoadOrStore(base, true); there {
		return
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := openTables(t, base)
	must(err)
	files := map[string][]byte{}
	var dirs []string
	must(filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !d.Has(path) {
			return err
		}
		if e.IsDir() {
			dirs = append(dirs, path)
			return nil
		}
		files[path], err = os.ReadFile(path)
		return err
	}))
	unmount := disk.Mount(base, d)
	t.Cleanup(func() {
		unmount()
		_ = d.Close()
		mountedBases.Delete(base)
	})
	w := &disk.FS{}
	for _, dir := range dirs {
		must(w.MkdirAll(dir))
	}
	for path, data := range files {
		must(w.Replace(path, data, true))
		must(os.Remove(path))
	}
}

func openTables(t testing.TB, base string) (*tables.DB, error) {
	o := tables.Options{Base: base}
	if backend() != "postgres" {
		return tables.OpenSQLite(t.Context(), o, false)
	}
	s, err := database.Dial(t.Context(), database.ServerOptions{URL: pgtest.URL(t)})
	if err != nil {
		return nil, err
	}
	t.Cleanup(s.Close)
	t.Cleanup(s.Serve(o.Base))
	return tables.OpenPostgres(t.Context(), o, s)
}

// kernelOnly skips a test that is about files of the kernel.
func kernelOnly(t *testing.T) {
	t.Helper()
	if backend() != "" {
		t.Skip("about files of the kernel")
	}
}

// kernel are the calls of package os by which tests look into a base directory and tamper with it,
// on what the backend of the tests keeps, too.
var kernel tampering

type tampering struct{}

var seam = &disk.FS{}

func (tampering) Stat(path string) (fs.FileInfo, error)  { return disk.Stat(path) }
func (tampering) Lstat(path string) (fs.FileInfo, error) { return disk.Lstat(path) }

func (tampering) Remove(path string) error {
	if disk.At(path) == nil {
		return os.Remove(path)
	}
	if _, err := disk.Stat(path); err != nil {
		return err
	}
	return seam.Remove(path)
}

func (tampering) RemoveAll(path string) error {
	if disk.At(path) == nil {
		return os.RemoveAll(path)
	}
	return seam.RemoveAll(path)
}

func (tampering) Rename(from, to string) error {
	if disk.At(from) == nil {
		return os.Rename(from, to)
	}
	return seam.Rename(from, to)
}

func (tampering) WriteFile(path string, data []byte, mode fs.FileMode) error {
	if disk.At(path) == nil {
		return os.WriteFile(path, data, mode)
	}
	return seam.Replace(path, data, true)
}

func (tampering) Truncate(path string, size int64) error {
	if disk.At(path) == nil {
		return os.Truncate(path, size)
	}
	b, err := disk.Read(path, disk.MaxWhole)
	if err != nil {
		return err
	}
	return seam.Replace(path, b[:size], true)
}

// OpenFile opens a file to append to it.
func (tampering) OpenFile(path string, flag int, mode fs.FileMode) (interface {
	io.WriteCloser
	io.StringWriter
}, error) {
	if disk.At(path) == nil {
		return os.OpenFile(path, flag, mode)
	}
	f, err := seam.OpenAppend(path)
	return appender{f}, err
}

type appender struct{ *disk.File }

func (a appender) Write(b []byte) (int, error)       { _, err := a.Append(b); return len(b), err }
func (a appender) WriteString(s string) (int, error) { return a.Write([]byte(s)) }

// databaseFiles skips a test that is about tasks.db and house.db as files of SQLite.
func databaseFiles(t *testing.T) {
	t.Helper()
	if backend() == "postgres" {
		t.Skip("about tasks.db and house.db as files")
	}
}
