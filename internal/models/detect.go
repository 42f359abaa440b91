package models

import (
	"cmp"
	"context"
	"net/http"
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
	if role, ok := m.cfg.Routing.LLM.Role(cmp.Or(u.Role, Task)); !ok || role.Provider != "" {
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
	short, cancel := context.WithTimeout(ctx, detectTimeout)
	defer cancel()
	o := m.cfg.LLM.Ollama
	hc := m.httpClient(&Spec{Address: o.Endpoint})
	list, err := ollama.ListModels(short, ollama.Config{BaseURL: o.Endpoint, APIKey: o.APIKey, HTTP: hc})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, i18n.E("app.no_model", o.Endpoint)
	}
	model := o.Model
	if !slices.ContainsFunc(list, func(l ollama.Listed) bool { return ollama.SameModel(l.Name, model) }) {
		if model, err = m.likely(ctx, list, hc); err != nil {
			return nil, err
		}
	}
	if model == "" {
		return nil, i18n.E("app.no_ollama_model", o.Endpoint)
	}
	m.Notice("app.ollama_found", o.Endpoint, model)
	return &Spec{Provider: "ollama", Model: model}, nil
}

// maxShown is how many models an older server, whose list does not tell what they
// can do, is asked about.
const maxShown = 16

// likely is the newest model that chats and calls tools, else the newest that
// chats, "" where none does; one that its server passes on to a cloud comes last,
// and never where nothing may leave. The error is ctx's.
func (m *Models) likely(ctx context.Context, list []ollama.Listed, hc *http.Client) (string, error) {
	slices.SortStableFunc(list, func(a, b ollama.Listed) int { return b.ModifiedAt.Compare(a.ModifiedAt) })
	best, place := "", 0
	for i, l := range list {
		can := ollama.Model{Chat: slices.Contains(l.Capabilities, "completion"), Tools: slices.Contains(l.Capabilities, "tools"), RemoteHost: l.RemoteHost}
		if l.Capabilities == nil && i < maxShown {
			o := m.cfg.LLM.Ollama
			shown, err := ollama.Show(ctx, ollama.Config{Model: l.Name, BaseURL: o.Endpoint, APIKey: o.APIKey, HTTP: hc, StallTimeout: detectTimeout})
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			if err == nil {
				can = *shown
			}
		}
		worth := 0
		switch {
		case !can.Chat || can.RemoteHost != "" && m.cfg.Security.LocalOnly:
		case can.RemoteHost != "":
			worth = 1
		case can.Tools:
			worth = 3
		default:
			worth = 2
		}
		if worth > place {
			best, place = l.Name, worth
		}
	}
	return best, nil
}
