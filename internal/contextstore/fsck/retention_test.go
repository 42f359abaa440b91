package fsck

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/task"
)

// later is the store of a base directory in some days.
func later(t *testing.T, base string, days int, fs *disk.FS) *contextstore.Store {
	t.Helper()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, FS: fs, Redact: func(s string) string { return s }, OnIndexError: func(error) {},
		Now: func() time.Time { return time.Now().AddDate(0, 0, days) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var retention = contextstore.Retention{Gzip: 7 * 24 * time.Hour, Slim: 30 * 24 * time.Hour, Delete: 90 * 24 * time.Hour}

// retain does what a run is due for in some days; none is for room alone.
func retain(t *testing.T, base string, days int, fs *disk.FS, dry bool) (all []contextstore.Retained, err error) {
	t.Helper()
	r := retention
	if days == 0 {
		r = contextstore.Retention{MaxBytes: 1}
	}
	return retainBy(t, base, days, fs, r, dry)
}

func retainBy(t *testing.T, base string, days int, fs *disk.FS, r contextstore.Retention, dry bool) (all []contextstore.Retained, err error) {
	t.Helper()
	s := later(t, base, days, fs)
	err = s.Retain(t.Context(), r, dry, func(r contextstore.Retained) { all = append(all, r) })
	return all, errors.Join(err, s.Close())
}

// linesOf are the lines of a log as a View has them, and as many by number.
func linesOf(t *testing.T, dir, log string) (all []string, numbered int) {
	t.Helper()
	v, err := contextstore.ReadView(dir)
	must(t, err)
	must(t, v.Tail(log, -1, func(b []byte) error { all = append(all, string(b)); return nil }))
	if log == contextstore.Messages {
		l, err := v.MessageLog()
		must(t, err)
		n, err := l.Count()
		must(t, errors.Join(err, l.Close()))
		numbered = int(n)
	}
	return all, numbered
}

// A run loses its parts by its age; what is left is whole for every reader, and tori check has
// nothing to say. A dry call changes nothing, and what has not ended is left alone.
func TestRetention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		days int
		step contextstore.RetentionStep
	}{{6, ""}, {7, contextstore.StepGzip}, {30, contextstore.StepSlim}, {90, contextstore.StepDelete}} {
		base, dir := healthy(t, task.Completed)
		messages, n := linesOf(t, dir, contextstore.Messages)
		tools, _ := linesOf(t, dir, contextstore.Tools)
		for _, dry := range []bool{true, false} {
			done, err := retain(t, base, c.days, &disk.FS{}, dry)
			must(t, err)
			if c.step == "" && len(done) > 0 || c.step != "" && (len(done) != 1 || done[0].Step != c.step || done[0].UUID != filepath.Base(dir) || done[0].Freed <= 0) {
				t.Fatalf("%d days, dry %v: %+v", c.days, dry, done)
			}
			if _, err := os.Stat(filepath.Join(dir, contextstore.Messages)); dry && err != nil {
				t.Fatalf("%d days: %v", c.days, err)
			}
		}
		if again, err := retain(t, base, c.days, &disk.FS{}, false); err != nil || len(again) > 0 {
			t.Errorf("%d days, again: %+v, %v", c.days, again, err)
		}
		_, err := os.Stat(dir)
		switch c.step {
		case contextstore.StepDelete:
			l, lerr := contextstore.List(t.Context(), base, contextstore.Viewer{Admin: true}, contextstore.Filter{})
			if !errors.Is(err, os.ErrNotExist) || lerr != nil || l.Total != 0 {
				t.Errorf("it is there: %v, %+v, %v", err, l, lerr)
			}
		case contextstore.StepSlim:
			if all, _ := linesOf(t, dir, contextstore.Messages); len(all) > 0 || !contextstore.Slimmed(dir) {
				t.Errorf("%d messages are left", len(all))
			}
			if all, _ := linesOf(t, dir, contextstore.Summaries); len(all) == 0 {
				t.Error("no summary is left")
			}
		default:
			if all, count := linesOf(t, dir, contextstore.Messages); !slices.Equal(all, messages) || count != n {
				t.Errorf("%d days: %d of %d messages", c.days, count, n)
			}
			if all, _ := linesOf(t, dir, contextstore.Tools); !slices.Equal(all, tools) {
				t.Errorf("%d days: tools %q", c.days, all)
			}
		}
		if r := check(t, base, false); len(r.Findings) > 0 {
			t.Errorf("%d days: %v", c.days, kinds(r))
		}
	}
	base, dir := healthy(t, task.Running)
	if done, err := retain(t, base, 999, &disk.FS{}, false); err != nil || len(done) > 0 || !strings.Contains(dir, contextstore.DirRunning) {
		t.Errorf("of a run that goes on: %+v, %v", done, err)
	}
}

