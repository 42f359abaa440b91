package agent

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
	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/workspace"
)

// Check is a command that tells whether the project is sound: exit code 0.
type Check struct {
	Command string
	Timeout time.Duration
	Reports string // pattern of the JUnit files that it writes into the tree, "" for none
}

// runChecks runs every check on the commit of the work and records each in the
// ledger as it ends. It returns an error only where ctx ended or the ledger failed.
func (r *run) runChecks(ctx context.Context, round int) ([]contextstore.CheckRun, error) {
	if len(r.checks) == 0 {
		return nil, nil
	}
	if err := r.apart.Lay(ctx, r.report.Commit); err != nil {
		return nil, err
	}
	var runs []contextstore.CheckRun
	for _, c := range r.checks {
		if err := r.ledger.Activity(contextstore.Processing, "check"); err != nil {
			return nil, err
		}
		run, err := r.oneCheck(ctx, c, r.base, contextstore.CheckRun{Round: round, Commit: r.report.Commit})
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
func (r *run) oneCheck(ctx context.Context, c Check, spec sandbox.Spec, run contextstore.CheckRun) (contextstore.CheckRun, error) {
	layer := workspace.LayerBase
	if run.Round > 0 {
		layer = workspace.LayerCheck
	}
	spec, err := r.withCaches(ctx, spec, layer)
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

// withCaches is spec for the commands of a layer.
func (r *run) withCaches(ctx context.Context, spec sandbox.Spec, l workspace.Layer) (sandbox.Spec, error) {
	caches, err := r.ws.Caches(ctx, l)
	if caches.Cold != nil {
		r.log.Warn("Build caches begin empty: "+r.Store.Redact(caches.Cold.Error()), "layer", string(l))
	}
	spec.Cache, spec.ReadOnly = caches.Dir, append(slices.Clone(spec.ReadOnly), caches.ReadOnly...)
	return spec, err
}

// runCheck runs one command and records how it ended in run, which says what
// it is.
func (r *run) runCheck(ctx context.Context, shell sandbox.Runner, c Check, run contextstore.CheckRun) (contextstore.CheckRun, error) {
	what := "Check"
	if run.Setup {
		what = "Setup"
	}
	r.log.Info(what+" started: "+c.Command, "round", run.Round)
	reports, done, err := r.reports(c)
	if err != nil {
		return run, err
	}
	defer done()
	var base contextstore.CheckRun
	shown := r.Store.Redact(c.Command)
	if i := slices.IndexFunc(r.before, func(b contextstore.CheckRun) bool { return b.Command == shown }); i >= 0 && run.Round > 0 {
		base = r.before[i]
	}
	tree := r.ws.Tree()
	if !run.Setup { // before which there is no other one
		tree = r.apart.Tree()
	}
	out := checks.Against(failed(base), tree)
	tail := &lastWords{}
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
	run.Command, run.ExitCode, run.TimedOut, run.DurationMS = shown, exit.Code, exit.TimedOut, exit.Duration.Milliseconds()
	run.Limit, run.Bound = exit.Limit, exit.Bound
	said := out.Summary()
	note := ""
	if reports != nil {
		if said, note = reported(ctx, said, failed(base), reports); ctx.Err() != nil {
			return run, context.Cause(ctx)
		}
	}
	run.Output, run.Failing, run.FailedSet = said.Text(maxOutput-len(note))+note, said.Names(), said.Set
	run.Ran, run.Packages, run.Missing = said.Ran, said.Packages, said.Missing
	run.Counted = said.Counted()
	if note == noReport && !run.Passed() {
		// Without a name it could not be told from the failures of before.
		run.Failing, run.FailedSet = append(run.Failing, noReportName), said.Set.With(noReportName)
	}
	if run.Excused, err = r.excused(ctx, base, said); err != nil {
		return run, err
	}
	if err := r.ledger.AppendCheck(run); err != nil {
		return run, err
	}
	run.Output = r.Store.Redact(run.Output)
	if !run.Setup {
		r.tracker.Checked(run, r.Now())
	}
	result := "passed"
	if !run.Passed() {
		result = "failed"
	}
	r.log.Info(what+" "+result+": "+c.Command, "round", run.Round, "exit", exit.Code, "timed_out", exit.TimedOut, "limit", exit.Limit, "ms", run.DurationMS)
	return run, nil
}

// reports notes what lies where a check writes its reports; nil where it writes
// none. done is called when they were read.
func (r *run) reports(c Check) (found *checks.Reports, done func(), err error) {
	if c.Reports == "" {
		return nil, func() {}, nil
	}
	root, err := r.apart.Root()
	if err != nil {
		return nil, nil, err
	}
	if found, err = checks.FindReports(root, c.Reports); err != nil {
		return nil, nil, errors.Join(&taskError{i18n.E("agent.reports", c.Reports, err)}, root.Close())
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
		note = "\n[" + cut(strings.ToValidUTF8(err.Error(), "\uFFFD"), 500) + "]"
	case n == 0:
		note = noReport
	}
	return said.With(report), note
}

// round returns the recorded runs of one round.
func round(all []contextstore.CheckRun, n int) []contextstore.CheckRun {
	return slices.DeleteFunc(slices.Clone(all), func(c contextstore.CheckRun) bool { return c.Round != n || c.Setup })
}

// complete reports whether every check has a run among runs.
func (r *run) complete(runs []contextstore.CheckRun) bool {
	for _, c := range r.checks {
		shown := r.Store.Redact(c.Command)
		if !slices.ContainsFunc(runs, func(r contextstore.CheckRun) bool { return r.Command == shown }) {
			return false
		}
	}
	return true
}

// maxOutput is the most bytes of what a check's output says that are kept.
const maxOutput = 8 << 10
