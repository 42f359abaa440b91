package workspace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/sandbox"
)

// trap writes a script that leaves a trace when it is executed.
func trap(t *testing.T, path, trace string) string {
	t.Helper()
	disktest.Program(t, path, "#!/bin/sh\necho \"$0\" >> '"+trace+"'\ncat\n")
	return path
}

// evilRepo makes a repository whose configuration runs something at every
// occasion that git has.
func evilRepo(t *testing.T, dir, trace string) {
	t.Helper()
	write(t, filepath.Join(dir, "inner"), "x\n")
	git(t, filepath.Dir(dir), "init", "-q", dir)
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "x")
	run := trap(t, filepath.Join(dir, ".git/run"), trace)
	for _, hook := range []string{"pre-commit", "post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"} {
		trap(t, filepath.Join(dir, ".git/hooks", hook), trace)
	}
	write(t, filepath.Join(dir, ".git/config"), fmt.Sprintf(`[core]
	repositoryformatversion = 0
	bare = false
	fsmonitor = %[1]s
	sshCommand = %[1]s
	pager = %[1]s
[filter "evil"]
	clean = %[1]s
	smudge = %[1]s
	process = %[1]s
	required = true
[diff "evil"]
	textconv = %[1]s
	command = %[1]s
[diff]
	external = %[1]s
`, run))
	write(t, filepath.Join(dir, ".gitattributes"), "* filter=evil diff=evil\n")
	write(t, filepath.Join(dir, "inner"), "changed\n") // makes a status look closer
}

