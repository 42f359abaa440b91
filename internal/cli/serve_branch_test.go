package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// meanwhile has something done while a run works that is asked for on a pull request.
func (w *town) meanwhile(do func()) {
	w.hub.OnRequest((&trouble{after: listed, nth: 2, begun: do, hits: func(*githubtest.Request) bool { return false }}).fate)
}

// proposed is a town with a pull request of hanako's, from the branch fix.
func proposed(t *testing.T) (w *town, p int) {
	t.Helper()
	w = newTown(t, "")
	w.repo.Commit("fix", "hanako", "Try", map[string]string{"answer.txt": "42 or 43\n"})
	p = w.repo.OpenPull("hanako", "fix", "main", "Mend the answer", "It is 43.")
	w.repo.Label(p, "coding agent", "hanako")
	return w, p
}

// What somebody pushes to the branch while a run works on it is merged, the model looks at
// both together, and the checks run again.
func TestPushedToMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		theirs map[string]string
		then   string // what the model does about it
		files  map[string]string
		told   string
	}{
		"beside": {map[string]string{"README.md": "# Mine\n"}, "- say: Theirs goes well with mine.\n",
			map[string]string{"README.md": "# Mine", "answer.txt": "42"}, "They changed: README.md."},
		"the same lines": {map[string]string{"answer.txt": "44\n"}, "- calls: [{tool: read_file, args: {path: answer.txt}}]\n- calls: [{tool: write_file, args: {path: answer.txt, content: \"42, or 44\\n\"}}]\n- say: Both.\n",
			map[string]string{"answer.txt": "42, or 44"}, "<<<<<<<"},
		"what fails the checks": {map[string]string{"check.sh": "grep -q 42 answer.txt && test -e why.txt\n"}, "- say: It should do.\n- calls: [{tool: write_file, args: {path: why.txt, content: because}}]\n- say: Said why.\n",
			map[string]string{"why.txt": "because", "answer.txt": "42"}, "They changed: check.sh."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := proposed(t)
			write(t, filepath.Join(w.dir, "script.yaml"), mends+c.then)
			theirs := ""
			w.meanwhile(func() { theirs = w.repo.Commit("fix", "hanako", "Again", c.theirs) })
			log := w.once()
			w.stands(p, task.Completed, "coding agent done", "Completed", log)
			for file, want := range c.files {
				if got, _ := w.repo.File("fix", file); got != want {
					t.Errorf("%s: %q, want %q", file, got, want)
				}
			}
			if parents, err := w.repo.Git("log", "-1", "--format=%P", "fix"); err != nil || parents != theirs {
				t.Errorf("the work is on %q, %v, want on %s\n%s", parents, err, theirs, log)
			}
			if said := w.conversations(); !strings.Contains(said, c.told) || strings.Count(said, "others pushed to the branch fix") != 1 {
				t.Errorf("%q was not told, or not once\n%s", c.told, said)
			}
			if log = w.once(); len(w.runs()) != 1 {
				t.Errorf("%d runs\n%s", len(w.runs()), log)
			}
		})
	}
}

// A branch that people take away from under a run, or a draft, ends it, and the comment
// says which; nothing of theirs is touched.
func TestTakenAwayMeanwhile(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(w *town, p int)
		says string
		left bool // the branch is there
	}{
		"rewritten": {func(w *town, _ int) { w.repo.Reset("fix", w.repo.Branches()["main"]) }, "branch fix was rewritten (force-pushed)", true},
		"deleted":   {func(w *town, _ int) { w.repo.DeleteBranch("fix") }, "branch fix was deleted", false},
		"closed":    {func(w *town, p int) { w.repo.Close(p, "hanako") }, "acme/widgets#1 was closed", true},
		"merged":    {func(w *town, p int) { w.repo.Merge(p, "hanako") }, "acme/widgets#1 was merged", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := proposed(t)
			w.rarely()
			before := ""
			w.meanwhile(func() { c.do(w, p); before = w.repo.Branches()["fix"] })
			log := w.once() + w.once()
			w.stands(p, task.Stopped, "coding agent stopped", c.says, log)
			_, ours := w.shown(p)
			if at, there := w.repo.Branches()["fix"]; at != before || there != c.left || strings.Contains(ours[0], "[address]") {
				t.Errorf("the branch is at %q, was at %q\n%s", at, before, ours[0])
			}
		})
	}
}

