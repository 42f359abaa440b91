// Package scan reads a patch and says what a reviewer would object to: placeholders, weakened
// tests, files that decide what is built and checked. It judges lines, reads the patch and
// what the checks run, and takes bounded memory.
package scan

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is the class of a finding.
type Kind string

// The kinds of findings.
const (
	Placeholder   Kind = "placeholder"    // an added line stands for work that was not done
	TestWeakened  Kind = "test_weakened"  // tests prove less than before
	GoldenChanged Kind = "golden_changed" // what tests compare with is another; for information
	CITouched     Kind = "ci_touched"     // what a build service does
	BuildTouched  Kind = "build_touched"  // how the project is built, linted or tested
	ChecksConfig  Kind = "checks_config"  // what decides over the checks of Options.Checks
)

// Kinds lists all kinds, the gravest first.
func Kinds() []Kind {
	return []Kind{ChecksConfig, TestWeakened, Placeholder, CITouched, BuildTouched, GoldenChanged}
}

// Why says within its kind what a finding is about; callers have the words.
type Why string

// The reasons of findings, by kind.
const (
	// Placeholder.
	Marker         Why = "marker"          // TODO, FIXME, XXX, HACK, TBD in a comment
	Promise        Why = "promise"         // "your code here", 実装予定
	Elision        Why = "elision"         // "... existing code ..."
	NotImplemented Why = "not_implemented" // panic("not implemented"), todo!()
	EmptyBody      Why = "empty_body"      // a function that is only pass or ...

	// TestWeakened.
	FileDeleted      Why = "test_file_deleted"
	TestRemoved      Why = "test_removed"
	SkipAdded        Why = "skip_added"
	FocusAdded       Why = "focus_added" // .only: all others are left out
	FewerAssertions  Why = "fewer_assertions"
	TrivialAssertion Why = "trivial_assertion"
	TestMain         Why = "test_main"        // Go: what runs the tests of a package, or does not
	Unreadable       Why = "unreadable"       // Go: the file is none that can be parsed, or too large
	EndsTests        Why = "ends_tests"       // the program of the tests ends, without an error
	BuildConstraint  Why = "build_constraint" // Go: whether a file of tests is built

	// The others.
	Golden       Why = "golden"
	CI           Why = "ci"
	Build        Why = "build"
	Dependencies Why = "dependencies"
	Scripts      Why = "scripts"
	TestConfig   Why = "test_config"
	LintConfig   Why = "lint_config"
	Hooks        Why = "hooks"
	CheckFile    Why = "check_file"  // that a check names
	Runner       Why = "runner"      // which program runs the checks
	Environment  Why = "environment" // a variable that its tools take orders from
)

// Finding is one thing to look at.
type Finding struct {
	Kind Kind
	Path string // slashes, not quoted; of the new file, of the old one where it was deleted
	Line int    // 1-based, 0 where the finding is about the file
	Old  bool   // Line is of the file as it was before
	Text string // the line, without its indentation, valid UTF-8, at most 200 bytes; "" where Line is 0
	Why  Why
	Lost int // assertions or tests that went, with FewerAssertions and FileDeleted, else 0
}

// Report is what a patch was found to hold.
type Report struct {
	Findings []Finding    // by path, line and kind
	Counts   map[Kind]int // of all that was found, shown or not
	// Truncated says that not all findings are listed, or that not all was
	// compared: what moved within a huge patch may then be taken for gone.
	Truncated bool
	Added     []string // names of the tests that the patch adds, at most 20
}

// maxAdded is how many tests that a patch adds are named.
const maxAdded = 20

// Options say what is looked for.
type Options struct {
	Max    int      // most findings, default 200
	Checks []string // the commands that check the project
	// Before returns a file as it was before the change, "" where there is none;
	// nil where only the patch can be read.
	Before func(path string) (string, error)
}

const (
	defaultMax = 200
	maxText    = 200 // bytes of Finding.Text
)

// Patch reads a patch as git diff --no-renames writes it with the whole of each
// file, so that nothing around a change has to be guessed, until r ends.
// An error of r is returned as it is; where the patch is malformed the error is
// a *SyntaxError. The report then holds what was found up to there.
func Patch(r io.Reader, opts Options) (Report, error) {
	opts.Max = cmp.Or(max(opts.Max, 0), defaultMax)
	s := newScanner(opts)
	err := errors.Join(s.unread, readPatch(r, s))
	return s.report(), err
}

// Whole is as many unchanged lines beside a change as no file has.
const Whole = 100_000_000

