package ollama

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// appendHead appends the request up to and including the opening of the
// messages array. It fails where a schema is not JSON.
//
// truncate and shift are false: without them Ollama drops the beginning of a
// conversation that is too long, or forgets it while it writes, and says
// nothing. Servers before 0.12.6 know neither; see estimate.
// Source: api.ChatRequest of Ollama.
func (c *client) appendHead(b []byte, set llm.Settings) ([]byte, error) {
	b = c.appendLoad(b)
	b = append(b, `,"stream":true`...)
	if c.think != "" {
		b = append(append(b, `,"think":`...), c.think...)
	}
	var err error
	if len(bytes.TrimSpace(set.Schema)) > 0 {
		if b, err = wire.AppendSchema(append(b, `,"format":`...), set.Schema); err != nil {
			return nil, err
		}
	}
	open := `,"tools":[`
	for _, t := range set.Tools {
		b = append(b, open...)
		open = ","
		b = wire.AppendString(append(b, `{"type":"function","function":{"name":`...), t.Name)
		if t.Description != "" {
			b = wire.AppendString(append(b, `,"description":`...), t.Description)
		}
		if b, err = wire.AppendSchema(append(b, `,"parameters":`...), t.Schema); err != nil {
			return nil, err
		}
		b = append(b, `}}`...)
	}
	if len(set.Tools) > 0 {
		b = append(b, ']')
	}
	return append(b, `,"messages":[`...), nil
}

// appendLoad appends the part of a request that decides how the model is
// loaded. A warm-up sends the same, or the next call would load it anew.
func (c *client) appendLoad(b []byte) []byte {
	b = wire.AppendString(append(b, `{"model":`...), c.model)
	b = append(append(b, `,"keep_alive":`...), c.keepAlive...)
	b = append(b, `,"truncate":false,"shift":false,"options":{"num_ctx":`...)
	b = strconv.AppendInt(b, int64(c.numCtx), 10)
	if c.maxTokens > 0 {
		b = strconv.AppendInt(append(b, `,"num_predict":`...), int64(c.maxTokens), 10)
	}
	if c.temperature != nil {
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *c.temperature, 'f', -1, 64)
	}
	return append(b, '}')
}

// appendMessage appends m as one element of the messages array. toolName is the
// tool that a tool message comes from, which templates show to the model.
// Source: api.Message of Ollama.
func appendMessage(b []byte, m *llm.Message, toolName string, images []ImageAudit) []byte {
	b = wire.AppendString(append(b, `{"role":`...), m.Role)
	b = wire.AppendString(append(b, `,"content":`...), m.Content+omitted(images))
	b = appendImages(b, m.Images, images)
	if m.Role == llm.RoleTool {
		if toolName != "" {
			b = wire.AppendString(append(b, `,"tool_name":`...), toolName)
		}
		b = wire.AppendString(append(b, `,"tool_call_id":`...), m.ToolCallID)
	}
	if len(m.ToolCalls) == 0 {
		return append(b, '}')
	}
	// Models think on between their calls where they see what they thought;
	// beside a final text templates drop it.
	if m.Reasoning != "" {
		b = wire.AppendString(append(b, `,"thinking":`...), m.Reasoning)
	}
	b = append(b, `,"tool_calls":[`...)
	for i, call := range m.ToolCalls {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(append(b, `{"id":`...), call.ID)
		b = append(b, `,"function":{"index":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = wire.AppendString(append(b, `,"name":`...), call.Name)
		b = appendArguments(append(b, `,"arguments":`...), call.Arguments)
		b = append(b, `}}`...)
	}
	return append(b, `]}`...)
}

// appendArguments appends raw as it is where it is a JSON object. What is none
// is wrapped in one, because Ollama would refuse the whole conversation from
// then on; none at all is an empty object.
func appendArguments(b []byte, raw string) []byte {
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return append(b, `{}`...)
	}
	if trimmed[0] == '{' && json.Valid([]byte(trimmed)) {
		return append(b, validText(raw)...)
	}
	return append(wire.AppendString(append(b, `{"malformed_arguments":`...), raw), '}')
}

// validText replaces every byte that is not UTF-8 by U+FFFD, as JSON encoders do.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// ImageAudit is what is on record of an image of a request: never its content.
// Source: route §7.3 (image audit). Where the image came from its owner knows.
type ImageAudit struct {
	MediaType      string `json:"media_type"`
	URLType        string `json:"url_type"`         // always "base64": Ollama takes no addresses
	ImageURL       string `json:"image_url"`        // a summary, without the content
	ImageURLLength int    `json:"image_url_length"` // of what is sent, in bytes
	SizeBytes      int    `json:"local_size_before_bytes"`
	Included       bool   `json:"included"`
	DropReason     string `json:"drop_reason,omitempty"`
}

// The phases of an image audit (route §7.3).
const (
	BeforeRequest = "before request"
	AfterTimeout  = "after timeout"
)

// maxImage is the longest image sent, in bytes.
const maxImage = 20 << 20

// auditImages decides which images of a message are sent. Ollama fails the
// whole request for one that it cannot read.
func auditImages(images []llm.Image) []ImageAudit {
	if len(images) == 0 {
		return nil
	}
	all := make([]ImageAudit, len(images))
	for i, img := range images {
		a := ImageAudit{MediaType: img.MediaType, URLType: "base64", ImageURL: "data:" + short(img.MediaType) + ";base64,[omitted]", SizeBytes: len(img.Data)}
		switch strings.ToLower(img.MediaType) {
		case "image/png", "image/jpeg", "image/jpg", "image/webp":
		default:
			a.DropReason = "unsupported_type"
		}
		switch {
		case len(img.Data) == 0:
			a.DropReason = "empty"
		case len(img.Data) > maxImage:
			a.DropReason = "file_too_large"
		}
		if a.Included = a.DropReason == ""; a.Included {
			a.ImageURLLength = base64.StdEncoding.EncodedLen(len(img.Data))
		}
		all[i] = a
	}
	return all
}

// omitted tells the model of the images that it is not shown.
func omitted(images []ImageAudit) string {
	var b strings.Builder
	for i, a := range images {
		if !a.Included {
			b.WriteString("\n[image " + strconv.Itoa(i+1) + " of this message was left out: " + a.DropReason + "]")
		}
	}
	return b.String()
}

// appendImages appends the images as bare base64; a data URI would be taken
// for broken base64.
func appendImages(b []byte, images []llm.Image, audit []ImageAudit) []byte {
	open := `,"images":["`
	for i, img := range images {
		if audit[i].Included {
			b = base64.StdEncoding.AppendEncode(append(b, open...), img.Data)
			open = `","`
		}
	}
	if open == `","` {
		b = append(b, `"]`...)
	}
	return b
}
