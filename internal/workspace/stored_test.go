package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stored packs the tree of w as it is.
func stored(t *testing.T, w *Workspace) (Stored, []byte) {
	t.Helper()
	s, err := w.Stored(t.Context(), snap(t, w, "write_file x"))
	if err != nil {
		t.Fatal(err)
	}
	var pack bytes.Buffer
	if err := w.Pack(t.Context(), s, &pack); err != nil {
		t.Fatal(err)
	}
	return s, pack.Bytes()
}

// What a workspace held comes back in another place, from its pack and a clone: what was not
// committed with its modes and links, the commit, and the next commit on it.
func TestRestoreElsewhere(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	write(t, filepath.Join(path, "large"), strings.Repeat("of the base\n", 1<<14))
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "large")
	w := create(t, path)
	write(t, filepath.Join(w.Tree(), "src", "main.go"), "package main // committed\n")
	head := commit(t, w, "first words")
	write(t, filepath.Join(w.Tree(), "README.md"), "uncommitted\n")
	write(t, filepath.Join(w.Tree(), "run.sh"), "#!/bin/sh\n")
	write(t, filepath.Join(w.Tree(), "binary"), "\x00\xff\r\n")
	for _, err := range []error{os.Chmod(filepath.Join(w.Tree(), "run.sh"), 0o755), os.Symlink("README.md", filepath.Join(w.Tree(), "link")), os.Remove(filepath.Join(w.Tree(), "large"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s, pack := stored(t, w)
	if len(pack) > 4<<10 {
		t.Errorf("the pack has %d bytes: it holds more than the change", len(pack))
	}
	opt := CreateOptions{Box: walls(), Source: inspect(t, path), Dir: filepath.Join(t.TempDir(), "elsewhere", "1234"), Branch: w.meta.Branch}

	// A tree that is the base's again is kept, too.
	same := create(t, path)
	none, nothing := stored(t, same)
	again, err := Create(t.Context(), CreateOptions{Box: walls(), Source: inspect(t, path), Dir: filepath.Join(t.TempDir(), "w"), Branch: "b", Restore: &Restore{Stored: none, Pack: whole(nothing)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(listTree(t, same.Tree()), listTree(t, again.Tree())); d != "" {
		t.Error(d)
	}

	// What is cut short is no workspace, and is made anew.
	opt.Restore = &Restore{Stored: s, Pack: func(_ context.Context, to io.Writer) error {
		_, err := to.Write(pack[:len(pack)/2])
		return errors.Join(err, errBucket)
	}}
	if _, err := Create(t.Context(), opt); !errors.Is(err, errBucket) {
		t.Fatalf("of a pack that cannot be read: %v", err)
	}
	killed, kill := context.WithCancel(t.Context())
	opt.Restore.Pack = func(ctx context.Context, _ io.Writer) error { kill(); return ctx.Err() }
	if _, err := Create(killed, opt); !errors.Is(err, context.Canceled) {
		t.Fatalf("that was ended: %v", err)
	}
	half, err := Create(t.Context(), CreateOptions{Box: walls(), Source: opt.Source, Dir: opt.Dir, Branch: opt.Branch})
	if err != nil {
		t.Fatal(err)
	}
	half.meta.Restore = &s // as a kill leaves it
	for _, err := range []error{half.noteMeta(), half.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(opt.Dir, walls()); !errors.Is(err, fs.ErrNotExist) || Made(opt.Dir, "") {
		t.Fatalf("half a workspace was opened: %v", err)
	}
	opt.Restore.Pack, opt.ID = whole(pack), "second" // what is there has no name
	there, err := Create(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if Made(opt.Dir, "second") {
		t.Error("it is made before it is restored")
	}
	// A setup sees the base, and what it leaves is not gone by the restore.
	if _, err := there.Setup(t.Context(), SetupOptions{Dir: filepath.Join(t.TempDir(), "setup"), Run: shRun(there, new(atomic.Int64)),
		Commands: []SetupCommand{{Run: "test -f large && ! test -e run.sh && mkdir vendor && echo x >vendor/x"}}}); err != nil {
		t.Fatal(err)
	}
	if err := there.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(there.Tree(), "vendor", "x")); string(b) != "x\n" || os.RemoveAll(filepath.Join(there.Tree(), "vendor")) != nil {
		t.Errorf("%q, %v", b, err)
	}
	if !Made(opt.Dir, "") || !Made(opt.Dir, "second") || Made(opt.Dir, "first") {
		t.Error("it is not finished, or another one")
	}
	if d := cmp.Diff(listTree(t, w.Tree()), listTree(t, there.Tree())); d != "" {
		t.Error(d)
	}
	if got, err := there.Head(t.Context()); got != head || err != nil {
		t.Errorf("the branch is at %s and not at %s: %v", got, head, err)
	}
	a, aerr := w.ChangedFiles(t.Context())
	b, berr := there.ChangedFiles(t.Context())
	if d := cmp.Diff(a, b); d != "" || aerr != nil || berr != nil {
		t.Errorf("%v, %v\n%s", aerr, berr, d)
	}
	if one, two := commit(t, w, "all"), commit(t, there, "all"); one != two {
		t.Errorf("the same work is %s here and %s there", one, two)
	}
	if err := there.Deliver(t.Context()); err != nil {
		t.Error(err)
	}
}

var errBucket = errors.New("the bucket refuses")

func whole(pack []byte) func(context.Context, io.Writer) error {
	return func(_ context.Context, to io.Writer) error {
		_, err := to.Write(pack)
		return err
	}
}

// listTree is each file of a tree: its mode, and its content or target.
func listTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		if err != nil || e.IsDir() || rel == ".git" {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		text, err := os.Readlink(p)
		if err != nil {
			b, rerr := os.ReadFile(p)
			text, err = string(b), rerr
		}
		all[rel] = st.Mode().String() + " " + text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What was merged into the tree stays the second parent of what is committed elsewhere; the pack
// holds neither side's history.
func TestRestoreOfAMerge(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	git(t, path, "checkout", "-q", "-b", "work")
	write(t, filepath.Join(path, "README.md"), "mine\n")
	git(t, path, "commit", "-q", "-a", "-m", "mine")
	git(t, path, "checkout", "-q", "main")
	write(t, filepath.Join(path, "README.md"), "theirs\n")
	write(t, filepath.Join(path, "theirs"), strings.Repeat("y", 1<<10)+strings.TrimSpace(git(t, path, "rev-parse", "main")))
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "theirs")
	house := t.TempDir()
	m := mirrorsIn(filepath.Join(house, "m"))
	remote := Remote{URL: "file://" + path}
	opt := CreateOptions{Box: walls(), Source: fromMirror(t, m, remote, "work"), Dir: filepath.Join(house, "w"), Branch: "work"}
	w, err := Create(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Merge(t.Context(), fromMirror(t, m, remote, "main"), "main"); err != nil {
		t.Fatal(err)
	}
	s, pack := stored(t, w)
	onto := strings.TrimSpace(git(t, path, "rev-parse", "main"))
	if s.Onto != onto {
		t.Errorf("%+v", s)
	}
	git(t, path, "commit", "-q", "--allow-empty", "-m", "main goes on")
	there := mirrorsIn(filepath.Join(house, "m2"))
	opt.Source, opt.Dir = fromMirror(t, there, remote, "work"), filepath.Join(house, "w2")
	opt.Restore = &Restore{Stored: s, Branch: "main", Pack: whole(pack)}
	if w, err = Create(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	if err := w.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Tree(), "README.md"), "both\n")
	id := commit(t, w, "resolved")
	if parents := strings.Fields(git(t, w.GitDir(), "log", "-1", "--format=%P", id)); len(parents) != 2 || parents[1] != onto {
		t.Errorf("parents %q", parents)
	}
}
