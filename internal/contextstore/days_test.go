package contextstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/task"
)

// calendar is a clock that tests set.
type calendar struct {
	mu  sync.Mutex
	now time.Time
}

func (c *calendar) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *calendar) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

var evening = time.Date(2026, 5, 30, 23, 50, 0, 0, time.UTC)

// tokens is an amount of one call.
func tokens(turns, n int64) Amount { return Amount{Turns: turns, Tokens: n} }

// reserve asks for n tokens, and gives what of them is granted.
func reserve(t *testing.T, s *Store, uuid, user string, l DayLimits, taken Amount, n int64) (int64, *DayError) {
	t.Helper()
	g, err := s.ReserveDay(t.Context(), DayRun{UUID: uuid, User: user}, l, taken, tokens(1, 1), tokens(1, n))
	var refused *DayError
	if err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	return g.Most.Tokens, refused
}

// spentOn is what house.db has of a day.
func spentOn(t *testing.T, s *Store, day, user string) (a Amount) {
	t.Helper()
	p := a.Parts()
	err := s.houseDB.file.Use(func(h *database.Handles) error {
		return h.R.QueryRowContext(t.Context(), `SELECT coalesce(sum(turns),0), coalesce(sum(tokens),0), coalesce(sum(cost_micro_usd),0), coalesce(sum(active_ms),0)
			FROM day_budgets WHERE day=? AND user=?`, day, user).Scan(p[0], p[1], p[2], p[3])
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRunsOfAUserShareADay(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{Now: (&calendar{now: evening}).Now})
		l := DayLimits{User: Amount{Tokens: 100}}
		if n, refused := reserve(t, s, "a", "ken", l, Amount{}, 70); n != 70 || refused != nil {
			t.Fatal(n, refused)
		}
		if n, refused := reserve(t, s, "b", "ken", l, Amount{}, 70); n != 30 || refused != nil {
			t.Fatal("what another run holds is granted:", n, refused)
		}
		_, refused := reserve(t, s, "c", "ken", l, Amount{}, 70)
		if refused == nil || refused.Key != "budget.user_day.max_tokens" || refused.Limit != "100" || refused.Taken != "0" || refused.Held != "100" || !refused.Until.Equal(evening.Add(10*time.Minute)) {
			t.Fatalf("%+v", refused)
		}
		if n, refused := reserve(t, s, "d", "hanako", l, Amount{}, 70); n != 70 || refused != nil {
			t.Fatal("another user:", n, refused)
		}
		// a ends with less than it held, which is what b may have then.
		if err := s.SettleDay(t.Context(), DayRun{UUID: "a", User: "ken"}, tokens(2, 25), nil); err != nil {
			t.Fatal(err)
		}
		if n, refused := reserve(t, s, "b", "ken", l, tokens(1, 30), 70); n != 45 || refused != nil {
			t.Fatal(n, refused)
		}
		l.All = Amount{Tokens: 200}
		if n, refused := reserve(t, s, "e", "taro", l, Amount{}, 99); n != 30 || refused != nil { // 55 + 45 + 70 are gone
			t.Fatal("of all together:", n, refused)
		}
		if _, refused := reserve(t, s, "f", "jiro", l, Amount{}, 1); refused == nil || refused.Key != "budget.day.max_tokens" {
			t.Fatalf("%+v", refused)
		}
	})
}

