package broker

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"toritsugi/internal/lazyregexp"
)

// hiddenRune reports whether a character is not seen by a reader: formats,
// marks of direction, fillers, selectors, and the tags and private characters
// in which text is smuggled to the next model.
func hiddenRune(r rune) bool {
	switch {
	case r < 0xad:
		return r >= 0x80 && r < 0xa0
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x2800, r == 0x3164, r == 0xfeff, r == 0xffa0:
		return true
	case r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f,
		r >= 0xfe00 && r <= 0xfe0f, r >= 0xfff0 && r <= 0xfffb, r >= 0x1bca0 && r <= 0x1bca3, r >= 0x1d173 && r <= 0x1d17a, r >= 0xe0000:
		return true
	}
	return unicode.Is(unicode.Cf, r) || r&0xfffe == 0xfffe
}

const (
	zwnj    = '\u200c'
	zwj     = '\u200d'
	textual = '\ufe0e' // the selectors of how an emoji is drawn
	emoji   = '\ufe0f'
	// maxMarks is how many accents may stand on one letter.
	maxMarks = 4
)

// pictograph reports whether a character may be joined to another by ZWJ, or
// carry a selector.
func pictograph(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x2bff || r == 0x3030 || r == 0x303d || r == 0x3297 || r == 0x3299 || r == 0xa9 || r == 0xae || r == 0x203c || r == 0x2049 || r == 0x2122 || r == 0x2139 || r == emoji
}

// joined reports whether a joiner belongs where it stands: between two emoji,
// or two letters of a script that is written with it.
func joined(joiner, before, after rune) bool {
	if joiner == zwj && pictograph(before) && pictograph(after) && after != emoji {
		return true
	}
	cursive := func(r rune) bool {
		return unicode.In(r, unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Malayalam, unicode.Kannada, unicode.Telugu, unicode.Sinhala, unicode.Tamil)
	}
	return cursive(before) && cursive(after)
}

// hidden takes out what a reader does not see: control characters, escape
// sequences of a terminal, invisible characters. Line ends become "\n".
func hidden(_ *Filter, format Format, s string) (edits []edit) {
	drop := func(from, to int, with, kind string) {
		if n := len(edits); n > 0 && edits[n-1].end == from && edits[n-1].kind == kind && with == "" && edits[n-1].with == "" {
			edits[n-1].end = to
			return
		}
		edits = append(edits, edit{from, to, with, kind})
	}
	before, marks := rune(0), 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r >= ' ' && r < 0x7f {
			before, marks = r, 0
			i++
			continue
		}
		switch {
		case r == '\r':
			if strings.HasPrefix(s[i+1:], "\n") {
				drop(i, i+1, "", FoundControl)
			} else {
				drop(i, i+1, "\n", FoundControl)
			}
		case r == '\n' || r == '\t':
			if format == Title {
				drop(i, i+1, " ", FoundControl)
			}
		case r == 0x1b || r == 0x9b:
			n = escape().FindStringIndex(s[i:])[1]
			drop(i, i+n, "", FoundControl)
		case r < ' ' || r == 0x7f:
			drop(i, i+n, "", FoundControl)
		case r == 0x2028 || r == 0x2029:
			drop(i, i+n, "\n", FoundHidden)
		case r == zwj || r == zwnj:
			after, _ := utf8.DecodeRuneInString(s[i+n:])
			if !joined(r, before, after) {
				drop(i, i+n, "", FoundHidden)
			}
		case r == textual || r == emoji:
			if !pictograph(before) && !keycap(before, s[i+n:]) || before == emoji {
				drop(i, i+n, "", FoundHidden)
			} else {
				before = emoji
			}
			i += n
			continue
		case hiddenRune(r):
			drop(i, i+n, "", FoundHidden)
		case unicode.Is(unicode.Mn, r):
			if marks++; marks > maxMarks {
				drop(i, i+n, "", FoundHidden)
			}
			i += n
			continue
		}
		if r != zwj && r != zwnj {
			marks = 0
		}
		before = r
		i += n
	}
	return edits
}

// Visible is a text that somebody wrote as its readers see it: without
// invisible characters, escape sequences and HTML comments, in which orders to
// a model are hidden. Code keeps what looks like a comment in it.
func Visible(s string) string {
	for _, find := range []step{hidden, entities, comments} {
		s = apply(s, settle(find(nil, Markdown, s)))
	}
	return s
}

