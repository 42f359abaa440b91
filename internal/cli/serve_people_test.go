package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// request is the first thing that the model is told of the newest run.
func (w *town) request() (text string) {
	w.t.Helper()
	err := w.runs()[0].Tail(contextstore.Messages, -1, func(b []byte) error {
		m, err := contextstore.DecodeMessage(b)
		if m.Role == "user" && text == "" {
			text = m.Content
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	return text
}

// What people write reaches the model as what it is: by somebody who may ask,
// before they asked; by others, or later; or not at all.
func TestWhoseWordsCount(t *testing.T) {
	t.Parallel()
	for _, omit := range []bool{false, true} {
		t.Run(fmt.Sprintf("omit %v", omit), func(t *testing.T) {
			t.Parallel()
			w := newTown(t, "")
			if omit {
				raw, _ := readFile(w.config)
				write(t, w.config, strings.Replace(string(raw), "write_spacing_ms: 0", "write_spacing_ms: 0, untrusted_comments: omit", 1))
			}
			w.hub.AddUser(githubtest.User{Login: "helper[bot]", ID: 104, Type: "Bot"})
			w.repo.Allow("helper[bot]", "write")
			n := w.repo.OpenIssue("stranger", "The answer\u200b is wrong", "It says 41.<!-- HIDDEN in the issue --> Mend\u200b it.")
			w.repo.Comment(n, "hanako", "TRUSTED word.<!-- HIDDEN in a comment --> Zero\u200bwidth.")
			edited := w.repo.Comment(n, "hanako", "Harmless.")
			w.repo.Comment(n, "stranger", "STRANGE word.")
			w.repo.Comment(n, "helper[bot]", "BOTTISH word.")
			w.repo.Comment(n, "tori-bot", "OWN word.")
			w.later(time.Minute)
			w.repo.Label(n, "coding agent", "hanako")
			w.later(time.Minute)
			w.repo.EditComment(edited, "EDITED word.")
			w.repo.Comment(n, "hanako", "LATE word.")
			w.once()
			all := w.request()
			vouched, rest, _ := strings.Cut(all, "<untrusted_comments>")
			for text, where := range map[string]string{"TRUSTED word.": "vouched", "Zerowidth": "vouched", "Mend it": "vouched", "STRANGE": "rest", "EDITED": "rest", "LATE": "rest",
				"HIDDEN": "", "BOTTISH": "", "OWN": "", "Harmless": "", "\u200b": ""} {
				if omit && where == "rest" {
					where = ""
				}
				if strings.Contains(vouched, text) != (where == "vouched") || strings.Contains(rest, text) != (where == "rest") {
					t.Errorf("%q is not where it belongs (%q):\n%s", text, where, all)
				}
			}
			if !strings.Contains(all, "opened by stranger (who may not write to the repository") || omit != strings.Contains(all, "3 comments that nobody vouches for are left out") {
				t.Errorf("request:\n%s", all)
			}
		})
	}
}

// Who may not ask is refused, once, and programs are not even answered.
func TestWhoMayNotAsk(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	w.hub.AddUser(githubtest.User{Login: "helper[bot]", ID: 104, Type: "Bot"})
	w.repo.Allow("helper[bot]", "write")
	by := map[string]int{}
	for _, who := range []string{"stranger", "helper[bot]", "tori-bot"} {
		by[who] = w.repo.OpenIssue("stranger", "By "+who, "x")
		w.repo.Label(by[who], "coding agent", who)
	}
	assigned := w.repo.OpenIssue("stranger", "Assigned", "x")
	w.repo.Assign(assigned, "tori-bot", "helper[bot]")
	log := w.once() + w.once()
	for who, n := range by {
		labels, ours := w.shown(n)
		if labels != "coding agent" || len(ours) > 1 || (len(ours) == 1) != (who == "stranger") {
			t.Errorf("%s: labels %q, comments %q\n%s", who, labels, ours, log)
		}
	}
	if _, ours := w.shown(assigned); len(ours) > 0 {
		t.Errorf("assigned by a program: %q", ours)
	}
	if _, ours := w.shown(by["stranger"]); len(ours) == 1 && !strings.Contains(ours[0], "@stranger may not ask for work here: write permission") {
		t.Errorf("%q", ours)
	}
	if runs := w.runs(); len(runs) > 0 {
		t.Fatalf("%d runs\n%s", len(runs), log)
	}
	// Somebody who may puts it on once more.
	w.later(time.Minute)
	w.repo.Unlabel(by["stranger"], "coding agent", "hanako")
	w.repo.Label(by["stranger"], "coding agent", "hanako")
	log += w.once()
	if len(w.runs()) != 1 || w.labels(by["stranger"]) != "coding agent done" {
		t.Errorf("%d runs, %s\n%s", len(w.runs()), w.labels(by["stranger"]), log)
	}
}

// A name that belongs to somebody else by the time that GitHub is asked about it
// gives no rights: people are their numbers.
func TestNamesProveNothing(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	n := w.repo.OpenIssue("stranger", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "stranger")
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if strings.HasSuffix(q.Pattern, "/permission") && q.Nth == 1 {
			w.hub.Rename("stranger", "nobody")
			w.hub.Rename("hanako", "stranger")
		}
		return nil
	})
	if log := w.look(); len(w.runs()) > 0 || w.labels(n) != "coding agent" {
		t.Errorf("%d runs, labels %s\n%s", len(w.runs()), w.labels(n), log)
	}
}

// Commands below something that has ended: only people who may ask begin it
// anew, and only once.
func TestRetry(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, n := asked(t, "")
	w.hub.AddUser(githubtest.User{Login: "helper[bot]", ID: 104, Type: "Bot"})
	w.repo.Allow("helper[bot]", "write")
	log := w.once()
	w.later(time.Minute)
	for _, who := range []string{"stranger", "helper[bot]", "tori-bot"} {
		w.repo.Comment(n, who, "/retry")
	}
	w.repo.Comment(n, "hanako", "You could say:\n/retry")
	p := w.repo.Pulls()[0]
	w.repo.Review(p.Number, "stranger", "CHANGES_REQUESTED", "I want it otherwise.")
	log += w.once()
	if _, ours := w.shown(n); len(w.runs()) != 1 || len(ours) != 2 || len(w.repo.Issue(p.Number).Comments) > 0 { // one by its own account, which we wrote
		t.Fatalf("%d runs, comments %q\n%s", len(w.runs()), ours, log)
	}
	w.later(time.Minute)
	w.repo.Comment(n, "hanako", "/retry\nOnce more, please.")
	log += w.once() + w.once()
	_, ours := w.shown(n)
	if runs := w.runs(); len(runs) != 2 || runs[0].Status() != task.Completed || len(ours) != 3 || w.labels(n) != "coding agent done" {
		t.Fatalf("%d runs, labels %s, comments %q\n%s", len(w.runs()), w.labels(n), ours, log)
	}
	if len(w.repo.Pulls()) != 1 || len(w.repo.Branches()) != 2 {
		t.Errorf("%d pull requests, branches %v", len(w.repo.Pulls()), w.repo.Branches())
	}
	if r := w.request(); !strings.Contains(r, "Once more, please.") || strings.Contains(r, "/retry\nOnce") {
		t.Errorf("request\n%s", r)
	}
	w.sound()
}

// A /stop that comes before the work is begun: it is not begun, until somebody
// asks again.
func TestStopComesFirst(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, n := asked(t, "")
	w.heard(time.Now().Add(-time.Hour))
	w.later(time.Minute)
	w.repo.Comment(n, "hanako", "/stop")
	strange := w.repo.OpenIssue("hanako", "Stopped by a stranger", "It says 41.")
	w.repo.Label(strange, "coding agent", "hanako")
	w.later(time.Minute)
	w.repo.Comment(strange, "stranger", "/stop")
	log := w.once() + w.once()
	if w.labels(n) != "coding agent" || w.labels(strange) != "coding agent done" || len(w.runs()) != 1 {
		t.Fatalf("%s, %s, %d runs\n%s", w.labels(n), w.labels(strange), len(w.runs()), log)
	}
	w.repo.Unlabel(n, "coding agent", "hanako")
	w.repo.Label(n, "coding agent", "hanako")
	if log = w.once(); w.labels(n) != "coding agent done" {
		t.Errorf("%s\n%s", w.labels(n), log)
	}
}

// slow is a model server that thinks after its first change, until it is
// released.
func slow(t *testing.T) (model string, release func()) {
	gate := make(chan struct{})
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch r.Turn() {
		case 0:
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "1", Name: "write_file", Arguments: `{"path":"answer.txt","content":"42\n"}`}}}
		case 1:
			<-gate
			return llmtest.Answer{Text: "I think.", Calls: []llm.ToolCall{{ID: "2", Name: "read_file", Arguments: `{"path":"answer.txt"}`}}}
		}
		return llmtest.Answer{Text: "The answer is 42 now, as the issue asks."}
	})
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	return server.URL, release
}

