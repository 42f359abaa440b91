package job

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contract"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/memory"
	"toritsugi/internal/order"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
)

// Answers of a coder that a plan leads.
const (
	plan = `- calls:
  - {tool: read_file, args: {path: greet.txt}}
  - tool: submit_plan
    args: {goal_understanding: {main_objective: Greet the moon, success_criteria: [greet.txt says moon]}, task_decomposition: {subtasks: [{description: Say moon, complexity: low}]}}
`
	planOfOne = `- calls:
  - {tool: read_file, args: {path: greet.txt}}
  - tool: submit_plan
    args: {goal_understanding: {main_objective: Greet the moon, success_criteria: [greet.txt says moon]}, task_decomposition: {subtasks: [{description: Say moon, complexity: medium}]}}
`
	planOfTwo = `- calls:
  - {tool: read_file, args: {path: greet.txt}}
  - tool: submit_plan
    args: {goal_understanding: {main_objective: Greet the moon, success_criteria: [greet.txt says moon]}, task_decomposition: {subtasks: [{id: a, description: Add what is greeted, complexity: medium}, {id: b, description: Change greet.txt, complexity: medium}]}}
`
	report = `- calls: [{tool: report_subtask, args: {status: done, summary: it is greet.txt}}]
`
	passes = `- calls: [{tool: reflect, args: {verification_passed: true, criteria: [{criterion: greet.txt says moon, met: true, evidence: "greet.txt:2"}]}}]
`
	unfinished = `- calls:
  - tool: propose
    args: {plan: p, files: [{path: greet.py, action: create, content: "def greet():\n    # TODO: say moon\n    pass\n"}], risk: {destructive: false, rollback_possible: true}}
`
	lacks = `- calls: [{tool: reflect, args: {verification_passed: false, issues_found: [the sun is missing], additional_actions: [{purpose: name the sun}]}}]
`
)

// propose is the call alone of moon.
var propose = moon[strings.Index(moon, "- calls:\n"):]

// led has a plan lead the jobs of a house.
func (h *house) led() *house {
	h.Planning = &agent.Planning{Settings: planning.Settings{MaxSubtasks: 10, Reflect: true, ReflectOnError: true, ReflectionInterval: 3, MaxRevisions: 2, Verify: true, MaxRounds: 2}}
	h.Inheritance = memory.Inheritance{Enabled: true, Expiry: 24 * time.Hour}
	return h
}

// says has the model go on with other answers.
func (h *house) says(text string) {
	h.t.Helper()
	model, err := script.Parse("more.yaml", []byte(text))
	if err != nil {
		h.t.Fatal(err)
	}
	h.Client = model
}

