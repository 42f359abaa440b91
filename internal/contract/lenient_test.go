package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/routing"
)

// A proposal costs no second round for what is optional; of what is to be done nothing is
// left out.
func TestCoderIsForgiven(t *testing.T) {
	t.Parallel()
	const risk = `"risk":{"destructive":false,"rollback_possible":true}`
	for raw, want := range map[string]string{
		`{"plan":"p","patch":"x",` + risk + `}`:                                                                                                        "p|x|0 files|[]|[]|[]|",
		`{"plan":["a","b"],"patch":"x",` + risk + `,"notes":"one","tests":"go test","cost_hint":"small"}`:                                              "a; b|x|0 files|[]|[one]|[go test]|",
		`{"plan":"p","patch":"x","risk":{"destructive":"false","rollback_possible":"yes"},"costHint":null,"needApproval":"true","task_type":"bugfix"}`: "p|x|0 files|[]|[]|[]|",
		`{"plan":"p","patch":"x",` + risk + `,"tests":["1","2","3","4","5","6"],"commands":["go vet"],"taskType":"Refactor"}`:                          "p|x|0 files|[go vet]|[]|[1 2 3 4 5]|refactor",
		`{"plan":"p",` + risk + `,"files":[{"path":"a","action":"Modify","content":"x"}],"notes":["two"]}`:                                             "p||1 files|[]|[two]|[]|",
	} {
		c, err := ReadCoder(raw)
		var commands []string
		for _, x := range c.Commands {
			commands = append(commands, x.Cmd)
		}
		if got := fmt.Sprintf("%s|%s|%d files|%v|%v|%v|%s", c.Plan, c.Patch, len(c.Files), commands, c.Notes, c.Tests, c.TaskType); err != nil || got != want {
			t.Errorf("%s\n gives %q (%v)\n want  %q", raw, got, err, want)
		}
	}
	for raw, want := range map[string]string{
		`{"patch":"x",` + risk + `}`: "plan is missing",
		`{"plan":"p",` + risk + `,"patch":"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b`:                             "it ends in the middle", // which would only delete
		"```json\n" + `{"plan":"p",` + risk + `,"files":[{"path":"a","action":"modify","content":"half` + "\n```": "it ends in the middle",
		`{"plan":"p",` + risk + `,"files":[{"path":"a","action":"create","content":"x"},{"path":"b"}]}`:           "files[1].action",
		`{"plan":"p","patch":"x",` + risk + `,"commands":["go vet",{"why":"because"}]}`:                           "commands[1].cmd",
	} {
		var wrong *AnswerError
		if _, err := ReadCoder(raw); !errors.As(err, &wrong) || !strings.Contains(wrong.Problem, want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	if shown := string(CoderSchema()); strings.Contains(shown, `"main"`) || !json.Valid([]byte(shown)) {
		t.Error(shown)
	}
}

// A worker's answer is taken without what is optional in it and cannot be read.
func TestOutputIsForgiven(t *testing.T) {
	t.Parallel()
	const answer = `{"result":%s,"needs_next_loop":false,"why":"w","next_actions":[],"questions_for_user":[],"confidence":%s,"risk":%s%s}`
	for _, c := range []struct {
		route                    routing.Route
		result, confidence, risk string
		more, want               string
	}{
		{routing.Plan, `{"goal":"g","plan":[{"title":"t"}]}`, `"0.9"`, `"low"`, ``, `{"goal":"g","plan":[{"title":"t"}]}`},
		{routing.Plan, `{"goal":"g","plan":["do it"],"risks":["r"],"deliverables":"a"}`, `0.9`, `"Low"`, `,"fit":"true","suggested_route":null`,
			`{"deliverables":["a"],"goal":"g","plan":[{"title":"do it"}],"risks":[{"item":"r"}]}`},
		{routing.Plan, `{"goal":"g","plan":[{"title":"t","step":"first"}],"risks":[{"mitigation":"m"}]}`, `0.9`, `"low"`, `,"fit":"perhaps"`, `{"goal":"g","plan":[{"title":"t"}]}`},
		{routing.Analyze, `{"data_type":"log","findings":["a"],"highlights":[{"kind":"urgent","text":"x"},{"kind":"error","text":"y"}],"hypotheses":["h"]}`, `0.9`, `"low"`, ``,
			`{"data_type":"log","findings":["a"],"highlights":[{"kind":"error","text":"y"}],"hypotheses":[{"hypothesis":"h"}]}`},
		{routing.Ops, `{"diagnosis":["d"],"steps":[{"phase":"observe","title":"t","commands":["ls"]}]}`, `0.9`, `"low"`, ``,
			`{"diagnosis":["d"],"steps":[{"commands":[{"cmd":"ls"}],"phase":"observe","title":"t"}]}`},
	} {
		o, err := ReadOutput(c.route, fmt.Sprintf(answer, c.result, c.confidence, c.risk, c.more))
		if err != nil || string(o.Result) != c.want || o.Confidence != 0.9 || o.Risk != "low" {
			t.Errorf("%s: %s %v", c.result, o.Result, err)
		}
	}
	for _, raw := range []string{
		`{"result":{"goal":"g","plan":[]},"needs_next_loop":false,"confidence":0.9,"risk":"low"}`,
		fmt.Sprintf(answer, `{"goal":"g"}`, `0.9`, `"low"`, ``),
		fmt.Sprintf(answer, `{"goal":"g","plan":[{"details":["x"]}]}`, `0.9`, `"low"`, ``),
	} {
		if o, err := ReadOutput(routing.Plan, raw); !errors.As(err, new(*AnswerError)) {
			t.Errorf("%s: %+v %v", raw, o, err)
		}
	}
}

// Who says that the work is not of its kind, and names the route that is, owes no result
// (spec/chat §5, §6).
func TestUnfitNeedsNoResult(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"fit":"false","suggested_route":"CHAT","why":"a question"}`: "CHAT|a question|low|0",
		"```json\n" + `{"fit":false,"suggested_route":"chat","result":{},"why":"w","needs_next_loop":true,"next_actions":[],"questions_for_user":[],"confidence":0.9,"risk":"high"}` + "\n```": "chat|w|high|0.9",
		`{"fit":false,"suggested_route":"OPS","result":{"goal":"G"},"confidence":0.7}`:                                                                                                         "OPS||low|0.7",
	} {
		o, err := ReadOutput(routing.Research, raw)
		if got := fmt.Sprintf("%s|%s|%s|%v", o.Suggested, o.Why, o.Risk, o.Confidence); err != nil || got != want || o.Result != nil || o.NeedsNextLoop || o.Fit == nil || *o.Fit {
			t.Errorf("%s: %q, %+v, %v", raw, got, o, err)
		}
	}
	for _, raw := range []string{`{"fit":true,"suggested_route":"CHAT"}`, `{"fit":false,"suggested_route":"SANTA"}`, `{"fit":false,"why":"w"}`, `{"suggested_route":"CHAT"}`} {
		if o, err := ReadOutput(routing.Research, raw); !errors.As(err, new(*AnswerError)) || !strings.Contains(err.Error(), "result is missing") {
			t.Errorf("%s: %+v %v", raw, o, err)
		}
	}
	if o, err := ReadOutput(routing.Plan, whole(plan)); err != nil || o.Result == nil { // nor is one thrown away
		t.Errorf("%+v %v", o, err)
	}
}

// A diff in fences is one where it has the heads of its files; the rest is what is said of it.
func TestFenced(t *testing.T) {
	t.Parallel()
	const one = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
	const two = "diff --git a/y.md b/y.md\n--- a/y.md\n+++ b/y.md\n@@ -1,2 +1,2 @@\n ```go\n-a\n+b\n"
	for text, want := range map[string][2]string{
		"I change x.\n\n```diff\n" + one + "```\n\nTest: `go test`\n":           {one, "I change x.\n\n\nTest: `go test`"},
		"```\n" + one + "```\nand\n```patch\n" + two + "```":                    {one + two, "and"},
		"<think>\n```diff\n" + two + "```\n</think>\n```diff\n" + one + "```\n": {one, ""},
		"As in\n```go\nf()\n```\n```diff\n" + one + "```\n":                     {one, "As in\n```go\nf()\n```"},
		"```diff\n" + one:              {"", "```diff\n" + strings.TrimSpace(one)}, // it may be half of it
		"```diff\n-a\n+b\n```":         {"", "```diff\n-a\n+b\n```"},
		"No fence:\n" + one:            {"", "No fence:\n" + strings.TrimSpace(one)},
		"":                             {"", ""},
		"```json\n{\"plan\":1}\n```\n": {"", "```json\n{\"plan\":1}\n```"},
	} {
		if diff, rest := Fenced(text); diff != want[0] || rest != want[1] {
			t.Errorf("%q\n gives %q, %q", text, diff, rest)
		}
	}
}
