package cli

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// Asked for again while the forge refuses the pull request, or the branch: the
// work of both runs ends in one pull request.
func TestAskedForAgainBeforeItIsHandedOver(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, hits := range map[string]func(q *githubtest.Request) bool{
		"no pull requests": func(q *githubtest.Request) bool { return q.Pattern == opening },
		"no branches":      func(q *githubtest.Request) bool { return pushing(q) && q.Method == http.MethodPost },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := asked(t, "")
			w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
				if hits(q) {
					f := githubtest.Forbidden()
					return &f
				}
				return nil
			})
			log := w.look()
			if w.status() != "completed" || len(w.repo.Pulls()) > 0 {
				t.Fatalf("%s, %d pull requests\n%s", w.status(), len(w.repo.Pulls()), log)
			}
			write(t, filepath.Join(w.dir, "script.yaml"), "- calls: [{tool: write_file, args: {path: why.txt, content: because}}]\n- say: Said why.\n")
			w.later(time.Minute)
			w.repo.Label(n, "coding agent", "hanako")
			log += w.look()
			w.hub.OnRequest(nil)
			log += w.look() + w.look()
			pulls := w.repo.Pulls()
			if len(pulls) != 1 || len(w.repo.Branches()) != 2 || len(w.runs()) != 2 {
				t.Fatalf("%d pull requests, branches %v, %d runs\n%s", len(pulls), w.repo.Branches(), len(w.runs()), log)
			}
			why, _ := w.repo.File(pulls[0].Pull.Head, "why.txt")
			answer, _ := w.repo.File(pulls[0].Pull.Head, "answer.txt")
			if why != "because" || answer != "42" || w.labels(n) != "coding agent done" || !strings.Contains(pulls[0].Body, "Said why") {
				t.Errorf("%q, %q, labels %q, text %q\n%s", why, answer, w.labels(n), pulls[0].Body, log)
			}
		})
	}
}

// A run in between that changes nothing, or is stopped, proposes nothing: the next
// one goes on where the work was proposed all the same.
func TestAskedForAgainAfterARunThatProposedNothing(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, between := range map[string]string{
		"no change": "- say: It is as it should be.\n",
		"failed":    "- calls: [{tool: write_file, args: {path: answer.txt, content: \"43\\n\"}}]\n- say: One.\n- say: Two.\n- say: Three.\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := asked(t, "")
			log := w.once()
			write(t, filepath.Join(w.dir, "script.yaml"), between)
			w.later(time.Minute)
			w.repo.Label(n, "coding agent", "hanako")
			log += w.once()
			if said := w.said(n); name == "no change" && (!strings.Contains(said, "Ended without a change") || strings.Contains(said, "Completed")) || name == "failed" && !strings.Contains(said, "`/retry` goes on from there.") {
				t.Errorf("%s\n%s", said, log)
			}
			write(t, filepath.Join(w.dir, "script.yaml"), "- calls: [{tool: write_file, args: {path: answer.txt, content: \"42\\n\"}}, {tool: write_file, args: {path: why.txt, content: because}}]\n- say: Said why.\n")
			w.later(time.Minute)
			w.repo.Label(n, "coding agent", "hanako")
			log += w.once()
			pulls := w.repo.Pulls()
			if len(pulls) != 1 || len(w.repo.Branches()) != 2 || len(w.runs()) != 3 {
				t.Fatalf("%d pull requests, branches %v, %d runs\n%s", len(pulls), w.repo.Branches(), len(w.runs()), log)
			}
			if why, _ := w.repo.File(pulls[0].Pull.Head, "why.txt"); why != "because" || w.labels(n) != "coding agent done" {
				t.Errorf("%q, labels %q\n%s", why, w.labels(n), log)
			}
		})
	}
}

