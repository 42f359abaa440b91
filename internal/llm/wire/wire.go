// Package wire is what clients of providers share: calls that are repeated where that helps
// and never hang, event streams in bounded memory, classified failures, encoded texts.
// It knows no vendor's messages, keeps nothing and logs nothing.
package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/llm"
)

// Limits of a call.
const (
	DefaultStallTimeout   = 5 * time.Minute // a local model may read a long prompt for minutes before its first byte
	DefaultConnectTimeout = 15 * time.Second

	MaxEvent  = 16 << 20 // bytes of one event of a stream
	MaxAnswer = 64 << 20 // bytes of one answer's text, reasoning and arguments
	MaxError  = 64 << 10 // bytes read of an error's body

	// DrainTime is how long the end of a finished answer's connection is waited
	// for; it usually came with the last event.
	DrainTime = 50 * time.Millisecond
)

// Config says how calls are made.
type Config struct {
	Provider string            // the name in errors
	URL      *url.URL          // of the call; only its Endpoint is ever shown
	Key      string            // is taken out of what servers say
	Header   func(http.Header) // sets what each request needs beside its content type; may be nil

	HTTP *http.Client // nil makes one; no redirect is followed with either
	// ConnectTimeout is how long a connection may take, name resolution and TLS
	// included; 0 is DefaultConnectTimeout. What comes later is unreachable.
	ConnectTimeout time.Duration
	// FirstTokenTimeout is how long the first part of the answer may take once
	// there is a connection, whatever the server sends to keep it open; 0 is no
	// such limit: any byte within StallTimeout is enough.
	FirstTokenTimeout time.Duration
	// StallTimeout is how long no byte may come within the answer, and before it
	// where FirstTokenTimeout is not set; 0 is DefaultStallTimeout. What only keeps
	// the connection open stretches it to three times as long.
	StallTimeout time.Duration
	// CallTimeout is how long a call may take in all, each of those that are
	// repeated; 0 is no limit.
	CallTimeout time.Duration
	MaxRetries  int                             // calls after the first that failed
	OnRetry     func(*llm.Error, time.Duration) // is told of each failure that will be repeated after the wait; may be nil
	// Failed is called after each failed call that will be repeated, before the
	// wait, with the time when the call began; it may take its time. May be nil.
	Failed  func(ctx context.Context, began time.Time, e *llm.Error)
	Backoff func() backoff.BackOff // the waits of one Repeat; nil is exponential with jitter from half a second to 30 seconds
	Now     func() time.Time       // nil is time.Now
}

// Caller calls one address. It is safe for concurrent use and holds what is
// secret in functions, which no printing looks into.
type Caller struct {
	provider, endpoint string
	get, post          func(context.Context) (*http.Request, error)
	header             func(http.Header)
	scrub              func(string) string // takes the key out of a text
	http               *http.Client
	limits             limits
	maxRetries         int
	onRetry            func(*llm.Error, time.Duration)
	failed             func(context.Context, time.Time, *llm.Error)
	backoff            func() backoff.BackOff
	now                func() time.Time
}

// New returns a Caller. It calls nobody.
func New(cfg Config) *Caller {
	address := cfg.URL.String()
	c := &Caller{
		provider: cfg.Provider, endpoint: Endpoint(address),
		get: template(http.MethodGet, address), post: template(http.MethodPost, address),
		header: cfg.Header, scrub: Scrubber(cfg.Key), http: SingleHop(cfg.HTTP),
		limits: newLimits(cfg.ConnectTimeout, cfg.FirstTokenTimeout, cfg.StallTimeout, cfg.CallTimeout), maxRetries: max(cfg.MaxRetries, 0),
		onRetry: cfg.OnRetry, failed: cfg.Failed, backoff: cfg.Backoff, now: cfg.Now,
	}
	if c.header == nil {
		c.header = func(http.Header) {}
	}
	if c.backoff == nil {
		c.backoff = Exponential
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c
}

// Endpoint is what may be shown of the address.
func (c *Caller) Endpoint() string { return c.endpoint }

// CloseIdleConnections closes the connections that wait for a next call.
func (c *Caller) CloseIdleConnections() { c.http.CloseIdleConnections() }

// template returns what makes requests like one that is put together once.
func template(method, address string) func(context.Context) (*http.Request, error) {
	req, err := http.NewRequest(method, address, nil)
	if err != nil {
		return func(context.Context) (*http.Request, error) { return nil, err }
	}
	req.Header.Set("User-Agent", "toritsugi")
	if method == http.MethodPost {
		req.Header.Set("Accept", "text/event-stream, application/json")
		req.Header.Set("Content-Type", "application/json")
		// Present but empty, this is not sent; it lets the transport repeat a call
		// whose kept-alive connection the server had just closed (net/http Transport).
		req.Header["X-Idempotency-Key"] = nil
	}
	return func(ctx context.Context) (*http.Request, error) { return req.Clone(ctx), nil }
}

// Get makes a request without a body.
func (c *Caller) Get(ctx context.Context) (*http.Request, error) {
	req, err := c.get(ctx)
	if err == nil {
		c.header(req.Header)
	}
	return req, err
}

// smallBody is how many bytes a body may have that is joined: net/http sends a
// reader that it knows in one packet with its header, as far as both fit its
// buffer, by default of 4 KiB, and any other one after it.
const smallBody = 3 << 10

// Post makes a request whose body is the parts, one after the other. Large ones
// are never joined and must not change as long as the transport may read them.
func (c *Caller) Post(ctx context.Context, parts ...[]byte) (*http.Request, error) {
	req, err := c.post(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		req.ContentLength += int64(len(p))
	}
	req.GetBody = func() (io.ReadCloser, error) { return &body{parts: parts}, nil }
	if req.ContentLength <= smallBody {
		joined := bytes.Join(parts, nil)
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(joined)), nil }
	}
	if req.Body, err = req.GetBody(); err != nil {
		return nil, err
	}
	c.header(req.Header)
	return req, nil
}

