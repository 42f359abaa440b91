package scan

import (
	"path"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// testScan compares the tests of one file before and after.
type testScan struct {
	f *fileScan
	*dialect
	was, now reading

	removed, added int // assertions; those of removed tests count elsewhere
	lost           []lostLine
	declared       int // tests that were removed
}

// reading is where one side of a file is.
type reading struct {
	mark    *line  // a line that says that the next function is a test
	test    *test  // whose lines follow, if it was added or removed
	fresh   bool   // the function around was added, or the file
	above   string // the last line that is not blank
	skipped *candidate
}

// lostLine is an assertion that went.
type lostLine struct {
	hash uint64
	old  int
	text string
}

func newTestScan(f *fileScan, d *dialect) *testScan {
	return &testScan{f: f, dialect: d, now: reading{fresh: f.c.created}}
}

// before takes a line of the file as it was.
func (t *testScan) before(l *line, class []byte) {
	r := &t.was
	if name, at := t.declares(r, l, class); at != nil {
		r.test = nil
		if at.op == '-' {
			t.declared++
			r.test = t.f.s.history.remove(t.f, name, at)
		}
	} else if l.op == ' ' && t.isOther(l.text) {
		r.test = nil
	} else if l.op == '-' {
		r.test.body(l.text)
	}
	if l.op == '-' && t.asserts(l.text, class) {
		if r.test != nil {
			r.test.asserted++
			r.test.lost = t.f.s.history.lose(r.test.lost, l)
			return
		}
		t.removed++
		t.lost = t.f.s.history.lose(t.lost, l)
	}
}

// after takes a line of the file as it is now.
func (t *testScan) after(l *line, class []byte) {
	r := &t.now
	if name, at := t.declares(r, l, class); at != nil {
		t.decideSkip(l.op == '+')
		r.test, r.fresh = nil, l.op == '+'
		if at.op == '+' {
			r.test = t.f.s.history.add(t.f, name)
		}
	} else if t.isOther(l.text) {
		t.decideSkip(l.op == '+')
		r.test, r.fresh = nil, l.op == '+'
	} else if l.op == '+' {
		r.test.body(l.text)
	}
	if l.op == '+' {
		asserts := t.asserts(l.text, class)
		t.judge(l, class, asserts)
		if asserts {
			t.f.s.history.asserted(l.text)
			t.added++
			if r.test != nil {
				r.test.asserted++
			}
		}
	}
	if text := strings.TrimLeft(l.text, " \t"); text != "" && class[len(l.text)-len(text)] != comment {
		r.above = l.text
	}
}

// declares finds a test that begins with a line: its name, and the line by which
// it came or went, which may be the mark above it; nil where none begins.
func (t *testScan) declares(r *reading, l *line, class []byte) (name string, at *line) {
	text := strings.TrimLeft(l.text, " \t")
	if text == "" {
		return "", nil
	}
	if t.mark != nil && t.marks(l.text, class) {
		copied := *l
		r.mark = &copied
		// The function may stand on the same line.
		if _, rest, ok := strings.Cut(l.text, " void "); ok {
			if m := t.marked().FindStringSubmatch(rest); m != nil {
				r.mark = nil
				return lastOf(m), l
			}
		}
		return "", nil
	}
	if class[len(l.text)-len(text)] != code {
		return "", nil
	}
	if r.mark != nil && text[0] != '@' && text[0] != '#' && text[0] != '[' {
		if m := t.marked().FindStringSubmatch(l.text); m != nil {
			at, r.mark = r.mark, nil
			if at.op == ' ' {
				at = l
			}
			return lastOf(m), at
		}
	}
	if t.declare != nil {
		if m := t.declare().FindStringSubmatch(l.text); m != nil {
			return lastOf(m), l
		}
	}
	return "", nil
}

// marks finds a mark, which a PHP comment may be.
func (t *testScan) marks(s string, class []byte) bool {
	if !strings.ContainsAny(s, "@#[") || !t.mark().MatchString(s) {
		return false
	}
	at := len(s) - len(strings.TrimLeft(s, " \t"))
	return class[at] == code || t.f.lang.family == "php" && class[at] == comment
}

// lastOf is the last group that matched, without quotes.
func lastOf(m []string) string {
	for i := len(m) - 1; i > 0; i-- {
		if m[i] != "" {
			return strings.Trim(m[i], "\"'`")
		}
	}
	return ""
}

func (t *testScan) isOther(s string) bool { return t.other != nil && t.other().MatchString(s) }

// asserts reports whether a line asserts something. Go's t.Fatal(err) is how
// tests pass errors on.
func (t *testScan) asserts(s string, class []byte) bool {
	if !t.f.test && t.f.lang.family != "rust" || strings.HasSuffix(strings.TrimSpace(s), ".Fatal(err)") {
		return false
	}
	return found(t.assert(), s, class)
}

// judge finds what makes tests prove less on an added line.
func (t *testScan) judge(l *line, class []byte, asserts bool) {
	s := l.text
	if t.ends != nil && t.f.test && found(t.ends(), s, class) {
		t.f.s.add(candidate{Finding: t.f.at(TestWeakened, EndsTests, l)})
	}
	switch {
	case !hinted(s):
	case t.focus != nil && found(t.focus(), s, class):
		t.f.s.add(candidate{Finding: t.f.at(TestWeakened, FocusAdded, l)})
	case found(t.skip(), s, class):
		t.skips(l)
	}
	if asserts && found(t.trivial(), s, class) {
		t.f.s.add(candidate{Finding: t.f.at(TestWeakened, TrivialAssertion, l)})
	}
}

// hinted sorts out most lines that skip nothing before any expression is tried.
func hinted(s string) bool {
	return anyOf(s, "kip", "KIP", "only", "gnore", "xfail", "pending", "todo", "fixme", "isabled", "DISABLED", "xit", "xtest", "xspec", "xdesc", "xcont",
		"fit", "fdesc", "fcont", "failing", "Failure", "Incomplete", "ssum", "[.", "focus", "solo", "Explicit", "Inconclusive", "IGNORE", "NotPerform")
}

// skips takes a line that skips a test. A test that is new may say under which
// conditions it can run; one that was there runs less than before.
func (t *testScan) skips(l *line) {
	c := candidate{Finding: t.f.at(TestWeakened, SkipAdded, l)}
	text := strings.TrimSpace(l.text)
	switch {
	case strings.HasPrefix(text, "@") && (strings.Contains(strings.ToLower(text), "skipif") || strings.Contains(text, "skipUnless")):
		t.now.skipped = &c // of the function that follows
	case t.now.fresh && conditional(text, t.now.above):
	default:
		t.f.s.add(c)
	}
}

// decideSkip decides about a condition that stood before a function: fresh tells
// that it is new.
func (t *testScan) decideSkip(fresh bool) {
	if c := t.now.skipped; c != nil && !fresh {
		t.f.s.add(*c)
	}
	t.now.skipped = nil
}

var condition = lazyregexp.New(`^\}?\s*(if|else|elif|case|switch|default|unless|when|catch|except|\|\||&&)\b|\b(if|unless)\b.*[:{]$|\?\s*$|(&&|\|\|)\s*$`)

// conditional reports whether a statement depends on the line above, or on
// something in its own.
func conditional(text, above string) bool {
	above = strings.TrimSpace(above)
	if condition().MatchString(above) && !strings.HasPrefix(above, "if true") && !strings.HasPrefix(above, "if True") && !strings.HasPrefix(above, "if 1") {
		return true
	}
	return strings.HasPrefix(text, "if ") || strings.Contains(text, " if ") || strings.Contains(text, " unless ") || strings.Contains(text, "|| skip") || strings.Contains(text, "&& skip")
}

// ownTest reports whether the very name of a file says that it is a test.
func ownTest(name string) bool {
	base := path.Base(name)
	stem := strings.TrimSuffix(base, path.Ext(base))
	return testName(strings.ToLower(stem)) || camelTest(stem)
}
