package wire

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// lateError ends a call that a limit was reached in.
type lateError struct {
	kind  llm.ErrorKind
	what  string // did not come: the key of the text that says so
	limit time.Duration
}

func (e *lateError) Error() string { return e.Unwrap().Error() }

// Unwrap is what says it in the reader's language.
func (e *lateError) Unwrap() error { return i18n.E("llm.late_"+e.what, e.limit.String()) }

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
	// alive is how long a server may only keep the connection open: no part of
	// the answer comes meanwhile, whatever else does.
	alive *lateError
	tail  *lateError // is how long the end of an answer may take that is all there
	call  *lateError // nil is no limit
}

const (
	// aliveStalls is how many stall limits a server may stretch by signs of life
	// alone. Vendors do so while a request waits for its turn: DeepSeek for up to
	// ten minutes.
	aliveStalls = 3
	// TailTime is how long the usage of a finished answer, and its end, are waited
	// for: they follow at once, or never.
	TailTime = 5 * time.Second
)

func newLimits(connect, firstToken, stall, call time.Duration) limits {
	stall = cmp.Or(max(stall, 0), DefaultStallTimeout)
	connect = cmp.Or(max(connect, 0), DefaultConnectTimeout)
	l := limits{
		connect: &lateError{llm.KindUnreachable, "connection", connect},
		stall:   &lateError{llm.KindTimeout, "byte", stall},
	}
	l.alive = &lateError{llm.KindTimeout, "part", aliveStalls * stall}
	l.tail = &lateError{llm.KindTimeout, "end", min(stall, TailTime)}
	l.first = l.stall
	if firstToken > 0 {
		l.first = &lateError{llm.KindTimeout, "token", firstToken}
	}
	if call > 0 {
		l.call = &lateError{llm.KindTimeout, "whole", call}
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
	part    time.Time  // when the last part of the answer came, or the wait for the first began
	begun   bool       // a token came
	stopped bool
}

func startWatch(l limits, cancel context.CancelCauseFunc) *watch {
	w := &watch{limits: l, cancel: cancel, now: l.first}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	sooner := min(l.first.limit, l.connect.limit) // what comes next is the connection
	w.part = now
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
	if w.now == w.stall && time.Since(w.part) >= w.alive.limit {
		w.cancel(w.alive)
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
		w.now, w.part = part, time.Now()
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
		w.now, w.part = w.stall, time.Now()
		w.endIn(w.stall.limit)
	}
}

// moved grants another stall limit where that is what is waited for, as long as
// the answer itself goes on now and then. part says that it did since the last call.
func (w *watch) moved(part bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now != w.stall || w.stopped {
		return
	}
	if part {
		w.part = time.Now()
	}
	w.endIn(min(w.stall.limit, time.Until(w.part.Add(w.alive.limit))))
}

// finished notes that the answer is all there.
func (w *watch) finished() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now != w.tail && !w.stopped {
		w.begun, w.now = true, w.tail
		w.endIn(w.tail.limit)
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
	part  bool // a part of the answer was found in what was read last
	ended bool // the end was read, mostly with the last bytes
}

// progress tells the watch behind in, if there is one, how far an answer is.
type progress struct {
	in       *steadyReader
	size     int
	begun    bool
	finished bool
}

func progressOf(in io.Reader) *progress {
	s, _ := in.(*steadyReader)
	return &progress{in: s}
}

// begin says that the answer has begun.
func (p *progress) begin() {
	if p.in != nil && !p.begun {
		p.begun = true
		p.in.w.token()
	}
}

// note looks at what has become of the answer with an event.
func (p *progress) note(a EventParser) {
	if p.in == nil || p.finished {
		return
	}
	n := a.Size()
	p.in.part = p.in.part || p.begun && n != p.size
	p.size = n
	if a.Begun() {
		p.begin()
	}
	if a.Finished() {
		p.finished = true
		p.in.w.finished()
	}
}

func (s *steadyReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.ended = err == io.EOF
	if n > 0 {
		s.w.moved(s.part)
		s.part = false
	}
	return n, err
}
