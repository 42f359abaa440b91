package contextstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

// put takes a fresh context to a status and gives it up there.
func put(t *testing.T, s *Store, status task.Status) string {
	t.Helper()
	return putKey(t, s, key, status)
}

func putKey(t *testing.T, s *Store, k task.Key, status task.Status) string {
	t.Helper()
	id, err := s.Enqueue(t.Context(), Metadata{TaskKey: k})
	if err != nil {
		t.Fatal(err)
	}
	if status == task.Queued {
		return id
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(Message{Role: "user", Content: "hello"}); err != nil {
		t.Fatal(err)
	}
	if status == task.Running {
		abandon(c)
		return id
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: status}); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAskOfARunThatNobodyWorksOn(t *testing.T) {
	t.Parallel()
	for from, want := range map[task.Status]map[Action]task.Status{
		task.Queued:           {Pause: "", Resume: task.Queued, Stop: task.Stopped},
		task.Running:          {Pause: task.Paused, Resume: task.Queued, Stop: task.Stopped},
		task.Paused:           {Pause: task.Paused, Resume: task.Queued, Stop: task.Stopped},
		task.AwaitingApproval: {Pause: "", Resume: task.Queued, Stop: task.Stopped},
		task.Completed:        {Pause: "", Resume: "", Stop: ""},
		task.Stopped:          {Pause: "", Resume: "", Stop: task.Stopped},
		task.Failed:           {Pause: "", Resume: "", Stop: ""},
	} {
		for do, to := range want {
			t.Run(string(from)+"/"+string(do), func(t *testing.T) {
				t.Parallel()
				s := open(t, Options{})
				id := put(t, s, from)
				a, err := s.Control(t.Context(), id, do, "ken")
				if to == "" {
					to = from
					if !errors.Is(err, task.ErrIllegalTransition) {
						t.Errorf("not refused: %v", err)
					}
				} else if err != nil {
					t.Fatal(err)
				}
				if a.Status != to || a.Asked {
					t.Errorf("answer %+v, want %s", a, to)
				}
				v, err := Find(s.BaseDir, id, Viewer{Admin: true})
				if err != nil || v.Status() != to || filepath.Base(filepath.Dir(v.Dir)) != DirOf(to) || v.Held {
					t.Errorf("%s in %s: %v", v.Status(), v.Dir, err)
				}
				if _, err := kernel.Stat(filepath.Join(v.Dir, LockFile)); to != task.Running && err == nil {
					t.Error("a lock is left behind")
				}
			})
		}
	}
}

func TestAskTheOwner(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if r, ok := c.Request(); ok {
		t.Fatalf("%+v", r)
	}
	a, err := s.Control(t.Context(), c.UUID(), Stop, "ken hunter2hunter2")
	if err != nil || !a.Asked || a.Owner.ProcessID != os.Getpid() {
		t.Fatalf("%+v %v", a, err)
	}
	if r, ok := c.Request(); !ok || r.Action != Stop || r.By != "ken [SECRET]" {
		t.Errorf("%+v %v", r, ok)
	}
	if _, err := s.Control(t.Context(), c.UUID(), Resume, "ken"); err != nil {
		t.Fatal(err)
	}
	if r, ok := c.Request(); ok {
		t.Errorf("not taken back: %+v", r)
	}
	if _, err := s.Control(t.Context(), c.UUID(), Pause, "ken"); err != nil {
		t.Fatal(err)
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Paused}); err != nil {
		t.Fatal(err)
	}
	if _, err := kernel.Stat(filepath.Join(c.Dir(), requestFile)); err == nil {
		t.Error("a request outlives the owner who followed it")
	}
}

