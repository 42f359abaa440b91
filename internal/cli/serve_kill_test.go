package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/task"
)

// doom kills the tori that runs at the moment, at requests of its choice.
type doom struct {
	mu    sync.Mutex
	cmd   *exec.Cmd
	at    int // the request, counted from the server's first
	every int // and each so many after it, 0 for that one alone
	most  int // kills
	after bool
	kills int
}

// fate is the hook of the server. Killed before the request is done, the server
// never hears of it; killed after, the answer comes to nobody, or to a git that
// has lost its parent.
func (d *doom) fate(q *githubtest.Request) *githubtest.Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	hit := q.N >= d.at && d.kills == 0 || d.every > 0 && q.N >= d.at+d.every*d.kills
	if d.cmd == nil || !hit || d.kills >= d.most {
		return nil
	}
	d.kills++
	kill := d.cmd.Process
	d.cmd = nil // until it is started again
	if d.after {
		return &githubtest.Fault{After: func() { _ = kill.Kill() }}
	}
	_ = kill.Kill()
	return &githubtest.Fault{Drop: true}
}

// once starts tori and waits for it; killed tells that it was.
func (d *doom) once(w *town) (out string, killed bool) {
	w.t.Helper()
	cmd := w.serve("--once")
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	cmd.WaitDelay = 5 * time.Second // a git that was orphaned may hold them
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	d.mu.Lock()
	d.cmd = cmd
	before := d.kills
	d.mu.Unlock()
	err := cmd.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cmd = nil
	if killed = d.kills > before; killed == (err == nil) && !errors.Is(err, exec.ErrWaitDelay) {
		w.t.Fatalf("killed: %v, ended with %v\n%s", killed, err, b.String())
	}
	return b.String(), killed
}

// live starts tori until it is let to end.
func (d *doom) live(w *town) string {
	w.t.Helper()
	var all strings.Builder
	for range 100 {
		out, killed := d.once(w)
		all.WriteString(out)
		if !killed {
			return all.String()
		}
		all.WriteString("---- killed\n")
	}
	w.t.Fatalf("it never ended\n%s", all.String())
	return ""
}

// runs are all runs of a town, the newest first.
func (w *town) runs() []contextstore.View {
	w.t.Helper()
	if _, err := os.Stat(filepath.Join(w.dir, "base")); errors.Is(err, os.ErrNotExist) {
		return nil // nothing was begun yet
	}
	l, err := list(w.t.Context(), filepath.Join(w.dir, "base"))
	if err != nil {
		w.t.Fatal(err)
	}
	return l.Views
}

// sound demands that the ledger is.
func (w *town) sound() {
	w.t.Helper()
	c := exec.CommandContext(w.t.Context(), "tori", "check", "--base-dir", filepath.Join(w.dir, "base"))
	c.Env = append(os.Environ(), ledgerEnv(filepath.Join(w.dir, "base"))...)
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Errorf("tori check: %v\n%s", err, out)
	}
}

// rounds calls f for the rounds of n, a few at once: of many for every third, from a random
// one on, with TORI_SOAK for all. It returns how many that were.
func rounds(t *testing.T, n int, f func(t *testing.T, i int)) (led int) {
	t.Helper()
	step := 1
	if n >= 8 && os.Getenv("TORI_SOAK") == "" {
		step = 3
	}
	const atOnce = 4
	next := make(chan int)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := range next {
				t.Run(fmt.Sprint(i), func(t *testing.T) { f(t, i) })
			}
		})
	}
	for i := rand.IntN(step); i < n; i += step {
		next <- i
		led++
	}
	close(next)
	all.Wait()
	return led
}

const patient = "recovery: {max_attempts: 100}\n"

// A label becomes a pull request though the process is killed at any of its
// requests, and though it is killed again and again: one branch, one pull
// request, one comment, the right labels, a ledger without a fault.
func TestKilledOnTheWayToAPullRequest(t *testing.T) {
	skipShort(t, "it is served and killed at every step")
	t.Parallel()
	const requests = 52 // of a life that nobody ends
	var mu sync.Mutex
	kills := 0
	led := rounds(t, 30, func(t *testing.T, i int) {
		w := newTown(t, patient)
		d := &doom{at: 1 + i*requests/30, after: i%2 == 0, most: 1}
		if i%5 == 0 {
			d.every, d.most = 6+i/5, 6
		}
		w.hub.OnRequest(d.fate)
		n := w.repo.OpenIssue("stranger", "The answer is wrong", "It says 41.", "bug")
		w.repo.Comment(n, "hanako", "It should be 42.")
		w.repo.Label(n, "coding agent", "hanako")
		log := d.live(w)
		pulls := w.repo.Pulls()
		if len(pulls) != 1 || len(w.repo.Branches()) != 2 {
			t.Fatalf("%d pull requests, branches %v\n%s", len(pulls), w.repo.Branches(), log)
		}
		p := pulls[0]
		if text, _ := w.repo.File(p.Pull.Head, "answer.txt"); text != "42" || p.Pull.Draft || strings.Join(p.Pull.Reviewers, " ") != "hanako" || len(p.Comments) > 0 {
			t.Errorf("%q in %+v\n%s", text, p, log)
		}
		w.ended(t, n, "bug, coding agent done", log, "Completed", fmt.Sprintf("/pull/%d", p.Number))
		mu.Lock()
		kills += d.kills
		mu.Unlock()
	})
	if kills < led {
		t.Errorf("killed %d times only", kills)
	}
}

