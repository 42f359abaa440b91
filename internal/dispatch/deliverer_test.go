package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// A delivery that fails is tried again after pauses that grow, and a forge that
// asks for a rest gets it; what never can be delivered keeps nothing else back.
func TestCourierTriesAgain(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	owing := func(n int, kinds ...string) string {
		id := enqueue(t, s, "github", "a", "ken", n)
		c, _, err := s.Claim(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var all []contextstore.Effect
		for _, k := range kinds {
			all = append(all, contextstore.Effect{Key: id + "." + k, Kind: k, Data: json.RawMessage(`{}`)})
		}
		if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed}, all...); err != nil {
			t.Fatal(err)
		}
		return id
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var mu sync.Mutex // two runs' effects are delivered side by side
	var calls []string
	answers := map[string]error{}
	h := func(_ context.Context, _ string, e contextstore.Effect) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, e.Kind)
		return "done", answers[e.Kind]
	}
	lasting := &forge.Error{Kind: forge.Gone, Err: errors.New("it is gone")}
	stats := &Stats{}
	watch := &Watch{}
	c := NewDeliverer(&Deliverer{Store: s, Sources: map[string]bool{"github": true}, Watches: map[string]*Watch{"github": watch}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		Outbox: &Outbox{Store: s, Log: slog.New(slog.DiscardHandler), Stats: stats,
			Handlers: map[string]delivery.Handler{"push": h, "comment": h, "labels": h}}})
	id := owing(1, "push", "comment", "labels")
	sweep := func(want ...string) {
		t.Helper()
		calls = nil
		c.Sweep(t.Context())
		slices.Sort(calls)
		if !slices.Equal(calls, want) {
			t.Errorf("%v delivered %v, not %v", now.Format(time.TimeOnly), calls, want)
		}
	}
	late := func(age time.Duration, want int) {
		t.Helper()
		if n, uuid, err := c.Late(t.Context(), time.Now().Add(-age)); n != want || (uuid == id) != (want > 0) || err != nil {
			t.Errorf("late: %d %s %v", n, uuid, err)
		}
	}
	late(-time.Hour, 1)
	late(time.Hour, 0)
	c.Outbox.Later = "labels"
	late(-time.Hour, 1)
	c.Outbox.Later = ""
	answers["push"] = errors.New("no connection")
	sweep("push")
	sweep()
	now = now.Add(firstPause)
	sweep("push")
	now = now.Add(firstPause)
	sweep() // the second pause is longer
	now = now.Add(firstPause)
	answers["push"], answers["comment"] = nil, &forge.Error{Kind: forge.RateLimited, Wait: time.Minute, Err: errors.New("slower")}
	sweep("comment", "push")
	other := owing(2, "labels")
	now = now.Add(59 * time.Second)
	sweep() // the whole forge rests
	now = now.Add(time.Second)
	answers["comment"] = lasting
	sweep("comment", "labels", "labels")
	late(-time.Hour, 0)
	done, err := s.Delivered(t.Context(), id)
	if err != nil || done[id+".comment"] != delivery.NotDelivered+"it is gone" || done[id+".labels"] != "done" {
		t.Errorf("%v %v", done, err)
	}
	if left, err := s.Undelivered(t.Context(), other); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
	sweep()
	if n := stats.Counts(); n.Delivered != 4 || n.Failed != 3 {
		t.Errorf("%+v", n)
	}
	if len(c.late.all) != 0 {
		t.Errorf("%d runs are still counted as late", len(c.late.all))
	}
}
