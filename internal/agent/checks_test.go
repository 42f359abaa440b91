package agent

import (
	"strings"
	"testing"

	"toritsugi/internal/checkrun"
	"toritsugi/internal/checks"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/i18n"
	"toritsugi/internal/scan"
)

func TestRequestShowsTheIssueAsData(t *testing.T) {
	t.Parallel()
	m := assignment{id: "7", title: "Fix it", author: "hanako", labels: []string{"bug"}, body: "It is broken.\n" + strings.Repeat("長", maxIssueText),
		said: dialogue.Thread{Remarks: []dialogue.Remark{{Author: "ken", Text: "me too"}, {Text: "anonymous"}}}}
	r := &run{verify: verification{Runner: checkrun.Runner{Lang: i18n.English}}}
	got := taskPrompt(m, r.verify.Report("Checks", nil, []contextstore.CheckRun{{Command: "true"}, {Command: "false", ExitCode: 1, Output: "```\nboom\n"}, {Command: "sleep", TimedOut: true},
		{Command: "eat", ExitCode: 137, Limit: "memory", Bound: "2 GiB"}}), maxIssueText)
	for _, want := range []string{"# Task: Fix it", "Issue 7, opened by hanako, labels: bug.", "<issue>\nIt is broken.", "more bytes are not shown]\n</issue>",
		"<comments>\nken:\nme too", "unknown:\nanonymous", "- `true` passed", "- `false` failed with exit code 1\n````\n```\nboom\n````\n", "- `sleep` did not end in time", "- `eat` was killed: memory limit of 2 GiB\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	const answers = "with answer_remark under each numbered remark"
	if strings.Contains(got, answers) {
		t.Error("there is no remark to be answered")
	}
	m.said.Remarks[0].Numbered = true
	if !strings.Contains(taskPrompt(m, "", maxIssueText), answers) {
		t.Error("no word about the remark that may be answered")
	}
	if !strings.Contains(taskPrompt(assignment{}, r.verify.Told(), 100), "the project has none") {
		t.Error("no word about missing checks")
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
	r.report.Commit, r.verify.commit = "c", "c"
	r.verify.Before, r.verify.after = []contextstore.CheckRun{ran("a", 10, "x"), ran("b", 4, "y")}, []contextstore.CheckRun{ran("a", 13, "x"), ran("b", 6, "y")}
	r.report.Outcome = r.causeOf(t.Context(), nil).outcome(i18n.English)
	if r.report.Outcome.Reason != "no new failures (2 known, +5 passing): `a`, `b`" || !r.report.Outcome.Unverified {
		t.Errorf("%+v", r.report.Outcome)
	}
	for l, want := range map[i18n.Lang]string{
		i18n.English:  "⚠️ **Completed, no new failures (2 known, +5 passing)**",
		i18n.Japanese: "⚠️ **完了しました。新たな失敗なし（既知 2 件、合格 +5 件）**",
	} {
		if text := r.headline(l); text != want || r.verify.openPoints(l) != "" {
			t.Error(text)
		}
	}
	r.verify.after[1].Failing, r.verify.after[1].FailedSet, r.verify.Before[1].Failing, r.verify.Before[1].FailedSet = nil, checks.Set{}, nil, checks.Set{}
	if text := r.verify.summary(i18n.English); text != "unverified: `b` failed before the change and still fails; `a`: no new failures (1 known, +3 passing)" || !strings.Contains(r.verify.openPoints(i18n.English), "`b` failed before") {
		t.Error(text, r.verify.openPoints(i18n.English))
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
		r.verify.Before, r.verify.after, r.verify.commit = []contextstore.CheckRun{ran(c.before)}, []contextstore.CheckRun{ran(c.after)}, "x"
		want := "checks passed: `make test`"
		if !c.want {
			want = "unverified: `make test` passed, but ran no tests"
		}
		if got := r.verify.summary(i18n.English); got != want || (r.verify.openPoints(i18n.English) == "") != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
