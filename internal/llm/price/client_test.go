package price

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/llm/endpoint"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/llm/openai"
)

func send(t *testing.T, c llm.Client) *llm.Reply {
	t.Helper()
	v := c.Open(llm.Settings{})
	v.Append(llm.Message{Role: llm.RoleUser, Content: "Go."})
	reply, err := v.Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// TestEachProvidersTokensAreChargedOnce sends what each vendor reports over its
// own wire, as counts that the cost shows apart.
func TestEachProvidersTokensAreChargedOnce(t *testing.T) {
	t.Parallel()
	chat := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "ok",
		Usage: &llm.Usage{PromptTokens: 1000, CompletionTokens: 20, TotalTokens: 1020, CachedTokens: 600, ReasoningTokens: 10}}))
	messages := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Body: `{"type":"message","role":"assistant","model":"m","stop_reason":"end_turn",
		"content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":100,"cache_read_input_tokens":600,"cache_creation_input_tokens":300,
		"output_tokens":20,"output_tokens_details":{"thinking_tokens":10}}}`}))
	native := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"model":"m","message":{"role":"assistant","content":"ok"},"done":true,"done_reason":"stop",`+
			`"prompt_eval_count":1000,"prompt_eval_cached_count":600,"eval_count":20}`+"\n")
	}))
	t.Cleanup(native.Close)
	for _, c := range []struct {
		name string
		open func() (llm.Client, error)
		want int64 // tenths of a dollar
	}{
		{"openai/gpt-4o", func() (llm.Client, error) { // the prompt includes what was cached
			return openai.New(openai.Config{Provider: "openai", BaseURL: chat.URL, Model: "gpt-4o"})
		}, 400 + 60 + 20},
		{"anthropic/claude-sonnet-4.5", func() (llm.Client, error) { // input_tokens are what is neither read nor written
			return anthropic.New(anthropic.Config{Provider: "anthropic", BaseURL: messages.URL, Model: "claude-sonnet-4.5", APIKey: "k"})
		}, 100 + 60 + 600 + 20},
		{"ollama/m", func() (llm.Client, error) {
			return ollama.New(ollama.Config{Provider: "ollama", BaseURL: native.URL, Model: "m"})
		}, 400 + 60 + 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client, err := c.open()
			if err != nil {
				t.Fatal(err)
			}
			asked := ""
			u := send(t, Priced(client, func(by string) (Price, bool) {
				asked = by
				return Price{Rates: Rates{Input: 1e5, CachedInput: 1e4, CacheWrite: 2e5, Output: 1e5}}, true
			})).Usage
			if u == nil || u.Cost == nil || *u.Cost != c.want*100_000 || asked != c.name {
				t.Errorf("%+v, asked for %q", u, asked)
			}
		})
	}
}

// fake answers with reply, or fails with err.
type fake struct {
	reply llm.Reply
	err   error
}

func (f *fake) Provider() string { return "asked" }
func (f *fake) Model() string    { return "some/model" }
func (f *fake) Open(llm.Settings) llm.Conversation {
	return &fakeConversation{client: f}
}

type fakeConversation struct {
	client *fake
	log    string
}

func (v *fakeConversation) Append(m llm.Message) { v.log += m.Content }
func (v *fakeConversation) Reset()               { v.log = "" }
func (v *fakeConversation) Serialized() []byte   { return []byte(v.log) }
func (v *fakeConversation) Send(_ context.Context, onText func(string)) (*llm.Reply, error) {
	if onText != nil {
		onText("streamed")
	}
	if v.client.err != nil {
		return nil, v.client.err
	}
	r := v.client.reply
	return &r, nil
}

func TestPriced(t *testing.T) {
	t.Parallel()
	seven := int64(7)
	for _, c := range []struct {
		name  string
		reply llm.Reply
		known bool
		by    string // "" asks nothing
		cost  int64  // 0 sets none
	}{
		{"the client's own name", llm.Reply{Usage: &llm.Usage{PromptTokens: 2}}, true, "asked/some/model", 6},
		{"a fallback answered", llm.Reply{Usage: &llm.Usage{PromptTokens: 2}, By: "other/m"}, true, "other/m", 6},
		{"no price", llm.Reply{Usage: &llm.Usage{PromptTokens: 2}}, false, "asked/some/model", 0},
		{"no usage", llm.Reply{}, true, "", 0},
		{"a cost that was recorded stays", llm.Reply{Usage: &llm.Usage{PromptTokens: 2, Cost: &seven}}, true, "", 7},
	} {
		asked := ""
		f := &fake{reply: c.reply}
		reply := send(t, Priced(f, func(by string) (Price, bool) {
			asked = by
			return sonnet, c.known
		}))
		got := int64(0)
		if reply.Usage != nil && reply.Usage.Cost != nil {
			got = *reply.Usage.Cost
		}
		if got != c.cost || asked != c.by || (reply.Usage == nil) != (c.reply.Usage == nil) {
			t.Errorf("%s: cost %d of %q, want %d of %q", c.name, got, asked, c.cost, c.by)
		}
		if f.reply.Usage != nil && f.reply.Usage.Cost != c.reply.Usage.Cost {
			t.Errorf("%s: what the client holds was changed", c.name)
		}
	}
}

func TestPricedForwards(t *testing.T) {
	t.Parallel()
	f := &fake{err: &llm.Error{Kind: llm.KindAuth, Provider: "asked"}}
	c := Priced(f, func(string) (Price, bool) { return sonnet, true })
	if c.Provider() != "asked" || c.Model() != "some/model" {
		t.Errorf("it is named %s %s", c.Provider(), c.Model())
	}
	v := c.Open(llm.Settings{})
	v.Append(llm.Message{Content: "text"})
	text := ""
	if reply, err := v.Send(t.Context(), func(s string) { text += s }); !errors.Is(err, f.err) || reply != nil || text != "streamed" {
		t.Errorf("%v, %v, %q", reply, err, text)
	}
	if string(v.Serialized()) != "text" {
		t.Errorf("it holds %q", v.Serialized())
	}
	if v.Reset(); len(v.Serialized()) != 0 {
		t.Error("it was not reset")
	}
	if _, ok := v.(llm.Refillable); ok {
		t.Error("it says that it is refilled, which the inner one is not")
	}

	ok := &fake{reply: llm.Reply{Usage: &llm.Usage{PromptTokens: 2}}}
	moving, err := endpoint.New(endpoint.Config{Members: []endpoint.Member{{Client: f}, {Client: ok}}})
	if err != nil {
		t.Fatal(err)
	}
	v = Priced(moving, func(string) (Price, bool) { return sonnet, true }).Open(llm.Settings{})
	r, can := v.(llm.Refillable)
	if !can {
		t.Fatal("it cannot be refilled, which the inner one can")
	}
	r.OnMove(func() error {
		v.Append(llm.Message{Content: "again"})
		return nil
	})
	v.Append(llm.Message{Content: "first"})
	reply, err := v.Send(t.Context(), nil)
	if err != nil || string(v.Serialized()) != "again" || reply.Usage.Cost == nil || *reply.Usage.Cost != 6 {
		t.Errorf("%+v, %v, holds %q", reply, err, v.Serialized())
	}
}
