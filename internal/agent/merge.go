package agent

import (
	"context"
	"fmt"
	"strings"

	"toritsugi/internal/forge"
	"toritsugi/internal/workspace"
)

// merge brings the branch that a pull request is for into the tree, where the two
// conflict: the model then resolves what git cannot, and the commit makes the pull
// request mergeable. It returns the files with conflict markers.
func (r *run) merge(ctx context.Context) ([]string, error) {
	if !r.place.Merge {
		r.place.Merge = true // first, for an owner who finds the workspace gone
		if err := r.writePlace(r.place); err != nil {
			return nil, err
		}
	}
	remote, err := r.Host.remote(ctx, forge.RepoOf(r.ledger.Metadata().TaskKey))
	if err != nil {
		return nil, err
	}
	src, err := r.Host.Mirrors.Source(ctx, remote, r.place.Onto)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }()
	paths, err := r.ws.Merge(ctx, src, r.place.Onto)
	if err != nil {
		return nil, err
	}
	r.log.Info("Merged, for the pull request conflicts with it: "+r.place.Onto, "conflicts", len(paths))
	changes := make([]workspace.Change, len(paths))
	for i, p := range paths {
		changes[i].Path = p
	}
	return workspace.Paths(changes), nil
}

// mergeText tells the model what the merge left to it.
func mergeText(onto string, conflicts []string) string {
	if len(conflicts) == 0 {
		return fmt.Sprintf("It conflicted with %s, which is merged into your tree by now.\n", onto)
	}
	more := ""
	if n := len(conflicts) - maxConflicts; n > 0 {
		conflicts, more = conflicts[:maxConflicts], fmt.Sprintf(", and %d more", n)
	}
	return fmt.Sprintf("It conflicts with %s, which was merged into your tree. These files hold both versions between conflict markers (<<<<<<<, =======, >>>>>>>): %s%s. "+
		"Resolve each so that both sides' intent is kept, and leave no marker.\n", onto, strings.Join(conflicts, ", "), more)
}

// maxConflicts is how many files with conflicts the model is named.
const maxConflicts = 50
