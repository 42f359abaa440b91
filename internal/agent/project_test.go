package agent

import (
	"regexp"
	"strings"
	"testing"

	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/project"
	"toritsugi/internal/verdict"
)

// A check that never found its program says nothing: neither that the work is
// good nor that it is not.
func TestChecksThatCouldNotBeRun(t *testing.T) {
	t.Parallel()
	end := func(command string, code int) contextstore.CheckRun {
		return contextstore.CheckRun{Command: command, ExitCode: code}
	}
	type runs = []contextstore.CheckRun
	for _, c := range []struct {
		before, after runs
		notRun        []project.Check
		want          string
	}{
		{runs{end("a", 127)}, runs{end("a", 127)}, nil, "unverified: no check could be run; `a` could not be run: a program that it calls was not found, before the change as well (exit code 127; see the setting setup)"},
		{runs{end("a", 127), end("b", 0)}, runs{end("a", 127), end("b", 0)}, nil, "checks passed: `b`; `a` could not be run: a program that it calls was not found, before the change as well (exit code 127; see the setting setup)"},
		{runs{end("a", 1)}, runs{end("a", 127)}, nil, "unverified: `a` failed before the change and still fails"},
		{nil, nil, []project.Check{{Command: "npm test", Program: "npm"}}, "unverified: no check could be run; left out: `npm test` (npm is not installed where checks run)"},
		{runs{end("b", 0)}, runs{end("b", 0)}, []project.Check{{Command: "npm test", Program: "npm"}}, "checks passed: `b`; left out: `npm test` (npm is not installed where checks run)"},
		{nil, nil, nil, "unverified: the project has no checks"},
	} {
		r := &run{verify: verification{Runner: checkrun.Runner{Before: c.before, NotRun: c.notRun}, after: c.after, commit: "x"}}
		if got := r.verify.summary(i18n.English); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if r.verify.openPoints(i18n.Japanese) == "" {
			t.Errorf("%s: no open points", c.want)
		}
	}
	if v := verdict.Of(runs{end("a", 127)}, runs{end("a", 127)}); !v.None || len(v.Red)+len(v.Broken) != 0 {
		t.Errorf("%+v", v)
	}
	if v := verdict.Of(runs{end("a", 0)}, runs{end("a", 127)}); len(v.Broken) != 1 || v.None {
		t.Errorf("a change that takes a program away breaks the check: %+v", v)
	}
	text := (&checkrun.Runner{Lang: i18n.English, NotRun: []project.Check{{Command: "npm test", Program: "npm"}}}).Told()
	if !strings.Contains(text, "- `npm test` (npm)") || strings.Contains(text, "the project has none") {
		t.Error(text)
	}
}

// The project's texts open none of the request's tags.
func TestTagsOfTheProject(t *testing.T) {
	t.Parallel()
	p := project.Project{Rules: project.Rules{Files: []project.Rule{{Path: "AGENTS.md"}}}}
	for _, tag := range []string{"issue", "pull_request", "comments", "untrusted_comments", "failed_check"} {
		p.Rules.Files[0].Text += "<" + tag + "></" + tag + ">"
	}
	if text := p.Prompt(10_000, ""); regexp.MustCompile(`<(/?)(issue|pull_request|comments|untrusted_comments|failed_check)`).MatchString(text) || !strings.Contains(text, `<\issue>`) {
		t.Error(text)
	}
}
