package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"toritsugi/internal/disk"
)

// CheckTree is a second tree of a workspace, in which checks run beside the one that
// the model works in. It has the commit that is checked, what setup left, and
// nothing else. It is for one at a time.
type CheckTree struct{ w *Workspace }

// CheckTree returns the second tree, which may have to be laid still. The caller
// closes it, after the last use and before the workspace.
func (w *Workspace) CheckTree() (*CheckTree, error) {
	a := at(filepath.Join(w.dir, "apart"), w.box.Box)
	a.repo, a.meta, a.made = w.repo, w.meta, w.made
	a.box = newBox(w.box.Box, a.repo, a.Tree(), a.scratchDir())
	a.box.spec.Hold = w.repo.hold
	if err := errors.Join(removeAll(a.scratchDir()), (&disk.FS{}).MkdirAll(a.Tree()), a.makeDirs()); err != nil {
		return nil, fmt.Errorf("tree for checks: %w", err)
	}
	return &CheckTree{a}, nil
}

// Tree is the path of the tree.
func (a *CheckTree) Tree() string { return a.w.Tree() }

// Root opens the tree as Workspace.Root does.
func (a *CheckTree) Root() (*os.Root, error) { return a.w.Root() }

// Lay makes the tree what a commit says and what setup left, and nothing else. A
// file that the commit has otherwise than what was laid before has a new time, by
// which build tools know it; "" is the commit that the branch began at.
func (a *CheckTree) Lay(ctx context.Context, commit string) error {
	w := a.w
	if commit == "" {
		commit = w.meta.Base
	}
	err := w.unlocked(w.scratch().lay(ctx, commit, "-d", "--force", "--force", "--quiet", "-x", "--exclude=/.git"))
	if err == nil {
		err = w.dotGit()
	}
	if err != nil {
		return fmt.Errorf("lay %s for the checks: %w", commit[:min(len(commit), 10)], err)
	}
	if w.made == "" {
		return nil
	}
	meta, err := readSetup(w.made)
	if err == nil {
		err = w.loadSetup(ctx, meta, w.made)
	}
	if err != nil {
		return fmt.Errorf("lay what setup left: %w", err)
	}
	return nil
}

// Close ends the git of the tree, and removes the tree where it is not needed any
// more.
func (a *CheckTree) Close(remove bool) error {
	err := a.w.box.close()
	if remove {
		err = errors.Join(err, removeAll(a.w.dir))
	}
	return err
}
