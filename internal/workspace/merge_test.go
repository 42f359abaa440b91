package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the base branch got meanwhile comes into the tree: merged where git can,
// with markers where it cannot, and the commit has both as parents.
func TestMerge(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	file := func(name, text string) {
		write(t, filepath.Join(path, name), text)
		git(t, path, "add", ".")
		git(t, path, "commit", "-q", "-m", name)
	}
	file("both", "one\ntwo\nthree\n")
	git(t, path, "checkout", "-q", "-b", "work")
	file("both", "one\nmine\nthree\n")
	file("mine", "x\n")
	git(t, path, "checkout", "-q", "main")
	file("both", "one\ntheirs\nthree\n")
	file("theirs", "y\n")
	main, work := git(t, path, "rev-parse", "main"), git(t, path, "rev-parse", "work")

	house := t.TempDir()
	m := &Mirrors{Dir: filepath.Join(house, "m")}
	remote := Remote{URL: "file://" + path}
	src := fromMirror(t, m, remote, "work")
	w, err := Create(t.Context(), CreateOptions{Box: walls(), Source: src, Dir: filepath.Join(house, "w"), Branch: "work"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // to do it again is no more than to do it
		conflicts, err := w.Merge(t.Context(), fromMirror(t, m, remote, "main"), "main")
		if err != nil || !slices.Equal(conflicts, []string{"both"}) {
			t.Fatalf("%q %v", conflicts, err)
		}
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(w.Tree(), name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if both := read("both"); !strings.Contains(both, "<<<<<<<") || !strings.Contains(both, "mine") || !strings.Contains(both, "theirs") || read("theirs") != "y\n" || read("mine") != "x\n" {
		t.Errorf("%q", both)
	}
	write(t, filepath.Join(w.Tree(), "both"), "one\nmine and theirs\nthree\n")
	if w, err = Open(w.Dir(), walls()); err != nil { // another process goes on
		t.Fatal(err)
	}
	id := commit(t, w, "resolved")
	if parents := git(t, w.GitDir(), "log", "-1", "--format=%P", id); parents != strings.TrimSpace(work)+" "+strings.TrimSpace(main) && strings.TrimSpace(parents) != strings.TrimSpace(work)+" "+strings.TrimSpace(main) {
		t.Errorf("parents %q, want %q and %q", parents, work, main)
	}
	if _, err := w.Merge(t.Context(), fromMirror(t, m, remote, "main"), "no-such"); err == nil {
		t.Error("a branch that is not there was merged")
	}
}
