package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// caches is Caches, which has to be there.
func caches(t *testing.T, w *Workspace, l Layer) Caches {
	t.Helper()
	c, err := w.Caches(t.Context(), l)
	if err != nil || c.Cold != nil {
		t.Fatal(err, c.Cold)
	}
	return c
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// withSetup is a workspace of the repository's HEAD, set up.
func withSetup(t *testing.T, path, house, name string, commands ...SetupCommand) *Workspace {
	t.Helper()
	w := workspaceOf(t, inspect(t, path), filepath.Join(house, "workspaces", name))
	if _, err := w.Setup(t.Context(), SetupOptions{Commands: commands, Dir: filepath.Join(house, "setup/repo"), Run: shRun(w, new(atomic.Int64))}); err != nil {
		t.Fatal(err)
	}
	return w
}

func seal(t *testing.T, w *Workspace) {
	t.Helper()
	if err := w.SealBase(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.OfferBase(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// What the steps write is read by no check, what a check writes by no other one,
// and neither by a later task; what setup and the base's checks built, by all.
func TestLayers(t *testing.T) {
	t.Parallel()
	path, house := newRepo(t, "repo"), t.TempDir()
	w := withSetup(t, path, house, "1", SetupCommand{Run: `mkdir -p "$FILES/go-build/aa" "$XDG_CACHE_HOME/tool"; echo built > "$FILES/go-build/aa/1-d"; echo index > "$FILES/go-build/aa/1-a"; echo made > "$XDG_CACHE_HOME/tool/f"`})
	for _, l := range []Layer{LayerSteps, LayerCheck} {
		if c, err := w.Caches(t.Context(), l); err == nil {
			t.Errorf("%s before the base is sealed: %+v", l, c)
		}
	}
	base := caches(t, w, LayerBase)
	if got := read(t, filepath.Join(base.Dir, "go-build/aa/1-d")); got != "built\n" || len(base.ReadOnly) != 0 {
		t.Errorf("%q, %v", got, base.ReadOnly)
	}
	for range 2 {
		if sealed, err := w.BeginLayers(t.Context()); err != nil || sealed { // also by the next owner
			t.Fatal(sealed, err)
		}
	}
	write(t, filepath.Join(base.Dir, "go-build/bb/2-d"), "checked\n")
	write(t, filepath.Join(base.Dir, "go-build/bb/2-a"), "index\n")
	write(t, filepath.Join(base.Dir, "go-build/trim.txt"), "1\n")
	for i := range maxPartFiles + 1 {
		write(t, filepath.Join(base.Dir, "xdg/large", itoa(i)), "")
	}
	seal(t, w)
	seal(t, w)
	if c, err := w.Caches(t.Context(), LayerBase); err == nil {
		t.Errorf("the base's after it was sealed: %+v", c)
	}
	steps := caches(t, w, LayerSteps)
	for name, want := range map[string]string{"go-build/aa/1-d": "built\n", "go-build/bb/2-d": "checked\n", "go-build/bb/2-a": "index\n", "go-build/trim.txt": "1\n", "xdg/tool/f": "made\n", "xdg/large/7": ""} {
		if got := read(t, filepath.Join(steps.Dir, name)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if d := cmp.Diff([]string{base.Dir}, steps.ReadOnly); d != "" {
		t.Error(d)
	}
	// Links lead to what is read-only; nothing shares a file with the base's.
	for name, link := range map[string]bool{"go-build/bb/2-d": true, "go-build/bb/2-a": false, "xdg/tool/f": false, "xdg/large": true} {
		st, err := os.Lstat(filepath.Join(steps.Dir, name))
		if err != nil || (st.Mode()&os.ModeSymlink != 0) != link {
			t.Errorf("%s: %v, %v", name, st, err)
			continue
		}
		if to, _ := os.Readlink(filepath.Join(steps.Dir, name)); link && to != filepath.Join(base.Dir, name) {
			t.Errorf("%s leads to %s", name, to)
		}
		if n := st.Sys().(*syscall.Stat_t).Nlink; st.Mode().IsRegular() && n != 1 {
			t.Errorf("%s has %d names", name, n)
		}
	}

	// The model poisons all it has.
	poison := func(dir string) {
		for _, name := range []string{"go-build/bb/2-a", "go-build/bb/2-d", "go-build/cc/3-a", "xdg/tool/f", "xdg/new/f"} {
			_ = os.Remove(filepath.Join(dir, name))
			write(t, filepath.Join(dir, name), "poisoned\n")
		}
	}
	clean := func(who, dir string) {
		t.Helper()
		out, err := os.ReadDir(filepath.Join(dir, "go-build"))
		if err != nil || len(out) != 3 {
			t.Errorf("%s: %v, %v", who, out, err)
		}
		for name, want := range map[string]string{"go-build/bb/2-a": "index\n", "go-build/bb/2-d": "checked\n", "xdg/tool/f": "made\n"} {
			if got := read(t, filepath.Join(dir, name)); got != want {
				t.Errorf("%s: %s: %q", who, name, got)
			}
		}
		if exists(filepath.Join(dir, "xdg/new")) {
			t.Errorf("%s has what was made since", who)
		}
	}
	poison(steps.Dir)
	for _, who := range []string{"a check", "the next check"} {
		c := caches(t, w, LayerCheck)
		clean(who, c.Dir)
		poison(c.Dir)
	}
	if got := read(t, filepath.Join(caches(t, w, LayerSteps).Dir, "xdg/new/f")); got != "poisoned\n" {
		t.Errorf("the steps lost what they had: %q", got)
	}
	clean("the base", base.Dir)
	next := caches(t, withSetup(t, path, house, "2", SetupCommand{Run: `mkdir -p "$FILES/go-build/aa" "$XDG_CACHE_HOME/tool"; echo built > "$FILES/go-build/aa/1-d"; echo index > "$FILES/go-build/aa/1-a"; echo made > "$XDG_CACHE_HOME/tool/f"`}), LayerBase)
	clean("a later task", next.Dir)
	if err := w.DropCaches(""); err != nil || exists(base.Dir) {
		t.Error(err)
	}
}

// A task of the same base, or of a later commit, begins with what an earlier one
// built; one of another branch does not, nor has any a file in common with it.
func TestBuildCachesOfAncestors(t *testing.T) {
	t.Parallel()
	path, house := newRepo(t, "repo"), t.TempDir()
	first := withSetup(t, path, house, "first", SetupCommand{Run: `mkdir -p "$GOMODCACHE" "$CARGO_HOME"; echo first > "$GOMODCACHE/m"; echo first > "$CARGO_HOME/c"`})
	write(t, filepath.Join(caches(t, first, LayerBase).Dir, "go-build/aa/1-d"), "first\n")
	seal(t, first)
	_ = first.Close()

	grow := func(name, branch string) {
		git(t, path, "checkout", "-q", "-B", branch)
		write(t, filepath.Join(path, name), name)
		git(t, path, "add", ".")
		git(t, path, "commit", "-q", "-m", name)
	}
	again := SetupCommand{Run: `cat "$GOMODCACHE/m" "$CARGO_HOME/c" > left; echo again >> "$CARGO_HOME/c"`}
	grow("side", "side")
	side := withSetup(t, path, house, "side", again)
	if got := read(t, filepath.Join(side.Tree(), "left")); got != "first\nfirst\n" {
		t.Errorf("%q", got)
	}
	dir := caches(t, side, LayerBase).Dir
	if got := read(t, filepath.Join(dir, "go-build/aa/1-d")); got != "first\n" {
		t.Errorf("a later commit: %q", got)
	}
	// It is a copy: what the side branch does to it stays there.
	write(t, filepath.Join(dir, "go-build/aa/1-d"), "side\n")
	seal(t, side)
	git(t, path, "checkout", "-q", "main")
	grow("main", "main")
	next := withSetup(t, path, house, "main", SetupCommand{Run: `cat "$GOMODCACHE/m" "$CARGO_HOME/c" > left`})
	if got := read(t, filepath.Join(next.Tree(), "left")); got != "first\nfirst\n" {
		t.Errorf("%q", got)
	}
	if got := read(t, filepath.Join(caches(t, next, LayerBase).Dir, "go-build/aa/1-d")); got != "first\n" {
		t.Errorf("another branch: %q", got)
	}
	// A history of its own has nothing to begin with.
	git(t, path, "checkout", "-q", "--orphan", "alone")
	git(t, path, "commit", "-q", "-m", "alone")
	alone := withSetup(t, path, house, "alone")
	if c := caches(t, alone, LayerBase); exists(filepath.Join(c.Dir, "go-build")) {
		t.Error("an unrelated history is built upon")
	}
	// What is there at the time decides, also while it is being removed.
	lock, err := takeLock(side.made+".lock", exclusive)
	if err == nil {
		_ = release(lock)
		t.Error("a setup in use can be removed")
	}
}

// What the base's own code may have planted leads nowhere: it is the daemon that
// lays the next layer.
func TestLayersOfAHostileBase(t *testing.T) {
	t.Parallel()
	house, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "1-a"), "secret\n")
	w := withSetup(t, newRepo(t, "repo"), house, "1")
	base := caches(t, w, LayerBase).Dir
	write(t, filepath.Join(base, "go-build/bb/2-a"), "index\n")
	write(t, filepath.Join(base, "go-build/bb/9-a"), strings.Repeat("x", maxIndex))
	for name, to := range map[string]string{"go-build/aa": outside, "go-build/bb/1-a": filepath.Join(outside, "1-a"), "go-build/bb/1-d": filepath.Join(outside, "1-a"), "go-build/README": filepath.Join(outside, "1-a"), "xdg": outside} {
		if err := os.Symlink(to, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go-build/bb/3-a", "go-build/bb/3-d"} {
		if err := unix.Mkfifo(filepath.Join(base, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SealBase(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.OfferBase(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := w.Caches(t.Context(), LayerSteps)
	if err != nil {
		t.Fatal(err)
	}
	_ = filepath.WalkDir(c.Dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if b := read(t, p); b == "secret\n" || len(b) >= maxIndex {
			t.Errorf("%s holds what it must not", p)
		}
		return nil
	})
	if c.Cold == nil { // xdg is a link, and none is followed
		t.Error("nothing is said")
	}
	if out, _ := os.ReadDir(outside); len(out) != 1 {
		t.Errorf("%v", out)
	}
}

// A killed process may leave half a layer, and half an offer.
func TestLayersAfterAKill(t *testing.T) {
	t.Parallel()
	house := t.TempDir()
	w := withSetup(t, newRepo(t, "repo"), house, "1")
	write(t, filepath.Join(w.dir, "cache/.tmp-base/go-build/aa/half-d"), "half\n")
	base := caches(t, w, LayerBase).Dir
	if exists(filepath.Join(base, "go-build")) {
		t.Error("half a layer is taken for whole")
	}
	write(t, filepath.Join(base, "go-build/aa/1-d"), "whole\n")
	// Killed among the checks: the next owner goes on with it.
	if got := read(t, filepath.Join(caches(t, w, LayerBase).Dir, "go-build/aa/1-d")); got != "whole\n" {
		t.Errorf("%q", got)
	}
	seal(t, w)
	write(t, filepath.Join(w.dir, "cache/check/left"), "left\n")
	if c := caches(t, w, LayerCheck); exists(filepath.Join(c.Dir, "left")) {
		t.Error("what a killed check left is there")
	}
	// A workspace without a setup, as of an earlier version, works all the same.
	old := workspaceOf(t, inspect(t, newRepo(t, "other")), filepath.Join(house, "workspaces/2"))
	seal(t, old)
	_ = caches(t, old, LayerSteps)
}

// layApart lays a commit in the tree for checks.
func layApart(t *testing.T, w *Workspace, commit string) error {
	t.Helper()
	a, err := w.CheckTree()
	if err == nil {
		err = a.Lay(t.Context(), commit)
	}
	if err == nil {
		err = a.Close(false)
	}
	return err
}

// Checks judge the commit with what setup made, beside the tree that the model
// works in: what git ignores and the model, or another check, wrote is not there,
// and no build tool takes a changed file for an old one.
func TestApart(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	write(t, filepath.Join(path, ".gitignore"), "node_modules/\n*.o\nlocked/\n")
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "ignore")
	w := withSetup(t, path, t.TempDir(), "1", SetupCommand{Run: "mkdir -p node_modules/.bin venv && echo real > node_modules/.bin/jest && echo real > venv/python"})
	a, err := w.CheckTree()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"node_modules/.bin/jest": "exit 0\n", "venv/python": "exit 0\n", "src/main.go": "package changed\n", "added": "x\n", "src/own.o": "mine\n"} {
		write(t, filepath.Join(w.Tree(), name), text)
	}
	id := commit(t, w, "x")
	write(t, filepath.Join(w.Tree(), "after"), "the commit\n")
	long := time.Now().Add(-1000 * time.Hour)
	for i, want := range []string{"package main\n", "package changed\n", "package changed\n", "package main\n"} {
		laid := []string{"", id, id, w.Base()}[i]
		if err := a.Lay(t.Context(), laid); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"node_modules/.bin/jest": "real\n", "venv/python": "real\n", "src/main.go": want, ".git": read(t, filepath.Join(w.Tree(), ".git"))} {
			if got := read(t, filepath.Join(a.Tree(), name)); got != want {
				t.Errorf("%d: %s: %q", i, name, got)
			}
		}
		for name, there := range map[string]bool{"node_modules/new": false, "src/main.o": false, "src/own.o": false, "locked": false, "after": false, "added": want != "package main\n"} {
			if exists(filepath.Join(a.Tree(), name)) != there {
				t.Errorf("%d: %s: %t", i, name, !there)
			}
		}
		st, err := os.Stat(filepath.Join(a.Tree(), "src/main.go"))
		if err != nil || i != 2 && time.Since(st.ModTime()) > time.Hour { // it is another one than before
			t.Errorf("%d: %v, %v", i, st.ModTime(), err)
		}
		// What a check leaves.
		for name, text := range map[string]string{"node_modules/new": "x\n", "venv/python": "exit 0\n", "src/main.o": "old\n", "locked/deep/f": "x\n"} {
			write(t, filepath.Join(a.Tree(), name), text)
		}
		if err := errors.Join(os.Chmod(filepath.Join(a.Tree(), "locked/deep"), 0o500), os.Chtimes(filepath.Join(a.Tree(), "src/main.go"), long, long)); err != nil {
			t.Fatal(err)
		}
	}
	if changed, err := w.ChangedFiles(t.Context()); err != nil || len(changed) != 3 || !exists(filepath.Join(w.Tree(), "src/own.o")) {
		t.Errorf("the other tree: %v, %v", changed, err)
	}
	if err := a.Close(true); err != nil || exists(filepath.Join(w.dir, "apart")) {
		t.Error(err)
	}
}

// The model's first command may come while the base's checks write their caches:
// its own begin with what there was before, and stay its own.
func TestEarlySteps(t *testing.T) {
	t.Parallel()
	w := withSetup(t, newRepo(t, "repo"), t.TempDir(), "1", SetupCommand{Run: `mkdir -p "$FILES/go-build/aa"; echo built > "$FILES/go-build/aa/1-d"`})
	if sealed, err := w.BeginLayers(t.Context()); err != nil || sealed {
		t.Fatal(sealed, err)
	}
	write(t, filepath.Join(caches(t, w, LayerBase).Dir, "go-build/bb/2-d"), "half")
	steps := caches(t, w, LayerSteps)
	if got := read(t, filepath.Join(steps.Dir, "go-build/aa/1-d")); got != "built\n" || exists(filepath.Join(steps.Dir, "go-build/bb")) || len(steps.ReadOnly) != 1 {
		t.Errorf("%q, %+v", got, steps)
	}
	write(t, filepath.Join(steps.Dir, "go-build/own"), "mine\n")
	seal(t, w)
	if c := caches(t, w, LayerSteps); read(t, filepath.Join(c.Dir, "go-build/own")) != "mine\n" {
		t.Error("what the model's commands built is gone")
	}
	if c := caches(t, w, LayerCheck); exists(filepath.Join(c.Dir, "go-build/own")) || read(t, filepath.Join(c.Dir, "go-build/bb/2-d")) != "half" {
		t.Error("a check does not begin with what the base has")
	}
}
