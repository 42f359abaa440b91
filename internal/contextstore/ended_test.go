package contextstore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/task"
)

// clocked is a store whose time the test sets.
func clocked(t *testing.T, now *time.Time) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return strings.ReplaceAll(s, "secret", "[X]") }, Now: func() time.Time { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// ended makes a run and ends it.
func ended(t *testing.T, s *Store, k task.Key, o task.Outcome) string {
	t.Helper()
	id, err := s.Enqueue(t.Context(), Metadata{TaskKey: k})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Transition(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return id
}

// The query of inherit §4.1, by the index and by the directories: the last
// completed or stopped run of the very key, at or after a time.
func TestLastEnded(t *testing.T) {
	engines(t, func(t *testing.T) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 5000, time.UTC)
		s := clocked(t, &now)
		k := task.Key{Source: "github", Owner: "o", Repo: "r", Type: "issue", ID: "7"}
		at := map[string]time.Time{}
		end := func(k task.Key, o task.Status) string {
			now = now.Add(time.Hour)
			id := ended(t, s, k, task.Outcome{Status: o, Summary: "s"})
			at[id] = now
			return id
		}
		first := end(k, task.Completed)
		stopped := end(k, task.Stopped)
		end(k, task.Failed)
		for _, f := range []func(*task.Key){
			func(k *task.Key) { k.Source = "gitlab" }, func(k *task.Key) { k.Owner = "p" }, func(k *task.Key) { k.Repo = "s" },
			func(k *task.Key) { k.Type = "pull_request" }, func(k *task.Key) { k.ID = "70" },
		} {
			other := k
			f(&other)
			end(other, task.Completed)
		}
		look := func(by string, find func(since time.Time) (View, bool, error)) {
			t.Helper()
			for _, tc := range []struct {
				name  string
				since time.Time
				want  string
			}{{"long ago", time.Time{}, stopped}, {"to the microsecond", at[stopped], stopped}, {"just expired", at[stopped].Add(time.Microsecond), ""}} {
				v, ok, err := find(tc.since)
				if err != nil || ok != (tc.want != "") || v.Metadata.UUID != tc.want {
					t.Errorf("%s, %s: %q, %v, %v", by, tc.name, v.Metadata.UUID, ok, err)
				}
			}
		}
		look("index", func(since time.Time) (View, bool, error) { return s.LastEnded(t.Context(), k, since) })
		look("directories", func(since time.Time) (View, bool, error) {
			all, err := s.scanEnded(k, since, 1)
			if len(all) == 0 {
				return View{}, false, err
			}
			return all[0], true, err
		})
		both := func(by string, all []View, err error) {
			t.Helper()
			if err != nil || len(all) != 2 || all[0].Metadata.UUID != stopped || all[1].Metadata.UUID != first {
				t.Errorf("%s: %d runs, %v", by, len(all), err)
			}
		}
		all, err := s.Ended(t.Context(), k, time.Time{}, 9)
		both("index", all, err)
		all, err = s.scanEnded(k, time.Time{}, 9)
		both("directories", all, err)
		if all, err := s.Ended(t.Context(), k, at[stopped], 9); err != nil || len(all) != 1 {
			t.Errorf("expired: %d runs, %v", len(all), err)
		}
		if all, err := s.Ended(t.Context(), k, time.Time{}, 1); err != nil || len(all) != 1 || all[0].Metadata.UUID != stopped {
			t.Errorf("one: %d runs, %v", len(all), err)
		}
		// An index that was deleted holds nothing; the directories tell.
		for _, f := range []string{"tasks.db", "tasks.db-wal", "tasks.db-shm"} {
			_ = kernel.Remove(filepath.Join(s.BaseDir, f))
		}
		look("new index", func(since time.Time) (View, bool, error) { return s.LastEnded(t.Context(), k, since) })
	})
}

