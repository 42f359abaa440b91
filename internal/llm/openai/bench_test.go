package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"toritsugi/internal/llm"
)

// stream is an answer of n events as OpenAI sends them.
func stream(n int) string {
	const head = `data: {"id":"chatcmpl-DuLdNvsdmTNPbya2tqjr8GbYubTqm","object":"chat.completion.chunk","created":1782321901,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_4fa7959453",`
	delta := head + `"choices":[{"index":0,"delta":{"content":" some"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"kX9d2"}` + "\n\n"
	return head + `"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n" +
		strings.Repeat(delta, n) +
		head + `"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}` + "\n\n" +
		head + `"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":0}}}` + "\n\ndata: [DONE]\n\n"
}

// bare makes a call with net/http and encoding/json and nothing else: the cost
// that any client has.
func bare(hc *http.Client, url string, body []byte, onText func(string)) (string, error) {
	req, err := http.NewRequest(http.MethodPost, url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := hc.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var text strings.Builder
	s := bufio.NewScanner(res.Body)
	for s.Scan() {
		data, found := bytes.CutPrefix(s.Bytes(), []byte("data: "))
		if !found || string(data) == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string      `json:"content"`
					ToolCalls []callDelta `json:"tool_calls"`
				} `json:"delta"`
				FinishReason string `json:"finish_reason"`
			} `json:"choices"`
			Usage *usage `json:"usage"`
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return "", err
		}
		for _, c := range chunk.Choices {
			text.WriteString(c.Delta.Content)
			onText(c.Delta.Content)
		}
	}
	return text.String(), s.Err()
}

// BenchmarkOverhead compares whole calls over loopback: by the bare client, and
// by this one. One event shows the cost of a call, a thousand that of a token.
func BenchmarkOverhead(b *testing.B) {
	for _, n := range []int{1, 1000} {
		body := stream(n)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, body)
		}))
		b.Cleanup(srv.Close)
		c, err := newClient(Config{Provider: "p", Model: "m", BaseURL: srv.URL})
		if err != nil {
			b.Fatal(err)
		}
		v := c.Open(llm.Settings{})
		v.Append(llm.Message{Role: llm.RoleUser, Content: strings.Repeat("some text ", 1000)})
		sent := append([]byte(`{"model":"m","stream":true,"messages":[`), append(v.Serialized(), "]}"...)...)
		want := strings.Repeat(" some", n)
		b.Run(fmt.Sprintf("bare-%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if text, err := bare(srv.Client(), srv.URL, sent, func(string) {}); err != nil || text != want {
					b.Fatal(err, len(text))
				}
			}
		})
		b.Run(fmt.Sprintf("client-%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if reply, err := v.Send(b.Context(), func(string) {}); err != nil || reply.Message.Content != want {
					b.Fatal(err)
				}
			}
		})
	}
}
