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
	name             string
	created, deleted bool
	submodule        bool
	link             bool // symbolic, before or after
}

// line is one line of a hunk.
type line struct {
	op       byte // '+', '-', ' '
	old, new int  // numbers in the files before and after; where it is in neither, of the line that follows
	text     string
	cut      bool // it is longer
}

// sink takes what a patch holds, in its order. Lines are valid during the call;
// those of a large file come in several calls.
type sink interface {
	begin(change)
	lines([]line)
	end()
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
	lines []line
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
	case strings.HasPrefix(p.cur, "diff --git "):
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

// hunk reads a hunk.
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
	p.lines, p.size = p.lines[:0], 0
	err := p.body(&h)
	p.to.lines(p.lines) // also what there is of a broken one
	p.after = true
	return err
}

// body reads the lines of a hunk.
func (p *reader) body(h *hunkHead) error {
	oldNo, newNo := max(h.old.from, 1), max(h.new.from, 1)
	if h.old.n == 0 {
		oldNo = h.old.from + 1
	}
	if h.new.n == 0 {
		newNo = h.new.from + 1
	}
	for {
		if err := p.advance(); err != nil || h.old.n <= 0 && h.new.n <= 0 {
			return err
		}
		if p.eof {
			return p.wrong("more lines of the hunk: " + h.missing())
		}
		if strings.HasPrefix(p.cur, `\`) {
			continue
		}
		l, ok := h.take(p.cur)
		if !ok {
			return p.wrong("a line of the hunk, which begins with a space, + or -; missing are " + h.missing())
		}
		l.old, l.new = oldNo, newNo
		if l.op != '+' {
			oldNo++
		}
		if l.op != '-' {
			newNo++
		}
		p.put(l)
	}
}

// put adds a line to those that go to the sink together.
func (p *reader) put(l line) {
	l.cut = p.long
	if len(p.lines) >= maxBlockLines || p.size+len(l.text) > maxBlockBytes && len(p.lines) > 0 {
		p.to.lines(p.lines)
		p.lines, p.size = p.lines[:0], 0
	}
	p.lines = append(p.lines, l)
	p.size += len(l.text)
}

// span is a range of lines.
type span struct{ from, n int }

// hunkHead is the header of a hunk, whose counts go down to 0.
type hunkHead struct{ old, new span }

// parseHunk reads @@ -a,b +c,d @@ heading.
func parseHunk(s string) (h hunkHead, ok bool) {
	parts := strings.SplitN(s, " ", 5)
	if len(parts) < 4 || parts[0] != "@@" || parts[3] != "@@" {
		return h, false
	}
	if h.old, ok = parseSpan(parts[1], '-'); ok {
		h.new, ok = parseSpan(parts[2], '+')
	}
	return h, ok
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

func (h *hunkHead) missing() string {
	return fmt.Sprintf("%d of the file before and %d of the file after", h.old.n, h.new.n)
}

// take reads one line of the hunk and counts it.
func (h *hunkHead) take(s string) (l line, ok bool) {
	if strings.TrimSuffix(s, "\r") == "" { // an empty line whose space somebody took
		s = " "
	}
	switch l.op = s[0]; l.op {
	case ' ':
		h.old.n--
		h.new.n--
	case '-':
		h.old.n--
	case '+':
		h.new.n--
	default:
		return l, false
	}
	l.text = strings.TrimSuffix(s[1:], "\r")
	return l, h.old.n >= 0 && h.new.n >= 0
}
