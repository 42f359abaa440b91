package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/llm"
)

// Options are what a client under test is to be made with. It waits (almost)
// not at all between calls.
type Options struct {
	Retries    int
	Stall      time.Duration // 0 is the client's default
	Connect    time.Duration // 0 is the client's default
	FirstToken time.Duration // 0 is none
	Call       time.Duration // 0 is none
	MaxTokens  int           // 0 is the client's default
	HTTP       *http.Client  // nil is the client's own
}

// Rig is a client under test and the server that it talks to.
type Rig struct {
	Client llm.Client
	// Requests returns what the server received; nil where the provider calls
	// nobody: what only a wire can do is then skipped.
	Requests func() []Request
	// Document makes a JSON document of what Serialized returns; nil puts it
	// in brackets.
	Document func(serialized []byte) []byte
	// ReasoningStays says that reasoning goes back with every answer, not only
	// beside calls.
	ReasoningStays bool
	// Quiet waits until no answer is in progress at the server (Server.Quiet);
	// nil skips what needs it.
	Quiet func(ctx context.Context) error
	// KeepAlive is what the provider sends to keep a connection open, which is no
	// part of an answer; "" is a comment of an event stream.
	KeepAlive string
	// Lacks names what the provider's format has not, and why; the cases are
	// skipped with that.
	Lacks map[Feature]string
}

func (r Rig) document(c llm.Conversation) []byte {
	if r.Document != nil {
		return r.Document(c.Serialized())
	}
	return []byte("[" + string(c.Serialized()) + "]")
}

func (r Rig) lacks(f Feature) bool {
	_, lacks := r.Lacks[f]
	return lacks
}

// Feature is a part of the contract that not every wire format has.
type Feature string

// The features.
const (
	Images     Feature = "images"
	Refusals   Feature = "refusals"   // a refusal that is told from an answer
	Documents  Feature = "documents"  // an answer that is not streamed although it was asked to be
	RetryDates Feature = "retry-date" // Retry-After
	// ReasoningCounts tells the tokens of reasoning from the others.
	ReasoningCounts Feature = "reasoning counts"
	Opaques         Feature = "opaque" // what the provider wants back as it was
	Limits          Feature = "limits" // of their own for the connection and the first token
	// NativeTools is a place of their own for tools and calls in the format; what
	// is said of arguments that are no JSON, or cut off, is of that place.
	NativeTools Feature = "native-tools"
	// Dictated are answers that a case decides on. A server that is there gives its
	// own: what holds whatever they are is tried of it.
	Dictated Feature = "dictated"
)

// Factory makes a rig whose server gives these answers, one a call, and the
// last one to all further calls.
type Factory func(t *testing.T, o Options, answers ...Answer) Rig

// conformanceCase is one thing that a provider must keep.
type conformanceCase struct {
	name  string
	wire  bool // needs one
	run   func(*testing.T, Factory)
	needs Feature // "" needs none
}

// whatever names the cases that hold whatever is answered.
var whatever = []string{"resumes from the messages", "resets", "cancel before and during the answer", "prefix is stable", "tools are offered in order", "connections are reused"}

// Conformance checks what every provider must keep of the contract in llm.
func Conformance(t *testing.T, build Factory) {
	for _, c := range append([]conformanceCase{
		{"streams text", false, streamsText, ""},
		{"keeps every character", false, keepsCharacters, ""},
		{"parallel calls", false, parallelCalls, ""},
		{"loop with a failed tool", false, loopWithFailedTool, ""},
		{"resumes from the messages", false, resumes, ""},
		{"resets", false, resets, ""},
		{"cancel before and during the answer", false, cancels, ""},
		{"cancel of a stalled stream", true, cancelsStalled, ""},
		{"prefix is stable", true, prefixStable, ""},
		{"malformed arguments go back as JSON", true, malformedArguments, NativeTools},
		{"reasoning goes back beside calls only", true, reasoningGoesBack, NativeTools},
		{"ids are made where none came", true, makesIDs, ""},
		{"usage", true, reportsUsage, ""},
		{"finish reasons", true, finishReasons, ""},
		{"length inside a call", true, lengthInCall, NativeTools},
		{"tools are offered in order", true, offersTools, NativeTools},
		{"document instead of a stream", true, document, Documents},
		{"slow chunks", true, slowChunks, ""},
		{"errors by kind", true, errorKinds, ""},
		{"broken answers", true, brokenAnswers, ""},
		{"repeats with the same bytes", true, repeats, ""},
		{"connections are reused", true, reuses, ""},
	}, furtherCases...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			probe := build(t, Options{}, Answer{Text: "probe"})
			if c.wire && probe.Requests == nil {
				t.Skip("this provider has no wire")
			}
			if why, lacks := probe.Lacks[c.needs]; lacks {
				t.Skip("this provider has none: " + why)
			}
			if why, lacks := probe.Lacks[Dictated]; lacks && !slices.Contains(whatever, c.name) {
				t.Skip("this server's answers are its own: " + why)
			}
			c.run(t, build)
		})
	}
}

