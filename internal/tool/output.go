package tool

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"toritsugi/internal/checks"
)

// capture takes an output of any length in bounded memory: its beginning, its
// end, how long it was, and, where it is too long to be shown whole, a spill
// file that got everything. Writers may be concurrent. A capture that was
// started is ended by Finish or Discard.
type capture struct {
	limit Limits
	spill *spiller
	in    io.Writer      // what Write feeds: keep, or the filter in front of it
	out   io.Closer      // the filter, or nil
	tests *checks.Parser // reads a long output of tests, to be told instead of it; or nil

	mu       sync.Mutex
	head     []byte // the first headCap bytes
	tail     []byte // the last bytes after head, at least tailCap of them where there are so many
	total    int64
	newlines int64
	file     *spillFile
	spillErr error
}

func newCapture(limit Limits, spill *spiller) *capture {
	c := &capture{limit: limit, spill: spill}
	c.in = keeper{c}
	if limit.Filter != nil {
		f := limit.Filter(c.in)
		c.in, c.out = f, f
	}
	return c
}

// headCap and tailCap together are MaxOutput, so that what fits is shown whole.
func (c *capture) headCap() int { return c.limit.MaxOutput / 2 }
func (c *capture) tailCap() int { return c.limit.MaxOutput - c.headCap() }

// Write takes p. It fails only where the filter does.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in.Write(p)
}

// keeper is the end of a capture's pipe; the capture's lock is held.
type keeper struct{ c *capture }

func (k keeper) Write(p []byte) (int, error) {
	c, n := k.c, len(p)
	if c.tests != nil {
		_, _ = c.tests.Write(p) // never fails
	}
	c.total += int64(n)
	c.newlines += int64(bytes.Count(p, []byte{'\n'}))
	if c.file != nil {
		c.file.write(p)
	}
	rest := p
	if room := c.headCap() - len(c.head); room > 0 {
		take := min(room, len(rest))
		c.head = append(c.head, rest[:take]...)
		rest = rest[take:]
	}
	// Only now is anything lost from memory, and all of it is still at hand.
	if c.file == nil && len(c.tail)+len(rest) > c.tailCap() {
		c.startSpill(rest)
	}
	c.tail = appendEnd(c.tail, rest, c.tailCap())
	return n, nil
}

// appendEnd appends p to the end of an output, of which the last least bytes are kept,
// and up to twice as many.
func appendEnd(end, p []byte, least int) []byte {
	if len(p) > 2*least {
		end, p = end[:0], p[len(p)-2*least:]
	}
	if len(end)+len(p) > 2*least {
		end = append(end[:0], end[max(0, len(end)-least):]...)
	}
	return append(end, p...)
}

func (c *capture) startSpill(rest []byte) {
	if c.spillErr != nil || c.spill.dir == "" {
		return
	}
	c.file, c.spillErr = c.spill.create(c.limit.MaxSpill)
	if c.file != nil {
		c.file.write(c.head)
		c.file.write(c.tail)
		c.file.write(rest)
	}
}

// Discard ends the capture and removes its spill file.
func (c *capture) Discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out != nil {
		_ = c.out.Close() // what it would flush is thrown away
	}
	if c.file != nil {
		c.file.discard()
	}
}

