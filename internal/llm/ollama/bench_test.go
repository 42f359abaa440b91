package ollama

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"toritsugi/internal/llm"
)

// streamed is an answer of n tokens as Ollama sends it, and its text.
func streamed(n int) (body []byte, text string) {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"model":"qwen3:30b","created_at":"2026-11-21T08:00:00.%09dZ","message":{"role":"assistant","content":" token%d"},"done":false}`+"\n", i, i)
		text += fmt.Sprint(" token", i)
	}
	b.WriteString(`{"model":"qwen3:30b","created_at":"2026-11-21T08:00:01Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",` +
		`"total_duration":4883583458,"load_duration":1334875,"prompt_eval_count":26,"prompt_eval_duration":130079000,"eval_count":9,"eval_duration":4232710000}` + "\n")
	return b.Bytes(), text
}

// bare makes a call with net/http, bufio and encoding/json and nothing else:
// the cost that any client has.
func bare(hc *http.Client, url string, body []byte, onText func(string)) (string, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := hc.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	var text strings.Builder
	r := bufio.NewReader(res.Body)
	for {
		data, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
		var l struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
			Done bool `json:"done"`
		}
		if err := json.Unmarshal(data, &l); err != nil {
			return "", err
		}
		text.WriteString(l.Message.Content)
		onText(l.Message.Content)
	}
}

// BenchmarkOverhead compares whole calls over loopback: by the bare client, and
// by this one, with the same body to the same server. One token shows the cost
// of a call, two thousand that of a token.
func BenchmarkOverhead(b *testing.B) {
	for _, n := range []int{1, 2000} {
		answer, want := streamed(n)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/x-ndjson")
			_, _ = w.Write(answer)
		}))
		b.Cleanup(srv.Close)
		for _, prompt := range []int{200, 20_000} { // words; the longer body is sent in parts
			c := testClient(b, Config{BaseURL: srv.URL, HTTP: srv.Client(), NumCtx: 1 << 17})
			v := c.Open(llm.Settings{}).(*conversation)
			v.Append(user(strings.Repeat("word ", prompt)))
			sent := append(bytes.Clone(v.B), v.tail(b.Context())...)
			b.Run(fmt.Sprintf("tokens=%d/words=%d/bare", n, prompt), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if text, err := bare(srv.Client(), srv.URL+"/api/chat", sent, func(string) {}); err != nil || text != want {
						b.Fatal(err, len(text))
					}
				}
			})
			b.Run(fmt.Sprintf("tokens=%d/words=%d/client", n, prompt), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if reply, err := v.Send(b.Context(), func(string) {}); err != nil || reply.Message.Content != want {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
