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
