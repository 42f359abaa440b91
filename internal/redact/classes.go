package redact

import "strings"

// The byte classes of the patterns.
const (
	upper = 1 << iota // A-Z
	lower             // a-z
	digit             // 0-9
	under             // _
	dash              // -
	local             // . % + : besides the above, of an e-mail's local part
	b64               // + / = of base64, . ~ of a bearer token (RFC 6750 §2.1)
	alnum = upper | lower | digit
	word  = alnum | under
	token = word | dash
)

// classes says of every byte what it may be part of.
var classes = func() (t [256]uint8) {
	for c := range 256 {
		switch {
		case 'A' <= c && c <= 'Z':
			t[c] = upper
		case 'a' <= c && c <= 'z':
			t[c] = lower
		case '0' <= c && c <= '9':
			t[c] = digit
		}
	}
	t['_'] |= under
	t['-'] |= dash
	for _, c := range ".%+" {
		t[c] |= local
	}
	for _, c := range "+/=.~" {
		t[c] |= b64
	}
	return t
}()

func is(c byte, class uint8) bool { return classes[c]&class != 0 }

// run returns the end of the run of class that starts at s[i].
func run(s string, i int, class uint8) int {
	for i < len(s) && is(s[i], class) {
		i++
	}
	return i
}

// glued reports whether the byte before s[i] is of class, so that s[i] is not
// the start of a word. The end of an escape sequence is no part of a word: the
// n of a JSON string's \n, the digits of \u003c, the m of a terminal colour.
func glued(s string, i int, class uint8) bool {
	if i == 0 || !is(s[i-1], class) {
		return false
	}
	if i >= 2 && s[i-2] == '\\' && strings.IndexByte("nrtbf", s[i-1]) >= 0 {
		return false
	}
	if i >= 6 && s[i-6] == '\\' && s[i-5] == 'u' && hexDigits(s[i-4:i]) {
		return false
	}
	if s[i-1] == 'm' {
		j := i - 2
		for stop := max(0, i-16); j > stop && (is(s[j], digit) || s[j] == ';'); j-- {
		}
		if j >= 1 && s[j] == '[' && s[j-1] == 0x1b {
			return false
		}
	}
	return true
}

func hexDigits(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; !is(s[i], digit) && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
