package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Snapshot is the tree as it was after a step: a commit without parents at
// refs/tori/snapshots/{ID} of {dir}/steps, a git directory beside the task's
// that borrows its objects. So a command in the tree sees none of them and a
// push sends none, and its own attributes take files byte for byte, whatever
// the tree's .gitattributes say of line ends and encodings.
type Snapshot struct {
	ID    string // a decimal number, rising
	Label string // what the step was: one line
	Time  time.Time
	Tree  string // id of the git tree
}

const (
	snapshotRefs = "refs/tori/snapshots/"
	// maxSnapshots is how many are kept; the oldest make room.
	maxSnapshots = 200
	maxLabel     = 200 // bytes
	// MinFree is the room that a snapshot leaves on the disk, in bytes: a
	// build's output must not take the ledger's.
	MinFree = 1 << 30
)

// ErrNoRoom is returned where the disk is too full for another snapshot, or those of
// the run take what its commands may write.
var ErrNoRoom = errors.New("too little room on the disk for a snapshot")

// Snapshot records the tree under a label, or returns the last snapshot where
// nothing has changed since. Ignored files and repositories inside the tree are
// no part of it; a file that once was stays one when it is ignored later. It
// costs a look at every file's state and a copy of those that changed.
func (w *Workspace) Snapshot(ctx context.Context, label string) (Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.take(ctx, label)
}

