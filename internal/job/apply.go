package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/project"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool/confined"
	"toritsugi/internal/workspace"
)

// apply applies a granted proposal, once. Where that goes to a forge it is what the run owes.
func (r *Runner) apply(ctx context.Context, c *contextstore.Context, o order.Order, job approval.Job) (approval.Application, []contextstore.Effect, error) {
	at, err := r.source(ctx, o)
	if err != nil {
		return approval.Application{}, nil, err
	}
	defer func() { _ = at.Close() }()
	if job.Deliver == approval.Worktree {
		a, err := r.applyHand(ctx, c, at.Source, job)
		return a, nil, err
	}
	branch, err := r.branch(ctx, c, at.Source)
	if err != nil {
		return approval.Application{}, nil, err
	}
	words, err := r.words(job)
	if err != nil {
		return approval.Application{}, nil, err
	}
	dir := r.Store.WorkspaceDir(c.UUID())
	lay := func(dir, branch string) *approval.CommitTree {
		return &approval.CommitTree{Words: words, Create: workspace.CreateOptions{Source: at.Source, Dir: dir, Branch: branch, Commit: job.Base, Box: r.Box, Hold: c.WorkLock()}}
	}
	tree := lay(dir, branch)
	defer func() { _ = tree.Close() }()
	var owes []contextstore.Effect
	hand := func(ctx context.Context, w *workspace.Workspace, commit string) (err error) {
		owes, err = r.hand(ctx, c, w, job, delivery.Place{Branch: branch, Base: job.Base, Onto: at.Branch, Private: at.Private}, commit)
		return err
	}
	if job.Deliver == approval.PullRequest {
		tree.Hand = hand
	}
	run := &commands{r: r, c: c, src: at.Source, commit: job.Base, scratch: filepath.Join(dir, "scratch"), tree: func() string { return tree.Workspace().Tree() }}
	run.base = func(ctx context.Context) (string, func(context.Context) error, error) {
		b := lay(dir+"-base", branch+"-base")
		if err := b.Lay(ctx); err != nil {
			return "", nil, err
		}
		return b.Workspace().Tree(), func(context.Context) error { return errors.Join(b.Close(), b.Workspace().Remove()) }, nil
	}
	a, err := approval.Applier{Jobs: r.Approvals, Tree: tree, Runner: run}.Run(ctx, job)
	if err == nil && a.Applied() && tree.Hand != nil && owes == nil { // an owner died before the transition
		_, err = tree.Deliver(ctx, a.Commit)
	}
	return a, owes, err
}