// people is a town whose model is slow, and a daemon that works.
func people(t *testing.T, settings string) (w *town, d *daemon, release func()) {
	model, release := slow(t)
	w = newTown(t, "workers: {max: 10, per_repository: 0}\n"+settings)
	w.asks(model)
	return w, w.start(), release
}

// asks makes a model server the town's model.
func (w *town) asks(model string) {
	raw, _ := readFile(w.config)
	write(w.t, w.config, string(raw)+fmt.Sprintf("llm: {provider: openai, max_retries: 0, openai: {base_url: %q, model: m, api_key: key-for-a-test}}\n", model))
	w.model = model
}

// thinks waits until the model of an item's run is at its slow step.
func (w *town) thinks(d *daemon, n int) {
	w.t.Helper()
	w.until(d, fmt.Sprintf("#%d is worked on", n), func() bool {
		for _, v := range w.runs() {
			if v.Metadata.TaskKey.ID == fmt.Sprint(n) && v.Status() == task.Running && v.State.ToolCallCount == 1 {
				return w.labels(n) == "coding agent processing"
			}
		}
		return false
	})
}

// of is the newest run of an item.
func (w *town) of(n int) contextstore.View {
	w.t.Helper()
	for _, v := range w.runs() {
		if v.Metadata.TaskKey.ID == fmt.Sprint(n) {
			return v
		}
	}
	w.t.Fatalf("no run of #%d", n)
	return contextstore.View{}
}

