package openai

import (
	"bytes"
	"encoding/json"
	"errors"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// chunk is an event of a stream (delta), or a whole answer (message): as
// little of it as is used, because each event is decoded into one.
// Source: CreateChatCompletionStreamResponse of OpenAI's API description.
type chunk struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int             `json:"index"`
	Delta        delta           `json:"delta"`
	Message      *delta          `json:"message"`
	FinishReason string          `json:"finish_reason"`
	Usage        *usage          `json:"usage"` // Moonshot
	Error        json.RawMessage `json:"error"` // OpenRouter
}

type delta struct {
	Content      string      `json:"content"`
	Refusal      string      `json:"refusal"`
	Reasoning    string      `json:"reasoning_content"`
	Thoughts     string      `json:"reasoning"` // the same: OpenRouter, Ollama, newer vLLM
	ToolCalls    []callDelta `json:"tool_calls"`
	FunctionCall *function   `json:"function_call"` // the form before tool_calls
}

type callDelta struct {
	Index    *int     `json:"index"`
	ID       string   `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	CacheHit   int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached     int `json:"cached_tokens"`           // Moonshot
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// report returns u in the common form, nil where it counts nothing.
func (u *usage) report() *llm.Usage {
	if u == nil || u.Prompt <= 0 && u.Completion <= 0 {
		return nil
	}
	r := &llm.Usage{PromptTokens: u.Prompt, CompletionTokens: u.Completion, TotalTokens: u.Total,
		CachedTokens: max(u.CacheHit, u.Details.Cached, u.Cached), ReasoningTokens: u.CompletionDetails.Reasoning}
	if r.TotalTokens == 0 {
		r.TotalTokens = u.Prompt + u.Completion
	}
	return r
}

// decodeChunk decodes an event. Servers differ in the types of a few fields;
// only where the strict form fails is the loose one tried.
func decodeChunk(data []byte) (*chunk, error) {
	c := new(chunk)
	err := json.Unmarshal(data, c)
	if err == nil {
		return c, nil
	}
	var wrongType *json.UnmarshalTypeError
	if !errors.As(err, &wrongType) {
		return nil, err
	}
	var l looseChunk
	if json.Unmarshal(data, &l) != nil {
		return nil, err
	}
	return l.strict(), nil
}

// looseChunk is a chunk whose texts may be lists of parts, whose arguments may
// be objects and whose numbers may be texts.
type looseChunk struct {
	Model   json.RawMessage `json:"model"`
	Choices []struct {
		Index        json.RawMessage `json:"index"`
		Delta        looseDelta      `json:"delta"`
		Message      *looseDelta     `json:"message"`
		FinishReason json.RawMessage `json:"finish_reason"`
		Usage        json.RawMessage `json:"usage"`
		Error        json.RawMessage `json:"error"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type looseDelta struct {
	Content   json.RawMessage `json:"content"`
	Refusal   json.RawMessage `json:"refusal"`
	Reasoning json.RawMessage `json:"reasoning_content"`
	Thoughts  json.RawMessage `json:"reasoning"`
	ToolCalls []struct {
		Index    json.RawMessage `json:"index"`
		ID       json.RawMessage `json:"id"`
		Function looseFunction   `json:"function"`
	} `json:"tool_calls"`
	FunctionCall *looseFunction `json:"function_call"`
}

type looseFunction struct {
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (l *looseChunk) strict() *chunk {
	c := &chunk{Model: wire.LooseText(l.Model), Error: l.Error, Usage: looseUsage(l.Usage)}
	for _, lc := range l.Choices {
		ch := choice{Delta: lc.Delta.strict(), FinishReason: wire.LooseText(lc.FinishReason), Usage: looseUsage(lc.Usage), Error: lc.Error}
		if n := looseInt(lc.Index); n != nil {
			ch.Index = *n
		}
		if lc.Message != nil {
			m := lc.Message.strict()
			ch.Message = &m
		}
		c.Choices = append(c.Choices, ch)
	}
	return c
}

func (l *looseDelta) strict() delta {
	d := delta{Content: wire.LooseText(l.Content), Refusal: wire.LooseText(l.Refusal), Reasoning: wire.LooseText(l.Reasoning), Thoughts: wire.LooseText(l.Thoughts)}
	if l.FunctionCall != nil {
		f := l.FunctionCall.strict()
		d.FunctionCall = &f
	}
	for _, t := range l.ToolCalls {
		d.ToolCalls = append(d.ToolCalls, callDelta{Index: looseInt(t.Index), ID: wire.LooseText(t.ID), Function: t.Function.strict()})
	}
	return d
}

func (l *looseFunction) strict() function {
	return function{Name: wire.LooseText(l.Name), Arguments: wire.LooseText(l.Arguments)}
}

// looseUsage is a usage whose counts may be of any type; those that are no
// whole numbers count nothing.
func looseUsage(raw json.RawMessage) *usage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || all == nil {
		return nil
	}
	count := func(raw json.RawMessage) int {
		var n float64
		if json.Unmarshal(bytes.Trim(bytes.TrimSpace(raw), `"`), &n) != nil || !(0 <= n && n < 1<<50) {
			return 0
		}
		return int(n)
	}
	part := func(field, of string) int {
		var inner map[string]json.RawMessage
		if json.Unmarshal(all[field], &inner) != nil {
			return 0
		}
		return count(inner[of])
	}
	u := &usage{Prompt: count(all["prompt_tokens"]), Completion: count(all["completion_tokens"]), Total: count(all["total_tokens"]),
		CacheHit: count(all["prompt_cache_hit_tokens"]), Cached: count(all["cached_tokens"])}
	u.Details.Cached = part("prompt_tokens_details", "cached_tokens")
	u.CompletionDetails.Reasoning = part("completion_tokens_details", "reasoning_tokens")
	return u
}

func looseInt(raw json.RawMessage) *int {
	raw = bytes.Trim(bytes.TrimSpace(raw), `"`)
	var n *int
	if json.Unmarshal(raw, &n) != nil {
		return nil
	}
	return n
}
