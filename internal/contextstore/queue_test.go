package contextstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/task"
)

func keyOf(id string) task.Key {
	return task.Key{Source: "github", Owner: "o", Repo: "r", Type: "issue", ID: id}
}

// The index and the directories give the queue in the same order, in pages that
// miss nothing and repeat nothing, also among runs of one moment.
func TestQueueIsTheSameWithoutTheIndex(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := 0
	s := open(t, Options{Now: func() time.Time { return now.Add(time.Duration(n/3) * time.Second) }})
	var ids []string
	for ; n < 10; n++ {
		id, err := s.Enqueue(t.Context(), Metadata{TaskKey: keyOf(fmt.Sprint(n)), User: "u"})
		must(t, err)
		ids = append(ids, id)
	}
	c, _, err := s.Claim(t.Context(), ids[4])
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	pages := func() (all []string) {
		for after := ""; ; {
			page, err := s.Queued(t.Context(), after, 4)
			must(t, err)
			for _, w := range page {
				if w.User != "u" || w.Key.Owner != "o" {
					t.Errorf("%+v", w)
				}
				all = append(all, w.UUID)
				after = w.Cursor
			}
			if len(page) < 4 {
				return all
			}
		}
	}
	by := pages()
	if len(by) != 9 || slices.Contains(by, ids[4]) {
		t.Fatalf("%d: %v", len(by), by)
	}
	for i := range 3 { // each third is of one second
		if part := by[3*i : min(3*i+3, 9)]; i == 0 && !slices.Contains(part, ids[0]) {
			t.Errorf("the oldest are not first: %v", by)
		}
	}
	kept := s.index
	s.index = nil
	if without := pages(); !slices.Equal(by, without) {
		t.Errorf("index %v\ndirectories %v", by, without)
	}
	s.index = kept
}

func TestLatestOfAKey(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		if _, ok, err := s.Latest(t.Context(), keyOf("1")); ok || err != nil {
			t.Errorf("%v %v", ok, err)
		}
		_, err := s.Enqueue(t.Context(), Metadata{TaskKey: keyOf("1"), Run: json.RawMessage(`{"a":1}`)})
		must(t, err)
		first, _, _ := s.Latest(t.Context(), keyOf("1"))
		_, err = s.Control(t.Context(), first.Metadata.UUID, Stop, "ken")
		must(t, err)
		id, err := s.Enqueue(t.Context(), Metadata{TaskKey: keyOf("1"), Run: json.RawMessage(`{"a":2}`)})
		must(t, err)
		for _, one := range []*index.Index{s.index, nil} {
			kept := s.index
			s.index = one
			v, ok, err := s.Latest(t.Context(), keyOf("1"))
			if err != nil || !ok || v.Metadata.UUID != id || string(v.Metadata.Run) != `{"a":2}` {
				t.Errorf("%+v %v %v", v.Metadata, ok, err)
			}
			s.index = kept
		}
	})
}

// What a queued run owes the world is committed with it, under its own uuid.
func TestQueuedRunOwes(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		id, err := s.Enqueue(t.Context(), Metadata{TaskKey: keyOf("1")}, func(uuid string) Effect {
			return Effect{Key: uuid + ".labels", Kind: "labels", Data: json.RawMessage(`{"of":"hunter2hunter2"}`)}
		})
		must(t, err)
		owing, err := s.WithUndelivered(t.Context())
		left, lerr := s.Undelivered(t.Context(), id)
		if err != nil || lerr != nil || !slices.Equal(owing, []string{id}) || len(left) != 1 || left[0].Key != id+".labels" || string(left[0].Data) == `{"of":"hunter2hunter2"}` {
			t.Errorf("%v %+v %v %v", owing, left, err, lerr)
		}
	})
}

