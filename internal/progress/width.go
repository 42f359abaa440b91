package progress

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width is how many columns of a terminal a text takes at most. What East Asian
// terminals show wide and others narrow counts as wide: a line that turns out
// shorter does no harm, one that turns out longer is wrapped.
func Width(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r == 0x7f:
		return 0
	case r < 0x7f:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		if r == 0xfe0f {
			return 1 // makes what stands before it as wide as an emoji
		}
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth, width.EastAsianAmbiguous:
		return 2
	}
	return 1
}

// Fit shortens a text to at most columns columns, and says so by its last ones.
func Fit(s string, columns int) string {
	if Width(s) <= columns {
		return s
	}
	const mark = ".."
	room := columns - len(mark)
	if room < 0 {
		return strings.Repeat(".", max(columns, 0))
	}
	for i, r := range s {
		if room -= runeWidth(r); room < 0 {
			return s[:i] + mark
		}
	}
	return s
}
