// Package price tells what a model call costs: a table of prices in a YAML file
// that people can edit, a built-in one to start from, and a client that writes
// the cost beside the usage of each answer. It reads files and calls nobody.
package price

import (
	"math"
	"math/bits"

	"toritsugi/internal/llm"
)

// maxRate is the highest price a table may hold, in US dollars per million tokens.
const maxRate = 1e6

// Rates are prices in US dollars per million tokens, to six decimals.
type Rates struct {
	Input       float64 // of the prompt, neither read from a cache nor written to one
	CachedInput float64 // of the prompt, read from a cache
	CacheWrite  float64 // of the prompt, written to a cache
	Output      float64 // of the completion, reasoning included
}

// Price is what the calls of one model cost.
type Price struct {
	Rates
	// Above is the number of prompt tokens beyond which all tokens of a call
	// are charged at Long; 0 where the length makes no difference.
	Above int
	Long  Rates
}

// At is the prices of a call whose prompt has so many tokens.
func (p Price) At(prompt int) Rates {
	if p.Above > 0 && prompt > p.Above {
		return p.Long
	}
	return p.Rates
}

// Micros is what a call costs, in millionths of a US dollar, rounded to the
// nearest; what is more than an int64 holds is the highest int64. The prompt's
// tokens include those read from a cache and written to one, and the
// completion's include the reasoning, as all providers of this house report
// them. Where the total says that a server counted the reasoning apart, as some
// behind a chat-completions address do, it is charged as output once.
func (p Price) Micros(u llm.Usage) int64 {
	prompt := max(u.PromptTokens, 0)
	cached := min(max(u.CachedTokens, 0), prompt)
	written := min(max(u.CacheWriteTokens, 0), prompt-cached)
	r := p.At(prompt)
	var s sum
	s.add(prompt-cached-written, r.Input)
	s.add(cached, r.CachedInput)
	s.add(written, r.CacheWrite)
	s.add(max(u.CompletionTokens, 0), r.Output)
	s.add(apart(u), r.Output)
	return s.micros()
}

// apart is the reasoning that is not part of the completion: the total is then
// more than prompt and completion by just that.
func apart(u llm.Usage) int {
	if u.ReasoningTokens > 0 && u.TotalTokens > 0 &&
		u.TotalTokens-max(u.PromptTokens, 0)-max(u.CompletionTokens, 0) == u.ReasoningTokens {
		return u.ReasoningTokens
	}
	return 0
}

// sum adds costs in millionths of a millionth of a dollar, which a price of six
// decimals per million tokens comes to exactly. No token counts and prices
// within their ranges overflow its 128 bits.
type sum struct{ hi, lo uint64 }

func (s *sum) add(tokens int, rate float64) {
	hi, lo := bits.Mul64(uint64(tokens), units(rate))
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi += hi + carry
}

// units is a price of one token in millionths of a millionth of a dollar; what
// is out of range is the nearest that is in it.
func units(rate float64) uint64 {
	if !(rate > 0) { // NaN too
		return 0
	}
	return uint64(math.Round(min(rate, maxRate) * 1e6))
}

func (s *sum) micros() int64 {
	const unit = 1e6
	lo, carry := bits.Add64(s.lo, unit/2, 0)
	hi := s.hi + carry
	if hi >= unit {
		return math.MaxInt64
	}
	n, _ := bits.Div64(hi, lo, unit)
	return int64(min(n, math.MaxInt64))
}
