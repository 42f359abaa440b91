package project

import (
	"slices"
	"strings"
)

// FileMap is the files of a commit as a tree, as much of it as fits in memory of
// a few MiB: of a repository with more, deep directories are counts.
type FileMap struct {
	Files, Dirs int // in all, and directories that are known by name
	root        *dir
	maxDepth    int
}

// dir is a directory of the map.
type dir struct {
	name  string // one part of a path, or several where there is nothing beside them
	depth int    // of its last part; the root's is 0
	class class
	dirs  []*dir
	files []string // first names of those that people read, in order
	dull  []string // first names of the others
	own   int      // files right here, whether their names are kept or not
	deep  int      // files in directories that are not kept
	all   int      // files here and below, once finished
}

// Bounds of the map in memory.
const (
	maxKept  = 8 << 20 // bytes of names, with what holds them
	maxNames = 400     // names of one directory
	maxDirs  = 2000    // directories in one directory
	dirCost  = 200     // bytes that a directory takes beside its name
	nameCost = 16
)

// builder makes a FileMap of paths in git's order, in which what is below a
// directory comes in one piece.
type builder struct {
	root  *dir
	stack []*dir // from the root to where the last file went
	limit int    // deepest directories that are kept
	kept  int    // bytes
	files int
}

func newBuilder() *builder {
	root := &dir{}
	return &builder{root: root, stack: []*dir{root}, limit: 64}
}

// add takes a file in.
func (b *builder) add(path, name string) {
	b.files++
	for b.kept >= maxKept && b.limit > 1 {
		b.shrink()
	}
	d, whole := b.enter(path)
	if !whole {
		d.deep++
		return
	}
	d.own++
	names := &d.files
	if dull(name) {
		names = &d.dull
	}
	if len(*names) < maxNames && b.kept < maxKept {
		*names = append(*names, strings.Clone(name)) // not the path that it is a part of
		b.kept += len(name) + nameCost
	}
}

// enter goes to a directory, as deep as it is kept; whole says that it is.
func (b *builder) enter(path string) (d *dir, whole bool) {
	depth := 0
	for path != "" {
		part, rest, _ := strings.Cut(path, "/")
		depth++
		if depth < len(b.stack) && b.stack[depth].name == part {
			path = rest
			continue
		}
		b.stack = b.stack[:depth]
		up := b.stack[depth-1]
		if depth > b.limit || len(up.dirs) >= maxDirs || b.kept >= maxKept {
			return up, false
		}
		next := &dir{name: strings.Clone(part), depth: depth, class: max(up.class, dirClass(part))}
		up.dirs = append(up.dirs, next)
		b.stack = append(b.stack, next)
		b.kept += len(part) + dirCost
		path = rest
	}
	b.stack = b.stack[:depth+1]
	return b.stack[depth], true
}

// shrink forgets the deepest directories.
func (b *builder) shrink() {
	for b.limit--; b.limit > 1 && !b.root.reaches(b.limit+1); b.limit-- {
	}
	b.root.cut(b.limit)
	b.kept = b.root.cost()
	b.stack = b.stack[:min(len(b.stack), b.limit+1)]
}

// reaches reports whether there is a directory of this depth.
func (d *dir) reaches(depth int) bool {
	return d.depth >= depth || slices.ContainsFunc(d.dirs, func(s *dir) bool { return s.reaches(depth) })
}

// cut makes counts of what is deeper than limit.
func (d *dir) cut(limit int) {
	for _, s := range d.dirs {
		if d.depth < limit {
			s.cut(limit)
		} else {
			d.deep += s.count()
		}
	}
	if d.depth >= limit {
		d.dirs = nil
	}
}

func (d *dir) count() int {
	n := d.own + d.deep
	for _, s := range d.dirs {
		n += s.count()
	}
	return n
}

func (d *dir) cost() int {
	n := dirCost + len(d.name) + nameCost*(len(d.files)+len(d.dull))
	for _, s := range slices.Concat(d.files, d.dull) {
		n += len(s)
	}
	for _, s := range d.dirs {
		n += s.cost()
	}
	return n
}

// finish makes the map of what was added.
func (b *builder) finish(maxDepth int) *FileMap {
	m := &FileMap{Files: b.files, root: b.root, maxDepth: maxDepth}
	m.Dirs = m.root.finish(maxDepth < 0) - 1
	return m
}

// finish counts, and joins directories that have nothing but one directory in
// them with it. It returns how many directories there are.
func (d *dir) finish(join bool) (dirs int) {
	d.all = d.own + d.deep
	for i, s := range d.dirs {
		dirs += s.finish(join)
		d.all += s.all
		if join && len(s.dirs) == 1 && s.own+s.deep == 0 {
			only := s.dirs[0]
			only.name = s.name + "/" + only.name
			d.dirs[i] = only
		}
	}
	return dirs + 1
}
