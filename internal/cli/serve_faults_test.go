package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/task"
)

// look has everything done that can be done now, whatever comes of it.
func (w *town) look() string {
	w.t.Helper()
	var out bytes.Buffer
	cmd := w.serve("--once")
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String() + fmt.Sprintln("=>", err)
}

// asked is a town with an issue that somebody asks for.
func asked(t *testing.T, settings string) (w *town, n int) {
	t.Helper()
	w = newTown(t, settings)
	n = w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	return w, n
}

// rarely has comments on what is worked on looked for once a day.
func (w *town) rarely() {
	w.t.Helper()
	raw, err := readFile(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	write(w.t, w.config, strings.Replace(string(raw), "comments_interval: 5", "comments_interval: 86400", 1))
}

// status is that of the newest run, "" where there is none.
func (w *town) status() task.Status {
	w.t.Helper()
	runs := w.runs()
	if len(runs) == 0 {
		return ""
	}
	return runs[0].Status()
}

// stands demands how the newest run stands, which labels the item has, and what
// its one comment says; "" for no comment.
func (w *town) stands(n int, s task.Status, labels, says, log string) {
	w.t.Helper()
	shown, ours := w.shown(n)
	if got := w.status(); got != s || shown != labels || len(ours) > 1 || (says != "") != (len(ours) == 1) || len(ours) == 1 && !strings.Contains(ours[0], says) {
		w.t.Fatalf("%s, labels %q, comments %q\n%s", got, shown, ours, log)
	}
}

// handed demands that all is well in the end.
func (w *town) handed(n int, log string) {
	w.t.Helper()
	pulls := w.repo.Pulls()
	if len(pulls) != 1 || pulls[0].Pull.Draft || len(w.repo.Branches()) != 2 {
		w.t.Fatalf("pull requests %+v, branches %v\n%s", pulls, w.repo.Branches(), log)
	}
	w.ended(w.t, n, "coding agent done", log, "Completed", fmt.Sprintf("/pull/%d", pulls[0].Number))
}

// trouble is a fault of the forge that begins after a request, "" for at once,
// and lasts until it is mended.
type trouble struct {
	mu    sync.Mutex
	after string // pattern
	nth   int    // of them, 0 for the first
	hits  func(q *githubtest.Request) bool
	fault githubtest.Fault
	begun func() // instead of fault; may be nil
	on    bool
}

func (x *trouble) fate(q *githubtest.Request) *githubtest.Fault {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.on || x.after == "" {
		if x.hits == nil || x.hits(q) {
			return &x.fault
		}
		return nil
	}
	if q.Pattern == x.after && q.Nth >= x.nth {
		x.on = true
		if x.begun != nil {
			return &githubtest.Fault{After: x.begun}
		}
	}
	return nil
}

const (
	listed  = "GET /repos/{owner}/{repo}/issues/{issue_number}/comments" // the second time is the last before the model works
	taken   = "DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}"
	opening = "POST /repos/{owner}/{repo}/pulls"
)

func pushing(q *githubtest.Request) bool { return strings.HasPrefix(q.Pattern, "git-receive-pack") }
func commenting(q *githubtest.Request) bool {
	return q.Method != http.MethodGet && strings.Contains(q.Path, "comments")
}

// The forge refuses or is not there, for as long as it may be: what the item
// shows is true, nothing is lost, and it goes on by itself once that is over.
func TestTroubleAtTheForge(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	drop := githubtest.Fault{Drop: true}
	for name, c := range map[string]struct {
		*trouble
		status       task.Status
		labels, says string
	}{
		"may not push":                      {&trouble{hits: pushing, fault: githubtest.Forbidden()}, task.Paused, "coding agent paused", "It goes on by itself when that is mended"},
		"may not open pull requests":        {&trouble{hits: func(q *githubtest.Request) bool { return q.Pattern == opening }, fault: githubtest.Forbidden()}, task.Completed, "coding agent processing", "Not all of it is here yet: Opening a pull request"},
		"may not comment":                   {&trouble{hits: commenting, fault: githubtest.Forbidden()}, task.Completed, "coding agent done", ""},
		"down before the start":             {&trouble{after: taken, fault: drop}, task.Queued, "coding agent processing", ""},
		"down while the model works":        {&trouble{after: listed, nth: 2, fault: drop}, task.Completed, "coding agent processing", "In progress"},
		"down at the pull request":          {&trouble{after: "git-receive-pack", fault: drop}, task.Completed, "coding agent processing", "In progress"},
		"no repository before the start":    {&trouble{after: taken, fault: githubtest.NotFound()}, task.Queued, "coding agent processing", ""},
		"no repository while it works":      {&trouble{after: listed, nth: 2, fault: githubtest.NotFound()}, task.Paused, "coding agent processing", "In progress"},
		"no repository at the pull request": {&trouble{after: "git-receive-pack", fault: githubtest.NotFound()}, task.Completed, "coding agent processing", "In progress"},
		"broken while the model works":      {&trouble{after: listed, nth: 2, fault: githubtest.Broken(503)}, task.Completed, "coding agent processing", "In progress"},
		"secondary limit at the labels": {&trouble{hits: func(q *githubtest.Request) bool {
			return q.Method != http.MethodGet && strings.HasSuffix(q.Path, "/labels")
		}, fault: githubtest.SecondaryLimited(403, time.Second)}, "", "", ""},
		"secondary limit at the pull":        {&trouble{after: "git-receive-pack", fault: githubtest.SecondaryLimited(429, time.Second)}, task.Completed, "coding agent processing", "In progress"},
		"primary limit while the model does": {&trouble{after: listed, nth: 2, hits: func(q *githubtest.Request) bool { return !strings.HasPrefix(q.Pattern, "git-") }, fault: githubtest.RateLimited(403, time.Now().Add(2*time.Second))}, task.Completed, "coding agent processing", "In progress"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := asked(t, "")
			w.hub.OnRequest(c.fate)
			log := w.look()
			if c.status != "" { // else how far it comes depends on what is asked first
				w.stands(n, c.status, c.labels, c.says, log)
				if c.fault.Status == http.StatusForbidden { // nothing changes while it lasts
					log += w.look()
					w.stands(n, c.status, c.labels, c.says, log)
				}
			}
			w.hub.OnRequest(nil)
			w.handed(n, log+w.look())
		})
	}
}

