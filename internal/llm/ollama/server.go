package ollama

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// server is what all calls of one server have in common.
type server struct {
	provider string
	http     *http.Client
	now      func() time.Time
	// at makes what calls the method at path. It holds the key; it is a function,
	// which no printing looks into.
	at   func(path string) *wire.Caller
	base func() string // the address; with what it has of a key in it
}

func newServer(cfg Config) (*server, error) {
	provider := cmp.Or(cfg.Provider, "ollama")
	base, err := resolve(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	key, err := wire.CheckKey(provider, cfg.APIKey)
	if err != nil {
		return nil, err
	}
	s := &server{provider: provider, http: wire.SingleHop(cfg.HTTP), now: cfg.Now, base: base.String}
	if s.now == nil {
		s.now = time.Now
	}
	var failed func(context.Context, time.Time, *llm.Error)
	if cfg.Care != nil {
		failed = func(ctx context.Context, began time.Time, e *llm.Error) { cfg.Care.After(ctx, began, e) }
	}
	s.at = func(path string) *wire.Caller {
		return wire.New(wire.Config{Provider: provider, URL: base.JoinPath(path), Key: key, Header: header(key), HTTP: s.http,
			ConnectTimeout: cfg.ConnectTimeout, FirstTokenTimeout: cfg.FirstTokenTimeout, StallTimeout: cfg.StallTimeout, CallTimeout: cfg.CallTimeout,
			MaxRetries: cfg.MaxRetries, OnRetry: cfg.OnRetry, Failed: failed, Backoff: cfg.Backoff, Now: s.now})
	}
	return s, nil
}

// resolve returns the address of the server. People paste the address of the
// OpenAI-compatible half, or of a call.
func resolve(base string) (*url.URL, error) {
	base = cmp.Or(strings.TrimSpace(base), DefaultBaseURL)
	u, err := wire.Resolve("", base, "", "/v1/chat/completions", "/chat/completions", "/v1", "/api/chat", "/api/generate", "/api")
	if err != nil {
		return nil, i18n.E("ollama.base_url", wire.Endpoint(base))
	}
	return u, nil
}

func header(key string) func(http.Header) {
	return func(h http.Header) {
		h.Set("Accept", "application/x-ndjson, application/json")
		if key != "" {
			h.Set("Authorization", "Bearer "+key)
		}
	}
}

// ask asks the method at path, repeated as the configuration says; see wire.Caller.Ask.
func (s *server) ask(ctx context.Context, path string, body []byte, out any) error {
	return s.at(path).Ask(ctx, body, "an answer of Ollama", out)
}