// moved denies an approved proposal as stale whose patch does not fit the repository any
// more: it was made for a commit, and what is checked out by now has it not apply. Of files
// at hand that is found out file by file, as they are written.
func (r *Runner) moved(ctx context.Context, c *contextstore.Context, o order.Order, job *approval.Job) error {
	a, err := approval.ReadApplication(c.Dir(), job.Job)
	if err != nil || a.Begun || job.Deliver != approval.Branch {
		return err
	}
	src, err := r.source(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	if src.Head == job.Base {
		return nil
	}
	raw, err := job.ReadPatch()
	if err != nil {
		return err
	}
	patch, err := workspace.ParsePatch(raw)
	if err != nil {
		return err
	}
	now := approval.CommitTree{Create: workspace.CreateOptions{Source: src.Source, Dir: r.Store.WorkspaceDir(c.UUID()) + "-head", Branch: "tori/" + job.Job + "-head", Commit: src.Head, Box: r.Box, Hold: c.WorkLock()}}
	if err := now.Lay(ctx); err != nil {
		return err
	}
	_, err = now.Workspace().TryPatch(ctx, patch)
	refused := errors.As(err, new(*i18n.Error))
	if err := errors.Join(now.Close(), now.Workspace().Remove()); err != nil {
		return err
	}
	if refused {
		return r.Approvals.System(ctx, job, approval.ReasonStale)
	}
	return err
}

// applyHand is apply where the patch goes into the files at hand.
func (r *Runner) applyHand(ctx context.Context, c *contextstore.Context, src *workspace.Source, job approval.Job) (approval.Application, error) {
	dir := r.Store.WorkspaceDir(c.UUID())
	h, err := workspace.OpenCheckout(ctx, src, r.handDir(c.UUID()), r.Box)
	if err != nil {
		return approval.Application{}, err
	}
	defer func() { _ = h.Close() }()
	run := &commands{r: r, c: c, src: src, commit: src.Head, scratch: filepath.Join(dir, "scratch"), tree: h.Tree}
	run.base = func(ctx context.Context) (string, func(context.Context) error, error) {
		now, err := h.TreeNow(ctx)
		if err == nil {
			err = h.Lay(ctx, job.Base)
		}
		return h.Tree(), func(ctx context.Context) error { return h.Lay(ctx, now) }, err
	}
	return approval.Applier{Jobs: r.Approvals, Tree: approval.HandTree{Hand: h, Base: job.Base}, Runner: run}.Run(ctx, job)
}

// branch is the branch of a job's commit: chosen once, and kept in the run's mark, so that
// what is applied again goes to the same.
func (r *Runner) branch(ctx context.Context, c *contextstore.Context, src *workspace.Source) (string, error) {
	name, err := r.Store.Mark(ctx, c.UUID(), branchMark)
	if err != nil || name != "" {
		return name, err
	}
	if name, err = r.Branch(ctx, src, c.Metadata()); err != nil {
		return "", err
	}
	return name, r.Store.SetMark(ctx, c.UUID(), branchMark, name)
}

const branchMark = "branch"

// commands run what belongs to the project, and what a proposal asks for, in the tree of an
// application (approval.Runner).
type commands struct {
	r       *Runner
	c       *contextstore.Context
	src     *workspace.Source
	commit  string // whose word counts on how the project is checked
	scratch string
	tree    func() string
	// base is the tree without the patch, and what puts back what was there.
	base func(context.Context) (tree string, done func(context.Context) error, err error)
}

// commandTime is how long a command of a proposal may take.
const commandTime = 10 * time.Minute

// Setup implements approval.Runner.
func (x *commands) Setup(ctx context.Context) error { return x.setup(ctx, x.tree()) }

func (x *commands) setup(ctx context.Context, tree string) error {
	for _, s := range x.r.Project.Setup {
		network := x.r.Network
		if s.Network {
			network = confined.Online(network, x.r.Project.Registries, "workspace.registries", x.r.Log, x.r.Lang)
		}
		run, err := x.run(ctx, tree, network, s.Run, s.Timeout)
		run.Setup = true
		if err = x.recorded(run, err); err != nil {
			return err
		}
		if !run.Passed() {
			return &approval.FailedError{Err: i18n.E("job.command_failed", s.Run, run.ExitCode, run.Output)}
		}
	}
	return nil
}

// Checks implements approval.Runner. What fails without the patch, too, is not its fault.
func (x *commands) Checks(ctx context.Context) error {
	all, err := x.checks(ctx)
	if err != nil {
		return err
	}
	red, err := x.red(ctx, x.tree(), all, 1)
	if err != nil || len(red) == 0 {
		return err
	}
	tree, done, err := x.base(ctx)
	if err != nil {
		return err
	}
	err = x.setup(ctx, tree)
	var before []failing
	if err == nil {
		checks := make([]checkrun.Check, len(red))
		for i, f := range red {
			checks[i] = f.check
		}
		before, err = x.red(ctx, tree, checks, 0)
	}
	if err = errors.Join(err, done(ctx)); err != nil {
		return err
	}
	was := map[string]bool{}
	for _, f := range before {
		was[f.check.Command] = true
	}
	for _, f := range red {
		if !was[f.check.Command] {
			return &approval.FailedError{Err: i18n.E("job.command_failed", f.check.Command, f.run.ExitCode, f.run.Output)}
		}
	}
	return nil
}

// checks are the commands with which a project is checked, whether or not their programs are
// installed.
func (r *Runner) checks(ctx context.Context, src *workspace.Source, commit string) (all []string) {
	for _, c := range r.Project.Checks {
		all = append(all, c.Command)
	}
	if r.Project.Checks != nil {
		return all
	}
	p, err := project.Read(ctx, src.Commits(), commit, project.Options{})
	if err != nil {
		r.Log.Warn("The checks of the project are not known yet: " + err.Error())
		return nil
	}
	for _, c := range p.Checks {
		all = append(all, c.Command)
	}
	return all
}

// checks are those of the settings, else those that the repository's commit names and
// whose programs are there.
func (x *commands) checks(ctx context.Context) (all []checkrun.Check, err error) {
	if x.r.Project.Checks != nil {
		return x.r.Project.Checks, nil
	}
	p, err := project.Read(ctx, x.src.Commits(), x.commit, project.Options{})
	if err != nil {
		return nil, err
	}
	chosen, left, err := checkrun.Available(p.Checks, func(probes []string) (failed []string, err error) {
		for _, probe := range probes {
			run, err := x.run(ctx, x.tree(), x.r.Network, probe, probeTime)
			if err != nil {
				return nil, err
			}
			if !run.Passed() {
				failed = append(failed, probe)
			}
		}
		return failed, nil
	})
	for _, c := range left {
		x.r.Log.Warn("Check left out: "+x.r.Store.Redact(c.Command)+", since "+c.Program+" is not installed where checks run", "from", c.Source)
	}
	for _, c := range chosen {
		all = append(all, checkrun.Check{Command: c.Command, Timeout: x.r.Project.Timeout})
	}
	return all, err
}

// probeTime is how long it may take to look for a program.
const probeTime = 20 * time.Second

// failing is a check that failed.
type failing struct {
	check checkrun.Check
	run   contextstore.CheckRun
}

// red runs checks and returns those that fail.
func (x *commands) red(ctx context.Context, tree string, all []checkrun.Check, round int) (red []failing, err error) {
	for _, c := range all {
		run, err := x.run(ctx, tree, x.r.Network, c.Command, c.Timeout)
		run.Round = round
		if err = x.recorded(run, err); err != nil {
			return nil, err
		}
		if !run.Passed() {
			red = append(red, failing{c, run})
		}
	}
	return red, nil
}

// Command implements approval.Runner.
func (x *commands) Command(ctx context.Context, script string) error {
	run, err := x.run(ctx, x.tree(), x.r.Network, script, commandTime)
	if err == nil && !run.Passed() {
		err = &approval.FailedError{Err: i18n.E("job.command_failed", script, run.ExitCode, run.Output)}
	}
	return err
}

// recorded puts a check on record.
func (x *commands) recorded(run contextstore.CheckRun, err error) error {
	if err != nil {
		return err
	}
	return x.c.AppendCheck(run)
}

// keptOutput is how much of what a command printed is kept, in bytes.
const keptOutput = 4000

// run runs one command in a sandbox of its own.
func (x *commands) run(ctx context.Context, tree string, network sandbox.Network, script string, timeout time.Duration) (contextstore.CheckRun, error) {
	run := contextstore.CheckRun{Command: script, Timestamp: contextstore.Time{Time: x.r.Now().UTC()}}
	spec := x.r.Spec
	spec.Workspace, spec.Scratch, spec.Network, spec.Hold = tree, x.scratch, network, x.c.WorkLock()
	shell, err := x.r.Shell(spec)
	if err != nil {
		return run, err
	}
	out := &last{most: keptOutput}
	to := x.r.Filter(out)
	e, err := shell.Run(ctx, sandbox.Command{Script: script, Timeout: timeout, Output: to})
	err = errors.Join(err, to.Close(), shell.Close())
	if ctx.Err() != nil {
		return run, ctx.Err()
	}
	if err != nil {
		return run, fmt.Errorf("run %s: %w", script, err)
	}
	run.ExitCode, run.TimedOut, run.Limit, run.Bound, run.DurationMS, run.Output = e.Code, e.TimedOut, e.Limit, e.Bound, e.Duration.Milliseconds(), out.String()
	return run, nil
}

// last keeps the end of what is written to it.
type last struct {
	bytes.Buffer
	most int
}

func (l *last) Write(p []byte) (int, error) {
	n, _ := l.Buffer.Write(p)
	if over := l.Len() - l.most; over > l.most {
		l.Next(over)
	}
	return n, nil
}

func (l *last) String() string {
	b := l.Bytes()
	return string(bytes.ToValidUTF8(b[max(0, len(b)-l.most):], []byte("\uFFFD")))
}
