package workspace

import (
	"context"
	"io"
	"slices"
	"strconv"
)

// Review writes what a commit changes since Base with that many lines around each
// change, whatever has become of the tree since. Every file is text, whatever it
// holds and whatever attributes say, so that none of them hides a change. It
// streams.
func (w *Workspace) Review(ctx context.Context, commit string, lines int, to io.Writer) error {
	return review(ctx, w.repo, w.meta.Base, commit, lines, to)
}

// ReviewShown writes what a commit changes since Base as a forge shows it to people: with renames
// and three lines around each change. Every file is text, as for Review.
func (w *Workspace) ReviewShown(ctx context.Context, commit string, to io.Writer) error {
	args := slices.DeleteFunc(diffArgs(), func(a string) bool { return a == "--no-renames" })
	_, err := w.repo.run(ctx, call{args: append(args, "--find-renames", "--text", "--unified=3", w.meta.Base, commit, "--"), out: to})
	return err
}

// ReviewPatch is Review of what a patch makes of Base, which is not applied.
func (w *Workspace) ReviewPatch(ctx context.Context, p *Patch, lines int, to io.Writer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, err := w.onPatch(ctx)
	if err != nil {
		return err
	}
	return t.review(ctx, p, lines, to)
}

// ReviewPatch is Workspace.ReviewPatch of a tree of TreeOf.
func (h *Checkout) ReviewPatch(ctx context.Context, base string, p *Patch, lines int, to io.Writer) error {
	t, err := h.trying(ctx, base)
	if err != nil {
		return err
	}
	return t.review(ctx, p, lines, to)
}

func (t trying) review(ctx context.Context, p *Patch, lines int, to io.Writer) error {
	tr, err := t.try(ctx, p)
	if err != nil {
		return err
	}
	return review(ctx, t.tree, t.base, tr.Tree, lines, to)
}

func review(ctx context.Context, r gitter, from, commit string, lines int, to io.Writer) error {
	_, err := r.run(ctx, call{args: append(diffArgs(), "--text", "--unified="+strconv.Itoa(lines), from, commit, "--"), out: to})
	return err
}
