package folder

import (
	"html"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// imageTargets calls f with the target of each image that a Markdown text shows:
// ![alt](target "title"), ![alt](<target>) and <img src=target>. What stands in
// code blocks, code spans and HTML comments shows none. Images by reference are
// not known. It reads the text once.
func imageTargets(text string, f func(target string)) {
	s := &scan{found: f, blank: true}
	for l := range strings.SplitSeq(text, "\n") {
		s.line(l)
	}
	s.paragraph()
}

// scan goes through a text line by line and gathers paragraphs: a span of code,
// an element or an image may go over several lines, but not over a blank one.
type scan struct {
	found   func(string)
	text    []string // of the paragraph at hand
	fence   string   // that ends the code block at hand, "" outside
	comment bool     // inside of an HTML comment
	items   []int    // where the content of the list items at hand begins, columns
	blank   bool     // the line before was blank, code, or none
}

var (
	quoteMark = lazyregexp.New(`^ {0,3}>[ \t]?`)
	itemMark  = lazyregexp.New(`^([-+*]|[0-9]{1,9}[.)])([ \t]+|$)`)
	fenceMark = lazyregexp.New("^(`{3,}[^`]*|~{3,}.*)$")
)

// maxNested is how many quotations, or list items, within each other are known.
const maxNested = 30

func (s *scan) line(l string) {
	l = strings.TrimSuffix(l, "\r")
	if s.comment {
		s.inline(l)
		return
	}
	for range maxNested {
		l = l[len(quoteMark().FindString(l)):]
	}
	text := strings.TrimLeft(l, " \t")
	if s.fence != "" {
		if end := strings.TrimRight(text, " \t"); strings.HasPrefix(end, s.fence) && strings.Trim(end, s.fence[:1]) == "" {
			s.fence, s.blank = "", true
		}
		return
	}
	if text == "" {
		s.paragraph()
		s.blank = true
		return
	}
	indent := columns(l[:len(l)-len(text)])
	text, indent = s.item(text, indent)
	if indent >= s.content()+4 && s.blank && len(s.text) == 0 {
		return // an indented block of code
	}
	s.blank = false
	if fenceMark().MatchString(text) {
		s.paragraph()
		mark := text[:1]
		s.fence = strings.Repeat(mark, len(text)-len(strings.TrimLeft(text, mark)))
		return
	}
	s.inline(text)
}

// content is where the content of the innermost list item begins.
func (s *scan) content() int {
	if len(s.items) == 0 {
		return 0
	}
	return s.items[len(s.items)-1]
}

// item leaves the list items that a line does not belong to, and enters those
// that it begins; it returns what follows their marks, and its column.
func (s *scan) item(text string, indent int) (string, int) {
	for len(s.items) > 0 && indent < s.content() && (s.blank || itemMark().MatchString(text)) {
		s.items = s.items[:len(s.items)-1]
	}
	for indent < s.content()+4 && len(s.items) < maxNested {
		mark := itemMark().FindString(text)
		if mark == "" {
			break
		}
		s.paragraph()
		width := columns(mark)
		if rest := text[len(mark):]; rest == "" || width > len(strings.TrimRight(mark, " \t"))+4 {
			width = len(strings.TrimRight(mark, " \t")) + 1 // code, or nothing, follows the mark
		}
		s.items = append(s.items, indent+width)
		indent += columns(mark)
		if text = text[len(mark):]; text == "" {
			break
		}
		s.blank = true
	}
	return text, indent
}

// columns is the width of white space and a mark; a tab counts as four.
func columns(s string) int { return len(s) + 3*strings.Count(s, "\t") }

// maxParagraph bounds the text that is looked at as one, bytes: a file may
// forget to end its comment.
const maxParagraph = 64 << 10

// inline adds a line to the paragraph, without what is an HTML comment.
func (s *scan) inline(l string) {
	var kept strings.Builder
	for l != "" {
		if s.comment {
			_, rest, ended := strings.Cut(l, "-->")
			s.comment, l = !ended, rest
			continue
		}
		before, rest, begins := strings.Cut(l, "<!--")
		if begins && strings.Count(before, "`")%2 == 1 { // it stands in a span of code
			before, rest, begins = before+"<!--"+rest, "", false
		}
		kept.WriteString(before)
		s.comment, l = begins, rest
	}
	s.text = append(s.text, kept.String())
	if n := len(s.text); n > 1 && n*80 > maxParagraph {
		s.paragraph()
	}
}

// paragraph looks for images in what was gathered.
func (s *scan) paragraph() {
	if len(s.text) == 0 {
		return
	}
	text := strings.Join(s.text, "\n")
	s.text = s.text[:0]
	noClose := map[int]bool{} // lengths of runs of backticks that nothing closes any more
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case rest[0] == '\\':
			i += 2
		case rest[0] == '`':
			i += codeSpan(rest, noClose)
		case strings.HasPrefix(rest, "]("):
			target, n := destination(rest[2:])
			if target != "" && closes(rest[2+n:]) && isImage(text[:i]) {
				s.found(target)
			}
			i += 2
		case rest[0] == '<':
			target, n := imgElement(rest)
			if target != "" {
				s.found(target)
			}
			i += max(n, 1)
		default:
			i++
		}
	}
}

