package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A branch is handed back to a git directory that somebody else may have made:
// links in it lead nowhere, and nothing of its configuration is written or run.
func TestDeliverFollowsNoLink(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(git, victim, dir string) error{
		"log of the branch": func(git, victim, _ string) error {
			if err := os.MkdirAll(filepath.Join(git, "logs/refs/heads"), 0o700); err != nil {
				return err
			}
			return os.Symlink(victim, filepath.Join(git, "logs/refs/heads/task"))
		},
		"directory of refs": func(git, _, dir string) error {
			if err := os.RemoveAll(filepath.Join(git, "refs/heads/in")); err != nil {
				return err
			}
			return os.Symlink(dir, filepath.Join(git, "refs/heads/in"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, branch := newRepo(t, "repo"), "in/task"
			if strings.Contains(name, "log") {
				branch = "task"
			}
			w, err := Create(t.Context(), CreateOptions{Box: walls(), Source: inspect(t, repo), Dir: filepath.Join(t.TempDir(), "workspaces", "1"), Branch: branch})
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(w.Tree(), "f"), "1\n")
			commit(t, w, "1")
			outside := t.TempDir()
			victim := filepath.Join(outside, "victim")
			if err := os.WriteFile(victim, []byte("mine\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := plant(filepath.Join(repo, ".git"), victim, outside); err != nil {
				t.Fatal(err)
			}
			err = w.Deliver(t.Context())
			if key(err) != "workspace.linked" {
				t.Errorf("%v", err)
			}
			if got, rerr := os.ReadFile(victim); rerr != nil || string(got) != "mine\n" {
				t.Errorf("the victim: %q, %v", got, rerr)
			}
			if left, _ := os.ReadDir(outside); len(left) != 1 {
				t.Errorf("made beside it: %v (%v)", left, err)
			}
		})
	}
}

// What a repository names as the lender of its objects is shown to git in the
// sandbox: it holds objects and nothing else.
func TestLendersHoldObjects(t *testing.T) {
	t.Parallel()
	repo := newRepo(t, "repo")
	if err := holdsObjects(t.Context(), filepath.Join(repo, ".git", "objects")); err != nil {
		t.Error(err)
	}
	for name, make := range map[string]func(dir string) error{
		"a file":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "shadow"), nil, 0o600) },
		"a directory": func(dir string) error { return os.Mkdir(filepath.Join(dir, "ssh"), 0o700) },
		"a link":      func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "ab")) },
	} {
		dir := t.TempDir()
		if err := make(dir); err != nil {
			t.Fatal(err)
		}
		if err := holdsObjects(t.Context(), dir); key(err) != "workspace.no_objects" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A commit brings what is new from the sandbox, and not the tree again.
func TestACommitBringsWhatIsNew(t *testing.T) {
	t.Parallel()
	repo := newRepo(t, "repo")
	for _, name := range []string{"a", "b", "c", "d"} {
		write(t, filepath.Join(repo, "dir", name), name+"\n")
	}
	git(t, repo, "add", "-A")
	git(t, repo, "commit", "-q", "-m", "more")
	w := create(t, repo)
	objects := func() string {
		return git(t, repo, "--git-dir="+w.GitDir(), "cat-file", "--batch-check", "--batch-all-objects", "--unordered")
	}
	before := strings.Count(objects(), "\n")
	write(t, filepath.Join(w.Tree(), "f"), "1\n")
	commit(t, w, "1")
	packs, err := filepath.Glob(filepath.Join(w.GitDir(), "objects/pack/*.idx"))
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	for _, p := range packs {
		if list := git(t, repo, "--git-dir="+w.GitDir(), "verify-pack", "-v", p); !strings.Contains(list, "commit") {
			newest = list
		}
	}
	if n := strings.Count(newest, " blob ") + strings.Count(newest, " tree "); n != 2 {
		t.Errorf("%d objects came over, want a blob and a tree:\n%s", n, newest)
	}
	if after := strings.Count(objects(), "\n"); after != before+3 {
		t.Errorf("%d objects, then %d", before, after)
	}
}