func (w *Workspace) take(ctx context.Context, label string) (Snapshot, error) {
	if err := w.readSnapshots(ctx); err != nil {
		return Snapshot{}, err
	}
	resume, err := w.suspendWriters(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	defer resume()
	// Taken before git looks: what changes meanwhile differs from it next time.
	l, err := w.look(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	last := Snapshot{Tree: w.meta.Base}
	if k := len(w.steps); k > 0 {
		last = w.steps[k-1]
		if only, known := l.changed(w.indexed.look, w.links); known && len(only) == 0 && w.indexed.tree == last.Tree {
			return last, nil
		}
	}
	n, _ := strconv.Atoi(last.ID)
	s := Snapshot{ID: strconv.Itoa(n + 1), Label: oneLine(label), Time: w.now().UTC().Truncate(time.Second)}
	// One transaction: the new one in, the ones that make room out.
	var drop strings.Builder
	old := max(0, len(w.steps)+1-maxSnapshots)
	for _, o := range w.steps[:old] {
		fmt.Fprintf(&drop, "delete %s%s\n", snapshotRefs, o.ID)
	}
	s.Tree, _, err = w.stageStep(ctx, l, call{args: []string{last.Tree, s.Label, snapshotRefs + s.ID, drop.String()}, env: ofStep(s.Time)})
	if err != nil {
		w.steps = nil // it may have been made all the same
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	if last.Tree == s.Tree {
		return last, nil
	}
	w.steps = append(slices.Clone(w.steps[old:]), s)
	return s, nil
}

// ofStep are the variables of a commit that is a snapshot.
func ofStep(at time.Time) []string {
	when := strconv.FormatInt(at.Unix(), 10) + " +0000"
	return []string{
		"GIT_AUTHOR_NAME=tori", "GIT_AUTHOR_EMAIL=tori@localhost", "GIT_AUTHOR_DATE=" + when,
		"GIT_COMMITTER_NAME=tori", "GIT_COMMITTER_EMAIL=tori@localhost", "GIT_COMMITTER_DATE=" + when,
	}
}

// stepsCfg are settings of a git that writes snapshots. The index itself need
// not last; what is lost of it is read again.
func stepsCfg() []string { return []string{"core.fsync=all,-index", "core.fsyncMethod=batch"} }

// current stages the tree in the index of the snapshots. That one is kept, so
// that a file is read again only where its state on the disk differs. It tells
// what differs from another tree.
func (w *Workspace) current(ctx context.Context, other string) ([]Change, error) {
	resume, err := w.suspendWriters(ctx)
	if err != nil {
		return nil, err
	}
	defer resume()
	l, err := w.look(ctx)
	if err != nil {
		return nil, err
	}
	_, changes, err := w.stageStep(ctx, l, call{args: []string{other}})
	return changes, err
}

// indexed is what the index of the snapshots holds.
type indexed struct {
	look look   // at the tree, before git read it
	tree string // id of the git tree
}

// stageStep is stage with the index of the snapshots.
func (w *Workspace) stageStep(ctx context.Context, l look, c call) (id string, changes []Change, err error) {
	free, err := disk.Free(w.dir)
	if err != nil {
		return "", nil, err
	}
	if free < MinFree {
		return "", nil, ErrNoRoom
	}
	if w.full(ctx, w.stepsDir()) {
		return "", nil, fmt.Errorf("%w: the limit of what a run may store is %d MiB", ErrNoRoom, w.box.stored>>20)
	}
	if err := w.readSnapshots(ctx); err != nil { // which makes their git directory
		return "", nil, err
	}
	c.cfg = stepsCfg()
	only, known := l.changed(w.indexed.look, w.links)
	known = known && l.paths >= w.few
	w.indexed = indexed{}
	if known {
		id, changes, err = w.stage(ctx, w.onSteps(), l, slices.Concat([]string{}, only), c)
	}
	if !known || exitCode(err) > 0 && ctx.Err() == nil { // what was a file may be a directory by now
		id, changes, err = w.stage(ctx, w.onSteps(), l, nil, c)
	}
	if err == nil {
		w.indexed = indexed{l, id}
	}
	return id, changes, err
}

// full reports whether a directory of git's takes all that it may.
func (w *Workspace) full(ctx context.Context, dir string) bool {
	l, _ := measure(ctx, dir, math.MaxInt)
	return l.bytes >= w.box.stored
}

func (w *Workspace) stepsDir() string { return filepath.Join(w.dir, "steps") }

// onSteps is git on the work tree with the git directory of the snapshots, which
// only the sandbox reads and writes.
func (w *Workspace) onSteps() tree {
	return tree{box: w.box, gitDir: w.stepsDir(), workTree: w.Tree()}
}

// verbatim are attributes that win over every other: nothing is converted.
const verbatim = "* -text !eol -ident !filter !working-tree-encoding\n"

// beginning makes the git directory of the snapshots in $1, from that of the task,
// $2, with objects of kind $3, attributes $4 and alternates $5. HEAD is there last.
// Unless attributes of the base may have made files differ from what git stores of
// them, the index knows the files as they are: none needs to be read.
const beginning = `unset GIT_DIR GIT_WORK_TREE
set -e
cd "$1"
rm -rf -- ./*
git init --quiet --bare --template= --object-format="$3" new
cd new
printf '[core]\n\tbare = false\n\tlogAllRefUpdates = false\n' >>config
mkdir -p info objects/info
printf %s "$4" >info/attributes
printf '%s\n' "$5" >objects/info/alternates
ln -s "$2/info/exclude" info/exclude
s=0
git --git-dir="$2" grep --quiet --cached -E -e 'eol=crlf|ident|working-tree-encoding' -- ':(top,glob)**/.gitattributes' || s=$?
[ $s != 1 ] || cp -p "$2/index" index
cd ..
mv new/HEAD new.HEAD
mv new/* .
rmdir new
mv new.HEAD HEAD
`

// makeSteps makes the git directory of the snapshots.
func (w *Workspace) makeSteps(ctx context.Context) error {
	kind := "sha1"
	if len(w.meta.Base) > 40 {
		kind = "sha256"
	}
	_, err := w.onSteps().script(ctx, "init", beginning, call{args: []string{
		w.stepsDir(), w.repo.gitDir, kind, verbatim, quotePath(filepath.Join(w.repo.gitDir, "objects")),
	}})
	return err
}

// oneLine makes a label that git keeps as it is.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", " ")), " ")
	if len(s) > maxLabel {
		n := maxLabel
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = strings.TrimSpace(s[:n])
	}
	if s == "" {
		return "snapshot"
	}
	return s
}

// Snapshots lists the snapshots that are kept, oldest first.
func (w *Workspace) Snapshots(ctx context.Context) ([]Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.readSnapshots(ctx)
	return slices.Clone(w.steps), err
}

func (w *Workspace) readSnapshots(ctx context.Context) error {
	if w.steps != nil {
		return nil
	}
	all := []Snapshot{}
	var fields []string
	if !exists(filepath.Join(w.stepsDir(), "HEAD")) {
		if err := w.makeSteps(ctx); err != nil {
			return fmt.Errorf("read snapshots: %w", err)
		}
		w.steps = all // there are none yet
		return nil
	}
	err := records(ctx, w.onSteps(), call{args: []string{"for-each-ref", "--sort=version:refname",
		"--format=%(refname:lstrip=3)%00%(committerdate:unix)%00%(tree)%00%(contents:subject)%00", snapshotRefs}}, func(rec []byte) error {
		if fields = append(fields, string(rec)); len(fields) < 4 {
			return nil
		}
		sec, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return fmt.Errorf("snapshot %s: time %q", fields[0], fields[1])
		}
		all = append(all, Snapshot{ID: strings.TrimPrefix(fields[0], "\n"), Time: time.Unix(sec, 0).UTC(), Tree: fields[2], Label: fields[3]})
		fields = fields[:0]
		return nil
	})
	if err != nil {
		return fmt.Errorf("read snapshots: %w", err)
	}
	w.steps = all
	return nil
}

// treeOf returns the git tree of a snapshot.
func (w *Workspace) treeOf(ctx context.Context, id string) (string, error) {
	if err := w.readSnapshots(ctx); err != nil {
		return "", err
	}
	for _, s := range w.steps {
		if s.ID == id {
			return s.Tree, nil
		}
	}
	return "", i18n.E("workspace.no_snapshot", id)
}

// Changes lists what the tree differs in from a snapshot.
func (w *Workspace) Changes(ctx context.Context, id string) ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, err := w.treeOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return w.current(ctx, was)
}