func TestLastEndedErrors(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := clocked(t, &now)
	k := task.Key{ID: "7"}
	id := ended(t, s, k, task.Outcome{Status: task.Completed})
	if err := kernel.RemoveAll(filepath.Join(s.BaseDir, "completed", id)); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.LastEnded(t.Context(), k, time.Time{}); !ok || !errors.Is(err, ErrNotFound) {
		t.Errorf("directory gone: %v %v", ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.LastEnded(ctx, k, time.Time{}); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("cancelled: %v", err)
	}
	_ = s.index.Close()
	if _, _, err := s.LastEnded(t.Context(), k, time.Time{}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("closed: %v", err)
	}
}

func TestLastFinal(t *testing.T) {
	engines(t, func(t *testing.T) {
		const final, other = `{"id":2,"start_seq":1,"end_seq":9,"summary":"all","final":true}` + "\n", `{"id":1,"start_seq":2,"end_seq":5,"summary":"part"}` + "\n"
		for name, tc := range map[string]struct {
			text, want string
			damaged    bool
		}{
			"none":           {},
			"alone":          {final, "all", false},
			"after another":  {other + final, "all", false},
			"before another": {final + other, "", false},
			"no final one":   {other, "", false},
			"torn":           {final[:30], "", true},
			"torn end":       {final + other[:20], "", true},
			"no newline":     {strings.TrimSuffix(final, "\n"), "", true},
			"NULs":           {final + strings.Repeat("\x00", 50) + "\n", "", true},
			"not JSON":       {final + "oops\n", "", true},
			"no UTF-8":       {strings.Replace(final, "all", "a\xffl", 1), "a\ufffdl", false},
			"too long":       {`{"id":1,"summary":"` + strings.Repeat("x", 2*maxFinal) + `","final":true}` + "\n", "", true},
			"long before it": {`{"id":1,"summary":"` + strings.Repeat("x", 2*maxFinal) + `"}` + "\n" + final, "all", false},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v := View{Dir: t.TempDir()}
				if name != "none" {
					if err := kernel.WriteFile(filepath.Join(v.Dir, Summaries), []byte(tc.text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				got, err := v.LastFinal()
				if errors.Is(err, ErrDamaged) != tc.damaged || (err != nil) != tc.damaged {
					t.Fatal(err)
				}
				if (got == nil) != (tc.want == "") || got != nil && got.Summary != tc.want {
					t.Errorf("%+v, want %q", got, tc.want)
				}
			})
		}
		if _, err := (View{Dir: filepath.Join(t.TempDir(), "gone")}).LastFinal(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no directory: %v", err)
		}
	})
}

// A summary that a model wrote is written once, behind that of the transition, which
// holds until then, and what it took is counted.
func TestFinalSummaryByAModel(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := clocked(t, &now)
	cost := int64(7)
	for by, want := range map[string]string{
		"openai/m": `"final":true,"outcome":"completed","answered_by":"openai/m","usage":{"prompt_tokens":100,"completion_tokens":20,"cost_micro_usd":7}}`,
		"":         `"final":true,"outcome":"completed","extractive":true}`,
	} {
		id, err := s.Enqueue(t.Context(), Metadata{TaskKey: task.Key{ID: "by " + by}})
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := s.Claim(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		const text = "Outcome: completed. The secret is out."
		model := Summary{Summary: text, AnsweredBy: by, Usage: &Usage{Prompt: 100, Completion: 20, Cost: &cost}}
		if err := s.AppendFinal(t.Context(), id, model); err == nil {
			t.Error("it is not over")
		}
		if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "Outcome: completed."}); err != nil {
			t.Fatal(err)
		}
		if by == "" {
			model = Summary{Summary: "  "} // nothing came, and nothing was taken
		}
		for range 2 { // as a killed process has it done again
			if err := s.AppendFinal(t.Context(), id, model); err != nil {
				t.Fatal(err)
			}
		}
		v, err := s.View(id)
		if err != nil {
			t.Fatal(err)
		}
		b, err := readFile(filepath.Join(v.Dir, Summaries))
		if err != nil || bytes.Count(b, []byte("\n")) != 1+min(len(by), 1) || !bytes.HasSuffix(b, []byte(want+"\n")) || bytes.Contains(b, []byte("secret")) {
			t.Errorf("%s %v", b, err)
		}
		if by != "" && (v.State.TotalTokensUsed != 120 || v.State.CostMicroUSD != 7 || v.State.LLMCallCount != 1) {
			t.Errorf("%+v", v.State)
		}
	}
}

// Killed at each call that writes the summary of a model, torn or whole, and done
// again: it stands there once, it is counted, and until then that of the transition
// is what a run inherits.
func TestFinalSummaryKilled(t *testing.T) {
	t.Parallel()
	const ours, theirs = "Outcome: completed. By the records.", "Outcome: completed. By a model."
	for i := range 60 {
		stop := &disktest.Stopper{At: 1 + i/2, Torn: i%2 == 1}
		base := t.TempDir()
		s, err := Open(t.Context(), Options{BaseDir: base, Redact: func(s string) string { return s }})
		if err != nil {
			t.Fatal(err)
		}
		id := ended(t, s, task.Key{ID: "7"}, task.Outcome{Status: task.Completed, Summary: ours})
		model := Summary{Summary: theirs, AnsweredBy: "openai/m", Usage: &Usage{Prompt: 100, Completion: 20}}
		s.FS = &disk.FS{Before: stop.Before, Flush: disktest.NoFlush}
		killed := errors.Is(s.AppendFinal(t.Context(), id, model), disktest.ErrStopped)
		_ = s.Close()
		if s, err = Open(t.Context(), Options{BaseDir: base, Redact: func(s string) string { return s }}); err != nil {
			t.Fatal(err)
		}
		v, err := s.View(id)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := v.LastFinal(); err == nil && f.Summary != ours && f.Summary != theirs || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("call %d: %+v %v", stop.At, f, err)
		}
		for range 2 {
			if err := s.AppendFinal(t.Context(), id, model); err != nil {
				t.Fatalf("call %d: %v", stop.At, err)
			}
		}
		if v, err = s.View(id); err != nil {
			t.Fatal(err)
		}
		b, err := readFile(filepath.Join(v.Dir, Summaries))
		f, ferr := v.LastFinal()
		if err := errors.Join(err, ferr); err != nil || f.Summary != theirs || f.Extractive || bytes.Count(b, []byte(`"openai/m"`)) != 1 || bytes.Count(b, []byte("\n")) != 2 {
			t.Errorf("call %d: %v\n%s", stop.At, err, b)
		}
		row, _, err := s.LastEnded(t.Context(), task.Key{ID: "7"}, time.Time{})
		// A call that was counted and whose line was lost is made again: both were made.
		if n := v.State.LLMCallCount; err != nil || n != 1 && (!killed || n != 2) || v.State.TotalTokensUsed != 120*n || row.State.LLMCallCount != n || v.Status() != task.Completed {
			t.Errorf("call %d: %v, %d calls, %d tokens", stop.At, err, n, v.State.TotalTokensUsed)
		}
		_ = s.Close()
		if !killed {
			if i < 4 {
				t.Errorf("it took %d calls only", i/2)
			}
			return
		}
	}
	t.Error("it never came to its end")
}
