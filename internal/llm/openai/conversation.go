package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/llm"
)

// tail closes what appendHead opened.
const tail = "]}"

// conversation is a request body that grows: head, then the messages. Bytes
// once written are never written again, since the transport may still read
// them after an early answer.
type conversation struct {
	client  *client
	body    []byte
	head    int // length of the part before the first message
	offered map[string]bool
	lastID  int // the highest n of the ids "call_n" appended
	broken  error
}

func (c *client) Open(set llm.Settings) llm.Conversation {
	tools := set.Tools
	v := &conversation{client: c, offered: make(map[string]bool, len(tools))}
	for _, t := range tools {
		v.offered[t.Name] = true
	}
	var err error
	if v.body, err = c.appendHead(nil, tools); err != nil {
		v.broken = &llm.Error{Kind: llm.KindBadRequest, Provider: c.provider, Endpoint: c.endpoint,
			Message: "a tool's schema is not JSON: " + err.Error(), Err: err}
	}
	v.head = len(v.body)
	return v
}

func (v *conversation) Append(m llm.Message) {
	if len(v.body) > v.head {
		v.body = append(v.body, ',')
	}
	v.body = appendMessage(v.body, &m, v.offered)
	for _, call := range m.ToolCalls {
		v.lastID = max(v.lastID, generatedID(call.ID))
	}
}

func (v *conversation) Reset() {
	v.body = v.body[:v.head:v.head] // the next append moves to new memory
	v.lastID = 0
}

func (v *conversation) Serialized() []byte { return v.body[v.head:len(v.body):len(v.body)] }

func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if v.broken != nil {
		return nil, v.broken
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return v.client.retry(ctx, func() (*llm.Reply, *llm.Error) {
		return v.client.call(ctx, v.body, v.lastID, onText)
	})
}

// generatedID is the n of an id "call_n" that this package made, else 0.
// Counting on from the highest keeps ids unique within the window, also after
// a resume, without any state.
func generatedID(id string) int {
	digits, found := strings.CutPrefix(id, "call_")
	if n, err := strconv.Atoi(digits); found && err == nil && 0 < n && n < 1e9 {
		return n
	}
	return 0
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

func (c *client) request(ctx context.Context, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address(), nil)
	if err != nil {
		return nil, err
	}
	req.GetBody = func() (io.ReadCloser, error) { return &bodyReader{body, tail}, nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(body) + len(tail))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("User-Agent", "toritsugi")
	// Present but empty, this is not sent; it lets the transport repeat a call
	// whose kept-alive connection the server had just closed (net/http Transport).
	req.Header["X-Idempotency-Key"] = nil
	c.authorize(req)
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

// drainTime is how long the end of a finished answer's connection is waited
// for; it usually came with the last event.
const drainTime = 50 * time.Millisecond

// call makes one call with the messages in body and reads its whole answer.
func (c *client) call(ctx context.Context, body []byte, lastID int, onText func(string)) (*llm.Reply, *llm.Error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.stall, func() { cancel(errStalled) })
	defer func() {
		timer.Stop()
		cancel(nil)
	}()
	req, err := c.request(ctx, body)
	if err != nil {
		return nil, c.fail(&llm.Error{Kind: llm.KindBadRequest, Message: err.Error(), Err: err}, nil)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.fail(c.transportError(ctx, err, llm.KindUnreachable), nil)
	}
	defer func() { _ = res.Body.Close() }() // only read from
	in := &steadyReader{res.Body, timer, c.stall}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, c.fail(c.statusError(res, in), res)
	}
	a := &answer{maxSize: c.maxAnswer, onText: onText}
	e, broken := c.read(ctx, a, res.Header.Get("Content-Type"), in)
	if broken != nil {
		e = c.transportError(ctx, broken, llm.KindCutStream)
	}
	if e != nil {
		return nil, c.fail(e, res)
	}
	reply, e := a.reply(lastID)
	if e != nil {
		return nil, c.fail(e, res)
	}
	// What is left is the end of the chunked body; read, it frees the
	// connection for the next call.
	timer.Reset(drainTime)
	_, _ = io.CopyN(io.Discard, res.Body, maxError)
	return reply, nil
}

// fail completes e with where it happened and takes the key out of it.
func (c *client) fail(e *llm.Error, res *http.Response) *llm.Error {
	e.Provider, e.Endpoint = c.provider, c.endpoint
	if res != nil {
		e.Status = res.StatusCode
	}
	e.Message = c.scrub(e.Message)
	return e
}

// transportError classifies a failed connection or read; kind is what it is
// where nothing more is known.
func (c *client) transportError(ctx context.Context, err error, kind llm.ErrorKind) *llm.Error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // it repeats the address, with the query
	}
	if errors.Is(context.Cause(ctx), errStalled) {
		return &llm.Error{Kind: llm.KindTimeout, Message: fmt.Sprintf("no byte came for %s", c.stall), Err: errStalled}
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		kind = llm.KindTimeout
	}
	return &llm.Error{Kind: kind, Message: err.Error(), Err: err}
}
