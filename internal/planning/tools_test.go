package planning

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file, or writes that.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// The tools stand before every message of every request: they cost little.
func TestToolsAreSmall(t *testing.T) {
	t.Parallel()
	all := 0
	for _, d := range definitions {
		n := len(d.Name) + len(d.Description) + len(d.Schema)
		t.Logf("%s: %d bytes", d.Name, n)
		all += n
	}
	if all > 4*600 {
		t.Errorf("%d bytes, about %d tokens; at most 600 are wanted", all, all/4)
	}
}

// What is asked for is shown once, where the seed's text shows it: nothing that the
// model is told besides is a form with values that could be copied into an answer.
func TestNoForms(t *testing.T) {
	t.Parallel()
	for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
		for name, text := range filled(ofLang(lang)) {
			phases, rest := "", text
			if strings.HasPrefix(name, "system") {
				phases, rest, _ = strings.Cut(text, ofLang(lang).word("## Planning", "## プランニングの規則"))
			}
			if strings.Contains(rest, `{"phase`) || strings.Contains(rest, "verification_passed\":") || strings.Contains(text, "done|failed") || strings.Count(phases, `"goal_understanding"`) > 1 {
				t.Errorf("%s.%s shows a form", name, lang)
			}
		}
	}
	for _, d := range definitions {
		if strings.Contains(string(d.Schema), "default") || strings.Contains(string(d.Schema), "example") {
			t.Errorf("%s has values to copy", d.Name)
		}
	}
}

// TestSaid reads the texts in testdata/answers, as models write them.
func TestSaid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/answers/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		rest, calls := said(string(data))
		var b strings.Builder
		for _, c := range calls {
			_, _, problem := readers()[c.Name].Read(c.Arguments)
			fmt.Fprintf(&b, "%s %s\n%s\n", c.Name, c.Arguments, problem)
		}
		golden(t, strings.TrimSuffix(file, ".txt")+".golden", b.String()+"---\n"+rest)
	}
}

// Prose, code and objects of others are no calls; hostile text costs no more than
// its length.
func TestNothingSaid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "Done.", "See {\"name\": \"x\"}.", "func f() { return }", `{"call_tool": [{"tool": "do", "args": {}}]}`, strings.Repeat("{", 1<<20), strings.Repeat(`{"a":[`, 1<<18), `{"done": true}`, `<think>{"phase":"planning"}</think> No.`} {
		if rest, calls := said(text); len(calls) > 0 || rest != text {
			t.Errorf("%.80q: %v", text, calls)
		}
	}
}

// A field of another type than ours never makes an answer unreadable.
func TestOddFields(t *testing.T) {
	t.Parallel()
	p, err := readPlan(contextstore.ToolCall{Name: ToolPlan, Arguments: `{"goal_understanding":{"main_objective":"o","success_criteria":["c"],"constraints":"none","ambiguities":{"a":1},"understanding_confidence":"high"},"task_decomposition":{"subtasks":[{"id":"a","description":"A","required_tools":"shell"}]},"action_plan":"none"}`}, false)
	must(t, err)
	if p.Goal.MainObjective != "o" || len(p.Decomposition.Subtasks) != 1 || p.Goal.Confidence != nil {
		t.Errorf("%+v", p)
	}
	b, err := json.Marshal(p)
	must(t, err)
	if !strings.Contains(string(b), `"goal_understanding":{"main_objective":"o","success_criteria":["c"]`) {
		t.Errorf("%s", b)
	}
}

// A plan whose parts stand side by side, with texts for subtasks, is read as one.
func TestFlatPlan(t *testing.T) {
	t.Parallel()
	p, err := readPlan(contextstore.ToolCall{Name: ToolPlan, Arguments: `{"goal":"g","success_criteria":"it works","subtasks":["Mend it","Test it"]}`}, false)
	if err != nil || p.Goal.MainObjective != "g" || len(p.Goal.SuccessCriteria) != 1 || p.Check(0) != nil || strings.Join(p.Order(), " ") != "task_1 task_2" {
		t.Errorf("%+v %v", p, err)
	}
}