// What people do while it works, each to an issue of its own. GitHub's clock is
// behind by two minutes.
func TestPeopleWhileItRuns(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, d, release := people(t, "")
	w.later(-2 * time.Minute)
	open := func(title string, assign bool) int {
		n := w.repo.OpenIssue("hanako", title, "It says 41.")
		if assign {
			w.repo.Assign(n, "tori-bot", "hanako")
		} else {
			w.repo.Label(n, "coding agent", "hanako")
		}
		return n
	}
	pause, stop, unlabel, closing := open("pause", false), open("stop", false), open("unlabel", false), open("close", false)
	unassign, again, command, both := open("unassign", true), open("again", false), open("command", false), open("both", false)
	for n := pause; n <= both; n++ {
		w.thinks(d, n)
	}
	w.later(time.Second)
	w.repo.Comment(again, "stranger", "/stop")
	w.repo.Comment(pause, "hanako", "/pause")
	w.repo.Comment(stop, "hanako", "/stop\nIt is not needed.")
	w.repo.Unlabel(unlabel, "coding agent processing", "hanako")
	w.repo.Close(closing, "hanako")
	w.repo.Unassign(unassign, "tori-bot", "hanako")
	w.repo.Label(again, "coding agent", "hanako")
	w.repo.Label(both, "coding agent", "hanako")
	w.later(time.Second)
	w.repo.Comment(both, "hanako", "/pause")
	w.tori("pause", w.of(command).Metadata.UUID)
	w.until(d, "it is paused", func() bool {
		return w.labels(pause) == "coding agent paused" && w.labels(command) == "coding agent paused"
	})
	for _, n := range []int{stop, unlabel, closing, unassign} {
		w.until(d, fmt.Sprintf("#%d is stopped", n), func() bool { return w.labels(n) == "coding agent stopped" })
		w.until(d, "that is said", func() bool {
			_, ours := w.shown(n)
			return len(ours) == 1 && strings.Contains(ours[0], "Stopped") && strings.Contains(ours[0], "is on branch `tori/issue-") && strings.Contains(ours[0], "It stays there: `/retry` begins anew on a branch of its own.")
		})
		v := w.of(n)
		if text, _ := w.repo.File(fmt.Sprintf("tori/issue-%d-%s", n, v.Metadata.Title), "answer.txt"); text != "42" || v.Status() != task.Stopped {
			t.Errorf("#%d: %s, %q on the branch", n, v.Status(), text)
		}
	}
	if len(w.repo.Pulls()) > 0 {
		t.Errorf("pull requests %+v", w.repo.Pulls())
	}
	w.repo.Comment(pause, "stranger", "/stop")
	w.later(time.Second)
	w.repo.Comment(pause, "hanako", "/resume")
	w.until(d, "it goes on", func() bool { return w.labels(pause) == "coding agent processing" })
	release()
	w.until(d, "the first run is done", func() bool { return len(w.repo.Pulls()) > 0 })
	w.until(d, "the second run after it works", func() bool { return len(w.runs()) == 9 })
	// The label that was put on before the pause asks for a run after this one.
	if v := w.of(both); v.Status() != task.Paused || w.labels(both) != "coding agent, coding agent paused" {
		t.Errorf("#%d is %s and bears %q\n%s", both, v.Status(), w.labels(both), d.out)
	}
	w.repo.Unlabel(both, "coding agent", "hanako")
	w.later(time.Second)
	w.repo.Label(both, "coding agent", "hanako")
	w.until(d, "it goes on when it is asked for again", func() bool {
		return w.labels(both) == "coding agent processing" || w.labels(both) == "coding agent done"
	})
	// While nobody serves, the command line shows what it changes by itself.
	w.end(d)
	for _, c := range []struct{ do, labels string }{{"resume", "coding agent processing"}, {"stop", "coding agent stopped"}} {
		w.tori(c.do, w.of(command).Metadata.UUID)
		if w.labels(command) != c.labels {
			t.Errorf("after tori %s: %s", c.do, w.labels(command))
		}
	}
	if text, _ := w.repo.File(fmt.Sprintf("tori/issue-%d-command", command), "answer.txt"); text != "42" {
		t.Errorf("%q on the branch of what was stopped while it was paused", text)
	}
	for _, n := range []int{pause, again, both} {
		if v := w.of(n); v.State.Recoveries > 0 || v.Status() == task.Queued && w.labels(n) != "coding agent processing" || v.Status() != task.Queued && v.Status() != task.Completed {
			t.Errorf("#%d after the end: %s, %d recoveries, %s", n, v.Status(), v.State.Recoveries, w.labels(n))
		}
	}
	log := w.once() + w.once()
	for _, n := range []int{pause, again, both} {
		if w.labels(n) != "coding agent done" {
			t.Errorf("#%d in the end: %s\n%s", n, w.labels(n), log)
		}
	}
	if len(w.runs()) != 9 {
		t.Errorf("%d runs\n%s", len(w.runs()), log)
	}
	w.agree()
	w.sound()
}

