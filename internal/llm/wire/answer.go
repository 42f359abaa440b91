package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"toritsugi/internal/llm"
)

// ShownBytes is how much of an answer that is not understood errors show.
const ShownBytes = 120

// FirstByte skips white space and a byte order mark and returns the next byte,
// unread.
func FirstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		switch b[0] {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
			_, _ = r.Discard(1) // was peeked
		default:
			return b[0], nil
		}
	}
}

// Cut is an answer that ended too early.
func Cut() *llm.Error {
	return &llm.Error{Kind: llm.KindCutStream, Message: "the stream ended before the answer did", Err: io.ErrUnexpectedEOF}
}

// Invalid is an answer that is not in the wire format; what names that, start
// is how the answer, or the part that is not understood, begins.
func Invalid(what, contentType string, start []byte) *llm.Error {
	return &llm.Error{Kind: llm.KindInvalid,
		Message: fmt.Sprintf("not %s: content type %q, at %q", what, contentType, start[:min(len(start), ShownBytes)])}
}

// TooLong is an answer of which something is longer than limit bytes.
func TooLong(what string, limit int) *llm.Error {
	return &llm.Error{Kind: llm.KindInvalid, Message: fmt.Sprintf("%s is longer than %d bytes", what, limit)}
}

// Told reports whether a field is there and not null.
func Told(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// LooseText is a string's text, the text of a list's parts, the JSON text of
// anything else, and nothing for null.
func LooseText(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	switch raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // raw was found valid with what holds it
		return s
	case '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &parts) == nil {
			var b strings.Builder
			for _, p := range parts {
				b.WriteString(p.Text)
			}
			return b.String()
		}
	}
	return string(raw)
}

// GeneratedID is the n of an id that NewID made, else 0. Counting on from the
// highest keeps ids unique within the window, also after a resume, without any
// state.
func GeneratedID(id string) int {
	digits, found := strings.CutPrefix(id, "call_")
	if n, err := strconv.Atoi(digits); found && err == nil && 0 < n && n < 1e9 {
		return n
	}
	return 0
}

// NewID is the id of a call that came without one.
func NewID(n int) string { return "call_" + strconv.Itoa(n) }
