package anthropic

import (
	"bytes"

	"toritsugi/internal/llm/wire"
)

// deltaHead is how the vendor writes the start of nearly every event.
const deltaHead = `{"type":"content_block_delta","index":`

// pieceFields are the kinds of pieces that come by the thousand, with the name
// of the member that holds the text.
var pieceFields = [...]struct{ kind, head string }{
	{"text_delta", `,"delta":{"type":"text_delta","text":"`},
	{"input_json_delta", `,"delta":{"type":"input_json_delta","partial_json":"`},
	{"thinking_delta", `,"delta":{"type":"thinking_delta","thinking":"`},
}

// quickDelta reads an event that adds a piece to a block, in the one form in
// which the vendor writes it, without the general decoder, which costs more
// than all else that is done for a token. ok is false for every other event
// and form; those are decoded.
func quickDelta(data []byte) (index int, d delta, ok bool) {
	index, rest, ok := quickIndex(data, deltaHead)
	if !ok {
		return 0, delta{}, false
	}
	for _, f := range pieceFields {
		text, found := bytes.CutPrefix(rest, []byte(f.head))
		if !found {
			continue
		}
		s, n, ok := wire.QuickString(text)
		if !ok || !closesTwo(text[n:]) {
			return 0, delta{}, false
		}
		d.Type = f.kind
		switch f.kind {
		case "text_delta":
			d.Text = s
		case "input_json_delta":
			d.JSON = s
		default:
			d.Thinking = s
		}
		return index, d, true
	}
	return 0, delta{}, false
}

// The events that begin a text and end an answer, up to the white space before
// their last brace.
const (
	startHead = `{"type":"content_block_start","index":`
	textHead  = `,"content_block":{"type":"text","text":""}`
	stopHead  = `{"type":"message_stop"`
)

// quickStart reads the event that begins a text, as quickDelta does.
func quickStart(data []byte) (index int, ok bool) {
	index, rest, ok := quickIndex(data, startHead)
	if !ok {
		return 0, false
	}
	rest, ok = bytes.CutPrefix(rest, []byte(textHead))
	return index, ok && closes(rest)
}

// quickStop reports whether an event is the last one of an answer.
func quickStop(data []byte) bool {
	rest, found := bytes.CutPrefix(data, []byte(stopHead))
	return found && closes(rest)
}

// quickIndex reads an event that begins with head and the index of a block.
func quickIndex(data []byte, head string) (index int, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(data, []byte(head))
	digits := 0
	for digits < len(rest) && digits < 6 && '0' <= rest[digits] && rest[digits] <= '9' {
		index = 10*index + int(rest[digits]-'0')
		digits++
	}
	return index, rest[digits:], ok && digits > 0 && (digits == 1 || rest[0] != '0')
}

// closes reports whether b is a closing brace after white space, of which the
// vendor writes any amount.
func closes(b []byte) bool { return string(bytes.Trim(b, " \t\r\n")) == "}" }

// closesTwo reports whether b is two closing braces, white space before the last.
func closesTwo(b []byte) bool {
	b, found := bytes.CutPrefix(b, []byte{'}'})
	return found && closes(b)
}
