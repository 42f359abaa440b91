package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	deltaBytes  = 64  // of one streamed piece of an answer
	outputBytes = 999 // width of the number that a call's command prints
	idPrefix    = "turn_"
	finalText   = "All turns are done."
)

// server is a model without a model: it answers the first turns requests of its
// one conversation with a shell call each and every later one with a text, and
// keeps what each turn cost the client. It speaks the streaming form of chat
// completions (platform.openai.com/docs/api-reference/chat).
type server struct {
	turns   int
	planned bool // the client is led by a plan; set before it begins
	http    *http.Server
	base    string // what clients take for base_url
	done    chan error

	mu       sync.Mutex // one request at a time; also makes the figures safe to read
	talk     conversation
	called   bool      // the latest answer called the tool
	resulted bool      // the result of the plan's subtask was given
	answered time.Time // just before the last event of the latest answer; zero before the first
	figures  figures
}

// figures are what the server saw of one conversation.
type figures struct {
	Requests  int             // with tools: turns and final texts
	Overheads []time.Duration // from the end of a tool call's answer until the next request was read, in order
	Kept      int             // requests whose messages begin with all bytes of the request before
	Compared  int             // requests that had one before
	Body      int             // bytes of the longest request
}

// listen starts a server on a free port of the loopback interface.
func listen(ctx context.Context, turns int) (*server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{turns: turns, base: "http://" + l.Addr().String() + "/v1", done: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

// close ends the server and returns what it saw.
func (s *server) close() (figures, error) {
	err := s.http.Close()
	if e := <-s.done; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.figures, err
}

func (s *server) complete(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := s.talk.read(r.Body, r.ContentLength)
	now := time.Now()
	if err != nil {
		refuse(w, err)
		return
	}
	kept, err := s.talk.take(body)
	if err != nil {
		refuse(w, err)
		return
	}
	if s.talk.tool == "" { // a side request, for a title or a summary
		s.stream(w, answer{text: finalText}, false)
		return
	}
	f := &s.figures
	if f.Requests > 0 {
		f.Compared++
		if kept {
			f.Kept++
		}
	}
	if s.called && len(f.Overheads) < s.turns {
		f.Overheads = append(f.Overheads, now.Sub(s.answered))
	}
	f.Requests++
	f.Body = max(f.Body, len(body))
	var a answer
	a, s.called = s.next()
	s.stream(w, a, true)
}

func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": err.Error(), "type": "invalid_request_error"}}) // the client left
}

// answer is a text, and a call where id is set.
type answer struct{ text, id, name, args string }

// callOf is the call of turn k: about 1 KB of output, another each turn, with
// shell builtins alone so that a turn costs one shell and nothing more.
func callOf(tool string, k int) answer {
	command := fmt.Sprintf(`printf 'turn-%d %%0%dd\n' 0`, k, outputBytes)
	args, _ := json.Marshal(map[string]string{"command": command}) // strings always encode
	return answer{id: idPrefix + strconv.Itoa(k), name: tool, args: string(args)}
}

// stream sends an answer in pieces of deltaBytes. The clock of the turn starts
// just before the last event leaves.
func (s *server) stream(w http.ResponseWriter, a answer, counts bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	event := func(choices []any, usage any) {
		m := map[string]any{"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 0, "model": s.talk.model, "choices": choices}
		if s.talk.usage {
			m["usage"] = usage
		}
		b, _ := json.Marshal(m)              // plain maps and strings always encode
		_, _ = w.Write([]byte("data: "))     // a client that left is seen by the
		_, _ = w.Write(append(b, "\n\n"...)) // one that started it
		_ = out.Flush()
	}
	delta := func(d map[string]any, finish any) {
		event([]any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}, nil)
	}
	finish := "stop"
	delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, piece := range pieces(a.text) {
		delta(map[string]any{"content": piece}, nil)
	}
	if a.id != "" {
		finish = "tool_calls"
		part := func(more map[string]any) {
			more["index"] = 0
			delta(map[string]any{"tool_calls": []any{more}}, nil)
		}
		part(map[string]any{"id": a.id, "type": "function", "function": map[string]string{"name": a.name, "arguments": ""}})
		for _, piece := range pieces(a.args) {
			part(map[string]any{"function": map[string]string{"arguments": piece}})
		}
	}
	delta(map[string]any{}, finish)
	if s.talk.usage {
		in, more := len(s.talk.messages)/4+1, (len(a.text)+len(a.args))/4+1
		event([]any{}, map[string]int{"prompt_tokens": in, "completion_tokens": more, "total_tokens": in + more})
	}
	if counts {
		s.answered = time.Now()
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
	_ = out.Flush()
}

func pieces(s string) []string {
	var all []string
	for len(s) > deltaBytes {
		all, s = append(all, s[:deltaBytes]), s[deltaBytes:]
	}
	if s != "" {
		all = append(all, s)
	}
	return all
}

// conversation is the client's latest request. Two buffers take turns, so that
// a long conversation costs the server a comparison and no garbage.
type conversation struct {
	buf      [2]bytes.Buffer
	latest   int
	messages []byte // of the latest request: the array without its closing bracket; nil before the first
	before   []byte // what stood before the array
	model    string
	tool     string // of the latest request: the offered shell tool, "" where it offers no tool
	usage    bool
	turn     int // number of the latest call in the conversation
}

// read reads a request into the buffer that the latest one does not use. size
// is -1 where the client did not say.
func (c *conversation) read(body io.Reader, size int64) ([]byte, error) {
	b := &c.buf[1-c.latest]
	b.Reset()
	if size > 0 {
		b.Grow(int(size) + bytes.MinRead)
	}
	_, err := b.ReadFrom(body)
	return b.Bytes(), err
}

// take makes body the latest request and reports whether its messages begin
// with all bytes of the messages before. Where they do, only what is new is parsed.
func (c *conversation) take(body []byte) (kept bool, err error) {
	start := len(c.before)
	if c.messages != nil && bytes.HasPrefix(body, c.before) && bytes.HasPrefix(body[start:], c.messages) {
		n := start + len(c.messages)
		end, turn, err := lastCall(body[n:], c.turn)
		if err != nil {
			return false, err
		}
		c.keep(body, start, n+end, turn)
		return true, nil
	}
	var r struct {
		Model         string
		Stream        bool
		StreamOptions struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Tools []struct {
			Function struct{ Name string }
		}
		Messages json.RawMessage
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return false, fmt.Errorf("the request is not JSON: %w", err)
	}
	if !r.Stream {
		return false, errors.New("only streaming is spoken here: set stream")
	}
	c.model, c.usage, c.tool = r.Model, r.StreamOptions.Usage, ""
	if len(r.Tools) == 0 {
		return false, nil
	}
	for _, t := range r.Tools {
		if t.Function.Name == "shell" || t.Function.Name == "sh" {
			c.tool = t.Function.Name
		}
	}
	if c.tool == "" {
		return false, errors.New("no tool named shell or sh is offered")
	}
	start = bytes.Index(body, r.Messages) // the array is long and occurs once
	if start < 0 || len(r.Messages) < 2 || r.Messages[0] != '[' {
		return false, errors.New("messages is not an array")
	}
	_, turn, err := lastCall(r.Messages[1:], 0)
	if err != nil {
		return false, err
	}
	kept = c.messages != nil && bytes.HasPrefix(r.Messages, c.messages)
	c.keep(body, start, start+len(r.Messages)-1, turn)
	return kept, nil
}

func (c *conversation) keep(body []byte, start, end, turn int) {
	c.latest = 1 - c.latest
	c.before, c.messages, c.turn = body[:start], body[start:end], turn
}

// lastCall reads the rest of an array of messages and returns where it closes
// and the number of the last call in it, or turn where there is none. The number
// is taken from the call's id, because a client whose window is full sends fewer
// messages than there were turns.
func lastCall(rest []byte, turn int) (end, last int, err error) {
	comma := len(rest) - len(bytes.TrimLeft(rest, ", \n"))
	d := json.NewDecoder(io.MultiReader(strings.NewReader("["), bytes.NewReader(rest[comma:])))
	if _, err := d.Token(); err != nil {
		return 0, 0, err
	}
	for d.More() {
		var m struct {
			ToolCalls []struct{ ID string } `json:"tool_calls"`
		}
		if err := d.Decode(&m); err != nil {
			return 0, 0, fmt.Errorf("messages: %w", err)
		}
		for _, call := range m.ToolCalls {
			if n, err := strconv.Atoi(strings.TrimPrefix(call.ID, idPrefix)); err == nil {
				turn = n
			}
		}
	}
	if _, err := d.Token(); err != nil {
		return 0, 0, fmt.Errorf("messages: %w", err)
	}
	return comma + int(d.InputOffset()) - len("[") - len("]"), turn, nil
}