// Whichever call fails, and whatever a power cut leaves: a run has its messages plain, compressed
// or, where that was due, not at all; the next call ends what was begun.
func TestRetentionCutShort(t *testing.T) {
	t.Parallel()
	whole := func(base string, days int, want []string, how string) {
		t.Helper()
		look := func(when string, over bool) {
			t.Helper()
			l, err := contextstore.List(t.Context(), base, contextstore.Viewer{Admin: true}, contextstore.Filter{})
			must(t, err)
			removes := days == 0 || days >= 90
			if len(l.Views) == 0 {
				if !removes {
					t.Fatalf("%s, %s: the run is gone", how, when)
				}
				return
			}
			if removes && over {
				t.Fatalf("%s, %s: the run is there", how, when)
			}
			all, _ := linesOf(t, l.Views[0].Dir, contextstore.Messages)
			if gone := len(all) == 0 && contextstore.Slimmed(l.Views[0].Dir); !gone && !slices.Equal(all, want) || gone && days != 30 || over && days == 30 && !gone {
				t.Fatalf("%s, %s: %d of %d messages, gone %v", how, when, len(all), len(want), gone)
			}
		}
		look("at once", false)
		if r := check(t, base, false); slices.ContainsFunc(kinds(r), func(k string) bool { return k != "temporary" && k != "lock" && k != "stray_row" }) {
			t.Fatalf("%s: %v", how, kinds(r))
		}
		if _, err := retain(t, base, days, &disk.FS{}, false); err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		look("then", true)
		if r := check(t, base, false); slices.Contains(kinds(r), "stray_row") {
			t.Fatalf("%s, then: %v", how, kinds(r))
		}
		if half, err := filepath.Glob(filepath.Join(base, ".removed-*")); err != nil || len(half) > 0 {
			t.Fatalf("%s: %v", how, half)
		}
	}
	for _, days := range []int{0, 7, 30, 90} {
		for at := 1; ; at++ {
			base, dir := healthy(t, task.Completed)
			want, _ := linesOf(t, dir, contextstore.Messages)
			f, armed := &disktest.Failer{At: at, Err: io.ErrShortWrite}, false
			s := later(t, base, days, &disk.FS{Before: func(op disk.Op) error {
				if !armed {
					return nil
				}
				return f.Before(op)
			}})
			armed = true
			r := retention
			if days == 0 {
				r = contextstore.Retention{MaxBytes: 1}
			}
			err := s.Retain(t.Context(), r, false, func(contextstore.Retained) {})
			armed = false
			must(t, s.Close())
			if f.Hit().Kind == "" {
				must(t, err)
				break
			}
			whole(base, days, want, string(f.Hit().Kind))
		}
		base := t.TempDir()
		rec, err := disktest.NewRecorder(base)
		must(t, err)
		s := open(t, contextstore.Options{BaseDir: base, FS: rec.Watch(&disk.FS{})})
		c := begin(t, s)
		for range 30 {
			if _, err := c.Append(contextstore.Message{Role: "user", Content: strings.Repeat("please do it well. ", 20)}); err != nil {
				t.Fatal(err)
			}
		}
		must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "summed up"}))
		must(t, s.Close())
		dirs, err := filepath.Glob(filepath.Join(base, contextstore.DirCompleted, "*"))
		must(t, err)
		want, _ := linesOf(t, dirs[0], contextstore.Messages)
		from := rec.Len()
		if _, err := retain(t, base, days, rec.Watch(&disk.FS{}), false); err != nil {
			t.Fatal(err)
		}
		n, err := rec.PowerCuts(from, func(state disktest.State) {
			cut := t.TempDir()
			must(t, state.Materialize(cut))
			whole(cut, days, want, state.How)
		})
		if err != nil || n.Checked < 3 {
			t.Errorf("%d days: %+v, %v", days, n, err)
		}
	}
}

