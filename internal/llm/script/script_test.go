package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// replay sends until the script ends and returns every answer.
func replay(t *testing.T, c llm.Client) []llm.Message {
	t.Helper()
	var all []llm.Message
	v := c.Open(llm.Settings{})
	v.Append(llm.Message{Role: llm.RoleUser, Content: "Go."})
	for {
		reply, err := v.Send(t.Context(), nil)
		var e *llm.Error
		if errors.As(err, &e) && e.Kind == llm.KindScriptEnded {
			if e.Endpoint != c.Model() || !strings.Contains(e.Message, c.Model()) || e.Retryable() {
				t.Errorf("the end is told as %v", e)
			}
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, reply.Message)
		v.Append(reply.Message)
		for _, call := range reply.Message.ToolCalls {
			v.Append(llm.Message{Role: llm.RoleTool, ToolCallID: call.ID, Content: "ok"})
		}
	}
}

func assistant(text string, calls ...llm.ToolCall) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Content: text, ToolCalls: calls}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]llm.Message{
		"steps.yaml": {
			assistant("まず一覧を見ます。\n", llm.ToolCall{ID: "call_1_1", Name: "list_files", Arguments: `{"path":".","depth":2,"all":true}`}),
			assistant("",
				llm.ToolCall{ID: "my-id", Name: "write", Arguments: `{"zeta":1.5,"alpha":[null,"<b> & \"q\"",{"b":"x","a":"y"}],"text":"line 1\nline 2\n"}`},
				llm.ToolCall{ID: "call_2_2", Name: "done", Arguments: `{}`}),
			assistant("All done."),
		},
		"messages.jsonl": {
			assistant("", llm.ToolCall{ID: "call_9", Name: "bash", Arguments: `{"command": "ls"}`}, llm.ToolCall{ID: "call_10", Name: "bash", Arguments: `{"z":1,"a":[1,2]}`}),
			assistant("Fixed.", llm.ToolCall{ID: "call_2_1", Name: "bash", Arguments: `{"cut`}),
			assistant("The end."),
		},
	} {
		synctest.Test(t, func(t *testing.T) { // for the delay
			c, err := Open(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			if c.Provider() != "script" || c.Model() != file {
				t.Errorf("%s is named %s %s", file, c.Provider(), c.Model())
			}
			if diff := cmp.Diff(want, replay(t, c)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := Parse("s.yaml", []byte("- say: hello\n  delay_ms: 2000\n"))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := c.Open(llm.Settings{}).Send(t.Context(), nil); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Open(llm.Settings{}).Send(ctx, nil); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
	})
}

// TestPlaceInTheScript: the messages alone tell the next step.
func TestPlaceInTheScript(t *testing.T) {
	t.Parallel()
	c, err := Parse("s.yaml", []byte("- say: one\n- calls: [{tool: f}]\n- say: three\n- calls: [{tool: f}]\n- say: five\n"))
	if err != nil {
		t.Fatal(err)
	}
	user := llm.Message{Role: llm.RoleUser, Content: "Go."}
	second := assistant("", llm.ToolCall{ID: "call_2_1", Name: "f", Arguments: "{}"})
	for name, tc := range map[string]struct {
		messages []llm.Message
		want     string
	}{
		"nothing yet":             {nil, "one"},
		"first":                   {[]llm.Message{user}, "one"},
		"after two":               {[]llm.Message{user, assistant("one"), second}, "three"},
		"inherited summary":       {[]llm.Message{assistant("summary"), user}, "one"},
		"compressed window":       {[]llm.Message{user, second}, "three"},
		"compressed, and further": {[]llm.Message{assistant("summary"), user, second, assistant("three"), assistant("?")}, "five"},
		"strange calls":           {[]llm.Message{user, assistant("", llm.ToolCall{ID: "other"}), assistant("")}, "three"},
	} {
		v := c.Open(llm.Settings{})
		for _, m := range tc.messages {
			v.Append(m)
		}
		reply, err := v.Send(t.Context(), nil)
		if err != nil || reply.Message.Content != tc.want || reply.Usage != nil {
			t.Errorf("%s: %+v, %v", name, reply, err)
		}
	}
}

func TestReplyIsTheCallersOwn(t *testing.T) {
	t.Parallel()
	c, err := Parse("s.yaml", []byte("- calls: [{tool: f}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	v := c.Open(llm.Settings{})
	for range 2 {
		reply, err := v.Send(t.Context(), nil)
		if err != nil || reply.Message.ToolCalls[0].Name != "f" {
			t.Fatalf("%+v, %v", reply, err)
		}
		reply.Message.ToolCalls[0].Name = "changed"
	}
}

// TestAnswersAreWhole: all that a file says of an answer is in the reply.
func TestAnswersAreWhole(t *testing.T) {
	t.Parallel()
	cost := int64(7)
	for _, c := range []struct {
		name, data string
		want       llm.Reply
	}{
		{"a.jsonl", `{"role":"assistant","content":"a","reasoning_content":"r","provider_parts":"[1]","finish_reason":"length","answered_by":"p/m","usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9,"cached_tokens":3,"cache_write_tokens":4,"reasoning_tokens":5,"cost_micro_usd":7}}`,
			llm.Reply{Message: llm.Message{Role: "assistant", Content: "a", Reasoning: "r", Opaque: "[1]"}, FinishReason: "length", By: "p/m",
				Usage: &llm.Usage{PromptTokens: 1, CompletionTokens: 2, TotalTokens: 9, CachedTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 5, Cost: &cost}}},
		{"a.jsonl", `{"role":"assistant","content":"","finish_reason":"sensitive","usage":{"prompt_tokens":1,"completion_tokens":2}}`,
			llm.Reply{Message: llm.Message{Role: "assistant"}, FinishReason: "sensitive", Usage: &llm.Usage{PromptTokens: 1, CompletionTokens: 2, TotalTokens: 3}}},
		{"a.jsonl", `{"role":"assistant","content":"a","usage":{"prompt_tokens":1,"completion_tokens":2,"estimated":true}}`,
			llm.Reply{Message: llm.Message{Role: "assistant", Content: "a"}, FinishReason: "stop"}},
		{"a.jsonl", `{"role":"assistant","content":"a","finish_reason":"","usage":null,"tool_calls":[{"id":"i","name":"f","arguments":""}]}`,
			llm.Reply{Message: llm.Message{Role: "assistant", Content: "a", ToolCalls: []llm.ToolCall{{ID: "i", Name: "f"}}}, FinishReason: "tool_calls"}},
		{"a.yaml", "- say: a\n  finish: length\n  usage: {prompt_tokens: 1, completion_tokens: 2, cached_tokens: 1}",
			llm.Reply{Message: llm.Message{Role: "assistant", Content: "a"}, FinishReason: "length", Usage: &llm.Usage{PromptTokens: 1, CompletionTokens: 2, TotalTokens: 3, CachedTokens: 1}}},
		{"a.yaml", "- finish: content_filter",
			llm.Reply{Message: llm.Message{Role: "assistant"}, FinishReason: "content_filter"}},
		{"a.yaml", "- calls: [{tool: f, id: i}]\n  finish: length",
			llm.Reply{Message: llm.Message{Role: "assistant", ToolCalls: []llm.ToolCall{{ID: "i", Name: "f", Arguments: "{}"}}}, FinishReason: "length"}},
	} {
		client, err := Parse(c.name, []byte(c.data))
		if err != nil {
			t.Errorf("%s: %v", c.data, err)
			continue
		}
		c.want.Model = c.name
		v := client.Open(llm.Settings{})
		for range 2 { // what its caller changes is changed nowhere else
			reply, err := v.Send(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, reply); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.data, diff)
			}
			if u := reply.Usage; u != nil {
				u.PromptTokens = 100
				if u.Cost != nil {
					*u.Cost = 100
				}
			}
		}
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, data, key, says string }{
		{"a.txt", "", "script.format", "a.txt"},
		{"a.jsonl", "", "script.no_answers", "a.jsonl"},
		{"a.jsonl", `{"role":"user","content":"x"}`, "script.no_answers", "a.jsonl"},
		{"a.jsonl", "{\"role\":\"user\"}\n\n{\"role\":", "script.syntax", "a.jsonl, line 3:"},
		{"a.jsonl", "[]", "script.syntax", "line 1: a JSON object with \"role\""},
		{"a.jsonl", "{}", "script.syntax", `"role" is missing`},
		{"a.jsonl", `{"role":"assistant","tool_calls":[{"id":"x"}]}`, "script.syntax", "names no tool"},
		{"a.jsonl", `{"role":"assistant","tool_calls":[{"name":"f","arguments":[1]}]}`, "script.syntax", "arguments of the call of f must be an object"},
		{"a.jsonl", `{"role":"assistant","content":"a","delay_ms":-1}`, "script.syntax", "delay_ms must be"},
		{"a.jsonl", `{"role":"assistant","content":"a","usage":{"prompt_tokens":-1}}`, "script.syntax", "line 1: usage must hold numbers from 0"},
		{"a.jsonl", `{"role":"assistant","content":"a","usage":{"cost_micro_usd":-1}}`, "script.syntax", "usage must hold"},
		{"a.jsonl", `{"role":"assistant","content":"a","usage":{"prompt_tokens":1.5}}`, "script.syntax", "a JSON object"},
		{"a.jsonl", `{"role":"assistant","content":"a","usage":{"prompt_tokens":9223372036854775807,"completion_tokens":1}}`, "script.syntax", "usage must hold"},
		{"a.yaml", "- say: a\n- say: b\n  finish: done\n", "script.syntax", "line 2: finish must be one of stop, tool_calls, length, content_filter"},
		{"a.yaml", "- say: a\n  usage: {total_tokens: -1}\n", "script.syntax", "line 1: usage must hold"},
		{"a.yaml", "- say: a\n  usage: {tokens: 1}\n", "script.syntax", "line 2: not the form of a step: unknown field"},
		{"a.yaml", "", "script.no_answers", "a.yaml"},
		{"a.yaml", "say: hello", "script.syntax", "a.yaml, line 1: a list of steps"},
		{"a.yml", "- say: a\n- delay_ms: 5\n", "script.syntax", "a.yml, line 2: the step says nothing"},
		{"a.yaml", "- say: a\n\n- calls:\n  - args: {}\n", "script.syntax", "line 3: a call names no tool"},
		{"a.yaml", "- say: a\n  shout: b\n", "script.syntax", "line 2: not the form of a step: unknown field"},
		{"a.yaml", "- say: a\n- say: [\n", "script.syntax", "line "},
		{"a.yaml", "- say: a\n- calls:\n  - tool: f\n    args: [1]\n", "script.syntax", "line 4:"},
		{"a.yaml", "- calls: [{tool: f, args: {x: .nan}}]\n", "script.syntax", "no JSON number"},
		{"a.yaml", "- say: a\n  delay_ms: 99999999\n", "script.syntax", "delay_ms must be"},
	} {
		_, err := Parse(c.name, []byte(c.data))
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != c.key || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "%!") {
			t.Errorf("%s %q: got %v", c.name, c.data, err)
		} else if ja := i18n.Japanese.Error(err); strings.Contains(ja, "%!") || ja == err.Error() {
			t.Errorf("in Japanese: %s", ja)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	// Not waited for, and not read for ever.
	pipe := filepath.Join(t.TempDir(), "pipe.yaml")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero"} {
		var e *i18n.Error
		if _, err := Open(path); !errors.Is(err, disk.ErrNotPlain) || !errors.As(err, &e) || e.Key != "script.read" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A few lines of names for lists of names are as many arguments as one likes.
func TestArgumentsAreBounded(t *testing.T) {
	t.Parallel()
	text := "- say: x\n  calls:\n  - tool: a\n    args:\n      l0: &l0 xxxxxxxxxx\n"
	for i := range 9 {
		text += fmt.Sprintf("      l%d: &l%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d,", i), 9), ","))
	}
	if _, err := Parse("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "MiB") {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "x.jsonl")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, maxFile+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.As(err, new(*disk.TooLargeError)) {
		t.Error(err)
	}
}

// FuzzParse: no input breaks the parser, and what it takes replays with
// arguments that are JSON objects where YAML wrote them.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"steps.yaml", "messages.jsonl"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Ext(name), raw)
	}
	f.Add(".yaml", []byte("- &a {say: x}\n- *a\n- calls: [{tool: f, args: {1: 2, [a]: b, <<: {c: d}}}]"))
	f.Fuzz(func(t *testing.T, ext string, data []byte) {
		defer disktest.Bounded(t, len(data))()
		opened, err := Parse("fuzz"+ext, data)
		if err != nil {
			return
		}
		c, ok := opened.(*client)
		if !ok || len(c.steps) == 0 {
			t.Fatalf("%T without steps", opened)
		}
		for _, s := range c.steps {
			for _, call := range s.calls {
				if call.ID == "" || call.Name == "" || ext != ".jsonl" && !json.Valid([]byte(call.Arguments)) {
					t.Fatalf("%+v", call)
				}
			}
		}
	})
}
