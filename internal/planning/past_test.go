package planning

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/memory"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

var pastKey = task.Key{Source: "github", Owner: "o", Repo: "r", Type: "issue", ID: "7"}

// lineage is a house in which runs of tasks end, one after the other.
type lineage struct {
	t     *testing.T
	store *contextstore.Store
	now   time.Time
	log   bytes.Buffer
}

func newLineage(t *testing.T) *lineage {
	t.Helper()
	l := &lineage{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	var err error
	l.store, err = contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return s },
		Now: func() time.Time { l.now = l.now.Add(time.Second); return l.now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.store.Close() })
	return l
}

// ends makes a run that does what it is given, entries of the planning history
// and calls of tools, and ends.
func (l *lineage) ends(k task.Key, s task.Status, did ...any) contextstore.View {
	l.t.Helper()
	must := func(err error) {
		l.t.Helper()
		if err != nil {
			l.t.Fatal(err)
		}
	}
	id, err := l.store.Enqueue(l.t.Context(), contextstore.Metadata{TaskKey: k, User: "hanako"})
	must(err)
	c, _, err := l.store.Claim(l.t.Context(), id)
	must(err)
	_, err = c.Append(contextstore.Message{Role: "system", Content: "S"})
	must(err)
	h, _, err := OpenHistory(c, HistoryOptions{File: HistoryFile("", "", id), Now: func() time.Time { l.now = l.now.Add(time.Second); return l.now }})
	must(err)
	for _, d := range did {
		switch d := d.(type) {
		case Entry:
			_, err = h.Append(d)
		case contextstore.ToolRun:
			err = c.AppendTools(d)
		case contextstore.EffectRecord:
			err = c.Effects().Append(d)
		case contextstore.CheckRun:
			err = c.AppendCheck(d)
		}
		must(err)
	}
	must(h.Close())
	must(c.Transition(l.t.Context(), task.Outcome{Status: s, Summary: "Summary of " + string(s)}))
	v, err := l.store.View(id)
	must(err)
	return v
}

// heir finds what the next run of a task inherits, with and without its limits.
func (l *lineage) heir(k task.Key, most int, o Inheritance) (*memory.Inherited, *Past) {
	l.t.Helper()
	var p *Past
	o.File = func(uuid string) string { return HistoryFile("", "", uuid) }
	h := &memory.Heir{Inheritance: memory.Inheritance{Enabled: true, Expiry: 90 * 24 * time.Hour, MaxTokens: most}, Past: l.store,
		Clean: redact.New([]string{"hunter22hunter"}, nil).Strict().String, Now: func() time.Time { return l.now }, Log: slog.New(slog.NewTextHandler(&l.log, nil)),
		Plans: func(ctx context.Context, runs []memory.Ancestor) (memory.Sections, []memory.Ancestor) {
			var used []memory.Ancestor
			o.Warn = func(uuid string, err error) { fmt.Fprintf(&l.log, "WARN %s %v\n", uuid, err) }
			p, used = ReadPast(ctx, runs, o)
			return p.Sections(), used
		}}
	in, err := h.Find(l.t.Context(), k)
	if err != nil {
		l.t.Fatal(err)
	}
	return in, p
}

var allPast = Inheritance{Plans: true, Verifications: true, Reflections: true, MaxPlans: 3, Patterns: true}

func called(tool, args string, ok bool, said string) contextstore.ToolRun {
	if ok {
		return contextstore.ToolRun{Tool: tool, Args: json.RawMessage(args), Status: "success", Result: said}
	}
	return contextstore.ToolRun{Tool: tool, Args: json.RawMessage(args), Status: "error", Error: said}
}

func endedAs(id, status, summary string) Entry {
	return Entry{Subtask: &SubtaskRecord{ID: id, Status: status, Summary: summary}}
}

func planFor(goal string, all ...Subtask) Entry {
	return Entry{Plan: &Plan{Phase: PhasePlanning, Goal: Goal{MainObjective: goal}, Decomposition: Decomposition{Subtasks: all}}}
}

