package memory

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/image"
)

// imageTokens is what an image counts as, whatever its size in bytes: models
// charge by its pixels, from about 250 to 1,600 tokens once it was scaled to
// what they look at (85 and 170 for each tile of 512 pixels at OpenAI, width ×
// height / 750 at Anthropic).
const imageTokens = 1000

// size is how much a part of the conversation takes.
type size struct {
	text   int // units of its serialised form without the content of images
	images int
}

func (s size) plus(o size) size  { return size{s.text + o.text, s.images + o.images} }
func (s size) minus(o size) size { return size{s.text - o.text, s.images - o.images} }

// append takes a message into the conversation and returns the units that a
// byte of it takes.
func (w *Window) append(m llm.Message) float64 {
	before := len(w.conv.Serialized())
	w.conv.Append(m)
	now := w.conv.Serialized()
	now = now[min(before, len(now)):]
	if len(m.Images) == 0 {
		units := w.gauge.count(now)
		w.taken.text += units
		return float64(units) / float64(max(len(now), 1))
	}
	text, images := shown(now, m.Images)
	units, all := 0, 0
	for _, t := range text {
		units += w.gauge.count(t)
		all += len(t)
	}
	w.taken = w.taken.plus(size{units, images})
	return float64(units) / float64(max(all, 1))
}

// shown is the serialised form of a message around the content of its images,
// and how many of them are in it: a client may leave some out.
func shown(serialized []byte, images []llm.Image) (text [][]byte, n int) {
	var encoded []byte
	for i := range images {
		encoded = base64.StdEncoding.AppendEncode(encoded[:0], images[i].Data)
		if at := bytes.Index(serialized, encoded); at >= 0 && len(encoded) > 0 {
			text = append(text, serialized[:at])
			serialized = serialized[at+len(encoded):]
			n++
		}
	}
	return append(text, serialized), n
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
			out.Dropped = append(out.Dropped, llm.Dropped{Source: i.Source, Reason: i.Dropped})
			continue
		}
		n++
		data, err := w.ledger.ReadImage(i)
		if err != nil {
			out.Content += fmt.Sprintf("\n[image %d of this message was left out: its file is missing or damaged]", n)
			out.Dropped = append(out.Dropped, llm.Dropped{Source: i.Source, Reason: image.ReadFailed})
			continue
		}
		out.Images = append(out.Images, llm.Image{MediaType: i.MediaType, Data: data, Source: i.Source})
	}
	return out
}
