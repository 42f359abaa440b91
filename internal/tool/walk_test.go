package tool

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// With and without openat2 the same can be opened.
func TestOpenBeneath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "d/e"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "d/e/f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"l": "d", "d/out": "..", "abs": dir, "d/e/lf": "f"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	top, err := root.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = top.Close() })
	w := &workspaceFiles{root: root}
	for name, open := range map[string]func(string, uint64) (int, error){
		"openat2":    func(rel string, flags uint64) (int, error) { return openBeneath(w, top, rel, flags) },
		"without it": func(rel string, flags uint64) (int, error) { return openSlowly(w, rel, flags) },
	} {
		for rel, want := range map[string]bool{"d/e/f": true, "d/e": true, ".": true, "l": false, "l/e/f": false, "d/out/d": false, "abs": false, "d/e/lf": false, "../x": false, "/etc": false, "nowhere": false} {
			fd, err := open(rel, 0)
			if (err == nil) != want {
				t.Errorf("%s: %s: %v", name, rel, err)
			}
			if err == nil {
				_ = unix.Close(fd)
			}
		}
		if _, err := open("d/e/f", unix.O_DIRECTORY); !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("%s: a file opened as a directory: %v", name, err)
		}
	}
}

// A walk gives every path once, in the order of the paths.
func TestWalkOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "a.b", "a-", "b", "é", "a0", "\xff", " ", "A"})
		n++
		top := "t" + strings.Repeat("x", n%5) + string(rune('0'+n%10))
		if err := os.RemoveAll(filepath.Join(dir, top)); err != nil {
			t.Fatal(err)
		}
		var want []string
		for range rapid.IntRange(0, 12).Draw(t, "files") {
			p := strings.Join(append([]string{top}, rapid.SliceOfN(part, 1, 4).Draw(t, "path")...), "/")
			if os.MkdirAll(filepath.Join(dir, filepath.Dir(p)), 0o755) != nil {
				continue // a file is where a directory would be
			}
			if info, err := os.Lstat(filepath.Join(dir, p)); err == nil && info.IsDir() {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, p), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			want = append(want, p)
		}
		if len(want) == 0 {
			return
		}
		slices.Sort(want)
		tree, err := (&workspaceFiles{root: root}).walk(t.Context(), top, walkOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		tree.entries(func(rel string, _ entryKind) { got = append(got, rel) })
		if !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
