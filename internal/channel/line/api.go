package line

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/image"
	"toritsugi/internal/llm/wire"
)

const (
	timeout = 20 * time.Second // of one request, where Options.HTTP says nothing else
	// maxTries and maxWaits bound what is waited for within one Post: whoever posts keeps
	// what was not taken, and comes again.
	maxTries = 4
	maxWaits = 45 * time.Second
	// maxReply and maxReason are how much is read of an answer and of a refusal, in bytes.
	maxReply  = image.MaxFile + 1
	maxReason = 16 << 10
)

// client is the HTTP client of the API: c with a bound to what is read, and without
// redirects, which LINE does not use.
func client(c *http.Client) *http.Client {
	own := wire.SingleHop(c)
	if c == nil {
		own.Timeout = timeout
	}
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	own.Transport = bounded{own.Transport}
	return own
}

// bounded bounds what its client, which reads to the end, is answered.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 == 2 {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxReply), res.Body}
		return res, nil
	}
	said, err := io.ReadAll(io.LimitReader(res.Body, maxReason))
	_ = res.Body.Close() // the client would not
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(said))
	return res, nil
}

// refusal is an answer of LINE that is none.
type refusal struct {
	status int
	said   string
}

// badToken says that a reply token was used or has expired.
func (r *refusal) badToken() bool {
	return r.status == http.StatusBadRequest && strings.Contains(strings.ToLower(r.said), "reply token")
}

// monthly says that no more can be pushed in this month.
func (r *refusal) monthly() bool {
	return r.status == http.StatusTooManyRequests && strings.Contains(strings.ToLower(r.said), "monthly")
}

// mends reports whether the same request may be taken some seconds later.
func (r *refusal) mends() bool {
	return r.status/100 == 5 || r.status == http.StatusRequestTimeout || r.status == http.StatusTooManyRequests && !r.monthly()
}

// Error says what was refused and what to do.
func (r *refusal) Error() string { return r.text().Error() }

// Unwrap is the text in both languages.
func (r *refusal) Unwrap() error { return r.text() }

func (r *refusal) text() *i18n.Error {
	switch {
	case r.monthly():
		return i18n.E("line.monthly")
	case r.status == http.StatusUnauthorized:
		return i18n.E("line.unauthorized", r.said)
	case r.status == http.StatusForbidden:
		return i18n.E("line.forbidden", r.said)
	case r.status == http.StatusBadRequest:
		return i18n.E("line.bad_request", r.said)
	}
	return i18n.E("line.failed", r.status, r.said)
}

// once makes one request. unsure says that LINE may have done what it was asked, though it
// failed; wait is what LINE asks to wait for.
func (l *Line) once(ctx context.Context, ask func(*messaging_api.MessagingApiAPI) (*http.Response, error)) (wait time.Duration, err error) {
	c, err := messaging_api.NewMessagingApiAPI(l.opt.AccessToken, messaging_api.WithHTTPClient(l.http), messaging_api.WithEndpoint(l.opt.BaseURL))
	if err != nil {
		return 0, err
	}
	res, err := ask(c.WithContext(ctx)) // of this call alone: it keeps the context
	return l.judge(ctx, res, err)
}

// judge says what an answer of LINE means.
func (l *Line) judge(ctx context.Context, res *http.Response, err error) (wait time.Duration, failed error) {
	switch {
	case ctx.Err() != nil && err != nil:
		return 0, ctx.Err()
	case res == nil && err != nil:
		return 0, i18n.E("line.unreachable", l.opt.Mask(err.Error()))
	case res == nil || res.StatusCode/100 == 2 || res.StatusCode == http.StatusConflict:
		l.refuses(nil)
		return 0, nil // 409: it was taken before, under the same retry key; what a 200 holds is not needed
	}
	r := &refusal{status: res.StatusCode}
	var said struct {
		Message string `json:"message"`
		Details []struct{ Message, Property string }
	}
	raw, _ := io.ReadAll(io.LimitReader(res.Body, maxReason))
	_ = res.Body.Close()
	if json.Unmarshal(raw, &said) == nil {
		r.said = said.Message
		for _, d := range said.Details {
			r.said += fmt.Sprintf("; %s: %s", d.Property, d.Message)
		}
	}
	if r.said == "" {
		r.said = http.StatusText(res.StatusCode)
	}
	r.said = l.opt.Mask(plainLine(r.said))
	if r.status == http.StatusUnauthorized { // 403 is of one conversation
		l.refuses(r)
	}
	return wire.RetryAfter(res.Header, l.opt.Now()), r
}

// refuses notes that LINE refuses the channel, or, with nil, does not.
func (l *Line) refuses(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused, l.asked = err, true
}

// call makes a request as often as it takes, within maxTries and maxWaits: what the rate
// limit refuses is waited for, and a fault of LINE or of the way to it.
func (l *Line) call(ctx context.Context, ask func(*messaging_api.MessagingApiAPI) (*http.Response, error)) error {
	var failed error
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		var wait time.Duration
		wait, failed = l.once(ctx, ask)
		if r, ok := failed.(*refusal); ok && !r.mends() || ctx.Err() != nil { //nolint:errorlint // once returns it bare
			return struct{}{}, backoff.Permanent(failed)
		}
		if failed != nil && wait > 0 {
			return struct{}{}, &backoff.RetryAfterError{Duration: wait}
		}
		return struct{}{}, failed
	}, backoff.WithMaxTries(maxTries), backoff.WithMaxElapsedTime(maxWaits))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return failed
}
