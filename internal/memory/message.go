package memory

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// imageTokens is what an image counts as, whatever its size in bytes: models
// charge by its pixels, from about 250 to 1,600 tokens once it was scaled to
// what they look at (85 and 170 for each tile of 512 pixels at OpenAI, width ×
// height / 750 at Anthropic).
const imageTokens = 1000

// size is how much a part of the conversation takes.
type size struct {
	text   int // bytes of its serialised form without the content of images
	images int
}

func (s size) plus(o size) size  { return size{s.text + o.text, s.images + o.images} }
func (s size) minus(o size) size { return size{s.text - o.text, s.images - o.images} }

// append takes a message into the conversation and notes what of it is images.
func (w *Window) append(m llm.Message) {
	if len(m.Images) == 0 {
		w.conv.Append(m)
		return
	}
	before := len(w.conv.Serialized())
	w.conv.Append(m)
	now := w.conv.Serialized()
	content, images := shown(now[min(before, len(now)):], m.Images)
	w.content += content
	w.images += images
}

// size is that of the conversation as it stands.
func (w *Window) size() size { return size{len(w.conv.Serialized()) - w.content, w.images} }

// shown is how many of a message's images are in its serialised form, and how
// many bytes they take there: a client may leave some out.
func shown(serialized []byte, images []llm.Image) (content, n int) {
	var encoded []byte
	for i := range images {
		encoded = base64.StdEncoding.AppendEncode(encoded[:0], images[i].Data)
		if at := bytes.Index(serialized, encoded); at >= 0 && len(encoded) > 0 {
			serialized = serialized[at+len(encoded):]
			content += len(encoded)
			n++
		}
	}
	return content, n
}

// message is a message of the ledger as the model is shown it. It follows from
// the ledger alone, so that a resumed run serialises the same bytes. An image
// that cannot be read back is told in words: the run goes on without it.
func (w *Window) message(m contextstore.Message) llm.Message {
	out := llm.Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, Opaque: string(m.Provider), ToolCallID: string(m.ToolCallID), ToolName: m.ToolName, Failed: m.Failed}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: string(c.ID), Name: c.Name, Arguments: c.Arguments})
	}
	n := 0
	for _, i := range m.Images {
		if i.Path == "" { // the text says why
			continue
		}
		n++
		data, err := w.ledger.ReadImage(i)
		if err != nil {
			out.Content += fmt.Sprintf("\n[image %d of this message was left out: its file is missing or damaged]", n)
			continue
		}
		out.Images = append(out.Images, llm.Image{MediaType: i.MediaType, Data: data, Source: i.Source})
	}
	return out
}
