package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/llm"
)

func malformedArguments(t *testing.T, build Factory) {
	for _, raw := range []string{`{"a":`, `not JSON "at all"`, `[1]`, `"text"`, `{"a":1}{"b":2}`, "{'a': 1}", ""} {
		rig := build(t, Options{}, Answer{Calls: []llm.ToolCall{{ID: "call_a", Name: "f", Arguments: raw}}}, Answer{Text: "ok"})
		c := rig.start(llm.Tool{Name: "f"})
		m := send(t, c).Message
		if len(m.ToolCalls) != 1 || m.ToolCalls[0].Arguments != raw {
			t.Fatalf("%q arrived as %+v", raw, m.ToolCalls)
		}
		c.Append(m)
		c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_a", Content: "error: the arguments are not a JSON object"})
		send(t, c)
		var back map[string]string
		sent := rig.Requests()[1].Messages[2].ToolCalls[0].Function.Arguments
		if err := json.Unmarshal([]byte(sent), &back); err != nil || raw != "" && back["malformed_arguments"] != raw {
			t.Errorf("%q went back as %q", raw, sent)
		}
	}
}

func reasoningGoesBack(t *testing.T, build Factory) {
	rig := build(t, Options{},
		Answer{Reasoning: "I need the sum.", Calls: twoCalls[:1]},
		Answer{Reasoning: "I am done.", Text: "5"}, Answer{Text: "ok"})
	c := rig.start(llm.Tool{Name: "add"})
	m := send(t, c).Message
	if m.Reasoning != "I need the sum." {
		t.Errorf("reasoning %q", m.Reasoning)
	}
	c.Append(m)
	c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_x", Content: "5"})
	c.Append(send(t, c).Message)
	c.Append(user("And?"))
	send(t, c)
	got := rig.Requests()[2].Messages
	beside := ""
	if rig.ReasoningStays {
		beside = "I am done."
	}
	if got[2].Reasoning != "I need the sum." || got[4].Reasoning != beside {
		t.Errorf("went back: %q beside calls, %q beside text", got[2].Reasoning, got[4].Reasoning)
	}
	CheckPrefix(t, rig.Requests())
}

func makesIDs(t *testing.T, build Factory) {
	nameless := []llm.ToolCall{{Name: "f", Arguments: `{}`}, {Name: "f", Arguments: `{}`}}
	rig := build(t, Options{}, Answer{Calls: nameless})
	c := rig.start(llm.Tool{Name: "f"})
	seen := map[string]bool{}
	for range 3 {
		m := send(t, c).Message
		if again := send(t, c).Message; !cmp.Equal(m, again) {
			t.Errorf("not the same ids for the same answer: %v, %v", m.ToolCalls, again.ToolCalls)
		}
		c.Append(m)
		for _, call := range m.ToolCalls {
			if call.ID == "" || seen[call.ID] {
				t.Errorf("id %q is empty or was used before", call.ID)
			}
			seen[call.ID] = true
			c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: call.ID, Content: "ok"})
		}
	}
}

func reportsUsage(t *testing.T, build Factory) {
	want := &llm.Usage{PromptTokens: 1200, CompletionTokens: 34, TotalTokens: 1234, CachedTokens: 1024}
	for _, plain := range []bool{false, true} {
		reply := send(t, build(t, Options{}, Answer{Text: "ok", Usage: want, Model: "named-by-server", Plain: plain}).start())
		if diff := cmp.Diff(want, reply.Usage); diff != "" || reply.Model != "named-by-server" {
			t.Errorf("model %q, usage (-want +got):\n%s", reply.Model, diff)
		}
	}
}

func finishReasons(t *testing.T, build Factory) {
	for _, reason := range []string{llm.FinishStop, llm.FinishLength, llm.FinishContentFilter, "some_new_reason"} {
		if got := send(t, build(t, Options{}, Answer{Text: "ok", Finish: reason}).start()).FinishReason; got != reason {
			t.Errorf("%q arrived as %q", reason, got)
		}
	}
	if got := send(t, build(t, Options{}, Answer{Calls: twoCalls, Finish: llm.FinishStop}).start(llm.Tool{Name: "add"}, llm.Tool{Name: "multiply"})).FinishReason; got != llm.FinishToolCalls {
		t.Errorf("calls with the reason stop: %q", got)
	}
}

