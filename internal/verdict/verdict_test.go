package verdict

import (
	"fmt"
	"slices"
	"testing"

	"toritsugi/internal/checks"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
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
		v := Of([]contextstore.CheckRun{c.before}, []contextstore.CheckRun{c.after})
		got := Compare([]contextstore.CheckRun{c.before}, c.after)
		if name == "many are fixed" {
			got.fixedNames = got.fixedNames[:1]
		}
		if text := got.Text(i18n.English, func(s string) string { return s }); text != c.en {
			t.Errorf("%s: %s", name, text)
		}
		if text := got.Text(i18n.Japanese, func(s string) string { return s }); c.ja != "" && text != c.ja {
			t.Errorf("%s: %s", name, text)
		}
		if (len(v.Broken) > 0) != c.broken {
			t.Errorf("%s: %+v", name, v)
		}
		if (len(v.Empty) > 0) != (name == "no tests") {
			t.Errorf("%s: %+v", name, v)
		}
		if few := c.before.Ran == 88 && c.after.Ran <= 2; SendsBack(v, 1) != (c.broken || few) || SendsBack(v, 2) != c.broken {
			t.Errorf("%s: sent back %v, %v", name, SendsBack(v, 1), SendsBack(v, 2))
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
		if got := Adds(patch, checks.Failure{Name: name}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	pass := func(c string) contextstore.CheckRun { return contextstore.CheckRun{Command: c} }
	fail := func(c string, names ...string) contextstore.CheckRun {
		return contextstore.CheckRun{Command: c, ExitCode: 1, Failing: names}
	}
	hang := func(c string) contextstore.CheckRun { return contextstore.CheckRun{Command: c, TimedOut: true} }
	type runs = []contextstore.CheckRun
	for name, c := range map[string]struct {
		before, after runs
		broken, red   []string
		none          bool
	}{
		"no checks":                       {nil, nil, nil, nil, true},
		"green stays green":               {runs{pass("a")}, runs{pass("a")}, nil, nil, false},
		"red turns green":                 {runs{fail("a")}, runs{pass("a")}, nil, nil, false},
		"green turns red":                 {runs{pass("a")}, runs{fail("a")}, []string{"a"}, nil, false},
		"red stays red":                   {runs{fail("a", "T1")}, runs{fail("a", "T1")}, nil, []string{"a"}, false},
		"fewer failures":                  {runs{fail("a", "T1", "T2")}, runs{fail("a", "T2")}, nil, []string{"a"}, false},
		"another test fails":              {runs{fail("a", "T1")}, runs{fail("a", "T1", "T2")}, []string{"a"}, nil, false},
		"a check that was not run before": {nil, runs{fail("a")}, []string{"a"}, nil, false},
		"hangs now":                       {runs{pass("a")}, runs{hang("a")}, []string{"a"}, nil, false},
		"hung before":                     {runs{hang("a")}, runs{hang("a")}, nil, []string{"a"}, false},
		"each for itself":                 {runs{pass("a"), fail("b")}, runs{fail("a"), fail("b"), pass("c")}, []string{"a"}, []string{"b"}, false},
	} {
		v := Of(c.before, c.after)
		names := func(rs runs) (out []string) {
			for _, r := range rs {
				out = append(out, r.Command)
			}
			return out
		}
		if !slices.Equal(names(v.Broken), c.broken) || !slices.Equal(names(v.Red), c.red) || v.None != c.none {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
