package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// understand reads an answer's body as a client does; its limits are small.
func understand(body string, oneByte bool) (*llm.Reply, string, *llm.Error) {
	c := &client{maxEvent: 4096, maxAnswer: 8192}
	var streamed strings.Builder
	a := &answer{maxSize: c.maxAnswer, onText: func(s string) { streamed.WriteString(s) }}
	var r io.Reader = strings.NewReader(body)
	if oneByte {
		r = iotest.OneByteReader(r)
	}
	e, err := c.read(context.Background(), a, "text/event-stream", r)
	if err != nil {
		return nil, "", &llm.Error{Kind: llm.KindCutStream, Err: err}
	}
	if e != nil {
		return nil, "", e
	}
	reply, e := a.reply(0, names{})
	return reply, streamed.String(), e
}

func section(i int, start string, deltas ...string) []string {
	out := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{%s}}`, i, start)}
	for _, d := range deltas {
		out = append(out, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{%s}}`, i, d))
	}
	return append(out, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
}

func stops(reason string) []string {
	return []string{`{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":5}}`, stopEvent}
}

// stream is an answer of these blocks, whole.
func stream(reason string, blocks ...[]string) string {
	all := []string{startEvent, `{"type": "ping"}`}
	for _, b := range blocks {
		all = append(all, b...)
	}
	return sse(append(all, stops(reason)...)...)
}

const textBlock, thinkingBlock = `"type":"text","text":""`, `"type":"thinking","thinking":"","signature":""`

func use(id, name string) string {
	return fmt.Sprintf(`"type":"tool_use","id":%q,"name":%q,"input":{}`, id, name)
}
func text(s string) string   { return fmt.Sprintf(`"type":"text_delta","text":%q`, s) }
func input(s string) string  { return fmt.Sprintf(`"type":"input_json_delta","partial_json":%q`, s) }
func thinks(s string) string { return fmt.Sprintf(`"type":"thinking_delta","thinking":%q`, s) }
func signs(s string) string  { return fmt.Sprintf(`"type":"signature_delta","signature":%q`, s) }

