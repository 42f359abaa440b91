package workspace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/sandbox"
)

func snap(t testing.TB, w *Workspace, label string) Snapshot {
	t.Helper()
	s, err := w.Snapshot(t.Context(), label)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	write(t, filepath.Join(path, ".gitignore"), "*.o\n")
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "ignore")
	w := create(t, path)
	ctx := t.Context()
	first := snap(t, w, "the start")
	if again := snap(t, w, "nothing happened"); again != first {
		t.Errorf("%+v, want %+v", again, first)
	}
	write(t, filepath.Join(w.Tree(), "README.md"), "one\n")
	write(t, filepath.Join(w.Tree(), "new\nline\xff"), "x\n")
	write(t, filepath.Join(w.Tree(), "a.o"), "ignored")
	second := snap(t, w, "write_file\n\nREADME.md \x00 \xff")
	if second.ID != "2" || second.Label != "write_file README.md \uFFFD" {
		t.Errorf("%+v", second)
	}
	write(t, filepath.Join(w.Tree(), "README.md"), "two\n")
	if err := os.RemoveAll(filepath.Join(w.Tree(), "src")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Tree(), "src"), "a file now\n")
	snap(t, w, "shell")
	got, err := w.Changes(ctx, second.ID)
	if d := cmp.Diff([]Change{{"README.md", Modified}, {"src", Added}, {"src/main.go", Deleted}}, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}

	// Another process knows them as well, and takes the tree back.
	all, err := w.Snapshots(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w, err = Open(w.dir, walls())
	if err != nil {
		t.Fatal(err)
	}
	read, err := w.Snapshots(ctx)
	if d := cmp.Diff(all, read); d != "" || err != nil || len(all) != 3 {
		t.Errorf("%v\n%s", err, d)
	}
	write(t, filepath.Join(w.Tree(), "later"), "x\n")
	before, err := w.RestoreTo(ctx, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := w.ChangedFiles(ctx); err != nil || len(changes) != 0 {
		t.Errorf("%v, %v", changes, err)
	}
	if b, err := os.ReadFile(filepath.Join(w.Tree(), "a.o")); err != nil || string(b) != "ignored" {
		t.Errorf("an ignored file is gone: %v", err)
	}
	if _, err := w.RestoreTo(ctx, before.ID); err != nil { // and back
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(w.Tree(), "later")); err != nil || string(b) != "x\n" {
		t.Errorf("%q, %v", b, err)
	}
	if got := git(t, w.Tree(), "status", "--porcelain", "--branch"); !strings.HasPrefix(got, "## tori/issue-1-x\n") {
		t.Errorf("%s", got)
	}
	for _, id := range []string{"", "99", "../../heads/main", "x", "1\x00"} {
		if _, err := w.RestoreTo(ctx, id); key(err) != "workspace.no_snapshot" {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := w.Changes(ctx, "99"); key(err) != "workspace.no_snapshot" {
		t.Errorf("%v", err)
	}
	// What a snapshot holds stays in the ones after it, ignored or not.
	write(t, filepath.Join(w.Tree(), ".gitignore"), "*.o\nlater\n")
	kept := snap(t, w, "ignore")
	if tree := git(t, w.dir+"/steps", "ls-tree", "-r", "--name-only", kept.Tree); !strings.Contains(tree, "later\n") {
		t.Errorf("%s", tree)
	}
	if changed, err := w.Changes(ctx, before.ID); err != nil || len(changed) != 1 {
		t.Errorf("%v, %v", changed, err)
	}
	// They hold whatever the tree held: nobody else reads them, no command is given them.
	if st, err := os.Stat(w.dir); err != nil || st.Mode().Perm() != 0o700 || strings.HasPrefix(w.onSteps().gitDir, w.Tree()+"/") || !strings.HasPrefix(w.onSteps().gitDir, w.dir+"/") {
		t.Errorf("%v, %v, %s", st, err, w.onSteps().gitDir)
	}
	// A commit has nothing of them.
	id := commit(t, w, "x")
	if tree := git(t, w.GitDir(), "ls-tree", "-r", "--name-only", id); strings.Contains(tree, "later") {
		t.Errorf("%s", tree)
	}
}

func TestSnapshotsAreBounded(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	snap(t, w, "1")
	// As if many had been made: they are refs like any other.
	id := strings.TrimSpace(git(t, w.dir+"/steps", "rev-parse", snapshotRefs+"1"))
	var refs strings.Builder
	for n := 2; n <= maxSnapshots; n++ {
		fmt.Fprintf(&refs, "%s %s%d\n", id, snapshotRefs, n)
	}
	write(t, filepath.Join(w.dir, "steps/packed-refs"), refs.String())
	w.steps = nil
	for n := maxSnapshots + 1; n <= maxSnapshots+2; n++ {
		write(t, filepath.Join(w.Tree(), "f"), fmt.Sprint(n))
		if s := snap(t, w, "more"); s.ID != fmt.Sprint(n) {
			t.Errorf("%+v", s)
		}
	}
	w.steps = nil
	all, err := w.Snapshots(t.Context())
	if err != nil || len(all) != maxSnapshots || all[0].ID != "3" || all[len(all)-1].ID != fmt.Sprint(maxSnapshots+2) {
		t.Errorf("%d, %v, %v", len(all), all[0], err)
	}
}

// What steps store is bounded by what commands may write, also where they take away
// again what they made; the commit is none of that, and goes on.
func TestWhatStepsStoreIsBounded(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	w.box.stored = 3 << 20
	var full error
	for i := range 8 {
		noise := make([]byte, 1<<20)
		_, _ = rand.New(rand.NewSource(int64(i))).Read(noise)
		write(t, filepath.Join(w.Tree(), "f"), string(noise))
		_, full = w.Snapshot(t.Context(), "x")
		if _, err := w.ChangedFiles(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(full, ErrNoRoom) || !strings.Contains(full.Error(), "3 MiB") {
		t.Error(full)
	}
	commit(t, w, "x")
	if l, _ := measure(t.Context(), w.dir, math.MaxInt); l.bytes > 11<<20 {
		t.Errorf("%d bytes", l.bytes)
	}
}

// A snapshot of a tree in which everything is hostile runs nothing, follows
// nothing, and can be restored.
func TestSnapshotOfHostileTree(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, filepath.Join(outside, "secret"), "canary\n")
	clean := snap(t, w, "clean")
	trace := filepath.Join(t.TempDir(), "trace")
	evilRepo(t, filepath.Join(w.Tree(), "nested"), trace)
	write(t, filepath.Join(w.Tree(), ".gitattributes"), "* filter=evil diff=evil merge=evil -text ident working-tree-encoding=UTF-16\n")
	if err := os.Remove(filepath.Join(w.Tree(), ".git")); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"src": outside, "loop": "loop", "a/b": "../a", ".git": filepath.Join(w.Tree(), "nested/.git")} {
		p := filepath.Join(w.Tree(), name)
		if err := os.RemoveAll(p); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, p); err != nil {
			t.Fatal(err)
		}
	}
	dirty := snap(t, w, "dirty")
	if _, err := w.RestoreTo(t.Context(), clean.ID); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(w.Tree(), "src/main.go")); err != nil || string(b) != "package main\n" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(b) != "canary\n" {
		t.Errorf("outside: %q, %v", b, err)
	}
	if left, _ := os.ReadDir(outside); len(left) != 1 {
		t.Errorf("outside: %v", left)
	}
	if b, err := os.ReadFile(filepath.Join(w.Tree(), ".git")); err != nil || string(b) != "gitdir: "+w.GitDir()+"\n" {
		t.Errorf(".git: %q, %v", b, err)
	}
	if _, err := w.RestoreTo(t.Context(), dirty.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(trace); err == nil {
		t.Errorf("executed: %s", got)
	}
}

// A tree that cannot be taken back is said to be as it is.
func TestRestoreThatFails(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere")
	}
	w := create(t, newRepo(t, "repo"))
	first := snap(t, w, "first")
	write(t, filepath.Join(w.Tree(), "src/main.go"), "changed\n")
	snap(t, w, "second")
	dir := filepath.Join(w.Tree(), "src")
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if _, err := w.RestoreTo(t.Context(), first.ID); err == nil || !strings.Contains(err.Error(), "src/main.go") {
		t.Errorf("%v", err)
	}
}

func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		data, err := os.ReadFile(p)
		all[rel] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// Line ends, keywords and encodings that the project's attributes convert come
// back byte for byte.
func TestSnapshotIsVerbatim(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	write(t, filepath.Join(path, ".gitattributes"), "*.bat eol=crlf\n*.c ident\n*.txt text=auto\n*.u16 working-tree-encoding=UTF-16\n")
	write(t, filepath.Join(path, "a.bat"), "one\r\ntwo\r\n")
	write(t, filepath.Join(path, "a.c"), "// $Id$\n")
	write(t, filepath.Join(path, "a.u16"), "\xff\xfea\x00\n\x00")
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "converted")
	w := create(t, path)
	want := contents(t, w.Tree())
	if want["a.bat"] != "one\r\ntwo\r\n" || !strings.Contains(want["a.c"], "$Id: ") {
		t.Fatalf("the checkout converts nothing: %q", want)
	}
	first := snap(t, w, "start")
	write(t, filepath.Join(w.Tree(), "a.bat"), "mixed\r\nends\n")
	write(t, filepath.Join(w.Tree(), "b.txt"), "mixed\r\nends\n\r")
	write(t, filepath.Join(w.Tree(), "a.u16"), "no UTF-16\xff")
	mixed := contents(t, w.Tree())
	second := snap(t, w, "mixed")
	for _, c := range []struct {
		id   string
		want map[string]string
	}{{first.ID, want}, {second.ID, mixed}} {
		if _, err := w.RestoreTo(t.Context(), c.id); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, contents(t, w.Tree())); d != "" {
			t.Errorf("snapshot %s:\n%s", c.id, d)
		}
	}
}

