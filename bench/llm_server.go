package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// vendorAnswer writes a whole answer as a vendor streams it.
type vendorAnswer struct {
	contentType string
	write       func(b []byte, pieces []string) []byte
}

// vendorAnswers are the answers by the paths that they are asked for at.
func vendorAnswers() map[string]vendorAnswer {
	return map[string]vendorAnswer{
		openaiPath:    {"text/event-stream; charset=utf-8", openaiAnswer},
		anthropicPath: {"text/event-stream; charset=utf-8", anthropicAnswer},
		ollamaPath:    {"application/x-ndjson", ollamaAnswer},
	}
}

// The paths of the calls below the base address.
const (
	openaiPath    = "/chat/completions"
	anthropicPath = "/v1/messages"
	ollamaPath    = "/api/chat"
)

// answerPieces are the tokens of an answer: some are escaped in JSON, and some
// are not ASCII.
func answerPieces(n int) []string {
	some := []string{"The", " model", " answers", " in", " small", " pieces", ",", " as", " vendors", " do", ":\n", "\tif", " x", " ==", " \"", "答え", "です", "\" {", ".", "\n\n"}
	pieces := make([]string, n)
	for i := range pieces {
		pieces[i] = some[i%len(some)]
	}
	return pieces
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a text always encodes
	return b
}

// openaiAnswer is a stream of chat completions.
// Source: CreateChatCompletionStreamResponse of OpenAI's API description.
func openaiAnswer(b []byte, pieces []string) []byte {
	const head = `data: {"id":"chatcmpl-DuLdNvsdmTNPbya2tqjr8GbYubTqm","object":"chat.completion.chunk","created":1782321901,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_4fa7959453",`
	b = append(b, head+`"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"q1"}`+"\n\n"...)
	for _, p := range pieces {
		b = fmt.Appendf(b, head+`"choices":[{"index":0,"delta":{"content":%s},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"kX9d2"}`+"\n\n", quoted(p))
	}
	b = append(b, head+`"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null,"obfuscation":"a"}`+"\n\n"...)
	return fmt.Appendf(b, head+`"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"obfuscation":""}`+"\n\ndata: [DONE]\n\n", len(pieces), 900+len(pieces))
}

// anthropicAnswer is a stream of the Messages API.
// Source: MessageStreamEvent of Anthropic's API description.
func anthropicAnswer(b []byte, pieces []string) []byte {
	b = append(b, "event: message_start\ndata: "+`{"type":"message_start","message":{"model":"claude-sonnet-4-5","id":"msg_01DRqVzRFyE3PyL4zUBZjzqT","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":900,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}        }`+"\n\n"...)
	b = append(b, "event: content_block_start\ndata: "+`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}   }`+"\n\nevent: ping\ndata: "+`{"type": "ping"}`+"\n\n"...)
	for _, p := range pieces {
		b = fmt.Appendf(b, "event: content_block_delta\ndata: "+`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}            }`+"\n\n", quoted(p))
	}
	b = append(b, "event: content_block_stop\ndata: "+`{"type":"content_block_stop","index":0           }`+"\n\n"...)
	return fmt.Appendf(b, "event: message_delta\ndata: "+`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":900,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d}     }`+"\n\nevent: message_stop\ndata: "+`{"type":"message_stop"  }`+"\n\n", len(pieces))
}

// ollamaAnswer is a stream of /api/chat. Source: api.ChatResponse of Ollama.
func ollamaAnswer(b []byte, pieces []string) []byte {
	for i, p := range pieces {
		b = fmt.Appendf(b, `{"model":"qwen3:30b","created_at":"2026-11-21T08:00:00.%09dZ","message":{"role":"assistant","content":%s},"done":false}`+"\n", i, quoted(p))
	}
	return fmt.Appendf(b, `{"model":"qwen3:30b","created_at":"2026-11-21T08:01:00.1234Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":4935886791,"load_duration":534986708,"prompt_eval_count":900,"prompt_eval_duration":107345000,"eval_count":%d,"eval_duration":4289432000}`+"\n", len(pieces))
}

// llmServer answers calls of all vendors: those below /N with answers of N
// tokens, as fast as the client reads.
type llmServer struct {
	known map[string]vendorAnswer
	mu    sync.Mutex
	ready map[string][]byte // by path
}

func (s *llmServer) answer(p string) (body []byte, contentType string, err error) {
	number, rest, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	n, err := strconv.Atoi(number)
	v, ok := s.known["/"+rest]
	if err != nil || !ok || n < 1 || n > 1e6 {
		return nil, "", fmt.Errorf("nothing is served at %s", p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready[p] == nil {
		s.ready[p] = v.write(nil, answerPieces(n))
	}
	return s.ready[p], v.contentType, nil
}

func (s *llmServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, contentType, err := s.answer(path.Clean(r.URL.Path))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if n, err := io.Copy(io.Discard, r.Body); err != nil || n == 0 || n != r.ContentLength {
		http.Error(w, fmt.Sprintf("%d bytes of %d came: %v", n, r.ContentLength, err), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Transfer-Encoding", "chunked") // as where the length is not known
	_, _ = w.Write(body)                           // who does not read it, finds out
}

// llmServerMain serves until standard input ends, which it does with the
// process that started this one. Its base address is what it prints.
func llmServerMain(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: &llmServer{known: vendorAnswers(), ready: map[string][]byte{}}, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = srv.Close()
	}()
	fmt.Println("http://" + l.Addr().String())
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// startLLMServer starts the server in a process of its own, so that its
// processor time is nobody else's; stop ends it.
func startLLMServer(ctx context.Context, self string) (base string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, self, "llm-server")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = in.Close()
		_ = cmd.Wait() // how it ends says nothing about what was measured
	}
	base, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the server of answers did not start: %w", err)
	}
	return strings.TrimSpace(base), stop, nil
}
