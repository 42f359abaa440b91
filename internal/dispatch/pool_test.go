package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

func openStore(t *testing.T, base string) *contextstore.Store {
	t.Helper()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func enqueue(t *testing.T, s *contextstore.Store, source, repo, user string, n int) string {
	t.Helper()
	id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: source, Owner: "o", Repo: repo, Type: task.TypeIssue, ID: fmt.Sprint(n)}, User: user, Run: json.RawMessage(`{"ask":{"how":"label"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// shop is a pool whose work waits to be told to end.
type shop struct {
	*Pool
	mu     sync.Mutex
	at     map[string]chan task.Status // by uuid, what is being worked on
	most   int
	began  chan string
	ended  chan task.Status
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newShop(t *testing.T, s *contextstore.Store, q Queue, l Limits) *shop {
	t.Helper()
	h := &shop{at: map[string]chan task.Status{}, began: make(chan string, 1000), ended: make(chan task.Status, 1000)}
	h.Pool = NewPool(PoolOptions{Store: s, Queue: q, Sources: map[string]bool{"github": true}, Limits: l, Log: slog.New(slog.DiscardHandler), Now: time.Now, Stats: &Stats{},
		Claim: func(ctx context.Context, id string) (*contextstore.Context, error) {
			c, _, err := s.Claim(ctx, id)
			return c, err
		},
		Work: h.work, Ended: func(_ task.Key, r agent.Report, _ error) { h.ended <- r.Outcome.Status }})
	return h
}

func (h *shop) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h.cancel = cancel
	h.done.Go(func() { h.Run(ctx) })
	t.Cleanup(func() { cancel(); h.done.Wait() })
}

func (h *shop) work(ctx context.Context, c *contextstore.Context) (agent.Report, error) {
	end := make(chan task.Status, 1)
	h.mu.Lock()
	h.at[c.UUID()] = end
	h.most = max(h.most, len(h.at))
	h.mu.Unlock()
	h.began <- c.UUID()
	o := task.Outcome{Status: task.Queued}
	select {
	case o.Status = <-end:
	case <-ctx.Done():
		if !errors.Is(context.Cause(ctx), agent.ErrShutdown) {
			o.Status = task.Paused
		}
	}
	h.mu.Lock()
	delete(h.at, c.UUID())
	h.mu.Unlock()
	return agent.Report{UUID: c.UUID(), Outcome: o}, c.Transition(context.WithoutCancel(ctx), o)
}

func (h *shop) finish(id string, s task.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at[id] <- s
}

// next is the uuid of what is begun next, "" for nothing within a minute.
func (h *shop) next() string { return h.within(time.Minute) }

// more is the uuid of what is begun within a moment, "" for nothing.
func (h *shop) more() string { return h.within(300 * time.Millisecond) }

func (h *shop) within(d time.Duration) string {
	select {
	case id := <-h.began:
		return id
	case <-time.After(d):
		return ""
	}
}

func TestPoolKeepsOrderAndLimits(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, s *contextstore.Store, q Queue) {
		a1, a2, a3 := enqueue(t, s, "github", "a", "ken", 1), enqueue(t, s, "github", "a", "ken", 2), enqueue(t, s, "github", "a", "hana", 3)
		enqueue(t, s, "folder", "a", "ken", 4) // somebody's own
		b1 := enqueue(t, s, "github", "b", "ken", 5)
		c1 := enqueue(t, s, "github", "c", "jun", 6)
		h := newShop(t, s, q, Limits{Max: 3, PerRepository: 2, PerUser: 2})
		h.run(t)
		got := map[string]bool{h.next(): true, h.next(): true, h.next(): true}
		// a3 would be the third of its repository, b1 the third of its user.
		if !got[a1] || !got[a2] || !got[c1] || h.more() != "" {
			t.Fatalf("began %v", got)
		}
		if !h.Works(a1) || h.Works(a3) {
			t.Errorf("works on what began: %v; on what waits: %v", h.Works(a1), h.Works(a3))
		}
		h.finish(a1, task.Completed)
		if id := h.next(); id != a3 {
			t.Errorf("then %s, not %s", id, a3)
		}
		h.finish(a2, task.Failed)
		if id := h.next(); id != b1 {
			t.Errorf("then %s, not %s", id, b1)
		}
		if h.more() != "" || h.most > 3 {
			t.Errorf("%d at once", h.most)
		}
	})
}

// The runs of one source leave a place to the others, whose runs may come later.
func TestPoolLeavesAPlaceToOtherSources(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, s *contextstore.Store, q Queue) {
		first := enqueue(t, s, "github", "a", "ken", 1)
		second := enqueue(t, s, "github", "b", "ken", 2)
		h := newShop(t, s, q, Limits{Max: 2, PerSource: 1})
		h.Sources["gitea"] = true
		h.run(t)
		if id := h.next(); id != first || h.more() != "" {
			t.Fatalf("%s, and another one of the same source", id)
		}
		other := enqueue(t, s, "gitea", "a", "ken", 3)
		h.Wake()
		if id := h.next(); id != other {
			t.Errorf("then %s, not %s", id, other)
		}
		h.finish(first, task.Completed)
		if id := h.next(); id != second {
			t.Errorf("then %s, not %s", id, second)
		}
	})
}

func TestPoolPutsDownWhatItHolds(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, s *contextstore.Store, q Queue) {
		enqueue(t, s, "github", "a", "ken", 1)
		h := newShop(t, s, q, Limits{Max: 1})
		h.run(t)
		h.next()
		h.Hold(agent.PauseFor("a file"))
		if st := <-h.ended; st != task.Paused {
			t.Errorf("%s", st)
		}
		other := enqueue(t, s, "github", "a", "ken", 2)
		h.Wake()
		if began := h.more(); began != "" {
			t.Errorf("%s was begun while everything is held", began)
		}
		h.Release()
		if began := h.next(); began != other {
			t.Errorf("began %q", began)
		}
		h.cancel()
		h.done.Wait()
		v, err := s.View(other)
		if err != nil || v.Status() != task.Queued || v.State.Recoveries != 0 {
			t.Errorf("%s, %d recoveries, %v", v.Status(), v.State.Recoveries, err)
		}
	})
}

// A run that could not be begun is not begun again at once, and keeps nobody waiting.
func TestPoolLeavesAloneWhatCannotBegin(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, s *contextstore.Store, q Queue) {
		one, two := enqueue(t, s, "github", "a", "ken", 1), enqueue(t, s, "github", "a", "ken", 2)
		h := newShop(t, s, q, Limits{Max: 1})
		h.run(t)
		if id := h.next(); id != one {
			t.Fatal(id)
		}
		h.finish(one, task.Queued)
		if id := h.next(); id != two {
			t.Fatalf("%s, not %s", id, two)
		}
		if !h.Waits(one) || h.Waits(two) {
			t.Error("the first does not wait")
		}
		h.finish(two, task.Completed)
		if id := h.more(); id != "" {
			t.Errorf("%s was begun again", id)
		}
	})
}

func TestMonitor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		fail   bool
		deaths int
		want   task.Status
	}{{"first death", false, 1, task.Queued}, {"third death", false, 3, task.Queued}, {"fourth death", false, 4, task.Failed}, {"told to fail", true, 1, task.Failed}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			s := openStore(t, base)
			id, mine := enqueue(t, s, "github", "a", "ken", 1), enqueue(t, s, "folder", "a", "ken", 1)
			for range c.deaths {
				die(t, base, id)
				die(t, base, mine)
			}
			woken, failed := 0, 0
			if c.want == task.Failed {
				failed = 1
			}
			var left []string
			m := Monitor{Store: s, Sources: map[string]bool{"github": true}, Every: time.Hour, Stale: time.Minute, MaxAttempts: 3, Fail: c.fail,
				Lang: i18n.English, Log: slog.New(slog.DiscardHandler), Now: time.Now, Wake: func() { woken++ }, Stats: &Stats{},
				Left: func(v contextstore.View) { left = append(left, v.Metadata.UUID) }}
			if err := m.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			v, err := s.View(id)
			if err != nil || v.Status() != c.want || woken != 1+failed {
				t.Errorf("%s after %d deaths, woken %d, %v", v.Status(), c.deaths, woken, err)
			}
			if c.want == task.Failed && (v.State.Error == nil || *v.State.Error == "") {
				t.Error("it does not say why")
			}
			// A run that no source here takes up fails as others do; else it waits for
			// its person, who hears of it once.
			want := task.Running
			if failed == 1 {
				want = task.Failed
			}
			if v, err := s.View(mine); err != nil || v.Status() != want {
				t.Errorf("somebody's own run is %s, %v", v.Status(), err)
			}
			if err := m.Look(t.Context()); err != nil || woken != 1+failed {
				t.Errorf("a second look: %v, woken %d", err, woken)
			}
			if len(left) != 1-failed {
				t.Errorf("told of %v", left)
			}
		})
	}
}

// die claims a run as a process would that is then killed: its lock goes, and
// nothing else is written.
func die(t *testing.T, base, id string) {
	t.Helper()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// A run that panics is left as by a dead owner, and the others go on.
func TestPoolOutlivesAPanic(t *testing.T) {
	t.Parallel()
	eachQueue(t, func(t *testing.T, s *contextstore.Store, q Queue) {
		bad, good := enqueue(t, s, "github", "a", "ken", 1), enqueue(t, s, "github", "a", "ken", 2)
		h := newShop(t, s, q, Limits{Max: 1})
		work := h.Work
		h.Work = func(ctx context.Context, c *contextstore.Context) (agent.Report, error) {
			if c.UUID() == bad {
				panic("at the disco")
			}
			return work(ctx, c)
		}
		h.run(t)
		if id := h.next(); id != good {
			t.Fatalf("%q", id)
		}
		m := &Monitor{Store: s, Sources: map[string]bool{"github": true}, Stale: time.Hour, MaxAttempts: 3, Lang: i18n.English, Log: slog.New(slog.DiscardHandler), Now: time.Now, Wake: func() {}, Stats: &Stats{}}
		if err := m.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v, err := s.View(bad); err != nil || v.Status() != task.Queued || v.State.Recoveries != 1 {
			t.Errorf("%s, %d recoveries, %v", v.Status(), v.State.Recoveries, err)
		}
		h.finish(good, task.Completed)
	})
}

// What was heard at a moment is not heard again, and what else was said then is.
func TestHeard(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	said := func(id string, seconds int) forge.Comment {
		return forge.Comment{ID: id, Edited: at.Add(time.Duration(seconds) * time.Second)}
	}
	h, ok := parseBookmark(bookmark{until: at}.String())
	if !ok || h.has(said("note/1", 0)) || !h.has(said("note/1", -1)) {
		t.Errorf("%+v, %v", h, ok)
	}
	h.add(said("note/1", 0))
	h.add(said("note/2", 3))
	h.add(said("line/2", 3))
	h, ok = parseBookmark(h.String())
	for c, want := range map[forge.Comment]bool{said("note/1", 0): true, said("note/2", 3): true, said("line/2", 3): true, said("note/3", 3): false, said("note/2", 4): false} {
		if h.has(c) != want || !ok {
			t.Errorf("%s: %v, not %v", c.ID, !want, want)
		}
	}
	for _, bad := range []string{"", "yesterday note/1"} {
		if _, ok := parseBookmark(bad); ok {
			t.Errorf("%q is a mark", bad)
		}
	}
}