// Written is Patch of what write writes.
func Written(write func(io.Writer) error, opts Options) (Report, error) {
	in, out := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(out)
		written <- errors.Join(err, out.CloseWithError(err))
	}()
	found, err := Patch(in, opts)
	if err != nil {
		_ = in.CloseWithError(err) // who writes need not go on
	}
	return found, errors.Join(err, <-written)
}

// candidate is a finding that what comes later in the patch may take back.
type candidate struct {
	Finding
	moved uint64 // what a removed line has in common with it, 0 for nothing
	class string // that it is no placeholder in if something extends it
}

// scanner collects what a patch holds, file by file.
type scanner struct {
	opts      Options
	files     map[string]bool // that Options.Checks name, or what they run
	unread    error           // why not all of those are known
	tools     []string        // whose tests they run
	kept      map[Kind][]candidate
	counts    map[Kind]int
	removed   bag             // placeholders that went, by candidate.moved
	bases     map[string]bool // classes that something extends
	truncated bool
	history   testHistory
	goWas     goCode
	goNow     goCode
	file      *fileScan
}

// Limits of what is remembered of a patch, whatever its length.
const (
	maxBag   = 100_000 // hashes
	maxBases = 10_000
)

func newScanner(opts Options) *scanner {
	s := &scanner{opts: opts, kept: map[Kind][]candidate{}, counts: map[Kind]int{}, bases: map[string]bool{}, goWas: goCode{decls: map[uint64][]goDecl{}}, goNow: goCode{decls: map[uint64][]goDecl{}}}
	s.removed, s.history = newBag(&s.truncated), newTestHistory(&s.truncated)
	b := behind{read: opts.Before, all: map[string]bool{}, done: map[string]bool{}, left: maxBehind}
	for _, c := range opts.Checks {
		b.command([]string{"."}, c)
		s.tools = append(s.tools, toolsOf(c)...)
	}
	s.files, s.unread = b.all, b.err
	return s
}

func (s *scanner) begin(c change) {
	s.file = newFileScan(s, c)
	s.file.path()
}

func (s *scanner) lines(all []line) {
	for i := range all {
		s.file.line(&all[i])
	}
}

func (s *scanner) end() {
	s.file.end()
	s.file = nil
}

// add takes a finding; those over the limit are only counted.
func (s *scanner) add(c candidate) {
	s.counts[c.Kind]++
	if len(s.kept[c.Kind]) >= s.opts.Max {
		s.truncated = true
		return
	}
	s.kept[c.Kind] = append(s.kept[c.Kind], c)
}

// report resolves what can only be known at the end, and lists the rest.
func (s *scanner) report() Report {
	if s.file != nil { // the patch broke off
		s.file.end()
	}
	s.history.resolve(s.add)
	s.ends()
	placeholders := s.kept[Placeholder]
	s.kept[Placeholder] = placeholders[:0]
	for _, c := range placeholders {
		if s.bases[c.class] || c.moved != 0 && s.removed.take(c.moved) {
			s.counts[Placeholder]--
			continue
		}
		s.kept[Placeholder] = append(s.kept[Placeholder], c)
	}
	r := Report{Counts: map[Kind]int{}, Truncated: s.truncated, Added: s.history.added()}
	for _, k := range Kinds() {
		if s.counts[k] > 0 {
			r.Counts[k] = s.counts[k]
		}
	}
	for k, n := range s.shares() {
		for _, c := range s.kept[k][:n] {
			r.Findings = append(r.Findings, c.Finding)
		}
		r.Truncated = r.Truncated || n < len(s.kept[k])
	}
	slices.SortFunc(r.Findings, compare)
	return r
}

// shares divides Max among the kinds, so that none crowds out the others.
func (s *scanner) shares() map[Kind]int {
	all := map[Kind]int{}
	for left := s.opts.Max; left > 0; {
		before := left
		for _, k := range Kinds() {
			if left > 0 && all[k] < len(s.kept[k]) {
				all[k]++
				left--
			}
		}
		if left == before {
			break
		}
	}
	return all
}

func compare(a, b Finding) int {
	if n := strings.Compare(a.Path, b.Path); n != 0 {
		return n
	}
	if n := a.Line - b.Line; n != 0 {
		return n
	}
	if n := strings.Compare(string(a.Kind), string(b.Kind)); n != 0 {
		return n
	}
	return strings.Compare(string(a.Why), string(b.Why))
}

// excerpt is a line as a person may see it.
func excerpt(line string) string {
	line = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, strings.ToValidUTF8(line[:min(len(line), 4*maxText)], "\uFFFD"))
	line = strings.TrimSpace(line)
	if len(line) <= maxText {
		return line
	}
	n := maxText - len("…")
	for n > 0 && !utf8.RuneStart(line[n]) {
		n--
	}
	return line[:n] + "…"
}
