package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// length is an embedding by which tests tell texts apart.
func length(text string) []float32 { return []float32{float32(len(text)), 0.5} }

func TestEmbed(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, nil)
	srv.Embed = length
	got, err := Embed(t.Context(), Config{Provider: "openai", Model: "m", BaseURL: srv.URL, APIKey: secret}, []string{"a", "bbb"})
	if err != nil || !cmp.Equal(got, [][]float32{{1, 0.5}, {3, 0.5}}) {
		t.Error(got, err)
	}
	var e *llm.Error
	if _, err := Embed(t.Context(), Config{Provider: "openai", Model: "m", BaseURL: srv.URL}, []string{""}); !errors.As(err, &e) || e.Kind != llm.KindBadRequest {
		t.Error(err)
	}
	for name, answer := range map[string]string{
		"too few":     `{"data":[{"index":0,"embedding":[1]}]}`,
		"twice":       `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		"one too far": `{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`,
		"negative":    `{"data":[{"index":-1,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		"empty":       `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]}`,
		"base64":      `{"data":[{"index":0,"embedding":"AAAA"},{"index":1,"embedding":"AAAA"}]}`,
		"none":        `{}`,
		"a page":      `<html>`,
	} {
		odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		_, err := Embed(t.Context(), Config{Provider: "p", Model: "m", BaseURL: odd.URL, APIKey: secret}, []string{"a", "b"})
		odd.Close()
		if !errors.As(err, &e) || e.Kind != llm.KindInvalid || e.Provider != "p" || !strings.HasSuffix(e.Endpoint, "/embeddings") || strings.Contains(fmt.Sprint(err), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var told *i18n.Error
	if _, err := Embed(t.Context(), Config{BaseURL: "nowhere"}, []string{"a"}); !errors.As(err, &told) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Embed(ended, Config{Model: "m", BaseURL: srv.URL}, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
