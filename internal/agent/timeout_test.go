package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
	"toritsugi/internal/turn"
)

// A run whose time is up failed of that, whoever noticed it first, and of no other
// limit (store-v2 §3.2).
func TestARunWhoseTimeIsUp(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errOverTime)
	r := &run{Agent: &Agent{Budget: turn.Budget{Time: time.Minute}}}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{over, errors.New("killed"), true},
		{t.Context(), fmt.Errorf("turn: %w", &turn.BudgetError{Key: turn.KeyTime}), true},
		{t.Context(), &turn.BudgetError{Key: turn.KeyTokens}, false},
	} {
		if o := r.ended(c.ctx, c.err, i18n.English); o.Status != task.Failed || o.TimedOut != c.want || o.Reason == "" {
			t.Errorf("%v: %+v", c.err, o)
		}
	}
}
