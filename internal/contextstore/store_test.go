package contextstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

func open(t *testing.T, o Options) *Store {
	t.Helper()
	if o.BaseDir == "" {
		o.BaseDir = t.TempDir()
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2hunter2", "[SECRET]") }
	}
	if o.OnIndexError == nil {
		o.OnIndexError = func(err error) {
			if t.Context().Err() == nil { // a context left open outlives its test
				t.Errorf("index: %v", err)
			}
		}
	}
	placed(t, o.BaseDir)
	if strings.Contains(t.Name(), "/"+inPostgres) {
		serverOf(t, o.BaseDir)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// inPostgres is what the tests are called that have tasks.db and house.db there.
const inPostgres = "postgres"

// engines runs a test on each of the databases that the index and house.db may lie in.
func engines(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	for _, engine := range []string{"sqlite", inPostgres} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			f(t)
		})
	}
}

var schemas sync.Map // base directory -> URL of the schema that belongs to it

// serverOf has a base directory be kept by a schema of its own.
func serverOf(t *testing.T, base string) {
	t.Helper()
	if database.ServerOf(base) != nil {
		return
	}
	at, ok := schemas.Load(base)
	if !ok {
		at = pgtest.URL(t)
		schemas.Store(base, at)
	}
	s, err := database.Dial(t.Context(), database.ServerOptions{URL: at.(string)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	t.Cleanup(s.Serve(base))
}

// readHouse opens the house.db of a store for reading only.
func readHouse(t *testing.T, s *Store) *HouseDB {
	t.Helper()
	d, err := ReadHouseDB(t.Context(), s.BaseDir)
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

var key = task.Key{Source: "folder", Owner: "abc", Repo: "demo", Type: "issue", ID: "1"}

func begin(t *testing.T, s *Store) *Context {
	t.Helper()
	id, err := s.Enqueue(t.Context(), Metadata{TaskKey: key, User: "ken"})
	if err != nil {
		t.Fatal(err)
	}
	c, repairs, err := s.Claim(t.Context(), id)
	if err != nil || len(repairs) > 0 {
		t.Fatal(err, repairs)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func all(t *testing.T, c *Context) (out []Message) {
	t.Helper()
	err := c.Messages(0, func(m Message) bool { out = append(out, m); return true })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// abandon leaves a context as a killed process does: the kernel drops the lock
// and nothing else happens.
func abandon(c *Context) {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.shut()
}

func TestLifeOfATask(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		c := begin(t, s)
		got, err := c.Append(Message{Role: "system", Content: "be <good> & kind"}, Message{Role: "user", Content: "password hunter2hunter2"})
		if err != nil {
			t.Fatal(err)
		}
		if got[1].Content != "password [SECRET]" || got[1].Seq != 2 || got[1].Sum != 8 {
			t.Errorf("appended %+v", got[1])
		}
		if err := c.AppendTools(ToolRun{Tool: "shell", Args: json.RawMessage(`{"p":"hunter2hunter2"}`), Status: "success", Result: "ok"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(Message{Role: "assistant", Content: "called", Usage: &Usage{Prompt: 200, Completion: 50}}); err != nil {
			t.Fatal(err)
		}
		if err := c.TurnDone(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "done"}); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(s.BaseDir, "completed", c.UUID())
		raw, err := readFile(filepath.Join(dir, "messages.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(raw), `{"seq":1,"role":"system","content":"be <good> & kind","timestamp":"`) {
			t.Errorf("line %s", raw)
		}
		for _, f := range []string{"messages.jsonl", "tools.jsonl"} {
			if b, _ := readFile(filepath.Join(dir, f)); strings.Contains(string(b), "hunter2") {
				t.Errorf("%s holds the secret: %s", f, b)
			}
		}
		if _, err := kernel.Stat(filepath.Join(dir, ".lock")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf(".lock is still there: %v", err)
		}
		v, err := Find(s.BaseDir, c.UUID()[:8], Viewer{Admin: true})
		if err != nil || v.Status() != task.Completed || v.State.LLMCallCount != 1 || v.State.ToolCallCount != 1 || v.State.CompletedAt.IsZero() {
			t.Errorf("view %+v, %v", v.State, err)
		}
		if row := rowIn(t, s.index, c.UUID()); row.Status != "completed" || row.LLMCalls != 1 || row.Tokens != 250 {
			t.Errorf("row %+v", row)
		}
		err = filepath.Walk(s.BaseDir, func(p string, i os.FileInfo, err error) error {
			if err == nil && i.Mode().Perm()&0o077 != 0 && p != s.BaseDir && !strings.Contains(p, "tasks.db-") {
				t.Errorf("%s has mode %v", p, i.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestIllegalTransitionChangesNothing(t *testing.T) {
	t.Parallel()
	c := begin(t, open(t, Options{}))
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Running}); !errors.Is(err, task.ErrIllegalTransition) {
		t.Fatal(err)
	}
	if _, err := c.Append(Message{Role: "user"}); err != nil {
		t.Errorf("the context is no longer usable: %v", err)
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Paused, Reason: "asked"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(Message{Role: "user"}); !errors.Is(err, ErrEnded) {
		t.Errorf("append after the end: %v", err)
	}
}

func TestOneOwner(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		c := begin(t, s)
		other := open(t, Options{BaseDir: s.BaseDir})
		if _, _, err := other.Claim(t.Context(), c.UUID()); !errors.Is(err, ErrBusy) {
			t.Fatalf("second claim: %v", err)
		}
		var live *LiveError
		if _, err := other.Enqueue(t.Context(), Metadata{TaskKey: key}); !errors.As(err, &live) || live.UUID != c.UUID() {
			t.Fatalf("second run of the key: %v", err)
		}
		abandon(c)
		d, _, err := other.Claim(t.Context(), c.UUID())
		if err != nil {
			t.Fatal(err)
		}
		if d.State().Generation != 2 {
			t.Errorf("generation %d", d.State().Generation)
		}
		// The first owner, were it still alive, is told by the row.
		if err := s.putRow(t.Context(), c.meta, c.state); !errors.Is(err, ErrNotOwner) {
			t.Errorf("stale owner's update: %v", err)
		}
	})
}

func TestTornTailIsCutAndKept(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string]string{
		"half a line":  `{"seq":4,"role":"assistant","con`,
		"NULs":         strings.Repeat("\x00", 4096),
		"NULs, a line": strings.Repeat("\x00", 100) + "\n" + `{"seq":4,"role":"user","content":"x"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			c := begin(t, s)
			for i := range 3 {
				if _, err := c.Append(Message{Role: "user", Content: fmt.Sprint("message number ", i)}); err != nil {
					t.Fatal(err)
				}
			}
			want := all(t, c)
			abandon(c)
			f, err := kernel.OpenFile(filepath.Join(c.dir, Messages), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(tail); err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
			c, repairs, err := s.Claim(t.Context(), c.UUID())
			if err != nil || len(repairs) != 1 {
				t.Fatal(repairs, err)
			}
			if d := cmp.Diff(want, all(t, c)); d != "" {
				t.Error(d)
			}
			if b, _ := readFile(filepath.Join(c.dir, Messages+".cut")); string(b) != tail {
				t.Errorf("kept %q", b)
			}
			m, err := c.Append(Message{Role: "user", Content: "next"})
			if err != nil || m[0].Seq != 4 || m[0].Sum != want[2].Sum+1 {
				t.Errorf("%+v %v", m, err)
			}
		})
	}
}

func TestMissingNewlineIsAdded(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if _, err := c.Append(Message{Role: "user", Content: "one"}, Message{Role: "user", Content: "two"}); err != nil {
		t.Fatal(err)
	}
	abandon(c)
	p := filepath.Join(c.dir, Messages)
	st, _ := kernel.Stat(p)
	if err := kernel.Truncate(p, st.Size()-1); err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), c.UUID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(Message{Role: "user", Content: "three"}); err != nil {
		t.Fatal(err)
	}
	if n := len(all(t, c)); n != 3 {
		t.Errorf("%d messages", n)
	}
}

func TestUnreadableStateIsRebuilt(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if _, err := c.Append(Message{Role: "user", Content: "kept text"}); err != nil {
		t.Fatal(err)
	}
	abandon(c)
	if err := kernel.WriteFile(filepath.Join(c.dir, StateFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, repairs, err := s.Claim(t.Context(), c.UUID())
	if err != nil || len(repairs) != 1 {
		t.Fatal(repairs, err)
	}
	if c.LastSeq() != 1 || c.State().Generation != 2 {
		t.Errorf("seq %d, state %+v", c.LastSeq(), c.State())
	}
}

// A disk that fills up in the middle of a line leaves no half line behind, and
// the run can go on when there is room again.
func TestDiskFullWhileAppending(t *testing.T) {
	t.Parallel()
	var full bool
	fs := &disk.FS{Before: func(op disk.Op) error {
		if full && op.Kind == disk.Append {
			return &disk.ShortWrite{N: 7, Err: syscall.ENOSPC}
		}
		return nil
	}}
	s := open(t, Options{FS: fs})
	c := begin(t, s)
	if _, err := c.Append(Message{Role: "user", Content: "before"}); err != nil {
		t.Fatal(err)
	}
	full = true
	if _, err := c.Append(Message{Role: "user", Content: "lost"}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	full = false
	m, err := c.Append(Message{Role: "user", Content: "after"})
	if err != nil || m[0].Seq != 2 {
		t.Fatal(m, err)
	}
	got := all(t, c)
	if len(got) != 2 || got[1].Content != "after" {
		t.Errorf("%+v", got)
	}
}

func TestFailedSyncIsNotAcknowledgedAndNotRetried(t *testing.T) {
	t.Parallel()
	var broken bool
	fs := &disk.FS{Before: func(op disk.Op) error {
		if broken && op.Kind == disk.Sync && strings.HasSuffix(op.Path, Messages) {
			return syscall.EIO
		}
		return nil
	}}
	s := open(t, Options{FS: fs})
	c := begin(t, s)
	broken = true
	if _, err := c.Append(Message{Role: "user", Content: "x"}); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	broken = false
	if _, err := c.Append(Message{Role: "user", Content: "y"}); !errors.Is(err, disk.ErrPoisoned) {
		t.Errorf("a poisoned file took another line: %v", err)
	}
	abandon(c)
	c, _, err := s.Claim(t.Context(), c.UUID())
	if err != nil || c.LastSeq() != 0 {
		t.Errorf("seq %d, %v", c.LastSeq(), err)
	}
}

// Whatever step after the commit point a process dies at, the next opener
// finishes the transition.
func TestHalfDoneEndIsFinished(t *testing.T) {
	engines(t, func(t *testing.T) {
		for _, kind := range []disk.Kind{disk.Rename, disk.Replace, disk.Remove} {
			t.Run(string(kind), func(t *testing.T) {
				t.Parallel()
				var armed, committed bool
				died := errors.New("died here")
				fs := &disk.FS{Before: func(op disk.Op) error {
					if armed && committed && op.Kind == kind {
						return died
					}
					committed = committed || armed && op.Kind == disk.Replace
					return nil
				}}
				s := open(t, Options{FS: fs})
				c := begin(t, s)
				armed = true
				var unfinished *UnfinishedError
				if err := c.Transition(t.Context(), task.Outcome{Status: task.Failed, Reason: "red", Summary: "s"}); !errors.Is(err, died) || !errors.As(err, &unfinished) {
					t.Fatal(err)
				}
				armed = false
				if _, _, err := s.Claim(t.Context(), c.UUID()); !errors.Is(err, ErrEnded) {
					t.Fatal(err)
				}
				v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
				if err != nil || filepath.Base(filepath.Dir(v.Dir)) != "completed" || v.State.Phase != "" || v.Status() != task.Failed || v.Held {
					t.Errorf("%+v %v", v, err)
				}
				if v.State.Error == nil || *v.State.Error != "red" {
					t.Errorf("error %v", v.State.Error)
				}
				if _, err := kernel.Stat(filepath.Join(v.Dir, LockFile)); err == nil {
					t.Error(".lock stays")
				}
			})
		}
	})
}

func TestANewIndexKnowsTheLiveRuns(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{OnIndexError: func(error) {}})
		c := begin(t, s)
		for _, f := range []string{"tasks.db", "tasks.db-wal", "tasks.db-shm"} {
			_ = kernel.Remove(filepath.Join(s.BaseDir, f))
		}
		var live *LiveError
		if _, err := open(t, Options{BaseDir: s.BaseDir}).Enqueue(t.Context(), Metadata{TaskKey: key}); !errors.As(err, &live) || live.UUID != c.UUID() {
			t.Errorf("a second run of the key: %v", err)
		}
	})
}

func TestOneLiveRunWithoutAnIndex(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	if err := kernel.WriteFile(filepath.Join(base, "tasks.db"), []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{BaseDir: base, OnIndexError: func(error) {}})
	first := putKey(t, s, key, task.Paused)
	var live *LiveError
	if _, err := s.Enqueue(t.Context(), Metadata{TaskKey: key}); !errors.As(err, &live) || live.UUID != first || live.Status != task.Paused {
		t.Errorf("a second run of the key: %v", err)
	}
	if _, err := s.Control(t.Context(), first, Stop, "ken"); err != nil {
		t.Fatal(err)
	}
	// Of many at once one is begun.
	won := make(chan string)
	const n = 8
	for range n {
		go func() { id, _ := s.Enqueue(t.Context(), Metadata{TaskKey: key}); won <- id }()
	}
	var ids []string
	for range n {
		if id := <-won; id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) > 1 {
		t.Errorf("live at once: %v", ids)
	}
}

func TestAnInterruptionMakesNoSecondRun(t *testing.T) {
	t.Parallel()
	s := open(t, Options{OnIndexError: func(error) {}})
	first := putKey(t, s, key, task.Paused)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var live *LiveError
	if _, err := s.Enqueue(ctx, Metadata{TaskKey: key}); !errors.As(err, &live) || live.UUID != first {
		t.Errorf("a second run of the key: %v", err)
	}
}

func TestNothingDependsOnTheIndex(t *testing.T) {
	t.Parallel()
	s := open(t, Options{OnIndexError: func(error) {}})
	c := begin(t, s)
	for _, f := range []string{"tasks.db", "tasks.db-wal", "tasks.db-shm"} {
		_ = kernel.Remove(filepath.Join(s.BaseDir, f))
	}
	if _, err := c.Append(Message{Role: "user", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := c.TurnDone(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Paused}); err != nil {
		t.Fatal(err)
	}
	l, err := List(t.Context(), s.BaseDir, Viewer{Admin: true}, Filter{})
	if err != nil || len(l.Views) != 1 || l.Views[0].Status() != task.Paused {
		t.Errorf("%+v %v", l, err)
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	abandon(c)
	p := filepath.Join(c.dir, MetadataFile)
	b, _ := readFile(p)
	if err := kernel.WriteFile(p, []byte(strings.Replace(string(b), `"format":1`, `"format":99`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Claim(t.Context(), c.UUID()); err == nil || !strings.Contains(err.Error(), "format 99") {
		t.Error(err)
	}
}

func TestKilledAnswersAreCounted(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if _, err := c.Append(Message{Role: "user", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(Message{Role: "assistant", Content: "seen", Usage: &Usage{Total: 10}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Activity(Processing, "llm_call"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(Message{Role: "assistant", Content: "not seen", Usage: &Usage{Total: 7}}); err != nil {
		t.Fatal(err)
	}
	abandon(c)
	c, _, err := s.Claim(t.Context(), c.UUID())
	if err != nil || c.State().LLMCallCount != 2 || c.State().TotalTokensUsed != 17 {
		t.Errorf("%+v %v", c.State(), err)
	}
}

// A final summary that a kill tore does not keep the run from ending, and one
// of an attempt that was not committed does not stand for the one that was.
func TestFinalSummaryOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]string{
		"torn":    `{"id":1,"start_seq":1,"end_seq":2,"summ`,
		"another": `{"id":1,"start_seq":1,"end_seq":2,"summary":"failed","original_tokens":1,"summary_tokens":1,"ratio":1,"timestamp":"2024-01-15T10:32:00Z","final":true}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begin(t, open(t, Options{}))
			if err := kernel.WriteFile(filepath.Join(c.dir, Summaries), []byte(left), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "completed"}); err != nil {
				t.Fatal(err)
			}
			v, err := Find(c.store.BaseDir, c.UUID(), Viewer{Admin: true})
			if err != nil {
				t.Fatal(err)
			}
			var last Summary
			if err := v.Tail(Summaries, 1, func(b []byte) (err error) { last, err = DecodeSummary(b); return err }); err != nil || last.Summary != "completed" || !last.Final {
				t.Errorf("%+v %v", last, err)
			}
		})
	}
}

func TestWhoLostTheLockWritesNothing(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if err := kernel.Remove(filepath.Join(c.dir, LockFile)); err != nil {
		t.Fatal(err)
	}
	other := open(t, Options{BaseDir: s.BaseDir})
	if _, _, err := other.Claim(t.Context(), c.UUID()); !errors.Is(err, ErrBusy) {
		t.Fatalf("the owner lives, though its .lock is gone: %v", err)
	}
	if err := kernel.Remove(filepath.Join(c.dir, workLock)); err != nil {
		t.Fatal(err)
	}
	d, _, err := other.Claim(t.Context(), c.UUID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c.mu.Lock()
	_ = c.putRow(t.Context())
	c.mu.Unlock()
	if err := c.TurnDone(t.Context()); !errors.Is(err, ErrNotOwner) {
		t.Fatal(err)
	}
	if _, err := c.Append(Message{Role: "user"}); !errors.Is(err, ErrNotOwner) {
		t.Error(err)
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Failed}); !errors.Is(err, ErrNotOwner) {
		t.Error(err)
	}
	_ = c.Close()
	if _, err := d.Append(Message{Role: "user", Content: "mine"}); err != nil {
		t.Error(err)
	}
	if err := d.Transition(t.Context(), task.Outcome{Status: task.Completed}); err != nil {
		t.Error(err)
	}
}

func TestTwoEditionsAreRead(t *testing.T) {
	t.Parallel()
	m, err := DecodeMessage([]byte(`{"seq":4,"role":"tool","content":"c","timestamp":"2024-01-15T10:30:20.123Z","token_count":1200,"tool_name":"x","is_summarized":true}`))
	if err != nil || m.Tokens != 1200 || !m.Summarized || m.ToolName != "x" {
		t.Errorf("%+v %v", m, err)
	}
	u, err := DecodeSummary([]byte(`{"summary_id":2,"start_seq":51,"end_seq":90,"summary":"s","created_at":"2024-01-15T10:34:30.000Z","original_tokens":15000,"summary_tokens":950,"compression_ratio":0.063}`))
	if err != nil || u.ID != 2 || u.Ratio != 0.063 || u.Timestamp.IsZero() {
		t.Errorf("%+v %v", u, err)
	}
	r, err := DecodeToolRun([]byte(`{"seq":1,"tool_name":"t","arguments":{"a":1},"result":{"b":2},"status":"success","duration_ms":3,"timestamp":"2024-01-15T10:30:20.123Z"}`))
	if err != nil || r.Tool != "t" || string(r.Args) != `{"a":1}` || r.Result != `{"b":2}` {
		t.Errorf("%+v %v", r, err)
	}
}

func TestTurnCosts(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if err := c.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	_ = c.Activity(Processing, "llm_call") // the first after a checkpoint keeps that beside it
	before := s.FS.Counts()
	const turns = 50
	for range turns {
		_ = c.Activity(Processing, "llm_call")
		if _, err := c.Append(Message{Role: "assistant", ToolCalls: []ToolCall{{ID: "1", Name: "shell"}}}); err != nil {
			t.Fatal(err)
		}
		_ = c.Activity(Processing, "tool_execution")
		if err := c.AppendTools(ToolRun{Tool: "shell"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(Message{Role: "tool", ToolCallID: "1"}); err != nil {
			t.Fatal(err)
		}
		if err := c.TurnDone(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.FS.Counts().Syncs - before.Syncs; n < 2*turns || n > 2*turns+1 { // one more where the note above was written later
		t.Errorf("%d syncs in %d turns", n, turns)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	long := strings.Repeat("長い行", 20000)
	for i := range 30 {
		content := fmt.Sprint(i)
		if i%7 == 0 {
			content = long
		}
		if _, err := c.Append(Message{Role: "user", Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	if err != nil || !v.Held {
		t.Fatal(v.Held, err)
	}
	for _, n := range []int{0, 1, 2, 9, 30, 99, -1} {
		var seqs []int64
		err := v.Tail(Messages, n, func(b []byte) error {
			m, err := DecodeMessage(b)
			seqs = append(seqs, m.Seq)
			return err
		})
		want := min(30, n)
		if n < 0 {
			want = 30
		}
		if err != nil || len(seqs) != want || want > 0 && (seqs[0] != int64(31-want) || seqs[want-1] != 30) {
			t.Errorf("Tail(%d) = %v, %v", n, seqs, err)
		}
	}
}

// A run that is resumed goes from paused/ back to queued/.
func TestAContextIsFoundWhileItMoves(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	id := put(t, s, task.Paused)
	at := func(d string) string { return filepath.Join(s.BaseDir, d, id) }
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if err := errors.Join(kernel.Rename(at(DirPaused), at(DirQueued)), kernel.Rename(at(DirQueued), at(DirPaused))); err != nil {
				t.Error(err)
			}
			time.Sleep(50 * time.Microsecond) // nothing moves again and again while it is looked for
		}
	})
	for range 20_000 {
		if _, err := s.dir(id); err != nil {
			t.Error(err)
			break
		}
	}
	cancel()
	done.Wait()
}

// A run that failed because its time was up is a timeout in state.json and failed
// everywhere else (store-v2 §3.2, spec/README "status").
func TestATimeout(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Failed, Reason: "the time is up", TimedOut: true}); err != nil {
		t.Fatal(err)
	}
	v, err := s.View(c.UUID())
	if err != nil || v.State.Status != "timeout" || v.Status() != task.Failed || v.State.Error == nil {
		t.Errorf("%+v %v", v.State, err)
	}
	if r := rowIn(t, s.index, c.UUID()); r.Status != task.Failed || r.Error != "the time is up" {
		t.Errorf("%+v", r)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r := check(t, s.BaseDir, false); r.Found > 0 {
		t.Errorf("%+v", r.Findings)
	}
}
