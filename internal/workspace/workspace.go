// Package workspace gives a task a work tree: a clone on a fresh branch, whose git directory lies
// outside the tree, and the git calls that look at it, commit it and push the branch. A model
// writes the tree, so our git executes nothing in it.
package workspace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// All there is in a workspace:
//
//	{dir}/tree            the work tree
//	{dir}/git             the git directory
//	{dir}/workspace.json  what Create decided
//	{dir}/lock            shared by who has it open, exclusive to who removes it
//	{dir}/scratch         index and objects of what is committed and shown
//	{dir}/steps           git directory of the snapshots
//	{dir}/setup           key of the setup it was made ready by
//	{dir}/cache           build caches, see Layer
//	{dir}/apart           what checks run in, see CheckTree
//	{dir}/left-out        repositories in the tree that the last commit is without
//	{dir}/push            while a branch is pushed
//	{dir}/restore.pack    until it is restored
//
// Git outside the sandbox uses git and push, and never what is in tree, scratch
// or steps: these are the sandbox's to write.
const (
	metaName = "workspace.json"
	lockName = "lock"
	format   = 1
)

// meta is workspace.json. It is kept beside the git directory so that nothing
// a command does to its own repository changes what the base is.
type meta struct {
	Format int    `json:"format"`
	Source string `json:"source"` // real path, or the address of a remote
	Remote bool   `json:"remote,omitempty"`
	Base   string `json:"base"`
	Branch string `json:"branch"`
	Onto   string `json:"onto,omitempty"` // commit that Merge brought in

	ID      string  `json:"id,omitempty"`      // see CreateOptions
	Restore *Stored `json:"restore,omitempty"` // what is still to be restored
}

// Workspace is the work tree and branch of one task. Its methods may be called
// concurrently; one process at a time uses a workspace, the task's owner.
type Workspace struct {
	dir  string
	meta meta
	repo repo
	box  *box
	now  func() time.Time
	rest func(context.Context) (resume func(), err error)
	mu   sync.Mutex // what follows, the scratch indexes and objects, and the branch

	caching sync.Mutex // the build caches; after mu where both are held

	held    []*os.File          // locks on what the workspace uses, until Close
	made    string              // what its setup left, see SetupOptions.Dir; "" for none
	links   map[string][]string // commits of submodules, by path; nil before they were looked for
	parts   parts               // of the same commits
	resting bool                // see still
	seed    maphash.Seed
	few     int // files of a tree that git looks at whole, whatever changed
	indexed indexed
	steps   []Snapshot // the snapshots, oldest first; nil before they were read
}

// CreateOptions say what to make. All of Source, Dir and Branch are needed.
type CreateOptions struct {
	Source *Source
	Dir    string // absolute; the workspace's own directory, e.g. …/workspaces/{uuid}
	Branch string // new, see BranchName and FreeBranch; or Source.Branch, to go on with that
	Commit string // where the branch begins, "" for Source.Head
	Base   string // since which changes are told, "" for Commit
	Box    Box    // where git on the tree runs
	// ID names the workspace: one in Dir that has another is left from before the task went on elsewhere,
	// and goes. "" for whichever is there.
	ID string
	// Restore is what was kept of an earlier workspace of the task, which Workspace.Restore brings back;
	// Commit and Base are its. nil for a new one.
	Restore *Restore
	// Rest makes what else may write to the tree stand still while git looks at it
	// or writes it; nil for nothing.
	Rest func(context.Context) (resume func(), err error)
	FS   *disk.FS         // nil writes without a seam
	Hold *os.File         // inherited by every git that the workspace starts; may be nil
	Now  func() time.Time // of snapshots; nil for time.Now
}

