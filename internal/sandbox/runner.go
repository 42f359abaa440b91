package sandbox

import (
	"context"
	"errors"
	"fmt"
)

// runner is what the kinds share: they differ in how a command is prepared.
type runner struct {
	kind      string
	spec      func() (Spec, error)
	prepare   func(p *process, spec Spec, c Command, dir string) (child, error)
	instances *instances // where its commands share one, nil where each has its own walls
	// after is called when a command and all of its processes are gone, and now
	// and then before.
	after func() error
}

// given is a spec that was checked.
func given(s Spec) func() (Spec, error) { return func() (Spec, error) { return s, nil } }

// Kind implements Runner.
func (r *runner) Kind() string { return r.kind }

// Confined implements Runner.
func (r *runner) Confined() bool { return r.kind != KindNone }

// Close implements Runner.
func (r *runner) Close() error {
	if r.instances == nil {
		return nil
	}
	return r.instances.close()
}

// Suspend implements Runner.
func (r *runner) Suspend(ctx context.Context) (resume func(), err error) {
	if r.instances != nil {
		if x := r.instances.running(); x != nil {
			resume, err := x.suspend()
			if err == nil || !x.ending() {
				return resume, err
			}
		}
	}
	return func() {}, ctx.Err()
}

// Run implements Runner. What a command that failed writes ends with the
// connections that it was refused meanwhile, by whichever command.
func (r *runner) Run(ctx context.Context, c Command) (Exit, error) {
	j, spec, err := r.job(c)
	if err != nil {
		return Exit{}, err
	}
	mark := spec.Network.refused.mark()
	exit, err := run(ctx, j)
	if err == nil && exit.Code != 0 && c.Output != nil {
		for _, x := range spec.Network.refused.since(mark) {
			_, err = fmt.Fprintln(c.Output, x)
		}
	}
	if r.after != nil {
		if e := r.after(); err == nil {
			err = e
		}
	}
	return exit, err
}

// Start implements Runner.
func (r *runner) Start(ctx context.Context, c Command) (*Process, error) {
	if c.Input != "" {
		return nil, errors.New("sandbox: a command that is started has a pipe and no other input")
	}
	j, _, err := r.job(c)
	if err != nil {
		return nil, err
	}
	return start(ctx, j)
}

// job is what there is to do for c.
func (r *runner) job(c Command) (job, Spec, error) {
	spec, err := r.spec()
	if err != nil {
		return job{}, spec, err
	}
	if err := c.check(); err != nil {
		return job{}, spec, err
	}
	dir, err := spec.dir(c)
	if err != nil {
		return job{}, spec, err
	}
	j := job{Command: c, limits: spec.Limits, together: spec.Usage, disks: spec.writable(), after: r.after}
	j.prepare = func(p *process) (child, error) { return r.prepare(p, spec, c, dir) }
	return j, spec, nil
}
