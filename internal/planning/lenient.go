package planning

import (
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep an object may be nested. What the contracts ask for is
// less than ten deep; arguments of calls are what goes deeper.
const maxDepth = 64

// lookAround is how far the meaning of a character is looked for beyond it, in
// bytes: it keeps the reading of hostile text linear.
const lookAround = 512

// lenient reads one JSON object as models write them and rewrites it as JSON.
// What is valid JSON comes out with the same meaning. Besides it takes
// comments, trailing and missing commas, keys without quotes, single, typographic,
// triple and back quotes, quotes and line breaks that are not escaped, words of
// Python, and brackets that are missing at the end or in between.
//
// It reads each byte a bounded number of times.
type lenient struct {
	in    string
	at    int
	out   []byte
	depth int
	lists int // that are open

	cut   bool // the object was not closed
	short bool // and that in the middle of a list: entries may be missing
	deep  bool // deeper than maxDepth: nothing was read
	none  bool // no object begins here
}

// readObject reads the object that begins at text[0], a "{". used is how much
// of the text it took, at least 1.
func readObject(text string) (r *lenient, used int) {
	r = &lenient{in: text}
	r.object()
	return r, max(r.at, 1)
}

// bad reports whether nothing can come of this reading any more.
func (r *lenient) bad() bool { return r.deep || r.none }

// done reports whether nothing is left to be read.
func (r *lenient) done() bool { return r.bad() || r.cut }

// cutOff ends the reading before the brackets are closed. halfway: something
// was begun or announced, and is not there.
func (r *lenient) cutOff(halfway bool) {
	r.cut = true
	if halfway && r.lists > 0 {
		r.short = true
	}
}

// object reads from "{" on.
func (r *lenient) object() {
	if r.depth++; r.depth > maxDepth {
		r.deep = true
		return
	}
	defer func() { r.depth-- }()
	r.at++
	r.out = append(r.out, '{')
	for members := 0; !r.done(); {
		comma := r.gap()
		switch c := r.peek(); {
		case c == 0:
			r.cutOff(comma)
		case c == '}':
			r.at++
			if r.depth > 1 || !r.goesOn() {
				r.out = append(r.out, '}')
				return
			}
		case (c == ']' || c == '{') && r.lists > 0: // the bracket before it is missing
			r.out = append(r.out, '}')
			return
		case c == ']':
			r.at++
		default:
			if r.member(members) {
				members++
			}
		}
	}
	r.out = append(r.out, '}')
}

// goesOn reports whether members of the outermost object follow the bracket
// that should close it: one too many was written before.
func (r *lenient) goesOn() bool {
	i := r.spaces(r.at)
	if i >= len(r.in) || r.in[i] != ',' {
		return false
	}
	return r.keyAhead(r.spaces(i + 1))
}

// member reads a key and its value, and reports whether both are there.
func (r *lenient) member(before int) bool {
	mark, start := len(r.out), r.at
	if before > 0 {
		r.out = append(r.out, ',')
	}
	if !r.key() || !r.colon() {
		r.out = r.out[:mark]
		switch {
		case r.cut:
		case before == 0 && r.depth == 1:
			r.none = true
		default:
			r.at = max(r.at, start+1)
			if !r.skip() {
				r.cutOff(false)
			}
		}
		return false
	}
	r.out = append(r.out, ':')
	if !r.value(false) {
		r.out = r.out[:mark]
		return false
	}
	return true
}

// array reads from "[" on.
func (r *lenient) array() {
	if r.depth++; r.depth > maxDepth {
		r.deep = true
		return
	}
	r.lists++
	defer func() { r.depth--; r.lists-- }()
	r.at++
	r.out = append(r.out, '[')
	for items := 0; !r.done(); {
		comma := r.gap()
		c := r.peek()
		if c == 0 {
			r.cutOff(comma)
			break
		}
		if c == ']' {
			r.at++
			break
		}
		if c == '}' || r.keyAhead(r.at) { // the bracket before it is missing
			break
		}
		mark, start := len(r.out), r.at
		if items > 0 {
			r.out = append(r.out, ',')
		}
		if r.value(true) {
			items++
			continue
		}
		r.out = r.out[:mark]
		if r.at == start {
			r.at++
		}
	}
	r.out = append(r.out, ']')
}

// value reads a value and reports whether there is one.
func (r *lenient) value(inList bool) bool {
	r.blank()
	switch r.peek() {
	case 0:
		r.cutOff(true)
		return false
	case '{':
		r.object()
		return !r.bad()
	case '[':
		r.array()
		return !r.bad()
	}
	if q := r.quote(); q != nil {
		r.text(q, false, inList)
		return true
	}
	return r.bare()
}

// key reads a key, quoted or not.
func (r *lenient) key() bool {
	if q := r.quote(); q != nil {
		r.text(q, true, false)
		return true
	}
	end := r.at
	for end < len(r.in) && (isWord(r.in[end]) || end > r.at && r.in[end] == '-') {
		end++
	}
	if end == r.at {
		return false
	}
	r.out = append(append(append(r.out, '"'), r.in[r.at:end]...), '"')
	r.at = end
	return true
}

// colon reads what stands between a key and its value.
func (r *lenient) colon() bool {
	r.blank()
	rest := r.in[r.at:]
	for _, c := range []string{":", "：", "=>", "="} {
		if strings.HasPrefix(rest, c) {
			r.at += len(c)
			return true
		}
	}
	return false
}

// scalar reads a number or one of the words that stand for a value.
func (r *lenient) scalar() bool {
	rest := r.in[r.at:]
	n := 0
	for n < len(rest) && n < lookAround && (isWord(rest[n]) || rest[n] == '.' || rest[n] == '+' || rest[n] == '-') {
		n++
	}
	token := rest[:n]
	switch strings.ToLower(token) {
	case "true", "false", "null":
		token = strings.ToLower(token)
	case "none", "nil", "undefined", "nan":
		token = "null"
	default:
		if !isNumber(token) {
			return false
		}
	}
	next := r.spaces(r.at + n)
	if next < len(r.in) && !strings.ContainsRune(",]}\"'/#`<{[\n", rune(r.in[next])) && !strings.HasPrefix(r.in[next:], "，") &&
		!strings.Contains(r.in[r.at+n:next], "\n") {
		return false
	}
	r.at += n
	r.out = append(r.out, token...)
	if r.at == len(r.in) {
		r.cutOff(true)
	}
	return true
}

// bare reads a value without quotes: a number, a word, or text whose quotes
// were left out.
func (r *lenient) bare() bool {
	if r.scalar() {
		return true
	}
	start := r.at
	end := start
	for end < len(r.in) && !strings.ContainsRune(",]}\n\r", rune(r.in[end])) && !r.remark(end) {
		end++
	}
	r.at = end
	token := strings.TrimSpace(r.in[start:end])
	last := end == len(r.in)
	if last {
		r.cutOff(true)
	}
	if last || token == "" || strings.HasPrefix(token, "...") || strings.HasPrefix(token, "…") {
		return false
	}
	r.out = append(r.out, '"')
	for i := 0; i < len(token); {
		i += r.emit(token[i:])
	}
	r.out = append(r.out, '"')
	return true
}

// remark reports whether a comment begins at i, after a space.
func (r *lenient) remark(i int) bool {
	if i == 0 || r.in[i-1] != ' ' && r.in[i-1] != '\t' {
		return false
	}
	rest := r.in[i:]
	return strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*") || rest[0] == '#'
}

// skip passes over what is neither a member nor a bracket, and reports whether
// one of these, or a comma, follows before a blank line.
func (r *lenient) skip() bool {
	end := min(len(r.in), r.at+lookAround)
	for i := r.at; i < end; i++ {
		switch c := r.in[i]; {
		case c == '}' || c == ']' || c == ',', (c == '"' || c == '\'') && r.keyAhead(i):
			r.at = i
			return true
		case c == '\n' && i+1 < end && r.in[i+1] == '\n', c == '`' && strings.HasPrefix(r.in[i:], "```"):
			return false
		}
	}
	return false
}

// gap passes over space, comments and commas, and reports whether there was a
// comma.
func (r *lenient) gap() (comma bool) {
	for {
		r.blank()
		switch rest := r.in[r.at:]; {
		case strings.HasPrefix(rest, ","):
			r.at++
		case strings.HasPrefix(rest, "，"):
			r.at += len("，")
		default:
			return comma
		}
		comma = true
	}
}

// blank passes over space and comments.
func (r *lenient) blank() {
	for {
		r.at = r.spaces(r.at)
		rest := r.in[r.at:]
		switch {
		case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "#"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			r.at += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				r.at = len(r.in)
				return
			}
			r.at += n + 4
		default:
			return
		}
	}
}

