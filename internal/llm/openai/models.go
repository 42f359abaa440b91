package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"toritsugi/internal/llm"
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
	var models []Model
	err = c.Repeat(ctx, func() *llm.Error {
		return c.Once(ctx, c.Get, func(_ context.Context, res *http.Response, in io.Reader) (e *llm.Error, broken error) {
			models, e, broken = readModels(res.Header.Get("Content-Type"), in)
			return e, broken
		})
	})
	return models, err
}

func readModels(contentType string, in io.Reader) (models []Model, e *llm.Error, broken error) {
	raw, err := io.ReadAll(io.LimitReader(in, wire.MaxEvent))
	if err != nil {
		return nil, nil, err
	}
	var list struct {
		Data []Model `json:"data"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, wire.Invalid("a list of models", contentType, raw), nil
	}
	return list.Data, nil, nil
}