// Whichever part of an amount is limited, it is what a reservation stops at, and
// the error is in its unit.
func TestEachLimitOfADay(t *testing.T) {
	engines(t, func(t *testing.T) {
		for part, want := range []DayError{
			{Key: "budget.day.max_turns", Limit: "120000", Taken: "90000", Needs: "40000"},
			{Key: "budget.day.max_tokens", Limit: "120000", Taken: "90000", Needs: "40000"},
			{Key: "budget.day.max_cost_usd", Limit: "$0.1200", Taken: "$0.0900", Needs: "$0.0400"},
			{Key: "budget.day.max_minutes", Limit: "2m0s", Taken: "1m30s", Needs: "40s"},
		} {
			s := open(t, Options{Now: (&calendar{now: evening}).Now})
			of := func(n int64) (a Amount) { *a.Parts()[part] = n; return a }
			l := DayLimits{All: of(120_000)}
			if g, err := s.ReserveDay(t.Context(), DayRun{UUID: "a"}, l, Amount{}, of(40_000), of(999_999)); err != nil || g.Most != of(120_000) {
				t.Error(g, err)
			}
			_, err := s.ReserveDay(t.Context(), DayRun{UUID: "a"}, l, of(90_000), of(40_000), of(999_999))
			want.Until = evening.Add(10 * time.Minute)
			var got *DayError
			if !errors.As(err, &got) || *got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
	})
}

// Many processes at once never get more together than the limit.
func TestReservationsDoNotOverlap(t *testing.T) {
	engines(t, func(t *testing.T) {
		clock := (&calendar{now: evening}).Now
		base := open(t, Options{Now: clock, NoSync: true})
		stores := []*Store{base, open(t, Options{Now: clock, BaseDir: base.BaseDir, NoSync: true}), open(t, Options{Now: clock, BaseDir: base.BaseDir, NoSync: true})}
		l := DayLimits{All: Amount{Tokens: 1000}}
		var mu sync.Mutex
		var all sync.WaitGroup
		granted, refusals := int64(0), 0
		for i := range 30 {
			all.Go(func() {
				g, err := stores[i%len(stores)].ReserveDay(t.Context(), DayRun{UUID: fmt.Sprint(i), User: fmt.Sprint(i % 4)}, l, Amount{}, tokens(1, 30), tokens(1, 70))
				mu.Lock()
				defer mu.Unlock()
				granted += g.Most.Tokens
				if errors.As(err, new(*DayError)) {
					refusals++
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if granted != 980 || refusals != 16 { // 14 × 70; the 20 that are left are too few for a call
			t.Errorf("%d granted, %d refused", granted, refusals)
		}
	})
}

// Whatever happens between a call and its settlement, the call counts once.
func TestWhatARunTookCountsOnce(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{Now: (&calendar{now: evening}).Now})
		l, run := DayLimits{User: Amount{Tokens: 1000}}, DayRun{UUID: "a", User: "ken"}
		reserve(t, s, "a", "ken", l, Amount{}, 100)
		// Killed after two calls; the next owner settles first, and may be killed then, too.
		for range 2 {
			reserve(t, s, "a", "ken", l, tokens(2, 40), 100)
			if got := spentOn(t, s, "2026-05-30", "ken"); got != tokens(2, 40) {
				t.Fatal(got)
			}
		}
		for range 2 {
			if err := s.SettleDay(t.Context(), run, tokens(3, 55), nil); err != nil {
				t.Fatal(err)
			}
		}
		// Counters that a damaged state.json lost count nothing back, nor twice.
		if err := s.SettleDay(t.Context(), run, tokens(1, 10), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.SettleDay(t.Context(), run, tokens(4, 60), nil); err != nil {
			t.Fatal(err)
		}
		if got := spentOn(t, s, "2026-05-30", "ken"); got != tokens(4, 60) {
			t.Error(got)
		}
		// What a run took before there were limits is of no day.
		old := DayRun{UUID: "old", User: "ken", Settled: tokens(9, 900)}
		if _, err := s.ReserveDay(t.Context(), old, l, tokens(9, 900), tokens(1, 1), tokens(1, 1)); err != nil {
			t.Error(err)
		}
		if got := spentOn(t, s, "2026-05-30", "ken"); got != tokens(4, 60) {
			t.Error(got)
		}
	})
}

// What was reserved on a day counts for it, also where it is settled on the next.
func TestARunOverMidnight(t *testing.T) {
	engines(t, func(t *testing.T) {
		clock := &calendar{now: evening}
		s := open(t, Options{Now: clock.Now})
		l := DayLimits{User: Amount{Tokens: 100}}
		reserve(t, s, "a", "ken", l, Amount{}, 100)
		clock.set(evening.Add(time.Hour))
		if n, refused := reserve(t, s, "a", "ken", l, tokens(3, 80), 100); n != 100 || refused != nil {
			t.Fatal(n, refused)
		}
		if err := s.SettleDay(t.Context(), DayRun{UUID: "a", User: "ken"}, tokens(4, 90), nil); err != nil {
			t.Fatal(err)
		}
		if first, second := spentOn(t, s, "2026-05-30", "ken"), spentOn(t, s, "2026-05-31", "ken"); first != tokens(3, 80) || second != tokens(1, 10) {
			t.Error(first, second)
		}
	})
}

// What a dead run holds counts until its day is over, or it is taken up.
func TestWhatADeadRunHolds(t *testing.T) {
	engines(t, func(t *testing.T) {
		clock := &calendar{now: evening}
		s := open(t, Options{Now: clock.Now})
		l := DayLimits{All: Amount{Tokens: 100}}
		reserve(t, s, "dead", "ken", l, Amount{}, 100)
		if _, refused := reserve(t, s, "b", "ken", l, Amount{}, 10); refused == nil {
			t.Fatal("what a dead run holds is granted")
		}
		if n, refused := reserve(t, s, "dead", "ken", l, tokens(1, 30), 40); n != 40 || refused != nil {
			t.Fatal("taken up:", n, refused)
		}
		if n, refused := reserve(t, s, "b", "ken", l, Amount{}, 99); n != 30 || refused != nil {
			t.Fatal(n, refused)
		}
		clock.set(evening.Add(time.Hour))
		if n, refused := reserve(t, s, "c", "ken", l, Amount{}, 100); n != 100 || refused != nil {
			t.Fatal("on the next day:", n, refused)
		}
	})
}

func TestAPausedRunWaitsForADayOrAnotherLimit(t *testing.T) {
	engines(t, func(t *testing.T) {
		clock := &calendar{now: evening}
		s := open(t, Options{Now: clock.Now})
		l, run := DayLimits{User: Amount{Tokens: 100}}, DayRun{UUID: "a", User: "ken"}
		over := func(l DayLimits) bool {
			t.Helper()
			over, err := s.DayOver(t.Context(), "a", l)
			if err != nil {
				t.Fatal(err)
			}
			return over
		}
		if over(l) {
			t.Error("a run that nothing is known of")
		}
		reserve(t, s, "b", "ken", l, Amount{}, 100)
		if err := s.SettleDay(t.Context(), DayRun{UUID: "b", User: "ken"}, tokens(1, 100), nil); err != nil {
			t.Fatal(err)
		}
		pause := func(waits *DayLimits) {
			reserve(t, s, "a", "ken", l, Amount{}, 1)
			if err := s.SettleDay(t.Context(), run, Amount{}, waits); err != nil {
				t.Fatal(err)
			}
		}
		pause(nil)
		if over(DayLimits{}) {
			t.Error("a run that somebody paused")
		}
		pause(&l)
		if over(l) || !over(DayLimits{User: Amount{Tokens: 200}}) || !over(DayLimits{}) {
			t.Error("on the same day")
		}
		clock.set(evening.Add(11 * time.Minute))
		if !over(l) {
			t.Error("on the next day")
		}
		reserve(t, s, "a", "ken", l, Amount{}, 1)
		if over(l) {
			t.Error("a run that goes on")
		}
		pause(&l)
		if err := s.StayPaused(t.Context(), "a"); err != nil || over(DayLimits{}) {
			t.Error("somebody wants it paused", err)
		}
	})
}

// A run that was refused before midnight and settled after it waits for the day
// that began meanwhile, which is here already.
func TestARunRefusedBeforeMidnightDoesNotWaitForAnotherOne(t *testing.T) {
	engines(t, func(t *testing.T) {
		clock := &calendar{now: time.Date(2026, 5, 30, 23, 59, 58, 0, time.UTC)}
		s := open(t, Options{Now: clock.Now})
		l := DayLimits{All: Amount{Tokens: 100}}
		if _, refused := reserve(t, s, "a", "ken", l, tokens(1, 7), 100); refused != nil {
			t.Fatal(refused)
		}
		if _, refused := reserve(t, s, "a", "ken", l, tokens(2, 107), 100); refused == nil {
			t.Fatal("there is room")
		}
		clock.set(clock.Now().Add(4 * time.Second))
		// The new day is as full, so that only its being another one counts.
		reserve(t, s, "b", "ken", l, Amount{}, 100)
		if err := s.SettleDay(t.Context(), DayRun{UUID: "a", User: "ken"}, tokens(2, 107), &l); err != nil {
			t.Fatal(err)
		}
		if over, err := s.DayOver(t.Context(), "a", l); err != nil || !over {
			t.Error("it waits a day too long", err)
		}
	})
}

// What others held and gave back is room for a run that was refused for it: for
// what it needed, and not for less.
func TestARunWaitsForWhatOthersHold(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{Now: (&calendar{now: evening}).Now})
		l, run := DayLimits{User: Amount{Tokens: 100}}, DayRun{UUID: "a", User: "ken"}
		reserve(t, s, "b", "ken", l, Amount{}, 90)
		if _, err := s.ReserveDay(t.Context(), run, l, Amount{}, tokens(1, 40), tokens(1, 80)); !errors.As(err, new(*DayError)) {
			t.Fatal(err)
		}
		if err := s.SettleDay(t.Context(), run, Amount{}, &l); err != nil {
			t.Fatal(err)
		}
		over := func(want bool) {
			t.Helper()
			if over, err := s.DayOver(t.Context(), "a", l); err != nil || over != want {
				t.Error(over, err)
			}
		}
		over(false)
		reserve(t, s, "b", "ken", l, tokens(1, 50), 11) // 61 are taken or held
		over(false)
		reserve(t, s, "b", "ken", l, tokens(1, 50), 10)
		over(true)
		reserve(t, s, "b", "ken", l, tokens(1, 61), 1)
		over(false)
	})
}

