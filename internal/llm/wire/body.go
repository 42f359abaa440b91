package wire

import "bytes"

// Body is the body of a request that grows at its end: a head, and elements with a
// comma between them. Bytes that were sent are never written to again, since a
// transport may still read them when the answer is here: what is appended lies
// behind them, and Reset moves to other memory.
type Body struct {
	B    []byte // head and elements
	Head int    // bytes before the first element
}

// NewBody begins a body.
func NewBody(head []byte) Body { return Body{B: head, Head: len(head)} }

// Next separates the next element from the one before.
func (b *Body) Next() {
	if len(b.B) > b.Head {
		b.B = append(b.B, ',')
	}
}

// Reset takes out all elements.
func (b *Body) Reset() { b.B = bytes.Clone(b.B[:b.Head]) }

// Serialized is the elements.
func (b *Body) Serialized() []byte { return b.B[b.Head:len(b.B):len(b.B)] }
