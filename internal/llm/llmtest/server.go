// Package llmtest is for tests of what calls language models: servers that speak the real
// formats of chat completions, the Messages API and Ollama, with faults on demand, and the
// suite that every provider must pass (Conformance). They serve loopback only.
package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/llm"
)

// Request is a call as the server received it.
type Request struct {
	Number   int // from 1, in order of arrival, repeated calls included
	Header   http.Header
	Path     string
	Remote   string // the client's address; the same means the same connection
	Body     []byte
	Model    string
	Stream   bool
	Usage    bool // stream_options.include_usage
	Messages []Message
	Raw      json.RawMessage // the messages array, byte for byte; of the Messages API, see ParseMessages
	Tools    []string        // names, in order
	Limit    int             // of the answer's tokens; 0 where none is asked for

	NumCtx    int             // tokens of context that the model is to be loaded with; of Ollama alone
	KeepAlive json.RawMessage // how long it is to stay in memory; of Ollama alone
	Think     bool            // it is to think before it answers; likewise
}

// Turn is the number of answers in the request: 0 in the first of a
// conversation. What an assistant said before the first request of a person was
// inherited, and no answer. A handler that decides by it needs no memory.
func (r *Request) Turn() int {
	n, asked := 0, false
	for i := range r.Messages {
		m := &r.Messages[i]
		switch {
		case m.Role == llm.RoleAssistant && asked:
			n++
		case m.Role == llm.RoleUser && (m.Content == nil || *m.Content != opening):
			asked = true
		}
	}
	return n
}

// opening is what a client says first where its server demands that a person begins.
const opening = "(start of the conversation)"

// Handler says how a request is answered. It is called by several goroutines.
type Handler func(r *Request) Answer

// Loop answers like a benchmark of an agent's loop: each of the first turns
// requests of a conversation gets one call of tool with args, in which
// {{turn}} is the turn's number from 1; then comes the text final.
func Loop(turns int, tool, args, final string) Handler {
	return func(r *Request) Answer {
		n := r.Turn() + 1
		if n > turns {
			return Answer{Text: final}
		}
		number := fmt.Sprint(n)
		return Answer{Calls: []llm.ToolCall{{ID: "call_loop_" + number, Name: tool, Arguments: strings.ReplaceAll(args, "{{turn}}", number)}}}
	}
}

// Sequence answers the n-th request with the n-th answer, and further ones
// with the last.
func Sequence(answers ...Answer) Handler {
	return func(r *Request) Answer { return answers[min(r.Number, len(answers))-1] }
}

// Server is a running fake. Its methods are safe for concurrent use.
type Server struct {
	URL string // the base URL, ending in /v1

	// OllamaVersion makes the server an Ollama that is called by its compatible
	// halves; set before the first request.
	OllamaVersion string

	Embed func(string) []float32 // makes embeddings; nil serves none; set before the first request

	handler  Handler
	http     *httptest.Server
	closed   chan struct{}
	mu       sync.Mutex
	seen     []Request
	embedded []string
	finals   finals

	progress Progress
}

// NewServer starts a server that is stopped when the test ends. A nil handler
// is Loop(3, "bash", `{"command":"echo {{turn}}"}`, "done").
func NewServer(tb testing.TB, h Handler) *Server {
	tb.Helper()
	return startServer(tb, h, nil)
}

