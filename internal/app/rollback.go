package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// Rolled is what came of a Rollback.
type Rolled struct {
	Job         approval.Job // that takes the other back
	Application approval.Application
	Closed      string // address of the draft that was closed in place of that, "" for none
}

// Rollback takes an applied job back by a job of its own. Where nobody built on what the
// job did, to ask for it is to grant it; else the new job waits for a decision, and
// Rollback goes on with it when it is called again.
func (a *Approvals) Rollback(ctx context.Context, id string) (r Rolled, err error) {
	job, err := a.Find(ctx, id, a.Who)
	if err != nil {
		return r, &ConfigError{err}
	}
	u := undo{Approvals: a, of: job}
	defer func() { err = errors.Join(err, u.close()) }()
	err = a.TakeBack(ctx, job, func(last approval.Job) (*approval.Rollback, error) {
		if last.Job != "" {
			end, err := approval.ReadApplication(last.Dir, last.Job)
			switch {
			case err != nil:
				return nil, err
			case end.Applied():
				return nil, &ConfigError{i18n.E("approval.taken_back", job.Job, last.Job)}
			case last.State.Status != approval.Denied && !end.Over():
				u.job = last // it waits, or was granted
				return nil, nil
			}
		}
		if job.Deliver == approval.PullRequest {
			return u.beginHosted(ctx)
		}
		return u.begin(ctx)
	})
	switch {
	case err != nil || !u.job.State.Status.Approved():
	case job.Deliver == approval.PullRequest:
		err = &ConfigError{i18n.E("approval.rollback_goes_on", u.job.Job)}
	default:
		r.Application, err = u.apply(ctx)
	}
	r.Job, r.Closed = u.job, u.closed
	if job.Session != "" && (r.Application.Applied() || r.Closed != "") {
		a.tellTakenBack(context.WithoutCancel(ctx), job, r)
	}
	return r, err
}

// tellTakenBack tells the conversation that had asked for a job: what its models read of it is
// true no more.
func (a *Approvals) tellTakenBack(ctx context.Context, job approval.Job, r Rolled) {
	t, end, err := a.s.talk(ctx, nil)
	if err != nil {
		a.s.log.Warn("A conversation is not told of a rollback: "+err.Error(), "session_id", job.Session)
		return
	}
	defer end()
	t = t.toPeopleOf(job)
	by := r.Job.Job
	if r.Closed != "" {
		by = r.Closed
	}
	t.decided(ctx, job.Session, job, t.lang.T("app.taken_back", job.Title, job.Job, by), "rollback/"+by)
}

// undo is a job that takes another back.
type undo struct {
	*Approvals
	of, job approval.Job
	closed  string // draft
	source  *workspace.Source
	hand    *workspace.Checkout
	tree    *approval.CommitTree
	context *contextstore.Context
}

func (u *undo) close() (err error) {
	if u.hand != nil {
		err = u.hand.Close()
	}
	if u.tree != nil {
		err = errors.Join(err, u.tree.Close())
	}
	if u.context != nil {
		err = errors.Join(err, u.context.Close())
	}
	return err
}

// box is where git runs.
func (u *undo) box(ctx context.Context) (workspace.Box, error) {
	shell, err := u.s.shell(ctx)
	return workspace.Box{Shell: shell, MemoryMB: u.s.cfg.Sandbox.MemoryMB, MaxFileMB: u.s.cfg.Workspace.MaxFileMB}, err
}

// begin proposes the rollback, and grants it where nobody built on the job.
func (u *undo) begin(ctx context.Context) (*approval.Rollback, error) {
	lang := i18n.Lang(u.s.cfg.Language)
	d, end, err := u.Reverse(lang, u.of)
	if err != nil {
		return nil, &ConfigError{err}
	}
	d.Requester = u.Actor
	// Its source is this machine's: tori serve leaves it to whoever asked.
	key, err := u.key()
	if err != nil {
		return nil, err
	}
	key.Source = string(channel.Terminal)
	begun, err := u.enqueue(ctx, key, d.Title, map[string]string{"repo": u.of.Repository, "rollback": u.of.Job})
	if err != nil {
		return begun, err
	}
	alone, err := u.propose(ctx, begun.Job, d, end)
	if refused := (*approval.RefusedError)(nil); errors.As(err, &refused) {
		err = errors.Join(&ConfigError{err}, u.end(ctx, task.Outcome{Status: task.Failed, Reason: refused.Error(), Summary: lang.Error(err)}))
	}
	if err != nil {
		return begun, err
	}
	if !alone {
		return begun, u.wait(ctx, begun)
	}
	u.job, err = u.Decide(ctx, approval.Decision{Job: begun.Job, Hash: u.job.Short(), Grant: true, By: u.Actor, How: "rollback", Where: "terminal"})
	if errors.As(err, new(*approval.NotAllowedError)) { // four eyes
		return begun, u.wait(ctx, begun)
	}
	return begun, err
}

// key is that of the run that is taken back with a job id of its own.
func (u *undo) key() (key task.Key, err error) {
	m, err := u.Store.Metadata(u.of.Run)
	if err != nil {
		return key, err
	}
	key = m.TaskKey
	key.ID, err = approval.NewJob(u.Now(), time.Local, rand.Reader)
	return key, err
}

