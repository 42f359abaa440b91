package contextstore

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

// lockIndex keeps everybody from writing to the index until unlock is called.
func lockIndex(t *testing.T, s *Store) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.index.Path()+"?_txlock=immediate")
	must(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	return func() { must(t, errors.Join(tx.Rollback(), db.Close())) }
}

// told is what a listing for an administrator holds, and where it came from.
func told(t *testing.T, base string) (uuids []string, scanned bool) {
	t.Helper()
	l, err := List(t.Context(), base, Viewer{Admin: true}, Filter{})
	must(t, err)
	for _, v := range l.Views {
		uuids = append(uuids, v.Metadata.UUID)
	}
	return uuids, l.Scanned
}

// What tasks.db could not be told is told by the directories, and the next
// opening tells tasks.db.
func TestARunWithoutItsRowIsNotForgotten(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	var complaints []error
	s := open(t, Options{OnIndexError: func(err error) { complaints = append(complaints, err) }})
	earlier := ended(t, s, key, task.Outcome{Status: task.Completed, Summary: "earlier"})
	unlock := lockIndex(t, s)
	id := ended(t, s, key, task.Outcome{Status: task.Completed, Summary: "later"})
	waiting, err := s.Enqueue(t.Context(), Metadata{TaskKey: key})
	must(t, err)
	if len(complaints) == 0 {
		t.Fatal("the index could be written")
	}
	all := []string{waiting, id, earlier}
	know := func(s *Store, when string, scans bool) {
		t.Helper()
		if uuids, scanned := told(t, s.BaseDir); !slices.Equal(uuids, all) || scanned != scans {
			t.Errorf("%s: %v, scanned %v", when, uuids, scanned)
		}
		if v, ok, err := s.LastEnded(t.Context(), key, time.Time{}); err != nil || !ok || v.Metadata.UUID != id {
			t.Errorf("%s: the last that ended is %v %v %v", when, v.Metadata.UUID, ok, err)
		}
		if views, err := s.Ended(t.Context(), key, time.Time{}, 5); err != nil || len(views) != 2 {
			t.Errorf("%s: %d ended: %v", when, len(views), err)
		}
		if v, ok, err := s.Latest(t.Context(), key); err != nil || !ok || v.Metadata.UUID != waiting {
			t.Errorf("%s: the latest is %v %v %v", when, v.Metadata.UUID, ok, err)
		}
		if n, err := s.CountSince(t.Context(), key, time.Time{}, 10); err != nil || n != 3 {
			t.Errorf("%s: %d since ever: %v", when, n, err)
		}
		var second *LiveError
		if _, err := s.Enqueue(t.Context(), Metadata{TaskKey: key}); !errors.As(err, &second) || second.UUID != waiting {
			t.Errorf("%s: a second live run: %v", when, err)
		}
	}
	know(s, "while the index is locked", true)
	must(t, s.Close())
	unlock()
	if r := check(t, s.BaseDir, false); r.Found > 0 || !slices.Equal(kinds(r), []string{"behind"}) {
		t.Errorf("before the next opening a check finds %+v", r.Findings)
	}
	if uuids, scanned := told(t, s.BaseDir); !slices.Equal(uuids, all) || !scanned {
		t.Errorf("before the next opening: %v %v", uuids, scanned)
	}
	s = open(t, Options{BaseDir: s.BaseDir})
	know(s, "after the next opening", false)
	sameCounters(t, s.index)
}

// A process that goes on mends what it could not write as soon as it can.
func TestARowIsWrittenWhenTheIndexCanBe(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{OnIndexError: func(error) {}})
	unlock := lockIndex(t, s)
	id := ended(t, s, key, task.Outcome{Status: task.Stopped})
	unlock()
	s.checkIndex(t.Context()) // as each heartbeat and each new run does
	if uuids, scanned := told(t, s.BaseDir); !slices.Equal(uuids, []string{id}) || scanned {
		t.Errorf("%v, scanned %v", uuids, scanned)
	}
	if left, _ := os.ReadDir(filepath.Join(s.BaseDir, index.UnindexedDir)); len(left) > 0 {
		t.Errorf("%v", left)
	}
}