// runs makes ended runs of one key after another, a minute between their ends, and returns their
// uuids, the oldest first.
func runs(t *testing.T, base string, keys []task.Key, ends []task.Status) (all []string) {
	t.Helper()
	at := time.Now().Add(-time.Hour)
	s := open(t, contextstore.Options{BaseDir: base, Now: func() time.Time { return at }})
	for i, k := range keys {
		at = at.Add(time.Minute)
		id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: k})
		must(t, err)
		c, _, err := s.Claim(t.Context(), id)
		must(t, err)
		_, err = c.Append(contextstore.Message{Role: "user", Content: strings.Repeat("please do it well. ", 500)})
		must(t, err)
		must(t, c.Transition(t.Context(), task.Outcome{Status: ends[i], Summary: "summed up"}))
		all = append(all, id)
	}
	must(t, s.Close())
	return all
}

func keyOf(owner, repo, id string) task.Key {
	return task.Key{Source: "github", Owner: owner, Repo: repo, Type: "issue", ID: id}
}

// Rules take the place of the general periods for the runs that they name, the first that fits.
func TestRetentionRules(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	all := runs(t, base, []task.Key{keyOf("acme", "widgets", "1"), keyOf("acme", "widgets", "2"), keyOf("acme", "tools", "1"), keyOf("other", "tools", "1"), keyOf("acme", "law", "1")},
		[]task.Status{task.Completed, task.Failed, task.Completed, task.Completed, task.Failed})
	day := 24 * time.Hour
	r := contextstore.Retention{Gzip: 7 * day, Rules: []contextstore.RetentionRule{{Repo: "law", Keep: true}, {Status: task.Failed, Delete: 5 * day}, {Repo: "acme/tools", Slim: 6 * day}}}
	for _, dry := range []bool{true, false} {
		done, err := retainBy(t, base, 8, &disk.FS{}, r, dry)
		must(t, err)
		got := map[string]contextstore.RetentionStep{}
		for _, d := range done {
			got[d.UUID] = d.Step
		}
		if len(got) != 4 || got[all[0]] != contextstore.StepGzip || got[all[1]] != contextstore.StepDelete || got[all[2]] != contextstore.StepSlim || got[all[3]] != contextstore.StepGzip {
			t.Errorf("dry %v: %+v", dry, done)
		}
	}
}

// Where ended runs take too much the oldest go until it is enough, a dry call says which, and who
// is near the limit is told.
func TestRetentionRoom(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var keys []task.Key
	var ends []task.Status
	for i := range 5 {
		keys, ends = append(keys, keyOf("acme", "widgets", string(rune('1'+i)))), append(ends, task.Completed)
	}
	all := runs(t, base, keys, ends)
	total, _, _, err := contextstore.DiskUse(base, []string{contextstore.DirCompleted}, contextstore.Viewer{Admin: true})
	must(t, err)
	near := int64(0)
	r := contextstore.Retention{MaxBytes: total * 7 / 10, Near: func(n int64) { near = n }}
	s := later(t, base, 0, nil)
	if did, err := s.Keep(t.Context(), all[1], "ken", false); err != nil || !did {
		t.Fatal(did, err)
	}
	must(t, s.Close())
	for _, dry := range []bool{true, false} {
		near = 0
		done, err := retainBy(t, base, 0, &disk.FS{}, r, dry)
		must(t, err)
		if len(done) != 2 || done[0].UUID != all[0] || done[1].UUID != all[2] || done[0].Step != contextstore.StepRoom || done[0].Freed <= 0 {
			t.Errorf("dry %v: %+v", dry, done)
		}
		if near != 0 {
			t.Errorf("dry %v: %d of %d", dry, near, r.MaxBytes)
		}
	}
	r.MaxBytes = total * 3 / 5 * 21 / 20 // and a bit
	if done, err := retainBy(t, base, 0, &disk.FS{}, r, false); err != nil || len(done) > 0 || near < r.MaxBytes/10*9 || near > r.MaxBytes {
		t.Errorf("%+v, %v, near %d of %d", done, err, near, r.MaxBytes)
	}
	if r := check(t, base, false); len(r.Findings) > 0 {
		t.Error(kinds(r))
	}
}

