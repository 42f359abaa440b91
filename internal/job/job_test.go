package job

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/approval"
	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/order"
	"toritsugi/internal/redact"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/tool/policy"
	"toritsugi/internal/turn"
	"toritsugi/internal/workspace"
)

// TestMain lets the program of the tests be the helper of its sandboxes.
func TestMain(m *testing.M) {
	sandbox.Helper(os.Args)
	os.Exit(m.Run())
}

var noon = time.Date(2026, 3, 4, 3, 6, 7, 0, time.UTC)

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") }),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.org", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// house is a base directory with a repository, and a model that says what a script has.
type house struct {
	*Runner
	t       *testing.T
	repo    string
	uuid    string
	request string // of jobs, "" for an empty one
}

func newHouse(t *testing.T, deliver approval.Deliver, says string) *house {
	t.Helper()
	repo := filepath.Join(t.TempDir(), "repo")
	write(t, filepath.Join(repo, "greet.txt"), "hello\nworld\n")
	git(t, repo, "init", "-q", "-b", "main")
	git(t, repo, "add", ".")
	git(t, repo, "commit", "-q", "-m", "first")
	z := redact.New(nil, nil)
	now := func() time.Time { return noon }
	store, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: filepath.Join(t.TempDir(), "contexts"), Redact: z.String, Now: now, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	rules, err := policy.New(policy.Default())
	if err != nil {
		t.Fatal(err)
	}
	model, err := script.Parse("model.yaml", []byte(says))
	if err != nil {
		t.Fatal(err)
	}
	bare := func(s sandbox.Spec) (sandbox.Runner, error) { return sandbox.Unconfined(s), nil }
	h := &house{t: t, repo: repo, Runner: &Runner{Store: store, Client: model, Log: slog.New(slog.DiscardHandler), Now: now, Lang: i18n.English, Window: 20_000, Budget: turn.Budget{Turns: 20},
		Filter: func(w io.Writer) io.WriteCloser { return nopCloser{w} }, Box: workspace.Box{Shell: bare}, Shell: bare, Scripted: true,
		Approvals: &approval.Jobs{Store: store, Settings: approval.Settings{Required: true, Expires: time.Hour, Wide: approval.Wide{Files: 20, Lines: 500, Share: 0.9}}, Policy: rules, Version: "1", Sanitizer: z, Now: now},
		Branch: func(_ context.Context, _ *workspace.Source, m contextstore.Metadata) (string, error) {
			return "tori/" + m.TaskKey.ID, nil
		}}}
	h.ask(deliver, "CODE2", "Greet the moon", 1)
	return h
}

