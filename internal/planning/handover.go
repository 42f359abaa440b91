package planning

import (
	"context"
	"errors"
	"fmt"

	"toritsugi/internal/turn"
)

// handoverKeys are the settings of the budgets that leave room for a last call.
var handoverKeys = map[string]string{BudgetTurns: turn.KeyTurns, BudgetTokens: turn.KeyTokens, BudgetMoney: turn.KeyCost}

// turns lets the model work until it answers without a call. Where the budget of
// the run has room for one call only, that is the handover.
func (co *Coordinator) turns(ctx context.Context, loop *turn.Loop) error {
	_, err := loop.Run(ctx)
	var spent *turn.BudgetError
	if !errors.As(err, &spent) || !spent.Last {
		return err
	}
	var ask Ask
	for budget, key := range handoverKeys {
		if key == spent.Key {
			ask.Budget = budget
		}
	}
	if co.plan != nil {
		ask.Done, ask.Open = co.parts()
	}
	co.log.Warn("The budget has room for one more call, which is the handover: " + spent.Error())
	if err := loop.Ask(ctx, askHandover+"/"+ask.Budget, co.prompts.render("handover", ask)); err != nil {
		return err
	}
	return co.handOver(ctx, loop)
}

// handover is the words to whoever goes on, which are asked for where a budget is used up.
type handover struct {
	Budget string `json:"budget"`          // the one
	Aside  phase  `json:"aside"`           // what was owed as they were asked for
	Given  bool   `json:"given,omitempty"` // the answer has come
	Words  string `json:"words,omitempty"` // that it gives
}

// takeBack lets the run go on with what was owed before the handover, where the
// budget was raised before that was given; else it ends with it, as handOver does.
func (co *Coordinator) takeBack(ctx context.Context, loop *turn.Loop) error {
	if co.s.Handover.Given || !loop.HasRoom() {
		return co.handOver(ctx, loop)
	}
	co.log.Info("The budget has room again: the run goes on without the handover")
	return loop.Ask(ctx, askOnward, co.prompts.render("onward", Ask{}))
}

// handOver asks for the words to whoever goes on, unless they were given, and
// returns the error that ends the run: a *turn.BudgetError, where nothing worse
// happened. It goes on wherever it was interrupted.
func (co *Coordinator) handOver(ctx context.Context, loop *turn.Loop) error {
	if !co.s.Handover.Given {
		if _, err := loop.LastAnswer(ctx); err != nil {
			return err
		}
	} else if err := loop.RefuseCalls(ctx); err != nil {
		return err
	}
	key, known := handoverKeys[co.s.Handover.Budget]
	if !known {
		return fmt.Errorf("a handover was asked for because of %q", co.s.Handover.Budget)
	}
	return loop.Spent(key)
}
