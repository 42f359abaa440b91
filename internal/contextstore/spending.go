package contextstore

import "fmt"

// Spending is what one call took.
func (u *Usage) Spending() (s Spending) {
	if u == nil {
		return s
	}
	s = Spending{PromptTokens: int64(u.Prompt), CachedTokens: int64(u.Cached), CacheWriteTokens: int64(u.CacheWrite),
		CompletionTokens: int64(u.Completion), ReasoningTokens: int64(u.Reasoning)}
	if u.Cost != nil {
		s.CostMicroUSD = *u.Cost
	} else {
		s.UnpricedCalls = 1
	}
	return s
}

// asides are calls to a model whose answers are no messages, as those that write
// summaries: what they took goes with the next line of summaries.jsonl, so that
// the files tell the totals.
type asides struct {
	calls, tokens int64
	estimated     bool
	Spending
}

func (a *asides) add(u *Usage) {
	a.calls, a.tokens, a.estimated = a.calls+1, a.tokens+u.Sum(), a.estimated || u.Estimated
	a.Add(u.Spending())
}

// put notes the calls in a summary.
func (a *asides) put(s *Summary) {
	s.Usage, s.Calls, s.Unpriced = nil, 0, 0
	if a.calls > 0 {
		s.Usage = &Usage{Prompt: int(a.PromptTokens), Completion: int(a.CompletionTokens), Cached: int(a.CachedTokens),
			CacheWrite: int(a.CacheWriteTokens), Reasoning: int(a.ReasoningTokens), Estimated: a.estimated}
		if a.tokens != s.Usage.Sum() {
			s.Usage.Total = int(a.tokens)
		}
		if a.UnpricedCalls < a.calls {
			cost := a.CostMicroUSD
			s.Usage.Cost, s.Unpriced = &cost, a.UnpricedCalls
		}
	}
	if a.calls > 1 {
		s.Calls = a.calls
	}
}

// Took is what the calls took that a summary notes, and how many they were.
func (s *Summary) Took() (calls, tokens int64, spent Spending) {
	calls, spent = s.Calls, s.Usage.Spending()
	if calls == 0 && s.Usage != nil {
		calls = 1
	}
	if s.Usage == nil || s.Usage.Cost != nil {
		spent.UnpricedCalls = s.Unpriced
	} else {
		spent.UnpricedCalls = calls
	}
	return calls, s.Usage.Sum(), spent
}

// Dollars is an amount in millionths of a US dollar as people read it: to the
// hundredth of a cent, and what is less than that exactly.
func Dollars(micro int64) string {
	sign, n := "", uint64(micro)
	if micro < 0 {
		sign, n = "-", -n
	}
	switch {
	case n == 0:
		return "$0"
	case n < 100:
		return fmt.Sprintf("%s$0.%06d", sign, n)
	}
	n = (n + 50) / 100
	return fmt.Sprintf("%s$%d.%04d", sign, n/10_000, n%10_000)
}