// Create clones Source into Dir and checks Branch out at its commit. It is
// idempotent: a finished workspace is opened as it is, and what a killed
// Create left is made anew. Only the owner of the task calls it.
//
// Objects are hard links where Dir is on the source's file system, and copies
// elsewhere. Submodules stay empty directories and LFS files stay pointers:
// both would need the network and programs that the repository names.
func Create(ctx context.Context, opt CreateOptions) (*Workspace, error) {
	if !filepath.IsAbs(opt.Dir) || opt.Source == nil || opt.Branch == "" {
		return nil, errors.New("create workspace: needs a source, an absolute directory and a branch")
	}
	if opt.FS == nil {
		opt.FS = &disk.FS{}
	}
	if opt.Restore != nil {
		opt.Commit, opt.Base = opt.Restore.Base, ""
	} else if opt.Commit == "" {
		opt.Commit = opt.Source.Head
	}
	dir := filepath.Clean(opt.Dir)
	switch w, err := open(dir, opt.Box); {
	case err == nil && (w.meta.Restore != nil || opt.ID != "" && opt.ID != w.meta.ID):
		if err := errors.Join(w.Close(), w.Remove()); err != nil {
			return nil, err
		}
	case err == nil:
		w.adopt(opt)
		// What a killed one left half made goes as well.
		return w, errors.Join(w.unlock(), removeAll(w.scratchDir()), w.makeDirs())
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	tmp := tempName(dir)
	if err := removeAll(tmp); err != nil {
		return nil, fmt.Errorf("create workspace %s: %w", dir, err)
	}
	if err := opt.FS.MkdirAll(tmp); err != nil {
		return nil, fmt.Errorf("create workspace %s: %w", dir, err)
	}
	lock, err := takeLock(filepath.Join(tmp, lockName), shared) // goes along when tmp becomes dir
	if err != nil {
		return nil, fmt.Errorf("create workspace %s: %w", dir, err)
	}
	defer func() { _ = release(lock) }()
	if err := build(ctx, opt, tmp, dir); err != nil {
		_ = removeAll(tmp)
		promised, _ := filepath.Glob(filepath.Join(escapeGlob(opt.Source.GitDir), "objects/pack/*.promisor"))
		if exitCode(err) > 0 && len(promised) > 0 {
			return nil, i18n.E("workspace.partial_clone", opt.Source.Path)
		}
		return nil, fmt.Errorf("create workspace of %s: %w", opt.Source.Path, err)
	}
	if err := opt.FS.Rename(tmp, dir); err != nil {
		return nil, fmt.Errorf("create workspace %s: %w", dir, err)
	}
	w, err := open(dir, opt.Box)
	if err == nil {
		w.adopt(opt)
	}
	return w, err
}

// adopt takes what one run says and workspace.json does not.
func (w *Workspace) adopt(opt CreateOptions) {
	w.repo.hold, w.box.spec.Hold = opt.Hold, opt.Hold
	w.rest = opt.Rest
	if opt.Now != nil {
		w.now = opt.Now
	}
}

// suspendWriters makes what else may write to the tree stand suspendWriters until resume; the
// caller holds mu.
func (w *Workspace) suspendWriters(ctx context.Context) (resume func(), err error) {
	if w.rest == nil || w.resting {
		return func() {}, nil
	}
	end, err := w.rest(ctx)
	if err != nil {
		return nil, fmt.Errorf("let the tree rest: %w", err)
	}
	w.resting = true
	return func() { w.resting = false; end() }, nil
}

// Close lets the workspace be cleaned away. A process that ends does so too.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.box.close()
	for _, f := range w.held {
		err = errors.Join(err, release(f))
	}
	w.held = nil
	return err
}

// tempName is where a workspace is built and taken apart.
func tempName(dir string) string {
	return filepath.Join(filepath.Dir(dir), tempPrefix+filepath.Base(dir))
}

// build makes in tmp what will be at dir.
func build(ctx context.Context, opt CreateOptions, tmp, dir string) error {
	w := at(tmp, opt.Box)
	w.adopt(opt)
	defer func() { _ = w.box.close() }()
	bare := w.repo
	if err := cloneObjects(ctx, opt, bare.gitDir); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(w.Tree(), disk.DirMode), w.makeDirs()); err != nil {
		return err
	}
	ref := "refs/heads/" + opt.Branch
	if err := errors.Join(ownConfig(bare.gitDir), passOver(bare.gitDir)); err != nil {
		return err
	}
	if !isID(opt.Commit) {
		id, err := bare.git(ctx, "rev-parse", "--verify", opt.Commit+"^{commit}")
		if err != nil {
			return err
		}
		opt.Commit = line(id)
	}
	update := []string{"update-ref", ref, opt.Commit}
	if opt.Branch != opt.Source.Branch { // the clone has brought that one
		update = append(update, strings.Repeat("0", len(opt.Commit)))
	}
	if _, err := bare.run(ctx, call{args: update, write: true}); err != nil {
		return fmt.Errorf("branch %q: %w", opt.Branch, err)
	}
	if _, err := bare.run(ctx, call{args: []string{"symbolic-ref", "HEAD", ref}, write: true}); err != nil {
		return err
	}
	if err := w.checkOut(ctx, opt.Commit); err != nil {
		return err
	}
	if _, err := w.scratch().script(ctx, "update-index", aging, call{args: []string{strconv.FormatInt(time.Now().Unix()-2, 10)}, cfg: []string{"core.fsync=none"}}); err != nil {
		return err
	}
	if err := w.takeIndex(); err != nil {
		return err
	}
	// For people and models who run git in the tree; ours never reads it.
	dotGit := "gitdir: " + filepath.Join(dir, "git") + "\n"
	if err := os.WriteFile(filepath.Join(w.Tree(), ".git"), []byte(dotGit), disk.FileMode); err != nil {
		return err
	}
	m := meta{Format: format, Source: opt.Source.Path, Remote: opt.Source.remote, Base: cmp.Or(opt.Base, opt.Commit), Branch: opt.Branch, ID: opt.ID}
	if r := opt.Restore; r != nil {
		if err := fetchPack(ctx, tmp, r); err != nil {
			return err
		}
		if r.Onto != "" {
			if _, err := w.fetch(ctx, opt.Source, r.Branch, ontoRef); err != nil {
				return err
			}
			if _, err := bare.run(ctx, call{args: []string{"update-ref", ontoRef, r.Onto}, write: true}); err != nil {
				return err
			}
		}
		m.Restore = &r.Stored
	}
	return opt.FS.ReplaceJSON(filepath.Join(tmp, metaName), m, true)
}

