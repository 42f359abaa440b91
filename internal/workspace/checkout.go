package workspace

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Checkout is the files of a checkout as somebody is working on them, as a base of
// proposals (spec/chat §1 "worktree"). The checkout's own git directory is read and
// never written. All there is in {dir}:
//
//	git    objects of the trees, every byte as it is in the files
//	tree   the files in which a proposal is tried: Lay
//	index, try, work   of git
//
// Git with any of these runs in the sandbox (docs/decisions/023).
type Checkout struct {
	src  *Source
	dir  string
	box  *box
	seed maphash.Seed
}

// OpenCheckout opens the files of a checkout; dir is its own, and is made where it is
// missing. The caller closes it. One process at a time uses a dir.
func OpenCheckout(ctx context.Context, src *Source, dir string, b Box) (*Checkout, error) {
	if src.Bare || src.remote {
		return nil, fmt.Errorf("open the files of %s: it has no checkout", src.Path)
	}
	h := &Checkout{src: src, dir: filepath.Clean(dir), seed: maphash.MakeSeed()}
	if err := (&disk.FS{}).MkdirAll(h.Tree()); err != nil {
		return nil, err
	}
	h.box = newBox(b, repo{gitDir: src.common}, h.dir)
	h.box.spec.ReadOnly = append(h.box.spec.ReadOnly, src.Path)
	if l, whole := measure(ctx, src.Path, maxMeasured); whole {
		h.box.looked(l)
	}
	kind := "sha1"
	if len(src.Head) > 40 {
		kind = "sha256"
	}
	exclude, err := disk.Read(filepath.Join(src.common, "info", "exclude"), maxRecord)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, h.Close())
	}
	if _, err := h.on(h.src.Path, "index").script(ctx, "init", handBeginning, call{args: []string{h.dir, kind, verbatim, string(exclude)}}); err != nil {
		return nil, errors.Join(fmt.Errorf("open the files of %s: %w", src.Path, err), h.Close())
	}
	return h, nil
}

// handBeginning makes the git directory in $1 and takes away what a killed git left.
const handBeginning = `unset GIT_DIR GIT_WORK_TREE GIT_ALTERNATE_OBJECT_DIRECTORIES
set -e
cd "$1"
rm -f index.lock try.lock work.lock
[ -f git/HEAD ] || {
	rm -rf new git
	git init --quiet --bare --template= --object-format="$2" new
	mkdir -p new/info
	mv new git
}
printf %s "$3" >git/info/attributes
printf '%s\n.tori-write-*.tmp\n' "$4" >git/info/exclude
`

// on is git with a work tree and an index of h.dir.
func (h *Checkout) on(workTree, index string) tree {
	return tree{box: h.box, gitDir: filepath.Join(h.dir, "git"), workTree: workTree, env: []string{
		"GIT_INDEX_FILE=" + filepath.Join(h.dir, index),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quotePath(filepath.Join(h.src.common, "objects")),
	}}
}

// Close ends the git of h.
func (h *Checkout) Close() error { return h.box.close() }

// Tree is the directory in which a proposal is tried.
func (h *Checkout) Tree() string { return filepath.Join(h.dir, "tree") }

// adding stages what is in the tree and prints the id of the git tree.
const adding = `git add --all --pathspec-from-file=- --pathspec-file-nul || { s=$?; [ $s = 1 ] || exit $s; }
exec git write-tree
`

// TreeOf is the id of the git tree of the files as they are: tracked and untracked,
// without what is ignored, repositories inside and files that are too large.
func (h *Checkout) TreeOf(ctx context.Context) (string, error) {
	return h.stage(ctx, h.on(h.src.Path, "index"))
}

// TreeNow is the id of the git tree of what is in Tree.
func (h *Checkout) TreeNow(ctx context.Context) (string, error) {
	return h.stage(ctx, h.on(h.Tree(), "work"))
}

