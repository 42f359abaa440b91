package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenPlain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("plain"), []byte("text"), 0o600), unix.Mkfifo(at("pipe"), 0o600), os.Symlink("plain", at("link")),
		os.Symlink("pipe", at("link-to-pipe"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{at("plain"), at("link")} {
		f, err := OpenPlain(path)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(f); string(b) != "text" || err != nil {
			t.Errorf("%s: %q, %v", path, b, err)
		}
		_ = f.Close()
	}
	for path, want := range map[string]error{at("pipe"): ErrNotPlain, at("link-to-pipe"): ErrNotPlain, dir: ErrNotPlain, "/dev/zero": ErrNotPlain, at("none"): os.ErrNotExist} {
		if f, err := OpenPlain(path); f != nil || !errors.Is(err, want) {
			t.Errorf("%s: %v, not %v", path, err, want)
		}
	}
}

// What lies in a directory of others is opened for what it is, or not at all.
func TestOpenIn(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("plain"), []byte("text"), 0o600), os.WriteFile(elsewhere, []byte("theirs"), 0o600), os.Mkdir(at("dir"), 0o700),
		unix.Mkfifo(at("pipe"), 0o600), os.Symlink("plain", at("link")), os.Symlink(elsewhere, at("link-out")), os.Symlink("new", at("link-to-none"))); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for name, want := range map[string]error{"pipe": ErrNotPlain, "dir": ErrNotPlain, "link": ErrLink, "link-out": ErrLink, "link-to-none": ErrLink, "none": os.ErrNotExist} {
		for _, flag := range []int{os.O_RDONLY, os.O_RDWR | os.O_APPEND, os.O_RDWR | os.O_CREATE} {
			if name == "none" && flag&os.O_CREATE != 0 {
				continue
			}
			if f, err := OpenIn(root, name, flag); f != nil || !errors.Is(err, want) {
				t.Errorf("%s: %v, not %v", name, err, want)
			}
		}
	}
	for _, name := range []string{"plain", "made"} {
		f, err := OpenIn(root, name, os.O_RDWR|os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("T"); err != nil {
			t.Error(err)
		}
		_ = f.Close()
	}
	for name, want := range map[string]string{"plain": "Text", "made": "T"} {
		if b, err := os.ReadFile(at(name)); string(b) != want || err != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int64{5, 6} {
		if b, err := Read(path, most); string(b) != "12345" || err != nil {
			t.Errorf("%d: %q, %v", most, b, err)
		}
	}
	var large *TooLargeError
	if b, err := Read(path, 4); b != nil || !errors.As(err, &large) || large.Path != path || large.Most != 4 {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := Read("/dev/zero", 4); !errors.Is(err, ErrNotPlain) {
		t.Error(err)
	}
}

// A pipe in the place of a directory is not waited at.
func TestOpenDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, err := range []error{unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Mkdir(filepath.Join(dir, "dir"), 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, name := range []string{"pipe", "file", "missing", "../x"} {
		if f, err := OpenDir(root, name); err == nil {
			t.Errorf("%s: %v", name, f.Close())
		}
	}
	f, err := OpenDir(root, "dir")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// What was left in the place of a replace's temporary file is no way elsewhere.
func TestReplaceFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, ".f.tmp")); err != nil {
		t.Fatal(err)
	}
	err := (&FS{}).Replace(filepath.Join(dir, "f"), []byte("x"), false)
	if got, rerr := os.ReadFile(victim); rerr != nil || string(got) != "mine" {
		t.Errorf("the victim: %q, %v (%v)", got, rerr, err)
	}
	if err == nil {
		if st, err := os.Lstat(filepath.Join(dir, "f")); err != nil || !st.Mode().IsRegular() {
			t.Errorf("%v, %v", st, err)
		}
	}
}
