package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/llm/endpoint"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/llm/price"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/redact"
)

func plain(s string) string { return s }

func mustNot(t *testing.T) func(error) {
	return func(err error) { t.Errorf("the record failed: %v", err) }
}

// talk plays a conversation to its end: each call gets a result, and what ends
// without one is answered "Go on." until the answer says that it is the last.
func talk(t *testing.T, c llm.Client, last string) []*llm.Reply {
	t.Helper()
	var all []*llm.Reply
	v := c.Open(llm.Settings{Tools: []llm.Tool{{Name: "f"}, {Name: "g"}}})
	v.Append(llm.Message{Role: llm.RoleSystem, Content: "You are a test."})
	v.Append(llm.Message{Role: llm.RoleUser, Content: "Go."})
	for len(all) < 20 {
		reply, err := v.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, reply)
		if reply.Message.Content == last {
			return all
		}
		v.Append(reply.Message)
		for _, call := range reply.Message.ToolCalls {
			v.Append(llm.Message{Role: llm.RoleTool, ToolCallID: call.ID, ToolName: call.Name, Content: "ok"})
		}
		if len(reply.Message.ToolCalls) == 0 {
			v.Append(llm.Message{Role: llm.RoleUser, Content: "Go on."})
		}
	}
	t.Fatal("it does not end")
	return nil
}

// answers are a conversation with all that an answer can have.
func answers(opaque string) []llmtest.Answer {
	return []llmtest.Answer{
		{Reasoning: "I think <first>.", Opaque: opaque, Text: "Two at once.", Usage: &llm.Usage{PromptTokens: 100, CompletionTokens: 50, TotalTokens: 150, CachedTokens: 64, ReasoningTokens: 9},
			Calls: []llm.ToolCall{{ID: "call_x", Name: "f", Arguments: `{"a": 1,"b":"<&>"}`}, {ID: "call_y", Name: "g", Arguments: `{}`}}},
		{Text: "The beginning of a long", Finish: llm.FinishLength, Usage: &llm.Usage{PromptTokens: 200, CompletionTokens: 10, TotalTokens: 210}},
		{Calls: []llm.ToolCall{{ID: "call_z", Name: "f", Arguments: `{"cut": "of`}}, Finish: llm.FinishLength},
		{Text: "No.", Finish: llm.FinishContentFilter},
		{Text: "日本語 \" \\ \u2028 \x01 🦊", Calls: []llm.ToolCall{{ID: "call_w", Name: "g", Arguments: `{"z":[1.50,null]}`}}},
		{Text: "The end.", Usage: &llm.Usage{PromptTokens: 300, CompletionTokens: 5, TotalTokens: 305}},
	}
}

// providers are clients of the wire formats, and what their answers carry.
func providers(t *testing.T) map[string]llm.Client {
	t.Helper()
	chat := llmtest.NewServer(t, llmtest.Sequence(answers("")...))
	messages := llmtest.NewServer(t, llmtest.Sequence(answers("c2lnbmF0dXJl")...))
	all := map[string]llm.Client{}
	var err error
	if all["openai"], err = openai.New(openai.Config{Provider: "openai", Model: "m", BaseURL: chat.URL}); err != nil {
		t.Fatal(err)
	}
	if all["anthropic"], err = anthropic.New(anthropic.Config{Provider: "anthropic", Model: "claude-m", BaseURL: messages.URL, APIKey: "k"}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestReplayGivesTheSameReplies: but for the name of the model, which is the
// script's.
func TestReplayGivesTheSameReplies(t *testing.T) {
	t.Parallel()
	for name, client := range providers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var file bytes.Buffer
			client = price.Priced(client, func(string) (price.Price, bool) { return price.Price{Rates: price.Rates{Input: 3, Output: 15}}, true })
			live := talk(t, New(client, NewWriter(&file, plain, mustNot(t))), "The end.")
			c, err := script.Parse("r.jsonl", file.Bytes())
			if err != nil {
				t.Fatalf("%v in\n%s", err, file.Bytes())
			}
			var again bytes.Buffer
			replayed := talk(t, New(c, NewWriter(&again, plain, mustNot(t))), "The end.")
			if diff := cmp.Diff(live, replayed, cmpopts.IgnoreFields(llm.Reply{}, "Model")); diff != "" {
				t.Errorf("(-live +replayed):\n%s", diff)
			}
			if again.String() != file.String() {
				t.Errorf("a record of the replay differs:\n%s\n%s", file.Bytes(), again.Bytes())
			}
			first, third := live[0], live[2]
			if first.Message.Reasoning == "" || len(first.Message.ToolCalls) != 2 || first.Usage.Cost == nil || third.FinishReason != llm.FinishLength ||
				len(third.Message.ToolCalls) != 1 || (name == "anthropic") != (first.Message.Opaque != "") {
				t.Errorf("too little was tested: %+v, %+v", first, third)
			}
		})
	}
}

