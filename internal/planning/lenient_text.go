package planning

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// quote is how a text is delimited.
type quote struct {
	open   string
	close  []string
	surely bool // the first closing quote ends it, whatever follows
}

// quotes are the ways in which models delimit text, longest first.
var quotes = []quote{
	{`"""`, []string{`"""`}, true},
	{`'''`, []string{`'''`}, true},
	{`"`, []string{`"`}, false},
	{`'`, []string{`'`}, false},
	{"`", []string{"`"}, true},
	{"“", []string{"”", "“", `"`}, false},
	{"”", []string{"”", `"`}, false},
	{"„", []string{"“", "”", `"`}, false},
	{"‘", []string{"’", "‘", "'"}, false},
	{"’", []string{"’", "'"}, false},
	{"＂", []string{"＂"}, false},
}

// quote returns how the text that begins here is delimited, or nil where none
// begins.
func (r *lenient) quote() *quote {
	rest := r.in[r.at:]
	if strings.HasPrefix(rest, "```") {
		return nil
	}
	for i := range quotes {
		if strings.HasPrefix(rest, quotes[i].open) {
			return &quotes[i]
		}
	}
	return nil
}

// text reads a text and writes it as one of JSON.
func (r *lenient) text(q *quote, key, inList bool) {
	r.at += len(q.open)
	r.out = append(r.out, '"')
	defer func() { r.out = append(r.out, '"') }()
	for r.at < len(r.in) {
		rest := r.in[r.at:]
		if n := q.closes(rest); n > 0 && (q.surely || key || r.ends(r.at+n, inList)) {
			r.at += n
			return
		}
		switch {
		case rest[0] == '\\':
			r.at += r.escape(rest)
		case rest[0] == '\n' && !q.surely && !strings.HasPrefix(rest, "\n\n") && (key || r.keyAhead(r.indent())):
			r.unclosed()
			return
		default:
			r.at += r.emit(rest)
		}
	}
	r.cutOff(true)
}

// closes returns the length of the closing quote at the beginning of rest; 0
// for none.
func (q *quote) closes(rest string) int {
	i := slices.IndexFunc(q.close, func(c string) bool { return strings.HasPrefix(rest, c) })
	if i < 0 {
		return 0
	}
	return len(q.close[i])
}

// maxIndent is how far a key is looked for after a line break, in bytes.
const maxIndent = 64

// indent returns where the next line begins to say something.
func (r *lenient) indent() int {
	i := r.at
	for end := min(len(r.in), i+maxIndent); i < end && isSpace(r.in[i]); i++ {
	}
	return i
}

// unclosed mends a text whose closing quote was left out at the end of a line:
// the comma there belonged to the object.
func (r *lenient) unclosed() {
	for n := len(r.out); n > 0 && (r.out[n-1] == ',' || r.out[n-1] == ' '); n-- {
		r.out = r.out[:n-1]
	}
}

// ends reports whether a closing quote before i ends a value: what follows must
// go on as JSON. Else it is a quote within the text that was not escaped.
func (r *lenient) ends(i int, inList bool) bool {
	start := i
	i = r.spaces(i)
	if i >= len(r.in) {
		return true
	}
	switch rest := r.in[i:]; {
	case rest[0] == '}' || rest[0] == ']':
		return true
	case rest[0] == ',':
		return r.follows(r.spaces(i+1), inList)
	case strings.HasPrefix(rest, "，"):
		return r.follows(r.spaces(i+len("，")), inList)
	case strings.HasPrefix(rest, "```"), strings.HasPrefix(rest, "</"):
		return true
	case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "/*"), rest[0] == '#':
		return i > start
	case rest[0] == '"' || rest[0] == '\'': // a comma was left out
		return i > start && (inList || r.keyAhead(i))
	default: // prose after an object that was not closed
		return strings.Contains(r.in[start:i], "\n\n")
	}
}

// follows reports whether what stands at i can stand after a comma: a key, or a
// value where the comma is one of a list.
func (r *lenient) follows(i int, inList bool) bool {
	if i >= len(r.in) {
		return true
	}
	rest := r.in[i:]
	for _, begin := range []string{`"`, `'`, "“", "”", "‘", "＂", "`", "}", "]", "//", "/*", "#", ","} {
		if strings.HasPrefix(rest, begin) {
			return true
		}
	}
	if !inList {
		n := 0
		for n < len(rest) && n < lookAround && (isWord(rest[n]) || n > 0 && rest[n] == '-') {
			n++
		}
		colon := r.spaces(i + n)
		return n > 0 && colon < len(r.in) && r.in[colon] == ':'
	}
	if strings.ContainsRune("{[-0123456789.", rune(rest[0])) {
		return true
	}
	for _, word := range []string{"true", "false", "null", "True", "False", "None"} {
		if after, ok := strings.CutPrefix(rest, word); ok && (after == "" || !isWord(after[0])) {
			return true
		}
	}
	return false
}

// escape copies the escape sequence that rest begins with and returns its
// length. What JSON does not know keeps its backslash, as it stands in paths
// and patterns.
func (r *lenient) escape(rest string) int {
	if len(rest) == 1 {
		return 1
	}
	switch c := rest[1]; c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		r.out = append(r.out, '\\', c)
	case '\'', '`':
		r.out = append(r.out, c)
	case '\n':
		r.out = append(r.out, '\\', 'n')
	case 'u':
		if len(rest) < 6 && isHex(rest[2:]) { // cut
			return len(rest)
		}
		if len(rest) < 6 || !isHex(rest[2:6]) {
			r.out = append(r.out, `\\u`...)
			return 2
		}
		r.out = append(r.out, rest[:6]...)
		return 6
	default:
		r.out = append(r.out, '\\', '\\')
		return 1
	}
	return 2
}

// isHex reports whether s consists of hexadecimal digits.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// emit writes the first character of rest as it stands in a text of JSON and
// returns its length in rest.
func (r *lenient) emit(rest string) int {
	switch c := rest[0]; {
	case c == '"' || c == '\\':
		r.out = append(r.out, '\\', c)
	case c == '\n':
		r.out = append(r.out, '\\', 'n')
	case c == '\t':
		r.out = append(r.out, '\\', 't')
	case c < 0x20:
		r.out = fmt.Appendf(r.out, `\u%04x`, c)
	case c < utf8.RuneSelf:
		r.out = append(r.out, c)
	default:
		u, n := utf8.DecodeRuneInString(rest)
		r.out = utf8.AppendRune(r.out, u) // U+FFFD for what is no character
		return n
	}
	return 1
}
