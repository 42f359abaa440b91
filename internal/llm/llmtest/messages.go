package llmtest

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"toritsugi/internal/llm"
)

// messagesSchema is what a request of Anthropic's Messages API may look like.
// Source: CreateMessageParams of Anthropic's API description, and what its
// documentation added since: cache_control, thinking.
//
//go:embed testdata/messages_request.schema.json
var messagesSchema []byte

// CacheMark is a mark of what the Messages API is to cache.
const CacheMark = `,"cache_control":{"type":"ephemeral"}`

var compiled = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(messagesSchema, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
})

// messagesBlock is a content block of a request, any kind of it.
type messagesBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	Source    struct {
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"` // base64
	} `json:"source"`
	CacheControl json.RawMessage `json:"cache_control"`
}

type messagesTurn struct {
	Role    string          `json:"role"`
	Content []messagesBlock `json:"content"`
}

type messagesBody struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	Limit    int             `json:"max_tokens"`
	System   []messagesBlock `json:"system"`
	Messages []messagesTurn  `json:"messages"`
	Tools    []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

// ParseMessages reads a request of the Messages API and refuses what the API
// refuses. Of the Request, Raw is what grows of the body: from the system field
// or the messages on, without the cache marks among the messages and without
// the brackets that close it, in brackets of its own.
func ParseMessages(body []byte) (*Request, error) {
	schema, err := compiled()
	if err != nil {
		return nil, err
	}
	var document any
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	if err := schema.Validate(document); err != nil {
		return nil, err
	}
	var b messagesBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, err
	}
	if err := b.check(body); err != nil {
		return nil, err
	}
	r := &Request{Body: body, Model: b.Model, Stream: b.Stream, Usage: true, Limit: b.Limit, Messages: b.messages()}
	for _, t := range b.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	r.Raw, err = growing(body)
	return r, err
}

// check are the API's rules that a schema cannot say.
func (b *messagesBody) check(body []byte) error {
	if n := bytes.Count(body, []byte(`"cache_control":{`)); n > 4 {
		return fmt.Errorf("a maximum of 4 blocks with cache_control may be provided, found %d", n)
	}
	if last := len(b.Messages) - 1; b.Messages[0].Role != llm.RoleUser || b.Messages[last].Role != llm.RoleUser {
		return errors.New("the first and the last turn must be the user's")
	}
	tools := map[string]bool{}
	for _, t := range b.Tools {
		if tools[t.Name] {
			return errors.New("tools: tool names must be unique")
		}
		tools[t.Name] = true
	}
	ids := map[string]bool{}
	var open []string
	for i, turn := range b.Messages {
		if i > 0 && turn.Role == b.Messages[i-1].Role {
			return fmt.Errorf("messages.%d: roles must alternate between user and assistant", i)
		}
		for n, block := range turn.Content {
			if err := block.check(turn, n, len(b.Tools) > 0); err != nil {
				return fmt.Errorf("messages.%d.content.%d: %w", i, n, err)
			}
			switch block.Type {
			case "tool_use":
				if ids[block.ID] {
					return fmt.Errorf("messages.%d.content.%d: `tool_use` ids must be unique", i, n)
				}
				ids[block.ID] = true
			case "tool_result":
				if len(open) == 0 {
					return fmt.Errorf("messages.%d: a tool_result without its tool_use, or after other blocks", i)
				}
				was := len(open)
				for k, id := range open {
					if id == block.ToolUseID {
						open = append(open[:k:k], open[k+1:]...)
						break
					}
				}
				if len(open) == was {
					return fmt.Errorf("messages.%d: unexpected tool_use_id %s", i, block.ToolUseID)
				}
			default:
				if turn.Role == llm.RoleUser && len(open) > 0 {
					return fmt.Errorf("messages.%d: tool_use ids without tool_result blocks immediately after: %v", i, open)
				}
			}
		}
		if turn.Role == llm.RoleUser && len(open) > 0 {
			return fmt.Errorf("messages.%d: tool_use ids were found without tool_result blocks: %v", i, open)
		}
		for _, block := range turn.Content {
			if block.Type == "tool_use" {
				open = append(open, block.ID)
			}
		}
	}
	return nil
}

