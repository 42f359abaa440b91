package ollama

import (
	"testing"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/llm/llmtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Conformance(t, func(t *testing.T, o llmtest.Options, answers ...llmtest.Answer) llmtest.Rig {
		srv := llmtest.NewOllama(t, llmtest.Sequence(answers...))
		c := testClient(t, Config{Model: "ollama/chat-v1:latest", BaseURL: srv.URL, MaxRetries: o.Retries, StallTimeout: o.Stall, ConnectTimeout: o.Connect, FirstTokenTimeout: o.FirstToken, CallTimeout: o.Call, MaxTokens: o.MaxTokens, HTTP: o.HTTP, NumCtx: 4 << 20})
		return llmtest.Rig{Client: c, Requests: srv.Requests, Quiet: srv.Quiet, KeepAlive: "\n" + waits, Lacks: map[llmtest.Feature]string{
			llmtest.ReasoningCounts: "Ollama counts what a model thinks as part of the answer",
			llmtest.Opaques:         "Ollama's format has no such field",
			llmtest.Refusals:        "Ollama passes on what a model says and cannot tell a refusal",
		}}
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
	t.Cleanup(c.wire.CloseIdleConnections)
	return c
}
