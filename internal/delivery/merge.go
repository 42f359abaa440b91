package delivery

import (
	"context"

	"toritsugi/internal/forge"
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
