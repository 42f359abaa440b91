package agent

import (
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/checks"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/scan"
)

// What a check shows after the change is told against the base: what is new by
// name and first, then what is fixed, and how many are as they were.
func TestCompare(t *testing.T) {
	t.Parallel()
	ran := func(n int, failing ...string) contextstore.CheckRun {
		c := contextstore.CheckRun{Command: "make test", Commit: "c", Ran: n, Failing: failing[:min(len(failing), checks.MaxFailures)], FailedSet: checks.SetOf(failing...)}
		if len(failing) > 0 {
			c.ExitCode = 1
		}
		return c
	}
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprint("old", i))
	}
	added := ran(10, "a", "docker")
	added.Excused = []string{"docker"}
	for name, c := range map[string]struct {
		before, after contextstore.CheckRun
		en, ja        string
		broken        bool
	}{
		"green":                 {ran(10), ran(10), "", "", false},
		"new":                   {ran(10), ran(10, "a", "b"), "new failures (2): a, b", "新たな失敗（2 件）: a, b", true},
		"fixed":                 {ran(10, "a"), ran(10), "fixed (1): a", "直ったテスト（1 件）: a", false},
		"still red":             {ran(10, "a", "b"), ran(10, "a", "b"), "no new failures (2 known)", "新たな失敗なし（既知 2 件）", false},
		"more tests, as red":    {ran(10, "a", "b"), ran(15, "a", "b"), "no new failures (2 known, +5 passing)", "新たな失敗なし（既知 2 件、合格 +5 件）", false},
		"red without a name":    {contextstore.CheckRun{Command: "make test", ExitCode: 1}, contextstore.CheckRun{Command: "make test", Commit: "c", ExitCode: 1}, "", "", false},
		"all of it":             {ran(10, "a", "b"), ran(10, "b", "c"), "new failures (1): c; fixed (1): a; still red (1)", "新たな失敗（1 件）: c; 直ったテスト（1 件）: a; 以前から失敗のまま（1 件）", true},
		"renamed":               {ran(10, "a.py::t"), ran(10, "b.py::t"), "new failures (1): b.py::t; fixed (1): a.py::t", "新たな失敗（1 件）: b.py::t; 直ったテスト（1 件）: a.py::t", true},
		"another parameter":     {ran(10, "t[1]"), ran(10, "t[1]", "t[2]"), "new failures (1): t[2]; still red (1)", "新たな失敗（1 件）: t[2]; 以前から失敗のまま（1 件）", true},
		"the same object":       {ran(10, "t[<O at 0x7f001122>]"), ran(10, "t[<O at 0x7f334455>]"), "no new failures (1 known)", "新たな失敗なし（既知 1 件）", false},
		"one among many":        {ran(500, many...), ran(501, append([]string{"new"}, many...)...), "new failures (1): new; still red (500)", "新たな失敗（1 件）: new; 以前から失敗のまま（500 件）", true},
		"one that has no name":  {ran(500, many...), ran(501, append(many[:500:500], "new")...), "new failures (1); still red (500)", "新たな失敗（1 件）; 以前から失敗のまま（500 件）", true},
		"many are fixed":        {ran(500, many...), ran(500, many[499]), "no new failures (1 known, +499 passing); fixed (499): old0, …", "新たな失敗なし（既知 1 件、合格 +499 件）; 直ったテスト（499 件）: old0, …", false},
		"fewer tests":           {ran(88), ran(2), "fewer tests ran: 88 -> 2", "実行されたテストが減りました: 88 → 2", false},
		"no tests":              {ran(88), ran(0), "fewer tests ran: 88 -> 0", "実行されたテストが減りました: 88 → 0", false},
		"more tests":            {ran(88), ran(90), "", "", false},
		"for want of a program": {ran(10, "a"), added, "no new failures (1 known); added tests that cannot run here, for want of what was missing before the change as well, so not broken by it (1): docker", "", false},
		"an earlier version":    {contextstore.CheckRun{Command: "make test", ExitCode: 1, Failing: []string{"a"}}, ran(0, "a", "b"), "new failures (1): b; still red (1)", "", true},
	} {
		v := judge([]contextstore.CheckRun{c.before}, []contextstore.CheckRun{c.after})
		got := compare([]contextstore.CheckRun{c.before}, c.after)
		if name == "many are fixed" {
			got.mended = got.mended[:1]
		}
		if text := got.text(i18n.English, plainly); text != c.en {
			t.Errorf("%s: %s", name, text)
		}
		if text := got.text(i18n.Japanese, plainly); c.ja != "" && text != c.ja {
			t.Errorf("%s: %s", name, text)
		}
		if (len(v.broken) > 0) != c.broken {
			t.Errorf("%s: %+v", name, v)
		}
		if (len(v.empty) > 0) != (name == "no tests") {
			t.Errorf("%s: %+v", name, v)
		}
		if few := c.before.Ran == 88 && c.after.Ran <= 2; sendsBack(v, 1) != (c.broken || few) || sendsBack(v, 2) != c.broken {
			t.Errorf("%s: sent back %v, %v", name, sendsBack(v, 1), sendsBack(v, 2))
		}
	}
}

