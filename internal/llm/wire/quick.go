package wire

import (
	"encoding/json"
	"unicode/utf8"
)

// QuickString reads the rest of a JSON string, whose opening quote was read,
// and returns how many bytes it took. ok is false where it has none of the
// common forms; what it is part of is for the general decoder then, which costs
// more than all else that is done for a token.
func QuickString(b []byte) (s string, n int, ok bool) {
	for n < len(b) && b[n] != '"' && b[n] != '\\' && b[n] >= ' ' {
		n++
	}
	if n == len(b) || b[n] < ' ' || !utf8.Valid(b[:n]) {
		return "", 0, false
	}
	if b[n] == '"' {
		return string(b[:n]), n + 1, true
	}
	for n < len(b) && b[n] != '"' {
		if b[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(b) {
		return "", 0, false
	}
	quoted := append(append(make([]byte, 0, n+2), '"'), b[:n+1]...)
	if json.Unmarshal(quoted, &s) != nil {
		return "", 0, false
	}
	return s, n + 1, true
}
