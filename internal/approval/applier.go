package approval

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/workspace"
)

// applicationFile tells how far the application of a granted proposal is: a line is on
// disk before its step is done (spec/chat §7).
const applicationFile contextstore.Records[Line] = "application.jsonl"

// Step is a step of an application.
type Step string

// The steps in their order, and the two ends. Up to Deliver nothing is seen outside, and
// a step that was cut short is followed by all of them in a new tree. Deliver is done
// again with the same commit, and does nothing where that is there already.
const (
	StepWorktree  Step = "worktree"
	StepPatch     Step = "patch"
	StepSetup     Step = "setup"
	StepChecks    Step = "checks"
	StepCommands  Step = "commands"
	StepCommit    Step = "commit"
	StepDeliver   Step = "deliver"
	StepDelivered Step = "delivered" // applied, once
	StepFailed    Step = "failed"    // not applied
)

// Line is a line of application.jsonl.
type Line struct {
	Timestamp contextstore.Time `json:"timestamp"`
	Job       string            `json:"job_id"`
	Step      Step              `json:"step"`
	Attempt   int               `json:"attempt"`
	Patched   string            `json:"patched,omitempty"`  // tree that the patch made
	Commit    string            `json:"commit,omitempty"`   // that is delivered; a tree for files at hand
	Rollback  string            `json:"rollback,omitempty"` // SHA-256 of the patch that takes it back, "" for none
	Where     string            `json:"where,omitempty"`    // of what was delivered
	At        Step              `json:"at,omitempty"`       // the step that failed
	Reason    string            `json:"reason,omitempty"`
}

// Application is how far an application came.
type Application struct {
	Line
	Begun bool
}

// Applied reports whether the proposal was applied.
func (a Application) Applied() bool { return a.Step == StepDelivered }

// Over reports whether nothing follows.
func (a Application) Over() bool { return a.Step == StepDelivered || a.Step == StepFailed }

// ReadApplication reads how far the application of a job came.
func ReadApplication(dir, job string) (a Application, err error) {
	_, err = applicationFile.Each(dir, func(l Line) {
		if l.Job == job {
			a = Application{Line: l, Begun: true}
		}
	})
	return a, err
}

// Tree is the worktree in which a proposal is applied, and from which it is delivered.
type Tree interface {
	// Lay makes a new tree of the proposal's base, whatever was there.
	Lay(ctx context.Context) error
	// Apply applies the patch, all or nothing, and returns the tree that it makes.
	Apply(ctx context.Context, p *workspace.Patch) (tree string, err error)
	// Now is the tree of what is in the files.
	Now(ctx context.Context) (tree string, err error)
	// Finish makes what is delivered: the patched tree, with what changed from before
	// to after. It returns its id and the patch that takes it back to the base.
	Finish(ctx context.Context, patched, before, after string) (id string, reverse []byte, err error)
	// Delivered reports whether what Finish made is where it goes, and where that is for people.
	Delivered(ctx context.Context, id string) (where string, ok bool, err error)
	// Deliver brings it there. To do it again changes nothing. ErrGone: what was made
	// is not there any more, so it is made anew.
	Deliver(ctx context.Context, id string) (where string, err error)
}

// Runner runs what belongs to the project in the tree, in the sandbox.
type Runner interface {
	Setup(ctx context.Context) error
	// Checks returns a *FailedError where the patch makes checks fail that passed.
	Checks(ctx context.Context) error
	// Command returns a *FailedError where the command fails (stop_on_error).
	Command(ctx context.Context, script string) error
}

// ErrGone says that what was to be delivered is lost.
var ErrGone = errors.New("what was made is gone")

// FailedError is a failure that another attempt would not mend: the proposal is not
// applied.
type FailedError struct{ Err error }

func (e *FailedError) Error() string { return e.Err.Error() }
func (e *FailedError) Unwrap() error { return e.Err }

// Applier applies approved proposals.
type Applier struct {
	Jobs   *Jobs
	Tree   Tree
	Runner Runner // nil runs nothing: of a proposal without commands that takes back another
}

// maxAttempts is how often an application is begun.
const maxAttempts = 3

// Run applies an approved job, or goes on where a killed one ended. The caller owns its
// context. The job is then applied exactly once or not at all, as the Application says.
// An error says that neither is settled and Run is to be called again; with a
// *WithdrawnError once people have decided anew.
func (e Applier) Run(ctx context.Context, job Job) (Application, error) {
	a, err := ReadApplication(job.Dir, job.Job)
	if err != nil || a.Over() {
		return a, err
	}
	if a.Step == StepDeliver {
		if err := e.deliver(ctx, job, &a); !errors.Is(err, ErrGone) {
			return a, err
		}
	}
	if a.Attempt++; a.Attempt > maxAttempts {
		a.Attempt--
		return a, e.fail(&a, job, a.Step, i18n.E("approval.attempts", maxAttempts))
	}
	err = e.prepare(ctx, job, &a)
	failed, moved := (*FailedError)(nil), errors.Is(err, workspace.ErrMoved)
	switch {
	case errors.As(err, &failed), moved:
		return a, e.fail(&a, job, a.Step, err)
	case err != nil:
		return a, err
	}
	return a, e.deliver(ctx, job, &a)
}

