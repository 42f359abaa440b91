package mcp

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain makes a stranger's text fit to be read by a model or a person: valid
// UTF-8 without control characters, and without characters that are not seen,
// in which orders can be hidden. It is at most limit bytes long; where something was
// cut, its end says so.
func plain(s string, limit int) string {
	if len(s) > 4*limit+64 { // enough for any text whose cleaned form is cut
		s = s[:4*limit+64]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u2028' || r == '\u2029':
			return '\n'
		case r == utf8.RuneError || hidden(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), ""))
	return clip(s, limit)
}

// line is plain on one line.
func line(s string, limit int) string {
	return clip(strings.Join(strings.Fields(plain(s, limit)), " "), limit)
}

// hidden reports whether r leaves nothing to see, or changes how its
// neighbours are shown.
func hidden(r rune) bool {
	switch {
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
		return true
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return r == '\u2800' // the Braille pattern without dots
}

// clip returns at most limit bytes of s, with a mark where something is missing.
func clip(s string, limit int) string {
	const mark = "..."
	if len(s) <= limit {
		return s
	}
	n := max(limit-len(mark), 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