// enqueue makes and claims the run of a rollback.
func (u *undo) enqueue(ctx context.Context, key task.Key, title string, order any) (*approval.Rollback, error) {
	m, err := u.Store.Metadata(u.of.Run)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	uuid, err := u.Store.Enqueue(ctx, contextstore.Metadata{TaskKey: key, User: m.User, Title: title, Run: raw})
	if err != nil {
		return nil, err
	}
	u.context, _, err = u.Store.Claim(ctx, uuid)
	return &approval.Rollback{Job: key.ID, Run: uuid, By: u.Actor}, err
}

// wait ends a rollback's run as one that waits for a decision.
func (u *undo) wait(ctx context.Context, r *approval.Rollback) error {
	return u.end(ctx, task.Outcome{Status: task.AwaitingApproval, Reason: i18n.Lang(u.s.cfg.Language).T("approval.waits", r.Job)})
}

// propose finds the base as it is now and proposes the patch on it; alone says that nobody
// built on what the job did.
func (u *undo) propose(ctx context.Context, newJob string, d approval.Draft, end approval.Application) (alone bool, err error) {
	if err := u.open(ctx, u.context.UUID()); err != nil {
		return false, err
	}
	var base approval.Base
	if d.Deliver == approval.Worktree {
		if d.Base, err = u.hand.TreeOf(ctx); err != nil {
			return false, err
		}
		base = approval.HandTree{Hand: u.hand, Base: d.Base}
		if patch, perr := workspace.ParsePatch(d.Patch); perr == nil {
			t, terr := base.TryPatch(ctx, patch)
			alone = terr == nil && approval.Untouched(patch, t)
		}
	} else {
		if d.Onto = end.Where; u.source.Head == "" {
			return false, &approval.RefusedError{Err: i18n.E("approval.no_branch", end.Where, u.source.Path)}
		}
		d.Base, alone = u.source.Head, u.source.Head == end.Commit
		if err := u.tree.Lay(ctx); err != nil {
			return false, err
		}
		base = u.tree.Workspace()
	}
	u.job, err = u.Propose(ctx, u.context, newJob, d, base)
	return alone, err
}

// open opens what the rollback is applied in, whose run is uuid.
func (u *undo) open(ctx context.Context, uuid string) error {
	box, err := u.box(ctx)
	if err != nil {
		return &ConfigError{err}
	}
	u.source, err = workspace.Inspect(ctx, u.of.Repository, workspace.InspectOptions{Box: box, NoStatus: true})
	if err != nil {
		return &ConfigError{err}
	}
	dir := u.Store.WorkspaceDir(uuid)
	if u.of.Deliver == approval.Worktree {
		u.hand, err = workspace.OpenCheckout(ctx, u.source, dir, box)
		return err
	}
	end, err := approval.ReadApplication(u.of.Dir, u.of.Job)
	if err != nil {
		return err
	}
	// The work goes on from the branch that the job made, as it is now.
	u.source.Branch = end.Where
	if u.source.Head, err = u.source.Tip(ctx, end.Where); err != nil {
		return err
	}
	w := u.s.cfg.Workspace
	u.tree = &approval.CommitTree{Create: workspace.CreateOptions{Source: u.source, Dir: dir, Branch: end.Where, Box: box, FS: u.s.fs, Now: u.Now},
		Words: workspace.CommitOptions{AuthorName: w.AuthorName, AuthorEmail: w.AuthorEmail}}
	return nil
}

// apply applies the granted rollback and ends its run.
func (u *undo) apply(ctx context.Context) (approval.Application, error) {
	var err error
	if u.context == nil {
		if u.context, _, err = u.Store.Claim(ctx, u.job.Run); err != nil {
			return approval.Application{}, err
		}
	}
	if u.job, err = approval.Read(u.context.Dir()); err != nil {
		return approval.Application{}, err
	}
	if u.source == nil {
		if err := u.open(ctx, u.job.Run); err != nil {
			return approval.Application{}, err
		}
	}
	lang := i18n.Lang(u.s.cfg.Language)
	e := approval.Applier{Jobs: u.Jobs}
	if u.hand != nil {
		e.Tree = approval.HandTree{Hand: u.hand, Base: u.job.Base}
	} else {
		u.tree.Create.Commit = u.job.Base
		u.tree.Words.Message, u.tree.Words.When = u.job.Title, u.job.State.Decided
		e.Tree = u.tree
	}
	a, err := e.Run(ctx, u.job)
	switch {
	case errors.As(err, new(*approval.WithdrawnError)):
		return a, errors.Join(err, u.end(ctx, task.Outcome{Status: task.AwaitingApproval, Reason: lang.T("approval.waits", u.job.Job)}))
	case err != nil:
		return a, err
	case a.Applied():
		return a, u.end(ctx, task.Outcome{Status: task.Completed, Summary: a.Outcome(lang)})
	}
	return a, u.end(ctx, task.Outcome{Status: task.Failed, Reason: a.Reason, Summary: a.Outcome(lang)})
}

// end ends our hold on the run.
func (u *undo) end(ctx context.Context, o task.Outcome) error {
	err := u.context.Transition(ctx, o)
	u.context = nil
	return err
}
