package ollama

import (
	"testing"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/llm/llmtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Conformance(t, func(t *testing.T, o llmtest.Options, answers ...llmtest.Answer) llmtest.Rig {
		srv := newFake(t, llmtest.Sequence(answers...))
		c := testClient(t, Config{Model: "ollama/chat-v1:latest", BaseURL: srv.URL, MaxRetries: o.Retries, StallTimeout: o.Stall})
		return llmtest.Rig{Client: c, Requests: srv.Requests,
			Lacks: []llmtest.Feature{llmtest.Images, llmtest.Schemas, llmtest.Refusals, llmtest.Thinking, llmtest.Megabytes}}
	})
}

// testClient is a client that waits not at all between calls.
func testClient(t testing.TB, cfg Config) *client {
	t.Helper()
	if cfg.Model == "" {
		cfg.Model = "test-model"
	}
	if cfg.Backoff == nil {
		cfg.Backoff = func() backoff.BackOff { return &backoff.ZeroBackOff{} }
	}
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}
