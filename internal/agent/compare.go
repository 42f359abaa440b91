package agent

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"toritsugi/internal/checks"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
)

// verdict is what two rounds of checks, before and after the change, say.
type verdict struct {
	broken   []contextstore.CheckRun // fail now and did not before, or fail in new places
	red      []contextstore.CheckRun // failed before as well: not this run's doing
	notFound []contextstore.CheckRun // say nothing, since a program of theirs was never there
	fewer    []contextstore.CheckRun // of those that pass, such as ran less than half of the tests of before
	empty    []contextstore.CheckRun // of those that pass, such as ran no tests where some ran before, or say so
	idle     bool                    // there was no change that could have mended anything
	none     bool                    // nothing was checked
}

// judge compares the checks after the change with those before it (DESIGN §4:
// already red is not our failure).
func judge(before, after []contextstore.CheckRun) verdict {
	v := verdict{idle: true}
	for _, a := range after {
		v.idle = v.idle && a.Commit == ""
		c := compare(before, a)
		switch {
		case a.Passed():
			if a.Ran == 0 && (c.was > 0 || a.Counted) {
				v.empty = append(v.empty, a)
			}
			if c.was > 2*c.is {
				v.fewer = append(v.fewer, a)
			}
		case !c.red || c.fresh > 0:
			v.broken = append(v.broken, a)
		case a.ExitCode == notFound && c.notFound:
			v.notFound = append(v.notFound, a)
		default:
			v.red = append(v.red, a)
		}
	}
	v.none = len(after) == len(v.notFound)
	return v
}

// notFound is the exit code of a shell that does not find a program (POSIX sh
// 2.8.2).
const notFound = 127

// comparison is what a check shows after the change that it did not before.
type comparison struct {
	red      bool     // and failed
	notFound bool     // for want of a program
	fresh    int      // tests that fail and did not before
	new      []string // of those the names, as far as they are kept
	fixed    int      // tests that failed and do no more
	mended   []string // of those the names
	still    int      // tests that fail as before
	more     int      // how many more tests pass, where that is known
	excused  []string // added tests that fail for want of what was missing before as well
	was, is  int      // how many tests ran, where fewer did
	packages bool     // of tests
}

// compare compares a check after the change with what it was before.
func compare(before []contextstore.CheckRun, after contextstore.CheckRun) (c comparison) {
	i := slices.IndexFunc(before, func(b contextstore.CheckRun) bool { return b.Command == after.Command })
	if i < 0 {
		return c
	}
	was, is := failedTests(before[i]), failedTests(after)
	c.red, c.notFound, c.excused = !before[i].Passed(), before[i].ExitCode == notFound, after.Excused
	c.fresh = is.Less(was) - len(after.Excused)
	for _, name := range after.Failing {
		if len(c.new) < c.fresh && !was.Has(name) && !slices.Contains(after.Excused, name) && !slices.Contains(c.new, name) {
			c.new = append(c.new, name)
		}
	}
	c.still = max(0, is.Len()-is.Less(was))
	if b := before[i]; b.Ran > 0 && !b.Packages && !after.Packages {
		c.more = after.Ran - is.Len() - (b.Ran - was.Len())
	}
	c.fixed = was.Less(is)
	for _, name := range before[i].Failing {
		if len(c.mended) < c.fixed && !is.Has(name) && !slices.Contains(c.mended, name) {
			c.mended = append(c.mended, name)
		}
	}
	if b := before[i]; b.Ran > after.Ran && (after.Ran > 0 && b.Packages == after.Packages || after.Ran == 0 && after.Passed()) {
		c.was, c.is, c.packages = b.Ran, after.Ran, b.Packages
	}
	return c
}

// failedTests is the set of the tests that failed in a check, also of one that an
// earlier version recorded.
func failedTests(c contextstore.CheckRun) checks.Set {
	if c.FailedSet.IsZero() {
		return checks.SetOf(c.Failing...)
	}
	return c.FailedSet
}

// known reports that it stays red, by tests that failed before alone.
func (c comparison) known() bool { return c.red && c.fresh <= 0 && c.still > 0 }

// noNew says that no test fails that did not before: how many do, and how many more
// pass.
func noNew(l i18n.Lang, known, more int) string {
	if more > 0 {
		return l.T("checks.no_new_more", known, more)
	}
	return l.T("checks.no_new", known)
}

// stillRed are those of the red checks that stay so by tests that failed before alone, and
// what is said of them; red are the others.
func (r *run) stillRed(l i18n.Lang, v verdict) (text string, known, red []contextstore.CheckRun) {
	still, more := 0, 0
	for _, a := range v.red {
		if c := compare(r.verify.before, a); c.known() {
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

// text says it in a line, the new failures first; "" where there is nothing to
// say. span shows a name.
func (c comparison) text(l i18n.Lang, span func(string) string) string {
	var all []string
	say := func(key string, n int, names []string) {
		if n == 0 {
			return
		}
		shown := make([]string, 0, shownTests+1)
		for _, name := range names[:min(len(names), shownTests)] {
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
	if c.known() {
		all = append(all, noNew(l, c.still, c.more))
	} else if c.red || c.fresh > 0 {
		say("checks.new", max(c.fresh, 0), c.new)
	}
	say("checks.excused", len(c.excused), c.excused)
	say("checks.fixed", c.fixed, c.mended)
	if !c.known() {
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

// shownTests is how many tests a line names.
const shownTests = 20

// excused are the tests that fail after the change, were added by it, and lack
// what tests of the base lack as well: nothing that the change broke.
func (r *run) excused(ctx context.Context, base contextstore.CheckRun, said checks.Summary) (names []string, err error) {
	patch := ""
	for _, f := range said.Failures {
		if f.Known || r.report.Commit == "" || !slices.Contains(base.Missing, r.Store.Redact(f.Missing())) {
			continue
		}
		if patch == "" {
			if patch, err = delivery.Patch(ctx, r.out.Workspace, r.report.Commit); err != nil {
				if ctx.Err() != nil || !errors.As(err, new(*delivery.TaskError)) {
					return nil, err
				}
				return nil, nil // too large to be looked at
			}
		}
		if adds(patch, f) {
			names = append(names, f.Name)
		}
	}
	return names, nil
}

// adds reports whether a patch adds a test: more lines that name it, or its file,
// than it removes.
func adds(patch string, f checks.Failure) bool {
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
var goFunc = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(?:Test|Fuzz|Example)\w*`) })
