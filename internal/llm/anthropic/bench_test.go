package anthropic

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"toritsugi/internal/llm"
)

func sse(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		kind, _, _ := strings.Cut(strings.TrimPrefix(l, `{"type":"`), `"`)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, l)
	}
	return b.String()
}

const (
	startEvent = `{"type":"message_start","message":{"model":"claude-test","id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`
	textStart  = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textStop   = `{"type":"content_block_stop","index":0}`
	endEvent   = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":42}}`
	stopEvent  = `{"type":"message_stop"}`
)

func textDelta(s string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}            }`, s)
}

// BenchmarkCall compares a call of this client with a bare http.Client that
// reads the same bytes: streams that are flushed token by token, as servers
// send them, and answers that come at once.
func BenchmarkCall(b *testing.B) {
	for _, tokens := range []int{1, 1000} {
		for _, flush := range []bool{true, false} {
			events := []string{sse(startEvent, textStart)}
			for i := range tokens {
				events = append(events, sse(textDelta(fmt.Sprintf(" word%d", i))))
			}
			events = append(events, sse(textStop, endEvent, stopEvent))
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				rc := http.NewResponseController(w)
				for _, e := range events {
					_, _ = io.WriteString(w, e)
					if flush {
						_ = rc.Flush()
					}
				}
			}))
			b.Cleanup(srv.Close)
			name := fmt.Sprintf("tokens=%d/flushed=%t", tokens, flush)
			v := testClient(b, Config{BaseURL: srv.URL}).Open(llm.Settings{})
			v.Append(llm.Message{Role: llm.RoleUser, Content: strings.Repeat("Tell me more. ", 500)})
			b.Run(name+"/client", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.Send(b.Context(), func(string) {}); err != nil {
						b.Fatal(err)
					}
				}
			})
			body := bytes.Join(v.(*conversation).request(b.Context()), nil)
			hc := &http.Client{Transport: &http.Transport{}}
			b.Cleanup(hc.CloseIdleConnections)
			b.Run(name+"/bare", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					res, err := hc.Post(srv.URL+"/v1/messages", "application/json", bytes.NewReader(body))
					if err != nil {
						b.Fatal(err)
					}
					_, err = io.Copy(io.Discard, res.Body)
					if err != nil || res.Body.Close() != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
