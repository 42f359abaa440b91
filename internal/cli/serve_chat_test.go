package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/approval"
	"toritsugi/internal/task"
)

const proposes = `
- say: I look first.
  calls: [{tool: read_file, args: {path: answer.txt}}]
- calls:
  - tool: propose
    args: {plan: The answer is 42., patch: "--- a/answer.txt\n+++ b/answer.txt\n@@ -1,3 +1,3 @@\n-41\n+42\n 1\n 2\n", risk: {destructive: false, rollback_possible: true}, need_approval: true}
`

// A proposal that was granted in a chat becomes one branch and one draft, at whichever of its
// requests the process is killed, and though the terminal is closed.
func TestKilledOnTheWayToADraft(t *testing.T) {
	skipShort(t, "it is served and killed at every step")
	t.Parallel()
	const requests = 24 // of a granted job that nobody ends
	kills := make(chan int, 12)
	led := rounds(t, 12, func(t *testing.T, i int) {
		w := newTown(t, patient+"llm: {script: {file: SCRIPT}}\nrouting: {llm: {chat_provider: script, coder_provider: script, coder2_provider: script}}\n"+
			"access: {people: {'terminal:"+app.LocalUser()+"': 'github:hanako'}}\nchat: {repositories: [{name: widgets, url: 'github:acme/widgets'}]}\n")
		raw, err := readFile(w.config)
		if err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(w.dir, "coder.yaml")
		write(t, script, proposes)
		write(t, w.config, strings.ReplaceAll(string(raw), "SCRIPT", script))
		w.repo.Commit("main", "hanako", "more lines", map[string]string{"answer.txt": "41\n1\n2\n"})
		tori := func(want int, args ...string) {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), "tori", append(args, "--config", w.config, "--base-dir", filepath.Join(w.dir, "base"))...)
			cmd.Dir, cmd.Env = w.dir, w.serve().Env
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != want {
				t.Fatalf("tori %q: %v\n%s", args, err, out)
			}
		}
		tori(exitWaiting, "chat", "-m", "/code2 Make it 42")
		job := w.proposal(task.AwaitingApproval)
		tori(0, "approvals", "grant", job.Job, job.Short())
		d := &doom{at: len(w.hub.Log()) + 1 + i*requests/12, after: i%2 == 0, most: 1}
		if i%4 == 3 {
			d.every, d.most = 5, 2
		}
		w.hub.OnRequest(d.fate)
		log := d.live(w)
		pulls := w.repo.Pulls()
		if len(pulls) != 1 || len(w.repo.Branches()) != 2 || !pulls[0].Pull.Draft || len(pulls[0].Comments) > 0 {
			t.Fatalf("%+v, branches %v\n%s", pulls, w.repo.Branches(), log)
		}
		if text, _ := w.repo.File(pulls[0].Pull.Head, "answer.txt"); text != "42\n1\n2" {
			t.Errorf("%q\n%s", text, log)
		}
		w.proposal(task.Completed)
		w.sound()
		kills <- d.kills
	})
	close(kills)
	all := 0
	for n := range kills {
		all += n
	}
	if all < led*2/3 {
		t.Errorf("killed %d times only", all)
	}
}

// proposal is the one proposal of a town, whose run stands as it should.
func (w *town) proposal(want task.Status) approval.Job {
	w.t.Helper()
	l, err := list(w.t.Context(), filepath.Join(w.dir, "base"))
	if err != nil || len(l.Views) != 1 || l.Views[0].Status() != want {
		w.t.Fatalf("%v, %+v", err, l.Views)
	}
	job, err := approval.Read(l.Views[0].Dir)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// What approval.hard_require_approval lists beyond what the label covers waits with its branch
// unpushed, and is asked about by a comment; who may write decides by one, bound to the change.
func TestARunIsHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grants bool
		labels string
		pulls  int
	}{"granted": {true, "coding agent done", 1}, "denied": {false, "coding agent stopped", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(t, "approval: {hard_require_approval: [delete, ci]}\n")
			write(t, filepath.Join(w.dir, "script.yaml"), strings.Replace(mends, "- say: The answer", `- calls: [{tool: write_file, args: {path: .github/workflows/ci.yml, content: "on: push\n"}}]
- say: The answer`, 1))
			n := w.repo.OpenIssue("stranger", "The answer is wrong", "It says 41.")
			w.repo.Label(n, "coding agent", "hanako")
			log := w.once()
			job := w.proposal(task.AwaitingApproval)
			labels, ours := w.shown(n)
			if labels != "coding agent waiting" || len(w.repo.Branches()) != 1 || len(ours) != 2 || !strings.Contains(ours[1], ".github/workflows/ci.yml") || !strings.Contains(ours[1], "/approve "+job.Job+" "+job.Short()) {
				t.Fatalf("%q %v\n%q\n%s", labels, w.repo.Branches(), ours, log)
			}
			w.repo.Comment(n, "stranger", "/approve "+job.Job+" "+job.Short())
			w.repo.Comment(n, "hanako", "/approve "+job.Job+" 000000000000")
			log = w.once()
			w.proposal(task.AwaitingApproval)
			decision := "/approve " + job.Job
			if !c.grants {
				decision = "/deny " + job.Job + " not this way"
			}
			w.later(2 * time.Second)
			w.repo.Comment(n, "hanako", decision)
			log += w.once()
			labels, _ = w.shown(n)
			if pulls := w.repo.Pulls(); labels != c.labels || len(pulls) != c.pulls || len(w.repo.Branches()) != 1+c.pulls {
				t.Errorf("%q %+v %v\n%s", labels, pulls, w.repo.Branches(), log)
			}
			w.sound()
		})
	}
}

// A run that is held, killed at any of its requests before and after the decision: one branch,
// one pull request, and one comment that asks.
func TestKilledWhileHeld(t *testing.T) {
	skipShort(t, "it is served and killed at every step")
	t.Parallel()
	rounds(t, 8, func(t *testing.T, i int) {
		w := newTown(t, patient+"approval: {hard_require_approval: [ci]}\n")
		write(t, filepath.Join(w.dir, "script.yaml"), strings.Replace(mends, "- say: The answer", "- calls: [{tool: write_file, args: {path: .github/workflows/ci.yml, content: x}}]\n- say: The answer", 1))
		n := w.repo.OpenIssue("stranger", "The answer is wrong", "It says 41.")
		w.repo.Label(n, "coding agent", "hanako")
		d := &doom{at: 4 + 4*i, after: i%2 == 0, most: 1}
		w.hub.OnRequest(d.fate)
		log := d.live(w)
		job := w.proposal(task.AwaitingApproval)
		if len(w.repo.Branches()) != 1 {
			t.Fatalf("%v\n%s", w.repo.Branches(), log)
		}
		w.later(2 * time.Second)
		w.repo.Comment(n, "hanako", "/approve "+job.Job+" "+job.Short())
		d = &doom{at: len(w.hub.Log()) + 1 + 3*i, after: i%2 == 0, most: 1}
		w.hub.OnRequest(d.fate)
		log += d.live(w)
		w.proposal(task.Completed)
		if _, ours := w.shown(n); len(w.repo.Pulls()) != 1 || len(w.repo.Branches()) != 2 || len(ours) != 2 {
			t.Errorf("%+v %v %q\n%s", w.repo.Pulls(), w.repo.Branches(), ours, log)
		}
		w.sound()
	})
}
