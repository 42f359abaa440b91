package scan

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// SyntaxError says where a patch is malformed.
type SyntaxError struct {
	Line int    // of the patch, 1-based
	Want string // what was expected there
	Got  string // the beginning of the line, "" for the end of the patch
}

func (e *SyntaxError) Error() string {
	got := "the end of the patch"
	if e.Got != "" {
		got = strconv.Quote(e.Got)
	}
	return fmt.Sprintf("patch, line %d: expected %s, got %s", e.Line, e.Want, got)
}

// change is what a patch does to one file.
type change struct {
	old, new         string // paths; "" where there is no such file
	created, deleted bool
	moved            bool // git says that it was renamed or copied
	submodule        bool
}

// name is where the file is, or was.
func (c change) name() string {
	if c.deleted || c.new == "" {
		return c.old
	}
	return c.new
}

// line is one line of a hunk.
type line struct {
	op       byte // '+', '-', ' '; 0 where the parents of a merge disagree
	old, new int  // numbers in the files before and after; where it is in neither, of the line that follows
	text     string
}

// block is a piece of a hunk: most hunks are one block.
type block struct {
	heading string // what git names as the place of the hunk
	old     int    // number of the first line before and after
	new     int
	first   bool // it begins a hunk
	last    bool // it ends one
	lines   []line
}

// sink takes what a patch holds, in its order. A block is valid during the call.
type sink interface {
	begin(change)
	block(*block)
	end()
	longLine()
}

// Limits of what is held of a patch at a time.
const (
	maxLine       = 16 << 10 // bytes kept of a line
	maxBlockLines = 4096
	maxBlockBytes = 1 << 20
)

// reader takes a patch apart. The memory it needs does not grow with the patch,
// which is why it is not go-gitdiff's: that holds all files.
type reader struct {
	in   *bufio.Reader
	to   sink
	cur  string // the line, without its end
	long bool   // cur is cut
	n    int    // number of cur
	eof  bool

	file  change
	named bool // a file's header was read
	begun bool // and the sink was told
	after bool // a hunk of it ended in the line before
	b     block
	size  int
}

// readPatch calls to for all that r holds.
func readPatch(r io.Reader, to sink) error {
	p := &reader{in: bufio.NewReaderSize(r, 64<<10), to: to}
	if err := p.advance(); err != nil {
		return err
	}
	for !p.eof {
		if err := p.step(); err != nil {
			return err
		}
	}
	p.close()
	return nil
}