// three runs of one issue, each with what the next one is to know.
func threeRuns(l *lineage) (all []contextstore.View) {
	parse := Subtask{ID: "task_1", Description: "Fix the sign in internal/parse.go", Dependencies: []string{}, Complexity: "low"}
	docs := Subtask{ID: "task_2", Description: "Document signs in README.md", Dependencies: []string{"task_1"}, Complexity: "low"}
	did := []any{planFor("Signs are kept, says hanako", parse, docs, Subtask{ID: "task_3", Description: "Rewrite it by hand", Dependencies: []string{}}), called("read_file", `{"path":"internal/parse.go"}`, true, "package x")}
	for i := range 10 {
		did = append(did, called("edit_file", `{"path":"internal/parse.go"}`, true, fmt.Sprint("edit ", i)))
	}
	did = append(did,
		called("shell", `{"command":"npm test"}`, false, "npm: not found\nhunter22hunter\nexit 127"),
		called("shell", `{"command":"go test ./..."}`, false, "FAIL parse\n[exit code 1]"),
		called("edit_file", `{"path":"internal/sign.go"}`, true, "edited"),
		called("shell", `{"command":"go test ./..."}`, true, "ok\n[exit code 0]"),
		Entry{Reflection: &Reflection{Judged: Judgement{Status: "failure", Evaluation: "The sign is lost twice", Issues: []string{"two parsers"}, RootCause: "copied code", Revise: true}}},
		Entry{Revision: &Revision{Reason: "Both parsers are wrong", Changes: []Change{{Type: "modify", ID: "task_1", Details: "both of them"}}, Plan: planFor("Signs are kept", parse, docs, Subtask{ID: "task_3", Description: "Rewrite it by hand", Dependencies: []string{}}).Plan}},
		endedAs("task_1", Done, "parse.go:12, ask ken@example.com"),
		endedAs("task_2", Failed, "README.md is generated"),
		Entry{Subtask: &SubtaskRecord{ID: "task_3", Status: Blocked, Summary: "nobody knows how", Lessons: []string{"the docs come from make docs, says hanako", "run go test first"}}},
		Entry{Scan: &ScanRecord{Placeholders: []string{"`internal/sign.go:9`: a marker `// TODO: zero`"}}},
		Entry{Replan: &ReplanRecord{Executed: true, Do: DoRedecompose, Decision: ReplanDecision{Decision: Replan{Reasoning: "docs are generated", Issues: []string{"wrong file"}}}}},
		Entry{Question: &Question{ID: "q", Questions: []string{"SECRET QUESTION"}}}, Entry{Answer: &Answer{ID: "q", By: "hanako", Text: "YOU MAY PUSH"}},
		Entry{Verification: &Verification{Criteria: []Criterion{{"go test passes", true, "go test ./...: exit 0"}, {"documented", false, ""}}, Issues: []string{"README is silent", "no test"},
			Placeholder: PlaceholderReport{1, []string{"internal/sign.go:3"}}, Additional: []Action{{Purpose: "Write a test"}}}},
		contextstore.EffectRecord{Type: "fact", Leg: "untrusted", Fact: "stranger_text", Detail: "@someone"})
	all = append(all, l.ends(pastKey, task.Stopped, did...))
	l.now = l.now.Add(time.Hour)
	all = append(all, l.ends(pastKey, task.Completed, planFor("Signs are documented", docs), called("shell", `{"command":"make docs"}`, true, "done"), endedAs("task_2", Done, "docs/signs.md"),
		Entry{Verification: &Verification{Passed: true, Criteria: []Criterion{{"documented", true, "docs/signs.md:1"}}, Issues: []string{}}}))
	l.now = l.now.Add(time.Hour)
	return all
}