func (h *Checkout) stage(ctx context.Context, t tree) (string, error) {
	l, err := lookAt(ctx, t.workTree, h.seed, nil, h.box.maxFile(), h.box.depth(), time.Now())
	if err != nil {
		return "", err
	}
	h.box.looked(l)
	specs := []string{":(top)"}
	for _, p := range slices.Concat(l.nested, l.bare, l.large, l.refused) {
		specs = append(specs, exclude(p))
	}
	out, err := t.script(ctx, "add", adding, call{stdin: []byte(strings.Join(specs, "\x00") + "\x00"), cfg: stepsCfg()})
	if err == nil && !isID(line(out)) {
		err = fmt.Errorf("git write-tree: %q is no id", line(out))
	}
	return line(out), err
}

// TryPatch applies a patch to a tree of TreeOf; no file is touched. An error that is
// an *i18n.Error is one of the patch.
func (h *Checkout) TryPatch(ctx context.Context, base string, p *Patch) (Trial, error) {
	t, err := h.trying(ctx, base)
	if err != nil {
		return Trial{}, err
	}
	return t.try(ctx, p)
}

// trying is git with an index of its own, in which patches of a tree are tried.
func (h *Checkout) trying(ctx context.Context, base string) (trying, error) {
	t := trying{tree: h.on(h.src.Path, "try"), base: base, parts: parts{}, links: func(string) bool { return false }}
	if err := records(ctx, t.tree, call{args: []string{"ls-tree", "-r", "-z", "--full-tree", base}}, asEntries(func(e Entry) error {
		t.parts.add(e.Path)
		return nil
	})); err != nil {
		return trying{}, fmt.Errorf("files of the base %s: %w", base, err)
	}
	return t, nil
}

// Lay makes Tree what a git tree has, and nothing else.
func (h *Checkout) Lay(ctx context.Context, id string) error {
	if err := h.on(h.Tree(), "work").lay(ctx, id, "-d", "--force", "--force", "--quiet", "-x"); err != nil {
		return fmt.Errorf("lay %s: %w", id, err)
	}
	return nil
}

// Carry is Workspace.Carry of trees of h.
func (h *Checkout) Carry(ctx context.Context, patched, before, after string) (string, error) {
	return carry(ctx, h.on(h.Tree(), "try"), patched, before, after)
}

// ReversePatch is the patch from one tree to another, binary files and modes with it.
func (h *Checkout) ReversePatch(ctx context.Context, from, to string) ([]byte, error) {
	return fullDiff(ctx, h.on(h.Tree(), "try"), from, to)
}

// Touched are the paths in which two trees differ.
func (h *Checkout) Touched(ctx context.Context, base, to string) ([]Touch, error) {
	var p touchParser
	err := records(ctx, h.on(h.Tree(), "try"), call{args: []string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", base, to}}, p.record)
	return p.all, err
}

// Write gives the files at hand what touched says that they become. Each of them must
// be what touched says that it was, or is to become, else nothing is written and the
// error wraps ErrMoved. It goes on where a killed one ended: a file is written whole
// or not at all. That somebody changes a file while others are written is an
// *i18n.Error that says how many are done.
func (h *Checkout) Write(ctx context.Context, touched []Touch) error {
	root, err := openHandRoot(h.src.Path, touched)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	left, err := root.left(touched)
	if err != nil {
		return err
	}
	done := len(touched) - len(left)
	// What goes goes first: a directory may take the place of a file, or a file of one.
	slices.SortStableFunc(left, func(a, b Touch) int { return b2i(a.New.Mode != "") - b2i(b.New.Mode != "") })
	for _, c := range left {
		if err := ctx.Err(); err != nil {
			return err
		}
		if now, err := root.entry(c.Path, len(c.New.ID)+len(c.Old.ID)); err != nil || !sameFile(now, c.Old) {
			return errors.Join(i18n.E("workspace.hand_half", readable(c.Path), done, len(touched)), err)
		}
		if c.New.Mode == "" {
			err = root.remove(c.Path)
		} else {
			err = root.write(c, func(to *fileSink) error {
				_, err := h.on(h.Tree(), "try").run(ctx, call{args: []string{"cat-file", "blob", c.New.ID}, out: to})
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", readable(c.Path), err)
		}
		done++
	}
	return root.sync(touched)
}

// Path is the top level of the checkout.
func (h *Checkout) Path() string { return h.src.Path }
