package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"sync"
	"time"

	"toritsugi/internal/llm"
)

// lateError ends a call that a limit was reached in.
type lateError struct {
	kind  llm.ErrorKind
	what  string // what did not come
	limit time.Duration
}

func (e *lateError) Error() string { return fmt.Sprintf("%s within %s", e.what, e.limit) }

// late returns the limit that ended a call's context, nil where none did.
func late(ctx context.Context) *lateError {
	var e *lateError
	if errors.As(context.Cause(ctx), &e) {
		return e
	}
	return nil
}

// limits are how long the parts of a call may take; see Config.
type limits struct {
	connect, first, stall *lateError
	call                  *lateError // nil is no limit
}

func newLimits(connect, firstToken, stall, call time.Duration) limits {
	if stall <= 0 {
		stall = DefaultStallTimeout
	}
	if connect <= 0 {
		connect = DefaultConnectTimeout
	}
	l := limits{
		connect: &lateError{llm.KindUnreachable, "no connection", connect},
		stall:   &lateError{llm.KindTimeout, "no byte came", stall},
	}
	l.first = l.stall
	if firstToken > 0 {
		l.first = &lateError{llm.KindTimeout, "no token came", firstToken}
	}
	if call > 0 {
		l.call = &lateError{llm.KindTimeout, "no whole answer came", call}
	}
	return l
}

// watch ends a call when the part of it that it is in takes too long:
//
//	connecting --GotConn--> waiting --first token--> answering
//
// It is safe for concurrent use, since the transport calls from where it likes.
// Its timer is set anew only to be earlier: a timer that is set wakes another
// thread, and later times, as with every byte that comes, can wait until it fires.
type watch struct {
	limits
	cancel  context.CancelCauseFunc
	mu      sync.Mutex
	timer   *time.Timer
	fires   time.Time  // when the timer does
	due     time.Time  // when the part ends, not before fires
	now     *lateError // the part
	begun   bool       // a token came
	stopped bool
}

func startWatch(l limits, cancel context.CancelCauseFunc) *watch {
	w := &watch{limits: l, cancel: cancel, now: l.first}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	sooner := min(l.first.limit, l.connect.limit) // what comes next is the connection
	w.due, w.fires = now.Add(l.first.limit), now.Add(sooner)
	w.timer = time.AfterFunc(sooner, w.fired)
	return w
}

func (w *watch) fired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if left := time.Until(w.due); left > 0 {
		w.fires = w.due
		w.timer.Reset(left)
		return
	}
	w.cancel(w.now)
}

// endIn sets when the part ends. The caller holds mu.
func (w *watch) endIn(d time.Duration) {
	w.due = time.Now().Add(d)
	if w.due.Before(w.fires) {
		w.fires = w.due
		w.timer.Reset(d)
	}
}

func (w *watch) enter(part *lateError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped && !w.begun {
		w.now = part
		w.endIn(part.limit)
	}
}

// traced makes the transport tell w when it has a connection. A transport that
// tells nothing has no limit for it but that of the first byte.
func (w *watch) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { w.enter(w.connect) },
		GotConn: func(httptrace.GotConnInfo) { w.enter(w.first) },
	})
}

// token notes that the answer has begun; from now on a byte within the stall
// limit is enough.
func (w *watch) token() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun && !w.stopped {
		w.begun = true
		w.now = w.stall
		w.endIn(w.stall.limit)
	}
}

// moved grants another stall limit where that is what is waited for.
func (w *watch) moved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now == w.stall && !w.stopped {
		w.endIn(w.stall.limit)
	}
}

// drain leaves d for what is of no use any more.
func (w *watch) drain(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endIn(d)
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// steadyReader tells the watch of every read that brings something.
type steadyReader struct {
	r     io.Reader
	w     *watch
	ended bool // the end was read, mostly with the last bytes
}

// begun tells the watch behind in, if there is one, that the answer has begun.
func begun(in io.Reader) {
	if s, ok := in.(*steadyReader); ok {
		s.w.token()
	}
}

func (s *steadyReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.ended = err == io.EOF
	if n > 0 {
		s.w.moved()
	}
	return n, err
}
