package approval

import (
	"errors"
	"fmt"

	"toritsugi/internal/i18n"
)

// ErrUnknown says that there is no such job.
var ErrUnknown = errors.New("no such job")

// RefusedError says why a proposal is not put to anybody: of its patch, its commands or
// what it holds. The coder is told once.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// DecidedError says that a job was decided already.
type DecidedError struct{ Job Job }

func (e *DecidedError) Error() string { return e.Unwrap().Error() }

// Unwrap is the text for people.
func (e *DecidedError) Unwrap() error {
	if s := e.Job.State; s.Approver == System && s.Status == Denied {
		return i18n.E("approval.decided_system", e.Job.Job, i18n.E("approval.denied_"+s.Reason))
	}
	return i18n.E("approval.decided", e.Job.Job, i18n.E("approval.status_"+string(e.Job.State.Status)), e.Job.State.Approver, e.Job.State.Reason)
}

// OtherHashError says that a decision was about something else than what is proposed now;
// Job is what is to be shown again.
type OtherHashError struct{ Job Job }

func (e *OtherHashError) Error() string { return e.Unwrap().Error() }

// Unwrap is the text for people.
func (e *OtherHashError) Unwrap() error {
	return i18n.E("approval.other_hash", e.Job.Job, e.Job.State.Hash[:ShortHash])
}

// NotAllowedError says that somebody may not decide about a job.
type NotAllowedError struct {
	Job, By string
	Key     string // of the text that says why
	Err     error  // the text itself, in place of Key
}

func (e *NotAllowedError) Error() string { return e.Unwrap().Error() }

// Unwrap is the text for people.
func (e *NotAllowedError) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	return i18n.E(e.Key, e.By, e.Job)
}

// WithdrawnError says that an approval does not hold any more and people are asked again.
type WithdrawnError struct{ Job Job }

func (e *WithdrawnError) Error() string { return fmt.Sprintf("%v", e.Unwrap()) }

// Unwrap is the text for people.
func (e *WithdrawnError) Unwrap() error { return i18n.E("approval.withdrawn", e.Job.Job) }
