package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
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
	onto, err := w.fetch(ctx, src, branch, ontoRef)
	if err == nil {
		conflicts, err = w.merge(ctx, w.meta.Base, onto, branch)
	}
	if err != nil {
		return nil, err
	}
	w.meta.Onto = onto
	return conflicts, errors.Join(w.noteMeta(), w.dotGit())
}

// followedRef keeps the commit that Follow took the work to.
const followedRef = "refs/tori/followed"

// Followed is what Follow found on a branch; paths are as people may read them.
type Followed struct {
	Commits   int      // that others pushed
	Files     []string // that these change
	Conflicts []string // that hold both versions between conflict markers
}

// Follow takes the work to where the source's branch is by now, as Rebase: a commit of
// the work, on what was Base, is merged with that into the tree, that is Base and the
// workspace's branch is there; the next Commit goes on from it. The branch must have what
// was Base. What the commit does not have stays in the tree as it is. To follow again with the same
// commit does it anew, also where it was cut short.
func (w *Workspace) Follow(ctx context.Context, src *Source, commit string) (f Followed, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tip, err := w.fetch(ctx, src, src.Branch, followedRef)
	if err != nil {
		return f, err
	}
	out, err := w.repo.git(ctx, "rev-list", "--count", tip, "^"+commit+"^1")
	if err == nil {
		f.Commits, err = strconv.Atoi(line(out))
	}
	var theirs []Change
	if err == nil {
		theirs, err = changed(ctx, w.repo, commit+"^1", tip)
	}
	if err == nil {
		f.Conflicts, err = w.merge(ctx, commit, tip, src.Branch)
	}
	if err != nil {
		return f, err
	}
	f.Files = Paths(theirs)
	for i, p := range f.Conflicts {
		f.Conflicts[i] = readable(p)
	}
	w.meta.Base = tip
	if err := w.noteMeta(); err != nil {
		return f, err
	}
	_, err = w.repo.run(ctx, call{args: []string{"update-ref", "refs/heads/" + w.meta.Branch, tip}, write: true})
	return f, errors.Join(err, w.dotGit())
}

// fetch takes a branch of the source and returns its commit, which a ref keeps.
func (w *Workspace) fetch(ctx context.Context, src *Source, branch, ref string) (string, error) {
	common, remove, err := src.commonDir()
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w", branch, err)
	}
	defer remove()
	if _, err := w.repo.run(ctx, call{args: []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
		"--force", uploadPack, "--", src.GitDir, "refs/heads/" + branch + ":" + ref}, env: []string{commonVar + "=" + common}, write: true}); err != nil {
		return "", fmt.Errorf("fetch %s: %w", branch, err)
	}
	out, err := w.repo.git(ctx, "rev-parse", "--verify", ref+"^{commit}")
	return line(out), err
}

// merge makes the tree what two commits are together. It returns the paths that
// conflict.
func (w *Workspace) merge(ctx context.Context, ours, theirs, branch string) (conflicts []string, err error) {
	// In the sandbox, where what the tree's attributes say of merging is heard.
	merged, err := w.scratch().run(ctx, call{args: []string{"merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs}, cfg: []string{"core.fsync=none"}})
	if err != nil && exitCode(err) != 1 { // 1: with conflicts
		return nil, i18n.E("workspace.merge", branch, err)
	}
	tree, rest, _ := strings.Cut(merged, "\x00")
	for path := range strings.SplitSeq(rest, "\x00") {
		if path != "" {
			conflicts = append(conflicts, path)
		}
	}
	if err = w.bring(ctx, tree, ours, theirs); err == nil {
		err = w.checkOut(ctx, tree)
	}
	if err != nil {
		err = fmt.Errorf("merge %s: %w", branch, err)
	}
	return conflicts, err
}

// noteMeta writes workspace.json, whose commits are others now.
func (w *Workspace) noteMeta() error {
	w.links = nil
	return (&disk.FS{}).ReplaceJSON(filepath.Join(w.dir, metaName), w.meta, true)
}
