package planning

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"toritsugi/internal/turn"
)

// handoverKeys are the settings of the budgets that leave room for a last call.
var handoverKeys = map[string]string{BudgetTurns: turn.KeyTurns, BudgetTokens: turn.KeyTokens, BudgetMoney: turn.KeyCost}

// turns lets the model work until it answers without a call. Where the budget of
// the run has room for one call only, that is the handover.
func (l *Lead) turns(ctx context.Context) error {
	_, err := l.loop.Run(ctx)
	var spent *turn.BudgetError
	if !errors.As(err, &spent) || !spent.Last {
		return err
	}
	ask := HandoverAsk{}
	for _, b := range slices.Sorted(maps.Keys(handoverKeys)) {
		if handoverKeys[b] == spent.Key {
			ask.Budget = b
		}
	}
	if l.plan != nil {
		ask.Done, ask.Open = l.parts()
	}
	l.log.Warn("The budget has room for one more call, which is the handover: " + spent.Error())
	if err := l.loop.Ask(ctx, askHandover+"/"+ask.Budget, l.prompts.Handover(ask)); err != nil {
		return err
	}
	return l.handOver(ctx)
}

// put is what a model owes, put aside for the handover.
type put struct {
	Asked string `json:"asked,omitempty"`
	Under string `json:"under,omitempty"`
	Want  string `json:"want,omitempty"`
	Posed int64  `json:"posed,omitempty"`
}

// takeBack lets the run go on with what was owed before the handover, where the
// budget was raised before that was given; else it ends with it, as handOver does.
func (l *Lead) takeBack(ctx context.Context) error {
	if l.s.HandedOver || !l.loop.HasRoom() {
		return l.handOver(ctx)
	}
	l.log.Info("The budget has room again: the run goes on without the handover")
	return l.loop.Ask(ctx, askOnward, l.prompts.Onward())
}

// handOver asks for the words to whoever goes on, unless they were given, and
// returns the error that ends the run: a *turn.BudgetError, where nothing worse
// happened. It goes on wherever it was interrupted.
func (l *Lead) handOver(ctx context.Context) error {
	if !l.s.HandedOver {
		if _, err := l.loop.Once(ctx); err != nil {
			return err
		}
	} else if err := l.loop.Refuse(ctx); err != nil {
		return err
	}
	key, known := handoverKeys[l.s.Handover]
	if !known {
		return fmt.Errorf("a handover was asked for because of %q", l.s.Handover)
	}
	return l.loop.Spent(key)
}
