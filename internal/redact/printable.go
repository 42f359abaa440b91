package redact

import (
	"strings"
	"unicode"
)

// Printable drops what could steer a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if Steers(r) {
			return -1
		}
		return r
	}, s)
}

// Steers reports whether a character could steer a terminal: control characters,
// line breaks and tabs excepted, and marks of text direction.
func Steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}