func called(id, name, args string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Arguments: args}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	thought := section(0, thinkingBlock, thinks("I "), thinks("think."), signs("si"), signs("g=="))
	const kept = `{"type":"thinking","thinking":"I think.","signature":"sig=="}`
	for _, c := range []struct {
		name, body string
		finish     string
		want       llm.Message
	}{
		{"text", stream("end_turn", section(0, textBlock, text("He"), text(`l"lo`), text("\n日本"))), llm.FinishStop, llm.Message{Content: "Hel\"lo\n日本"}},
		{"parallel calls", stream("tool_use", section(0, textBlock, text("Both.")), section(1, use("a", "f"), input(""), input(`{"x":`), input("1}")), section(2, use("b", "g"))),
			llm.FinishToolCalls, llm.Message{Content: "Both.", ToolCalls: []llm.ToolCall{called("a", "f", `{"x":1}`), called("b", "g", "")}}},
		{"calls in turns", sse(startEvent, section(0, use("a", "f"))[0], section(1, use("b", "g"))[0], section(0, "", input("[0]"))[1], section(1, "", input("[1]"))[1]) + sse(stops("tool_use")...),
			llm.FinishToolCalls, llm.Message{ToolCalls: []llm.ToolCall{called("a", "f", "[0]"), called("b", "g", "[1]")}}},
		{"input at once", stream("tool_use", section(0, `"type":"tool_use","id":"a","name":"f","input":{"x": 1}`)), llm.FinishToolCalls, llm.Message{ToolCalls: []llm.ToolCall{called("a", "f", `{"x": 1}`)}}},
		{"ids missing and repeated", stream("tool_use", section(0, use("", "f")), section(1, use("call_7", "f")), section(2, use("call_7", "g"))), llm.FinishToolCalls,
			llm.Message{ToolCalls: []llm.ToolCall{called("call_8", "f", ""), called("call_7", "f", ""), called("call_9", "g", "")}}},
		{"calls that end as if none were", stream("end_turn", section(0, use("a", "f"), input("{}"))), llm.FinishToolCalls, llm.Message{ToolCalls: []llm.ToolCall{called("a", "f", "{}")}}},
		{"cut inside a call", stream("max_tokens", section(0, use("a", "f"), input(`{"x":"`))), llm.FinishLength, llm.Message{ToolCalls: []llm.ToolCall{called("a", "f", `{"x":"`)}}},
		{"thinking", stream("end_turn", thought, section(1, textBlock, text("So."))), llm.FinishStop, llm.Message{Content: "So.", Reasoning: "I think.", Opaque: "[" + kept + "]"}},
		{"redacted thinking", stream("end_turn", section(0, `"type":"redacted_thinking","data":"Eq+/"`), section(1, textBlock, text("So."))), llm.FinishStop,
			llm.Message{Content: "So.", Opaque: `[{"type":"redacted_thinking","data":"Eq+/"}]`}},
		{"thinking in between", stream("tool_use", thought, section(1, textBlock, text("日本")), section(2, use("a", "f"), input("{}")), section(3, thinkingBlock, thinks("More."), signs("x"))), llm.FinishToolCalls,
			llm.Message{Content: "日本", Reasoning: "I think.\n\nMore.", ToolCalls: []llm.ToolCall{called("a", "f", "{}")},
				Opaque: "[" + kept + `,{"type":"text","bytes":6},{"type":"tool_use"},{"type":"thinking","thinking":"More.","signature":"x"}]`}},
		{"thinking that was cut", stream("max_tokens", section(0, thinkingBlock, thinks("I th"))), llm.FinishLength, llm.Message{Reasoning: "I th"}},
		{"thinking that is not shown", stream("end_turn", section(0, thinkingBlock, signs("x")), section(1, textBlock, text("a"))), llm.FinishStop,
			llm.Message{Content: "a", Opaque: `[{"type":"thinking","thinking":"","signature":"x"}]`}},
		{"what is not known", stream("end_turn", section(0, `"type":"server_tool_use","id":"s","name":"web","input":{}`, input("{}")), section(1, `"type":"web_search_tool_result","content":[]`),
			section(2, textBlock, text("a"), `"type":"citations_delta","citation":{}`, input("no")), []string{`{"type":"new_event","x":[1]}`}), llm.FinishStop, llm.Message{Content: "a"}},
		{"pieces of no block", stream("end_turn", []string{section(5, "", text("no"))[1]}, section(0, textBlock, text("a"))), llm.FinishStop, llm.Message{Content: "a"}},
		{"empty", stream("end_turn"), llm.FinishStop, llm.Message{}},
		{"refusal", stream("refusal", section(0, textBlock, text("No."))), llm.FinishContentFilter, llm.Message{Content: "No."}},
		{"paused", stream("pause_turn", section(0, textBlock, text("a"))), llm.FinishLength, llm.Message{Content: "a"}},
		{"window full", stream("model_context_window_exceeded", section(0, textBlock, text("a"))), llm.FinishLength, llm.Message{Content: "a"}},
		{"stop sequence", stream("stop_sequence", section(0, textBlock, text("a"))), llm.FinishStop, llm.Message{Content: "a"}},
		{"new reason", stream("tired", section(0, textBlock, text("a"))), "tired", llm.Message{Content: "a"}},
		{"no message_stop", strings.TrimSuffix(stream("end_turn", section(0, textBlock, text("a"))), sse(stopEvent)), llm.FinishStop, llm.Message{Content: "a"}},
		{"no reason", sse(startEvent) + sse(section(0, textBlock, text("a"))...) + sse(stopEvent), llm.FinishStop, llm.Message{Content: "a"}},
		{"document", `{"type":"message","model":"claude-test","content":[{"type":"thinking","thinking":"T","signature":"s", "new": 1},{"type":"text","text":"a"},{"type":"tool_use","id":"x","name":"f","input":{ "a": 1 }}],"stop_reason":"tool_use","usage":{"input_tokens":12,"output_tokens":5}}`,
			llm.FinishToolCalls, llm.Message{Content: "a", Reasoning: "T", Opaque: `[{"type":"thinking","thinking":"T","signature":"s", "new": 1}]`, ToolCalls: []llm.ToolCall{called("x", "f", `{ "a": 1 }`)}}},
	} {
		c.want.Role = llm.RoleAssistant
		want := &llm.Reply{Message: c.want, FinishReason: c.finish, Model: "claude-test", Usage: &llm.Usage{PromptTokens: 12, CompletionTokens: 5, TotalTokens: 17}}
		for form, body := range map[string]string{
			"LF": c.body, "CRLF": strings.ReplaceAll(c.body, "\n", "\r\n"), "spaces": strings.ReplaceAll(c.body, "}}\n", "}     }  \n"),
			"other order": strings.ReplaceAll(c.body, `{"type":"content_block_delta",`, `{ "type":"content_block_delta",`), "no names": strings.ReplaceAll(c.body, "event: content_block_delta\n", ""),
		} {
			for _, oneByte := range []bool{false, true} {
				got, streamed, e := understand(body, oneByte)
				if e != nil {
					t.Errorf("%s, %s: %v", c.name, form, e)
					continue
				}
				if c.name == "no reason" {
					want.Usage = &llm.Usage{PromptTokens: 12, CompletionTokens: 1, TotalTokens: 13}
				}
				if diff := cmp.Diff(want, got); diff != "" || streamed != c.want.Content {
					t.Errorf("%s, %s: streamed %q (-want +got):\n%s", c.name, form, streamed, diff)
				}
			}
		}
	}
}

