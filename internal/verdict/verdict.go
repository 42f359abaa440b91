// Package verdict says what the checks of a project show of a change: it compares those after
// it with those of its base, test by test, so that what was red before is not held against
// the change. It runs nothing.
package verdict

import (
	"regexp"
	"slices"
	"strings"

	"toritsugi/internal/checks"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
)

// Verdict is what two rounds of checks, before and after the change, say.
type Verdict struct {
	Broken   []contextstore.CheckRun // fail now and did not before, or fail in new places
	Red      []contextstore.CheckRun // failed before as well: not this run's doing
	NotFound []contextstore.CheckRun // say nothing, since a program of theirs was never there
	Fewer    []contextstore.CheckRun // of those that pass, such as ran less than half of the tests of before
	Empty    []contextstore.CheckRun // of those that pass, such as ran no tests where some ran before, or say so
	Idle     bool                    // there was no change that could have fixedNames anything
	None     bool                    // nothing was checked

	base []contextstore.CheckRun
}

// Of compares the checks after the change with those before it (DESIGN §4:
// already red is not our failure).
func Of(before, after []contextstore.CheckRun) Verdict {
	v := Verdict{Idle: true, base: before}
	for _, a := range after {
		v.Idle = v.Idle && a.Commit == ""
		c := Compare(before, a)
		switch {
		case a.Passed():
			if a.Ran == 0 && (c.was > 0 || a.Counted) {
				v.Empty = append(v.Empty, a)
			}
			if c.was > 2*c.is {
				v.Fewer = append(v.Fewer, a)
			}
		case !c.Red || c.Fresh > 0:
			v.Broken = append(v.Broken, a)
		case a.ExitCode == notFound && c.notFound:
			v.NotFound = append(v.NotFound, a)
		default:
			v.Red = append(v.Red, a)
		}
	}
	v.None = len(after) == len(v.NotFound)
	return v
}

// notFound is the exit code of a shell that does not find a program (POSIX sh
// 2.8.2).
const notFound = 127

// Comparison is what a check shows after the change that it did not before.
type Comparison struct {
	Red        bool     // it failed before the change
	notFound   bool     // for want of a program
	Fresh      int      // tests that fail and did not before
	new        []string // of those the names, as far as they are kept
	fixed      int      // tests that failed and do no more
	fixedNames []string // of those the names
	still      int      // tests that fail as before
	more       int      // how many more tests pass, where that is known
	excused    []string // added tests that fail for want of what was missing before as well
	was, is    int      // how many tests ran, where fewer did
	packages   bool     // these are packages of tests
}

// Compare compares a check after the change with what it was before.
func Compare(before []contextstore.CheckRun, after contextstore.CheckRun) (c Comparison) {
	i := slices.IndexFunc(before, func(b contextstore.CheckRun) bool { return b.Command == after.Command })
	if i < 0 {
		return c
	}
	was, is := Failed(before[i]), Failed(after)
	c.Red, c.notFound, c.excused = !before[i].Passed(), before[i].ExitCode == notFound, after.Excused
	c.Fresh = is.Less(was) - len(after.Excused)
	for _, name := range after.Failing {
		if len(c.new) < c.Fresh && !was.Has(name) && !slices.Contains(after.Excused, name) && !slices.Contains(c.new, name) {
			c.new = append(c.new, name)
		}
	}
	c.still = max(0, is.Len()-is.Less(was))
	if b := before[i]; b.Ran > 0 && !b.Packages && !after.Packages {
		c.more = after.Ran - is.Len() - (b.Ran - was.Len())
	}
	c.fixed = was.Less(is)
	for _, name := range before[i].Failing {
		if len(c.fixedNames) < c.fixed && !is.Has(name) && !slices.Contains(c.fixedNames, name) {
			c.fixedNames = append(c.fixedNames, name)
		}
	}
	if b := before[i]; b.Ran > after.Ran && (after.Ran > 0 && b.Packages == after.Packages || after.Ran == 0 && after.Passed()) {
		c.was, c.is, c.packages = b.Ran, after.Ran, b.Packages
	}
	return c
}

// Failed is the set of the tests that failed in a check, also of one that an
// earlier version recorded.
func Failed(c contextstore.CheckRun) checks.Set {
	if c.FailedSet.IsZero() {
		return checks.SetOf(c.Failing...)
	}
	return c.FailedSet
}

// Known reports that it stays red, by tests that failed before alone.
func (c Comparison) Known() bool { return c.Red && c.Fresh <= 0 && c.still > 0 }

// noNew says that no test fails that did not before: how many do, and how many more
// pass.
func noNew(l i18n.Lang, known, more int) string {
	if more > 0 {
		return l.T("checks.no_new_more", known, more)
	}
	return l.T("checks.no_new", known)
}