// What is meant by another form than the schema's is read; it costs no round.
func TestOtherForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tool, args, want string }{
		"criteria as texts":                 {ToolReport, `{"status":"done","criteria":["it adds",{"criterion":"it subtracts","evidence":"go test"}]}`, `{"criteria":[{"criterion":"it adds"},{"criterion":"it subtracts","evidence":"go test"}],"status":"done"}`},
		"criteria as one text":              {ToolReport, `{"status":"done","criteria":"it adds: go test exit 0"}`, `{"criteria":[{"criterion":"it adds: go test exit 0"}],"status":"done"}`},
		"criteria as lines":                 {ToolReport, `{"status":"done","criteria":"- it adds\n- it subtracts"}`, `{"criteria":[{"criterion":"it adds"},{"criterion":"it subtracts"}],"status":"done"}`},
		"a map of evidence":                 {ToolVerify, `{"verification_passed":true,"criteria":{"it adds":"go test, exit 0","it subtracts":"a.go:3"}}`, `{"criteria":[{"criterion":"it adds","evidence":"go test, exit 0"},{"criterion":"it subtracts","evidence":"a.go:3"}],"verification_passed":true}`},
		"a map of verdicts":                 {ToolVerify, `{"verification_passed":true,"criteria":{"it adds":true}}`, `{"criteria":[{"criterion":"it adds","met":true}],"verification_passed":true}`},
		"a report with a map of truths":     {ToolReport, `{"status":"done","criteria":{"tests exist":true}}`, `{"criteria":[{"criterion":"tests exist"}],"status":"done"}`},
		"a map of objects":                  {ToolVerify, `{"verification_passed":true,"criteria":{"it adds":{"met":"yes","evidence":["go test","a.go:3"]}}}`, `{"criteria":[{"criterion":"it adds","evidence":"go test; a.go:3","met":true}],"verification_passed":true}`},
		"one criterion":                     {ToolVerify, `{"verification_passed":true,"criteria":{"criterion":"it adds","met":true,"command":"go test"}}`, `{"criteria":[{"criterion":"it adds","evidence":"go test","met":true}],"verification_passed":true}`},
		"issues as objects":                 {ToolVerify, `{"verification_passed":"false","issues":[{"description":"No test"},{"file":"a.go","text":"slow"}]}`, `{"issues_found":["No test","file: a.go; text: slow"],"verification_passed":false}`},
		"actions as texts":                  {ToolVerify, `{"verification_passed":false,"additional_actions":["Add a test",{"action":"Run it","tool":"shell"}]}`, `{"additional_actions":[{"purpose":"Add a test"},{"purpose":"Run it","tool":"shell"}],"verification_passed":false}`},
		"an action as a text":               {ToolVerify, `{"verification_passed":false,"additional_actions":"Add a test"}`, `{"additional_actions":[{"purpose":"Add a test"}],"verification_passed":false}`},
		"parts of a plan side by side":      {ToolPlan, `{"goal":"g","criteria":"it works","steps":["Mend it"]}`, `{"goal_understanding":{"main_objective":"g","success_criteria":["it works"]},"task_decomposition":{"subtasks":[{"description":"Mend it"}]}}`},
		"subtasks with titles":              {ToolPlan, `{"goal":"g","subtasks":[{"id":1,"title":"Mend it"},{"name":"Test it"}]}`, `{"goal_understanding":{"main_objective":"g"},"task_decomposition":{"subtasks":[{"description":"Mend it","id":"1"},{"description":"Test it"}]}}`},
		"a report with other names":         {ToolReport, `{"subtask_id":1,"status":"done","result":"r","commit_message":"Mend it"}`, `{"comment":"Mend it","status":"done","summary":"r","task_id":"1"}`},
		"a plan of a text and a list":       {ToolPlan, `{"goal_understanding":"g","success_criteria":["c"],"task_decomposition":[{"description":"Mend it"}]}`, `{"goal_understanding":{"main_objective":"g","success_criteria":["c"]},"task_decomposition":{"subtasks":[{"description":"Mend it"}]}}`},
		"an understanding in words":         {ToolPlan, `{"goal_understanding":{"main_objective":"g","assumptions":["UTC"],"ambiguities":"the day, not the hour","information_gaps":["who reads it"]},"subtasks":["Mend it"]}`, `{"goal_understanding":{"ambiguities":[{"selected_interpretation":"the day, not the hour"}],"assumptions":[{"assumed_value":"UTC"}],"information_gaps":[{"description":"who reads it"}],"main_objective":"g"},"task_decomposition":{"subtasks":[{"description":"Mend it"}]}}`},
		"a map of subtasks":                 {ToolPlan, `{"goal_understanding":"g","subtasks":{"a":"Mend it","b":{"description":"Test it"}}}`, `{"goal_understanding":{"main_objective":"g"},"task_decomposition":{"subtasks":[{"description":"Mend it","id":"a"},{"description":"Test it","id":"b"}]}}`},
		"a reflection as a sentence":        {ToolReflect, `{"reflection":"It goes on","plan_revision_needed":"no"}`, `{"reflection":{"evaluation":"It goes on","plan_revision_needed":false}}`},
		"a revision without its name":       {ToolReflect, `{"reason":"r","changes":[{"type":"add","id":"c","description":"Do c"}]}`, `{"plan_revision":{"changes":[{"subtask":{"description":"Do c","id":"c"},"type":"add"}],"reason":"r"}}`},
		"a decision without what is around": {ToolReplan, `{"replan_needed":"true","confidence":"0.9","replan_type":"retry"}`, `{"replan_decision":{"confidence":0.9,"replan_needed":true,"replan_type":"retry"}}`},
	} {
		args, _, problem := readers()[c.tool].Read(c.args)
		if string(args) != c.want || problem != "" {
			t.Errorf("%s: %s %s\nwant %s", name, args, problem, c.want)
		}
	}
}