func TestHostileTree(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	// A real submodule, as projects have them.
	sub := newRepo(t, "sub")
	git(t, path, "-c", "protocol.file.allow=always", "submodule", "add", "-q", sub, "module")
	git(t, path, "commit", "-q", "-m", "submodule")
	w := create(t, path)
	if left, _ := os.ReadDir(filepath.Join(w.Tree(), "module")); len(left) != 0 {
		t.Errorf("the submodule was initialised: %v", left)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	evilRepo(t, filepath.Join(w.Tree(), "nested"), trace)
	evilRepo(t, filepath.Join(w.Tree(), "deep/er/nested"), trace)
	evilRepo(t, filepath.Join(w.Tree(), "module"), trace)

	// The trap works: a git that is led into such a repository springs it.
	_ = git(t, filepath.Join(w.Tree(), "nested"), "status")
	if _, err := os.Stat(trace); err != nil {
		t.Fatal("the trap does not work: the test proves nothing")
	}
	if err := os.Remove(trace); err != nil {
		t.Fatal(err)
	}

	// Attributes and a .git of the tree's own, and a .git file that leads away.
	write(t, filepath.Join(w.Tree(), ".gitattributes"), "* filter=evil diff=evil merge=evil text\n")
	write(t, filepath.Join(w.Tree(), ".gitmodules"), "[submodule \"module\"]\n\tpath = module\n\turl = ext::sh -c 'touch "+trace+"'\n\tupdate = !touch "+trace+"\n\tignore = none\n")
	write(t, filepath.Join(w.Tree(), ".git"), "gitdir: "+filepath.Join(w.Tree(), "nested/.git")+"\n")
	write(t, filepath.Join(w.Tree(), ".gitconfig"), "[core]\n\tfsmonitor = touch "+trace+"\n")
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, filepath.Join(outside, "secret"), "canary\n")
	for name, to := range map[string]string{"link": filepath.Join(outside, "secret"), "dirlink": outside, "loop": "loop", "src/up": "../../../.."} {
		if err := os.Symlink(to, filepath.Join(w.Tree(), name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(w.Tree(), "src")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(w.Tree(), "src")); err != nil { // a directory became a link
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Tree(), "README.md"), "plain\n")

	ctx := t.Context()
	told, err := w.StatusText(ctx) // what a model is told: its work in there would be lost unsaid
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"! nested (a git", "! deep/er/nested (a git", "! module (a git", "M README.md\n", "A link\n"} {
		if !strings.Contains(told, want) {
			t.Errorf("what the model reads has no %q:\n%s", want, told)
		}
	}
	changed, err := w.ChangedFiles(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{
		{".gitattributes", Added}, {".gitconfig", Added}, {".gitmodules", Modified}, {"README.md", Modified},
		{"dirlink", Added}, {"link", Added}, {"loop", Added}, {"src", Added}, {"src/main.go", Deleted},
	}
	if d := cmp.Diff(want, changed); d != "" {
		t.Error(d)
	}
	var patch strings.Builder
	if err := w.PatchText(ctx, &patch); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(patch.String(), "canary") {
		t.Error("the patch followed a link out of the tree")
	}
	if _, err := w.Diff(ctx, DiffOptions{Stat: true}); err != nil {
		t.Fatal(err)
	}
	id := commit(t, w, "hostile")
	// A second round, now that the index knows the files.
	write(t, filepath.Join(w.Tree(), "README.md"), "plain again\n")
	write(t, filepath.Join(w.Tree(), "module/inner"), "again\n")
	id2 := commit(t, w, "hostile again")
	if err := w.Deliver(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(trace); err == nil {
		t.Errorf("the tree executed:\n%s", got)
	}
	for _, c := range []string{id, id2} {
		tree := git(t, path, "--git-dir", w.GitDir(), "ls-tree", "-r", c)
		if strings.Contains(tree, "nested") || strings.Count(tree, "160000") != 1 {
			t.Errorf("commit %s:\n%s", c, tree)
		}
	}
	if a, b := git(t, path, "rev-parse", "main:module"), git(t, path, "rev-parse", id2+":module"); a != b {
		t.Errorf("the submodule moved from %s to %s", a, b)
	}
}

// What a model reads as a name is what the tools for files take.
func TestShortTextOfOddNames(t *testing.T) {
	t.Parallel()
	got := ShortText([]Change{{"a b", Added}, {"x\xff", Modified}, {"\x1b[31m", Deleted}, {"n\nl", Added}, {"\u202eb", Untracked}})
	want := "A a b\nM \"x\\xff\"\nD \"\\x1b[31m\"\nA \"n\\nl\"\n? \"\\u202eb\"\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The environment of the daemon leads git nowhere. Not parallel.
func TestEnvironmentOfTheDaemon(t *testing.T) {
	path := newRepo(t, "repo")
	other := newRepo(t, "other")
	for k, v := range map[string]string{
		"GIT_DIR": filepath.Join(other, ".git"), "GIT_WORK_TREE": other, "GIT_INDEX_FILE": "/nonexistent/index", "GIT_EXTERNAL_DIFF": "false",
		"GIT_OBJECT_DIRECTORY": "/nonexistent", "GIT_CONFIG_PARAMETERS": "'core.bare=true'", "GIT_CEILING_DIRECTORIES": filepath.Dir(path),
		"GIT_PAGER": "false", "GIT_TRACE": "/nonexistent/trace", "LANG": "ja_JP.UTF-8",
	} {
		t.Setenv(k, v)
	}
	w := create(t, path)
	if w.meta.Source != path {
		t.Fatalf("inspected %s", w.meta.Source)
	}
	write(t, filepath.Join(w.Tree(), "f"), "x\n")
	commit(t, w, "x")
	if _, err := w.Diff(t.Context(), DiffOptions{}); err != nil {
		t.Error(err)
	}
	if err := w.Deliver(t.Context()); err != nil {
		t.Error(err)
	}
}

// A command that runs beside everything else leads .git away, again and again:
// our git does not follow. Where the sandbox has mounts it cannot even write it.
func TestGitFileOfABackgroundJob(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{sandbox.KindNone, sandbox.KindLandlock} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := create(t, newRepo(t, "repo"))
			trace := filepath.Join(t.TempDir(), "trace")
			evilRepo(t, filepath.Join(w.Tree(), "nested"), trace)
			_ = git(t, filepath.Join(w.Tree(), "nested"), "status")
			if err := os.Remove(trace); err != nil {
				t.Fatal("the trap does not work: the test proves nothing")
			}
			spec := sandbox.Spec{Workspace: w.Tree(), GitDir: w.GitDir()}
			runner := sandbox.Unconfined(spec)
			if kind != sandbox.KindNone {
				box, err := sandbox.Choose(t.Context(), sandbox.Options{Prefer: kind})
				if err != nil {
					t.Skip(err)
				}
				if runner, err = box.Runner(spec); err != nil {
					t.Fatal(err)
				}
			}
			job, err := runner.Start(t.Context(), sandbox.Command{Script: `rm -f .git
until grep -q nested .git; do echo "gitdir: $PWD/nested/.git" >.git; done # where it is put back meanwhile
echo led away
while :; do echo "gitdir: $PWD/nested/.git" >.git; done`})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { job.Kill(); _, _ = job.Wait() }()
			if line, err := bufio.NewReader(job.Stdout).ReadString('\n'); err != nil || line != "led away\n" {
				t.Fatalf("%q, %v", line, err)
			}
			write(t, filepath.Join(w.Tree(), "README.md"), "mine\n")
			ctx := t.Context()
			if told, err := w.StatusText(ctx); err != nil || !strings.Contains(told, "M README.md\n") {
				t.Errorf("%q, %v", told, err)
			}
			snap(t, w, "step")
			if log, err := w.LogText(ctx, "", "", 5, false, 1000); err != nil || log == "" {
				t.Errorf("%q, %v", log, err)
			}
			if _, err := w.BlameText(ctx, "README.md", 1, 1, 1000); err != nil {
				t.Error(err)
			}
			if _, err := w.Diff(ctx, DiffOptions{}); err != nil {
				t.Error(err)
			}
			id := commit(t, w, "while it runs")
			if head, err := w.Head(ctx); err != nil || head != id {
				t.Errorf("%s, %v, want %s", head, err, id)
			}
			if _, err := os.Stat(trace); err == nil {
				t.Error("our git was led away")
			}
		})
	}
}

