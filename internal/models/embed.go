package models

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/endpoint"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/llm/openai"
)

// Embedder turns texts into vectors, by the model of search.similar.embeddings. Safe for concurrent use.
type Embedder struct {
	m         *Models
	spec      Spec
	localOnly bool

	mu    sync.Mutex
	asked bool // its Ollama has said that it runs the model itself
}

// Embedder is the model of the settings for embeddings, nil where they name none; with localOnly it is called
// only where it is local, as it always is with security.local_only. It calls nobody. The error is an i18n error of a setting.
func (m *Models) Embedder(localOnly bool) (*Embedder, error) {
	name := m.cfg.Search.Similar.Embeddings
	if name == "" {
		return nil, nil
	}
	provider, model, _ := strings.Cut(name, "/") // its form was checked with the configuration
	e := &Embedder{m: m, spec: m.resolver.member(Summarizer, provider, model), localOnly: localOnly}
	if err := e.spec.usable(); err != nil {
		return nil, i18n.E("models.embeddings", err)
	}
	return e, nil
}

// Embed returns a vector for each text, in their order. What is secret or tells of people is masked before it
// leaves. It is not repeated: whoever needs it does without. The error is ctx's, an i18n error where a cloud is
// not allowed, or an *llm.Error.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	s, hc, l := e.spec, e.m.httpClient(&e.spec), &e.m.cfg.LLM
	if err := e.allowed(ctx, hc); err != nil {
		return nil, err
	}
	masked := make([]string, len(texts))
	for i, t := range texts {
		masked[i] = e.m.Strict(t)
	}
	if slots := e.m.slotsOf(&s); slots != nil {
		slot, err := slots.Acquire(ctx, endpoint.PriorityCoder, "embeddings", nil)
		if err != nil {
			return nil, err
		}
		defer slot.Release()
	}
	if s.Provider == "ollama" {
		return ollama.Embed(ctx, ollama.Config{Model: s.Model, BaseURL: s.Address, APIKey: s.key, HTTP: hc, ConnectTimeout: l.ConnectTimeout(), StallTimeout: l.Timeout()}, masked)
	}
	return openai.Embed(ctx, openai.Config{Provider: s.Provider, Model: s.Model, BaseURL: s.Address, APIKey: s.key, HTTP: hc, ConnectTimeout: l.ConnectTimeout(), StallTimeout: l.Timeout()}, masked)
}

// Cloud reports whether texts leave the user's machines.
func (e *Embedder) Cloud() bool { return e.spec.Cloud }

// allowed asks the rules for clouds. An Ollama passes some models on to one under any name, so it is asked first.
func (e *Embedder) allowed(ctx context.Context, hc *http.Client) error {
	if err := e.m.allowed(&e.spec, Use{LocalOnly: e.localOnly}); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked || e.spec.Provider != "ollama" || e.spec.Cloud {
		return nil
	}
	shown, err := ollama.Show(ctx, ollama.Config{Model: e.spec.Model, BaseURL: e.spec.Address, APIKey: e.spec.key, HTTP: hc, ConnectTimeout: showTimeout, StallTimeout: showTimeout})
	if err != nil {
		return err
	}
	if shown.RemoteHost != "" {
		err := i18n.E("models.embeddings_remote", e.spec.Name(), shown.RemoteHost)
		return &llm.Error{Kind: llm.KindForbidden, Provider: e.spec.Provider, Message: err.Error(), Err: err}
	}
	e.asked = true
	return nil
}
