package models

import (
	"context"
	"fmt"
	"testing"
	"time"
)

const keys = "llm: {openai: {api_key: k}, anthropic: {api_key: k}, deepseek: {api_key: k}}\n"

// Who fills which role, and with which limits (route §1.1, §10; spec/README
// "Ollama context").
func TestSpec(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		use        Use
		want       string // model, context, or the error
	}{
		{"chat by default", "", Use{Role: Chat}, "ollama/chat-v1:latest 8192 ctx 8192 0..8192"},
		{"worker by default", "", Use{Role: Worker}, "ollama/worker-v1:latest 8192 ctx 8192 0..8192"},
		{"coder by default", keys, Use{Role: "coder"}, "deepseek/deepseek-flash 128000"},
		{"coder2 by default", keys, Use{Role: "coder2"}, "openai/gpt-4o 128000"},
		{"coder3 by default", keys, Use{Role: Coder3}, "anthropic/claude-sonnet-4.5 200000"},
		{"coder without key", "", Use{Role: "coder"}, "the role coder is not configured: deepseek needs a key; set llm.deepseek.api_key (DEEPSEEK_API_KEY)"},
		{"coder3 without key", "", Use{Role: Coder3}, "the role coder3 is not configured: anthropic needs a key; set llm.anthropic.api_key (ANTHROPIC_API_KEY)"},
		{"no key at an address of one's own", "llm: {openai: {base_url: 'http://h/v1'}}", Use{Role: "coder2"}, "openai/gpt-4o 128000"},
		{"old names", keys + "routing: {llm: {code_provider: openai, code_model: gpt-x}}", Use{Role: "coder"}, "openai/gpt-x 128000"},
		{"task is llm.provider's", "llm: {provider: anthropic, anthropic: {api_key: k, model: claude-x}}", Use{}, "anthropic/claude-x 200000"},
		{"summarizer is llm.provider's", "llm: {provider: ollama}", Use{Role: Summarizer}, "ollama/qwen3:30b 32768 ctx 32768 32768..32768"},
		{"task of its own", keys + "routing: {llm: {task_provider: ollama, task_model: ollama/q:8b, task_context_length: 16000}}", Use{}, "ollama/q:8b 16000 ctx 16000 16000..16000"},
		{"task with a model of its own", "llm: {provider: ollama}\nrouting: {llm: {task_model: z}}", Use{}, "ollama/z 32768 ctx 32768 32768..32768"},
		{"a section that is set names the provider", "llm: {ollama: {model: m}}", Use{}, "ollama/m 32768 ctx 32768 32768..32768"},
		{"a key names the provider", "llm: {deepseek: {api_key: k}}", Use{}, "deepseek/deepseek-flash 128000"},
		{"coder on Ollama", "routing: {llm: {coder_provider: ollama, coder_model: ollama/c}}", Use{Role: "coder"}, "ollama/c 32768 ctx 32768 32768..32768"},
		{"chat never over its limit", "routing: {llm: {chat_context_length: 100000}}", Use{Role: Chat}, "ollama/chat-v1:latest 8192 ctx 8192 0..8192"},
		{"chat's limit lifted", "providers: {ollama: {num_ctx: 16384, max_context: 0}}\nrouting: {llm: {chat_context_length: 10000}}", Use{Role: Chat}, "ollama/chat-v1:latest 10000 ctx 10000 0..0"},
		{"by name", keys, Use{Model: "anthropic/claude-y"}, "anthropic/claude-y 200000 explicit"},
		{"by name, with slashes", "", Use{Model: "vllm/openai/gpt-oss"}, "vllm/openai/gpt-oss 32768 explicit"},
		{"by name, no provider", "", Use{Model: "gpt-4o"}, `--model "gpt-4o": expected PROVIDER/MODEL with one of these providers: openai, anthropic, deepseek, ollama, lmstudio, vllm, e.g. openai/gpt-4o`},
		{"by name, no such provider", "", Use{Model: "script/x"}, `--model "script/x": expected PROVIDER/MODEL with one of these providers: openai, anthropic, deepseek, ollama, lmstudio, vllm, e.g. openai/gpt-4o`},
		{"no such role", "", Use{Role: "boss"}, `there is no role "boss": the roles are chat, worker, coder, coder2, coder3, task, summarizer`},
		{"no model", "routing: {llm: {coder2_provider: lmstudio}}", Use{Role: "coder2"}, "the role coder2 is not configured: lmstudio needs the name of a model; set llm.lmstudio.model"},
		{"script", "", Use{Script: "f.yaml"}, "script/ 128000 explicit"},
		{"fallbacks", keys + "routing: {llm: {coder_fallbacks: [openai/gpt-x, ollama/q]}}", Use{Role: "coder"}, "deepseek/deepseek-flash 128000 then openai/gpt-x 128000 then ollama/q 32768 ctx 32768 32768..32768"},
		{"fallbacks of llm", "llm: {provider: ollama, fallbacks: [ollama/small]}", Use{}, "ollama/qwen3:30b 32768 ctx 32768 32768..32768 then ollama/small 32768 ctx 32768 32768..32768"},
		{"llm's fallbacks are not a role's", "llm: {provider: ollama, fallbacks: [ollama/small]}", Use{Role: Chat}, "ollama/chat-v1:latest 8192 ctx 8192 0..8192"},
		{"none where asked for by name", "llm: {provider: ollama, fallbacks: [ollama/small]}", Use{Model: "ollama/big"}, "ollama/big 32768 ctx 32768 32768..32768 explicit"},
		{"a fallback without key", "llm: {provider: ollama, fallbacks: [openai/gpt-4o]}", Use{}, "the role task falls back to openai/gpt-4o, which cannot be called: openai needs a key; set llm.openai.api_key (OPENAI_API_KEY)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := open(t, c.text).Spec(context.Background(), c.use)
			if got := described(&s, err); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func described(s *Spec, err error) string {
	if err != nil {
		return err.Error()
	}
	text := s.Name() + " " + fmt.Sprint(s.Context)
	if s.Provider == "ollama" {
		text += fmt.Sprintf(" ctx %d %d..%d", s.NumCtx, s.MinContext, s.MaxContext)
	}
	if s.Explicit {
		text += " explicit"
	}
	for i := range s.Fallbacks {
		text += " then " + described(&s.Fallbacks[i], nil)
	}
	return text
}

// How each role is called: coder3 has limits of its own (route §10.1).
func TestRoleLimits(t *testing.T) {
	t.Parallel()
	m := open(t, keys+`routing: {llm: {coder_max_tokens: 500, coder_temperature: 0, coder_timeout_seconds: 9, worker_function_calling: false, coder2_fallbacks: [anthropic/x]}}`)
	get := func(role string) Spec {
		s, err := m.Spec(t.Context(), Use{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := get("coder"); s.MaxTokens != 500 || s.Temperature == nil || *s.Temperature != 0 || s.Timeout != 9*time.Second || s.Retries != 5 || s.TextTools != "auto" {
		t.Errorf("coder: %+v", s)
	}
	if s := get(Worker); s.TextTools != "false" || s.Temperature != nil || s.KeepAlive != "-1" {
		t.Errorf("worker: %+v", s)
	}
	if s := get(Coder3); s.JobTokens != 16000 || s.Retries != 2 || s.Timeout != time.Minute {
		t.Errorf("coder3: %+v", s)
	}
	if s := get("coder2"); s.JobTokens != 0 || len(s.Fallbacks) != 1 || s.Fallbacks[0].Retries != 5 {
		t.Errorf("coder2: %+v", s)
	}
	text := open(t, keys+"coder3: {max_tokens: 7, retry_max: 0, timeout_sec: 5}\nrouting: {llm: {coder3_timeout_seconds: 3}}")
	if s, err := text.Spec(t.Context(), Use{Role: Coder3}); err != nil || s.JobTokens != 7 || s.Retries != 0 || s.Timeout != 3*time.Second {
		t.Errorf("coder3: %+v, %v", s, err)
	}
}