func lengthInCall(t *testing.T, build Factory) {
	partial := []llm.ToolCall{{ID: "call_x", Name: "write", Arguments: `{"path":"a.txt","text":"cut he`}}
	reply := send(t, build(t, Options{}, Answer{Calls: partial, Finish: llm.FinishLength}).start())
	if reply.FinishReason != llm.FinishLength || !cmp.Equal(reply.Message.ToolCalls, partial) {
		t.Errorf("finish %q, calls %v", reply.FinishReason, reply.Message.ToolCalls)
	}
}

func offersTools(t *testing.T, build Factory) {
	rig := build(t, Options{}, Answer{Text: "ok"})
	tools := []llm.Tool{
		{Name: "zeta", Description: "Does <z> & more.", Schema: json.RawMessage("{\n  \"type\": \"object\",\n  \"properties\": {\"b\": {}, \"a\": {}}\n}")},
		{Name: "alpha"},
	}
	send(t, rig.start(tools...))
	send(t, rig.start())
	r := rig.Requests()
	if !cmp.Equal(r[0].Tools, []string{"zeta", "alpha"}) || r[1].Tools != nil || bytes.Contains(r[1].Body, []byte(`"tools"`)) {
		t.Errorf("tools %q; without any: %s", r[0].Tools, r[1].Body)
	}
	if !bytes.Contains(r[0].Body, []byte(`"properties":{"b":{},"a":{}}`)) || bytes.ContainsRune(r[0].Body, '\n') {
		t.Errorf("the schema is not compact, in its own order: %s", r[0].Body)
	}
	var e *llm.Error
	_, err := rig.start(llm.Tool{Name: "bad", Schema: json.RawMessage("{")}).Send(t.Context(), nil)
	if !errors.As(err, &e) || e.Kind != llm.KindBadRequest {
		t.Errorf("a schema that is not JSON: %v", err)
	}
}

func document(t *testing.T, build Factory) {
	a := Answer{Text: "Both.", Calls: twoCalls, Plain: true, Reasoning: "Hm."}
	var streamed string
	reply, err := build(t, Options{}, a).start(llm.Tool{Name: "add"}, llm.Tool{Name: "multiply"}).Send(t.Context(), func(d string) { streamed += d })
	if err != nil {
		t.Fatal(err)
	}
	reply.Message.Opaque = "" // differs by vendor
	want := llm.Message{Role: llm.RoleAssistant, Content: "Both.", Reasoning: "Hm.", ToolCalls: twoCalls}
	if diff := cmp.Diff(want, reply.Message); diff != "" || streamed != "Both." {
		t.Errorf("streamed %q, message (-want +got):\n%s", streamed, diff)
	}
}

// slowChunks: an answer may take longer than the stall limit as long as it moves.
func slowChunks(t *testing.T, build Factory) {
	const pieces = 200
	rig := build(t, Options{Stall: 1500 * time.Millisecond}, Answer{Text: strings.Repeat("0123456789abcdef", pieces), Delay: 10 * time.Millisecond})
	if got := send(t, rig.start()).Message.Content; len(got) != 16*pieces {
		t.Errorf("got %d bytes", len(got))
	}
}

// fails sends and returns the *llm.Error that must come.
func fails(t *testing.T, c llm.Conversation) *llm.Error {
	t.Helper()
	reply, err := c.Send(t.Context(), nil)
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, %v; want an *llm.Error", reply, err)
	}
	if e.Provider == "" || !strings.HasPrefix(e.Endpoint, "http://127.0.0.1:") || e.Attempts < 1 || e.Message == "" {
		t.Errorf("incomplete: %+v", e)
	}
	return e
}

