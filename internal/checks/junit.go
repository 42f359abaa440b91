package checks

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/lazyregexp"
)

// The bounds of JUnit files.
const (
	maxText   = 64 << 10    // bytes of one text or attribute that are read
	maxTag    = 8 * maxText // and of one tag: the decoder keeps all of its attributes
	maxDepth  = 200         // elements within each other
	maxTokens = 5_000_000
)

// junit reads reports in JUnit's XML format one after another, as names and
// open give them, and returns what they say together. It reads as a stream in
// bounded memory; entities and document types are not expanded. A file that
// cannot be opened or read whole makes an error that names it; what was read
// before, and of the other files, is in the Summary all the same.
func junit(s *sink, names []string, open func(name string) (io.ReadCloser, error)) (Summary, error) {
	var errs []error
	for i, name := range names {
		f, err := open(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("open report %s: %w", name, err))
			continue
		}
		err = errors.Join(readJUnit(f, s), f.Close())
		if errors.Is(err, errEnough) { // told first
			errs = slices.Insert(errs, 0, fmt.Errorf("read reports: %d of %d are left out, from %s on: %w", len(names)-i, len(names), name, err))
			break
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read report %s: %w", name, err))
		}
	}
	return s.summary(), errors.Join(errs...)
}

// errEnough is the error of a report for which no more of them are read.
var errEnough = errors.New("no more is read")

var errNoReport = errors.New("no JUnit report: testsuites or testsuite expected")

// junitCase is the test that is being read.
type junitCase struct {
	class, name, file string
	line              int
	bad, skipped      bool
	message           string
	text              excerpt
	inside            string // the element whose text is wanted
}

func readJUnit(r io.Reader, s *sink) error {
	d := xml.NewDecoder(&plainXML{in: bufio.NewReader(r)})
	// The text is made UTF-8 before it comes here, whatever it says of itself.
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	var at *junitCase
	var open, suites []string // elements by name; suites by their attribute
	for n, root := 0, false; ; n++ {
		if n > maxTokens {
			return fmt.Errorf("more than %d elements", maxTokens)
		}
		token, err := d.RawToken() // Token keeps each name space of all open elements
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF):
			return err
		case !root:
			return errNoReport
		case len(open) > 0:
			return fmt.Errorf("it ends within %s", open[len(open)-1])
		default:
			return nil
		}
		switch t := token.(type) {
		case xml.StartElement:
			if open = append(open, t.Name.Local); len(open) > maxDepth {
				return fmt.Errorf("more than %d elements within each other", maxDepth)
			}
			if len(open) == 1 && t.Name.Local != "testsuites" && t.Name.Local != "testsuite" {
				return errNoReport
			}
			root = true
			switch t.Name.Local {
			case "testsuite":
				suites = append(suites, attr(t, "name"))
				s.seen("JUnit")
			case "testcase":
				at = &junitCase{class: attr(t, "classname"), name: attr(t, "name"), file: attr(t, "file")}
				at.line, _ = strconv.Atoi(attr(t, "line"))
				if at.class == "" && len(suites) > 0 {
					at.class = suites[len(suites)-1]
				}
			default:
				at.open(t)
			}
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != t.Name.Local {
				return fmt.Errorf("%s ends where it is not open", t.Name.Local)
			}
			open = open[:len(open)-1]
			switch t.Name.Local {
			case "testsuite":
				suites = suites[:max(0, len(suites)-1)]
			case "testcase":
				at.record(s)
				at = nil
			default:
				if at != nil && at.inside == t.Name.Local {
					at.inside = ""
				}
			}
		case xml.CharData:
			if at != nil && at.inside != "" {
				for line := range strings.SplitSeq(string(t), "\n") {
					if line = clean([]byte(line)); line != "" {
						at.text.add(line)
					}
				}
			}
		}
	}
}

