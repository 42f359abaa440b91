package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

//go:embed grep.md
var grepPage string

const grepSchema = `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"},"glob":{"type":"string"},` +
	`"output":{"$comment":"untold","type":"string","enum":["content","files","count"]},"ignore_case":{"$comment":"untold","type":"boolean"},"context":{"$comment":"untold","type":"integer","minimum":0,"maximum":10},` +
	`"ignored":{"$comment":"untold","type":"boolean"},"limit":{"$comment":"untold","type":"integer","minimum":1,"maximum":1000}},"required":["pattern"],"additionalProperties":false}`

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Output     string `json:"output"`
	IgnoreCase bool   `json:"ignore_case"`
	Context    Number `json:"context"`
	Ignored    bool   `json:"ignored"`
	Limit      Number `json:"limit"`
}

// The bounds of a search.
const (
	defaultMatches = 100
	searchLine     = 1 << 20 // bytes of a line that are searched
	searchShown    = 300     // bytes of a line that are shown
	searchTime     = 60 * time.Second
	searchWorkers  = 4
	firstWindow    = 128     // files whose answers are held at once, to begin with,
	lastWindow     = 8192    // and at most
	windowBytes    = 8 << 20 // of answers; a window that has more is ended early
)

func grepTool(w *workspaceFiles) Tool {
	return builtin[grepArgs]{
		def: Describe("grep", grepPage, grepSchema, true, append(searchAliases, "query", "pattern", "regex", "pattern", "search", "pattern", "include", "glob", "file_pattern", "glob",
			"output_mode", "output", "mode", "output", "-i", "ignore_case", "case_insensitive", "ignore_case", "-C", "context", "context_lines", "context", "file", "path", "file_path", "path")...),
		call: func(ctx context.Context, a grepArgs) (Result, error) {
			if a.Pattern == "" {
				return Failf("The pattern is empty. To see which files there are use list_files."), nil
			}
			expr := a.Pattern
			if a.IgnoreCase {
				expr = "(?i)" + expr
			}
			n, problem := newNeedle(expr)
			if problem != "" {
				return Failf("%s", problem), nil
			}
			var err error
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
			s := searcher{w: w, args: a, needle: n, limit: cmp.Or(int(a.Limit), defaultMatches), mode: cmp.Or(a.Output, modeContent)}
			return s.run(ctx, rel, g)
		},
	}
}

// What a search answers with.
const (
	modeContent = "content"
	modeFiles   = "files"
	modeCount   = "count"
)

// searcher is one search.
type searcher struct {
	w      *workspaceFiles
	args   grepArgs
	needle *needle
	limit  int
	mode   string
	top    *os.File
	tree   *walkTree // nil where one file is searched

	b        strings.Builder
	matches  int // lines, or files
	searched int
	closed   int  // files that could not be read
	part     int  // files of which not all was searched
	stopped  bool // there are more matches
}

