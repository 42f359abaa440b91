package anthropic

import (
	"encoding/base64"
	"strings"

	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// cacheMark is a member of a content block: all up to the end of the block is
// worth keeping in the vendor's cache. A request may hold four.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// The lines that stand where the API demands something and there is nothing.
const (
	openingLine  = "(start of the conversation)" // a user turn before the first answer
	continueLine = "(continue)"                  // a user turn between two answers
	emptyLine    = "(no content)"                // the API refuses texts without a visible character
	systemLine   = "[System message]\n"          // before one that came later than the API can take it
	orphanLine   = "[Result of a call that is no longer shown: "
	missingLine  = "No result of this call is on record."
)

// place is where in the body the last byte of a tape stands.
type place int

const (
	atStart place = iota // nothing written
	inSystem
	inUser
	inAssistant
)

// tape is the part of a request's body that grows: the system field, then the
// messages. It is written strictly forward, and what may still grow is left
// open: the last turn's array, and in it the last block's object, so that the
// next block, or a cache mark, can follow what is there.
type tape struct {
	b     []byte
	at    place
	sep   string // stands before the next block of the same array
	prior int    // end of the last user turn that was answered, 0 where none was
	tools bool   // holds a block of a tool

	thoughts []span // where blocks of thinking stand
	results  bool   // the last user turn holds results of calls
	said     bool   // it holds something else
	thought  bool   // an answer began with thinking since a user turn that held something else
}

// span is a part of a tape, to its end exclusively.
type span struct{ from, to int }

const openBlock, closedBlock = "},", ","

// system begins a block of the system field. Legal until the first turn.
func (t *tape) system(text string) {
	if t.at == atStart {
		t.b = append(t.b, `"system":[`...)
	} else {
		t.b = append(t.b, openBlock...)
	}
	t.at = inSystem
	t.text(text)
}

// user moves to where a block of a user turn can be written.
func (t *tape) user() {
	switch t.at {
	case atStart:
		t.b = append(t.b, `"messages":[`...)
	case inSystem:
		t.b = append(append(t.b, cacheMark...), `}],"messages":[`...)
	case inAssistant:
		t.b = append(t.b, `}]},`...)
	case inUser:
		t.b = append(t.b, t.sep...)
		return
	}
	t.b = append(t.b, `{"role":"user","content":[`...)
	t.at, t.sep = inUser, ""
	t.results, t.said = false, false
}

// line writes a user's text block.
func (t *tape) line(text string) {
	t.user()
	t.said = true
	t.text(text)
}

// picture writes a user's image block.
func (t *tape) picture(i llm.Image) {
	t.user()
	t.said = true
	t.image(i)
}

// ask makes the last turn a user's, which the API demands before each answer:
// newer models refuse to continue one of their own, and older ones refuse it
// where it ends in white space.
func (t *tape) ask() {
	switch t.at {
	case inUser:
	case inAssistant:
		t.line(continueLine)
	default:
		t.line(openingLine)
	}
}

// assistant begins an assistant's turn.
func (t *tape) assistant() {
	t.ask()
	t.thought = t.thought && t.results && !t.said
	t.prior = len(t.b)
	t.b = append(t.b, `}]},{"role":"assistant","content":[`...)
	t.at, t.sep = inAssistant, ""
}

// block writes what separates a block of an assistant's turn from the one before.
func (t *tape) block() { t.b = append(t.b, t.sep...) }

// text writes a text block; a blank text becomes a visible one.
func (t *tape) text(s string) {
	if blank(s) {
		s = emptyLine
	}
	t.b = wire.AppendString(append(t.b, `{"type":"text","text":`...), s)
	t.sep = openBlock
}

// raw writes a block of thinking as it came from the vendor.
func (t *tape) raw(block []byte) {
	t.thought = t.thought || t.sep == "" // the turn begins with it
	t.thoughts = append(t.thoughts, span{len(t.b), len(t.b) + len(block)})
	t.b = append(t.b, block...)
	t.sep = closedBlock
}

// forget takes the blocks of thinking out of the tape. Behind each stands a
// comma, since no turn ends with one.
func (t *tape) forget() {
	var kept []byte
	from, prior := 0, t.prior
	for _, s := range t.thoughts {
		kept = append(kept, t.b[from:s.from]...)
		if from = s.to + len(closedBlock); s.to < prior {
			t.prior -= from - s.from
		}
	}
	t.b, t.thoughts, t.thought = append(kept, t.b[from:]...), nil, false
}

// image writes an image block, or says that the API knows none of its type.
// Source: Base64ImageSource of Anthropic's API description.
func (t *tape) image(i llm.Image) {
	switch i.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		t.text("(an image of the type " + i.MediaType + " cannot be shown)")
		return
	}
	if len(i.Data) == 0 {
		t.text("(an empty image)")
		return
	}
	t.b = append(t.b, `{"type":"image","source":{"type":"base64","media_type":"`+i.MediaType+`","data":"`...)
	t.b = append(base64.StdEncoding.AppendEncode(t.b, i.Data), `"}`...)
	t.sep = openBlock
}

// use writes a call. Source: RequestToolUseBlock.
func (t *tape) use(id, name, arguments string) {
	t.b = wire.AppendString(append(t.b, `{"type":"tool_use","id":`...), id)
	t.b = wire.AppendString(append(t.b, `,"name":`...), name)
	t.b = append(append(t.b, `,"input":`...), plainJSON(wire.Arguments(arguments))...)
	t.sep, t.tools = openBlock, true
}

// result writes the result of a call; a blank one has no content.
// Source: RequestToolResultBlock.
func (t *tape) result(id, text string, images []llm.Image, failed bool) {
	t.user()
	t.b = wire.AppendString(append(t.b, `{"type":"tool_result","tool_use_id":`...), id)
	if failed {
		t.b = append(t.b, `,"is_error":true`...)
	}
	switch {
	case len(images) > 0:
		t.b, t.sep = append(t.b, `,"content":[`...), ""
		if !blank(text) {
			t.text(text)
		}
		for _, i := range images {
			t.block()
			t.image(i)
		}
		t.b = append(t.b, `}]`...)
	case !blank(text):
		t.b = wire.AppendString(append(t.b, `,"content":`...), text)
	}
	t.sep, t.tools, t.results = openBlock, true, true
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// plainJSON replaces what the API refuses in JSON that is valid otherwise:
// bytes that are no UTF-8, and escapes of half a surrogate pair, which models
// write where an answer was cut inside a character. Source: RFC 8259 §8.2.
func plainJSON(s string) string {
	s = jsonl.Valid(s)
	if !strings.Contains(s, `\ud`) && !strings.Contains(s, `\uD`) {
		return s
	}
	b := []byte(s)
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		if i++; b[i] != 'u' { // valid JSON has a character after each backslash, and four after \u
			continue
		}
		switch half := surrogate(b[i+1:]); {
		case half == high && i+6 < len(b) && b[i+5] == '\\' && b[i+6] == 'u' && surrogate(b[i+7:]) == low:
			i += 10
		case half != none:
			copy(b[i+1:], "fffd")
			i += 4
		default:
			i += 4
		}
	}
	return string(b)
}

const none, high, low = 0, 1, 2

// surrogate tells which half of a pair four hexadecimal digits are.
func surrogate(digits []byte) int {
	if len(digits) < 4 || digits[0]|0x20 != 'd' {
		return none
	}
	switch c := digits[1] | 0x20; {
	case c == '8', c == '9', c == 'a', c == 'b':
		return high
	case c >= 'c' && c <= 'f':
		return low
	}
	return none
}
