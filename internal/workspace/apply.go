package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"strings"

	"toritsugi/internal/i18n"
)

// Trial is what git makes of a patch on its base, all or nothing.
type Trial struct {
	Tree string // id of the git tree with the patch applied
	// Touched are the paths that differ between base and Tree, as git has them, sorted.
	Touched []Touch
	// Lines are how many lines each file that is changed has in the base, by path.
	Lines map[string]int
}

// Touch is a path that a patch changes.
type Touch struct {
	Path     string
	Old, New Entry // the zero Entry where the file is not there
}

// applying applies the patch of stdin to the tree $1 in an index of its own and
// prints the tree that it makes and how it differs. Nothing is written where a part of
// the patch does not fit.
const applying = `git read-tree "$1" && git apply --cached -p1 --whitespace=nowarn --no-ignore-whitespace || exit
id=$(git write-tree) || exit
printf '%s\0' "$id"
exec git diff-tree -r -z --raw --no-abbrev --no-renames "$1" "$id"
`

// trying are where a patch is tried.
type trying struct {
	tree
	base  string
	links func(path string) bool // a submodule of the base
	parts parts                  // of the base
}

// try applies p to a tree in the sandbox, and makes sure that git made of it what it
// says: no more paths, no other kinds, no submodule, no git directory, no link that
// leads out.
func (t trying) try(ctx context.Context, p *Patch) (Trial, error) {
	tr := Trial{Lines: map[string]int{}}
	var raw touchParser
	err := records(ctx, scripted{t.tree, "apply", applying}, call{args: []string{t.base + "^{tree}"}, stdin: p.Raw, cfg: []string{"core.fsync=none"}},
		func(rec []byte) error {
			if tr.Tree == "" {
				if tr.Tree = string(rec); !isID(tr.Tree) {
					return fmt.Errorf("git write-tree: %q is no id", tr.Tree)
				}
				return nil
			}
			return raw.record(rec)
		})
	if exitCode(err) > 0 {
		return tr, i18n.E("workspace.patch_apply", err)
	}
	if err != nil {
		return tr, fmt.Errorf("apply the patch: %w", err)
	}
	if tr.Touched = raw.all; len(tr.Touched) == 0 {
		return tr, i18n.E("workspace.patch_nothing")
	}
	if err := t.same(p, tr.Touched); err != nil {
		return tr, err
	}
	return tr, t.look(ctx, &tr)
}

// same compares what git made of a patch with what the patch says.
func (t trying) same(p *Patch, touched []Touch) error {
	made := maps.Clone(t.parts)
	said := map[string]PatchAction{}
	for _, f := range p.Files {
		action := f.Action
		switch {
		case action == PatchRename:
			said[f.From], action = PatchDelete, PatchCreate
		case action == PatchCopy:
			action = PatchCreate
		case action == PatchMode, action == PatchCreate && said[f.Path] == PatchDelete:
			action = PatchModify
		}
		said[f.Path] = action
	}
	for _, c := range touched {
		is := PatchModify
		switch {
		case c.Old.Mode == "":
			is = PatchCreate
		case c.New.Mode == "":
			is = PatchDelete
		}
		if said[c.Path] != is {
			return i18n.E("workspace.patch_else", readable(c.Path))
		}
		if c.New.Mode == ModeSubmodule || c.Old.Mode == ModeSubmodule || t.links(c.Path) {
			return i18n.E("workspace.patch_submodule", readable(c.Path))
		}
		if err := patchPath(c.Path, c.New.Mode == ModeLink); err != nil {
			return err
		}
		if c.New.Mode != "" {
			made.add(c.Path)
		}
	}
	for dir := range made {
		if made.whole(dir) && !t.parts.whole(dir) {
			return i18n.E("workspace.patch_git", readable(dir))
		}
	}
	return nil
}

// maxTarget is the longest target of a link that is made, in bytes.
const maxTarget = 4 << 10

// look reads the targets of links that are made, and counts the lines of what is
// changed.
func (t trying) look(ctx context.Context, tr *Trial) error {
	var ids []string
	for _, c := range tr.Touched {
		if c.New.Mode == ModeLink {
			ids = append(ids, c.New.ID)
		}
		if c.Old.Mode != "" && c.New.Mode != "" {
			ids = append(ids, c.Old.ID)
		}
	}
	blobs, err := readBlobs(ctx, t.tree, ids, maxRead)
	if err != nil {
		return err
	}
	for _, c := range tr.Touched {
		if c.New.Mode == ModeLink {
			target := blobs[c.New.ID]
			if target.Size > maxTarget || !staysInside(path.Dir(c.Path), string(target.Data)) {
				return i18n.E("workspace.patch_link", readable(c.Path), shorten(string(target.Data)))
			}
		}
		if c.Old.Mode != "" && c.New.Mode != "" {
			b := blobs[c.Old.ID].Data
			n := bytes.Count(b, []byte("\n"))
			if len(b) > 0 && b[len(b)-1] != '\n' {
				n++
			}
			tr.Lines[c.Path] = n
		}
	}
	return nil
}

// staysInside reports whether a link in a directory of the tree leads to a place in
// the tree. ".." counts at the beginning only: behind the name of another link it
// would begin somewhere else.
func staysInside(dir, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return false
	}
	depth := 0
	if dir != "." {
		depth = strings.Count(dir, "/") + 1
	}
	names := false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; names || depth < 0 {
				return false
			}
		default:
			if names = true; refusedName(part, false) {
				return false
			}
		}
	}
	return true
}