// Each bullet of inherit §10.4-10.6, in what the third run of an issue is told.
func TestLessonsOfEarlierRuns(t *testing.T) {
	t.Parallel()
	l := newLineage(t)
	runs := threeRuns(l)
	in, p := l.heir(pastKey, 0, allPast)
	if in == nil || p == nil || len(p.Runs) != 2 || p.Runs[0].UUID != runs[1].Metadata.UUID || len(in.Plans) != 2 {
		t.Fatalf("%+v", in)
	}
	if !in.Tainted() {
		t.Error("what the older run had come into touch with is not taken over")
	}
	var ask Prompts
	next := Subtask{ID: "task_1", Description: "Check the sign in internal/parse.go again", RequiredTools: []string{"shell"}}
	for name, tc := range map[string]struct {
		text string
		has  []string // in this order
	}{
		"the inherited message": {in.Content, []string{"前回の処理要約: Summary of completed",
			"## Previous Plan Summary", "Goal: Signs are documented", "Completion status: 1 of 1 subtasks done; the last verification passed", "- task_2 [done] (after task_1): Document signs in README.md → docs/signs.md",
			"Before that, run " + runs[0].Metadata.UUID[:8] + ", stopped on 2026-03-01: Signs are kept (1 of 3 subtasks done; the last verification did not pass)",
			"## Execution History", "Calls: shell 1 ok, 0 failed", "Successful actions:", "- shell make docs", "Failed actions:", "npm test failed: npm: not found … exit 127; worked instead: shell go test ./...",
			"Key failures:", `the subtask "Rewrite it by hand" ended as blocked: nobody knows how`, "the plan was revised: Both parsers are wrong", "it was planned anew: docs are generated",
			"## Verification History", "Verification rounds: 2 in 2 runs; the last one passed", "Issues found and resolved:", "- README is silent", "documented [met] docs/signs.md:1", "go test passes [met]", "internal/sign.go:3", "internal/sign.go:9`: a marker", "Write a test",
			"## Recommendations for Current Processing", "Use first what worked:", "Avoid what is known to fail:", "Lessons learned:", "- run go test first", "[Left by run " + runs[1].Metadata.UUID[:8]}},
		"the plan": {ask.Plan(PlanAsk{Earlier: p.earlier(), Lessons: p.forPlan()}), []string{"worked: shell make docs", "worked: shell go test ./...", "lesson: the docs come from make docs", "lesson: run go test first",
			`dependency: "Document signs in README.md" came after "Fix the sign in internal/parse.go"`,
			`complexity: "Fix the sign in internal/parse.go" was estimated low and was medium: 15 calls, 2 of them failed`, `avoid: shell npm test failed`, `avoid: the subtask "Rewrite it by hand"`, `recovery: shell go test ./... failed: FAIL parse … [exit code 1]; it worked after: edit_file internal/sign.go`}},
		"a subtask": {ask.Subtask(SubtaskAsk{K: 1, N: 1, Subtask: next, Lessons: p.forSubtask(next, nil)}), []string{`"Fix the sign in internal/parse.go" was done with read_file → edit_file → shell: parse.go:12`,
			"edit_file internal/parse.go worked (10 times): edit 9", "npm test failed"}},
		"a reflection": {ask.Reflection(ReflectionAsk{Lessons: p.forReflection()}), []string{"the plan was revised: Both parsers are wrong; done about it: modify both of them (that worked)",
			"a reflection found: The sign is lost twice; found: two parsers; root cause: copied code", "it was planned anew: docs are generated; found: wrong file"}},
		"a verification": {ask.Verification(VerificationAsk{Earlier: p.forVerification()}), []string{"a criterion of earlier runs: documented [met]", "go test passes [met] go test ./...: exit 0", "placeholder was found at internal/sign.go:3", "placeholder was found at `internal/sign.go:9`: a marker `// TODO: zero`",
			"resolved then: README is silent", "resolved then: no test", "work that verifications added: Write a test"}},
	} {
		at := 0
		for _, s := range tc.has {
			i := strings.Index(tc.text[at:], s)
			if i < 0 {
				t.Fatalf("%s: %q is missing, or stands before the others:\n%s", name, s, tc.text)
			}
			at += i + len(s)
		}
		for _, bad := range []string{"hanako", "ken@example", "hunter22", "SECRET QUESTION", "YOU MAY PUSH"} {
			if strings.Contains(tc.text, bad) {
				t.Errorf("%s: %q is in it:\n%s", name, bad, tc.text)
			}
		}
	}
	again, q := l.heir(pastKey, 0, allPast)
	if diff := cmp.Diff(p, q); diff != "" || again.Content != in.Content {
		t.Errorf("not the same once more: %s", diff)
	}
	// What was settled is the same for whoever takes the run up.
	raw, err := json.Marshal(p)
	back := new(Past)
	if err := errors.Join(err, json.Unmarshal(raw, back)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.forPlan(), back.forPlan()); diff != "" {
		t.Error(diff)
	}
}

