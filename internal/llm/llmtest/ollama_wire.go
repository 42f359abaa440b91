package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/llm"
)

// ollamaRequest is a request as Ollama declares it. Source: api.ChatRequest.
type ollamaRequest struct {
	Model     string          `json:"model"`
	Messages  json.RawMessage `json:"messages"`
	Stream    *bool           `json:"stream"`
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

type ollamaMessage struct {
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

// strictly decodes one JSON value that has no field which into has not.
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

// ParseOllama reads a request to /api/chat as Ollama does, only without its
// patience: what it would ignore, or do in silence, is an error. A request
// without messages loads a model, and need not stream.
func ParseOllama(body []byte) (*Request, error) {
	var c ollamaRequest
	if err := strictly(body, &c); err != nil {
		return nil, err
	}
	var all []json.RawMessage
	if err := json.Unmarshal(c.Messages, &all); err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	if err := c.check(len(all) == 0); err != nil {
		return nil, err
	}
	r := &Request{Body: body, Model: c.Model, Stream: *c.Stream, Usage: true, Raw: c.Messages, Limit: c.Options.NumPredict,
		NumCtx: c.Options.NumCtx, KeepAlive: c.KeepAlive, Think: len(c.Think) > 0 && string(c.Think) != "false"}
	for _, t := range c.Tools {
		if t.Type != "function" || t.Function.Name == "" || t.Function.Parameters["type"] != "object" {
			return nil, fmt.Errorf("tool %+v", t)
		}
		r.Tools = append(r.Tools, t.Function.Name)
	}
	for _, raw := range all {
		m, err := parseOllamaMessage(raw)
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", raw, err)
		}
		r.Messages = append(r.Messages, m)
	}
	return r, nil
}

// check reports what Ollama would not take as it is meant.
func (c *ollamaRequest) check(load bool) error {
	var alive any
	switch err := json.Unmarshal(c.KeepAlive, &alive); {
	case err != nil:
		return fmt.Errorf("keep_alive: %w", err)
	case c.Model == "" || strings.HasPrefix(c.Model, "ollama/"):
		return fmt.Errorf("model %q", c.Model)
	case c.Stream == nil || !*c.Stream && !load:
		return errors.New("not streaming")
	case c.Options.NumCtx < 1:
		return errors.New("no num_ctx")
	case c.Truncate == nil || *c.Truncate || c.Shift == nil || *c.Shift:
		return errors.New("silent truncation is allowed")
	}
	if text, ok := alive.(string); ok {
		if _, err := time.ParseDuration(text); err != nil {
			return err
		}
	}
	return nil
}

func parseOllamaMessage(raw []byte) (out Message, err error) {
	var m ollamaMessage
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
	out = Message{Role: m.Role, Content: m.Content, Images: images, Reasoning: m.Thinking, ToolCallID: m.ToolCallID}
	for i, call := range m.ToolCalls {
		var args map[string]json.RawMessage
		if err := json.Unmarshal(call.Function.Arguments, &args); err != nil || args == nil {
			return out, fmt.Errorf("arguments %s are no object", call.Function.Arguments)
		}
		if call.Function.Index == nil || *call.Function.Index != i {
			return out, errors.New("index")
		}
		out.ToolCalls = append(out.ToolCalls, ToolCall{ID: call.ID, Type: "function"})
		f := &out.ToolCalls[i].Function
		f.Name, f.Arguments = call.Function.Name, string(call.Function.Arguments)
	}
	return out, nil
}

// unescaped is v as JSON and a line end, as Ollama writes it.
func unescaped(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a test's own mistake
	}
	return b.Bytes()
}

// ollamaLine is a line of the stream with message fields, already encoded, and more.
func (o *writer) ollamaLine(r *Request, message string, done bool, more string) []byte {
	model := r.Model
	if o.answer.Model != "" {
		model = o.answer.Model
	}
	return fmt.Appendf(nil, `{"model":%q,"created_at":"2026-11-21T08:00:00.123456789Z","message":{"role":"assistant"%s},"done":%t%s}`+"\n",
		model, message, done, more)
}

func field(name, text string) string {
	return `,"` + name + `":` + string(bytes.TrimSpace(unescaped(text)))
}

// ollamaCalls are the calls as Ollama writes them: all of one in one line,
// arguments as an object. What a model cannot have made Ollama send comes as a
// string, as from servers that stand in for it.
func ollamaCalls(all []llm.ToolCall) string {
	var b strings.Builder
	for i, c := range all {
		args := c.Arguments
		if trimmed := strings.TrimSpace(args); !json.Valid([]byte(args)) || trimmed[0] != '{' {
			args = string(bytes.TrimSpace(unescaped(args)))
		}
		id := ""
		if c.ID != "" {
			id = fmt.Sprintf(`"id":%q,`, c.ID)
		}
		fmt.Fprintf(&b, `%s{%s"function":{"index":%d,"name":%q,"arguments":%s}}`, strings.Repeat(",", min(i, 1)), id, i, c.Name, args)
	}
	return `,"tool_calls":[` + b.String() + `]`
}

// ollamaEnd is what the last line has besides the message.
func (a *Answer) ollamaEnd() string {
	reason := a.Finish
	if reason == "" {
		reason = "stop"
	}
	end := fmt.Sprintf(`,"done_reason":%q,"total_duration":4883583458,"load_duration":1334875`, reason)
	if u := a.Usage; u != nil {
		end += fmt.Sprintf(`,"prompt_eval_count":%d,"prompt_eval_cached_count":%d,"prompt_eval_duration":130079000,"eval_count":%d,"eval_duration":5000`,
			u.PromptTokens, u.CachedTokens, u.CompletionTokens)
	}
	return end
}

const ndjson = "application/x-ndjson"

// ollamaPlain answers in one document.
func (o *writer) ollamaPlain(r *Request) {
	o.w.Header().Set("Content-Type", ndjson)
	a := o.answer
	m := field("content", a.Text)
	if a.Reasoning != "" {
		m += field("thinking", a.Reasoning)
	}
	if len(a.Calls) > 0 {
		m += ollamaCalls(a.Calls)
	}
	o.raw(o.ollamaLine(r, m, true, a.ollamaEnd()))
}

// ollamaStream answers line by line. Source: api.ChatResponse and
// streamResponse of Ollama.
func (o *writer) ollamaStream(r *Request) {
	o.w.Header().Set("Content-Type", ndjson)
	a := o.answer
	ok := true
	say := func(message string) {
		if ok = ok && (a.Delay == 0 || o.wait(a.Delay)); ok {
			ok = o.raw(o.ollamaLine(r, message, false, ""))
		}
	}
	for _, p := range pieces(a.Reasoning, a.Piece) {
		say(field("content", "") + field("thinking", p))
	}
	for _, p := range pieces(a.Text, a.Piece) {
		say(field("content", p))
	}
	for i := range a.Calls {
		say(field("content", "") + ollamaCalls(a.Calls[i:i+1]))
	}
	if ok {
		o.raw(o.ollamaLine(r, field("content", ""), true, a.ollamaEnd()))
	}
}
