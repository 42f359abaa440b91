package llmtest

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// ollamaSays makes one call and returns its status and body; a status of 0 is
// a connection that was broken.
func ollamaSays(t *testing.T, o *Ollama, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL+path, nil)
	if body != "" {
		req, err = http.NewRequestWithContext(t.Context(), http.MethodPost, o.URL+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
	}
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

const (
	ollamaBegins = `{"model":"m","keep_alive":-1,"truncate":false,"shift":false,"options":{"num_ctx":4096}`
	ollamaChat   = ollamaBegins + `,"stream":true,"messages":[{"role":"user","content":"go"}]}`
	ollamaLoad   = ollamaBegins + `,"stream":false,"messages":[]}`
)

// The state of a server: what is on its disk, in its memory, and whether it is up.
func TestOllamaHasAState(t *testing.T) {
	t.Parallel()
	o := NewOllama(t, Sequence(Answer{Text: "hello"}), OllamaModel{Name: "m:latest", ContextLength: 8192, Capabilities: []string{"completion"}})
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/api/version", "", 200, `{"version":"0.33.2"}`},
		{"/api/ps", "", 200, `{"models":[]}`},
		{"/api/tags", "", 200, `"name":"m:latest"`},
		{"/api/show", `{"model":"M"}`, 200, `"qwen3.context_length":8192`},
		{"/api/show", `{"model":"M"}`, 200, `"capabilities":["completion"]`},
		{"/api/show", `{"model":"x"}`, 404, `"error":"model 'x' not found"`},
		{"/api/chat", ollamaLoad, 200, `"done":true,"done_reason":"load"`},
		{"/api/ps", "", 200, `"context_length":4096`},
		{"/api/chat", ollamaChat, 200, `"content":"hello"`},
		{"/api/chat", strings.Replace(ollamaChat, `"messages"`, `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"messages"`, 1), 400, "does not support tools"},
		{"/api/chat", strings.Replace(ollamaLoad, `"m"`, `"x"`, 1), 404, "not found"},
	} {
		if status, got := ollamaSays(t, o, c.path, c.body); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, got)
		}
	}
	if len(o.Loads()) != 2 || len(o.Requests()) != 2 || len(o.Calls()) != 11 || o.Loads()[0].NumCtx != 4096 || string(o.Loads()[0].KeepAlive) != "-1" {
		t.Errorf("%d loads, %d chats, %d calls", len(o.Loads()), len(o.Requests()), len(o.Calls()))
	}
	o.Down(nil)
	if status, _ := ollamaSays(t, o, "/api/version", ""); status != 0 || len(o.Loaded()) != 0 {
		t.Errorf("down: %d", status)
	}
	o.Up()
	if status, _ := ollamaSays(t, o, "/api/version", ""); status != 200 {
		t.Errorf("up again: %d", status)
	}
	var up atomic.Bool
	o.Down(up.Load)
	if status, _ := ollamaSays(t, o, "/api/version", ""); status != 0 {
		t.Errorf("down: %d", status)
	}
	up.Store(true)
	if status, _ := ollamaSays(t, o, "/api/version", ""); status != 200 {
		t.Errorf("up again: %d", status)
	}
	o.Load("n", 0)
	if n, ok := o.Loaded()["n:latest"]; !ok || n != 0 {
		t.Errorf("%v", o.Loaded())
	}
	if o.Unload("n:latest"); len(o.Loaded()) != 0 {
		t.Errorf("%v", o.Loaded())
	}
}

// What Ollama would refuse, or do in silence, fails the test.
func TestOllamaIsStrict(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{`, ollamaChat + `{}`, strings.Replace(ollamaChat, `"keep_alive":-1`, `"keep_alive":"-1"`, 1), strings.Replace(ollamaChat, `"truncate":false`, `"truncate":true`, 1),
		strings.Replace(ollamaChat, `,"shift":false`, ``, 1), strings.Replace(ollamaChat, `"num_ctx":4096`, ``, 1), strings.Replace(ollamaChat, `"m"`, `"ollama/m"`, 1),
		strings.Replace(ollamaChat, `"stream":true`, `"stream":false`, 1), strings.Replace(ollamaChat, `"content":"go"`, `"content":"go","images":["data:image/png;base64,AA=="]`, 1),
		strings.Replace(ollamaChat, `"content":"go"`, `"content":"go","name":"x"`, 1), strings.Replace(ollamaChat, `"stream"`, `"format":"json","stream"`, 1),
	} {
		tb := &spy{TB: t}
		tb.cleaned(func() {
			o := NewOllama(tb, Sequence(Answer{}))
			if status, _ := ollamaSays(t, o, "/api/chat", body); status != http.StatusBadRequest {
				t.Errorf("%s: %d", body, status)
			}
		})
		if !tb.failed {
			t.Errorf("%s is no error", body)
		}
	}
}
