package turn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// noting is a Days that counts how often it is asked, and how often the store is.
type noting struct {
	*DayBudget
	granted int
}

func (n *noting) Reserve(ctx context.Context, s contextstore.State, next contextstore.Amount) error {
	before := n.grant
	err := n.DayBudget.Reserve(ctx, s, next)
	if before != n.grant {
		n.granted++
	}
	return err
}

// working are n answers that call a tool.
func working(n int) (all []func() (*llm.Reply, error)) {
	for i := range n {
		all = append(all, say("", call(fmt.Sprint(i), "write")))
	}
	return all
}

// limited gives a bench's loop a ledger of days.
func (b *bench) limited(l contextstore.DayLimits) *noting {
	n := &noting{DayBudget: &DayBudget{Store: b.store, Limits: l, Now: b.store.Now, Run: contextstore.DayRun{UUID: b.ctx.UUID(), User: "ken"}}}
	b.loop.Days = n
	return n
}

// A grant covers several calls, and what was used of it is settled with the next
// one and at the end.
func TestAGrantCoversSeveralCalls(t *testing.T) {
	t.Parallel()
	noon := func() time.Time { return time.Date(2026, 5, 30, 12, 0, 0, 0, time.UTC) }
	b := setupAt(t, noon, hands{"write": ok("w")}, append(working(39), say("done"))...)
	days := b.limited(contextstore.DayLimits{User: contextstore.Amount{Turns: 10_000, Tokens: 10_000_000}})
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if days.granted != 40/grantCalls {
		t.Errorf("%d grants for 40 calls", days.granted)
	}
	if err := days.Settle(t.Context(), b.ctx.State(), false); err != nil {
		t.Fatal(err)
	}
	// Another run may have what is left, to the token.
	rest := contextstore.Amount{Turns: 10_000 - 40, Tokens: 10_000_000 - 400}
	g, err := b.store.ReserveDay(t.Context(), contextstore.DayRun{UUID: "b", User: "ken"}, days.Limits, contextstore.Amount{}, contextstore.Amount{}, contextstore.Amount{Turns: 1 << 40, Tokens: 1 << 40})
	if err != nil || g.Most != rest {
		t.Errorf("%+v is left, want %+v: %v", g.Most, rest, err)
	}
}

// Where a fiftieth of a limit is less than a few calls, these are granted while
// they are no more than a tenth of it; one call is granted in any case.
func TestAGrantOfASmallLimitCoversAFewCalls(t *testing.T) {
	t.Parallel()
	type amount = contextstore.Amount
	call := amount{Turns: 1, Tokens: 100_000, MicroUSD: 200_000, MS: 1}
	minute := time.Minute.Milliseconds()
	for name, c := range map[string]struct{ limit, want amount }{
		"large":  {amount{Turns: 10_000, Tokens: 1e9, MicroUSD: 1e9, MS: 600 * minute}, amount{Turns: 8, Tokens: 800_000, MicroUSD: 1_600_000, MS: 5 * minute}},
		"modest": {amount{Turns: 99, Tokens: 5_000_000, MicroUSD: 10_000_000, MS: 60 * minute}, amount{Turns: 4, Tokens: 400_000, MicroUSD: 800_000, MS: 5 * minute / 2}},
		"small":  {amount{Turns: 20, Tokens: 2_000_000, MicroUSD: 3_000_000, MS: 10 * minute}, amount{Turns: 2, Tokens: 200_000, MicroUSD: 300_000, MS: minute}},
		"tiny":   {amount{Turns: 2, Tokens: 100_000, MicroUSD: 200_000, MS: 1}, call},
	} {
		for _, limits := range []contextstore.DayLimits{{User: c.limit}, {All: c.limit}} {
			if got := (&DayBudget{Limits: limits}).wants(call); got != c.want {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
		}
	}
}

func TestALimitOfTheDayStopsTheLoopBeforeACall(t *testing.T) {
	t.Parallel()
	noon := func() time.Time { return time.Date(2026, 5, 30, 12, 0, 0, 0, time.UTC) }
	b := setupAt(t, noon, hands{"write": ok("w")}, working(9)...)
	b.limited(contextstore.DayLimits{All: contextstore.Amount{Turns: 4}})
	_, err := b.loop.Run(t.Context())
	var over *contextstore.DayError
	if !errors.As(err, &over) || over.Key != "budget.day.max_turns" || b.ctx.State().LLMCallCount != 4 {
		t.Errorf("%v after %d calls", err, b.ctx.State().LLMCallCount)
	}
}

// At midnight, in the middle of a grant, what was taken is settled for the day that
// ends, and there is a new budget.
func TestMidnightBringsANewBudget(t *testing.T) {
	t.Parallel()
	for limit, calls := range map[int64]int64{4: 7, 1000: 10} { // 3, of which one ends late, and what the next day has
		var late atomic.Int64
		now := func() time.Time {
			return time.Date(2026, 5, 30, 23, 59, 0, 0, time.UTC).Add(time.Duration(late.Load()))
		}
		answers := append(working(9), say("done"))
		third := answers[2]
		answers[2] = func() (*llm.Reply, error) { late.Store(int64(time.Hour)); return third() }
		b := setupAt(t, now, hands{"write": ok("w")}, answers...)
		days := b.limited(contextstore.DayLimits{All: contextstore.Amount{Turns: limit}})
		_, err := b.loop.Run(t.Context())
		if paused := errors.As(err, new(*contextstore.DayError)); paused != (limit == 4) || b.ctx.State().LLMCallCount != calls {
			t.Errorf("%v after %d calls", err, b.ctx.State().LLMCallCount)
		}
		if err := days.Settle(t.Context(), b.ctx.State(), false); err != nil {
			t.Fatal(err)
		}
		left := limit - (calls - 3)
		g, err := b.store.ReserveDay(t.Context(), contextstore.DayRun{UUID: "b"}, days.Limits, contextstore.Amount{}, contextstore.Amount{}, contextstore.Amount{Turns: 1 << 40})
		if g.Most.Turns != left || (err != nil) != (left == 0) {
			t.Errorf("%d of %d are left, want %d: %v", g.Most.Turns, limit, left, err)
		}
	}
}

// Without a limit a run changes nothing in house.db.
func TestWithoutALimitNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t, hands{"write": ok("w")}, append(working(5), say("done"))...)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.store.BaseDir, "house.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1) // data_version is a connection's own
	version := func() (n int64) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), "PRAGMA data_version").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := version()
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if version() != before {
		t.Error("house.db was written")
	}
	// The look sees what is written.
	days := DayBudget{Store: b.store, Limits: contextstore.DayLimits{All: contextstore.Amount{Turns: 40}}, Now: time.Now, Run: contextstore.DayRun{UUID: b.ctx.UUID()}}
	if err := days.Reserve(t.Context(), b.ctx.State(), contextstore.Amount{}); err != nil || version() == before {
		t.Error("a reservation is not seen", err)
	}
}

