package ops

import (
	"cmp"
	"fmt"
	"io"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/price"
	"toritsugi/internal/memory"
)

// ReplayOptions say how Replays prints.
type ReplayOptions struct {
	JSON  bool        // one object per recorded run
	Model string      // PROVIDER/MODEL whose list price it is
	Price price.Price // of a million tokens
	AsOf  string      // the day of the price, "" where that is not known
	Lang  i18n.Lang
}

// listPrice is the price as programs read it, in US dollars per million tokens.
type listPrice struct {
	Model      string  `json:"model"`
	AsOf       string  `json:"as_of,omitempty"`
	Input      float64 `json:"input"`
	Cached     float64 `json:"cached_input"`
	CacheWrite float64 `json:"cache_write"`
	Output     float64 `json:"output"`
}

type replayAnswers struct {
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost_usd"`
}

// Replays prints what each policy of the window made of a recorded run.
func Replays(w io.Writer, source string, c memory.Comparison, o ReplayOptions) error {
	p := &printer{w: w}
	if o.JSON {
		p.json(struct {
			Source   string            `json:"source"`
			Price    listPrice         `json:"price"`
			Answers  replayAnswers     `json:"answers"` // of the run: the same under each policy, in none of the costs
			Policies []memory.Replayed `json:"policies"`
		}{source, listPrice{o.Model, o.AsOf, o.Price.Input, o.Price.CachedInput, o.Price.CacheWrite, o.Price.Output}, replayAnswers{c.Answers, c.AnswersCost}, c.Policies})
		return p.err
	}
	turns := 0
	if len(c.Policies) > 0 {
		turns = c.Policies[0].Turns
	}
	p.printf("%s\n", fit(o.Lang.T("memoryverbs.replayed", turns, source), tableWidth))
	p.printf("%-8s %10s %10s %5s %6s %5s %8s  %-11s %5s %s\n", "POLICY", "TOKENS", "CACHED", "SENT", "CACHED", "COST", "USD", "MASK/SUM/-", "OUT", "PINNED")
	for _, r := range c.Policies {
		cost := "-"
		if r.CostRatio != nil {
			cost = fmt.Sprintf("%.2f", *r.CostRatio)
		}
		p.printf("%-8s %10d %10d %5.2f %6.2f %5s %8.4f  %-11s %5d %d/%d/%d\n", r.Policy, r.Tokens, r.Cached, r.TokensRatio, r.CachedShare, cost, r.Cost,
			fmt.Sprintf("%d/%d/%d", r.Masked, r.Summarised, r.Truncated), r.OutOfView, r.PinnedSeen, r.PinnedKept, r.PinnedLost)
	}
	p.printf("%s", detailAt(0, o.Lang.T("memoryverbs.answers", thousands(c.Answers), fmt.Sprintf("%.4f", c.AnswersCost))))
	return p.err
}

// ReplayLegend says what the columns of Replays mean, and at which price they are.
func ReplayLegend(w io.Writer, o ReplayOptions) error {
	p := &printer{w: w}
	p.printf("\n%s", detailAt(0, o.Lang.T("memoryverbs.price", o.Model, o.Price.String(), cmp.Or(o.AsOf, "-"))))
	p.printf("%s", detailAt(0, o.Lang.T("memoryverbs.legend")))
	return p.err
}