// inherit §10.4.2: a check that was red before the work is what the work was
// about, and no approach that failed: neither one of the run's own nor a call of
// the model that shows which tests fail. What cannot be run is one still.
func TestRedCheckIsNoFailedApproach(t *testing.T) {
	t.Parallel()
	l := newLineage(t)
	fix := Subtask{ID: "task_1", Description: "Fix calc with make test and go test", Dependencies: []string{}, RequiredTools: []string{"shell"}}
	l.ends(pastKey, task.Completed, planFor("Sums are right", fix),
		contextstore.CheckRun{Setup: true, Command: "npm ci", ExitCode: 1},
		contextstore.CheckRun{Command: "make test", ExitCode: 2, Output: "make: *** [test] Error 1"},
		called("shell", `{"command":"cd . &&  make test 2>&1"}`, false, "make: *** [test] Error 1\n[exit code 2]"),
		called("shell", `{"command":"go test ./calc"}`, false, "--- FAIL: TestSum (0.00s)\n    calc_test.go:9: 3, not 4\nFAIL\nFAIL\texample/calc\t0.01s\n[exit code 1]"),
		called("shell", `{"command":"npm ci"}`, false, "npm: not found\n[exit code 127]"),
		called("edit_file", `{"path":"calc.go"}`, true, "edited"),
		contextstore.CheckRun{Round: 1, Command: "make test"},
		endedAs("task_1", Done, "calc.go:3"))
	in, p := l.heir(pastKey, 0, allPast)
	for name, told := range map[string]string{"the message": in.Content, "the plan": strings.Join(p.forPlan(), "\n"), "a subtask": strings.Join(p.forSubtask(fix, nil), "\n")} {
		for _, red := range []string{"make test 2>&1 failed", "go test ./calc failed"} {
			if strings.Contains(told, red) {
				t.Errorf("%s: %q is told:\n%s", name, red, told)
			}
		}
		if !strings.Contains(told, "npm ci failed: npm: not found") {
			t.Errorf("%s: what cannot be run is missing:\n%s", name, told)
		}
	}
	if !strings.Contains(in.Content, "Calls: shell 0 ok, 3 failed") {
		t.Errorf("calls are not counted:\n%s", in.Content)
	}
}

