package workspace

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// StatusText is what a model reads of the state of the tree: a line per file, "" for none.
// It is about everything since Base, as the diff is, and tells of repositories
// inside the tree, whose files no commit will hold.
func (w *Workspace) StatusText(ctx context.Context) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, changes, err := w.snapshot(ctx)
	if err != nil {
		return "", err
	}
	left, err := w.notHeld(ctx)
	if err != nil {
		return "", err
	}
	return ShortText(append(left, changes...)), nil
}

// notHeld lists what no commit will hold: the repositories inside the tree, what
// git refuses, and changed files that are too large. The caller holds mu.
func (w *Workspace) notHeld(ctx context.Context) ([]Change, error) {
	l, err := w.look(ctx)
	if err != nil {
		return nil, err
	}
	var all []Change
	for _, p := range l.nested {
		all = append(all, Change{Path: p, Kind: Nested})
	}
	for _, p := range l.refused {
		all = append(all, Change{Path: p, Kind: NotTaken})
	}
	large, err := w.changedAmong(ctx, l.large)
	for _, p := range large {
		all = append(all, Change{Path: p, Kind: Large})
	}
	return all, err
}

// findChanged lists those of the paths that differ from the index, by their state
// on the disk alone, or that are new and not ignored.
const findChanged = `git diff-files --name-only -z -- "$@" && exec git ls-files --others --exclude-standard -z -- "$@"
`

// changedAmong are those of the first maxShown paths that are not as git has them.
func (w *Workspace) changedAmong(ctx context.Context, paths []string) (changed []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	var args []string
	for _, p := range paths[:min(len(paths), maxShown)] {
		args = append(args, literal(p))
	}
	err = records(ctx, scripted{w.onTree(), "diff-files", findChanged}, call{args: args}, func(rec []byte) error {
		changed = append(changed, string(rec))
		return nil
	})
	return changed, err
}

// DiffText is Diff in the form that the tool git asks for.
func (w *Workspace) DiffText(ctx context.Context, path string, stat bool, maxBytes int) (string, error) {
	return w.Diff(ctx, DiffOptions{Path: path, Stat: stat, MaxBytes: maxBytes})
}

// resetTree makes the tree what the branch's last commit says: changed files are
// put back, and files that are neither tracked nor ignored are removed, with
// nested repositories that git does not know; with ignored, what is ignored as well.
func (w *Workspace) resetTree(ctx context.Context, ignored bool) error {
	flags := []string{"-d", "--force", "--force", "--quiet", "--exclude=/.git"}
	if ignored {
		flags = append(flags, "-x")
	}
	id, err := w.Head(ctx)
	if err == nil {
		err = w.checkOut(ctx, id, flags...)
	}
	if err != nil {
		return fmt.Errorf("restore work tree: %w", err)
	}
	return w.dotGit()
}

// checkingOut makes index and tree those of $1, and removes what git does not
// know where it is told how.
const checkingOut = `git read-tree --reset -u "$1" || exit
shift
[ $# = 0 ] || exec git clean "$@"
`

// unlocking gives back what a command took of our rights to directories. What
// cannot be given git complains of.
const unlocking = `find "$GIT_WORK_TREE" -type d ! -perm -700 -exec chmod u+rwx {} \;
`

// lay makes index and tree what a commit or tree has, again where a command took our
// rights. With flags of git clean, what is not in it goes.
func (t tree) lay(ctx context.Context, id string, clean ...string) (err error) {
	for _, before := range []string{"", unlocking} {
		_, err = t.script(ctx, "read-tree", before+checkingOut, call{args: append([]string{id}, clean...), cfg: []string{"core.fsync=none"}})
		if exitCode(err) <= 0 {
			break
		}
	}
	return err
}

// checkOut makes the tree, and the branch's index, what a commit or tree has.
// With flags of git clean, what is not in it goes.
func (w *Workspace) checkOut(ctx context.Context, id string, clean ...string) error {
	resume, err := w.suspendWriters(ctx)
	if err != nil {
		return err
	}
	defer resume()
	if err := w.lendIndex(); err != nil {
		return err
	}
	if err := w.scratch().lay(ctx, id, clean...); err != nil {
		return w.unlocked(err)
	}
	return w.takeIndex()
}

// Paths are the paths of changes as people may read them, in their order: what
// is not printable is shown escaped.
func Paths(changes []Change) []string {
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = readable(c.Path)
	}
	return paths
}

// readable is a path, escaped where it holds what is not printable.
func readable(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }) {
		return strconv.Quote(path)
	}
	return path
}
