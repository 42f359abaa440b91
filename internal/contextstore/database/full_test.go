package database

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"toritsugi/internal/i18n"
)

// Where SQLite has no room, people are told which file system is full and what to do, not the
// number of an error.
func TestFullFileSystem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code int
		left uint64
		want bool
	}{
		{13, math.MaxUint64, true}, {4874, 0, true}, {778, 4096, true}, {4874, 1 << 30, false}, {11, 0, false}, {5, 0, false},
	} {
		if got := noRoom(c.code, c.left); got != c.want {
			t.Errorf("code %d, %d bytes left: %t", c.code, c.left, got)
		}
	}
	d := &File{Path: filepath.Join(t.TempDir(), "a.db")}
	if err := os.WriteFile(d.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := connect(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	for _, s := range []string{"PRAGMA max_page_count=3", "CREATE TABLE a (b)", "INSERT INTO a VALUES (zeroblob(100000))"} {
		_, err = h.W.ExecContext(t.Context(), s)
	}
	if err = d.explain(err); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(i18n.English.Error(err), "the file system of "+filepath.Dir(d.Path)+" is full: free some space there") {
		t.Errorf("%v", err)
	}
}