// ended demands that an item had one run, which is completed, and shows it.
func (w *town) ended(t *testing.T, n int, labels, log string, said ...string) {
	t.Helper()
	shown, ours := w.shown(n)
	if shown != labels || len(ours) != 1 {
		t.Errorf("labels %q, comments %q\n%s", shown, ours, log)
		return
	}
	for _, want := range said {
		if !strings.Contains(ours[0], want) {
			t.Errorf("%q is not said in\n%s", want, ours[0])
		}
	}
	runs := w.runs()
	if len(runs) != 1 || runs[0].Status() != task.Completed {
		t.Fatalf("%d runs, the first %s\n%s", len(runs), runs[0].Status(), log)
	}
	checkNumbers(t, runs[0])
	w.sound()
}

// checkNumbers demands that each message is there once.
func checkNumbers(t *testing.T, v contextstore.View) {
	t.Helper()
	seq, results := int64(0), map[string]int{}
	if err := v.Tail(contextstore.Messages, -1, func(b []byte) error {
		m, err := contextstore.DecodeMessage(b)
		if seq++; err == nil && m.Seq != seq {
			t.Errorf("message %d where %d was expected", m.Seq, seq)
		}
		if m.Role == "tool" {
			results[string(m.ToolCallID)]++
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	for id, n := range results {
		if n != 1 {
			t.Errorf("call %s has %d results", id, n)
		}
	}
}

// A review of a draft becomes work on its branch though the process is killed at
// any of its requests.
func TestKilledOnTheWayToAFollowUp(t *testing.T) {
	skipShort(t, "it is served and killed at every step")
	t.Parallel()
	const requests = 56
	var mu sync.Mutex
	kills := 0
	led := rounds(t, 20, func(t *testing.T, i int) {
		w := newTown(t, patient)
		write(t, filepath.Join(w.dir, "script.yaml"), "- calls: [{tool: write_file, args: {path: why.txt, content: because}}]\n"+
			"- calls: [{tool: write_file, args: {path: why.txt, content: because}}]\n- say: Said why.\n") // the outcome of the first may be unknown
		w.heard(time.Now().Add(-time.Hour))
		w.repo.Commit("tori/issue-1", "tori-bot", "The answer", map[string]string{"answer.txt": "42\n"})
		p := w.repo.OpenPull("tori-bot", "tori/issue-1", "main", "The answer", "It is 42.\n\n<!-- tori:pull-1 -->")
		was := w.repo.Branches()
		d := &doom{at: 1 + i*requests/20, after: i%2 == 0, most: 1}
		if i%5 == 0 {
			d.every, d.most = 6+i/5, 6
		}
		w.hub.OnRequest(d.fate)
		w.repo.Review(p, "hanako", "CHANGES_REQUESTED", "Say why.", githubtest.Line{Path: "answer.txt", Line: 1, Body: "Why 42?"})
		log := d.live(w)
		if text, _ := w.repo.File("tori/issue-1", "why.txt"); text != "because" || len(w.repo.Branches()) != len(was) || len(w.repo.Pulls()) != 1 {
			t.Errorf("%q; branches %v\n%s", text, w.repo.Branches(), log)
		}
		if out, err := w.repo.Git("rev-list", "--count", was["tori/issue-1"]+"..tori/issue-1"); err != nil || strings.TrimSpace(out) != "1" {
			t.Errorf("%s commits, %v\n%s", out, err, log)
		}
		if lines := w.repo.Issue(p).Pull.Lines; len(lines) != 2 || lines[1].ReplyTo != lines[0].ID || !strings.HasPrefix(lines[1].Body, "No answer was written to this remark. It was read before commit ") {
			t.Errorf("%+v\n%s", lines, log)
		}
		w.ended(t, p, "coding agent done", log, "Completed")
		mu.Lock()
		kills += d.kills
		mu.Unlock()
	})
	if kills < led {
		t.Errorf("killed %d times only", kills)
	}
}

// heard makes tori believe that it has read the comments up to a time.
func (w *town) heard(until time.Time) {
	w.t.Helper()
	s, err := contextstore.Open(context.WithoutCancel(w.t.Context()), contextstore.Options{BaseDir: filepath.Join(w.dir, "base"), Redact: func(s string) string { return s }})
	if err == nil {
		err = errors.Join(s.SetMark(w.t.Context(), "github/acme/widgets", "comments", until.UTC().Format(time.RFC3339Nano)), s.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
