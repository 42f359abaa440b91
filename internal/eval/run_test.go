package eval

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Helper(os.Args)
	os.Exit(m.Run())
}

// environ is what a run sees of this machine: no settings, no keys.
func environ(dir string) map[string]string {
	return map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir, "XDG_STATE_HOME": filepath.Join(dir, "state"), "USER": "ken"}
}

// options run cases by their scripts in a directory of the test.
func options(t *testing.T, modes ...Mode) Options {
	t.Helper()
	dir := t.TempDir()
	env := environ(dir)
	config := filepath.Join(dir, "config.yaml")
	// Of another project: none of it may reach a case.
	settings := "planning: {enabled: true}\nchecks: ['false']\nsetup: ['exit 3']\nlanguage: en\ncontext_storage: {enabled: false, durability: os}\n"
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Script: Answers, Modes: modes, Dir: filepath.Join(dir, "work"), Jobs: 2, Run: app.RunOptions{Config: config},
		Env: app.Env{Getenv: func(k string) string { return env[k] }, Log: io.Discard, Lang: i18n.English, Now: time.Now, Notice: func(string, ...any) {}}}
	if _, err := sandbox.Detect(t.Context()); err != nil {
		o.Run.AllowUnsandboxed = true
	}
	return o
}

// every tells that Go's cases are to be run, too, which compile its library.
func every() bool { return os.Getenv("TORI_EVAL_ALL") != "" }

func cases(t *testing.T, keep func(Case) bool) (some []Case) {
	t.Helper()
	all, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if (every() || !needsGo(&c)) && keep(c) {
			some = append(some, c)
		}
	}
	return some
}

func anyCase(Case) bool { return true }

// ran are the results of cases whose programs are here.
func ran(t *testing.T, all []Result, err error) (out []Result) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Outcome == Skipped {
			t.Logf("%s: %s", r.Case, r.Reason)
			continue
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		t.Fatal("nothing was run")
	}
	return out
}