// spaces returns the first place from i on that is no space.
func (r *lenient) spaces(i int) int {
	for i < len(r.in) {
		switch c := r.in[i]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
		case c < utf8.RuneSelf:
			return i
		default:
			u, n := utf8.DecodeRuneInString(r.in[i:])
			if u != '\u00a0' && u != '\u3000' && u != '\ufeff' && u != '\u200b' {
				return i
			}
			i += n
		}
	}
	return i
}

// peek returns the next byte; 0 where the text ends, or the fence or tag that
// the object stands in.
func (r *lenient) peek() byte {
	if r.at >= len(r.in) || r.in[r.at] == '<' || strings.HasPrefix(r.in[r.at:], "```") {
		return 0
	}
	return max(r.in[r.at], 1)
}

// keyAhead reports whether a quoted key and its colon stand at i.
func (r *lenient) keyAhead(i int) bool {
	if i >= len(r.in) || r.in[i] != '"' && r.in[i] != '\'' {
		return false
	}
	q := r.in[i]
	end := min(len(r.in), i+lookAround)
	for j := i + 1; j < end; j++ {
		switch r.in[j] {
		case q:
			for j++; j < end && isSpace(r.in[j]); j++ {
			}
			return j < end && r.in[j] == ':'
		case '\\':
			j++
		case '\n', '{', '}', ',':
			return false
		}
	}
	return false
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$'
}

// isNumber reports whether s is a number of JSON.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole := digits(s)
	if whole == 0 || whole > 1 && s[0] == '0' {
		return false
	}
	s = s[whole:]
	if strings.HasPrefix(s, ".") {
		n := digits(s[1:])
		if n == 0 {
			return false
		}
		s = s[1+n:]
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		n := digits(s)
		return n > 0 && n == len(s)
	}
	return s == ""
}

// digits counts the digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
