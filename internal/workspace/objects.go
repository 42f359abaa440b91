package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Entry is a file as a commit has it.
type Entry struct {
	Mode string // one of the modes below
	ID   string // of the blob, or of a submodule's commit
	Path string // relative to the top level, with slashes; any bytes but NUL
}

// The modes of entries (gitformat-index(5)).
const (
	ModeFile      = "100644"
	ModeProgram   = "100755"
	ModeLink      = "120000"
	ModeSubmodule = "160000"
	modeDir       = "040000"
)

// Files calls each with every file of a commit, in git's order: what is below a
// directory comes in one piece. It reads git's objects and never the tree. commit
// is a whole id; an error of each ends it and is returned.
func (w *Workspace) Files(ctx context.Context, commit string, each func(Entry) error) error {
	if !isID(commit) {
		return fmt.Errorf("list files of %q: not a commit", commit)
	}
	err := records(ctx, w.repo, call{args: []string{"ls-tree", "-r", "-z", "--full-tree", commit}}, asEntries(each))
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("list files of %s: %w", commit, err)
	}
	return err
}

// Find returns the files among paths that a commit has, by path. A link on the
// way to a path is not followed.
func (w *Workspace) Find(ctx context.Context, commit string, paths []string) (map[string]Entry, error) {
	found := map[string]Entry{}
	if len(paths) == 0 {
		return found, nil
	}
	if !isID(commit) {
		return nil, fmt.Errorf("find files of %q: not a commit", commit)
	}
	args := []string{"ls-tree", "-z", "--full-tree", commit, "--"}
	for _, p := range paths {
		if p = filepath.Clean(p); p != "." && filepath.IsLocal(p) { // with a slash git lists what is below
			args = append(args, p)
		}
	}
	if len(args) == 5 {
		return found, nil
	}
	err := records(ctx, w.repo, call{args: args}, asEntries(func(e Entry) error {
		if e.Mode != modeDir && slices.Contains(args[5:], e.Path) {
			found[e.Path] = e
		}
		return nil
	}))
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("find files of %s: %w", commit, err)
	}
	return found, err
}

// asEntries reads records of git ls-tree -z: mode, type, id, tab, path.
func asEntries(each func(Entry) error) func([]byte) error {
	return func(rec []byte) error {
		head, path, ok := bytes.Cut(rec, []byte{'\t'})
		mode, rest, _ := bytes.Cut(head, []byte{' '})
		_, id, spaced := bytes.Cut(rest, []byte{' '})
		if !ok || !spaced || len(mode) != 6 || len(path) == 0 {
			return fmt.Errorf("git ls-tree: record %q", rec[:min(len(rec), 200)])
		}
		return each(Entry{Mode: modeName(mode), ID: string(id), Path: string(path)})
	}
}

// modeName is a mode as a constant, so that a hundred thousand of them take no
// memory; a mode of old git versions (100664) is that of a plain file.
func modeName(b []byte) string {
	switch string(b) {
	case ModeProgram:
		return ModeProgram
	case ModeLink:
		return ModeLink
	case ModeSubmodule:
		return ModeSubmodule
	case modeDir:
		return modeDir
	}
	return ModeFile
}

// Blob is the beginning of a file's content.
type Blob struct {
	Size int64  // of the whole
	Data []byte // at most as much as was asked for
}

// maxRead is the size, in bytes, above which nothing of a blob is read: git
// would have to unpack all of it.
const maxRead = 8 << 20

// Blobs reads the first most bytes of each blob, by id. Of one of more than 8
// MiB the size is told only, and what is not a blob of the repository is left out.
func (w *Workspace) Blobs(ctx context.Context, ids []string, most int64) (map[string]Blob, error) {
	return readBlobs(ctx, w.repo, ids, most)
}

// readBlobs is Blobs of r.
func readBlobs(ctx context.Context, r gitter, ids []string, most int64) (map[string]Blob, error) {
	sizes := map[string]Blob{}
	if err := batch(ctx, r, "--batch-check", ids, &batchReader{each: func(id string, b Blob) { sizes[id] = b }}); err != nil {
		return nil, err
	}
	small := make([]string, 0, len(ids))
	for _, id := range ids {
		if b, ok := sizes[id]; ok && b.Size <= maxRead {
			small = append(small, id)
		}
	}
	in := &batchReader{most: most, content: true, each: func(id string, b Blob) { sizes[id] = b }}
	return sizes, batch(ctx, r, "--batch", small, in)
}

