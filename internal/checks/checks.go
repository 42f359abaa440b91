// Package checks reads what a check command printed and says which tests
// failed, where and why: short enough for a model, complete enough to work
// with. It runs nothing; memory is bounded whatever the output.
package checks

import (
	"bytes"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// The bounds of a Summary.
const (
	MaxFailures = 200     // failures that are kept; of more there is the number, and Summary.Set
	MaxExcerpt  = 2 << 10 // bytes of one excerpt
	MaxMessage  = 300     // bytes of one message

	maxName    = 300
	maxLine    = 4 << 10 // bytes of a line that are looked at
	maxTail    = 8 << 10 // bytes of the output's end that are kept
	maxTelling = 30      // lines that look like the reason
	maxOpen    = 512     // tests that run at once, or blocks that wait for their name
)

// Failure is one test, package or file that failed.
type Failure struct {
	Name    string // stable between runs: what sets of failures are compared by
	File    string // "" where not told
	Line    int    // 0 where not told
	Message string // one line, the reason in short
	Excerpt string // the lines that tell more; may be empty
	Known   bool   `json:",omitempty"` // it failed before as well
}

// Summary is what an output says.
type Summary struct {
	Framework string // "go test", "pytest", …; several joined by ", "; "" where none was recognised
	// Passed, Failed and Skipped count tests. Where go test does not list those
	// that passed, Passed counts packages.
	Passed, Failed, Skipped int
	Ran                     int       // tests, or where those that passed are not listed, packages
	Packages                bool      // Ran counts packages
	Failures                []Failure // in the order they were told, at most MaxFailures: those that are not known first
	Set                     Set       `json:",omitzero"` // of all that failed
	Missing                 []string  // what failures, or an output without any, say is not there: programs, modules, the network; in order
	More                    int       // failures that are not among Failures
	Telling                 []string  // of an output without failures: lines that look like the reason
	Tail                    string    // the end of the output, whole lines, UTF-8
	Cut                     bool      // Tail is not all of the output
}

// Counted reports whether the output says how many tests ran, also of none: go
// test may list nothing.
func (s Summary) Counted() bool { return s.Framework != "" && s.Framework != "go test" }

// Names returns the names of the failures, each once.
func (s Summary) Names() []string {
	var names []string
	for _, f := range s.Failures {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Parser takes the output of a check command as it comes. It is an io.Writer
// that never fails and never blocks; it is not for use by several at once.
type Parser struct {
	line    []byte
	tail    []byte
	cut     bool
	telling []string
	loading []string // modules that go said it loads
	last    string   // the last line that was told
	readers []reader
	sink    *sink
}

// reader follows the output of one kind of test runner, line by line, without
// line ends and colours. The line is valid UTF-8.
type reader interface {
	read(line string)
	end() // the output is over
}

// NewParser returns a Parser for any output.
func NewParser() *Parser { return Against(Set{}, "") }

// Against returns a Parser for the output of a check whose failures of before are
// known: others are told first, and kept where there is no room for all. Paths are
// told relative to tree, the absolute path of the workspace; "" for as they are.
func Against(known Set, tree string) *Parser {
	s := &sink{known: known, tree: tree}
	return &Parser{sink: s, readers: []reader{&goTest{sink: s, open: -1}, &goJSON{sink: s}, &pytest{sink: s}, &unittest{sink: s}, &jest{sink: s}, &vitest{sink: s}, &cargo{sink: s}}}
}

// Write takes the next part of the output.
func (p *Parser) Write(b []byte) (int, error) {
	p.keep(b)
	for rest := b; len(rest) > 0; {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		line = line[:min(len(line), max(0, maxLine-len(p.line)))]
		if found && len(p.line) == 0 {
			p.endLine(line)
		} else if p.line = append(p.line, line...); found {
			p.endLine(p.line)
		}
		rest = after
	}
	return len(b), nil
}

// keep holds the end of the output.
func (p *Parser) keep(b []byte) {
	if len(b) > 2*maxTail {
		b = b[len(b)-2*maxTail:]
		p.tail, p.cut = p.tail[:0], true
	}
	p.tail = append(p.tail, b...)
	if len(p.tail) > 2*maxTail {
		p.tail = append(p.tail[:0], p.tail[len(p.tail)-maxTail:]...)
		p.cut = true
	}
}

// colours are the terminal's escape sequences.
var colours = lazyregexp.New("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\^_])")

// Plain is a line without its end as a terminal shows it last: without colours, and
// of what was written over (a progress bar) the last state.
func Plain(s string) string {
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = colours().ReplaceAllString(s, "")
	}
	s = strings.TrimRight(s, "\r")
	if i := strings.LastIndexByte(s, '\r'); i >= 0 {
		s = s[i+1:]
	}
	return s
}

// clean makes a line readable.
func clean(b []byte) string {
	s := Plain(strings.ToValidUTF8(string(b), "\uFFFD"))
	if strings.ContainsFunc(s, unprintable) {
		s = strings.Map(func(r rune) rune {
			if unprintable(r) {
				return '\uFFFD'
			}
			return r
		}, s)
	}
	return strings.TrimRight(s, " \t")
}

func unprintable(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// stems are what lines hold that look like the reason of a failure.
var stems = []string{"error", "fail", "fatal", "panic", "exception", "traceback", "undefined", "cannot", "could not", "no such", "not found", "denied", "fault", "killed", "abort", "assert", "unable", "missing", "invalid", "connection refused", "disabled by", "***"}

// telling reports a line that looks like the reason of a failure.
func telling(line string) bool {
	low := strings.ToLower(line)
	return slices.ContainsFunc(stems, func(stem string) bool { return strings.Contains(low, stem) })
}

func (p *Parser) endLine(raw []byte) {
	line := clean(raw)
	p.line = p.line[:0]
	for _, r := range p.readers {
		r.read(line)
	}
	if name, found := strings.CutPrefix(line, "go: downloading "); found && len(p.loading) < maxMissing {
		name, _, _ = strings.Cut(name, " ")
		p.loading = append(p.loading, name)
	}
	if strings.Contains(line, "module lookup disabled by GOPROXY=off") { // which one go may have said before
		for _, name := range p.loading {
			p.sink.missing = addMissing(p.sink.missing, "module "+name)
		}
	}
	if line == "" || line == p.last || !telling(line) {
		return
	}
	p.last = line
	short := clip(p.sink.relative(strings.TrimSpace(line)), MaxMessage)
	if slices.Contains(p.telling, short) {
		return
	}
	// The first ones are the causes, the last ones the conclusions.
	if len(p.telling) == maxTelling {
		p.telling = append(p.telling[:maxTelling/2], p.telling[maxTelling/2+1:]...)
	}
	p.telling = append(p.telling, short)
}

// Summary ends the output and returns what it says. The Parser takes no more.
func (p *Parser) Summary() Summary {
	if len(p.line) > 0 {
		p.endLine(p.line)
	}
	for _, r := range p.readers {
		r.end()
	}
	s := p.sink.summary()
	tail := p.tail
	if len(tail) > maxTail {
		tail, p.cut = tail[len(tail)-maxTail:], true
	}
	if p.cut {
		if i := bytes.IndexByte(tail, '\n'); i >= 0 {
			tail = tail[i+1:]
		}
	}
	s.Tail, s.Cut = p.sink.relative(colours().ReplaceAllString(strings.ToValidUTF8(string(tail), "\uFFFD"), "")), p.cut
	if len(s.Failures) == 0 {
		s.Telling = slices.Clone(p.telling)
		for _, line := range s.Telling {
			s.Missing = addMissing(s.Missing, Missing(line))
		}
	}
	return s
}

// sink gathers what the readers find.
type sink struct {
	known                   Set
	tree                    string // see Against
	frameworks              []string
	passed, failed, skipped int
	packages                int // of go test, whose passed tests are not listed: those that ran
	listed                  bool
	failures                []Failure
	set                     setBuilder
	missing                 []string
	told                    int // failures that came, also twice
}

// relative is a text with the paths below the tree as they are from there.
func (s *sink) relative(text string) string {
	if s.tree == "" {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "file://"+s.tree+"/", ""), s.tree+"/", "")
}

// seen notes that a framework's output was recognised.
func (s *sink) seen(framework string) {
	if !slices.Contains(s.frameworks, framework) {
		s.frameworks = append(s.frameworks, framework)
	}
}

// add records a failure. What was told before, by name and file, is kept, and
// completed with what is new. Where there is no room one that was known makes it.
func (s *sink) add(f Failure) {
	f.Name = clip(s.relative(strings.TrimSpace(f.Name)), maxName)
	f.Message = clip(s.relative(strings.Join(strings.Fields(f.Message), " ")), MaxMessage)
	f.Excerpt = clipLines(s.relative(f.Excerpt), MaxExcerpt)
	f.File = clip(s.relative(f.File), maxName)
	f.Known = s.known.Has(f.Name)
	s.told++
	s.set.add(f.Name)
	s.missing = addMissing(s.missing, f.Missing())
	for i, o := range s.failures {
		if o.Name == f.Name && (o.File == f.File || o.File == "" || f.File == "") {
			s.fill(i, f)
			return
		}
	}
	if len(s.failures) >= MaxFailures {
		i := slices.IndexFunc(s.failures, func(o Failure) bool { return o.Known })
		if i < 0 || f.Known {
			return
		}
		s.failures = slices.Delete(s.failures, i, i+1)
	}
	s.failures = append(s.failures, f)
}

// fill completes the failure at i with what f tells more.
func (s *sink) fill(i int, f Failure) {
	o := &s.failures[i]
	if o.File == "" {
		o.File, o.Line = f.File, f.Line
	}
	if o.Message == "" {
		o.Message = f.Message
	}
	if o.Excerpt == "" {
		o.Excerpt = f.Excerpt
	}
}

func (s *sink) summary() Summary {
	sum := Summary{Framework: strings.Join(s.frameworks, ", "), Passed: s.passed, Skipped: s.skipped, Failures: slices.Clone(s.failures), Set: s.set.set(), Missing: s.missing}
	slices.SortStableFunc(sum.Failures, func(a, b Failure) int {
		switch {
		case a.Known == b.Known:
			return 0
		case b.Known:
			return -1
		}
		return 1
	})
	sum.More = max(0, sum.Set.Len()-len(sum.Names()))
	sum.Failed = max(s.failed, len(sum.Failures)+sum.More)
	if sum.Ran = sum.Passed + sum.Failed; s.packages > 0 && !s.listed {
		sum.Ran, sum.Packages = s.packages, true
	}
	return sum
}
