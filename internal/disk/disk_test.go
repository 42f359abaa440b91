package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAppendIsAllOrNothing(t *testing.T) {
	t.Parallel()
	var fail error
	fs := &FS{Before: func(op Op) error {
		if op.Kind == Append {
			return fail
		}
		return nil
	}}
	path := filepath.Join(t.TempDir(), "log")
	f, err := fs.OpenAppend(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if at, err := f.Append([]byte("one\n")); err != nil || at != 0 {
		t.Fatal(at, err)
	}
	for _, fail = range []error{syscall.EIO, &ShortWrite{N: 0, Err: syscall.ENOSPC}, &ShortWrite{N: 3, Err: syscall.ENOSPC}, &ShortWrite{N: 99, Err: syscall.ENOSPC}} {
		if _, err := f.Append([]byte("lost\n")); err == nil {
			t.Fatal("the fault was swallowed")
		}
		if b, _ := os.ReadFile(path); string(b) != "one\n" || f.Size() != 4 {
			t.Fatalf("after %v: %q, size %d", fail, b, f.Size())
		}
	}
	fail = nil
	if at, err := f.Append([]byte("two\n")); err != nil || at != 4 {
		t.Fatal(at, err)
	}
	if st, _ := os.Stat(path); st.Mode().Perm() != FileMode {
		t.Errorf("mode %v", st.Mode())
	}
}

func TestReplaceKeepsTheOldOneOnFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	fs := &FS{}
	if err := fs.Replace(path, []byte("old"), true); err != nil {
		t.Fatal(err)
	}
	fs.Before = func(op Op) error { return syscall.ENOSPC }
	if err := fs.Replace(path, []byte("new"), true); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("%q", b)
	}
	fs.Before = nil
	// A directory in the way of the temporary file: nothing is left behind.
	if err := os.Mkdir(filepath.Join(dir, ".state.json.tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fs.Replace(path, []byte("new"), false); err == nil {
		t.Error("no error")
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("%q", b)
	}
}

func TestPoisonedAfterFailedSync(t *testing.T) {
	t.Parallel()
	fs := &FS{}
	f, err := fs.OpenAppend(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fs.Before = func(op Op) error {
		if op.Kind == Sync {
			return syscall.EIO
		}
		return nil
	}
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	fs.Before = nil
	if err := f.Sync(); !errors.Is(err, ErrPoisoned) {
		t.Error(err)
	}
	if _, err := f.Append([]byte("x")); !errors.Is(err, ErrPoisoned) {
		t.Error(err)
	}
}

func TestRemoveOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	if err := (&FS{}).Remove(filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Error(err)
	}
}

// Of a file system without a size, as /proc is, there is plenty.
func TestFree(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]func(uint64) bool{
		t.TempDir(): func(free uint64) bool { return free > 0 },
		"/proc":     func(free uint64) bool { return free > 1<<60 },
	} {
		if free, err := Free(path); err != nil || !want(free) {
			t.Errorf("%s: %d, %v", path, free, err)
		}
	}
}