// inherit §10.9: each setting takes its part away, and the sections go in their
// order where there is no room.
func TestPlanningInheritanceSettings(t *testing.T) {
	t.Parallel()
	l := newLineage(t)
	threeRuns(l)
	for name, tc := range map[string]struct {
		change   func(*Inheritance)
		has, not string
	}{
		"all":              {func(*Inheritance) {}, "Previous Plan Summary|Execution History|Verification History|Recommendations|Before that|revised|Use first", "nothing at all"},
		"no plans":         {func(o *Inheritance) { o.Plans = false }, "Execution History|npm test failed|Use first|Verification History|go test passes|revised|planned anew|run go test first", "Previous Plan Summary|Goal: |task_2|came after|was estimated|ended as"},
		"no verifications": {func(o *Inheritance) { o.Verifications = false }, "Previous Plan Summary|npm test", "Verification|README is silent|go test passes"},
		"no reflections":   {func(o *Inheritance) { o.Reflections = false }, "Previous Plan Summary|npm test", "revised|planned anew|sign is lost"},
		"one plan":         {func(o *Inheritance) { o.MaxPlans = 1 }, "Signs are documented|README is silent", "Before that|npm test|revised"},
		"no patterns":      {func(o *Inheritance) { o.Patterns = false }, "npm test|revised", "Use first|Successful actions|- shell make docs"},
		"none":             {func(o *Inheritance) { o.Plans, o.Verifications, o.Reflections = false, false, false }, "Summary of completed", "## |Verification|revised"},
	} {
		o := allPast
		tc.change(&o)
		in, p := l.heir(pastKey, 0, o)
		told := in.Content + strings.Join(p.forPlan(), "\n") + strings.Join(p.forReflection(), "\n") + strings.Join(p.forVerification(), "\n")
		for _, s := range strings.Split(tc.has, "|") {
			if !strings.Contains(told, s) {
				t.Errorf("%s: %q is missing:\n%s", name, s, told)
			}
		}
		for _, s := range strings.Split(tc.not, "|") {
			if strings.Contains(told, s) {
				t.Errorf("%s: %q is there:\n%s", name, s, told)
			}
		}
	}
	o := allPast
	o.Plans = false
	if _, p := l.heir(pastKey, 0, o); p.earlier() || len(p.Runs) != 2 || len(p.Runs[0].Subtasks) > 0 || !strings.Contains(strings.Join(p.forSubtask(Subtask{Description: "npm test"}, nil), "\n"), "npm test failed") {
		t.Errorf("without plans: %+v", p)
	}
	whole, _ := l.heir(pastKey, 0, allPast)
	for _, less := range []int{1, 100, 200, 400, 450} {
		in, _ := l.heir(pastKey, whole.Tokens-less, allPast)
		if in == nil || in.Tokens > whole.Tokens-less || len(in.LeftOut) == 0 || !strings.Contains(in.Content, "Summary of completed") {
			t.Errorf("%d less: %+v", less, in)
		}
	}
}

// inherit §4.2.2: where there is no room, what the oldest run left goes before
// anything of the latest one.
func TestOlderRunsGoFirst(t *testing.T) {
	t.Parallel()
	l := newLineage(t)
	runs := threeRuns(l)
	whole, _ := l.heir(pastKey, 0, allPast)
	in, _ := l.heir(pastKey, whole.Tokens-1, allPast)
	if diff := cmp.Diff([]string{"older runs"}, in.LeftOut); diff != "" {
		t.Errorf("%s\n%s", diff, in.Content)
	}
	for _, s := range []string{"- task_2 [done] (after task_1): Document signs in README.md → docs/signs.md", "Calls: shell 1 ok, 0 failed", "Verification rounds: 1 in 1 runs; the last one passed", "Use first what worked:\n- shell make docs"} {
		if !strings.Contains(in.Content, s) {
			t.Errorf("%q of the latest run is missing:\n%s", s, in.Content)
		}
	}
	for _, s := range []string{runs[0].Metadata.UUID[:8], "Signs are kept", "npm test", "planned anew", "README is silent", "Lessons"} {
		if strings.Contains(in.Content, s) {
			t.Errorf("%q of the older run is there:\n%s", s, in.Content)
		}
	}
	// Three of them go one by one.
	l.ends(pastKey, task.Completed, planFor("Signs are pretty", Subtask{ID: "task_9", Description: "Pretty", Dependencies: []string{}}), called("shell", `{"command":"make pretty"}`, true, "done"), endedAs("task_9", Done, "x"))
	whole, _ = l.heir(pastKey, 0, allPast)
	if in, _ = l.heir(pastKey, whole.Tokens-1, allPast); strings.Contains(in.Content, "Signs are kept") || !strings.Contains(in.Content, "Before that, run "+runs[1].Metadata.UUID[:8]) || !strings.Contains(in.Content, "Signs are pretty") {
		t.Errorf("%s", in.Content)
	}
}

