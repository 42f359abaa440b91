package contextstore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/task"
)

func TestDeliveriesAreRecordedOnce(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		push := Effect{Key: "run1/push", Kind: "push"}
		for _, result := range []string{"abc123", "another"} {
			if err := s.houseDB.ack(t.Context(), "run1", push, result, s.now()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.houseDB.ack(t.Context(), "run1", Effect{Key: "run1/label", Kind: "label"}, "", s.now()); err != nil {
			t.Fatal(err)
		}
		if err := s.houseDB.ack(t.Context(), "run2", push, "x", s.now()); err == nil || !strings.Contains(err.Error(), "run1/push is already recorded for run run1, now run run2") {
			t.Errorf("another run's key: %v", err)
		}
		got, err := open(t, Options{BaseDir: s.BaseDir}).houseDB.acked(t.Context(), "run1")
		if d := cmp.Diff(map[string]string{"run1/push": "abc123", "run1/label": ""}, got); d != "" || err != nil {
			t.Error(d, err)
		}
		if got, err := s.houseDB.acked(t.Context(), "run2"); err != nil || len(got) != 0 {
			t.Error(got, err)
		}
	})
}

func TestWhatIsDeliveredIsNoLongerPending(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		c := begin(t, s)
		st := c.State()
		st.TaskStatus, st.Outbox = task.Completed, []Effect{{Key: "a", Kind: "push"}, {Key: "b", Kind: "label"}}
		pending := func() (n int64, uuids []string) {
			if err := s.putRow(t.Context(), c.Metadata(), st); err != nil {
				t.Fatal(err)
			}
			p, err := s.index.List(t.Context(), Filter{})
			if err != nil || len(p.Rows) != 1 {
				t.Fatal(p, err)
			}
			err = s.index.Pending(t.Context(), func(r Row) error { uuids = append(uuids, r.UUID); return nil })
			if err != nil {
				t.Fatal(err)
			}
			return p.Rows[0].OutboxPending, uuids
		}
		if n, uuids := pending(); n != 2 || len(uuids) != 1 || uuids[0] != c.UUID() {
			t.Error(n, uuids)
		}
		for i, want := range []int64{1, 0} {
			if err := s.houseDB.ack(t.Context(), c.UUID(), st.Outbox[i], "", s.now()); err != nil {
				t.Fatal(err)
			}
			if n, uuids := pending(); n != want || len(uuids) != int(want) {
				t.Error(i, n, uuids)
			}
		}
	})
}

func TestErrorsOfHouseDBAreNotSwallowed(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.houseDB.ack(t.Context(), "run1", Effect{Key: "k"}, "", s.now()); err == nil {
		t.Error("recorded in a closed store")
	}
	if _, err := s.houseDB.acked(t.Context(), "run1"); err == nil {
		t.Error("read from a closed store")
	}
	if err := kernel.WriteFile(filepath.Join(s.BaseDir, "house.db"), []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), s.Options); err == nil || !strings.Contains(err.Error(), "from a backup") {
		t.Errorf("opened over a broken house.db: %v", err)
	}
}

func TestAMissingHouseDBIsMadeAnew(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	begin(t, s)
	for _, f := range []string{"house.db", "house.db-wal", "house.db-shm"} {
		_ = kernel.Remove(filepath.Join(s.BaseDir, f))
	}
	if err := s.houseDB.ack(t.Context(), "run1", Effect{Key: "k", Kind: "push"}, "r", s.now()); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, Options{BaseDir: s.BaseDir}).houseDB.acked(t.Context(), "run1")
	if err != nil || got["k"] != "r" {
		t.Errorf("what was recorded after the removal is lost: %v %v", got, err)
	}
}

// Where deleted rows left much room, it is given back, while others have the file open; else the
// file is left alone.
func TestCompact(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	other := open(t, Options{BaseDir: s.BaseDir})
	size := func() int64 {
		st, err := kernel.Stat(filepath.Join(s.BaseDir, HouseDBFile))
		must(t, err)
		return st.Size()
	}
	for i := range 40 {
		must(t, s.SetMark(t.Context(), "kept", fmt.Sprint(i), strings.Repeat("x", 100<<10)))
	}
	if freed, err := s.Compact(t.Context()); freed != 0 || err != nil {
		t.Error(freed, err)
	}
	for i := range 30 {
		must(t, s.SetMark(t.Context(), "kept", fmt.Sprint(i), ""))
	}
	_, err := other.Mark(t.Context(), "kept", "35")
	must(t, err)
	freed, err := s.Compact(t.Context())
	if freed < 5<<19 || err != nil || size() > 2<<20 {
		t.Error(freed, size(), err)
	}
	if v, err := other.Mark(t.Context(), "kept", "35"); len(v) != 100<<10 || err != nil {
		t.Error(len(v), err)
	}
	if freed, err := s.Compact(t.Context()); freed != 0 || err != nil {
		t.Error(freed, err)
	}
}

// Whoever looks can tell whether there is one of a kind, and takes nothing from it.
func TestIsAlone(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	if IsAlone(s.BaseDir, "serve") {
		t.Error("there is none")
	}
	alone, err := s.Alone("serve")
	must(t, err)
	for range 2 {
		if !IsAlone(s.BaseDir, "serve") {
			t.Error("there is one")
		}
	}
	alone.Release()
	if IsAlone(s.BaseDir, "serve") {
		t.Error("it is gone")
	}
}
