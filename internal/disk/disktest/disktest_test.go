package disktest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/disk"
)

// toy is a program with a log and a document, in one of several qualities.
type toy struct {
	t    *testing.T
	fs   *disk.FS
	rec  *Recorder
	base string
}

func (p toy) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p toy) path(name string) string { return filepath.Join(p.base, name) }

// logs appends three lines and acknowledges each where ack says.
func (p toy) logs(dirSynced, fileSynced bool) {
	f, err := p.fs.OpenAppend(p.path("log"))
	p.must(err)
	defer f.Close()
	if dirSynced {
		p.must(p.fs.SyncDir(p.base))
	}
	for i := range 3 {
		_, err := f.Append(fmt.Appendf(nil, "line %d\n", i))
		p.must(err)
		if fileSynced {
			p.must(f.Sync())
		}
		p.rec.Ack("log", i+1)
	}
}

// documents replaces a document three times.
func (p toy) documents(replace func(version string) error) {
	for i := range 3 {
		version := fmt.Sprintf("version %d", i)
		p.must(replace(version))
		p.rec.Ack("doc", version)
	}
}

// byHand replaces the document by its own means, which it may get wrong.
func (p toy) byHand(version string, fileSynced, dirSynced bool) error {
	f, err := p.fs.OpenAppend(p.path("new"))
	p.must(err)
	_, err = f.Append([]byte(version))
	p.must(err)
	if fileSynced {
		p.must(f.Sync())
	}
	p.must(f.Close())
	p.must(os.Rename(p.path("new"), p.path("doc")))
	p.fs.Trace(disk.Event{Kind: disk.Renamed, Path: p.path("new"), To: p.path("doc")})
	if dirSynced {
		return p.fs.SyncDir(p.base)
	}
	return nil
}

// broken is what is wrong with a state by the toy's promises, "" for nothing:
// acknowledged lines are there, the document is the acknowledged version or the
// next one, whole.
func broken(s State) string {
	lines, doc, next := 0, "", ""
	for _, a := range s.Acks {
		switch a.Name {
		case "log":
			lines = a.Value.(int)
		case "doc":
			doc = a.Value.(string)
		}
	}
	if len(s.Next) > 0 && s.Next[0].Name == "doc" {
		next = s.Next[0].Value.(string)
	}
	for i := range lines {
		if !bytes.Contains(s.Files["log"], fmt.Appendf(nil, "line %d\n", i)) {
			return fmt.Sprintf("line %d is lost", i)
		}
	}
	got, there := s.Files["doc"]
	if !there && doc == "" || there && (string(got) == doc || string(got) == next) {
		return ""
	}
	return fmt.Sprintf("document is %q, acknowledged was %q", got, doc)
}

func TestHarnessTellsRightFromWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		run   func(p toy)
		wrong string // a part of what is found
	}{
		{"append and sync", func(p toy) { p.logs(true, true) }, ""},
		{"replace", func(p toy) {
			p.documents(func(v string) error { return p.fs.Replace(p.path("doc"), []byte(v), true) })
		}, ""},
		{"both", func(p toy) {
			p.logs(true, true)
			p.documents(func(v string) error { return p.fs.Replace(p.path("doc"), []byte(v), true) })
		}, ""},
		{"replace by hand", func(p toy) {
			p.documents(func(v string) error { return p.byHand(v, true, true) })
		}, ""},
		{"acknowledged before the sync", func(p toy) { p.logs(true, false) }, "is lost"},
		{"new file without a sync of its directory", func(p toy) { p.logs(false, true) }, "line 0 is lost"},
		{"replace that is not durable", func(p toy) {
			p.documents(func(v string) error { return p.fs.Replace(p.path("doc"), []byte(v), false) })
		}, "document is"},
		{"rename without a sync of the file", func(p toy) {
			p.documents(func(v string) error { return p.byHand(v, false, true) })
		}, "document is"},
		{"rename without a sync of the directory", func(p toy) {
			p.documents(func(v string) error { return p.byHand(v, true, false) })
		}, "document is \"\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := record(t)
			c.run(p)
			found := map[string]string{}
			n, err := p.rec.PowerCuts(0, func(s State) {
				if what := broken(s); what != "" {
					found[what] = s.How
				}
			})
			if err != nil || n.Checked < 3 || n.States < n.Checked || n.Moments != p.rec.Len()+1 {
				t.Fatalf("%+v %v", n, err)
			}
			if c.wrong == "" && len(found) > 0 {
				t.Errorf("found %q\n%s", found, p.rec)
			}
			if c.wrong != "" && !strings.Contains(fmt.Sprint(found), c.wrong) {
				t.Errorf("found %q, not %q\n%s", found, c.wrong, p.rec)
			}
		})
	}
}