// step reads what begins with the current line.
func (p *reader) step() error {
	switch {
	case strings.HasPrefix(p.cur, "diff --git "), strings.HasPrefix(p.cur, "diff --cc "), strings.HasPrefix(p.cur, "diff --combined "):
		p.close()
		return p.gitHeader()
	case strings.HasPrefix(p.cur, "--- "):
		return p.plainHeader()
	case strings.HasPrefix(p.cur, "@@"):
		return p.hunk()
	case p.after && (strings.HasPrefix(p.cur, "+") || strings.HasPrefix(p.cur, " ")):
		return p.wrong("the end of the hunk, whose header promises fewer lines")
	}
	p.after = p.after && strings.HasPrefix(p.cur, `\`)
	return p.advance() // a message, an index line, the bytes of a binary file
}

// advance reads the next line, of which it keeps the first maxLine bytes.
func (p *reader) advance() error {
	var kept []byte
	p.long = false
	for {
		part, err := p.in.ReadSlice('\n')
		whole := kept == nil && !p.long
		body := bytes.TrimSuffix(part, []byte("\n"))
		if room := maxLine - len(kept); len(body) > room {
			body, p.long = body[:room], true
		}
		if !whole || errors.Is(err, bufio.ErrBufferFull) {
			kept = append(kept, body...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case err != nil && len(part) == 0 && whole:
			p.cur, p.eof = "", true
			return nil
		}
		if whole {
			p.cur = string(body)
		} else {
			p.cur = string(kept)
		}
		p.n++
		return nil
	}
}

func (p *reader) wrong(want string) error {
	if p.eof {
		return &SyntaxError{p.n + 1, want, ""}
	}
	return &SyntaxError{p.n, want, strings.ToValidUTF8(p.cur[:min(len(p.cur), 60)], "\uFFFD")}
}

// start tells the sink of the file, once.
func (p *reader) start() {
	if p.named && !p.begun {
		p.to.begin(p.file)
		p.begun = true
	}
}

// close ends the file.
func (p *reader) close() {
	if p.named {
		p.start()
		p.to.end()
	}
	p.named, p.begun, p.after = false, false, false
}

// hunk reads a hunk: of an ordinary patch, or of a merge with its several parents.
func (p *reader) hunk() error {
	h, ok := parseHunk(p.cur)
	if !ok {
		if !p.named {
			return p.advance() // of a message
		}
		return p.wrong("the header of a hunk, as @@ -1,2 +1,3 @@")
	}
	if !p.named {
		return p.wrong("the header of a file before its first hunk")
	}
	p.start()
	p.b = block{heading: h.heading, old: h.old[0].from, new: h.new.from, first: true, lines: p.b.lines[:0]}
	p.size = 0
	err := p.body(&h)
	p.b.last = true
	p.to.block(&p.b) // also what there is of a broken one
	p.after = true
	return err
}

// body reads the lines of a hunk.
func (p *reader) body(h *hunkHead) error {
	oldNo, newNo := max(h.old[0].from, 1), max(h.new.from, 1)
	if h.old[0].n == 0 {
		oldNo = h.old[0].from + 1
	}
	if h.new.n == 0 {
		newNo = h.new.from + 1
	}
	for {
		if err := p.advance(); err != nil || !h.left() {
			return err
		}
		if p.eof {
			return p.wrong("more lines of the hunk: " + h.missing())
		}
		if strings.HasPrefix(p.cur, `\`) {
			continue
		}
		l, parent, ok := h.take(p.cur)
		if !ok {
			return p.wrong("a line of the hunk, which begins with a space, + or -; missing are " + h.missing())
		}
		l.old, l.new = oldNo, newNo
		if parent {
			oldNo++
		}
		if l.op == '+' || l.op == ' ' {
			newNo++
		}
		p.put(l)
	}
}

// put adds a line to the block; a full one goes to the sink.
func (p *reader) put(l line) {
	if p.long {
		p.to.longLine()
	}
	if len(p.b.lines) >= maxBlockLines || p.size+len(l.text) > maxBlockBytes && len(p.b.lines) > 0 {
		p.to.block(&p.b)
		p.b.lines, p.b.first, p.size = p.b.lines[:0], false, 0
	}
	p.b.lines = append(p.b.lines, l)
	p.size += len(l.text)
}

// span is a range of lines.
type span struct{ from, n int }

// hunkHead is the header of a hunk, whose counts go down to 0.
type hunkHead struct {
	old     []span // one per parent
	new     span
	heading string
}

// parseHunk reads @@ -a,b +c,d @@ heading; a merge of n parents has n+1 at signs
// and n ranges before that of the result.
func parseHunk(s string) (h hunkHead, ok bool) {
	at := len(s) - len(strings.TrimLeft(s, "@"))
	if at < 2 || at > 64 || at >= len(s) || s[at] != ' ' {
		return h, false
	}
	ranges, heading, ok := strings.Cut(s[at+1:], " "+s[:at])
	if !ok {
		return h, false
	}
	h.heading = strings.TrimSpace(heading)
	parts := strings.Split(ranges, " ")
	if len(parts) != at {
		return h, false
	}
	for i, part := range parts {
		sign := byte('-')
		if i == len(parts)-1 {
			sign = '+'
		}
		r, ok := parseSpan(part, sign)
		if !ok {
			return h, false
		}
		if sign == '+' {
			h.new = r
		} else {
			h.old = append(h.old, r)
		}
	}
	return h, true
}

func parseSpan(s string, sign byte) (r span, ok bool) {
	if s == "" || s[0] != sign {
		return r, false
	}
	from, n, counted := strings.Cut(s[1:], ",")
	if r.from, ok = number(from); !ok {
		return r, false
	}
	r.n = 1
	if counted {
		r.n, ok = number(n)
	}
	return r, ok
}

// number reads digits only: no sign, and nothing that could overflow a sum.
func number(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 40)
	return int(n), err == nil && s[0] != '+'
}

func (h *hunkHead) left() bool {
	for _, o := range h.old {
		if o.n > 0 {
			return true
		}
	}
	return h.new.n > 0
}

func (h *hunkHead) missing() string {
	n := 0
	for _, o := range h.old {
		n = max(n, o.n)
	}
	return fmt.Sprintf("%d of the file before and %d of the file after", n, h.new.n)
}

// take reads one line of the hunk and counts it. parent reports whether the first
// parent holds it.
func (h *hunkHead) take(s string) (l line, parent, ok bool) {
	n := len(h.old)
	if strings.TrimSuffix(s, "\r") == "" { // an empty line whose space an editor or a mailer took
		s = strings.Repeat(" ", n)
	}
	if len(s) < n {
		return l, false, false
	}
	minus, plus := strings.Count(s[:n], "-"), strings.Count(s[:n], "+")
	if minus+plus+strings.Count(s[:n], " ") != n || minus > 0 && plus > 0 {
		return l, false, false
	}
	for i := range h.old {
		has := s[i] == '-' || minus == 0 && s[i] == ' '
		if has {
			if h.old[i].n--; h.old[i].n < 0 {
				return l, false, false
			}
		}
		parent = parent || i == 0 && has
	}
	if minus == 0 {
		if h.new.n--; h.new.n < 0 {
			return l, false, false
		}
	}
	switch {
	case minus == n:
		l.op = '-'
	case plus == n:
		l.op = '+'
	case minus == 0:
		l.op = ' '
	}
	l.text = strings.TrimSuffix(s[n:], "\r")
	return l, parent, true
}