func TestAStopThatComesWhileTheOwnerPausesIsNotLost(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if a, err := s.Control(t.Context(), c.UUID(), Stop, "ken"); err != nil || !a.Asked {
		t.Fatalf("%+v %v", a, err)
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Paused}); err != nil {
		t.Fatal(err)
	}
	q, ok := s.Pending(c.UUID())
	if !ok || q.Action != Stop || q.By != "ken" {
		t.Fatalf("%+v %v", q, ok)
	}
	// Another person's word, spoken later, overtakes it.
	if a, err := s.Control(t.Context(), c.UUID(), Resume, "mio"); err != nil || a.Status != task.Queued {
		t.Fatalf("%+v %v", a, err)
	}
	if q, ok := s.Pending(c.UUID()); ok {
		t.Errorf("%+v", q)
	}
}

func TestWhatADeadOwnerWasAsked(t *testing.T) {
	t.Parallel()
	for do, stays := range map[Action]bool{Pause: false, Stop: true} {
		t.Run(string(do), func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			c := begin(t, s)
			if a, err := s.Control(t.Context(), c.UUID(), do, "ken"); err != nil || !a.Asked {
				t.Fatalf("%+v %v", a, err)
			}
			abandon(c)
			c, _, err := s.Claim(t.Context(), c.UUID())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			if q, ok := c.Request(); ok != stays {
				t.Errorf("%+v %v", q, ok)
			}
		})
	}
}

func TestOutbox(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Changed: func(_ context.Context, v View, o task.Outcome) (string, []Effect, error) {
		return "stopped " + v.Metadata.TaskKey.ID, []Effect{{Key: "c", Kind: "comment", Data: json.RawMessage(`{"text":"hunter2hunter2"}`)}}, nil
	}})
	c := begin(t, s)
	first := []Effect{{Key: "a", Kind: "label", Data: json.RawMessage(`{}`)}, {Key: "b", Kind: "comment", Data: json.RawMessage(`{"n":1}`)}}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Paused}, first...); err != nil {
		t.Fatal(err)
	}
	keys := func() string {
		t.Helper()
		left, err := s.Undelivered(t.Context(), c.UUID())
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range left {
			all = append(all, e.Key)
			if strings.Contains(string(e.Data), "hunter2") {
				t.Errorf("not redacted: %s", e.Data)
			}
		}
		return strings.Join(all, "")
	}
	pending := func() int {
		t.Helper()
		ids, err := s.WithUndelivered(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(ids)
	}
	if keys() != "ab" || pending() != 1 {
		t.Fatal(keys(), pending())
	}
	for range 2 {
		if err := s.Acknowledge(t.Context(), c.UUID(), first[0], "done"); err != nil {
			t.Fatal(err)
		}
	}
	if keys() != "b" || pending() != 1 {
		t.Fatal(keys(), pending())
	}
	// What an earlier transition owed is not lost by a later one.
	if _, err := s.Control(t.Context(), c.UUID(), Stop, "ken"); err != nil {
		t.Fatal(err)
	}
	if keys() != "bc" || pending() != 1 {
		t.Fatal(keys(), pending())
	}
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	if err != nil || len(v.State.Outbox) != 2 {
		t.Errorf("%+v %v", v.State.Outbox, err)
	}
	for _, e := range v.State.Outbox {
		if err := s.Acknowledge(t.Context(), c.UUID(), e, ""); err != nil {
			t.Fatal(err)
		}
	}
	if keys() != "" || pending() != 0 {
		t.Error(keys(), pending())
	}
}

func TestAnOpenerFinishesWhatIsHalfDone(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	for _, status := range []task.Status{task.Queued, task.Paused, task.Completed, task.Stopped} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			c := begin(t, s)
			c.mu.Lock()
			if err := c.commit(t.Context(), task.Outcome{Status: status}, nil); err != nil {
				t.Fatal(err)
			}
			c.mu.Unlock()
			abandon(c) // before the directory was moved
			var told []string
			again := open(t, Options{BaseDir: s.BaseDir, OnRepair: func(what string) { told = append(told, what) }})
			v, err := Find(again.BaseDir, c.UUID(), Viewer{Admin: true})
			if err != nil || v.Status() != status || v.State.Phase != "" || filepath.Base(filepath.Dir(v.Dir)) != DirOf(status) {
				t.Errorf("%s, phase %q, in %s: %v", v.Status(), v.State.Phase, v.Dir, err)
			}
			if _, err := kernel.Stat(filepath.Join(v.Dir, LockFile)); err == nil {
				t.Error("the lock is left behind")
			}
			if len(told) != 1 {
				t.Errorf("told %q", told)
			}
		})
	}
}

