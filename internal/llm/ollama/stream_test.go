package ollama

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"toritsugi/internal/llm"
)

// FuzzAnswer: whatever a server sends is an answer or an error, the same for
// the same bytes, and an answer can be appended and sent back.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(said + done))
	f.Add([]byte(`{"model":"m","message":{"role":"assistant","thinking":"h","tool_calls":[{"id":"call_1","function":{"name":"f","arguments":{"a":"\ud800"}}},{"id":"call_1"}]}}` + "\n" + done))
	f.Add([]byte(`{"error":{"message":1}}`))
	f.Add([]byte("{\"model\":\"m\",\"message\":{\"content\":\"\xff\x00\"},\"done\":true,\"prompt_eval_count\":-1,\"eval_count\":1e3}"))
	f.Add([]byte("\r\n \xEF\xBB\xBF{}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := answering(t, Config{}, string(body))
		var streamed strings.Builder
		v := c.Open(llm.Settings{})
		v.Append(user("x"))
		reply, err := v.Send(context.Background(), func(s string) { streamed.WriteString(s) })
		if (reply == nil) == (err == nil) {
			t.Fatalf("%v, %v", reply, err)
		}
		if err != nil {
			return
		}
		if streamed.String() != reply.Message.Content || reply.FinishReason == "" {
			t.Errorf("streamed %q, reply %+v", streamed.String(), reply)
		}
		ids := map[string]bool{}
		for _, call := range reply.Message.ToolCalls {
			if call.ID == "" || ids[call.ID] || !utf8.ValidString(call.Arguments) {
				t.Errorf("call %+v", call)
			}
			ids[call.ID] = true
		}
		v.Append(reply.Message)
		if _, err := parseChat(append(bytes.Clone(v.(*conversation).body), `],"options":{"num_ctx":8192}}`...)); err != nil {
			t.Error(err)
		}
	})
}

// benchServer answers every call with so many tokens.
func benchServer(b *testing.B, n int) string {
	var body bytes.Buffer
	for i := range n {
		fmt.Fprintf(&body, `{"model":"qwen3:30b","created_at":"2026-11-21T08:00:00.%09dZ","message":{"role":"assistant","content":" token%d"},"done":false}`+"\n", i, i)
	}
	body.WriteString(`{"model":"qwen3:30b","created_at":"2026-11-21T08:00:01Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":9}` + "\n")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = w.Write(body.Bytes())
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}

// raw is what a program without this package does: marshal the request, post it,
// scan the lines, decode each, join the text.
func raw(ctx context.Context, client *http.Client, url, prompt string) (string, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	body, err := json.Marshal(map[string]any{"model": "m", "messages": []message{{"user", prompt}}})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/chat", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	var text strings.Builder
	for s := bufio.NewScanner(res.Body); s.Scan(); {
		var l struct {
			Model      string  `json:"model"`
			Message    message `json:"message"`
			Done       bool    `json:"done"`
			DoneReason string  `json:"done_reason"`
			Prompt     int     `json:"prompt_eval_count"`
			Completion int     `json:"eval_count"`
			Error      string  `json:"error"`
		}
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return "", err
		}
		text.WriteString(l.Message.Content)
	}
	return text.String(), nil
}

func bench(b *testing.B, tokens int) {
	prompt := strings.Repeat("word ", 200)
	b.Run("raw", func(b *testing.B) {
		url, client := benchServer(b, tokens), &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
		defer client.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := raw(b.Context(), client, url, prompt); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ours", func(b *testing.B) {
		c := testClient(b, Config{BaseURL: benchServer(b, tokens)})
		v := c.Open(llm.Settings{})
		v.Append(user(prompt))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Send(b.Context(), func(string) {}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkTokens: a streamed answer of 2,000 tokens.
func BenchmarkTokens(b *testing.B) { bench(b, 2000) }

// BenchmarkCall: an answer of one token.
func BenchmarkCall(b *testing.B) { bench(b, 1) }
