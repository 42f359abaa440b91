package contextstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// gentle reads little at first: who reads on from somewhere often wants no more
// than a line.
type gentle struct {
	r    io.Reader
	next int // bytes of the next read, at the most
}

func (g *gentle) Read(p []byte) (int, error) {
	n, err := g.r.Read(p[:min(len(p), g.next)])
	if g.next < len(p) {
		g.next *= 4
	}
	return n, err
}

// firstGentle is how much a gentle reads first, bytes.
const firstGentle = 4 << 10

// lineReader reads lines anywhere in the first end bytes of a file, forwards
// and backwards, through one buffer. A read is small at first and grows to half
// of what was read while the reading goes on from where it was, so that little
// more is read than what was needed. It is owned by one goroutine; the slices
// it returns are valid until the next call.
type lineReader struct {
	r    io.ReaderAt
	end  int64
	at   int64  // where buf begins
	buf  []byte // a part of the file
	row  int64  // bytes read on and on
	long []byte // the latest line that buf did not hold
}

// The least and the most that a lineReader reads at once, bytes. A line that
// is longer than keepLine is forgotten as soon as it was used.
const (
	firstRead = 1 << 10
	mostRead  = 32 << 10
	keepLine  = 1 << 20
)

// after returns bytes of the file that begin at off: one at the least, none at
// the end.
func (r *lineReader) after(off int64) ([]byte, error) {
	if off >= r.end {
		return nil, nil
	}
	if i := off - r.at; i >= 0 && i < int64(len(r.buf)) {
		return r.buf[i:], nil
	}
	n := min(r.ahead(off == r.at+int64(len(r.buf))), r.end-off)
	if int64(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	r.at, r.buf = off, r.buf[:n]
	got, err := r.r.ReadAt(r.buf, off)
	r.buf = r.buf[:got]
	if errors.Is(err, io.EOF) { // the file was cut since end was taken
		err = nil
	}
	return r.buf, err
}

// before returns bytes of the file that end at off, one at the least.
func (r *lineReader) before(off int64) ([]byte, error) {
	if i := off - r.at; i > 0 && i <= int64(len(r.buf)) {
		return r.buf[:i], nil
	}
	n := min(r.ahead(off == r.at), off)
	kept := 0 // of what is known of the bytes behind: it will be wanted again
	if off == r.at {
		kept = min(len(r.buf), mostRead)
	}
	buf := make([]byte, n, int(n)+kept)
	got, err := r.r.ReadAt(buf, off-n)
	if int64(got) < n {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the file was cut while it was read: %w", io.ErrUnexpectedEOF)
		}
		return nil, err
	}
	r.at, r.buf = off-n, append(buf, r.buf[:kept]...)
	return r.buf[:n], nil
}

// ahead is how much to read: more if the reading goes on from where it was.
func (r *lineReader) ahead(goesOn bool) int64 {
	if !goesOn {
		r.row = 0
	}
	n := min(max(r.row/2, firstRead), mostRead)
	r.row += n
	return n
}

// start returns where the line begins that ends right before off, its newline
// included.
func (r *lineReader) start(off int64) (int64, error) {
	newline := 1 // its own
	for off > 0 {
		b, err := r.before(off)
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b[:len(b)-newline], '\n'); i >= 0 {
			return off - int64(len(b)-i-1), nil
		}
		off -= int64(len(b))
		newline = 0
	}
	return 0, nil
}

// lastLine returns where the last line begins, -1 if that is not at hand: a
// long line is not read for it.
func (r *lineReader) lastLine() (int64, error) {
	if r.end == 0 {
		return -1, nil
	}
	b, err := r.before(r.end)
	if err != nil {
		return -1, err
	}
	if i := bytes.LastIndexByte(b[:len(b)-1], '\n'); i >= 0 {
		return r.end - int64(len(b)-i-1), nil
	}
	return -1, nil
}

// behind returns where the line begins that follows the next newline from off
// on, limit if that is not before limit. It holds nothing of what it passes.
func (r *lineReader) behind(off, limit int64) (int64, error) {
	for off < limit {
		b, err := r.after(off)
		if err != nil || len(b) == 0 {
			return limit, err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return min(off+int64(i)+1, limit), nil
		}
		off += int64(len(b))
	}
	return limit, nil
}

// line returns the line that begins at off, without its newline, and where the
// next one begins.
func (r *lineReader) line(off int64) (line []byte, next int64, err error) {
	b, err := r.after(off)
	if err != nil {
		return nil, off, err
	}
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i], off + int64(i) + 1, nil
	}
	if cap(r.long) > keepLine {
		r.long = nil
	}
	r.long = r.long[:0]
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i >= 0 {
			r.long = append(r.long, b[:i]...)
			return r.long, off + int64(i) + 1, nil
		}
		r.long = append(r.long, b...)
		off += int64(len(b))
		if b, err = r.after(off); err != nil {
			return nil, off, err
		}
	}
	return r.long, r.end, nil
}

// begin returns up to len(head) bytes of the line that begins at off; what
// follows the line may be among them.
func (r *lineReader) begin(off int64, head []byte) (n int, err error) {
	for n < len(head) {
		b, err := r.after(off + int64(n))
		if err != nil || len(b) == 0 {
			return n, err
		}
		n += copy(head[n:], b)
	}
	return n, nil
}

// candidate reports whether a line that begins with b may be a JSON object.
func candidate(b byte) bool { return b == '{' || b == ' ' || b == '\t' || b == '\r' }

// whole cuts end back to behind the last line that is whole: one with its
// newline, or one that lacks no more than that (ok).
func (r *lineReader) whole(ok func(line []byte) bool) error {
	if r.end == 0 {
		return nil
	}
	last, err := r.before(r.end)
	if err != nil || last[len(last)-1] == '\n' {
		return err
	}
	start, err := r.start(r.end)
	if err != nil {
		return err
	}
	b, err := r.after(start)
	if err != nil || len(b) == 0 {
		return err
	}
	if candidate(b[0]) {
		line, _, err := r.line(start)
		if err != nil || ok(line) {
			return err
		}
	}
	r.end = start
	return nil
}
