package ollama

import (
	"encoding/base64"
	"strconv"
	"strings"

	"toritsugi/internal/contextstore/jsonl"
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
	b, err := wire.AppendTools(b, set.Tools)
	if err != nil {
		return nil, err
	}
	return append(b, `,"messages":[`...), nil
}

// appendLoad appends what a request begins with. Together with appendOptions it
// decides how the model is loaded; a warm-up sends the same, or the next call
// would load it anew.
func (c *client) appendLoad(b []byte) []byte {
	b = wire.AppendString(append(b, `{"model":`...), c.model)
	b = append(append(b, `,"keep_alive":`...), c.keepAlive...)
	return append(b, `,"truncate":false,"shift":false`...)
}

// appendOptions appends the options, which stand behind the messages because
// the output limit can differ from call to call; 0 is none.
func (c *client) appendOptions(b []byte, limit int) []byte {
	b = strconv.AppendInt(append(b, `,"options":{"num_ctx":`...), int64(c.numCtx), 10)
	if limit > 0 {
		b = strconv.AppendInt(append(b, `,"num_predict":`...), int64(limit), 10)
	}
	if c.temperature != nil {
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *c.temperature, 'f', -1, 64)
	}
	return append(b, '}')
}

// appendMessage appends m as one element of the messages array. toolName is the
// tool that a tool message comes from, which templates show to the model.
// Source: api.Message of Ollama.
func appendMessage(b []byte, m *llm.Message, toolName string) []byte {
	b = wire.AppendString(append(b, `{"role":`...), m.Role)
	b = wire.AppendString(append(b, `,"content":`...), m.Content+omitted(m.Images))
	b = appendImages(b, m.Images)
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
		b = append(append(b, `,"arguments":`...), jsonl.Valid(wire.Arguments(call.Arguments))...)
		b = append(b, `}}`...)
	}
	return append(b, `]}`...)
}

// maxImage is the longest image sent, in bytes.
const maxImage = 20 << 20

// leftOut is why an image is not sent, "" where it is. Ollama fails the whole
// request for one that it cannot read.
func leftOut(img *llm.Image) string {
	switch {
	case len(img.Data) == 0:
		return "empty"
	case len(img.Data) > maxImage:
		return "file_too_large"
	}
	switch strings.ToLower(img.MediaType) {
	case "image/png", "image/jpeg", "image/jpg", "image/webp":
		return ""
	}
	return "unsupported_type"
}

// omitted tells the model of the images that it is not shown.
func omitted(images []llm.Image) string {
	var b strings.Builder
	for i := range images {
		if why := leftOut(&images[i]); why != "" {
			b.WriteString("\n[image " + strconv.Itoa(i+1) + " of this message was left out: " + why + "]")
		}
	}
	return b.String()
}

// appendImages appends the images as bare base64; a data URI would be taken
// for broken base64.
func appendImages(b []byte, images []llm.Image) []byte {
	open := `,"images":["`
	for i := range images {
		if leftOut(&images[i]) == "" {
			b = base64.StdEncoding.AppendEncode(append(b, open...), images[i].Data)
			open = `","`
		}
	}
	if open == `","` {
		b = append(b, `"]`...)
	}
	return b
}
