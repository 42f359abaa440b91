package ollama

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

func TestEmbed(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewOllama(t, nil, llmtest.OllamaModel{Name: "nomic-embed-text", Capabilities: []string{"embedding"}})
	srv.Embed = func(text string) []float32 { return []float32{float32(len(text)), 0.5} }
	got, err := Embed(t.Context(), Config{Model: "ollama/nomic-embed-text", BaseURL: srv.URL + "/v1"}, []string{"a", "bbb"})
	if err != nil || !cmp.Equal(got, [][]float32{{1, 0.5}, {3, 0.5}}) {
		t.Error(got, err)
	}
	var e *llm.Error
	if _, err := Embed(t.Context(), Config{Model: "another", BaseURL: srv.URL}, []string{"a"}); !errors.As(err, &e) || e.Kind != llm.KindNotFound {
		t.Error(err)
	}
	for name, answer := range map[string]string{"too few": `{"embeddings":[[1]]}`, "empty": `{"embeddings":[[1],[]]}`, "none": `{}`, "one": `{"embedding":[1]}`} {
		odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		_, err := Embed(t.Context(), Config{Model: "m", BaseURL: odd.URL}, []string{"a", "b"})
		odd.Close()
		if !errors.As(err, &e) || e.Kind != llm.KindInvalid || e.Provider != "ollama" || !strings.HasSuffix(e.Endpoint, "/api/embed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
