package wire

import (
	"bufio"
	"io"
	"sync"
)

// Buffers are those that answers were read with and others can be read with.
// The zero Buffers has none yet. It is safe for concurrent use.
type Buffers struct{ free sync.Pool }

func (b *Buffers) take(in io.Reader) *bufio.Reader {
	if b == nil {
		return bufio.NewReader(in)
	}
	r, _ := b.free.Get().(*bufio.Reader)
	if r == nil {
		return bufio.NewReaderSize(in, readBuffer)
	}
	r.Reset(in)
	return r
}

func (b *Buffers) give(r *bufio.Reader) {
	if b != nil {
		r.Reset(nil)
		b.free.Put(r)
	}
}
