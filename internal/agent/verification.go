package agent

import (
	"context"
	"fmt"
	"strings"

	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/telemetry"
	"toritsugi/internal/verdict"
	"toritsugi/internal/workspace"
)

// verification is what is known of the work from checks and from its patch.
type verification struct {
	checkrun.Runner // once the workspace is open

	delivery *delivery.Service

	quiet  bool     // the model is told nothing of the base now
	commit string   // of the work
	files  []string // that it changes
	after  []contextstore.CheckRun
	judged planning.Result // what the judgement of the criteria came to
	review review
	left   workspace.LeftOut
	unfit  string // why git refused the tree for a commit, as the model was told
}

// verified runs the checks and decides: the work is done (false), the model must
// go on (true), or the run has failed.
func (r *run) verified(ctx context.Context) (again bool, err error) {
	telemetry.Phase(ctx, planning.PhaseVerification, 0)
	loop := r.lead.loop
	if err := r.verify.AwaitBase(ctx); err != nil {
		return false, err
	}
	all, err := r.ledger.Checks()
	if err != nil {
		return false, err
	}
	n := 1
	for len(r.verify.Checks) > 0 && r.verify.Complete(verdict.Round(all, n)) {
		n++
	}
	// What still runs would change the tree under the commit and the checks.
	stopped := r.env.jobs.Stop()
	if stopped > 0 {
		r.log.Info("Background jobs stopped before the checks", "jobs", stopped)
	}
	r.stopServers()
	if err := r.commitWork(ctx, loop.Window.Last().Seq); err != nil {
		// Snapshots convert nothing; a commit does, as the attributes say.
		if why := r.Store.Redact(err.Error()); workspace.Unfit(err) && why != r.verify.unfit {
			r.verify.unfit = why
			return true, loop.Ask(ctx, planning.AskRemark, unfit(why)+jobsStopped(stopped)+r.wake(ctx))
		}
		return false, err
	}
	if r.verify.after, err = r.verify.Run(ctx, n, r.report.Commit); err != nil {
		return false, err
	}
	if err := r.verify.Lacks(ctx, checkrun.Missing(r.verify.after)); err != nil {
		return false, err
	}
	v := verdict.Of(r.verify.Before, r.verify.after)
	switch {
	case verdict.SendsBack(v, verdict.Attempt(r.verify.Before, all, n)):
		return true, loop.Ask(ctx, planning.AskRemark, strings.TrimPrefix(r.verify.TellBase()+"\n"+r.verify.Feedback(v), "\n")+jobsStopped(stopped)+r.wake(ctx))
	case len(v.Broken) > 0:
		return false, &checksError{"agent.checks_failed", v.Broken}
	case len(v.Red) > 0 && len(r.report.Files) == 0:
		return false, &checksError{"agent.nothing_done", v.Red}
	}
	return false, nil
}

// commitWork commits the work up to an answer before the checks run, so that what
// they leave behind stays out, also where an earlier owner was interrupted
// among them.
func (r *run) commitWork(ctx context.Context, seq int64) (err error) {
	st, lead := r.ledger.State(), r.lead.planned.Load()
	if st.CommittedSeq == seq || st.CommittedSeq > 0 && lead != nil && lead.Judged() {
		r.report.Commit = st.Commit
	} else {
		if r.report.Commit, err = r.out.Commit(ctx, r.lead.answer); err != nil {
			return err
		}
		if err := r.ledger.Committed(seq, r.report.Commit); err != nil {
			return err
		}
		if r.out.Keeper != nil {
			r.snapshot(ctx, "commit") // what was told of it is told by now
		}
	}
	if r.verify.left, err = r.out.Workspace.LeftOut(); err != nil {
		return err
	}
	if r.verify.left.All > 0 {
		r.log.Warn("Repositories inside the workspace, files that are too large, or paths that git refuses, are not part of the commit", "paths", r.verify.left.Paths, "all", r.verify.left.All)
	}
	r.verify.commit, r.verify.files, r.report.Files = r.report.Commit, nil, nil
	if r.report.Commit != "" {
		changes, err := r.out.Workspace.CommittedFiles(ctx, r.report.Commit)
		if err != nil {
			return err
		}
		r.verify.files = workspace.Paths(changes)
	}
	r.report.Files = r.verify.files
	return r.verify.lookThrough(ctx)
}

// reword gives the commit the words of the last answer, which the verification may have
// asked for. Where a crash comes before the ledger knows of that, the next owner finds
// the result judged, and does it again on the same tree.
func (r *run) reword(ctx context.Context) error {
	seq := r.lead.loop.Window.Last().Seq
	if r.report.Commit == "" || r.ledger.State().CommittedSeq == seq {
		return nil
	}
	hash, err := r.out.Reword(ctx, r.report.Commit, r.lead.answer)
	if err != nil {
		return err
	}
	r.report.Commit, r.verify.commit = hash, hash
	return r.ledger.Committed(seq, hash)
}

// checksError ends a run whose checks do not pass.
type checksError struct {
	key  string
	runs []contextstore.CheckRun
}

func (e *checksError) Error() string { return i18n.English.T(e.key, verdict.Commands(e.runs)) }

// jobsStopped tells the model which of its work ended for the checks.
func jobsStopped(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("\nBefore the checks what still ran in the background was stopped: %d of your jobs. Start again what you need.\n", n)
}
