package llmtest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// NewMemoryServer is NewServer without a network, and the transport that
// reaches it: both live in a testing/synctest bubble, where time is faked and
// a goroutine that stays behind is found.
func NewMemoryServer(tb testing.TB, h Handler) (*Server, *http.Transport) {
	tb.Helper()
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := startServer(tb, h, l)
	return s, &http.Transport{DialContext: l.dial}
}

// pipes is a listener whose connections are pipes in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