// ask has another job of the same conversation wait.
func (h *house) ask(deliver approval.Deliver, route, title string, n byte) {
	h.t.Helper()
	id, err := approval.NewJob(noon, time.UTC, bytes.NewReader([]byte{n, 2, 3, 4}))
	if err != nil {
		h.t.Fatal(err)
	}
	raw, err := json.Marshal(order.Order{Repo: h.repo, Base: git(h.t, h.repo, "rev-parse", "HEAD"), Chat: &order.Chat{Job: id, Session: "terminal:hanako:1", User: "terminal:hanako", Route: route,
		Repository: "repo", Deliver: string(deliver), Title: title, Request: cmp.Or(h.request, "{}"), Prompt: "You are a coder."}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.uuid, err = h.Store.Enqueue(h.t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "terminal", Owner: "hanako:1", Repo: "repo", Type: "chat", ID: id}, Title: title, Run: raw})
	if err != nil {
		h.t.Fatal(err)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// run executes the run once more.
func (h *house) run() Result {
	h.t.Helper()
	c, _, err := h.Store.Claim(h.t.Context(), h.uuid)
	if err != nil {
		h.t.Fatal(err)
	}
	res, err := h.Execute(h.t.Context(), c)
	if err != nil {
		h.t.Fatal(err)
	}
	return res
}

func (h *house) decide(job approval.Job, grant bool) {
	h.t.Helper()
	if _, err := h.Approvals.Decide(h.t.Context(), approval.Decision{Job: job.Job, Hash: job.Short(), Grant: grant, By: "terminal:hanako", How: "command", Where: "terminal"}); err != nil {
		h.t.Fatal(err)
	}
}

const moon = `- calls: [{tool: read_file, args: {path: greet.txt}}]
  usage: {prompt_tokens: 900, completion_tokens: 100, cost_micro_usd: 2500}
- calls:
  - tool: propose
    args:
      plan: Say moon in place of world.
      patch: "--- a/greet.txt\n+++ b/greet.txt\n@@ -1,2 +1,2 @@\n hello\n-world\n+moon"
      risk: {destructive: false, rollback_possible: true}
      need_approval: false
`

// A proposal waits, whatever the model says of that; granted, it is one commit on a branch,
// and the checkout is as it was.
func TestBranch(t *testing.T) {
	t.Parallel()
	h := newHouse(t, approval.Branch, moon)
	h.Project.Checks = []checkrun.Check{{Command: "grep -q moon greet.txt", Timeout: time.Minute}, {Command: "exit 3", Timeout: time.Minute}} // the second is red without the patch, too
	res := h.run()
	if res.Outcome.Status != task.AwaitingApproval || res.Job.Plan != "Say moon in place of world." || res.Job.Deliver != approval.Branch || res.Job.Cost.Tokens < 1000 || res.Job.Cost.MicroUSD != 2500 {
		t.Fatalf("%+v", res)
	}
	h.decide(res.Job, true)
	res = h.run()
	if res.Outcome.Status != task.Completed || !res.Application.Applied() {
		t.Fatalf("%+v", res)
	}
	branch := "tori/" + res.Job.Job
	if got := git(t, h.repo, "show", branch+":greet.txt"); got != "hello\nmoon" {
		t.Errorf("%q", got)
	}
	if got := git(t, h.repo, "log", "-1", "--format=%s|%an", branch); got != "Greet the moon|terminal:hanako" {
		t.Errorf("%q", got)
	}
	if got := git(t, h.repo, "status", "--porcelain"); got != "" {
		t.Errorf("the checkout: %q", got)
	}
}

// With the files at hand the patch is made for them as they are, and goes into them.
func TestWorktree(t *testing.T) {
	t.Parallel()
	h := newHouse(t, approval.Worktree, moon)
	write(t, filepath.Join(h.repo, "greet.txt"), "other\n")
	git(t, h.repo, "commit", "-qam", "other")
	write(t, filepath.Join(h.repo, "greet.txt"), "hello\nworld\n") // not committed
	res := h.run()
	if res.Outcome.Status != task.AwaitingApproval {
		t.Fatalf("%+v", res)
	}
	h.decide(res.Job, true)
	if res = h.run(); res.Outcome.Status != task.Completed {
		t.Fatalf("%+v", res)
	}
	if got, err := os.ReadFile(filepath.Join(h.repo, "greet.txt")); string(got) != "hello\nmoon\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// A check that passed without the patch keeps it out.
func TestRedCheck(t *testing.T) {
	t.Parallel()
	for _, deliver := range []approval.Deliver{approval.Branch, approval.Worktree} {
		h := newHouse(t, deliver, moon)
		h.Project.Checks = []checkrun.Check{{Command: "grep world greet.txt", Timeout: time.Minute}}
		h.decide(h.run().Job, true)
		res := h.run()
		if res.Outcome.Status != task.Failed || res.Application.At != approval.StepChecks || !strings.Contains(res.Reason, "grep world greet.txt") {
			t.Fatalf("%s: %+v", deliver, res)
		}
		if got, err := os.ReadFile(filepath.Join(h.repo, "greet.txt")); string(got) != "hello\nworld\n" || git(t, h.repo, "branch", "--list", "tori/*") != "" {
			t.Errorf("%s: %q, %v", deliver, got, err)
		}
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	h := newHouse(t, approval.Branch, moon)
	res := h.run()
	h.decide(res.Job, false)
	v, err := h.Store.View(h.uuid)
	if err != nil || v.Status() != task.Stopped {
		t.Errorf("%v, %v", v.Status(), err)
	}
}

// A patch that does not apply goes back with git's words; one made of whole files is as
// good; a review has nothing to be granted; a model without tools writes the same as text.
// What is applied are the bytes that it wrote, which the record holds masked (spec/chat §6).
func TestForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says   string
		status task.Status
		file   string
		holds  string // of file
	}{
		"not the base": {`- calls:
  - tool: propose
    args: {plan: p, patch: "--- a/greet.txt\n+++ b/greet.txt\n@@ -1,2 +1,2 @@\n hello\n-sun\n+moon\n", risk: {destructive: false, rollback_possible: true}, need_approval: true}
` + moon[strings.Index(moon, "- calls:\n"):], task.AwaitingApproval, "", ""},
		"files": {`- calls:
  - tool: propose
    args: {plan: p, files: [{path: greet.txt, action: modify, content: "hello\nmoon\n"}, {path: d/new, action: create, content: "new\n"}], risk: {destructive: false, rollback_possible: true}, need_approval: true}
`, task.AwaitingApproval, "d/new", "new"},
		"masked on record": {`- calls:
  - tool: propose
    args: {plan: p, files: [{path: greet.txt, action: modify, content: "hello\nmoon\n"}, {path: d/new, action: create, content: "a.person@example.com\n"}], risk: {destructive: false, rollback_possible: true}}
`, task.AwaitingApproval, "d/new", "a.person@example.com"},
		"half of it": {`- say: |
    {"plan": "p", "risk": {"destructive": false, "rollback_possible": true}, "patch": "--- a/greet.txt\n+++ b/greet.txt\n@@ -1,2 +1,2 @@\n hello\n-world
` + moon[strings.Index(moon, "- calls:\n"):], task.AwaitingApproval, "", ""},
		"what changes": {`- calls: [{tool: write_file, args: {path: greet.txt, content: x}}, {tool: shell, args: {command: "rm greet.txt"}}, {tool: commit, args: {message: m}}]
` + moon, task.AwaitingApproval, "", ""},
		"review": {`- calls:
  - tool: propose
    args: {plan: All is well., task_type: review, risk: {destructive: false, rollback_possible: true}, need_approval: true}
`, task.Completed, "", ""},
		"text": {`- say: |
    {"plan": "p", "files": [{"path": "greet.txt", "action": "modify", "content": "hello\nmoon\n"}], "risk": {"destructive": false, "rollback_possible": true}, "need_approval": true}
`, task.AwaitingApproval, "", ""},
		"nothing": {"- say: I would change greet.txt.\n- say: Really.\n- say: No.\n", task.Failed, "", ""},
		"outside": {strings.Repeat(`- calls:
  - tool: propose
    args: {plan: p, patch: "--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n", risk: {destructive: false, rollback_possible: true}, need_approval: true}
`, maxTries+1), task.Failed, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, approval.Branch, c.says)
			res := h.run()
			if res.Outcome.Status != c.status {
				t.Fatalf("%+v %v", res.Outcome, res.Err)
			}
			if c.status != task.AwaitingApproval {
				return
			}
			h.decide(res.Job, true)
			if res = h.run(); res.Outcome.Status != task.Completed {
				t.Fatalf("%+v %v", res.Outcome, res.Err)
			}
			if got := git(t, h.repo, "show", res.Branch+":greet.txt"); got != "hello\nmoon" {
				t.Errorf("%q", got)
			}
			if c.file != "" && git(t, h.repo, "show", res.Branch+":"+c.file) != c.holds {
				t.Error(c.file)
			}
			log, err := os.ReadFile(filepath.Join(res.Dir, "messages.jsonl"))
			if err != nil || strings.Contains(string(log), "a.person@") || name == "what changes" && strings.Count(string(log), "There is no tool named") != 3 {
				t.Errorf("%v: %s", err, log)
			}
		})
	}
}

