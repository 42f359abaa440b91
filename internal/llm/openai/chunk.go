package openai

import (
	"bytes"
	"cmp"
	"encoding/json"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// chunk is an event of a stream (delta), or a whole answer (message): as
// little of it as is used, because each event is decoded into one. Servers differ in
// the types of a few fields, which are taken as they come.
// Source: CreateChatCompletionStreamResponse of OpenAI's API description.
type chunk struct {
	Model   text            `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        number          `json:"index"`
	Delta        delta           `json:"delta"`
	Message      *delta          `json:"message"`
	FinishReason text            `json:"finish_reason"`
	Usage        *usage          `json:"usage"` // Moonshot
	Error        json.RawMessage `json:"error"` // OpenRouter
}

type delta struct {
	Content      text        `json:"content"`
	Refusal      text        `json:"refusal"`
	Reasoning    text        `json:"reasoning_content"`
	Thoughts     text        `json:"reasoning"` // the same: OpenRouter, Ollama, newer vLLM
	ToolCalls    []callDelta `json:"tool_calls"`
	FunctionCall *function   `json:"function_call"` // the form before tool_calls
}

type callDelta struct {
	Index    *number  `json:"index"`
	ID       text     `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name      text `json:"name"`
	Arguments text `json:"arguments"`
}

type usage struct {
	Prompt            number  `json:"prompt_tokens"`
	Completion        number  `json:"completion_tokens"`
	Total             number  `json:"total_tokens"`
	CacheHit          number  `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached            number  `json:"cached_tokens"`           // Moonshot
	Details           details `json:"prompt_tokens_details"`
	CompletionDetails details `json:"completion_tokens_details"`
}

type details struct {
	Cached    number `json:"cached_tokens"`
	Reasoning number `json:"reasoning_tokens"`
}

// text is a string, or what stands for one: a list of parts, an object.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(raw []byte) error {
	*t = text(wire.LooseText(raw))
	return nil
}

// number is a whole number, or a text of one; what is neither counts nothing.
type number int

// UnmarshalJSON never fails.
func (n *number) UnmarshalJSON(raw []byte) error {
	var f float64
	if json.Unmarshal(bytes.Trim(raw, `"`), &f) == nil && 0 <= f && f < 1<<50 {
		*n = number(f)
	}
	return nil
}

// UnmarshalJSON leaves a usage that is no object empty.
func (u *usage) UnmarshalJSON(raw []byte) error {
	type plain usage
	_ = json.Unmarshal(raw, (*plain)(u)) // what of it can be read counts
	return nil
}

// UnmarshalJSON leaves details that are no object empty.
func (d *details) UnmarshalJSON(raw []byte) error {
	type plain details
	_ = json.Unmarshal(raw, (*plain)(d)) // what of it can be read counts
	return nil
}

// report returns u in the common form, nil where it counts nothing.
func (u *usage) report() *llm.Usage {
	if u == nil || u.Prompt <= 0 && u.Completion <= 0 {
		return nil
	}
	r := &llm.Usage{PromptTokens: int(u.Prompt), CompletionTokens: int(u.Completion), TotalTokens: int(u.Total),
		CachedTokens: int(max(u.CacheHit, u.Details.Cached, u.Cached)), ReasoningTokens: int(u.CompletionDetails.Reasoning)}
	r.TotalTokens = cmp.Or(r.TotalTokens, r.PromptTokens+r.CompletionTokens)
	return r
}
