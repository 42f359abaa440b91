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
	"slices"
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
func (l *lineage) heir(k task.Key, most int, o Inheritance) (*memory.Inherited, *EarlierRuns) {
	l.t.Helper()
	var p *EarlierRuns
	o.File = func(uuid string) string { return HistoryFile("", "", uuid) }
	h := &memory.InheritanceReader{Inheritance: memory.Inheritance{Enabled: true, Expiry: 90 * 24 * time.Hour, MaxTokens: most}, Past: l.store,
		Clean: redact.New([]string{"hunter22hunter"}, nil).Strict().String, Now: func() time.Time { return l.now }, Log: slog.New(slog.NewTextHandler(&l.log, nil)),
		Plans: func(ctx context.Context, runs []memory.Ancestor) (memory.Sections, []memory.Ancestor) {
			var used []memory.Ancestor
			o.Warn = func(uuid string, err error) { fmt.Fprintf(&l.log, "WARN %s %v\n", uuid, err) }
			p, used = ReadEarlierRuns(ctx, runs, o)
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
	return Entry{Seq: 31, Subtask: &SubtaskRecord{ID: id, Status: status, Summary: summary}}
}

func planFor(goal string, all ...Subtask) Entry {
	return Entry{Seq: 1, Plan: &Plan{Phase: PhasePlanning, Goal: Goal{MainObjective: goal}, Decomposition: Decomposition{Subtasks: all}}}
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
			"## Previous Plan Summary", "- plan: Signs are documented (run " + runs[1].Metadata.UUID[:8] + ", completed on 2026-03-01: 1 of 1 subtasks done)",
			"- plan: Signs are kept (run " + runs[0].Metadata.UUID[:8] + ", stopped on 2026-03-01: 1 of 3 subtasks done)",
			"- task_2 [done] (after task_1) (estimated low, took 30 messages): Document signs in README.md → docs/signs.md",
			"## Execution History", "- worked: shell make docs: done", "- avoid: [blocked]", "Rewrite it by hand → nobody knows how",
			"- avoid: shell npm test: npm: not found", "exit 127; then worked: shell go test ./...", "- recovery: shell go test ./...: FAIL parse",
			"- plan change that worked: Both parsers are wrong → modify both of them", "- plan change: docs are generated; wrong file → task_redecomposition",
			"## Verification History", "- verification: run " + runs[1].Metadata.UUID[:8] + ", passed: true", "- verification: run " + runs[0].Metadata.UUID[:8] + ", passed: false",
			"- resolved: README is silent", "- criterion: documented (met: true) docs/signs.md:1", "go test passes (met: true)", "placeholder: internal/sign.go:3", "internal/sign.go:9`: a marker", "- work added: Write a test",
			"## Recommendations for Current Processing", "- worked: shell make docs", "- avoid: ", "- lesson: the docs come from make docs", "- lesson: run go test first", "[Left by run " + runs[1].Metadata.UUID[:8]}},
		"the plan": {ask.render("plan", Ask{Earlier: p.earlier(), Lessons: p.forPlan()}), []string{"worked: shell make docs", "worked: shell go test ./...", "lesson: the docs come from make docs", "lesson: run go test first",
			"avoid: [blocked]", "Rewrite it by hand", "avoid: shell npm test: npm: not found", "recovery: shell go test ./...: FAIL parse [exit code 1]; then worked: edit_file internal/sign.go",
			"plan change that worked: Both parsers are wrong"}},
		"a subtask": {ask.render("subtask", Ask{K: 1, N: 1, Subtask: next, Lessons: p.forSubtask(next)}), []string{"done: [done] (estimated low, took 30 messages): Fix the sign in internal/parse.go → parse.go:12",
			"worked: edit_file internal/parse.go: edit 8", "avoid: shell npm test: npm: not found"}},
		"a reflection": {ask.render("reflection", Ask{Lessons: p.forReflection()}), []string{"plan change that worked: Both parsers are wrong → modify both of them",
			"reflection: The sign is lost twice; two parsers → copied code", "plan change: docs are generated; wrong file → task_redecomposition"}},
		"a verification": {ask.render("verification", Ask{Lessons: p.forVerification()}), []string{"criterion: documented (met: true)", "go test passes (met: true) go test ./...: exit 0", "placeholder: internal/sign.go:3", "placeholder: `internal/sign.go:9`: a marker `// TODO: zero`",
			"resolved: README is silent", "resolved: no test", "work added: Write a test"}},
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
	back := new(EarlierRuns)
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
	for name, told := range map[string]string{"the message": in.Content, "the plan": strings.Join(p.forPlan(), "\n"), "a subtask": strings.Join(p.forSubtask(fix), "\n")} {
		for _, red := range []string{"make test 2>&1", "go test ./calc"} {
			if strings.Contains(told, red) {
				t.Errorf("%s: %q is told:\n%s", name, red, told)
			}
		}
		if !strings.Contains(told, "avoid: shell npm ci: npm: not found") {
			t.Errorf("%s: what cannot be run is missing:\n%s", name, told)
		}
	}
}

