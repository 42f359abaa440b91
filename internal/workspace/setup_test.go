package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// shRun runs setup commands as they are, without a sandbox.
func shRun(w *Workspace, runs *atomic.Int64) func(context.Context, SetupCommand, string, map[string]string) error {
	return func(ctx context.Context, c SetupCommand, files string, env map[string]string) error {
		runs.Add(1)
		cmd := exec.CommandContext(ctx, "sh", "-c", c.Run)
		cmd.Dir = w.Tree()
		cmd.Env = append(os.Environ(), "FILES="+files)
		for k, v := range env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		return cmd.Run()
	}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	write(t, filepath.Join(path, ".gitignore"), "node_modules/\n")
	write(t, filepath.Join(path, "package-lock.json"), "{}\n")
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "lock")
	house := t.TempDir()
	var runs atomic.Int64
	commands := []SetupCommand{{Run: `mkdir -p node_modules/.bin "$CARGO_HOME" "odd name
[x]" && echo lib > node_modules/lib.js && ln -s ../lib.js node_modules/.bin/lib && ln -s "$PWD/src" node_modules/abs && ln -s /etc/passwd out &&
		printf '#!%s/.venv/bin/python\n' "$PWD" > run && chmod 755 run && printf 'x\0%s/' "$PWD" > binary && mkfifo fifo && mkdir empty ro && echo x > ro/f && chmod 500 ro &&
		echo x > "odd name
[x]/f" && echo crate > "$CARGO_HOME/crate"`}, {Run: "echo changed > README.md; rm package-lock.json", Network: true}}
	opt := func(w *Workspace) SetupOptions {
		return SetupOptions{Commands: commands, Dir: filepath.Join(house, "setup/repo"), Run: shRun(w, &runs)}
	}
	at := func(name string) *Workspace {
		return workspaceOf(t, inspect(t, path), filepath.Join(house, "workspaces", name))
	}
	w := at("1")
	s, err := w.Setup(t.Context(), opt(w))
	if err != nil {
		t.Fatal(err)
	}
	want := Setup{Files: s.Files, Ran: true, Env: map[string]string{"CARGO_HOME": filepath.Join(s.Files, "cargo"), "CARGO_NET_OFFLINE": "true"}}
	if d := cmp.Diff(want, s); d != "" || runs.Load() != 2 {
		t.Errorf("%d runs\n%s", runs.Load(), d)
	}
	// It is no part of the change.
	if changed, err := w.ChangedFiles(t.Context()); err != nil || len(changed) != 0 {
		t.Errorf("%v, %v", changed, err)
	}
	if st := git(t, w.Tree(), "status", "--porcelain"); st != "" {
		t.Errorf("%q", st)
	}
	if s := snap(t, w, "start"); s.Tree != strings.TrimSpace(git(t, path, "rev-parse", "HEAD^{tree}")) {
		t.Errorf("%+v", s)
	}

	// A second workspace has the same without a run, with its own place in it.
	w2 := at("2")
	s2, err := w2.Setup(t.Context(), opt(w2))
	if err != nil || s2.Ran || s2.Files != s.Files || runs.Load() != 2 {
		t.Fatalf("%+v, %v, %d runs", s2, err, runs.Load())
	}
	tree := w2.Tree()
	for name, want := range map[string]string{"node_modules/lib.js": "lib\n", "run": "#!" + tree + "/.venv/bin/python\n", "binary": "x\x00" + w.Tree() + "/", "odd name\n[x]/f": "x\n", "README.md": "hello\n", "package-lock.json": "{}\n", "ro/f": "x\n"} {
		if b, err := os.ReadFile(filepath.Join(tree, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for name, want := range map[string]string{"node_modules/.bin/lib": "../lib.js", "node_modules/abs": tree + "/src", "out": "/etc/passwd"} {
		if to, err := os.Readlink(filepath.Join(tree, name)); err != nil || to != want {
			t.Errorf("%s: %s, %v", name, to, err)
		}
	}
	for name, mode := range map[string]os.FileMode{"run": 0o755, "ro": 0o500 | os.ModeDir} {
		if st, err := os.Lstat(filepath.Join(tree, name)); err != nil || st.Mode() != mode {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if changed, err := w2.ChangedFiles(t.Context()); err != nil || len(changed) != 0 {
		t.Errorf("%v, %v", changed, err)
	}
	// It is a copy: what a task does to it stays with the task.
	write(t, filepath.Join(tree, "node_modules/lib.js"), "poisoned\n")
	w3 := at("3")
	if _, err := w3.Setup(t.Context(), opt(w3)); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(w3.Tree(), "node_modules/lib.js")); string(b) != "lib\n" {
		t.Errorf("%q", b)
	}

	// A resumed run finds what it had, and runs nothing.
	again, err := Open(w2.dir, walls())
	if err != nil {
		t.Fatal(err)
	}
	late := opt(again)
	late.Late = true
	if got, err := again.Setup(t.Context(), late); err != nil || got.Files != s.Files || got.Ran {
		t.Errorf("%+v, %v", got, err)
	}
	w4 := at("4")
	late = opt(w4)
	late.Late, late.Commands = true, []SetupCommand{{Run: "touch late"}}
	if got, err := w4.Setup(t.Context(), late); err != nil || got.Ran || got.Files != "" || runs.Load() != 2 {
		t.Errorf("after the model's first turn: %+v, %v", got, err)
	}

	// Other packages are another setup.
	write(t, filepath.Join(path, "package-lock.json"), "{\"a\":1}\n")
	git(t, path, "commit", "-q", "-a", "-m", "more")
	w5 := at("5")
	if got, err := w5.Setup(t.Context(), opt(w5)); err != nil || !got.Ran || got.Files == s.Files {
		t.Errorf("%+v, %v", got, err)
	}
}

// What the model left where a product of setup was: nothing is written through
// a link, and what is the project's now stays.
func TestSetupStaysInside(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	house, outside := t.TempDir(), t.TempDir()
	var runs atomic.Int64
	w := workspaceOf(t, inspect(t, path), filepath.Join(house, "w/1"))
	commands := []SetupCommand{{Run: "mkdir -p a/b c && echo x > a/b/f && mkdir -p src/gen && echo y > src/gen/f && echo z > c/f"}}
	if _, err := w.Setup(t.Context(), SetupOptions{Commands: commands, Dir: filepath.Join(house, "s"), Run: shRun(w, &runs)}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "src"} {
		if err := os.RemoveAll(filepath.Join(w.Tree(), name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(w.Tree(), name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(w.Tree(), "c/f"), "poisoned\n")
	commit(t, w, "links")
	if err := layApart(t, w, "refs/heads/"+w.meta.Branch); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("written outside: %v", left)
	}
	apart := filepath.Join(w.dir, "apart/tree")
	if b, _ := os.ReadFile(filepath.Join(apart, "c/f")); string(b) != "z\n" {
		t.Errorf("%q", b)
	}
	if to, err := os.Readlink(filepath.Join(apart, "src")); to != outside {
		t.Errorf("%s, %v", to, err)
	}
}

func TestSetupFails(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	house := t.TempDir()
	w := workspaceOf(t, inspect(t, path), filepath.Join(house, "w"))
	var runs atomic.Int64
	opt := SetupOptions{Commands: []SetupCommand{{Run: "echo half > half"}, {Run: "exit 3"}, {Run: "touch never"}}, Dir: filepath.Join(house, "s"), Run: shRun(w, &runs)}
	var exit *exec.ExitError
	if _, err := w.Setup(t.Context(), opt); !errors.As(err, &exit) || exit.ExitCode() != 3 || runs.Load() != 2 {
		t.Errorf("%v, %d runs", err, runs.Load())
	}
	if left, _ := filepath.Glob(filepath.Join(house, "s/*/*")); len(left) != 0 {
		t.Errorf("kept: %v", left)
	}
	// What it left is nobody's work.
	if changed, err := w.ChangedFiles(t.Context()); err != nil || len(changed) > 0 {
		t.Errorf("%v, %v", changed, err)
	}
	// Of a file of holes no copy fills the disk.
	opt.Commands = []SetupCommand{{Run: "truncate -s 17G holes"}}
	if _, err := w.Setup(t.Context(), opt); !errors.Is(err, errTooMuch) {
		t.Error(err)
	}
	// The next try begins with a clean tree.
	opt.Commands = []SetupCommand{{Run: "test ! -e half -a ! -e holes && echo whole > whole"}}
	if s, err := w.Setup(t.Context(), opt); err != nil || !s.Ran {
		t.Errorf("%+v, %v", s, err)
	}
}

// Without commands there is nothing, but a later task has the build caches.
func TestNoSetup(t *testing.T) {
	t.Parallel()
	house := t.TempDir()
	w := workspaceOf(t, inspect(t, newRepo(t, "repo")), filepath.Join(house, "w"))
	for range 2 {
		if s, err := w.Setup(t.Context(), SetupOptions{Dir: filepath.Join(house, "s")}); err != nil || s.Files != "" || s.Ran || s.Env != nil {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if w.made == "" {
		t.Error("no place for build caches")
	}
}

// The same commands do something else where any file of the tree is another, or
// a variable; a commit with the same tree is the same.
func TestSetupRunsAnewWhereItMayDoSomethingElse(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	house := t.TempDir()
	write(t, filepath.Join(path, "scripts/setup.sh"), "echo one > product\n")
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "script")
	var runs atomic.Int64
	n := 0
	product := func(given ...string) string {
		t.Helper()
		n++
		w := workspaceOf(t, inspect(t, path), filepath.Join(house, "w", itoa(n)))
		opt := SetupOptions{Commands: []SetupCommand{{Run: "sh scripts/setup.sh"}}, Dir: filepath.Join(house, "s"), Given: given, Run: shRun(w, &runs)}
		if _, err := w.Setup(t.Context(), opt); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(w.Tree(), "product"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	for i, c := range []struct {
		change func()
		given  []string
		want   string
		runs   int64
	}{
		{func() {}, nil, "one", 1},
		{func() {}, nil, "one", 1},
		{func() { git(t, path, "commit", "-q", "--allow-empty", "-m", "same tree") }, nil, "one", 1},
		{func() {
			write(t, filepath.Join(path, "scripts/setup.sh"), "echo two > product\n")
			git(t, path, "commit", "-q", "-a", "-m", "another script")
		}, nil, "two", 2},
		{func() {}, []string{"NODE_ENV=x"}, "two", 3},
		{func() {}, []string{"NODE_ENV=x"}, "two", 3},
	} {
		if c.change(); product(c.given...) != c.want || runs.Load() != c.runs {
			t.Errorf("step %d: not %s, or %d runs", i, c.want, runs.Load())
		}
	}
}

// Two tasks at once: one runs, the other waits and copies.
func TestSetupAtOnce(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	house := t.TempDir()
	var runs, ran atomic.Int64
	var wg sync.WaitGroup
	for _, name := range []string{"1", "2", "3"} {
		w := workspaceOf(t, inspect(t, path), filepath.Join(house, "w", name))
		wg.Go(func() {
			s, err := w.Setup(t.Context(), SetupOptions{Commands: []SetupCommand{{Run: "echo x > product"}}, Dir: filepath.Join(house, "s"), Run: shRun(w, &runs)})
			if err != nil {
				t.Error(err)
				return
			}
			if s.Ran {
				ran.Add(1)
			}
			if _, err := os.Stat(filepath.Join(w.Tree(), "product")); err != nil {
				t.Error(err)
			}
			_ = w.Close() // lets the next one in
		})
	}
	wg.Wait()
	if runs.Load() != 1 || ran.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}

// What earlier versions left goes by age, and so do directories that are empty.
func TestCleanOld(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	for name, at := range map[string]time.Time{"cache/a-b/go-build/00/x-a": now.Add(-30 * 24 * time.Hour), "cache/c-d/go-build/00/x-a": now.Add(-30 * 24 * time.Hour), "setup/a-b/key/setup.json": now.Add(-30 * 24 * time.Hour)} {
		p := filepath.Join(dir, name)
		write(t, p, "{}")
		for ; p != dir; p = filepath.Dir(p) {
			if err := os.Chtimes(p, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chtimes(filepath.Join(dir, "cache/c-d/go-build/00"), now, now); err != nil { // somebody built
		t.Fatal(err)
	}
	opt := CleanOptions{Setups: filepath.Join(dir, "setup"), Old: filepath.Join(dir, "cache"), KeepFor: 7 * 24 * time.Hour, Now: now}
	for _, want := range [][]string{{"cache/c-d"}, nil} {
		if _, err := Clean(t.Context(), opt); err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, p := range []string{"cache/*", "setup/*"} {
			all, _ := filepath.Glob(filepath.Join(dir, p))
			for _, f := range all {
				left = append(left, strings.TrimPrefix(f, dir+"/"))
			}
		}
		if d := cmp.Diff(want, left); d != "" {
			t.Error(d)
		}
		opt.KeepFor, opt.Now = 0, now.Add(time.Hour)
	}
	if exists(opt.Old) {
		t.Error("an empty directory is left")
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	house := t.TempDir()
	var runs atomic.Int64
	now := time.Now()
	day := 24 * time.Hour
	make1 := func(name string, setup string) *Workspace {
		w := workspaceOf(t, inspect(t, path), filepath.Join(house, "workspaces", name))
		if setup != "" {
			if _, err := w.Setup(t.Context(), SetupOptions{Commands: []SetupCommand{{Run: setup}}, Dir: filepath.Join(house, "setup/repo"), Run: shRun(w, &runs)}); err != nil {
				t.Fatal(err)
			}
		}
		return w
	}
	ended := map[string]time.Time{"old": now.Add(-10 * day), "open": now.Add(-9 * day), "young": now.Add(-day), "younger": now.Add(-time.Hour)}
	for name := range ended {
		if w := make1(name, ""); name != "open" {
			_ = w.Close()
		}
	}
	paused := make1("paused", "echo needed > needed")
	_ = paused.Close()
	gone := make1("gone", "echo x > x")
	_ = gone.Close()
	if err := gone.Remove(); err != nil {
		t.Fatal(err)
	}
	setups, _ := filepath.Glob(filepath.Join(house, "setup/repo/*/setup.json"))
	for _, s := range setups {
		if err := os.Chtimes(s, now.Add(-30*day), now.Add(-30*day)); err != nil {
			t.Fatal(err)
		}
	}
	ended["dead"] = now.Add(-30 * day)
	write(t, filepath.Join(house, "workspaces/.tmp-dead/lock"), "")
	write(t, filepath.Join(house, "workspaces/.tmp-paused/lock"), "") // its next owner makes it anew at any moment
	write(t, filepath.Join(house, "workspaces/.tmp-dead/git/HEAD"), "")
	write(t, filepath.Join(house, "workspaces/.tmp-new/git/HEAD"), "")
	write(t, filepath.Join(house, "workspaces/.tmp-building/lock"), "")
	building, err := takeLock(filepath.Join(house, "workspaces/.tmp-building/lock"), shared)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = building.Close() }()
	m := mirrorsIn(filepath.Join(house, "mirrors"))
	m.Now = func() time.Time { return now.Add(-20 * day) }
	other := newRepo(t, "other")
	_ = fromMirror(t, m, Remote{URL: "file://" + path}, "") // in use
	unused := fromMirror(t, m, Remote{URL: "file://" + other}, "")
	_ = unused.Close()

	opt := CleanOptions{Workspaces: filepath.Join(house, "workspaces"), Mirrors: m.Dir, Setups: filepath.Join(house, "setup"), KeepFor: 7 * day, Now: now,
		Ended: func(name string) (time.Time, bool) { at, ok := ended[name]; return at, ok }}
	tree := func() (all []string) {
		_ = filepath.WalkDir(house, func(path string, _ os.DirEntry, _ error) error { all = append(all, path); return nil })
		return all
	}
	before := tree()
	opt.Dry = true
	told, err := Clean(t.Context(), opt)
	if d := cmp.Diff(before, tree()); err != nil || d != "" {
		t.Errorf("a dry call, %v:\n%s", err, d)
	}
	opt.Dry = false
	done, err := Clean(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(told, done); d != "" {
		t.Errorf("told and done:\n%s", d)
	}
	names := func(dir string) (all []string) {
		list, _ := os.ReadDir(filepath.Join(house, dir))
		for _, e := range list {
			if e.IsDir() {
				all = append(all, e.Name())
			}
		}
		return all
	}
	if d := cmp.Diff([]string{".tmp-building", ".tmp-new", ".tmp-paused", "open", "paused", "young", "younger"}, names("workspaces")); d != "" {
		t.Errorf("workspaces:\n%s", d)
	}
	if got := names("mirrors"); len(got) != 1 || got[0] != mirrorName("file://"+path) {
		t.Errorf("mirrors: %v", got)
	}
	if got := names("setup/repo"); len(got) != 1 {
		t.Errorf("setups: %v", got)
	}
	if len(done.Removed) != 4 || done.Freed == 0 {
		t.Errorf("%+v", done)
	}
	for pattern, want := range map[string]int{"mirrors/*.*": 2, "setup/repo/*.lock": 1} { // a mirror and a setup are left
		if locks, _ := filepath.Glob(filepath.Join(house, pattern)); len(locks) != want {
			t.Errorf("locks left: %v", locks)
		}
	}
	// Removed mirrors come back when they are asked for.
	_ = fromMirror(t, m, Remote{URL: "file://" + other}, "")

	// By size the oldest go first, and no more than needed.
	write(t, filepath.Join(house, "workspaces/young/tree/big"), strings.Repeat("x", 1<<20))
	opt.MaxBytes = 1 << 40
	if done, err = Clean(t.Context(), opt); err != nil || len(done.Removed) != 0 || done.Left < 1<<20 {
		t.Errorf("%+v, %v", done, err)
	}
	opt.MaxBytes = done.Left - 1
	if done, err = Clean(t.Context(), opt); err != nil || len(done.Removed) != 1 || !strings.HasSuffix(done.Removed[0], "/young") || done.Left > opt.MaxBytes {
		t.Errorf("%+v, %v", done, err)
	}
	// Whatever the limit, what may go on stays.
	opt.MaxBytes, opt.KeepFor = 1, 0
	if _, err = Clean(t.Context(), opt); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{".tmp-building", ".tmp-new", ".tmp-paused", "open", "paused"}, names("workspaces")); d != "" {
		t.Errorf("workspaces:\n%s", d)
	}
	if w, err := Open(paused.dir, walls()); err != nil {
		t.Error(err)
	} else if s, err := w.Setup(t.Context(), SetupOptions{Commands: []SetupCommand{{Run: "false"}}, Dir: filepath.Join(house, "setup/repo"), Late: true}); err != nil || s.Files == "" {
		t.Errorf("%+v, %v", s, err)
	}
	if done, err := Clean(t.Context(), CleanOptions{Workspaces: filepath.Join(house, "nothing"), Now: now}); err != nil || len(done.Removed) != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// What a checkout has for the same lock file is copied; for a lock file that has
// changed, is newer than it, or whose product does not work here, the command is run.
func TestSetupFromTheCheckout(t *testing.T) {
	t.Parallel()
	command := SetupCommand{Run: "mkdir node_modules; echo loaded > node_modules/dep", Reuse: Reuse{Locks: []string{"package-lock.json"}, Product: "node_modules", Marks: []string{"none", "node_modules/.mark*"}, Proof: "true"}}
	for name, c := range map[string]struct {
		arrange func(path string)
		fails   bool // the proof
		want    string
	}{
		"the same": {func(string) {}, false, "theirs"},
		"a changed lock file": {func(path string) {
			write(t, filepath.Join(path, "package-lock.json"), "{\"a\": 1}\n")
			must(t, os.Chtimes(filepath.Join(path, "package-lock.json"), when, when))
		}, false, "loaded"},
		"a newer lock file": {func(path string) { must(t, os.Chtimes(filepath.Join(path, "node_modules/.marked"), when, when)) }, false, "loaded"},
		"no mark":           {func(path string) { must(t, os.Remove(filepath.Join(path, "node_modules/.marked"))) }, false, "loaded"},
		"of no use here":    {func(string) {}, true, "loaded"},
		"a link": {func(path string) {
			must(t, os.Rename(filepath.Join(path, "node_modules"), filepath.Join(path, "elsewhere")))
			must(t, os.Symlink("elsewhere", filepath.Join(path, "node_modules")))
		}, false, "loaded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newRepo(t, "repo")
			write(t, filepath.Join(path, ".gitignore"), "node_modules\nelsewhere\n")
			write(t, filepath.Join(path, "package-lock.json"), "{}\n")
			git(t, path, "add", ".")
			git(t, path, "commit", "-q", "-m", "lock")
			source := inspect(t, path)
			write(t, filepath.Join(path, "node_modules/dep"), "theirs\n")
			write(t, filepath.Join(path, "node_modules/tool"), "#!"+path+"/node_modules/x\n")
			write(t, filepath.Join(path, "node_modules/.marked"), "")
			c.arrange(path)
			house := t.TempDir()
			w := workspaceOf(t, source, filepath.Join(house, "workspaces", "1"))
			var runs atomic.Int64
			s, err := w.Setup(t.Context(), SetupOptions{Commands: []SetupCommand{command}, Dir: filepath.Join(house, "setup"), Run: shRun(w, &runs),
				Proves: func(context.Context, SetupCommand) (bool, error) { return !c.fails, nil }})
			if err != nil || !s.Ran {
				t.Fatalf("%+v, %v", s, err)
			}
			dep := filepath.Join(w.Tree(), "node_modules/dep")
			if got, err := os.ReadFile(dep); err != nil || string(got) != c.want+"\n" || (runs.Load() == 0) != (c.want == "theirs") {
				t.Errorf("%q, %v, %d runs", got, err, runs.Load())
			}
			if got, err := os.ReadFile(filepath.Join(w.Tree(), "node_modules/tool")); c.want == "theirs" && string(got) != "#!"+w.Tree()+"/node_modules/x\n" {
				t.Errorf("it names the checkout: %q, %v", got, err)
			}
			// It is a copy, and no part of the change.
			write(t, dep, "changed\n")
			if got, err := os.ReadFile(filepath.Join(path, "node_modules/dep")); err != nil || string(got) != "theirs\n" {
				t.Errorf("the checkout's own: %q, %v", got, err)
			}
			if changed, err := w.ChangedFiles(t.Context()); err != nil || len(changed) != 0 {
				t.Errorf("%v, %v", changed, err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