// Whatever happens to the files, each snapshot comes back as it was.
func TestSnapshotLaw(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	rounds := 0
	rapid.Check(t, func(rt *rapid.T) {
		if rounds++; rounds > 2 { // each is many calls of git
			return
		}
		w := create(t, path)
		pictures := map[string]map[string]string{}
		names := []string{"a", "b/c", "b", "README.md", "src/main.go", "src/x/y", "日本\n語"}
		for range rapid.IntRange(1, 4).Draw(rt, "steps") {
			for range rapid.IntRange(1, 3).Draw(rt, "changes") {
				p := filepath.Join(w.Tree(), rapid.SampledFrom(names).Draw(rt, "name"))
				if rapid.Bool().Draw(rt, "remove") {
					_ = os.RemoveAll(p)
					continue
				}
				_ = os.RemoveAll(p)
				if st, err := os.Stat(filepath.Dir(p)); err == nil && !st.IsDir() {
					_ = os.Remove(filepath.Dir(p))
				}
				write(t, p, rapid.StringN(0, 20, -1).Draw(rt, "text"))
			}
			pictures[snap(t, w, "step").ID] = contents(t, w.Tree())
		}
		ids := make([]string, 0, len(pictures))
		for id := range pictures {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range rapid.Permutation(ids).Draw(rt, "order") {
			if _, err := w.RestoreTo(t.Context(), id); err != nil {
				rt.Fatal(err)
			}
			if d := cmp.Diff(pictures[id], contents(t, w.Tree())); d != "" {
				rt.Fatalf("snapshot %s:\n%s", id, d)
			}
		}
	})
}

// What is judged before a branch goes out is what it holds, not what a process
// has made of the tree since.
func TestCommittedText(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	write(t, filepath.Join(w.Tree(), "a.txt"), "was committed\n")
	id := commit(t, w, "first")
	write(t, filepath.Join(w.Tree(), "a.txt"), "came later\n")
	var tree, committed strings.Builder
	if err := errors.Join(w.PatchText(t.Context(), &tree), w.CommittedText(t.Context(), id, &committed)); err != nil {
		t.Fatal(err)
	}
	if s := committed.String(); !strings.Contains(s, "+was committed") || strings.Contains(s, "came later") || !strings.Contains(tree.String(), "came later") {
		t.Errorf("committed: %s\ntree: %s", s, tree.String())
	}
}

// counted are runners that count the commands which they start.
type counted struct {
	sandbox.Runner
	n *int
}

func (c counted) Start(ctx context.Context, cmd sandbox.Command) (*sandbox.Process, error) {
	*c.n++
	return c.Runner.Start(ctx, cmd)
}

// A step that changes something takes one call of the sandbox.
func TestCallsOfAStep(t *testing.T) {
	t.Parallel()
	calls := 0
	w := createIn(t, newRepo(t, "repo"), Box{Shell: func(spec sandbox.Spec) (sandbox.Runner, error) {
		r, err := shell()(spec)
		return counted{r, &calls}, err
	}})
	snap(t, w, "first")
	for i := range 3 {
		write(t, filepath.Join(w.Tree(), "new"), strings.Repeat("x", i+1))
		if before := calls; snap(t, w, "step").ID != itoa(i+2) || calls-before != 1 {
			t.Errorf("step %d: %d calls", i+2, calls-before)
		}
	}
	again, err := Open(w.dir, walls())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if all, err := again.Snapshots(t.Context()); err != nil || len(all) != 4 {
		t.Errorf("%v, %v", all, err)
	}
}

// The first snapshot of a new tree stores nothing that the clone has: no file, and
// of what changed no more than that.
func TestFirstSnapshotStoresNothingAnew(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	stored := func() string { return git(t, w.dir, "--git-dir="+w.stepsDir(), "count-objects") }
	snap(t, w, "first")
	if got := stored(); !strings.HasPrefix(got, "1 objects") { // its commit
		t.Error(got)
	}
	st, err := os.Stat(filepath.Join(w.Tree(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(w.Tree(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Tree(), "README.md"), strings.Repeat("x", len(before))) // of the same size, at once
	if changes, err := w.ChangedFiles(t.Context()); err != nil || len(changes) != 1 {
		t.Errorf("%v, %v; %v", changes, err, st.ModTime())
	}
	snap(t, w, "second")
	if got := stored(); !strings.HasPrefix(got, "4 objects") { // file, tree, commit
		t.Error(got)
	}
}
