package openai

import (
	"context"
	"net/http"

	"toritsugi/internal/llm/wire"
)

// Model is a model that a server offers.
type Model struct {
	ID string `json:"id"`
	// MaxModelLen is the context length in tokens that vLLM runs it with; other
	// servers say nothing of it.
	MaxModelLen int `json:"max_model_len"`
}

// ListModels returns the models that the server at baseURL offers,
// in its order. It makes one call and waits as long as ctx and hc do, but at
// most wire.DefaultStallTimeout between two bytes; hc may be nil. It fails with
// an i18n error for an unusable baseURL or key, ctx's error, or an *llm.Error.
// Source: GET /models of OpenAI's API description.
func ListModels(ctx context.Context, baseURL, key string, hc *http.Client) ([]Model, error) {
	const provider = "openai"
	u, err := resolve(provider, baseURL, "models")
	if err != nil {
		return nil, err
	}
	if key, err = wire.CheckKey(provider, key); err != nil {
		return nil, err
	}
	c := wire.New(wire.Config{Provider: provider, URL: u, Key: key, Header: bearer(key), HTTP: hc})
	if hc == nil {
		defer c.CloseIdleConnections()
	}
	var list struct {
		Data []Model `json:"data"`
	}
	err = c.Ask(ctx, nil, "a list of models", &list)
	return list.Data, err
}
