package models

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// Who answers where nobody is named.
func TestDetect(t *testing.T) {
	t.Parallel()
	const own = "security: {local_hosts: [127.0.0.1]}\n" // the address of an Ollama that is not there
	ollama := llmtest.NewOllama(t, nil, llmtest.OllamaModel{Name: "small:1b"}, llmtest.OllamaModel{Name: "qwen3:30b"})
	other := llmtest.NewOllama(t, nil, llmtest.OllamaModel{Name: "small:1b"})
	bare := llmtest.NewOllama(t, nil)
	empty := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{})) // no Ollama at all
	for _, c := range []struct {
		name, text string
		env        []string
		server     string
		use        Use
		want       string
		told       string
		asked      bool
	}{
		{name: "OpenAI's key", env: []string{"OPENAI_API_KEY=k"}, want: "openai/gpt-4o 128000"},
		{name: "Anthropic's key", env: []string{"ANTHROPIC_API_KEY=k"}, want: "anthropic/claude-sonnet-4.5 200000"},
		{name: "DeepSeek's key", env: []string{"DEEPSEEK_API_KEY=k"}, want: "deepseek/deepseek-flash 128000"},
		{name: "the first of several", env: []string{"DEEPSEEK_API_KEY=k", "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k"}, want: "openai/gpt-4o 128000"},
		{name: "a model of its own at the provider found", text: "routing: {llm: {task_model: m}}", env: []string{"OPENAI_API_KEY=k"}, want: "openai/m 128000"},
		{name: "an Ollama that has the model of the settings", server: ollama.URL, want: "ollama/qwen3:30b 32768 ctx 32768 32768..32768", told: "using the local Ollama at http://127.0.0.1:11434 with model qwen3:30b", asked: true},
		{name: "an Ollama that has another", server: other.URL, want: "ollama/small:1b 32768 ctx 32768 32768..32768", told: "with model small:1b", asked: true},
		{name: "the summarizer as the task", server: other.URL, use: Use{Role: Summarizer}, want: "ollama/small:1b 32768 ctx 32768 32768..32768", told: "small:1b", asked: true},
		{name: "a key where nothing may leave", text: "security: {local_only: true, local_hosts: [127.0.0.1]}", env: []string{"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "DEEPSEEK_API_KEY=k"}, server: ollama.URL, want: "ollama/qwen3:30b 32768 ctx 32768 32768..32768", told: "qwen3", asked: true},
		{name: "a key where this task may not", env: []string{"OPENAI_API_KEY=k"}, server: ollama.URL, use: Use{LocalOnly: true}, want: "ollama/qwen3:30b 32768 ctx 32768 32768..32768", told: "qwen3", asked: true},
		{name: "nobody", want: "no model is configured", asked: true},
		{name: "an Ollama without a model", server: bare.URL, want: "no model is configured: the Ollama at http://127.0.0.1:11434 has none", asked: true},
		{name: "something else at the address", server: empty.URL, want: "no model is configured", asked: true},
		{name: "a section that is set", text: "llm: {vllm: {model: m}}", env: []string{"OPENAI_API_KEY=k"}, want: "vllm/m 32768"},
		{name: "llm.provider", text: "llm: {provider: ollama}", env: []string{"OPENAI_API_KEY=k"}, want: "ollama/qwen3:30b 32768 ctx 32768 32768..32768"},
		{name: "a role with a provider", env: []string{"OPENAI_API_KEY=k"}, use: Use{Role: Chat}, want: "ollama/chat-v1:latest 8192 ctx 8192 0..8192"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hc, made := elsewhere(t, c.server)
			text := c.text
			if text == "" {
				text = own
			}
			h := openHouse(t, text, func(o *Options) { o.HTTP = hc }, c.env...)
			s, err := h.Spec(t.Context(), c.use)
			if got := described(&s, err); got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if told := strings.Join(h.notices, "\n"); (told == "") != (c.told == "") || !strings.Contains(told, c.told) {
				t.Errorf("told %q", told)
			}
			if (made.Load() > 0) != c.asked {
				t.Errorf("%d connections", made.Load())
			}
		})
	}
}