// agree demands that every item shows how its newest run stands, and nothing is
// left to deliver.
func (w *town) agree() {
	w.t.Helper()
	names := map[task.Status]string{task.Queued: "processing", task.Running: "processing", task.Paused: "paused", task.Completed: "done", task.Stopped: "stopped", task.Failed: "failed"}
	seen := map[string]bool{}
	for _, v := range w.runs() {
		id := v.Metadata.TaskKey.ID
		if seen[id] {
			continue
		}
		seen[id] = true
		var n int
		_, _ = fmt.Sscan(id, &n)
		if got, want := w.labels(n), "coding agent "+names[v.Status()]; got != want {
			w.t.Errorf("#%d is %s and bears %q", n, v.Status(), got)
		}
	}
}

// tori runs another verb on the town's contexts.
func (w *town) tori(verb string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "tori", append([]string{verb, "--config", w.config, "--base-dir", filepath.Join(w.dir, "base")}, args...)...)
	cmd.Env = w.serve().Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("tori %s %v: %v\n%s", verb, args, err, out)
	}
	return string(out)
}

// An ended run is queued anew from the command line, in the name of who asked for it and
// as long as they still may.
func TestRetryFromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	w.once()
	first := w.of(n).Metadata.UUID
	if out := w.tori("retry", first[:8]); !strings.Contains(out, " is queued; tori serve works on it") {
		t.Error(out)
	}
	again := func(want string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "tori", "retry", first, "--config", w.config, "--base-dir", filepath.Join(w.dir, "base"))
		cmd.Env = w.serve().Env
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), want) {
			t.Errorf("%v\n%s\nwant %s", err, out, want)
		}
	}
	again("is queued and has not ended")
	log := w.once()
	all := w.runs()
	if len(all) != 2 || !strings.Contains(log, "What an earlier run left is taken over earlier="+first) {
		t.Fatalf("%d runs\n%s", len(all), log)
	}
	for _, v := range all {
		if v.Metadata.User != "hanako" || v.Status() != task.Completed {
			t.Errorf("%s: %s by %s", v.Metadata.UUID, v.Status(), v.Metadata.User)
		}
	}
	w.repo.Allow("hanako", "read")
	again("the account hanako may not ask for acme/widgets#")
	if len(w.runs()) != 2 {
		t.Error(w.runs())
	}
	w.sound()
}