// A repository in a place that git ignores, as package managers leave them, is
// in the way of nothing.
func TestIgnoredNestedRepository(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	write(t, filepath.Join(path, ".gitignore"), ".venv/\n")
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "ignore")
	w := create(t, path)
	for _, dir := range []string{".venv/src/pkg", "own"} {
		write(t, filepath.Join(w.Tree(), dir, "f"), "x\n")
		git(t, filepath.Join(w.Tree(), dir), "init", "-q")
	}
	write(t, filepath.Join(w.Tree(), "new"), "x\n")
	if s := snap(t, w, "step"); s.ID != "1" {
		t.Errorf("%+v", s)
	}
	commit(t, w, "x")
	if changed, err := w.ChangedFiles(t.Context()); err != nil || len(changed) != 1 || changed[0].Path != "new" {
		t.Errorf("%v, %v", changed, err)
	}
	if l, err := w.LeftOut(); err != nil || l.All != 1 || l.Paths[0] != "own" {
		t.Errorf("%+v, %v", l, err)
	}
	// Told until a commit leaves nothing out.
	if err := os.RemoveAll(filepath.Join(w.Tree(), "own")); err != nil {
		t.Fatal(err)
	}
	if l, err := w.LeftOut(); err != nil || l.All != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	write(t, filepath.Join(w.Tree(), "more"), "x\n")
	commit(t, w, "y")
	if l, err := w.LeftOut(); err != nil || l.All != 0 {
		t.Errorf("%+v, %v", l, err)
	}
}