// Who leaves is not told that nobody answers.
func TestDetectIsLeft(t *testing.T) {
	t.Parallel()
	h := openHouse(t, "security: {local_hosts: [127.0.0.1]}\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Spec(ctx, Use{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What the settings of a role and of a provider say arrives on the wire.
func TestEachProvider(t *testing.T) {
	t.Parallel()
	const role = "routing: {llm: {coder_provider: %s, coder_model: m-1, coder_max_tokens: 77, coder_temperature: 0.25}}\n"
	for provider, c := range map[string]struct {
		section string
		path    string
		header  map[string]string
		want    map[string]any
	}{
		"openai":    {"openai: {base_url: %q, api_key: sk-test}", "/v1/chat/completions", map[string]string{"Authorization": "Bearer sk-test"}, map[string]any{"max_tokens": 77., "temperature": .25}},
		"deepseek":  {"deepseek: {base_url: %q, api_key: sk-test}", "/v1/chat/completions", map[string]string{"Authorization": "Bearer sk-test"}, map[string]any{"max_tokens": 77., "temperature": .25}},
		"lmstudio":  {"lmstudio: {base_url: %q}", "/v1/chat/completions", map[string]string{"Authorization": ""}, map[string]any{"max_tokens": 77., "temperature": .25}},
		"vllm":      {"vllm: {base_url: %q, api_key: sk-test}", "/v1/chat/completions", map[string]string{"Authorization": "Bearer sk-test"}, map[string]any{"max_tokens": 77., "temperature": .25}},
		"anthropic": {"anthropic: {base_url: %q, api_key: sk-test}", "/v1/messages", map[string]string{"X-Api-Key": "sk-test", "Authorization": ""}, map[string]any{"max_tokens": 77., "temperature": .25}},
		"ollama": {"ollama: {endpoint: %q, api_key: sk-test, context_length: 16384, think: low}", "/api/chat", map[string]string{"Authorization": "Bearer sk-test"},
			map[string]any{"options": map[string]any{"num_ctx": 16384., "num_predict": 77., "temperature": .25}, "keep_alive": -1., "think": "low"}},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			answers := llmtest.Sequence(llmtest.Answer{Text: "fine", Usage: &llm.Usage{PromptTokens: 10, CompletionTokens: 3, TotalTokens: 13}})
			var url string
			var requests func() []llmtest.Request
			if provider == "ollama" {
				o := llmtest.NewOllama(t, answers)
				url, requests = o.URL, o.Requests
			} else {
				s := llmtest.NewServer(t, answers)
				url, requests = s.URL, s.Requests
			}
			h := openHouse(t, fmt.Sprintf(role, provider)+"llm: {"+fmt.Sprintf(c.section, url)+"}\n", nil)
			client, spec, err := h.Client(t.Context(), Use{Role: "coder"})
			if err != nil || spec.Name() != provider+"/m-1" || spec.Cloud || client.Provider() != provider || client.Model() != "m-1" {
				t.Fatalf("%+v, %v", spec, err)
			}
			reply, err := say(t.Context(), client, "go")
			if err != nil || reply.Message.Content != "fine" || reply.By != "" || reply.Usage == nil || reply.Usage.PromptTokens != 10 || reply.Usage.Cost == nil || *reply.Usage.Cost != 0 {
				t.Fatalf("%+v, %v", reply, err)
			}
			all := requests()
			if len(all) != 1 || all[0].Path != c.path || all[0].Model != "m-1" {
				t.Fatalf("%+v", all)
			}
			for name, want := range c.header {
				if got := all[0].Header.Get(name); got != want {
					t.Errorf("%s: %q", name, got)
				}
			}
			got := fields(t, &all[0])
			maps.DeleteFunc(got, func(k string, _ any) bool { _, asked := c.want[k]; return !asked })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A role's limit of time ends a call that would go on.
func TestCallTimeout(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "never", Stall: llmtest.StallAtOnce}))
	h := openHouse(t, fmt.Sprintf("llm: {max_retries: 0, openai: {base_url: %q}}\nrouting: {llm: {coder2_timeout_seconds: 1}}", s.URL), nil)
	reply, err := say(t.Context(), h.client(t, Use{Role: "coder2"}), "go")
	if kind(err) != llm.KindTimeout || len(s.Requests()) != 1 {
		t.Errorf("%v, %v", reply, err)
	}
}

// Failed calls are repeated as the settings say, and that is logged.
func TestRetriesAreLogged(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Status: 503, ErrorText: "overloaded", RetryAfter: "0"}, llmtest.Answer{Text: "fine"}))
	h := openHouse(t, fmt.Sprintf("llm: {max_retries: 1, provider: openai, openai: {base_url: %q}}", s.URL), nil)
	if reply, err := say(t.Context(), h.client(t, Use{}), "go"); err != nil || reply.Message.Content != "fine" {
		t.Fatalf("%v, %v", reply, err)
	}
	if got := h.log.with("will be repeated"); len(got) != 1 || !strings.Contains(got[0], "overloaded") {
		t.Errorf("%q", got)
	}
}

