package ollama

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// tokens is a server with a tokenizer of one token to so many bytes, which
// cuts what is longer than its window, as servers before 0.12.6 do.
func tokens(t *testing.T, numCtx int, perToken int, cached bool) (c *client, calls *int) {
	calls = new(int)
	last := 0
	return testClient(t, Config{BaseURL: "http://x", NumCtx: numCtx, HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		*calls++
		body, _ := io.ReadAll(r.Body)
		n := len(body) / perToken
		if n > numCtx {
			n = numCtx / 2
		}
		told := n
		if cached { // a server before 0.4 counts what its cache did not have
			told = max(n-last, 0)
		}
		last = n
		return answerWith(200, said+fmt.Sprintf(`{"model":"m","done":true,"prompt_eval_count":%d,"eval_count":1}`, told)), nil
	})}}), calls
}

// TestNoSilentTruncation: a conversation grows until its request is refused or
// found cut; whatever the text weighs, no answer to a part of it comes through.
func TestNoSilentTruncation(t *testing.T) {
	t.Parallel()
	const numCtx = 8192
	for _, perToken := range []int{1, 2, 3, 4, 5, 6, 7} {
		for _, size := range []int{300, 1500, 4000} {
			c, calls := tokens(t, numCtx, perToken, false)
			v := c.Open(llm.Settings{}).(*conversation)
			for round := 1; ; round++ {
				v.Append(user(strings.Repeat("x", size)))
				real := (len(v.body) + len(`],"options":{"num_ctx":8192}}`)) / perToken
				_, err := v.Send(t.Context(), nil)
				var e *llm.Error
				if errors.As(err, &e) && e.Kind == llm.KindContext && e.Endpoint != "" {
					if real < numCtx/2 {
						t.Errorf("%d bytes a token, %d a message: refused at %d tokens: %v", perToken, size, real, e)
					}
					if *calls != round-1 {
						t.Errorf("%d bytes a token, %d a message: refused after sending: %v", perToken, size, e)
					}
					break
				}
				if err != nil || real > numCtx {
					t.Errorf("%d bytes a token, %d a message: %d tokens in a window of %d: %v", perToken, size, real, numCtx, err)
					break
				}
			}
		}
	}
}

// A server before 0.4 counts what its cache did not have: it is asked what it is
// before a count is taken for that of a cut prompt.
func TestAnOldServerCountsWhatIsNew(t *testing.T) {
	t.Parallel()
	for version, fails := range map[string]bool{`"0.3.14"`: false, `"0.1.38-rc1"`: false, `"0.12.5"`: true, `"0.4.0"`: true, `"1.0"`: true, `7`: true} {
		counts := []int{3000, 2010}
		var asked []string
		c := testClient(t, Config{BaseURL: "http://x", NumCtx: 8192, HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			if r.URL.Path == "/api/version" {
				return answerWith(200, `{"version":`+version+`}`), nil
			}
			n := counts[0]
			counts = counts[1:]
			return answerWith(200, said+fmt.Sprintf(`{"model":"m","done":true,"prompt_eval_count":%d,"eval_count":1}`, n)), nil
		})}})
		v := c.Open(llm.Settings{})
		v.Append(user(prose(12000)))
		if _, err := v.Send(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		v.Append(user(prose(8000)))
		_, err := v.Send(t.Context(), nil)
		var e *llm.Error
		if errors.As(err, &e) != fails || fails && e.Kind != llm.KindCutPrompt {
			t.Errorf("version %s: %v", version, err)
		}
		if got := strings.Join(asked, ", "); got != "POST /api/chat, POST /api/chat, GET /api/version" {
			t.Errorf("version %s: calls %s", version, got)
		}
	}
}

// TestPartialCounts: counts of an old server's cache are not taken for more or
// less than they are.
func TestPartialCounts(t *testing.T) {
	t.Parallel()
	c, _ := tokens(t, 8192, 4, true)
	v := c.Open(llm.Settings{}).(*conversation)
	for len(v.body)/4 < 8192*9/10 {
		v.Append(user(strings.Repeat("x", 1500)))
		if _, err := v.Send(t.Context(), nil); err != nil {
			t.Fatalf("at %d tokens: %v", len(v.body)/4, err)
		}
	}
}

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
		want          verdict
	}{
		{"the window is full", 4000, 1000, prose(400), numCtx, full},
		{"more than the window", 0, 0, prose(400), 9000, full},
		{"it grew", 12000, 6000, prose(2000), 6900, credible},
		{"it grew and became shorter", 12000, 6000, prose(2000), 4098, full},
		{"it grew and became a little shorter", 12000, 6000, prose(2000), 5100, full},
		{"a server with less than num_ctx", 12000, 3000, prose(6000), 2050, shortened},
		{"a server with less than num_ctx, and a long result", 10000, 2500, prose(12000), 2600, shortened},
		{"half of the window at first, of a long text", 0, 0, prose(30000), numCtx/2 + 2, full},
		{"half of the window at first, of a Japanese text", 0, 0, strings.Repeat("吾輩は猫である。", 900), numCtx/2 + 2, full},
		{"half of the window at first, of a text that fits", 0, 0, prose(16000), numCtx/2 + 2, credible},
		{"far less than any tokenizer makes of it", 0, 0, prose(28000), 2050, full},
		{"far less, and num_ctx is far", 0, 0, prose(20000), 2050, shortened},
		{"a long line of dashes is a few tokens", 12000, 3000, strings.Repeat("-", 16000), 3300, credible},
		{"a server that counts what is new and little", 12000, 3000, prose(400), 100, credible},
	} {
		var g gauge
		const head = 1000
		m := user(prose(c.first))
		g.add(&m, c.first)
		if c.counts > 0 {
			if v := g.judge(c.counts, head, numCtx); v != credible {
				t.Errorf("%s: the first is %d", c.name, v)
			}
			g.learn(c.counts, head)
		}
		m = user(c.added)
		g.add(&m, len(c.added))
		if got := g.judge(c.reported, head, numCtx); got != c.want {
			t.Errorf("%s: verdict %d, want %d; about %d tokens, at least %d, at most %d", c.name, got, c.want, g.tokens(head), g.least(), g.most(head))
		}
	}
}

