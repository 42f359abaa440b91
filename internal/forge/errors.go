package forge

import (
	"errors"
	"time"
)

// Kind says what is to be done about an error of a forge.
type Kind string

// The kinds of errors.
const (
	Unauthorized Kind = "unauthorized" // the credential is wrong, expired or revoked
	Forbidden    Kind = "forbidden"    // it does not reach that far
	NotFound     Kind = "not_found"    // there is no such thing, or none that may be seen
	Gone         Kind = "gone"         // issues are switched off, or the item was moved or deleted
	Invalid      Kind = "invalid"      // the forge does not accept what was sent
	Conflict     Kind = "conflict"     // it changed meanwhile
	RateLimited  Kind = "rate_limited" // Wait tells how long to keep still
	Unavailable  Kind = "unavailable"  // no answer, a broken one, or one of 5xx
	Unsupported  Kind = "unsupported"  // this forge has no such thing
)

// Error is an answer of a forge that is not the one hoped for. Its text is an
// i18n error: what was asked, of which repository, what the forge said, what to do.
type Error struct {
	Kind Kind
	Wait time.Duration // of RateLimited: until the forge may be asked again
	// Status is the code of HTTP, 0 where there was no answer.
	Status int
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether an error is one of that kind.
func Is(err error, k Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == k
}

// Passing reports whether the same call may succeed later without anybody doing
// anything about it.
func (k Kind) Passing() bool {
	return k == RateLimited || k == Unavailable || k == Conflict
}

// ErrNotAsked is returned by Asked where nobody asks any more.
var ErrNotAsked = errors.New("nobody put the trigger on it")

// TriggerRemoved is an ErrNotAsked of which the forge knows who took the trigger away,
// and when.
type TriggerRemoved struct {
	By Person
	At time.Time
}

func (e *TriggerRemoved) Error() string {
	return "the trigger was taken away by " + e.By.Login + " at " + e.At.UTC().Format(time.RFC3339)
}

// Is makes it an ErrNotAsked.
func (e *TriggerRemoved) Is(target error) bool { return target == ErrNotAsked }
