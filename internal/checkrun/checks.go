package checkrun

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/checks"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/progress"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/telemetry"
	"toritsugi/internal/verdict"
	"toritsugi/internal/workspace"
)

// Check is a command that tells whether the project is sound: exit code 0.
type Check struct {
	Command string
	Timeout time.Duration
	Reports string // pattern of the JUnit files that it writes into the tree, "" for none
}

// Run runs every check on the commit of the work and records each in the
// ledger as it ends. It returns an error only where ctx ended or the ledger failed.
func (r *Runner) Run(ctx context.Context, round int, commit string) ([]contextstore.CheckRun, error) {
	if len(r.Checks) == 0 {
		return nil, nil
	}
	if err := r.apart.Lay(ctx, commit); err != nil {
		return nil, err
	}
	var runs []contextstore.CheckRun
	for _, c := range r.Checks {
		if err := r.Ledger.Activity(contextstore.Processing, "check"); err != nil {
			return nil, err
		}
		run, err := r.oneCheck(ctx, c, r.Spec, contextstore.CheckRun{Round: round, Commit: commit})
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// oneCheck runs a check with build caches that the model had no hand in: those
// of the base are the checks' of the first round to write; later each check has
// a layer of its own upon them, for it runs what the model wrote.
func (r *Runner) oneCheck(ctx context.Context, c Check, spec sandbox.Spec, run contextstore.CheckRun) (contextstore.CheckRun, error) {
	layer := workspace.LayerBase
	if run.Round > 0 {
		layer = workspace.LayerCheck
	}
	spec, err := r.WithCaches(ctx, spec, layer)
	if err != nil {
		return run, err
	}
	spec.Workspace = r.apart.Tree()
	// Where there is no wall, a home is kept between the commands of one kind.
	spec.Scratch += "-" + string(layer)
	if run.Round > 0 {
		if err := os.RemoveAll(spec.Scratch); err != nil {
			return run, err
		}
	}
	shell, err := r.Shell(spec)
	if err != nil {
		return run, err
	}
	defer func() { _ = shell.Close() }()
	return r.runCheck(ctx, shell, c, run)
}

// WithCaches is spec for the commands of a layer.
func (r *Runner) WithCaches(ctx context.Context, spec sandbox.Spec, l workspace.Layer) (sandbox.Spec, error) {
	caches, err := r.Workspace.Caches(ctx, l)
	if caches.Cold != nil {
		r.Log.Warn("Build caches begin empty: "+r.Store.Redact(caches.Cold.Error()), "layer", string(l))
	}
	spec.Cache, spec.ReadOnly = caches.Dir, append(slices.Clone(spec.ReadOnly), caches.ReadOnly...)
	return spec, err
}

// runCheck runs one command and records how it ended in run, which says what
// it is.
func (r *Runner) runCheck(ctx context.Context, shell sandbox.Runner, c Check, run contextstore.CheckRun) (contextstore.CheckRun, error) {
	kind := "check"
	if run.Setup {
		kind = "setup"
	}
	ctx, span := telemetry.Start(ctx, kind, "")
	run, err := r.command(ctx, shell, c, run)
	if err == nil && !run.Passed() {
		span.Fail("check_failed")
	}
	span.Text("tori.check.command", run.Command)
	span.Int("tori.check.round", run.Round)
	span.Int("process.exit.code", run.ExitCode)
	span.End(err)
	return run, err
}

func (r *Runner) command(ctx context.Context, shell sandbox.Runner, c Check, run contextstore.CheckRun) (contextstore.CheckRun, error) {
	what := "Check"
	if run.Setup {
		what = "Setup"
	}
	r.Log.Info(what+" started: "+c.Command, "round", run.Round)
	reports, done, err := r.reports(c)
	if err != nil {
		return run, err
	}
	defer done()
	run.Command = r.Store.Redact(c.Command)
	base := r.baseOf(run)
	tree := r.Workspace.Tree()
	if !run.Setup { // before which there is no other one
		tree = r.apart.Tree()
	}
	out := checks.Against(verdict.Failed(base), tree)
	tail := &lastLine{}
	masked := r.Filter(out) // which holds back far more than a line
	stop := r.going(what, tail)
	exit, err := shell.Run(ctx, sandbox.Command{Script: c.Command, Timeout: c.Timeout, Output: io.MultiWriter(tail, masked)})
	stop()
	err = errors.Join(err, masked.Close())
	if ctx.Err() != nil {
		return run, context.Cause(ctx)
	}
	if err != nil {
		return run, err
	}
	run.ExitCode, run.TimedOut, run.DurationMS = exit.Code, exit.TimedOut, exit.Duration.Milliseconds()
	run.Limit, run.Bound = exit.Limit, exit.Bound
	said := out.Summary()
	note := ""
	if reports != nil {
		if said, note = reported(ctx, said, verdict.Failed(base), reports); ctx.Err() != nil {
			return run, context.Cause(ctx)
		}
	}
	tell(&run, said, note)
	if run.Excused, err = r.excused(ctx, run.Commit, base, said); err != nil {
		return run, err
	}
	if err := r.Ledger.AppendCheck(run); err != nil {
		return run, err
	}
	run.Output = r.Store.Redact(run.Output)
	if !run.Setup {
		r.Checked(run)
	}
	result := "passed"
	if !run.Passed() {
		result = "failed"
	}
	r.Log.Info(what+" "+result+": "+c.Command, "round", run.Round, "exit", exit.Code, "timed_out", exit.TimedOut, "limit", exit.Limit, "ms", run.DurationMS)
	return run, nil
}

// baseOf is how the check of a round ended on the base.
func (r *Runner) baseOf(run contextstore.CheckRun) (base contextstore.CheckRun) {
	i := slices.IndexFunc(r.Before, func(b contextstore.CheckRun) bool { return b.Command == run.Command })
	if i >= 0 && run.Round > 0 {
		base = r.Before[i]
	}
	return base
}

// tell puts what a check printed, and what is to be noted of it, on its record.
func tell(run *contextstore.CheckRun, said checks.Summary, note string) {
	run.Output, run.Failing, run.FailedSet = said.Text(maxOutput-len(note))+note, said.Names(), said.Set
	run.Ran, run.Packages, run.Missing = said.Ran, said.Packages, said.Missing
	run.Counted = said.Counted()
	if note == noReport && !run.Passed() {
		// Without a name it could not be told from the failures of before.
		run.Failing, run.FailedSet = append(run.Failing, noReportName), said.Set.With(noReportName)
	}
}

// reports notes what lies where a check writes its reports; nil where it writes
// none. done is called when they were read.
func (r *Runner) reports(c Check) (found *checks.Reports, done func(), err error) {
	if c.Reports == "" {
		return nil, func() {}, nil
	}
	root, err := r.apart.Root()
	if err != nil {
		return nil, nil, err
	}
	if found, err = checks.FindReports(root, c.Reports); err != nil {
		return nil, nil, errors.Join(&delivery.TaskError{Err: i18n.E("agent.reports", c.Reports, err)}, root.Close())
	}
	return found, func() { _ = root.Close() }, nil
}

// noReportName stands for a test that failed.
const noReportName = "[no JUnit report]"

const noReport = "\n[the command wrote no JUnit report that the configured pattern matches]"

// reported completes what a check printed by what its reports say, and returns
// what is wrong with those.
func reported(ctx context.Context, said checks.Summary, known checks.Set, reports *checks.Reports) (checks.Summary, string) {
	report, n, err := reports.Read(ctx, known)
	note := ""
	switch {
	case err != nil:
		note = "\n[" + progress.Head(strings.ToValidUTF8(err.Error(), "\uFFFD"), 500) + "]"
	case n == 0:
		note = noReport
	}
	return said.With(report), note
}

// Complete reports whether every check has a run among runs.
func (r *Runner) Complete(runs []contextstore.CheckRun) bool {
	for _, c := range r.Checks {
		shown := r.Store.Redact(c.Command)
		if !slices.ContainsFunc(runs, func(r contextstore.CheckRun) bool { return r.Command == shown }) {
			return false
		}
	}
	return true
}

// maxOutput is the most bytes of what a check's output says that are kept.
const maxOutput = 8 << 10

// excused are the tests that fail after the change, were added by it, and lack
// what tests of the base lack as well: nothing that the change broke.
func (r *Runner) excused(ctx context.Context, commit string, base contextstore.CheckRun, said checks.Summary) (names []string, err error) {
	patch := ""
	for _, f := range said.Failures {
		if f.Known || commit == "" || !slices.Contains(base.Missing, r.Store.Redact(f.Missing())) {
			continue
		}
		if patch == "" {
			if patch, err = delivery.Patch(ctx, r.Workspace, commit); err != nil {
				if ctx.Err() != nil || !errors.As(err, new(*delivery.TaskError)) {
					return nil, err
				}
				return nil, nil // too large to be looked at
			}
		}
		if verdict.Adds(patch, f) {
			names = append(names, f.Name)
		}
	}
	return names, nil
}