func TestStartUpRefusesUndependableDisks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fs   func(path string) FileSystem
		want string
	}{
		"nfs":       {func(string) FileSystem { return FileSystem{Type: 0x6969, Free: 1 << 40} }, "NFS"},
		"fuse":      {func(string) FileSystem { return FileSystem{Type: 0x65735546, Free: 1 << 40} }, "FUSE"},
		"9p":        {func(string) FileSystem { return FileSystem{Type: 0x01021997, Free: 1 << 40} }, "9p"},
		"cifs":      {func(string) FileSystem { return FileSystem{Type: 0xff534d42, Free: 1 << 40} }, "SMB"},
		"two disks": {func(p string) FileSystem { return FileSystem{Device: uint64(len(filepath.Base(p))), Free: 1 << 40} }, "another file system"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), Options{BaseDir: t.TempDir(), Redact: func(s string) string { return s },
				StatFS: func(p string) (FileSystem, error) { return test.fs(p), nil }})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestNothingIsClaimedOnAFullDisk(t *testing.T) {
	t.Parallel()
	free := uint64(1 << 40)
	s := open(t, Options{StatFS: func(string) (FileSystem, error) { return FileSystem{Free: free}, nil }})
	id := put(t, s, task.Paused)
	free = 1 << 20
	var full *NoSpaceError
	if _, _, err := s.Claim(t.Context(), id); !errors.As(err, &full) {
		t.Errorf("claimed: %v", err)
	}
	if _, err := s.Enqueue(t.Context(), Metadata{TaskKey: task.Key{ID: "2"}}); !errors.As(err, &full) {
		t.Errorf("enqueued: %v", err)
	}
	if v, err := Find(s.BaseDir, id, Viewer{Admin: true}); err != nil || v.Status() != task.Paused || v.Held {
		t.Errorf("%s %v", v.Status(), err)
	}
	if _, err := s.Control(t.Context(), id, Stop, "ken"); err != nil {
		t.Errorf("a run can still be ended: %v", err)
	}
}

