package turn

import (
	"fmt"
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

// BudgetError says which limit was reached.
type BudgetError struct {
	Key   string // the setting
	Limit string
	Taken string
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget is used up: %s of %s (%s)", e.Taken, e.Limit, e.Key)
}

// Check returns a *BudgetError if another call to the model is not allowed.
func (b Budget) Check(s contextstore.State) error {
	active := time.Duration(s.ActiveMS) * time.Millisecond
	switch {
	case b.Turns > 0 && s.LLMCallCount >= int64(b.Turns):
		return &BudgetError{"budget.max_turns", fmt.Sprint(b.Turns), fmt.Sprint(s.LLMCallCount)}
	case b.Tokens > 0 && s.TotalTokensUsed >= b.Tokens:
		return &BudgetError{"budget.max_tokens", fmt.Sprint(b.Tokens), fmt.Sprint(s.TotalTokensUsed)}
	case b.Cost > 0 && s.CostMicroUSD >= b.Cost:
		return &BudgetError{"budget.max_cost_usd", contextstore.Dollars(b.Cost), contextstore.Dollars(s.CostMicroUSD)}
	case b.Answers > 0 && s.CompletionTokens >= b.Answers:
		return &BudgetError{"coder3.max_tokens", fmt.Sprint(b.Answers), fmt.Sprint(s.CompletionTokens)}
	case b.Time > 0 && active >= b.Time:
		return &BudgetError{"budget.max_minutes", b.Time.String(), active.Round(time.Second).String()}
	}
	return nil
}

// next is the most tokens that the next answer may have, 0 for no limit.
func (b Budget) next(s contextstore.State) int {
	if b.Answers <= 0 {
		return 0
	}
	return int(b.Answers - s.CompletionTokens)
}
