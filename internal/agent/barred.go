package agent

import (
	"context"
	"errors"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// mayHand asks the forge whether it would take the branch, so that a run whose
// branch somebody else moved, or that may not push, does not end as completed. A
// forge that cannot be asked now is no reason: the branch waits in the outbox.
func (r *run) mayHand(ctx context.Context) error {
	err := r.Host.wouldTake(ctx, r.ledger.Metadata().TaskKey, r.place, r.ws)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if silent(err) {
		r.log.Warn("The forge cannot be asked about the branch now: " + err.Error())
		return nil
	}
	if barred(err) {
		return &barredError{err}
	}
	return err
}

// wouldTake asks a forge whether it would take the branch of a run.
func (h *Host) wouldTake(ctx context.Context, k task.Key, p place, ws *workspace.Workspace) error {
	opt, err := h.pushing(ctx, k, p)
	if err == nil {
		opt.DryRun = true
		_, err = ws.Push(ctx, opt)
	}
	return err
}

// barredError pauses a run that may not push its branch, until somebody changes our
// permissions at the forge.
type barredError struct{ error }

func (e *barredError) Unwrap() error { return e.error }

// barredMark is the mark of runs that a barredError paused.
const barredMark = "barred"

// bar records whether a barredError pauses the run.
func (r *run) bar(ctx context.Context, yes bool) error {
	if r.Host == nil {
		return nil
	}
	return r.mark(ctx, r.ledger.UUID(), yes)
}

// StayPaused keeps a paused run paused until somebody resumes it: the marks by which
// it would go on by itself are removed.
func (a *Agent) StayPaused(ctx context.Context, uuid string) error {
	return errors.Join(a.mark(ctx, uuid, false), a.Store.StayPaused(ctx, uuid))
}

// mark sets or removes the mark of a paused run that waits for its permissions at
// the forge, and goes on by itself once it has them.
func (a *Agent) mark(ctx context.Context, uuid string, yes bool) error {
	was, err := a.Store.Mark(ctx, uuid, barredMark)
	if err != nil || (was != "") == yes {
		return err
	}
	value := ""
	if yes {
		value = "1"
	}
	return a.Store.SetMark(ctx, uuid, barredMark, value)
}

// Unbarred reports whether the forge would now take the branch of a run that was
// paused because it would not.
func (a *Agent) Unbarred(ctx context.Context, v contextstore.View) (bool, error) {
	mark, err := a.Store.Mark(ctx, v.Metadata.UUID, barredMark)
	h := a.Hosts[v.Metadata.TaskKey.Source]
	if err != nil || mark == "" || h == nil {
		return false, err
	}
	p, ok, err := readPlace(v.Dir)
	if err != nil || !ok {
		return false, err
	}
	ws, err := workspace.Open(a.Store.WorkspaceDir(v.Metadata.UUID), a.box())
	if err != nil {
		return false, err
	}
	defer func() { _ = ws.Close() }()
	err = h.wouldTake(ctx, v.Metadata.TaskKey, p, ws)
	if silent(err) || barred(err) {
		return false, nil
	}
	return true, nil // whatever else it says is for the run to tell
}

// pushing says where a branch goes, and what must be there.
func (h *Host) pushing(ctx context.Context, k task.Key, p place) (opt workspace.PushOptions, err error) {
	opt.Remote, err = h.remote(ctx, forge.RepoOf(k))
	if opt.Branch = p.Branch; p.There {
		opt.Expect = p.Base
	}
	return opt, err
}
