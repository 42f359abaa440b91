package channel

import (
	"strings"
	"unicode/utf16"

	"toritsugi/internal/redact"
)

// How much of what vendors send is read, in bytes.
const (
	MaxRequest = 1 << 20  // of one request: some events
	MaxEvent   = 64 << 10 // the body of one Event
)

// Clean is a text of models or strangers without what steers, hides or turns it, with spaces
// for tabs.
func Clean(s string) string { return strings.ReplaceAll(redact.Printable(s), "\t", "    ") }

// Units is the length of a text as vendors count it, in UTF-16 units.
func Units(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