// A bare repository that the work makes is left out: whoever runs git in a clone
// would have its configuration in force. One that was there is the project's.
func TestBareRepositoryInTheTree(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	git(t, path, "init", "-q", "--bare", "fixtures/old.git")
	write(t, filepath.Join(path, "fixtures/old.git/objects/info/x"), "x\n")
	write(t, filepath.Join(path, "fixtures/old.git/refs/heads/.keep"), "")
	write(t, filepath.Join(path, "half/HEAD"), "ref: refs/heads/main\n")
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "fixtures")
	w := create(t, path)
	write(t, filepath.Join(w.Tree(), "fixtures/old.git/config"), "[core]\n\tbare = true\n\tother = 1\n")
	evil := "[core]\n\tbare = true\n\tfsmonitor = touch /tmp/evil\n"
	for name, parts := range map[string][]string{
		"new/it":      {"HEAD", "objects/info/x", "refs/heads/.keep", "config"},
		"half":        {"objects/info/x", "refs/heads/.keep", "config"}, // HEAD was there
		"linked":      {"HEAD", "CommonDir", "config"},                  // where names have no case
		"nearly":      {"HEAD", "objects/info/x", "config"},
		"old/nor/new": {"objects/info/x", "refs/heads/.keep", "config"},
	} {
		for _, part := range parts {
			write(t, filepath.Join(w.Tree(), name, part), evil)
		}
	}
	want := []string{"fixtures/old.git/config", "nearly/HEAD", "nearly/config", "nearly/objects/info/x", "old/nor/new/config", "old/nor/new/objects/info/x", "old/nor/new/refs/heads/.keep"}
	changed, err := w.ChangedFiles(t.Context())
	if d := cmp.Diff(want, Paths(changed)); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	id := commit(t, w, "x")
	if changed, err = w.CommittedFiles(t.Context(), id); err != nil || len(changed) != len(want) {
		t.Errorf("%v %v", changed, err)
	}
	if l, err := w.LeftOut(); err != nil || cmp.Diff([]string{"half", "linked", "new/it"}, l.Paths) != "" {
		t.Errorf("%+v, %v", l, err)
	}
	if text, err := w.StatusText(t.Context()); err != nil || !strings.Contains(text, "! new/it (a git repository of its own") {
		t.Errorf("%s, %v", text, err)
	}
	// One that somebody makes while git looks comes into no commit either.
	if err := os.RemoveAll(filepath.Join(w.Tree(), "half")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Tree(), "old/nor/new/HEAD"), evil)
	tree, _, err := w.stage(t.Context(), w.scratch(), look{}, nil, call{args: []string{w.Base()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.receive(t.Context(), tree); key(err) != "workspace.gitlink" || !strings.Contains(err.Error(), "old/nor/new") && !strings.Contains(err.Error(), "linked") && !strings.Contains(err.Error(), "new/it") {
		t.Error(err)
	}
}

// Paths that git refuses, on any system's account, and those that lead too deep are
// left out and told, and everything else is recorded.
func TestPathsThatGitRefuses(t *testing.T) {
	t.Parallel()
	w := createIn(t, newRepo(t, "repo"), walls())
	w.box.spec.Limits.OpenFiles = 512
	want := []string{".GIT", "a/.git ", "a/.git. .", "a/GIT~1", `a/b\.Git:x`, "a/.g\u200cit", "a/.gitmodules", "a/GI7EBA~3", "a/gitmod~2"}
	for _, name := range want[:3] {
		write(t, filepath.Join(w.Tree(), name, "hooks/x"), "x\n")
	}
	for _, name := range want[3:6] {
		write(t, filepath.Join(w.Tree(), name), "x\n")
	}
	for _, name := range want[6:] {
		if err := os.Symlink("x", filepath.Join(w.Tree(), name)); err != nil {
			t.Fatal(err)
		}
	}
	fine := []string{"a/.gitattributes.x", "a/git~2", "a/.github/x", "a/.git_", "a/GI7EBA~4", strings.Repeat("d/", 300) + "file"}
	for _, name := range fine {
		write(t, filepath.Join(w.Tree(), name), "x\n")
	}
	write(t, filepath.Join(w.Tree(), strings.Repeat("e/", 1000)+"file"), "x\n")
	root, err := os.OpenRoot(w.Tree())
	for i, name := 0, strings.Repeat("long", 50); i < 30 && err == nil; i++ { // past what a path may have
		if err = root.Mkdir(name, 0o700); err == nil {
			root, err = root.OpenRoot(name)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Snapshot(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	changed, err := w.CommittedFiles(t.Context(), commit(t, w, "x"))
	slices.Sort(fine)
	if d := cmp.Diff(fine, Paths(changed)); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	if l, err := w.LeftOut(); err != nil || l.All != len(want)+2 || !slices.Contains(l.Paths, ".GIT") {
		t.Errorf("%+v, %v", l, err)
	}
	if text, err := w.StatusText(t.Context()); err != nil || !strings.Contains(text, "! .GIT (git takes no such path") {
		t.Errorf("%s, %v", text, err)
	}
}

// Git opens some files by their names, and would wait for ever at a pipe.
func TestPipesThatGitReads(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	for _, name := range []string{".gitignore", "deep/.gitignore", "deep/.gitattributes"} {
		pipe := filepath.Join(w.Tree(), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(pipe), 0o700), unix.Mkfifo(pipe, 0o600)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		if _, err := w.ChangedFiles(ctx); key(err) != "workspace.unreadable_dir" || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if cancel(); os.Remove(pipe) != nil {
			t.Fatal(pipe)
		}
	}
}

// What is put into the directory of a submodule is in no commit, and is told;
// nothing of it is in git's way.
func TestInsideASubmodule(t *testing.T) {
	t.Parallel()
	path, sub := newRepo(t, "repo"), newRepo(t, "sub")
	git(t, path, "-c", "protocol.file.allow=always", "submodule", "add", "-q", sub, "module")
	git(t, path, "commit", "-q", "-m", "submodule")
	for name, put := range map[string]func(dir string){
		"a repository":      func(dir string) { git(t, path, "init", "-q", dir+"/x") },
		"a bare repository": func(dir string) { git(t, path, "init", "-q", "--bare", dir+"/x") },
		"a large file":      func(dir string) { write(t, dir+"/big", strings.Repeat("x", 2<<20)) },
		"a file":            func(dir string) { write(t, dir+"/x", "x\n") },
	} {
		b := walls()
		b.MaxFileMB = 1
		w := createIn(t, path, b)
		write(t, filepath.Join(w.Tree(), "new"), "x\n")
		if text, err := w.StatusText(t.Context()); err != nil || text != "A new\n" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		put(filepath.Join(w.Tree(), "module"))
		if text, err := w.StatusText(t.Context()); err != nil || text != "! module (a git repository of its own: not part of the commit)\nA new\n" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if changed, err := w.CommittedFiles(t.Context(), commit(t, w, "x")); err != nil || len(changed) != 1 {
			t.Errorf("%s: %v, %v", name, changed, err)
		}
		if l, err := w.LeftOut(); err != nil || l.All != 1 || l.Paths[0] != "module" {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}
