package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"toritsugi/internal/llm"
)

// Message is a message of a request, as far as tests look at it.
type Message struct {
	Role       string      `json:"role"`
	Content    *string     `json:"-"` // nil for null; the text of its parts
	Images     []llm.Image `json:"-"`
	Opaque     string      `json:"-"` // see Answer.Opaque
	Reasoning  string      `json:"reasoning_content"`
	ToolCallID string      `json:"tool_call_id"`
	ToolCalls  []ToolCall  `json:"tool_calls"`
}

// ToolCall is a call in a Message.
type ToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// UnmarshalJSON reads a message of the chat-completions format.
func (m *Message) UnmarshalJSON(data []byte) error {
	type plain Message
	if err := json.Unmarshal(data, (*plain)(m)); err != nil {
		return err
	}
	var c struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	if !bytes.HasPrefix(c.Content, []byte("[")) {
		if len(c.Content) == 0 {
			return nil
		}
		return json.Unmarshal(c.Content, &m.Content)
	}
	var parts []struct {
		Type  string
		Text  string
		Image struct{ URL string } `json:"image_url"`
	}
	if err := json.Unmarshal(c.Content, &parts); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range parts {
		switch p.Type {
		case "text":
			if len(m.Images) > 0 || p.Text == "" {
				return fmt.Errorf("a text part that is empty, or behind an image: %s", c.Content)
			}
			text.WriteString(p.Text)
		case "image_url":
			kind, encoded, found := strings.Cut(strings.TrimPrefix(p.Image.URL, "data:"), ";base64,")
			raw, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil || !found {
				return fmt.Errorf("not a data URI: %.40s: %w", p.Image.URL, err)
			}
			m.Images = append(m.Images, llm.Image{MediaType: kind, Data: raw})
		default:
			return fmt.Errorf("a part of type %q", p.Type)
		}
	}
	s := text.String()
	m.Content = &s
	return nil
}
