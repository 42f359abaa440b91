package index

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/task"
)

func alone(t *testing.T, i *Index) {
	t.Helper()
	release, err := i.base.Exclusive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
}

func noConflict(t *testing.T) func(string, Row) {
	return func(stands string, left Row) { t.Errorf("%s is left out for %s", left.UUID, stands) }
}

func schemaOf(t *testing.T, i *Index) []string {
	t.Helper()
	if isPostgres(i) {
		return driverRows(t, writer(i), `SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname=current_schema()
			UNION ALL SELECT tgenabled::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid='tasks'::regclass ORDER BY 1, 2`)
	}
	return driverRows(t, writer(i), `SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2`)
}

func TestRebuildMakesTheSameRows(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		was := schemaOf(t, i)
		fill := func(add func(Row) error) error {
			for n := range 60 {
				if err := add(aTaskOf(n)); err != nil {
					return err
				}
			}
			return nil
		}
		var want []Row
		_ = fill(func(r Row) error { want = append(want, r); return nil })
		someTasks(t, i, 30) // others, which no directory has any more
		if _, err := i.Rebuild(t.Context(), fill, noConflict(t)); err == nil {
			t.Error("rebuilt while others may write")
		}
		alone(t, i)
		for range 2 {
			n, err := i.Rebuild(t.Context(), fill, noConflict(t))
			if err != nil || n != 60 {
				t.Fatal(n, err)
			}
			if d := cmp.Diff(want, rowsIn(t, i), sameRow); d != "" {
				t.Fatal(d)
			}
			sameCounters(t, i)
			if d := cmp.Diff(was, schemaOf(t, i)); d != "" {
				t.Fatal("the schema changed: ", d)
			}
		}
		if err := i.Put(t.Context(), Row{UUID: "new", Key: key, Status: task.Completed}); err != nil {
			t.Error(err)
		}
		sameCounters(t, i)
		if err := i.SetComplete(t.Context(), true); err != nil {
			t.Error(err)
		}
		if yes, err := i.Complete(t.Context()); err != nil || !yes {
			t.Error(yes, err)
		}
	})
}

// aTaskOf is the same task for the same n.
func aTaskOf(n int) Row {
	r := Row{UUID: string(rune('A' + n)), Key: key, User: "ken", Status: task.Completed, Generation: 1, Tokens: int64(n)}
	r.Key.ID = r.UUID
	if n%4 == 0 {
		r.Status = task.Paused
	}
	return r
}

func TestRebuildKeepsTheHighestGeneration(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		r := aTaskOf(0)
		r.Generation = 9
		if err := i.Insert(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		alone(t, i)
		for _, c := range []struct{ written, want int64 }{{3, 9}, {12, 12}, {0, 12}} {
			r.Generation = c.written
			_, err := i.Rebuild(t.Context(), func(add func(Row) error) error { return add(r) }, noConflict(t))
			if err != nil {
				t.Fatal(err)
			}
			if g, err := i.Generation(t.Context(), r.UUID); err != nil || g != c.want {
				t.Errorf("generation %d, want %d, %v", g, c.want, err)
			}
		}
	})
}

func TestRebuildReportsWhatCannotStandBesideAnother(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		alone(t, i)
		first := aTaskOf(0)
		second, third, again := first, first, first
		second.UUID, third.UUID = "second", "third"
		third.Status, again.Status = task.Completed, task.Completed
		var left []string
		n, err := i.Rebuild(t.Context(), func(add func(Row) error) error {
			return errors.Join(add(first), add(second), add(third), add(again))
		}, func(stands string, r Row) { left = append(left, r.UUID+" for "+stands) })
		if err != nil || n != 2 || strings.Join(left, ", ") != "second for A, A for A" {
			t.Error(n, left, err)
		}
		if r := rowIn(t, i, "A"); r.Status != task.Paused {
			t.Error(r.Status)
		}
	})
}

func TestAFailedRebuildChangesNothing(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		someTasks(t, i, 20)
		was, schema := rowsIn(t, i), schemaOf(t, i)
		alone(t, i)
		died := errors.New("died here")
		_, err := i.Rebuild(t.Context(), func(add func(Row) error) error {
			return errors.Join(add(aTaskOf(0)), died)
		}, noConflict(t))
		if !errors.Is(err, died) {
			t.Fatal(err)
		}
		if d := cmp.Diff(was, rowsIn(t, i), sameRow); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(schema, schemaOf(t, i)); d != "" {
			t.Error(d)
		}
		sameCounters(t, i)
		if _, err := i.Rebuild(t.Context(), func(func(Row) error) error { return nil }, noConflict(t)); err != nil {
			t.Error("once more:", err)
		}
	})
}

// A file whose first pages are good, so that it opens, and others are not.
func TestRebuildOfAMalformedFile(t *testing.T) {
	t.Parallel()
	i := open(t, t.TempDir())
	someTasks(t, i, 300)
	path := i.Path()
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	i.base.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := schema().Connect(path)
	if err != nil {
		t.Fatal(err)
	}
	var root int
	if err := h.W.QueryRow(`SELECT rootpage FROM sqlite_master WHERE name='tasks'`).Scan(&root); err != nil {
		t.Fatal(err)
	}
	_ = h.Close()
	for at := (root - 1) * 4096; at < root*4096; at++ {
		b[at] = 0x5a
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	i = open(t, i.dir)
	if _, err := i.List(t.Context(), Filter{}); !errors.Is(err, database.ErrBroken) || !strings.Contains(err.Error(), "tori reindex") {
		t.Errorf("a listing: %v", err)
	}
	alone(t, i)
	n, err := i.Rebuild(t.Context(), func(add func(Row) error) error { return add(aTaskOf(1)) }, noConflict(t))
	if err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if p, err := i.List(t.Context(), Filter{}); err != nil || p.Total != 1 {
		t.Error(p.Total, err)
	}
	if _, err := os.Stat(path + ".broken-1"); err != nil {
		t.Error(err)
	}
}