// Text says it in a line, the new failures first; "" where there is nothing to
// say. span shows a name.
func (c Comparison) Text(l i18n.Lang, span func(string) string) string {
	var all []string
	say := func(key string, n int, names []string) {
		if n == 0 {
			return
		}
		shown := make([]string, 0, MaxNamed+1)
		for _, name := range names[:min(len(names), MaxNamed)] {
			shown = append(shown, span(name))
		}
		text := l.T(key, n)
		if n > len(shown) && len(shown) > 0 {
			shown = append(shown, "…")
		}
		if len(shown) > 0 {
			text += ": " + strings.Join(shown, ", ")
		}
		all = append(all, text)
	}
	if c.Known() {
		all = append(all, noNew(l, c.still, c.more))
	} else if c.Red || c.Fresh > 0 {
		say("checks.new", max(c.Fresh, 0), c.new)
	}
	say("checks.excused", len(c.excused), c.excused)
	say("checks.fixed", c.fixed, c.fixedNames)
	if !c.Known() {
		say("checks.still", c.still, nil)
	}
	if c.was > c.is {
		key := "checks.fewer"
		if c.packages {
			key = "checks.fewer_packages"
		}
		all = append(all, l.T(key, c.was, c.is))
	}
	return strings.Join(all, "; ")
}

// MaxNamed is how many tests a line names.
const MaxNamed = 20

// Adds reports whether a patch adds a test: more lines that name it, or its file,
// than it removes.
func Adds(patch string, f checks.Failure) bool {
	for _, part := range testParts(f.Name) {
		word := regexp.MustCompile(`(?m)^([+-])(?:.*[^\pL\pN_])?` + regexp.QuoteMeta(part) + `(?:$|[^\pL\pN_])`)
		balance := 0
		for _, m := range word.FindAllStringSubmatch(patch, -1) {
			if m[1] == "+" {
				balance++
			} else {
				balance--
			}
		}
		if balance > 0 {
			return true
		}
	}
	return false
}

// testParts are what of a test's name stands where it is written: the function, a
// case, a title, or the path of a file that fails as a whole.
func testParts(name string) (parts []string) {
	name, _, _ = strings.Cut(name, "[")
	last := name
	for _, sep := range []string{"::", " › ", "/"} {
		if i := strings.LastIndex(last, sep); i >= 0 {
			last = last[i+len(sep):]
		}
	}
	parts = append(parts, strings.ReplaceAll(last, "_", " "), last)
	if i := strings.LastIndexByte(last, '.'); i >= 0 {
		parts = append(parts, last[i+1:])
	}
	parts = append(parts, goFunc().FindString(name))
	return slices.DeleteFunc(parts, func(p string) bool { return len(p) < 4 })
}

// goFunc finds the function of a test of Go.
var goFunc = lazyregexp.New(`\b(?:Test|Fuzz|Example)\w*`)

// StillRed are those of the red checks that stay so by tests that failed before alone, and
// what is said of them; red are the others.
func (v Verdict) StillRed(l i18n.Lang) (text string, known, red []contextstore.CheckRun) {
	still, more := 0, 0
	for _, a := range v.Red {
		if c := Compare(v.base, a); c.Known() {
			known, still, more = append(known, a), still+c.still, more+max(c.more, 0)
		} else {
			red = append(red, a)
		}
	}
	if len(known) > 0 {
		text = noNew(l, still, more)
	}
	return text, known, red
}

// Round returns the recorded runs of one round.
func Round(all []contextstore.CheckRun, n int) []contextstore.CheckRun {
	return slices.DeleteFunc(slices.Clone(all), func(c contextstore.CheckRun) bool { return c.Round != n || c.Setup })
}

// maxRounds is how often failing checks send the model back to work.
const maxRounds = 3

// SendsBack reports whether checks send the model back to work, at its attempt:
// those that the change breaks, and once where nothing was changed while some are
// red, or where most tests do not run any more. What was red and stays so does not.
func SendsBack(v Verdict, attempt int) bool {
	return attempt < maxRounds && (len(v.Broken) > 0 || attempt == 1 && (v.Idle && len(v.Red) > 0 || len(v.Fewer) > 0))
}

// Attempt is how many of the rounds of checks up to n count for maxRounds. A round
// that did not send the model back does not count: the model went on because
// somebody commented.
func Attempt(before, all []contextstore.CheckRun, n int) int {
	last := 0
	for k := 1; k < n; k++ {
		if !SendsBack(Of(before, Round(all, k)), k-last) {
			last++
		}
	}
	return n - last
}

// Ran are the checks that could be run.
func Ran(all, notFound []contextstore.CheckRun) []contextstore.CheckRun {
	return slices.DeleteFunc(slices.Clone(all), func(c contextstore.CheckRun) bool {
		return slices.ContainsFunc(notFound, func(n contextstore.CheckRun) bool { return n.Command == c.Command })
	})
}

// Commands names checks.
func Commands(runs []contextstore.CheckRun) string {
	var names []string
	for _, c := range runs {
		names = append(names, "`"+c.Command+"`")
	}
	return strings.Join(names, ", ")
}

// Result is how a check ended, in a word.
func Result(l i18n.Lang, c contextstore.CheckRun) string {
	switch {
	case c.Passed():
		return l.T("agent.passed")
	case c.TimedOut:
		return l.T("agent.timed_out")
	case c.Limit != "":
		return l.T("agent.over_limit", LimitText(l, c.Limit, c.Bound))
	}
	return l.T("agent.failed", c.ExitCode)
}

// LimitText names a limit of the sandbox, and how much it allows; "" for none.
func LimitText(l i18n.Lang, limit, bound string) string {
	switch {
	case limit == "":
		return ""
	case bound == "":
		return l.T("limit." + limit)
	}
	return l.T("limit."+limit, bound)
}