// That a run waits is known since it was refused, whether it was settled or not.
func TestARefusedRunWaitsBeforeItIsSettled(t *testing.T) {
	engines(t, func(t *testing.T) {
		clock := &calendar{now: evening}
		s := open(t, Options{Now: clock.Now})
		l := DayLimits{All: Amount{Tokens: 100}}
		reserve(t, s, "b", "ken", l, Amount{}, 100)
		if _, refused := reserve(t, s, "a", "ken", l, Amount{}, 1); refused == nil {
			t.Fatal("there is room")
		}
		for _, want := range []bool{false, true} {
			if over, err := s.DayOver(t.Context(), "a", l); err != nil || over != want {
				t.Error(over, err)
			}
			clock.set(evening.Add(time.Hour))
		}
	})
}

func TestPastDaysAreForgotten(t *testing.T) {
	engines(t, func(t *testing.T) {
		clock := &calendar{now: evening}
		s := open(t, Options{Now: clock.Now})
		l := DayLimits{User: Amount{Tokens: 1000}}
		c := begin(t, s)
		live := c.UUID()
		for _, uuid := range []string{live, "gone"} {
			reserve(t, s, uuid, "ken", l, Amount{}, 10)
			reserve(t, s, uuid, "ken", l, tokens(1, 7), 10)
		}
		known := func() (runs string) {
			t.Helper()
			err := s.houseDB.file.Use(func(h *database.Handles) error {
				all, err := database.Read(t.Context(), h.R, database.Text, `SELECT uuid FROM day_runs WHERE uuid<>'x'`)
				runs = strings.Join(all, ",")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return runs
		}
		clock.set(evening.AddDate(0, 0, 30))
		reserve(t, s, "x", "ken", l, Amount{}, 10)
		if spentOn(t, s, "2026-05-30", "ken") != tokens(2, 14) || known() != live+",gone" && known() != "gone,"+live {
			t.Error(spentOn(t, s, "2026-05-30", "ken"), known())
		}
		clock.set(evening.AddDate(0, 0, 40))
		reserve(t, s, "x", "ken", l, Amount{}, 10)
		if spentOn(t, s, "2026-05-30", "ken") != (Amount{}) || known() != live {
			t.Error(spentOn(t, s, "2026-05-30", "ken"), known())
		}
		// Once it is over, it goes as well.
		if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed}); err != nil {
			t.Fatal(err)
		}
		reserve(t, s, "x", "ken", l, Amount{}, 10)
		err := s.houseDB.file.Use(func(h *database.Handles) error {
			var n int
			err := h.R.QueryRowContext(t.Context(), `SELECT count(*) FROM day_runs WHERE uuid=?`, live).Scan(&n)
			return errors.Join(err, fails(n != 0))
		})
		if err != nil {
			t.Error("a run that ended long ago is kept")
		}
	})
}

