package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// look looks at the tree: at what git must not see, for the configuration of a
// repository inside it was written by whoever made that, and git enters one that
// it stages; and at what no snapshot and no commit holds for its size. The caller
// holds mu.
func (w *Workspace) look(ctx context.Context) (look, error) {
	if err := w.readLinks(ctx); err != nil {
		return look{}, err
	}
	l, err := lookAt(ctx, w.Tree(), w.seed, w.links, w.box.maxFile(), w.box.depth(), time.Now())
	if err != nil {
		return l, err
	}
	for _, dir := range slices.DeleteFunc(l.bare, w.parts.whole) {
		l.nested = append(l.nested, dir)
		maps.DeleteFunc(l.seen, func(in string, _ listing) bool { return strings.HasPrefix(in, dir+"/") })
	}
	slices.Sort(l.nested)
	w.box.looked(l)
	return l, nil
}

// readLinks fills in links and parts, the submodules and the parts of bare
// repositories of what the work starts from; no other is ever committed. The
// caller holds mu.
func (w *Workspace) readLinks(ctx context.Context) error {
	if w.links != nil {
		return nil
	}
	links, all := map[string][]string{}, parts{}
	for _, commit := range []string{w.meta.Base, w.meta.Onto} {
		if commit == "" {
			continue
		}
		if err := w.Files(ctx, commit, func(e Entry) error {
			all.add(e.Path)
			if e.Mode == ModeSubmodule {
				links[e.Path] = append(links[e.Path], e.ID)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	w.links, w.parts = links, all
	return nil
}

// newLinks are those of submodules that the work did not start with.
func (w *Workspace) newLinks(links []Entry) (paths []string) {
	for _, l := range links {
		if !slices.Contains(w.links[l.Path], l.ID) {
			paths = append(paths, l.Path)
		}
	}
	return paths
}

func (w *Workspace) scratchDir() string { return filepath.Join(w.dir, "scratch") }

// onTree is git on the work tree, to look at it: the index is the branch's.
func (w *Workspace) onTree() tree {
	return tree{box: w.box, gitDir: w.repo.gitDir, workTree: w.Tree()}
}

// scratch is git on the work tree with an index and objects of its own. No more
// of them than a commit holds comes to the branch's; see bring.
func (w *Workspace) scratch() tree {
	t := w.onTree()
	t.env = []string{
		"GIT_INDEX_FILE=" + filepath.Join(w.scratchDir(), "index"),
		"GIT_OBJECT_DIRECTORY=" + filepath.Join(w.scratchDir(), "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quotePath(filepath.Join(w.repo.gitDir, "objects")),
	}
	return t
}

// lendIndex makes the index of scratch a copy of the branch's, which may have none.
func (w *Workspace) lendIndex() error {
	to, tmp := filepath.Join(w.scratchDir(), "index"), filepath.Join(w.dir, "index.new")
	err := copyIndex(filepath.Join(w.repo.gitDir, "index"), tmp)
	if errors.Is(err, fs.ErrNotExist) {
		return (&disk.FS{}).Remove(to)
	}
	if err == nil {
		err = os.Rename(tmp, to)
	}
	return err
}

// takeIndex makes the branch's index a copy of that of scratch. People's git
// reads it, and the sandbox; ours outside never does.
func (w *Workspace) takeIndex() error {
	to := filepath.Join(w.repo.gitDir, "index")
	if err := copyIndex(filepath.Join(w.scratchDir(), "index"), to+".new"); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// quotePath writes a path as lists of object directories take it, whatever it holds.
func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// snapshot stages the whole tree in the index of scratch, which starts as a copy
// of the branch's, and returns the id of the git tree and what differs from Base.
// The branch's index stays, so that git diff in the tree keeps showing what was
// done. The caller holds mu.
func (w *Workspace) snapshot(ctx context.Context) (id string, changes []Change, err error) {
	resume, err := w.suspendWriters(ctx)
	if err != nil {
		return "", nil, err
	}
	defer resume()
	if objects := filepath.Join(w.scratchDir(), "objects"); w.full(ctx, objects) { // of what was looked at before
		if err := errors.Join(removeAll(objects), w.makeDirs()); err != nil {
			return "", nil, fmt.Errorf("snapshot: %w", err)
		}
	}
	if err := w.lendIndex(); err != nil {
		return "", nil, fmt.Errorf("snapshot: %w", err)
	}
	l, err := w.look(ctx)
	if err != nil {
		return "", nil, err
	}
	return w.stage(ctx, w.scratch(), l, nil, call{args: []string{w.meta.Base}, cfg: []string{"core.fsync=none"}})
}

// staging adds what is in the tree to the index, and tells the id of the git
// tree and what it has else than $1. With more arguments, a tree that is another
// one than $1 becomes the snapshot $3, with the label $2, and others are dropped.
// Status 1 of git add says that it ignores a path which it was told to leave out.
const staging = `git add --all --pathspec-from-file=- --pathspec-file-nul || { s=$?; [ $s = 1 ] || exit $s; }
` + writing

// restaging is staging where nothing but the files behind the fourth argument may have
// changed, in an index that holds the tree as it was.
const restaging = `base=$1 label=$2 ref=$3 drop=$4
shift 4
[ $# = 0 ] || {
	git ls-files -z --modified --deleted --others --exclude-standard -- "$@" >"$GIT_DIR/changed" &&
		git update-index -z --add --remove --replace --stdin <"$GIT_DIR/changed"
} || exit
set -- "$base" ${ref:+"$label" "$ref" "$drop"}
` + writing

const writing = `id=$(git write-tree) || exit
[ $# = 1 ] || [ "$id" = "$1" ] || { made=$(git commit-tree "$id" -m "$2") && printf 'create %s %s\n%s' "$3" "$made" "$4" | git update-ref --stdin; } || exit
printf '%s\0' "$id"
[ "$id" = "$1" ] || exec git diff-tree -r -z --raw --no-abbrev --no-renames "$1" "$id"
`

// refusing takes paths out of the index, and back the snapshot that staging made.
const refusing = `git update-index --force-remove -z --stdin && { [ $# = 1 ] || exec git update-ref -d "$3"; }`

// stage brings an index up to what is in the tree, as it was looked at, less
// repositories inside it, files that are too large, and what is ignored. It returns
// the id of the git tree and what it has else than another one. Where only is not nil,
// git is asked about these paths alone. c has the arguments of staging, settings and
// variables.
func (w *Workspace) stage(ctx context.Context, t tree, l look, only []string, c call) (id string, changes []Change, err error) {
	if err := w.readLinks(ctx); err != nil {
		return "", nil, err
	}
	script, add := staging, c
	if only != nil {
		script = restaging
		all := [4]string{}
		copy(all[:], c.args)
		add.args = slices.Concat(all[:], only)
		add.env = append(slices.Clone(c.env), "GIT_LITERAL_PATHSPECS=1")
	} else {
		specs := []string{":(top)"}
		for _, p := range slices.AppendSeq(l.apart(), maps.Keys(w.links)) {
			specs = append(specs, exclude(p))
		}
		add.stdin = []byte(strings.Join(specs, "\x00") + "\x00")
	}
	var p rawParser
	err = records(ctx, scripted{t, "add", script}, add, func(rec []byte) error {
		if id == "" {
			if id = string(rec); !isID(id) {
				return fmt.Errorf("git write-tree: %q is no id", id)
			}
			return nil
		}
		return p.record(rec)
	})
	if err != nil {
		return "", nil, w.unlocked(err)
	}
	if links := w.newLinks(p.links); len(links) > 0 {
		_, err := t.script(ctx, "update-index", refusing, call{args: c.args, cfg: c.cfg, stdin: []byte(strings.Join(links, "\x00") + "\x00")})
		return "", nil, errors.Join(i18n.E("workspace.gitlink", readable(links[0])), w.unlocked(err))
	}
	return id, p.all, nil
}

// maxIndexFile is the size of the largest index that is taken from a sandbox or a
// stranger, in bytes: that of some five million files.
const maxIndexFile = 512 << 20

// copyIndex copies an index with its modification time: git looks again at a
// file that was changed in the same instant as the index was written, and tells
// that by the index's time (git's racy-git.txt). to is not followed where it is
// a link, and from may be none: the sandbox may write to its directory.
func copyIndex(from, to string) error {
	if err := (&disk.FS{}).Remove(to); err != nil {
		return err
	}
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	hole, err := in.Seek(0, unix.SEEK_HOLE) // a file that git wrote has none before its end
	if !st.Mode().IsRegular() || st.Size() > maxIndexFile || err == nil && hole < st.Size() {
		return i18n.E("workspace.no_index", from, st.Mode(), st.Size(), maxIndexFile)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, disk.FileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, maxIndexFile))
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, time.Time{}, st.ModTime())
}

// ChangedFiles lists what the task has changed since Base: committed or not,
// tracked or not. A rename is a deletion and an addition.
func (w *Workspace) ChangedFiles(ctx context.Context) ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, changes, err := w.snapshot(ctx)
	return changes, err
}

// CommittedFiles lists what a commit changes since Base, whatever has become of
// the tree since.
func (w *Workspace) CommittedFiles(ctx context.Context, commit string) ([]Change, error) {
	return changed(ctx, w.repo, w.meta.Base, commit)
}

// changed lists what differs between two trees of r.
func changed(ctx context.Context, r gitter, a, b string) ([]Change, error) {
	var p rawParser
	err := diffTrees(ctx, r, a, b, &p)
	return p.all, err
}

func diffTrees(ctx context.Context, r gitter, a, b string, p *rawParser) error {
	return records(ctx, r, call{args: []string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", a + "^{tree}", b + "^{tree}"}}, p.record)
}

// PatchText writes what the task has changed since Base, untracked files included,
// with every file as text, whatever it holds and whatever attributes say. It streams.
func (w *Workspace) PatchText(ctx context.Context, to io.Writer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	id, _, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	_, err = w.scratch().run(ctx, call{args: append(diffArgs(), "--text", "--unified=0", w.meta.Base, id, "--"), out: to})
	return err
}

// CommittedTree is the id of the git tree of a commit of the repository.
func (w *Workspace) CommittedTree(ctx context.Context, commit string) (string, error) {
	out, err := w.repo.git(ctx, "rev-parse", "--verify", "--end-of-options", commit+"^{tree}")
	return line(out), err
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
	Path     string // a file or directory below the top level, "" for all
	Stat     bool   // a summary of lines per file instead of the lines
	MaxBytes int    // of text, default 64 KiB; what is cut is said in one more line
}

const defaultDiffBytes = 64 << 10

// Diff shows what the task has changed since Base, for a person or a model to
// read: valid UTF-8, binary files named only, cut at the end of a line.
func (w *Workspace) Diff(ctx context.Context, opt DiffOptions) (string, error) {
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = defaultDiffBytes
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id, _, err := w.snapshot(ctx)
	if err != nil {
		return "", err
	}
	args := diffArgs()
	if opt.Stat {
		args = append(args, "--stat=100")
	}
	args = append(args, w.meta.Base, id, "--")
	if opt.Path != "" {
		args = append(args, literal(filepath.Clean(opt.Path)))
	}
	head := &head{max: opt.MaxBytes}
	if _, err := w.scratch().run(ctx, call{args: args, out: head}); err != nil {
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
