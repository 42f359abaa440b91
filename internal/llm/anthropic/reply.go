package anthropic

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// stopWords maps the vendor's words to the common ones. A paused turn counts
// as cut off: it is gone on with in the same way.
// Source: "Handling stop reasons" of Anthropic's documentation.
var stopWords = map[string]string{
	"end_turn": llm.FinishStop, "stop_sequence": llm.FinishStop, "tool_use": llm.FinishToolCalls,
	"max_tokens": llm.FinishLength, "model_context_window_exceeded": llm.FinishLength, "pause_turn": llm.FinishLength,
	"refusal": llm.FinishContentFilter,
}

// reply returns the finished answer. Ids that are missing or repeated are made
// from the numbers after lastID.
func (a *answer) reply(lastID int, n names) (*llm.Reply, *llm.Error) {
	if a.stop == "" {
		if !a.done || len(a.blocks) == 0 {
			return nil, wire.Cut()
		}
		a.stop = llm.FinishStop
	}
	finish := a.stop
	if word, ok := stopWords[finish]; ok {
		finish = word
	}
	m := llm.Message{Role: llm.RoleAssistant, Opaque: a.opaque()}
	var text, thinking strings.Builder
	for _, b := range a.blocks {
		switch b.start.Type {
		case "text":
			text.WriteString(b.text.String())
		case "thinking":
			if thinking.Len() > 0 && b.text.Len() > 0 {
				thinking.WriteString("\n\n")
			}
			thinking.WriteString(b.text.String())
		case "tool_use":
			m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: b.start.ID, Name: n.called(b.start.Name), Arguments: b.text.String()})
		}
	}
	m.Content, m.Reasoning = text.String(), thinking.String()
	if !a.streamedText {
		a.stream(m.Content)
	}
	wire.NameCalls(m.ToolCalls, lastID)
	if finish == llm.FinishStop && len(m.ToolCalls) > 0 {
		finish = llm.FinishToolCalls
	}
	return &llm.Reply{Message: m, FinishReason: finish, Usage: a.usage.report(), Model: a.model}, nil
}

// part is an element of Message.Opaque: a block of thinking as it is returned,
// or what stands for a text or a call between two such blocks.
type part struct {
	Type      string `json:"type"`
	Bytes     int    `json:"bytes"` // of the message's content
	Signature string `json:"signature"`
	Data      string `json:"data"`
	raw       json.RawMessage
}

// opaque returns the blocks of thinking as a JSON array, "" where there are
// none. Where thinking came after something else, {"type":"text","bytes":n}
// and {"type":"tool_use"} keep the order of it all. Thinking that lacks its
// signature, because the answer was cut, would be refused and is left out.
func (a *answer) opaque() string {
	out, count, ordered, other := []byte{'['}, 0, true, false
	for _, b := range a.blocks {
		if raw := b.thought(); raw != nil {
			ordered = ordered && !other
			count++
		} else {
			other = other || b.start.Type == "text" && b.text.Len() > 0 || b.start.Type == "tool_use"
		}
	}
	if count == 0 {
		return ""
	}
	keepOrder := !ordered
	for _, b := range a.blocks {
		raw := b.thought()
		if raw == nil && keepOrder {
			switch b.start.Type {
			case "text":
				raw = strconv.AppendInt([]byte(`{"type":"text","bytes":`), int64(b.text.Len()), 10)
				raw = append(raw, '}')
			case "tool_use":
				raw = []byte(`{"type":"tool_use"}`)
			}
		}
		if raw == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return string(append(out, ']'))
}

// thought is a block of thinking as it is to be returned, nil for other
// blocks. One that came whole is returned byte for byte.
func (b *block) thought() []byte {
	switch {
	case b.start.Type == "redacted_thinking" && b.start.Data != "":
		return b.raw
	case b.start.Type != "thinking" || b.signature.Len() == 0:
		return nil
	case !b.grew:
		return b.raw
	}
	raw := wire.AppendString([]byte(`{"type":"thinking","thinking":`), b.text.String())
	raw = wire.AppendString(append(raw, `,"signature":`...), b.signature.String())
	return append(raw, '}')
}

// parseParts reads m.Opaque. What no client of this kind has written is left
// out, and where the order no longer fits the message, all but the thinking.
func parseParts(m *llm.Message) []part {
	var raws []json.RawMessage
	if m.Opaque == "" || !utf8.ValidString(m.Opaque) || json.Unmarshal([]byte(m.Opaque), &raws) != nil {
		return nil
	}
	var all, thinking []part
	said, calls, fits := 0, 0, true // by the parts that keep the order
	for _, raw := range raws {
		p := part{raw: raw}
		if json.Unmarshal(raw, &p) != nil {
			return nil
		}
		switch {
		case p.Type == "thinking" && p.Signature != "", p.Type == "redacted_thinking" && p.Data != "":
			thinking = append(thinking, p)
		case p.Type == "text" && p.Bytes >= 0 && p.Bytes <= len(m.Content)-said:
			said += p.Bytes
			fits = fits && (said == len(m.Content) || utf8.RuneStart(m.Content[said]))
		case p.Type == "tool_use":
			calls++
		default:
			fits = false
			continue
		}
		all = append(all, p)
	}
	if fits && said == len(m.Content) && calls == len(m.ToolCalls) {
		return all
	}
	return thinking
}
