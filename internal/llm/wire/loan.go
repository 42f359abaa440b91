package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
)

// Loan is a body that is sent from where it lies, without a copy: until it is
// back, the transport may read it, also after the answer came, and nobody may
// write to it. The zero Loan is back.
type Loan struct{ out atomic.Int32 }

// Back reports whether nobody reads the body any more. Where a transport does
// not tell, which those of net/http do, it never is.
func (l *Loan) Back() bool { return l.out.Load() == 0 }

// PostLent is Post for a body that is lent to the transport by l. One in a single
// part net/http sends together with the header, and in pieces as large as its
// buffer. ctx is that of Once.
func (c *Caller) PostLent(ctx context.Context, l *Loan, parts ...[]byte) (*http.Request, error) {
	req, err := c.Post(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		req.ContentLength += int64(len(p))
	}
	req.GetBody = func() (io.ReadCloser, error) {
		l.out.Add(1)
		if len(parts) == 1 {
			return io.NopCloser(bytes.NewReader(parts[0])), nil
		}
		return &body{parts: parts}, nil
	}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil {
		others := trace.WroteRequest
		trace.WroteRequest = func(i httptrace.WroteRequestInfo) {
			if others != nil {
				others(i)
			}
			l.out.Add(-1) // each body that is made is written once; this comes after its last byte was read
		}
	}
	req.Body, err = req.GetBody()
	return req, err
}

// Body is the body of a request that grows: a head, what was appended, and what
// closes it while it is sent. It is sent from where it lies, and moves to new memory
// where the transport may still read it when it has to grow, as after an early answer.
type Body struct {
	B    []byte // head and what was appended
	Head int    // bytes before the first element
	sent []byte // the body as it is sent, in the memory of B; nil where it changed since
	loan *Loan  // of sent
}

// NewBody begins a body.
func NewBody(head []byte) Body { return Body{B: head, Head: len(head)} }

// Next makes room for an element of about so many bytes, behind the one before.
func (b *Body) Next(room int) {
	b.settle()
	b.B = Room(b.B, room)
	if len(b.B) > b.Head {
		b.B = append(b.B, ',')
	}
}

// Reset takes out all that was appended; what is appended next takes its place.
func (b *Body) Reset() {
	b.B = b.B[:b.Head]
	b.settle()
}

// Serialized is what was appended.
func (b *Body) Serialized() []byte { return b.B[b.Head:len(b.B):len(b.B)] }

// settle ends the loan.
func (b *Body) settle() {
	if b.loan != nil && !b.loan.Back() {
		b.B = append(make([]byte, 0, cap(b.B)), b.B...)
	}
	b.sent, b.loan = nil, nil
}

// Lend closes the body with tail and lends it to a call of c.
func (b *Body) Lend(ctx context.Context, c *Caller, tail []byte) (*http.Request, error) {
	if b.loan != nil && !bytes.Equal(b.sent[len(b.B):], tail) {
		b.settle()
	}
	if b.loan == nil {
		b.B = Room(b.B, len(tail))
		b.sent, b.loan = b.B, &Loan{}
		b.sent = append(b.sent, tail...)
	}
	return c.PostLent(ctx, b.loan, b.sent)
}

// roomDoubles is up to where Room doubles, in bytes.
const roomDoubles = 1 << 20

// Room returns b with room for n more bytes. What grows by messages is moved
// less often so than by append, at the price of memory while it is small.
func Room(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	if cap(b) >= roomDoubles {
		return slices.Grow(b, n)
	}
	return append(make([]byte, 0, max(len(b)+n, 2*cap(b))), b...)
}
