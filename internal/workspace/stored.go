package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"toritsugi/internal/disk"
)

// Stored says what a pack of a workspace is of. With the pack and a clone of the same repository
// it makes the workspace again, wherever that is.
type Stored struct {
	Tree  string `json:"tree"`  // id of the git tree of a snapshot
	Label string `json:"label"` // of that
	Head  string `json:"head"`  // commit of the branch
	Base  string `json:"base"`
	Onto  string `json:"onto,omitempty"` // commit that Merge brought in
}

// Restore is what a new workspace gets of an earlier one.
type Restore struct {
	Stored
	Branch string // of the source, that has Onto
	// Pack writes what Workspace.Pack wrote.
	Pack func(ctx context.Context, to io.Writer) error
}

// packName is the file in a workspace that Restore unpacks.
const packName = "restore.pack"

// Stored is what a pack of a snapshot would be of now.
func (w *Workspace) Stored(ctx context.Context, s Snapshot) (Stored, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	head, err := w.Head(ctx)
	return Stored{Tree: s.Tree, Label: s.Label, Head: head, Base: w.meta.Base, Onto: w.meta.Onto}, err
}

func (s Stored) commits() []string {
	if s.Onto != "" {
		return []string{s.Base, s.Onto}
	}
	return []string{s.Base}
}

// storing writes the objects of $1 and $2, trees or commits, that are in none of the other commits.
const storing = `{ printf '%s\n' "$1" "$2"; shift 2; for have; do printf '^%s\n^%s^{tree}\n' "$have" "$have"; done; } |
	exec git pack-objects --revs --stdout --quiet --delta-base-offset
`

// Pack writes what s has that its commits Base and Onto have not, as a pack of git. The model may
// go on with the tree meanwhile.
func (w *Workspace) Pack(ctx context.Context, s Stored, to io.Writer) error {
	_, err := w.onSteps().script(ctx, "pack-objects", storing, call{args: append([]string{s.Tree, s.Head}, s.commits()...), out: to})
	return err
}

// unpacking takes a pack, strict as $1 says, and makes the snapshot $4 of its tree $2 with the label $3.
const unpacking = `git index-pack --stdin "$1" >/dev/null && made=$(git commit-tree "$2" -m "$3") && exec git update-ref "$4" "$made"
`

// Made reports whether there is a workspace with an ID ("" for any) that Create has finished, or
// something that is none in its place.
func Made(dir, id string) bool {
	var m meta
	data, err := disk.Read(filepath.Join(dir, metaName), disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		return exists(dir)
	}
	return err != nil || json.Unmarshal(data, &m) != nil || m.Restore == nil && (id == "" || id == m.ID)
}

// fetchPack puts what is to be restored into a workspace that is being made in dir.
func fetchPack(ctx context.Context, dir string, r *Restore) error {
	if !isID(r.Tree) || !isID(r.Head) || !isID(r.Base) || r.Onto != "" && !isID(r.Onto) {
		return fmt.Errorf("what was kept of the workspace names no commits: %.200q", r.Stored)
	}
	f, err := os.OpenFile(filepath.Join(dir, packName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, disk.FileMode)
	if err != nil {
		return err
	}
	return errors.Join(r.Pack(ctx, f), f.Close())
}

// firstSnapshot is the id of the snapshot that a restore makes.
const firstSnapshot = "1"

// Restore lays what CreateOptions.Restore named over the tree, once that is set up: what setup
// commands run, and leave for other tasks, is the base's alone. Until then the workspace is not made.
// It does nothing where there is nothing to be restored.
func (w *Workspace) Restore(ctx context.Context) error {
	r := w.meta.Restore
	if r == nil {
		return nil
	}
	err := w.unpack(ctx, *r)
	if err == nil {
		_, err = w.RestoreTo(ctx, firstSnapshot)
	}
	if err != nil {
		return fmt.Errorf("restore workspace: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meta.Restore = nil
	return errors.Join(w.noteMeta(), (&disk.FS{}).Remove(filepath.Join(w.dir, packName)))
}

// unpack takes over the snapshot and the commit of a pack, as from a stranger.
func (w *Workspace) unpack(ctx context.Context, r Stored) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meta.Onto, w.links = r.Onto, nil
	if err := errors.Join(w.readSnapshots(ctx), w.readLinks(ctx)); err != nil { // the first makes their git directory
		return err
	}
	f, err := os.Open(filepath.Join(w.dir, packName))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	_, err = w.onSteps().script(ctx, "index-pack", unpacking, call{args: []string{strict, r.Tree, oneLine(r.Label), snapshotRefs + firstSnapshot}, in: f, cfg: stepsCfg(), env: ofStep(w.now())})
	if w.steps = nil; err != nil || r.Head == r.Base {
		return err
	}
	if err := w.bringPack(ctx, scripted{w.onSteps(), "pack-objects", storing}, append([]string{r.Head, r.Head}, r.commits()...)); err != nil {
		return err
	}
	if err := w.nothingStrange(ctx, r.Head); err != nil {
		return err
	}
	if _, err := w.repo.run(ctx, call{args: []string{"update-ref", "refs/heads/" + w.meta.Branch, r.Head}, write: true}); err != nil {
		return err
	}
	if _, err := w.scratch().run(ctx, call{args: []string{"read-tree", r.Head}}); err != nil {
		return err
	}
	return w.takeIndex()
}
