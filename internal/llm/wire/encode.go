package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/llm"
)

// AppendSchema appends a JSON Schema in compact form; for none, that of an
// object of any kind. It fails where schema is not JSON.
func AppendSchema(b []byte, schema json.RawMessage) ([]byte, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return append(b, `{"type":"object","properties":{}}`...), nil
	}
	compact := bytes.NewBuffer(b)
	if err := json.Compact(compact, schema); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}

// AppendTools appends the member "tools" of a request, behind others of it, as chat
// completions have it and Ollama takes it. It fails where a schema is not JSON.
func AppendTools(b []byte, tools []llm.Tool) ([]byte, error) {
	open := `,"tools":[` // OpenAI refuses an empty array, so none is written for no tools
	for _, t := range tools {
		b = append(b, open...)
		open = ","
		b = AppendString(append(b, `{"type":"function","function":{"name":`...), t.Name)
		if t.Description != "" {
			b = AppendString(append(b, `,"description":`...), t.Description)
		}
		var err error
		if b, err = AppendSchema(append(b, `,"parameters":`...), t.Schema); err != nil {
			return nil, err
		}
		b = append(b, `}}`...)
	}
	if len(tools) > 0 {
		b = append(b, ']')
	}
	return b, nil
}

// Arguments is raw where it is a JSON object. What is none is wrapped in one,
// because servers that parse arguments would refuse the whole conversation
// from then on, and so is one with a number out of range; none at all is an
// empty object.
func Arguments(raw string) string {
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return "{}"
	}
	if trimmed[0] == '{' && json.Unmarshal([]byte(trimmed), new(any)) == nil {
		return raw
	}
	return string(append(AppendString([]byte(`{"malformed_arguments":`), raw), '}'))
}

// PlainName makes a name that a model invented acceptable: OpenAI answers 400
// to a conversation that holds any other characters or more than 64.
func PlainName(name string) string {
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

// AppendString appends s as a JSON string: no HTML escaping, every byte that
// is not UTF-8 replaced by U+FFFD. Source: RFC 8259 §7.
func AppendString(b []byte, s string) []byte {
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
