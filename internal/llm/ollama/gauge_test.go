package ollama

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"toritsugi/internal/llm"
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

func TestCutIsSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		g        gauge
		reported int
		cut      bool
	}{
		{"the window is full", gauge{text: 4000}, 8192, true},
		{"it grew and became shorter", gauge{text: 14000, reported: 6500, learntAt: 13000}, 4096, true},
		{"it grew", gauge{text: 14000, reported: 6500, learntAt: 13000}, 6900, false},
		{"a small one, of a server that counts in part", gauge{text: 6000, reported: 2000, learntAt: 5000}, 500, false},
		{"thoughts may be dropped", gauge{text: 14000, reported: 6500, learntAt: 13000, thinks: true}, 4096, false},
		{"nothing to compare with", gauge{text: 30000}, 4096, false},
	} {
		if got := c.g.cut(c.reported, 0, 8192); got != c.cut {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	// Found so, the answer to a part is no answer.
	v := answering(t, Config{NumCtx: 1024}, said+`{"model":"m","done":true,"prompt_eval_count":1024,"eval_count":1}`).Open(llm.Settings{})
	v.Append(user("x"))
	var e *llm.Error
	if reply, err := v.Send(t.Context(), nil); !errors.As(err, &e) || e.Kind != llm.KindContext || reply != nil {
		t.Errorf("%v, %v", reply, err)
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