// While the signal file is there nothing is begun, and what goes on is paused;
// when it is gone it goes on.
func TestSignalFile(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	model, release := slow(t)
	w.asks(model)
	file := filepath.Join(w.dir, "pause")
	write(t, file, "")
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	w.stands(n, "", "coding agent", "", "")
	log := w.once()
	w.stands(n, task.Queued, "coding agent processing", "", log)
	_ = os.Remove(file)
	d := w.start()
	w.thinks(d, n)
	write(t, file, "")
	w.until(d, "it is paused", func() bool { return w.labels(n) == "coding agent paused" })
	if _, ours := w.shown(n); len(ours) != 1 || !strings.Contains(ours[0], "an administrator (pause_resume.signal_file)") || strings.Contains(ours[0], w.dir) {
		t.Errorf("comments %q", ours)
	}
	w.end(d)
	release()
	log += w.once()
	w.stands(n, task.Paused, "coding agent paused", "Paused", log)
	_ = os.Remove(file)
	w.handed(n, log+w.once())
}

// A run whose process dies again and again is given up, and says why.
func TestPoison(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, c := range map[string]struct {
		settings string
		deaths   int
		says     string
	}{"by default": {"", 4, "died 4 times"}, "at the first death": {"recovery: {mode: fail}\n", 1, "recovery.mode: fail"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := asked(t, c.settings)
			d := &doom{at: 1 << 30, most: 1 << 30}
			w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
				if q.Pattern == listed {
					d.mu.Lock()
					d.at, d.every, d.kills = q.N, 1, max(d.kills, 0)
					d.mu.Unlock()
					return d.fate(&githubtest.Request{N: 1 << 30})
				}
				return nil
			})
			log := ""
			for i := range c.deaths {
				w.stands(n, map[bool]task.Status{true: "", false: task.Running}[i == 0], map[bool]string{true: "coding agent", false: "coding agent processing"}[i == 0], "", log)
				out, killed := d.once(w)
				if log += out; !killed {
					t.Fatalf("not killed the %d. time\n%s", i+1, log)
				}
			}
			w.hub.OnRequest(nil)
			log += w.once()
			w.stands(n, task.Failed, "coding agent failed", c.says, log)
			w.sound()
		})
	}
}

