package scan

import (
	"strings"

	"toritsugi/internal/lazyregexp"
)

// pythonScan follows the blocks of Python, for what is legitimate there depends
// on what is around it.
type pythonScan struct {
	f          *fileScan
	stub       bool    // .pyi: bodies are not written there
	frames     []frame // the innermost last
	decorators []string
	depth      int // of brackets that the line before left open
	head       *frame
	raised     *line  // NotImplementedError( whose words follow
	wasDef     string // head of the def in the removed line before
}

// frame is a class or a function.
type frame struct {
	class      bool
	indent     int
	name       string
	head       string // up to the colon
	decorators []string
	doc        string
	statements int
	only       *candidate // that the body is nothing else, if it is
	excuse     bool       // a comment says why there is nothing
}

// maxHead is the most that is kept of a head, a doc string, bytes.
const maxHead = 2 << 10

var (
	defHead   = lazyregexp.New(`^\s*(?:async\s+)?(def|class)\s+(\w+)`)
	lazyDecor = lazyregexp.New(`(?i)abstract|overload|callback|group|fixture|hook|command|singledispatch|listener|mark|stub|no_?op|generic`)
	abstracts = lazyregexp.New(`\b(Protocol|ABC|ABCMeta|Interface|TypedDict|NamedTuple)\b`)
	lazyName  = lazyregexp.New(`(?i)^__\w+__$|no_?op|nothing|dummy|null|ignore`)
	excuse    = lazyregexp.New(`(?i)no-?\s?op|nothing|intentional|deliberate|on purpose|by design|ignore|not needed|unused|do not|don't|never|optional|overrid|default|不要|何もしない|意図`)
)

// close ends the blocks that a line of this indentation does not belong to.
func (p *pythonScan) close(indent int) {
	for len(p.frames) > 0 && p.frames[len(p.frames)-1].indent >= indent {
		fr := p.frames[len(p.frames)-1]
		p.frames = p.frames[:len(p.frames)-1]
		if fr.only != nil && fr.statements == 1 && !p.mayBeEmpty(&fr) {
			fr.only.class = p.around()
			p.f.s.add(*fr.only)
		}
	}
}

// around is the name of the class around, "" for none.
func (p *pythonScan) around() string {
	if fr := p.enclosing(); fr != nil {
		return fr.name
	}
	return ""
}

// enclosing is the innermost class.
func (p *pythonScan) enclosing() *frame {
	for i := len(p.frames) - 1; i >= 0; i-- {
		if p.frames[i].class {
			return &p.frames[i]
		}
	}
	return nil
}

// abstract reports whether methods here are there to be overridden, or may be.
func (p *pythonScan) abstract() bool {
	class := p.enclosing()
	return class != nil && (abstracts().MatchString(class.head) || standsIn().MatchString(class.name))
}

// mayBeEmpty reports whether nothing is missing from a function without a body.
func (p *pythonScan) mayBeEmpty(fr *frame) bool {
	if p.stub || fr.excuse || lazyName().MatchString(fr.name) || lazyDecor().MatchString(strings.Join(fr.decorators, " ")) || excused().MatchString(fr.doc) {
		return true
	}
	if p.f.test && !strings.HasPrefix(fr.name, "test") {
		return true
	}
	if n := len(p.frames); n > 0 && !p.frames[n-1].class {
		return true // a function within a function is passed on to somebody
	}
	return p.abstract()
}

// line takes a line of the new file. within tells that it begins in a literal.
func (p *pythonScan) line(l *line, class []byte, within bool) {
	s := l.text
	if within {
		p.doc(s)
	}
	if r := p.raised; r != nil {
		p.raised = nil
		p.raises(r, r.text+" "+strings.TrimSpace(s))
	}
	plain, remarked := stripped(s, class)
	if remarked && excuse().MatchString(s) && len(p.frames) > 0 {
		if fr := &p.frames[len(p.frames)-1]; indentOf(s) > fr.indent || strings.TrimSpace(plain) != "" {
			fr.excuse = true
		}
	}
	if p.head != nil {
		p.header(l, plain)
		return
	}
	open := p.depth > 0
	p.depth = max(0, p.depth+brackets(plain))
	text := strings.TrimSpace(plain)
	if within || open || text == "" {
		return
	}
	indent := indentOf(s)
	p.close(indent)
	switch m := defHead().FindStringSubmatch(plain); {
	case strings.HasPrefix(text, "@"):
		p.decorators = append(p.decorators, text)
		return
	case m != nil:
		p.count(nil)
		p.head = &frame{class: m[1] == "class", indent: indent, name: m[2], decorators: p.decorators}
		p.decorators, p.depth = nil, 0
		p.header(l, plain)
		return
	}
	p.decorators = nil
	// Literals are blank by now: a string that stands alone is a doc string.
	if strings.Trim(strings.TrimLeft(text, "rRbBuUfF"), `"`) == "" && strings.HasSuffix(text, `"`) {
		p.doc(s)
		return
	}
	p.statement(l, text)
}

