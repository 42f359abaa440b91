package openai

import (
	"context"
	"encoding/json"
	"net/http"

	"toritsugi/internal/llm"
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
	if err := c.Ask(ctx, body, embeddings, &list); err != nil {
		return nil, err
	}
	all := make([][]float32, len(texts))
	for _, d := range list.Data {
		if d.Index < 0 || d.Index >= len(all) || len(d.Embedding) == 0 || all[d.Index] != nil {
			return nil, noEmbeddings(cfg.Provider, c.Endpoint())
		}
		all[d.Index] = d.Embedding
	}
	if len(list.Data) != len(all) {
		return nil, noEmbeddings(cfg.Provider, c.Endpoint())
	}
	return all, nil
}

const embeddings = "a list of embeddings"

func noEmbeddings(provider, endpoint string) *llm.Error {
	e := wire.Invalid(embeddings, "application/json", []byte("another number of vectors than of texts"))
	e.Provider, e.Endpoint, e.Attempts = provider, endpoint, 1
	return e
}
