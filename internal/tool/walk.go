package tool

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// entryKind is what a name in a directory stands for.
type entryKind uint8

const (
	kindFile entryKind = iota
	kindLink
	kindDir
	kindOther // pipe, socket, device
)

// dirEntry is one name of a directory; sub is set where it is one itself.
type dirEntry struct {
	name string
	kind entryKind
	sub  *dirNode
}

// dirNode is a directory with those entries that are not left out, in the
// order of their paths: a directory stands where its files do.
type dirNode struct {
	rel     string
	entries []dirEntry
	rules   *rules
}

// walkOptions says what a walk takes in. .git never is.
type walkOptions struct {
	ignored bool // also what .gitignore and .ignore leave out
	depth   int  // levels of directories, 1 for the directory's own entries; 0 for all
}

// A walk reads at most so many names, and holds directories of several workers
// at once.
const (
	maxNames   = 1_000_000
	maxWalkers = 4
)

// walkTree is what a walk found.
type walkTree struct {
	root    *dirNode
	names   int  // read
	ignored int  // left out by rules, a directory counted once
	closed  int  // directories that could not be read
	full    bool // there are more than maxNames
	long    int  // files of rules of which not all was read
	unruled bool // comparing with rules took too long and was given up
}

// entries calls f with every file, and every directory whose files were not
// looked at, in the order of the paths.
func (t *walkTree) entries(f func(rel string, kind entryKind)) {
	var walk func(d *dirNode)
	walk = func(d *dirNode) {
		for _, e := range d.entries {
			if e.sub != nil {
				walk(e.sub)
			} else {
				f(inDir(d.rel, e.name), e.kind)
			}
		}
	}
	walk(t.root)
}

// walk reads the directory rel and what is below it. Links are not followed.
// It fails where rel itself cannot be read and where ctx ended.
func (w *workspaceFiles) walk(ctx context.Context, rel string, opt walkOptions) (*walkTree, error) {
	top, err := w.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = top.Close() }() // it was only read
	p := &walker{w: w, opt: opt, top: top, tree: &walkTree{root: &dirNode{rel: rel}}}
	p.more.L = &p.mu
	p.effort.left.Store(maxEffort)
	defer context.AfterFunc(ctx, func() { p.effort.left.Store(0) })()
	if !opt.ignored {
		p.tree.root.rules = w.rulesAbove(rel, &p.effort)
	}
	if err := p.read(ctx, p.tree.root, 1); err != nil {
		return nil, err
	}
	p.crew.Wait()
	p.tree.long, p.tree.unruled = int(p.effort.long.Load()), p.effort.left.Load() <= 0
	return p.tree, ctx.Err()
}

// rulesAbove are the rules of the directories above rel. That one of them
// leaves out rel itself does not count: it was asked for by name.
func (w *workspaceFiles) rulesAbove(rel string, e *effort) *rules {
	if rel == "." {
		return nil
	}
	r := (*rules)(nil).with(w, ".", true, true, e)
	for i, c := range rel {
		if c == '/' {
			r = r.with(w, rel[:i], true, true, e)
		}
	}
	return r
}

// walker is a walk under way.
type walker struct {
	w   *workspaceFiles
	opt walkOptions
	top *os.File

	effort effort

	mu   sync.Mutex
	more sync.Cond
	todo []todoDir
	crew sync.WaitGroup
	size int // of the crew
	busy int // workers in a directory
	tree *walkTree
	over bool
}

type todoDir struct {
	node  *dirNode
	depth int
}

// work reads directories until none is left and nobody can find another.
func (p *walker) work(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.todo) == 0 && p.busy > 0 && !p.over {
			p.more.Wait()
		}
		if len(p.todo) == 0 || p.over {
			return
		}
		next := p.todo[len(p.todo)-1]
		p.todo = p.todo[:len(p.todo)-1]
		p.busy++
		p.mu.Unlock()
		err := ctx.Err()
		over := err != nil
		if err == nil {
			err = p.read(ctx, next.node, next.depth)
		}
		p.mu.Lock()
		p.busy--
		p.over = p.over || over
		if err != nil {
			p.tree.closed++
		}
		p.more.Broadcast()
	}
}