// conversation is what is on record of the run, and how often its model was asked.
func (h *house) conversation() (text string, asked int64) {
	h.t.Helper()
	v, err := h.Store.View(h.uuid)
	if err != nil {
		h.t.Fatal(err)
	}
	log, err := v.MessageLog()
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	err = log.Range(1, 1000, func(m contextstore.Message, _ []byte) bool {
		text += m.Role + ": " + m.Content + "\n"
		return true
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return text, v.State.LLMCallCount
}

// A coder of CODE2 is led by a plan. Proposing ends the last subtask; no plan at all is one of
// one subtask. More than a small step is judged, by the patch. CODE1 designs without.
func TestPlanLeads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says, route string
		asked       int64
		judged      *approval.Judged
		plan        string // its first subtask, on record
	}{
		"small":      {plan + propose, "CODE2", 2, &approval.Judged{Subtasks: 1}, "Say moon"},
		"at once":    {strings.Replace(propose, "- calls:\n", plan[:strings.Index(plan, "task_decomposition")]+"task_decomposition: {subtasks: [{description: Say moon, complexity: low}]}}\n", 1), "CODE2", 1, &approval.Judged{Subtasks: 1}, "Say moon"},
		"none":       {moon, "CODE3", 2, &approval.Judged{Subtasks: 1}, "Do what the task asks for"},
		"unfinished": {plan + unfinished + passes, "CODE2", 3, &approval.Judged{Subtasks: 1, Criteria: 1, Met: 1}, "Say moon"},
		"one":        {planOfOne + propose + passes, "CODE2", 3, &approval.Judged{Subtasks: 1, Criteria: 1, Met: 1}, "Say moon"},
		"two":        {planOfTwo + report + propose + passes, "CODE2", 4, &approval.Judged{Subtasks: 2, Criteria: 1, Met: 1}, "Add what is greeted"},
		"lacking":    {planOfOne + propose + lacks + propose + passes, "CODE2", 5, &approval.Judged{Subtasks: 2, Criteria: 1, Met: 1}, "Say moon"},
		"open":       {planOfOne + propose + lacks + propose + lacks, "CODE2", 5, &approval.Judged{Subtasks: 2, Open: []string{"the sun is missing"}}, "Say moon"},
		"reminded":   {planOfOne + report + "- say: Done.\n" + propose + passes, "CODE2", 5, &approval.Judged{Subtasks: 1, Criteria: 1, Met: 1}, "Say moon"},
		"design":     {moon, "CODE1", 2, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, approval.Branch, c.says).led()
			h.ask(approval.Branch, c.route, "Greet the moon", 9)
			res := h.run()
			text, asked := h.conversation()
			if res.Outcome.Status != task.AwaitingApproval || asked != c.asked || fmt.Sprintf("%+v", res.Job.Judged) != fmt.Sprintf("%+v", c.judged) {
				t.Fatalf("%+v %v, asked %d, judged %+v\n%s", res.Outcome, res.Err, asked, res.Job.Judged, text)
			}
			if strings.Contains(text, "checks that could be run") || c.judged != nil && (c.judged.Criteria > 0) != strings.Contains(text, "no check has run on it") && name != "open" {
				t.Errorf("what the judgement goes by:\n%s", text)
			}
			a, err := planning.ReadAccount(t.Context(), res.Dir, planning.HistoryFile(h.Store.BaseDir, "", h.uuid), func(err error) { t.Error(err) })
			if c.plan == "" {
				if err == nil && a.Plan != nil {
					t.Errorf("a design has a plan: %+v", a.Plan)
				}
				return
			}
			if err != nil || a.Plan == nil || !strings.Contains(a.Plan.Decomposition.Subtasks[0].Description, c.plan) {
				t.Errorf("on record: %+v %v", a.Plan, err)
			}
			if told, err := Coder(h.Approvals, res.Job, h.Lang); err != nil || (len(told.Notes) > 0) != (len(c.judged.Open) > 0) || len(told.Notes) > 0 && told.Notes[0] != "open: the sun is missing" {
				t.Errorf("Chat is told %+v, %v", told, err)
			}
			request, err := h.Approvals.Request(h.Lang, res.Job)
			if err != nil || (len(request.Judged) > 0) != (c.judged.Criteria > 0 || c.judged.Subtasks > 1) || len(request.Judged) > 1+len(c.judged.Open) {
				t.Errorf("the request says %q, %v", request.Judged, err)
			}
		})
	}
}

// A run that is put down between the proposal and its judgement goes on with that; what is
// proposed is not proposed again.
func TestJudgedLater(t *testing.T) {
	t.Parallel()
	h := newHouse(t, approval.Branch, planOfOne+propose+passes).led()
	c, _, err := h.Store.Claim(t.Context(), h.uuid)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	h.Client = &stopping{Client: h.Client, at: 3, stop: func() { stop(agent.ErrShutdown) }}
	res, err := h.Execute(ctx, c)
	if err != nil || res.Outcome.Status != task.Queued {
		t.Fatalf("%+v %v", res, err)
	}
	first, err := approval.Read(res.Dir)
	if err != nil || first.Judged != nil {
		t.Fatalf("%+v %v", first, err)
	}
	res = h.run()
	if res.Outcome.Status != task.AwaitingApproval || res.Job.Judged == nil || res.Job.Hash() != first.Hash() {
		t.Errorf("%+v %v", res.Outcome, res.Err)
	}
}

// A proposal whose model fails when it is to be judged is put to people as it is.
func TestJudgedByNobody(t *testing.T) {
	t.Parallel()
	h := newHouse(t, approval.Branch, planOfOne+propose).led()
	h.Client = &stopping{Client: h.Client, at: 3, stop: func() {}, err: &llm.Error{Kind: llm.KindUnreachable, Provider: "script"}}
	if res := h.run(); res.Outcome.Status != task.AwaitingApproval || res.Job.Judged != nil || res.Job.State.Status != approval.Pending {
		t.Errorf("%+v %v, judged %+v", res.Outcome, res.Err, res.Job.Judged)
	}
}

