package folder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Nothing that lies beside an issue leads elsewhere: whoever can write there could
// have others' files read to a model, or written to.
func TestNoLinkIsFollowed(t *testing.T) {
	t.Parallel()
	const secret = "## ken — 2026-01-02T03:04:05Z\n\nsecret\n"
	for name, plant := range map[string]func(elsewhere, path string) error{
		"a link": os.Symlink,
		"a link beside it": func(elsewhere, path string) error {
			return errors.Join(os.Rename(elsewhere, filepath.Join(filepath.Dir(path), "key")), os.Symlink("key", path), os.Symlink(path, elsewhere))
		},
		"a link to nothing": func(elsewhere, path string) error { return os.Symlink(elsewhere+".new", path) },
		"a pipe":            func(_, path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory":       func(_, path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			elsewhere := file(t, "key", secret)
			issue := filepath.Join(dir, "7-x.md")
			if err := errors.Join(os.WriteFile(issue, []byte("# x"), 0o600), plant(elsewhere, CommentsPath(issue))); err != nil {
				t.Fatal(err)
			}
			f, err := Open(Options{Dir: dir, Repo: forge.Repo{Owner: "o", Name: "r"}})
			if err != nil {
				t.Fatal(err)
			}
			key := task.Key{Source: "folder", Owner: "o", Repo: "r", Type: "issue", ID: "7"}
			check := func(what string, err error) {
				t.Helper()
				var e *i18n.Error
				if err == nil || !errors.As(err, &e) || !strings.Contains(err.Error(), CommentsPath(issue)) {
					t.Errorf("%s: %v", what, err)
				}
			}
			check("append", appendComment(issue, Comment{Time: when, Body: "ours", Marker: "m"}))
			_, err = f.Post(t.Context(), key, "m", "ours")
			check("post", err)
			_, _, err = f.Comments(t.Context(), key)
			check("listed", err)
			if got := read(t, elsewhere); name != "a directory" && got != secret {
				t.Errorf("written elsewhere: %q", got)
			}
			if _, err := os.Lstat(elsewhere + ".new"); err == nil {
				t.Error("made elsewhere")
			}
		})
	}
}

// What a link leads to is no issue, found in a folder or named by somebody: the
// link may be a stranger's, also where it comes after the look.
func TestIssueBecomesLink(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "7.md")
	if err := os.Symlink(file(t, "key", "secret"), path); err != nil {
		t.Fatal(err)
	}
	if e, err := newWorld(t).open().readEntry(t.Context(), path, stamp{}); err != nil || e.err == nil {
		t.Errorf("%+v, %v", e, err)
	}
	if is, err := ReadIssue(path); err == nil {
		t.Errorf("%+v", is)
	}
}