// codeSpan is the length of the code span that text begins with, or of the run
// of backticks where nothing closes it.
func codeSpan(text string, noClose map[int]bool) int {
	run := len(text) - len(strings.TrimLeft(text, "`"))
	if noClose[run] {
		return run
	}
	for at := run; at < len(text); {
		next := strings.IndexByte(text[at:], '`')
		if next < 0 {
			break
		}
		at += next
		n := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		if at += n; n == run {
			return at
		}
	}
	noClose[run] = true
	return run
}

// maxAlt is how far back the ![ of an image is looked for, bytes.
const maxAlt = 1000

// isImage reports whether the bracket that closes behind text was opened by ![.
func isImage(text string) bool {
	depth := 1
	for i := len(text) - 1; i >= max(0, len(text)-maxAlt); i-- {
		if i > 0 && text[i-1] == '\\' {
			continue
		}
		switch text[i] {
		case ']':
			depth++
		case '[':
			if depth--; depth == 0 {
				return i > 0 && text[i-1] == '!' && (i < 2 || text[i-2] != '\\')
			}
		}
	}
	return false
}

// maxTarget is the longest target, bytes.
const maxTarget = 1024

// destination reads the target of a link behind its opening parenthesis; n is 0
// where none is there, else its length.
func destination(text string) (target string, n int) {
	text = text[:min(len(text), maxTarget)]
	lead := len(text) - len(strings.TrimLeft(text, " \t\n"))
	if strings.HasPrefix(text[lead:], "<") {
		for i := lead + 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '>':
				return plain(text[lead+1 : i]), i + 1
			case '\n', '<':
				return "", 0
			}
		}
		return "", 0
	}
	depth := 0
	for i := lead; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && escaped().MatchString(text[i:min(i+2, len(text))]):
			i++
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ')' || c == ' ' || c == '\t' || c == '\n':
			if i == lead {
				return "", 0
			}
			return plain(text[lead:i]), i
		case c < ' ':
			return "", 0
		}
	}
	return "", 0
}

// closes reports whether a link's target may end before text: its parenthesis
// or its title follows.
func closes(text string) bool {
	text = text[:min(len(text), maxTarget)]
	rest := strings.TrimLeft(text, " \t\n")
	title := len(rest) < len(text) && strings.ContainsAny(rest[:min(1, len(rest))], `"'`)
	return title || strings.HasPrefix(rest, ")")
}

var escaped = lazyregexp.New("\\\\([!-/:-@\\[-`{-~])")

// plain is a target without its escapes.
func plain(s string) string { return html.UnescapeString(escaped().ReplaceAllString(s, "$1")) }

var (
	imgTag       = lazyregexp.New(`(?i)^<img[\s/]`)
	imgAttribute = lazyregexp.New(`^[\s/]*([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>` + "`" + `]+)))?`)
)

// imgElement reads the source of the img element that text begins with, and how
// long the element is; "" and 0 where it is none.
func imgElement(text string) (src string, n int) {
	if !imgTag().MatchString(text) {
		return "", 0
	}
	text = text[:min(len(text), maxTarget)]
	for n = len("<img"); ; {
		m := imgAttribute().FindStringSubmatch(text[n:])
		if m == nil {
			break
		}
		n += len(m[0])
		if src == "" && strings.EqualFold(m[1], "src") {
			src = strings.TrimSpace(html.UnescapeString(m[2] + m[3] + m[4]))
		}
	}
	if end := strings.TrimLeft(text[n:], " \t\n/"); !strings.HasPrefix(end, ">") {
		return "", 0
	}
	return src, n
}
