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
	rest, found := bytes.CutPrefix(data, []byte(deltaHead))
	if !found {
		return 0, delta{}, false
	}
	digits := 0
	for digits < len(rest) && digits < 6 && '0' <= rest[digits] && rest[digits] <= '9' {
		index = 10*index + int(rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits > 1 && rest[0] == '0' {
		return 0, delta{}, false
	}
	rest = rest[digits:]
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

// closesTwo reports whether b is two closing braces and white space, of which
// the vendor writes any amount before the last.
func closesTwo(b []byte) bool {
	b, found := bytes.CutPrefix(b, []byte{'}'})
	return found && string(bytes.TrimSpace(b)) == "}"
}