// statement takes a statement of a block.
func (p *pythonScan) statement(l *line, text string) {
	var only *candidate
	if l.op == '+' && (text == "pass" || text == "...") {
		only = &candidate{Finding: p.f.at(Placeholder, EmptyBody, l)}
	}
	p.count(only)
	if l.op == '+' && strings.HasPrefix(text, "raise NotImplementedError") {
		if strings.HasSuffix(text, "(") {
			copied := *l
			p.raised = &copied
			return
		}
		p.raises(l, l.text)
	}
}

// raises takes a line that raises NotImplementedError; said is the statement.
func (p *pythonScan) raises(l *line, said string) {
	if p.unwritten(said) {
		c := candidate{Finding: p.f.at(Placeholder, NotImplemented, l), moved: hash(l.text)}
		c.class = p.around()
		p.f.s.add(c)
	}
}

// count takes note of a statement in the innermost function.
func (p *pythonScan) count(only *candidate) {
	if n := len(p.frames); n > 0 && !p.frames[n-1].class {
		fr := &p.frames[n-1]
		fr.statements++
		if fr.only = only; only != nil {
			only.moved = hash(fr.head)
		}
	}
}

// header takes a line of the head of a class or function, up to its colon.
func (p *pythonScan) header(l *line, plain string) {
	h := p.head
	if len(h.head) < maxHead {
		h.head += strings.TrimSpace(plain) + " "
	}
	p.depth = max(0, p.depth+brackets(plain))
	if p.depth > 0 {
		return
	}
	p.head = nil
	if h.class {
		p.bases(h.head)
	}
	p.frames = append(p.frames, *h)
	// A body on the line of the head.
	if at := strings.LastIndexByte(plain, ':'); at >= 0 {
		if text := strings.TrimSpace(plain[at+1:]); text != "" && !h.class {
			p.statement(l, text)
		}
	}
}

// bases notes which classes another one extends.
func (p *pythonScan) bases(head string) {
	_, list, _ := strings.Cut(head, "(")
	list, _, _ = strings.Cut(list, ")")
	for b := range strings.SplitSeq(list, ",") {
		b = strings.TrimSpace(b)
		b = b[strings.LastIndexByte(b, '.')+1:]
		if b != "" && len(p.f.s.bases) < maxBases {
			p.f.s.bases[b] = true
		}
	}
}

func (p *pythonScan) doc(s string) {
	if n := len(p.frames); n > 0 && len(p.frames[n-1].doc) < maxHead {
		p.frames[n-1].doc += s + "\n"
	}
}

// unwritten reports whether a line raises NotImplementedError because something
// is to be written, not because it is to be overridden or is not supported.
func (p *pythonScan) unwritten(s string) bool {
	m := notImpl().FindStringSubmatch(s)
	if m == nil || p.f.test || p.stub || excused().MatchString(s) {
		return false
	}
	said, _, _ := strings.Cut(m[1], "#")
	said = strings.Trim(said, " ()")
	if said != "" && !promises().MatchString(said) {
		return false
	}
	for i := len(p.frames) - 1; i >= 0; i-- {
		if fr := &p.frames[i]; !fr.class {
			if lazyDecor().MatchString(strings.Join(fr.decorators, " ")) || excused().MatchString(fr.doc) {
				return false
			}
			break
		}
	}
	return !p.abstract() || said != "" && p.enclosing() == nil
}

// removed notes the functions without a body that went: one of the same head
// somewhere else has moved.
func (p *pythonScan) removed(s string) {
	text := strings.TrimSpace(s)
	if (text == "pass" || text == "...") && p.wasDef != "" {
		p.f.s.removed.put(hash(p.wasDef))
	}
	p.wasDef = ""
	if strings.HasPrefix(text, "def ") || strings.HasPrefix(text, "async def ") {
		p.wasDef = text
	}
	if notImpl().MatchString(s) {
		p.f.s.removed.put(hash(s))
	}
}

// stripped is a line without its comments, literals blank.
func stripped(s string, class []byte) (plain string, remarked bool) {
	b := []byte(s)
	for i := range b {
		switch class[i] {
		case literal:
			b[i] = '"'
		case comment:
			b[i], remarked = ' ', true
		}
	}
	return string(b), remarked
}

func brackets(s string) int {
	n := 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[', '{':
			n++
		case ')', ']', '}':
			n--
		}
	}
	return n
}

// indentOf is the width of the white space that a line begins with.
func indentOf(s string) int {
	n := 0
	for i := range len(s) {
		switch s[i] {
		case ' ':
			n++
		case '\t':
			n += 8 - n%8
		default:
			return n
		}
	}
	return n
}