// aging makes the files of a new tree older than the second in which the index of
// them is written. Else git takes none of that second for unchanged
// (git's racy-git.txt), and the first snapshot stores each of them anew.
const aging = `git ls-files -z | xargs -0 -r touch -c -h -d "@$1" -- && git update-index -q --refresh`

// isID reports the whole id of an object, as git prints it.
func isID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// ownConfig makes the configuration of a bare clone, which git has just written,
// that of a repository with a work tree. The remote goes: it names a path of the
// user's, and is nothing to push to. Of a setting that is given twice the last
// one counts (git-config(1)).
func ownConfig(gitDir string) error {
	path := filepath.Join(gitDir, "config")
	data, err := disk.Read(path, disk.MaxWhole)
	if err != nil {
		return err
	}
	kept, remote := []byte{}, false
	for l := range bytes.Lines(data) {
		if bytes.HasPrefix(l, []byte("[")) { // git indents all else, and escapes line ends in values
			remote = bytes.HasPrefix(l, []byte("[remote "))
		}
		if !remote {
			kept = append(kept, l...)
		}
	}
	kept = append(kept, "[core]\n\tbare = false\n\tlogAllRefUpdates = false\n"...)
	return os.WriteFile(path, kept, disk.FileMode)
}

// passOver makes git look over what a killed process leaves of a file that the
// tools were writing: it is no part of a change.
func passOver(gitDir string) error {
	dir := filepath.Join(gitDir, "info")
	if err := os.MkdirAll(dir, disk.DirMode); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "exclude"), []byte(".tori-write-*.tmp\n"), disk.FileMode)
}

// cloneObjects makes a git directory with the history of the source's HEAD. Of
// objects that the source borrows only those are copied that its refs lead to: who
// made it may not know more of the lender.
func cloneObjects(ctx context.Context, opt CreateOptions, gitDir string) error {
	args := []string{"clone", "--quiet", "--bare", "--single-branch", "--template=", uploadPack}
	if opt.Source.Branch != "" {
		args = append(args, "--branch="+opt.Source.Branch)
	}
	if len(opt.Source.lenders) > 0 {
		args = append(args, "--no-local")
	}
	common, remove, err := opt.Source.commonDir()
	if err != nil {
		return err
	}
	defer remove()
	_, err = runGit(ctx, "clone", call{
		args: append(args, "--", opt.Source.GitDir, gitDir), cfg: []string{"safe.directory=" + opt.Source.GitDir}, write: true, hold: opt.Hold,
		env: []string{commonVar + "=" + common},
	})
	return err
}

// Open opens a workspace that Create has finished. The error wraps
// fs.ErrNotExist where there is none. The caller closes it.
func Open(dir string, b Box) (*Workspace, error) {
	w, err := open(dir, b)
	if err == nil && w.meta.Restore != nil {
		return nil, errors.Join(fmt.Errorf("open workspace: it is not restored yet: %w", fs.ErrNotExist), w.Close())
	}
	return w, err
}