func record(t *testing.T) toy {
	base := t.TempDir()
	rec, err := NewRecorder(base)
	if err != nil {
		t.Fatal(err)
	}
	return toy{t, rec.Watch(&disk.FS{}), rec, base}
}

// What a power cut makes of two lines of which one was synced, spelled out.
func TestStatesOfOneWrite(t *testing.T) {
	t.Parallel()
	p := record(t)
	f, err := p.fs.OpenAppend(p.path("log"))
	p.must(err)
	defer f.Close()
	_, err = f.Append([]byte("ab\n"))
	p.must(err)
	p.must(f.Sync())
	p.must(p.fs.SyncDir(p.base))
	from := p.rec.Len()
	_, err = f.Append([]byte("cdef\n"))
	p.must(err)
	got := map[string]bool{}
	_, err = p.rec.PowerCuts(from+1, func(s State) { got[string(s.Files["log"])] = true })
	p.must(err)
	want := map[string]bool{}
	for _, s := range []string{"ab\n", "ab\ncdef\n", "ab\nc", "ab\ncd", "ab\ncdef", "ab\n\x00\x00\x00\x00\x00", "ab\ncd\x00\x00\x00"} {
		want[s] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A renamed directory is at one of its two places, never at both or neither.
func TestRenameIsAtomic(t *testing.T) {
	t.Parallel()
	p := record(t)
	p.must(p.fs.MkdirAll(p.path("a/x")))
	p.must(p.fs.MkdirAll(p.path("b")))
	p.must(p.fs.Replace(p.path("a/x/f"), []byte("content"), true))
	from := p.rec.Len()
	p.must(p.fs.Rename(p.path("a/x"), p.path("b/x")))
	places := map[string]bool{}
	_, err := p.rec.PowerCuts(from, func(s State) {
		_, a := s.Files["a/x/f"]
		_, b := s.Files["b/x/f"]
		places[fmt.Sprint(a, b)] = true
	})
	p.must(err)
	if d := cmp.Diff(map[string]bool{"true false": true, "false true": true}, places); d != "" {
		t.Error(d)
	}
}

func TestStopper(t *testing.T) {
	t.Parallel()
	p := record(t)
	s := &Stopper{At: 3, Torn: true}
	p.fs.Before = s.Before
	f, err := p.fs.OpenAppend(p.path("log"))
	p.must(err)
	defer f.Close()
	_, err = f.Append([]byte("one\n"))
	p.must(err)
	if _, err := f.Append([]byte("two\n")); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	// The dead clear up nothing and do nothing more.
	if b, _ := os.ReadFile(p.path("log")); string(b) != "one\ntw" {
		t.Errorf("%q", b)
	}
	for _, err := range []error{p.fs.Replace(p.path("doc"), nil, false), p.fs.Remove(p.path("log")), p.fs.RemoveAll(p.base), p.fs.Rename(p.path("log"), p.path("b")),
		p.fs.MkdirAll(p.path("d")), p.fs.SyncDir(p.base), f.Truncate(0)} {
		if !errors.Is(err, ErrStopped) {
			t.Errorf("after the end: %v", err)
		}
	}
	if s.Hit().Kind != disk.Append || s.Calls() != 11 {
		t.Errorf("stopped at %v of %d calls", s.Hit(), s.Calls())
	}
}

func TestFailer(t *testing.T) {
	t.Parallel()
	for _, short := range []bool{false, true} {
		p := record(t)
		s := &Failer{At: 2, Err: syscall.ENOSPC, Short: short}
		p.fs.Before = s.Before
		f, err := p.fs.OpenAppend(p.path("log"))
		p.must(err)
		if _, err := f.Append([]byte("one\n")); !errors.Is(err, syscall.ENOSPC) || s.Hit().Bytes != 4 {
			t.Fatal(err, s.Hit())
		}
		_, err = f.Append([]byte("two\n"))
		p.must(err)
		p.must(f.Close())
		if b, _ := os.ReadFile(p.path("log")); string(b) != "two\n" {
			t.Errorf("%q", b)
		}
	}
}

func TestMaterialize(t *testing.T) {
	t.Parallel()
	s := State{Dirs: []string{"a", "a/b"}, Files: map[string][]byte{"a/b/f": []byte("x"), "g": nil}}
	dir := t.TempDir()
	if err := s.Materialize(dir); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"a": "/", "a/b": "/", "a/b/f": "x", "g": ""}, tree(t, dir)); d != "" {
		t.Error(d)
	}
}

