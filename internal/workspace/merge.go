package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// ontoRef keeps the commit that Merge brought in.
const ontoRef = "refs/tori/onto"

// Merge brings another branch of the source into the tree, as far as git can:
// files that both sides changed in the same place hold both versions between
// conflict markers. The commit of the work will have that branch as its second
// parent. It returns the paths that conflict, none where all was merged or there
// was nothing to merge. The tree must be as Create or Restore leaves it; to merge
// the same again does it anew.
func (w *Workspace) Merge(ctx context.Context, src *Source, branch string) (conflicts []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	common, remove, err := src.commonDir()
	if err != nil {
		return nil, fmt.Errorf("merge %s: %w", branch, err)
	}
	defer remove()
	if _, err := w.repo.run(ctx, call{args: []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
		"--force", uploadPack, "--", src.GitDir, "refs/heads/" + branch + ":" + ontoRef}, env: []string{commonVar + "=" + common}, write: true}); err != nil {
		return nil, fmt.Errorf("merge %s: %w", branch, err)
	}
	out, err := w.repo.git(ctx, "rev-parse", "--verify", ontoRef+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("merge %s: %w", branch, err)
	}
	onto := line(out)
	// In the sandbox, where what the tree's attributes say of merging is heard.
	merged, err := w.scratch().run(ctx, call{args: []string{"merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", w.meta.Base, onto}, cfg: []string{"core.fsync=none"}})
	if err != nil && exitCode(err) != 1 { // 1: with conflicts
		return nil, i18n.E("workspace.merge", branch, err)
	}
	tree, rest, _ := strings.Cut(merged, "\x00")
	for path := range strings.SplitSeq(rest, "\x00") {
		if path != "" {
			conflicts = append(conflicts, path)
		}
	}
	if err := w.bring(ctx, tree, w.meta.Base, onto); err != nil {
		return nil, fmt.Errorf("merge %s: %w", branch, err)
	}
	if err := w.checkOut(ctx, tree); err != nil {
		return nil, fmt.Errorf("merge %s: %w", branch, err)
	}
	w.meta.Onto, w.links = onto, nil
	data, err := json.Marshal(w.meta)
	if err != nil {
		return nil, err
	}
	if err := (&disk.FS{}).Replace(filepath.Join(w.dir, metaName), append(data, '\n'), true); err != nil {
		return nil, err
	}
	return conflicts, w.dotGit()
}