// secret is the token that a tori is given.
func secret(cmd *exec.Cmd) (token string) {
	for _, e := range cmd.Env {
		if v, ok := strings.CutPrefix(e, "GITHUB_TOKEN="); ok {
			token = v
		}
	}
	return token
}

// A token that is revoked: nothing can be told to anybody, and nothing is lost
// until there is another one.
func TestTokenIsRevoked(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, after := range map[string]string{"before the start": taken, "while the model works": listed, "at the pull request": "git-receive-pack"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := asked(t, "")
			var out bytes.Buffer
			cmd := w.serve("--once")
			cmd.Stdout, cmd.Stderr = &out, &out
			x := &trouble{after: after, nth: 1, begun: func() { w.hub.Revoke(secret(cmd)) }, hits: func(*githubtest.Request) bool { return false }}
			if after == listed {
				x.nth = 2
			}
			w.hub.OnRequest(x.fate)
			_ = cmd.Run()
			if s := w.status(); s != task.Queued && after == taken || s != task.Completed && after != taken || w.labels(n) != "coding agent processing" {
				t.Errorf("%s, %s\n%s", s, w.labels(n), out.String())
			}
			if !strings.Contains(out.String(), "401") && !strings.Contains(out.String(), "refused the login") {
				t.Errorf("nothing is said of the token\n%s", out.String())
			}
			w.handed(n, out.String()+w.look())
		})
	}
}

// Answers are lost after the effect, connections break, the server has bad
// moments: some attempts later everything is there, once.
func TestAnswersAreLost(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	lost, broken, cut := githubtest.Fault{DropAfter: true}, githubtest.Broken(502), githubtest.Fault{Cut: true}
	for name, c := range map[string]struct {
		fault githubtest.Fault
		nth   int // of each pattern
	}{"lost": {lost, 1}, "lost the second time": {lost, 2}, "broken": {broken, 1}, "cut": {cut, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := asked(t, "")
			w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
				if q.Nth == c.nth {
					return &c.fault
				}
				return nil
			})
			log := ""
			for range 12 {
				if log += w.look(); w.labels(n) == "coding agent done" {
					break
				}
			}
			w.hub.OnRequest(nil)
			w.handed(n, log+w.look())
		})
	}
}

// An issue that is deleted while it is worked on: the work is not lost, and
// nothing waits for ever.
func TestIssueIsDeleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after string
		nth   int
		want  task.Status
		pulls int
	}{"before the start": {taken, 1, task.Failed, 0}, "while the model works": {listed, 2, task.Completed, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := asked(t, "")
			w.rarely() // else the next look may stop the run before it ends by itself
			w.hub.OnRequest((&trouble{after: c.after, nth: c.nth, begun: func() { w.repo.DeleteIssue(n) }, hits: func(*githubtest.Request) bool { return false }}).fate)
			log := w.look() + w.look()
			v := w.runs()[0]
			if v.Status() != c.want || len(w.repo.Pulls()) != c.pulls || strings.Contains(log, "Not delivered yet") {
				t.Errorf("%s, %d pull requests\n%s", v.Status(), len(w.repo.Pulls()), log)
			}
			w.sound()
		})
	}
}

// The forge is down when a daemon starts: it waits, says so, and begins when it can.
func TestDaemonStartsBeforeTheForge(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, n := asked(t, "")
	w.hub.Down(true)
	d := w.start()
	w.until(d, "it says that it cannot look", func() bool { return strings.Contains(d.out.String(), "Cannot look for work at github") })
	w.hub.Down(false)
	w.until(d, "the work is done", func() bool { return w.labels(n) == "coding agent done" })
	w.end(d)
	w.handed(n, d.out.String())
}

// The forge goes down while a daemon works, and comes back: the daemon goes on
// by itself.
func TestDaemonOutlivesTheForge(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, n := asked(t, "")
	w.hub.OnRequest((&trouble{after: listed, nth: 2, begun: func() { w.hub.Down(true) }, hits: func(*githubtest.Request) bool { return false }}).fate)
	d := w.start()
	w.until(d, "the work is done", func() bool { return w.status() == task.Completed })
	w.until(d, "a delivery failed", func() bool { return strings.Contains(d.out.String(), "Not delivered yet") })
	w.hub.Down(false)
	w.until(d, "all is delivered", func() bool { return w.labels(n) == "coding agent done" })
	w.end(d)
	w.handed(n, d.out.String())
}