// tree is what a directory holds, directories as "/".
func tree(t interface{ Fatal(...any) }, dir string) map[string]string {
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		if err != nil || rel == "." {
			return err
		}
		if got[rel] = "/"; !d.IsDir() {
			b, err := os.ReadFile(p)
			got[rel] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Whatever calls are made, some of them failing, the model knows what the disk
// holds; what was synced is in every state; and the order of what is pending
// never makes a state that holds an entry of nothing.
func TestModelAgreesWithTheDisk(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		base, err := os.MkdirTemp(parent, "*")
		if err != nil {
			rt.Fatal(err)
		}
		rec, err := NewRecorder(base)
		if err != nil {
			rt.Fatal(err)
		}
		d := rec.Watch(&disk.FS{Before: func(disk.Op) error {
			if rapid.IntRange(0, 9).Draw(rt, "fault") == 0 {
				return &disk.ShortWrite{N: 2, Err: syscall.EIO}
			}
			return nil
		}})
		names := rapid.SampledFrom([]string{"a", "b", "d/a", "d/b", "d/e/a", "f"})
		at := func(what string) string { return filepath.Join(base, names.Draw(rt, what)) }
		open := map[string]*disk.File{}
		defer func() {
			for _, f := range open {
				_ = f.Close()
			}
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"open": func(*rapid.T) {
				p := at("path")
				if f, err := d.OpenAppend(p); err == nil {
					if old := open[p]; old != nil {
						_ = old.Close()
					}
					open[p] = f
				}
			},
			"append": func(*rapid.T) {
				if f := open[at("path")]; f != nil {
					if _, err := f.Append([]byte(rapid.StringN(1, 9, 9).Draw(rt, "data"))); err == nil && rapid.Bool().Draw(rt, "sync") {
						_ = f.Sync()
					}
				}
			},
			"truncate": func(*rapid.T) {
				if f := open[at("path")]; f != nil {
					_ = f.Truncate(f.Size() / 2)
				}
			},
			"replace": func(*rapid.T) { _ = d.Replace(at("path"), []byte("replaced"), rapid.Bool().Draw(rt, "durable")) },
			"rename":  func(*rapid.T) { _ = d.Rename(at("path"), at("to")) },
			"remove":  func(*rapid.T) { _ = d.Remove(at("path")) },
			"mkdir":   func(*rapid.T) { _ = d.MkdirAll(filepath.Dir(at("path"))) },
			"all":     func(*rapid.T) { _ = d.RemoveAll(filepath.Join(base, "d")) },
			"":        func(*rapid.T) {},
		})
		m := newModel(rec.rel)
		for i, e := range rec.entries {
			if err := m.take(e.event, rec.describe(e.event)); err != nil {
				rt.Fatalf("entry %d: %v\n%s", i, err, rec)
			}
		}
		got := map[string]string{}
		w := &cutter{m: m, seen: map[[32]byte]bool{}, check: func(s State) {
			for _, d := range s.Dirs {
				got[d] = "/"
			}
			for f, b := range s.Files {
				got[f] = string(b)
			}
		}}
		w.state(m.now, "", "", nil)
		if d := cmp.Diff(tree(rt, base), got); d != "" {
			rt.Fatalf("%s\n%s", d, rec)
		}
		if n, err := rec.PowerCuts(0, func(State) {}); err != nil || n.Moments != len(rec.entries)+1 {
			rt.Fatal(n, err)
		}
		// With everything settled nothing can be lost.
		m.settle(func(*change) bool { return true })
		if d := cmp.Diff(m.now, m.durable, cmp.AllowUnexported(image{}), cmp.Comparer(bytes.Equal)); d != "" {
			rt.Fatalf("%s\n%s", d, rec)
		}
	})
}