// body reads parts without joining them.
type body struct {
	parts [][]byte
	at    int // in parts[0]
}

func (b *body) Read(p []byte) (n int, err error) {
	for n < len(p) && len(b.parts) > 0 {
		m := copy(p[n:], b.parts[0][b.at:])
		n += m
		if b.at += m; b.at == len(b.parts[0]) {
			b.parts, b.at = b.parts[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (*body) Close() error { return nil }

// left reports whether the caller gave up, which a limit reached is not.
func left(ctx context.Context) bool {
	return ctx.Err() != nil && late(ctx) == nil
}

// Read reads the whole body of an answer of status 2xx. broken is a read error
// that left the answer unfinished; e is any other failure. ctx ends also where
// the answer stalls. in is read by a Format, or what begins an answer is not
// told from what keeps its connection open.
type Read func(ctx context.Context, res *http.Response, in io.Reader) (e *llm.Error, broken error)

// Once makes one call and reads its whole answer. Of the error only Attempts is
// not set.
func (c *Caller) Once(ctx context.Context, request func(context.Context) (*http.Request, error), read Read) *llm.Error {
	ctx, cancel := context.WithCancelCause(ctx)
	w := startWatch(c.limits, cancel)
	if whole := c.limits.call; whole != nil {
		defer time.AfterFunc(whole.limit, func() { cancel(whole) }).Stop()
	}
	defer func() {
		w.stop()
		cancel(nil)
	}()
	req, err := request(w.traced(ctx))
	if err != nil {
		return c.fail(&llm.Error{Kind: llm.KindBadRequest, Message: err.Error(), Err: err}, nil)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.fail(c.transportError(ctx, err, llm.KindUnreachable), nil)
	}
	defer func() { _ = res.Body.Close() }() // only read from
	in := &steadyReader{r: res.Body, w: w}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return c.fail(statusError(res, in, c.now()), res)
	}
	e, broken := read(ctx, res, in)
	if broken != nil {
		e = c.transportError(ctx, broken, llm.KindCutStream)
	}
	if e != nil {
		return c.fail(e, res)
	}
	if !in.ended {
		// What is left is the end of the chunked body; read, it frees the
		// connection for the next call.
		w.drain(DrainTime)
		_, _ = io.CopyN(io.Discard, res.Body, MaxError)
	}
	return nil
}

// fail completes e with where it happened and takes the key out of it.
func (c *Caller) fail(e *llm.Error, res *http.Response) *llm.Error {
	e.Provider, e.Endpoint = c.provider, c.endpoint
	if res != nil {
		e.Status = res.StatusCode
	}
	e.Message = c.scrub(e.Message)
	return e
}

// transportError classifies a failed connection or read; kind is what it is
// where nothing more is known.
func (c *Caller) transportError(ctx context.Context, err error, kind llm.ErrorKind) *llm.Error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // it repeats the address, with the query
	}
	if e := late(ctx); e != nil {
		return &llm.Error{Kind: e.kind, Message: e.Error(), Err: e}
	}
	var forbidden interface {
		error
		Forbidden() bool
	}
	if errors.As(err, &forbidden) && forbidden.Forbidden() { // no further try, and no word about the network
		return &llm.Error{Kind: llm.KindForbidden, Message: forbidden.Error(), Err: err}
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		kind = llm.KindTimeout
	}
	return &llm.Error{Kind: kind, Message: err.Error(), Err: err}
}
