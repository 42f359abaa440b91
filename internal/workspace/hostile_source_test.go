package workspace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A repository that somebody unpacked: whatever its configuration names to be
// run, over the whole way of a task nothing of it is.
func TestHostileSource(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	trace := filepath.Join(t.TempDir(), "trace")
	run := trap(t, filepath.Join(path, ".git/run"), trace)
	write(t, filepath.Join(path, ".gitattributes"), "* filter=evil diff=evil merge=evil\n")
	write(t, filepath.Join(path, ".gitmodules"), "[submodule \"a\"]\n\tpath = a\n\turl = ext::sh -c 'touch "+trace+"'\n\tupdate = !touch "+trace+
		"\n[submodule \"b\"]\n\tpath = b\n\turl = --upload-pack=touch "+trace+"\n[submodule \"../../x\"]\n\tpath = c\n\turl = file:///etc\n")
	head := strings.TrimSpace(git(t, path, "rev-parse", "HEAD"))
	git(t, path, "add", ".")
	for _, sub := range []string{"a", "b", "c"} {
		if err := os.Mkdir(filepath.Join(path, sub), 0o755); err != nil {
			t.Fatal(err)
		}
		git(t, path, "update-index", "--add", "--cacheinfo", "160000,"+head+","+sub)
	}
	git(t, path, "commit", "-q", "-m", "attributes")
	for _, hook := range []string{"pre-commit", "post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout", "pre-auto-gc", "post-update", "pre-receive", "update", "post-receive", "post-rewrite"} {
		trap(t, filepath.Join(path, ".git/hooks", hook), trace)
		trap(t, filepath.Join(path, "hooks", hook), trace)
	}
	write(t, filepath.Join(path, ".git/more"), fmt.Sprintf("[filter \"evil\"]\n\tclean = %[1]s\n\tsmudge = %[1]s\n\tprocess = %[1]s\n\trequired = true\n[filter \"a.b = c\"]\n\tclean = %[1]s\n", run))
	config, err := os.ReadFile(filepath.Join(path, ".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, ".git/config"), string(config)+fmt.Sprintf(`
[include]
	path = more
[core]
	fsmonitor = %[1]s
	hooksPath = %[2]s
	sshCommand = %[1]s
	gitProxy = %[1]s
	askPass = %[1]s
	editor = %[1]s
	pager = %[1]s
	alternateRefsCommand = %[1]s
	attributesFile = %[2]s/attributes
[credential]
	helper = %[1]s
[credential "https://example.org"]
	helper = %[1]s
[diff]
	external = %[1]s
[diff "evil"]
	command = %[1]s
	textconv = %[1]s
[merge "evil"]
	driver = %[1]s
[uploadpack]
	packObjectsHook = %[1]s
[remote "origin"]
	url = ext::%[1]s
	uploadpack = %[1]s
	receivepack = %[1]s
[url "ext::%[1]s "]
	insteadOf = git:
[hook "evil"]
	event = reference-transaction
	command = %[1]s
[gpg]
	program = %[1]s
[commit]
	gpgSign = true
[alias]
	status = !%[1]s
[submodule]
	recurse = true
[submodule "a"]
	url = ext::%[1]s
	active = true
[protocol]
	allow = always
`, run, filepath.Join(path, "hooks")))
	// Stats that the index does not know make git look at the contents.
	for _, f := range []string{"README.md", "src/main.go"} {
		if err := os.Chtimes(filepath.Join(path, f), when, when); err != nil {
			t.Fatal(err)
		}
	}
	// The trap works: a user's git springs it.
	_ = exec.Command("git", "-C", path, "status").Run() // it fails of what it ran
	if _, err := os.Stat(trace); err != nil {
		t.Fatal("the trap does not work: the test proves nothing")
	}
	if err := os.Remove(trace); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(path, "README.md"), when, when.AddDate(0, 0, 1)); err != nil {
		t.Fatal(err)
	}

	s := inspect(t, path)
	name, err := FreeBranch(t.Context(), s, "tori/issue-1-x")
	if err != nil || name != "tori/issue-1-x" {
		t.Fatalf("%s, %v", name, err)
	}
	w := create(t, path)
	if m, err := w.Missing(t.Context()); err != nil || strings.Join(m.Submodules, " ") != "a b c" {
		t.Errorf("%+v, %v", m, err)
	}
	snap(t, w, "start")
	write(t, filepath.Join(w.Tree(), "README.md"), "changed\n")
	snap(t, w, "changed")
	if text, err := w.Diff(t.Context(), DiffOptions{}); err != nil || !strings.Contains(text, "+changed") {
		t.Errorf("%s, %v", text, err)
	}
	id := commit(t, w, "x")
	if err := w.CheckDeliver(t.Context()); err != nil {
		t.Error(err)
	}
	if err := w.Deliver(t.Context()); err != nil {
		t.Error(err)
	}
	// Also where it is mirrored.
	m := mirrorsIn(filepath.Join(t.TempDir(), "m"))
	mirrored := fromMirror(t, m, Remote{URL: "file://" + path}, "main")
	workspaceOf(t, mirrored, filepath.Join(t.TempDir(), "w"))
	if got, err := os.ReadFile(trace); err == nil {
		t.Errorf("executed:\n%s", got)
	}
	if got := strings.TrimSpace(git(t, path, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "rev-parse", "refs/heads/tori/issue-1-x")); got != id {
		t.Errorf("delivered %s", got)
	}
}

// A configuration that leads git to another tree is no repository of ours, and
// a .git that is a link or a file is followed to what it names.
func TestSourceElsewhere(t *testing.T) {
	t.Parallel()
	other := newRepo(t, "other")
	path := newRepo(t, "repo")
	git(t, path, "config", "core.worktree", other)
	if s, err := Inspect(t.Context(), path, InspectOptions{Box: walls(), AllowDirty: true}); key(err) != "workspace.not_git" {
		t.Errorf("%+v, %v", s, err)
	}
	linked := newRepo(t, "linked")
	elsewhere := filepath.Join(filepath.Dir(linked), "elsewhere")
	if err := os.Rename(filepath.Join(linked, ".git"), elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../elsewhere", filepath.Join(linked, ".git")); err != nil {
		t.Fatal(err)
	}
	if s, err := Inspect(t.Context(), linked, InspectOptions{Box: walls()}); key(err) != "workspace.foreign_git" {
		t.Errorf("%+v, %v", s, err)
	}
	git(t, linked, "--git-dir="+elsewhere, "config", "core.worktree", linked) // as the error says
	s := inspect(t, linked)
	if s.Path != linked || s.GitDir != elsewhere {
		t.Errorf("%+v", s)
	}
	w := create(t, linked)
	write(t, filepath.Join(w.Tree(), "f"), "x\n")
	commit(t, w, "x")
	if err := w.Deliver(t.Context()); err != nil {
		t.Error(err)
	}
}

// A .git that somebody packed up leads git to no other repository of the user and
// to no file of theirs, and has it wait nowhere.
func TestStrangersGitDir(t *testing.T) {
	t.Parallel()
	private := newRepo(t, "private")
	const secret = "ff00aa private words"
	write(t, filepath.Join(private, "secret"), secret)
	git(t, private, "add", ".")
	git(t, private, "commit", "-q", "-m", secret)
	theirs, bare := filepath.Join(private, ".git"), filepath.Join(t.TempDir(), "bare")
	git(t, private, "clone", "-q", "--bare", private, bare)
	file := filepath.Join(t.TempDir(), "credentials")
	write(t, file, secret+"\n[default]\n\tkey = "+secret+"\n")
	anew := func(path, to string) error { return errors.Join(os.RemoveAll(path), os.Symlink(to, path)) }
	more := func(path, text string) error {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
		return err
	}
	for name, c := range map[string]struct {
		plant func(git string) error
		key   string
	}{
		"a file names it": {func(git string) error {
			return errors.Join(os.RemoveAll(git), os.WriteFile(git, []byte("gitdir: "+theirs+"\n"), 0o600))
		}, "workspace.foreign_git"},
		"a file names one without a checkout": {func(git string) error {
			return errors.Join(os.RemoveAll(git), os.WriteFile(git, []byte("gitdir: "+bare+"\n"), 0o600))
		}, "workspace.foreign_git"},
		"a file as its common part": {func(git string) error { return anew(git+"/commondir", file) }, "workspace.linked"},
		"a link to it":              {func(git string) error { return anew(git, theirs) }, "workspace.foreign_git"},
		"its common part":           {func(git string) error { return os.WriteFile(git+"/commondir", []byte(theirs), 0o600) }, "workspace.foreign_git"},
		"its objects":               {func(git string) error { return anew(git+"/objects", theirs+"/objects") }, "workspace.linked"},
		"its branch":                {func(git string) error { return anew(git+"/refs/heads/main", theirs+"/refs/heads/main") }, "workspace.linked"},
		"its branches":              {func(git string) error { return anew(git+"/refs", theirs+"/refs") }, "workspace.linked"},
		"a file as HEAD":            {func(git string) error { return anew(git+"/HEAD", file) }, "workspace.linked"},
		"a file as refs":            {func(git string) error { return anew(git+"/packed-refs", file) }, "workspace.linked"},
		"a file as shallow":         {func(git string) error { return anew(git+"/shallow", file) }, "workspace.linked"},
		"a file as settings":        {func(git string) error { return anew(git+"/config", file) }, "workspace.linked"},
		"a file as log": {func(git string) error {
			return errors.Join(os.MkdirAll(git+"/logs", 0o700), anew(git+"/logs/HEAD", file))
		}, "workspace.linked"},
		"a file included": {func(git string) error { return more(git+"/config", "[include]\n\tpath = "+file+"\n") }, ""},
		"a file included by a file, if": {func(git string) error {
			return errors.Join(more(git+"/config", "[include]\n\tpath = more\n"), more(git+"/more", "[includeIf \"gitdir:/nowhere\"]\n\tpath = "+file+"\n"))
		}, ""},
		"an endless file included": {func(git string) error { return more(git+"/config", "[include]\n\tpath = /dev/zero\n") }, ""},
		"it includes itself":       {func(git string) error { return more(git+"/config", "[include]\n\tpath = config\n") }, ""},
		"a pipe included": {func(git string) error {
			return errors.Join(more(git+"/config", "[include]\n\tpath = ../more\n"), unix.Mkfifo(filepath.Dir(git)+"/more", 0o600))
		}, ""},
		"a pipe as refs": {func(git string) error { return unix.Mkfifo(git+"/packed-refs", 0o600) }, "workspace.linked"},
		"files as objects": {func(git string) error {
			return more(git+"/objects/info/alternates", filepath.Dir(file)+"\n")
		}, "workspace.no_objects"},
		"links in what it borrows": {func(git string) error {
			lent := filepath.Join(filepath.Dir(git), "lent")
			return errors.Join(os.Mkdir(lent, 0o700), os.Symlink("/etc", lent+"/pack"), more(git+"/objects/info/alternates", lent+"\n"))
		}, "workspace.no_objects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newRepo(t, "repo")
			if err := c.plant(filepath.Join(path, ".git")); err != nil {
				t.Fatal(err)
			}
			_, err := Inspect(t.Context(), path, InspectOptions{Box: walls(), AllowDirty: true})
			if key(err) != c.key {
				t.Errorf("%v", err)
			}
			if err != nil && strings.Contains(err.Error(), secret[:6]) {
				t.Errorf("it quotes the file: %v", err)
			}
		})
	}
}

// Of what a repository borrows a workspace has only what its branch leads to.
func TestBorrowedHistory(t *testing.T) {
	t.Parallel()
	private := newRepo(t, "private")
	path := filepath.Join(t.TempDir(), "repo")
	git(t, "/", "clone", "-q", "--shared", private, path)
	write(t, filepath.Join(private, "secret"), "private words")
	git(t, private, "add", ".")
	git(t, private, "commit", "-q", "-m", "later")
	w := create(t, path)
	if all := objects(t, w.GitDir()); strings.Contains(all, "private words") || !strings.Contains(all, "README.md") {
		t.Errorf("%q", all)
	}
	if _, err := w.LogText(t.Context(), strings.TrimSpace(git(t, private, "rev-parse", "HEAD")), "", 1, true, 1000); err == nil {
		t.Error("a commit of the lender is shown")
	}
}

// Files that LFS keeps elsewhere are not taken for modified, though its filter
// is not run; and they are, where they were.
func TestSourceWithLFS(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	big := "a large file\n"
	write(t, filepath.Join(path, ".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256([]byte(big)), len(big))
	for _, f := range []string{"same.bin", "edited.bin"} {
		write(t, filepath.Join(path, f), pointer)
	}
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "lfs")
	git(t, path, "config", "filter.lfs.clean", "false")
	git(t, path, "config", "filter.lfs.required", "true")
	write(t, filepath.Join(path, "same.bin"), big)
	write(t, filepath.Join(path, "edited.bin"), "a large FILE\n")
	s, err := Inspect(t.Context(), path, InspectOptions{Box: walls(), AllowDirty: true})
	if err != nil || strings.Join(s.Modified, " ") != "edited.bin" {
		t.Errorf("%+v, %v", s, err)
	}
	write(t, filepath.Join(path, "edited.bin"), big)
	left := int64(len(pointer))
	root, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if !pointsTo(t.Context(), []byte(pointer), root, "same.bin", &left) || pointsTo(t.Context(), []byte(pointer), root, "same.bin", new(int64)) {
		t.Error("what is left to read is not counted")
	}
	w := create(t, path)
	if m, err := w.Missing(t.Context()); err != nil || m.LFS != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	if b, err := os.ReadFile(filepath.Join(w.Tree(), "same.bin")); err != nil || string(b) != pointer {
		t.Errorf("%q, %v", b, err)
	}
}

// An index that fills the disk when it is copied is none.
func TestSparseIndex(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	for _, size := range []int64{1 << 20, 40 << 30} { // within and past what is copied
		if err := os.Truncate(filepath.Join(path, ".git/index"), size); err != nil {
			t.Fatal(err)
		}
		if _, err := Inspect(t.Context(), path, InspectOptions{Box: walls()}); err == nil || !strings.Contains(err.Error(), "no index of git's") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Neither grafts nor replaced objects of a source change what its commits say.
func TestGraftsAndReplacements(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	for _, name := range []string{"one", "two"} {
		write(t, filepath.Join(path, name), name)
		git(t, path, "add", ".")
		git(t, path, "commit", "-q", "-m", name)
	}
	ids := strings.Fields(git(t, path, "rev-list", "HEAD"))
	write(t, filepath.Join(path, ".git/info/grafts"), ids[0]+"\n") // without parents
	git(t, path, "replace", ids[1], ids[2])
	s := inspect(t, path)
	if got, err := s.repo().git(t.Context(), "log", "--format=%H %s"); err != nil || strings.Count(got, "\n") != 3 || !strings.Contains(got, ids[1]+" one") {
		t.Errorf("%s %v", got, err)
	}
	s.lenders = []string{"any"} // the other half sends what it takes for the history
	w, err := Create(t.Context(), CreateOptions{Box: walls(), Source: s, Dir: filepath.Join(t.TempDir(), "w"), Branch: "work"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if got, err := w.repo.git(t.Context(), "rev-list", "--count", "work"); err != nil || got != "3\n" {
		t.Error(got, err)
	}
}
