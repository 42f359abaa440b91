package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// Exponential is the waits between tries where nobody says otherwise: jittered,
// doubling, from half a second to 30 seconds.
func Exponential() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.Multiplier = 2
	b.MaxInterval = 30 * time.Second
	return b
}

// maxWait is the longest pause a server may ask for that is waited out here; a
// longer one is the caller's to plan with.
const maxWait = 2 * time.Minute

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

// Repeat makes the call until it succeeds, fails for good, was made MaxRetries
// times more (once, without a connection, in an llm.Awaited ctx), or ctx ends, whose
// error is then returned; any other error is an *llm.Error.
func (c *Caller) Repeat(ctx context.Context, call func() *llm.Error) error {
	attempts := 0
	pace := &pacing{BackOff: c.backoff()}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		attempts++
		began := c.now()
		e := call()
		if e == nil {
			return struct{}{}, nil
		}
		if err := ctx.Err(); err != nil {
			return struct{}{}, backoff.Permanent(err)
		}
		e.Attempts = attempts
		pace.asked = e.RetryAfter
		if e.Retryable() && e.RetryAfter > maxWait && attempts <= c.maxRetries {
			var said any = e.Message
			if e.Err != nil && e.Err.Error() == e.Message { // words of our own
				said = e.Err
			}
			long := i18n.E("llm.long_wait", said, e.RetryAfter.Round(time.Second))
			long.Err = e.Err
			e.Message, e.Err = long.Error(), long
		}
		if !e.Retryable() || e.Kind == llm.KindUnreachable && attempts > 1 && llm.IsAwaited(ctx) {
			return struct{}{}, backoff.Permanent(e)
		}
		if c.failed != nil && attempts <= c.maxRetries && e.RetryAfter <= maxWait {
			c.failed(ctx, began, e)
		}
		return struct{}{}, e
	},
		backoff.WithBackOff(pace),
		backoff.WithMaxTries(uint(c.maxRetries)+1),
		backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, wait time.Duration) {
			var e *llm.Error
			if c.onRetry != nil && errors.As(err, &e) {
				c.onRetry(e, wait)
			}
		}))
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	var e *llm.Error
	if errors.As(err, &e) { // backoff wraps some of them
		return e
	}
	return err
}

// Send is Repeat for a call that brings an answer.
func (c *Caller) Send(ctx context.Context, call func() (*llm.Reply, *llm.Error)) (reply *llm.Reply, err error) {
	err = c.Repeat(ctx, func() (e *llm.Error) {
		reply, e = call()
		return e
	})
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// Ask makes a call whose answer is one JSON document, with a body or, for none, a GET,
// and decodes it into out; what names the document in errors. It fails as Repeat does.
func (c *Caller) Ask(ctx context.Context, body []byte, what string, out any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	request := c.Get
	if len(body) > 0 {
		request = func(ctx context.Context) (*http.Request, error) { return c.Post(ctx, body) }
	}
	return c.Repeat(ctx, func() *llm.Error {
		return c.Once(ctx, request, func(_ context.Context, res *http.Response, in io.Reader) (*llm.Error, error) {
			raw, err := io.ReadAll(io.LimitReader(in, MaxEvent+1))
			if err != nil {
				return nil, err
			}
			if len(raw) > MaxEvent {
				return TooLong(MaxEvent), nil
			}
			var failed struct {
				Error json.RawMessage `json:"error"`
			}
			switch {
			case json.Unmarshal(raw, &failed) == nil && Given(failed.Error):
				return StreamError(raw), nil
			case json.Unmarshal(raw, out) != nil:
				return Invalid(what, res.Header.Get("Content-Type"), raw), nil
			}
			return nil, nil
		})
	})
}
