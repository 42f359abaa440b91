package models

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// shown is a row in a line.
func shown(r *Row) string {
	s := fmt.Sprintf("%s %s/%s reachable %s present %s context %d tools %s images %s", r.Role, r.Provider, r.Model, r.Reachable, r.Present, r.Context, r.Tools, r.Images)
	if r.Fallback > 0 {
		s += fmt.Sprint(" fallback ", r.Fallback)
	}
	if r.Alias != "" {
		s += " alias " + r.Alias
	}
	if r.Cloud {
		s += " cloud"
	}
	if r.Price != nil {
		s += fmt.Sprintf(" $%g/$%g", r.Price.Input, r.Price.Output)
	}
	if r.Forbidden != nil {
		s += " forbidden " + key(r.Forbidden)
	}
	if e, ok := errors.AsType[*llm.Error](r.Problem); ok {
		s += " problem " + string(e.Kind) + " of " + e.Provider
	} else if r.Problem != nil {
		s += " problem " + key(r.Problem)
	}
	return s
}

// Every role, with what its server says right now.
func TestList(t *testing.T) {
	t.Parallel()
	o := llmtest.NewOllama(t, nil, llmtest.OllamaModel{Name: "chat-v1:latest", ContextLength: 4096, Capabilities: []string{"completion", "vision"}}, llmtest.OllamaModel{Name: "t", Capabilities: []string{"tools"}})
	s := llmtest.NewServer(t, nil) // has model-a and model-b
	broken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(broken.Close)
	text := fmt.Sprintf(`
llm:
  provider: openai
  fallbacks: [openai/model-b, lmstudio/l]
  openai: {base_url: "http://user:pass@%s", api_key: sk-test, model: model-a}
  ollama: {endpoint: %q}
  lmstudio: {base_url: "http://127.0.0.1:1/v1"}
  vllm: {base_url: %q, context_length: 9000}
  anthropic: {api_key: k, base_url: http://api.example.com}
  %s
routing:
  llm:
    chat_alias: Hanako
    coder_provider: ollama
    coder_model: t
    coder2_provider: vllm
    coder2_model: model-x
security: {local_only: true}
`, strings.TrimPrefix(s.URL, "http://"), o.URL, s.URL, prices(t, `"openai/model-b": {input: 1, output: 2}`))
	hc, made := elsewhere(t, "")
	h := openHouse(t, text, func(o *Options) { o.HTTP = hc })
	rows := h.List(t.Context())
	want := []string{
		"chat ollama/ollama/chat-v1:latest reachable yes present yes context 4096 tools no images yes alias Hanako $0/$0",
		"worker ollama/ollama/worker-v1:latest reachable yes present no context 8192 tools unknown images unknown alias Shiro $0/$0 problem not_found of ollama",
		"coder ollama/t reachable yes present yes context 32768 tools yes images no alias Aka $0/$0",
		"coder2 vllm/model-x reachable yes present no context 9000 tools unknown images unknown alias Ao $0/$0",
		"coder3 anthropic/claude-sonnet-4.5 reachable unknown present unknown context 200000 tools yes images yes alias Claude cloud $3/$15 forbidden cloud.local_only",
		"task openai/model-a reachable yes present yes context 128000 tools unknown images unknown $0/$0",
		"task openai/model-b reachable yes present yes context 128000 tools unknown images unknown fallback 1 $1/$2",
		"task lmstudio/l reachable no present unknown context 8192 tools unknown images unknown fallback 2 $0/$0 problem unreachable of lmstudio",
		"summarizer openai/model-a reachable yes present yes context 128000 tools unknown images unknown $0/$0",
		"summarizer openai/model-b reachable yes present yes context 128000 tools unknown images unknown fallback 1 $1/$2",
		"summarizer lmstudio/l reachable no present unknown context 8192 tools unknown images unknown fallback 2 $0/$0 problem unreachable of lmstudio",
	}
	for i, r := range rows {
		if got := shown(&r); i >= len(want) || got != want[i] {
			t.Errorf("row %d is\n%s", i, got)
		}
		if strings.Contains(r.Endpoint, "pass") {
			t.Errorf("%s shows a password", r.Endpoint)
		}
	}
	if len(rows) != len(want) || made.Load() != 0 {
		t.Errorf("%d rows, %d connections to clouds", len(rows), made.Load())
	}
	if len(h.notices)+len(h.log.all) != 0 {
		t.Errorf("who only looks is told %q %q", h.notices, h.log.all)
	}
}

