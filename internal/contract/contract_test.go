package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/routing"
)

func whole(result string) string {
	return `{"result":` + result + `,"needs_next_loop":true,"why":"w","next_actions":["a","b","c","d"],"questions_for_user":[],"confidence":0.5,"risk":"medium","fit":false,"suggested_route":"OPS"}`
}

const plan = `{"goal":"G","plan":[{"step":1,"title":"T","details":["1","2","3","4","5","6"],"check":["a","b","c","d"]}],"assumptions":["1","2","3","4","5","6"]}`

// An answer is found wherever it stands, and lists that are too long are cut.
func TestReadOutput(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"plain":            whole(plan),
		"fenced":           "Here:\n```json\n" + whole(plan) + "\n```\nDone.",
		"fenced, no word":  "```\n" + whole(plan) + "\n```",
		"never closed":     "```json\n" + whole(plan),
		"in a sentence":    "I {think}: " + whole(plan) + " and {more}",
		"after an example": "```json\n{\"example\":1}\n```\n" + whole(plan),
		"loose":            strings.ReplaceAll(whole(plan), `"needs_next_loop":true`, `'needs_next_loop': True`),
		"full of spaces":   "\n\n" + strings.ReplaceAll(whole(plan), ",", " ,\n "),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := ReadOutput(routing.Plan, answer)
			if err != nil {
				t.Fatal(err)
			}
			var p struct {
				Goal        string
				Assumptions []string
				Plan        []struct{ Details, Check []string }
			}
			if err := json.Unmarshal(o.Result, &p); err != nil {
				t.Fatal(err)
			}
			if len(o.NextActions) != 3 || len(p.Assumptions) != 5 || len(p.Plan[0].Details) != 5 || len(p.Plan[0].Check) != 3 || !o.NeedsNextLoop || o.Risk != "medium" || o.Fit == nil || *o.Fit || o.Suggested != "OPS" {
				t.Errorf("%+v %+v", o, p)
			}
			l := o.Loop()
			if l.Confidence != 0.5 || l.SuggestedRoute != "OPS" || !l.NeedsNextLoop {
				t.Errorf("%+v", l)
			}
		})
	}
}

// What is wrong is said to the model, all of it.
func TestWrongOutputs(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"":                    "no JSON object",
		"nothing of the sort": "no JSON object",
		`{"result":` + plan + `,"why":"w","confidence":0.5,"risk":"low"}`: "needs_next_loop",
		strings.Replace(whole(plan), `"medium"`, `"purple"`, 1):           "risk must be",
		whole(`{"goal":"G"}`):            "plan is missing",
		strings.Repeat("x", MaxAnswer+1): "the most is",
	} {
		_, err := ReadOutput(routing.Plan, strings.Replace(answer, `"fit":false`, `"fit":true`, 1))
		var wrong *AnswerError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Problem, want) {
			t.Errorf("%.60s: %v", answer, err)
		}
	}
	if _, err := ReadOutput(routing.Code, "{}"); err == nil || errors.As(err, new(*AnswerError)) {
		t.Errorf("%v", err)
	}
}

// Each worker's example is read, and its schema can be shown.
func TestEachWorker(t *testing.T) {
	t.Parallel()
	for route, result := range map[routing.Route]string{
		routing.Plan:     plan,
		routing.Analyze:  `{"data_type":"mixed","highlights":[{"kind":"warn","text":"x","evidence":"e"}],"findings":["f"],"hypotheses":[{"hypothesis":"h","evidence":["a","b","c"],"confidence":0.4}],"structured":{"n":1}}`,
		routing.Ops:      `{"diagnosis":["d"],"steps":[{"phase":"fix","title":"t","commands":[{"os":"linux","shell":"bash","cmd":"ls","why":"w","expect":"e"}],"notes":["n"]}],"what_to_paste_back":["p"]}`,
		routing.Research: `{"research_goal":"g","queries":["1","2","3","4","5","6"],"stop_conditions":["a","b","c","d"]}`,
	} {
		o, err := ReadOutput(route, whole(result))
		if err != nil || !json.Valid(o.Result) || strings.Contains(string(o.Result), `"6"`) || strings.Contains(string(o.Result), `"d"]`) && route != routing.Ops {
			t.Errorf("%s: %s, %v", route, o.Result, err)
		}
		if shown, err := ShownOutput(route); err != nil || !json.Valid([]byte(shown)) || !strings.Contains(shown, `"questions_for_user"`) {
			t.Errorf("%s: %v", route, err)
		}
	}
}

