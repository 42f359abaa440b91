package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/endpoint"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/redact"
	"toritsugi/internal/tool"
)

// fake is a model in this process that keeps what it was given.
type fake struct {
	name     string
	settings llm.Settings
	held     []llm.Message
	sent     int
	refill   func() error
	move     bool // the next Send begins anew
}

func (f *fake) Provider() string { return f.name }
func (f *fake) Model() string    { return "m" }
func (f *fake) Open(s llm.Settings) llm.Conversation {
	f.settings = s
	return f
}
func (f *fake) Append(m llm.Message) { f.held = append(f.held, m) }
func (f *fake) Reset()               { f.held = nil }
func (f *fake) Serialized() []byte   { return fmt.Append(nil, len(f.held)) }
func (f *fake) OnMove(r func() error) {
	f.refill = r
}
func (f *fake) Send(_ context.Context, onText func(string)) (*llm.Reply, error) {
	if f.move {
		f.move, f.held = false, nil
		if err := f.refill(); err != nil {
			return nil, err
		}
	}
	f.sent++
	if onText != nil {
		onText("hi")
	}
	return &llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Content: "hi"}}, nil
}

// still is a fake without a refill.
type still struct{ *fake }

func (s still) Open(set llm.Settings) llm.Conversation {
	return struct{ llm.Conversation }{s.fake.Open(set)}
}

// records is a log that keeps its records' attributes.
type records struct{ bytes.Buffer }