func errorKinds(t *testing.T, build Factory) {
	for _, c := range []struct {
		status     int
		code, text string
		kind       llm.ErrorKind
	}{
		{401, "invalid_api_key", "Incorrect API key provided", llm.KindAuth},
		{403, "", "forbidden", llm.KindAuth},
		{404, "model_not_found", "The model does not exist", llm.KindNotFound},
		{400, "context_length_exceeded", "too long", llm.KindContext},
		{400, "", "This model's maximum context length is 8192 tokens. However, you requested 9000", llm.KindContext},
		{413, "", "too large", llm.KindContext},
		{400, "invalid_value", "bad value", llm.KindBadRequest},
		{400, "", "registry.ollama.ai/library/gemma3:4b does not support tools", llm.KindNoTools},
		{500, "", "invalid JSON schema in format", llm.KindNoTools},
		{400, "", "json: cannot unmarshal bool into Go struct field ChatRequest.tools.function.parameters.properties of type api.ToolProperty", llm.KindNoTools},
		{500, "", "Failed to initialize samplers: failed to parse grammar", llm.KindNoTools},
		{400, "invalid_function_parameters", "Invalid schema for function 'f': 'any' is not valid", llm.KindNoTools},
		{422, "", "unprocessable", llm.KindBadRequest},
		{402, "", "Insufficient Balance", llm.KindQuota},
		{429, "insufficient_quota", "You exceeded your current quota", llm.KindQuota},
		{429, "rate_limit_exceeded", "slow down", llm.KindRateLimited},
		{500, "", "boom", llm.KindServer},
		{503, "", "overloaded", llm.KindServer},
		{529, "", "overloaded", llm.KindServer},
		{408, "", "timeout", llm.KindTimeout},
	} {
		const retries = 2
		rig := build(t, Options{Retries: retries}, Answer{Status: c.status, ErrorCode: c.code, ErrorText: c.text})
		e := fails(t, rig.start())
		calls := 1
		if e.Retryable() {
			calls += retries
		}
		if e.Kind != c.kind || e.Status != c.status || !strings.Contains(e.Message, c.text) {
			t.Errorf("%d %s %q: got %v (kind %s)", c.status, c.code, c.text, e, e.Kind)
		}
		if n := len(rig.Requests()); n != calls || e.Attempts != calls {
			t.Errorf("%d %s: %d calls, %d told, want %d", c.status, c.code, n, e.Attempts, calls)
		}
	}
}

func brokenAnswers(t *testing.T, build Factory) {
	text := strings.Repeat("word ", 100)
	for _, c := range []struct {
		name   string
		answer Answer
		kind   llm.ErrorKind
		says   string
	}{
		{"cut in the middle", Answer{Text: text, Cut: 1000}, llm.KindCutStream, ""},
		{"cut within the first event", Answer{Text: text, Cut: 9}, llm.KindCutStream, ""},
		{"cut document", Answer{Text: text, Plain: true, Cut: 100}, llm.KindCutStream, ""},
		{"stalled in the middle", Answer{Text: text, Stall: 1000}, llm.KindTimeout, ""},
		{"no answer", Answer{Stall: StallAtOnce}, llm.KindTimeout, ""},
		{"HTML", Answer{Body: "<html><body>Log in</body></html>", ContentType: "text/html"}, llm.KindInvalid, "<html>"},
		{"garbage", Answer{Body: "\x00\x01garbage", ContentType: "application/octet-stream"}, llm.KindInvalid, "application/octet-stream"},
		{"words", Answer{Body: "internal problem\n", ContentType: "text/plain"}, llm.KindInvalid, "internal problem"},
		{"other JSON", Answer{Body: `{"hello":"world"}`}, llm.KindInvalid, "hello"},
	} {
		rig := build(t, Options{Retries: 1, Stall: time.Second}, c.answer)
		e := fails(t, rig.start())
		if e.Kind != c.kind || !strings.Contains(e.Message, c.says) || e.Attempts != 2 {
			t.Errorf("%s: got %v", c.name, e)
		}
	}
}

func repeats(t *testing.T, build Factory) {
	rig := build(t, Options{Retries: 4},
		Answer{Status: 429, RetryAfter: "0", ErrorText: "slow down"}, Answer{Status: 503}, Answer{Text: "half an ans", Cut: 300},
		Answer{Body: "<html>"}, Answer{Text: "whole"})
	reply := send(t, rig.start())
	requests := rig.Requests()
	if reply.Message.Content != "whole" || len(requests) != 5 {
		t.Fatalf("%q after %d calls", reply.Message.Content, len(requests))
	}
	for _, r := range requests {
		if !bytes.Equal(r.Body, requests[0].Body) {
			t.Errorf("call %d sent other bytes:\n%s\n%s", r.Number, requests[0].Body, r.Body)
		}
	}
}

// reuses: answers are read to their end, so that a loop needs one connection.
func reuses(t *testing.T, build Factory) {
	srv := build(t, Options{Retries: 2}, Answer{Text: "a"}, Answer{Status: 500, ErrorText: "boom"}, Answer{Text: "b", Plain: true}, Answer{Text: "c"})
	c := srv.start()
	for range 8 {
		send(t, c)
	}
	ports := map[string]bool{}
	for _, r := range srv.Requests() {
		ports[r.Remote] = true
	}
	if len(ports) > 2 { // one may be lost to the timing of the end of an answer
		t.Errorf("%d connections for %d calls", len(ports), len(srv.Requests()))
	}
}