func TestLineIsTheLedgersForm(t *testing.T) {
	t.Parallel()
	cost := int64(12)
	for _, c := range []struct {
		reply llm.Reply
		want  string
	}{
		{llm.Reply{Message: llm.Message{Content: "a <b>"}, FinishReason: "stop", Model: "m"}, `{"role":"assistant","content":"a <b>"}`},
		{llm.Reply{Message: llm.Message{ToolCalls: []llm.ToolCall{{ID: "i", Name: "f"}}, Reasoning: "r", Opaque: `[{"x":1}]`}, FinishReason: "tool_calls", By: "p/m"},
			`{"role":"assistant","content":"","tool_calls":[{"id":"i","name":"f","arguments":""}],"reasoning_content":"r","provider_parts":"[{\"x\":1}]","answered_by":"p/m"}`},
		{llm.Reply{FinishReason: "length", Usage: &llm.Usage{PromptTokens: 1, CompletionTokens: 2, TotalTokens: 3}},
			`{"role":"assistant","content":"","finish_reason":"length","usage":{"prompt_tokens":1,"completion_tokens":2}}`},
		{llm.Reply{FinishReason: "tool_calls", Usage: &llm.Usage{PromptTokens: 1, CompletionTokens: 2, TotalTokens: 9, CachedTokens: 4, CacheWriteTokens: 5, ReasoningTokens: 6, Cost: &cost}},
			`{"role":"assistant","content":"","finish_reason":"tool_calls","usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9,"cached_tokens":4,"cache_write_tokens":5,"reasoning_tokens":6,"cost_micro_usd":12}}`},
		{llm.Reply{Message: llm.Message{ToolCalls: []llm.ToolCall{{ID: "i\xff", Name: "f\xff", Arguments: "\xff"}}}, FinishReason: "stop"},
			`{"role":"assistant","content":"","tool_calls":[{"id":"i` + "\uFFFD" + `","name":"f` + "\uFFFD" + `","arguments":"` + "\uFFFD" + `"}],"finish_reason":"stop"}`},
	} {
		got, err := appendLine([]byte("x"), &c.reply, plain)
		if err != nil || string(got) != "x"+c.want+"\n" {
			t.Errorf("%v, got\n%s, want\n%s", err, got, c.want)
		}
	}
}

// TestAnyReplyReplays: whatever an answer holds comes back, texts as JSON holds
// them.
func TestAnyReplyReplays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\x00\xff\n", "</script>\u2028"}))
		n := rapid.IntRange(0, 1<<40)
		want := &llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Content: text.Draw(t, "content"), Reasoning: text.Draw(t, "reasoning"), Opaque: text.Draw(t, "opaque")},
			FinishReason: rapid.SampledFrom([]string{"stop", "tool_calls", "length", "content_filter", "another"}).Draw(t, "finish"),
			By:           rapid.SampledFrom([]string{"", "p/m"}).Draw(t, "by"), Model: "r.jsonl"}
		for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
			want.Message.ToolCalls = append(want.Message.ToolCalls, llm.ToolCall{ID: string(rune('a' + i)), Name: "f" + text.Draw(t, "name"), Arguments: text.Draw(t, "args")})
		}
		if rapid.Bool().Draw(t, "usage") {
			want.Usage = &llm.Usage{PromptTokens: n.Draw(t, "p"), CompletionTokens: n.Draw(t, "c"), TotalTokens: n.Draw(t, "t"), CachedTokens: n.Draw(t, "r"), CacheWriteTokens: n.Draw(t, "w")}
		}
		var file bytes.Buffer
		w := NewWriter(&file, plain, func(err error) { t.Fatal(err) })
		w.record(want)
		if bytes.Count(file.Bytes(), []byte("\n")) != 1 {
			t.Fatalf("not one line: %s", file.Bytes())
		}
		c, err := script.Parse("r.jsonl", file.Bytes())
		if err != nil {
			t.Fatalf("%v in %s", err, file.Bytes())
		}
		got, err := c.Open(llm.Settings{}).Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &want.Message
		m.Content, m.Reasoning, m.Opaque = jsonl.Valid(m.Content), jsonl.Valid(m.Reasoning), jsonl.Valid(m.Opaque)
		for i := range m.ToolCalls {
			m.ToolCalls[i].Name, m.ToolCalls[i].Arguments = jsonl.Valid(m.ToolCalls[i].Name), jsonl.Valid(m.ToolCalls[i].Arguments)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-answered +replayed):\n%s", diff)
		}
	})
}

