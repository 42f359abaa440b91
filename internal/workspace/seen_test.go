package workspace

import (
	"hash/maphash"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is remembered of a tree tells every change that git would see, also one that
// keeps size and modification time, and trusts none that is fresh.
func TestSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "one")
	write("b", "two")
	seed := maphash.MakeSeed()
	at := func(now time.Time) look {
		l, err := lookAt(t.Context(), dir, seed, nil, 1<<20, 100, now)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	see := func() look { return at(time.Now().Add(time.Minute)) }
	first := see()
	if again := see(); len(again.seen[""].states) != 2 {
		t.Fatalf("seen: %v", again.seen)
	} else if paths, known := again.changed(first, nil); !known || len(paths) > 0 {
		t.Fatalf("the same tree: changed %q, known %v", paths, known)
	}
	fresh := at(time.Now())
	if paths, known := fresh.changed(fresh, nil); !known || len(paths) != 2 {
		t.Errorf("a tree that has just been changed counts as settled: %q", paths)
	}
	st, err := os.Stat(path("a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct {
		name  string
		do    func() error
		paths int // -1: git has to look at all
	}{
		{"content, with size and time as before", func() error {
			write("a", "eno")
			return os.Chtimes(path("a"), st.ModTime(), st.ModTime())
		}, 1},
		{"mode", func() error { return os.Chmod(path("b"), 0o700) }, 1},
		{"new", func() error { write("c", ""); return nil }, 1},
		{"link", func() error { return os.Symlink("a", path("l")) }, 1},
		{"another name", func() error { return os.Rename(path("c"), path("d")) }, 2},
		{"gone", func() error { return os.Remove(path("b")) }, 1},
		{"what is ignored", func() error { write(".gitignore", "x\n"); return nil }, -1},
		{"a file past the limit", func() error { return os.Truncate(path("a"), 2<<20) }, -1},
		{"many", func() error {
			for i := range mostChanged + 1 {
				write("many"+strconv.Itoa(i), "")
			}
			return nil
		}, -1},
	} {
		before := see()
		if err := change.do(); err != nil {
			t.Fatal(change.name, err)
		}
		now := see()
		if paths, known := now.changed(before, nil); known != (change.paths >= 0) || known && len(paths) != change.paths {
			t.Errorf("%s: changed %q, known %v", change.name, paths, known)
		}
	}
}

// Whatever happens to a tree between two snapshots, one made of what changed alone is
// the one that git makes of the whole tree.
func TestSnapshotOfWhatChanged(t *testing.T) {
	t.Parallel()
	b := walls()
	b.MaxFileMB = 1
	w := createIn(t, newRepo(t, "repo"), b)
	w.few = 0
	names := []string{"a", "b", "d/a", "d/b", "d/e/a", "e", "x.log", "build/o", "n/r/a"}
	begin := func() {
		for _, name := range []string{"a", "b", "d", "e", "x.log", "build", "n"} {
			_ = os.RemoveAll(filepath.Join(w.Tree(), name))
		}
		write(t, filepath.Join(w.Tree(), ".gitignore"), "*.log\nbuild/\n")
	}
	snapshot := func(rt *rapid.T) string {
		s, err := w.Snapshot(t.Context(), "step")
		if err != nil {
			rt.Fatal(err)
		}
		return s.Tree
	}
	rapid.Check(t, func(rt *rapid.T) {
		begin()
		w.indexed = indexed{}
		snapshot(rt)
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			at := filepath.Join(w.Tree(), rapid.SampledFrom(names).Draw(rt, "name"))
			to := filepath.Join(w.Tree(), rapid.SampledFrom(names).Draw(rt, "to"))
			switch rapid.SampledFrom([]string{"write", "write", "remove", "link", "rename", "repository", "large", "old"}).Draw(rt, "change") {
			case "write":
				_ = os.MkdirAll(filepath.Dir(at), 0o700)
				_ = os.WriteFile(at, []byte(rapid.StringMatching("[a-c]{0,2}").Draw(rt, "text")), 0o600)
			case "remove":
				_ = os.RemoveAll(at)
			case "link":
				_ = os.Symlink(rapid.SampledFrom([]string{"a", "d"}).Draw(rt, "where"), at)
			case "rename":
				_ = os.Rename(filepath.Dir(at), filepath.Dir(to))
				_ = os.Rename(at, to)
			case "repository":
				_ = os.MkdirAll(filepath.Join(at, ".git"), 0o700)
				_ = os.WriteFile(filepath.Join(at, "in"), nil, 0o600)
			case "large":
				_ = os.Truncate(at, 2<<20)
			case "old":
				_ = os.Chtimes(at, time.Unix(1, 0), time.Unix(1, 0))
			}
			if rapid.Bool().Draw(rt, "step") {
				snapshot(rt)
			}
		}
		got := snapshot(rt)
		w.indexed = indexed{}
		if want := snapshot(rt); got != want {
			all, _ := changed(t.Context(), w.onSteps(), want, got)
			rt.Errorf("the snapshot of what changed differs from that of the whole tree: %v", all)
		}
	})
}

// A file that was left out and then removed is gone from the next snapshot.
func TestSnapshotOfWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	for _, apart := range []struct {
		name string
		do   func(dir string) error
	}{
		{"larger than the limit", func(dir string) error { return os.Truncate(filepath.Join(dir, "a"), 2<<20) }},
		{"in a repository", func(dir string) error { return os.Mkdir(filepath.Join(dir, ".git"), 0o700) }},
	} {
		t.Run(apart.name, func(t *testing.T) {
			t.Parallel()
			b := walls()
			b.MaxFileMB = 1
			w := createIn(t, newRepo(t, "repo"), b)
			w.few = 0
			dir := filepath.Join(w.Tree(), "d")
			snapshot := func() Snapshot {
				t.Helper()
				time.Sleep(2 * racy)
				s, err := w.Snapshot(t.Context(), "step")
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			write(t, filepath.Join(dir, "a"), "text")
			snapshot()
			write(t, filepath.Join(w.Tree(), "b"), "text")
			if err := apart.do(dir); err != nil {
				t.Fatal(err)
			}
			was := snapshot()
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			snapshot()
			changes, err := w.Changes(t.Context(), was.ID)
			if err != nil || len(changes) != 1 || changes[0].Path != "d/a" {
				t.Errorf("changed: %v, error %v", changes, err)
			}
		})
	}
}
