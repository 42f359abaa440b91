// Package rest is what members that speak to a forge's REST API share: requests and lists, the way
// there (kept answers, a queue of writes, rate limits, credentials that stay at their host), errors
// that say what to do, and markers in texts. Of the vendors' libraries members take the types alone.
package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Login is which server to speak to and as whom, as the settings have it.
type Login struct {
	URL   string // of the server as people type it into a browser, with its path
	Token string
	// Fresh returns Token as it is now; nothing where that cannot be told. It is asked
	// before each request, so that who changes the token need not restart us; nil for one
	// that does not change. The account stays the same.
	Fresh func() []byte
	// HTTP speaks to the server; nil is Go's own. Of a given one only the transport
	// is used: a certificate authority of one's own is in it.
	HTTP *http.Client
	Now  func() time.Time // nil is time.Now
	Log  *slog.Logger     // nil says nothing
	// RetryDelay is the wait before the first repetition, the next ones are
	// longer; 0 is half a second.
	RetryDelay time.Duration
}

// Options say how a server is spoken to.
type Options struct {
	Login
	Name string   // for logs: "GitHub"
	Home *url.URL // its scheme and host: nothing is sent anywhere else
	// WriteSpacing is the least time between two writes, which are sent one after the
	// other; 0 or less is none.
	WriteSpacing time.Duration
	// Counted is what a request to a path is counted under where the server has several
	// limits; nil is one for all.
	Counted func(path string) string
	// SlowDown tells an answer of 403 that is about limits from one about permissions;
	// nil is never.
	SlowDown func(body []byte) bool
}

// Wire is what all credentials share of the way to the server: the answers that
// are kept, and the queue of writes.
type Wire struct {
	Options
	Base  http.RoundTripper // without a credential
	cache *cache
	ahead atomic.Int64 // of the server's clock, nanoseconds

	writes    chan struct{} // holds one: whoever took it may write
	lastWrite time.Time     // held with writes
}

const (
	tries = 4 // of a request that may be repeated
	// mostKept bounds the answers that are kept to ask for news only, bytes.
	mostKept = 32 << 20
	timeout  = 30 * time.Second // of one request, its answer included
	// maxBytes bounds an answer.
	maxBytes = 64 << 20
)

// New returns a Wire; nothing is sent yet.
func New(o Options) *Wire {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.RetryDelay == 0 {
		o.RetryDelay = 500 * time.Millisecond
	}
	if o.Counted == nil {
		o.Counted = func(string) string { return "" }
	}
	w := &Wire{Options: o, cache: newCache(mostKept), writes: make(chan struct{}, 1)}
	w.writes <- struct{}{}
	if o.HTTP != nil {
		w.Base = o.HTTP.Transport
	}
	if w.Base == nil {
		w.Base = http.DefaultTransport
	}
	return w
}

// ServerTime is the time by the server's clock, by the date of its last answer.
func (w *Wire) ServerTime() time.Time { return w.Now().Add(time.Duration(w.ahead.Load())) }

// Line is the way to the server with one credential. It answers with whole
// bodies: what breaks off halfway is an error here, not later. Reading is repeated
// where the server is down for a moment, and asks for news only where an answer is
// kept; what writes is sent once.
type Line struct {
	*Wire
	next     http.RoundTripper // adds the credential
	identity string            // of the credential: it decides what an answer shows
	limits   *limits
}

// Line returns a way of its own; next adds the credential, and identity is what
// decides what an answer shows.
func (w *Wire) Line(next http.RoundTripper, identity string) *Line {
	return &Line{Wire: w, next: next, identity: identity, limits: &limits{now: w.Now, about: w.SlowDown, primary: map[string]time.Time{}}}
}

// Client speaks over the line, and follows redirects at its host alone, and none that would
// make a question of what writes (301 and 302): those are answers.
func (l *Line) Client() *http.Client {
	return &http.Client{Transport: l, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 5 || r.URL.Host != l.Home.Host || r.Method != via[0].Method {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// Bearer adds a token to requests.
type Bearer struct {
	Token func() string
	Next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b Bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.Token())
	return b.Next.RoundTrip(r)
}

// ErrForeign is the error of a redirect to another host, which must not see the
// credential.
var ErrForeign = errors.New("the server sends us to another host")

// RoundTrip implements http.RoundTripper.
func (l *Line) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != l.Home.Scheme || req.URL.Host != l.Home.Host {
		return nil, ErrForeign
	}
	if req.Method == http.MethodGet {
		return l.read(req)
	}
	return l.write(req)
}

// read asks, and asks again where the server is down for a moment.
func (l *Line) read(req *http.Request) (*http.Response, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.Multiplier = l.RetryDelay, 2
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
		l.Log.Debug("A server is asked again", "server", l.Name, "path", req.URL.Path, "wait", wait, "because", err.Error())
	}))
	if last != nil && req.Context().Err() == nil {
		return last, nil
	}
	return resp, err
}

// passing reports whether the same request may succeed in a moment.
func passing(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.As(err, new(*Limited)) && !errors.Is(err, errTooLong)
}

// write sends once, when it is its turn.
func (l *Line) write(req *http.Request) (*http.Response, error) {
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
	if wait := min(l.lastWrite.Add(l.WriteSpacing).Sub(l.Now()), l.WriteSpacing); wait > 0 {
		if err := Sleep(ctx, wait); err != nil {
			closeBody()
			return nil, err
		}
	}
	defer func() { l.lastWrite = l.Now() }()
	return l.attempt(req)
}

// Sleep waits, or returns why ctx ended.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errTooLong = fmt.Errorf("the answer has more than %d MiB", maxBytes>>20)

// attempt sends a request once and reads the whole answer; of one that the
// server says did not change, the kept one is returned.
func (l *Line) attempt(req *http.Request) (*http.Response, error) {
	if err := l.limits.check(l.Counted(req.URL.Path)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	sent := req.Clone(ctx)
	var kept *answer
	key := l.identity + " " + req.Header.Get("Accept") + " " + req.URL.String()
	if req.Method == http.MethodGet {
		if kept = l.cache.get(key, l.Now()); kept != nil {
			sent.Header.Set("If-None-Match", kept.etag)
		}
	}
	resp, err := l.next.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		l.ahead.Store(int64(at.Sub(l.Now())))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	_ = resp.Body.Close() // what it held was read
	if err != nil {
		return nil, err
	}
	if len(body) > maxBytes {
		return nil, errTooLong
	}
	if err := l.limits.observe(l.Counted(req.URL.Path), resp, body); err != nil {
		return nil, err
	}
	resp.Request = req
	switch {
	case resp.StatusCode == http.StatusNotModified && kept != nil:
		// What the answer says now counts: a page that did not change may have got a next
		// one (RFC 9111 §4.3.4).
		fresh := kept.header.Clone()
		maps.Copy(fresh, resp.Header)
		resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
		resp.Header, body = fresh, kept.body
	case req.Method == http.MethodGet && resp.StatusCode == http.StatusOK:
		l.cache.put(&answer{used: l.Now(), key: key, etag: resp.Header.Get("ETag"), header: resp.Header.Clone(), body: body})
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}
