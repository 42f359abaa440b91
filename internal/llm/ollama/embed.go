package ollama

import (
	"context"
	"encoding/json"
	"slices"

	"toritsugi/internal/llm/wire"
)

// Embed returns what the model of cfg makes of texts, a vector for each, in their order; a text that the model
// cannot take whole is cut by the server. It fails as ListModels does. Source: POST /api/embed of Ollama.
func Embed(ctx context.Context, cfg Config, texts []string) ([][]float32, error) {
	s, err := newServer(once(cfg))
	if err != nil {
		return nil, err
	}
	if cfg.HTTP == nil {
		defer s.http.CloseIdleConnections()
	}
	body, err := json.Marshal(map[string]any{"model": ModelName(cfg.Model), "input": texts})
	if err != nil {
		return nil, err
	}
	var list struct {
		Embeddings [][]float32 `json:"embeddings"`
	}
	const path = "api/embed"
	if err := s.ask(ctx, path, body, &list); err != nil {
		return nil, err
	}
	if len(list.Embeddings) != len(texts) || slices.ContainsFunc(list.Embeddings, func(v []float32) bool { return len(v) == 0 }) {
		e := wire.Invalid("a list of embeddings", "application/json", []byte("another number of vectors than of texts"))
		e.Provider, e.Endpoint, e.Attempts = s.provider, s.at(path).Endpoint(), 1
		return nil, e
	}
	return list.Embeddings, nil
}