func TestRedaction(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	z := redact.New([]string{secret}, nil)
	var file bytes.Buffer
	w := NewWriter(&file, z.String, mustNot(t))
	w.record(&llm.Reply{FinishReason: secret, By: "p/" + secret, Message: llm.Message{Content: "a " + secret, Reasoning: "b " + secret, Opaque: "c " + secret,
		ToolCalls: []llm.ToolCall{{ID: "d " + secret, Name: "e" + secret, Arguments: `{"f":"` + secret + `"}`}}}})
	var l line
	if err := json.Unmarshal(file.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	for _, masked := range []string{l.Content, l.Reasoning, l.Finish, l.By, l.ToolCalls[0].Name, l.ToolCalls[0].Arguments} {
		if strings.Contains(masked, secret) || !strings.Contains(masked, redact.Redacted) {
			t.Errorf("not masked: %s", masked)
		}
	}
	for _, kept := range []string{l.Opaque, l.ToolCalls[0].ID} {
		if !strings.Contains(kept, secret) {
			t.Errorf("masked: %s", kept)
		}
	}
}

// full is an output that is full after some calls.
type full struct {
	room  int
	calls [][]byte
	short bool
}

var errFull = errors.New("disk full")

func (f *full) Write(b []byte) (int, error) {
	f.calls = append(f.calls, bytes.Clone(b))
	if len(f.calls) > f.room {
		if f.short {
			return len(b) - 1, nil
		}
		return 0, errFull
	}
	return len(b), nil
}

func TestWriteErrorIsToldOnceAndFailsNothing(t *testing.T) {
	t.Parallel()
	for _, short := range []bool{false, true} {
		out := &full{room: 2, short: short}
		var told []error
		w := NewWriter(out, plain, func(err error) { told = append(told, err) })
		for name, client := range providers(t) {
			if got := talk(t, New(client, w), "The end."); len(got) != len(answers("")) {
				t.Errorf("%s: %d answers", name, len(got))
			}
		}
		want := errFull
		if short {
			want = io.ErrShortWrite
		}
		if len(told) != 1 || !errors.Is(told[0], want) || len(out.calls) != 3 {
			t.Errorf("told %v, %d writes", told, len(out.calls))
		}
		for _, call := range out.calls {
			if bytes.Count(call, []byte("\n")) != 1 || call[len(call)-1] != '\n' {
				t.Errorf("not one whole line: %q", call)
			}
		}
	}
	NewWriter(&full{}, plain, nil).record(&llm.Reply{}) // nobody is told
}

func TestFailedSendIsNotRecorded(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Status: 401, ErrorText: "no"}, llmtest.Answer{Text: "ok"}))
	refused, err := openai.New(openai.Config{Provider: "a", Model: "m", BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	answering, err := openai.New(openai.Config{Provider: "b", Model: "m/x", BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	moving, err := endpoint.New(endpoint.Config{Members: []endpoint.Member{{Client: refused}, {Client: answering}}})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	c := New(moving, NewWriter(&file, plain, mustNot(t)))
	if c.Provider() != "a" || c.Model() != "m" {
		t.Errorf("it is named %s %s", c.Provider(), c.Model())
	}
	v := c.Open(llm.Settings{})
	r, ok := v.(llm.Refillable)
	if !ok {
		t.Fatal("it cannot be refilled, which the inner one can")
	}
	r.OnMove(func() error {
		v.Append(llm.Message{Role: llm.RoleUser, Content: "Again."})
		return nil
	})
	v.Append(llm.Message{Role: llm.RoleUser, Content: "Go."})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Send(ctx, nil); err == nil || file.Len() > 0 {
		t.Errorf("%v, recorded %s", err, file.Bytes())
	}
	text := ""
	if _, err := v.Send(t.Context(), func(s string) { text += s }); err != nil || text != "ok" {
		t.Errorf("%v, streamed %q", err, text)
	}
	if file.String() != `{"role":"assistant","content":"ok","answered_by":"b/m/x"}`+"\n" {
		t.Errorf("recorded %s", file.Bytes())
	}
	if _, ok := New(refused, NewWriter(&file, plain, nil)).Open(llm.Settings{}).(llm.Refillable); ok {
		t.Error("it says that it is refilled, which the inner one is not")
	}
}

func TestSharedByManyClients(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	w := NewWriter(&file, plain, mustNot(t))
	text := strings.Repeat("x", 10_000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				w.record(&llm.Reply{Message: llm.Message{Content: text}, FinishReason: llm.FinishStop})
			}
		})
	}
	wg.Wait()
	if c, err := script.Parse("r.jsonl", file.Bytes()); err != nil || strings.Count(file.String(), text+`"}`+"\n") != 160 {
		t.Errorf("%v, %v", c, err)
	}
	w.record(&llm.Reply{Message: llm.Message{Content: strings.Repeat("x", 1<<20)}})
	if cap(w.line) > maxKept {
		t.Errorf("a buffer of %d bytes is kept", cap(w.line))
	}
}

