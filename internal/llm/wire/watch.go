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
type limits struct{ connect, firstToken, stall, call time.Duration }

// orDefault fills in what is not set.
func (l limits) orDefault() limits {
	if l.stall <= 0 {
		l.stall = DefaultStallTimeout
	}
	if l.connect <= 0 {
		l.connect = DefaultConnectTimeout
	}
	return l
}

// watch ends a call when the part of it that it is in takes too long:
//
//	connecting --GotConn--> waiting --first token--> answering
//
// It is safe for concurrent use, since the transport calls from where it likes.
type watch struct {
	limits
	mu      sync.Mutex
	timer   *time.Timer
	now     *lateError // what the timer stands for
	begun   bool       // a token came
	stopped bool
}

func startWatch(l limits, cancel context.CancelCauseFunc) *watch {
	w := &watch{limits: l}
	w.now = w.waiting()
	w.timer = time.AfterFunc(w.now.limit, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.stopped {
			cancel(w.now)
		}
	})
	return w
}

func (w *watch) waiting() *lateError {
	if w.firstToken > 0 {
		return &lateError{llm.KindTimeout, "no token came", w.firstToken}
	}
	return &lateError{llm.KindTimeout, "no byte came", w.stall}
}

func (w *watch) enter(part *lateError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped && !w.begun {
		w.now = part
		w.timer.Reset(part.limit)
	}
}

// traced makes the transport tell w when it has a connection. A transport that
// tells nothing has no limit for it but that of the first byte.
func (w *watch) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { w.enter(&lateError{llm.KindUnreachable, "no connection", w.connect}) },
		GotConn: func(httptrace.GotConnInfo) { w.enter(w.waiting()) },
	})
}

// token notes that the answer has begun; from now on a byte within the stall
// limit is enough.
func (w *watch) token() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun && !w.stopped {
		w.begun = true
		w.now = &lateError{llm.KindTimeout, "no byte came", w.stall}
		w.timer.Reset(w.stall)
	}
}

// moved puts the stall timer back.
func (w *watch) moved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if (w.begun || w.firstToken <= 0) && !w.stopped {
		w.timer.Reset(w.stall)
	}
}

// drain leaves d for what is of no use any more.
func (w *watch) drain(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Reset(d)
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// steadyReader tells the watch of every read that brings something.
type steadyReader struct {
	r io.Reader
	w *watch
}

// begun tells the watch behind in, if there is one, that the answer has begun.
func begun(in io.Reader) {
	if s, ok := in.(steadyReader); ok {
		s.w.token()
	}
}

func (s steadyReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if n > 0 {
		s.w.moved()
	}
	return n, err
}
