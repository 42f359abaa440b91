package workspace

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
)

var when = time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("JST", 9*3600))

// git runs the machine's git as a user would, and returns what it printed.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") }),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.org",
		"GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.org", "GIT_OPTIONAL_LOCKS=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return string(out)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// newRepo makes a user's repository with one commit, in a directory of this name.
func newRepo(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	write(t, filepath.Join(dir, "README.md"), "hello\n")
	write(t, filepath.Join(dir, "src/main.go"), "package main\n")
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	return dir
}

func inspect(t testing.TB, path string) *Source {
	t.Helper()
	s, err := Inspect(t.Context(), path, InspectOptions{Box: walls()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func create(t testing.TB, path string) *Workspace {
	t.Helper()
	w, err := Create(t.Context(), CreateOptions{Box: walls(),
		Source: inspect(t, path), Dir: filepath.Join(t.TempDir(), "workspaces", "1234"), Branch: "tori/issue-1-x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func commit(t testing.TB, w *Workspace, msg string) string {
	t.Helper()
	id, err := w.Commit(t.Context(), CommitOptions{Message: msg, AuthorName: "鳥", AuthorEmail: "tori@example.org", When: when})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func key(err error) string {
	var e *i18n.Error
	if errors.As(err, &e) {
		return e.Key
	}
	return ""
}

// picture is everything about a checkout that must not change: each file with
// its content, mode and time, .git included but for what is delivered.
func picture(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasPrefix(rel, ".git/objects/") || strings.HasPrefix(rel, ".git/refs/heads/tori/") || strings.HasPrefix(rel, ".git/logs/refs/heads/tori/") {
			return nil
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		all[rel] = st.Mode().String() + st.ModTime().Format(time.RFC3339Nano) + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUsersCheckoutStaysAsItIs(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "post-merge"} {
		file := filepath.Join(path, ".git/hooks", hook)
		disktest.Program(t, file, "#!/bin/sh\ntouch "+filepath.Join(path, "HOOK-RAN")+"\n")
	}
	git(t, path, "config", "core.fsmonitor", "touch "+filepath.Join(path, "FSMONITOR-RAN")+"; false")
	write(t, filepath.Join(path, ".git/FETCH_HEAD"), "mine\n")
	write(t, filepath.Join(path, "README.md"), "staged\n")
	git(t, path, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "add", ".")
	write(t, filepath.Join(path, "README.md"), "edited\n")
	write(t, filepath.Join(path, "untracked"), "x\n")
	// A stat that the index does not know is what tempts git to rewrite it.
	if err := os.Chtimes(filepath.Join(path, "src/main.go"), when, when); err != nil {
		t.Fatal(err)
	}
	before := picture(t, path)
	s, err := Inspect(t.Context(), path, InspectOptions{Box: walls(), AllowDirty: true})
	if err != nil {
		t.Fatal(err)
	}
	branch, err := FreeBranch(t.Context(), s, "tori/issue-1")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Create(t.Context(), CreateOptions{Box: walls(), Source: s, Dir: filepath.Join(t.TempDir(), "w"), Branch: branch})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(w.Tree(), "README.md")); string(got) != "hello\n" {
		t.Errorf("the work starts from %q, not from the commit", got)
	}
	write(t, filepath.Join(w.Tree(), "src/main.go"), "package main // new\n")
	commit(t, w, "x")
	if err := w.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, picture(t, path)); d != "" {
		t.Errorf("the checkout has changed:\n%s", d)
	}
	if err := w.Remove(); err != nil {
		t.Fatal(err)
	}
	git(t, path, "-c", "core.fsmonitor=false", "fsck", "--strict")
}

func TestCreate(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	s := inspect(t, path)
	dir := filepath.Join(t.TempDir(), "a b", "workspaces", "1234")
	opt := CreateOptions{Box: walls(), Source: s, Dir: dir, Branch: "tori/issue-1"}
	// What a killed Create leaves behind is in the way of nobody.
	write(t, filepath.Join(filepath.Dir(dir), ".tmp-1234", "git", "HEAD"), "half")
	w, err := Create(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if w.Base() != s.Head || w.meta.Branch != "tori/issue-1" || w.meta.Source != path || w.dir != dir {
		t.Errorf("%+v", w)
	}
	// A user's git in the tree finds the branch, clean, and no way to push.
	if got := git(t, w.Tree(), "status", "--porcelain", "--branch"); got != "## tori/issue-1\n" {
		t.Errorf("status: %q", got)
	}
	if got := git(t, w.Tree(), "remote"); got != "" {
		t.Errorf("remote: %q", got)
	}
	if config, err := os.ReadFile(filepath.Join(w.GitDir(), "config")); err != nil || strings.Contains(string(config), path) {
		t.Errorf("config: %s, %v", config, err)
	}
	write(t, filepath.Join(w.Tree(), "kept"), "x")
	write(t, filepath.Join(w.GitDir(), "index.lock"), "")
	write(t, filepath.Join(w.GitDir(), "refs/heads/tori/issue-1.lock"), "")
	again, err := Create(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(again.Tree(), "kept")); err != nil {
		t.Error("a finished workspace was made anew")
	}
	commit(t, again, "after a git that was killed")
	for _, p := range []string{dir, w.Tree(), w.GitDir()} {
		if st, err := os.Stat(p); err != nil || st.Mode().Perm()&0o077 != 0 && p == dir {
			t.Errorf("%s: %v, %v", p, st.Mode(), err)
		}
	}
	if err := os.Mkdir(filepath.Join(w.Tree(), "ro"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Tree(), "ro", "f"), "")
	if err := os.Chmod(filepath.Join(w.Tree(), "ro"), 0o500); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := again.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := Open(dir, walls()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open after remove: %v", err)
	}
	opt.Branch = "-x..y"
	if _, err := Create(t.Context(), opt); err == nil {
		t.Error("a bad branch name was accepted")
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 0 {
		t.Errorf("a failed create left %v", left)
	}
}

// Create is stopped at each of its durable writes and made again.
func TestCreateStopped(t *testing.T) {
	t.Parallel()
	s := inspect(t, newRepo(t, "repo"))
	stop := errors.New("stop")
	for n := range 20 {
		opt := CreateOptions{Box: walls(), Source: s, Dir: filepath.Join(t.TempDir(), "w"), Branch: "b"}
		calls := 0
		opt.FS = &disk.FS{Before: func(disk.Op) error {
			if calls++; calls == n+1 {
				return stop
			}
			return nil
		}}
		_, err := Create(t.Context(), opt)
		if calls <= n {
			if n < 3 {
				t.Fatalf("only %d calls", calls)
			}
			return
		}
		if !errors.Is(err, stop) {
			t.Errorf("call %d: %v", n, err)
		}
		opt.FS = nil
		w, err := Create(t.Context(), opt)
		if err != nil {
			t.Fatalf("after a stop at call %d: %v", n, err)
		}
		if st, err := w.ChangedFiles(t.Context()); err != nil || len(st) != 0 {
			t.Errorf("after a stop at call %d: %v, %v", n, st, err)
		}
	}
	t.Fatal("Create never ends")
}

func TestOpenRefusals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"format":2,"base":"x","branch":"y"}`: "workspace.newer", `{`: "", `{"format":1}`: "",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, metaName), text)
		if _, err := Open(dir, walls()); err == nil || errors.Is(err, fs.ErrNotExist) || key(err) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	write(t, filepath.Join(path, ".gitignore"), "*.o\n")
	write(t, filepath.Join(path, "gone"), "x\n")
	write(t, filepath.Join(path, "bin"), "\x00\x01")
	write(t, filepath.Join(path, "mode"), "x\n")
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "more")
	w := create(t, path)
	ctx := t.Context()
	write(t, filepath.Join(w.Tree(), "committed"), "1\n")
	commit(t, w, "one")
	write(t, filepath.Join(w.Tree(), "README.md"), "hello\nworld\n")
	write(t, filepath.Join(w.Tree(), "new dir/改行\nある"), "x\n")
	write(t, filepath.Join(w.Tree(), "-rf"), "x\n")
	write(t, filepath.Join(w.Tree(), "a.o"), "ignored")
	write(t, filepath.Join(w.Tree(), "bin"), "\x00\x02")
	if err := os.Remove(filepath.Join(w.Tree(), "gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(w.Tree(), "mode"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(w.Tree(), "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := w.ChangedFiles(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if text := ShortText(got); !strings.Contains(text, "M README.md\n") || !strings.Contains(text, `A "new dir/改行\nある"`) {
		t.Error(text)
	}
	want := []Change{{"-rf", Added}, {"README.md", Modified}, {"bin", Modified}, {"committed", Added}, {"gone", Deleted}, {"mode", Modified}, {"new dir/改行\nある", Added}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	all, err := w.Diff(ctx, DiffOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"+world\n", "+++ b/committed", "new mode 100755", "Binary files a/bin and b/bin differ", "--- a/gone"} {
		if !strings.Contains(all, s) {
			t.Errorf("no %q in\n%s", s, all)
		}
	}
	one, err := w.Diff(ctx, DiffOptions{Path: "README.md"})
	if err != nil || !strings.Contains(one, "+world") || strings.Contains(one, "committed") {
		t.Errorf("%v\n%s", err, one)
	}
	if glob, err := w.Diff(ctx, DiffOptions{Path: "*.md"}); err != nil || glob != "" {
		t.Errorf("a path is not a pattern: %q, %v", glob, err)
	}
	stat, err := w.Diff(ctx, DiffOptions{Stat: true})
	if err != nil || !strings.Contains(stat, "7 files changed") {
		t.Errorf("%v\n%s", err, stat)
	}
	cut, err := w.Diff(ctx, DiffOptions{MaxBytes: 100})
	if err != nil || len(cut) > 200 || !strings.Contains(cut, "bytes shown") || !strings.HasPrefix(all, cut[:strings.Index(cut, "[cut")]) {
		t.Errorf("%v\n%s", err, cut)
	}

	commit(t, w, "two")
	// People see in the tree what is committed, and nothing else.
	if st := git(t, w.Tree(), "status", "--porcelain"); st != "" {
		t.Errorf("status after commit: %q", st)
	}
}

// What a snapshot stages does not show: git diff in the tree goes on working.
func TestSnapshotLeavesTheIndex(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	write(t, filepath.Join(w.Tree(), "README.md"), "changed\n")
	write(t, filepath.Join(w.Tree(), "x.o"), "x\n")
	if _, err := w.ChangedFiles(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := git(t, w.Tree(), "status", "--porcelain"); got != " M README.md\n?? x.o\n" {
		t.Errorf("%q", got)
	}
	// A file that is ignored only now was never staged for good.
	write(t, filepath.Join(w.Tree(), ".gitignore"), "*.o\n")
	got, err := w.ChangedFiles(t.Context())
	if d := cmp.Diff([]Change{{".gitignore", Added}, {"README.md", Modified}}, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}

// A commit that changes nothing is made where that is asked for, once, and goes where it is not.
func TestACommitThatChangesNothing(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	opt := CommitOptions{Message: "a draft", When: when, Empty: true}
	id, err := w.Commit(t.Context(), opt)
	if err != nil || id == w.Base() || git(t, w.Tree(), "diff", "--name-only", w.Base(), id) != "" {
		t.Fatalf("%s, %v", id, err)
	}
	if again, err := w.Commit(t.Context(), opt); !errors.Is(err, ErrNothingToCommit) || again != id {
		t.Errorf("again: %s, %v", again, err)
	}
	opt.Empty = false
	if back, err := w.Commit(t.Context(), opt); !errors.Is(err, ErrNothingToCommit) || back != w.Base() {
		t.Errorf("back: %s, %v", back, err)
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	ctx := t.Context()
	opt := CommitOptions{
		Message: "fix: 直す\n\nbody\n", AuthorName: "A <b>\nc", AuthorEmail: "a@example.org", When: when,
		Trailers: []Trailer{{"Tori-Task", "1234"}, {"Co-authored-by", "X\n<x@example.org>"}},
	}
	if id, err := w.Commit(ctx, opt); !errors.Is(err, ErrNothingToCommit) || id != w.Base() {
		t.Errorf("empty: %s, %v", id, err)
	}
	write(t, filepath.Join(w.Tree(), ".tori-write-0.tmp"), "left by a kill")
	if id, err := w.Commit(ctx, opt); !errors.Is(err, ErrNothingToCommit) {
		t.Errorf("what a kill left: %s, %v", id, err)
	}
	write(t, filepath.Join(w.Tree(), "f"), "x\n")
	id, err := w.Commit(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	want := "A  b  c|a@example.org|2026-03-04T05:06:07+09:00|2026-03-04T05:06:07+09:00|" + w.Base() +
		"|fix: 直す\n\nbody\n\nTori-Task: 1234\nCo-authored-by: X <x@example.org>\n\n"
	if got := git(t, w.Tree(), "log", "-1", "--format=%an|%ae|%aI|%cI|%P|%B", id); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if head, err := w.Head(ctx); err != nil || head != id {
		t.Errorf("head %s, %v", head, err)
	}
	if again, err := w.Commit(ctx, opt); !errors.Is(err, ErrNothingToCommit) || again != id {
		t.Errorf("again: %s, %v", again, err)
	}
	reworded := opt
	reworded.Message, reworded.When = "fix: other words", when.Add(time.Hour)
	if same, err := w.Commit(ctx, reworded); !errors.Is(err, ErrNothingToCommit) || same != id {
		t.Errorf("other words that nobody asked for: %s, %v", same, err)
	}
	reworded.Reword = true
	said, err := w.Commit(ctx, reworded)
	if err != nil || said == id || !strings.HasPrefix(git(t, w.Tree(), "log", "-1", "--format=%P|%s|%T", said), w.Base()+"|fix: other words|"+strings.TrimSpace(git(t, w.Tree(), "rev-parse", id+"^{tree}"))) {
		t.Errorf("other words: %s, %v", said, err)
	}
	if same, err := w.Commit(ctx, reworded); !errors.Is(err, ErrNothingToCommit) || same != said {
		t.Errorf("the same words: %s, %v", same, err)
	}
	if _, err := w.Commit(ctx, CommitOptions{Message: " \n"}); err == nil || errors.Is(err, ErrNothingToCommit) {
		t.Errorf("empty message: %v", err)
	}
	// A crash between the branch and the index confuses nobody for long.
	write(t, filepath.Join(w.Tree(), "g"), "x\n")
	index, err := os.ReadFile(filepath.Join(w.GitDir(), "index"))
	if err != nil {
		t.Fatal(err)
	}
	second := commit(t, w, "second")
	if got := strings.TrimSpace(git(t, w.Tree(), "rev-list", "--count", w.Base()+".."+second)); got != "1" {
		t.Errorf("%s commits are handed over, want one", got)
	}
	write(t, filepath.Join(w.GitDir(), "index"), string(index))
	if id, err := w.Commit(ctx, opt); !errors.Is(err, ErrNothingToCommit) || id != second {
		t.Errorf("after the crash: %s, %v", id, err)
	}
	for name, bad := range map[string]string{"\x00,.": "tori", "": "tori", "é\xff": "é"} {
		if got := identity(name, "tori"); got != bad {
			t.Errorf("identity %q: %q", name, got)
		}
	}
	empty := filepath.Join(t.TempDir(), "e")
	git(t, filepath.Dir(empty), "init", "-q", empty)
	git(t, empty, "commit", "-q", "--allow-empty", "-m", "nothing")
	e := create(t, empty)
	if _, err := e.Commit(ctx, opt); !errors.Is(err, ErrNothingToCommit) {
		t.Errorf("empty repository: %v", err)
	}
	write(t, filepath.Join(e.Tree(), "f"), "x\n")
	commit(t, e, "first file")
	if err := os.Remove(filepath.Join(e.Tree(), "f")); err != nil {
		t.Fatal(err)
	}
	if id, err := e.Commit(ctx, opt); !errors.Is(err, ErrNothingToCommit) || id != e.Base() {
		t.Errorf("back at the base: %s, %v", id, err)
	}
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	w := create(t, path)
	ctx := t.Context()
	tip := func() string { return strings.TrimSpace(git(t, path, "rev-parse", "refs/heads/tori/issue-1-x")) }
	write(t, filepath.Join(w.Tree(), "f"), "1\n")
	first := commit(t, w, "1")
	write(t, filepath.Join(path, ".git/refs/heads/tori/issue-1-x.lock"), "") // a git was killed at it
	for range 2 {
		if err := w.Deliver(ctx); err != nil || tip() != first {
			t.Fatalf("%v, at %s", err, tip())
		}
	}
	write(t, filepath.Join(w.Tree(), "f"), "2\n")
	second := commit(t, w, "2")
	if err := w.Deliver(ctx); key(err) != "workspace.branch_differs" || tip() != first {
		t.Errorf("over what was delivered before: %v", err)
	}
	git(t, path, "checkout", "-q", "-B", "tori/issue-1-x", "main")
	if err := w.Deliver(ctx); key(err) != "workspace.branch_checked_out" || tip() != w.Base() {
		t.Errorf("checked out: %v", err)
	}
	git(t, path, "checkout", "-q", "main")
	if err := w.Deliver(ctx); err != nil || tip() != second {
		t.Errorf("%v, at %s", err, tip())
	}
	for _, other := range []string{"main", second} { // a commit we know, and one we do not
		git(t, path, "checkout", "-q", "-B", "theirs", other)
		git(t, path, "commit", "-q", "--allow-empty", "-m", "theirs")
		git(t, path, "branch", "-f", "tori/issue-1-x", "theirs")
		theirs := tip()
		if err := w.Deliver(ctx); key(err) != "workspace.branch_differs" || tip() != theirs {
			t.Errorf("over %s: %v", other, err)
		}
	}
	if err := os.Rename(path, path+"2"); err != nil {
		t.Fatal(err)
	}
	if err := w.Deliver(ctx); err == nil {
		t.Error("delivered to a repository that is gone")
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "repo"))
	if err := os.Symlink("/etc/passwd", filepath.Join(w.Tree(), "link")); err != nil {
		t.Fatal(err)
	}
	root, err := w.Root()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, p := range []string{"link", "../git/HEAD", "/etc/passwd"} {
		if _, err := root.ReadFile(p); err == nil {
			t.Errorf("%s was read", p)
		}
	}
	if b, err := root.ReadFile("README.md"); err != nil || string(b) != "hello\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// A large repository is not copied where links do.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	w := create(t, path)
	blob := strings.TrimSpace(git(t, path, "rev-parse", "HEAD:README.md"))
	a, err := os.Stat(filepath.Join(path, ".git/objects", blob[:2], blob[2:]))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.Stat(filepath.Join(w.GitDir(), "objects", blob[:2], blob[2:]))
	if err != nil {
		t.Fatal(err)
	}
	if a.Sys().(*syscall.Stat_t).Ino != b.Sys().(*syscall.Stat_t).Ino {
		t.Error("the object was copied")
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add("1 .M N... 100644 100644 100644 1 2 a b\x00? c\x00u UU N... 1 1 1 1 a b c d\x00")
	f.Add("2 R. N... 1 1 1 a b R100 new\x00old\x00")
	f.Fuzz(func(t *testing.T, s string) {
		defer disktest.Bounded(t, len(s))()
		var p statusParser
		var err error
		for rec := range strings.SplitSeq(s, "\x00") {
			if err = p.record([]byte(rec)); err != nil {
				break
			}
		}
		for _, c := range p.all {
			if c.Path == "" || c.Kind == "" {
				t.Errorf("%q: %+v, %v", s, c, err)
			}
		}
	})
}