// What people who may ask say while the last checks run reaches the model before
// the run ends; the words of others do not keep it from ending.
func TestSaidWhileTheLastChecksRun(t *testing.T) {
	t.Parallel()
	for who, answer := range map[string]string{"hanako": "- say: I heard.\n", "stranger": ""} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			w := newTown(t, "")
			raw, _ := readFile(w.config)
			write(t, w.config, strings.Replace(string(raw), "checks: [sh check.sh]", "checks: ['grep -q 41 answer.txt || sleep 12']", 1))
			write(t, filepath.Join(w.dir, "script.yaml"), mends+answer)
			d := w.start()
			n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
			w.repo.Label(n, "coding agent", "hanako")
			w.until(d, "the last checks run", func() bool { return strings.Contains(d.out.String(), "round=1") })
			w.repo.Comment(n, who, "Please do this, too.")
			w.until(d, "done", func() bool { return w.labels(n) == "coding agent done" })
			if c := w.conversations(); !strings.Contains(c, "Please do this, too.") || answer != "" && !strings.Contains(c, "I heard.") {
				t.Errorf("it was not told\n%s", d.out)
			}
		})
	}
}

// People close the pull request before all of its delivery is done: it stays
// closed, and there is no other.
func TestClosedBeforeItIsDelivered(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, n := asked(t, "")
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if strings.HasSuffix(q.Path, "/requested_reviewers") {
			f := githubtest.Broken(503)
			return &f
		}
		return nil
	})
	log := w.look()
	if len(w.repo.Pulls()) != 1 {
		t.Fatalf("%d pull requests\n%s", len(w.repo.Pulls()), log)
	}
	w.repo.Close(w.repo.Pulls()[0].Number, "hanako")
	w.hub.OnRequest(nil)
	log += w.look()
	if len(w.repo.Pulls()) != 1 || w.labels(n) != "coding agent done" {
		t.Errorf("%d pull requests, labels %q\n%s", len(w.repo.Pulls()), w.labels(n), log)
	}
}

// A forge that has just taken a branch may refuse the pull request as invalid for
// a while: it is tried again.
func TestPullRequestIsRefusedForAWhile(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, n := asked(t, "")
	var mended atomic.Bool
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if q.Pattern == opening && !mended.Load() {
			f := githubtest.Unprocessable("Validation Failed: Head sha can't be blank")
			return &f
		}
		return nil
	})
	log := w.look()
	if !strings.Contains(log, "is not delivered yet; the next start tries again") || !strings.HasSuffix(log, "=> exit status 4\n") {
		t.Error(log)
	}
	w.stands(n, "completed", "coding agent processing", "Not all of it is here yet: Opening a pull request", log)
	mended.Store(true)
	w.handed(n, log+w.look())
}

// A run that cannot begin says why, once that lasts, and goes on by itself.
func TestWhyItDoesNotBegin(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, n := asked(t, "")
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if strings.HasPrefix(q.Pattern, "git-") {
			f := githubtest.Forbidden()
			return &f
		}
		return nil
	})
	log := w.look()
	w.stands(n, "queued", "coding agent processing", "", log)
	log += w.look()
	w.stands(n, "queued", "coding agent processing", "This cannot begin yet", log)
	if _, ours := w.shown(n); strings.Contains(ours[0], "127.0.0.1") {
		t.Errorf("%s", ours[0])
	}
	if lines, err := readFile(filepath.Join(w.runs()[0].Dir, "approvals.jsonl")); err != nil || strings.Count(string(lines), "\n") != 1 {
		t.Errorf("%q, %v", lines, err)
	}
	w.hub.OnRequest(nil)
	w.handed(n, log+w.look())
}

