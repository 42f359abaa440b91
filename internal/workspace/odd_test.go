package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// odd are repositories that are not as most are; each returns its path.
var odd = map[string]func(t *testing.T) string{
	"detached": func(t *testing.T) string {
		path := newRepo(t, "repo")
		git(t, path, "checkout", "-q", "--detach")
		git(t, path, "commit", "-q", "--allow-empty", "-m", "on no branch")
		return path
	},
	"shallow": func(t *testing.T) string {
		full := newRepo(t, "full")
		for range 3 {
			git(t, full, "commit", "-q", "--allow-empty", "-m", "more")
		}
		path := filepath.Join(t.TempDir(), "shallow")
		git(t, full, "clone", "-q", "--depth=2", "file://"+full, path)
		return path
	},
	"sha256": func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "sha256")
		git(t, filepath.Dir(path), "init", "-q", "-b", "main", "--object-format=sha256", path)
		write(t, filepath.Join(path, "README.md"), "hello\n")
		git(t, path, "add", ".")
		git(t, path, "commit", "-q", "-m", "first")
		return path
	},
	"worktree": func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "tree")
		git(t, newRepo(t, "repo"), "worktree", "add", "-q", "-b", "side", path)
		return path
	},
	"alternates": func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "shared")
		git(t, "/", "clone", "-q", "--shared", newRepo(t, "repo"), path)
		return path
	},
	"submodules": func(t *testing.T) string {
		path := newRepo(t, "repo")
		git(t, path, "-c", "protocol.file.allow=always", "submodule", "add", "-q", newRepo(t, "sub"), "module")
		git(t, path, "commit", "-q", "-m", "submodule")
		return path
	},
	"inside a submodule": func(t *testing.T) string {
		path := newRepo(t, "repo")
		git(t, path, "-c", "protocol.file.allow=always", "submodule", "add", "-q", newRepo(t, "sub"), "module")
		return filepath.Join(path, "module")
	},
	"empty commit": func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "e")
		git(t, filepath.Dir(path), "init", "-q", "-b", "main", path)
		git(t, path, "commit", "-q", "--allow-empty", "-m", "nothing")
		return path
	},
	"names": func(t *testing.T) string {
		path := newRepo(t, "repo")
		for _, name := range oddNames {
			write(t, filepath.Join(path, name), "x\n")
		}
		for name, to := range map[string]string{"loop": "loop", "a/up": "..", "a/down": "up/a", "gone": "nowhere"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(path, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, filepath.Join(path, name)); err != nil {
				t.Fatal(err)
			}
		}
		git(t, path, "add", ".")
		git(t, path, "commit", "-q", "-m", "names")
		return path
	},
}

var oddNames = []string{"new\nline", "inv\xff\xfealid", "README.MD", "readme.md", "-option", ":(glob)*", "tab\there", "quote\"s'", " lead", "trail ", "日本語", "back\\slash", "a/[x]", strings.Repeat("n", 255)}

// The whole way of a task works for each of them, from a path and from a mirror.
func TestOddRepositories(t *testing.T) {
	t.Parallel()
	for name, makeRepo := range odd {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := makeRepo(t)
			head := strings.TrimSpace(git(t, path, "rev-parse", "HEAD"))
			house := t.TempDir()
			remote := Remote{URL: "file://" + path}
			from := map[string]*Source{"path": inspect(t, path)}
			if slices.Contains([]string{"detached", "shallow", "sha256", "names"}, name) { // to a mirror the others are as any
				from["mirror"] = fromMirror(t, mirrorsIn(filepath.Join(house, "m")), remote, "")
			}
			for kind, s := range from {
				if s.Head != head {
					t.Errorf("%s: head %s, want %s", kind, s.Head, head)
				}
				w := workspaceOf(t, s, filepath.Join(house, "w", kind))
				if st, err := w.ChangedFiles(t.Context()); err != nil || len(st) != 0 {
					t.Fatalf("%s: not clean: %v, %v", kind, st, err)
				}
				first := snap(t, w, "start")
				for _, n := range oddNames {
					write(t, filepath.Join(w.Tree(), n), kind+"\n")
				}
				second := snap(t, w, "names")
				changed, err := w.ChangedFiles(t.Context())
				if err != nil || len(changed) != len(oddNames) || !slices.ContainsFunc(changed, func(c Change) bool { return c.Path == "inv\xff\xfealid" }) {
					t.Errorf("%s: %v, %v", kind, changed, err)
				}
				for _, shown := range Paths(changed) {
					if strings.ContainsAny(shown, "\n\t") || !utf8.ValidString(shown) {
						t.Errorf("%q is no name for people", shown)
					}
				}
				for _, id := range []string{first.ID, second.ID}[:2*b2i(kind == "mirror")] { // one way is enough
					if _, err := w.RestoreTo(t.Context(), id); err != nil {
						t.Errorf("%s: %v", kind, err)
					}
				}
				id := commit(t, w, "x")
				if kind == "path" {
					if err := w.Deliver(t.Context()); err != nil {
						t.Errorf("deliver: %v", err)
					}
				} else if _, err := w.Push(t.Context(), PushOptions{Remote: remote, Branch: "pushed"}); err != nil {
					t.Errorf("push: %v", err)
				}
				branch := map[string]string{"path": "tori/issue-1-x", "mirror": "pushed"}[kind]
				if got := strings.TrimSpace(git(t, path, "rev-parse", "refs/heads/"+branch)); got != id {
					t.Errorf("%s: at %s, want %s", kind, got, id)
				}
			}
			git(t, path, "fsck", "--no-dangling")
		})
	}
}

// A partial clone lacks what only its remote has: that is said, and nothing is
// fetched behind anybody's back.
func TestPartialClone(t *testing.T) {
	t.Parallel()
	full := newRepo(t, "full")
	git(t, full, "config", "uploadpack.allowFilter", "true")
	path := filepath.Join(t.TempDir(), "partial")
	git(t, full, "clone", "-q", "--filter=blob:none", "--no-checkout", "file://"+full, path)
	s, err := Inspect(t.Context(), path, InspectOptions{Box: walls(), AllowDirty: true})
	if err == nil {
		_, err = Create(t.Context(), CreateOptions{Box: walls(), Source: s, Dir: filepath.Join(t.TempDir(), "w"), Branch: "b"})
	}
	if key(err) != "workspace.partial_clone" {
		t.Errorf("%v", err)
	}
}