// A run that is put down before it proposed goes on with the next owner.
func TestShutdown(t *testing.T) {
	t.Parallel()
	h := newHouse(t, approval.Branch, moon)
	c, _, err := h.Store.Claim(t.Context(), h.uuid)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(agent.ErrShutdown)
	if res, err := h.Execute(ctx, c); err != nil || res.Outcome.Status != task.Queued {
		t.Fatalf("%+v, %v", res, err)
	}
	if res := h.run(); res.Outcome.Status != task.AwaitingApproval {
		t.Fatalf("%+v", res)
	}
}

// Without checks in the settings those that the repository names are run, and what ran is
// said; a patch in a fence is one.
func TestNamedChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rules, says, status string }{
		"passes":   {"```tori-checks\ngrep -q moon greet.txt\n```\n", "Passed: grep -q moon greet.txt", "completed"},
		"breaks":   {"```tori-checks\ngrep -q world greet.txt\n```\n", "grep -q world greet.txt", "failed"},
		"has none": {"", "No check was run", "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says := strings.Replace(strings.Replace(moon, `"--- a/`, "\"```diff\\n--- a/", 1), `+moon"`, "+moon\\n```\"", 1)
			h := newHouse(t, approval.Worktree, says)
			if c.rules != "" {
				write(t, filepath.Join(h.repo, "AGENTS.md"), c.rules)
				git(t, h.repo, "add", ".")
				git(t, h.repo, "commit", "-qm", "rules")
			}
			h.Project.Timeout = time.Minute
			h.decide(h.run().Job, true)
			if res := h.run(); string(res.Outcome.Status) != c.status || !strings.Contains(res.Reason, c.says) {
				t.Errorf("%+v", res)
			}
		})
	}
}