// inherit §10.6.2: what the last verification of the task found is open, what it did
// not find any more, or let pass, is resolved; and what a later run did without a
// failure is no failure.
func TestTheLatestWordCounts(t *testing.T) {
	t.Parallel()
	l := newLineage(t)
	told := func() string {
		_, p := l.heir(pastKey, 0, allPast)
		return strings.Join(slices.Concat(p.forVerification(), p.forPlan()), "\n")
	}
	run := func(ok, passed bool, issues ...string) string {
		l.ends(pastKey, task.Completed, planFor("g", Subtask{ID: "a", Description: "Mend it", Dependencies: []string{}}), called("shell", `{"command":"make deploy"}`, ok, "said"),
			Entry{Verification: &Verification{Passed: passed, Issues: issues}})
		return told()
	}
	for i, c := range []struct {
		told      string
		has, lack []string
	}{
		{run(false, false, "no test", "no docs"), []string{"open: no test", "open: no docs", "avoid: shell make deploy: said"}, []string{"resolved"}},
		{run(true, false, "no docs"), []string{"resolved: no test", "open: no docs", "worked: shell make deploy: said"}, []string{"avoid", "resolved: no docs"}},
		{run(true, true, "no docs"), []string{"resolved: no test", "resolved: no docs"}, []string{"open", "avoid"}},
	} {
		for _, s := range c.has {
			if !strings.Contains(c.told, s) {
				t.Errorf("%d: %q is missing:\n%s", i, s, c.told)
			}
		}
		for _, s := range c.lack {
			if strings.Contains(c.told, s) {
				t.Errorf("%d: %q is there:\n%s", i, s, c.told)
			}
		}
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
		"all":              {func(*Inheritance) {}, "Previous Plan Summary|Execution History|Verification History|Recommendations|Signs are kept|that worked|worked: |done: ", "nothing at all"},
		"no plans":         {func(o *Inheritance) { o.Plans = false }, "Execution History|npm test: |worked: |Verification History|go test passes|Both parsers|docs are generated|run go test first", "Previous Plan Summary|Signs are|task_2|after task_1|estimated|blocked"},
		"no verifications": {func(o *Inheritance) { o.Verifications = false }, "Previous Plan Summary|npm test", "Verification|verification|README is silent|go test passes"},
		"no reflections":   {func(o *Inheritance) { o.Reflections = false }, "Previous Plan Summary|npm test", "Both parsers|docs are generated|sign is lost|lesson"},
		"one plan":         {func(o *Inheritance) { o.MaxPlans = 1 }, "Signs are documented|README is silent", "Signs are kept|npm test|Both parsers"},
		"no patterns":      {func(o *Inheritance) { o.Patterns = false }, "npm test|Both parsers|estimated low, took", "\nworked: |\ndone: |\n- worked|that worked"},
		"none":             {func(o *Inheritance) { o.Plans, o.Verifications, o.Reflections = false, false, false }, "Summary of completed", "## |Verification|Both parsers"},
	} {
		o := allPast
		tc.change(&o)
		in, p := l.heir(pastKey, 0, o)
		like := Subtask{Description: "Document signs in README.md by npm test"}
		told := in.Content + strings.Join(slices.Concat(p.forPlan(), p.forSubtask(like), p.forReflection(), p.forVerification()), "\n")
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
	if _, p := l.heir(pastKey, 0, o); p.earlier() || len(p.Runs) != 2 || len(p.Runs[0].Subtasks) > 0 || !strings.Contains(strings.Join(p.forSubtask(Subtask{Description: "npm test"}), "\n"), "avoid: shell npm test: npm: not found") {
		t.Errorf("without plans: %+v", p)
	}
	whole, _ := l.heir(pastKey, 0, allPast)
	for _, less := range []int{1, 100, 200, 300, 350} {
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
	for _, s := range []string{"- task_2 [done] (after task_1) (estimated low, took 30 messages): Document signs in README.md → docs/signs.md", "- verification: run " + runs[1].Metadata.UUID[:8] + ", passed: true", "## Recommendations for Current Processing\n- worked: shell make docs: done"} {
		if !strings.Contains(in.Content, s) {
			t.Errorf("%q of the latest run is missing:\n%s", s, in.Content)
		}
	}
	for _, s := range []string{runs[0].Metadata.UUID[:8], "Signs are kept", "npm test", "docs are generated", "README is silent", "lesson"} {
		if strings.Contains(in.Content, s) {
			t.Errorf("%q of the older run is there:\n%s", s, in.Content)
		}
	}
	// Three of them go one by one.
	l.ends(pastKey, task.Completed, planFor("Signs are pretty", Subtask{ID: "task_9", Description: "Pretty", Dependencies: []string{}}), called("shell", `{"command":"make pretty"}`, true, "done"), endedAs("task_9", Done, "x"))
	whole, _ = l.heir(pastKey, 0, allPast)
	if in, _ = l.heir(pastKey, whole.Tokens-1, allPast); strings.Contains(in.Content, "Signs are kept") || !strings.Contains(in.Content, "- plan: Signs are documented (run "+runs[1].Metadata.UUID[:8]) || !strings.Contains(in.Content, "Signs are pretty") {
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
	if in == nil || in.UUID != last.Metadata.UUID || len(p.Runs) != 2 || !strings.Contains(in.Content, "plan: BROKEN (run") || p.Runs[1].Subtasks[0].Status != Done {
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
	was := func(id, text, status string) EarlierSubtask {
		return EarlierSubtask{ID: id, Description: text, Status: status, Summary: "s"}
	}
	past := func(change func(*EarlierRuns)) *EarlierRuns {
		p := &EarlierRuns{Held: true, Runs: []EarlierRun{{UUID: "0123456789", Subtasks: []EarlierSubtask{was("a", "Fix the parser", Done), was("b", "Write the docs", Failed), was("c", "Test the sign", Done)}}}}
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
		p    *EarlierRuns
		plan Plan
		want string
		use  string
	}{
		"named":              {past(nil), plan(Continue, "a", "b", "c", "d"), "a", Continue},
		"not named":          {past(nil), plan(Continue), "", Continue},
		"a reference":        {past(nil), plan(ReferenceOnly, "a"), "", ReferenceOnly},
		"not said":           {past(nil), plan("", "a"), "", ReferenceOnly},
		"not in the files":   {past(func(p *EarlierRuns) { p.Held = false }), plan(Continue, "a"), "", Continue},
		"not shown":          {past(func(p *EarlierRuns) { p.Hidden = true }), plan(Continue, "a"), "", ""},
		"there is no past":   {nil, plan(Continue, "a"), "", ""},
		"there was no plan":  {past(func(p *EarlierRuns) { p.Runs[0].Subtasks = nil }), plan(Continue, "a"), "", ""},
		"verifications only": {past(func(p *EarlierRuns) { p.Runs = nil }), plan(Continue, "a"), "", ""},
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
	var none *EarlierRuns
	if none.forPlan() != nil || none.forSubtask(Subtask{Description: "x"}) != nil || none.forReflection() != nil || none.forVerification() != nil || none.Sections() != (memory.Sections{}) {
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

// Whatever the calls of a run were: what is told of them is bounded, valid and the
// same each time, and the last call of a kind says whether it works.
func TestCallsLaw(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) contextstore.ToolRun {
			args := rapid.SampledFrom([]string{`{"path":"a.go"}`, `{"path":"b.go"}`, `{"command":"go test a.go"}`, `{"x":1}`, `null`, `[]`}).Draw(t, "args")
			if rapid.Bool().Draw(t, "many") {
				args = fmt.Sprintf(`{"path":"%d.go"}`, rapid.IntRange(0, 200).Draw(t, "n"))
			}
			c := called(rapid.SampledFrom([]string{"shell", "read_file", "\xff", ""}).Draw(t, "tool"), args, rapid.Bool().Draw(t, "ok"), rapid.StringMatching(`[a-z語\n\x00]{0,30}`).Draw(t, "said"))
			c.Seq = 1
			return c
		}), 0, 500).Draw(t, "calls")
		var file bytes.Buffer
		for _, c := range calls {
			if err := json.NewEncoder(&file).Encode(c); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, contextstore.Tools), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		read := func() []Lesson {
			r := &earlierReader{Inheritance: allPast, clean: func(s string) string { return strings.ToLower(strings.ToValidUTF8(s, "?")) }, seen: map[string]bool{}}
			if err := r.called(context.Background(), dir); err != nil {
				t.Fatal(err)
			}
			return r.run.Lessons
		}
		all := read()
		if diff := cmp.Diff(all, read()); diff != "" || len(all) > pastKept {
			t.Fatal(len(all), diff)
		}
		for _, l := range all {
			if !utf8.ValidString(l.Text) || strings.ContainsAny(l.Text, "\n") || utf8.RuneCountInString(l.Text) > 3*pastLine {
				t.Fatalf("%q", l.Text)
			}
			for _, c := range slices.Backward(calls) {
				if name := strings.TrimSpace(strings.ToValidUTF8(c.Tool, "?") + " " + subjectOf(c.Args)); strings.HasPrefix(l.Text, name+": ") {
					if failed := c.Status == "error"; failed != (l.Kind == "avoid") {
						t.Fatalf("%+v, but it failed: %t", l, failed)
					}
					break
				}
			}
		}
	})
}

// A plan that named no goal has none in what is inherited: not an empty one.
func TestAPlanWithoutAGoal(t *testing.T) {
	t.Parallel()
	l := newLineage(t)
	l.ends(pastKey, task.Completed, planFor("", Subtask{ID: "task_1", Description: "Mend it", Dependencies: []string{}}), endedAs("task_1", Done, "mended"))
	if in, _ := l.heir(pastKey, 0, allPast); !strings.Contains(in.Content, "- plan: (run ") || !strings.Contains(in.Content, ": 1 of 1 subtasks done)") {
		t.Error(in.Content)
	}
}
