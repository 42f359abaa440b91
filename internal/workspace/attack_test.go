package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/sandbox"
)

// confinedKinds calls test with each kind of sandbox that works here.
func confinedKinds(t *testing.T, test func(*testing.T, Box)) {
	for _, kind := range []string{sandbox.KindBwrap, sandbox.KindNamespaces, sandbox.KindLandlock} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, err := sandbox.Choose(t.Context(), sandbox.Options{Prefer: kind})
			if err != nil {
				t.Skip(err)
			}
			test(t, Box{Shell: s.Runner})
		})
	}
}

func createIn(t *testing.T, path string, b Box) *Workspace {
	t.Helper()
	w, err := Create(t.Context(), CreateOptions{Box: b, Source: inspect(t, path), Dir: filepath.Join(t.TempDir(), "workspaces", "1234"), Branch: "work"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// objects is the content of all objects of a git directory.
func objects(t *testing.T, gitDir string) string {
	t.Helper()
	if !exists(filepath.Join(gitDir, "HEAD")) {
		return ""
	}
	return git(t, gitDir, "--git-dir="+gitDir, "cat-file", "--batch-all-objects", "--batch", "--unordered")
}

// A repository in a directory that cannot be listed is none of the work's, and
// its filters run nowhere where they reach anything.
func TestRepositoryInAnUnreadableDirectory(t *testing.T) {
	t.Parallel()
	confinedKinds(t, func(t *testing.T, b Box) {
		w := createIn(t, newRepo(t, "repo"), b)
		trace := filepath.Join(t.TempDir(), "trace")
		evilRepo(t, filepath.Join(w.Tree(), "deep/nested"), trace)
		write(t, filepath.Join(w.Tree(), "shut/file"), "kept\n")
		hide := func(round int) {
			write(t, filepath.Join(w.Tree(), "deep/nested/inner"), fmt.Sprintln(round))
			write(t, filepath.Join(w.Tree(), "README.md"), fmt.Sprintln(round))
			for _, dir := range []string{"deep/nested", "shut"} {
				if err := os.Chmod(filepath.Join(w.Tree(), dir), 0o311); err != nil {
					t.Fatal(err)
				}
			}
		}
		var last Snapshot
		for round := range 2 {
			hide(round)
			last = snap(t, w, "step")
			hide(round + 10)
			commit(t, w, "round")
		}
		if got, err := os.ReadFile(trace); err == nil {
			t.Errorf("executed:\n%s", got)
		}
		if tree := git(t, w.dir, "--git-dir="+w.stepsDir(), "ls-tree", "-r", last.Tree); strings.Contains(tree, "160000") || !strings.Contains(tree, "shut/file") {
			t.Error(tree)
		}
		if tree := git(t, w.dir, "--git-dir="+w.GitDir(), "ls-tree", "-r", "work"); strings.Contains(tree, "160000") || !strings.Contains(tree, "shut/file") {
			t.Error(tree)
		}
	})
}

// A directory that becomes a link out of the tree and back, while the tree is
// recorded, leads to nothing outside.
func TestSwappedDirectories(t *testing.T) {
	t.Parallel()
	confinedKinds(t, func(t *testing.T, b Box) {
		w := createIn(t, newRepo(t, "repo"), b)
		outside := t.TempDir()
		const canary, files = "a secret of the machine", 40
		for i := range files {
			write(t, filepath.Join(outside, fmt.Sprint("f", i)), canary)
			write(t, filepath.Join(w.Tree(), "d/e", fmt.Sprint("f", i)), "plain")
		}
		if err := os.Symlink(outside, filepath.Join(w.Tree(), "d/l")); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		var swaps sync.WaitGroup
		swaps.Go(func() {
			d, l := filepath.Join(w.Tree(), "d/e"), filepath.Join(w.Tree(), "d/l")
			for {
				select {
				case <-done:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, d, unix.AT_FDCWD, l, unix.RENAME_EXCHANGE)
				}
			}
		})
		for i := range 10 {
			write(t, filepath.Join(w.Tree(), "README.md"), fmt.Sprintln(i))
			for j := range files { // read again by git, where it finds them
				now := time.Unix(int64(1_000_000+i), 0)
				_ = os.Chtimes(filepath.Join(outside, fmt.Sprint("f", j)), now, now)
			}
			_, _ = w.Snapshot(t.Context(), "step") // git may complain of what is gone
			_, _ = w.Commit(t.Context(), CommitOptions{Message: "x", When: when})
		}
		close(done)
		swaps.Wait()
		for _, dir := range []string{w.stepsDir(), w.GitDir()} {
			if strings.Contains(objects(t, dir), canary) {
				t.Errorf("%s holds a file of the machine", dir)
			}
		}
		snap(t, w, "afterwards") // the run can go on
		_, err := w.Commit(t.Context(), CommitOptions{Message: "x", When: when})
		if err != nil && !strings.Contains(err.Error(), ErrNothingToCommit.Error()) {
			t.Error(err)
		}
	})
}

// A file whose encoding makes git hold all of it takes no more than the sandbox
// has, and the work goes on without it.
func TestEncodingOfALargeFile(t *testing.T) {
	t.Parallel()
	confinedKinds(t, func(t *testing.T, b Box) {
		b.MemoryMB, b.MaxFileMB = 256, 1024
		w := createIn(t, newRepo(t, "repo"), b)
		write(t, filepath.Join(w.Tree(), ".gitattributes"), "*.txt working-tree-encoding=UTF-16LE\n")
		large := func(size int64) {
			path := filepath.Join(w.Tree(), "big.txt")
			write(t, path, "")
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
		}
		large(1 << 29)
		if _, err := w.Commit(t.Context(), CommitOptions{Message: "x", When: when}); err == nil {
			t.Error("git held more than the sandbox has")
		} else if !strings.Contains(err.Error(), "emory") && !strings.Contains(err.Error(), "big.txt") {
			t.Errorf("does not say why: %v", err)
		}
		large(1<<30 + 1) // past the size of a file: left out, and said
		commit(t, w, "without it")
		if l, err := w.LeftOut(); err != nil || l.All != 1 || l.Paths[0] != "big.txt" {
			t.Errorf("%+v, %v", l, err)
		}
		if told, err := w.StatusText(t.Context()); err != nil || !strings.Contains(told, "! big.txt (too large") {
			t.Errorf("%q, %v", told, err)
		}
		if s := snap(t, w, "step"); strings.Contains(git(t, w.dir, "--git-dir="+w.stepsDir(), "ls-tree", "-r", s.Tree), "big.txt") {
			t.Error("a snapshot holds it")
		}
	})
}

// A submodule that appears in an index is refused by name, and is gone from it.
func TestPlantedSubmodule(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	trace := filepath.Join(t.TempDir(), "trace")
	evilRepo(t, filepath.Join(w.Tree(), "nested"), trace)
	snap(t, w, "first")
	plant := call{args: []string{"update-index", "--add", "--cacheinfo", "160000," + w.Base() + ",nested"}}
	if _, err := w.onSteps().run(t.Context(), plant); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Tree(), "README.md"), "changed\n")
	if _, err := w.Snapshot(t.Context(), "step"); key(err) != "workspace.gitlink" || !strings.Contains(err.Error(), "nested") {
		t.Errorf("%v", err)
	}
	snap(t, w, "after it was refused")
	// The same in the index of a commit: the daemon judges the tree that it was sent.
	tree, err := w.scratch().script(t.Context(), "mktree", `printf '160000 commit %s\tlink\n' "$1" | git mktree`, call{args: []string{w.Base()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.receive(t.Context(), line(tree)); key(err) != "workspace.gitlink" {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(trace); err == nil {
		t.Errorf("executed:\n%s", got)
	}
}

// What the sandbox sends is taken as a stranger's: malformed or not whole, it is
// refused.
func TestObjectsOfTheSandbox(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	for name, script := range map[string]string{
		"a tree with a .git in it":     `id=$(echo x | git hash-object -w --stdin); printf '100644 blob %s\t.git\n' $id | git mktree`,
		"a tree without what it names": `printf '100644 blob 1234567890123456789012345678901234567890\tf\n' | git mktree --missing`,
	} {
		tree, err := w.scratch().script(t.Context(), "mktree", script, call{})
		if err != nil {
			t.Fatal(name, err)
		}
		if err := w.receive(t.Context(), line(tree)); err == nil {
			t.Errorf("%s was taken", name)
		}
		if _, err := w.repo.git(t.Context(), "cat-file", "-e", line(tree)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}

// Git outside the sandbox sees a git directory and nothing that the sandbox or a
// command may write. Not parallel: PATH leads to a git that takes notes.
func TestGitOutsideTheSandbox(t *testing.T) {
	s, err := sandbox.Detect(t.Context())
	if err != nil {
		t.Skip(err)
	}
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin, notes := t.TempDir(), filepath.Join(t.TempDir(), "notes")
	disktest.Program(t, filepath.Join(bin, "git"), "#!/bin/sh\n{ echo \"$PWD $*\" | tr '\\n' ' '; env | grep ^GIT_ | tr '\\n' ' '; echo; } >>'"+notes+"'\nexec '"+real+"' \"$@\"\n")
	path := newRepo(t, "repo")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	b := Box{Shell: s.Runner}
	src, err := Inspect(t.Context(), path, InspectOptions{Box: b})
	if err != nil {
		t.Fatal(err)
	}
	w, err := Create(t.Context(), CreateOptions{Box: b, Source: src, Dir: filepath.Join(t.TempDir(), "w"), Branch: "work"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	ctx := t.Context()
	write(t, filepath.Join(w.Tree(), "new"), "x\n")
	first := snap(t, w, "one")
	trace := filepath.Join(w.dir, "trace")
	config := fmt.Sprintf("[core]\n\tfsmonitor = touch %[1]s\n\thooksPath = hooks\n\tpager = touch %[1]s\n[alias]\n\tx = !touch %[1]s\n", trace)
	f, err := os.OpenFile(filepath.Join(w.stepsDir(), "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(config)
	if cerr := f.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	write(t, filepath.Join(w.Tree(), "new"), "y\n")
	snap(t, w, "two")
	id := commit(t, w, "x")
	for name, do := range map[string]func() error{
		"status":  func() error { _, err := w.StatusText(ctx); return err },
		"diff":    func() error { _, err := w.Diff(ctx, DiffOptions{}); return err },
		"log":     func() error { _, err := w.LogText(ctx, "", "", 3, true, 1000); return err },
		"blame":   func() error { _, err := w.BlameText(ctx, "new", 1, 1, 1000); return err },
		"missing": func() error { _, err := w.Missing(ctx); return err },
		"restore": func() error { _, err := w.RestoreTo(ctx, first.ID); return err },
		"apart":   func() error { return layApart(t, w, id) },
		"files":   func() error { _, err := w.CommittedFiles(ctx, id); return err },
		"deliver": func() error { return w.Deliver(ctx) },
	} {
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if exists(trace) {
		t.Error("what stands in the configuration of the snapshots was run")
	}
	said, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(said)) {
		for _, never := range []string{w.Tree(), w.stepsDir(), w.scratchDir(), "--work-tree", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
			if strings.Contains(l, never) {
				t.Errorf("%s: %s", never, l)
			}
		}
		for _, verb := range []string{"add", "status", "reset", "clean", "read-tree", "checkout", "write-tree", "ls-files", "check-attr", "check-ignore"} {
			if slices.Contains(strings.Fields(l), verb) {
				t.Errorf("git %s outside of the sandbox: %s", verb, l)
			}
		}
	}
}

// Patterns that git matches for ever end with the time that a tree of this size
// may take, whichever git looks at them.
func TestPatternsWithoutEnd(t *testing.T) {
	t.Parallel()
	confinedKinds(t, func(t *testing.T, b Box) {
		w := createIn(t, newRepo(t, "repo"), b)
		many := strings.Repeat("**/"+strings.Repeat("a*", 9)+"b/", 6) + "b"
		write(t, filepath.Join(w.Tree(), ".gitignore"), many+"\n")
		write(t, filepath.Join(w.Tree(), ".gitattributes"), many+" text\n")
		write(t, filepath.Join(w.Tree(), strings.Repeat(strings.Repeat("a", 60)+"/", 20), "N"), "new\n")
		w.box.cpu = 999 * time.Millisecond
		ended := func(verb string, err error) {
			t.Helper()
			if key(err) != "workspace.git_time" || !strings.Contains(err.Error(), "git "+verb) || !strings.Contains(err.Error(), ".gitignore") {
				t.Errorf("%s: %v", verb, err)
			}
		}
		_, _, err := w.stage(t.Context(), w.scratch(), look{}, nil, call{args: []string{w.Base()}})
		ended("add", err)
		ended("read-tree", w.checkOut(t.Context(), w.Base(), "-d", "--force"))

		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond) // somebody stops it
		defer stop()
		w.box.cpu = time.Hour
		began := time.Now()
		if _, err := w.onTree().run(ctx, call{args: []string{"status"}}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Minute {
			t.Error(err, time.Since(began))
		}
	})
}

// What git may take grows with the tree, and is known before somebody looks.
func TestTimeOfATree(t *testing.T) {
	b := newBox(Box{}, repo{}, "/nonexistent")
	for _, c := range []struct {
		look
		want time.Duration
	}{{look{}, time.Minute}, {look{paths: 1_000_000, bytes: 1 << 30}, time.Minute + 500*time.Second + 51200*time.Millisecond}, {look{}, 10*time.Minute + 11200*time.Millisecond}} {
		if b.looked(c.look); b.cpu != c.want {
			t.Errorf("%+v: %s, want %s", c.look, b.cpu, c.want)
		}
	}
}

// runnerOf tells what is started.
type runnerOf struct {
	sandbox.Runner
	started func(sandbox.Command)
}

func (r runnerOf) Start(ctx context.Context, c sandbox.Command) (*sandbox.Process, error) {
	r.started(c)
	return r.Runner.Start(ctx, c)
}

// The first look at a checkout of ordinary size may take no more than later ones.
func TestTimeOfACheckout(t *testing.T) {
	t.Parallel()
	dir := newRepo(t, "repo")
	for i := range 300 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "x")
	}
	box, began := walls(), false
	make := box.Shell
	box.Shell = func(spec sandbox.Spec) (sandbox.Runner, error) {
		r, err := make(spec)
		return runnerOf{r, func(c sandbox.Command) {
			began = true
			if c.Args[4] != "61" || c.Timeout > 11*time.Minute {
				t.Errorf("it may take %s s of a processor, and %s", c.Args[4], c.Timeout)
			}
		}}, err
	}
	if _, err := Inspect(t.Context(), dir, InspectOptions{Box: box, AllowDirty: true}); err != nil || !began {
		t.Error(began, err)
	}
	if l, whole := measure(t.Context(), dir, 10); whole || l.paths != 10 {
		t.Errorf("%+v %v", l, whole)
	}
}

// What lies deep is in a snapshot, and where git cannot go so deep it is left out.
func TestSnapshotOfADeepTree(t *testing.T) {
	t.Parallel()
	w := createIn(t, newRepo(t, "repo"), walls())
	deep := strings.Repeat("d/", 1500) + "file"
	write(t, filepath.Join(w.Tree(), deep), "deep\n")
	if changed, err := w.ChangedFiles(t.Context()); err != nil || len(changed) != 1 || changed[0].Path != deep {
		t.Errorf("%d changes, %v", len(changed), err)
	}
	w.box.mu.Lock()
	err := w.box.runner.Close()
	w.box.runner, w.box.spec.Limits.OpenFiles = nil, 512
	w.box.mu.Unlock()
	if changed, cerr := w.ChangedFiles(t.Context()); err != nil || cerr != nil || len(changed) != 0 {
		t.Errorf("%v, %v, %v", err, cerr, changed)
	}
}