// Finish ends the capture and returns its text in at most limit bytes: whole,
// or beginning and end around a line that says what was cut. The spill file it
// names is on the disk.
func (c *capture) Finish(limit int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out != nil {
		if err := c.out.Close(); err != nil {
			c.spillErr = err
		}
	}
	digest := c.digest(limit)
	if int64(len(c.head)+len(c.tail)) == c.total {
		if s := clean(string(c.head) + string(c.tail)); len(s) <= limit && digest == "" {
			if c.file != nil {
				c.file.discard()
			}
			return s
		}
		if c.file == nil {
			c.startSpill(nil)
		}
	}
	where := "it was not kept: ask for less, e.g. a smaller range or a narrower pattern"
	if c.file != nil {
		complete, err := c.file.close()
		switch {
		case err != nil:
			c.spillErr = err
		case complete:
			where = "recall has all of it as " + strings.TrimSuffix(c.file.name, spillExt)
		default:
			where = fmt.Sprintf("recall has the first %d bytes as %s", c.file.f.Size(), strings.TrimSuffix(c.file.name, spillExt))
		}
	}
	if c.spillErr != nil {
		where = "it could not be kept; ask for less"
	}
	if digest != "" {
		return fmt.Sprintf("%s[shortened from %d bytes (%d lines); %s]\n", digest, c.total, c.newlines, where)
	}
	return c.cut(limit, where)
}

// The least output of tests that is told by what failed, and the most of that, in
// bytes.
const (
	leastTests = 4 << 10
	mostTests  = 8 << 10
)

// digest is which tests failed and why, "" where that cannot be told or the output
// is short, or kept nowhere else.
func (c *capture) digest(limit int) string {
	if c.tests == nil || c.total < leastTests || c.spill.dir == "" {
		return ""
	}
	s := c.tests.Summary()
	if len(s.Failures) == 0 {
		return ""
	}
	return clean(s.Text(min(limit-maxNote, mostTests, int(c.total)/2)))
}

// maxNote is more than the longest line that says what was cut.
const maxNote = 240

func (c *capture) cut(limit int, where string) string {
	room := max(limit-maxNote, 0)
	head, shownHead := fitHead(c.head, room/2)
	rest := c.tail
	if len(c.head) > shownHead && int64(len(c.head)+len(c.tail)) == c.total {
		// Whole in memory: the end may begin anywhere after the shown head.
		rest = append(append([]byte{}, c.head[shownHead:]...), c.tail...)
	}
	tail, shownTail := fitTail(rest, room-room/2)
	cutBytes := c.total - int64(shownHead) - int64(shownTail)
	cutLines := c.newlines - int64(bytes.Count(c.head[:shownHead], []byte{'\n'})) - int64(bytes.Count(rest[len(rest)-shownTail:], []byte{'\n'}))
	var b strings.Builder
	b.WriteString(head)
	if head != "" && !strings.HasSuffix(head, "\n") {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[... %d bytes (%d lines) cut here; %s ...]\n", cutBytes, cutLines, where)
	b.WriteString(tail)
	return b.String()
}

// fitHead returns the longest beginning of raw that is at most room bytes when
// cleaned, ended at a line where one ends in its last quarter, and how many
// bytes of raw it stands for.
func fitHead(raw []byte, room int) (string, int) {
	n := min(room, len(raw))
	for {
		for i := 0; i < 3 && n > 0 && n < len(raw) && !utf8.RuneStart(raw[n]); i++ {
			n--
		}
		if n < len(raw) {
			if i := bytes.LastIndexByte(raw[:n], '\n'); i >= n*3/4 {
				n = i + 1
			}
		}
		s := clean(string(raw[:n]))
		if len(s) <= room {
			return s, n
		}
		n = min(n-1, n*room/len(s))
	}
}

// fitTail is fitHead from the other end.
func fitTail(raw []byte, room int) (string, int) {
	n := min(room, len(raw))
	for {
		start := len(raw) - n
		for i := 0; i < 3 && start > 0 && start < len(raw) && !utf8.RuneStart(raw[start]); i++ {
			start++
		}
		if start > 0 {
			if i := bytes.IndexByte(raw[start:], '\n'); i >= 0 && i <= n/4 && start+i+1 < len(raw) {
				start += i + 1
			}
		}
		n = len(raw) - start
		s := clean(string(raw[start:]))
		if len(s) <= room {
			return s, n
		}
		n = min(n-1, n*room/len(s))
	}
}

// clean makes s valid UTF-8 without NULs, which PostgreSQL's text cannot hold.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// clip returns at most limit bytes of s, with a mark where something is missing.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
