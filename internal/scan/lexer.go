package scan

import (
	"strings"
)

// The classes of the bytes of a line.
const (
	code    = 'c'
	comment = '/'
	literal = 's'
)

// state is where the lexer is between two lines.
type state struct {
	in    byte   // comment or literal; 0 for code
	open  string // what began it
	end   string // what ends it
	depth int    // of nested comments
	alone bool   // end stands alone on its line
	plain bool   // a backslash is one
	slash bool   // what was before lets a slash begin a regular expression
}

// lexer tells comments, literals and code apart, one line after another. It does
// not know the language's grammar: it is wrong where only that would help.
type lexer struct {
	*language
	state
	class   []byte // of the line, overwritten by the next
	pending string // the end of a here-document that begins with the next line
}

// next classes the bytes of a line. The slice is valid until the next call.
func (x *lexer) next(s string) []byte {
	x.class = x.class[:0]
	if x.in == literal && x.alone {
		x.fill(s, literal)
		if strings.TrimSpace(strings.TrimRight(s, ";,)")) == x.end {
			x.state = state{}
		}
		return x.class
	}
	x.slash = true
	for i := 0; i < len(s); {
		n := len(x.class)
		if x.in != 0 {
			i += x.inside(s[i:])
		} else {
			i += x.outside(s, i)
		}
		if len(x.class) == n { // each step classes at least a byte
			x.fill(s[i:], code)
			break
		}
	}
	if x.pending != "" && x.in == 0 {
		x.state, x.pending = state{in: literal, end: x.pending, alone: true}, ""
	}
	return x.class
}

// fill gives all of s a class, and returns its length.
func (x *lexer) fill(s string, class byte) int {
	for range len(s) {
		x.class = append(x.class, class)
	}
	return len(s)
}

// inside takes what is left of a comment or a literal of several lines.
func (x *lexer) inside(s string) int {
	for i := 0; i < len(s); i++ {
		switch {
		case x.in == literal && s[i] == '\\' && !x.plain:
			i++
		case x.in == literal && x.end == "`" && x.escapes && strings.HasPrefix(s[i:], "${"):
			i += hole(s[i:]) - 1
		case x.in == comment && x.nest && strings.HasPrefix(s[i:], x.open):
			x.depth++
			i += len(x.open) - 1
		case strings.HasPrefix(s[i:], x.end):
			if x.depth--; x.depth > 0 {
				i += len(x.end) - 1
				continue
			}
			n, in := min(i+len(x.end), len(s)), x.in
			x.state = state{}
			return x.fill(s[:n], in)
		}
	}
	return x.fill(s, x.in)
}

