package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// What a limit of the day paused goes on with the next day, by itself; what
// somebody paused does not.
func TestANewDayTakesUpWhatTheLastOnePaused(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 30, 23, 50, 0, 0, time.UTC)
	s := openStore(t, t.TempDir())
	s.Now = func() time.Time { return now }
	limits := contextstore.DayLimits{User: contextstore.Amount{Turns: 1}}
	one := contextstore.Amount{Turns: 1}
	runs := []string{enqueue(t, s, "github", "a", "ken", 1), enqueue(t, s, "github", "a", "ken", 2)}
	for i, id := range runs {
		c, _, err := s.Claim(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		run, waits := contextstore.DayRun{UUID: id, User: "ken"}, &limits
		if i > 0 {
			waits = nil
		}
		if _, err := s.ReserveDay(t.Context(), run, limits, contextstore.Amount{}, one, one); err != nil && !errors.As(err, new(*contextstore.DayError)) {
			t.Fatal(err)
		}
		if err := errors.Join(s.SettleDay(t.Context(), run, one, waits), c.Transition(t.Context(), task.Outcome{Status: task.Paused})); err != nil {
			t.Fatal(err)
		}
	}
	woken := 0
	m := &Monitor{Store: s, Sources: map[string]bool{"github": true}, Stale: time.Hour, MaxAttempts: 3, Lang: i18n.English, Log: slog.New(slog.DiscardHandler),
		Now: s.Now, Wake: func() { woken++ }, Stats: &Stats{}, Renewed: func(ctx context.Context, v contextstore.View) (bool, error) {
			return s.DayOver(ctx, v.Metadata.UUID, limits)
		}}
	look := func(first task.Status, wakes int) {
		t.Helper()
		if err := m.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []task.Status{first, task.Paused} {
			if v, err := s.View(runs[i]); err != nil || v.Status() != want || woken != wakes {
				t.Errorf("run %d is %s, want %s, woken %d: %v", i, v.Status(), want, woken, err)
			}
		}
	}
	look(task.Paused, 0)
	now = now.Add(10 * time.Minute)
	look(task.Queued, 1)
	look(task.Queued, 1)
}
