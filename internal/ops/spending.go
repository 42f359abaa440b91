package ops

import (
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// spending says what the calls of a run took and cost, line by line; nothing
// where no model was called.
// A replay repeats what its recording took, which it does not take again.
func spending(s contextstore.State, replayed bool, l i18n.Lang) []string {
	if s.Spending == (contextstore.Spending{}) {
		return nil
	}
	part := func(whole string, n int64, of string, m int64) string {
		text := l.T(whole, thousands(n))
		if m != 0 {
			text += l.T(of, thousands(m))
		}
		return text
	}
	lines := []string{
		part("ops.prompt", s.PromptTokens, "ops.cached", s.CachedTokens),
		part("ops.completion", s.CompletionTokens, "ops.reasoning", s.ReasoningTokens),
		l.T("ops.cost", cost(s, l)),
	}
	if replayed {
		lines = append(lines, l.T("ops.replayed"))
	}
	return lines
}

// cost is what the calls cost, as far as their prices were known.
func cost(s contextstore.State, l i18n.Lang) string {
	switch {
	case s.CostMicroUSD == 0 && s.UnpricedCalls >= s.LLMCallCount:
		return l.T("ops.cost_unknown")
	case s.UnpricedCalls == 1:
		return contextstore.Dollars(s.CostMicroUSD) + l.T("ops.unpriced_one")
	case s.UnpricedCalls > 0:
		return contextstore.Dollars(s.CostMicroUSD) + l.T("ops.unpriced", thousands(s.UnpricedCalls))
	}
	return contextstore.Dollars(s.CostMicroUSD)
}