// read fills in one directory and puts those in it on the list, for which it
// hires.
func (p *walker) read(ctx context.Context, d *dirNode, depth int) error {
	fd, err := openBeneath(p.w, p.top, d.rel, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), path.Join(p.w.root.Name(), d.rel)) // where the file system does not tell what a name is, os looks by this path
	defer func() { _ = dir.Close() }()                                // it was only read
	names, hasGit, hasIgnore, err := p.list(ctx, dir)
	if err != nil && len(names) == 0 {
		return err
	}
	if !p.opt.ignored && (hasGit || hasIgnore) {
		d.rules = d.rules.with(p.w, d.rel, hasGit, hasIgnore, &p.effort)
	}
	read, left := len(names), 0
	var subs []todoDir
	names = slices.DeleteFunc(names, func(e dirEntry) bool {
		if d.rules != nil && d.rules.ignored(inDir(d.rel, e.name), e.name, e.kind == kindDir, &p.effort) {
			left++
			return true
		}
		return false
	})
	for i := range names {
		if e := &names[i]; e.kind == kindDir && (p.opt.depth == 0 || depth < p.opt.depth) {
			e.sub = &dirNode{rel: inDir(d.rel, e.name), rules: d.rules}
			subs = append(subs, todoDir{e.sub, depth + 1})
		}
	}
	slices.SortFunc(names, compareEntries)
	d.entries = names
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tree.names += read
	p.tree.ignored += left
	if p.tree.names > maxNames {
		p.tree.full, p.over = true, true
	}
	p.todo = append(p.todo, subs...)
	for ; p.size < maxWalkers && p.size < len(p.todo); p.size++ {
		p.crew.Go(func() { p.work(ctx) })
	}
	return nil
}

// compareEntries orders names as the paths below them are: as if that of a
// directory ended with a slash.
func compareEntries(a, b dirEntry) int {
	n := min(len(a.name), len(b.name))
	if c := strings.Compare(a.name[:n], b.name[:n]); c != 0 {
		return c
	}
	return int(after(a, n)) - int(after(b, n))
}

func after(e dirEntry, n int) byte {
	switch {
	case n < len(e.name):
		return e.name[n]
	case e.kind == kindDir:
		return '/'
	}
	return 0
}

// openBeneath opens rel below the directory top for reading, where no part of
// it is a link. The descriptor is the caller's.
func openBeneath(w *workspaceFiles, top *os.File, rel string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY | flags,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(int(top.Fd()), rel, &how)
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN): // something was renamed meanwhile
			continue
		case !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM): // an old kernel, a strict container
			return -1, err
		}
		return openSlowly(w, rel, flags)
	}
}

// openSlowly is openBeneath where the kernel has no openat2.
func openSlowly(w *workspaceFiles, rel string, flags uint64) (int, error) {
	real, err := w.resolve(rel)
	if err != nil {
		return -1, err
	}
	if real != path.Clean(rel) {
		return -1, unix.ELOOP
	}
	f, err := w.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|int(flags), 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = f.Close() }() // the copy stays open
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// list reads the names of a directory but for .git, and whether files of rules
// are among them.
func (p *walker) list(ctx context.Context, dir *os.File) (entries []dirEntry, hasGit, hasIgnore bool, err error) {
	for len(entries) <= maxNames && ctx.Err() == nil {
		some, err := dir.ReadDir(1024)
		for _, e := range some {
			switch e.Name() {
			case ".git":
				continue
			case gitignoreFile:
				hasGit = true
			case ignoreFile:
				hasIgnore = true
			}
			entries = append(entries, dirEntry{name: e.Name(), kind: kindOfEntry(e.Type())})
		}
		if errors.Is(err, io.EOF) {
			return entries, hasGit, hasIgnore, nil
		}
		if err != nil {
			return entries, hasGit, hasIgnore, err
		}
	}
	return entries, hasGit, hasIgnore, nil
}

func kindOfEntry(mode fs.FileMode) entryKind {
	switch mode {
	case 0:
		return kindFile
	case fs.ModeSymlink:
		return kindLink
	case fs.ModeDir:
		return kindDir
	}
	return kindOther
}