// So does one that ends: what comes after it finds nothing that is left to be done.
func TestARowIsWrittenWhenTheStoreIsClosed(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{OnIndexError: func(error) {}})
	unlock := lockIndex(t, s)
	id := ended(t, s, key, task.Outcome{Status: task.Completed})
	unlock()
	must(t, s.Close())
	if r := check(t, s.BaseDir, false); len(r.Findings) > 0 {
		t.Errorf("%+v", r.Findings)
	}
	if uuids, scanned := told(t, s.BaseDir); !slices.Equal(uuids, []string{id}) || scanned {
		t.Errorf("%v, scanned %v", uuids, scanned)
	}
}

// A store whose index could not be opened at all leaves the same marks.
func TestWithoutAnIndexTheNextOneIsToldWhatItLacks(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	must(t, s.index.Close())
	s.index = nil
	c := begin(t, s)
	id := c.UUID()
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Failed, Reason: "r"}, Effect{Key: "k", Kind: "comment"}))
	if owing, err := s.WithUndelivered(t.Context()); err != nil || !slices.Equal(owing, []string{id}) {
		t.Errorf("%v owe something: %v", owing, err)
	}
	gone := ended(t, s, keyOf("gone"), task.Outcome{Status: task.Completed})
	must(t, s.Close())
	must(t, kernel.RemoveAll(filepath.Join(s.BaseDir, DirCompleted, gone)))
	s = open(t, Options{BaseDir: s.BaseDir})
	if uuids, scanned := told(t, s.BaseDir); !slices.Equal(uuids, []string{id}) || scanned {
		t.Errorf("%v, scanned %v", uuids, scanned)
	}
}

// Whatever of the schema somebody dropped, the index is made anew from the
// directories.
func TestAnIndexThatLacksAPartIsMadeAnew(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	for _, drop := range []string{
		`DROP TABLE tasks`, `DROP TABLE task_days`, `DROP TABLE task_months`, `DROP TABLE index_meta`,
		`DROP INDEX idx_tasks_created_at`, `DROP INDEX idx_tasks_live_key`, `DROP TRIGGER tasks_delete`,
	} {
		s := open(t, Options{})
		id := ended(t, s, key, task.Outcome{Status: task.Completed})
		must(t, s.Close())
		must(t, execIn(filepath.Join(s.BaseDir, "tasks.db"), drop))
		if uuids, scanned := told(t, s.BaseDir); !slices.Equal(uuids, []string{id}) || !scanned {
			t.Errorf("%s: a reader is told %v, scanned %v", drop, uuids, scanned)
		}
		s = open(t, Options{BaseDir: s.BaseDir})
		if uuids, scanned := told(t, s.BaseDir); !slices.Equal(uuids, []string{id}) || scanned {
			t.Errorf("%s: %v, scanned %v", drop, uuids, scanned)
		}
		sameCounters(t, s.index)
	}
}

// A process that has it open makes it anew as well.
func TestATableThatIsDroppedInUse(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	var complaints []error
	s := open(t, Options{OnIndexError: func(err error) { complaints = append(complaints, err) }})
	c := begin(t, s)
	must(t, execIn(s.index.Path(), `DROP TABLE tasks`))
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed}))
	s.checkIndex(t.Context())
	if uuids, scanned := told(t, s.BaseDir); !slices.Equal(uuids, []string{c.UUID()}) || scanned || len(complaints) == 0 {
		t.Errorf("%v, scanned %v, complaints %v", uuids, scanned, complaints)
	}
}

