package gauge

import (
	"strings"
	"testing"

	"toritsugi/internal/llm"
)

func user(text string) llm.Message { return llm.Message{Role: llm.RoleUser, Content: text} }

// prose is n bytes of a text that no tokenizer makes short.
func prose(n int) string {
	return strings.Repeat("the quick brown fox jumps over the lazy dog; ", n/45+1)[:n]
}

// A count is judged by what was sent before and what was added: each row sends a
// request of so many bytes with a credible count, none for 0, and then a longer one.
func TestCountsAreJudged(t *testing.T) {
	t.Parallel()
	const numCtx = 8192
	for _, c := range []struct {
		name          string
		first, counts int
		added         string
		reported      int
		want          Verdict
	}{
		{"the window is full", 4000, 1000, prose(400), numCtx, Full},
		{"more than the window", 0, 0, prose(400), 9000, Full},
		{"it grew", 12000, 6000, prose(2000), 6900, Credible},
		{"it grew and became shorter", 12000, 6000, prose(2000), 4098, Full},
		{"it grew and became a little shorter", 12000, 6000, prose(2000), 5100, Full},
		{"a server with less than num_ctx", 12000, 3000, prose(6000), 2050, Shortened},
		{"a server with less than num_ctx, and a long result", 10000, 2500, prose(12000), 2600, Shortened},
		{"half of the window at first, of a long text", 0, 0, prose(30000), numCtx/2 + 2, Full},
		{"half of the window at first, of a Japanese text", 0, 0, strings.Repeat("吾輩は猫である。", 900), numCtx/2 + 2, Full},
		{"half of the window at first, of a text that fits", 0, 0, prose(16000), numCtx/2 + 2, Credible},
		{"far less than any tokenizer makes of it", 0, 0, prose(28000), 2050, Full},
		{"far less, and num_ctx is far", 0, 0, prose(20000), 2050, Shortened},
		{"a long line of dashes is a few tokens", 12000, 3000, strings.Repeat("-", 16000), 3300, Credible},
		{"a server that counts what is new and little", 12000, 3000, prose(400), 100, Credible},
	} {
		var g Gauge
		const head = 1000
		m := user(prose(c.first))
		g.Add(&m, c.first, 0)
		if c.counts > 0 {
			if v := g.Judge(c.counts, head, numCtx); v != Credible {
				t.Errorf("%s: the first is %d", c.name, v)
			}
			g.Learn(c.counts, head)
		}
		m = user(c.added)
		g.Add(&m, len(c.added), 0)
		if got := g.Judge(c.reported, head, numCtx); got != c.want {
			t.Errorf("%s: verdict %d, want %d; about %d tokens, at least %d, at most %d", c.name, got, c.want, g.Tokens(head), g.least(), g.most(head))
		}
	}
}

// Templates may drop thoughts, and then a prompt becomes shorter by itself.
func TestThoughtsMayBeDropped(t *testing.T) {
	t.Parallel()
	var g Gauge
	m := user(prose(8000))
	g.Add(&m, 8000, 0)
	thought := llm.Message{Role: llm.RoleAssistant, Reasoning: prose(6000), ToolCalls: []llm.ToolCall{{Name: "x", Arguments: "{}"}}}
	g.Add(&thought, 6100, 0)
	g.Learn(3500, 0)
	m = llm.Message{Role: llm.RoleTool, Content: prose(400)}
	g.Add(&m, 400, 0)
	if v := g.Judge(2150, 0, 32768); v != Credible {
		t.Errorf("without the thoughts: verdict %d", v)
	}
	if v := g.Judge(1100, 0, 32768); v != Shortened {
		t.Errorf("without more than them: verdict %d", v)
	}
}

func TestGauge(t *testing.T) {
	t.Parallel()
	var g Gauge
	const head = 1000
	add := func(m llm.Message, size int) { g.Add(&m, size, len(m.Images)) }
	want := func(what string, n int) {
		t.Helper()
		if got := g.Tokens(head); got < n-1 || got > n+1 {
			t.Errorf("%s: %d tokens, want %d", what, got, n)
		}
	}
	add(user("x"), 3000)
	want("nothing learnt", 1000)
	g.Learn(2000, head)
	want("learnt", 2000)
	add(user("x"), 1000)
	want("grown at the rate learnt", 2500)
	g.Learn(10, head)
	want("an incredible count changes nothing", 2500)
	m := user("look")
	m.Images = []llm.Image{{}}
	add(m, 400)
	want("an image is not its bytes", 2500+200)
	add(llm.Message{Role: llm.RoleAssistant, Reasoning: strings.Repeat("h", 2000), ToolCalls: []llm.ToolCall{{}}}, 2200)
	want("thoughts count", 2700+1100)
	add(user("next"), 0)
	want("thoughts before a question do not", (1000+3000+1000+400+200)/2+imageTokens)
	g.Reset()
	want("what is learnt stays", 500)
}
