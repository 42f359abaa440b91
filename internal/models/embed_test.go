package models

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

func length(text string) []float32 { return []float32{float32(len(text)), 1} }

const embeddings = "\nsearch: {similar: {embeddings: "

func TestEmbedder(t *testing.T) {
	t.Parallel()
	if e, err := openHouse(t, "{}", nil).Embedder(false); e != nil || err != nil {
		t.Error("without a setting:", e, err)
	}
	local := llmtest.NewOllama(t, nil, llmtest.OllamaModel{Name: "nomic-embed-text", Capabilities: []string{"embedding"}})
	local.Embed = length
	h := openHouse(t, fmt.Sprintf("llm: {ollama: {endpoint: %q}, state_dir: %q}%sollama/nomic-embed-text}}", local.URL, t.TempDir(), embeddings), nil)
	e, err := h.Embedder(true)
	if err != nil || e.Cloud() {
		t.Fatal(err)
	}
	for range 2 {
		got, err := e.Embed(t.Context(), []string{"a", "call 090-1234-5678 with sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"})
		if err != nil || len(got) != 2 || !cmp.Equal(got[0], []float32{1, 1}) {
			t.Error(got, err)
		}
	}
	var paths []string
	for _, c := range local.Calls() {
		paths = append(paths, c.Path)
		if body := string(c.Body); strings.Contains(body, "090-1234") || strings.Contains(body, "sk-proj") {
			t.Error("not masked:", body)
		}
	}
	if !slices.Equal(paths, []string{"/api/show", "/api/embed", "/api/embed"}) {
		t.Error(paths)
	}
	local.Down(nil)
	if _, err := e.Embed(t.Context(), []string{"a"}); err == nil {
		t.Error("of a server that is down")
	}
	h = openHouse(t, fmt.Sprintf("llm: {openai: {api_key: ''}}%sopenai/text-embedding-3-small}}", embeddings), nil)
	if _, err := h.Embedder(false); err == nil || key(err) != "models.embeddings" || !strings.Contains(err.Error(), "llm.openai.api_key") {
		t.Error(err)
	}
}

// Nothing goes to a cloud that may not, under whatever name.
func TestEmbedderInACloud(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, nil)
	s.Embed = length
	for _, c := range []struct {
		name, text string
		localOnly  bool
		refused    string
	}{
		{"local_only", "security: {local_only: true}", false, "cloud.local_only"},
		{"this run only", "{}", true, "cloud.local_only"},
		{"for chat alone", "security: {cloud_allowed_routes: [CHAT]}", false, "cloud.route"},
		{"a listed host", "security: {local_only: true, local_hosts: [api.example.com]}", true, ""},
		{"allowed", "{}", false, ""},
	} {
		hc, made := elsewhere(t, s.URL)
		h := openHouse(t, away+strings.Replace(c.text, "{}", "", 1)+embeddings+"openai/e}}", func(o *Options) { o.HTTP = hc })
		e, err := h.Embedder(c.localOnly)
		if err != nil {
			t.Fatal(c.name, err)
		}
		got, err := e.Embed(t.Context(), []string{"ab", "c"})
		switch {
		case c.refused != "" && (err == nil || key(err) != c.refused || made.Load() != 0):
			t.Errorf("%s: %v after %d connections", c.name, err, made.Load())
		case c.refused == "" && (err != nil || !cmp.Equal(got, [][]float32{{2, 1}, {1, 1}})):
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
		if e.Cloud() != (c.name != "a listed host") {
			t.Error(c.name)
		}
	}
	o := llmtest.NewOllama(t, nil, llmtest.OllamaModel{Name: "mine", RemoteHost: "https://ollama.com:443"})
	e, err := openHouse(t, fmt.Sprintf("llm: {ollama: {endpoint: %q}, state_dir: %q}%sollama/mine}}", o.URL, t.TempDir(), embeddings), nil).Embedder(false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), []string{"a"}); kind(err) != llm.KindForbidden || !strings.Contains(err.Error(), "a cloud") {
		t.Error(err)
	}
	if n := len(o.Calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
}
