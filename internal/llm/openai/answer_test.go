package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm"
)

// understand reads an answer's body as a client does; its limits are small.
func understand(contentType string, body string, oneByte bool) (*llm.Reply, *llm.Error) {
	c := &client{maxEvent: 4096, maxAnswer: 8192}
	a := &answer{maxSize: c.maxAnswer}
	r := iotest.OneByteReader(strings.NewReader(body))
	if !oneByte {
		r = strings.NewReader(body)
	}
	e, err := c.read(context.Background(), a, contentType, r)
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindCutStream, Err: err}
	}
	if e != nil {
		return nil, e
	}
	return a.reply(0)
}

func said(finish, text string, calls ...llm.ToolCall) *llm.Reply {
	return &llm.Reply{FinishReason: finish, Message: llm.Message{Role: llm.RoleAssistant, Content: text, ToolCalls: calls}}
}

func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	parallel := said("tool_calls", "", llm.ToolCall{ID: "call_Aa", Name: "add", Arguments: `{"a":2}`}, llm.ToolCall{ID: "call_Bb", Name: "mul", Arguments: `{}`})
	parallel.Model, parallel.Usage = "gpt-4o-2024-08-06", &llm.Usage{PromptTokens: 100, CompletionTokens: 20, TotalTokens: 120, CachedTokens: 64}
	ollama := said("tool_calls", "", llm.ToolCall{ID: "call_u1", Name: "add", Arguments: `{"a":1}`}, llm.ToolCall{ID: "call_u2", Name: "add", Arguments: `{"a":2}`})
	ollama.Model, ollama.Message.Reasoning = "qwen3:30b", "Two calls."
	vllm := said("tool_calls", "", llm.ToolCall{ID: "chatcmpl-tool-1", Name: "add", Arguments: `{"a": 1}`}, llm.ToolCall{ID: "chatcmpl-tool-2", Name: "mul", Arguments: `{}`})
	vllm.Model, vllm.Usage = "m", &llm.Usage{PromptTokens: 7, CompletionTokens: 3, TotalTokens: 10}
	deepseek := said("stop", "Done")
	deepseek.Message.Reasoning, deepseek.Model = "I think.", "deepseek-reasoner"
	deepseek.Usage = &llm.Usage{PromptTokens: 563, CompletionTokens: 116, TotalTokens: 679, CachedTokens: 512}
	for name, want := range map[string]*llm.Reply{
		"openai_parallel.sse": parallel, "ollama_same_index.sse": ollama, "vllm_repeated_id.sse": vllm, "deepseek_reasoning.sse": deepseek,
	} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		lf := string(raw)
		for form, body := range map[string]string{
			"LF": lf, "CRLF": strings.ReplaceAll(lf, "\n", "\r\n"), "BOM": "\uFEFF" + lf,
			"no space":       strings.ReplaceAll(lf, "data: ", "data:"),
			"no blank lines": strings.ReplaceAll(lf, "\n\n", "\n"),
			"comments":       strings.ReplaceAll(lf, "data: ", ": ping\nid: 1\nretry: 5\ndata: "),
			"no DONE":        strings.ReplaceAll(lf, "data: [DONE]", ""),
			"no last line":   strings.TrimSpace(lf),
		} {
			for _, oneByte := range []bool{false, true} {
				got, e := understand("text/event-stream", body, oneByte)
				if e != nil {
					t.Errorf("%s, %s: %v", name, form, e)
				} else if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %s (-want +got):\n%s", name, form, diff)
				}
			}
		}
	}
}

// event is one event of a stream with this delta and these further fields of
// the choice.
func event(delta, more string) string {
	return `data: {"choices":[{"index":0,"delta":{` + delta + `}` + more + "}]}\n\n"
}

func calls(list string) string { return event(`"tool_calls":[`+list+`]`, "") }

const stop = `,"finish_reason":"stop"`