func TestTheBaseOfACaseDoesNotPass(t *testing.T) {
	t.Parallel()
	verdicts, err := Base(t.Context(), cases(t, anyCase), options(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range verdicts {
		// There it is the right answer.
		if want := name == "nothing-to-do"; v.Passed() != want || !v.Ran || v.TimedOut || v.Limit != "" {
			t.Errorf("%s: the base passes: %t\n%s", name, v.Passed(), v.Output)
		}
	}
}

func TestTheHouseResolvesEachCaseByItsAnswer(t *testing.T) {
	t.Parallel()
	all, by, err := Run(t.Context(), cases(t, anyCase), options(t, House))
	for _, r := range ran(t, all, err) {
		if !r.Resolved || r.Outcome != "completed" {
			t.Errorf("%s: %s: %s\n%s", r.Case, r.Outcome, r.Reason, r.Verdict.Output)
		}
		if r.Turns < 2 || r.ToolCalls < 1 || r.Checks.Run == 0 || r.UUID == "" || r.PromptTokens != 0 {
			t.Errorf("%s: %+v", r.Case, r)
		}
	}
	if !by.Scripted {
		t.Error("it is not told that no model was called")
	}
}

func TestWrittenAnswersSayWhetherThereIsAPlan(t *testing.T) {
	t.Parallel()
	o := options(t, House)
	o.Keep = true
	some := append(cases(t, func(c Case) bool { return c.Name == "nothing-to-do" || c.Name == "injection" }), one(t, "no-edit"))
	all, _, err := Run(t.Context(), some, o)
	for _, r := range ran(t, all, err) {
		files, err := filepath.Glob(filepath.Join(r.Dir, "contexts", "completed", "*", "planning", "*.jsonl"))
		if want := r.Case != "no-edit"; err != nil || len(files) > 0 != want || !r.Resolved {
			t.Errorf("%s: resolved %t, history of a plan %q, want one: %t, %v", r.Case, r.Resolved, files, want, err)
		}
	}
}

func TestTheMinimalLoopResolvesEachCaseByItsAnswer(t *testing.T) {
	t.Parallel()
	all, by, err := Run(t.Context(), cases(t, anyCase), options(t, Bare))
	for _, r := range ran(t, all, err) {
		if !r.Resolved || r.Outcome != "completed" {
			t.Errorf("%s: %s: %s\n%s", r.Case, r.Outcome, r.Reason, r.Verdict.Output)
		}
		if r.Turns < 2 || r.ToolCalls < 1 || r.Checks.Run != 0 || r.PromptTokens != 0 {
			t.Errorf("%s: %+v", r.Case, r)
		}
	}
	if !by.Scripted {
		t.Error("it is not told that no model was called")
	}
}

func TestAPlausibleWrongAnswerIsRefused(t *testing.T) {
	t.Parallel()
	o := options(t, House)
	o.Script = BadAnswers
	wrong := cases(t, func(c Case) bool { return c.Scripts["script-bad.yaml"] != nil })
	all, _, err := Run(t.Context(), wrong, o)
	for _, r := range ran(t, all, err) {
		if r.Resolved || r.Outcome != "completed" || !r.Verdict.Ran || r.Verdict.TimedOut {
			t.Errorf("%s: %s, resolved %t: %s\n%s", r.Case, r.Outcome, r.Resolved, r.Reason, r.Verdict.Output)
		}
	}
}

// one is a case of its own.
func one(t *testing.T, name string, more ...string) Case {
	t.Helper()
	all, err := Load(fstest.MapFS{name + ".txtar": {Data: archive(with(small(), more...))}}, "dir")
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestTheHiddenCheckComesAfterTheWork(t *testing.T) {
	t.Parallel()
	// The answer looks for what it must not see, and leaves links in its way.
	spy := `- calls:
    - tool: shell
      args:
        command: |
          echo done > a
          find . / -name 'zebra-hidden*' -not -path '/proc/*' 2>/dev/null | grep . && echo seen >> a
          grep -rs 'grep -q done' . && echo seen >> a
          mkdir -p /tmp/x; ln -s /tmp deep; ln -s /etc/passwd zebra-hidden.txt
- say: Done.
`
	c := one(t, "spied", "script.yaml", spy, "hidden/zebra-hidden.txt", "hidden\n", "hidden/deep/er/zebra-hidden.sh", "#!/bin/sh\necho ran\n",
		"check.sh", "set -e\n[ \"$(cat a)\" = done ]\n[ \"$(cat zebra-hidden.txt)\" = hidden ]\n[ ! -L zebra-hidden.txt ]\n[ ! -L deep ]\n[ \"$(./deep/er/zebra-hidden.sh)\" = ran ]\n[ \"$(cat \"$BASE/a\")\" = open ]\n[ ! -e .git ]\n")
	all, _, err := Run(t.Context(), []Case{c}, options(t, House, Bare))
	for _, r := range ran(t, all, err) {
		if !r.Resolved {
			t.Errorf("%s: %s: %s\n%s", r.Mode, r.Outcome, r.Reason, r.Verdict.Output)
		}
	}
}

func TestWhatDidNotEndWellIsNotResolved(t *testing.T) {
	t.Parallel()
	// The base would pass: but nobody said that this is so.
	c := one(t, "cut-short", "check.sh", "true\n", "script.yaml", "- calls:\n    - tool: shell\n      args: {command: 'true'}\n")
	all, _, err := Run(t.Context(), []Case{c}, options(t, House, Bare))
	for _, r := range ran(t, all, err) {
		if r.Resolved || r.Outcome != "failed" || r.Verdict.Ran || r.Turns != 1 {
			t.Errorf("%s: %+v", r.Mode, r)
		}
	}
}

func TestAMissingProgramSkipsACase(t *testing.T) {
	t.Parallel()
	lacking, fine := one(t, "lacking", "case.yaml", "needs: [sh, no-such-program-anywhere]\n"), one(t, "fine", "case.yaml", "needs: [sh]\n")
	all, by, err := Run(t.Context(), []Case{lacking, fine}, options(t, House))
	if err != nil {
		t.Fatal(err)
	}
	if r := all[0]; r.Outcome != Skipped || r.Resolved || !strings.Contains(r.Reason, "no-such-program-anywhere") || strings.Contains(r.Reason, "sh,") {
		t.Errorf("%+v", r)
	}
	if !all[1].Resolved {
		t.Errorf("%+v", all[1])
	}
	if sum := Sum(all, House, by); sum.Cases != 2 || sum.Ran != 1 || sum.Skipped != 1 || sum.Resolved != 1 || sum.Errors != 0 {
		t.Errorf("%+v", sum)
	}
}

func TestACaseThatCannotBeRunIsAResult(t *testing.T) {
	t.Parallel()
	broken := one(t, "broken", "issue.md", "---\ntitle: [\n---\nx\n")
	all, by, err := Run(t.Context(), []Case{broken, one(t, "fine")}, options(t, House))
	if err != nil {
		t.Fatal(err)
	}
	if all[0].Outcome != Errored || all[0].Reason == "" || all[0].Resolved || !all[1].Resolved {
		t.Errorf("%+v", all)
	}
	if sum := Sum(all, House, by); sum.Errors != 1 || sum.Ran != 1 {
		t.Errorf("%+v", sum)
	}
}

func TestTheEndOfTheContextLeavesWhatWasDone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options(t, House)
	o.Jobs = 1
	o.Begun = func(c string, _ Mode) {
		if c == "b" {
			cancel()
		}
	}
	var told []string
	o.Ended = func(r Result) { told = append(told, r.Case+" "+r.Outcome) }
	all, by, err := Run(ctx, []Case{one(t, "a"), one(t, "b"), one(t, "c")}, o)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a completed", "b interrupted"}; !slices.Equal(told, want) || len(all) != 2 || !all[0].Resolved || all[1].Resolved {
		t.Errorf("told %q, %+v", told, all)
	}
	if sum := Sum(all, House, by); sum.Ran != 1 || sum.Resolved != 1 || sum.Cases != 2 {
		t.Errorf("%+v", sum)
	}
	left, err := filepath.Glob(filepath.Join(o.Dir, "house", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	o := options(t, House, Bare)
	o.Keep = true
	all, _, err := Run(t.Context(), []Case{one(t, "a")}, o)
	for _, r := range ran(t, all, err) {
		for _, name := range []string{"repo/a", "result/a", "run.log", "issues/1-a.md"} {
			if _, err := os.Stat(filepath.Join(r.Dir, name)); err != nil {
				t.Errorf("%s: %v", r.Mode, err)
			}
		}
	}
}

func TestAnUnknownModelIsAMistakeOfUsage(t *testing.T) {
	t.Parallel()
	o := options(t, House)
	o.Script, o.Run.Model = "", "nobody/nothing"
	all, _, err := Run(t.Context(), []Case{one(t, "a")}, o)
	if _, ok := err.(*app.ConfigError); !ok || len(all) != 0 {
		t.Errorf("%v, %+v", err, all)
	}
}
