package disktest

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/disk"
)

// node is a file or a directory of the model; root is the base directory.
type node int

const root node = 0

// image is one content of the whole disk.
type image struct {
	dirs  map[node]map[string]node
	files map[node][]byte
}

func (im image) clone() image {
	c := image{make(map[node]map[string]node, len(im.dirs)), maps.Clone(im.files)}
	for d, entries := range im.dirs {
		c.dirs[d] = maps.Clone(entries)
	}
	return c
}

// place is a name in a directory.
type place struct {
	dir  node
	name string
}

// change is one thing that the disk may or may not hold after a power cut.
type change struct {
	what string
	// Of a file's content: data is written at offset or, where write is false,
	// the file is cut to offset.
	file   node
	write  bool
	offset int64
	data   []byte
	// Of directory entries, where entry is true: what was at from goes, target
	// comes to be at to. A rename has both and happens whole or not at all.
	entry    bool
	from, to *place
	target   node

	// Earlier changes of the same entries: a journal keeps their order.
	after   []*change
	durable bool
}

func (c *change) apply(im image) {
	if c.entry {
		if c.from != nil {
			delete(im.dirs[c.from.dir], c.from.name)
		}
		if c.to != nil {
			if im.dirs[c.to.dir] == nil {
				im.dirs[c.to.dir] = map[string]node{}
			}
			im.dirs[c.to.dir][c.to.name] = c.target
		}
		return
	}
	old := im.files[c.file]
	if !c.write {
		b := make([]byte, c.offset)
		copy(b, old)
		im.files[c.file] = b
		return
	}
	b := make([]byte, max(int64(len(old)), c.offset+int64(len(c.data))))
	copy(b, old)
	copy(b[c.offset:], c.data)
	im.files[c.file] = b
}

// torn is the write with other bytes: what a power cut made of it.
func (c *change) torn(data []byte) *change {
	t := *c
	t.data = data
	return &t
}

func (c *change) touches(d node) bool {
	return c.entry && (c.from != nil && c.from.dir == d || c.to != nil && c.to.dir == d)
}

// model is a file system that forgets what was not synced: what is durable, what
// is only in memory, and in what order that came.
//
// It promises no more than every common file system does. A sync of a file makes
// its content and length durable and nothing else, not even the entry of a new
// file. A sync of a directory makes its entries durable, and a rename into or
// out of it at both ends. What is pending may become durable in any order,
// except that changes of one entry keep theirs.
type model struct {
	durable image
	now     image
	pending []*change
	last    map[place]*change // the latest change of an entry
	inodes  map[uint64]node
	next    node
	rel     func(string) string
}

func newModel(rel func(string) string) *model {
	empty := func() image { return image{map[node]map[string]node{root: {}}, map[node][]byte{}} }
	return &model{durable: empty(), now: empty(), last: map[place]*change{}, inodes: map[uint64]node{}, next: root + 1, rel: rel}
}

// locate finds the place of a path as the running program sees it.
func (m *model) locate(path string) (place, error) {
	dir := root
	parts := strings.Split(filepath.ToSlash(m.rel(path)), "/")
	if parts[0] == ".." || filepath.IsAbs(parts[0]) {
		return place{}, fmt.Errorf("%s is outside of the recorded directory", path)
	}
	for _, p := range parts[:len(parts)-1] {
		next, ok := m.now.dirs[dir][p]
		if !ok {
			return place{}, fmt.Errorf("%s: no directory %s was made", path, p)
		}
		dir = next
	}
	return place{dir, parts[len(parts)-1]}, nil
}

func (m *model) add(c *change) {
	for _, p := range []*place{c.from, c.to} {
		if p == nil {
			continue
		}
		if l := m.last[*p]; l != nil && !l.durable {
			c.after = append(c.after, l)
		}
		m.last[*p] = c
	}
	c.apply(m.now)
	m.pending = append(m.pending, c)
}

// errUnseen is an effect on something whose making was not traced.
var errUnseen = errors.New("its making was not traced")

