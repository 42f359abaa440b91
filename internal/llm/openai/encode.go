package openai

import (
	"strconv"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// appendHead appends the request up to and including the opening of the
// messages array. It fails where a tool's schema is not JSON.
// Source: CreateChatCompletionRequest of OpenAI's API description.
func (c *client) appendHead(b []byte, tools []llm.Tool) ([]byte, error) {
	b = wire.AppendString(append(b, `{"model":`...), c.model)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	if c.maxTokens > 0 {
		b = append(b, `,"`+c.maxTokensField+`":`...)
		b = strconv.AppendInt(b, int64(c.maxTokens), 10)
	}
	open := `,"tools":[` // OpenAI refuses an empty array, so none is written for no tools
	for _, t := range tools {
		b = append(b, open...)
		open = ","
		b = wire.AppendString(append(b, `{"type":"function","function":{"name":`...), t.Name)
		if t.Description != "" {
			b = wire.AppendString(append(b, `,"description":`...), t.Description)
		}
		b = append(b, `,"parameters":`...)
		var err error
		if b, err = wire.AppendSchema(b, t.Schema); err != nil {
			return nil, err
		}
		b = append(b, `}}`...)
	}
	if len(tools) > 0 {
		b = append(b, ']')
	}
	return append(b, `,"messages":[`...), nil
}

// appendMessage appends m as one element of the messages array. offered are
// the tools of the conversation.
func appendMessage(b []byte, m *llm.Message, offered map[string]bool) []byte {
	b = wire.AppendString(append(b, `{"role":`...), m.Role)
	if m.Role == llm.RoleTool {
		b = wire.AppendString(append(b, `,"tool_call_id":`...), m.ToolCallID)
	}
	if b = append(b, `,"content":`...); m.Content == "" && len(m.ToolCalls) > 0 {
		b = append(b, `null`...)
	} else {
		b = wire.AppendString(b, m.Content)
	}
	if len(m.ToolCalls) == 0 {
		return append(b, '}')
	}
	// DeepSeek demands its reasoning back beside tool calls and ignores it
	// elsewhere; vendors that never sent any never get the field.
	if m.Reasoning != "" {
		b = wire.AppendString(append(b, `,"reasoning_content":`...), m.Reasoning)
	}
	b = append(b, `,"tool_calls":[`...)
	for i, call := range m.ToolCalls {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(append(b, `{"id":`...), call.ID)
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