func (b *messagesBlock) check(in messagesTurn, n int, tools bool) error {
	_, genuine := signed(b.Thinking, b.Signature)
	assistants := b.Type == "tool_use" || b.Type == "thinking" || b.Type == "redacted_thinking"
	switch {
	case b.Type == "text" && strings.TrimSpace(b.Text) == "":
		return errors.New("text content blocks must contain non-whitespace text")
	case b.Type != "text" && assistants != (in.Role == llm.RoleAssistant):
		return fmt.Errorf("%s blocks cannot stand in a turn of the %s", b.Type, in.Role)
	case b.Type == "thinking" && !genuine:
		return errors.New("invalid `signature` in `thinking` block")
	case strings.HasSuffix(b.Type, "thinking") && n == len(in.Content)-1:
		return errors.New("the final block in an assistant message cannot be `thinking`")
	case strings.HasPrefix(b.Type, "tool_") && !tools:
		return errors.New("requests which have `tool_use` or `tool_result` blocks in messages must define tools")
	}
	return nil
}

// sign is the signature that the server gives its thinking and wants back; an
// Answer's Opaque is the end of it.
func sign(thinking, opaque string) string {
	signature := "sig-" + base64.StdEncoding.EncodeToString([]byte(thinking))
	if opaque != "" {
		signature += ":" + opaque
	}
	return signature
}

// signed returns the Opaque of a signature and whether it is one of thinking.
func signed(thinking, signature string) (opaque string, ok bool) {
	signature, opaque, _ = strings.Cut(signature, ":")
	return opaque, signature == sign(thinking, "")
}

// messages are the turns in the form that tests know.
func (b *messagesBody) messages() []Message {
	var out []Message
	for _, s := range b.System {
		out = append(out, Message{Role: llm.RoleSystem, Content: &s.Text})
	}
	for _, turn := range b.Messages {
		answer := Message{Role: turn.Role, Content: new(string)}
		for n, block := range turn.Content {
			switch {
			case block.Type == "tool_result":
				text := new(string)
				if json.Unmarshal(block.Content, text) != nil {
					*text = string(block.Content)
				}
				out = append(out, Message{Role: llm.RoleTool, ToolCallID: block.ToolUseID, Content: text})
			case block.Type == "image":
				if n == 0 || out[len(out)-1].Role != llm.RoleUser {
					out = append(out, Message{Role: llm.RoleUser})
				}
				last := &out[len(out)-1]
				last.Images = append(last.Images, llm.Image{MediaType: block.Source.MediaType, Data: block.Source.Data})
			case turn.Role == llm.RoleUser:
				out = append(out, Message{Role: llm.RoleUser, Content: &block.Text})
			case block.Type == "text":
				*answer.Content += block.Text
			case block.Type == "thinking":
				answer.Reasoning += block.Thinking
				answer.Opaque, _ = signed(block.Thinking, block.Signature)
			case block.Type == "tool_use":
				var call ToolCall
				call.ID, call.Type, call.Function.Name, call.Function.Arguments = block.ID, "function", block.Name, string(block.Input)
				answer.ToolCalls = append(answer.ToolCalls, call)
			}
		}
		if turn.Role == llm.RoleAssistant {
			out = append(out, answer)
		}
	}
	return out
}

// growing is the Raw of a request.
func growing(body []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	start := -1
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		at := int(dec.InputOffset()) - len(fmt.Sprintf("%q", key))
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if start < 0 && (key == "system" || key == "messages") {
			start = at
		}
		if key != "messages" {
			continue
		}
		turns := bytes.ReplaceAll(body[at:dec.InputOffset()], []byte(CacheMark), nil)
		raw := append([]byte{'['}, body[start:at]...)
		return append(append(raw, bytes.TrimSuffix(turns, []byte("}]}]"))...), ']'), nil
	}
	return nil, errors.New("no messages")
}

// CloseJSON returns the JSON document that begins with b, closing what b left
// open. b must end between two tokens.
func CloseJSON(b []byte) []byte {
	var open []byte
	text, escaped := false, false
	for _, c := range b {
		switch {
		case escaped:
			escaped = false
		case text && c == '\\':
			escaped = true
		case c == '"':
			text = !text
		case text:
		case c == '{':
			open = append(open, '}')
		case c == '[':
			open = append(open, ']')
		case c == '}' || c == ']':
			open = open[:max(len(open)-1, 0)]
		}
	}
	out := bytes.Clone(b)
	for i := len(open) - 1; i >= 0; i-- {
		out = append(out, open[i])
	}
	return out
}