// A pull request is worked on where it is: what its reviews and checks say
// reaches the model, and its branch gets the change.
func TestPullRequestOfTheRepository(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	w.repo.Commit("fix", "hanako", "Try", map[string]string{"answer.txt": "43\n"})
	p := w.repo.OpenPull("hanako", "fix", "main", "Mend the answer", "It is 43.")
	w.repo.Review(p, "hanako", "COMMENTED", "Look at the line.", githubtest.Line{Path: "answer.txt", Line: 1, Body: "Why not 42?"})
	w.repo.AddCheckRun(w.repo.Branches()["fix"], githubtest.CheckRun{Name: "unit", Conclusion: "failure", Title: "1 failed", Summary: "want 42, have 43"})
	w.repo.AddCheckRun(w.repo.Branches()["fix"], githubtest.CheckRun{Name: "lint", Conclusion: "success"})
	w.repo.Label(p, "coding agent", "hanako")
	was := w.repo.Branches()["fix"]
	log := w.once()
	if text, _ := w.repo.File("fix", "answer.txt"); text != "42" || len(w.repo.Pulls()) != 1 || len(w.repo.Branches()) != 2 {
		t.Errorf("%q, branches %v\n%s", text, w.repo.Branches(), log)
	}
	if out, err := w.repo.Git("rev-list", "--count", was+"..fix"); err != nil || strings.TrimSpace(out) != "1" {
		t.Errorf("%s commits, %v", out, err)
	}
	w.ended(t, p, "coding agent done", log, "Completed")
	for _, want := range []string{"Pull request #", "Look at the line.", "Why not 42?", "on answer.txt:1", "want 42, have 43", "2 checks on its last commit, of which 1 failed"} {
		if r := w.request(); !strings.Contains(r, want) {
			t.Errorf("%q is not in the request\n%s", want, r)
		}
	}
}

// Branches that cannot be pushed to, or that somebody else pushed to meanwhile.
func TestPullRequestsThatCannotBeHandedOver(t *testing.T) {
	t.Parallel()
	t.Run("of a fork", func(t *testing.T) {
		t.Parallel()
		w := newTown(t, "")
		fork := w.repo.Fork("stranger")
		fork.Commit("fix", "stranger", "Try", map[string]string{"answer.txt": "43\n"})
		p := w.repo.OpenPull("stranger", "stranger:fix", "main", "Mend the answer", "It is 43.")
		w.repo.Label(p, "coding agent", "hanako")
		log := w.once() + w.once()
		w.stands(p, task.Failed, "coding agent failed", "comes from the repository stranger/widgets", log)
	})
}

// A repository that cannot be seen for a while says nothing of its issues; an
// issue that is gone from one that can be seen is no longer wanted.
func TestWhatCannotBeSeen(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, d, _ := people(t, "")
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	w.thinks(d, n)
	repo, issue := "/repos/acme/widgets", fmt.Sprintf("/repos/acme/widgets/issues/%d", n)
	hide := func(paths ...string) {
		w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
			if slices.Contains(paths, q.Path) {
				return ptr(githubtest.NotFound())
			}
			return nil
		})
	}
	hide(repo, issue)
	w.until(d, "it says that it cannot tell", func() bool { return strings.Contains(d.out.String(), "Cannot tell whether a run is still wanted") })
	if s := w.status(); s != task.Running {
		t.Errorf("%s\n%s", s, d.out)
	}
	hide(issue)
	w.until(d, "it is stopped", func() bool { return w.labels(n) == "coding agent stopped" })
	w.end(d)
}

// What cannot be done about one comment or one item keeps nothing else back.
func TestOneStuckItemKeepsNothingBack(t *testing.T) {
	t.Parallel()
	w, n := asked(t, "")
	log := w.once()
	w.later(time.Minute)
	w.repo.Comment(n, "hanako", "/retry")
	gone := fmt.Sprintf("/repos/acme/widgets/issues/%d", n)
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if q.Path == gone {
			return ptr(githubtest.Gone())
		}
		return nil
	})
	other := w.repo.OpenIssue("hanako", "Another", "It says 41.")
	w.repo.Label(other, "coding agent", "hanako")
	if log += w.once(); w.labels(other) != "coding agent done" || len(w.runs()) != 2 {
		t.Errorf("%q, %d runs\n%s", w.labels(other), len(w.runs()), log)
	}
}

func ptr[T any](v T) *T { return &v }

