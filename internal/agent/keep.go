package agent

import (
	"context"
	"errors"
	"io/fs"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/workspace"
)

// keep commits what a run that nobody works on left in its workspace, and returns
// the effect that hands the branch over, with what is said about it; nil where
// there is nothing. The caller holds the run's locks.
func (a *Agent) keep(ctx context.Context, v contextstore.View) (e *contextstore.Effect, said string, err error) {
	m := v.Metadata
	p, ok, err := readPlace(v.Dir)
	if err != nil || !ok || a.Secrets == nil {
		return nil, "", err
	}
	ws, err := workspace.Open(a.Store.WorkspaceDir(m.UUID), a.box())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = ws.Close() }()
	hash, err := a.commitTree(ctx, ws, m, "")
	if err != nil || hash == "" {
		return nil, "", err
	}
	if err := a.mayPushOf(ctx, v, p, ws, hash); err != nil {
		return nil, "", err
	}
	if h := a.Hosts[m.TaskKey.Source]; h != nil {
		if err := h.wouldTake(ctx, m.TaskKey, p, ws); err != nil && !silent(err) {
			return nil, "", err
		}
	}
	changes, err := ws.ChangedFiles(ctx)
	if err != nil {
		return nil, "", err
	}
	push, err := effect(m.UUID+"."+EffectPush, EffectPush, pushEffect{p.Branch, hash})
	return &push, a.Lang.T("agent.comment_saved", p.Branch) + "\n" + listed(a.Lang, workspace.Paths(changes)) + "\n", err
}

// mayPushOf asks the broker whether the branch of a run that nobody works on may
// be handed over.
func (a *Agent) mayPushOf(ctx context.Context, v contextstore.View, p place, ws *workspace.Workspace, hash string) error {
	var patch limited
	if err := ws.CommittedText(ctx, hash, &patch); err != nil {
		return err
	}
	b, err := a.Door.open(v.Metadata, p, a.Store.EffectsOf(v))
	if err != nil {
		return err
	}
	verdict, err := b.Judge(ctx, broker.Request{
		Kind: broker.Push, Key: v.Metadata.UUID + "." + EffectPush, Task: v.Metadata.TaskKey,
		Target: broker.Target{Branch: p.Branch}, Patch: patch.String(),
	})
	if err == nil && verdict.Decision != broker.Allow {
		err = verdict.Reason
	}
	return err
}
