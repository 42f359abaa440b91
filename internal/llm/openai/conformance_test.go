package openai

import (
	"testing"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/llm/llmtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Conformance(t, func(t *testing.T, o llmtest.Options, answers ...llmtest.Answer) llmtest.Rig {
		srv := llmtest.NewServer(t, llmtest.Sequence(answers...))
		c := testClient(t, Config{BaseURL: srv.URL, MaxRetries: o.Retries, StallTimeout: o.Stall, ConnectTimeout: o.Connect, FirstTokenTimeout: o.FirstToken, CallTimeout: o.Call, MaxTokens: o.MaxTokens, HTTP: o.HTTP})
		return llmtest.Rig{Client: c, Requests: srv.Requests, Quiet: srv.Quiet, Lacks: map[llmtest.Feature]string{
			llmtest.Opaques: "chat completions have no such field",
		}}
	})
}

// testClient is a client that waits not at all between calls.
func testClient(t *testing.T, cfg Config) *client {
	t.Helper()
	if cfg.Provider == "" {
		cfg.Provider, cfg.Model = "test", "test-model"
	}
	if cfg.Backoff == nil {
		cfg.Backoff = func() backoff.BackOff { return &backoff.ZeroBackOff{} }
	}
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.wire.CloseIdleConnections)
	return c
}