// prepare does the steps before the delivery.
func (e Applier) prepare(ctx context.Context, job Job, a *Application) error {
	raw, err := job.ReadPatch()
	if err != nil {
		return &FailedError{err}
	}
	patch, err := workspace.ParsePatch(raw)
	if err != nil {
		return &FailedError{err}
	}
	var before, after string
	steps := []struct {
		step Step
		do   func() error
	}{
		{StepWorktree, func() error { return e.Tree.Lay(ctx) }},
		{StepPatch, func() (err error) {
			a.Patched, err = e.Tree.Apply(ctx, patch)
			if own := (*i18n.Error)(nil); errors.As(err, &own) {
				err = &FailedError{err}
			}
			return err
		}},
		{StepSetup, func() error {
			if e.Runner == nil {
				return nil
			}
			return e.Runner.Setup(ctx)
		}},
		{StepChecks, func() error {
			if e.Runner == nil {
				return nil
			}
			return e.Runner.Checks(ctx)
		}},
		{StepCommands, func() (err error) {
			if len(job.Commands) == 0 {
				return nil
			}
			if before, err = e.Tree.Now(ctx); err != nil {
				return err
			}
			for _, cmd := range job.Commands {
				if _, err := e.Jobs.command(cmd); err != nil {
					return &FailedError{err}
				}
				if err := e.Runner.Command(ctx, cmd); err != nil {
					return err
				}
			}
			after, err = e.Tree.Now(ctx)
			return err
		}},
		{StepCommit, func() (err error) {
			var reverse []byte
			if a.Commit, reverse, err = e.Tree.Finish(ctx, a.Patched, before, after); err != nil {
				return err
			}
			a.Rollback, err = e.keep(job, reverse)
			return err
		}},
	}
	for _, s := range steps {
		if err := e.begin(ctx, job, a, s.step); err != nil {
			return err
		}
		if err := s.do(); err != nil {
			return err
		}
	}
	return nil
}

// begin makes sure that a job is still approved, and puts the line of a step down.
func (e Applier) begin(ctx context.Context, job Job, a *Application, step Step) error {
	if err := e.Jobs.Confirm(ctx, &job); err != nil {
		if decided := (*DecidedError)(nil); errors.As(err, &decided) {
			err = &FailedError{err}
		}
		return err
	}
	return e.line(job, a, step)
}

// line puts a line down.
func (e Applier) line(job Job, a *Application, step Step) error {
	l := a.Line
	l.Timestamp, l.Job, l.Step = contextstore.Time{Time: e.Jobs.Now().UTC()}, job.Job, step
	if err := applicationFile.Append(e.Jobs.Store, job.Dir, l, true); err != nil {
		return fmt.Errorf("record the step %s of job %s: %w", step, job.Job, err)
	}
	a.Line, a.Begun = l, true
	return nil
}

// deliver brings what was made to its target. Once the first line of it is there the
// approval is used up: switching automatic approval off comes too late.
func (e Applier) deliver(ctx context.Context, job Job, a *Application) error {
	again := a.Step == StepDeliver
	where, there := "", false
	var err error
	if again {
		if where, there, err = e.Tree.Delivered(ctx, a.Commit); err != nil {
			return err
		}
	} else if err := e.begin(ctx, job, a, StepDeliver); err != nil {
		if failed := (*FailedError)(nil); errors.As(err, &failed) {
			return e.fail(a, job, StepDeliver, err)
		}
		return err
	}
	if !there {
		where, err = e.Tree.Deliver(ctx, a.Commit)
	}
	switch failed := (*FailedError)(nil); {
	case errors.Is(err, workspace.ErrMoved):
		return e.stale(ctx, a, job, err)
	case errors.As(err, &failed):
		return e.fail(a, job, StepDeliver, err)
	case err != nil:
		return err
	}
	a.Where = where
	return e.line(job, a, StepDelivered)
}

// stale ends an application whose base is not what it was: the proposal is made anew.
func (e Applier) stale(ctx context.Context, a *Application, job Job, cause error) error {
	if err := e.Jobs.System(ctx, &job, ReasonStale); err != nil {
		return err
	}
	return e.fail(a, job, StepDeliver, cause)
}

// fail ends an application that changed nothing.
func (e Applier) fail(a *Application, job Job, at Step, cause error) error {
	a.At, a.Reason = at, e.Jobs.Store.Redact(e.Jobs.Lang.Error(cause))
	return e.line(job, a, StepFailed)
}

// keep puts the patch that takes an application back into the context, and returns its
// hash; "" for one that could not be applied for its size.
func (e Applier) keep(job Job, reverse []byte) (string, error) {
	if len(reverse) == 0 || len(reverse) > workspace.MaxPatch {
		return "", nil
	}
	sum := sumOf(reverse)
	path := patchPath(job.Dir, sum)
	if err := e.Jobs.Store.FS.MkdirAll(filepath.Dir(path)); err != nil {
		return "", err
	}
	return sum, e.Jobs.Store.FS.Replace(path, reverse, true)
}