// A patch has other names, too; what else is not known is named, in a call and in text. A proposal
// that would change nothing goes back once, but for a review and a design (spec/chat §6).
func TestAProposalWithoutAPatch(t *testing.T) {
	t.Parallel()
	const patch = `"--- a/greet.txt\n+++ b/greet.txt\n@@ -1,2 +1,2 @@\n hello\n-world\n+moon\n"`
	propose := func(args string) string { return "- calls: [{tool: propose, args: {plan: p, " + args + "}}]\n" }
	for name, c := range map[string]struct {
		says, route string
		status      task.Status
		back        int    // how often one goes back
		told        string // to the model
	}{
		"diff":                    {propose("diff: " + patch), "CODE2", task.AwaitingApproval, 0, ""},
		"patch_text":              {propose("patch_text: " + patch + ", rollback: true"), "CODE2", task.AwaitingApproval, 0, "\n[rollback is not known and was ignored]"},
		"diff beside null":        {propose("patch: null, diff: " + patch), "CODE2", task.AwaitingApproval, 0, ""},
		"what cannot be read too": {propose("cost_hint: small, mode: fast, diff: " + patch), "CODE2", task.AwaitingApproval, 0, "[mode is not known and was ignored]"},
		"in text":                 {"- say: |\n    {\"plan\": \"p\", \"mode\": \"fast\", \"diff\": " + patch + "}\n", "CODE2", task.AwaitingApproval, 0, "[mode is not known and was ignored]"},
		"changes":                 {propose("changes: "+patch) + moon, "CODE2", task.AwaitingApproval, 1, "[changes is not known and was ignored]"},
		"the files as they are":   {propose(`files: [{path: greet.txt, action: modify, content: "hello\nworld\n"}]`) + moon, "CODE3", task.AwaitingApproval, 1, ""},
		"meant":                   {strings.Repeat(propose("notes: [n]"), 2), "CODE2", task.Completed, 1, ""},
		"a review":                {propose("task_type: review"), "CODE2", task.Completed, 0, ""},
		"a design":                {propose("notes: [n]"), "CODE1", task.Completed, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, approval.Branch, c.says)
			h.ask(approval.Branch, c.route, "Greet the moon", 9)
			res := h.run()
			text, _ := h.conversation()
			if res.Outcome.Status != c.status || strings.Count(text, "so nothing would change") != c.back || !strings.Contains(text, c.told) || c.told == "" && strings.Contains(text, "not known") {
				t.Fatalf("%+v %v\n%s", res.Outcome, res.Err, text)
			}
			if c.status != task.AwaitingApproval {
				return
			}
			h.decide(res.Job, true)
			if res = h.run(); res.Outcome.Status != task.Completed || git(t, h.repo, "show", res.Branch+":greet.txt") != "hello\nmoon" {
				t.Errorf("%+v %v", res.Outcome, res.Err)
			}
		})
	}
}

// A patch whose paths lack what git has before them is one; one whose paths begin with the name of
// the repository, where they cannot be taken off, is told where its file is.
func TestPathsOfAPatch(t *testing.T) {
	t.Parallel()
	const hunk = `@@ -1,2 +1,2 @@\n hello\n-world\n+moon\n`
	propose := func(head string) string {
		return `- calls: [{tool: propose, args: {plan: p, patch: "` + head + hunk + `"}}]` + "\n"
	}
	for name, c := range map[string]struct{ says, told, file string }{
		"bare":               {propose(`--- greet.txt\n+++ greet.txt\n`), "", ""},
		"bare, git's":        {propose(`diff --git greet.txt greet.txt\n--- greet.txt\n+++ greet.txt\n`), "", ""},
		"below the name":     {propose(`--- repo/greet.txt\n+++ repo/greet.txt\n`), "", ""},
		"bare, a new one":    {propose(`--- /dev/null\n+++ docs/new.txt\n@@ -0,0 +1 @@\n+new\n--- greet.txt\n+++ greet.txt\n`), "", "docs/new.txt"},
		"behind a/ and b/":   {propose(`--- a/repo/greet.txt\n+++ b/repo/greet.txt\n`) + moon, "repo/greet.txt is not there; greet.txt is", ""},
		"miscounted as well": {propose(`--- a/repo/greet.txt\n+++ b/repo/greet.txt\n@@ -1,9 +1,1 @@\n hello\n-world\n+moon\n--- greet.txt\n+++ greet.txt\n`) + moon, "repo/greet.txt is not there; greet.txt is", ""},
		"none of that name":  {propose(`--- greeting.txt\n+++ greeting.txt\n`) + moon, "calls a file greeting.txt", ""},
		"whole files":        {`- calls: [{tool: propose, args: {plan: p, files: [{path: repo/greet.txt, action: modify, content: "hello\nmoon\n"}]}}]` + "\n" + moon, "repo/greet.txt is not there; greet.txt is", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, approval.Branch, c.says)
			res := h.run()
			text, _ := h.conversation()
			if res.Outcome.Status != task.AwaitingApproval || (c.told == "") == strings.Contains(text, "not taken") || !strings.Contains(text, c.told) {
				t.Fatalf("%+v %v\n%s", res.Outcome, res.Err, text)
			}
			h.decide(res.Job, true)
			if res = h.run(); res.Outcome.Status != task.Completed || git(t, h.repo, "show", res.Branch+":greet.txt") != "hello\nmoon" || c.file != "" && git(t, h.repo, "show", res.Branch+":"+c.file) != "new" {
				t.Errorf("%+v %v", res.Outcome, res.Err)
			}
		})
	}
}
