package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"toritsugi/internal/llm"
)

// Answer is an answer in no vendor's words, and the faults it is sent with.
// The zero Answer is an empty text.
type Answer struct {
	Text      string
	Reasoning string
	Calls     []llm.ToolCall
	Refusal   string     // told instead of Text
	Opaque    string     // what a provider wants back as it was: of the Messages API, beside Reasoning; chat completions have no such thing
	Finish    string     // default: tool_calls beside calls, else stop
	Usage     *llm.Usage // nil reports none
	Model     string     // default: the request's

	Piece int  // bytes of text or arguments in one event; default 16
	Plain bool // one JSON document although a stream was asked for

	// A Status other than 0 and 200 makes the answer an error.
	Status     int
	ErrorCode  string // e.g. "context_length_exceeded"
	ErrorText  string
	RetryAfter string // value of the header

	// Body, with ContentType, is sent instead of an answer.
	Body        string
	ContentType string

	Delay time.Duration // before each event
	Cut   int           // the connection is cut after so many bytes of the body; 0 is never
	Stall int           // nothing is sent after so many bytes of the body; 0 is never
}

// StallAtOnce as Stall sends nothing at all.
const StallAtOnce = -1

type object = map[string]any

// writer sends one answer with its faults.
type writer struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	request *http.Request
	closed  <-chan struct{}
	answer  *Answer
	format  format
	sent    int
}

// raw sends b as far as the faults allow and reports whether to go on.
func (o *writer) raw(b []byte) bool {
	a := o.answer
	cut, stall := a.Cut > 0 && o.sent+len(b) >= a.Cut, a.Stall > 0 && o.sent+len(b) >= a.Stall
	if cut {
		b = b[:a.Cut-o.sent]
	} else if stall {
		b = b[:a.Stall-o.sent]
	}
	o.sent += len(b)
	if _, err := o.w.Write(b); err != nil {
		return false
	}
	if err := o.rc.Flush(); err != nil {
		return false
	}
	if cut {
		panic(http.ErrAbortHandler) // the documented way to break the connection
	}
	if stall {
		o.wait(time.Hour)
		return false
	}
	return true
}

func (o *writer) event(v any) bool {
	if o.answer.Delay > 0 && !o.wait(o.answer.Delay) {
		return false
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test's own mistake
	}
	return o.raw(fmt.Appendf(nil, "data: %s\n\n", b))
}

// send answers in the format of the request.
func (o *writer) send(r *Request) {
	a := o.answer
	if a.Stall == StallAtOnce {
		o.wait(time.Hour)
		return
	}
	h := o.w.Header()
	if a.RetryAfter != "" {
		h.Set("Retry-After", a.RetryAfter)
	}
	h.Set("Content-Type", "application/json")
	switch {
	case a.Body != "":
		if a.ContentType != "" {
			h.Set("Content-Type", a.ContentType)
		}
		o.w.WriteHeader(max(a.Status, http.StatusOK))
		o.raw([]byte(a.Body))
	case a.Status != 0 && a.Status != http.StatusOK:
		o.w.WriteHeader(a.Status)
		o.document(o.format.failed(a.Status, a.ErrorCode, a.ErrorText))
	case !r.Stream || a.Plain:
		o.format.plain(o, r)
	default:
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		o.format.stream(o, r)
	}
}

// chatError is the body of an error of chat completions.
func chatError(_ int, code, text string) object {
	var named any
	if code != "" {
		named = code
	}
	return object{"error": object{"message": text, "type": "test_error", "param": nil, "code": named}}
}

func (o *writer) document(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test's own mistake
	}
	o.raw(b)
}

func (a *Answer) finish() string {
	switch {
	case a.Finish != "":
		return a.Finish
	case len(a.Calls) > 0:
		return llm.FinishToolCalls
	}
	return llm.FinishStop
}

func (a *Answer) usage() any {
	if a.Usage == nil {
		return nil
	}
	return object{
		"prompt_tokens": a.Usage.PromptTokens, "completion_tokens": a.Usage.CompletionTokens, "total_tokens": a.Usage.TotalTokens,
		"prompt_tokens_details":     object{"cached_tokens": a.Usage.CachedTokens},
		"completion_tokens_details": object{"reasoning_tokens": a.Usage.ReasoningTokens},
	}
}

func (a *Answer) head(r *Request, kind string) object {
	model := a.Model
	if model == "" {
		model = r.Model
	}
	return object{"id": "chatcmpl-" + fmt.Sprint(r.Number), "object": kind, "created": 1700000000, "model": model}
}

func (o *writer) plain(r *Request) {
	a := o.answer
	m := object{"role": "assistant", "content": a.Text, "refusal": nil}
	if a.Text == "" {
		m["content"] = nil
	}
	if a.Refusal != "" {
		m["refusal"] = a.Refusal
	}
	if a.Reasoning != "" {
		m["reasoning_content"] = a.Reasoning
	}
	if len(a.Calls) > 0 {
		var calls []object
		for _, c := range a.Calls {
			calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
		}
		m["tool_calls"] = calls
	}
	v := a.head(r, "chat.completion")
	v["choices"] = []object{{"index": 0, "message": m, "logprobs": nil, "finish_reason": a.finish()}}
	if u := a.usage(); u != nil {
		v["usage"] = u
	}
	o.document(v)
}

// stream answers in the chat-completions format.
// Source: CreateChatCompletionResponse and CreateChatCompletionStreamResponse
// of OpenAI's API description.
func (o *writer) stream(r *Request) {
	a := o.answer
	chunk := func(choices []object, usage any) bool {
		v := a.head(r, "chat.completion.chunk")
		v["choices"], v["usage"] = choices, usage
		return o.event(v)
	}
	delta := func(d object) bool {
		return chunk([]object{{"index": 0, "delta": d, "logprobs": nil, "finish_reason": nil}}, nil)
	}
	ok := delta(object{"role": "assistant", "content": ""})
	for _, p := range pieces(a.Reasoning, a.Piece) {
		ok = ok && delta(object{"reasoning_content": p})
	}
	for _, p := range pieces(a.Text, a.Piece) {
		ok = ok && delta(object{"content": p})
	}
	for _, p := range pieces(a.Refusal, a.Piece) {
		ok = ok && delta(object{"refusal": p})
	}
	for i, c := range a.Calls {
		ok = ok && delta(object{"tool_calls": []object{{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}})
		for _, p := range pieces(c.Arguments, a.Piece) {
			ok = ok && delta(object{"tool_calls": []object{{"index": i, "function": object{"arguments": p}}}})
		}
	}
	ok = ok && chunk([]object{{"index": 0, "delta": object{}, "logprobs": nil, "finish_reason": a.finish()}}, nil)
	if u := a.usage(); u != nil && r.Usage {
		ok = ok && chunk([]object{}, u)
	}
	if ok {
		o.raw([]byte("data: [DONE]\n\n"))
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
