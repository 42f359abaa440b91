package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed search.md
var searchPage string

const searchSchema = `{"type":"object","properties":{` +
	`"pattern":{"type":"string","description":"Regular expression (RE2) that a line must match."},` +
	`"path":{"type":"string","description":"Directory or file to search, relative to the workspace; the workspace if not given."},` +
	`"glob":{"type":"string","description":"Glob that the files must match, e.g. *.go."},` +
	`"ignore_case":{"type":"boolean","description":"Take upper and lower case as the same; false if not given."},` +
	`"context":{"type":"integer","minimum":0,"maximum":10,"description":"Lines to show before and after each match; 0 if not given."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Most matching lines to show; 100 if not given."}},` +
	`"required":["pattern"],"additionalProperties":false}`

type searchArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignore_case"`
	Context    number `json:"context"`
	Limit      number `json:"limit"`
}

// The bounds of a search.
const (
	defaultMatches = 100
	searchLine     = 1 << 20 // bytes of a line that are searched
	searchShown    = 300     // bytes of a line that are shown
	searchBatch    = 64      // files whose matches are held at once
	searchWorkers  = 4       // files read at once
)

func searchTool(w *space) Tool {
	return builtin[searchArgs]{
		def: describe("search", searchPage, searchSchema, true),
		call: func(ctx context.Context, a searchArgs) (Result, error) {
			if a.Pattern == "" {
				return Failf("The pattern is empty. To see which files there are use list_files."), nil
			}
			expr := a.Pattern
			if a.IgnoreCase {
				expr = "(?i)" + expr
			}
			re, err := regexp.Compile(expr)
			if err != nil {
				return Failf("The pattern is not a regular expression that RE2 knows: %v. Escape characters that are meant as they are with a backslash.", err), nil
			}
			var g *glob
			if a.Glob != "" {
				if g, err = newGlob(a.Glob); err != nil {
					return Failf("The glob cannot be used: %v.", err), nil
				}
			}
			rel, problem := w.rel(cmp.Or(a.Path, "."))
			if problem != "" {
				return Failf("%s", problem), nil
			}
			s := searcher{w: w, re: re, around: int(a.Context), limit: cmp.Or(int(a.Limit), defaultMatches)}
			return s.run(ctx, rel, g, a.Pattern)
		},
	}
}

// searcher is one search.
type searcher struct {
	w      *space
	re     *regexp.Regexp
	around int
	limit  int
}

func (s *searcher) run(ctx context.Context, rel string, g *glob, pattern string) (Result, error) {
	files, problem := s.files(ctx, rel, g)
	if problem != "" {
		return ended(ctx, problem)
	}
	var b strings.Builder
	room := s.w.max - 300
	matches, searched, stopped := 0, 0, false
	for batch := range slices.Chunk(files, searchBatch) {
		for _, f := range s.batch(ctx, batch) {
			if f.err != nil && ctx.Err() != nil {
				return Result{}, ctx.Err()
			}
			if f.searched {
				searched++
			}
			for _, hit := range f.groups {
				if matches+hit.matches > s.limit && matches > 0 || b.Len()+len(hit.text) > room && b.Len() > 0 {
					stopped = true
					break
				}
				if s.around > 0 && b.Len() > 0 {
					b.WriteString("--\n")
				}
				b.WriteString(hit.text)
				matches += hit.matches
			}
			if stopped = stopped || f.more; stopped {
				break
			}
		}
		if stopped {
			break
		}
	}
	switch {
	case stopped:
		fmt.Fprintf(&b, "[stopped after %s, there are more; narrow it with path, glob or pattern]\n", counted(matches, "matching line"))
	case matches == 0:
		fmt.Fprintf(&b, "No line matches %s in %s searched.", clip(pattern, 200), counted(searched, "file"))
	default:
		fmt.Fprintf(&b, "[%s in %s searched]\n", counted(matches, "matching line"), counted(searched, "file"))
	}
	return Text(b.String()), nil
}

