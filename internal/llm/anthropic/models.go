package anthropic

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"toritsugi/internal/llm/wire"
)

// maxPages is how many pages of a list of models are read; the vendor has far
// fewer models.
const maxPages = 20

// ListModels returns the ids of the models that the server at baseURL offers,
// in its order. It waits as long as ctx and hc do, but at most
// wire.DefaultStallTimeout between two bytes; hc may be nil. It fails with an
// i18n error for an unusable baseURL or key, ctx's error, or an *llm.Error.
// Source: GET /v1/models of Anthropic's API.
func ListModels(ctx context.Context, baseURL, key string, hc *http.Client) ([]string, error) {
	const provider = "anthropic"
	u, err := wire.Resolve(provider, baseURL, "v1/models", "/v1/messages", "/v1")
	if err != nil {
		return nil, err
	}
	if key, err = wire.CheckKey(provider, key); err != nil {
		return nil, err
	}
	if hc == nil {
		hc = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
		defer hc.CloseIdleConnections()
	}
	var all []string
	for after, n := "", 0; n < maxPages; n++ {
		var p struct {
			Data []struct {
				ID string `json:"id"`
			} `json:"data"`
			HasMore bool   `json:"has_more"`
			LastID  string `json:"last_id"`
		}
		c := wire.New(wire.Config{Provider: provider, URL: page(u, after), Key: key, Header: header(key), HTTP: hc})
		if err := c.Ask(ctx, nil, "a list of models", &p); err != nil {
			return nil, err
		}
		for _, m := range p.Data {
			all = append(all, m.ID)
		}
		if after = p.LastID; !p.HasMore || after == "" {
			break
		}
	}
	return all, nil
}

// page is the address of the part of a list behind an id.
func page(list *url.URL, after string) *url.URL {
	u := *list
	q := u.Query()
	q.Set("limit", "1000")
	if after != "" {
		q.Set("after_id", after)
	}
	u.RawQuery = q.Encode()
	return &u
}

// SameModel reports whether an id of ListModels, which may end in its date, is
// the model of the settings.
func SameModel(id, configured string) bool {
	name := ModelID(configured)
	if id == name {
		return true
	}
	rest, ok := strings.CutPrefix(id, strings.TrimSuffix(name, "-latest")+"-")
	return ok && len(rest) == len("20250929") && strings.Trim(rest, "0123456789") == ""
}
