package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// What the settings name RESEARCH looks things up with, and with nothing else: the queries go to the SearXNG,
// pages come from allowed hosts, and rules for tools hold.
func TestLookupBySettings(t *testing.T) {
	t.Parallel()
	var web *httptest.Server
	var searched, read atomic.Int32
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/search" {
			read.Add(1)
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "It is on.")
			return
		}
		searched.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"query": "x", "results": [{"url": "%s/page", "title": "A page", "content": "about it"}], "unresponsive_engines": []}`, web.URL)
	}))
	defer web.Close()
	page := web.URL + "/page"
	model := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		call := func(name, args string) llmtest.Answer {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: fmt.Sprint("c", r.Turn()), Name: name, Arguments: args}}}
		}
		switch {
		case r.Model == "chat":
			return llmtest.Answer{Text: "It is on."}
		case slices.Contains(r.Tools, "web_search") && r.Turn() == 0:
			return call("web_search", `{"query": "x"}`)
		case slices.Contains(r.Tools, "web_fetch") && r.Turn() < 2:
			return call("web_fetch", `{"url": "`+page+`"}`)
		}
		return llmtest.Answer{Text: `{"result": {"research_goal": "g", "queries": ["x"], "findings": [{"text": "it is on", "source": "` + page + `"}]}, "needs_next_loop": false, "why": "w", "next_actions": [], "questions_for_user": [], "confidence": 0.9, "risk": "low"}`}
	})
	for name, c := range map[string]struct {
		settings       string
		searched, read int32
		answer         string
	}{
		"both":            {"web: {search_url: '" + web.URL + "'}\nsandbox: {allow_hosts: ['" + web.Listener.Addr().String() + "']}\n", 1, 1, "It is on.\n\nSources:\n- " + page},
		"search alone":    {"web: {search_url: '" + web.URL + "'}\n", 1, 0, "It is on.\n\nSources:\n- " + page},
		"pages alone":     {"sandbox: {allow_hosts: ['" + web.Listener.Addr().String() + "']}\n", 0, 1, "It is on.\n\nSources:\n- " + page},
		"neither":         {"", 0, 0, "It is on."},
		"denied by rules": {"web: {search_url: '" + web.URL + "'}\ntools: {roles: {worker: {deny: [web_search]}}}\n", 0, 0, "It is on."},
	} {
		t.Run(name, func(t *testing.T) {
			searched.Store(0)
			read.Store(0)
			dir := t.TempDir()
			config := filepath.Join(dir, "config.yaml")
			text := "language: en\nllm: {vllm: {base_url: '" + model.URL + "'}}\nrouting: {llm: {chat_provider: vllm, chat_model: chat, worker_provider: vllm, worker_model: worker}}\n" +
				"context_storage: {base_dir: " + filepath.Join(dir, "base") + ", durability: os}\n" + c.settings
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := &system{opt: RunOptions{Config: config}, env: Env{Getenv: func(string) string { return "" }, Log: io.Discard, Lang: i18n.English, Now: time.Now, Notice: func(string, ...any) {}}, fs: &disk.FS{}}
			if err := s.settle(); err != nil {
				t.Fatal(err)
			}
			e, end, err := s.converse(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			to := &posts{}
			e.Add(to)
			if err := e.Handle(t.Context(), channel.Message{Channel: channel.Terminal, SessionID: "terminal:hanako:x", ID: "1", User: "terminal:hanako", UserText: "/research is it on?"}); err != nil {
				t.Fatal(err)
			}
			want := "answer: I'll look into it.\n" + c.answer
			if got := strings.Join(to.all, "\n"); got != want || searched.Load() != c.searched || read.Load() != c.read {
				t.Errorf("%s\nwant %s\nsearched %d, read %d", got, want, searched.Load(), read.Load())
			}
		})
	}
}
