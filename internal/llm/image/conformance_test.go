package image_test

import (
	"testing"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/llm/image"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/openai"
)

// An audited client keeps what every provider must.
func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Conformance(t, func(t *testing.T, o llmtest.Options, answers ...llmtest.Answer) llmtest.Rig {
		srv := llmtest.NewServer(t, llmtest.Sequence(answers...))
		c, err := openai.New(openai.Config{Provider: "test", Model: "test-model", BaseURL: srv.URL, MaxRetries: o.Retries, StallTimeout: o.Stall,
			ConnectTimeout: o.Connect, FirstTokenTimeout: o.FirstToken, CallTimeout: o.Call, MaxTokens: o.MaxTokens, HTTP: o.HTTP, Backoff: func() backoff.BackOff { return &backoff.ZeroBackOff{} }})
		if err != nil {
			t.Fatal(err)
		}
		c = image.Audited(c, image.Options{URLType: image.DataURI, Allow: image.Only(0, image.PNG, image.JPEG)})
		return llmtest.Rig{Client: c, Requests: srv.Requests, Quiet: srv.Quiet, Lacks: map[llmtest.Feature]string{
			llmtest.Opaques: "chat completions have no such field",
		}}
	})
}
