package agent

import (
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/i18n"
)

func TestJudge(t *testing.T) {
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
		v := judge(c.before, c.after)
		names := func(rs runs) (out []string) {
			for _, r := range rs {
				out = append(out, r.Command)
			}
			return out
		}
		if !slices.Equal(names(v.broken), c.broken) || !slices.Equal(names(v.red), c.red) || v.none != c.none {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestRequestShowsTheIssueAsData(t *testing.T) {
	t.Parallel()
	m := matter{id: "7", title: "Fix it", author: "hanako", labels: []string{"bug"}, body: "It is broken.\n" + strings.Repeat("長", maxIssueText),
		said: dialogue.Thread{Remarks: []dialogue.Remark{{Author: "ken", Text: "me too"}, {Text: "anonymous"}}}}
	r := &run{Agent: &Agent{Lang: i18n.English}}
	got := request(m, r.checkReport("Checks", nil, []contextstore.CheckRun{{Command: "true"}, {Command: "false", ExitCode: 1, Output: "```\nboom\n"}, {Command: "sleep", TimedOut: true},
		{Command: "eat", ExitCode: 137, Limit: "memory", Bound: "2 GiB"}}), maxIssueText)
	for _, want := range []string{"# Task: Fix it", "Issue 7, opened by hanako, labels: bug.", "<issue>\nIt is broken.", "more bytes are not shown]\n</issue>",
		"<comments>\nken:\nme too", "unknown:\nanonymous", "- `true` passed", "- `false` failed with exit code 1\n````\n```\nboom\n````\n", "- `sleep` did not end in time", "- `eat` was killed: memory limit of 2 GiB\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if !strings.Contains(request(matter{}, r.checksTold(), 100), "the project has none") {
		t.Error("no word about missing checks")
	}
}