// stopping is a client that is stopped as it is asked for the nth time.
type stopping struct {
	llm.Client
	n, at int
	stop  func()
	err   error // nil for the context's
}

func (s *stopping) Open(o llm.Settings) llm.Conversation {
	return &stoppingConversation{s.Client.Open(o), s}
}

type stoppingConversation struct {
	llm.Conversation
	s *stopping
}

func (c *stoppingConversation) Send(ctx context.Context, delta func(string)) (*llm.Reply, error) {
	if c.s.n++; c.s.n == c.s.at {
		c.s.stop()
		return nil, cmp.Or(c.s.err, ctx.Err())
	}
	return c.Conversation.Send(ctx, delta)
}

// What was denied with a reason, and proposed again, is proposed by a model that knows the
// reason; what a job of another repository left is not known.
func TestDeniedWithAReason(t *testing.T) {
	t.Parallel()
	h := newHouse(t, approval.Branch, plan+propose+passes+plan+propose+passes).led()
	res := h.run()
	d := approval.Decision{Job: res.Job.Job, Hash: res.Job.Short(), By: "terminal:hanako", How: "command", Where: "terminal", Reason: "say sun, not moon"}
	if _, err := h.Approvals.Decide(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	v, err := h.Store.View(h.uuid)
	if err != nil || v.Status() != task.Stopped || v.State.Error == nil || !strings.Contains(*v.State.Error, "denied by terminal:hanako: say sun, not moon") {
		t.Fatalf("%+v %v", v.State, err)
	}
	h.ask(approval.Branch, "CODE2", "Greet the sun", 7)
	h.says(plan + propose + passes)
	if res = h.run(); res.Outcome.Status != task.AwaitingApproval {
		t.Fatalf("%+v %v", res.Outcome, res.Err)
	}
	text, _ := h.conversation()
	for _, want := range []string{"the proposal was denied by somebody: say sun, not moon", "Say moon in place of world.", "+moon", "an earlier job of this conversation", "never an instruction"} {
		if !strings.Contains(text, want) {
			t.Errorf("the second job is not told %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "hanako") {
		t.Errorf("somebody is named:\n%s", text)
	}
	o, err := order.Parse(v.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	o.Chat.Job, o.Chat.Repository = "", "other"
	other := conversation{h.Store, *o.Chat}
	if all, err := other.Ended(t.Context(), v.Metadata.TaskKey, noon.Add(-time.Hour), 5); err != nil || len(all) != 0 {
		t.Errorf("of another repository: %v %v", all, err)
	}
}

// A job that makes anew what was denied is told of that once, in the language of its
// conversation: nothing of it was done, and nobody learns from that it was handed in.
func TestDeniedIsNothingDone(t *testing.T) {
	t.Parallel()
	for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
		h := newHouse(t, approval.Branch, planOfTwo+report+propose+passes).led()
		h.Lang, h.Planning.Prompts.Lang = l, l
		h.Planning.Inherit = planning.Inheritance{Plans: true, Verifications: true, Reflections: true, MaxPlans: 3, Patterns: true}
		res := h.run()
		d := approval.Decision{Job: res.Job.Job, Hash: res.Job.Short(), By: "terminal:hanako", How: "command", Where: "terminal", Reason: `月ではなく"太陽"`}
		if _, err := h.Approvals.Decide(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(contract.Input{UserText: "却下の理由に沿って作り直す: " + d.Reason, Context: contract.Context{RecentTurns: []contract.Turn{
			{Role: "user", Text: res.Order.Title}, {Role: "assistant", Text: "<notice>却下: " + res.Job.Job + " " + d.Reason + "</notice>"}, {Role: "user", Text: "お願いします"}, {Role: "user", Text: res.Order.Title + " only"}}}})
		if err != nil {
			t.Fatal(err)
		}
		h.request = string(raw)
		h.ask(approval.Branch, "CODE2", "Greet the sun", 7)
		h.says(planOfTwo + report + propose + passes)
		if res = h.run(); res.Outcome.Status != task.AwaitingApproval {
			t.Fatalf("%+v %v", res.Outcome, res.Err)
		}
		text, _ := h.conversation()
		for want, n := range map[string]int{"太陽": 1, "お願いします": 1, "Greet the moon only": 1, "it was handed in\n": 0, "2 of 2 subtasks": 0, "提出しました\n": 0, "2/2 件": 0, "met: true": 0, "（達成: ": 0} {
			if strings.Count(text, want) != n {
				t.Errorf("%s: %q stands there %d times, not %d:\n%s", l, want, strings.Count(text, want), n, text)
			}
		}
		told := map[i18n.Lang][]string{
			i18n.English:  {"Outcome: the proposal was denied; why stands in the request below", "1 of 2 subtasks done)", "b [not taken]", "it was handed in, and not taken", "an earlier job of this conversation that ended on 2026-03-04"},
			i18n.Japanese: {"結果: 提案は却下されました（理由は下の依頼にあります）", "サブタスク 1/2 件完了", "b［不採用］", "提出しましたが、採用されませんでした", "この会話の以前のジョブ"},
		}
		for _, want := range told[l] {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the second job is not told %q:\n%s", l, want, text)
			}
		}
		record := text[strings.Index(text, memory.InheritedPrefix):strings.Index(text, "{\"route\"")]
		if english := regexp.MustCompile(`[a-z]+ [a-z]+ [a-z]+`).FindAllString(record, -1); l == i18n.Japanese && slices.ContainsFunc(english, func(s string) bool { return !strings.Contains(plan+planOfTwo+report+moon, s) }) {
			t.Errorf("a Japanese record has English words: %q\n%s", english, record)
		}
	}
}

// An assertion that is added to a test of Go is nothing that a reviewer is told of, however few
// lines around it the patch shows; one that goes is.
func TestAddedAssertionIsNoFinding(t *testing.T) {
	t.Parallel()
	const before = "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Error(1)\n\t}\n\tx := 0\n\t_ = x\n\ty := 0\n\t_ = y\n\tz := 0\n\t_ = z\n}\n"
	for name, c := range map[string]struct {
		patch string
		want  string
	}{
		"added": {"diff --git a/a_test.go b/a_test.go\n--- a/a_test.go\n+++ b/a_test.go\n@@ -11,4 +11,7 @@\n \ty := 0\n \t_ = y\n+\tif f() != 2 {\n+\t\tt.Error(2)\n+\t}\n \tz := 0\n \t_ = z\n", ""},
		"gone":  {"diff --git a/a_test.go b/a_test.go\n--- a/a_test.go\n+++ b/a_test.go\n@@ -6,4 +6,1 @@\n-\tif f() != 1 {\n-\t\tt.Error(1)\n-\t}\n \tx := 0\n", "a_test.go"},
	} {
		for _, deliver := range []approval.Deliver{approval.Branch, approval.Worktree} {
			t.Run(name+" "+string(deliver), func(t *testing.T) {
				t.Parallel()
				call := fmt.Sprintf("- calls: [{tool: propose, args: {plan: p, patch: %q, risk: {destructive: false, rollback_possible: true}}}]\n", c.patch)
				h := newHouse(t, deliver, plan+call+passes).led()
				write(t, filepath.Join(h.repo, "a_test.go"), before)
				git(t, h.repo, "add", "-A")
				git(t, h.repo, "commit", "-qm", "a test")
				h.ask(deliver, "CODE2", "Greet the moon", 9)
				res := h.run()
				text, _ := h.conversation()
				if res.Outcome.Status != task.AwaitingApproval {
					t.Fatalf("%+v %v\n%s", res.Outcome, res.Err, text)
				}
				judged := strings.Contains(text, "a_test.go:") || strings.Contains(text, "assert")
				if judged != (c.want != "") {
					t.Errorf("what a reviewer is told:\n%s", text)
				}
			})
		}
	}
}

// How far a job is, is told in words, whatever its model calls, in one language.
func TestProgressIsWords(t *testing.T) {
	t.Parallel()
	for call, want := range map[contextstore.ToolCall][2]string{
		{Name: "read_file", Arguments: `{"path":"a.go","start_line":1}`}:           {"reading a.go (step 3)", "a.go を確認中（3 回目）"},
		{Name: "grep", Arguments: `{"pattern":"func f","path":"x"}`}:               {"searching for func f (step 3)", "func f を検索中（3 回目）"},
		{Name: "list_files", Arguments: `{}`}:                                      {"looking at the files in . (step 3)", ". のファイルを確認中（3 回目）"},
		{Name: "reflect", Arguments: `{"verification_passed":true,"criteria":[]}`}: {"checking its own work (step 3)", "自分の作業を点検中（3 回目）"},
		{Name: "propose", Arguments: `{"plan":"p"`}:                                {"writing the proposal (step 3)", "提案を作成中（3 回目）"},
		{Name: "recall", Arguments: `{"seq":1}`}:                                   {"using the tool recall (step 3)", "ツール recall を使用中（3 回目）"},
	} {
		for i, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
			if got := called(l, 3, call); got != want[i] {
				t.Errorf("%q, want %q", got, want[i])
			}
		}
	}
}

// A proposal that leaves out what the one before changed is asked about once: nothing of that
// one is applied. A path may be written as from the top of the workspace.
func TestAProposalThatDropsFiles(t *testing.T) {
	t.Parallel()
	const other = `- calls:
  - tool: propose
    args: {plan: name the sun, files: [{path: sun.txt, action: create, content: "sun\n"}], risk: {destructive: false, rollback_possible: true}}
`
	const both = `- calls:
  - tool: propose
    args: {plan: name both, files: [{path: /workspace/sun.txt, action: create, content: "sun\n"}, {path: /greet.txt, action: modify, content: "hello\nmoon\n"}], risk: {destructive: false, rollback_possible: true}}
`
	for name, c := range map[string]struct {
		then  string
		files int
	}{
		"whole then": {both, 2},
		"meant":      {other, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, approval.Branch, planOfOne+propose+lacks+other+c.then+passes).led()
			h.ask(approval.Branch, "CODE2", "Greet the moon", 9)
			res := h.run()
			text, _ := h.conversation()
			if res.Outcome.Status != task.AwaitingApproval || len(res.Job.Files) != c.files || strings.Count(text, "also changed greet.txt") != 1 {
				t.Errorf("%+v %+v\n%s", res.Outcome, res.Job.Files, text)
			}
		})
	}
}

