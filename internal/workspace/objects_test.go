package workspace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/disk/disktest"
)

// What a commit holds is read from git's objects, whatever became of the tree.
func TestFilesOfACommit(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	big := strings.Repeat("x", 200_000)
	for name, text := range map[string]string{"a b/ü\n.txt": "odd name\n", "empty": "", "big": big, "dir/sub/f": "f\n", "[x]*": "not a pattern\n", "huge": strings.Repeat("y", maxRead+1)} {
		write(t, filepath.Join(path, name), text)
	}
	if err := errors.Join(os.Symlink("dir/sub/f", filepath.Join(path, "link")), os.Chmod(filepath.Join(path, "empty"), 0o755)); err != nil {
		t.Fatal(err)
	}
	git(t, path, "add", ".")
	git(t, path, "commit", "-q", "-m", "files")
	w := create(t, path)
	for _, name := range []string{"a b", "big", "empty", "dir"} { // the model's doing
		if err := os.RemoveAll(filepath.Join(w.Tree(), name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(w.Tree(), "README.md"), "changed\n")

	byPath := map[string]Entry{}
	var order []string
	if err := w.Files(t.Context(), w.Base(), func(e Entry) error {
		byPath[e.Path] = e
		order = append(order, e.Path)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"README.md", "[x]*", "a b/ü\n.txt", "big", "dir/sub/f", "empty", "huge", "link", "src/main.go"}; !slices.Equal(order, want) {
		t.Fatalf("%q", order)
	}
	if byPath["link"].Mode != ModeLink || byPath["empty"].Mode != ModeProgram || byPath["big"].Mode != ModeFile {
		t.Errorf("%+v", byPath)
	}
	found, err := w.Find(t.Context(), w.Base(), []string{"dir/sub/f", "dir/", "[x]*", "link/x", "no", "../x", "a b/ü\n.txt"})
	if err != nil || len(found) != 3 || found["dir/sub/f"] != byPath["dir/sub/f"] || found["[x]*"] != byPath["[x]*"] {
		t.Errorf("%+v %v", found, err)
	}
	var ids []string
	for _, e := range byPath {
		ids = append(ids, e.ID)
	}
	absent := strings.Repeat("0", len(w.Base()))
	blobs, err := w.Blobs(t.Context(), append(ids, absent, w.Base()), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"README.md": "hello\n", "empty": "", "big": big[:1000], "link": "dir/sub/f", "a b/ü\n.txt": "odd name\n", "huge": ""} {
		if b, ok := blobs[byPath[name].ID]; !ok || string(b.Data) != want {
			t.Errorf("%q: %v %.100q", name, ok, b.Data)
		}
	}
	if blobs[byPath["big"].ID].Size != int64(len(big)) || blobs[byPath["huge"].ID].Size != maxRead+1 {
		t.Error("sizes are not those of the whole")
	}
	if len(blobs) != len(byPath) {
		t.Errorf("%d blobs of %d: what is no blob is told", len(blobs), len(byPath))
	}

	stop := errors.New("enough")
	if err := w.Files(t.Context(), w.Base(), func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	for _, bad := range []string{"HEAD", "--help", "", absent} {
		if err := w.Files(t.Context(), bad, func(Entry) error { return nil }); err == nil {
			t.Errorf("%q was listed", bad)
		}
		if _, err := w.Find(t.Context(), bad, []string{"x"}); err == nil {
			t.Errorf("%q was searched", bad)
		}
	}
	if _, err := w.Blobs(t.Context(), []string{"HEAD"}, 10); err == nil {
		t.Error("a name is taken for an id")
	}
}

// FuzzBatch feeds the reader of git's answers in pieces: the same blobs come out
// however they are cut, and nothing panics.
func FuzzBatch(f *testing.F) {
	f.Add([]byte("aa blob 3\nabc\nbb missing\ncc tree 2\nxx\ndd blob 0\n\n"), 1)
	f.Add([]byte("aa blob -1\n"), 2)
	f.Add([]byte("aa blob 99999999999999999999\n"), 3)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		defer disktest.Bounded(t, len(data))()
		read := func(step int) (map[string]Blob, error) {
			all := map[string]Blob{}
			r := &batchReader{most: 2, content: true, stop: func() {}, each: func(id string, b Blob) { all[id] = b }}
			for chunk := range slices.Chunk(data, step) {
				if _, err := r.Write(bytes.Clone(chunk)); err != nil {
					return all, err
				}
			}
			return all, nil
		}
		if len(data) == 0 {
			return
		}
		whole, werr := read(len(data))
		cut, cerr := read(1 + (step&0xff)%len(data))
		if (werr == nil) != (cerr == nil) || len(whole) != len(cut) {
			t.Fatalf("%v %v %v %v", whole, werr, cut, cerr)
		}
		for id, b := range whole {
			if string(cut[id].Data) != string(b.Data) || len(b.Data) > 2 || int64(len(b.Data)) > b.Size {
				t.Fatalf("%+v %+v", b, cut[id])
			}
		}
	})
}

// Where work left a branch is a commit that the branch once stood at: not one
// that only came with something merged into it.
func TestFork(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	commit := func(name string) string {
		write(t, filepath.Join(path, name), name)
		git(t, path, "add", ".")
		git(t, path, "commit", "-q", "-m", name)
		return strings.TrimSpace(git(t, path, "rev-parse", "HEAD"))
	}
	first := commit("first")
	git(t, path, "checkout", "-q", "-b", "topic")
	commit("hidden")
	git(t, path, "branch", "sly") // begins at what is merged into main, and that nobody looked at as such
	commit("topic")
	git(t, path, "checkout", "-q", "main")
	second := commit("second")
	git(t, path, "merge", "-q", "--no-ff", "-m", "merge", "topic")
	merged := strings.TrimSpace(git(t, path, "rev-parse", "HEAD"))
	git(t, path, "checkout", "-q", "-b", "work", second)
	commit("work")
	git(t, path, "checkout", "-q", "-b", "ahead", "main")
	commit("ahead")
	git(t, path, "checkout", "-q", "--orphan", "alone")
	commit("alone")

	m := mirrorsIn(filepath.Join(t.TempDir(), "m"))
	for from, want := range map[string]string{"work": second, "ahead": merged, "main": merged, "sly": first, "alone": ""} {
		src := fromMirror(t, m, Remote{URL: "file://" + path}, from)
		if got, err := src.Fork(t.Context(), "main"); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", from, got, err, want)
		}
		if _, err := src.Fork(t.Context(), "no-such"); err == nil {
			t.Error("a branch that is not there")
		}
	}
}
