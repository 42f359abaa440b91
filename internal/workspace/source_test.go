package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestInspectRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	empty := filepath.Join(dir, "empty")
	git(t, dir, "init", "-q", empty)
	emptyBare := filepath.Join(dir, "empty.git")
	git(t, dir, "init", "-q", "--bare", emptyBare)
	repo := newRepo(t, "repo")
	dirty := newRepo(t, "dirty")
	for _, f := range []string{"a", "b", "c", "d"} {
		write(t, filepath.Join(dirty, f), "x")
	}
	git(t, dirty, "add", ".")
	write(t, filepath.Join(dirty, "README.md"), "changed\n")
	broken := newRepo(t, "broken")
	write(t, filepath.Join(broken, ".git/HEAD"), "garbage")
	// Damage, and a bare repository whose HEAD nobody set, are not "no commit yet".
	lost, lostDetached, emptyRef := newRepo(t, "lost"), newRepo(t, "detached"), newRepo(t, "ref")
	head := strings.TrimSpace(git(t, lost, "rev-parse", "HEAD"))
	if err := os.Remove(filepath.Join(lost, ".git/objects", head[:2], head[2:])); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(lostDetached, ".git/HEAD"), strings.Repeat("1", 40)+"\n")
	write(t, filepath.Join(emptyRef, ".git/refs/heads/main"), "")
	elsewhere := filepath.Join(dir, "elsewhere.git")
	git(t, dir, "clone", "-q", "--bare", repo, elsewhere)
	git(t, elsewhere, "symbolic-ref", "HEAD", "refs/heads/trunk")
	for _, c := range []struct{ path, key, text string }{
		{filepath.Join(dir, "missing"), "workspace.not_found", "missing"},
		{filepath.Join(dir, "file"), "workspace.not_directory", "file"},
		{dir, "workspace.not_git", "git init"},
		{empty, "workspace.no_commits", "no commit"},
		{emptyBare, "workspace.no_commits", "no commit"},
		{filepath.Join(repo, ".git"), "workspace.not_git", ""},
		{dirty, "workspace.dirty", "README.md, a, b (+2)"},
		{broken, "workspace.damaged", filepath.Join(broken, ".git")},
		{filepath.Join(broken, "src"), "workspace.damaged", filepath.Join(broken, ".git")},
		{lost, "workspace.lost_commit", "main of the repository"},
		{lostDetached, "workspace.lost_commit", "HEAD of the repository"},
		{emptyRef, "workspace.broken_ref", filepath.Join(emptyRef, ".git/refs/heads/main")},
		{elsewhere, "workspace.head_elsewhere", "refs/heads/main"},
	} {
		_, err := Inspect(t.Context(), c.path, InspectOptions{Box: walls()})
		if key(err) != c.key || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Inspect(ctx, repo, InspectOptions{Box: walls()}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestInspectNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"repo", "with space", "日本語のリポジトリ", "-dash", "--bare", "new\nline", "quote'\"", "colon:x", "trail "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newRepo(t, name)
			s := inspect(t, filepath.Join(path, "src"))
			if s.Path != path || s.Name() != name || s.Branch != "main" || s.Bare || s.GitDir != filepath.Join(path, ".git") {
				t.Errorf("%+v", s)
			}
			if want := strings.TrimSpace(git(t, path, "rev-parse", "HEAD")); s.Head != want {
				t.Errorf("head %s, want %s", s.Head, want)
			}
			// The whole way also holds for such a name.
			w := create(t, path)
			write(t, filepath.Join(w.Tree(), "新しい file"), "x\n")
			id := commit(t, w, "x")
			if err := w.Deliver(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(git(t, path, "rev-parse", "refs/heads/tori/issue-1-x")); got != id {
				t.Errorf("delivered %s, want %s", got, id)
			}
		})
	}
}

func TestInspectKinds(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	head := strings.TrimSpace(git(t, path, "rev-parse", "HEAD"))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(t.TempDir(), "proj.git")
	git(t, path, "clone", "-q", "--bare", path, bare)
	detached := filepath.Join(t.TempDir(), "detached")
	git(t, path, "clone", "-q", path, detached)
	git(t, detached, "checkout", "-q", "--detach")
	tree := filepath.Join(t.TempDir(), "worktree")
	git(t, path, "worktree", "add", "-q", "-b", "side", tree)
	direct := inspect(t, path)
	for _, c := range []struct {
		path, top, branch, name string
		bare                    bool
	}{
		{link, path, "main", "repo", false},
		{bare, bare, "main", "proj", true},
		{detached, detached, "", "detached", false},
		{tree, tree, "side", "worktree", false},
	} {
		s := inspect(t, c.path)
		if s.Path != c.top || s.Branch != c.branch || s.Bare != c.bare || s.Head != head || s.Name() != c.name {
			t.Errorf("%s: %+v", c.path, s)
		}
		if (s.Owner() == direct.Owner()) != (c.top == path) || len(s.Owner()) != 8 {
			t.Errorf("%s: owner %s, direct %s", c.path, s.Owner(), direct.Owner())
		}
		w := create(t, c.path)
		write(t, filepath.Join(w.Tree(), "new"), "x")
		commit(t, w, "x")
		if err := w.Deliver(t.Context()); err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
		git(t, c.top, "branch", "-D", "tori/issue-1-x")
	}
}

func TestInspectDirty(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	write(t, filepath.Join(path, "docs/12-fix.md"), "issue\n")
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "issue")
	write(t, filepath.Join(path, "docs/12-fix.md"), "edited\n")
	write(t, filepath.Join(path, "docs/12-fix.comments.md"), "new\n")
	write(t, filepath.Join(path, "new1"), "")
	write(t, filepath.Join(path, "dir/new2"), "")
	write(t, filepath.Join(path, "dir/new3"), "")
	ignore := []string{filepath.Join(path, "docs/12-fix.md"), "docs/12-fix.comments.md"}
	s, err := Inspect(t.Context(), path, InspectOptions{Box: walls(), Ignore: ignore})
	if err != nil || s.Untracked != 2 || len(s.Modified) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err = Inspect(t.Context(), path, InspectOptions{Box: walls()}); key(err) != "workspace.dirty" {
		t.Errorf("without ignore: %v", err)
	}
	s, err = Inspect(t.Context(), path, InspectOptions{Box: walls(), AllowDirty: true})
	if err != nil || !slices.Equal(s.Modified, []string{"docs/12-fix.md"}) {
		t.Errorf("allowed: %+v, %v", s, err)
	}
	if err := os.Remove(filepath.Join(path, "README.md")); err != nil {
		t.Fatal(err)
	}
	if _, err = Inspect(t.Context(), path, InspectOptions{Box: walls(), Ignore: ignore}); key(err) != "workspace.dirty" || !strings.Contains(err.Error(), "README.md.") {
		t.Errorf("deleted file: %v", err)
	}
}

func TestForeignOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a repository to somebody else")
	}
	path := newRepo(t, "repo")
	err := filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(p, 12345, 12345))
	})
	if err != nil {
		t.Fatal(err)
	}
	w := create(t, path)
	write(t, filepath.Join(w.Tree(), "new"), "x")
	commit(t, w, "x")
	if err := w.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
}
