package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"toritsugi/internal/llm"
)

// ListModels returns the ids of the models that the server at baseURL offers,
// in its order. It makes one call and waits as long as ctx and hc do; hc may be
// nil. It fails with an i18n error for an unusable baseURL or key, ctx's error,
// or an *llm.Error. Source: GET /models of OpenAI's API description.
func ListModels(ctx context.Context, baseURL, key string, hc *http.Client) ([]string, error) {
	const provider = "openai"
	u, err := resolve(provider, baseURL, "models")
	if err != nil {
		return nil, err
	}
	if key, err = checkKey(provider, key); err != nil {
		return nil, err
	}
	c, err := newClient(Config{Provider: provider, Model: "any", BaseURL: baseURL, APIKey: key, HTTP: hc})
	if err != nil {
		return nil, err
	}
	if hc == nil {
		defer c.http.CloseIdleConnections()
	}
	c.endpoint = endpoint(u.String())
	ids, e := c.listModels(ctx, u.String())
	if e == nil {
		return ids, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.Attempts = 1
	return nil, e
}

func (c *client) listModels(ctx context.Context, url string) ([]string, *llm.Error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, c.fail(&llm.Error{Kind: llm.KindBadRequest, Message: err.Error(), Err: err}, nil)
	}
	c.authorize(req)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.fail(c.transportError(ctx, err, llm.KindUnreachable), nil)
	}
	defer func() { _ = res.Body.Close() }() // only read from
	if res.StatusCode != http.StatusOK {
		return nil, c.fail(c.statusError(res, res.Body), res)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxEvent))
	if err != nil {
		return nil, c.fail(c.transportError(ctx, err, llm.KindCutStream), res)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, c.fail(invalid(res.Header.Get("Content-Type"), raw[:min(len(raw), shownBytes)]), res)
	}
	ids := make([]string, 0, len(list.Data))
	for _, m := range list.Data {
		ids = append(ids, m.ID)
	}
	return ids, nil
}