// An index that does not hold every run is filled at the next opening where
// those that have ended are not too many.
func TestAnIncompleteIndexIsFilled(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	id := ended(t, s, key, task.Outcome{Status: task.Completed})
	must(t, s.index.Drop(t.Context(), id))
	must(t, s.index.SetComplete(t.Context(), false))
	must(t, s.Close())
	s = open(t, Options{BaseDir: s.BaseDir})
	if uuids, scanned := told(t, s.BaseDir); !slices.Equal(uuids, []string{id}) || scanned {
		t.Errorf("%v, scanned %v", uuids, scanned)
	}
}

// A power cut takes what SQLite has not synced. The row of a run that was made and
// ended since is found again all the same.
func TestRowsThatAPowerCutTakes(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	base := filepath.Join(t.TempDir(), "base")
	durable := map[string][]byte{}
	keep := func() {
		for _, name := range []string{"tasks.db", "tasks.db-wal"} {
			b, err := readFile(filepath.Join(base, name))
			must(t, err)
			durable[name] = b
		}
	}
	s := open(t, Options{BaseDir: base, FS: &disk.FS{Before: func(op disk.Op) error {
		if op.Kind == disk.Sync && filepath.Base(op.Path) == "tasks.db-wal" {
			keep()
		}
		return nil
	}}})
	keep()
	c := begin(t, s)
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "done"}))
	must(t, s.Close())
	must(t, errors.Join(kernel.RemoveAll(filepath.Join(base, "tasks.db-shm")), kernel.RemoveAll(filepath.Join(base, "tasks.db-wal"))))
	for name, b := range durable {
		must(t, kernel.WriteFile(filepath.Join(base, name), b, 0o600))
	}
	s = open(t, Options{BaseDir: base})
	p, err := s.index.List(t.Context(), Filter{Limit: 9})
	if err != nil || len(p.Rows) != 1 || p.Rows[0].Status != task.Completed {
		t.Errorf("%+v, %v", p.Rows, err)
	}
}

// An index that was made anew beside many runs is filled beside the work.
func TestAnIndexIsFilledBesideTheWork(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	for _, name := range []string{"a", "b", "c"} {
		ended(t, s, keyOf(name), task.Outcome{Status: task.Completed})
	}
	query(t, s.BaseDir, `DELETE FROM tasks`)
	must(t, s.index.SetComplete(t.Context(), false))
	must(t, s.fillIndex(t.Context(), 2)) // more than an opening takes in
	if whole, err := s.index.Complete(t.Context()); err != nil || whole {
		t.Errorf("whole %v, %v", whole, err)
	}
	s.FillIndex(t.Context())
	if uuids, scanned := told(t, s.BaseDir); len(uuids) != 3 || scanned {
		t.Errorf("%v, scanned %v", uuids, scanned)
	}
	sameCounters(t, s.index)
}

// A run whose queueing was cut short before its row keeps a second one of its task away for who takes the
// place of that process; and it stays where it was only slow.
func TestQueuedWithoutARow(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	m, st := Metadata{UUID: s.NewUUID(), Format: Format, TaskKey: keyOf("7"), User: "u", CreatedAt: s.now()}, State{Status: Initializing, UpdatedAt: s.now(), TaskStatus: task.Queued}
	dir := filepath.Join(s.BaseDir, DirQueued, m.UUID)
	must(t, s.build(dir, m, st))
	must(t, s.Recover(t.Context()))
	var live *LiveError
	if _, err := s.Enqueue(t.Context(), Metadata{TaskKey: m.TaskKey, User: "u"}); !errors.As(err, &live) || live.UUID != m.UUID {
		t.Errorf("a second one: %v", err)
	}
	must(t, s.admit(t.Context(), dir, m, st))
	if v, err := s.View(m.UUID); err != nil || v.Status() != task.Queued {
		t.Errorf("%s, %v", v.Status(), err)
	}
	if r := check(t, s.BaseDir, false); r.Found > 0 {
		t.Errorf("%+v", r.Findings)
	}
}
