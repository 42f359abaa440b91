package scan

import (
	"maps"
	"slices"
	"strings"
)

// testHistory compares the tests of all files: what went here may have come there.
type testHistory struct {
	gone     []*test
	came     []*test
	files    map[string]*deletedFile
	less     []fewer
	asserts  bag // added assertions, in any file
	created  bag // contents of new files
	lost     int // assertions that are remembered
	overflow *bool
}

// test is a test function that was removed or added.
type test struct {
	name     string
	finding  Finding
	lines    []uint64 // of its body
	asserted int
	lost     []lostLine // assertions of a removed one
	came     *test      // what a removed one has become
	matched  bool       // an added one was there before
}

// deletedFile is a file of tests that was deleted.
type deletedFile struct {
	finding Finding
	tests   int
	sum     uint64
}

// fewer is a file with fewer assertions than before.
type fewer struct {
	finding Finding
	removed int
	added   int
	lost    []lostLine
}

const (
	maxTests = 5000 // removed or added
	maxBody  = 40   // lines of a test that are compared
	maxPairs = 600  // tests whose bodies are compared, on each side
	maxLost  = 20_000
)

func newTestHistory(overflow *bool) testHistory {
	return testHistory{files: map[string]*deletedFile{}, asserts: newBag(overflow), created: newBag(overflow), overflow: overflow}
}

// body adds a line to a test that was removed or added; t may be nil.
func (t *test) body(s string) {
	if t == nil || len(t.lines) >= maxBody {
		return
	}
	if s = strings.TrimSpace(s); len(s) > 2 { // a bracket is in every test
		t.lines = append(t.lines, hash(s))
	}
}

func (h *testHistory) remove(f *fileScan, name string, l *line) *test {
	return h.put(&h.gone, &test{name: name, finding: f.at(TestWeakened, TestRemoved, l)})
}

func (h *testHistory) add(f *fileScan, name string) *test {
	if f.c.deleted {
		return nil
	}
	return h.put(&h.came, &test{name: name, finding: Finding{Path: f.name}})
}

func (h *testHistory) put(to *[]*test, t *test) *test {
	if len(*to) >= maxTests {
		*h.overflow = true
		return t
	}
	*to = append(*to, t)
	return t
}

// lose appends a removed assertion.
func (h *testHistory) lose(to []lostLine, l *line) []lostLine {
	if h.lost >= maxLost {
		*h.overflow = true
		return to
	}
	h.lost++
	return append(to, lostLine{hash(l.text), l.old, excerpt(l.text)})
}

func (h *testHistory) asserted(s string) { h.asserts.put(hash(s)) }

func (h *testHistory) deleted(f *fileScan, tests int) {
	if len(h.files) >= maxTests {
		*h.overflow = true
		return
	}
	d := &deletedFile{finding: Finding{Kind: TestWeakened, Why: FileDeleted, Path: f.name}, tests: tests, sum: f.wasSum}
	if f.first != nil && f.c.deleted {
		d.finding.Line, d.finding.Old, d.finding.Text = f.first.old, true, excerpt(f.first.text)
	}
	h.files[f.name] = d
}

// compared notes how many assertions of a file went and came.
func (h *testHistory) compared(f *fileScan, t *testScan) {
	if t.removed == 0 && t.declared == 0 {
		return
	}
	if len(h.less) >= maxTests {
		*h.overflow = true
		return
	}
	h.less = append(h.less, fewer{finding: Finding{Kind: TestWeakened, Why: FewerAssertions, Path: f.name}, removed: t.removed, added: t.added, lost: t.lost})
}

// resolve finds what did not come back anywhere.
func (h *testHistory) resolve(add func(candidate)) {
	h.pair()
	left := map[string]int{} // tests that went with their file
	for _, t := range h.gone {
		if t.came != nil {
			continue
		}
		left[t.finding.Path]++
		if h.files[t.finding.Path] == nil {
			add(candidate{Finding: t.finding})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.files)) {
		d := h.files[name]
		if d.tests > 0 && left[name] == 0 || d.sum != 0 && h.created.take(d.sum) {
			delete(h.files, name) // all of it is elsewhere now
			continue
		}
		d.finding.Lost = left[name]
		add(candidate{Finding: d.finding})
	}
	h.fewer(add)
}

// pair finds the removed tests that were added again: by name, then by what they do.
func (h *testHistory) pair() {
	byName := map[string][]*test{}
	for _, t := range h.came {
		byName[t.name] = append(byName[t.name], t)
	}
	var gone, came []*test
	for _, t := range h.gone {
		if same := byName[t.name]; len(same) > 0 {
			same[0].matched, t.came = true, same[0]
			byName[t.name] = same[1:]
		} else {
			gone = append(gone, t)
		}
	}
	for _, t := range h.came {
		if !t.matched {
			came = append(came, t)
		}
	}
	if len(gone) > maxPairs || len(came) > maxPairs {
		*h.overflow = true
		gone, came = gone[:min(len(gone), maxPairs)], came[:min(len(came), maxPairs)]
	}
	for _, g := range gone {
		for _, c := range came {
			if !c.matched && alike(g, c) {
				c.matched, g.came = true, c
				break
			}
		}
	}
}

// added are the names of tests that were not there before, once resolve has run.
func (h *testHistory) added() (names []string) {
	for _, t := range h.came {
		if !t.matched && t.name != "" && !slices.Contains(names, t.name) && len(names) < maxAdded {
			names = append(names, t.name)
		}
	}
	return names
}

// alike reports whether one test is the other under a new name: most lines of the
// removed one are in it, or neither has shown any (the body stayed).
func alike(gone, came *test) bool {
	if len(gone.lines) == 0 && len(came.lines) == 0 {
		return true
	}
	if len(gone.lines) == 0 || len(came.lines) == 0 {
		return false
	}
	have := map[uint64]bool{}
	for _, l := range came.lines {
		have[l] = true
	}
	n := 0
	for _, l := range gone.lines {
		if have[l] {
			n++
		}
	}
	return 5*n >= 3*len(gone.lines)
}

// fewer finds files that assert less than before, without what moved to others.
func (h *testHistory) fewer(add func(candidate)) {
	at := map[string]*fewer{}
	for i := range h.less {
		at[h.less[i].finding.Path] = &h.less[i]
	}
	for _, t := range h.gone { // a test that moved counts where it was
		f := at[t.finding.Path]
		if t.came == nil || f == nil {
			continue
		}
		f.removed += t.asserted
		f.lost = append(f.lost, t.lost...)
		if t.came.finding.Path != t.finding.Path {
			f.added += t.came.asserted
		}
	}
	for i := range h.less {
		f := &h.less[i]
		if d := h.files[f.finding.Path]; d != nil {
			continue // which says more
		}
		left := 0 // that were not only moved
		for _, l := range f.lost {
			if h.asserts.take(l.hash) {
				continue
			}
			if left++; left == 1 {
				f.finding.Line, f.finding.Old, f.finding.Text = l.old, true, l.text
			}
		}
		if f.finding.Lost = min(f.removed-f.added, left); f.finding.Lost > 0 {
			add(candidate{Finding: f.finding})
		}
	}
}
