package price

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/llm"
)

var sonnet = Price{Rates: Rates{Input: 3, CachedInput: 0.3, CacheWrite: 3.75, Output: 15}}

func TestMicros(t *testing.T) {
	t.Parallel()
	tiered := Price{Rates: Rates{1, 1, 1, 2}, Above: 1000, Long: Rates{10, 10, 10, 20}}
	for _, c := range []struct {
		name string
		p    Price
		u    llm.Usage
		want int64
	}{
		{"nothing", sonnet, llm.Usage{}, 0},
		{"plain", sonnet, llm.Usage{PromptTokens: 1000, CompletionTokens: 100, TotalTokens: 1100}, 4500},
		{"a million each", sonnet, llm.Usage{PromptTokens: 1e6, CompletionTokens: 1e6}, 18_000_000},
		{"parts of the prompt are not counted twice", sonnet, llm.Usage{PromptTokens: 1000, CachedTokens: 600, CacheWriteTokens: 300}, 300 + 180 + 1125},
		{"all cached", sonnet, llm.Usage{PromptTokens: 1000, CachedTokens: 1000}, 300},
		{"parts beyond the prompt", sonnet, llm.Usage{PromptTokens: 1000, CachedTokens: 800, CacheWriteTokens: 800}, 240 + 750},
		{"reasoning is part of the completion", sonnet, llm.Usage{PromptTokens: 10, CompletionTokens: 100, ReasoningTokens: 90, TotalTokens: 110}, 30 + 1500},
		{"reasoning counted apart by the server", sonnet, llm.Usage{PromptTokens: 10, CompletionTokens: 100, ReasoningTokens: 90, TotalTokens: 200}, 30 + 2850},
		{"another total says nothing", sonnet, llm.Usage{PromptTokens: 10, CompletionTokens: 100, ReasoningTokens: 90, TotalTokens: 150}, 30 + 1500},
		{"rounded up", Price{Rates: Rates{Input: 0.5}}, llm.Usage{PromptTokens: 1}, 1},
		{"rounded down", Price{Rates: Rates{Input: 0.499999}}, llm.Usage{PromptTokens: 1}, 0},
		{"no penny lost in a million", Price{Rates: Rates{Input: 0.000001}}, llm.Usage{PromptTokens: 1e6}, 1},
		{"just short", tiered, llm.Usage{PromptTokens: 1000, CompletionTokens: 10}, 1020},
		{"long, the completion too", tiered, llm.Usage{PromptTokens: 1001, CompletionTokens: 10}, 10210},
		{"negative counts", sonnet, llm.Usage{PromptTokens: -5, CompletionTokens: -5, CachedTokens: -5, TotalTokens: math.MinInt}, 0},
		{"more than an int64 holds", Price{Rates: Rates{maxRate, maxRate, maxRate, maxRate}}, llm.Usage{PromptTokens: math.MaxInt, CompletionTokens: math.MaxInt}, math.MaxInt64},
		{"what is no price", Price{Rates: Rates{Input: math.NaN(), Output: math.Inf(-1)}}, llm.Usage{PromptTokens: 9, CompletionTokens: 9}, 0},
		{"beyond the range", Price{Rates: Rates{Input: math.Inf(1)}}, llm.Usage{PromptTokens: 1}, maxRate},
	} {
		if got := c.p.Micros(c.u); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestMicrosIsExact: the cost is that of exact arithmetic, and each token is
// charged once.
func TestMicrosIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		millionths := rapid.Int64Range(0, maxRate*1e6)
		m := [4]int64{millionths.Draw(t, "input"), millionths.Draw(t, "cached"), millionths.Draw(t, "write"), millionths.Draw(t, "output")}
		tokens := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, math.MaxInt/3))
		n := [4]int{tokens.Draw(t, "fresh"), tokens.Draw(t, "read"), tokens.Draw(t, "written"), tokens.Draw(t, "completion")}
		rate := func(i int) float64 { return float64(m[i]) / 1e6 }
		p := Price{Rates: Rates{rate(0), rate(1), rate(2), rate(3)}}
		got := p.Micros(llm.Usage{PromptTokens: n[0] + n[1] + n[2], CachedTokens: n[1], CacheWriteTokens: n[2], CompletionTokens: n[3]})
		want := big.NewInt(500_000)
		for i := range m {
			want.Add(want, new(big.Int).Mul(big.NewInt(m[i]), big.NewInt(int64(n[i]))))
		}
		want.Div(want, big.NewInt(1_000_000))
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if got != want.Int64() {
			t.Fatalf("%d, want %s", got, want)
		}
	})
}
