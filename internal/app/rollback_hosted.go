package app

import (
	"context"
	"errors"

	"toritsugi/internal/approval"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// beginHosted takes back what went to a forge: it closes a draft that nobody built on, else
// it proposes the revert, on the branch that has the work now.
func (u *undo) beginHosted(ctx context.Context) (*approval.Rollback, error) {
	if err := u.s.openChatHosts(ctx); err != nil {
		return nil, &ConfigError{err}
	}
	lang := i18n.Lang(u.s.cfg.Language)
	d, end, err := u.Reverse(lang, u.of)
	if err != nil {
		return nil, &ConfigError{err}
	}
	h, it, err := u.s.delivery().Draft(ctx, u.of)
	switch {
	case err != nil:
		return nil, &ConfigError{err}
	case !it.Open && !it.Pull.Merged:
		return nil, &ConfigError{i18n.E("approval.draft_closed", u.of.Job, it.URL)}
	case it.Open && it.Pull.Head.Commit == end.Commit:
		if err := u.MayDeliver(ctx, u.Actor, u.of.Repository); err != nil {
			return nil, &ConfigError{err}
		}
		if err := h.Code.Withdraw(ctx, it.Key); err != nil {
			return nil, err
		}
		u.s.audit("rollback", u.of.Run, it.URL)
		u.closed = it.URL
		return nil, nil
	}
	onto := it.Pull.Base.Name
	if it.Open {
		onto = it.Pull.Head.Name
	}
	return u.proposeHosted(ctx, d, onto)
}

// proposeHosted has the revert wait for a decision. It goes on as every job of a conversation
// does: by tori serve, or tori chat.
func (u *undo) proposeHosted(ctx context.Context, d approval.Draft, onto string) (*approval.Rollback, error) {
	key, err := u.key()
	if err != nil {
		return nil, err
	}
	o := order.Order{Repo: u.of.Repository, Config: u.s.cfg.File(), Chat: &order.Chat{Job: key.ID, Session: u.of.Session, User: u.Actor, Route: "CODE2", Repository: key.Repo,
		Onto: onto, Reverts: u.of.Job, Deliver: string(approval.PullRequest), Title: d.Title}}
	begun, err := u.enqueue(ctx, key, d.Title, o)
	if err != nil {
		return begun, err
	}
	err = u.putHosted(ctx, o, d)
	if refused := (*approval.RefusedError)(nil); errors.As(err, &refused) {
		return begun, errors.Join(&ConfigError{err}, u.end(ctx, task.Outcome{Status: task.Failed, Reason: refused.Error()}))
	}
	if err != nil {
		return begun, errors.Join(err, u.end(ctx, task.Outcome{Status: task.Failed, Reason: i18n.Lang(u.s.cfg.Language).Error(err)}))
	}
	return begun, u.wait(ctx, begun)
}

// putHosted proposes the revert on a clone of the branch that has the work.
func (u *undo) putHosted(ctx context.Context, o order.Order, d approval.Draft) error {
	src, err := u.s.delivery().OpenHosted(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	box, err := u.box(ctx)
	if err != nil {
		return err
	}
	w, err := workspace.Create(ctx, workspace.CreateOptions{Source: src.Source, Dir: u.Store.WorkspaceDir(u.context.UUID()), Branch: "tori/" + o.Chat.Job, Box: box, FS: u.s.fs, Hold: u.context.WorkLock()})
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	d.Session, d.Requester, d.Base, d.Visibility = u.of.Session, u.Actor, w.Base(), src.Visibility()
	u.job, err = u.Propose(ctx, u.context, o.Chat.Job, d, w)
	return err
}
