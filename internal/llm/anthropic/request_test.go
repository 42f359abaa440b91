package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// roundTrip is a transport without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answerWith(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

var fine = sse(startEvent, textStart, textDelta("a"), textStop, endEvent, stopEvent)

// offline is a client whose calls are all answered "a", and the bodies it sent.
func offline(t testing.TB, cfg Config) (*client, *[][]byte) {
	sent := new([][]byte)
	if cfg.BaseURL == "" {
		cfg.BaseURL = "http://x"
	}
	cfg.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(b)) {
			t.Errorf("%v, length %d of %d", err, r.ContentLength, len(b))
		}
		*sent = append(*sent, b)
		return answerWith(200, fine), nil
	})}
	return testClient(t, cfg), sent
}

func mustSend(t testing.TB, v llm.Conversation) {
	t.Helper()
	if _, err := v.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// thought is a block of thinking as the fake server signs it.
func thought(text string) string {
	return fmt.Sprintf(`{"type":"thinking","thinking":%q,"signature":"sig-%s"}`, text, base64.StdEncoding.EncodeToString([]byte(text)))
}

func say(role, text string) llm.Message { return llm.Message{Role: role, Content: text} }

func asks(text string, ids ...string) llm.Message {
	m := say(llm.RoleAssistant, text)
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: id, Name: "f", Arguments: `{}`})
	}
	return m
}

func result(id, text string) llm.Message {
	return llm.Message{Role: llm.RoleTool, ToolCallID: id, ToolName: "f", Content: text}
}

func TestGoldenRequest(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/request.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	c, sent := offline(t, Config{Provider: "p", Model: "claude-sonnet-4.5", Thinking: 2000, MaxTokens: 99})
	v := c.Open(llm.Settings{Tools: []llm.Tool{{Name: "f", Description: `Does "it" <fast>.`, Schema: json.RawMessage(`{ "type": "object" }`)}, {Name: "g.h"}, {Name: "g_h", Schema: json.RawMessage(`{"properties":{}}`)}}})
	for _, m := range []llm.Message{
		say(llm.RoleSystem, "S"), say(llm.RoleSystem, "Rules."),
		{Role: llm.RoleUser, Content: "行け\n", Images: []llm.Image{{MediaType: "image/png", Data: []byte("PNG")}}},
		{Role: llm.RoleAssistant, Reasoning: "R", Opaque: "[" + thought("R") + "]", ToolCalls: []llm.ToolCall{
			{ID: "toolu_1", Name: "f", Arguments: `{ "a": 1.50 }`}, {ID: "call:2/x", Name: "g.h", Arguments: `{"a":`}, {ID: "call_3", Name: "not.offered!"}}},
		result("toolu_1", "fine"),
		{Role: llm.RoleTool, ToolCallID: "call:2/x", Content: "no", Failed: true},
		result("call_3", ""),
		say(llm.RoleUser, "And now?"),
		say(llm.RoleSystem, "Hurry."),
		say(llm.RoleAssistant, "Done. "),
		say(llm.RoleUser, "Thanks."),
	} {
		v.Append(m)
	}
	mustSend(t, v)
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string((*sent)[0])); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if _, err := llmtest.ParseMessages((*sent)[0]); err != nil {
		t.Error(err)
	}
}