func TestAStaleHeartbeatIsNoticedAndNothingElse(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	now := v.Owner.HeartbeatAt.Time
	if _, stale := v.Stale(now.Add(time.Minute), time.Minute); stale {
		t.Error("stale too early")
	}
	if age, stale := v.Stale(now.Add(95*time.Second), time.Minute); !stale || age != 95*time.Second {
		t.Error(age, stale)
	}
	other := v
	other.Owner.BootID = "of another machine"
	if age, stale := other.Stale(now.Add(time.Hour), time.Minute); stale {
		t.Errorf("its clock may be another: %s", age)
	}
	if _, _, err := s.Claim(t.Context(), c.UUID()); !errors.Is(err, ErrBusy) {
		t.Errorf("a stale heartbeat frees no run: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if v, err = Find(s.BaseDir, c.UUID(), Viewer{Admin: true}); err != nil {
		t.Fatal(err)
	}
	if _, stale := v.Stale(now.Add(time.Hour), time.Minute); stale {
		t.Error("nobody owns it")
	}
}

// Somebody deletes the database that others have open: what they do from then
// on is in the new one.
func TestIndexDeletedWhileInUse(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	ended := putKey(t, s, task.Key{ID: "2"}, task.Completed)
	files, err := filepath.Glob(filepath.Join(s.BaseDir, "tasks.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := kernel.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Enqueue(t.Context(), Metadata{TaskKey: c.Metadata().TaskKey}); !errors.As(err, new(*LiveError)) {
		t.Errorf("a second run of the same key: %v", err)
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed}); err != nil {
		t.Fatal(err)
	}
	if r := rowIn(t, s.index, c.UUID()); r.Status != task.Completed {
		t.Errorf("%+v", r)
	}
	if r := rowIn(t, s.index, ended); r.Status != task.Completed {
		t.Errorf("of one that had ended before: %+v", r)
	}
	if whole, err := s.index.Complete(t.Context()); !whole || err != nil {
		t.Errorf("the index was filled with what has ended, and does not say so: %v", err)
	}
}

// A clock that is set back makes no time negative and takes no order away.
func TestTheClockGoesBackwards(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := open(t, Options{Now: func() time.Time { now = now.Add(-time.Hour); return now }})
	c := begin(t, s)
	for range 3 {
		if err := c.Activity(Processing, "llm_call"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(Message{Role: "assistant", Content: "a"}); err != nil {
			t.Fatal(err)
		}
		if err := c.TurnDone(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed}); err != nil {
		t.Fatal(err)
	}
	st, err := ReadState(c.Dir())
	if err != nil || st.ActiveMS < 0 || st.MessageCount != 3 {
		t.Errorf("%+v %v", st, err)
	}
	db, err := sql.Open("sqlite", "file:"+s.index.Path())
	must(t, err)
	defer func() { _ = db.Close() }()
	var ms int64
	if err := db.QueryRow(`SELECT sum(duration_ms) FROM task_days`).Scan(&ms); err != nil || ms < 0 {
		t.Errorf("%d ms %v", ms, err)
	}
}

// Numbers go on from the last one, also where another writer left gaps.
func TestNumbersGoOnAfterAGap(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if _, err := c.Append(Message{Role: "user", Content: "1"}); err != nil {
		t.Fatal(err)
	}
	dir := c.Dir()
	abandon(c)
	f, err := kernel.OpenFile(filepath.Join(dir, Messages), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seq":7,"role":"user","content":"7","timestamp":null,"tokens":0}` + "\n"); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	c, repairs, err := s.Claim(t.Context(), filepath.Base(dir))
	if err != nil || len(repairs) != 1 {
		t.Fatal(repairs, err)
	}
	got, err := c.Append(Message{Role: "user", Content: "8"})
	if err != nil || got[0].Seq != 8 {
		t.Errorf("%+v %v", got, err)
	}
	_ = c.Close()
}

// Making the index anew asks house.db what was delivered, and that is gone too.
func TestBothDatabasesDeletedWhileInUse(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Paused}, Effect{Key: "a", Kind: "label", Data: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(s.BaseDir, "*.db*"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := kernel.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := s.Enqueue(ctx, Metadata{TaskKey: task.Key{ID: "2"}}); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	if ids, err := s.WithUndelivered(t.Context()); err != nil || len(ids) != 1 {
		t.Errorf("to be delivered: %q %v", ids, err)
	}
}

// To ask for what is so already makes no new owner: the row would be of one
// that state.json does not know.
func TestAskingInVainLeavesTheRow(t *testing.T) {
	t.Parallel()
	for _, do := range []Action{Pause, Resume} {
		t.Run(string(do), func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			from := map[Action]task.Status{Pause: task.Paused, Resume: task.Queued}[do]
			c := begin(t, s)
			owed := Effect{Key: "a", Kind: "label", Data: json.RawMessage(`{}`)}
			if err := c.Transition(t.Context(), task.Outcome{Status: from}, owed); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Control(t.Context(), c.UUID(), do, "ken"); err != nil {
				t.Fatal(err)
			}
			g, err := s.index.Generation(t.Context(), c.UUID())
			if err != nil || g != c.State().Generation {
				t.Errorf("generation %d in the row, %d in state.json: %v", g, c.State().Generation, err)
			}
			if err := s.Acknowledge(t.Context(), c.UUID(), owed, ""); err != nil { // and the row is mended
				t.Fatal(err)
			}
		})
	}
}

// A state.json that fell behind its row is no reason to leave an end unfinished.
func TestAHalfDoneEndBehindItsRowIsFinished(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	c.mu.Lock()
	err := c.commit(t.Context(), task.Outcome{Status: task.Completed}, nil)
	c.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	abandon(c)
	query(t, s.BaseDir, `UPDATE tasks SET generation=9`)
	if _, _, err := s.Claim(t.Context(), c.UUID()); !errors.Is(err, ErrEnded) || errors.Is(err, ErrNotOwner) {
		t.Errorf("claimed: %v", err)
	}
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	if err != nil || v.Status() != task.Completed || v.State.Phase != "" || filepath.Base(filepath.Dir(v.Dir)) != DirCompleted {
		t.Errorf("%s, phase %q, in %s: %v", v.Status(), v.State.Phase, v.Dir, err)
	}
}

func TestAQueuedRunTellsOfNoEarlierTrouble(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Paused, Reason: "the disk is full"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Control(t.Context(), c.UUID(), Resume, "ken"); err != nil {
		t.Fatal(err)
	}
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	if err != nil || v.State.Error != nil || rowIn(t, s.index, c.UUID()).Error != "" {
		t.Errorf("%+v %v", v.State, err)
	}
}

// A stop that is asked for while the owner is about to pause is not forgotten.
func TestAStopThatCameTooLateWaitsForTheNextOwner(t *testing.T) {
	t.Parallel()
	var s *Store
	var c *Context
	var armed, asked bool
	s = open(t, Options{FS: &disk.FS{Before: func(op disk.Op) error {
		if armed && op.Kind == disk.Rename {
			armed = false
			a, err := s.Control(t.Context(), c.UUID(), Stop, "ken")
			asked = err == nil && a.Asked
		}
		return nil
	}}})
	c = begin(t, s)
	armed = true
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Paused}); err != nil || !asked {
		t.Fatal(err, asked)
	}
	next, _, err := s.Claim(t.Context(), c.UUID())
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := next.Request(); !ok || r.Action != Stop {
		t.Errorf("%+v %v", r, ok)
	}
	abandon(next)
	// Who puts it back into the queue wants it to go on.
	if _, err := s.Control(t.Context(), c.UUID(), Resume, "ken"); err != nil {
		t.Fatal(err)
	}
	if next, _, err = s.Claim(t.Context(), c.UUID()); err != nil {
		t.Fatal(err)
	}
	if r, ok := next.Request(); ok {
		t.Errorf("%+v", r)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whoever opens the store while an owner leaves must not put the row back to
// what was so a moment before.
func TestAnOpenerLeavesTheRowOfWhoIsLeaving(t *testing.T) {
	t.Parallel()
	s := open(t, Options{OnIndexError: func(error) {}})
	id := put(t, s, task.Paused)
	for range 30 {
		c, _, err := s.Claim(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		ctx, left := context.WithCancel(t.Context())
		done.Go(func() {
			for ctx.Err() == nil {
				if dir, err := s.dir(id); err == nil {
					_ = s.recoverOne(t.Context(), dir)
				}
			}
		})
		if err := c.Transition(t.Context(), task.Outcome{Status: task.Paused}); err != nil {
			t.Error(err)
		}
		left()
		done.Wait()
		if p, err := s.index.List(t.Context(), Filter{}); err != nil || len(p.Rows) != 1 || p.Rows[0].Status != task.Paused {
			t.Fatalf("%+v %v", p.Rows, err)
		}
	}
}

// What is written into a file that somebody removed or cut would be seen by
// nobody: the run must not end as if it were there.
func TestALogThatIsTakenAwayIsNoticed(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"removed": kernel.Remove,
		"cut":     func(path string) error { return kernel.Truncate(path, 10) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			c := begin(t, s)
			if _, err := c.Append(Message{Role: "user", Content: "hello"}); err != nil {
				t.Fatal(err)
			}
			if err := spoil(filepath.Join(c.Dir(), Messages)); err != nil {
				t.Fatal(err)
			}
			if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed}); err == nil || !strings.Contains(err.Error(), "was removed, replaced or cut") {
				t.Errorf("it ended: %v", err)
			}
			if v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true}); err != nil || v.Status() != task.Running {
				t.Errorf("%s %v", v.Status(), err)
			}
		})
	}
}
