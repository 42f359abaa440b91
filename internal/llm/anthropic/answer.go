package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// event is one event of a stream, or a whole answer: as little of it as is
// used. Source: MessageStreamEvent and Message of Anthropic's API description.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *message        `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   delta           `json:"delta"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type message struct {
	Type       string            `json:"type"`
	Model      string            `json:"model"`
	Content    []json.RawMessage `json:"content"`
	StopReason string            `json:"stop_reason"`
	Usage      *usage            `json:"usage"`
	Error      json.RawMessage   `json:"error"`
}

type delta struct {
	Type       string `json:"type"`
	Text       string `json:"text"`
	JSON       string `json:"partial_json"`
	Thinking   string `json:"thinking"`
	Signature  string `json:"signature"`
	StopReason string `json:"stop_reason"`
}

// usage comes in two events, of which the later one counts where both have a
// number.
type usage struct {
	Input      *int `json:"input_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
	Output     *int `json:"output_tokens"`
	Details    *struct {
		Thinking int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) update(by *usage) {
	if by == nil {
		return
	}
	for _, n := range []struct{ to, from **int }{{&u.Input, &by.Input}, {&u.CacheRead, &by.CacheRead}, {&u.CacheWrite, &by.CacheWrite}, {&u.Output, &by.Output}} {
		if *n.from != nil {
			*n.to = *n.from
		}
	}
	if by.Details != nil {
		u.Details = by.Details
	}
}

// report returns u in the common form, nil where it counts nothing. The API's
// input_tokens are only those that neither came from the cache nor went to it.
func (u *usage) report() *llm.Usage {
	count := func(n *int) int {
		if n == nil {
			return 0
		}
		return max(*n, 0)
	}
	r := &llm.Usage{CachedTokens: count(u.CacheRead), CacheWriteTokens: count(u.CacheWrite), CompletionTokens: count(u.Output)}
	r.PromptTokens = count(u.Input) + r.CachedTokens + r.CacheWriteTokens
	r.TotalTokens = r.PromptTokens + r.CompletionTokens
	if r.TotalTokens == 0 {
		return nil
	}
	if u.Details != nil {
		r.ReasoningTokens = max(u.Details.Thinking, 0)
	}
	return r
}

// answer puts the events of one answer together.
type answer struct {
	maxSize int
	onText  func(string)

	blocks       []*block
	stop, model  string
	usage        usage
	done         bool // the server said so, or sent a document
	size         int  // bytes kept
	streamedText bool
}

// block is one block of the content.
type block struct {
	index     int
	start     blockStart
	raw       json.RawMessage // as it began, of a kind that is returned as it was
	text      strings.Builder // what it says, or the input of a call
	signature strings.Builder
	grew      bool
}

// blockSize is what the bookkeeping of a block counts as, in bytes.
const blockSize = 64

type blockStart struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// read reads the body of an answer into a.
func (c *client) read(ctx context.Context, a *answer, contentType string, in io.Reader) (e *llm.Error, broken error) {
	f := wire.Format{Name: "an answer of the Messages API", MaxEvent: c.maxEvent, MaxAnswer: c.maxAnswer}
	return f.Read(ctx, a, contentType, in)
}

// Size is how much was taken in.
func (a *answer) Size() int { return a.size }

// Begun reports whether anything was taken in.
func (a *answer) Begun() bool { return len(a.blocks) > 0 || a.stop != "" }

// Finished reports whether only the end of the stream can be missing.
func (a *answer) Finished() bool { return a.stop != "" }

// Event takes in one event. Kinds that are not known are passed over, as the
// API's versioning demands.
func (a *answer) Event(name string, data []byte) (done bool, err error) {
	switch name {
	case "error":
		return false, wire.StreamError(data)
	case "ping", "content_block_stop":
		return false, nil
	}
	var ev event
	if err := json.Unmarshal(data, &ev); err != nil {
		return false, err
	}
	switch ev.Type {
	case "message_start":
		if m := ev.Message; m != nil {
			a.model = m.Model
			a.usage.update(m.Usage)
		}
	case "content_block_start":
		err = a.begin(ev.Index, ev.Block, false)
	case "content_block_delta":
		a.grow(ev.Index, &ev.Delta)
	case "message_delta":
		a.usage.update(ev.Usage)
		if ev.Delta.StopReason != "" {
			a.stop = ev.Delta.StopReason
		}
	case "message_stop":
		a.done = true
	default:
		if ev.Type == "error" || wire.Given(ev.Error) {
			return false, wire.StreamError(data)
		}
	}
	if err == nil && a.size > a.maxSize {
		err = wire.TooLong(a.maxSize)
	}
	return a.done, err
}

var errNoMessage = errors.New("not a message")

// Document takes in a whole answer.
func (a *answer) Document(data []byte) error {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	if m.Type == "error" || wire.Given(m.Error) {
		return wire.StreamError(data)
	}
	if m.Type != "message" {
		return errNoMessage
	}
	a.model, a.stop, a.done = m.Model, m.StopReason, true
	a.usage.update(m.Usage)
	for i, raw := range m.Content {
		if err := a.begin(i, raw, true); err != nil {
			return err
		}
	}
	return nil
}

// begin takes in a block as it begins; whole says that this is all of it.
func (a *answer) begin(index int, raw json.RawMessage, whole bool) error {
	b := &block{index: index}
	if err := json.Unmarshal(raw, &b.start); err != nil {
		return err
	}
	a.blocks = append(a.blocks, b)
	a.size += blockSize
	switch b.start.Type {
	case "text":
		a.say(b, b.start.Text)
	case "thinking", "redacted_thinking":
		b.raw = bytes.Clone(raw)
		b.text.WriteString(b.start.Thinking)
		b.signature.WriteString(b.start.Signature)
		a.size += len(raw)
	case "tool_use":
		a.size += len(b.start.ID) + len(b.start.Name)
		// In a stream the input comes in pieces, after an empty object.
		if input := string(b.start.Input); whole || input != "{}" && wire.Given(b.start.Input) {
			a.input(b, input)
		}
	}
	b.grew = false
	return nil
}

// grow adds a piece to a block. What belongs to no block, or is of a kind that
// is not known, is passed over.
func (a *answer) grow(index int, d *delta) {
	var b *block
	for i := len(a.blocks) - 1; i >= 0 && b == nil; i-- {
		if a.blocks[i].index == index {
			b = a.blocks[i]
		}
	}
	if b == nil {
		return
	}
	switch kind := b.start.Type; {
	case kind == "text" && d.Type == "text_delta":
		a.say(b, d.Text)
	case kind == "tool_use" && d.Type == "input_json_delta":
		a.input(b, d.JSON)
	case kind == "thinking" && d.Type == "thinking_delta":
		b.text.WriteString(d.Thinking)
		a.size += len(d.Thinking)
		b.grew = true
	case kind == "thinking" && d.Type == "signature_delta":
		b.signature.WriteString(d.Signature)
		a.size += len(d.Signature)
		b.grew = true
	}
}

// say adds a piece of text.
func (a *answer) say(b *block, piece string) {
	b.text.WriteString(piece)
	a.size += len(piece)
	a.stream(piece)
}

// input adds a piece of a call's input.
func (a *answer) input(b *block, piece string) {
	b.text.WriteString(piece)
	a.size += len(piece)
}

func (a *answer) stream(piece string) {
	if piece != "" && a.onText != nil {
		a.streamedText = true
		a.onText(piece)
	}
}
