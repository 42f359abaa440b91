package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/checks"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/sandbox"
)

// Check is a command that tells whether the project is sound: exit code 0.
type Check struct {
	Command string
	Timeout time.Duration
}

// detectChecks finds the checks of a project that configures none: go test
// where there is a go.mod.
func detectChecks(tree string, timeout time.Duration) ([]Check, error) {
	_, err := os.Stat(filepath.Join(tree, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return []Check{{Command: "go test ./...", Timeout: timeout}}, err
}

// runChecks runs every check and records each in the ledger as it ends. It
// returns an error only where ctx ended or the ledger failed.
func (r *run) runChecks(ctx context.Context, round int) ([]contextstore.CheckRun, error) {
	var runs []contextstore.CheckRun
	for _, c := range r.checks {
		run, err := r.runCheck(ctx, r.shell, c, contextstore.CheckRun{Round: round})
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// runCheck runs one command and records how it ended in run, which says what
// it is.
func (r *run) runCheck(ctx context.Context, shell sandbox.Runner, c Check, run contextstore.CheckRun) (contextstore.CheckRun, error) {
	what := "Check"
	if run.Setup {
		what = "Setup"
	}
	if err := r.ledger.Activity(contextstore.Processing, strings.ToLower(what)); err != nil {
		return run, err
	}
	r.log.Info(what+" started: "+c.Command, "round", run.Round)
	out := checks.NewParser()
	masked := r.Filter(out)
	exit, err := shell.Run(ctx, sandbox.Command{Script: c.Command, Dir: r.ws.Tree(), Timeout: c.Timeout, Output: masked})
	err = errors.Join(err, masked.Close())
	if ctx.Err() != nil {
		return run, context.Cause(ctx)
	}
	if err != nil {
		return run, err
	}
	run.Command, run.ExitCode, run.TimedOut, run.DurationMS = r.Store.Redact(c.Command), exit.Code, exit.TimedOut, exit.Duration.Milliseconds()
	said := out.Summary()
	run.Output, run.Failing = said.Text(maxOutput), said.Names()
	if err := r.ledger.AppendCheck(run); err != nil {
		return run, err
	}
	result := "passed"
	if !run.Passed() {
		result = "failed"
	}
	r.log.Info(what+" "+result+": "+c.Command, "round", run.Round, "exit", exit.Code, "timed_out", exit.TimedOut, "ms", run.DurationMS)
	return run, nil
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

// verdict is what two rounds of checks, before and after the change, say.
type verdict struct {
	broken []contextstore.CheckRun // fail now and did not before, or fail in new places
	red    []contextstore.CheckRun // failed before as well: not this run's doing
	none   bool                    // there are no checks
}

// judge compares the checks after the change with those before it (DESIGN §4:
// already red is not our failure).
func judge(before, after []contextstore.CheckRun) verdict {
	v := verdict{none: len(after) == 0}
	for _, a := range after {
		if a.Passed() {
			continue
		}
		i := slices.IndexFunc(before, func(b contextstore.CheckRun) bool { return b.Command == a.Command })
		if i < 0 || before[i].Passed() || newFailure(before[i], a) {
			v.broken = append(v.broken, a)
		} else {
			v.red = append(v.red, a)
		}
	}
	return v
}

func newFailure(before, after contextstore.CheckRun) bool {
	return len(checks.Broken(before.Failing, after.Failing)) > 0
}

// maxOutput is the most bytes of what a check's output says that are kept.
const maxOutput = 8 << 10