// Roles of one model at one Ollama ask for it once.
func TestAnOllamaIsAskedOnceForEachModel(t *testing.T) {
	t.Parallel()
	o := llmtest.NewOllama(t, nil, llmtest.OllamaModel{Name: "m"})
	at, err := url.Parse(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(at)
	var asked atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/show" {
			asked.Add(1)
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	h := openHouse(t, fmt.Sprintf("llm: {provider: ollama, ollama: {endpoint: %q, model: m}}\nrouting: {llm: {chat_model: m, worker_model: m}}", front.URL), nil)
	all := 0
	for _, r := range h.List(t.Context()) {
		if r.Provider == "ollama" && r.Model == "m" && r.Present == Yes {
			all++
		}
	}
	if n := asked.Load(); all < 3 || n != 1 {
		t.Errorf("asked %d times for %d roles", n, all)
	}
}

// A role that is not configured, and a script, are rows as well.
func TestListWithoutServers(t *testing.T) {
	t.Parallel()
	h := openHouse(t, "llm: {provider: script, script: {file: s.yaml}, ollama: {endpoint: 'http://127.0.0.1:1'}}", nil)
	var all []string
	for _, r := range h.List(t.Context()) {
		all = append(all, shown(&r))
	}
	got := strings.Join(all, "\n")
	for _, want := range []string{"coder deepseek/deepseek-flash reachable unknown present unknown context 128000 tools unknown images unknown alias Aka cloud problem models.not_configured",
		"task script/s.yaml reachable yes present yes context 128000 tools yes images unknown"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Ready where every model in use can be called, and those of Ollama are loaded
// as they must be.
func TestHealth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string // %s is the address of an Ollama with m (of 32768 tokens), loaded
		change     func(*llmtest.Ollama)
		ready      bool
		why        string // a problem of the server
	}{
		{name: "all is well", ready: true},
		{name: "another model is loaded as well", change: func(o *llmtest.Ollama) { o.Load("x", 1<<17) }, ready: true},
		{name: "not loaded", change: func(o *llmtest.Ollama) { o.Unload("m") }, why: "The model m is not in the memory"},
		{name: "too long a context", change: func(o *llmtest.Ollama) { o.Load("m", 40000) }, why: "is loaded with a context length of 40000, outside of 32768 to 32768"},
		{name: "down", change: func(o *llmtest.Ollama) { o.Down(nil) }, why: "does not answer"},
		{name: "a role in use cannot be called", text: "routing: {llm: {coder_provider: lmstudio, coder_model: l}}\nllm: {provider: ollama, ollama: {endpoint: %q, model: m}, lmstudio: {base_url: 'http://127.0.0.1:1/v1'}}"},
		{name: "a role in use is not configured", text: "routing: {llm: {coder_provider: openai}}\nllm: {provider: ollama, ollama: {endpoint: %q, model: m}}"},
		{name: "a fallback that cannot be called", text: "llm: {provider: ollama, fallbacks: [lmstudio/l], ollama: {endpoint: %q, model: m}, lmstudio: {base_url: 'http://127.0.0.1:1/v1'}}", ready: true},
		{name: "no such model", text: "llm: {provider: ollama, ollama: {endpoint: %q, model: none}}", why: "The model none is not in the memory"},
		{name: "one model with two context lengths", text: "llm: {provider: ollama, ollama: {endpoint: %q, model: m}}\nrouting: {llm: {chat_provider: ollama, chat_model: m}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := llmtest.NewOllama(t, nil, llmtest.OllamaModel{Name: "m", Capabilities: []string{"tools"}})
			o.Load("m", 32768)
			text := c.text
			if text == "" {
				text = "llm: {provider: ollama, ollama: {endpoint: %q, model: m}}"
			}
			if c.change != nil {
				c.change(o)
			}
			got := openHouse(t, fmt.Sprintf(text, o.URL), nil).Health(t.Context())
			if got.Ready != c.ready {
				t.Errorf("ready: %v; %+v", got.Ready, got)
			}
			var why []string
			for _, s := range got.Ollama {
				for _, p := range s.Problems() {
					why = append(why, p.Error())
				}
			}
			if said := strings.Join(why, "\n"); (said == "") != (c.why == "") || !strings.Contains(said, c.why) {
				t.Errorf("problems %q", why)
			}
			if len(o.Loads()) != 0 {
				t.Error("who only looks has loaded a model")
			}
			if named := c.name == "one model with two context lengths"; named != (got.Err != nil) {
				t.Errorf("error %v", got.Err)
			}
		})
	}
}

// One call, and what it showed.
func TestTry(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "1 2 3", Model: "m-2026", Piece: 1, Usage: &llm.Usage{PromptTokens: 20, CompletionTokens: 40, TotalTokens: 60}}))
	down := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Status: 401, ErrorText: "bad key"}))
	text := fmt.Sprintf("llm: {max_retries: 0, provider: openai, openai: {base_url: %q, model: m}, lmstudio: {base_url: %q}, %s}\nrouting: {llm: {chat_provider: lmstudio, chat_model: l, chat_fallbacks: [openai/m]}}",
		s.URL, down.URL, prices(t, `"openai/m": {input: 1, output: 2}`))
	var now time.Time
	h := openHouse(t, text, func(o *Options) {
		o.Now = func() time.Time { now = now.Add(time.Second); return now }
	})
	got, err := h.Try(t.Context(), Use{Who: "a test"})
	if err != nil || got.Role != Task || got.Model != "openai/m" || got.AnsweredBy != "openai/m" || got.Named != "m-2026" || got.Text != "1 2 3" || *got.Usage.Cost != 100 {
		t.Errorf("%+v, %v", got, err)
	}
	if got.First <= 0 || got.Total <= got.First || got.PerSecond != 40/(got.Total-got.First).Seconds() {
		t.Errorf("first after %s, all after %s, %g tokens a second", got.First, got.Total, got.PerSecond)
	}
	if r := s.Requests()[0]; r.Limit != tryTokens || *r.Messages[0].Content != tryPrompt {
		t.Errorf("%+v", r)
	}
	if got, err := h.Try(t.Context(), Use{Role: Chat}); err != nil || got.Model != "lmstudio/l" || got.AnsweredBy != "openai/m" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := h.Try(t.Context(), Use{Role: Coder3}); err == nil || key(err) != "models.not_configured" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := h.Try(t.Context(), Use{Role: Coder3, Model: "lmstudio/l"}); kind(err) != llm.KindAuth || got.Model != "lmstudio/l" {
		t.Errorf("%+v, %v", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Try(ended, Use{}); err == nil {
		t.Error("no error")
	}
	// A role is tried on the route that it is asked on.
	hc, made := elsewhere(t, s.URL)
	away := openHouse(t, away+"routing: {llm: {chat_provider: openai}}", func(o *Options) { o.HTTP = hc })
	if _, err := away.Try(t.Context(), Use{Role: Chat}); err == nil || key(err) != "cloud.route" || made.Load() != 0 {
		t.Error(err)
	}
}
