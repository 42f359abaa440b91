package anthropic

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"toritsugi/internal/llm"
)

// TestListModels: a list comes in pages, each asked for with the key; what is
// no list is told apart from a refusal.
func TestListModels(t *testing.T) {
	t.Parallel()
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("X-Api-Key") != "k" || r.Header.Get("Anthropic-Version") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
			return
		}
		asked = append(asked, r.URL.Query().Get("after_id"))
		if len(asked) == 1 {
			_, _ = io.WriteString(w, `{"data":[{"type":"model","id":"claude-a"},{"type":"model","id":"claude-b"}],"has_more":true,"first_id":"claude-a","last_id":"claude-b"}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"type":"model","id":"claude-c"}],"has_more":false,"last_id":"claude-c"}`)
	}))
	t.Cleanup(srv.Close)
	ids, err := ListModels(t.Context(), srv.URL, "k", nil)
	if err != nil || !slices.Equal(ids, []string{"claude-a", "claude-b", "claude-c"}) || !slices.Equal(asked, []string{"", "claude-b"}) {
		t.Errorf("%v, %v, asked %q", ids, err, asked)
	}
	var e *llm.Error
	if _, err := ListModels(t.Context(), srv.URL, "other", nil); !errors.As(err, &e) || e.Kind != llm.KindAuth {
		t.Errorf("got %v", err)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	t.Cleanup(page.Close)
	if _, err := ListModels(t.Context(), page.URL, "k", nil); !errors.As(err, &e) || e.Kind != llm.KindInvalid {
		t.Errorf("got %v", err)
	}
}

func TestSameModel(t *testing.T) {
	t.Parallel()
	for id, names := range map[string][]string{
		"claude-sonnet-4-5-20250929": {"claude-sonnet-4.5", "claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5-latest"},
		"claude-opus-4-20250514":     {"claude-opus-4"},
	} {
		for _, name := range names {
			if !SameModel(id, name) {
				t.Errorf("%s is not %s", id, name)
			}
		}
	}
	for id, name := range map[string]string{"claude-opus-4-1-20250805": "claude-opus-4", "claude-opus-4-20250514": "claude-opus-4-1", "claude-a": "claude-b"} {
		if SameModel(id, name) {
			t.Errorf("%s is %s", id, name)
		}
	}
}
