package contextstore

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines calls f for each line of r, without its newline, with the offset it
// begins at, until f returns false. A last line without a newline counts. The
// slice is valid during the call only.
func lines(r io.Reader, f func(offset int64, line []byte) bool) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	var at int64
	for {
		part, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line, long = long, nil
		}
		if len(line) > 0 {
			if !f(at, bytes.TrimSuffix(line, []byte("\n"))) {
				return nil
			}
			at += int64(len(line))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// block is how much reverseLines reads at a time.
const block = 16 << 10

// reverseLines calls f for each whole line of the first size bytes of r, last
// line first, until f returns false. What it reads is bounded by what f takes.
func reverseLines(r io.ReaderAt, size int64, f func(line []byte) bool) error {
	var tail []byte // the beginning of what was read so far, up to its first newline
	for end := size; end > 0; {
		n := min(block, end)
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
			if line := bytes.TrimSuffix(part[i+1:], []byte("\n")); len(line) > 0 && !f(line) {
				return nil
			}
			part = part[:i+1]
		}
		tail = part
	}
	if line := bytes.TrimSuffix(tail, []byte("\n")); len(line) > 0 {
		f(line)
	}
	return nil
}

// lastLine decodes the last line of the first size bytes of r; false where
// there is none.
func lastLine(r io.ReaderAt, size int64, decode func([]byte) error) (found bool, err error) {
	rerr := reverseLines(r, size, func(line []byte) bool {
		found = true
		err = decode(line)
		return false
	})
	return found, errors.Join(err, rerr)
}
