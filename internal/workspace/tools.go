package workspace

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// StatusText is what a model reads of Status: a line per file, "" for none.
// It is about everything since Base, as the diff is, and tells of repositories
// inside the tree, whose files no commit will hold.
func (w *Workspace) StatusText(ctx context.Context) (string, error) {
	changes, err := w.ChangedFiles(ctx)
	if err != nil {
		return "", err
	}
	inside, err := w.Nested(ctx)
	if err != nil {
		return "", err
	}
	return ShortText(append(inside, changes...)), nil
}

// Nested lists the repositories inside the tree, whose files no commit will hold.
func (w *Workspace) Nested(ctx context.Context) ([]Change, error) {
	paths, err := w.nested(ctx)
	all := make([]Change, len(paths))
	for i, p := range paths {
		all[i] = Change{Path: p, Kind: Nested}
	}
	return all, err
}

// DiffText is Diff in the form that the git_diff tool asks for.
func (w *Workspace) DiffText(ctx context.Context, path string, stat bool, maxBytes int) (string, error) {
	return w.Diff(ctx, DiffOptions{Path: path, Stat: stat, MaxBytes: maxBytes})
}

// Restore makes the tree what the branch's last commit says: changed files are
// put back, and files that are neither tracked nor ignored are removed. It
// clears away what checks leave behind. Nested repositories that git does not
// know are removed too.
func (w *Workspace) Restore(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.resetTree(ctx, false)
}

// resetTree is Restore; with ignored, what is ignored is removed as well.
func (w *Workspace) resetTree(ctx context.Context, ignored bool) error {
	clean := []string{"clean", "-d", "--force", "--force", "--quiet", "--exclude=/.git"}
	if ignored {
		clean = append(clean, "-x")
	}
	for _, args := range [][]string{{"reset", "--hard", "--quiet", "refs/heads/" + w.meta.Branch}, clean} {
		_, err := w.repo.run(ctx, call{args: args, write: true})
		if exitCode(err) > 0 { // a command may have taken our write permission from a directory
			unlockDirs(w.repo.workTree)
			_, err = w.repo.run(ctx, call{args: args, write: true})
		}
		if err != nil {
			return fmt.Errorf("restore work tree: %w", err)
		}
	}
	return w.dotGit()
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