func (r *records) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(r, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// take returns the lines since the last call.
func (r *records) take() string {
	s := r.String()
	r.Reset()
	return s
}

const (
	key  = "sk-proj-abcdefgh12345678ijklmnop"
	mail = "someone@example.org"
)

var sanitize = redact.New([]string{"hunter2-known-value"}, nil).Strict().String

func TestGuardMasksAndCounts(t *testing.T) {
	t.Parallel()
	var log records
	f := &fake{name: "openai"}
	v := Guard(f, Rule{Cloud: true, Redact: sanitize, Log: log.logger()}).Open(llm.Settings{})
	calls := []llm.ToolCall{{ID: key, Name: "f", Arguments: "{}"}, {ID: "2", Name: mail, Arguments: `{"key":"` + key + `"}`}}
	messages := []llm.Message{
		{Role: llm.RoleSystem, Content: "Plain."},
		{Role: llm.RoleUser, Content: "I am " + mail + ", hunter2-known-value, [EMAIL] before, [OTHER]", Images: []llm.Image{{}, {}}},
		{Role: llm.RoleAssistant, Content: "a", Reasoning: "is " + mail, Opaque: key, ToolCalls: calls},
		{Role: llm.RoleTool, ToolCallID: key, ToolName: key, Content: key, Failed: true},
	}
	for _, m := range messages {
		v.Append(m)
	}
	want := []llm.Message{
		messages[0],
		{Role: llm.RoleUser, Content: "I am [EMAIL], [REDACTED], [EMAIL] before, [OTHER]", Images: []llm.Image{{}, {}}},
		{Role: llm.RoleAssistant, Content: "a", Reasoning: "is [EMAIL]", Opaque: key, ToolCalls: []llm.ToolCall{calls[0], {ID: "2", Name: "[EMAIL]", Arguments: `{"key":"[OPENAI_KEY]"}`}}},
		{Role: llm.RoleTool, ToolCallID: key, ToolName: "[OPENAI_KEY]", Content: "[OPENAI_KEY]", Failed: true},
	}
	if diff := cmp.Diff(want, f.held); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if calls[1].Name != mail {
		t.Error("the caller's calls were changed")
	}
	send := func(want string) {
		t.Helper()
		if _, err := v.Send(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := log.take(); got != want {
			t.Errorf("got  %swant %s", got, want)
		}
	}
	record := func(masked int, kinds string, images, total int) string {
		return fmt.Sprintf(`{"msg":"Masked for the cloud","provider":"openai","model":"m","masked":%d,"kinds":%s,"images":%d,"total":%d}`+"\n", masked, kinds, images, total)
	}
	send(record(8, `{"[EMAIL]":4,"[OPENAI_KEY]":3,"[REDACTED]":1}`, 2, 8))
	send("")
	v.Append(llm.Message{Content: "clean"})
	send("")
	v.Append(llm.Message{Content: mail})
	send(record(1, `{"[EMAIL]":1}`, 0, 9))
	v.Append(llm.Message{Content: mail})
	v.Reset() // it was never sent
	v.Append(llm.Message{Images: []llm.Image{{}}})
	send(record(0, `null`, 1, 9))
	// A move within the call: what is appended again is sent again.
	r, ok := v.(llm.Refillable)
	if !ok {
		t.Fatal("not refillable")
	}
	r.OnMove(func() error { v.Append(llm.Message{Content: mail}); return nil })
	f.move = true
	send(record(1, `{"[EMAIL]":1}`, 0, 10))
	if len(f.held) != 1 || f.held[0].Content != "[EMAIL]" {
		t.Errorf("held %+v", f.held)
	}
}

func TestGuardMasksSettings(t *testing.T) {
	t.Parallel()
	var log records
	f := &fake{name: "openai"}
	g := Guard(f, Rule{Cloud: true, Redact: sanitize, Log: log.logger()})
	clean := json.RawMessage(`{ "type":"object", "properties":{"token":{"type":"string","description":"a token, e.g. \u0041"},"password":{"type":"string"}},"required":["token"]}`)
	secret := json.RawMessage(`{"a":"x ` + mail + ` \"q\"", "b" : ["` + key + `","<&>"],"password":"Tr0ub4dor&3xyz","\u0061":"s\u006f` + `meone@example.org","n":1}`)
	before := bytes.Clone(secret)
	tools := []llm.Tool{{Name: "one", Description: "Of " + mail, Schema: clean}, {Name: "two", Schema: secret}, {Name: "three"}}
	v := g.Open(llm.Settings{Tools: tools})
	got := f.settings
	if got.Tools[0].Description != "Of [EMAIL]" || &got.Tools[0].Schema[0] != &clean[0] || len(got.Tools[2].Schema) != 0 {
		t.Errorf("%+v", got)
	}
	if want := `{"a":"x [EMAIL] \"q\"", "b" : ["[OPENAI_KEY]","<&>"],"password":"[REDACTED]","\u0061":"[EMAIL]","n":1}`; string(got.Tools[1].Schema) != want {
		t.Errorf("got  %s\nwant %s", got.Tools[1].Schema, want)
	}
	if tools[0].Description != "Of "+mail || !bytes.Equal(before, secret) {
		t.Error("the caller's tools were changed")
	}
	if _, err := v.Send(t.Context(), nil); err != nil || !strings.Contains(log.take(), `"masked":5,"kinds":{"[EMAIL]":3,"[OPENAI_KEY]":1,"[REDACTED]":1}`) {
		t.Error(err)
	}
	v.Reset()
	if _, err := v.Send(t.Context(), nil); err != nil || log.take() != "" {
		t.Error("the settings are counted twice", err)
	}
	f.sent = 0
	for text, s := range map[string]llm.Settings{
		"tool [EMAIL] holds":               {Tools: []llm.Tool{{Name: mail}}},
		"argument of the tool two holds":   {Tools: []llm.Tool{{Name: "one"}, {Name: "two", Schema: json.RawMessage(`{"properties":{"` + mail + `":{}}}`)}}},
		"argument of the tool three holds": {Tools: []llm.Tool{{Name: "three", Schema: json.RawMessage(`{"sk\u002dproj-abcdefgh12345678ijklmnop":1}`)}}},
	} {
		v := g.Open(s)
		v.Append(llm.Message{Content: "x"})
		_, err := v.Send(t.Context(), nil)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.KindForbidden || e.Provider != "openai" || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "openai/m") || strings.Contains(err.Error(), mail) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if f.sent != 0 {
		t.Error("sent")
	}
	// A name counts for its value and for the items of a list, and no further.
	g.Open(llm.Settings{Tools: []llm.Tool{{Name: "t", Schema: json.RawMessage(`[{"password":["Tr0ub4dor&3xyz", "Tr0ub4dor&4xyz"],"x":"a"},"Tr0ub4dor&5xyz",{"password":{"type":"Tr0ub4dor&6xyz"}},["Tr0ub4dor&7xyz"],{"password":[]},"Tr0ub4dor&8xyz"]`)}}})
	if want := `[{"password":["[REDACTED]", "[REDACTED]"],"x":"a"},"Tr0ub4dor&5xyz",{"password":{"type":"Tr0ub4dor&6xyz"}},["Tr0ub4dor&7xyz"],{"password":[]},"Tr0ub4dor&8xyz"]`; string(f.settings.Tools[0].Schema) != want {
		t.Errorf("got  %s\nwant %s", f.settings.Tools[0].Schema, want)
	}
	// What is no JSON stays none, but is masked.
	g.Open(llm.Settings{Tools: []llm.Tool{{Name: "t", Schema: json.RawMessage(`{"` + mail)}}})
	if string(f.settings.Tools[0].Schema) != `{"[EMAIL]` {
		t.Errorf("%s", f.settings.Tools[0].Schema)
	}
}

// TestHouseToolsPass: our own tools are offered to a cloud as they are.
func TestHouseToolsPass(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	var tools []llm.Tool
	for _, b := range tool.Builtins(tool.Env{Root: root, Shell: struct{ tool.Shell }{}, Git: struct{ tool.Git }{}}) {
		d := b.Definition()
		tools = append(tools, llm.Tool{Name: d.Name, Description: d.Description, Schema: d.Schema})
	}
	var log records
	f := &fake{name: "openai"}
	v := Guard(f, Rule{Cloud: true, Redact: sanitize, Log: log.logger()}).Open(llm.Settings{Tools: tools})
	if _, err := v.Send(t.Context(), nil); err != nil || log.String() != "" || len(tools) < 7 {
		t.Errorf("%d tools: %v, %s", len(tools), err, log.String())
	}
	if diff := cmp.Diff(tools, f.settings.Tools); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGuardForbids(t *testing.T) {
	t.Parallel()
	var log records
	f := &fake{name: "openai"}
	local := false
	v := Guard(f, Rule{Cloud: true, Redact: sanitize, Log: log.logger(), Allow: func() error { return Allowed("CODE1", local, []string{"CODE1"}) }}).Open(llm.Settings{})
	v.Append(llm.Message{Content: mail})
	local = true
	_, err := v.Send(t.Context(), func(string) { t.Error("text") })
	var e *llm.Error
	var said *i18n.Error
	if !errors.As(err, &e) || e.Kind != llm.KindForbidden || e.Retryable() || e.Provider != "openai" || !errors.As(err, &said) || said.Key != "cloud.local_only" {
		t.Errorf("%v", err)
	}
	if s := i18n.Japanese.Error(err); !strings.Contains(s, "何も送信していません") || f.sent != 0 || log.take() != "" {
		t.Errorf("%s, %d sent", s, f.sent)
	}
	local = false // asked each time; what was not sent is counted when it is
	if _, err := v.Send(t.Context(), nil); err != nil || f.sent != 1 || !strings.Contains(log.take(), `"masked":1`) {
		t.Errorf("%v, %d sent", err, f.sent)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	local = true
	if _, err := v.Send(ctx, nil); !errors.Is(err, context.Canceled) || f.sent != 1 {
		t.Errorf("%v, %d sent", err, f.sent)
	}
}

func TestGuardOfLocalIsTheClient(t *testing.T) {
	t.Parallel()
	f := &fake{name: "ollama"}
	if Guard(f, Rule{Allow: func() error { return errors.New("no") }, Redact: strings.ToUpper}) != llm.Client(f) {
		t.Error("a guard for what is local")
	}
	if _, ok := Guard(still{f}, Rule{Cloud: true}).Open(llm.Settings{}).(llm.Refillable); ok {
		t.Error("refillable, though the inner conversation is not")
	}
	// Without a Redact of the caller's, what is built in is masked; without a log, none is needed.
	v := Guard(f, Rule{Cloud: true}).Open(llm.Settings{})
	v.Append(llm.Message{Content: mail})
	if _, err := v.Send(t.Context(), nil); err != nil || f.held[0].Content != redact.Email {
		t.Errorf("%v %+v", err, f.held)
	}
}

// TestForbiddenMovesToTheNext: behind a forbidden cloud, a local model answers.
func TestForbiddenMovesToTheNext(t *testing.T) {
	t.Parallel()
	far, near := &fake{name: "openai"}, &fake{name: "ollama"}
	breaker := endpoint.NewBreaker(1, 1, nil)
	client, err := endpoint.New(endpoint.Config{Members: []endpoint.Member{
		{Client: Guard(far, Rule{Cloud: true, Allow: func() error { return Allowed("CHAT", false, nil) }}), Breaker: breaker},
		{Client: Guard(near, Rule{Redact: sanitize})},
	}})
	if err != nil {
		t.Fatal(err)
	}
	v := client.Open(llm.Settings{})
	v.Append(llm.Message{Content: mail})
	v.(llm.Refillable).OnMove(func() error { v.Append(llm.Message{Content: mail}); return nil })
	if _, err := v.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if far.sent != 0 || near.sent != 1 || near.held[0].Content != mail || !breaker.OpenUntil().IsZero() {
		t.Errorf("%d sent far, %d near: %+v", far.sent, near.sent, near.held)
	}
}

// TestGuardedProviderConforms: a provider stays one behind the guard.
func TestGuardedProviderConforms(t *testing.T) {
	t.Parallel()
	llmtest.Conformance(t, func(t *testing.T, o llmtest.Options, answers ...llmtest.Answer) llmtest.Rig {
		s := llmtest.NewServer(t, llmtest.Sequence(answers...))
		inner, err := openai.New(openai.Config{Provider: "openai", Model: "m", BaseURL: s.URL, MaxRetries: o.Retries, StallTimeout: o.Stall, ConnectTimeout: o.Connect,
			FirstTokenTimeout: o.FirstToken, CallTimeout: o.Call, MaxTokens: o.MaxTokens, HTTP: o.HTTP, Backoff: quick})
		if err != nil {
			t.Fatal(err)
		}
		return llmtest.Rig{Client: Guard(inner, Rule{Cloud: true, Redact: sanitize}), Requests: s.Requests, Quiet: s.Quiet,
			Lacks: map[llmtest.Feature]string{llmtest.Opaques: "chat completions have none"}}
	})
}

// TestCleanTextCostsNothing: what holds no secret is neither copied nor counted
// in memory of its own.
func TestCleanTextCostsNothing(t *testing.T) {
	v := &conversation{client: &client{Client: &fake{}, rule: Rule{Redact: sanitize}}}
	m := llm.Message{Content: strings.Repeat("func main() { x[0] = [2]int{1} }\n", 1000), Reasoning: "Hm.", ToolCalls: []llm.ToolCall{{ID: "1", Name: "f", Arguments: `{"a":[1]}`}}}
	if n := testing.AllocsPerRun(20, func() {
		if got := v.message(m); &got.ToolCalls[0] != &m.ToolCalls[0] {
			t.Error("copied")
		}
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestTallyCounts(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"": 0, "[": 0, "[EMAIL": 0, "[EMAIL]": 1, "[[EMAIL][EMAIL]]": 2, "[email]": 0, "[REDACTED][GITHUB_TOKEN][GITLAB_TOKEN][OPENAI_KEY][EMAIL]": 5, "\xff[EMAIL]\x00": 1} {
		var c tally
		c.count(s)
		n := 0
		for _, k := range c.kinds {
			n += k
		}
		if c.masked != want || n != want {
			t.Errorf("%q: %+v", s, c)
		}
	}
}

// FuzzSchema: a document stays JSON with the same names and no secret in its
// strings, or is refused; a clean one stays as it is.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{`{"a":"` + mail + `"}`, `["\"","\\",{"b":{}}]`, `"` + key + `"`, `{"password":"Tr0ub4dor&3xyz"}`, `{"a" : "\ud800"}`, `1e400`, ``, `{"\u0073":[]}`, "{\"\xff\":\"\xff\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		defer disktest.Bounded(t, len(doc))()
		v := &conversation{client: &client{Client: &fake{}, rule: Rule{Redact: sanitize}}}
		out, ok := v.schema(json.RawMessage(doc))
		if !json.Valid([]byte(doc)) {
			if !ok || string(out) != sanitize(doc) {
				t.Fatalf("%q", out)
			}
			return
		}
		if !ok {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("no JSON: %s", out)
		}
		again, ok := v.schema(out)
		if !ok || !bytes.Equal(again, out) {
			t.Fatalf("not idempotent: %s, %s", out, again)
		}
		before, after := json.NewDecoder(strings.NewReader(doc)), json.NewDecoder(bytes.NewReader(out))
		before.UseNumber()
		after.UseNumber()
		for {
			a, errA := before.Token()
			b, errB := after.Token()
			if (errA == nil) != (errB == nil) {
				t.Fatalf("%v, %v", errA, errB)
			}
			if errA != nil {
				return
			}
			s, isText := b.(string)
			if !isText && a != b || isText && sanitize(s) != s {
				t.Fatalf("%v became %v", a, b)
			}
		}
	})
}
