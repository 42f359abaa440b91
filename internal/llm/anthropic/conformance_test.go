package anthropic

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
		return llmtest.Rig{Client: c, Requests: srv.Requests, Quiet: srv.Quiet, ReasoningStays: true, Document: document, Lacks: map[llmtest.Feature]string{}}
	})
}

// document makes a JSON document of a tape.
func document(serialized []byte) []byte {
	return llmtest.CloseJSON(append([]byte{'{'}, serialized...))
}

// testClient is a client that waits not at all between calls.
func testClient(t testing.TB, cfg Config) *client {
	t.Helper()
	if cfg.Provider == "" {
		cfg.Provider, cfg.Model = "test", "claude-test"
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