// A run that is kept loses nothing, over a reindex too; released it is as others. Whichever call
// fails, it is kept or not, and whole.
func TestKeptRunsStay(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		base, dir := healthy(t, task.Completed)
		f, armed := &disktest.Failer{At: at, Err: io.ErrShortWrite}, false
		s := later(t, base, 0, &disk.FS{Before: func(op disk.Op) error {
			if !armed {
				return nil
			}
			return f.Before(op)
		}})
		armed = true
		_, err := s.Keep(t.Context(), filepath.Base(dir), "ken", false)
		armed = false
		must(t, s.Close())
		if (err == nil) != (f.Hit().Kind == "") || err == nil && !contextstore.IsKept(dir) {
			t.Fatalf("%v: %v", f.Hit(), err)
		}
		kept := contextstore.IsKept(dir)
		if r := check(t, base, true); slices.ContainsFunc(kinds(r), func(k string) bool { return k != "temporary" }) {
			t.Fatalf("%v: %v", f.Hit(), kinds(r))
		}
		if kept {
			if _, err := Reindex(t.Context(), base, nil); err != nil {
				t.Fatal(err)
			}
		}
		if done, err := retain(t, base, 999, &disk.FS{}, false); err != nil || len(done) > 0 && kept || len(done) == 0 && !kept {
			t.Fatalf("%v: kept %v, %+v, %v", f.Hit(), kept, done, err)
		}
		if err != nil {
			continue
		}
		s = later(t, base, 0, nil)
		if did, err := s.Keep(t.Context(), filepath.Base(dir), "ken", false); did || err != nil {
			t.Errorf("again: %v, %v", did, err)
		}
		if did, err := s.Keep(t.Context(), filepath.Base(dir), "ken", true); !did || err != nil {
			t.Errorf("release: %v, %v", did, err)
		}
		if _, err := s.Keep(t.Context(), "nobody", "ken", false); !errors.Is(err, contextstore.ErrNotFound) {
			t.Error(err)
		}
		must(t, s.Close())
		if done, err := retain(t, base, 999, &disk.FS{}, false); err != nil || len(done) != 1 {
			t.Errorf("%+v, %v", done, err)
		}
		break
	}
}

// A run that a newer program wrote is left alone whatever its age, and said; so is a log
// whose end is torn, which tori check can mend only while it is not compressed.
func TestRetentionLeavesAlone(t *testing.T) {
	t.Parallel()
	for _, days := range []int{7, 30, 90} {
		base, dir := healthy(t, task.Completed)
		edit(t, filepath.Join(dir, contextstore.MetadataFile), `"format":1`, `"format":99`)
		for _, dry := range []bool{true, false} {
			if done, err := retain(t, base, days, &disk.FS{}, dry); len(done) > 0 || !errors.Is(err, contextstore.ErrNewerFormat) {
				t.Errorf("%d days, dry %v: %+v, %v", days, dry, done, err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, contextstore.Messages)); err != nil {
			t.Errorf("%d days: %v", days, err)
		}
	}
	base, dir := healthy(t, task.Completed)
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, contextstore.Messages), os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		_, err = f.WriteString(text)
		must(t, errors.Join(err, f.Close()))
	}
	write(`{"seq":`)
	if done, err := retain(t, base, 7, &disk.FS{}, false); len(done) > 0 || err == nil || !strings.Contains(err.Error(), "tori check") {
		t.Fatalf("%+v, %v", done, err)
	}
	if r := check(t, base, true); r.Left > 0 {
		t.Fatalf("%v", kinds(r))
	}
	write(`{"seq":99,"role":"assistant","content":"what no checkpoint knows of","timestamp":"2024-01-01T00:00:00.000000Z"}` + "\n")
	if done, err := retain(t, base, 7, &disk.FS{}, false); err != nil || len(done) != 1 {
		t.Errorf("once it is mended: %+v, %v", done, err)
	}
}

// Whoever ends retention by a signal finds no row of a run that is gone; a row that could not be
// dropped is dropped the next time.
func TestRetentionDropsRows(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	runs(t, base, []task.Key{keyOf("acme", "widgets", "1"), keyOf("acme", "widgets", "2"), keyOf("acme", "widgets", "3")}, []task.Status{task.Completed, task.Completed, task.Failed})
	s := later(t, base, 91, &disk.FS{})
	ctx, interrupt := context.WithCancel(t.Context())
	s.FS.Before = func(op disk.Op) error {
		if op.Kind == disk.Rename {
			interrupt()
		}
		return nil
	}
	if err := s.Retain(ctx, retention, false, func(contextstore.Retained) {}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	must(t, s.Close())
	if r := check(t, base, false); len(r.Findings) > 0 || r.Contexts != 2 {
		t.Errorf("%d contexts, %v", r.Contexts, kinds(r))
	}
}
