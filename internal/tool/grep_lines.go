package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// grepFile is how many bytes of a file are searched.
const grepFile = 1 << 30

// The bounds of an expression, which a model writes: instructions, and those
// times the bytes of a line, which is what one match takes that nothing stops:
// tenths of a second.
const (
	maxProgram = 2000
	matchSteps = 20_000_000
)

// compile compiles an expression of bounded size and says how many bytes of a
// line it is matched with. The problem is a sentence for the model.
func compile(expr string) (re *regexp.Regexp, most int, problem string) {
	size := 0
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err == nil {
		var prog *syntax.Prog
		if prog, err = syntax.Compile(tree.Simplify()); err == nil {
			size = len(prog.Inst)
		}
	}
	if size > maxProgram {
		return nil, 0, fmt.Sprintf("The pattern is too large: it takes %d instructions, and at most %d are allowed. Search for its parts one by one.", size, maxProgram)
	}
	if err == nil {
		re, err = regexp.Compile(expr)
	}
	if err != nil {
		return nil, 0, fmt.Sprintf("The pattern is not a regular expression that RE2 knows: %v. Escape characters that are meant as they are with a backslash.", err)
	}
	return re, min(searchLine, matchSteps/size), ""
}

// needle is what a search looks for. It is safe for concurrent use.
type needle struct {
	re   *regexp.Regexp
	text []byte // that each match has; nil where it is not known
	most int    // bytes of a line that are matched
}

// newNeedle returns the needle of an expression, or what is wrong with it.
func newNeedle(expr string) (n *needle, problem string) {
	n = new(needle)
	if n.re, n.most, problem = compile(expr); problem != "" {
		return nil, problem
	}
	tree, _ := syntax.Parse(expr, syntax.Perl) // as compile did
	tree = tree.Simplify()
	n.text = []byte(textOf(tree))
	if tree.Op == syntax.OpLiteral && len(n.text) > 0 {
		n.most = searchLine // to look for plain text takes few steps
	}
	return n, ""
}

// textOf is the longest text that every match of an expression has, "" for none.
func textOf(tree *syntax.Regexp) (longest string) {
	switch tree.Op {
	case syntax.OpLiteral:
		// U+FFFD also stands for a byte that is no UTF-8.
		if s := string(tree.Rune); tree.Flags&syntax.FoldCase == 0 && !strings.ContainsRune(s, utf8.RuneError) {
			return s
		}
	case syntax.OpCapture, syntax.OpPlus:
		return textOf(tree.Sub[0])
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			if s := textOf(sub); len(s) > len(longest) {
				longest = s
			}
		}
	}
	return longest
}

// in is where the first match in a line is, nil for none. part says that not all of
// the line was looked at.
func (n *needle) in(l line) (where []int, part bool) {
	text := l.text[:min(len(l.text), n.most)]
	part = int64(len(text)) < l.size
	if !bytes.Contains(text, n.text) {
		return nil, part
	}
	return n.re.FindIndex(text), part
}

// search gathers the matching lines of a file with those around them in m, or, where m is
// nil, counts them, to 1 with first.
func (n *needle) search(ctx context.Context, lines *lineReader, m *matcher, first bool) (a answer, err error) {
	if isBinary(lines.peek()) {
		return a, nil
	}
	a.text = true
	for (m == nil || !m.done()) && (!first || a.lines == 0) {
		l, err := lines.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a, err
		}
		where, part := n.in(l)
		a.part = a.part || part || lines.bytes >= grepFile
		if where != nil {
			a.lines++
		}
		if m != nil {
			m.line(lines.n, l, where)
		}
	}
	if m != nil {
		m.flush()
		a.groups, a.more = m.groups, m.more
	}
	return a, nil
}

// group is a run of shown lines that touch each other.
type group struct {
	text    string
	matches int
}

// matcher gathers the shown lines of one file.
type matcher struct {
	around  int
	limit   int // matching lines
	most    int // bytes of a group
	room    int
	groups  []group
	text    strings.Builder
	matches int      // in text
	count   int      // in the file
	before  []string // the last lines that were not shown, at most around
	after   int      // lines still to show after a match
	more    bool
}

func (m *matcher) done() bool { return m.more || m.room <= 0 }

// line takes the next line; where is its match, nil for none.
func (m *matcher) line(number int, l line, where []int) {
	if where == nil && m.around == 0 {
		return
	}
	mark := "-"
	if where != nil {
		mark = ":"
		if m.count == m.limit {
			m.more = true
			return
		}
	}
	shown := fmt.Sprintf("%d%s %s\n", number, mark, around(l, where))
	switch {
	case where != nil:
		m.count++
		m.matches++
		m.put(strings.Join(m.before, "") + shown)
		m.before = m.before[:0]
		m.after = m.around
		if m.around == 0 {
			m.flush()
		}
	case m.after > 0:
		m.after--
		m.put(shown)
	default:
		if len(m.before) == m.around {
			m.before = m.before[1:]
			m.flush() // a line between this match and the next is not shown
		}
		m.before = append(m.before, shown)
	}
}

func (m *matcher) put(s string) {
	m.text.WriteString(s)
	m.room -= len(s)
	if m.text.Len() > m.most { // a group is shown whole or not at all
		m.flush()
	}
}

func (m *matcher) flush() {
	if m.matches > 0 {
		m.groups = append(m.groups, group{m.text.String(), m.matches})
		m.text.Reset()
		m.matches = 0
	}
}

// around shows a line; of a long one, the part with the match.
func around(l line, where []int) string {
	from := 0
	if where != nil && where[1] > searchShown {
		from = max(0, where[0]-searchShown/3)
		for i := 0; i < 3 && from < where[0] && l.text[from]&0xC0 == 0x80; i++ {
			from++
		}
	}
	if from == 0 {
		return shorten(l.text, searchShown, l.size)
	}
	return "..." + shorten(l.text[from:], searchShown, l.size)
}
