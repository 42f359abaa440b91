package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"toritsugi/internal/contextstore"
)

// Budget is the most that one run may take, over all its interruptions; 0 is
// no limit. What was taken is counted in the ledger, so a restart refills nothing.
type Budget struct {
	Turns  int // calls to the model
	Tokens int64
	Cost   int64 // millionths of a US dollar; a call whose price is not known adds nothing
	// Answers is the most tokens of all answers together: coder3.max_tokens.
	Answers int64
	Time    time.Duration // in an owner's hands, pauses not counted
}

// The settings that limit one run.
const (
	KeyTurns   = "budget.max_turns"
	KeyTokens  = "budget.max_tokens"
	KeyCost    = "budget.max_cost_usd"
	KeyAnswers = "coder3.max_tokens"
	KeyTime    = "budget.max_minutes"
)

// BudgetError says which limit leaves no room for another call.
type BudgetError struct {
	Key   string // the setting
	Limit string
	Taken string
	Next  string // what the call is thought to take; "" where the limit is reached without it
	// Last says that there is room for one call, and for none after it: Settings.KeepLast.
	Last bool
}

func (e *BudgetError) Error() string {
	if e.Next != "" {
		return fmt.Sprintf("the budget leaves no room for another call: %s of %s are taken, and one takes about %s (%s)", e.Taken, e.Limit, e.Next, e.Key)
	}
	return fmt.Sprintf("the budget is used up: %s of %s (%s)", e.Taken, e.Limit, e.Key)
}

// limit is one of a Budget, with what was taken of it and what the next call is thought to take:
// -1 where that is one, or not known.
type limit struct {
	key               string // the setting
	most, taken, next int64
	shown             func(int64) string
}

// limits are all of them.
func (b Budget) limits(s contextstore.State, next contextstore.Amount) []limit {
	count := func(n int64) string { return fmt.Sprint(n) }
	clock := func(ms int64) string { return (time.Duration(ms) * time.Millisecond).Round(time.Second).String() }
	return []limit{
		{KeyTurns, int64(b.Turns), s.LLMCallCount, -1, count},
		{KeyTokens, b.Tokens, s.TotalTokensUsed, next.Tokens, count},
		{KeyCost, b.Cost, s.CostMicroUSD, next.MicroUSD, contextstore.Dollars},
		{KeyAnswers, b.Answers, s.CompletionTokens, -1, count},
		{KeyTime, b.Time.Milliseconds(), s.ActiveMS, -1, clock},
	}
}

// Check returns a *BudgetError if there is no room for a call to the model that is
// thought to take so much.
func (b Budget) Check(s contextstore.State, next contextstore.Amount) error {
	for _, l := range b.limits(s, next) {
		if l.most > 0 && l.taken+max(l.next, 1) > l.most {
			return l.spent()
		}
	}
	return nil
}

// spent is the error of a limit.
func (l limit) spent() *BudgetError {
	e := &BudgetError{Key: l.key, Limit: l.shown(l.most), Taken: l.shown(l.taken)}
	if l.next >= 0 && l.taken < l.most {
		e.Next = l.shown(l.next)
	}
	return e
}

// spent is the error of a limit, by its setting.
func (b Budget) spent(key string, s contextstore.State, next contextstore.Amount) *BudgetError {
	all := b.limits(s, next)
	return all[slices.IndexFunc(all, func(l limit) bool { return l.key == key })].spent()
}

// Spent is the error that a limit, by its setting, ends the run with now.
func (l *Loop) Spent(key string) *BudgetError {
	s := l.Ledger.State()
	return l.Budget.spent(key, s, l.estimate(s))
}

// handoverTokens is how many tokens the call for a handover takes beyond a usual
// one: its prompt, and an answer that is longer than most.
const handoverTokens = 1500

// last returns a *BudgetError if a call leaves no room for the handover after it.
// The limit of time is left out: how long a call takes is not known.
func (b Budget) last(s contextstore.State, next contextstore.Amount) error {
	b.Answers, b.Time = 0, 0
	after := s
	after.LLMCallCount++
	after.TotalTokensUsed += next.Tokens
	after.CostMicroUSD += next.MicroUSD
	if next.Tokens > 0 {
		next.Tokens += handoverTokens
	}
	var spent *BudgetError
	if !errors.As(b.Check(after, next), &spent) {
		return nil
	}
	e := b.spent(spent.Key, s, next)
	e.Last = true
	return e
}

// HasRoom reports whether the budget of the run has room for a call and the
// handover after it. The estimate counts twice: that of an owner that has made no
// call yet is rough.
func (l *Loop) HasRoom() bool {
	s := l.Ledger.State()
	next := l.estimate(s)
	next.Tokens, next.MicroUSD = 2*next.Tokens, 2*next.MicroUSD
	return l.Budget.Check(s, next) == nil && l.Budget.last(s, next) == nil
}

// next is the most tokens that the next answer may have, 0 for no limit.
func (b Budget) next(s contextstore.State) int {
	if b.Answers <= 0 {
		return 0
	}
	return int(b.Answers - s.CompletionTokens)
}

// usualAnswer is how many tokens an answer is thought to have at least.
const usualAnswer = 500

// estimate is what the next call is thought to take: what the window holds, and
// an answer and a price like the last ones.
func (l *Loop) estimate(s contextstore.State) contextstore.Amount {
	next := contextstore.Amount{Turns: 1}
	if l.Scripted {
		return next
	}
	answer := int64(0)
	if priced := s.LLMCallCount - s.UnpricedCalls; priced > 0 {
		next.MicroUSD = s.CostMicroUSD / priced
	}
	if l.last != nil {
		answer = int64(l.last.Completion)
		if l.last.Cost != nil {
			next.MicroUSD = *l.last.Cost
		}
	}
	next.Tokens = int64(l.Window.Tokens()) + max(answer, usualAnswer)
	return next
}

// reserve reserves what the next call is thought to take; the errors are
// *BudgetError and those of Days. keep leaves the last call for the handover.
func (l *Loop) reserve(ctx context.Context, keep bool) error {
	s := l.Ledger.State()
	next := l.estimate(s)
	if err := l.Budget.Check(s, next); err != nil {
		return err
	}
	if keep && s.LLMCallCount > 0 {
		if err := l.Budget.last(s, next); err != nil {
			return err
		}
	}
	if l.Days == nil {
		return nil
	}
	return l.Days.Reserve(ctx, s, next)
}

// LastAnswer asks the model for the last time: none of the calls in its answer is run,
// each gets the result that says so. The errors are those of Run.
func (l *Loop) LastAnswer(ctx context.Context) (contextstore.Message, error) {
	if err := l.reserve(ctx, false); err != nil {
		return contextstore.Message{}, err
	}
	reply, err := l.ask(ctx)
	if err != nil {
		return contextstore.Message{}, err
	}
	answer, err := l.append(l.fromReply(reply))
	if err != nil {
		return contextstore.Message{}, err
	}
	if err := l.RefuseCalls(ctx); err != nil {
		return contextstore.Message{}, err
	}
	return answer, l.Ledger.TurnDone(ctx)
}

// notRun is the result of calls that come with the last answer.
const notRun = "Not run: the budget is used up, and the run ends here."

// RefuseCalls closes the calls that the last answer left open, none of which is run.
func (l *Loop) RefuseCalls(ctx context.Context) error { return l.closeOpen(ctx, notRun) }