// Words with the diff in a fence are a proposal where nothing else is left to do, with a plan and
// without; else they are words. What the last subtask is asked for is the proposal, not a report.
func TestAFencedDiffIsAProposal(t *testing.T) {
	t.Parallel()
	const diff = "    ```diff\n    --- a/greet.txt\n    +++ b/greet.txt\n    @@ -1,2 +1,2 @@\n     hello\n    -world\n    +moon\n    ```\n"
	const fenced = "- say: |\n    I {would} say moon.\n\n" + diff + "\n    Tested by nothing.\n"
	const headless = "- say: |\n    I would say moon.\n\n    ```diff\n    -world\n    +moon\n    ```\n"
	for name, c := range map[string]struct {
		says, route string
		asked       int64
		told        string // "" for nothing that nudges
	}{
		"last":         {planOfTwo + report + fenced + passes, "CODE2", 4, ""},
		"no plan yet":  {fenced, "CODE2", 1, ""},
		"of one":       {plan + fenced, "CODE3", 2, ""},
		"reported":     {planOfOne + report + fenced + passes, "CODE2", 4, "Nothing was proposed yet"},
		"refused once": {planOfOne + strings.Replace(fenced, "-world", "-sun", 1) + fenced + passes, "CODE2", 4, "was not taken"},
		"not the last": {planOfTwo + fenced + propose + passes, "CODE2", 4, ""}, // it is the report
		"no head":      {planOfTwo + report + headless + propose + passes, "CODE2", 5, "by calling propose"},
		"beside calls": {planOfOne + strings.Replace(fenced, "- say", "- calls: [{tool: read_file, args: {path: greet.txt}}]\n  say", 1) + propose + passes, "CODE2", 4, ""},
		"without":      {fenced, "CODE1", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, approval.Branch, c.says).led()
			h.ask(approval.Branch, c.route, "Greet the moon", 9)
			res := h.run()
			text, asked := h.conversation()
			nudged := strings.Contains(text, "by calling") || strings.Contains(text, "Nothing was proposed") || strings.Contains(text, "not taken")
			if res.Outcome.Status != task.AwaitingApproval || len(res.Job.Files) != 1 || asked != c.asked || !strings.Contains(text, c.told) || nudged != (c.told != "") {
				t.Fatalf("%+v %v, asked %d\n%s", res.Outcome, res.Err, asked, text)
			}
			if said := strings.Contains(c.says, propose); said == strings.Contains(res.Job.Plan, "I {would} say moon.") || !said && !strings.Contains(res.Job.Plan, "Tested by nothing.") {
				t.Errorf("the plan is %q", res.Job.Plan)
			}
		})
	}
}
