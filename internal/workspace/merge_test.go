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
	m := mirrorsIn(filepath.Join(house, "m"))
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
	if w, err = Open(w.dir, walls()); err != nil { // another process goes on
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

// What others pushed to the branch comes below the work: with markers where both
// changed the same, and as the one parent of what is committed then.
func TestFollow(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	push := func(branch, name, text string) string {
		git(t, path, "checkout", "-q", "-B", branch)
		write(t, filepath.Join(path, name), text)
		git(t, path, "add", ".")
		git(t, path, "commit", "-q", "-m", name)
		return strings.TrimSpace(git(t, path, "rev-parse", branch))
	}
	push("work", "both", "one\ntwo\nthree\n")
	house := t.TempDir()
	m := mirrorsIn(filepath.Join(house, "m"))
	remote := Remote{URL: "file://" + path}
	w, err := Create(t.Context(), CreateOptions{Box: walls(), Source: fromMirror(t, m, remote, "work"), Dir: filepath.Join(house, "w"), Branch: "work"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Tree(), "both"), "one\nmine\nthree\n")
	write(t, filepath.Join(w.Tree(), "mine"), "x\n")
	work, base := commit(t, w, "mine"), w.Base()
	push("work", "both", "one\ntheirs\nthree\n")
	tip := push("work", "theirs", "y\n")
	git(t, path, "checkout", "-q", "main")

	src := fromMirror(t, m, remote, "work")
	if !src.Contains(t.Context(), base) || src.Contains(t.Context(), work) || src.Contains(t.Context(), strings.Repeat("0", 40)) {
		t.Error("what the branch contains")
	}
	for range 2 { // also where it was cut short
		f, err := w.Follow(t.Context(), src, work)
		if err != nil || f.Commits != 2 || !slices.Equal(f.Files, []string{"both", "theirs"}) || !slices.Equal(f.Conflicts, []string{"both"}) {
			t.Fatalf("%+v %v", f, err)
		}
		if w, err = Open(w.dir, walls()); err != nil { // another process goes on
			t.Fatal(err)
		}
		if head, err := w.Head(t.Context()); w.Base() != tip || head != tip || err != nil {
			t.Fatalf("base %s, head %s, want %s: %v", w.Base(), head, tip, err)
		}
	}
	for name, want := range map[string]string{"theirs": "y\n", "mine": "x\n"} {
		if b, err := os.ReadFile(filepath.Join(w.Tree(), name)); err != nil || string(b) != want {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	write(t, filepath.Join(w.Tree(), "both"), "one\nmine and theirs\nthree\n")
	id := commit(t, w, "resolved")
	if parents := strings.TrimSpace(git(t, w.GitDir(), "log", "-1", "--format=%P", id)); parents != tip {
		t.Errorf("parents %q, want %q", parents, tip)
	}
	changes, err := w.CommittedFiles(t.Context(), id)
	if err != nil || !slices.Contains(Paths(changes), "mine") || slices.Contains(Paths(changes), "theirs") {
		t.Errorf("the work is %v, %v", changes, err)
	}
	if _, err := w.Push(t.Context(), PushOptions{Remote: remote, Expect: tip}); err != nil {
		t.Error(err)
	}
}
