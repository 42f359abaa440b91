package memory

import (
	"context"
	"log/slog"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// Policy is how a window is kept: the settings in force and what they need. It
// does not change while the window is open; a resumed run may come with another.
type Policy struct {
	Limit int // tokens that a request may take: context_length × window_ratio
	Fixed int // bytes of a request before its messages: the tools

	// Context, Threshold and MinMessages are store-v3 §7.1's rule: messages
	// without a summary are summarised where they take more than Threshold of
	// Context, in tokens, and are at least MinMessages. A Context of 0 leaves it
	// to Limit alone.
	Context     int
	Threshold   float64
	MinMessages int
	KeepRecent  int // of the latest messages that no summary takes in (store-v3 §7.2)

	Masking Masking
	Lang    i18n.Lang // in which summaries are asked for; Japanese, as store-v3 has it, where it is none

	// Summarizer opens the model that writes summaries, when the first is
	// needed; nil where there is none: then messages are dropped, and that is said.
	Summarizer func(context.Context) (Summarizer, error)

	// Count returns the tokens of a text as a tokenizer counts them; nil
	// estimates them by their bytes. Usage that the provider reports corrects both.
	Count func([]byte) int

	Log *slog.Logger // nil for none
}

// Masking is when old tool output and bulky old arguments become stubs.
type Masking struct {
	Enabled   bool
	KeepTurns int     // of the latest turns that stay as they are: fewer where they take more than half of what the window has room for
	MinShare  float64 // of the request that a batch must free; each batch costs the provider's cache
}

// Summarizer is a model that writes summaries. It has no tools.
type Summarizer struct {
	Name   string // PROVIDER/MODEL, for the log
	Window int    // tokens that a request and its answer may have together; 0 where unknown
	// Ask returns the model's answer to a prompt, whose text may have limit tokens.
	Ask func(ctx context.Context, prompt string, limit int) (Answer, error)
}

// Answer is what a Summarizer wrote.
type Answer struct {
	Text  string
	Cut   bool                // it ended at the limit
	Usage *contextstore.Usage // nil where the provider reported none
}

// Ledger is what the window needs of a context. *contextstore.Context is one.
type Ledger interface {
	Messages(offset int64, f func(contextstore.Message) bool) error
	ReadImage(contextstore.Image) ([]byte, error)

	LastWindow() (*contextstore.WindowEvent, error)
	AppendWindow(contextstore.WindowEvent) error

	LatestSummary() (*contextstore.Summary, error)
	SummaryOf(id int64) (*contextstore.Summary, error)
	AppendSummary(contextstore.Summary) (contextstore.Summary, error)

	Activity(status, activity string) error
	ContextTokens(n int)
	CompressionFailed()
	Spent(*contextstore.Usage)
}

// gauge is how a text is measured before a provider has counted it: in units,
// of which usual are a token until reports correct that.
type gauge struct {
	count              func([]byte) int
	usual, least, most float64
}

// gauge: less than 1.5 or more than 8 units are no tokenizer but a server that
// counts something else. The same holds for half and twice of another
// tokenizer's tokens, roughly.
func (p *Policy) gauge() gauge {
	if p.Count == nil {
		return gauge{weigh, 4, 1.5, 8}
	}
	return gauge{p.Count, 1, 0.4, 2.5}
}

// weigh is a text's bytes, those beyond ASCII as four thirds: of Japanese three
// bytes, which are a character, are a token. Measured on the Japanese texts of this
// program: 2.9 bytes with the tokenizer of Llama 2 and Mistral, 4.5 with that of
// Llama 3.1, 4.9 of Qwen 3, 5.8 to 6.2 of Gemma 3 (docs/decisions/018).
func weigh(text []byte) int {
	wide := 0
	for _, c := range text {
		if c >= utf8.RuneSelf {
			wide++
		}
	}
	return len(text) + wide/3
}
