// Package llm is what other packages know of language models: a conversation that messages
// are appended to, encoded once each, and sent. The packages below it speak a wire format
// each and pass one suite (llm/llmtest). It does no I/O itself.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// The roles of a message.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// The reasons an answer ended, in one vocabulary.
const (
	FinishStop          = "stop"
	FinishToolCalls     = "tool_calls"
	FinishLength        = "length" // cut at the output limit, maybe inside a call
	FinishContentFilter = "content_filter"
)

// Message is one message of a conversation.
type Message struct {
	Role       string
	Content    string
	Images     []Image    // of a user message, after its text
	Dropped    []Dropped  `json:"-"` // images that could not be made part of it, which its Content says; never sent, for the audit of what is
	Reasoning  string     // reasoning_content of an assistant message; returned unchanged beside its tool calls
	Opaque     string     // of an assistant message: what its provider wants back as it was, in the provider's own form
	ToolCalls  []ToolCall // of an assistant message
	ToolCallID string     // of a tool message: the call it answers
	ToolName   string     // of a tool message
	Failed     bool       // of a tool message: the call failed; its Content says so as well
}

// Image is a picture that a model is shown.
type Image struct {
	MediaType string // image/png, image/jpeg, image/gif or image/webp
	Data      []byte
	Source    string // path it was read from, for the audit of what is sent; "" where it came from no file
}

// Dropped is an image that is not shown, and why.
type Dropped struct{ Source, Reason string }

// ToolCall is a call as the model wrote it. Arguments is the raw text, which
// need not be valid JSON.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
}

// Tool is a tool as it is offered to the model. Schema is a JSON Schema of an object.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// Bytes is about how many bytes of a request the definition of the tool takes.
func (t Tool) Bytes() int { return len(t.Name) + len(t.Description) + len(t.Schema) + 80 }

// ToolsBytes is Tool.Bytes of all of them.
func ToolsBytes(all []Tool) (n int) {
	for _, t := range all {
		n += t.Bytes()
	}
	return n
}

// Usage is what the provider reported for one call, in tokens.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	CachedTokens     int `json:"cached_tokens,omitempty"`      // of the prompt, read from a cache
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"` // of the prompt, written to a cache at a price of its own
	ReasoningTokens  int `json:"reasoning_tokens,omitempty"`   // of the completion

	// Cost is what the call costs by the price table, in millionths of a US
	// dollar; nil where no price is known. Providers do not set it.
	Cost *int64 `json:"cost_micro_usd,omitempty"`
}

// Settings are what a conversation is opened with; they do not change in it.
type Settings struct {
	Tools []Tool // offered in this order
}

// Reply is a model's whole answer.
type Reply struct {
	Message      Message
	FinishReason string // one of the Finish constants, or the vendor's own word
	Usage        *Usage // nil where the provider reported none
	Model        string // as the provider named it

	// By names the client that answered, PROVIDER/MODEL as configured, where
	// it is not the one that was asked: a fallback. Providers do not set it.
	By string
}

// Conversation is an ordered list of messages that a provider holds in its own
// wire form. Append encodes a message once; nothing encoded is encoded again,
// so what Send transmits is byte-stable and costs O(new). Not safe for
// concurrent use.
type Conversation interface {
	// Append adds a message after the last one.
	Append(m Message)
	// Reset forgets every message; the tools and settings stay.
	Reset()
	// Send asks for the answer to all messages so far and does not append it.
	// onText, if not nil, gets the answer's text as it streams, on the caller's
	// goroutine; where a call fails midway and is repeated, the text begins
	// anew. The error is an *Error, or ctx's error where ctx ended.
	Send(ctx context.Context, onText func(delta string)) (*Reply, error)
	// Serialized returns the encoded messages as they are transmitted, valid
	// until the next call of any method. What was returned before is a prefix
	// of what is returned later, until Reset.
	Serialized() []byte
}

// Refillable is a conversation that may have to begin anew inside of Send: for
// another model, or in another form. refill, called on the goroutine of Send
// once the conversation was emptied, appends the messages again, all or those
// that still matter; Serialized begins anew then, as after Reset.
type Refillable interface {
	OnMove(refill func() error)
}

// Wrap is outer, a conversation around inner, as a Refillable where inner is one.
func Wrap(outer, inner Conversation) Conversation {
	if r, ok := inner.(Refillable); ok {
		return &refillable{outer, r}
	}
	return outer
}

type refillable struct {
	Conversation
	Refillable
}

// Client opens conversations with one model of one provider.
type Client interface {
	// Open starts an empty conversation.
	Open(s Settings) Conversation
	// Provider and Model are the names as configured, e.g. "openai", "gpt-4o".
	Provider() string
	Model() string
}

// ErrorKind classifies a failed call by what the caller can do about it.
type ErrorKind string

// The kinds of failure.
const (
	KindUnreachable ErrorKind = "unreachable"  // no connection, DNS, refused, reset
	KindTimeout     ErrorKind = "timeout"      // no answer, or a stalled stream, within the limit
	KindRateLimited ErrorKind = "rate_limited" // 429
	KindServer      ErrorKind = "server"       // 5xx
	KindCutStream   ErrorKind = "cut_stream"   // the stream ended before the answer did
	KindInvalid     ErrorKind = "invalid"      // an answer that is not the wire format
	KindAuth        ErrorKind = "auth"         // 401, 403
	KindNotFound    ErrorKind = "not_found"    // 404: no such model or address
	KindContext     ErrorKind = "context"      // the request is longer than the model's window
	KindCutPrompt   ErrorKind = "cut_prompt"   // the server dropped a part of the request in silence; its answer is not used
	KindBadRequest  ErrorKind = "bad_request"  // any other 4xx
	KindQuota       ErrorKind = "quota"        // 402, insufficient_quota: waiting does not help
	KindNoTools     ErrorKind = "no_tools"     // the model, or its server, takes no tools
	KindSuspended   ErrorKind = "suspended"    // not called: the endpoint failed several times and is left alone for a while
	KindScriptEnded ErrorKind = "script_ended" // the script has no further answer
	KindForbidden   ErrorKind = "forbidden"    // not called: what is to be sent may not go to this model
)

// Error is a failed call.
type Error struct {
	Kind       ErrorKind
	Provider   string
	Endpoint   string // scheme, host and path, without query or credentials
	Status     int    // HTTP status, 0 where none came
	Message    string // the provider's words, or the transport error's; redacted by the caller
	Read       int    // tokens of the request that the server was seen to read, fewer than it was sent; 0 where nobody knows
	RetryAfter time.Duration
	Attempts   int // how many times the call was made
	Err        error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s: %s", e.Provider, e.Endpoint, e.Kind)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Attempts > 1 {
		s += fmt.Sprintf(" after %d attempts", e.Attempts)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same call may succeed a little later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case KindUnreachable, KindTimeout, KindRateLimited, KindServer, KindCutStream, KindInvalid, KindSuspended:
		return true
	}
	return false
}
