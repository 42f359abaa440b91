package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/app"
	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
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
	rounds(t, 12, func(t *testing.T, i int) {
		w := newTown(t, patient+"llm: {script: {file: SCRIPT}}\nrouting: {llm: {chat_provider: script, coder_provider: script, coder2_provider: script}}\n"+
			"access: {people: {'terminal:"+app.LocalUser()+"': 'github:hanako'}}\nchat: {repositories: [{name: widgets, url: 'github:acme/widgets'}]}\n")
		raw, err := os.ReadFile(w.config)
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
	if all < 8 {
		t.Errorf("killed %d times only", all)
	}
}

// proposal is the one proposal of a town, whose run stands as it should.
func (w *town) proposal(want task.Status) approval.Job {
	w.t.Helper()
	l, err := contextstore.List(w.t.Context(), filepath.Join(w.dir, "base"), contextstore.Viewer{Admin: true}, contextstore.Filter{})
	if err != nil || len(l.Views) != 1 || l.Views[0].Status() != want {
		w.t.Fatalf("%v, %+v", err, l.Views)
	}
	job, err := approval.Read(l.Views[0].Dir)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}
