package index

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

// The sums as columns of tasks.db, in the order of sums: their names, and as an update
// sets them.
const (
	spendingColumns = `prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens, cost_micro_usd, unpriced_calls`
	spendingSet     = `prompt_tokens=?, cached_tokens=?, cache_write_tokens=?, completion_tokens=?, reasoning_tokens=?, cost_micro_usd=?, unpriced_calls=?`
)

// sums are the fields in the order of spendingColumns.
func (s *Spending) sums() [7]*int64 {
	return [...]*int64{&s.PromptTokens, &s.CachedTokens, &s.CacheWriteTokens, &s.CompletionTokens, &s.ReasoningTokens, &s.CostMicroUSD, &s.UnpricedCalls}
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

// Add adds what was spent besides.
func (s *Spending) Add(o Spending) {
	all := s.sums()
	for i, n := range o.sums() {
		*all[i] += *n
	}
}
