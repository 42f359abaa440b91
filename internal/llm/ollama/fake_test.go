package ollama

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// fake is a server that takes what Ollama takes, refuses everything else, and
// answers in Ollama's words. It serves loopback only.
type fake struct {
	URL    string
	answer llmtest.Handler
	closed chan struct{}

	mu   sync.Mutex
	seen []llmtest.Request
	bad  []error // requests that were refused

	progress llmtest.Progress
}

func newFake(tb testing.TB, h llmtest.Handler) *fake {
	tb.Helper()
	f := &fake{answer: h, closed: make(chan struct{})}
	srv := httptest.NewServer(http.HandlerFunc(f.serve))
	f.URL = srv.URL
	tb.Cleanup(func() {
		close(f.closed)
		srv.CloseClientConnections()
		srv.Close()
		for _, err := range f.bad {
			tb.Errorf("a request that is not Ollama's: %v", err)
		}
	})
	return f
}

func (f *fake) Requests() []llmtest.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

func (f *fake) serve(w http.ResponseWriter, hr *http.Request) {
	defer f.progress.Enter()()
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the client left
	}
	r, err := parseChat(body)
	if err == nil && (hr.URL.Path != "/api/chat" || hr.Method != http.MethodPost || hr.Header.Get("Content-Type") != "application/json") {
		err = fmt.Errorf("%s %s with content type %q", hr.Method, hr.URL.Path, hr.Header.Get("Content-Type"))
	}
	if err != nil {
		f.mu.Lock()
		f.bad = append(f.bad, fmt.Errorf("%w: %s", err, body))
		f.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.Header, r.Path, r.Remote = hr.Header.Clone(), hr.URL.Path, hr.RemoteAddr
	f.mu.Lock()
	r.Number = len(f.seen) + 1
	f.seen = append(f.seen, *r)
	f.mu.Unlock()
	a := f.answer(r)
	out := &answerer{w: w, rc: http.NewResponseController(w), left: hr.Context().Done(), closed: f.closed, a: &a, model: r.Model}
	out.send()
}

