package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// Pristine makes the tree what the branch's last commit says and what setup
// left, and nothing else, so that a check judges what is handed over: besides
// what Restore does, what git ignores is removed, what setup left is laid anew,
// and changed files have a new time, by which build tools know them.
func (w *Workspace) Pristine(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var meta setupMeta
	if exists(filepath.Join(w.dir, setupMark)) {
		var err error
		if meta, err = readSetup(w.made); w.made == "" || err != nil {
			// What it left is nowhere but in the tree: that stays.
			return w.resetTree(ctx, false)
		}
	}
	if err := w.resetTree(ctx, true); err != nil {
		return err
	}
	if err := w.loadSetup(ctx, meta, w.made); err != nil {
		return fmt.Errorf("lay what setup left: %w", err)
	}
	return w.touchChanged(ctx)
}

// touchChanged gives the files that the last commit changed the time of now.
func (w *Workspace) touchChanged(ctx context.Context) error {
	changes, err := changed(ctx, w.repo, w.meta.Base, "refs/heads/"+w.meta.Branch)
	if err != nil {
		return err
	}
	root, err := w.Root()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	now := time.Now()
	for _, c := range changes {
		if st, err := root.Lstat(c.Path); err != nil || !st.Mode().IsRegular() {
			continue // deleted, or a link
		}
		if err := root.Chtimes(c.Path, now, now); err != nil {
			return err
		}
	}
	return nil
}
