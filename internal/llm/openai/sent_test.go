package openai

import (
	"net/http"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

func TestSentBytesStay(t *testing.T) {
	t.Parallel()
	llmtest.SentBytesStay(t, stream(1), func(hc *http.Client) llm.Client { return testClient(t, Config{BaseURL: "http://h", HTTP: hc}) })
}
