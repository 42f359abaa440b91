package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxStream is how many messages of the largest size one stream of events may
// hold in all.
const maxStream = 4

// web carries a connection over streamable HTTP.
type web struct {
	sdk  sdk.StreamableClientTransport
	life context.Context // of the connection: all its requests end with it
	stop context.CancelFunc

	mu   sync.Mutex
	conn sdk.Connection
}

func newWeb(c Server, login auth.OAuthHandler, base http.RoundTripper, maxMessage int, patience time.Duration) *web {
	w := &web{}
	w.life, w.stop = context.WithCancel(context.Background())
	origin, _ := url.Parse(c.URL) // was checked
	w.sdk = sdk.StreamableClientTransport{
		Endpoint:     c.URL,
		OAuthHandler: login,
		MaxEventSize: maxMessage,
		HTTPClient: &http.Client{
			Transport:     &guard{base: base, life: w.life, origin: origin, header: c.Header, max: int64(maxMessage), patience: patience},
			CheckRedirect: stay, // what stands in Header is for this host alone
		},
	}
	return w
}

// Connect implements the SDK's Transport, and keeps the connection, which the
// SDK does not close in every case.
func (w *web) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := w.sdk.Connect(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = conn
	return conn, err
}

func (w *web) end(grace time.Duration) {
	w.mu.Lock()
	conn := w.conn
	w.mu.Unlock()
	if conn != nil {
		timer := time.AfterFunc(grace, w.stop)
		_ = conn.Close() // tells the server, which need not listen
		timer.Stop()
	}
	w.stop()
}

func (w *web) abort()            { w.stop() }
func (w *web) diagnosis() string { return "" }
func (w *web) said() string      { return "" }
func (w *web) fault() error      { return nil }
func (w *web) dead() bool        { return w.life.Err() != nil }

// authorised reports whether the settings say how the requests are authorised.
func (c Server) authorised() bool {
	for k := range c.Header {
		if http.CanonicalHeaderKey(k) == "Authorization" {
			return true
		}
	}
	return false
}

// guard bounds what the requests of one connection may take.
type guard struct {
	base     http.RoundTripper
	life     context.Context
	origin   *url.URL
	header   map[string]string
	max      int64
	patience time.Duration // for the header of an answer that should come at once
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != g.origin.Host || req.URL.Scheme != g.origin.Scheme {
		return nil, fmt.Errorf("a request to another host (%s) was refused", req.URL.Host)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	unlink := context.AfterFunc(g.life, func() { cancel(errClosed) })
	req = req.Clone(ctx)
	for k, v := range g.header {
		req.Header.Set(k, v)
	}
	var timer *time.Timer
	if req.Method != http.MethodPost { // a call may take its time
		timer = time.AfterFunc(g.patience, func() { cancel(context.DeadlineExceeded) })
	}
	resp, err := g.base.RoundTrip(req)
	if timer != nil {
		timer.Stop()
	}
	if err != nil {
		unlink()
		cancel(nil)
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		return nil, err
	}
	limit := g.max
	events := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	if events {
		limit *= maxStream
	}
	resp.Body = &bounded{ReadCloser: resp.Body, left: limit + 1, max: limit, done: func() { unlink(); cancel(nil) }}
	if events {
		resp.Body = newEventBody(resp.Body, g.max)
	} else {
		resp.Body = &wholeBody{ReadCloser: resp.Body}
	}
	resp.ContentLength = -1 // of what was sent, not of what is read
	return resp, nil
}

var errClosed = errors.New("the connection is closed")

// bounded is a body that fails where it is too long.
type bounded struct {
	io.ReadCloser
	left, max int64
	done      func()
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("it sent an answer of more than %d bytes", b.max)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

func (b *bounded) Close() error {
	b.done()
	return b.ReadCloser.Close()
}
