package approval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/workspace"
)

// CommitTree is a Tree whose base is a commit: a workspace of its own, whose branch gets
// one commit. It delivers to a repository of this machine (Branch).
type CommitTree struct {
	Create workspace.CreateOptions
	Words  workspace.CommitOptions // without Tree; When makes the commit the same if it is made again
	// Hand is how the commit goes out where that is no repository of this machine: it
	// is called when the workspace has it, and may be called again. nil delivers it.
	Hand func(ctx context.Context, w *workspace.Workspace, id string) error

	w *workspace.Workspace
}

// Workspace is the workspace in which Setup, Checks and Command run; nil before Lay.
func (t *CommitTree) Workspace() *workspace.Workspace { return t.w }

// Close closes the workspace.
func (t *CommitTree) Close() error {
	if t.w == nil {
		return nil
	}
	return t.w.Close()
}

// Lay implements Tree.
func (t *CommitTree) Lay(ctx context.Context) error {
	old := t.w
	if old == nil {
		var err error
		if old, err = workspace.Open(t.Create.Dir, t.Create.Box); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if old != nil {
		if err := errors.Join(old.Close(), old.Remove()); err != nil {
			return err
		}
	}
	var err error
	t.w, err = workspace.Create(ctx, t.Create)
	return err
}

// Apply implements Tree.
func (t *CommitTree) Apply(ctx context.Context, p *workspace.Patch) (string, error) {
	tr, err := t.w.ApplyPatch(ctx, p)
	return tr.Tree, err
}

// Now implements Tree.
func (t *CommitTree) Now(ctx context.Context) (string, error) { return t.w.TreeNow(ctx) }

// Finish implements Tree.
func (t *CommitTree) Finish(ctx context.Context, patched, before, after string) (string, []byte, error) {
	words := t.Words
	var err error
	if words.Tree, err = t.w.Carry(ctx, patched, before, after); err != nil {
		return "", nil, err
	}
	id, err := t.w.Commit(ctx, words)
	if errors.Is(err, workspace.ErrNothingToCommit) {
		err = &FailedError{i18n.E("workspace.patch_nothing")}
	}
	if err != nil {
		return "", nil, err
	}
	reverse, err := t.w.ReversePatch(ctx, id)
	return id, reverse, err
}

// Delivered implements Tree.
func (t *CommitTree) Delivered(ctx context.Context, id string) (string, bool, error) {
	if t.Hand != nil {
		return "", false, nil // to hand it over again changes nothing
	}
	tip, err := t.Create.Source.Tip(ctx, t.Create.Branch)
	return t.Create.Branch, err == nil && tip == id, err
}

// Deliver implements Tree.
func (t *CommitTree) Deliver(ctx context.Context, id string) (string, error) {
	if t.w == nil {
		w, err := workspace.Open(t.Create.Dir, t.Create.Box)
		if errors.Is(err, fs.ErrNotExist) {
			return "", ErrGone
		}
		if err != nil {
			return "", err
		}
		t.w = w
	}
	if head, err := t.w.Head(ctx); err != nil || head != id {
		return "", errors.Join(ErrGone, err)
	}
	if t.Hand != nil {
		return t.Create.Branch, t.Hand(ctx, t.w, id)
	}
	err := t.w.Deliver(ctx)
	if own := (*i18n.Error)(nil); errors.As(err, &own) && (strings.HasPrefix(own.Key, "workspace.branch_")) {
		err = &FailedError{err} // somebody else's branch, or one that is checked out
	}
	return t.Create.Branch, err
}

// HandTree is a Tree, and a Base, of the files at hand (Worktree).
type HandTree struct {
	Hand *workspace.Checkout
	Base string // a tree of Hand.TreeOf
}

// TryPatch implements Base.
func (t HandTree) TryPatch(ctx context.Context, p *workspace.Patch) (workspace.Trial, error) {
	return t.Hand.TryPatch(ctx, t.Base, p)
}

// ReviewPatch implements Base.
func (t HandTree) ReviewPatch(ctx context.Context, p *workspace.Patch, lines int, to io.Writer) error {
	return t.Hand.ReviewPatch(ctx, t.Base, p, lines, to)
}

// Lay implements Tree.
func (t HandTree) Lay(ctx context.Context) error { return t.Hand.Lay(ctx, t.Base) }

// Apply implements Tree.
func (t HandTree) Apply(ctx context.Context, p *workspace.Patch) (string, error) {
	tr, err := t.TryPatch(ctx, p)
	if err != nil {
		return "", err
	}
	return tr.Tree, t.Hand.Lay(ctx, tr.Tree)
}

// Now implements Tree.
func (t HandTree) Now(ctx context.Context) (string, error) { return t.Hand.TreeNow(ctx) }

// Finish implements Tree.
func (t HandTree) Finish(ctx context.Context, patched, before, after string) (string, []byte, error) {
	id, err := t.Hand.Carry(ctx, patched, before, after)
	if err != nil {
		return "", nil, err
	}
	reverse, err := t.Hand.ReversePatch(ctx, id, t.Base)
	return id, reverse, err
}

// Delivered implements Tree. What was written a killed Deliver tells by the files.
func (t HandTree) Delivered(context.Context, string) (string, bool, error) { return "", false, nil }

// Deliver implements Tree.
func (t HandTree) Deliver(ctx context.Context, id string) (string, error) {
	touched, err := t.Hand.Touched(ctx, t.Base, id)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrGone, err)
	}
	err = t.Hand.Write(ctx, touched)
	if own := (*i18n.Error)(nil); errors.As(err, &own) && !errors.Is(err, workspace.ErrMoved) {
		err = &FailedError{err}
	}
	return t.Hand.Path(), err
}