// outline shows the turns of a request: U or A, and the kind and text of each
// block; ! marks what is to be cached.
func outline(t testing.TB, body []byte) string {
	t.Helper()
	if _, err := llmtest.ParseMessages(body); err != nil {
		t.Fatalf("the API would refuse it: %v\n%s", err, body)
	}
	type block struct {
		Type, Text, ID, Content string
		Source                  any
		ToolUseID               string `json:"tool_use_id"`
		IsError                 bool   `json:"is_error"`
		Cache                   any    `json:"cache_control"`
	}
	var r struct {
		System   []block
		Tools    []block
		Messages []struct {
			Role    string
			Content []block
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var out []string
	show := func(who string, blocks []block) {
		var parts []string
		for _, b := range blocks {
			s := b.Type + b.Text
			switch b.Type {
			case "text":
				s = b.Text
			case "tool_use":
				s = "use " + b.ID
			case "tool_result":
				s = "result " + b.ToolUseID + " " + b.Content
			}
			if b.IsError {
				s += " FAILED"
			}
			if b.Cache != nil {
				s += "!"
			}
			parts = append(parts, s)
		}
		if len(blocks) > 0 {
			out = append(out, who+": "+strings.Join(parts, " | "))
		}
	}
	show("T", r.Tools)
	show("S", r.System)
	for _, m := range r.Messages {
		show(strings.ToUpper(m.Role[:1]), m.Content)
	}
	return strings.Join(out, "\n")
}

func TestTurns(t *testing.T) {
	t.Parallel()
	const sys, usr, ast = llm.RoleSystem, llm.RoleUser, llm.RoleAssistant
	for _, c := range []struct {
		name     string
		messages []llm.Message
		want     string
	}{
		{"nothing", nil, "U: (start of the conversation)!"},
		{"system alone", []llm.Message{say(sys, "S")}, "S: S!\nU: (start of the conversation)!"},
		{"blank system", []llm.Message{say(sys, " \n"), say(usr, "go")}, "U: go!"},
		{"answer first", []llm.Message{say(sys, "S"), say(ast, "summary"), say(usr, "go")}, "S: S!\nU: (start of the conversation)!\nA: summary\nU: go!"},
		{"user messages join", []llm.Message{say(usr, "a"), say(usr, "b"), say(sys, "c")}, "U: a | b | [System message]\nc!"},
		{"answer last", []llm.Message{say(usr, "a"), say(ast, "b ")}, "U: a!\nA: b \nU: (continue)!"},
		{"two answers", []llm.Message{say(usr, "a"), say(ast, "b"), say(ast, "c"), say(usr, "d")}, "U: a\nA: b\nU: (continue)!\nA: c\nU: d!"},
		{"blank texts", []llm.Message{say(usr, ""), say(ast, "\t"), say(usr, "\u3000")}, "U: (no content)!\nA: (no content)\nU: (no content)!"},
		{"results and a comment", []llm.Message{say(usr, "a"), asks("b", "x", "y"), result("x", "1"), result("y", "2"), say(usr, "c")},
			"U: a!\nA: b | use x | use y\nU: result x 1 | result y 2 | c!"},
		{"results in another order", []llm.Message{say(usr, "a"), asks("", "x", "y"), result("y", "2"), result("x", "")},
			"U: a!\nA: use x | use y\nU: result y 2 | result x !"},
		{"ids come again", []llm.Message{say(usr, "a"), asks("", "x", "x"), result("x", "1"), result("x", "2"), asks("", "x"), result("x", "3")},
			"U: a\nA: use x | use x_2\nU: result x 1 | result x_2 2!\nA: use x_3\nU: result x_3 3!"},
		{"a result is missing", []llm.Message{say(usr, "a"), asks("", "x", "y"), result("x", "1"), say(usr, "c")},
			"U: a!\nA: use x | use y\nU: result x 1 | result y No result of this call is on record. FAILED | c!"},
		{"all results are missing at the end", []llm.Message{say(usr, "a"), asks("", "x")},
			"U: a!\nA: use x\nU: result x No result of this call is on record. FAILED!"},
		{"a result without a call", []llm.Message{say(usr, "a"), result("x", "1")}, "U: a | [Result of a call that is no longer shown: f]\n1!"},
		{"other role", []llm.Message{say("developer", "a")}, "U: a!"},
		{"images", []llm.Message{{Role: usr, Images: []llm.Image{{MediaType: "image/webp", Data: []byte{1}}, {MediaType: "image/bmp", Data: []byte{1}}, {MediaType: "image/gif"}}}},
			"U: image | (an image of the type image/bmp cannot be shown) | (an empty image)!"},
	} {
		cl, sent := offline(t, Config{})
		v := cl.Open(llm.Settings{})
		for _, m := range c.messages {
			v.Append(m)
		}
		mustSend(t, v)
		got := outline(t, (*sent)[0])
		if i := strings.Index(got, "S:"); i > 0 { // the tool that stands in
			got = got[i:]
		}
		got = strings.TrimPrefix(got, "T: \n")
		if got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, got, c.want)
		}
	}
}