func TestAnswersThatFail(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	begun := sse(startEvent) + sse(section(0, textBlock, text("a"))...)
	failed := func(kind, message string) string {
		return begun + sse(`{"type":"error","error":{"type":"`+kind+`","message":"`+message+`"}}`)
	}
	for _, c := range []struct {
		name, body string
		kind       llm.ErrorKind
		says       string
	}{
		{"nothing", "", llm.KindCutStream, ""},
		{"pings only", sse(`{"type":"ping"}`), llm.KindCutStream, ""},
		{"no end", begun, llm.KindCutStream, ""},
		{"an end alone", sse(stopEvent), llm.KindCutStream, ""},
		{"overloaded", failed("overloaded_error", "Overloaded"), llm.KindServer, "Overloaded"},
		{"api_error", failed("api_error", "boom"), llm.KindServer, "boom"},
		{"rate limit", failed("rate_limit_error", "slow down"), llm.KindRateLimited, "slow"},
		{"key", failed("authentication_error", "no key"), llm.KindAuth, "no key"},
		{"permission", failed("permission_error", "no"), llm.KindAuth, "no"},
		{"not found", failed("not_found_error", "model: x"), llm.KindNotFound, "model: x"},
		{"too large", failed("request_too_large", "big"), llm.KindContext, "big"},
		{"too long", failed("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), llm.KindContext, "9 tokens"},
		{"too long with its answer", failed("invalid_request_error", "input length and `max_tokens` exceed context limit: 9 + 9 > 10"), llm.KindContext, "9 + 9"},
		{"invalid", failed("invalid_request_error", "messages: wrong"), llm.KindBadRequest, "wrong"},
		{"billing", failed("billing_error", "pay"), llm.KindQuota, "pay"},
		{"timeout", failed("timeout_error", "late"), llm.KindTimeout, "late"},
		{"error by name", begun + "event: error\ndata: {\"message\":\"broken\"}\n\n", llm.KindServer, "broken"},
		{"error without a type", begun + "data: {\"error\":{\"message\":\"broken\"}}\n\n", llm.KindServer, "broken"},
		{"error document", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.KindServer, "Overloaded"},
		{"other document", `{"hello":"world"}`, llm.KindInvalid, "hello"},
		{"list", `[1]`, llm.KindInvalid, "[1]"},
		{"half an event", begun + `data: {"type":"content_bl`, llm.KindInvalid, "content_bl"},
		{"block that is none", sse(`{"type":"content_block_start","index":0,"content_block":7}`), llm.KindInvalid, "content_block"},
		{"one event too long", sse(textDelta(long)), llm.KindInvalid, "one event is longer than 4096 bytes"},
		{"answer too long", begun + strings.Repeat(sse(textDelta(long[:1000])), 9), llm.KindInvalid, "the answer is longer than 8192 bytes"},
		{"endless blocks", strings.Repeat(sse(section(0, textBlock)...), 200), llm.KindInvalid, "the answer is longer"},
		{"document too long", `{"a":"` + long + long + `"}`, llm.KindInvalid, "the answer is longer"},
	} {
		reply, _, e := understand(c.body, false)
		if e == nil {
			t.Errorf("%s: understood as %+v", c.name, reply)
		} else if e.Kind != c.kind || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: kind %s, %q", c.name, e.Kind, e.Message)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		start, end string
		want       *llm.Usage
	}{
		{`{"input_tokens":3,"cache_read_input_tokens":1000,"cache_creation_input_tokens":200,"output_tokens":1}`, `{"output_tokens":50}`,
			&llm.Usage{PromptTokens: 1203, CachedTokens: 1000, CacheWriteTokens: 200, CompletionTokens: 50, TotalTokens: 1253}},
		{`{"input_tokens":3,"output_tokens":1}`, `{"input_tokens":7,"cache_read_input_tokens":null,"output_tokens":50,"output_tokens_details":{"thinking_tokens":40}}`,
			&llm.Usage{PromptTokens: 7, CompletionTokens: 50, TotalTokens: 57, ReasoningTokens: 40}},
		{`{"input_tokens":0,"output_tokens":0}`, `{"output_tokens":0}`, nil},
		{`null`, `null`, nil},
	} {
		body := sse(`{"type":"message_start","message":{"usage":`+c.start+`}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+c.end+`}`, stopEvent)
		got, _, e := understand(body, false)
		if e != nil {
			t.Errorf("%s: %v", body, e)
		} else if diff := cmp.Diff(c.want, got.Usage); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

// TestThinkingGoesBack: what the provider gave is returned in its own bytes
// and order, and what cannot have come from it is not.
func TestThinkingGoesBack(t *testing.T) {
	t.Parallel()
	const a, b, hidden = `{"type":"thinking","thinking":"A","signature":"s","new":[ 1]}`, `{"type":"thinking","thinking":"B","signature":"t"}`, `{"type":"redacted_thinking","data":"D"}`
	const said, used = `{"type":"text","text":"日本"}`, `{"type":"tool_use","id":"x","name":"f","input":{}}`
	for _, c := range []struct{ name, opaque, want string }{
		{"first", "[" + a + ", " + hidden + "]", a + "," + hidden + "," + said + "," + used},
		{"in between", "[" + a + `,{"type":"text","bytes":6},` + b + `,{"type":"tool_use"}]`, a + "," + said + "," + b + "," + used},
		{"at the end", `[{"type":"text","bytes":6},{"type":"tool_use"},` + b + `]`, said + "," + used + "," + b + `,{"type":"text","text":"(no content)"}`},
		{"between two texts", `[{"type":"text","bytes":3},` + b + `,{"type":"text","bytes":3},{"type":"tool_use"}]`, `{"type":"text","text":"日"},` + b + `,{"type":"text","text":"本"},` + used},
		{"the text was masked", "[" + a + `,{"type":"text","bytes":60},` + b + `,{"type":"tool_use"}]`, a + "," + b + "," + said + "," + used},
		{"cut inside a character", `[{"type":"text","bytes":1},` + b + `,{"type":"text","bytes":5},{"type":"tool_use"}]`, b + "," + said + "," + used},
		{"calls are missing", `[{"type":"text","bytes":6},` + b + `]`, b + "," + said + "," + used},
		{"overflow", `[{"type":"text","bytes":9223372036854775807},` + b + `,{"type":"text","bytes":9223372036854775807}]`, b + "," + said + "," + used},
		{"without a signature", `[{"type":"thinking","thinking":"A"},` + b + `]`, b + "," + said + "," + used},
		{"of another maker", `[{"type":"reasoning","id":"rs_1"}]`, said + "," + used},
		{"no array", `{"id":"rs_1"}`, said + "," + used},
		{"no JSON", `gAAAA`, said + "," + used},
		{"numbers", `[1,2]`, said + "," + used},
		{"no UTF-8", "[" + `{"type":"redacted_thinking","data":"` + "\xff" + `"}]`, said + "," + used},
	} {
		cl, sent := offline(t, Config{})
		v := cl.Open(llm.Settings{Tools: []llm.Tool{{Name: "f"}}})
		v.Append(say(llm.RoleUser, "go"))
		m := asks("日本", "x")
		m.Opaque = c.opaque
		v.Append(m)
		v.Append(result("x", "1"))
		mustSend(t, v)
		if want := `{"role":"assistant","content":[` + c.want + `]},{"role":"user"`; !strings.Contains(strings.ReplaceAll(string((*sent)[0]), cacheMark, ""), want) {
			t.Errorf("%s: sent\n%s\nwithout\n%s", c.name, (*sent)[0], want)
		}
	}
}

// TestNamesOfTools: a call names the tool as it was offered.
func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	var n names
	for _, name := range []string{"f", "g.h", "g_h", "g h", "", strings.Repeat("長", 99), "f"} {
		plain := n.offer(name)
		if n.called(plain) != name || n.sent(name) != plain || len(plain) > 64 {
			t.Errorf("%q is offered as %q, which calls %q", name, plain, n.called(plain))
		}
	}
	if n.called("other") != "other" || n.sent("o.t") != "o_t" {
		t.Error("what was not offered")
	}
}

// stuck is a body that gives what it has and then nothing until ctx ends.
type stuck struct {
	io.Reader
	ctx context.Context
}

func (s stuck) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); err == nil {
		return n, nil
	}
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

func (stuck) Close() error { return nil }

// TestStallAndCancelInFakedTime also shows that nothing is left running: the
// bubble would not end.
func TestStallAndCancelInFakedTime(t *testing.T) {
	t.Parallel()
	part := sse(startEvent) + sse(section(0, textBlock, text("a"))...)
	for _, c := range []struct {
		name, body string
		ctx        time.Duration // 0 is none
		want       error
		kind       llm.ErrorKind
		took       time.Duration
	}{
		{"stalls", part, 0, nil, llm.KindTimeout, time.Minute},
		{"stalls after the reason", part + sse(endEvent), 0, nil, "", wire.TailTime},
		{"deadline while stalled", part, 10 * time.Second, context.DeadlineExceeded, "", 10 * time.Second},
		{"finished, but left open", part + sse(endEvent, stopEvent), 0, nil, "", 50 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl, err := newClient(Config{Provider: "p", Model: "m", BaseURL: "http://x", StallTimeout: time.Minute,
				HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: stuck{strings.NewReader(c.body), r.Context()}}, nil
				})}})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if c.ctx > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.ctx)
				defer cancel()
			}
			start := time.Now()
			_, err = cl.Open(llm.Settings{}).Send(ctx, nil)
			var e *llm.Error
			switch {
			case c.want != nil && !errors.Is(err, c.want),
				c.kind != "" && (!errors.As(err, &e) || e.Kind != c.kind),
				c.want == nil && c.kind == "" && err != nil:
				t.Errorf("%s: %v", c.name, err)
			}
			if took := time.Since(start); took != c.took {
				t.Errorf("%s: took %s", c.name, took)
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(stream("tool_use", section(0, thinkingBlock, thinks("T"), signs("s")), section(1, textBlock, text("a")), section(2, use("x", "f"), input(`{"a":1}`))))
	f.Add(`{"type":"message","content":[{"type":"tool_use","id":"x","name":"f","input":{}}],"stop_reason":"end_turn"}`)
	f.Add(`{"error":{"error":{"error":[{}]}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		defer disktest.Bounded(t, len(body))()
		got, streamed, e := understand(body, false)
		again, _, e2 := understand(body, true)
		if (e == nil) != (e2 == nil) || e != nil && e.Kind != e2.Kind || e == nil && !cmp.Equal(got, again) {
			t.Fatalf("read by bytes it is another answer: %v %v; %+v %+v", e, e2, got, again)
		}
		if e != nil {
			return
		}
		if got.FinishReason == "" || streamed != got.Message.Content {
			t.Fatalf("%+v, streamed %q", got, streamed)
		}
		v := (&client{}).Open(llm.Settings{})
		v.Append(got.Message)
		if !json.Valid(document(v.Serialized())) {
			t.Fatalf("%s", v.Serialized())
		}
	})
}

// FuzzPlainJSON: what was valid stays so, means the same but for what is no
// text, and holds no half of a pair.
func FuzzPlainJSON(f *testing.F) {
	for _, s := range []string{`{"a":"\ud83e\udd8a"}`, `{"a":"\ud83e"}`, `{"a":"\udd8a\ud83e"}`, `{"a":"\\ud83e"}`, `{"a":"\uD83E\ud83e\uDD8A\u0041"}`, "{\"a\":\"\xff\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			return
		}
		out := plainJSON(s)
		var before, after any
		if json.Unmarshal([]byte(s), &before) != nil {
			return
		}
		if err := json.Unmarshal([]byte(out), &after); err != nil || !cmp.Equal(before, after) {
			t.Fatalf("%s became %s: %v", s, out, err)
		}
		if again := plainJSON(out); again != out {
			t.Fatalf("%s became %s, then %s", s, out, again)
		}
	})
}