// chatRequest is a request as Ollama declares it. Source: api.ChatRequest.
type chatRequest struct {
	Model     string          `json:"model"`
	Messages  json.RawMessage `json:"messages"`
	Stream    *bool           `json:"stream"`
	Format    json.RawMessage `json:"format"`
	KeepAlive json.RawMessage `json:"keep_alive"`
	Think     json.RawMessage `json:"think"`
	Truncate  *bool           `json:"truncate"`
	Shift     *bool           `json:"shift"`
	Options   struct {
		NumCtx      int      `json:"num_ctx"`
		NumPredict  int      `json:"num_predict"`
		Temperature *float64 `json:"temperature"`
	} `json:"options"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string         `json:"name"`
			Description string         `json:"description"`
			Parameters  map[string]any `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

type chatMessage struct {
	Role       string   `json:"role"`
	Content    *string  `json:"content"`
	Thinking   string   `json:"thinking"`
	Images     []string `json:"images"`
	ToolName   string   `json:"tool_name"`
	ToolCallID string   `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Index     *int            `json:"index"`
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// parseChat reads a request as Ollama does, only without its patience.
func parseChat(body []byte) (*llmtest.Request, error) {
	var c chatRequest
	if err := strictly(body, &c); err != nil {
		return nil, err
	}
	var alive any
	switch err := json.Unmarshal(c.KeepAlive, &alive); {
	case err != nil:
		return nil, fmt.Errorf("keep_alive: %w", err)
	case c.Model == "" || strings.HasPrefix(c.Model, "ollama/"):
		return nil, fmt.Errorf("model %q", c.Model)
	case c.Stream == nil || !*c.Stream:
		return nil, errors.New("not streaming")
	case c.Options.NumCtx < 1:
		return nil, errors.New("no num_ctx")
	case c.Truncate == nil || *c.Truncate || c.Shift == nil || *c.Shift:
		return nil, errors.New("silent truncation is allowed")
	}
	if text, ok := alive.(string); ok {
		if _, err := time.ParseDuration(text); err != nil {
			return nil, err
		}
	}
	if len(c.Format) > 0 && c.Format[0] != '{' {
		return nil, fmt.Errorf("format %s", c.Format)
	}
	r := &llmtest.Request{Body: body, Model: c.Model, Stream: true, Usage: true, Raw: c.Messages, Schema: c.Format, Limit: c.Options.NumPredict}
	for _, t := range c.Tools {
		if t.Type != "function" || t.Function.Name == "" || t.Function.Parameters["type"] != "object" {
			return nil, fmt.Errorf("tool %+v", t)
		}
		r.Tools = append(r.Tools, t.Function.Name)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(c.Messages, &all); err != nil {
		return nil, err
	}
	for _, raw := range all {
		m, err := parseMessage(raw)
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", raw, err)
		}
		r.Messages = append(r.Messages, m)
	}
	return r, nil
}

func parseMessage(raw []byte) (out llmtest.Message, err error) {
	var m chatMessage
	if err := strictly(raw, &m); err != nil {
		return out, err
	}
	if !slices.Contains([]string{"system", "user", "assistant", "tool"}, m.Role) || m.Content == nil {
		return out, errors.New("role or content")
	}
	var images []llm.Image
	for _, img := range m.Images {
		raw, err := base64.StdEncoding.Strict().DecodeString(img)
		if err != nil || img == "" {
			return out, fmt.Errorf("image: %w", err)
		}
		kind := http.DetectContentType(raw) // the format has no types
		if bytes.HasPrefix(raw, []byte{0xff, 0xd8}) {
			kind = "image/jpeg"
		}
		images = append(images, llm.Image{MediaType: kind, Data: raw})
	}
	out = llmtest.Message{Role: m.Role, Content: m.Content, Images: images, Reasoning: m.Thinking, ToolCallID: m.ToolCallID}
	for i, call := range m.ToolCalls {
		var args map[string]json.RawMessage
		if err := json.Unmarshal(call.Function.Arguments, &args); err != nil || args == nil {
			return out, fmt.Errorf("arguments %s are no object", call.Function.Arguments)
		}
		if call.Function.Index == nil || *call.Function.Index != i {
			return out, errors.New("index")
		}
		out.ToolCalls = append(out.ToolCalls, llmtest.ToolCall{ID: call.ID, Type: "function"})
		f := &out.ToolCalls[i].Function
		f.Name, f.Arguments = call.Function.Name, string(call.Function.Arguments)
	}
	return out, nil
}

// answerer sends one answer with its faults.
type answerer struct {
	w            http.ResponseWriter
	rc           *http.ResponseController
	left, closed <-chan struct{}
	a            *llmtest.Answer
	model        string
	sent         int
}

func (o *answerer) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.left:
	case <-o.closed:
	}
	return false
}

// raw sends b as far as the faults allow and reports whether to go on.
func (o *answerer) raw(b []byte) bool {
	a := o.a
	stop, stall := a.Cut > 0 && o.sent+len(b) >= a.Cut, a.Stall > 0 && o.sent+len(b) >= a.Stall
	if stop {
		b = b[:a.Cut-o.sent]
	} else if stall {
		b = b[:a.Stall-o.sent]
	}
	o.sent += len(b)
	if _, err := o.w.Write(b); err != nil || o.rc.Flush() != nil {
		return false
	}
	if stop {
		panic(http.ErrAbortHandler) // the documented way to break the connection
	}
	if stall {
		o.wait(time.Hour)
	}
	return !stall
}

func (o *answerer) send() {
	a := o.a
	if a.Stall == llmtest.StallAtOnce {
		o.wait(time.Hour)
		return
	}
	h := o.w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	if a.RetryAfter != "" {
		h.Set("Retry-After", a.RetryAfter)
	}
	switch {
	case a.Body != "":
		h.Set("Content-Type", a.ContentType)
		o.w.WriteHeader(max(a.Status, http.StatusOK))
		o.raw([]byte(a.Body))
	case a.Status != 0 && a.Status != http.StatusOK:
		h.Set("Content-Type", "application/json; charset=utf-8")
		o.w.WriteHeader(a.Status)
		o.raw(encoded(map[string]any{"error": strings.TrimPrefix(a.ErrorCode+": "+a.ErrorText, ": ")}))
	default:
		o.stream()
	}
}

func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b) // a line end follows, as in the stream
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a test's own mistake
	}
	return b.Bytes()
}

// line is a line of the stream with message fields, already encoded, and more.
func (o *answerer) line(message string, done bool, more string) []byte {
	if o.a.Model != "" {
		o.model = o.a.Model
	}
	return fmt.Appendf(nil, `{"model":%q,"created_at":"2026-11-21T08:00:00.123456789Z","message":{"role":"assistant"%s},"done":%t%s}`+"\n",
		o.model, message, done, more)
}

func text(field, s string) string { return `,"` + field + `":` + string(bytes.TrimSpace(encoded(s))) }

// calls are the calls as Ollama writes them: all of one in one line, arguments
// as an object. What a model cannot have made Ollama send comes as a string,
// as from servers that stand in for it.
func calls(all []llm.ToolCall) string {
	var b strings.Builder
	for i, c := range all {
		args := c.Arguments
		if trimmed := strings.TrimSpace(args); !json.Valid([]byte(args)) || trimmed[0] != '{' {
			args = string(bytes.TrimSpace(encoded(args)))
		}
		id := ""
		if c.ID != "" {
			id = fmt.Sprintf(`"id":%q,`, c.ID)
		}
		fmt.Fprintf(&b, `%s{%s"function":{"index":%d,"name":%q,"arguments":%s}}`, strings.Repeat(",", min(i, 1)), id, i, c.Name, args)
	}
	return `,"tool_calls":[` + b.String() + `]`
}

// Source: api.ChatResponse and streamResponse of Ollama.
func (o *answerer) stream() {
	a := o.a
	reason := a.Finish
	if reason == "" {
		reason = "stop"
	}
	end := fmt.Sprintf(`,"done_reason":%q,"total_duration":4883583458,"load_duration":1334875`, reason)
	if u := a.Usage; u != nil {
		end += fmt.Sprintf(`,"prompt_eval_count":%d,"prompt_eval_cached_count":%d,"prompt_eval_duration":130079000,"eval_count":%d,"eval_duration":5000`,
			u.PromptTokens, u.CachedTokens, u.CompletionTokens)
	}
	if a.Plain {
		m := text("content", a.Text)
		if a.Reasoning != "" {
			m += text("thinking", a.Reasoning)
		}
		if len(a.Calls) > 0 {
			m += calls(a.Calls)
		}
		o.raw(o.line(m, true, end))
		return
	}
	ok := true
	say := func(message string) {
		if ok = ok && (a.Delay == 0 || o.wait(a.Delay)); ok {
			ok = o.raw(o.line(message, false, ""))
		}
	}
	for _, p := range pieces(a.Reasoning, a.Piece) {
		say(text("content", "") + text("thinking", p))
	}
	for _, p := range pieces(a.Text, a.Piece) {
		say(text("content", p))
	}
	for i := range a.Calls {
		say(text("content", "") + calls(a.Calls[i:i+1]))
	}
	if ok {
		o.raw(o.line(text("content", ""), true, end))
	}
}

// pieces cuts s into parts of at least size bytes that end with a character.
func pieces(s string, size int) []string {
	if size <= 0 {
		size = 16
	}
	var out []string
	start := 0
	for i := range s {
		if i-start >= size {
			out = append(out, s[start:i])
			start = i
		}
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}
