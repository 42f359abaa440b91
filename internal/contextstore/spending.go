package contextstore

import "fmt"

// Spending is what calls to the model took: sums over their Usage. A call
// without one, as a script makes it, counts nowhere.
type Spending struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CachedTokens     int64 `json:"cached_tokens"`      // of the prompt, read from a cache
	CacheWriteTokens int64 `json:"cache_write_tokens"` // of the prompt, written to a cache
	CompletionTokens int64 `json:"completion_tokens"`
	ReasoningTokens  int64 `json:"reasoning_tokens"` // of the completion
	CostMicroUSD     int64 `json:"cost_micro_usd"`   // millionths of a US dollar, of the calls whose price was known
	UnpricedCalls    int64 `json:"unpriced_calls"`   // those whose price was not
}

// The sums as columns of tasks.db, in the order of sums: their names, as an update
// sets them, and summed up.
const (
	spendingColumns = `prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens, cost_micro_usd, unpriced_calls`
	spendingSet     = `prompt_tokens=?, cached_tokens=?, cache_write_tokens=?, completion_tokens=?, reasoning_tokens=?, cost_micro_usd=?, unpriced_calls=?`
	spendingSums    = `sum(prompt_tokens), sum(cached_tokens), sum(cache_write_tokens), sum(completion_tokens), sum(reasoning_tokens),
	sum(cost_micro_usd), sum(unpriced_calls)`
)

// sums are the fields in the order of spendingColumns.
func (s *Spending) sums() [7]*int64 {
	return [...]*int64{&s.PromptTokens, &s.CachedTokens, &s.CacheWriteTokens, &s.CompletionTokens, &s.ReasoningTokens, &s.CostMicroUSD, &s.UnpricedCalls}
}

// spending is what one call took.
func (u *Usage) spending() (s Spending) {
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
	a.plus(u.spending())
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

// asidesOf are the calls that a summary notes.
func asidesOf(s *Summary) asides {
	a := asides{calls: s.Calls, tokens: s.Usage.Sum(), Spending: s.Usage.spending()}
	if a.calls == 0 && s.Usage != nil {
		a.calls = 1
	}
	if s.Usage != nil && s.Usage.Cost == nil {
		a.UnpricedCalls = a.calls
	} else {
		a.UnpricedCalls = s.Unpriced
	}
	return a
}

// values are the sums as a statement takes them.
func (s *Spending) values() (all []any) {
	for _, n := range s.sums() {
		all = append(all, *n)
	}
	return all
}

// fields are where the columns are scanned to.
func (s *Spending) fields() (all []any) {
	for _, n := range s.sums() {
		all = append(all, (*anyNumber)(n))
	}
	return all
}

func (s *Spending) plus(o Spending) {
	all := s.sums()
	for i, n := range o.sums() {
		*all[i] += *n
	}
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
