package ollama

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// caller makes calls of one endpoint: what any provider's client does, whatever
// it says. Safe for concurrent use.
type caller struct {
	provider  string
	http      *http.Client
	authorize func(*http.Request) // holds the key; a function, which no printing looks into
	scrub     func(string) string // takes the key out of a text

	stall      time.Duration
	maxRetries int
	onRetry    func(*llm.Error, time.Duration)
	backoff    func() backoff.BackOff
	now        func() time.Time
}

const (
	smallBody = 16 << 10               // bytes of a body that is joined: net/http sends a reader that it knows with its header, in one packet
	maxError  = 64 << 10               // bytes read of an error's body
	drainTime = 50 * time.Millisecond  // how long the end of a finished answer is waited for
	maxWait   = 2 * time.Minute        // the longest pause a server may ask for that is waited out here
	lockPoll  = 100 * time.Millisecond // between two tries for a lock of another process
)

func bearer(key string) func(*http.Request) {
	return func(r *http.Request) {
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
	}
}

// pacing waits as its BackOff says, but not less than the server asked for.
type pacing struct {
	backoff.BackOff
	asked time.Duration
}

func (p *pacing) NextBackOff() time.Duration {
	d := p.BackOff.NextBackOff()
	if d == backoff.Stop || p.asked > maxWait {
		return backoff.Stop
	}
	return max(d, p.asked)
}

// retry makes the call until it succeeds, fails for good, was made maxRetries
// times more, or ctx ends, whose error is then returned.
func (w *caller) retry(ctx context.Context, call func() (*llm.Reply, *llm.Error)) (*llm.Reply, error) {
	attempts := 0
	pace := &pacing{BackOff: w.backoff()}
	reply, err := backoff.Retry(ctx, func() (*llm.Reply, error) {
		attempts++
		reply, e := call()
		if e == nil {
			return reply, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, backoff.Permanent(err)
		}
		e.Attempts = attempts
		pace.asked = e.RetryAfter
		if !e.Retryable() {
			return nil, backoff.Permanent(e)
		}
		return nil, e
	},
		backoff.WithBackOff(pace),
		backoff.WithMaxTries(uint(w.maxRetries)+1),
		backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, wait time.Duration) {
			var e *llm.Error
			if w.onRetry != nil && errors.As(err, &e) {
				w.onRetry(e, wait)
			}
		}))
	if err == nil {
		return reply, nil
	}
	if ended := ctx.Err(); ended != nil {
		return nil, ended
	}
	var e *llm.Error
	if errors.As(err, &e) { // backoff wraps some of them
		return nil, e
	}
	return nil, err
}

// bodyReader reads body and then tail, without joining them.
type bodyReader struct {
	body []byte
	tail string
}

func (r *bodyReader) Read(p []byte) (int, error) {
	n := copy(p, r.body)
	r.body = r.body[n:]
	m := copy(p[n:], r.tail)
	r.tail = r.tail[m:]
	if n+m == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n + m, nil
}

func (*bodyReader) Close() error { return nil }

// request is a call of method at address; with no body and no tail it sends none.
func (w *caller) request(ctx context.Context, method, address string, body []byte, tail string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	if n := len(body) + len(tail); n > 0 {
		req.GetBody = func() (io.ReadCloser, error) { return &bodyReader{body, tail}, nil }
		if n <= smallBody {
			joined := append(append(make([]byte, 0, n), body...), tail...)
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(joined)), nil }
		}
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(n)
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/x-ndjson, application/json")
	req.Header.Set("User-Agent", "toritsugi")
	// Present but empty, this is not sent; it lets the transport repeat a call
	// whose kept-alive connection the server had just closed (net/http Transport).
	req.Header["X-Idempotency-Key"] = nil
	w.authorize(req)
	return req, nil
}

var errStalled = errors.New("no byte came within the stall timeout")

// steadyReader puts the stall timer back with every read that brings something.
type steadyReader struct {
	r     io.Reader
	timer *time.Timer
	limit time.Duration
}

