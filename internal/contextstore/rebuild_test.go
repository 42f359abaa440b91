package contextstore

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/task"
)

func alone(t *testing.T, s *Store) {
	t.Helper()
	release, err := s.house.exclusive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
}

func noConflict(t *testing.T) func(string, Row) {
	return func(stands string, left Row) { t.Errorf("%s is left out for %s", left.UUID, stands) }
}

func schemaOf(t *testing.T, i *index) []string {
	t.Helper()
	return driverRows(t, i.h.w, `SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2`)
}

func TestRebuildMakesTheSameRows(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	was := schemaOf(t, s.index)
	fill := func(add func(Metadata, State) error) error {
		for n := range 60 {
			if err := add(aTaskOf(n)); err != nil {
				return err
			}
		}
		return nil
	}
	var want []Row
	_ = fill(func(m Metadata, st State) error { want = append(want, rowOf(m, st)); return nil })
	someTasks(t, s, 30) // others, which no directory has any more
	if _, err := s.index.rebuild(t.Context(), fill, noConflict(t)); err == nil {
		t.Error("rebuilt while others may write")
	}
	alone(t, s)
	for range 2 {
		n, err := s.index.rebuild(t.Context(), fill, noConflict(t))
		if err != nil || n != 60 {
			t.Fatal(n, err)
		}
		if d := cmp.Diff(want, rowsIn(t, s.index), sameRow); d != "" {
			t.Fatal(d)
		}
		sameCounters(t, s.index)
		if d := cmp.Diff(was, schemaOf(t, s.index)); d != "" {
			t.Fatal("the schema changed: ", d)
		}
	}
	if err := s.index.put(t.Context(), Metadata{UUID: "new", TaskKey: key}, State{TaskStatus: task.Completed}); err != nil {
		t.Error(err)
	}
	sameCounters(t, s.index)
	if err := s.index.setComplete(t.Context(), true); err != nil {
		t.Error(err)
	}
	if yes, err := s.index.complete(t.Context()); err != nil || !yes {
		t.Error(yes, err)
	}
}

// aTaskOf is the same task for the same n.
func aTaskOf(n int) (Metadata, State) {
	m, st := Metadata{UUID: string(rune('A' + n)), TaskKey: key, User: "ken"}, State{TaskStatus: task.Completed, Generation: 1, TotalTokensUsed: int64(n)}
	m.TaskKey.ID = m.UUID
	if n%4 == 0 {
		st.TaskStatus = task.Paused
	}
	return m, st
}

func TestRebuildKeepsTheHighestGeneration(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	m, st := aTaskOf(0)
	st.Generation = 9
	if err := s.index.insert(t.Context(), m, st); err != nil {
		t.Fatal(err)
	}
	alone(t, s)
	for _, c := range []struct{ written, want int64 }{{3, 9}, {12, 12}, {0, 12}} {
		st.Generation = c.written
		_, err := s.index.rebuild(t.Context(), func(add func(Metadata, State) error) error { return add(m, st) }, noConflict(t))
		if err != nil {
			t.Fatal(err)
		}
		if g, err := s.index.generation(t.Context(), m.UUID); err != nil || g != c.want {
			t.Errorf("generation %d, want %d, %v", g, c.want, err)
		}
	}
}

func TestRebuildReportsWhatCannotStandBesideAnother(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	alone(t, s)
	first, st := aTaskOf(0)
	second, done := first, st
	second.UUID = "second"
	done.TaskStatus = task.Completed
	third := first
	third.UUID = "third"
	var left []string
	n, err := s.index.rebuild(t.Context(), func(add func(Metadata, State) error) error {
		return errors.Join(add(first, st), add(second, st), add(third, done), add(first, done))
	}, func(stands string, r Row) { left = append(left, r.UUID+" for "+stands) })
	if err != nil || n != 2 || strings.Join(left, ", ") != "second for A, A for A" {
		t.Error(n, left, err)
	}
	if r := rowIn(t, s.index, "A"); r.Status != task.Paused {
		t.Error(r.Status)
	}
}

func TestAFailedRebuildChangesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	someTasks(t, s, 20)
	was, schema := rowsIn(t, s.index), schemaOf(t, s.index)
	alone(t, s)
	died := errors.New("died here")
	_, err := s.index.rebuild(t.Context(), func(add func(Metadata, State) error) error {
		return errors.Join(add(aTaskOf(0)), died)
	}, noConflict(t))
	if !errors.Is(err, died) {
		t.Fatal(err)
	}
	if d := cmp.Diff(was, rowsIn(t, s.index), sameRow); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(schema, schemaOf(t, s.index)); d != "" {
		t.Error(d)
	}
	sameCounters(t, s.index)
	if _, err := s.index.rebuild(t.Context(), func(func(Metadata, State) error) error { return nil }, noConflict(t)); err != nil {
		t.Error("once more:", err)
	}
}

// A file whose first pages are good, so that it opens, and others are not.
func TestRebuildOfAMalformedFile(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	someTasks(t, s, 300)
	path := s.index.path
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := indexSchema.connect(path)
	if err != nil {
		t.Fatal(err)
	}
	var root int
	if err := h.w.QueryRow(`SELECT rootpage FROM sqlite_master WHERE name='tasks'`).Scan(&root); err != nil {
		t.Fatal(err)
	}
	_ = h.close()
	for at := (root - 1) * 4096; at < root*4096; at++ {
		b[at] = 0x5a
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, Options{BaseDir: s.BaseDir, OnIndexError: func(error) {}})
	if _, err := s.index.list(t.Context(), Filter{}); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "tori reindex") {
		t.Errorf("a listing: %v", err)
	}
	alone(t, s)
	n, err := s.index.rebuild(t.Context(), func(add func(Metadata, State) error) error { return add(aTaskOf(1)) }, noConflict(t))
	if err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if p, err := s.index.list(t.Context(), Filter{}); err != nil || p.Total != 1 {
		t.Error(p.Total, err)
	}
	if _, err := os.Stat(path + ".broken-1"); err != nil {
		t.Error(err)
	}
}
