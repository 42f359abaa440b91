package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	// minFree is the room that a snapshot leaves on the disk, in bytes: a
	// build's output must not take the ledger's.
	minFree = 1 << 30
)

// ErrNoRoom is returned where the disk is too full for another snapshot.
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

func (w *Workspace) take(ctx context.Context, label string) (_ Snapshot, err error) {
	if err := w.readSnapshots(ctx); err != nil {
		return Snapshot{}, err
	}
	// Taken before git looks: what changes meanwhile differs from it next time.
	seen := w.seen.print(w.Tree(), time.Now())
	if k := len(w.steps); k > 0 && w.seen.ok && seen.ok && seen.sum == w.seen.sum {
		return w.steps[k-1], nil
	}
	tree, err := w.current(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	defer func() {
		if err == nil {
			w.seen = seen
		}
	}()
	n := 1
	if k := len(w.steps); k > 0 {
		last := w.steps[k-1]
		if last.Tree == tree {
			return last, nil
		}
		n, _ = strconv.Atoi(last.ID)
		n++
	}
	s := Snapshot{ID: strconv.Itoa(n), Label: oneLine(label), Time: w.now().UTC().Truncate(time.Second), Tree: tree}
	when := strconv.FormatInt(s.Time.Unix(), 10) + " +0000"
	out, err := w.stepsRepo().run(ctx, call{args: []string{"commit-tree", tree, "-F", "-"}, stdin: []byte(s.Label + "\n"), write: true, env: []string{
		"GIT_AUTHOR_NAME=tori", "GIT_AUTHOR_EMAIL=tori@localhost", "GIT_AUTHOR_DATE=" + when,
		"GIT_COMMITTER_NAME=tori", "GIT_COMMITTER_EMAIL=tori@localhost", "GIT_COMMITTER_DATE=" + when,
	}})
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	// One transaction: the new one in, the ones that make room out.
	var refs strings.Builder
	fmt.Fprintf(&refs, "create %s%s %s\n", snapshotRefs, s.ID, line(out))
	old := max(0, len(w.steps)+1-maxSnapshots)
	for _, o := range w.steps[:old] {
		fmt.Fprintf(&refs, "delete %s%s\n", snapshotRefs, o.ID)
	}
	if _, err := w.stepsRepo().run(ctx, call{args: []string{"update-ref", "--stdin"}, stdin: []byte(refs.String()), write: true}); err != nil {
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	w.steps = append(slices.Clone(w.steps[old:]), s)
	return s, nil
}

// current stages the tree in the index of the snapshots. That one is kept, so
// that a file is read again only where its state on the disk differs.
func (w *Workspace) current(ctx context.Context) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(w.dir, &st); err != nil {
		return "", err
	}
	if st.Bavail*uint64(st.Bsize) < minFree { //nolint:unconvert // its type differs between machines
		return "", ErrNoRoom
	}
	if err := w.openSteps(ctx); err != nil {
		return "", err
	}
	// The index itself need not last; what is lost of it is read again.
	return w.stage(ctx, w.stepsRepo(), nil, "core.fsync=all,-index", "core.fsyncMethod=batch")
}

func (w *Workspace) stepsRepo() repo {
	return repo{gitDir: filepath.Join(w.dir, "steps"), workTree: w.repo.workTree, hold: w.repo.hold}
}

// verbatim are attributes that win over every other: nothing is converted.
const verbatim = "* -text !eol -ident !filter !working-tree-encoding\n"

// openSteps makes the git directory of the snapshots where there is none.
func (w *Workspace) openSteps(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(w.dir, "steps")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return w.makeSteps(ctx)
}

func (w *Workspace) makeSteps(ctx context.Context) error {
	dir := filepath.Join(w.dir, "steps")
	tmp := dir + ".new"
	if err := removeAll(tmp); err != nil {
		return err
	}
	kind := "sha1"
	if len(w.meta.Base) > 40 {
		kind = "sha256"
	}
	r := repo{gitDir: tmp, hold: w.repo.hold}
	if _, err := r.run(ctx, call{args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=" + kind}, write: true}); err != nil {
		return err
	}
	if err := ownConfig(tmp); err != nil {
		return err
	}
	for _, d := range []string{"info", "objects/info"} {
		if err := os.MkdirAll(filepath.Join(tmp, d), disk.DirMode); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"info/attributes": verbatim, "objects/info/alternates": quotePath(filepath.Join(w.repo.gitDir, "objects")) + "\n"} {
		if err := os.WriteFile(filepath.Join(tmp, name), []byte(text), disk.FileMode); err != nil {
			return err
		}
	}
	if err := os.Symlink(filepath.Join(w.repo.gitDir, "info/exclude"), filepath.Join(tmp, "info/exclude")); err != nil {
		return err
	}
	converts, err := w.converts(ctx)
	if err != nil {
		return err
	}
	if !converts { // the index knows the files as they are: none needs to be read
		if err := copyFile(filepath.Join(w.repo.gitDir, "index"), filepath.Join(tmp, "index")); err != nil {
			return err
		}
	}
	return os.Rename(tmp, dir)
}

// converts reports whether attributes of the base may have made files in the
// tree differ from what git stores of them.
func (w *Workspace) converts(ctx context.Context) (bool, error) {
	_, err := w.repo.git(ctx, "grep", "--quiet", "--cached", "-E", "-e", "eol=crlf|ident|working-tree-encoding", "--", ":(top,glob)**/.gitattributes")
	if exitCode(err) == 1 {
		return false, nil
	}
	return true, err
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
	if _, err := os.Stat(filepath.Join(w.dir, "steps")); errors.Is(err, fs.ErrNotExist) {
		if err := w.makeSteps(ctx); err != nil {
			return fmt.Errorf("read snapshots: %w", err)
		}
		w.steps = all // there are none yet
		return nil
	}
	err := w.stepsRepo().records(ctx, call{args: []string{"for-each-ref", "--sort=version:refname",
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

// ends finds the two trees of a diff, and how the repository is called in which
// both are. The tree as it is, beside a snapshot, is what a snapshot now would
// hold.
func (w *Workspace) ends(ctx context.Context, from, to string) (r repo, env []string, a, b string, err error) {
	if from == "" && to == "" {
		b, err = w.snapshot(ctx, false)
		return w.repo, w.scratch(), w.meta.Base + "^{tree}", b, err
	}
	r, a = w.stepsRepo(), w.meta.Base+"^{tree}"
	if from != "" {
		a, err = w.treeOf(ctx, from)
	}
	if err == nil && to != "" {
		b, err = w.treeOf(ctx, to)
	} else if err == nil {
		b, err = w.current(ctx)
	}
	return r, nil, a, b, err
}

// Changes lists what differs between two snapshots, "" being Base for the first
// and the tree as it is for the second.
func (w *Workspace) Changes(ctx context.Context, from, to string) ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, env, a, b, err := w.ends(ctx, from, to)
	if err != nil {
		return nil, err
	}
	return nameStatus(ctx, r, env, a, b)
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
	if before, err = w.take(ctx, "before the restore of "+id); err != nil {
		return before, err
	}
	_, runErr := w.stepsRepo().run(ctx, call{args: []string{"read-tree", "--reset", "-u", tree}, write: true})
	if ctx.Err() != nil {
		return before, ctx.Err()
	}
	if err := w.dotGit(); err != nil {
		return before, fmt.Errorf("restore snapshot %s: %w", id, err)
	}
	now, err := w.current(ctx)
	if err != nil {
		return before, errors.Join(runErr, fmt.Errorf("restore snapshot %s: %w", id, err))
	}
	if now != tree {
		left, err := nameStatus(ctx, w.stepsRepo(), nil, tree, now)
		if err != nil {
			return before, err
		}
		return before, errors.Join(i18n.E("workspace.not_restored", id, len(left), fileList(Paths(left))), runErr)
	}
	return before, nil
}

// dotGit puts back the .git file, for people and models who run git in the tree.
func (w *Workspace) dotGit() error {
	path := filepath.Join(w.repo.workTree, ".git")
	if st, err := os.Lstat(path); err == nil && st.IsDir() {
		if err := removeAll(path); err != nil { // somebody's repository over ours
			return err
		}
	}
	return (&disk.FS{}).Replace(path, []byte("gitdir: "+w.repo.gitDir+"\n"), false)
}
