package workspace

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A tree is removed that is deeper than there are descriptors, has directories
// that nobody may write to, and holds links to what is not of it.
func TestRemoveAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	if err := os.WriteFile(kept, []byte("x"), 0o400); err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(dir, "top")
	if err := os.Mkdir(top, 0o700); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 { // each level
		if err := unix.Mkdirat(at, "deep", 0o700); err != nil {
			t.Fatal(err)
		}
		if i%500 == 0 {
			for _, err := range []error{unix.Symlinkat(dir, at, "link"), unix.Mkdirat(at, "locked", 0o700), unix.Mkdirat(at, "locked/in "+strconv.Itoa(i), 0o500), unix.Fchmodat(at, "locked", 0o100, 0)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		next, err := unix.Openat(at, "deep", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(at)
		at = next
	}
	_ = unix.Close(at)
	fd, err := openDir(unix.AT_FDCWD, top, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := flatten(fd); err != nil { // as with too few descriptors
		t.Fatal(err)
	}
	if err := removeAll(top); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(top); err == nil {
		t.Error("it is still there")
	}
	if st, err := os.Stat(kept); err != nil || st.Mode().Perm() != 0o400 {
		t.Errorf("what a link leads to: %v, %v", st, err)
	}
}
