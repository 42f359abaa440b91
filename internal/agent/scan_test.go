package agent

import (
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/scan"
)

// reviewed is a run whose commit was found to hold something.
func reviewed(t *testing.T, r scan.Report) *run {
	t.Helper()
	store, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), Redact: func(s string) string { return strings.ReplaceAll(s, "secret", "[REDACTED]") }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	out := &delivery.Run{Service: &delivery.Service{Store: store, Secrets: func(s string) []string {
		if strings.Contains(s, "token") {
			return []string{"a token"}
		}
		return nil
	}}}
	return &run{Agent: &Agent{Store: store, Delivery: out.Service}, out: out, verify: verification{Runner: checkrun.Runner{Store: store}, delivery: out.Service, review: review{Report: r}}}
}

func TestNotesForTheReviewer(t *testing.T) {
	t.Parallel()
	r := reviewed(t, scan.Report{Counts: map[scan.Kind]int{scan.Placeholder: 40, scan.TestWeakened: 2, scan.CITouched: 1}, Findings: []scan.Finding{
		{Kind: scan.CITouched, Why: scan.CI, Path: ".github/workflows/a`b.yml"},
		{Kind: scan.Placeholder, Why: scan.Marker, Path: "a.go", Line: 3, Text: "// TODO: use `x`"},
		{Kind: scan.Placeholder, Why: scan.Marker, Path: "b.go", Line: 4, Text: "// TODO: ask @hanako"},
		{Kind: scan.TestWeakened, Why: scan.FewerAssertions, Path: "b_test.go", Line: 5, Old: true, Text: `want("token")`, Lost: 2},
		{Kind: scan.TestWeakened, Why: scan.FileDeleted, Path: "c_test.go", Line: 1, Old: true, Text: "package a", Lost: 3},
	}})
	const want = `
**For the reviewer, found in the change**

- ` + "`b_test.go`: asserts less than before (2 fewer)" + `
- ` + "`c_test.go`: a file of tests was deleted (tests: 3)" + `
- ` + "`a.go:3`: marks work that is left to do `` // TODO: use `x` ``" + `
- ` + "`b.go:4`: marks work that is left to do" + `
- ` + "`` .github/workflows/a`b.yml ``: configuration of CI was changed" + `
- and 38 more
`
	if got := r.verify.notes(i18n.English); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.verify.review = review{}
	if s := r.verify.notes(i18n.English); s != "" {
		t.Errorf("%q", s)
	}
}

// What the change itself decides is no proof of it.
func TestAChangeToWhatDecidesOverChecksIsNotVerified(t *testing.T) {
	t.Parallel()
	passed := []contextstore.CheckRun{{Command: "pytest"}}
	unread := reviewed(t, scan.Report{})
	unread.verify.review.failed, unread.verify.Before, unread.verify.after, unread.verify.commit = true, passed, passed, "x"
	if text := unread.verify.openPoints(i18n.Japanese); !strings.Contains(text, "全体を確認してください") {
		t.Errorf("a change that could not be read: %s", text)
	}
	if text := unread.verify.summary(i18n.English); text != "unverified: `pytest` passed, but not all of the change could be looked through" {
		t.Error(text)
	}
	for _, c := range []struct {
		finding  scan.Finding
		en, ja   string
		verified bool
	}{
		{scan.Finding{Kind: scan.ChecksConfig, Why: scan.TestConfig, Path: "conftest.py"}, "unverified: `pytest` passed, but the change touches what decides over that: `conftest.py`", "未検証です: `pytest` は合格しましたが、その合否を左右するものをこの変更が変えています: `conftest.py`", false},
		{scan.Finding{Kind: scan.TestWeakened, Why: scan.TestMain, Path: "a_test.go", Line: 3}, "unverified: `pytest` passed, but the change touches what decides over that: `a_test.go`", "", false},
		{scan.Finding{Kind: scan.TestWeakened, Why: scan.FewerAssertions, Path: "a_test.go"}, "checks passed: `pytest`", "", true},
		{scan.Finding{Kind: scan.BuildTouched, Why: scan.Dependencies, Path: "go.mod"}, "checks passed: `pytest`", "", true},
	} {
		r := reviewed(t, scan.Report{Counts: map[scan.Kind]int{c.finding.Kind: 2}, Findings: []scan.Finding{c.finding, c.finding}, Added: []string{"TestNew", "it is secret"}})
		r.verify.Before, r.verify.after, r.verify.commit = passed, passed, "x"
		if got := r.verify.summary(i18n.English); got != c.en {
			t.Errorf("got  %s\nwant %s", got, c.en)
		}
		if got := r.verify.summary(i18n.Japanese); c.ja != "" && got != c.ja {
			t.Errorf("got  %s\nwant %s", got, c.ja)
		}
		if open := r.verify.openPoints(i18n.English); (open == "") != c.verified {
			t.Errorf("%s: open points %q", c.finding.Path, open)
		}
		r.verify.commit = "" // there is no diff to be shown
		if said := strings.Join(r.verify.forJudge().Findings, "\n"); !strings.Contains(said, c.finding.Path) {
			t.Errorf("the model is not told: %q", said)
		}
		if added := strings.Join(r.verify.forJudge().Added, "; "); added != "TestNew; it is [REDACTED]" {
			t.Errorf("it is told of the tests: %q", added)
		}
	}
}

func TestNotesAreFew(t *testing.T) {
	t.Parallel()
	var all scan.Report
	for i := range 100 {
		all.Findings = append(all.Findings, scan.Finding{Kind: scan.Placeholder, Why: scan.Marker, Path: "a.go", Line: i + 1, Text: strings.Repeat("長", 60) + " secret"})
	}
	all.Counts = map[scan.Kind]int{scan.Placeholder: 1000}
	s := reviewed(t, all).verify.notes(i18n.Japanese)
	if n := strings.Count(s, "\n- "); n != shownFindings+1 || !strings.Contains(s, fmt.Sprint(1000-shownFindings)) || strings.Contains(s, "secret") {
		t.Errorf("%d lines\n%s", n, s)
	}
}

// Every reason has its words.
func TestEveryFindingIsNamed(t *testing.T) {
	t.Parallel()
	keys := []string{"scan.lost_" + string(scan.FileDeleted), "scan.lost_" + string(scan.FewerAssertions)}
	for _, why := range []scan.Why{scan.Marker, scan.Promise, scan.Elision, scan.NotImplemented, scan.EmptyBody, scan.FileDeleted, scan.TestRemoved, scan.SkipAdded, scan.FocusAdded,
		scan.FewerAssertions, scan.TrivialAssertion, scan.TestMain, scan.Unreadable, scan.EndsTests, scan.BuildConstraint, scan.Golden, scan.CI, scan.Build, scan.Dependencies, scan.Scripts,
		scan.TestConfig, scan.LintConfig, scan.Hooks, scan.CheckFile, scan.Runner, scan.Environment} {
		keys = append(keys, "scan."+string(why))
	}
	for _, key := range keys {
		if i18n.English.T(key) == key {
			t.Errorf("%s has no text", key)
		}
	}
}