// Only runs that may be inherited from are looked at: of the same task, completed
// or stopped, not expired. Damaged files are told and passed over.
func TestWhosePlanningIsInherited(t *testing.T) {
	t.Parallel()
	l := newLineage(t)
	sub := Subtask{ID: "task_1", Description: "Do it", Dependencies: []string{}}
	l.ends(pastKey, task.Completed, planFor("EXPIRED", sub), endedAs("task_1", Done, "x"))
	l.now = l.now.Add(91 * 24 * time.Hour)
	other := pastKey
	other.ID = "8"
	l.ends(other, task.Completed, planFor("STRANGER", sub))
	broken := l.ends(pastKey, task.Completed, planFor("BROKEN", sub), endedAs("task_1", Done, "x"))
	gone := l.ends(pastKey, task.Completed, planFor("GONE", sub))
	last := l.ends(pastKey, task.Stopped, planFor("LAST", sub))
	l.ends(pastKey, task.Failed, planFor("FAILED", sub))
	file := filepath.Join(broken.Dir, "planning", broken.Metadata.UUID+".jsonl")
	good, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append([]byte("{\"type\":\n\x00\xff\n{\"type\":\"plan\",\"plan\":7}\n"), append(good, `{"type":"subtask","task_id":"ta`...)...), 0o600)
	}
	if err := errors.Join(err, os.Remove(filepath.Join(gone.Dir, "metadata.json"))); err != nil {
		t.Fatal(err)
	}
	in, p := l.heir(pastKey, 0, allPast)
	if in == nil || in.UUID != last.Metadata.UUID || len(p.Runs) != 2 || p.Runs[1].Goal != "BROKEN" || p.Runs[1].Subtasks[0].Status != Done {
		t.Fatalf("%+v %+v", in, p)
	}
	for _, bad := range []string{"EXPIRED", "STRANGER", "FAILED", "GONE"} {
		if strings.Contains(in.Content, bad) {
			t.Errorf("%s:\n%s", bad, in.Content)
		}
	}
	if n := strings.Count(l.log.String(), "bytes are passed over"); n != 3 {
		t.Errorf("%d damaged lines told: %s", n, l.log.String())
	}
	// A directory in the place of the file is an error of this run alone.
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	if in, p := l.heir(pastKey, 0, allPast); in == nil || len(p.Runs) != 1 {
		t.Errorf("%+v", p)
	}
}

// What counts as done of an earlier plan: what the model names, in a plan that
// goes on with it, where the files hold what that run committed.
func TestWhatIsDoneAlready(t *testing.T) {
	t.Parallel()
	was := func(id, text, status string) PastSubtask {
		return PastSubtask{ID: id, Description: text, Status: status, Summary: "s"}
	}
	past := func(change func(*Past)) *Past {
		p := &Past{Held: true, Runs: []PastRun{{UUID: "0123456789", Subtasks: []PastSubtask{was("a", "Fix the parser", Done), was("b", "Write the docs", Failed), was("c", "Test the sign", Done)}}}}
		if change != nil {
			change(p)
		}
		return p
	}
	plan := func(use string, done ...string) Plan {
		p := *planFor("g", Subtask{ID: "a", Description: "Fix the parser"}, Subtask{ID: "b", Description: "Write the docs"}, Subtask{ID: "c", Description: "Something else"}).Plan
		p.Previous = &Previous{Use: use, Done: done}
		return p
	}
	for name, tc := range map[string]struct {
		p    *Past
		plan Plan
		want string
		use  string
	}{
		"named":              {past(nil), plan(Continue, "a", "b", "c", "d"), "a", Continue},
		"not named":          {past(nil), plan(Continue), "", Continue},
		"a reference":        {past(nil), plan(ReferenceOnly, "a"), "", ReferenceOnly},
		"not said":           {past(nil), plan("", "a"), "", ReferenceOnly},
		"not in the files":   {past(func(p *Past) { p.Held = false }), plan(Continue, "a"), "", Continue},
		"not shown":          {past(func(p *Past) { p.Hidden = true }), plan(Continue, "a"), "", ""},
		"there is no past":   {nil, plan(Continue, "a"), "", ""},
		"there was no plan":  {past(func(p *Past) { p.Runs[0].Subtasks = nil }), plan(Continue, "a"), "", ""},
		"verifications only": {past(func(p *Past) { p.Runs = nil }), plan(Continue, "a"), "", ""},
	} {
		got := ""
		for _, r := range tc.p.take(&tc.plan) {
			got += r.ID
			if r.Status != Done || !strings.HasPrefix(r.Summary, "done by run 01234567: ") {
				t.Errorf("%s: %+v", name, r)
			}
		}
		use := ""
		if tc.plan.Previous != nil {
			use = tc.plan.Previous.Use
		}
		if got != tc.want || use != tc.use {
			t.Errorf("%s: done %q, used as %q", name, got, use)
		}
	}
	var none *Past
	if none.forPlan() != nil || none.forSubtask(Subtask{Description: "x"}, nil) != nil || none.forReflection() != nil || none.forVerification() != nil || none.Sections() != (memory.Sections{}) {
		t.Error("nothing says something")
	}
}

