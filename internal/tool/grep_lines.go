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

	"golang.org/x/sys/unix"
)

// Bounds of what is read of one file.
const (
	grepBuffer = 64 << 10 // bytes read at once, and more for a longer line
	grepFile   = 1 << 30  // bytes of a file that are searched
)

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

// needle is what a search looks for. It is used by one goroutine.
type needle struct {
	re      *regexp.Regexp
	literal []byte // the whole expression, where it is plain text
	sieve   *sieve // nil where the expression is too large for one
	most    int    // bytes of a line that are matched
	cut     bool   // a line was longer
	buf     []byte
}

// newNeedle returns the needle of an expression, or what is wrong with it.
func newNeedle(expr string) (n needle, problem string) {
	if n.re, n.most, problem = compile(expr); problem != "" {
		return n, problem
	}
	if tree, err := syntax.Parse(expr, syntax.Perl); err == nil {
		tree = tree.Simplify()
		if tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0 {
			n.literal, n.most = []byte(string(tree.Rune)), searchLine
		}
	}
	if n.literal == nil || !bytes.Equal(n.literal, bytes.ToValidUTF8(n.literal, nil)) || strings.ContainsRune(string(n.literal), '\uFFFD') {
		n.literal = nil
	}
	return n, ""
}

// another returns one for another goroutine.
func (n needle) another() *needle {
	n.buf = nil
	if n.literal == nil {
		n.sieve = newSieve(n.re.String())
	}
	return &n
}

// where is the match in a line.
func (n *needle) where(line []byte) []int {
	if len(line) > n.most {
		n.cut = true
		line = line[:n.most]
	}
	return n.re.FindIndex(line)
}

// find returns a place in the first line of text that matches, or -1. text
// begins and ends with a line. It ends with ctx.
func (n *needle) find(ctx context.Context, text []byte) int {
	if n.literal != nil {
		return n.index(text)
	}
	for from := 0; from < len(text); {
		at := from
		if n.sieve != nil {
			i := n.sieve.find(text[from:])
			if i < 0 {
				return -1
			}
			at += i
			if n.sieve.spent() {
				n.sieve = nil
			}
		}
		if ctx.Err() != nil {
			return -1
		}
		start, end := lineAround(text, at)
		if n.where(bytes.TrimSuffix(text[start:end], []byte{'\r'})) != nil {
			return start
		}
		from = end + 1
	}
	return -1
}

// index finds plain text. What spans lines is found in none.
func (n *needle) index(text []byte) int {
	if bytes.IndexByte(n.literal, '\n') >= 0 {
		return -1
	}
	i := bytes.Index(text, n.literal)
	// A return before the line's end is no part of the line.
	for i >= 0 && n.literal[len(n.literal)-1] == '\r' && (i+len(n.literal) == len(text) || text[i+len(n.literal)] == '\n') {
		next := bytes.Index(text[i+1:], n.literal)
		if next < 0 {
			return -1
		}
		i += 1 + next
	}
	return i
}

// lineAround is where the line around a place begins, and where its line end is.
func lineAround(text []byte, at int) (start, end int) {
	start = bytes.LastIndexByte(text[:at], '\n') + 1
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return start, at + i
	}
	return start, len(text)
}

// scan is what one pass over a file gave.
type scan struct {
	text  bool // it is no binary file
	lines int  // that match; with first, 0 or 1
	part  bool // a line or the file is longer than what is searched
}

// scan counts the matching lines of a file, or, with first, tells whether there
// is one. The file is read in pieces that end where a line does.
func (n *needle) scan(ctx context.Context, fd int, first bool) (s scan, err error) {
	if n.buf == nil {
		n.buf = make([]byte, grepBuffer)
	}
	n.cut = false
	defer func() { s.part = s.part || n.cut }()
	held, total, long := 0, 0, false
	for eof := false; !eof; {
		size, end, err := readFull(fd, n.buf[held:])
		if err != nil {
			return s, err
		}
		eof = end
		if total == 0 && isBinary(n.buf[:held+size]) {
			return s, nil
		}
		s.text = true
		if total += size; total > grepFile {
			s.part = true
			return s, nil
		}
		text := n.buf[:held+size]
		held = 0
		if long { // the rest of a line that was too long
			i := bytes.IndexByte(text, '\n')
			if i < 0 {
				continue
			}
			text, long = text[i+1:], false
		}
		rest := text[len(text):]
		if !eof {
			end := bytes.LastIndexByte(text, '\n') + 1
			text, rest = text[:end], text[end:]
			if end == 0 && len(rest) == len(n.buf) {
				if len(n.buf) < searchLine {
					n.buf = append(n.buf, make([]byte, len(n.buf))...)
					held = len(rest)
					continue
				}
				text, rest, long, s.part = rest, nil, true, true
			}
		}
		if s.lines += n.count(ctx, text, first); first && s.lines > 0 {
			return s, nil
		}
		if err := ctx.Err(); err != nil {
			return s, err
		}
		held = copy(n.buf, rest)
	}
	return s, nil
}

// count is the number of matching lines of text, at most 1 with first.
func (n *needle) count(ctx context.Context, text []byte, first bool) (lines int) {
	for len(text) > 0 {
		at := n.find(ctx, text)
		if at < 0 {
			break
		}
		if lines++; first {
			break
		}
		_, end := lineAround(text, at)
		text = text[min(end+1, len(text)):]
	}
	return lines
}

// readFull reads until buf is full or the file is at its end.
func readFull(fd int, buf []byte) (n int, eof bool, err error) {
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return n, false, err
		}
		if m <= 0 {
			return n, true, nil
		}
		n += m
	}
	return n, false, nil
}

// show gathers the matching lines of a file with those around them.
func (n *needle) show(ctx context.Context, r io.Reader, m *matcher) error {
	lines := newLineReader(r, searchLine)
	for !m.done() {
		l, err := lines.next(ctx)
		if err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return err
		}
		var where []int
		if n.find(ctx, l.text) >= 0 {
			where = n.where(l.text)
		}
		m.line(lines.n, l, where)
	}
	m.flush()
	return nil
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
