package contextstore

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
)

// backend is who keeps the contexts of the tests: "" the kernel, else sqlite.
var backend = os.Getenv("TORI_TEST_BACKEND")

var mountedBases sync.Map

// placed has the backend of the tests keep the contexts of a base directory; those that lie
// in it as files are moved in.
func placed(t testing.TB, base string) {
	t.Helper()
	if backend == "" {
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
	d, err := tables.OpenSQLite(t.Context(), tables.Options{Base: base}, false)
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

// kernelOnly skips a test that is about files of the kernel.
func kernelOnly(t *testing.T) {
	t.Helper()
	if backend != "" {
		t.Skip("about files of the kernel")
	}
}