// What is asked for again and again waits, and says so once.
func TestAskedTooOften(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	raw, _ := readFile(w.config)
	write(t, w.config, strings.Replace(string(raw), "write_spacing_ms: 0", "write_spacing_ms: 0, max_runs_per_hour: 1", 1))
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	log := w.once()
	for range 3 {
		w.later(time.Minute)
		w.repo.Unlabel(n, "coding agent", "hanako")
		w.repo.Label(n, "coding agent", "hanako")
	}
	log += w.once() + w.once()
	if _, ours := w.shown(n); len(w.runs()) != 1 || len(ours) != 2 || !strings.Contains(ours[1], "it goes on when the hour is over") {
		t.Errorf("%d runs, %q\n%s", len(w.runs()), ours, log)
	}
	w.repo.Unlabel(n, "coding agent", "hanako")
	for answers := 3; answers < 5; answers++ { // each /retry is refused, and told so
		w.later(2 * time.Minute)
		w.repo.Comment(n, "hanako", "/retry")
		log += w.once() + w.once()
		if _, ours := w.shown(n); len(w.runs()) != 1 || len(ours) != answers || !strings.Contains(ours[answers-1], "ask again when the hour is over") {
			t.Errorf("%d runs, %q\n%s", len(w.runs()), ours, log)
		}
	}
}

// The process dies while its first comment is on the way, and the server writes
// it only when the next process has written it, too.
func TestCommentComesLate(t *testing.T) {
	t.Parallel()
	w, n := asked(t, "")
	d := &doom{at: 1, most: 1}
	second := make(chan struct{})
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if q.Pattern != "POST /repos/{owner}/{repo}/issues/{issue_number}/comments" {
			return nil
		}
		if q.Nth == 1 {
			d.fate(q)
			<-second
		}
		if q.Nth == 2 {
			return &githubtest.Fault{After: func() { close(second) }}
		}
		return nil
	})
	log := d.live(w)
	w.handed(n, log)
}

// A daemon that is told to end puts its work back into the queue, at no cost.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	w, d, release := people(t, "")
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	w.thinks(d, n)
	began := time.Now()
	w.end(d)
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it took %s to end", took)
	}
	w.stands(n, task.Queued, "coding agent processing", "In progress", d.out.String())
	if v := w.of(n); v.State.Recoveries != 0 || v.Held {
		t.Errorf("%+v", v.State)
	}
	release()
	w.handed(n, d.out.String()+w.once())
}

// A command that does not want to end keeps no daemon from ending.
func TestSIGTERMWhileACommandIsStubborn(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	write(t, filepath.Join(w.dir, "script.yaml"), `
- calls: [{tool: shell, args: {command: "trap '' TERM INT HUP; echo 42 > answer.txt; touch began; while :; do sleep 1; done"}}]
- say: The answer is 42 now.
`)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	d := w.start()
	w.until(d, "the command runs", func() bool {
		began, _ := filepath.Glob(filepath.Join(w.dir, "base", "workspaces", "*", "tree", "began"))
		return len(began) == 1
	})
	began := time.Now()
	w.end(d)
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it took %s to end", took)
	}
	w.stands(n, task.Queued, "coding agent processing", "In progress", d.out.String())
	w.handed(n, d.out.String()+w.once())
}

// A /stop that is posted while the forge's lists are being read, one after the
// other, is heard.
func TestStopBetweenTwoLists(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, d, _ := people(t, "")
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	w.repo.Commit("main", "hanako", "c", map[string]string{"z": "z\n"})
	if _, err := w.repo.Git("branch", "topic", "main"); err != nil {
		t.Fatal(err)
	}
	w.repo.Commit("topic", "hanako", "c", map[string]string{"zz": "z\n"})
	p := w.repo.OpenPull("hanako", "topic", "main", "t", "b")
	w.thinks(d, n)
	var once sync.Once
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if strings.HasSuffix(q.Path, "/acme/widgets/pulls/comments") {
			once.Do(func() {
				w.later(2 * time.Second)
				w.repo.Comment(n, "hanako", "/stop")
				w.later(2 * time.Second)
				w.repo.Review(p, "hanako", "APPROVED", "fine")
			})
		}
		return nil
	})
	w.until(d, "it ended", func() bool { return w.labels(n) == "coding agent done" || w.labels(n) == "coding agent stopped" })
	if labels := w.labels(n); labels != "coding agent stopped" {
		t.Errorf("labels %q\n%s", labels, d.out)
	}
}
