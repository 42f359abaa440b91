package agent

import (
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/scan"
)

// A model that judges a change sees of each file which one it is, and no more than
// it can read.
func TestShortDiff(t *testing.T) {
	t.Parallel()
	file := func(name string, lines int) string {
		return "diff --git a/" + name + " b/" + name + "\nindex 0123abc..4567def 100644\n--- a/" + name + "\n+++ b/" + name + "\n@@ -1 +1 @@\n" + strings.Repeat("+line\n", lines)
	}
	got := shortDiff(file("a.go", 1) + file("b.go", 1))
	if want := strings.ReplaceAll(file("a.go", 1)+file("b.go", 1), "index 0123abc..4567def 100644\n", ""); strings.ReplaceAll(got, "\n\n", "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got = shortDiff(strings.Repeat(file("a.go", 1000), 9))
	if len(got) > shownOfChange+2*shownOfFile || strings.Count(got, "diff --git a/a.go b/a.go\n") != 3 || !strings.Contains(got, "[6 more files; git diff shows them]") {
		t.Errorf("%d bytes\n%s", len(got), got)
	}
	if got := shortDiff(""); got != "" {
		t.Errorf("%q", got)
	}
}

// What the program finds stands among the open points, whatever the model says, and
// a criterion that nothing shows is not ticked.
func TestFindingsStandBesideTheModelsWord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []string
		now   contextstore.CheckRun
		want  bool
	}{
		"code":         {[]string{"a.go"}, contextstore.CheckRun{Ran: 3}, true},
		"with a test":  {[]string{"a.go", "a_test.go"}, contextstore.CheckRun{Ran: 3}, false},
		"inside of it": {[]string{"src/lib.rs"}, contextstore.CheckRun{Ran: 4}, false},
		"no code":      {[]string{"README.md", "data.json"}, contextstore.CheckRun{Ran: 3}, false},
	} {
		r := reviewed(t, scan.Report{})
		c.now.Command = "make test"
		r.verify.Before, r.verify.after = []contextstore.CheckRun{{Command: "make test", Ran: 3}}, []contextstore.CheckRun{c.now}
		r.verify.commit, r.verify.files = "c", c.files
		r.verify.judged = planning.Result{Criteria: []planning.Criterion{{Criterion: "it works", Met: true}}, Open: []string{i18n.Recorded("no_evidence", "it works")}}
		text := r.verify.account(i18n.English, true)
		if strings.Contains(text, "**Open points**\n\n- No test was added or changed.\n") != c.want || !strings.Contains(text, "| it works | ⚠️ |  |") || !strings.Contains(text, "- no evidence is given for: it works\n") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