func user(text string) llm.Message { return llm.Message{Role: llm.RoleUser, Content: text} }

// start opens a conversation with a system and a user message.
func (r Rig) start(tools ...llm.Tool) llm.Conversation {
	c := r.Client.Open(llm.Settings{Tools: tools})
	c.Append(llm.Message{Role: llm.RoleSystem, Content: "You are a test."})
	c.Append(user("Go."))
	return c
}

func send(t *testing.T, c llm.Conversation) *llm.Reply {
	t.Helper()
	reply, err := c.Send(t.Context(), nil)
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	return reply
}

func streamsText(t *testing.T, build Factory) {
	text := strings.Repeat("The quick brown fox. ", 20)
	c := build(t, Options{}, Answer{Text: text}).start()
	before := bytes.Clone(c.Serialized())
	var deltas []string
	reply, err := c.Send(t.Context(), func(d string) { deltas = append(deltas, d) })
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Message{Role: llm.RoleAssistant, Content: text}
	if diff := cmp.Diff(want, reply.Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if strings.Join(deltas, "") != text || len(deltas) < 2 {
		t.Errorf("streamed in %d pieces: %q", len(deltas), strings.Join(deltas, ""))
	}
	if reply.FinishReason != llm.FinishStop || reply.Usage != nil || reply.Model == "" {
		t.Errorf("finish %q, usage %v, model %q", reply.FinishReason, reply.Usage, reply.Model)
	}
	if !bytes.Equal(before, c.Serialized()) {
		t.Error("Send appended something")
	}
}

func keepsCharacters(t *testing.T, build Factory) {
	text := "日本語 \"quoted\" \\ </script> & <b>\t\r\n\u2028 \x01 \x7f 🦊 é"
	args := `{"s":"日本\u0041 \\ \" <&> 🦊","n":1.50,"z":null,"a":[ ]}`
	rig := build(t, Options{}, Answer{Text: text, Calls: []llm.ToolCall{{ID: "call_a", Name: "f", Arguments: args}}, Piece: 1}, Answer{Text: "ok"})
	c := rig.start(llm.Tool{Name: "f"})
	m := send(t, c).Message
	if m.Content != text || m.ToolCalls[0].Arguments != args {
		t.Errorf("got %q and %q", m.Content, m.ToolCalls[0].Arguments)
	}
	c.Append(m)
	c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_a", ToolName: "f", Content: text + "\xff\xc3"})
	send(t, c)
	if !json.Valid(rig.document(c)) || strings.Contains(string(c.Serialized()), `\u003c`) {
		t.Errorf("not compact, valid JSON: %s", c.Serialized())
	}
	if rig.Requests == nil {
		return
	}
	got := rig.Requests()[1].Messages
	if back := got[2]; *back.Content != text || back.ToolCalls[0].Function.Arguments != args {
		t.Errorf("answer came back as %q, %q", *back.Content, back.ToolCalls[0].Function.Arguments)
	}
	if *got[3].Content != text+"\uFFFD\uFFFD" {
		t.Errorf("result came as %q", *got[3].Content)
	}
}

var twoCalls = []llm.ToolCall{
	{ID: "call_x", Name: "add", Arguments: `{"a":2,"b":3}`},
	{ID: "call_y", Name: "multiply", Arguments: `{"a":2,"b":{"c":[1,2,3]}}`},
}

func parallelCalls(t *testing.T, build Factory) {
	reply := send(t, build(t, Options{}, Answer{Text: "Both.", Calls: twoCalls, Piece: 3}).start(llm.Tool{Name: "add"}, llm.Tool{Name: "multiply"}))
	want := llm.Message{Role: llm.RoleAssistant, Content: "Both.", ToolCalls: twoCalls}
	if diff := cmp.Diff(want, reply.Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if reply.FinishReason != llm.FinishToolCalls {
		t.Errorf("finish %q", reply.FinishReason)
	}
}

func loopWithFailedTool(t *testing.T, build Factory) {
	rig := build(t, Options{}, Answer{Calls: twoCalls}, Answer{Text: "I see."})
	c := rig.start(llm.Tool{Name: "add"}, llm.Tool{Name: "multiply"})
	c.Append(send(t, c).Message)
	c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_x", ToolName: "add", Content: "5"})
	c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_y", ToolName: "multiply", Content: "error: b must be a number"})
	if got := send(t, c).Message.Content; got != "I see." {
		t.Errorf("final answer %q", got)
	}
	if rig.Requests == nil {
		return
	}
	m := rig.Requests()[1].Messages
	if len(m) != 5 || len(m[2].ToolCalls) != 2 || m[2].ToolCalls[1].ID != "call_y" || m[2].ToolCalls[1].Type != "function" ||
		m[3].ToolCallID != "call_x" || m[4].ToolCallID != "call_y" || *m[4].Content != "error: b must be a number" {
		t.Errorf("the server got %+v", m)
	}
}

// resumes: a second conversation, given the same messages, goes on with the
// same bytes.
func resumes(t *testing.T, build Factory) {
	rig := build(t, Options{}, Answer{Calls: twoCalls[:1]}, Answer{Text: "two"})
	first := rig.start()
	m := send(t, first).Message
	result := llm.Message{Role: llm.RoleTool, ToolCallID: "call_x", ToolName: "add", Content: "5"}
	first.Append(m)
	first.Append(result)
	second := rig.start()
	second.Append(m)
	second.Append(result)
	if !bytes.Equal(first.Serialized(), second.Serialized()) {
		t.Errorf("not the same bytes:\n%s\n%s", first.Serialized(), second.Serialized())
	}
	if got := send(t, second).Message.Content; got != "two" && !rig.lacks(Dictated) {
		t.Errorf("went on with %q", got)
	}
}

func resets(t *testing.T, build Factory) {
	rig := build(t, Options{}, Answer{Text: "hello"})
	c := rig.start(llm.Tool{Name: "f"})
	c.Reset()
	if len(c.Serialized()) != 0 {
		t.Errorf("after Reset: %s", c.Serialized())
	}
	c.Append(user("Quite another beginning."))
	send(t, c)
	if rig.Requests == nil {
		return
	}
	if r := rig.Requests()[0]; len(r.Messages) != 1 || len(r.Tools) != 1 {
		t.Errorf("%d messages and %d tools after Reset", len(r.Messages), len(r.Tools))
	}
}

func cancels(t *testing.T, build Factory) {
	c := build(t, Options{Retries: 3}, Answer{Text: strings.Repeat("word ", 200)}).start()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.Send(ctx, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled within the answer: %v", err)
	}
	if _, err := c.Send(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before the call: %v", err)
	}
	send(t, c) // the conversation is as good as before
}

func cancelsStalled(t *testing.T, build Factory) {
	rig := build(t, Options{Retries: 3}, Answer{Text: strings.Repeat("word ", 200), Stall: 900})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := rig.start().Send(ctx, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := len(rig.Requests()); n != 1 {
		t.Errorf("%d calls", n)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := rig.start().Send(deadline, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
}

func prefixStable(t *testing.T, build Factory) {
	rig := build(t, Options{}, Answer{Calls: twoCalls, Reasoning: "Hm."})
	c := rig.start(llm.Tool{Name: "add"})
	var before []byte
	for range 10 {
		if !bytes.HasPrefix(c.Serialized(), before) {
			t.Fatal("Serialized does not begin with what it was")
		}
		before = bytes.Clone(c.Serialized())
		m := send(t, c).Message
		c.Append(m)
		for _, call := range m.ToolCalls {
			c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: call.ID, Content: strings.Repeat("x", 300)})
		}
	}
	requests := rig.Requests()
	CheckPrefix(t, requests)
	if raw := requests[9].Raw; string(raw) != "["+string(before)+"]" {
		t.Error("Serialized is not what was transmitted")
	}
}