func TestAnswersOfOddServers(t *testing.T) {
	t.Parallel()
	end := event("", `,"finish_reason":"tool_calls"`) + "data: [DONE]\n\n"
	f := func(id, name, args string) llm.ToolCall { return llm.ToolCall{ID: id, Name: name, Arguments: args} }
	for _, c := range []struct {
		name, body string
		want       *llm.Reply
	}{
		{"index missing, ids given", calls(`{"id":"x","function":{"name":"f","arguments":"{\"a\""}}`) + calls(`{"function":{"arguments":":1}"}}`) +
			calls(`{"id":"y","function":{"name":"g","arguments":"{}"}}`) + end, said("tool_calls", "", f("x", "f", `{"a":1}`), f("y", "g", "{}"))},
		{"index and id missing", calls(`{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{}"}}`) + end,
			said("tool_calls", "", f("call_1", "f", "{}"), f("call_2", "f", "{}"))},
		{"one id for two calls", calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"x","function":{"name":"g","arguments":"{}"}}`) + end,
			said("tool_calls", "", f("x", "f", "{}"), f("call_1", "g", "{}"))},
		{"index 0 throughout, no ids", calls(`{"index":0,"function":{"name":"f","arguments":"{}"}}`) + calls(`{"index":0,"function":{"name":"g","arguments":"{}"}}`) + end,
			said("tool_calls", "", f("call_1", "f", "{}"), f("call_2", "g", "{}"))},
		{"id comes late", calls(`{"index":0,"function":{"name":"f","arguments":""}}`) + calls(`{"index":0,"id":"x","function":{"arguments":"{}"}}`) + end,
			said("tool_calls", "", f("x", "f", "{}"))},
		{"name in pieces", calls(`{"index":0,"id":"x","function":{"name":"read_","arguments":""}}`) + calls(`{"index":0,"function":{"name":"file","arguments":"{}"}}`) + end,
			said("tool_calls", "", f("x", "read_file", "{}"))},
		{"indexes out of order and with gaps", calls(`{"index":7,"id":"b","function":{"name":"g","arguments":"{}"}}`) + calls(`{"index":2,"id":"a","function":{"name":"f","arguments":"{}"}}`) + end,
			said("tool_calls", "", f("b", "g", "{}"), f("a", "f", "{}"))},
		{"arguments as an object", calls(`{"index":0,"id":"x","function":{"name":"f","arguments":{"b":1,"a":[2]}}}`) + end,
			said("tool_calls", "", f("x", "f", `{"b":1,"a":[2]}`))},
		{"generated id does not collide", calls(`{"index":0,"id":"call_4","function":{"name":"f","arguments":"{}"}},{"index":1,"function":{"name":"f","arguments":"{}"}}`) + end,
			said("tool_calls", "", f("call_4", "f", "{}"), f("call_5", "f", "{}"))},
		{"function_call of old", event(`"function_call":{"name":"f","arguments":"{\"a\""}`, "") + event(`"function_call":{"arguments":":1}"}`, `,"finish_reason":"function_call"`),
			said("tool_calls", "", f("call_1", "f", `{"a":1}`))},
		{"content in parts", event(`"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, stop), said("stop", "ab")},
		{"refusal", event(`"refusal":"I will not."`, stop), said("content_filter", "I will not.")},
		{"other choices", `data: {"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}` + "\n\n", said("stop", "yes")},
		{"DONE without a reason", event(`"content":"a"`, "") + "data: [DONE]\n\n", said("stop", "a")},
		{"message in the last event", `data: {"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n", said("stop", "a")},
		{"delta and message", event(`"content":"a"`, "") + `data: {"choices":[{"index":0,"delta":{},"message":{"content":"a"},"finish_reason":"eos"}]}` + "\n\n", said("stop", "a")},
		{"empty answer", event("", stop), said("stop", "")},
		{"event in two data lines", "event: message\ndata: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n", said("stop", "a")},
		{"empty choices first", `data: {"choices":[],"prompt_filter_results":[{}]}` + "\n\n" + event(`"content":"a"`, stop), said("stop", "a")},
		{"document", ` {"choices":[{"message":{"content":"a","tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`,
			said("tool_calls", "a", f("call_1", "f", "{}"), f("call_2", "f", "{}"))},
		{"after the end", event(`"content":"a"`, stop) + "data: [DONE]\n\n" + event(`"content":"b"`, ""), said("stop", "a")},
	} {
		got, e := understand("text/event-stream", c.body, false)
		if e != nil {
			t.Errorf("%s: %v", c.name, e)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestAnswersThatFail(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		name, body string
		kind       llm.ErrorKind
		says       string
	}{
		{"nothing", "", llm.KindCutStream, ""},
		{"comments only", ": ping\n\n: ping\n\n", llm.KindCutStream, ""},
		{"no end", event(`"content":"a"`, ""), llm.KindCutStream, ""},
		{"DONE alone", "data: [DONE]\n\n", llm.KindCutStream, ""},
		{"half an event", `data: {"choices":[{"del`, llm.KindInvalid, `{\"choices\"`},
		{"error in the stream", event(`"content":"a"`, "") + `data: {"error":{"message":"slow down","code":429}}` + "\n\n", llm.KindRateLimited, "slow down"},
		{"error by event name", "event: error\ndata: {\"message\":\"broken\"}\n\n", llm.KindServer, "broken"},
		{"error without data:", `: ping` + "\n\n" + `{"error":"model runner has unexpectedly stopped"}`, llm.KindServer, "model runner"},
		{"error document", `{"error":{"message":"maximum context length is 10","type":"BadRequestError","code":400}}`, llm.KindContext, "maximum"},
		{"bad request in the stream", `data: {"error":{"message":"no","type":"invalid_request_error"}}` + "\n\n", llm.KindBadRequest, "no"},
		{"error of the choice", `data: {"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}` + "\n\n", llm.KindServer, "upstream"},
		{"gave up", event("", `,"finish_reason":"insufficient_system_resource"`), llm.KindServer, "insufficient_system_resource"},
		{"one event too long", event(`"content":"`+long+`"`, stop), llm.KindInvalid, "one event is longer than 4096 bytes"},
		{"many lines too long", "data: " + strings.Repeat("x\ndata: ", 5000), llm.KindInvalid, "one event"},
		{"answer too long", strings.Repeat(event(`"content":"`+long[:1000]+`"`, ""), 9), llm.KindInvalid, "the answer is longer than 8192 bytes"},
		{"endless calls", strings.Repeat(calls(`{"id":"","function":{"name":"f","arguments":"{}"}}`), 200), llm.KindInvalid, "the answer is longer"},
		{"document too long", `{"a":"` + long + long + `"}`, llm.KindInvalid, "the answer is longer"},
		{"list", `[1,2]`, llm.KindInvalid, "[1,2]"},
		{"HTML", "  <html>", llm.KindInvalid, "<html>"},
	} {
		reply, e := understand("text/event-stream", c.body, false)
		if e == nil {
			t.Errorf("%s: understood as %+v", c.name, reply)
		} else if e.Kind != c.kind || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: kind %s, %q", c.name, e.Kind, e.Message)
		}
	}
}

// TestBrokenConnection: what breaks after the reason lost nothing.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	c := &client{maxEvent: 4096, maxAnswer: 8192}
	reset := errors.New("connection reset")
	for _, finished := range []bool{false, true} {
		body := event(`"content":"a"`, "")
		if finished {
			body += event("", stop)
		}
		a := &answer{maxSize: 8192}
		e, err := c.read(context.Background(), a, "", io.MultiReader(strings.NewReader(body), iotest.ErrReader(reset)))
		if e != nil || finished && err != nil || !finished && err != reset {
			t.Errorf("finished %v: got %v, %v", finished, e, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"openai_parallel.sse", "ollama_same_index.sse", "vllm_repeated_id.sse", "deepseek_reasoning.sse"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Add(`{"error":{"error":{"error":[{}]}}}`)
	f.Add(`{"choices":[{"message":{"content":[{"text":1}]}}]}`)
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":\"1\",\"function\":{}}]}}]}\n\ndata: [DONE]")
	f.Fuzz(func(t *testing.T, body string) {
		defer disktest.Bounded(t, len(body))()
		got, e := understand("", body, false)
		again, e2 := understand("", body, true)
		if fmt.Sprint(e) != fmt.Sprint(e2) && (e == nil || e2 == nil || e.Kind != e2.Kind) || e == nil && !cmp.Equal(got, again) {
			t.Fatalf("read by bytes it is another answer: %v %v; %+v %+v", e, e2, got, again)
		}
		if e != nil {
			return
		}
		if got.FinishReason == "" || len(got.Message.Content) > 2*8192 {
			t.Fatalf("%+v", got)
		}
		seen := map[string]bool{}
		for _, call := range got.Message.ToolCalls {
			if call.ID == "" || seen[call.ID] {
				t.Fatalf("id %q", call.ID)
			}
			seen[call.ID] = true
		}
	})
}
