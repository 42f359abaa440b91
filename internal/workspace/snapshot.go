package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/disk"
)

// nested finds the git repositories inside the tree. Their configuration was
// written by whoever made them, and git enters a repository that it stages
// (for its status), so they are kept out of its sight.
func (w *Workspace) nested(ctx context.Context) ([]string, error) {
	var all []string
	err := filepath.WalkDir(w.repo.workTree, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil // unreadable: git add says so if it matters
		}
		if d.Name() != ".git" || path == filepath.Join(w.repo.workTree, ".git") {
			if d.IsDir() && path == filepath.Join(w.repo.workTree, ".git") {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(w.repo.workTree, filepath.Dir(path))
		if err != nil {
			return err
		}
		all = append(all, rel)
		return fs.SkipDir // the rest of that repository as well
	})
	if err != nil {
		return nil, fmt.Errorf("look for nested repositories: %w", err)
	}
	return all, nil
}

// readLinks fills in links; the caller holds mu.
func (w *Workspace) readLinks(ctx context.Context) (err error) {
	if w.links == nil {
		w.links, err = w.gitlinks(ctx)
	}
	return err
}

// gitlinks lists the submodules that the index knows; a model may have put a
// repository of its own making there. They are the base's: none is ever staged.
func (w *Workspace) gitlinks(ctx context.Context) ([]string, error) {
	all := []string{}
	err := w.repo.records(ctx, call{args: []string{"ls-files", "--stage", "-z"}}, func(rec []byte) error {
		if info, path, ok := bytes.Cut(rec, []byte("\t")); ok && bytes.HasPrefix(info, []byte("160000 ")) {
			all = append(all, string(path))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// scratch is the environment of objects that only a diff needs: they lie apart
// and are not synced, so that a power cut leaves none half written among those
// of the branch.
func (w *Workspace) scratch() []string {
	return []string{
		"GIT_OBJECT_DIRECTORY=" + filepath.Join(w.dir, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quotePath(filepath.Join(w.repo.gitDir, "objects")),
	}
}

// quotePath writes a path as lists of object directories take it, whatever it holds.
func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// snapshot stages the whole tree in a scratch index, which starts as a copy of
// the real one, and returns the id of the git tree. The real index stays, so
// that git diff in the tree keeps showing what was done. With durable, the
// objects are the branch's and synced; else they are in scratch. The caller
// holds mu.
func (w *Workspace) snapshot(ctx context.Context, durable bool) (tree string, err error) {
	index := filepath.Join(w.dir, "index")
	if err := copyFile(filepath.Join(w.repo.gitDir, "index"), index); err != nil {
		return "", fmt.Errorf("snapshot: %w", err)
	}
	if durable {
		return w.stage(ctx, w.repo, []string{"GIT_INDEX_FILE=" + index}, "core.fsync=all")
	}
	if err := os.MkdirAll(filepath.Join(w.dir, "objects"), disk.DirMode); err != nil {
		return "", fmt.Errorf("snapshot: %w", err)
	}
	return w.stage(ctx, w.repo, append(w.scratch(), "GIT_INDEX_FILE="+index), "core.fsync=none")
}

// stage brings an index of r up to what is in the tree, less repositories
// inside it and what is ignored, and returns the id of the git tree.
func (w *Workspace) stage(ctx context.Context, r repo, env []string, cfg ...string) (tree string, err error) {
	nested, err := w.nested(ctx)
	if err != nil {
		return "", err
	}
	if err := w.readLinks(ctx); err != nil {
		return "", err
	}
	if nested, err = untold(ctx, r, env, nested); err != nil {
		return "", err
	}
	specs := []string{":(top)"}
	for _, p := range slices.Concat(nested, w.links) {
		specs = append(specs, exclude(p))
	}
	if _, err := r.run(ctx, call{
		args: []string{"add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"}, cfg: cfg, env: env,
		stdin: []byte(strings.Join(specs, "\x00") + "\x00"), write: true,
	}); err != nil {
		return "", err
	}
	out, err := r.run(ctx, call{args: []string{"write-tree"}, cfg: cfg, env: env, write: true})
	return line(out), err
}

// copyFile copies an index with its modification time: git looks again at a
// file that was changed in the same instant as the index was written, and tells
// that by the index's time (git's racy-git.txt).
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) { // an empty repository has no index
			err = os.Remove(to)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		}
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	st, err := in.Stat()
	if err != nil {
		return err
	}
	return os.Chtimes(to, time.Time{}, st.ModTime())
}

// Status lists what differs from the branch's last commit, and repositories
// inside the tree, which no commit will hold.
func (w *Workspace) Status(ctx context.Context) ([]Change, error) {
	nested, err := w.nested(ctx)
	if err != nil {
		return nil, err
	}
	var p statusParser
	if err := w.repo.records(ctx, call{args: []string{"status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames"}}, p.record); err != nil {
		return nil, err
	}
	changes := slices.DeleteFunc(p.all, func(c Change) bool {
		return slices.Contains(nested, strings.TrimSuffix(c.Path, "/"))
	})
	for _, p := range nested {
		changes = append(changes, Change{Path: p, Kind: Nested})
	}
	return changes, nil
}

// ChangedFiles lists what the task has changed since Base: committed or not,
// tracked or not. A rename is a deletion and an addition.
func (w *Workspace) ChangedFiles(ctx context.Context) ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, err := w.snapshot(ctx, false)
	if err != nil {
		return nil, err
	}
	return nameStatus(ctx, w.repo, w.scratch(), w.meta.Base+"^{tree}", tree)
}

// CommittedFiles lists what a commit changes since Base, whatever has become of
// the tree since.
func (w *Workspace) CommittedFiles(ctx context.Context, commit string) ([]Change, error) {
	return nameStatus(ctx, w.repo, nil, w.meta.Base+"^{tree}", commit+"^{tree}")
}

// nameStatus lists what differs between two trees of r.
func nameStatus(ctx context.Context, r repo, env []string, a, b string) ([]Change, error) {
	var p nameStatusParser
	err := r.records(ctx, call{args: []string{"diff-tree", "-r", "-z", "--no-commit-id", "--name-status", "--no-renames", a, b}, env: env}, p.record)
	return p.all, err
}

// Patch writes the whole patch since Base, as git apply takes it, binary files
// and untracked ones included. It streams.
func (w *Workspace) Patch(ctx context.Context, to io.Writer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, err := w.snapshot(ctx, false)
	if err != nil {
		return err
	}
	_, err = w.repo.run(ctx, call{args: append(diffArgs(), "--binary", "--full-index", w.meta.Base, tree, "--"), env: w.scratch(), out: to})
	return err
}

// PatchText is Patch with every file as text, whatever it holds and whatever
// attributes say: for searching, not for applying.
func (w *Workspace) PatchText(ctx context.Context, to io.Writer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, err := w.snapshot(ctx, false)
	if err != nil {
		return err
	}
	_, err = w.repo.run(ctx, call{args: append(diffArgs(), "--text", "--unified=0", w.meta.Base, tree, "--"), env: w.scratch(), out: to})
	return err
}

// CommittedText is PatchText of what a commit holds, whatever has become of the
// tree since.
func (w *Workspace) CommittedText(ctx context.Context, commit string, to io.Writer) error {
	_, err := w.repo.run(ctx, call{args: append(diffArgs(), "--text", "--unified=0", w.meta.Base, commit, "--"), out: to})
	return err
}

// diffArgs is a git diff that runs no driver of anybody's.
func diffArgs() []string {
	return []string{
		"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=all",
		"--src-prefix=a/", "--dst-prefix=b/", "--no-relative",
	}
}

// DiffOptions choose what Diff shows.
type DiffOptions struct {
	From     string // id of a snapshot, "" for Base
	To       string // id of a snapshot, "" for the tree as it is
	Path     string // a file or directory below the top level, "" for all
	Stat     bool   // a summary of lines per file instead of the lines
	MaxBytes int    // of text, default 64 KiB; what is cut is said in one more line
}

const defaultDiffBytes = 64 << 10

// Diff shows what the task has changed since Base, or what changed between two
// snapshots, for a person or a model to read: valid UTF-8, binary files named
// only, cut at the end of a line.
func (w *Workspace) Diff(ctx context.Context, opt DiffOptions) (string, error) {
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = defaultDiffBytes
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r, env, from, to, err := w.ends(ctx, opt.From, opt.To)
	if err != nil {
		return "", err
	}
	args := diffArgs()
	if opt.Stat {
		args = append(args, "--stat=100")
	}
	args = append(args, from, to, "--")
	if opt.Path != "" {
		args = append(args, literal(filepath.Clean(opt.Path)))
	}
	head := &head{max: opt.MaxBytes}
	if _, err := r.run(ctx, call{args: args, env: env, out: head}); err != nil {
		return "", err
	}
	return head.text(), nil
}

// head keeps the first max bytes and counts all.
type head struct {
	b     []byte
	max   int
	total int64
}

func (h *head) Write(p []byte) (int, error) {
	h.total += int64(len(p))
	h.b = append(h.b, p[:min(len(p), h.max-len(h.b))]...)
	return len(p), nil
}

func (h *head) text() string {
	b := h.b
	if h.total > int64(len(b)) {
		if i := strings.LastIndexByte(string(b), '\n'); i >= 0 {
			b = b[:i+1]
		} else {
			for len(b) > 0 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]) {
				b = b[:len(b)-1]
			}
		}
		cut := fmt.Sprintf("[cut: %d of %d bytes shown; name a path to see less]\n", len(b), h.total)
		return strings.ToValidUTF8(string(b), "\uFFFD") + cut
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// Head returns the last commit of the task's branch.
func (w *Workspace) Head(ctx context.Context) (string, error) {
	out, err := w.repo.git(ctx, "rev-parse", "--verify", "refs/heads/"+w.meta.Branch+"^{commit}")
	return line(out), err
}