func TestResultWithImages(t *testing.T) {
	t.Parallel()
	c, sent := offline(t, Config{})
	v := c.Open(llm.Settings{Tools: []llm.Tool{{Name: "f"}}})
	v.Append(say(llm.RoleUser, "look"))
	v.Append(asks("", "x", "y"))
	image := []llm.Image{{MediaType: "image/png", Data: []byte("PNG")}}
	v.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "x", Content: "seen", Images: image})
	v.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "y", Images: image})
	mustSend(t, v)
	const picture = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"UE5H"}}`
	for _, want := range []string{`"content":[{"type":"text","text":"seen"},` + picture + `]`, `"tool_use_id":"y","content":[` + picture + `]`} {
		if !bytes.Contains((*sent)[0], []byte(want)) {
			t.Errorf("%s\nlacks %s", (*sent)[0], want)
		}
	}
	if _, err := llmtest.ParseMessages((*sent)[0]); err != nil {
		t.Error(err)
	}
}

// TestMarks: where one request ended, the next one looks for what was cached.
func TestMarks(t *testing.T) {
	t.Parallel()
	c, sent := offline(t, Config{})
	set := llm.Settings{Tools: []llm.Tool{{Name: "e"}, {Name: "f"}}}
	v := c.Open(set)
	var history []llm.Message
	add := func(m llm.Message) { history = append(history, m); v.Append(m) }
	add(say(llm.RoleSystem, "S"))
	add(say(llm.RoleUser, "a"))
	mustSend(t, v)
	add(asks("b", "x"))
	add(result("x", "1"))
	mustSend(t, v)
	add(asks("", "y"))
	add(result("y", "2"))
	add(say(llm.RoleUser, "c"))
	mustSend(t, v)
	for i, want := range []string{
		"T:  | !\nS: S!\nU: a!",
		"T:  | !\nS: S!\nU: a!\nA: b | use x\nU: result x 1!",
		"T:  | !\nS: S!\nU: a\nA: b | use x\nU: result x 1!\nA: use y\nU: result y 2 | c!",
	} {
		if got := outline(t, (*sent)[i]); got != want {
			t.Errorf("request %d:\n%s\nwant:\n%s", i+1, got, want)
		}
	}
	resumed := c.Open(set)
	for _, m := range history {
		resumed.Append(m)
	}
	mustSend(t, resumed)
	if !bytes.Equal((*sent)[2], (*sent)[3]) {
		t.Errorf("resumed, it sends\n%s\nnot\n%s", (*sent)[3], (*sent)[2])
	}
}

// TestLaws: whatever is appended, what was serialised stays a prefix, the API
// accepts the request, and a second conversation sends the same bytes.
func TestLaws(t *testing.T) {
	t.Parallel()
	c, sent := offline(t, Config{})
	ctx, set := t.Context(), llm.Settings{Tools: []llm.Tool{{Name: "f"}, {Name: "g.h"}}}
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", " ", "\xff\x00", `{"a":1}`, `{"a":"\ud83e"}`, "日本", "-", "x_2", "x"}))
	message := rapid.Custom(func(t *rapid.T) llm.Message {
		m := llm.Message{Role: rapid.SampledFrom([]string{"system", "user", "assistant", "tool", "tool"}).Draw(t, "role"), Content: text.Draw(t, "content")}
		switch m.Role {
		case llm.RoleAssistant:
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: rapid.SampledFrom([]string{"", "x", "y", "x_2", "a b", "a/b"}).Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "args")})
			}
			parts := rapid.SliceOfN(rapid.SampledFrom([]string{thought("T"), `{"type":"redacted_thinking","data":"D"}`, `{"type":"tool_use"}`, `{"type":"text","bytes":1}`, `{"type":"text","bytes":-1}`, `{"type":"evil"}`, `null`}), 0, 4).Draw(t, "parts")
			m.Opaque = rapid.SampledFrom([]string{"", "[", "[" + strings.Join(parts, ",") + "]"}).Draw(t, "opaque")
		case llm.RoleTool:
			m.ToolCallID = rapid.SampledFrom([]string{"", "x", "y", "a b"}).Draw(t, "result of")
			m.Failed = rapid.Bool().Draw(t, "failed")
		case llm.RoleUser:
			if rapid.Bool().Draw(t, "image") {
				m.Images = []llm.Image{{MediaType: "image/png", Data: []byte{1, 2}}}
			}
		}
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		*sent = nil
		v, again := c.Open(set), c.Open(set)
		var before []byte
		for _, m := range rapid.SliceOfN(message, 1, 10).Draw(t, "messages") {
			v.Append(m)
			again.Append(m)
			now := bytes.Clone(v.Serialized())
			if !bytes.HasPrefix(now, before) {
				t.Fatalf("%q does not begin with %q", now, before)
			}
			if !json.Valid(document(now)) {
				t.Fatalf("not JSON: %s", now)
			}
			before = now
			if rapid.IntRange(0, 3).Draw(t, "send") == 0 {
				v.Send(ctx, nil) //nolint:errcheck // it must leave no trace
			}
		}
		for _, conv := range []llm.Conversation{v, again} {
			if _, err := conv.Send(ctx, nil); err != nil {
				t.Fatal(err)
			}
		}
		n := len(*sent)
		if !bytes.Equal((*sent)[n-1], (*sent)[n-2]) {
			t.Fatalf("not the same bytes:\n%s\n%s", (*sent)[n-1], (*sent)[n-2])
		}
		r, err := llmtest.ParseMessages((*sent)[n-1])
		if err != nil {
			t.Fatalf("the API would refuse it: %v\n%s", err, (*sent)[n-1])
		}
		raw := bytes.TrimSuffix(bytes.TrimPrefix(r.Raw, []byte("[")), []byte("]"))
		if !bytes.HasPrefix(raw, before) {
			t.Fatalf("sent %s\nserialised %s", raw, before)
		}
	})
}