// named sends an event with its name.
func (o *writer) named(v object) bool {
	if o.answer.Delay > 0 && !o.wait(o.answer.Delay) {
		return false
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test's own mistake
	}
	return o.raw(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", v["type"], b))
}

var messagesErrors = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
	http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error",
	http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests: "rate_limit_error", http.StatusGatewayTimeout: "timeout_error", 529: "overloaded_error",
}

// messagesError is the body of an error. The API has no codes: it says a
// request's length in words.
func messagesError(status int, code, text string) object {
	kind := messagesErrors[status]
	if kind == "" {
		kind = "api_error"
	}
	if code == "context_length_exceeded" {
		text = "prompt is too long: " + text
	}
	return object{"type": "error", "error": object{"type": kind, "message": text}, "request_id": "req_test"}
}

var stopReasons = map[string]string{
	llm.FinishStop: "end_turn", llm.FinishToolCalls: "tool_use", llm.FinishLength: "max_tokens", llm.FinishContentFilter: "refusal",
}

func (a *Answer) stopReason() string {
	if a.Finish == "" && a.Refusal != "" {
		return "refusal"
	}
	if reason, ok := stopReasons[a.finish()]; ok {
		return reason
	}
	return a.finish()
}

// messagesUsage is the usage of an answer, or, of its start, all but the output.
func (a *Answer) messagesUsage(output bool) object {
	u := llm.Usage{}
	if a.Usage != nil {
		u = *a.Usage
	}
	v := object{
		"input_tokens":            u.PromptTokens - u.CachedTokens - u.CacheWriteTokens,
		"cache_read_input_tokens": u.CachedTokens, "cache_creation_input_tokens": u.CacheWriteTokens, "output_tokens": 0,
	}
	if output {
		v["output_tokens"] = u.CompletionTokens
		if u.ReasoningTokens > 0 {
			v["output_tokens_details"] = object{"thinking_tokens": u.ReasoningTokens}
		}
	}
	return v
}

func (a *Answer) messagesHead(r *Request) object {
	model := a.Model
	if model == "" {
		model = r.Model
	}
	return object{"id": fmt.Sprintf("msg_%d", r.Number), "type": "message", "role": "assistant", "model": model, "content": []object{}, "stop_reason": nil, "stop_sequence": nil}
}

func (o *writer) messagesPlain(r *Request) {
	a := o.answer
	v := a.messagesHead(r)
	v["usage"], v["stop_reason"] = a.messagesUsage(true), a.stopReason()
	content := []object{}
	if a.Reasoning != "" {
		content = append(content, object{"type": "thinking", "thinking": a.Reasoning, "signature": sign(a.Reasoning, a.Opaque)})
	}
	text, calls := a.Text+a.Refusal, a.Calls
	if text != "" {
		content = append(content, object{"type": "text", "text": text})
	}
	for _, c := range calls {
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
	v["content"] = content
	o.document(v)
}

// messagesStream answers in the format of the Messages API.
// Source: MessageStreamEvent of Anthropic's API description.
func (o *writer) messagesStream(r *Request) {
	a, index := o.answer, 0
	start := a.messagesHead(r)
	start["usage"] = a.messagesUsage(false)
	ok := o.named(object{"type": "message_start", "message": start}) && o.named(object{"type": "ping"})
	block := func(start object, deltas ...object) {
		ok = ok && o.named(object{"type": "content_block_start", "index": index, "content_block": start})
		for _, d := range deltas {
			ok = ok && o.named(object{"type": "content_block_delta", "index": index, "delta": d})
		}
		ok = ok && o.named(object{"type": "content_block_stop", "index": index})
		index++
	}
	deltas := func(text, kind, field string) (out []object) {
		for _, p := range pieces(text, a.Piece) {
			out = append(out, object{"type": kind, field: p})
		}
		return out
	}
	if a.Reasoning != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, append(deltas(a.Reasoning, "thinking_delta", "thinking"),
			object{"type": "signature_delta", "signature": sign(a.Reasoning, a.Opaque)})...)
	}
	text, calls := a.Text+a.Refusal, a.Calls
	if text != "" {
		block(object{"type": "text", "text": ""}, deltas(text, "text_delta", "text")...)
	}
	for _, c := range calls {
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, append([]object{{"type": "input_json_delta", "partial_json": ""}},
			deltas(c.Arguments, "input_json_delta", "partial_json")...)...)
	}
	_ = ok && o.named(object{"type": "message_delta", "delta": object{"stop_reason": a.stopReason(), "stop_sequence": nil}, "usage": a.messagesUsage(true)}) &&
		o.named(object{"type": "message_stop"})
}