func (s *steadyReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if n > 0 {
		s.timer.Reset(s.limit)
	}
	return n, err
}

// exchange makes one call and lets read take the answer of a success. The
// *llm.Error that read returns is completed; its other error is one of reading.
func (w *caller) exchange(ctx context.Context, method, address string, body []byte, tail string,
	read func(ctx context.Context, res *http.Response, in io.Reader) (*llm.Error, error)) *llm.Error {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(w.stall, func() { cancel(errStalled) })
	defer func() {
		timer.Stop()
		cancel(nil)
	}()
	req, err := w.request(ctx, method, address, body, tail)
	if err != nil {
		return w.fail(&llm.Error{Kind: llm.KindBadRequest, Message: err.Error(), Err: err}, address, nil)
	}
	res, err := w.http.Do(req)
	if err != nil {
		return w.fail(w.transportError(ctx, err, llm.KindUnreachable), address, nil)
	}
	defer func() { _ = res.Body.Close() }() // only read from
	in := &steadyReader{res.Body, timer, w.stall}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return w.fail(w.statusError(res, in), address, res)
	}
	e, broken := read(ctx, res, in)
	if broken != nil {
		e = w.transportError(ctx, broken, llm.KindCutStream)
	}
	if e != nil {
		return w.fail(e, address, res)
	}
	// What is left is the end of the chunked body; read, it frees the
	// connection for the next call.
	timer.Reset(drainTime)
	_, _ = io.CopyN(io.Discard, res.Body, maxError)
	return nil
}

// fail completes e with where it happened and takes the key out of it.
func (w *caller) fail(e *llm.Error, address string, res *http.Response) *llm.Error {
	e.Provider, e.Endpoint = w.provider, wire.Endpoint(address)
	if res != nil {
		e.Status = res.StatusCode
	}
	e.Message = w.scrub(e.Message)
	return e
}

// transportError classifies a failed connection or read; kind is what it is
// where nothing more is known.
func (w *caller) transportError(ctx context.Context, err error, kind llm.ErrorKind) *llm.Error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // it repeats the address, with the query
	}
	if errors.Is(context.Cause(ctx), errStalled) {
		return &llm.Error{Kind: llm.KindTimeout, Message: fmt.Sprintf("no byte came for %s", w.stall), Err: errStalled}
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		kind = llm.KindTimeout
	}
	return &llm.Error{Kind: kind, Message: err.Error(), Err: err}
}

// left reports whether the caller gave up, which a stall is not.
func left(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errStalled)
}

var errLineTooLong = errors.New("one line of the stream is longer than the limit")

// lines reads the lines of a stream in memory bounded by max bytes each.
type lines struct {
	r    *bufio.Reader
	max  int
	long []byte // a line longer than r's buffer
}

// read returns the next line without its end, valid until the next call; the
// last may lack an end, which whole tells. After it comes io.EOF.
func (l *lines) read() (line []byte, whole bool, err error) {
	part, err := l.r.ReadSlice('\n')
	if err == nil {
		return part[:len(part)-1], true, nil
	}
	l.long = append(l.long[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(l.long) > l.max {
			return nil, false, errLineTooLong
		}
		part, err = l.r.ReadSlice('\n')
		l.long = append(l.long, part...)
	}
	switch {
	case err == nil:
		return l.long[:len(l.long)-1], true, nil
	case errors.Is(err, io.EOF) && len(l.long) > 0:
		return l.long, false, nil
	}
	return nil, false, err
}

// short makes a server's words one line of at most 500 bytes.
func short(s string) string {
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s[:min(len(s), 4096)]), " "), "\uFFFD")
	if len(s) <= 500 {
		return s
	}
	n := 500
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// retryAfter is how long the server asks to wait, 0 where it does not.
// Source: RFC 9110 §10.2.3 (seconds or a date).
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return time.Duration(min(s*float64(time.Second), float64(24*time.Hour)))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
