package delivery

import (
	"cmp"
	"context"
	"errors"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// taken asks the forge whether it would take the branch, so that a run whose
// branch somebody else moved, or that may not push, does not end as completed. A
// forge that cannot be asked now is no reason: the branch waits in the outbox.
func (r *Run) taken(ctx context.Context) error {
	err := r.Host.wouldTake(ctx, r.key(), r.Place, r.Workspace)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case workspace.Moved(err) && !r.Place.Exists:
		return &EndedError{i18n.E("delivery.branch_taken", r.Place.Branch)}
	case silent(err):
		r.Log.Warn("The forge cannot be asked about the branch now: " + err.Error())
		return nil
	case barred(err):
		return &PermissionError{Err: err}
	}
	return err
}

// wouldTake asks a forge whether it would take the branch of a run.
func (h *Host) wouldTake(ctx context.Context, k task.Key, p Place, ws *workspace.Workspace) error {
	if p.Work != "" {
		return i18n.E("workspace.remote_moved", p.Branch, forge.RepoOf(k)) // and is not followed yet
	}
	err := h.push(ctx, k, p, ws, true)
	if k.ID = cmp.Or(p.Pull, p.Draft); k.ID == "" {
		if p.Exists && workspace.BranchDeleted(err) {
			return p.ended("delivery.branch_deleted", p.Branch)
		}
		return err
	}
	k.Type = task.TypeProposed(k.Source)
	it, ierr := h.Item(ctx, k)
	switch {
	case ierr == nil && it.Open && !workspace.BranchDeleted(err):
		return err
	case ierr == nil && it.Pull != nil && it.Pull.Merged:
		return p.ended("delivery.draft_merged", order.Ref(k), p.Branch)
	case workspace.BranchDeleted(err):
		return p.ended("delivery.branch_deleted", p.Branch)
	case ierr == nil || forge.Is(ierr, forge.Gone):
		return p.ended("delivery.draft_closed", order.Ref(k), p.Branch)
	}
	return cmp.Or(err, ierr)
}

// ended is the *EndedError with a text, and what can be done then.
func (p Place) ended(key string, args ...any) error {
	err, next := i18n.E(key, args...), "delivery.retry_new"
	if p.Pull != "" { // the run is on it, and not on an issue
		next = "delivery.retry_open"
	}
	if p.Pull == "" || key != "delivery.draft_merged" {
		err = i18n.E(next, err)
	}
	return &EndedError{err}
}

// push pushes the branch of a run to its forge; with dry the forge is only asked whether
// it would take it. An error names the repository as people know it.
func (h *Host) push(ctx context.Context, k task.Key, p Place, ws *workspace.Workspace, dry bool) error {
	to, err := h.remote(ctx, forge.RepoOf(k))
	if err == nil {
		opt := workspace.PushOptions{Remote: to, Branch: p.Branch, DryRun: dry}
		if p.Exists {
			opt.Expect = p.Base // what must be there
		}
		_, err = ws.Push(ctx, opt)
	}
	return named(err, to, forge.RepoOf(k))
}

// named is an error of git that names the repository instead of its address.
func named(err error, m workspace.Remote, r forge.Repo) error {
	var e *i18n.Error
	if errors.As(err, &e) {
		for n, a := range e.Args {
			if a == any(m.URL) {
				e.Args[n] = r.String()
			}
		}
	}
	return err
}

// permissionMark is the mark of runs that a PermissionError paused.
const permissionMark = "barred"

// WaitForPermission records whether a PermissionError pauses a run, which then goes
// on by itself once the forge takes its branch.
func (s *Service) WaitForPermission(ctx context.Context, uuid string, yes bool) error {
	was, err := s.Store.Mark(ctx, uuid, permissionMark)
	if err != nil || (was != "") == yes {
		return err
	}
	value := ""
	if yes {
		value = "1"
	}
	return s.Store.SetMark(ctx, uuid, permissionMark, value)
}

// StayPaused keeps a paused run paused until somebody resumes it: the marks by which
// it would go on by itself are removed.
func (s *Service) StayPaused(ctx context.Context, uuid string) error {
	return errors.Join(s.WaitForPermission(ctx, uuid, false), s.Store.StayPaused(ctx, uuid))
}

// Permitted reports whether the forge would now take the branch of a run that was
// paused because it would not.
func (s *Service) Permitted(ctx context.Context, v contextstore.View) (bool, error) {
	mark, err := s.Store.Mark(ctx, v.Metadata.UUID, permissionMark)
	h := s.Hosts[v.Metadata.TaskKey.Source]
	if err != nil || mark == "" || h == nil {
		return false, err
	}
	p, ok, err := readPlace(v.Dir)
	if err != nil || !ok {
		return false, err
	}
	ws, err := s.openWorkspace(ctx, v.Metadata.UUID)
	if err != nil {
		return false, err
	}
	defer func() { _ = ws.Close() }()
	err = h.wouldTake(ctx, v.Metadata.TaskKey, p, ws)
	return !silent(err) && !barred(err), nil // whatever else it says is for the run to tell
}