// files returns the paths to search, sorted, so that the answer is always the same.
func (s *searcher) files(ctx context.Context, rel string, g *glob) ([]string, string) {
	shown := rel
	rel, err := s.w.resolve(rel)
	if err != nil {
		return nil, s.w.explain(shown, err)
	}
	info, err := s.w.root.Stat(rel)
	if err != nil {
		return nil, s.w.explain(rel, err)
	}
	if !info.IsDir() {
		return []string{rel}, ""
	}
	var files []string
	err = s.w.files(ctx, rel, func(f string) bool {
		if g == nil || g.match(below(rel, f)) {
			files = append(files, f)
		}
		return true
	})
	if err != nil {
		return nil, "The files cannot be listed: " + err.Error() + "."
	}
	slices.Sort(files)
	return slices.Compact(files), ""
}

// found is what one file gave.
type found struct {
	groups   []group
	searched bool // it was text
	more     bool // it has matches beyond the limit
	err      error
}

// group is a run of shown lines that touch each other.
type group struct {
	text    string
	matches int
}

// batch searches the files at the same time and returns their answers in order.
func (s *searcher) batch(ctx context.Context, files []string) []found {
	out := make([]found, len(files))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(searchWorkers, len(files)) {
		wg.Go(func() {
			for i := range next {
				out[i] = s.file(ctx, files[i])
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	wg.Wait()
	return out
}

// file searches one file. A file that cannot be read is left out, like one
// that is not text.
func (s *searcher) file(ctx context.Context, rel string) (out found) {
	info, err := s.w.root.Lstat(rel)
	if err != nil || !info.Mode().IsRegular() { // a link's target is searched where it is
		return found{err: ctx.Err()}
	}
	f, _, problem := s.w.open(rel)
	if problem != "" {
		return found{err: ctx.Err()}
	}
	defer func() { _ = f.Close() }() // it was only read
	lines := newLineReader(f, searchLine)
	if isBinary(lines.peek()) {
		return found{err: ctx.Err()}
	}
	out.searched = true
	m := matcher{s: s, rel: clean(rel), room: s.w.max}
	for !m.done() {
		l, err := lines.next(ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				out.err = err
			}
			break
		}
		m.line(lines.n, l)
	}
	m.flush()
	out.groups, out.more = m.groups, m.more
	return out
}

// matcher gathers the shown lines of one file.
type matcher struct {
	s       *searcher
	rel     string
	room    int
	groups  []group
	text    strings.Builder
	matches int      // in text
	count   int      // in the file
	before  []string // the last lines that were not shown, at most around
	after   int      // lines still to show after a match
	more    bool
}

func (m *matcher) done() bool { return m.more || m.room <= 0 }

func (m *matcher) line(number int, l line) {
	where := m.s.re.FindIndex(l.text)
	if where == nil && m.s.around == 0 {
		return
	}
	mark := "-"
	if where != nil {
		mark = ":"
		if m.count == m.s.limit {
			m.more = true
			return
		}
	}
	shown := fmt.Sprintf("%s%s%d%s %s\n", m.rel, mark, number, mark, around(l, where))
	switch {
	case where != nil:
		m.count++
		m.matches++
		m.put(strings.Join(m.before, "") + shown)
		m.before = m.before[:0]
		m.after = m.s.around
		if m.s.around == 0 {
			m.flush()
		}
	case m.after > 0:
		m.after--
		m.put(shown)
	default:
		if len(m.before) == m.s.around {
			m.before = m.before[1:]
			m.flush() // a line between this match and the next is not shown
		}
		m.before = append(m.before, shown)
	}
}

func (m *matcher) put(s string) {
	m.text.WriteString(s)
	m.room -= len(s)
	if m.text.Len() > m.s.w.max/4 { // a group is shown whole or not at all
		m.flush()
	}
}

func (m *matcher) flush() {
	if m.matches > 0 {
		m.groups = append(m.groups, group{m.text.String(), m.matches})
		m.text.Reset()
		m.matches = 0
	}
}

// around shows a line; of a long one, the part with the match.
func around(l line, where []int) string {
	from := 0
	if where != nil && where[1] > searchShown {
		from = max(0, where[0]-searchShown/3)
		for i := 0; i < 3 && from < where[0] && l.text[from]&0xC0 == 0x80; i++ {
			from++
		}
	}
	if from == 0 {
		return shorten(l.text, searchShown, l.size)
	}
	return "..." + shorten(l.text[from:], searchShown, l.size)
}