// batch runs git cat-file on ids.
func batch(ctx context.Context, g gitter, flag string, ids []string, r *batchReader) error {
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		if !isID(id) {
			return fmt.Errorf("read objects: %q is no id", id)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.stop = cancel
	_, err := g.run(ctx, call{args: []string{"cat-file", flag}, stdin: []byte(strings.Join(ids, "\n") + "\n"), out: r})
	switch {
	case r.err != nil:
		return fmt.Errorf("read objects: %w", r.err)
	case err != nil:
		return fmt.Errorf("read objects: %w", err)
	case len(r.head) > 0 || r.left > 0:
		return errors.New("read objects: git's output ends in the middle")
	}
	return nil
}

// batchReader reads what git cat-file prints: a line of id, type and size, and
// with content that many bytes and a line end.
type batchReader struct {
	each    func(id string, b Blob)
	most    int64
	content bool
	stop    func()

	head []byte // of a line that is not whole yet
	id   string
	blob Blob
	keep bool  // it is a blob
	left int64 // bytes of the object that are still to come, with its line end
	err  error
}

// Write implements io.Writer.
func (r *batchReader) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && r.err == nil; {
		if r.left > 0 {
			rest = r.take(rest)
			continue
		}
		line, after, found := bytes.Cut(rest, []byte{'\n'})
		r.head = append(r.head, line...)
		if !found && len(r.head) < 1000 {
			break
		}
		rest = after
		r.begin(string(r.head))
		r.head = r.head[:0]
	}
	if r.err != nil {
		r.stop()
		return 0, r.err
	}
	return len(p), nil
}

// begin reads a line that says what follows.
func (r *batchReader) begin(line string) {
	fields := strings.Split(line, " ")
	if len(fields) == 2 && fields[1] == "missing" {
		return
	}
	size, err := int64(0), error(nil)
	if len(fields) == 3 {
		size, err = strconv.ParseInt(fields[2], 10, 64)
	}
	if len(fields) != 3 || err != nil || size < 0 {
		r.err = fmt.Errorf("git cat-file: line %q", line[:min(len(line), 200)])
		return
	}
	r.id, r.blob, r.keep = fields[0], Blob{Size: size}, fields[1] == "blob"
	if !r.content {
		if r.keep {
			r.each(r.id, r.blob)
		}
		return
	}
	r.left = size + 1
}

// take reads bytes of an object, and returns those behind it.
func (r *batchReader) take(p []byte) []byte {
	n := min(int64(len(p)), r.left)
	if room := min(r.most-int64(len(r.blob.Data)), r.left-1, n); room > 0 && r.keep {
		r.blob.Data = append(r.blob.Data, p[:room]...)
	}
	if r.left -= n; r.left == 0 && r.keep {
		r.each(r.id, r.blob)
	}
	return p[n:]
}

// Fork is the commit at which the work that starts from Source left a branch of
// the same repository: the last one of the branch's own line of first parents
// that the work has. Unlike a merge base it has been the branch's state, and not
// only that of something merged into it later. It is "" where the two have no
// such commit, and an error where there is no such branch.
func (s *Source) Fork(ctx context.Context, branch string) (string, error) {
	r := s.repo()
	out, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("branch %s of %s: %w", branch, s.Path, err)
	}
	tip, last := line(out), &tail{max: 200}
	if _, err := r.run(ctx, call{args: []string{"rev-list", "--first-parent", tip, "^" + s.Head}, out: last}); err != nil {
		return "", fmt.Errorf("where %s left %s: %w", s.Head, branch, err)
	}
	ids := strings.Fields(string(last.b))
	if len(ids) == 0 {
		return tip, nil // the work has all of the branch
	}
	out, err = r.git(ctx, "rev-parse", "--verify", "--quiet", ids[len(ids)-1]+"^1")
	if exitCode(err) == 1 {
		return "", nil // the branch began there
	}
	if err != nil {
		return "", fmt.Errorf("where %s left %s: %w", s.Head, branch, err)
	}
	return line(out), nil
}

// Commits is a workspace without a tree: what is in commits of s can be read of it, and
// nothing else be done.
func (s *Source) Commits() *Workspace { return &Workspace{repo: s.repo()} }
