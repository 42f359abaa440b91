package endpoint

import (
	"errors"
	"sync"
	"time"

	"toritsugi/internal/llm"
)

// maxPauses is how many times its first length a breaker's pause grows to.
const maxPauses = 8

// Breaker keeps calls from an endpoint that does not work:
//
//	closed --n failures in a row--> open --pause--> half-open
//	half-open: one trial call; it succeeds -> closed, it fails -> open, twice as long
//
// It is safe for concurrent use.
type Breaker struct {
	threshold int
	pause     time.Duration
	now       func() time.Time

	mu       sync.Mutex
	failures int       // in a row
	until    time.Time // zero is closed
	pauses   int       // the length of this pause, in pauses
	trial    bool      // a trial call is being made
	last     error
}

// NewBreaker returns a closed breaker that opens for pause after threshold
// failures in a row, at least one. A nil now is time.Now.
func NewBreaker(threshold int, pause time.Duration, now func() time.Time) *Breaker {
	if now == nil {
		now = time.Now
	}
	return &Breaker{threshold: max(threshold, 1), pause: pause, now: now}
}

// refusal is why a call may not be made. A zero until is a trial in progress.
type refusal struct {
	until    time.Time
	failures int
	last     error
}

// refusal returns why a call would not be let through now, nil if it would.
func (b *Breaker) refusal() *refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused()
}

func (b *Breaker) refused() *refusal {
	switch {
	case b.until.IsZero():
		return nil
	case b.now().Before(b.until):
		return &refusal{b.until, b.failures, b.last}
	case b.trial:
		return &refusal{time.Time{}, b.failures, b.last}
	}
	return nil
}

// OpenUntil is when the next call is let through; zero if that is now, or when
// the trial call that is being made has succeeded.
func (b *Breaker) OpenUntil() time.Time {
	if r := b.refusal(); r != nil {
		return r.until
	}
	return time.Time{}
}

// begin lets a call through, whose outcome done must be told, or refuses it.
// done returns Opened or Closed where it changed the breaker.
func (b *Breaker) begin() (done func(err error) EventKind, r *refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.refused(); r != nil {
		return nil, r
	}
	trial := !b.until.IsZero()
	b.trial = b.trial || trial
	return func(err error) EventKind { return b.end(trial, err) }, nil
}

func (b *Breaker) end(trial bool, err error) EventKind {
	b.mu.Lock()
	defer b.mu.Unlock()
	if trial {
		b.trial = false
	}
	switch outcomeOf(err) {
	case works:
		wasOpen := !b.until.IsZero()
		b.failures, b.pauses, b.until, b.last = 0, 0, time.Time{}, nil
		if wasOpen {
			return Closed
		}
	case fails:
		b.failures++
		b.last = err
		open := !b.until.IsZero()
		if open && !trial || !open && b.failures < b.threshold {
			return "" // a call from before the pause changes nothing in it
		}
		b.pauses = min(max(2*b.pauses, 1), maxPauses)
		b.until = b.now().Add(time.Duration(b.pauses) * b.pause)
		return Opened
	}
	return ""
}

type outcome int

const (
	unknown outcome = iota // nothing is learned: the caller gave up, or the answer broke off
	works                  // it answered, be it that it refuses
	fails
)

func outcomeOf(err error) outcome {
	var e *llm.Error
	switch {
	case err == nil:
		return works
	case !errors.As(err, &e):
		return unknown
	}
	switch e.Kind {
	case llm.KindUnreachable, llm.KindServer, llm.KindTimeout:
		return fails
	case llm.KindCutStream, llm.KindInvalid, llm.KindSuspended, llm.KindScriptEnded, llm.KindForbidden:
		return unknown
	}
	return works
}