// What stays red by tests that are known is told as that, in the headline and the
// comment alike, and once; a check that names no tests is as it was.
func TestKnownFailures(t *testing.T) {
	t.Parallel()
	ran := func(command string, n int, failing ...string) contextstore.CheckRun {
		return contextstore.CheckRun{Command: command, ExitCode: 1, Ran: n, Failing: failing, FailedSet: checks.SetOf(failing...)}
	}
	r := reviewed(t, scan.Report{})
	r.report.Commit = "c"
	r.verify.before, r.verify.after = []contextstore.CheckRun{ran("a", 10, "x"), ran("b", 4, "y")}, []contextstore.CheckRun{ran("a", 13, "x"), ran("b", 6, "y")}
	r.report.Outcome = r.causeOf(t.Context(), nil).outcome(i18n.English)
	if r.report.Outcome.Reason != "no new failures (2 known, +5 passing): `a`, `b`" || !r.report.Outcome.Unverified {
		t.Errorf("%+v", r.report.Outcome)
	}
	for l, want := range map[i18n.Lang]string{
		i18n.English:  "⚠️ **Completed, no new failures (2 known, +5 passing)**",
		i18n.Japanese: "⚠️ **完了しました。新たな失敗なし（既知 2 件、合格 +5 件）**",
	} {
		if text := r.headline(l); text != want || r.openPoints(l) != "" {
			t.Error(text)
		}
	}
	r.verify.after[1].Failing, r.verify.after[1].FailedSet, r.verify.before[1].Failing, r.verify.before[1].FailedSet = nil, checks.Set{}, nil, checks.Set{}
	if text := r.verification(i18n.English); text != "unverified: `b` failed before the change and still fails; `a`: no new failures (1 known, +3 passing)" || !strings.Contains(r.openPoints(i18n.English), "`b` failed before") {
		t.Error(text, r.openPoints(i18n.English))
	}
}

// A check that passes without a test proves nothing, whatever the base was.
func TestNoTestsAreNotVerified(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string // what is printed
		want          bool   // verified
	}{
		"unittest":        {"Ran 3 tests in 0.001s\n\nOK\n", "Ran 2 tests in 0.001s\n\nOK\n", true},
		"none left":       {"Ran 3 tests in 0.001s\n\nOK\n", "Ran 0 tests in 0.001s\n\nOK\n", false},
		"silent":          {"Ran 3 tests in 0.001s\n\nOK\n", "", false},
		"all skipped":     {"Ran 1 test in 0.001s\n\nOK\n", "Ran 1 test in 0.001s\n\nOK (skipped=1)\n", false},
		"none at all":     {"Ran 0 tests in 0.001s\n\nOK\n", "Ran 0 tests in 0.001s\n\nOK\n", false},
		"red before":      {"Ran 3 tests in 0.001s\n\nFAILED (failures=1)\n", "Ran 0 tests in 0.001s\n\nOK\n", false},
		"pytest":          {"", "no tests ran in 0.01s\n", false},
		"cargo":           {"", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n", false},
		"go, none":        {"ok  \ta\t0.1s\n", "ok  \ta\t0.1s [no tests to run]\n", false},
		"go, no files":    {"?   \ta\t[no test files]\n", "?   \ta\t[no test files]\n", true},
		"a check of form": {"", "", true},
	} {
		ran := func(text string) contextstore.CheckRun {
			p := checks.NewParser()
			_, _ = p.Write([]byte(text))
			said := p.Summary()
			return contextstore.CheckRun{Command: "make test", Ran: said.Ran, Counted: said.Counted(), Packages: said.Packages}
		}
		r := reviewed(t, scan.Report{})
		r.verify.before, r.verify.after, r.report.Commit = []contextstore.CheckRun{ran(c.before)}, []contextstore.CheckRun{ran(c.after)}, "x"
		want := "checks passed: `make test`"
		if !c.want {
			want = "unverified: `make test` passed, but ran no tests"
		}
		if got := r.verification(i18n.English); got != want || (r.openPoints(i18n.English) == "") != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Only tests that the patch adds are excused, not those that it makes need what
// is not there.
func TestAddedTests(t *testing.T) {
	t.Parallel()
	patch := "diff --git a/x_test.go b/x_test.go\n--- a/x_test.go\n+++ b/x_test.go\n@@ -1,3 +1,9 @@\n-func TestMoved(t *testing.T) {\n+func TestMoved(t *testing.T) {\n+func TestNew(t *testing.T) {\n" +
		"+\t{\"with two words\", 1},\n+def test_fresh(tmp):\n+  it('adds a title', () => {\n--- /dev/null\n+++ b/tests/test_file.py\n"
	for name, want := range map[string]bool{
		"m/p.TestNew": true, "m/p.TestNew/any_case": true, "m/p.TestOld/with_two_words": true, "m/p.TestOld/other": false, "m/p.TestMoved": false, "m/p.TestNe": false, "m/p.TestOld": false,
		"tests/a.py::test_fresh[1-2]": true, "tests/a.py::C::test_fres": false, "src/a.test.js › cart › adds a title": true, "src/a.test.js › cart › removes": false, "tests/test_file.py": true,
	} {
		if got := adds(patch, checks.Failure{Name: name}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