// hole is the length of ${…} in a template, whatever it holds on this line.
func hole(s string) int {
	depth := 0
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// outside takes the next piece of code, or what begins there.
func (x *lexer) outside(s string, i int) int {
	rest := s[i:]
	for _, b := range x.block {
		if strings.HasPrefix(rest, b[0]) && x.opens(b[0], s, i) {
			x.state = state{in: comment, open: b[0], end: b[1], depth: 1}
			x.fill(b[0], comment)
			return len(b[0]) + x.more(rest[len(b[0]):])
		}
	}
	for _, l := range x.line {
		if strings.HasPrefix(rest, l) && x.begins(s, i) {
			return x.fill(rest, comment)
		}
	}
	for _, r := range x.raw {
		if strings.HasPrefix(rest, r[0]) {
			x.state = state{in: literal, end: r[1], depth: 1, plain: !x.escapes}
			x.fill(r[0], literal)
			return len(r[0]) + x.more(rest[len(r[0]):])
		}
	}
	c := rest[0]
	switch {
	case x.family == "lisp" && c == '\\' && len(rest) > 1: // a character
		return x.fill(rest[:2], code)
	case x.family == "percent" && c == '\\' && len(rest) > 1:
		return x.fill(rest[:2], code)
	case (x.family == "shell" || x.family == "perl") && c == '\\' && len(rest) > 1:
		return x.fill(rest[:2], code)
	case c == '\'' && x.char:
		return x.character(rest)
	case strings.IndexByte(x.quotes, c) >= 0 && (!x.loose || i == 0 || strings.IndexByte(" \t=:([{,!>", s[i-1]) >= 0):
		return x.quoted(rest)
	case c == '/' && x.slash && x.regex && len(rest) > 1 && rest[1] != ' ' && rest[1] != '=':
		if n := expression(rest); n > 0 {
			x.slash = false
			return x.fill(rest[:n], literal)
		}
	case c == '<' && x.here && x.pending == "":
		x.document(rest)
	}
	if c != ' ' && c != '\t' {
		x.slash = strings.IndexByte("(,=:[!&|?{};+~", c) >= 0 || strings.HasSuffix(s[:i+1], "return")
	}
	return x.fill(rest[:1], code)
}

// opens reports whether a block comment may begin at s[i].
func (x *lexer) opens(mark, s string, i int) bool {
	switch {
	case mark[0] == '=':
		return i == 0
	case mark == "/*" && x.family == "html": // image/* is none
		return i == 0 || s[i-1] == ' ' || s[i-1] == '\t'
	}
	return true
}

// more takes what follows the beginning of a comment or a literal.
func (x *lexer) more(s string) int {
	if s == "" {
		return 0
	}
	return x.inside(s)
}

// begins reports whether a comment may begin at s[i].
func (x *lexer) begins(s string, i int) bool {
	if x.apart {
		return i == 0 || strings.IndexByte(" \t;({", s[i-1]) >= 0
	}
	if x.family == "html" { // in a script; elsewhere an address has them
		return strings.TrimSpace(s[:i]) == ""
	}
	return x.family != "php" || s[i] != '#' || !strings.HasPrefix(s[i:], "#[")
}

// character takes 'x', '\n' or only the quote of a lifetime.
func (x *lexer) character(s string) int {
	if len(s) > 2 && s[1] == '\\' {
		if end := strings.IndexByte(s[3:min(len(s), 14)], '\''); len(s) > 3 && end >= 0 {
			return x.fill(s[:3+end+1], literal)
		}
	}
	if len(s) > 2 && s[1] != '\'' {
		if end := strings.IndexByte(s[1:min(len(s), 6)], '\''); end > 0 && len([]rune(s[1:1+end])) == 1 {
			return x.fill(s[:end+2], literal)
		}
	}
	return x.fill(s[:1], code)
}

// quoted takes a literal that begins with its quote; one that does not end on the
// line ends with it, unless the language lets it go on.
func (x *lexer) quoted(s string) int {
	x.slash = false
	q, plain := s[0], x.doubled || x.family == "shell" && s[0] == '\''
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && !plain:
			i++
		case s[i] == q:
			return x.fill(s[:i+1], literal)
		}
	}
	if x.spans || strings.HasSuffix(s, `\`) && !plain {
		x.state = state{in: literal, end: s[:1], depth: 1, plain: plain}
	}
	return x.fill(s, literal)
}

// expression is the length of a regular expression with its slashes, 0 for none.
func expression(s string) int {
	set := false
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			set = true
		case ']':
			set = false
		case '/':
			if !set {
				return i + 1
			}
		}
	}
	return 0
}

// document notes that a here-document begins: <<EOF, <<-'EOF', <<~EOF, <<<EOF of PHP.
func (x *lexer) document(s string) {
	s, ok := strings.CutPrefix(s, "<<")
	if !ok {
		return
	}
	switch x.family {
	case "php":
		if s, ok = strings.CutPrefix(s, "<"); !ok {
			return
		}
	case "shell":
		s = strings.TrimLeft(s, " ")
	}
	s = strings.TrimLeft(s, "-~")
	quote := strings.TrimLeft(s, `"'\`)
	name := quote
	for i := range len(name) {
		if c := name[i]; c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			name = name[:i]
			break
		}
	}
	// Lower case is a shift or an append: only shells name ends like that, and quote others.
	if name == "" || name[0] <= '9' || name != strings.ToUpper(name) && len(quote) == len(s) && x.family != "shell" {
		return
	}
	x.pending = name
}