// RestoreTo takes the tree back to a snapshot. Files that differ are written,
// those the snapshot does not have are removed, ignored ones stay. What was
// there before becomes a snapshot itself, which is returned: a restore can be
// taken back. Where the tree then is not the snapshot's, the error says so.
func (w *Workspace) RestoreTo(ctx context.Context, id string) (before Snapshot, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, err := w.treeOf(ctx, id)
	if err != nil {
		return before, err
	}
	resume, err := w.suspendWriters(ctx)
	if err != nil {
		return before, err
	}
	defer resume()
	if before, err = w.take(ctx, "before the restore of "+id); err != nil {
		return before, err
	}
	w.indexed = indexed{}
	_, runErr := w.onSteps().run(ctx, call{args: []string{"read-tree", "--reset", "-u", tree}, cfg: stepsCfg()})
	runErr = w.unlocked(runErr)
	if ctx.Err() != nil {
		return before, ctx.Err()
	}
	if err := w.dotGit(); err != nil {
		return before, fmt.Errorf("restore snapshot %s: %w", id, err)
	}
	left, err := w.current(ctx, tree)
	if err != nil {
		return before, errors.Join(runErr, fmt.Errorf("restore snapshot %s: %w", id, err))
	}
	if len(left) > 0 {
		return before, errors.Join(i18n.E("workspace.not_restored", id, len(left), fileList(Paths(left))), runErr)
	}
	return before, nil
}

// dotGit puts back the .git file, for people and models who run git in the tree.
// One that says so already stays the same file, for a sandbox may have it mounted.
func (w *Workspace) dotGit() error {
	root, err := w.Root()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	want := []byte("gitdir: " + w.repo.gitDir + "\n")
	switch st, err := root.Lstat(".git"); {
	case err != nil:
	case st.IsDir():
		if err := removeAll(filepath.Join(w.Tree(), ".git")); err != nil { // somebody's repository over ours
			return err
		}
	case st.Mode().IsRegular() && st.Size() == int64(len(want)):
		f, err := root.OpenFile(".git", os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			break
		}
		is, err := io.ReadAll(io.LimitReader(f, st.Size()+1))
		if err = errors.Join(err, f.Close()); err == nil && bytes.Equal(is, want) {
			return nil
		}
	}
	return (&disk.FS{}).Replace(filepath.Join(w.Tree(), ".git"), want, false)
}
