package sandbox

import (
	"context"
	"errors"
	"os/exec"
)

// runner is what the kinds share: they differ in how a command is prepared.
type runner struct {
	kind    string
	spec    func() (Spec, error)
	groups  *cgroups
	prepare func(p *process, spec Spec, c Command, dir string) (*exec.Cmd, error)
	// after is called when a command and all of its processes are gone, and now
	// and then before.
	after func(Spec) error
}

// given is a spec that was checked.
func given(s Spec) func() (Spec, error) { return func() (Spec, error) { return s, nil } }

// Kind implements Runner.
func (r *runner) Kind() string { return r.kind }

// Confined implements Runner.
func (r *runner) Confined() bool { return r.kind != KindNone }

// Run implements Runner.
func (r *runner) Run(ctx context.Context, c Command) (Exit, error) {
	j, spec, err := r.job(c)
	if err != nil {
		return Exit{}, err
	}
	exit, err := run(ctx, j)
	if r.after != nil {
		if e := r.after(spec); err == nil {
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
	j, spec, err := r.job(c)
	if err != nil {
		return nil, err
	}
	if r.after != nil {
		j.after = func() error { return r.after(spec) }
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
	j := job{Command: c, limits: spec.Limits, groups: r.groups, disks: []string{spec.Workspace}}
	if spec.Cache != "" {
		j.disks = append(j.disks, spec.Cache)
	}
	if r.after != nil {
		j.mend = func() { _ = r.after(spec) } // the last time tells what went wrong
	}
	j.prepare = func(p *process) (*exec.Cmd, error) { return r.prepare(p, spec, c, dir) }
	return j, spec, nil
}
