package texttool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/openai"
)

func over(t *testing.T, srv *llmtest.Server, o llmtest.Options) llm.Client {
	t.Helper()
	hc := o.HTTP
	if hc == nil {
		hc = &http.Client{Transport: &http.Transport{}}
	}
	t.Cleanup(hc.CloseIdleConnections)
	c, err := openai.New(openai.Config{Provider: "p", Model: "m", BaseURL: srv.URL, HTTP: hc,
		MaxRetries: o.Retries, StallTimeout: o.Stall, ConnectTimeout: o.Connect, FirstTokenTimeout: o.FirstToken, CallTimeout: o.Call, MaxTokens: o.MaxTokens, Backoff: func() backoff.BackOff { return &backoff.ZeroBackOff{} }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// spoken is an answer as a model without tool calls gives it.
func spoken(a llmtest.Answer) llmtest.Answer {
	if len(a.Calls) == 0 {
		return a
	}
	var list []string
	for _, c := range a.Calls {
		id := ""
		if c.ID != "" {
			id = fmt.Sprintf(`"id":%q,`, c.ID)
		}
		list = append(list, fmt.Sprintf(`{%s"tool":%q,"args":%s}`, id, c.Name, c.Arguments))
	}
	if a.Text != "" {
		a.Text += "\n\n"
	}
	a.Text += "```json\n{\"call_tool\": [" + strings.Join(list, ", ") + "]}\n```\n"
	a.Calls = nil
	if a.Finish == llm.FinishToolCalls {
		a.Finish = ""
	}
	return a
}

var (
	toolHead = regexp.MustCompile(`(?m)^## (\S+)$`)
	result   = regexp.MustCompile(`(?s)^Result of (\S+?)(?: \((\S+)\))?:\n(.*)$`)
)

// understood is a request as the model behind it reads it.
func understood(r llmtest.Request) llmtest.Request {
	var msgs []llmtest.Message
	for _, m := range r.Messages {
		text := ""
		if m.Content != nil {
			text = *m.Content
		}
		if m.Role == llm.RoleSystem {
			own, manual, found := strings.Cut(text, "# Tools\n")
			if found {
				for _, h := range toolHead.FindAllStringSubmatch(manual, -1) {
					r.Tools = append(r.Tools, h[1])
				}
			}
			if found && own == "" {
				continue // there for the tools alone
			}
		}
		if found := result.FindStringSubmatch(text); m.Role == llm.RoleUser && found != nil {
			m.Role, m.ToolCallID, m.Content = llm.RoleTool, found[1], &found[3]
		}
		if m.Role == llm.RoleAssistant {
			rest, calls := parse(text, nil)
			m.Content = &rest
			for _, c := range calls {
				var raw llmtest.ToolCall
				raw.ID, raw.Type, raw.Function.Name, raw.Function.Arguments = c.ID, "function", c.Name, c.Arguments
				m.ToolCalls = append(m.ToolCalls, raw)
			}
		}
		msgs = append(msgs, m)
	}
	r.Messages = msgs
	return r
}

// TestConformance: by text, a model does what the others do by calls.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(llm.Client) llm.Client{
		"text": New,
		"detected": func(c llm.Client) llm.Client {
			d := Detect(c, nil).(*detecting)
			d.asText.Store(true)
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			llmtest.Conformance(t, func(t *testing.T, o llmtest.Options, answers ...llmtest.Answer) llmtest.Rig {
				for i := range answers {
					answers[i] = spoken(answers[i])
				}
				srv := llmtest.NewServer(t, llmtest.Sequence(answers...))
				requests := func() []llmtest.Request {
					all := srv.Requests()
					for i := range all {
						all[i] = understood(all[i])
					}
					return all
				}
				return llmtest.Rig{Client: wrap(over(t, srv, o)), Requests: requests, Quiet: srv.Quiet, Lacks: map[llmtest.Feature]string{
					llmtest.NativeTools: "tools and calls are text",
					llmtest.Opaques:     "chat completions have no such field",
				}}
			})
		})
	}
}

