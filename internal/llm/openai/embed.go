package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"toritsugi/internal/llm/wire"
)

// Embed returns what the model of cfg makes of texts, a vector for each, in their order; none of them may be
// empty. Of cfg only what belongs to a call counts, and of the limits of time not that of a first token. It
// fails with an i18n error for an unusable address or key, ctx's error, or an *llm.Error.
// Source: POST /embeddings of OpenAI's API description.
func Embed(ctx context.Context, cfg Config, texts []string) ([][]float32, error) {
	u, err := resolve(cfg.Provider, cfg.BaseURL, "embeddings")
	if err != nil {
		return nil, err
	}
	key, err := wire.CheckKey(cfg.Provider, cfg.APIKey)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{"model": cfg.Model, "input": texts})
	if err != nil {
		return nil, err
	}
	c := wire.New(wire.Config{Provider: cfg.Provider, URL: u, Key: key, Header: func(h http.Header) {
		bearer(key)(h)
		h.Set("Accept", "application/json")
	}, HTTP: cfg.HTTP, ConnectTimeout: cfg.ConnectTimeout, StallTimeout: cfg.StallTimeout, CallTimeout: cfg.CallTimeout, MaxRetries: cfg.MaxRetries, OnRetry: cfg.OnRetry, Backoff: cfg.Backoff, Now: cfg.Now})
	if cfg.HTTP == nil {
		defer c.CloseIdleConnections()
	}
	var list struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	const what = "a list of embeddings"
	if err := c.Ask(ctx, body, what, &list); err != nil {
		return nil, err
	}
	all := make([][]float32, len(texts))
	for _, d := range list.Data {
		if 0 <= d.Index && d.Index < len(all) {
			all[d.Index] = d.Embedding
		}
	}
	if len(list.Data) != len(all) || slices.ContainsFunc(all, func(v []float32) bool { return len(v) == 0 }) {
		e := wire.Invalid(what, "application/json", []byte("another number of vectors than of texts"))
		e.Provider, e.Endpoint, e.Attempts = cfg.Provider, c.Endpoint(), 1
		return nil, e
	}
	return all, nil
}
