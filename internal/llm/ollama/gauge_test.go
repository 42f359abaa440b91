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
				real := (len(v.B) + len(`],"options":{"num_ctx":8192}}`)) / perToken
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
	for len(v.B)/4 < 8192*9/10 {
		v.Append(user(strings.Repeat("x", 1500)))
		if _, err := v.Send(t.Context(), nil); err != nil {
			t.Fatalf("at %d tokens: %v", len(v.B)/4, err)
		}
	}
}

// prose is n bytes of a text that no tokenizer makes short.
func prose(n int) string {
	return strings.Repeat("the quick brown fox jumps over the lazy dog; ", n/45+1)[:n]
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
