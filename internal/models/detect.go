package models

import (
	"context"
	"slices"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/ollama"
)

// detectTimeout is how long a local Ollama may take to say that it is there.
const detectTimeout = 2 * time.Second

// detect finds who answers where neither the settings nor u name anybody: the
// provider whose key is in the environment, else a local Ollama that answers.
// It returns nil where somebody is named.
func (m *Models) detect(ctx context.Context, u Use) (*Spec, error) {
	if u.Model != "" || u.Script != "" || m.cfg.IsSet("llm.provider") {
		return nil, nil
	}
	name := u.Role
	if name == "" {
		name = Task
	}
	if role, ok := m.cfg.Routing.LLM.Role(name); !ok || role.Provider != "" {
		return nil, nil
	}
	for _, p := range []string{"openai", "anthropic", "deepseek", "ollama", "lmstudio", "vllm", "script"} {
		for _, k := range []string{"model", "base_url", "api_key", "endpoint", "file"} {
			if m.cfg.IsSet("llm." + p + "." + k) {
				return &Spec{Provider: p}, nil
			}
		}
	}
	if !m.cfg.Security.LocalOnly && !u.LocalOnly {
		for _, p := range []struct{ name, key string }{
			{"openai", m.cfg.LLM.OpenAI.APIKey}, {"anthropic", m.cfg.LLM.Anthropic.APIKey}, {"deepseek", m.cfg.LLM.DeepSeek.APIKey},
		} {
			if p.key != "" {
				return &Spec{Provider: p.name}, nil
			}
		}
	}
	return m.detectOllama(ctx)
}

func (m *Models) detectOllama(ctx context.Context) (*Spec, error) {
	ctx, cancel := context.WithTimeout(ctx, detectTimeout)
	defer cancel()
	o := m.cfg.LLM.Ollama
	hc := m.httpClient(&Spec{Address: o.Endpoint})
	list, err := ollama.ListModels(ctx, ollama.Config{BaseURL: o.Endpoint, APIKey: o.APIKey, HTTP: hc})
	if err != nil || len(list) == 0 {
		return nil, i18n.E("app.no_model", o.Endpoint)
	}
	model := o.Model
	if !slices.ContainsFunc(list, func(l ollama.Listed) bool { return ollama.SameModel(l.Name, model) }) {
		model = list[0].Name
	}
	m.Notice("app.ollama_found", o.Endpoint, model)
	return &Spec{Provider: "ollama", Model: model}, nil
}