// gated is a model server that does what calls says, a call for each turn, and
// then says that it is done; it waits before its last two turns until the test
// opens the gate for each, and does not wait there again.
func gated(t *testing.T, calls ...llm.ToolCall) (model string, open []func()) {
	gates := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		n := 0
		for _, m := range r.Messages {
			if m.Role == "tool" {
				n++
			}
		}
		if g := n - len(calls) + 1; g >= 0 && g < len(gates) {
			<-gates[g]
		}
		if n < len(calls) {
			return llmtest.Answer{Text: "I go on.", Calls: []llm.ToolCall{{ID: fmt.Sprint("c", n), Name: calls[n].Name, Arguments: calls[n].Arguments}}}
		}
		return llmtest.Answer{Text: "It is done."}
	})
	for _, g := range gates {
		open = append(open, sync.OnceFunc(func() { close(g) }))
		t.Cleanup(open[len(open)-1])
	}
	return server.URL, open
}

// What the model was told is not told again when the run is put down and taken up
// again.
func TestToldOnceThoughPutDown(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	model, open := gated(t, llm.ToolCall{Name: "read_file", Arguments: `{"path":"answer.txt"}`}, llm.ToolCall{Name: "write_file", Arguments: `{"path":"answer.txt","content":"42\n"}`})
	w.asks(model)
	d := w.start()
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	w.thinks(d, n)
	w.repo.Comment(n, "hanako", "And mind the line end.")
	const looking = "GET /repos/{owner}/{repo}/issues/comments"
	before := w.hub.Count(looking)
	w.until(d, "the comment was heard", func() bool { return w.hub.Count(looking) >= before+3 })
	open[0]()
	w.until(d, "the model is told", func() bool { return strings.Contains(w.conversations(), "And mind the line end.") })
	w.end(d)
	open[1]()
	w.handed(n, d.out.String()+w.once())
	if told := strings.Count(w.conversations(), "And mind the line end."); told != 1 {
		t.Errorf("told %d times", told)
	}
}

// One that looks once hears what is said while it works.
func TestOnceHears(t *testing.T) {
	t.Parallel()
	w, n := asked(t, "")
	model, _ := slow(t)
	w.asks(model)
	d := w.start("--once")
	w.thinks(d, n)
	w.later(time.Second)
	w.repo.Comment(n, "hanako", "/stop")
	if err := d.Wait(); err != nil {
		t.Errorf("%v\n%s", err, d.out)
	}
	w.stands(n, "stopped", "coding agent stopped", "Stopped", d.out.String())
}

// A run on an issue and one on its pull request work on one branch: one after the
// other, whichever is first.
func TestOneBranchOneRun(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	adds := llm.ToolCall{Name: "shell", Arguments: `{"command":"date +%s%N >> when.txt"}`}
	for _, first := range []string{"pull request", "issue"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			w, n := asked(t, "workers: {max: 10, per_repository: 0}\n")
			log := w.once()
			p := w.repo.Pulls()[0]
			model, open := gated(t, adds)
			open[0]()
			w.asks(model)
			ask := map[string]func(){
				"issue":        func() { w.repo.Label(n, "coding agent", "hanako") },
				"pull request": func() { w.repo.Review(p.Number, "hanako", "CHANGES_REQUESTED", "Say when.") },
			}
			w.later(time.Minute)
			d := w.start()
			ask[first]()
			delete(ask, first)
			w.thinks(d, map[string]int{"issue": n, "pull request": p.Number}[first])
			w.later(time.Minute)
			for _, second := range ask {
				second()
			}
			w.until(d, "the second waits", func() bool { return strings.Contains(d.out.String(), "has not reached the forge yet") })
			w.end(d)
			open[1]()
			for range 3 {
				log += w.once()
			}
			when, _ := w.repo.File(p.Pull.Head, "when.txt")
			if len(w.repo.Pulls()) != 1 || len(w.runs()) != 3 || strings.Count(when, "\n") != 1 || w.labels(n) != "coding agent done" || w.labels(p.Number) != "coding agent done" {
				t.Errorf("%d pull requests, %d runs, %q, labels %q and %q\n%s\n%s", len(w.repo.Pulls()), len(w.runs()), when, w.labels(n), w.labels(p.Number), d.out, log)
			}
		})
	}
}
