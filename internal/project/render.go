package project

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// How the counts of a map are read, where it has such.
const (
	legendMore  = " +N: N more files."
	legendBelow = " (N): N files below."
)

// Text is the map in at most budget bytes: the files that the task is likely to
// be about, going by the words of about; where programs begin, unless all of it
// fits; then a line for each directory, indented by how deep it is. Where not all fits, what lies high
// up and takes little is named first and what is binary last; of what is made,
// what only tests read and somebody else's code only how much it is. It is ""
// where nothing fits. The same map and words have the same text.
func (m *FileMap) Text(budget int, about string) string {
	head := fmt.Sprintf("%s in %s.", counted(m.Files, "file", "files"), counted(m.Dirs, "directory", "directories"))
	r := &rendering{left: budget - len(head) - len(legendMore+legendBelow+"\n") - len("./: +1000000000\n"), most: budget / 4, maxDepth: m.maxDepth, of: map[*dir]*opened{}}
	_, r.fits = r.whole(m.root, 0, r.left)
	likely := m.likely(about, r.left/3, !r.fits)
	if r.left -= len(likely); r.left < 0 {
		return ""
	}
	if _, r.fits = r.whole(m.root, 0, r.left); r.fits {
		r.most = budget
	}
	r.push(m.root, 0)
	for len(r.queue) > 0 {
		next := r.queue[0]
		r.queue = r.queue[1:]
		r.take(next)
	}
	for _, d := range r.partly { // what nobody else needed
		o := r.of[d]
		o.files += r.names(d.files[o.files:], r.left)
	}
	var b strings.Builder
	r.write(&b, m.root, 0)
	if strings.Contains(b.String(), " +") {
		head += legendMore
	}
	if strings.Contains(b.String(), " (") {
		head += legendBelow
	}
	return head + "\n" + likely + b.String()
}

// counted is a number of things.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// rendering decides what a map shows.
type rendering struct {
	left     int  // bytes
	fits     bool // all of it does
	order    int  // of steps that were thought of
	most     int  // bytes that the names of one directory may take
	maxDepth int
	of       map[*dir]*opened
	queue    []step // what is shown first comes first
	partly   []*dir // of whose files not all are named
}

// opened is how a directory is shown that is not a mere count.
type opened struct {
	files, dull int // how many names
	dirs        int // how many of its directories have lines
}

// step is one more thing that could be shown: a directory, or its dull files.
type step struct {
	dir   *dir
	level int // how far it is indented
	dull  bool
	class class
	cost  int
	order int // in which they were thought of: makes the order of steps whole
}

// compare orders steps by class, then by depth, by cost, and by age.
func (s step) compare(o step) int {
	return cmp.Or(cmp.Compare(s.class, o.class), cmp.Compare(s.level, o.level), cmp.Compare(s.cost, o.cost), cmp.Compare(s.order, o.order))
}

// await puts a step on the queue, which is short: it has no more directories than there is room for lines.
func (r *rendering) await(s step) {
	at, _ := slices.BinarySearchFunc(r.queue, s, step.compare)
	r.queue = slices.Insert(r.queue, at, s)
}

// push puts the opening of a directory on the queue.
func (r *rendering) push(d *dir, level int) {
	if r.maxDepth >= 0 && d.depth > r.maxDepth || d.counted() {
		return
	}
	r.order++
	r.await(step{dir: d, level: level, class: d.class, cost: namesCost(d.files) + dirsCost(d.dirs, level), order: r.order})
}

// counted reports whether of a directory no more is shown than how much it is:
// data, what is made, somebody else's code, settings of tools.
func (d *dir) counted() bool { return d.class != own || strings.HasPrefix(d.name, ".") }

// take shows what a step is about, as far as there is room.
func (r *rendering) take(s step) {
	d := s.dir
	if s.dull {
		o := r.of[d]
		o.dull = r.names(d.dull, min(r.left, r.most))
		return
	}
	o := &opened{dirs: len(d.dirs)}
	if cost := dirsCost(d.dirs, s.level); cost <= r.left {
		r.left -= cost
	} else if d.depth > 0 {
		return
	} else { // of the root a part is better than nothing
		for o.dirs = 0; dirsCost(d.dirs[o.dirs:o.dirs+1], s.level) <= r.left; o.dirs++ {
			r.left -= dirsCost(d.dirs[o.dirs:o.dirs+1], s.level)
		}
	}
	r.of[d] = o
	room := min(r.left, r.most)
	if namesCost(d.files) > room {
		room = min(room, r.left/4) // leave something for the others
	}
	if o.files = r.names(d.files, room); o.files < len(d.files) {
		r.partly = append(r.partly, d)
	}
	if len(d.dull) > 0 {
		r.await(step{dir: d, level: s.level, dull: true, class: max(d.class, bulk), cost: namesCost(d.dull), order: s.order})
	}
	for _, sub := range d.dirs[:o.dirs] {
		r.push(sub, s.level+1)
	}
}

// names takes room for as many names as there is room for.
func (r *rendering) names(all []string, room int) (n int) {
	for _, name := range all {
		c := 1 + len(shown(name))
		if c > room {
			break
		}
		room -= c
		r.left -= c
		n++
	}
	return n
}

// dirsCost is what the lines of directories take while they are counts.
func dirsCost(dirs []*dir, level int) (n int) {
	for _, s := range dirs {
		n += level + len(shown(s.name)) + len("/ ()\n") + max(len(strconv.Itoa(s.all)), 4)
	}
	return n
}

func namesCost(all []string) (n int) {
	for _, name := range all {
		n += 1 + len(shown(name))
	}
	return n
}

// whole reports whether all of a directory fits in left bytes, and what is left
// of them then.
func (r *rendering) whole(d *dir, level, left int) (int, bool) {
	if d.counted() {
		return left, true
	}
	left -= namesCost(d.files) + namesCost(d.dull)
	if left -= dirsCost(d.dirs, level); left < 0 || len(d.files)+len(d.dull) < d.own || d.deep > 0 {
		return left, false
	}
	for _, s := range d.dirs {
		var ok bool
		if left, ok = r.whole(s, level+1, left); !ok {
			return left, false
		}
	}
	return left, true
}

// write writes the line of a directory and of what is shown below it.
func (r *rendering) write(b *strings.Builder, d *dir, level int) {
	name := shown(d.name)
	if level == 0 {
		name = "."
	}
	b.WriteString(strings.Repeat(" ", max(level-1, 0)) + name + "/")
	o := r.of[d]
	if o == nil {
		fmt.Fprintf(b, " (%d)\n", d.all)
		return
	}
	names := slices.Concat(d.files[:o.files], d.dull[:o.dull])
	rest := d.all - len(names)
	for _, s := range d.dirs[:o.dirs] {
		rest -= s.all
	}
	if len(names) > 0 || rest > 0 {
		b.WriteByte(':')
	}
	for _, n := range names {
		b.WriteString(" " + shown(n))
	}
	if rest > 0 {
		b.WriteString(" +" + strconv.Itoa(rest))
	}
	b.WriteByte('\n')
	for _, s := range d.dirs[:o.dirs] {
		r.write(b, s, level+1)
	}
}

// shown is a name as it can stand in a line without being taken for another.
func shown(name string) string {
	odd := func(c rune) bool {
		return !strconv.IsPrint(c) || c == utf8.RuneError || strings.ContainsRune(" \":()<`", c)
	}
	if name != "" && name[0] != '+' && !strings.ContainsFunc(name, odd) {
		return name
	}
	return strings.ReplaceAll(strconv.Quote(name), "<", `\x3c`) // nor for a tag
}
