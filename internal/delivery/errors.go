package delivery

import (
	"errors"

	"toritsugi/internal/blobs"
	"toritsugi/internal/forge"
	"toritsugi/internal/workspace"
)

// TaskError is the task's own failure, as against trouble of the world.
type TaskError struct{ Err error }

func (e *TaskError) Error() string { return e.Err.Error() }
func (e *TaskError) Unwrap() error { return e.Err }

// PermissionError pauses a run that may not push its branch, until somebody changes our
// permissions at the forge.
type PermissionError struct{ Err error }

func (e *PermissionError) Error() string { return e.Err.Error() }
func (e *PermissionError) Unwrap() error { return e.Err }

// EndedError stops a run whose branch or pull request people took away from under it.
type EndedError struct{ Err error }

func (e *EndedError) Error() string { return e.Err.Error() }
func (e *EndedError) Unwrap() error { return e.Err }

// owedError lets a run, or its pull request, wait until the forge has what
// another run of the task made.
type owedError struct{ error }

func (e *owedError) Unwrap() error { return e.error }

// retryError is a refusal as forge.Invalid that is tried again, though Invalid lasts
// elsewhere (Lasting).
type retryError struct{ said string }

func (e *retryError) Error() string { return e.said }

// Passing tells that what a run on a forge needs at its start cannot be had now,
// for a reason that passes or that an administrator mends.
func Passing(err error) bool {
	return silent(err) || barred(err) || blobs.Passing(err) || errors.As(err, new(*owedError))
}

// Held reports whether an effect that failed like this waits, while the forge still
// takes comments: the forge refuses it until somebody changes our permissions, git
// alone cannot reach the forge, or it waits for what another run of the task made.
func Held(err error) bool {
	return barred(err) || workspace.Denied(err) || workspace.Unreachable(err) || errors.As(err, new(*retryError)) || errors.As(err, new(*owedError))
}

// Lasting reports whether an effect that failed like this will never be taken,
// so that what stands behind it in the outbox need not wait.
func Lasting(err error) bool {
	return forge.Is(err, forge.Gone) || forge.Is(err, forge.Invalid) || workspace.Refused(err)
}

// silent reports that the forge answers nobody now, or refuses our login.
func silent(err error) bool {
	var e *forge.Error
	return errors.As(err, &e) && e.Kind.Passing() || forge.Is(err, forge.Unauthorized) || workspace.Unreachable(err) || workspace.Denied(err)
}

// barred reports that the forge answers, and refuses what was asked of it until
// somebody changes our permissions there.
func barred(err error) bool {
	return forge.Is(err, forge.Forbidden) || forge.Is(err, forge.NotFound) || workspace.Barred(err)
}

// optional reports that a forge rejects an optional step, such as a label or a
// reviewer: the delivery goes on without it.
func optional(err error) bool {
	return forge.Is(err, forge.Invalid) || forge.Is(err, forge.Unsupported) || forge.Is(err, forge.Forbidden)
}