// open is Open of one that is not finished, too.
func open(dir string, b Box) (*Workspace, error) {
	dir = filepath.Clean(dir)
	data, err := disk.Read(filepath.Join(dir, metaName), disk.MaxWhole)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w := at(dir, b)
	if err := json.Unmarshal(data, &w.meta); err != nil {
		return nil, fmt.Errorf("open workspace: %s: %w", filepath.Join(dir, metaName), err)
	}
	if w.meta.Format > format {
		return nil, i18n.E("workspace.newer", dir, w.meta.Format)
	}
	if w.meta.Base == "" || w.meta.Branch == "" {
		return nil, fmt.Errorf("open workspace: %s names no base or branch", filepath.Join(dir, metaName))
	}
	lock, err := takeLock(filepath.Join(dir, lockName), shared) // Clean leaves it alone
	if errors.Is(err, errBusy) {                                // only Clean holds it alone, and that never gives back
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w.held = []*os.File{lock}
	if err := w.makeDirs(); err != nil { // an earlier version made none of them
		return nil, errors.Join(fmt.Errorf("open workspace: %w", err), w.Close())
	}
	return w, nil
}

// at is the workspace of a directory, before anything is read of it.
func at(dir string, b Box) *Workspace {
	w := &Workspace{dir: dir, now: time.Now, seed: maphash.MakeSeed(), few: fewFiles, repo: repo{gitDir: filepath.Join(dir, "git")}}
	w.box = newBox(b, w.repo, w.Tree(), w.stepsDir(), w.scratchDir())
	return w
}

// makeDirs makes the directories beside the tree that the sandbox writes to.
func (w *Workspace) makeDirs() error {
	for _, dir := range []string{w.stepsDir(), filepath.Join(w.scratchDir(), "objects")} {
		if err := (&disk.FS{}).MkdirAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// Tree is the work tree, the only part that commands may write.
func (w *Workspace) Tree() string { return filepath.Join(w.dir, "tree") }

// GitDir is the git directory, outside the tree.
func (w *Workspace) GitDir() string { return w.repo.gitDir }

// Base is the commit that the branch began at.
func (w *Workspace) Base() string { return w.meta.Base }

// Root opens the work tree for file access that cannot leave it through links
// or "..". The caller closes it.
func (w *Workspace) Root() (*os.Root, error) { return os.OpenRoot(w.Tree()) }

// unlocked is the error of a git that writes, which may have been ended at it: the
// next one must not find its locks. The caller holds mu.
func (w *Workspace) unlocked(err error) error {
	if err != nil {
		err = errors.Join(err, w.unlock())
	}
	return err
}

// unlock removes the lock files of a git that was killed. The caller owns the task, so no other git of ours can be running.
func (w *Workspace) unlock() error {
	root, err := os.OpenRoot(w.dir) // the sandbox may have put links on the way
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	defer func() { _ = root.Close() }()
	locks := []string{
		"git/index.lock", "git/HEAD.lock", "git/config.lock", "git/packed-refs.lock",
		"git/refs/heads/" + w.meta.Branch + ".lock", "steps/index.lock", "steps/packed-refs.lock", "scratch/index.lock",
	}
	refs, err := fs.Glob(root.FS(), "steps/"+snapshotRefs+"*.lock")
	for _, name := range append(locks, refs...) {
		if rerr := root.Remove(name); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("open workspace: %w", rerr))
		}
	}
	return err
}

// Remove deletes the workspace. It is renamed first, so that one half removed
// is never taken for a finished one. A missing one is no error.
func (w *Workspace) Remove() error {
	tmp := tempName(w.dir)
	if err := removeAll(tmp); err != nil {
		return fmt.Errorf("remove workspace: %w", err)
	}
	if err := os.Rename(w.dir, tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove workspace: %w", err)
	}
	if err := removeAll(tmp); err != nil {
		return fmt.Errorf("remove workspace: %w", err)
	}
	return nil
}

// Missing is what a clone leaves out on purpose: submodules and LFS files would
// need the network, and programs and addresses that the repository names.
type Missing struct {
	Submodules []string // paths as people may read them
	LFS        int      // files whose contents are elsewhere
}

// Missing looks for what is left out of the tree.
func (w *Workspace) Missing(ctx context.Context) (m Missing, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.readLinks(ctx); err != nil {
		return m, err
	}
	for _, l := range slices.Sorted(maps.Keys(w.links)) {
		m.Submodules = append(m.Submodules, readable(l))
	}
	err = records(ctx, w.onTree(), call{args: []string{"ls-files", "-z", "--", ":(top,attr:filter=lfs)"}}, func([]byte) error {
		m.LFS++
		return nil
	})
	return m, err
}