func attr(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (c *junitCase) open(t xml.StartElement) {
	if c == nil {
		return
	}
	switch t.Name.Local {
	case "failure", "error":
		c.bad = true
		c.inside = t.Name.Local
		if m := attr(t, "message"); c.message == "" {
			c.message = m
		}
		if c.message == "" {
			c.message = attr(t, "type")
		}
	case "skipped":
		c.skipped = true
	}
}

// junitPlace finds a place in a stack trace.
var junitPlace = lazyregexp.New(`(?:^|[\s(])([^\s():]+\.\w{1,5}):(\d+)`)

func (c *junitCase) record(s *sink) {
	switch {
	case c == nil:
	case c.bad:
		s.failed++
		f := Failure{Name: strings.TrimPrefix(c.class+"."+c.name, "."), File: c.file, Line: c.line, Message: c.message, Excerpt: c.text.text()}
		if m := junitPlace().FindStringSubmatch(f.Excerpt); m != nil && f.File == "" {
			f.File = m[1]
			f.Line, _ = strconv.Atoi(m[2])
		}
		if f.Message == "" && len(c.text.lines) > 0 {
			f.Message = c.text.lines[0]
		}
		s.add(f)
	case c.skipped:
		s.skipped++
	default:
		s.passed++
	}
}

// plainXML makes a document that the decoder reads in bounded memory: UTF-8
// without control characters, and of a long text or attribute the beginning.
// Document types are left out, with all that they declare.
type plainXML struct {
	in    *bufio.Reader
	out   []byte
	state xmlState
	quote rune
	size  int    // of the current text or attribute
	tagN  int    // of the current tag, as it is passed on
	match string // the last characters, to find the end of a section
	err   error
	skip  int // square brackets open in a document type
	ref   bool
}

type xmlState int

const (
	inText xmlState = iota
	inTag
	inCData
	inComment
	inDoctype
)

func (p *plainXML) Read(b []byte) (int, error) {
	for len(p.out) == 0 && p.err == nil {
		for len(p.out) < 4096 && p.err == nil {
			p.step()
		}
	}
	if len(p.out) == 0 {
		return 0, p.err
	}
	n := copy(b, p.out)
	p.out = p.out[n:]
	return n, nil
}

func (p *plainXML) step() {
	r, _, err := p.in.ReadRune()
	if err != nil {
		p.err = err
		return
	}
	if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
		r = '\uFFFD'
	}
	switch p.state {
	case inText:
		p.text(r)
	case inTag:
		p.tag(r)
	case inCData:
		p.section(r, "]]>")
	case inComment:
		p.match = last(p.match+string(r), 3)
		if p.match == "-->" {
			p.state, p.size = inText, 0
		}
	case inDoctype:
		switch {
		case p.quote != 0:
			if r == p.quote {
				p.quote = 0
			}
		case r == '"' || r == '\'':
			p.quote = r
		case r == '[':
			p.skip++
		case r == ']':
			p.skip--
		case r == '>' && p.skip <= 0:
			p.state, p.size, p.skip = inText, 0, 0
		}
	}
}

func (p *plainXML) text(r rune) {
	if r != '<' {
		p.keep(r)
		return
	}
	next, _ := p.in.Peek(8)
	switch {
	case strings.HasPrefix(string(next), "!--"):
		p.state, p.match = inComment, ""
		_, _ = p.in.Discard(3)
	case strings.HasPrefix(string(next), "![CDATA["):
		p.state, p.size, p.match = inCData, 0, ""
		_, _ = p.in.Discard(8)
		p.out = append(p.out, "<![CDATA["...)
	case strings.HasPrefix(string(next), "!"):
		p.state, p.quote, p.skip = inDoctype, 0, 0
	default:
		p.state, p.quote, p.size, p.tagN, p.ref = inTag, 0, 0, 0, false
		p.out = append(p.out, '<')
	}
}

// keep passes a character of a text or attribute on while there is room; a
// reference is passed on whole, or not.
func (p *plainXML) keep(r rune) {
	p.size++
	switch {
	case p.ref:
		p.out = utf8.AppendRune(p.out, r)
		p.ref = r != ';' && p.size < maxText+64
	case p.size > maxText:
	default:
		p.ref = r == '&'
		p.out = utf8.AppendRune(p.out, r)
	}
}

func (p *plainXML) tag(r rune) {
	before := len(p.out)
	defer func() {
		if p.tagN += len(p.out) - before; p.tagN > maxTag {
			p.err = fmt.Errorf("a tag of more than %d bytes", maxTag)
		}
	}()
	switch {
	case p.quote != 0 && r == p.quote:
		p.quote, p.ref = 0, false
		p.out = utf8.AppendRune(p.out, r)
	case p.quote != 0:
		p.keep(r)
	case r == '"' || r == '\'':
		p.quote, p.size, p.ref = r, 0, false
		p.out = utf8.AppendRune(p.out, r)
	case r == '>':
		p.state, p.size, p.ref = inText, 0, false
		p.out = append(p.out, '>')
	default:
		// No name of a tag is this long.
		if p.size++; p.size > maxText {
			p.err = errors.New("a tag without end")
			return
		}
		p.out = utf8.AppendRune(p.out, r)
	}
}

// section passes a CDATA section on, of a long one the beginning.
func (p *plainXML) section(r rune, end string) {
	p.match = last(p.match+string(r), len(end))
	p.size++
	if p.match == end {
		p.state = inText
		for k := range len(end) { // those past the limit were left out
			if at := p.size - len(end) + 1 + k; at > maxText || at == p.size {
				p.out = append(p.out, end[k])
			}
		}
		p.size, p.ref = 0, false
		return
	}
	if p.size <= maxText {
		p.out = utf8.AppendRune(p.out, r)
	}
}

// last returns the last n bytes of s.
func last(s string, n int) string { return s[max(0, len(s)-n):] }