// What a call is thought to take is what the window holds and an answer like the
// last one; one that does not fit is not made.
func TestACallThatWouldNotFitIsNotMade(t *testing.T) {
	t.Parallel()
	b := setup(t, hands{"write": ok("w")}, working(3)...)
	b.loop.Budget.Tokens = usualAnswer + 5
	b.loop.Budget.Tokens += int64(b.loop.Window.Tokens())
	_, err := b.loop.Run(t.Context())
	var over *BudgetError
	if !errors.As(err, &over) || over.Key != KeyTokens || over.Taken != "10" || over.Next == "" || over.Last || b.ctx.State().LLMCallCount != 1 {
		t.Errorf("%+v after %d calls", over, b.ctx.State().LLMCallCount)
	}
}

// The last call is left to whoever leads the run, whichever limit makes it so.
func TestTheLastCallIsKept(t *testing.T) {
	t.Parallel()
	price := int64(100)
	for name, c := range map[string]struct {
		budget Budget
		calls  int64
		key    string
	}{
		"turns":             {Budget{Turns: 4}, 3, KeyTurns},
		"the only one":      {Budget{Turns: 1}, 1, KeyTurns},
		"tokens":            {Budget{Tokens: 8000}, 0, KeyTokens},
		"money":             {Budget{Cost: 450}, 3, KeyCost},
		"money to the last": {Budget{Cost: 400}, 3, KeyCost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answers []func() (*llm.Reply, error)
			for i := range 20 {
				answers = append(answers, costs("", &price, call(fmt.Sprint(i), "write")))
			}
			b := setup(t, hands{"write": ok("w")}, answers...)
			b.loop.Budget, b.loop.KeepLast = c.budget, true
			_, err := b.loop.Run(t.Context())
			var over *BudgetError
			if !errors.As(err, &over) || over.Key != c.key || over.Last != (c.budget.Turns != 1) {
				t.Fatalf("%+v", over)
			}
			calls := b.ctx.State().LLMCallCount
			if c.calls > 0 && calls != c.calls {
				t.Errorf("%d calls, want %d", calls, c.calls)
			}
			if !over.Last {
				return
			}
			if _, err := b.loop.LastAnswer(t.Context()); err != nil {
				t.Errorf("there is no room for the last call: %v", err)
			}
			if s := b.ctx.State(); s.LLMCallCount != calls+1 || c.budget.Tokens > 0 && s.TotalTokensUsed > c.budget.Tokens || c.budget.Cost > 0 && s.CostMicroUSD > c.budget.Cost {
				t.Errorf("%+v", s)
			}
		})
	}
}

// None of the calls of the last answer is run, whether they only read or not, and
// each has its result, once, also where the run was interrupted before that.
func TestNoCallOfTheLastAnswerIsRun(t *testing.T) {
	t.Parallel()
	b := setup(t, hands{}, say("That is where it stands.", call("1", "write"), call("2", "look")))
	answer, err := b.loop.LastAnswer(t.Context())
	if err != nil || answer.Content != "That is where it stands." || b.roles(t) != "suatt" {
		t.Fatal(answer, err, b.roles(t))
	}
	for range 2 {
		if err := b.loop.RefuseCalls(t.Context()); err != nil || b.roles(t) != "suatt" {
			t.Error(err, b.roles(t))
		}
	}
	results := 0
	err = b.ctx.Messages(0, func(m contextstore.Message) bool {
		if m.Role == "tool" && m.Failed && m.Content == notRun {
			results++
		}
		return true
	})
	if err != nil || results != 2 {
		t.Errorf("%d results: %v", results, err)
	}
	open, _ := b.loop.Window.Unanswered()
	if len(open) > 0 {
		t.Errorf("open %v", open)
	}

	b = setup(t, hands{}, say("Where it stands.", call("1", "write"), call("2", "look")))
	b.loop.director = hooks{after: func(m contextstore.Message) error {
		if m.Role == "assistant" {
			return errors.New("killed")
		}
		return nil
	}}
	if _, err := b.loop.LastAnswer(t.Context()); err == nil || b.roles(t) != "sua" {
		t.Fatal(err, b.roles(t))
	}
	b.open(t, hands{})
	if err := b.loop.RefuseCalls(t.Context()); err != nil || b.roles(t) != "suatt" {
		t.Error(err, b.roles(t))
	}
}
