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
	Error        json.RawMessage `json:"error"` // OpenRouter
}

type delta struct {
	Content      string      `json:"content"`
	Refusal      string      `json:"refusal"`
	Reasoning    string      `json:"reasoning_content"`
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
	Details    *struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// report returns u in the common form, nil where it counts nothing.
func (u *usage) report() *llm.Usage {
	if u == nil || u.Prompt <= 0 && u.Completion <= 0 {
		return nil
	}
	r := &llm.Usage{PromptTokens: u.Prompt, CompletionTokens: u.Completion, TotalTokens: u.Total, CachedTokens: u.CacheHit}
	if u.Details != nil {
		r.CachedTokens = max(r.CachedTokens, u.Details.Cached)
	}
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
		Error        json.RawMessage `json:"error"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type looseDelta struct {
	Content   json.RawMessage `json:"content"`
	Refusal   json.RawMessage `json:"refusal"`
	Reasoning json.RawMessage `json:"reasoning_content"`
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
	c := &chunk{Model: wire.LooseText(l.Model), Error: l.Error}
	var u usage
	if json.Unmarshal(l.Usage, &u) == nil {
		c.Usage = &u
	}
	for _, lc := range l.Choices {
		ch := choice{Delta: lc.Delta.strict(), FinishReason: wire.LooseText(lc.FinishReason), Error: lc.Error}
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
	d := delta{Content: wire.LooseText(l.Content), Refusal: wire.LooseText(l.Refusal), Reasoning: wire.LooseText(l.Reasoning)}
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

func looseInt(raw json.RawMessage) *int {
	raw = bytes.Trim(bytes.TrimSpace(raw), `"`)
	var n *int
	if json.Unmarshal(raw, &n) != nil {
		return nil
	}
	return n
}