// Words of Japanese are told apart, too.
func TestTerms(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"Fix internal/parse.go", "look at parse.go.", true}, {"Fix the parser", "for the docs", false}, {"符号の処理を修正する", "符号をテストする", true}, {"", "", false}, {"a b", "a b", false},
	} {
		if got := common(terms(tc.a), terms(tc.b)) > 0; got != tc.same {
			t.Errorf("%q and %q: %v", tc.a, tc.b, got)
		}
	}
}

// Whatever the calls of a run were: what is kept is bounded, valid, counts every
// call, and is the same each time.
func TestTallyLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) contextstore.ToolRun {
			args := rapid.SampledFrom([]string{`{"path":"a.go"}`, `{"path":"b.go"}`, `{"command":"go test a.go"}`, `{"x":1}`, `null`, `{`, `[]`, ""}).Draw(t, "args")
			if rapid.Bool().Draw(t, "many") {
				args = fmt.Sprintf(`{"path":"%d.go"}`, rapid.IntRange(0, 200).Draw(t, "n"))
			}
			return called(rapid.SampledFrom([]string{"shell", "read_file", "\xff", ""}).Draw(t, "tool"), args, rapid.Bool().Draw(t, "ok"), rapid.StringMatching(`[a-z語\n\x00]{0,30}`).Draw(t, "said"))
		}), 0, 300).Draw(t, "calls")
		tally := func() PastRun {
			r := &pastReader{a: memory.Ancestor{Words: strings.ToLower}}
			y := &pastTally{r: r, at: map[string]int{}, total: map[string]int{}}
			for _, c := range calls {
				y.count(c)
			}
			y.keep()
			return r.run
		}
		run := tally()
		n := 0
		for _, x := range run.Totals {
			n += x.OK + x.Failed
		}
		if n != len(calls) || len(run.Uses) > pastKept {
			t.Fatalf("%d of %d calls counted, %d kinds kept", n, len(calls), len(run.Uses))
		}
		for _, u := range run.Uses {
			for _, s := range []string{u.Tool, u.Subject, u.Result, u.Error, u.Instead} {
				if !utf8.ValidString(s) || strings.ContainsAny(s, "\n") || utf8.RuneCountInString(s) > 2*pastLine {
					t.Fatalf("%q", s)
				}
			}
		}
		if diff := cmp.Diff(run, tally()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A plan that named no goal has none in what is inherited: not an empty one.
func TestAPlanWithoutAGoal(t *testing.T) {
	t.Parallel()
	p := &Past{Runs: []PastRun{{UUID: "0123456789", Status: "completed", Subtasks: []PastSubtask{{ID: "task_1", Status: Done, Description: "Mend it"}}}}}
	if text := p.Sections().Plan; strings.Contains(text, "Goal:") || !strings.Contains(text, "Completion status: 1 of 1") {
		t.Error(text)
	}
}