// TestNativeConformance: where the endpoint takes tools, nothing is changed.
func TestNativeConformance(t *testing.T) {
	t.Parallel()
	llmtest.Conformance(t, func(t *testing.T, o llmtest.Options, answers ...llmtest.Answer) llmtest.Rig {
		srv := llmtest.NewServer(t, llmtest.Sequence(answers...))
		return llmtest.Rig{Client: Detect(over(t, srv, o), func(error) { t.Error("switched") }), Requests: srv.Requests, Quiet: srv.Quiet, Lacks: map[llmtest.Feature]string{
			llmtest.Opaques: "chat completions have no such field",
		}}
	})
}

func call(name, args string) llm.ToolCall { return llm.ToolCall{Name: name, Arguments: args} }

func TestParse(t *testing.T) {
	t.Parallel()
	offered := map[string]bool{"f": true, "g": true}
	const fence = "```"
	for _, c := range []struct {
		name, in, text string
		calls          []llm.ToolCall
	}{
		{"plain text", "All is {done} here.\n", "All is {done} here.\n", nil},
		{"other JSON", `Result: {"a": {"call_tool": [{"tool": "f"}]}}`, `Result: {"a": {"call_tool": [{"tool": "f"}]}}`, nil},
		{"the form itself", fence + "json\n{\"comment\": \"I look.\", \"call_tool\": [{\"tool\": \"f\", \"args\": {\"a\": 1}}]}\n" + fence, "I look.", []llm.ToolCall{call("f", `{"a": 1}`)}},
		{"several", `{"call_tool":[{"tool":"f","args":{}},{"tool":"g"},{"tool":"f","args":null}]}`, "", []llm.ToolCall{call("f", "{}"), call("g", "{}"), call("f", "{}")}},
		{"one for the list", `{"call_tool":{"tool":"f","args":{"a":"}"}}}`, "", []llm.ToolCall{call("f", `{"a":"}"}`)}},
		{"prose around it", "I will look.\n\n" + fence + "\n{\"call_tool\":[{\"tool\":\"f\",\"args\":{}}]}\n" + fence + "\nThen I go on.", "I will look.\n\n\nThen I go on.", []llm.ToolCall{call("f", "{}")}},
		{"several blocks", "a " + `{"tool":"f","args":{"n":1}}` + " b " + `{"name":"g","arguments":{"n":2}}`, "a  b", []llm.ToolCall{call("f", `{"n":1}`), call("g", `{"n":2}`)}},
		{"command", `{"command":{"tool":"x","args":{}}}`, "", []llm.ToolCall{call("x", "{}")}},
		{"function_call", `{"function_call":{"name":"x","arguments":"{\"a\":1}"}}`, "", []llm.ToolCall{call("x", `{"a":1}`)}},
		{"list of function_call", `{"function_call":[{"name":"x"},{"name":"y"}],"comment":"c"}`, "c", []llm.ToolCall{call("x", "{}"), call("y", "{}")}},
		{"tool_calls", `{"tool_calls":[{"id":"q","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "", []llm.ToolCall{{ID: "q", Name: "f", Arguments: "{}"}}},
		{"tags", "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "", []llm.ToolCall{call("f", "{}")}},
		{"bare, but not offered", `{"name":"Ann","arguments":{}}`, `{"name":"Ann","arguments":{}}`, nil},
		{"bare without arguments", `{"name":"f"}`, `{"name":"f"}`, nil},
		{"calls of no name", `{"call_tool":[{"args":{}}]}`, `{"call_tool":[{"args":{}}]}`, nil},
		{"empty list", `{"call_tool":[]}`, `{"call_tool":[]}`, nil},
		{"a command of a shell", `{"command":"ls"}`, `{"command":"ls"}`, nil},
		{"code before it", "func f() {\n\treturn map[string]int{\"a\": 1}\n}\n" + `{"call_tool":[{"tool":"f"}]}`, "func f() {\n\treturn map[string]int{\"a\": 1}\n}", []llm.ToolCall{call("f", "{}")}},
		{"trailing comma", fence + "json\n{\"call_tool\": [{\"tool\": \"f\", \"args\": {\"a\": 1,}}]}\n" + fence + "\nrest", "rest", []llm.ToolCall{call("f", `{"call_tool": [{"tool": "f", "args": {"a": 1,}}]}`)}},
		{"cut off", `{"comment":"x","call_tool":[{"tool":"g","args":{"a":"b`, "", []llm.ToolCall{call("g", `{"comment":"x","call_tool":[{"tool":"g","args":{"a":"b`)}},
		{"cut off before the name", `{"call_tool":[{"to`, "", []llm.ToolCall{call("unreadable_call", `{"call_tool":[{"to`)}},
		{"single quotes inside", `{"tool": 'f'}`, "", []llm.ToolCall{call("unreadable_call", `{"tool": 'f'}`)}},
		{"done", `{"done": true, "comment": "完了しました"}`, "完了しました", nil},
		{"done in a fence", fence + "json\n{\"comment\": \"ok\", \"done\": true}\n" + fence, "ok", nil},
		{"done and more", `{"done": true, "comment": "x", "phase": "y"}`, `{"done": true, "comment": "x", "phase": "y"}`, nil},
		{"not done", `{"done": false, "comment": "x"}`, `{"done": false, "comment": "x"}`, nil},
		{"empty", "", "", nil},
	} {
		text, calls := parse(c.in, offered)
		if diff := cmp.Diff(c.calls, calls); diff != "" || strings.TrimSpace(text) != strings.TrimSpace(c.text) {
			t.Errorf("%s: text %q, want %q; calls (-want +got):\n%s", c.name, text, c.text, diff)
		}
		if calls == nil && c.name != "done" && c.name != "done in a fence" && text != c.in {
			t.Errorf("%s: an answer without calls was changed to %q", c.name, text)
		}
	}
}

// TestWhatIsWrittenIsRead: calls come back from the text they were written to.
func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"```", "{\"call_tool\":", "</tool_call>", "\n", `\`, `"`}))
	rapid.Check(t, func(t *rapid.T) {
		var calls []llm.ToolCall
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			args, _ := json.Marshal(map[string]string{text.Draw(t, "key"): text.Draw(t, "value")})
			calls = append(calls, llm.ToolCall{ID: rapid.StringMatching(`[a-z0-9_]{1,9}`).Draw(t, "id"), Name: rapid.StringMatching(`[a-z.]{1,9}`).Draw(t, "name"), Arguments: string(args)})
		}
		said := rapid.StringMatching(`[A-Za-z .\n]{0,40}`).Draw(t, "said")
		got, back := parse(said+"\n\n"+writeCalls(calls), nil)
		if diff := cmp.Diff(calls, back); diff != "" || got != strings.TrimRight(said, " \n") && strings.TrimSpace(said) != "" {
			t.Fatalf("said %q, got %q, calls (-want +got):\n%s", said, got, diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"call_tool":[{"tool":"f","args":{}}]}`, "```json\n{\"command\":{\"tool\":\"f\"}}```", `{"tool":"f","args":"{"}{"`, `{"done":true,"comment":"x"}`, `{"a":{"a":{"a":`, "<tool_call>{\"name\":\"f\",\"arguments\":1}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		defer disktest.Bounded(t, len(answer))()
		text, calls := parse(answer, map[string]bool{"f": true})
		for _, c := range calls {
			if c.Name == "" {
				t.Fatalf("%q: a call without a name", answer)
			}
		}
		if len(calls) == 0 && text != answer && !strings.Contains(answer, "done") {
			t.Fatalf("%q became %q", answer, text)
		}
	})
}

// TestParseIsNotSlow: text that is made to cost time costs little.
func TestParseIsNotSlow(t *testing.T) {
	t.Parallel()
	for _, s := range []string{strings.Repeat(`{"a":`, 100000), strings.Repeat(`{ `, 500000), strings.Repeat("{\"a\":1}", 50000), strings.Repeat("```json\n", 100000) + `{"tool":`} {
		_, _ = parse(s, nil)
	}
}

func TestGoldenManual(t *testing.T) {
	t.Parallel()
	got, err := manual(llm.Settings{
		Tools: []llm.Tool{{Name: "read", Description: "Reads a file.\n", Schema: json.RawMessage("{ \"type\": \"object\",\n\"properties\": {\"b\": {}, \"a\": {}} }")}, {Name: "now"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "manual.golden.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMessagesAsText(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "ok"}))
	v := New(over(t, srv, llmtest.Options{})).Open(llm.Settings{Tools: []llm.Tool{{Name: "f"}}})
	for _, m := range []llm.Message{
		{Role: llm.RoleUser, Content: "Go."}, // no system message: the tools get their own
		{Role: llm.RoleAssistant, Content: "So.", ToolCalls: []llm.ToolCall{{ID: "call_7", Name: "f", Arguments: ` {"a":"<&>"} `}, {ID: "b", Name: "f", Arguments: `{"a":`}, {ID: "c", Name: "f"}}},
		{Role: llm.RoleTool, ToolCallID: "call_7", ToolName: "f", Content: "1"},
		{Role: llm.RoleTool, ToolCallID: "b"},
		{Role: llm.RoleSystem, Content: "later"},
	} {
		v.Append(m)
	}
	if _, err := v.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range srv.Requests()[0].Messages {
		got = append(got, m.Role+": "+*m.Content)
	}
	if len(got) != 6 || !strings.HasPrefix(got[0], "system: # Tools\n") {
		t.Fatalf("%q", got)
	}
	want := []string{"user: Go.",
		"assistant: So.\n\n```json\n{\"call_tool\": [{\"id\": \"call_7\", \"tool\": \"f\", \"args\": {\"a\":\"<&>\"}}, {\"id\": \"b\", \"tool\": \"f\", \"args\": {\"malformed_arguments\": \"{\\\"a\\\":\"}}, {\"id\": \"c\", \"tool\": \"f\", \"args\": {}}]}\n```",
		"user: Result of call_7 (f):\n1", "user: Result of b:\n", "system: later"}
	if diff := cmp.Diff(want, got[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestIDs: the model's own stay where they are new; all others come after the
// highest that is in use.
func TestIDs(t *testing.T) {
	t.Parallel()
	a := spoken(llmtest.Answer{Calls: []llm.ToolCall{{ID: "mine", Name: "f", Arguments: "{}"}, {ID: "mine", Name: "f", Arguments: "{}"}, {ID: "call_4", Name: "f", Arguments: "{}"}, {ID: "not plain!", Name: "f", Arguments: "{}"}}})
	srv := llmtest.NewServer(t, llmtest.Sequence(a))
	v := New(over(t, srv, llmtest.Options{})).Open(llm.Settings{Tools: []llm.Tool{{Name: "f"}}})
	v.Append(llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "call_4", Name: "f"}}})
	for _, want := range []string{"mine call_5 call_6 call_7", "call_8 call_9 call_10 call_11"} {
		reply, err := v.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, c := range reply.Message.ToolCalls {
			ids = append(ids, c.ID)
		}
		if got := strings.Join(ids, " "); got != want || reply.FinishReason != llm.FinishToolCalls {
			t.Errorf("%s, want %s; finish %q", got, want, reply.FinishReason)
		}
		v.Append(reply.Message)
	}
}

func TestABadSchema(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, nil)
	set := llm.Settings{Tools: []llm.Tool{{Name: "f", Schema: json.RawMessage("{")}}}
	var e *llm.Error
	if _, err := New(over(t, srv, llmtest.Options{})).Open(set).Send(t.Context(), nil); !errors.As(err, &e) || e.Kind != llm.KindBadRequest || e.Provider != "p" {
		t.Errorf("%v", err)
	}
}

// TestStreamed: what is streamed is the text that remains, however it is cut.
func TestStreamed(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"I look.\n\n```json\n{\"call_tool\":[{\"tool\":\"f\"}]}\n```": "I look.",
		"{\"call_tool\":[{\"tool\":\"f\"}],\"comment\":\"I look.\"}":  "I look.",
		"a < b, and `code` {x}\n":                                     "a < b, and `code` {x}\n",
		" spaced  out \n":                                             " spaced  out \n",
		"":                                                            "",
	} {
		for size := 1; size < 20; size += 3 {
			var got strings.Builder
			s := &stream{out: func(p string) { got.WriteString(p) }}
			for rest := in; rest != ""; {
				n := min(size, len(rest))
				s.add(rest[:n])
				rest = rest[n:]
			}
			text, _ := parse(in, nil)
			s.end(text)
			if text != want || got.String() != want {
				t.Errorf("%q by %d: text %q, streamed %q", in, size, text, got.String())
			}
		}
	}
}

// TestDetect: an endpoint that refuses tools gets them as text, with the
// messages that were there, and all later conversations at once.
func TestDetect(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch {
		case len(r.Tools) > 0:
			return llmtest.Answer{Status: 400, ErrorText: "registry.ollama.ai/library/gemma3:4b does not support tools"}
		case r.Turn() == 0:
			return spoken(llmtest.Answer{Calls: []llm.ToolCall{{Name: "f", Arguments: `{"a":1}`}}})
		}
		return llmtest.Answer{Text: "done"}
	})
	switched := 0
	c := Detect(over(t, srv, llmtest.Options{Retries: 3}), func(err error) {
		if switched++; !strings.Contains(err.Error(), "does not support tools") {
			t.Error(err)
		}
	})
	tools := llm.Settings{Tools: []llm.Tool{{Name: "f"}}}
	for i := range 2 {
		v := c.Open(tools)
		fill := func() error {
			v.Reset()
			v.Append(llm.Message{Role: llm.RoleSystem, Content: "S"})
			v.Append(llm.Message{Role: llm.RoleUser, Content: "Go."})
			return nil
		}
		_ = fill() // as the window does it, before it tells how
		if r, ok := v.(llm.Refillable); ok {
			r.OnMove(fill)
		}
		reply, err := v.Send(t.Context(), nil)
		if err != nil || len(reply.Message.ToolCalls) != 1 || reply.Message.ToolCalls[0].Arguments != `{"a":1}` {
			t.Fatalf("%v, %+v", err, reply)
		}
		v.Append(reply.Message)
		v.Append(llm.Message{Role: llm.RoleTool, ToolCallID: reply.Message.ToolCalls[0].ID, Content: "1"})
		if reply, err = v.Send(t.Context(), nil); err != nil || reply.Message.Content != "done" {
			t.Errorf("%v, %+v", err, reply)
		}
		if n := len(srv.Requests()); switched != 1 || n != 3+2*i {
			t.Errorf("switched %d times, %d calls", switched, n)
		}
	}
	if r := srv.Requests()[1]; len(r.Messages) != 2 {
		t.Errorf("%d messages after the switch", len(r.Messages))
	}
	llmtest.CheckPrefix(t, srv.Requests()[1:3])
}

// TestDetectWithoutARefill: what cannot be filled again keeps its error.
func TestDetectWithoutARefill(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Status: 400, ErrorText: "m does not support tools"}))
	v := Detect(over(t, srv, llmtest.Options{}), nil).Open(llm.Settings{Tools: []llm.Tool{{Name: "f"}}})
	v.Append(llm.Message{Role: llm.RoleUser, Content: "a"})
	var e *llm.Error
	if _, err := v.Send(t.Context(), nil); !errors.As(err, &e) || e.Kind != llm.KindNoTools {
		t.Error(err)
	}
}

// TestDetectLate: a conversation switches at any time; where it could not be filled, no part of it is sent.
func TestDetectLate(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if len(r.Tools) > 0 && r.Turn() > 0 {
			return llmtest.Answer{Status: 400, ErrorText: "m does not support tools"}
		}
		return llmtest.Answer{Text: "ok"}
	})
	v := Detect(over(t, srv, llmtest.Options{}), nil).Open(llm.Settings{Tools: []llm.Tool{{Name: "f"}}}).(*undecided)
	said := []llm.Message{{Role: llm.RoleUser, Content: "a"}}
	broken := errors.New("disk")
	v.OnMove(func() error {
		v.Reset()
		for _, m := range said {
			v.Append(m)
			if broken != nil {
				return broken
			}
		}
		return nil
	})
	v.Append(said[0])
	if _, err := v.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, m := range []llm.Message{{Role: llm.RoleAssistant, Content: "ok"}, {Role: llm.RoleUser, Content: "b"}} {
		said = append(said, m)
		v.Append(m)
	}
	for range 2 {
		if _, err := v.Send(t.Context(), nil); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	if n := len(srv.Requests()); n != 2 {
		t.Errorf("%d calls", n)
	}
	broken = nil
	if reply, err := v.Send(t.Context(), nil); err != nil || reply.Message.Content != "ok" {
		t.Fatalf("%v, %+v", err, reply)
	}
	if last := srv.Requests()[2]; len(last.Tools) != 0 || len(last.Messages) != 4 { // the manual, and all that was said
		t.Errorf("%d tools, %d messages", len(last.Tools), len(last.Messages))
	}
}
