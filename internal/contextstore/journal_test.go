package contextstore

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/task"
)

const plansFile = "planning/x.jsonl"

// bare is a context with nothing but a directory.
func bare(fs *disk.FS, dir string) *Context {
	clean := func(s string) string { return strings.ReplaceAll(s, "hunter2hunter2", "[SECRET]") }
	return &Context{store: &Store{Options: Options{FS: fs, Redact: clean}}, dir: dir}
}

func journalLine(t interface{ Fatal(...any) }, j *Journal, v any) Line {
	l, err := j.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// journalTexts reads a journal from outside.
func journalTexts(t *testing.T, dir, name string) (all []string) {
	t.Helper()
	must(t, ReadJournal(t.Context(), dir, name, func(l JournalLine) bool { all = append(all, string(l.Text)); return true }))
	return all
}

func TestJournalOfARun(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	j, fixed, err := c.OpenJournal(plansFile)
	if err != nil || len(fixed) > 0 {
		t.Fatal(fixed, err)
	}
	syncs := s.FS.Counts().Syncs
	must(t, j.Append(journalLine(t, j, map[string]any{"type": "plan", "hunter2hunter2": "a <b> hunter2hunter2\xff"}), journalLine(t, j, map[string]int{"n": 2})))
	if got := s.FS.Counts().Syncs - syncs; got != 1 {
		t.Errorf("two lines took %d syncs", got)
	}
	want := []string{`{"[SECRET]":"a <b> [SECRET]�","type":"plan"}`, `{"n":2}`}
	if got := journalTexts(t, c.Dir(), plansFile); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	var back []string
	must(t, j.Back(func(b []byte) bool { back = append(back, string(b)); return false }))
	if !slices.Equal(back, want[1:]) {
		t.Errorf("%q", back)
	}
	for path, mode := range map[string]os.FileMode{plansFile: 0o600, "planning": 0o700 | os.ModeDir} {
		if st, err := kernel.Stat(filepath.Join(c.Dir(), path)); err != nil || st.Mode() != mode {
			t.Errorf("%s: %v %v", path, st.Mode(), err)
		}
	}
	if _, err := j.Encode([]int{1}); err == nil {
		t.Error("a line that is no object")
	}
	if _, err := j.Encode(map[string]string{"x": strings.Repeat("y", MaxJournalLine)}); err == nil {
		t.Error("a line that no reader takes")
	}

	// The file moves with its context, open as it is; what comes later is refused.
	dir := c.Dir()
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed}))
	if err := j.Append(journalLine(t, j, map[string]int{"n": 3})); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	n := 0
	must(t, j.Back(func([]byte) bool { n++; return true }))
	must(t, j.Close())
	if err := ReadJournal(t.Context(), dir, plansFile, nil); !errors.Is(err, os.ErrNotExist) || n != 2 {
		t.Errorf("where the context was: %v; %d lines", err, n)
	}
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	must(t, err)
	if got := journalTexts(t, v.Dir, plansFile); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if _, _, err := c.OpenJournal(plansFile); !errors.Is(err, ErrEnded) {
		t.Errorf("opened after the end: %v", err)
	}
}

func TestJournalElsewhere(t *testing.T) {
	t.Parallel()
	c, file := bare(&disk.FS{}, t.TempDir()), filepath.Join(t.TempDir(), "plans", "x.jsonl")
	j, _, err := c.OpenJournal(file)
	must(t, err)
	must(t, j.Append(journalLine(t, j, map[string]int{"n": 1})))
	if got := journalTexts(t, c.dir, file); !slices.Equal(got, []string{`{"n":1}`}) {
		t.Errorf("%q", got)
	}
	must(t, kernel.Truncate(file, 3))
	if err := j.Append(journalLine(t, j, map[string]int{"n": 2})); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("written into a file that was cut: %v", err)
	}
	must(t, j.Close())
}

func TestJournalEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, good, cut string }{
		"whole":        {"{}\n", "{}\n", ""},
		"torn":         {"{}\n{\"a\":", "{}\n", "{\"a\":"},
		"no newline":   {"{}\n{\"a\":1}", "{}\n{\"a\":1}\n", ""},
		"NULs":         {"{}\n\x00\x00\x00", "{}\n", "\x00\x00\x00"},
		"lines of NUL": {"{}\nxx\n\x00\n", "{}\n", "xx\n\x00\n"},
		"all damaged":  {"xx", "", "xx"},
		"within":       {"xx\n{}\n", "xx\n{}\n", ""},
		"empty":        {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := bare(&disk.FS{}, t.TempDir())
			path := filepath.Join(c.dir, "x.jsonl")
			must(t, kernel.WriteFile(path, []byte(tc.text), 0o600))
			j, fixed, err := c.OpenJournal("x.jsonl")
			must(t, err)
			must(t, j.Close())
			got, _ := readFile(path)
			cut, _ := readFile(path + ".cut")
			if string(got) != tc.good || string(cut) != tc.cut || (len(fixed) > 0) != (tc.good != tc.text) {
				t.Errorf("%q, cut %q, told %q", got, cut, fixed)
			}
		})
	}
	c := bare(&disk.FS{}, t.TempDir())
	must(t, os.Symlink("/dev/zero", filepath.Join(c.dir, "x.jsonl")))
	if _, _, err := c.OpenJournal("x.jsonl"); !errors.Is(err, disk.ErrNotPlain) {
		t.Errorf("a link to a device: %v", err)
	}
}

func TestJournalIsReadCompressed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte("{\"n\":1}\nxx\n{\"n\":2}"))
	must(t, err)
	must(t, z.Close())
	path := filepath.Join(dir, "x.jsonl.gz")
	must(t, kernel.WriteFile(path, b.Bytes(), 0o600))
	if got := journalTexts(t, dir, "x.jsonl"); !slices.Equal(got, []string{`{"n":1}`, "xx", `{"n":2}`}) {
		t.Errorf("%q", got)
	}
	must(t, kernel.WriteFile(path, b.Bytes()[:b.Len()-12], 0o600))
	if err := ReadJournal(t.Context(), dir, "x.jsonl", func(JournalLine) bool { return true }); err == nil || !strings.Contains(err.Error(), "x.jsonl") {
		t.Errorf("cut short: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ReadJournal(over, dir, "x.jsonl", func(JournalLine) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("a reading that was given up: %v", err)
	}
}

// Whatever becomes of the disk and the power: what was acknowledged is there,
// nothing else is but whole lines in their order, and the next owner goes on.
func TestJournalSurvives(t *testing.T) {
	t.Parallel()
	life := func(fs *disk.FS, dir string, from int, ack func(n int)) error {
		j, _, err := bare(fs, dir).OpenJournal(plansFile)
		if err != nil {
			return err
		}
		defer func() { _ = j.Close() }()
		for n := from; n < 4; n++ {
			l, err := j.Encode(map[string]int{"n": n})
			if err == nil {
				err = j.Append(l)
			}
			if err != nil {
				return err
			}
			ack(n)
		}
		return nil
	}
	verify := func(dir string, acked int) error {
		if err := life(&disk.FS{Flush: disktest.NoFlush}, dir, 3, func(int) {}); err != nil {
			return err
		}
		var all []int
		err := ReadJournal(context.Background(), dir, plansFile, func(l JournalLine) bool {
			var v struct{ N int }
			if json.Unmarshal(l.Text, &v) != nil {
				v.N = -1
			}
			all = append(all, v.N)
			return true
		})
		// The last one is of the new owner, who does not know what was written.
		kept := all[:max(len(all)-1, 0)]
		for i, n := range kept {
			if n != i {
				return fmt.Errorf("lines %d", all)
			}
		}
		if len(kept) < acked || len(all) == 0 {
			err = errors.Join(err, fmt.Errorf("%d were acknowledged, there are %d", acked, all))
		}
		return err
	}

	base := t.TempDir()
	rec, err := disktest.NewRecorder(base)
	must(t, err)
	count := &disktest.Stopper{}
	must(t, life(rec.Watch(&disk.FS{Before: count.Before}), base, 0, func(n int) { rec.Ack("line", n) }))
	for i := range 2 * count.Calls() {
		dir, acked := t.TempDir(), 0
		s := &disktest.Stopper{At: 1 + i/2, Torn: i%2 == 1}
		if err := life(&disk.FS{Before: s.Before, Flush: disktest.NoFlush}, dir, 0, func(int) { acked++ }); !errors.Is(err, disktest.ErrStopped) {
			t.Fatalf("stop at %d: %v", s.At, err)
		}
		if err := verify(dir, acked); err != nil {
			t.Errorf("stop at %d (%v, torn %v): %v", s.At, s.Hit(), s.Torn, err)
		}
	}
	cuts, err := rec.PowerCuts(0, func(s disktest.State) {
		dir := t.TempDir()
		must(t, s.Materialize(dir))
		if err := verify(dir, len(s.Acks)); err != nil {
			t.Errorf("%s: %v", s.How, err)
		}
	})
	if err != nil || cuts.Checked < 20 {
		t.Errorf("%+v %v", cuts, err)
	}
}
