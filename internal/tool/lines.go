package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// sniffLen is how much of a file decides whether it is text, as in git's
// buffer_is_binary.
const sniffLen = 8000

// isBinary reports whether the beginning of a file has a NUL.
func isBinary(head []byte) bool {
	return bytes.IndexByte(head[:min(len(head), sniffLen)], 0) >= 0
}

// lineReader gives a file's lines in bounded memory: of a line that is longer
// than keep bytes, only the first keep.
type lineReader struct {
	r     *bufio.Reader
	keep  int
	buf   []byte
	n     int   // lines given
	bytes int64 // read
}

const readBuffer = 64 << 10

func newLineReader(r io.Reader, keep int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, readBuffer), keep: keep}
}

// reset begins with another file.
func (l *lineReader) reset(r io.Reader) {
	l.r.Reset(r)
	l.n, l.bytes = 0, 0
}

// line is one line without its end; text is valid until the next one is read.
type line struct {
	text []byte
	size int64 // bytes of the whole line, its end not counted
	crlf bool
}

// next returns the next line, or io.EOF.
func (l *lineReader) next(ctx context.Context) (line, error) {
	if err := ctx.Err(); err != nil {
		return line{}, err
	}
	l.buf = l.buf[:0]
	var size int64
	for {
		part, err := l.r.ReadSlice('\n')
		size += int64(len(part))
		l.bytes += int64(len(part))
		if room := l.keep + 2 - len(l.buf); room > 0 {
			l.buf = append(l.buf, part[:min(room, len(part))]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if err := ctx.Err(); err != nil {
				return line{}, err
			}
			continue
		case errors.Is(err, io.EOF) && size == 0:
			return line{}, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return line{}, err
		}
		l.n++
		out := line{text: l.buf, size: size}
		if bytes.HasSuffix(part, []byte{'\n'}) {
			out.size--
			out.crlf = bytes.HasSuffix(part, []byte("\r\n"))
			if out.crlf {
				out.size--
			}
		}
		out.text = out.text[:min(int64(len(out.text)), out.size, int64(l.keep))]
		return out, nil
	}
}

// peek returns the beginning of what is still to be read.
func (l *lineReader) peek() []byte {
	head, _ := l.r.Peek(sniffLen) // a failure is met again by next
	return head
}

// shorten returns text as one shown line of at most limit bytes; whole is the
// line's real size. It ends before a rune that would be cut.
func shorten(text []byte, limit int, whole int64) string {
	if int64(len(text)) == whole && len(text) <= limit {
		return clean(string(text))
	}
	n := min(limit, len(text))
	for i := n - 1; i >= 0 && i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:n]) {
				n = i
			}
			break
		}
	}
	return clean(string(text[:n])) + lineCut(whole)
}

// counted is n with its noun, in the plural where there is not one.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// countLines returns how many lines s has; a last line needs no end.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