func fails(yes bool) error {
	if yes {
		return errors.New("not so")
	}
	return nil
}

// A house.db that somebody removed is made anew, and what the run took since its
// owner knows counts.
func TestDaysOfAHouseThatWasRemoved(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Now: (&calendar{now: evening}).Now})
	l, run := DayLimits{User: Amount{Tokens: 1000}}, DayRun{UUID: "a", User: "ken", Settled: tokens(1, 10)}
	ask := func(ctx context.Context, taken Amount) {
		t.Helper()
		if _, err := s.ReserveDay(ctx, run, l, taken, tokens(1, 1), tokens(1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	ask(t.Context(), tokens(1, 10))
	for _, f := range []string{"house.db", "house.db-wal", "house.db-shm"} {
		_ = kernel.Remove(filepath.Join(s.BaseDir, f))
	}
	ask(t.Context(), tokens(2, 30))
	if got := spentOn(t, s, "2026-05-30", "ken"); got != tokens(1, 20) {
		t.Error(got)
	}
}

// What of a day's limits is nearly taken is told: the house's first, then each user's, of that day alone.
func TestNearLimits(t *testing.T) {
	engines(t, func(t *testing.T) {
		clock := &calendar{now: evening}
		s := open(t, Options{Now: clock.Now})
		l := DayLimits{User: Amount{Tokens: 1000}, All: Amount{Tokens: 1800, MicroUSD: 5_000_000}}
		for user, n := range map[string]int64{"ken": 900, "hanako": 899} {
			id := "run-of-" + user
			reserve(t, s, id, user, l, Amount{}, 900)
			must(t, s.SettleDay(t.Context(), DayRun{UUID: id, User: user}, Amount{Turns: 1, Tokens: n, MicroUSD: 1_000_000}, nil))
		}
		read := readHouse(t, s)
		for share, want := range map[float64][]DayUse{
			0.9:  {{"budget.day.max_tokens", "", "1799", "1800"}, {"budget.user_day.max_tokens", "ken", "900", "1000"}},
			0.95: {{"budget.day.max_tokens", "", "1799", "1800"}},
			1:    nil,
		} {
			for _, db := range []interface {
				NearLimits(context.Context, DayLimits, float64, time.Time) ([]DayUse, error)
			}{s, read} {
				near, err := db.NearLimits(t.Context(), l, share, evening)
				if d := cmp.Diff(want, near); d != "" || err != nil {
					t.Error(share, d, err)
				}
			}
		}
		if near, err := s.NearLimits(t.Context(), l, 0.9, evening.Add(time.Hour)); len(near) > 0 || err != nil {
			t.Error(near, err)
		}
	})
}