// A run on an issue that goes on at its draft stops where people merge that; asked for
// again it begins anew, as the comment says.
func TestDraftIsMergedMeanwhile(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, n := asked(t, "")
	log := w.once()
	p := w.repo.Pulls()[0]
	w.repo.SetDraft(p.Number, false, "hanako")
	write(t, filepath.Join(w.dir, "script.yaml"), "- calls: [{tool: write_file, args: {path: why.txt, content: because}}]\n- say: Said why.\n")
	w.later(time.Minute)
	w.repo.Label(n, "coding agent", "hanako")
	w.rarely()
	merged := false
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if !merged && pushing(q) {
			merged = true
			w.repo.Merge(p.Number, "hanako")
			w.repo.Reopen(n, "hanako")
		}
		return nil
	})
	log += w.once()
	if w.status() != task.Stopped || !strings.Contains(w.said(n), "was merged while this was worked on") || !strings.Contains(w.said(n), "`/retry` begins anew, on a branch of its own") {
		t.Fatalf("%s\n%s\n%s", w.status(), w.said(n), log)
	}
	w.later(time.Minute)
	w.repo.Comment(n, "hanako", "/retry")
	log += w.once()
	pulls := w.repo.Pulls()
	if len(pulls) != 2 || pulls[1].Pull.Head == p.Pull.Head || w.labels(n) != "coding agent done" {
		t.Errorf("%d pull requests, labels %q\n%s", len(pulls), w.labels(n), log)
	}
}

// said is the newest of our comments on an item.
func (w *town) said(n int) string {
	_, ours := w.shown(n)
	if len(ours) == 0 {
		return ""
	}
	return ours[len(ours)-1]
}

// A kill before the run has it on record that the model knows of others' commits: the next
// start merges them once more, and nothing is lost or there twice.
func TestKilledWhileItFollows(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, p := proposed(t)
	var killed atomic.Bool
	asked, dead := make(chan struct{}, 1), make(chan struct{})
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch told := bytes.Contains(r.Body, []byte("others pushed to the branch fix")); {
		case told && !killed.Load():
			asked <- struct{}{}
			<-dead
		case !told && r.Turn() == 0:
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "1", Name: "write_file", Arguments: `{"path":"why.txt","content":"because"}`}}}
		}
		return llmtest.Answer{Text: "Say why"}
	})
	t.Cleanup(func() {
		if !killed.Load() {
			close(dead)
		}
	})
	w.asks(server.URL)
	theirs := ""
	w.meanwhile(func() { theirs = w.repo.Commit("fix", "hanako", "Again", map[string]string{"README.md": "# Mine\n"}) })
	d := w.start("--once")
	w.until(d, "the model is told", func() bool { return len(asked) > 0 })
	_ = d.Process.Kill()
	_ = d.Wait()
	killed.Store(true)
	close(dead)
	place := filepath.Join(w.runs()[0].Dir, "work.json")
	raw, err := readFile(place)
	checks, cerr := readFile(filepath.Join(w.runs()[0].Dir, "checks.jsonl"))
	work := regexp.MustCompile(`"commit":"([0-9a-f]{40})"`).FindAllSubmatch(checks, -1)
	if err != nil || cerr != nil || len(work) == 0 || !strings.Contains(string(raw), theirs) || strings.Contains(string(raw), `"work"`) {
		t.Fatalf("%s, %v, %v, %s\n%s", raw, err, cerr, checks, d.out)
	}
	write(t, place, strings.Replace(string(raw), "{", fmt.Sprintf("{%q:%q,", "work", work[len(work)-1][1]), 1)) // as a kill a moment before leaves it
	log := w.once() + w.once()
	w.stands(p, task.Completed, "coding agent done", "Completed", log)
	why, _ := w.repo.File("fix", "why.txt")
	readme, _ := w.repo.File("fix", "README.md")
	if parents, err := w.repo.Git("log", "-1", "--format=%P", "fix"); err != nil || parents != theirs || why != "because" || readme != "# Mine" {
		t.Errorf("on %q, %v: %q, %q\n%s", parents, err, why, readme, log)
	}
	w.sound()
}
