package github

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/cenkalti/backoff/v5"
)

// wire is what all credentials share of the way to the server: the answers that
// are kept, and the queue of writes.
type wire struct {
	address address
	base    http.RoundTripper // without a credential
	now     func() time.Time
	log     *slog.Logger
	cache   *cache
	delay   time.Duration
	timeout time.Duration
	spacing time.Duration
	ahead   atomic.Int64 // of the server's clock, nanoseconds

	writes    chan struct{} // holds one: whoever took it may write
	lastWrite time.Time     // held with writes
}

const (
	tries     = 4        // of a request that may be repeated
	mostBytes = 64 << 20 // of an answer
)

func newWire(a address, o Options) *wire {
	w := &wire{address: a, now: o.Now, log: o.Log, delay: o.RetryDelay, timeout: o.Timeout, spacing: o.WriteSpacing, writes: make(chan struct{}, 1)}
	w.writes <- struct{}{}
	if o.HTTP != nil {
		w.base = o.HTTP.Transport
	}
	if w.base == nil {
		w.base = http.DefaultTransport
	}
	if w.timeout == 0 {
		w.timeout = 30 * time.Second
	}
	if w.spacing == 0 {
		w.spacing = time.Second
	}
	most := o.CacheBytes
	if most == 0 {
		most = 32 << 20
	}
	w.cache = newCache(max(most, 0))
	return w
}

// line is the way to the server with one credential. It answers with whole
// bodies: what breaks off halfway is an error here, not later.
type line struct {
	*wire
	next     http.RoundTripper // adds the credential
	identity string            // of the credential: it decides what an answer shows
	limits   *limits
}

func (w *wire) line(next http.RoundTripper, identity string) *line {
	return &line{wire: w, next: next, identity: identity, limits: &limits{now: w.now, primary: map[string]time.Time{}}}
}

// errForeign is the error of a redirect to another host, which must not see the
// credential.
var errForeign = errors.New("the server sends us to another host")

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != l.address.api.Scheme || req.URL.Host != l.address.api.Host {
		return nil, errForeign
	}
	if req.Method == http.MethodGet {
		return l.read(req)
	}
	return l.write(req)
}

// read asks, and asks again where the server is down for a moment.
func (l *line) read(req *http.Request) (*http.Response, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.Multiplier = l.delay, 2
	var last *http.Response // an answer that says the server is down
	resp, err := backoff.Retry(req.Context(), func() (*http.Response, error) {
		last = nil
		resp, err := l.attempt(req)
		switch {
		case err == nil && resp.StatusCode >= 500:
			last = resp
			return nil, fmt.Errorf("answer %d", resp.StatusCode)
		case err != nil && !passing(req.Context(), err):
			return nil, backoff.Permanent(err)
		}
		return resp, err
	}, backoff.WithBackOff(b), backoff.WithMaxTries(tries), backoff.WithNotify(func(err error, wait time.Duration) {
		l.log.Debug("GitHub is asked again", "path", req.URL.Path, "wait", wait, "because", err.Error())
	}))
	if last != nil && req.Context().Err() == nil {
		return last, nil
	}
	return resp, err
}

// passing reports whether the same request may succeed in a moment.
func passing(ctx context.Context, err error) bool {
	var lim *limited
	var tok *tokenRefused
	switch {
	case ctx.Err() != nil, errors.As(err, &lim), errors.Is(err, errTooLong):
		return false
	case errors.As(err, &tok):
		return tok.status >= 500
	}
	return true
}

// write sends once, when it is its turn: GitHub wants writes one after the other
// and a second apart.
func (l *line) write(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	closeBody := func() {
		if req.Body != nil {
			_ = req.Body.Close()
		}
	}
	select {
	case <-l.writes:
		defer func() { l.writes <- struct{}{} }()
	case <-ctx.Done():
		closeBody()
		return nil, context.Cause(ctx)
	}
	if wait := min(l.lastWrite.Add(l.spacing).Sub(l.now()), l.spacing); wait > 0 {
		if err := sleep(ctx, wait); err != nil {
			closeBody()
			return nil, err
		}
	}
	defer func() { l.lastWrite = l.now() }()
	return l.attempt(req)
}

// sleep waits, or returns why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errTooLong = fmt.Errorf("the answer has more than %d MiB", mostBytes>>20)

// attempt sends a request once and reads the whole answer; of one that the
// server says did not change, the kept one is returned.
func (l *line) attempt(req *http.Request) (*http.Response, error) {
	if err := l.limits.check(resource(req.URL.Path)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), l.timeout)
	defer cancel()
	sent := req.Clone(ctx)
	var kept *answer
	key := l.identity + " " + req.Header.Get("Accept") + " " + req.URL.String()
	if req.Method == http.MethodGet {
		if kept = l.cache.get(key); kept != nil {
			sent.Header.Set("If-None-Match", kept.etag)
		}
	}
	resp, err := l.next.RoundTrip(sent)
	if err != nil {
		return nil, l.refusedToken(err)
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		l.ahead.Store(int64(at.Sub(l.now())))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostBytes+1))
	_ = resp.Body.Close() // what it held was read
	if err != nil {
		return nil, err
	}
	if len(body) > mostBytes {
		return nil, errTooLong
	}
	if err := l.limits.observe(resource(req.URL.Path), resp, body); err != nil {
		return nil, err
	}
	resp.Request = req
	switch {
	case resp.StatusCode == http.StatusNotModified && kept != nil:
		resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
		resp.Header, body = kept.header.Clone(), kept.body
	case req.Method == http.MethodGet && resp.StatusCode == http.StatusOK:
		l.cache.put(&answer{key: key, etag: resp.Header.Get("ETag"), header: resp.Header.Clone(), body: body})
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// tokenRefused is GitHub's refusal to give an installation of the App a token.
type tokenRefused struct {
	status  int
	message string
}

func (e *tokenRefused) Error() string {
	return fmt.Sprintf("no token for the installation: %d %s", e.status, e.message)
}

// refusedToken reads what stands behind an error of the App's transport, which
// leaves the answer to us.
func (l *line) refusedToken(err error) error {
	var e *ghinstallation.HTTPError
	if !errors.As(err, &e) || e.Response == nil {
		return err
	}
	body, rerr := io.ReadAll(io.LimitReader(e.Response.Body, 64<<10))
	_ = e.Response.Body.Close() // an error's
	if rerr != nil {
		return err
	}
	if lerr := l.limits.observe("core", e.Response, body); lerr != nil {
		return lerr
	}
	return &tokenRefused{status: e.Response.StatusCode, message: messageOf(body)}
}
