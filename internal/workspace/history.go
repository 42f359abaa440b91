package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// LogText is what a model reads of the history: the n latest commits that
// revision leads to and that change path, "" for all, newest first, a line each
// or, with patch, whole and with their changes. It is "" where there are none,
// and about maxBytes long at most; what is left out is said. revision is a
// name of a commit as gitrevisions(7) has it, "" for the branch.
func (w *Workspace) LogText(ctx context.Context, revision, path string, n int, patch bool, maxBytes int) (string, error) {
	args := []string{"log", "--max-count=" + strconv.Itoa(n), "--date=short", "--no-color", "--no-decorate", "--no-notes", "--no-mailmap"}
	if patch {
		args = append(args, "--format=commit %h %ad %an%n%n%w(0,4,4)%B", "--patch", "--stat=100", "--no-textconv", "--no-ext-diff", "--no-renames")
	} else {
		args = append(args, "--format=%h %ad %an: %s")
	}
	if revision == "" {
		revision = "HEAD"
	}
	args = append(args, "--end-of-options", revision, "--")
	if path != "" {
		args = append(args, literal(filepath.Clean(path)))
	}
	return w.first(ctx, args, maxBytes)
}

// BlameText is what a model reads of where lines from to to of a file come
// from: commit, author, day and number before each. It is about maxBytes long
// at most; what is left out is said.
func (w *Workspace) BlameText(ctx context.Context, path string, from, to, maxBytes int) (string, error) {
	args := []string{"blame", "--date=short", "--abbrev=8", "--no-progress", "-L", fmt.Sprintf("%d,%d", from, to), "--", filepath.ToSlash(filepath.Clean(path))}
	return w.first(ctx, args, maxBytes)
}

// FileText is the file at path as a commit has it, about maxBytes at most; what
// is left out is said.
func (w *Workspace) FileText(ctx context.Context, revision, path string, maxBytes int) (string, error) {
	return w.first(ctx, []string{"cat-file", "blob", revision + ":" + filepath.ToSlash(filepath.Clean(path))}, maxBytes)
}

// first runs git and returns the beginning of its output, ended at a line. Git
// is stopped once there is more.
func (w *Workspace) first(ctx context.Context, args []string, maxBytes int) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	resume, err := w.suspendWriters(ctx)
	if err != nil {
		return "", err
	}
	defer resume()
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &cutoff{max: maxBytes, stop: cancel}
	_, err = w.onTree().run(limited, call{args: args, out: out})
	if err != nil && (ctx.Err() != nil || !out.over) {
		return "", gitComplaint(err)
	}
	text := string(out.b)
	if out.over {
		text = text[:strings.LastIndexByte(text, '\n')+1] + "[cut here; ask for less]\n"
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// gitComplaint is what git itself said, without its prefix.
func gitComplaint(err error) error {
	var e *gitError
	if errors.As(err, &e) && e.stderr != "" {
		return errors.New(strings.TrimPrefix(e.stderr, "fatal: "))
	}
	return err
}

// cutoff keeps the first max bytes, and stops whoever writes once there are more.
type cutoff struct {
	b    []byte
	max  int
	stop func()
	over bool
}

func (c *cutoff) Write(p []byte) (int, error) {
	n := min(len(p), c.max-len(c.b))
	c.b = append(c.b, p[:n]...)
	if n < len(p) {
		c.over = true
		c.stop()
	}
	return len(p), nil
}
