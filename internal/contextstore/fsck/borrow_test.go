package fsck

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/task"
)

// borrow writes into a paused run what a summary by hand does.
func borrow(t *testing.T, s *contextstore.Store, uuid string) error {
	t.Helper()
	return s.Borrow(t.Context(), uuid, func(c *contextstore.Context) error {
		if err := c.Activity(contextstore.Compressing, "compression"); err != nil {
			return err
		}
		sum, err := c.AppendSummary(contextstore.Summary{StartSeq: 3, EndSeq: 4, Summary: "called"})
		if err != nil {
			return err
		}
		at := int64(0)
		err = c.Messages(0, func(m contextstore.Message) bool { at = m.Offset; return m.Seq < 5 })
		return errors.Join(err, c.Activity(contextstore.Processing, "llm_call"), c.AppendWindow(contextstore.WindowEvent{Type: contextstore.WindowSummary, Summary: sum.ID, FromSeq: 5, Offset: at}))
	})
}

// Whichever call of a summary by hand fails, and whatever a power cut leaves of it: the run is paused
// as before, with its messages, and the next owner takes it up.
func TestBorrowCutShort(t *testing.T) {
	t.Parallel()
	whole := func(base, how string, want []string) {
		t.Helper()
		if r := check(t, base, true); r.Left > 0 {
			t.Fatalf("%s: %v, %d left", how, kinds(r), r.Left)
		}
		dirs, err := filepath.Glob(filepath.Join(base, contextstore.DirPaused, "*"))
		if err != nil || len(dirs) != 1 {
			t.Fatalf("%s: %v, %v", how, dirs, err)
		}
		st, err := contextstore.ReadState(dirs[0])
		if all, _ := linesOf(t, dirs[0], contextstore.Messages); err != nil || !slices.Equal(all, want) || st.TaskStatus != task.Paused {
			t.Fatalf("%s: %d of %d messages, %s, %v", how, len(all), len(want), st.TaskStatus, err)
		}
		s := later(t, base, 0, &disk.FS{})
		c, _, err := s.Claim(t.Context(), filepath.Base(dirs[0]))
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		must(t, errors.Join(c.Close(), s.Close()))
	}
	for at := 1; ; at++ {
		base, dir := healthy(t, task.Paused)
		want, _ := linesOf(t, dir, contextstore.Messages)
		f, armed := &disktest.Failer{At: at, Err: io.ErrShortWrite}, false
		s := later(t, base, 0, &disk.FS{Before: func(op disk.Op) error {
			if !armed {
				return nil
			}
			return f.Before(op)
		}})
		armed = true
		err := borrow(t, s, filepath.Base(dir))
		armed = false
		must(t, s.Close())
		if f.Hit().Kind == "" {
			must(t, err)
			if r := check(t, base, false); len(r.Findings) > 0 {
				t.Errorf("%v", kinds(r))
			}
			break
		}
		whole(base, string(f.Hit().Kind)+" "+f.Hit().Path, want)
	}
	base := t.TempDir()
	rec, err := disktest.NewRecorder(base)
	must(t, err)
	s := open(t, contextstore.Options{BaseDir: base, FS: rec.Watch(&disk.FS{})})
	c := begin(t, s)
	for range 6 {
		if _, err := c.Append(contextstore.Message{Role: "user", Content: strings.Repeat("please do it well. ", 20)}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Paused, Reason: "paused"}))
	want, _ := linesOf(t, filepath.Join(base, contextstore.DirPaused, c.UUID()), contextstore.Messages)
	from := rec.Len()
	must(t, errors.Join(borrow(t, s, c.UUID()), s.Close()))
	n, err := rec.PowerCuts(from, func(state disktest.State) {
		cut := t.TempDir()
		must(t, state.Materialize(cut))
		whole(cut, state.How, want)
	})
	if err != nil || n.Checked < 10 {
		t.Errorf("%+v, %v", n, err)
	}
}
