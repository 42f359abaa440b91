package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/llm"
)

// appendHead appends the request up to and including the opening of the
// messages array. It fails where a tool's schema is not JSON.
// Source: CreateChatCompletionRequest of OpenAI's API description.
func (c *client) appendHead(b []byte, tools []llm.Tool) ([]byte, error) {
	b = appendString(append(b, `{"model":`...), c.model)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	if c.maxTokens > 0 {
		b = append(b, `,"`+c.maxTokensField+`":`...)
		b = strconv.AppendInt(b, int64(c.maxTokens), 10)
	}
	open := `,"tools":[` // OpenAI refuses an empty array, so none is written for no tools
	for _, t := range tools {
		b = append(b, open...)
		open = ","
		b = appendString(append(b, `{"type":"function","function":{"name":`...), t.Name)
		if t.Description != "" {
			b = appendString(append(b, `,"description":`...), t.Description)
		}
		b = append(b, `,"parameters":`...)
		var err error
		if b, err = appendSchema(b, t.Schema); err != nil {
			return nil, err
		}
		b = append(b, `}}`...)
	}
	if len(tools) > 0 {
		b = append(b, ']')
	}
	return append(b, `,"messages":[`...), nil
}

func appendSchema(b []byte, schema json.RawMessage) ([]byte, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return append(b, `{"type":"object","properties":{}}`...), nil
	}
	compact := bytes.NewBuffer(b)
	if err := json.Compact(compact, schema); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}

// appendMessage appends m as one element of the messages array. offered are
// the tools of the conversation.
func appendMessage(b []byte, m *llm.Message, offered map[string]bool) []byte {
	b = appendString(append(b, `{"role":`...), m.Role)
	if m.Role == llm.RoleTool {
		b = appendString(append(b, `,"tool_call_id":`...), m.ToolCallID)
	}
	if b = append(b, `,"content":`...); m.Content == "" && len(m.ToolCalls) > 0 {
		b = append(b, `null`...)
	} else {
		b = appendString(b, m.Content)
	}
	if len(m.ToolCalls) == 0 {
		return append(b, '}')
	}
	// DeepSeek demands its reasoning back beside tool calls and ignores it
	// elsewhere; vendors that never sent any never get the field.
	if m.Reasoning != "" {
		b = appendString(append(b, `,"reasoning_content":`...), m.Reasoning)
	}
	b = append(b, `,"tool_calls":[`...)
	for i, call := range m.ToolCalls {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"id":`...), call.ID)
		name := call.Name
		if !offered[name] {
			name = plainName(name)
		}
		b = appendString(append(b, `,"type":"function","function":{"name":`...), name)
		b = appendString(append(b, `,"arguments":`...), arguments(call.Arguments))
		b = append(b, `}}`...)
	}
	return append(b, `]}`...)
}

// arguments is raw where it is a JSON object. What is none is wrapped in one,
// because servers that parse arguments would refuse the whole conversation
// from then on; none at all is an empty object.
func arguments(raw string) string {
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return "{}"
	}
	if trimmed[0] == '{' && json.Valid([]byte(trimmed)) {
		return raw
	}
	return string(append(appendString([]byte(`{"malformed_arguments":`), raw), '}'))
}

// plainName makes a name that a model invented acceptable: OpenAI answers 400
// to a conversation that holds any other characters or more than 64.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 64)]
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string: no HTML escaping, every byte that
// is not UTF-8 replaced by U+FFFD. Source: RFC 8259 §7.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(append(b, s[start:i]...), "\uFFFD"...)
			start = i + 1
		}
		i += n
	}
	return append(append(b, s[start:]...), '"')
}