func TestDeadOwnersAreCounted(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		c := begin(t, s)
		id := c.UUID()
		count := func() int64 {
			v, err := s.View(id)
			must(t, err)
			return v.State.Recoveries
		}
		alive := func() (all []bool) {
			must(t, s.Running(func(uuid string, _ Owner, held bool) {
				if uuid == id {
					all = append(all, held)
				}
			}))
			return all
		}
		if !slices.Equal(alive(), []bool{true}) {
			t.Error("a live owner is not seen")
		}
		if err := s.GiveUp(t.Context(), id, "no"); !errors.Is(err, ErrBusy) {
			t.Errorf("given up under its owner: %v", err)
		}
		abandon(c)
		if !slices.Equal(alive(), []bool{false}) {
			t.Error("a dead owner is not seen")
		}
		_, err := s.Control(t.Context(), id, Resume, "the monitor") // back into the queue
		must(t, err)
		if count() != 1 {
			t.Errorf("%d", count())
		}
		c, _, err = s.Claim(t.Context(), id)
		must(t, err)
		abandon(c)
		c, _, err = s.Claim(t.Context(), id) // at once
		must(t, err)
		if count() != 2 {
			t.Errorf("%d", count())
		}
		must(t, c.Transition(t.Context(), task.Outcome{Status: task.Paused}))
		_, err = s.Control(t.Context(), id, Resume, "ken") // somebody wants it
		must(t, err)
		if count() != 0 {
			t.Errorf("%d after somebody resumed it", count())
		}
		c, _, err = s.Claim(t.Context(), id)
		must(t, err)
		abandon(c)
		must(t, s.GiveUp(t.Context(), id, "its owner died too often"))
		v, err := s.View(id)
		if err != nil || v.Status() != task.Failed || v.State.Error == nil || *v.State.Error != "its owner died too often" || filepath.Base(filepath.Dir(v.Dir)) != DirCompleted {
			t.Errorf("%+v %v", v.State, err)
		}
	})
}

func TestMarks(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		if v, err := s.Mark(t.Context(), "github/o/r", "comments"); v != "" || err != nil {
			t.Errorf("%q %v", v, err)
		}
		for _, v := range []string{"1", "2"} {
			must(t, s.SetMark(t.Context(), "github/o/r", "comments", v))
		}
		must(t, s.SetMark(t.Context(), "github/o/other", "comments", "9"))
		must(t, s.Close())
		if database.ServerOf(s.BaseDir) == nil {
			must(t, kernel.Remove(filepath.Join(s.BaseDir, "tasks.db"))) // marks are not derived
		}
		s = open(t, Options{BaseDir: s.BaseDir})
		if v, err := s.Mark(t.Context(), "github/o/r", "comments"); v != "2" || err != nil {
			t.Errorf("%q %v", v, err)
		}
		must(t, s.SetMark(t.Context(), "github/o/r", "comments", ""))
		must(t, s.SetMark(t.Context(), "github/o/r", "labels", "3"))
		if names, err := s.Marks(t.Context(), "github/o/r"); !slices.Equal(names, []string{"labels"}) || err != nil {
			t.Errorf("%q %v", names, err)
		}
	})
}

// A run that is claimed or put down while somebody reads it is read all the same.
func TestReadWhileItMoves(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	id, err := s.Enqueue(t.Context(), Metadata{TaskKey: keyOf("1"), User: "u"})
	must(t, err)
	queued, running := filepath.Join(s.BaseDir, DirQueued, id), filepath.Join(s.BaseDir, DirRunning, id)
	over := make(chan struct{})
	var moving sync.WaitGroup
	moving.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if err := errors.Join(kernel.Rename(queued, running), kernel.Rename(running, queued)); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(rand.N(2 * time.Millisecond)) // nothing moves again and again while it is looked for
		}
	})
	for range 300 {
		if _, err := s.Metadata(id); err != nil {
			t.Error("metadata:", err)
		}
		if _, err := s.View(id); err != nil {
			t.Error("view:", err)
		}
		release, err := s.LockOutbox(t.Context(), id, 0)
		if err != nil {
			t.Error("outbox:", err)
			break
		}
		release()
	}
	close(over)
	moving.Wait()
}