// touchParser reads git diff-tree -r -z --raw --no-abbrev --no-renames with the
// entries before and after.
type touchParser struct {
	all  []Touch
	next *Touch
}

func (p *touchParser) record(rec []byte) error {
	if p.next != nil {
		t := *p.next
		t.Path = string(rec)
		t.Old.Path, t.New.Path = t.Path, t.Path
		if t.Old.Mode == "" {
			t.Old = Entry{}
		}
		if t.New.Mode == "" {
			t.New = Entry{}
		}
		p.all, p.next = append(p.all, t), nil
		if len(p.all) > 2*maxPatchFiles {
			return i18n.E("workspace.patch_files", maxPatchFiles)
		}
		return nil
	}
	fields := strings.Split(string(rec), " ") // :mode mode id id letter
	if len(fields) != 5 || !strings.HasPrefix(fields[0], ":") {
		return fmt.Errorf("git diff-tree: record %.200q", rec)
	}
	p.next = &Touch{Old: entryOf(fields[0][1:], fields[2]), New: entryOf(fields[1], fields[3])}
	return nil
}

// entryOf is an entry without its path, the zero one for a file that is not there.
func entryOf(mode, id string) Entry {
	if mode == "000000" {
		return Entry{}
	}
	return Entry{Mode: modeName([]byte(mode)), ID: id}
}

// scratchPatch is git on the work tree with an index for patches and the objects of scratch.
func (w *Workspace) scratchPatch() tree {
	t := w.scratch()
	t.env = append(t.env, "GIT_INDEX_FILE="+filepath.Join(w.scratchDir(), "patch"))
	return t
}

// onPatch is git with an index of its own, in which patches are tried.
func (w *Workspace) onPatch(ctx context.Context) (trying, error) {
	if err := w.readLinks(ctx); err != nil {
		return trying{}, err
	}
	return trying{tree: w.scratchPatch(), base: w.meta.Base, parts: w.parts, links: func(p string) bool { _, is := w.links[p]; return is }}, nil
}

// TryPatch applies a patch to Base apart from the tree, which stays as it is. An
// error that is an *i18n.Error is one of the patch: git's words where it does not fit.
func (w *Workspace) TryPatch(ctx context.Context, p *Patch) (Trial, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, err := w.onPatch(ctx)
	if err != nil {
		return Trial{}, err
	}
	return t.try(ctx, p)
}

// ApplyPatch makes the tree what Base and the patch make, and nothing else: what is
// tracked is laid anew, what is not tracked stays. All of the patch is applied or, on
// an error of the patch, nothing. It may be done again; Commit with CommitOptions.Tree
// commits exactly that.
func (w *Workspace) ApplyPatch(ctx context.Context, p *Patch) (Trial, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, err := w.onPatch(ctx)
	if err != nil {
		return Trial{}, err
	}
	tr, err := t.try(ctx, p)
	if err != nil {
		return tr, err
	}
	if err := w.checkOut(ctx, tr.Tree); err != nil {
		return tr, fmt.Errorf("lay the patched tree: %w", err)
	}
	return tr, w.dotGit()
}

// ReversePatch is the patch that takes a commit of the branch, or a tree, back to
// Base, binary files and modes with it.
func (w *Workspace) ReversePatch(ctx context.Context, commit string) ([]byte, error) {
	return fullDiff(ctx, w.repo, commit, w.meta.Base)
}

// CommitPatch is the patch that makes a commit of Base, as git apply takes it.
func (w *Workspace) CommitPatch(ctx context.Context, commit string) ([]byte, error) {
	return fullDiff(ctx, w.repo, w.meta.Base, commit)
}

// fullDiff is a patch from one commit or tree to another that git apply takes,
// whatever is in the files.
func fullDiff(ctx context.Context, r gitter, from, to string) ([]byte, error) {
	var out collected
	args := append(diffArgs(), "--binary", "--full-index", "--no-textconv", "--unified=3", from, to, "--")
	_, err := r.run(ctx, call{args: args, out: &out})
	if err == nil && out.Len() == 0 {
		err = errors.New("the two are the same")
	}
	if err != nil {
		return nil, fmt.Errorf("patch from %s to %s: %w", from, to, err)
	}
	return out.Bytes(), nil
}

// TreeNow is the id of the git tree of what is in the work tree, less what Commit
// leaves out.
func (w *Workspace) TreeNow(ctx context.Context) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id, _, err := w.snapshot(ctx)
	return id, err
}

// Carry is the tree patched with what changed from one tree of TreeNow to a later one:
// what commands did after a patch, without what setup and checks left before.
func (w *Workspace) Carry(ctx context.Context, patched, before, after string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return carry(ctx, w.scratchPatch(), patched, before, after)
}

// carrying applies the difference of $2 and $3 to $1 and prints the tree that it makes.
const carrying = `git read-tree "$1" && git diff-tree -r -p --binary --full-index --no-renames --no-ext-diff --no-textconv "$2" "$3" |
	git apply --cached -p1 --whitespace=nowarn --allow-empty && exec git write-tree
`

func carry(ctx context.Context, t tree, patched, before, after string) (string, error) {
	if before == after {
		return patched, nil
	}
	out, err := t.script(ctx, "apply", carrying, call{args: []string{patched, before, after}, cfg: []string{"core.fsync=none"}})
	if err == nil && !isID(line(out)) {
		err = fmt.Errorf("git write-tree: %q is no id", line(out))
	}
	if err != nil {
		return "", fmt.Errorf("take over what the commands changed: %w", err)
	}
	return line(out), nil
}
