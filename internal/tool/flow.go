package tool

import (
	"bytes"
	"errors"
	"io"
)

// flow filters an output that somebody follows while it comes. A filter that
// sees the whole holds much of it back, so each run of whole lines is filtered
// by itself; only a block such as a private key, the one secret that spans
// lines, is kept together.
type flow struct {
	filter func(io.Writer) io.WriteCloser // nil: nothing is filtered
	out    io.Writer
	held   []byte
}

// maxFlow is how much a flow holds back for the end of a line or a block, in bytes.
const maxFlow = 128 << 10

// Write fails where the filter or out does.
func (f *flow) Write(p []byte) (int, error) {
	if f.filter == nil {
		return f.out.Write(p)
	}
	f.held = append(f.held, p...)
	if len(f.held) < maxFlow && bytes.IndexByte(p, '\n') < 0 {
		return len(p), nil
	}
	end := bytes.LastIndexByte(f.held, '\n') + 1
	if i := openBlock(f.held[:end]); i >= 0 {
		end = i
	}
	if end == 0 && len(f.held) >= maxFlow {
		end = len(f.held)
	}
	return len(p), f.pass(end)
}

// openBlock is where the line begins that opens a block which does not end, or -1.
func openBlock(b []byte) int {
	i := bytes.LastIndex(b, []byte("-----BEGIN"))
	if i < 0 || bytes.Contains(b[i:], []byte("-----END")) {
		return -1
	}
	return bytes.LastIndexByte(b[:i], '\n') + 1
}

// pass filters the first n bytes of what is held.
func (f *flow) pass(n int) error {
	if n == 0 {
		return nil
	}
	w := f.filter(f.out)
	_, err := w.Write(f.held[:n])
	err = errors.Join(err, w.Close())
	f.held = append(f.held[:0], f.held[n:]...)
	return err
}

// Close passes on what is held. Nothing may be written after it.
func (f *flow) Close() error {
	if f.filter == nil {
		return nil
	}
	return f.pass(len(f.held))
}