// prices is a file of prices, as a setting.
func prices(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte("models:\n  "+strings.Join(lines, "\n  ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("prices_file: %q", file)
}

// Where the first of a role cannot answer, the second does, at its own price.
func TestFallback(t *testing.T) {
	t.Parallel()
	usage := &llm.Usage{PromptTokens: 1000, CompletionTokens: 100, TotalTokens: 1100}
	first := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Status: 401, ErrorText: "bad key"}))
	second := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "mine", Usage: usage}))
	text := fmt.Sprintf("llm: {max_retries: 0, openai: {base_url: %q}, anthropic: {base_url: %q}, %s}\nrouting: {llm: {coder2_model: a, coder2_fallbacks: [anthropic/b], coder2_max_tokens: 9}}",
		first.URL, second.URL, prices(t, `"openai/a": {input: 100, output: 100}`, `"anthropic/b": {input: 3, output: 15}`))
	h := openHouse(t, text, nil)
	c := h.client(t, Use{Role: "coder2"})
	reply, err := say(t.Context(), c, "go")
	if err != nil || reply.By != "anthropic/b" || reply.Message.Content != "mine" || reply.Usage.Cost == nil || *reply.Usage.Cost != 3000+1500 {
		t.Fatalf("%+v, %v", reply, err)
	}
	if r := second.Requests(); len(r) != 1 || r[0].Limit != 9 {
		t.Errorf("the second was asked %+v", r)
	}
	if got := h.log.with("openai a cannot answer"); len(got) != 1 || !strings.Contains(got[0], "anthropic b answers from now on") {
		t.Errorf("logged %q", got)
	}
	t.Run("the second as the seeds name it", func(t *testing.T) {
		o := llmtest.NewOllama(t, llmtest.Sequence(llmtest.Answer{Text: "mine", Usage: usage}))
		h := openHouse(t, fmt.Sprintf("llm: {max_retries: 0, openai: {base_url: %q}, ollama: {endpoint: %q}}\nrouting: {llm: {chat_model: ollama/q, coder2_fallbacks: [ollama/ollama/q]}}", first.URL, o.URL), nil)
		for _, role := range []string{"coder2", Chat} {
			reply, err := say(t.Context(), h.client(t, Use{Role: role}), "go")
			if err != nil || reply.Usage.Cost == nil || *reply.Usage.Cost != 0 {
				t.Errorf("%s: %+v, %v", role, reply, err)
			}
		}
	})
	t.Run("never for a model asked for by name", func(t *testing.T) {
		h := openHouse(t, strings.Replace(text, "llm: {", "llm: {fallbacks: [anthropic/b], ", 1), nil)
		before := len(second.Requests())
		for _, u := range []Use{{Model: "openai/a"}, {Role: "coder2", Model: "openai/a"}} {
			reply, err := say(t.Context(), h.client(t, u), "go")
			if kind(err) != llm.KindAuth || len(second.Requests()) != before {
				t.Errorf("%+v: %+v, %v", u, reply, err)
			}
		}
	})
}

// A server that fails again and again is left alone for a while.
func TestBreaker(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Status: 500, ErrorText: "broken"}, llmtest.Answer{Status: 500, ErrorText: "broken"}, llmtest.Answer{Status: 500, ErrorText: "broken"}, llmtest.Answer{Text: "fine"}))
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	h := openHouse(t, fmt.Sprintf("llm: {max_retries: 0, openai: {base_url: %q}}", s.URL), func(o *Options) { o.Now = func() time.Time { return now } })
	one, other := h.client(t, Use{Model: "openai/a"}), h.client(t, Use{Model: "openai/b"}) // of one server
	for i := range 3 {
		if _, err := say(t.Context(), one, "go"); kind(err) != llm.KindServer {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	for _, c := range []llm.Client{one, other} {
		if _, err := say(t.Context(), c, "go"); kind(err) != llm.KindSuspended || len(s.Requests()) != 3 {
			t.Errorf("%v after %d calls", err, len(s.Requests()))
		}
	}
	if got := h.log.with("it is left alone until"); len(got) != 1 {
		t.Errorf("logged %q", got)
	}
	now = now.Add(breakerPause)
	if reply, err := say(t.Context(), other, "go"); err != nil || reply.Message.Content != "fine" {
		t.Errorf("%v, %v", reply, err)
	}
	if got := h.log.with("works again"); len(got) != 1 {
		t.Errorf("logged %q", got)
	}
}