// What a worker is given keeps to its contract.
func TestInput(t *testing.T) {
	t.Parallel()
	raw, err := schemas.ReadFile("schemas/worker_input.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := routing.NewContract("WorkerInput", raw)
	if err != nil {
		t.Fatal(err)
	}
	prev := routing.Plan
	in := Input{Route: routing.Ops, UserText: "u", Session: Session{SessionID: "s", Channel: "line", TargetOS: "unknown", Repo: &Repo{Name: "r"}},
		Context: Context{RecentTurns: []Turn{{"user", "x"}}}, Flags: Flags{true, &prev}, Limits: Limits{8000, 3, 3}}
	check := func(in Input) error {
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return c.Check(b)
	}
	if err := check(in); err != nil {
		t.Error(err)
	}
	in.Flags.PrevPrimaryRoute = nil
	if err := check(in); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]func(*Input){"route": func(i *Input) { i.Route = "SANTA" }, "channel": func(i *Input) { i.Session.Channel = "fax" }, "os": func(i *Input) { i.Session.TargetOS = "" },
		"limit": func(i *Input) { i.Limits.MaxResultChars = 199 }, "role": func(i *Input) { i.Context.RecentTurns = []Turn{{"system", "x"}} }} {
		b := in
		if bad(&b); check(b) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// A proposal as text, and what the loop makes of it: its own word about an approval
// changes nothing.
func TestCoder(t *testing.T) {
	t.Parallel()
	c, err := ReadCoder("```json\n" + `{"job_id":"mine","plan":"P\nmore","patch":"--- a/x\n+++ b/x\n","risk":{"destructive":true,"compatibility_issues":[],"rollback_possible":true},"need_approval":false,"notes":["1","2","3","4","5","6"]}` + "\n```")
	if err != nil || c.Plan != "P\nmore" || len(c.Notes) != 5 || c.NeedApproval {
		t.Fatalf("%+v, %v", c, err)
	}
	for want, r := range map[string]Risk{"high": {Destructive: true, Rollback: true}, "medium": {Rollback: false}, "low": {Rollback: true}} {
		c.Risk = r
		o, err := c.Output()
		if err != nil || o.Risk != want || o.NeedsNextLoop || o.Why != "P" || !json.Valid(o.Result) {
			t.Errorf("%+v, %v", o, err)
		}
	}
	c.Risk = Risk{Rollback: true, Compatibility: []string{"x"}}
	if o, _ := c.Output(); o.Risk != "medium" {
		t.Error(o.Risk)
	}
	if c, err := ReadCoder(`{"plan":"P","risk":"low"}`); err != nil || c.Risk.Destructive || !c.Risk.Rollback { // the program computes it
		t.Errorf("%+v, %v", c.Risk, err)
	}
}

func TestShortened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		most int
		want string
		left int
	}{{"abc", 3, "abc", 0}, {"あいうえお", 3, "あいう", 2}, {"first line\nsecond", 14, "first line", 7}, {"a\nlong line here", 10, "a\nlong lin", 6}, {"", 0, "", 0}} {
		if got, left := Shortened(c.in, c.most); got != c.want || left != c.left {
			t.Errorf("%q to %d: %q, %d", c.in, c.most, got, left)
		}
	}
}

func FuzzReadOutput(f *testing.F) {
	f.Add(whole(plan))
	f.Add("```json\n{{{\"" + whole(plan))
	f.Add(strings.Repeat("{", 5000))
	f.Fuzz(func(t *testing.T, text string) {
		defer disktest.Bounded(t, len(text))()
		o, err := ReadOutput(routing.Plan, text)
		if err == nil && (o.Risk == "" || len(o.NextActions) > 3 || len(o.Questions) > 3 || o.Confidence < 0 || o.Confidence > 1 || !json.Valid(o.Result)) {
			t.Errorf("%+v", o)
		}
		if err != nil && len(fmt.Sprint(err)) > 20_000 {
			t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
		}
	})
}

// A headline cuts no word and leaves no quotation open.
func TestHeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"short\r\nand more", 29, "short"},
		{"作り直す。-1 が \"-1st\" になるように直す", 13, "作り直す。-1 が…"},
		{"作り直す。-1 が \"-1st\" になるように直す", 20, "作り直す。-1 が \"-1st\" にな…"},
		{"作り直します。「タイムアウトの値」を変えてください", 12, "作り直します…"},
		{"change the configuration of everything there is", 29, "change the configuration of…"},
		{"wait for it... and then go", 17, "wait for it…"},
		{"wait for it… and then go", 15, "wait for it…"},
		{strings.Repeat("x", 60), 29, strings.Repeat("x", 14) + "…"},
	} {
		if got := Headline(c.text, c.most); got != c.want || utf8.RuneCountInString(got) > c.most {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A proposal that tells no risk has an empty list of issues, and none that is null.
func TestNoIssuesIsAList(t *testing.T) {
	t.Parallel()
	for _, risk := range []string{"", `,"risk":{"destructive":false}`, `,"risk":{"compatibility_issues":null}`} {
		c, err := ReadCoder(`{"plan":"p"` + risk + `}`)
		raw, _ := json.Marshal(c)
		if err != nil || !strings.Contains(string(raw), `"compatibility_issues":[]`) {
			t.Errorf("%s %v", raw, err)
		}
	}
}