// Unhidden is a text without invisible characters and escape sequences, its line ends "\n".
func Unhidden(s string) string { return apply(s, settle(hidden(nil, Commit, s))) }

// comments finds HTML comments outside of code; one without an end goes on to
// the end of the text, as a browser has it.
func comments(_ *Filter, format Format, s string) (edits []edit) {
	if !strings.Contains(s, "<!--") {
		return nil
	}
	code := codeOf(format, s)
	for i := 0; ; {
		n := strings.Index(s[i:], "<!--")
		if n < 0 {
			return edits
		}
		if i += n; code.has(i) {
			i += len("<!--")
			continue
		}
		end := len(s)
		if n := strings.Index(s[i:], "-->"); n >= 0 {
			end = i + n + len("-->")
		}
		edits = append(edits, edit{i, end, "", FoundHidden})
		i = end
	}
}

// keycap reports whether a selector stands in 1️⃣ and the like.
func keycap(before rune, rest string) bool {
	return strings.ContainsRune("0123456789#*", before) && strings.HasPrefix(rest, "\u20e3")
}

// escape is the terminal's escape sequence that a text begins with (ECMA-48 §5.4,
// §5.6): one of control, a string up to BEL or ESC \, or what begins one.
var escape = lazyregexp.New(`^(?:\x1b\[|\x{9b})[ -?]*[@-~]?|^\x1b[\]PX^_](?:[^\n\x07\x1b]{0,1000}(?:\x07|\x1b\\))?|^\x1b`)

var reference = lazyregexp.New(`&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,31});`)

// entities writes out characters that were written as HTML references where
// they would be part of an address, a mention or markup, or would not be seen.
// Those of < > & and quotes stay.
func entities(_ *Filter, format Format, s string) (edits []edit) {
	if !strings.Contains(s, "&") {
		return nil
	}
	code := codeOf(format, s)
	for _, m := range reference().FindAllStringIndex(s, -1) {
		if code.has(m[0]) {
			continue
		}
		plain := html.UnescapeString(s[m[0]:m[1]])
		r, n := utf8.DecodeRuneInString(plain)
		if n != len(plain) {
			continue
		}
		switch {
		case r == '<' || r == '>' || r == '&' || r == '"' || r == '\'':
		case r < ' ' || r == 0x7f || hiddenRune(r):
			edits = append(edits, edit{m[0], m[1], "", FoundHidden})
		case r < 0x7f && r != ' ':
			edits = append(edits, edit{m[0], m[1], plain, FoundEncoded})
		}
	}
	return edits
}

const (
	maxCodeLine = 2000  // bytes of a line in code, which is not wrapped when it is shown
	maxLine     = 20000 // bytes of another
)

var (
	gap    = lazyregexp.New(`[ \t\x{a0}\x{1680}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}]{81,}`)
	blanks = lazyregexp.New(`\n(?:[ \t>]*\n){9,}`)
)

// lengths breaks lines behind whose visible part something could hide, and
// closes gaps.
func lengths(_ *Filter, format Format, s string) (edits []edit) {
	for _, m := range gap().FindAllStringIndex(s, -1) {
		edits = append(edits, edit{m[0], m[1], "  ", FoundGap})
	}
	for _, m := range blanks().FindAllStringIndex(s, -1) {
		edits = append(edits, edit{m[0], m[1], "\n\n", FoundGap})
	}
	if len(s) <= maxCodeLine || format == Title {
		return edits
	}
	code := codeOf(format, s)
	at := 0
	for line := range strings.Lines(s) {
		limit := maxLine
		if code.has(at) {
			limit = maxCodeLine
		}
		prefix := "\n" + cut(quotePrefix(line), 20)
		for from := at; at+len(line)-from > limit+limit/4; {
			to := from + limit
			for to > from && !utf8.RuneStart(s[to]) {
				to--
			}
			edits = append(edits, edit{to, to, prefix, FoundLong})
			from = to
		}
		at += len(line)
	}
	return edits
}

// quotePrefix is what makes a line a quotation.
func quotePrefix(line string) string {
	i := 0
	for i < len(line) && (line[i] == '>' || line[i] == ' ') {
		i++
	}
	if p := line[:i]; strings.Contains(p, ">") {
		return p
	}
	return ""
}