// A field that nobody can read takes none of the others with it, and is told once.
func TestGoodFieldsStay(t *testing.T) {
	t.Parallel()
	c := contextstore.ToolCall{Name: ToolVerify, Arguments: `{"verification_passed":"false","criteria":[{"criterion":"it adds","met":"true"},{"criterion":"it subtracts","met":"perhaps"}],"issues_found":"No test","additional_actions":["Add one"]}`}
	if _, err := read[Verification](c, false); err == nil || !strings.Contains(err.Error(), "criteria[1].met") {
		t.Errorf("first: %v", err)
	}
	v, err := read[Verification](c, true)
	if err != nil || len(v.Criteria) != 2 || !v.Criteria[0].Met || v.Issues[0] != "No test" || v.Additional[0].Purpose != "Add one" {
		t.Errorf("then: %+v, %v", v, err)
	}
}

// Whatever a model gives, what is read of it is read again as it is, and what is good
// of it can be decoded.
func FuzzReaders(f *testing.F) {
	for _, s := range []string{`{"criteria":{"a":{"b":[]}},"status":"done"}`, `{"goal":{"x":1},"subtasks":{"a":null}}`, `{"reflection":[[],{}],"changes":{"type":{}}}`, `{"passed":1,"criteria":[[]],"action":"x","issues":{}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for name, r := range readers() {
			args, _, problem := r.Read(raw)
			if args != nil && !json.Valid(args) {
				t.Fatalf("%s %q: %s", name, raw, args)
			}
			if problem != "" {
				continue
			}
			if again, _, problem := r.Read(string(args)); string(again) != string(args) || problem != "" {
				t.Fatalf("%s %q: %s became %s, %s", name, raw, args, again, problem)
			}
		}
	})
}
