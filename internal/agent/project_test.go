package agent

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/project"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/verdict"
	"toritsugi/internal/workspace"
)

// A check whose program is missing is replaced by what stands for it, and told
// where nothing does.
func TestChoose(t *testing.T) {
	t.Parallel()
	check := func(name string, other ...project.Check) project.Check {
		return project.Check{Command: name, Program: name, Probe: "has " + name, Else: other}
	}
	all := []project.Check{check("make", check("go"), check("venv", check("pytest"))), {Command: "named"}}
	for _, c := range []struct{ without, chosen, notRun string }{
		{"", "make named", ""},
		{"go", "make named", ""},
		{"make", "go venv named", ""},
		{"make venv", "go pytest named", ""},
		{"make go venv pytest", "named", "go pytest"},
	} {
		var without []string
		for _, w := range strings.Fields(c.without) {
			without = append(without, "has "+w)
		}
		chosen, notRun := choose(all, without)
		names := func(all []project.Check) string {
			var n []string
			for _, c := range all {
				n = append(n, c.Command)
			}
			return strings.Join(n, " ")
		}
		if names(chosen) != c.chosen || names(notRun) != c.notRun {
			t.Errorf("without %q: %q and %q", c.without, names(chosen), names(notRun))
		}
	}
	if got := probes(append(all, check("go"))); !slices.Equal(got, []string{"has go", "has make", "has pytest", "has venv"}) {
		t.Errorf("%q", got)
	}
}

// Programs are looked for where checks run, with nothing but shell.
func TestWithout(t *testing.T) {
	t.Parallel()
	w := goWorkspace(t)
	r := &run{Agent: &Agent{Sandbox: Sandbox{Shell: func(s sandbox.Spec) (sandbox.Runner, error) { return sandbox.Unconfined(s), nil }}}, out: &delivery.Run{Workspace: w}}
	r.env.spec = sandbox.Spec{Workspace: w.Tree(), Scratch: t.TempDir()}
	got, err := r.without(t.Context(), []string{"command -v sh", "command -v no-such-program", "echo has-3; false", "true; exit 0", "cat; read x"})
	if want := []string{"command -v no-such-program", "echo has-3; false", "cat; read x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v", got, err)
	}
	if got, err := r.without(t.Context(), nil); got != nil || err != nil {
		t.Errorf("%q %v", got, err)
	}
}

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
		r := &run{verify: verification{before: c.before, after: c.after, notRun: c.notRun}, report: Report{Commit: "x"}}
		if got := r.verification(i18n.English); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if r.openPoints(i18n.Japanese) == "" {
			t.Errorf("%s: no open points", c.want)
		}
	}
	if v := verdict.Of(runs{end("a", 127)}, runs{end("a", 127)}); !v.None || len(v.Red)+len(v.Broken) != 0 {
		t.Errorf("%+v", v)
	}
	if v := verdict.Of(runs{end("a", 0)}, runs{end("a", 127)}); len(v.Broken) != 1 || v.None {
		t.Errorf("a change that takes a program away breaks the check: %+v", v)
	}
	text := (&run{Agent: &Agent{Lang: i18n.English}, verify: verification{notRun: []project.Check{{Command: "npm test", Program: "npm"}}}}).checksTold()
	if !strings.Contains(text, "- `npm test` (npm)") || strings.Contains(text, "the project has none") {
		t.Error(text)
	}
}

// Where a run's own branch is another's, only the commit that the base branch had
// counts, and nothing where there is none.
func TestRuling(t *testing.T) {
	t.Parallel()
	w := goWorkspace(t)
	for _, c := range []struct {
		place delivery.Place
		want  string
	}{{delivery.Place{}, w.Base()}, {delivery.Place{There: true, Trusted: "abc"}, "abc"}, {delivery.Place{There: true}, ""}} {
		if got := (&delivery.Run{Workspace: w, Place: c.place}).TrustedCommit(); got != c.want {
			t.Errorf("%+v: %q", c.place, got)
		}
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

func TestLimitedBuffer(t *testing.T) {
	t.Parallel()
	b := &limitedBuffer{most: 3}
	for _, s := range []string{"ab", "cd", "ef"} {
		if n, err := b.Write([]byte(s)); n != 2 || err != nil {
			t.Error(n, err)
		}
	}
	if !bytes.Equal(b.Bytes(), []byte("abc")) {
		t.Errorf("%q", b.Bytes())
	}
	var _ project.Repository = (*workspace.Workspace)(nil)
}