// Templates may drop thoughts, and then a prompt becomes shorter by itself.
func TestThoughtsMayBeDropped(t *testing.T) {
	t.Parallel()
	var g gauge
	m := user(prose(8000))
	g.add(&m, 8000)
	thought := llm.Message{Role: llm.RoleAssistant, Reasoning: prose(6000), ToolCalls: []llm.ToolCall{{Name: "x", Arguments: "{}"}}}
	g.add(&thought, 6100)
	g.learn(3500, 0)
	m = llm.Message{Role: llm.RoleTool, Content: prose(400)}
	g.add(&m, 400)
	if v := g.judge(2150, 0, 32768); v != credible {
		t.Errorf("without the thoughts: verdict %d", v)
	}
	if v := g.judge(1100, 0, 32768); v != shortened {
		t.Errorf("without more than them: verdict %d", v)
	}
}

// The answer to a part of a conversation is never used, and the error names
// num_ctx and what to set. The server answers in Ollama's own format.
func TestCutIsAnError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		counts  []int // what the server says it read, call by call
		kind    llm.ErrorKind
		says    string
		numbers []string
	}{
		{"all of num_ctx", []int{8192}, llm.KindContext, "llm.ollama.context_length", []string{"read 8192 tokens", "num_ctx of 8192"}},
		{"less than was sent", []int{3000, 3600, 2050}, llm.KindCutPrompt, "llm.ollama.context_length", []string{"read 2050 tokens", "num_ctx is 8192", "ollama ps"}},
	} {
		var answers []llmtest.Answer
		for _, n := range c.counts {
			answers = append(answers, llmtest.Answer{Text: "fine", Usage: &llm.Usage{PromptTokens: n, CompletionTokens: 1}})
		}
		o := llmtest.NewOllama(t, llmtest.Sequence(answers...))
		client := testClient(t, Config{BaseURL: o.URL, NumCtx: 8192})
		v := client.Open(llm.Settings{})
		v.Append(user(prose(12000)))
		for i := range c.counts {
			reply, err := v.Send(t.Context(), nil)
			if i < len(c.counts)-1 {
				if err != nil {
					t.Fatalf("%s: call %d: %v", c.name, i+1, err)
				}
				v.Append(reply.Message)
				v.Append(user(prose(2400)))
				continue
			}
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != c.kind || reply != nil || e.Retryable() {
				t.Fatalf("%s: %v, %v", c.name, reply, err)
			}
			for _, s := range append(c.numbers, c.says) {
				if !strings.Contains(e.Explain(i18n.English), s) {
					t.Errorf("%s: %q is not in %s", c.name, s, e.Explain(i18n.English))
				}
			}
			if !strings.Contains(e.Explain(i18n.Japanese), "切り捨て") {
				t.Errorf("%s: %s", c.name, e.Explain(i18n.Japanese))
			}
		}
		for _, r := range o.Requests() {
			if r.NumCtx != 8192 {
				t.Errorf("%s: num_ctx %d", c.name, r.NumCtx)
			}
		}
		if n := len(o.Requests()); n != len(c.counts) {
			t.Errorf("%s: %d calls: what was cut is cut again", c.name, n)
		}
	}
}

func TestGauge(t *testing.T) {
	t.Parallel()
	var g gauge
	const head = 1000
	add := func(m llm.Message, size int) { g.add(&m, size) }
	want := func(what string, n int) {
		t.Helper()
		if got := g.tokens(head); got < n-1 || got > n+1 {
			t.Errorf("%s: %d tokens, want %d", what, got, n)
		}
	}
	add(user("x"), 3000)
	want("nothing learnt", 1000)
	g.learn(2000, head)
	want("learnt", 2000)
	add(user("x"), 1000)
	want("grown at the rate learnt", 2500)
	g.learn(10, head)
	want("an incredible count changes nothing", 2500)
	m := user("look")
	m.Images = []llm.Image{{MediaType: "image/png", Data: make([]byte, 3000)}}
	add(m, 4000+400)
	want("an image is not its bytes", 2500+200)
	add(llm.Message{Role: llm.RoleAssistant, Reasoning: strings.Repeat("h", 2000), ToolCalls: []llm.ToolCall{{}}}, 2200)
	want("thoughts count", 2700+1100)
	add(user("next"), 0)
	want("thoughts before a question do not", (1000+3000+1000+400+200)/2+imageTokens)
	g.reset()
	want("what is learnt stays", 500)
}