func (s *searcher) run(ctx context.Context, rel string, g *glob) (Result, error) {
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	files, problem := s.files(limited, rel, g)
	if problem != "" && (limited.Err() == nil || ctx.Err() != nil) {
		return ended(ctx, problem)
	}
	var err error
	if s.top, err = s.w.root.Open("."); err != nil {
		return Failf("%s", s.w.explain(".", err)), nil
	}
	defer func() { _ = s.top.Close() }() // it was only read
	crew := make([]*lineReader, min(searchWorkers, max(runtime.GOMAXPROCS(0), 2), len(files)))
	for i := range crew {
		crew[i] = newLineReader(nil, searchLine)
	}
	size, all := firstWindow, files
	for len(files) > 0 && !s.stopped && limited.Err() == nil {
		answers := s.window(limited, crew, files[:min(size, len(files))])
		files = files[len(answers):]
		size = min(2*size, lastWindow)
		for i := range answers {
			if !s.take(&answers[i]) {
				break
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	s.note(limited.Err() != nil)
	if s.stopped && s.mode == modeContent && len(all) > 1 {
		s.perFile(limited, crew, all)
	}
	return Text(s.b.String()), ctx.Err()
}

// files returns the paths to search in their order, so that the answer is
// always the same.
func (s *searcher) files(ctx context.Context, rel string, g *glob) ([]string, string) {
	shown := rel
	rel, err := s.w.resolve(rel)
	if err != nil {
		return nil, s.w.explain(shown, err)
	}
	info, err := s.w.root.Stat(rel)
	if err != nil {
		return nil, s.w.explain(shown, err)
	}
	if !info.IsDir() {
		f, _, problem := s.w.open(rel)
		if problem != "" {
			return nil, problem
		}
		_ = f.Close() // it is opened again
		return []string{rel}, ""
	}
	s.tree, err = s.w.walk(ctx, rel, walkOptions{ignored: s.args.Ignored})
	if s.tree == nil {
		return nil, s.w.explain(shown, err)
	}
	files := make([]string, 0, s.tree.names)
	s.tree.entries(func(f string, kind entryKind) {
		// A link's target is searched where it is.
		if kind == kindFile && ctx.Err() == nil && (g == nil || g.match(below(rel, f))) {
			files = append(files, f)
		}
	})
	return files, ""
}

// answer is what one file gave.
type answer struct {
	rel    string
	groups []group
	lines  int
	text   bool // it is no binary file
	closed bool // it could not be read
	part   bool
	more   bool // it has matches beyond the limit
}

// window searches files at the same time and returns their answers in order.
// Where the answers grow large it stops before the last file.
func (s *searcher) window(ctx context.Context, crew []*lineReader, files []string) []answer {
	out := make([]answer, len(files))
	var next, bytes atomic.Int64
	var wg sync.WaitGroup
	work := func(lines *lineReader) {
		for bytes.Load() < windowBytes {
			i := int(next.Add(1)) - 1
			if i >= len(files) {
				return
			}
			out[i] = s.file(ctx, lines, files[i])
			for _, g := range out[i].groups {
				bytes.Add(int64(len(g.text)))
			}
		}
	}
	for _, lines := range crew[:min(len(crew), len(files))] {
		wg.Go(func() { work(lines) })
	}
	wg.Wait()
	return out[:min(int(next.Load()), len(files))]
}

// file searches one file.
func (s *searcher) file(ctx context.Context, lines *lineReader, rel string) (a answer) {
	failed := answer{rel: rel, closed: true}
	fd, err := openBeneath(s.w, s.top, rel, 0)
	if err != nil {
		return failed
	}
	f := os.NewFile(uintptr(fd), rel)
	defer func() { _ = f.Close() }() // it was only read
	lines.reset(io.LimitReader(f, grepFile))
	var m *matcher
	if s.mode == modeContent {
		m = &matcher{around: int(s.args.Context), limit: s.limit, most: s.w.max / 4, room: s.w.max}
	}
	if a, err = s.needle.search(ctx, lines, m, s.mode == modeFiles); err != nil {
		return failed
	}
	a.rel = rel
	return a
}

// take adds the answer of a file, and reports whether the next has a place.
func (s *searcher) take(a *answer) bool {
	if a.text {
		s.searched++
	}
	if a.closed {
		s.closed++
	}
	if a.part {
		s.part++
	}
	if s.mode != modeContent && a.lines > 0 {
		name := shownName(a.rel)
		if s.mode == modeCount {
			name += fmt.Sprintf(": %d", a.lines)
		}
		a.groups = []group{{name + "\n", 1}}
	}
	for i, hit := range a.groups {
		if i == 0 && s.mode == modeContent {
			hit.text = shownName(a.rel) + "\n" + hit.text
		}
		if s.matches+hit.matches > s.limit && s.matches > 0 || s.b.Len()+len(hit.text) > s.w.max-noteRoom && s.b.Len() > 0 {
			s.stopped = true
			return false
		}
		if s.args.Context > 0 && s.mode == modeContent && s.b.Len() > 0 {
			s.b.WriteString("--\n")
		}
		s.b.WriteString(hit.text)
		s.matches += hit.matches
	}
	s.stopped = a.more
	return !s.stopped
}

// countedFiles is how many files are named where a search was stopped.
const countedFiles = 20

// perFile says how many lines match in which files, those with most first.
func (s *searcher) perFile(ctx context.Context, crew []*lineReader, files []string) {
	counts := searcher{w: s.w, args: s.args, needle: s.needle, limit: s.limit, mode: modeCount, top: s.top}
	var hits []answer
	lines := 0
	for len(files) > 0 && ctx.Err() == nil {
		answers := counts.window(ctx, crew, files[:min(lastWindow, len(files))])
		files = files[len(answers):]
		for _, a := range answers {
			if a.lines > 0 {
				hits = append(hits, a)
				lines += a.lines
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b answer) int { return cmp.Compare(b.lines, a.lines) })
	more := ""
	if len(files) > 0 {
		more = " at least"
	}
	fmt.Fprintf(&s.b, "[matching lines:%s %d in %s: ", more, lines, counted(len(hits), "file"))
	for i, a := range hits[:min(len(hits), countedFiles)] {
		if i > 0 {
			s.b.WriteString(", ")
		}
		fmt.Fprintf(&s.b, "%s %d", clip(s.w.shown(a.rel), 100), a.lines)
	}
	if len(hits) > countedFiles {
		s.b.WriteString(", ...")
	}
	s.b.WriteString("]\n")
}

// noteRoom is more than the notes at the end of an answer take, in bytes.
const noteRoom = 600

// note says at the end how much was searched and what was not.
func (s *searcher) note(late bool) {
	noun := "matching line"
	if s.mode != modeContent {
		noun = "matching file"
	}
	switch {
	case s.stopped:
		fmt.Fprintf(&s.b, "[stopped after %s, there are more; narrow it with path, glob or pattern]\n", counted(s.matches, noun))
	case s.matches == 0:
		fmt.Fprintf(&s.b, "No line matches %s in %s searched.", clip(s.args.Pattern, 200), counted(s.searched, "file"))
		if s.tree != nil && s.tree.ignored > 0 {
			fmt.Fprintf(&s.b, " What .gitignore and .ignore name was left out; set ignored to search it too.")
		}
		if strings.ContainsAny(s.args.Pattern, "\n") || strings.Contains(s.args.Pattern, `\n`) {
			s.b.WriteString(" The pattern has a line break, and each line is searched by itself.")
		}
	default:
		fmt.Fprintf(&s.b, "[%s in %s searched]\n", counted(s.matches, noun), counted(s.searched, "file"))
	}
	var gaps []string
	if late {
		gaps = append(gaps, fmt.Sprintf("the search was stopped after %d seconds", int(searchTime.Seconds())))
	}
	if s.tree != nil {
		gaps = append(gaps, s.tree.limits()...)
	}
	if s.closed > 0 && !late {
		gaps = append(gaps, counted(s.closed, "file")+" could not be read")
	}
	if s.part > 0 {
		gaps = append(gaps, fmt.Sprintf("%s with more than %d bytes in a line or %d in all", counted(s.part, "file"), s.needle.most, grepFile))
	}
	if len(gaps) > 0 {
		if !strings.HasSuffix(s.b.String(), "\n") {
			s.b.WriteByte('\n')
		}
		fmt.Fprintf(&s.b, "[not everything was searched: %s]\n", strings.Join(gaps, "; "))
	}
}
