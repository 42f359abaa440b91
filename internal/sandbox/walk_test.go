package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe or a link in the place of a directory is not entered: to open the one
// would wait for ever, the other leads anywhere.
func TestWalkEntersDirectoriesOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, inner := filepath.Join(dir, "pipe"), filepath.Join(dir, "inner")
	for _, err := range []error{unix.Mkfifo(pipe, 0o600), os.Mkdir(inner, 0o700), os.Symlink("/etc", filepath.Join(inner, "etc"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var seen []string
	walk(t.Context(), []string{pipe, inner, filepath.Join(inner, "missing")}, func(_ int, e os.DirEntry) bool {
		seen = append(seen, e.Name())
		return true
	})
	if len(seen) != 1 || seen[0] != "etc" {
		t.Errorf("%q", seen)
	}
}
