package delivery

import (
	"context"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/workspace"
)

// Merge brings the branch that a pull request is for into the tree, where the two
// conflict: the model then resolves what git cannot, and the commit makes the pull
// request mergeable. It returns the files with conflict markers.
func (r *Run) Merge(ctx context.Context) ([]string, error) {
	if !r.Place.Merge {
		r.Place.Merge = true // first, for an owner who finds the workspace gone
		if err := r.writePlace(r.Place); err != nil {
			return nil, err
		}
	}
	remote, err := r.Host.remote(ctx, forge.RepoOf(r.key()))
	if err != nil {
		return nil, err
	}
	src, err := r.Host.Mirrors.Source(ctx, remote, r.Place.Onto)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }()
	paths, err := r.Workspace.Merge(ctx, src, r.Place.Onto)
	if err != nil {
		return nil, err
	}
	r.Log.Info("Merged, for the pull request conflicts with it: "+r.Place.Onto, "conflicts", len(paths))
	changes := make([]workspace.Change, len(paths))
	for i, p := range paths {
		changes[i].Path = p
	}
	return workspace.Paths(changes), nil
}

// Follow takes the work up to a commit to where others took its branch meanwhile: what they
// pushed is merged into the tree, and the next commit goes on from it. The caller tells
// the model, and then calls Followed; where it is killed before, Place.Work says so. It is
// an *EndedError where the branch was deleted, or rewritten.
func (r *Run) Follow(ctx context.Context, commit string) (f workspace.Followed, err error) {
	src, err := r.Host.source(ctx, forge.RepoOf(r.key()), r.Place.Branch)
	if workspace.BranchDeleted(err) {
		return f, r.Place.ended("delivery.branch_deleted", r.Place.Branch)
	}
	if err != nil {
		return f, err
	}
	defer func() { _ = src.Close() }()
	if !src.Contains(ctx, r.Workspace.Base()) {
		return f, &EndedError{i18n.E("delivery.branch_rewritten", r.Place.Branch)}
	}
	r.Place.Base, r.Place.Work = src.Head, commit
	if err = r.writePlace(r.Place); err == nil {
		f, err = r.Workspace.Follow(ctx, src, commit)
	}
	if err == nil {
		r.Log.Info("Merged what others pushed to the branch: "+r.Place.Branch, "commits", f.Commits, "conflicts", len(f.Conflicts))
	}
	return f, err
}

// Followed notes that the model knows what Follow did.
func (r *Run) Followed() error {
	r.Place.Work = ""
	return r.writePlace(r.Place)
}
