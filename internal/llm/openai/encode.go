package openai

import (
	"context"
	"encoding/base64"
	"strconv"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// appendHead appends the request up to and including the opening of the
// messages array. It fails where a tool's schema is not JSON.
// Source: CreateChatCompletionRequest of OpenAI's API description.
func (c *client) appendHead(b []byte, set *llm.Settings) ([]byte, error) {
	b = wire.AppendString(append(b, `{"model":`...), c.model)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	if c.temperature != nil {
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *c.temperature, 'g', -1, 64)
	}
	b, err := wire.AppendTools(b, set.Tools)
	if err != nil {
		return nil, err
	}
	return append(b, `,"messages":[`...), nil
}

// tail closes what appendHead opened. The output limit stands here because it can
// differ from call to call.
func (v *conversation) tail(ctx context.Context) []byte {
	c, b := v.client, []byte{']'}
	if n := llm.AnswerLimit(ctx, c.maxTokens); n > 0 {
		b = strconv.AppendInt(append(b, `,"`+c.dialect.maxTokens+`":`...), int64(n), 10)
	}
	return append(b, '}')
}

// appendMessage appends m as one element of the messages array. offered are
// the tools of the conversation.
func (c *client) appendMessage(b []byte, m *llm.Message, offered map[string]bool) []byte {
	b = wire.AppendString(append(b, `{"role":`...), m.Role)
	if m.Role == llm.RoleTool {
		b = wire.AppendString(append(b, `,"tool_call_id":`...), c.dialect.callID(m.ToolCallID))
	}
	switch b = append(b, `,"content":`...); {
	case m.Content == "" && len(m.ToolCalls) > 0:
		b = append(b, `null`...)
	case len(m.Images) > 0 && m.Role == llm.RoleUser: // the format has them nowhere else
		b = appendParts(b, m)
	default:
		b = wire.AppendString(b, m.Content)
	}
	if len(m.ToolCalls) == 0 {
		return append(b, '}')
	}
	// Elsewhere DeepSeek ignores it.
	if r := c.dialect.reasoning; r == reasoningAlways || r == reasoningGiven && m.Reasoning != "" {
		b = wire.AppendString(append(b, `,"reasoning_content":`...), m.Reasoning)
	}
	b = append(b, `,"tool_calls":[`...)
	for i, call := range m.ToolCalls {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(append(b, `{"id":`...), c.dialect.callID(call.ID))
		name := call.Name
		if !offered[name] {
			name = wire.PlainName(name)
		}
		b = wire.AppendString(append(b, `,"type":"function","function":{"name":`...), name)
		b = wire.AppendString(append(b, `,"arguments":`...), wire.Arguments(call.Arguments))
		b = append(b, `}}`...)
	}
	return append(b, `]}`...)
}

// appendParts appends a text and its images as content parts.
// Source: ChatCompletionRequestMessageContentPartImage of OpenAI's API description.
func appendParts(b []byte, m *llm.Message) []byte {
	open := byte('[')
	if m.Content != "" {
		b = wire.AppendString(append(b, `[{"type":"text","text":`...), m.Content)
		b, open = append(b, '}'), ','
	}
	for i := range m.Images {
		b = append(append(b, open), `{"type":"image_url","image_url":{"url":`...)
		open = ','
		b = wire.AppendString(b, "data:"+m.Images[i].MediaType+";base64,")
		b = base64.StdEncoding.AppendEncode(b[:len(b)-1], m.Images[i].Data)
		b = append(b, `"}}`...)
	}
	return append(b, ']')
}