// take brings one effect into the model.
func (m *model) take(e disk.Event, what string) error {
	switch e.Kind {
	case disk.Wrote, disk.Truncated, disk.Synced:
		n, ok := m.inodes[e.Inode]
		if !ok {
			return fmt.Errorf("%s: %w", what, errUnseen)
		}
		switch e.Kind {
		case disk.Synced:
			m.settle(func(c *change) bool { return !c.entry && c.file == n })
		case disk.Wrote:
			m.add(&change{what: what, file: n, write: true, offset: e.Offset, data: e.Data})
		default:
			m.add(&change{what: what, file: n, offset: e.Offset})
		}
		return nil
	}
	return m.takeEntry(e, what)
}

// takeEntry brings an effect on directory entries into the model. What was made
// outside of the seam, a lock file for one, may be removed without further ado.
func (m *model) takeEntry(e disk.Event, what string) error {
	if e.Kind == disk.SyncedDir && m.rel(e.Path) == "." {
		m.settle(func(c *change) bool { return c.touches(root) })
		return nil
	}
	at, err := m.locate(e.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, there := m.now.dirs[at.dir][at.name]
	switch e.Kind {
	case disk.Created, disk.MadeDir:
		n = m.next
		m.next++
		if e.Kind == disk.Created {
			m.inodes[e.Inode] = n
			m.now.files[n], m.durable.files[n] = nil, nil
		} else {
			m.now.dirs[n], m.durable.dirs[n] = map[string]node{}, map[string]node{}
		}
		m.add(&change{what: what, entry: true, to: &at, target: n})
	case disk.SyncedDir:
		if !there {
			return fmt.Errorf("%s: %w", what, errUnseen)
		}
		m.settle(func(c *change) bool { return c.touches(n) })
	case disk.Renamed:
		to, err := m.locate(e.To)
		if err != nil || !there {
			return fmt.Errorf("%s: %w", what, errors.Join(err, errUnseen))
		}
		m.add(&change{what: what, entry: true, from: &at, to: &to, target: n})
	case disk.Unlinked:
		if there {
			m.add(&change{what: what, entry: true, from: &at})
		}
	case disk.RemovedAll:
		if there {
			m.removeAll(at, n, what)
		}
	default:
		return fmt.Errorf("%s: an effect that the model does not know", what)
	}
	return nil
}

// removeAll takes entries away from the leaves down, as unlink and rmdir must.
func (m *model) removeAll(at place, n node, what string) {
	c := &change{what: what, entry: true, from: &at}
	for _, name := range slices.Sorted(maps.Keys(m.now.dirs[n])) {
		in := place{n, name}
		m.removeAll(in, m.now.dirs[n][name], what+"/"+name)
		c.after = append(c.after, m.last[in])
	}
	m.add(c)
}

// settle makes the changes that f names durable, and what must come before them.
func (m *model) settle(f func(*change) bool) {
	due := map[*change]bool{}
	for _, c := range m.pending {
		if f(c) {
			require(c, due)
		}
	}
	m.pending = slices.DeleteFunc(m.pending, func(c *change) bool {
		if due[c] {
			c.apply(m.durable)
			c.durable = true
		}
		return due[c]
	})
}

// require adds a change and all that must be durable before it.
func require(c *change, into map[*change]bool) {
	if c.durable || into[c] {
		return
	}
	into[c] = true
	for _, a := range c.after {
		require(a, into)
	}
}

// survivors is the disk with those of the pending changes that keep names.
func (m *model) survivors(keep func(*change) bool) image {
	im := m.durable.clone()
	for _, c := range m.pending {
		if keep(c) {
			c.apply(im)
		}
	}
	return im
}

// without is the pending changes that can be there although lost is not.
func (m *model) without(lost *change) map[*change]bool {
	keep := map[*change]bool{}
	for _, c := range m.pending {
		need := map[*change]bool{}
		if require(c, need); !need[lost] {
			keep[c] = true
		}
	}
	return keep
}