func startServer(tb testing.TB, h Handler, l net.Listener) *Server {
	tb.Helper()
	if h == nil {
		h = Loop(3, "bash", `{"command":"echo {{turn}}"}`, "done")
	}
	s := &Server{handler: h, closed: make(chan struct{})}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	if l != nil {
		_ = s.http.Listener.Close() // of the real network, and in use by nobody
		s.http.Listener = l
	}
	s.http.Start()
	s.URL = s.http.URL + "/v1"
	tb.Cleanup(func() {
		close(s.closed) // ends stalled answers, which Close would wait for
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Requests returns what was received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Quiet waits until no answer is in progress: where one stalls, until its
// client has closed the connection. It fails when ctx ends before.
func (s *Server) Quiet(ctx context.Context) error { return s.progress.Quiet(ctx) }

func (s *Server) serve(w http.ResponseWriter, hr *http.Request) {
	defer s.progress.Enter()()
	if strings.HasSuffix(hr.URL.Path, "/models") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"model-a","object":"model"},{"id":"model-b","object":"model"}]}`)
		return
	}
	if s.OllamaVersion != "" && hr.URL.Path == "/api/version" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = fmt.Fprintf(w, `{"version":%q}`, s.OllamaVersion)
		return
	}
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the client left
	}
	if s.Embed != nil && strings.HasSuffix(hr.URL.Path, "/embeddings") {
		s.embeddings(w, body)
		return
	}
	f := formatOf(hr.URL.Path)
	r, err := f.parse(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		refused, _ := json.Marshal(f.failed(http.StatusBadRequest, "", fmt.Sprint("cannot parse ", hr.URL.Path, ": ", err))) // plain data
		_, _ = w.Write(refused)
		return
	}
	r.Header, r.Path, r.Remote = hr.Header.Clone(), hr.URL.Path, hr.RemoteAddr
	a, final := s.finals.take(r)
	if !final {
		s.mu.Lock()
		r.Number = len(s.seen) + 1
		s.seen = append(s.seen, *r)
		s.mu.Unlock()
		a = s.handler(r)
	}
	out := &writer{w: w, rc: http.NewResponseController(w), request: hr, closed: s.closed, answer: &a, format: f}
	out.send(r)
}

// format is a vendor's way to write requests and answers.
type format struct {
	parse  func(body []byte) (*Request, error)
	failed func(status int, code, text string) object
	plain  func(*writer, *Request)
	stream func(*writer, *Request)
}

func formatOf(path string) format {
	switch {
	case strings.HasSuffix(path, "/v1/messages"):
		return format{ParseMessages, messagesError, (*writer).messagesPlain, (*writer).messagesStream}
	case strings.HasSuffix(path, "/chat/completions"):
		return format{parseRequest, chatError, (*writer).plain, (*writer).stream}
	}
	unknown := func([]byte) (*Request, error) { return nil, errors.New("nothing is served here") }
	return format{parse: unknown, failed: chatError}
}

func parseRequest(body []byte) (*Request, error) {
	var b struct {
		Model         string          `json:"model"`
		Stream        bool            `json:"stream"`
		MaxTokens     int             `json:"max_tokens"`
		Messages      json.RawMessage `json:"messages"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, err
	}
	r := &Request{Body: body, Model: b.Model, Stream: b.Stream, Usage: b.StreamOptions.IncludeUsage, Raw: b.Messages, Limit: b.MaxTokens}
	for _, t := range b.Tools {
		r.Tools = append(r.Tools, t.Function.Name)
	}
	return r, json.Unmarshal(b.Messages, &r.Messages)
}

// CheckPrefix fails the test where the messages of a request are not those of
// the one before, byte for byte, and more. Requests must be of one
// conversation.
func CheckPrefix(tb testing.TB, requests []Request) {
	tb.Helper()
	for i := 1; i < len(requests); i++ {
		before := bytes.TrimSuffix(requests[i-1].Raw, []byte("]"))
		if !bytes.HasPrefix(requests[i].Raw, before) {
			tb.Errorf("request %d does not begin with the messages of request %d:\n%s\n%s",
				requests[i].Number, requests[i-1].Number, requests[i-1].Raw, requests[i].Raw)
		}
	}
}

// Breaks counts the requests whose messages are not those of the one before,
// byte for byte, and more. Requests must be of one conversation.
func Breaks(requests []Request) (n int) {
	for i := 1; i < len(requests); i++ {
		if !bytes.HasPrefix(requests[i].Raw, bytes.TrimSuffix(requests[i-1].Raw, []byte("]"))) {
			n++
		}
	}
	return n
}

// wait waits for d, or until the client left or the server stops; it reports
// whether the answer goes on.
func (o *writer) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.request.Context().Done():
	case <-o.closed:
	}
	return false
}
