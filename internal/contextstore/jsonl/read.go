package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"sync"
)

// Line is one line of a file as it lies on the disk.
type Line struct {
	At      int64  // offset in bytes
	Bytes   int64  // length, with the newline
	Text    []byte // without the newline; nil where Long is set; valid until the next line
	Newline bool   // the last line may lack it
	NUL     bool   // nothing but NUL bytes before the newline
	Long    bool   // longer than may be held in memory
}

// readers are what Scan reads through.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// Scan calls f for each line of r until f returns false. It holds at most one line, of
// most bytes: of a longer one only its ends are known.
func Scan(r io.Reader, most int, f func(Line) bool) error {
	br := readers.Get().(*bufio.Reader)
	br.Reset(r)
	defer func() { br.Reset(nil); readers.Put(br) }()
	var buf []byte
	l := Line{NUL: true}
	for {
		part, err := br.ReadSlice('\n')
		l.Bytes += int64(len(part))
		l.Newline = err == nil
		text := bytes.TrimSuffix(part, []byte("\n"))
		l.NUL = l.NUL && len(bytes.Trim(text, "\x00")) == 0
		switch {
		case l.Long:
		case len(text) > most-len(buf):
			l.Long, buf = true, nil
		case len(buf) > 0 || !l.Newline:
			buf = append(buf, text...)
			text = buf
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if l.Bytes > 0 {
			if !l.Long {
				l.Text = text
			}
			if !f(l) {
				return nil
			}
		}
		if err != nil {
			return nil
		}
		if cap(buf) > 1<<20 {
			buf = nil
		}
		buf = buf[:0]
		l = Line{At: l.At + l.Bytes, NUL: true}
	}
}

// Each calls f for each line of r, whatever its length, without its newline, with the
// offset it begins at, until f returns false. A last line without a newline counts.
// The slice is valid during the call only.
func Each(r io.Reader, f func(at int64, line []byte) bool) error {
	return Scan(r, math.MaxInt, func(l Line) bool { return f(l.At, l.Text) })
}

// block is how much Back reads at a time, at the least; the least reads are shorter, as
// most want the last line.
const block = 16 << 10

// Back calls f for each line of the least size bytes of r that is not empty, with the
// offset it begins at, the last line least, until f returns false. What it reads is
// bounded by what f takes; inside a long line each read is as long as what is known of
// it, so that the work stays in proportion to its length.
func Back(r io.ReaderAt, size int64, f func(at int64, line []byte) bool) error {
	var tail []byte // the beginning of what was read so far, up to its least newline
	least := int64(block / 4)
	for end := size; end > 0; {
		n := min(max(least, int64(len(tail))), end)
		least = min(2*least, block)
		part := make([]byte, n, n+int64(len(tail)))
		if _, err := r.ReadAt(part, end-n); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		end -= n
		part = append(part, tail...)
		for {
			i := bytes.LastIndexByte(bytes.TrimSuffix(part, []byte("\n")), '\n')
			if i < 0 {
				break
			}
			if line := bytes.TrimSuffix(part[i+1:], []byte("\n")); len(line) > 0 && !f(end+int64(i)+1, line) {
				return nil
			}
			part = part[:i+1]
		}
		tail = part
	}
	if line := bytes.TrimSuffix(tail, []byte("\n")); len(line) > 0 {
		f(0, line)
	}
	return nil
}