func TestSeed(t *testing.T) {
	t.Parallel()
	broken := errors.New("unreadable")
	ledger := []contextstore.Message{
		{Role: "system", Content: "S"}, {Role: "assistant", Content: "An inherited summary."}, {Role: "user", Content: "U"},
		{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "c1", Name: "f", Arguments: "{}"}}, Reasoning: "r", Provider: "p", AnsweredBy: "x/y", FinishReason: "length",
			Usage: &contextstore.Usage{Prompt: 1, Completion: 2, Total: 9, Cached: 3, CacheWrite: 4, Reasoning: 5}},
		{Role: "tool", Content: "T", ToolCallID: "c1"}, {Role: "user", Content: "U2"},
		{Role: "assistant", Content: "A", Usage: &contextstore.Usage{Prompt: 1, Completion: 2}},
		{Role: "assistant", Content: "B", Usage: &contextstore.Usage{Prompt: 1, Estimated: true}},
	}
	read := 0
	source := func(end error) iter.Seq2[*llm.Reply, error] {
		return Answers(func(f func(contextstore.Message) bool) error {
			for _, m := range ledger {
				read++
				if !f(m) {
					return nil
				}
			}
			return end
		})
	}
	var file bytes.Buffer
	w := NewWriter(&file, plain, mustNot(t))
	if err := w.Seed(source(nil)); err != nil {
		t.Fatal(err)
	}
	w.record(&llm.Reply{Message: llm.Message{Content: "C"}, FinishReason: llm.FinishStop})
	want := `{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"f","arguments":"{}"}],"reasoning_content":"r","provider_parts":"p","finish_reason":"length",` +
		`"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9,"cached_tokens":3,"cache_write_tokens":4,"reasoning_tokens":5},"answered_by":"x/y"}
{"role":"assistant","content":"A","usage":{"prompt_tokens":1,"completion_tokens":2}}
{"role":"assistant","content":"B"}
{"role":"assistant","content":"C"}
`
	// A message of the ledger does not say what its calls imply.
	if got := file.String(); got != want {
		t.Errorf("got\n%s", got)
	}
	w = NewWriter(io.Discard, plain, mustNot(t))
	if err := w.Seed(source(broken)); !errors.Is(err, broken) || !w.broken {
		t.Errorf("got %v", err)
	}
	read = 0
	w = NewWriter(&full{}, plain, mustNot(t))
	if err := w.Seed(source(nil)); !errors.Is(err, errFull) || read != 4 {
		t.Errorf("got %v after %d messages", err, read)
	}
}
