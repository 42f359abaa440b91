package ollama

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

const secret = "sk-very-secret-0123456789"

// roundTrip is a transport without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering is a client whose server gives these bodies with status 200, the
// last one for ever.
func answering(t testing.TB, cfg Config, bodies ...string) *client {
	n := 0
	cfg.BaseURL = "http://x"
	cfg.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		n++
		return answerWith(200, bodies[min(n, len(bodies))-1]), nil
	})}
	return testClient(t, cfg)
}

const (
	said = `{"model":"m","message":{"role":"assistant","content":"a"},"done":false}` + "\n"
	done = `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n"
)

func ask(c llm.Client, messages ...llm.Message) (*llm.Reply, error) {
	v := c.Open(llm.Settings{})
	for _, m := range messages {
		v.Append(m)
	}
	return v.Send(context.Background(), nil)
}

func user(s string) llm.Message { return llm.Message{Role: llm.RoleUser, Content: s} }

func TestGoldenRequest(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/request.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	warmth := 0.2
	c := testClient(t, Config{Model: "ollama/worker-v1:latest", BaseURL: "http://x/v1", MaxTokens: 99, APIKey: secret, Temperature: &warmth, Think: "false", KeepAlive: "30m", NumCtx: 4096,
		HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got, _ = io.ReadAll(r.Body)
			if r.Header.Get("Authorization") != "Bearer "+secret || r.URL.String() != "http://x/api/chat" || r.ContentLength != int64(len(got)) {
				t.Errorf("%s, length %d, headers %v", r.URL, r.ContentLength, r.Header)
			}
			return answerWith(200, said+done), nil
		})}})
	v := c.Open(llm.Settings{Tools: []llm.Tool{{Name: "f", Description: `Does "it" <fast>.`, Schema: json.RawMessage(`{ "type": "object" }`)}, {Name: "g.h"}}})
	v.Append(llm.Message{Role: llm.RoleSystem, Content: "S"})
	v.Append(llm.Message{Role: llm.RoleUser, Content: "行け\n", Images: []llm.Image{{MediaType: "image/png", Data: []byte("\x89PNG")}, {MediaType: "image/gif", Data: []byte("GIF89a")}, {MediaType: "image/webp", Data: []byte("RIFF")}}})
	v.Append(llm.Message{Role: llm.RoleAssistant, Reasoning: "R", ToolCalls: []llm.ToolCall{
		{ID: "call_1", Name: "f", Arguments: `{ "b": 1, "a": {"z":1.50} }`}, {ID: "call_2", Name: "g.h", Arguments: `{"a":`}, {ID: "call_3", Name: "not.offered!"}}})
	v.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_1", Content: "5"})
	v.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_2", ToolName: "named"})
	v.Append(llm.Message{Role: llm.RoleAssistant, Reasoning: "left out", Content: "T"})
	if _, err := v.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if _, err := llmtest.ParseOllama(got); err != nil {
		t.Error(err)
	}
}

func TestWhatIsAlwaysSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Model: "m"}, `{"model":"m","keep_alive":-1,"truncate":false,"shift":false,"stream":true,"messages":[],"options":{"num_ctx":8192}}`},
		{Config{Model: "ollama/m:7b", KeepAlive: "0", NumCtx: 32768, Think: "true"}, `{"model":"m:7b","keep_alive":0,"truncate":false,"shift":false,"stream":true,"think":true,"messages":[],"options":{"num_ctx":32768}}`},
		{Config{Model: "m", KeepAlive: " -1 ", Think: "high"}, `{"model":"m","keep_alive":-1,"truncate":false,"shift":false,"stream":true,"think":"high","messages":[],"options":{"num_ctx":8192}}`},
		{Config{Model: "m", Think: "max"}, `{"model":"m","keep_alive":-1,"truncate":false,"shift":false,"stream":true,"think":"max","messages":[],"options":{"num_ctx":8192}}`},
		{Config{Model: "m", KeepAlive: "1h30m"}, `{"model":"m","keep_alive":"1h30m","truncate":false,"shift":false,"stream":true,"messages":[],"options":{"num_ctx":8192}}`},
	} {
		v := testClient(t, c.cfg).Open(llm.Settings{}).(*conversation)
		if got := string(v.client.appendOptions(append(v.B, ']'), 0)) + "}"; got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{
		"llm.model": {Model: " ollama/"}, "llm.api_key": {Model: "m", APIKey: "two words"}, "ollama.num_ctx": {Model: "m", NumCtx: -1},
		"ollama.keep_alive": {Model: "m", KeepAlive: "forever"}, "ollama.think": {Model: "m", Think: "hard"}, "ollama.base_url": {Model: "m", BaseURL: "localhost:11434"},
	} {
		if _, err := New(cfg); key(err) != want {
			t.Errorf("%s: got %v", want, err)
		}
	}
	for want, cfg := range map[string]CareConfig{
		"ollama.base_url": {BaseURL: "x"}, "ollama.state_dir": {Restart: []string{"a"}}, "llm.model": {Models: []Requirement{{}}},
		"ollama.limits":     {Models: []Requirement{{Model: "m", NumCtx: 9000, MaxContext: 8192}}},
		"ollama.same_model": {Models: []Requirement{{Model: "ollama/m"}, {Model: "m:latest", NumCtx: 4096}}},
	} {
		if _, err := NewSupervisor(cfg); key(err) != want {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"": "http://localhost:11434/api/chat", "http://h:1/v1/": "http://h:1/api/chat", "http://h:1/api/chat": "http://h:1/api/chat",
		"https://gate.example/ollama/v1/chat/completions?k=1": "https://gate.example/ollama/api/chat?k=1", " http://h/api/ ": "http://h/api/chat",
	} {
		req, err := testClient(t, Config{BaseURL: base}).wire.Get(t.Context())
		if err != nil || req.URL.String() != want {
			t.Errorf("%q: %v, %v", base, req, err)
		}
	}
	same := map[string]bool{}
	for _, base := range []string{"http://localhost:11434", "http://127.0.0.1:11434/", "http://[::1]:11434", "http://LOCALHOST:11434"} {
		same[stateName(base)] = true
	}
	if len(same) != 1 || same[stateName("http://localhost:11435")] || same[stateName("http://h:11434")] {
		t.Errorf("names of state: %v", same)
	}
}

func TestSameModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"ollama/chat-v1:latest", "chat-v1", true}, {"chat-v1", "Chat-V1:Latest", true}, {"qwen3:30b", "qwen3", false}, {"me/m", "me/m:latest", true},
		{"library/m", "m:latest", true}, {"registry.ollama.ai/library/m:1", "m:1", true}, {"host:5000/me/m", "host:5000/me/m:latest", true},
		{"m:7b:local", "m:7b", true}, {"m:LOCAL", "m", true}, {"m:7b-local", "m:7b", false}, {"local", "m", false},
		{"me/m", "m", false}, {"chat-v1", "chat-v10", false}, {"hf.co/a/b:Q4", "hf.co/a/b", false},
	} {
		if SameModel(c.a, c.b) != c.same || SameModel(c.b, c.a) != c.same {
			t.Errorf("%s, %s: want %v", c.a, c.b, c.same)
		}
	}
}

func TestNoKeyIsShown(t *testing.T) {
	t.Parallel()
	cfg := Config{Model: "m", APIKey: secret, BaseURL: "http://user:" + secret + "@x/?k=" + secret}
	cfg.HTTP = &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return answerWith(401, `{"error":"the key `+secret+` is wrong","signin_url":"https://ollama.com/connect"}`), nil
	})}
	c := testClient(t, cfg)
	_, err := ask(c, user("x"))
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindAuth || !strings.Contains(e.Message, "https://ollama.com/connect") {
		t.Errorf("got %v", err)
	}
	if all := fmt.Sprintf("%v %+v %#v %v %+v %#v %v %+v", cfg, cfg, cfg, c, c, c, err, e); strings.Contains(all, secret) {
		t.Error(all)
	}
}

func TestErrorsAsOllamaWritesThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		kind   llm.ErrorKind
		says   string
	}{
		{404, `{"error":"model \"chat-v1\" not found, try pulling it first"}`, llm.KindNotFound, "try pulling"},
		{400, `{"error":"\"m\" does not support tools"}`, llm.KindNoTools, "does not support tools"},
		{400, `{"error":"the prompt is longer than the context length currently available to the model"}`, llm.KindContext, "prompt"},
		{400, `{"error":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it"}`, llm.KindContext, "9000"},
		{500, `{"error":"llama runner process has terminated: exit status 2"}`, llm.KindServer, "terminated"},
		{503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, llm.KindServer, "server busy, please"},
		{499, `{"error":"request canceled"}`, llm.KindServer, "canceled"},
		{429, `{"error":"you (me) have reached your session usage limit, upgrade for higher limits"}`, llm.KindQuota, "usage limit"},
		{502, "<html>\n<h1>Bad Gateway</h1>", llm.KindServer, "Bad Gateway"},
		{400, `{"error":{"message":"inner words","type":"x"}}`, llm.KindBadRequest, "inner words"},
		{400, `{"error":{"odd":1}}`, llm.KindBadRequest, `{"odd":1}`},
		{400, `{"message":"only this"}`, llm.KindBadRequest, "only this"},
		{400, "", llm.KindBadRequest, "Bad Request"},
		{307, "", llm.KindNotFound, ""},
	} {
		cfg := Config{BaseURL: "http://x", HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return answerWith(c.status, c.body, "Location", "https://me:pw@elsewhere/ollama?k=v"), nil
		})}}
		_, err := ask(testClient(t, cfg), user("x"))
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != c.kind || e.Status != c.status || !strings.Contains(e.Message, c.says) {
			t.Errorf("%d %s: got %v", c.status, c.body, err)
		}
		if c.status < 400 && (!strings.Contains(e.Message, "https://elsewhere/ollama;") || strings.Contains(e.Message, "pw")) {
			t.Errorf("redirect: %v", e)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	call := func(args string) string {
		return `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":` + args + `}}]},"done":false}` + "\n"
	}
	for _, c := range []struct {
		name, body string
		kind       llm.ErrorKind // empty: none
		want       llm.Reply
	}{
		{"an error in the middle", said + `{"error":"model runner has unexpectedly stopped"}` + "\n", llm.KindServer, llm.Reply{}},
		{"an overflow in the middle", said + `{"error":"the input length exceeds the context length"}` + "\n", llm.KindContext, llm.Reply{}},
		{"an end without done", said + said, llm.KindCutStream, llm.Reply{}},
		{"an end within a line", said + said[:30], llm.KindCutStream, llm.Reply{}},
		{"nothing", "", llm.KindCutStream, llm.Reply{}},
		{"a line that is none", said + "{]\n", llm.KindInvalid, llm.Reply{}},
		{"only loaded", `{"model":"m","message":{"role":"assistant","content":""},"done_reason":"load","done":true}`, llm.KindInvalid, llm.Reply{}},
		{"unloaded", `{"model":"m","message":{"role":"assistant","content":""},"done_reason":"unload","done":true}`, llm.KindInvalid, llm.Reply{}},
		{"another format", `{"model":"m","message":[1]}` + "\n", llm.KindInvalid, llm.Reply{}},
		{"blank lines, CRLF and a mark", "\xEF\xBB\xBF\r\n\n" + strings.ReplaceAll(said+done, "\n", "\r\n\r\n"), "", llm.Reply{Message: llm.Message{Content: "a"}, FinishReason: "stop"}},
		{"more after done", said + done + "garbage", "", llm.Reply{Message: llm.Message{Content: "a"}, FinishReason: "stop"}},
		{"no reason", said + `{"model":"m","done":true}`, "", llm.Reply{Message: llm.Message{Content: "a"}, FinishReason: "stop"}},
		{"cut at the limit", said + `{"model":"m","done":true,"done_reason":"length"}`, "", llm.Reply{Message: llm.Message{Content: "a"}, FinishReason: "length"}},
		{"nulls", `{"model":"m","message":{"role":"assistant","content":null,"tool_calls":null,"images":null},"done":false,"error":null}` + "\n" + done, "", llm.Reply{FinishReason: "stop"}},
		{"order and spacing of arguments", call(`{ "b" : 1.50, "a":{"z":"日本\u0041"} }`) + done, "", llm.Reply{FinishReason: "tool_calls",
			Message: llm.Message{ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "f", Arguments: `{ "b" : 1.50, "a":{"z":"日本\u0041"} }`}}}}},
		{"arguments as text, null and bytes", call(`"{\"a\":1}"`) + call("null") + call("{\"a\":\"\xff\xfe\"}") + done, "", llm.Reply{FinishReason: "tool_calls",
			Message: llm.Message{ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "f", Arguments: `{"a":1}`}, {ID: "call_2", Name: "f"}, {ID: "call_3", Name: "f", Arguments: "{\"a\":\"\uFFFD\uFFFD\"}"}}}}},
		{"usage", said + `{"model":"m","done":true,"prompt_eval_count":26,"prompt_eval_cached_count":20,"eval_count":8}`, "", llm.Reply{Message: llm.Message{Content: "a"}, FinishReason: "stop",
			Usage: &llm.Usage{PromptTokens: 26, CompletionTokens: 8, TotalTokens: 34, CachedTokens: 20}}},
		{"usage without the prompt, which a cache had", said + `{"model":"m","done":true,"eval_count":8}`, "", llm.Reply{Message: llm.Message{Content: "a"}, FinishReason: "stop"}},
		{"usage of nothing", said + `{"model":"m","done":true,"prompt_eval_count":0,"eval_count":8}`, "", llm.Reply{Message: llm.Message{Content: "a"}, FinishReason: "stop"}},
	} {
		reply, err := ask(answering(t, Config{}, c.body), user("x"))
		var e *llm.Error
		if c.kind != "" {
			if !errors.As(err, &e) || e.Kind != c.kind {
				t.Errorf("%s: got %+v, %v", c.name, reply, err)
			}
			continue
		}
		c.want.Model, c.want.Message.Role = "m", llm.RoleAssistant
		if diff := cmp.Diff(&c.want, reply); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

func TestSizesAreBounded(t *testing.T) {
	t.Parallel()
	long := `{"model":"m","message":{"role":"assistant","content":"` + strings.Repeat("x", 60_000) + `"},"done":false}` + "\n"
	for name, c := range map[string]struct {
		line, answer int
		body         string
		ok           bool
	}{
		"a long line":       {100_000, 1 << 20, long + done, true},
		"a longer line":     {40_000, 1 << 20, long + done, false},
		"an endless line":   {40_000, 1 << 20, long[:len(long)-40], false},
		"a long answer":     {100_000, 200_000, strings.Repeat(long, 3) + done, true},
		"an endless answer": {100_000, 100_000, strings.Repeat(long, 3) + done, false},
	} {
		client := answering(t, Config{}, c.body)
		client.maxLine, client.maxAnswer = c.line, c.answer
		_, err := ask(client, user("x"))
		var e *llm.Error
		if (err == nil) != c.ok || !c.ok && (!errors.As(err, &e) || e.Kind != llm.KindInvalid || !strings.Contains(e.Message, "longer than")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNothingToSend(t *testing.T) {
	t.Parallel()
	_, err := ask(answering(t, Config{}, done))
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindBadRequest {
		t.Errorf("no message: %v", err)
	}
	v := answering(t, Config{}, done).Open(llm.Settings{Tools: []llm.Tool{{Name: "f", Schema: json.RawMessage("{")}}})
	v.Append(user("x"))
	if _, err = v.Send(t.Context(), nil); !errors.As(err, &e) || e.Kind != llm.KindBadRequest || e.Endpoint == "" {
		t.Errorf("a schema that is none: %v", err)
	}
}

// TestImages: what Ollama cannot read is not sent, and the model told of it.
func TestImages(t *testing.T) {
	t.Parallel()
	picture := bytes.Repeat([]byte{0xFF, 0xD8, 0}, 1000)
	v := testClient(t, Config{}).Open(llm.Settings{})
	m := user("look")
	m.Images = []llm.Image{{MediaType: "image/jpeg", Data: picture}, {MediaType: "image/gif", Data: picture}, {MediaType: "image/png"},
		{MediaType: "image/png", Data: make([]byte, maxImage+1)}, {MediaType: "IMAGE/PNG", Data: picture}}
	v.Append(m)
	m.Images = m.Images[1:2]
	v.Append(m)
	sent := base64.StdEncoding.EncodeToString(picture)
	want := `{"role":"user","content":"look\n[image 2 of this message was left out: unsupported_type]\n[image 3 of this message was left out: empty]` +
		`\n[image 4 of this message was left out: file_too_large]","images":["` + sent + `","` + sent + `"]},` +
		`{"role":"user","content":"look\n[image 1 of this message was left out: unsupported_type]"}`
	if diff := cmp.Diff(want, string(v.Serialized())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPrefixLaw: messages of any content only ever add to the end, and stay
// one JSON array that Ollama takes.
func TestPrefixLaw(t *testing.T) {
	t.Parallel()
	c := testClient(t, Config{})
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`\{"a":.{0,9}`), rapid.Just("\xff"), rapid.Just(` {"a":1} `), rapid.Just("{\"a\":\"\xff\"}"))
	rapid.Check(t, func(t *rapid.T) {
		v := c.Open(llm.Settings{})
		var before []byte
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			m := llm.Message{Role: rapid.SampledFrom([]string{"system", "user", "assistant", "tool"}).Draw(t, "role"), Content: text.Draw(t, "content")}
			switch m.Role {
			case llm.RoleAssistant:
				m.Reasoning = text.Draw(t, "reasoning")
				m.ToolCalls = []llm.ToolCall{{ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "args")}}
			case llm.RoleUser:
				m.Images = []llm.Image{{MediaType: rapid.SampledFrom([]string{"image/png", text.Draw(t, "type")}).Draw(t, "kind"), Data: []byte(text.Draw(t, "data"))}}
			case llm.RoleTool:
				m.ToolCallID = text.Draw(t, "answers")
			}
			v.Append(m)
			now := v.Serialized()
			if !bytes.HasPrefix(now, before) {
				t.Fatalf("%q does not begin with %q", now, before)
			}
			before = bytes.Clone(now)
			if _, err := llmtest.ParseOllama([]byte(string(v.(*conversation).B) + `],"options":{"num_ctx":8192}}`)); err != nil {
				t.Fatalf("%v: %s", err, now)
			}
		}
	})
}

func TestListModels(t *testing.T) {
	t.Parallel()
	serve := func(status int, body string) Config {
		return Config{BaseURL: "http://x", Model: "ollama/m", HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			var sent string
			if r.Body != nil {
				raw, _ := io.ReadAll(r.Body)
				sent = string(raw)
			}
			if r.URL.Path == "/api/tags" && r.Method == http.MethodGet && sent == "" || r.URL.Path == "/api/show" && r.Method == http.MethodPost && sent == `{"model":"m"}` {
				return answerWith(status, body), nil
			}
			return answerWith(400, fmt.Sprintf("%s %s %s", r.Method, r.URL, sent)), nil
		})}}
	}
	got, err := ListModels(t.Context(), serve(200, `{"models":[{"name":"chat-v1:latest","model":"chat-v1:latest","size":5,"modified_at":"2026-11-01T00:00:00+09:00"},{"name":"a:7b"}]}`))
	if err != nil || len(got) != 2 || got[0].Name != "chat-v1:latest" || got[1].Name != "a:7b" {
		t.Errorf("%+v, %v", got, err)
	}
	var e *llm.Error
	for body, kind := range map[string]llm.ErrorKind{`{"object":"list"}`: llm.KindInvalid, `<html>`: llm.KindInvalid} {
		if _, err := ListModels(t.Context(), serve(200, body)); !errors.As(err, &e) || e.Kind != kind || e.Attempts > 1 {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, c := range []struct {
		body string
		want Model
	}{
		{`{"capabilities":["completion","tools","thinking"],"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960,"qwen3.vision.context_length":77}}`,
			Model{ContextLength: 40960, Chat: true, Tools: true, Thinking: true}},
		{`{"capabilities":["completion","vision"],"model_info":{"mllama.vision.context_length":77,"mllama.context_length":1.31072e+05}}`,
			Model{ContextLength: 131072, Chat: true, Vision: true}},
		{`{"template":"{{ if .Tools }}x{{ end }}","projector_info":{"a":1},"model_info":{"x.original_context_length":4096}}`, Model{Chat: true, Tools: true, Vision: true}},
		{`{}`, Model{Chat: true}},
	} {
		if got, err := Show(t.Context(), serve(200, c.body)); err != nil || !cmp.Equal(*got, c.want) {
			t.Errorf("%s: %+v, %v", c.body, got, err)
		}
	}
	if _, err := Show(t.Context(), serve(404, `{"error":"model 'm' not found"}`)); !errors.As(err, &e) || e.Kind != llm.KindNotFound {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ListModels(ended, serve(200, "{}")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestWatch: a failed call is repeated once after a repair, a good one waits for
// nothing, and the look after it is taken all the same.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		care := w.care(t, dir, nil)
		calls := 0
		inner := testClient(t, Config{Model: chatModel, BaseURL: "http://ollama.test:11434", HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			calls++
			w.mu.Lock()
			defer w.mu.Unlock()
			if !w.up {
				return nil, errors.New("connection refused")
			}
			return answerWith(200, said+done), nil
		})}})
		c := care.Wrap(inner)
		if c.Provider() != "ollama" || c.Model() != chatModel {
			t.Errorf("%s %s", c.Provider(), c.Model())
		}
		if _, err := ask(c, user("x")); err != nil || calls != 1 {
			t.Fatal(err, calls)
		}
		synctest.Wait()
		w.set(func() {
			if w.asked != 2 {
				t.Errorf("%d questions after a good call", w.asked)
			}
		})
		w.crash()
		if reply, err := ask(c, user("x")); err != nil || reply.Message.Content != "a" || calls != 3 || len(w.restarts) != 1 {
			t.Errorf("%v, %v, %d calls, %d restarts", reply, err, calls, len(w.restarts))
		}
		w.set(func() { delete(w.loaded, workerModel); w.loading = time.Minute })
		began := time.Now()
		if _, err := ask(c, user("x")); err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		time.Sleep(time.Hour)
		w.set(func() {
			if len(w.loaded) != 2 || len(w.restarts) != 1 {
				t.Errorf("loaded %v, %d restarts", w.loaded, len(w.restarts))
			}
		})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		v := c.Open(llm.Settings{})
		v.Append(user("x"))
		if _, err := v.Send(ended, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestRetriesAreTold: OnRetry hears of what is repeated.
func TestRetriesAreTold(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewOllama(t, llmtest.Sequence(llmtest.Answer{Status: 503, ErrorText: "server busy"}, llmtest.Answer{Text: "ok"}))
	var told []string
	c := testClient(t, Config{BaseURL: srv.URL, MaxRetries: 2, OnRetry: func(e *llm.Error, _ time.Duration) { told = append(told, e.Message) }})
	if reply, err := ask(c, user("x")); err != nil || reply.Message.Content != "ok" || len(told) != 1 || told[0] != "server busy" {
		t.Errorf("%v, %v, %q", reply, err, told)
	}
}
