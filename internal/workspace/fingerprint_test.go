package workspace

import (
	"hash/maphash"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A fingerprint differs after every change that git would see, also one that
// keeps size and modification time, and is not trusted while a change is fresh
// or the tree is large.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "one")
	write("b", "two")
	later := func() time.Time { return time.Now().Add(time.Minute) }
	seed := maphash.MakeSeed()
	see := func(now time.Time) fingerprint {
		l, err := lookAt(t.Context(), dir, seed, nil, 1<<20, 100, now)
		if err != nil {
			t.Fatal(err)
		}
		return l.print
	}
	p := see(later())
	if again := see(later()); !p.ok || again.sum != p.sum {
		t.Fatal("the same tree has another print")
	}
	if see(time.Now()).ok {
		t.Error("a tree that has just been changed counts as settled")
	}
	st, err := os.Stat(path("a"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"content, with size and time as before": func() error {
			write("a", "eno")
			return os.Chtimes(path("a"), st.ModTime(), st.ModTime())
		},
		"mode": func() error { return os.Chmod(path("b"), 0o700) },
		"new":  func() error { write("c", ""); return nil },
		"link": func() error { return os.Symlink("a", path("l")) },
	} {
		before := see(later())
		if err := change(); err != nil {
			t.Fatal(name, err)
		}
		if see(later()).sum == before.sum {
			t.Errorf("%s: not seen", name)
		}
	}
	before := see(later())
	if err := os.Rename(path("c"), path("d")); err != nil {
		t.Fatal(err)
	}
	renamed := see(later())
	if err := os.Remove(path("b")); err != nil {
		t.Fatal(err)
	}
	if gone := see(later()); renamed.sum == before.sum || gone.sum == renamed.sum {
		t.Error("a name that changed or went is not seen")
	}
	for i := range maxPrinted {
		write("many"+string(rune('a'+i%26))+time.Duration(i).String(), "")
	}
	if see(later()).ok {
		t.Error("a large tree is looked at whole")
	}
}
