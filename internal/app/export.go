package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/workspace"
)

// Patch is what a run changed, from its base to its commit, as git apply takes it; nil
// where it committed nothing. It needs the run's workspace.
func Patch(ctx context.Context, base string, v contextstore.View) ([]byte, error) {
	if v.State.Commit == "" {
		return nil, nil
	}
	dir, err := filepath.Abs(filepath.Join(base, "workspaces", v.Metadata.UUID))
	if err != nil {
		return nil, err
	}
	ws, err := workspace.Open(dir, workspace.Box{}) // git reads, nothing is run
	if errors.Is(err, fs.ErrNotExist) {
		return nil, i18n.E("app.patch_gone", contextstore.Short(v.Metadata.UUID), v.State.Commit)
	}
	if err != nil {
		return nil, err
	}
	patch, err := ws.CommitPatch(ctx, v.State.Commit)
	if err = errors.Join(err, ws.Close()); err != nil {
		return nil, fmt.Errorf("the patch of %s: %w", v.Metadata.UUID, err)
	}
	return patch, nil
}
