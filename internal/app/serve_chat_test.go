package app

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// A tori serve without a forge works on what chats left behind: a job is proposed, and
// applied once it was granted from another terminal; the next terminal of the session
// shows what was said meanwhile, once.
func TestServeWorksOnChats(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "")
	h.add(h.local())
	id := h.ask()
	h.must(h.once())
	h.status(id, task.AwaitingApproval)
	if said := h.said(); !strings.Contains(said, "request: ") || !strings.Contains(said, id) {
		t.Errorf("%q", said)
	}
	h.must(h.decide(id, true))
	h.must(h.once())
	h.status(id, task.Completed)
	j, _ := h.job(id)
	a, err := approval.ReadApplication(j.Dir, id)
	if err != nil || !a.Applied() || h.git(h.repo, "show", a.Where+":answer.txt") != "42\n1\n2" {
		t.Errorf("%+v, %v", a, err)
	}
	if said := h.said(); !strings.Contains(said, a.Where) {
		t.Errorf("%q", said)
	}
	if said := h.said(); said != "" {
		t.Errorf("said twice: %q", said)
	}
}

// What nobody decided about in time is denied while tori serve runs, and said.
func TestServeDeniesWhatExpired(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "approval: {expires_hours: 1}\n")
	h.add(h.local())
	id := h.ask()
	h.must(h.once())
	env := h.environment()
	env.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	h.must(Serve(t.Context(), env, ServeOptions{Config: h.config, AllowUnsandboxed: true, Quiet: true, Once: true}, func(ServeStarted) {}))
	h.status(id, task.Stopped)
	if said := h.said(); !strings.Contains(said, "decided: the proposal was denied: nobody decided in time") {
		t.Errorf("%q", said)
	}
}

// A tori chat and a tori serve on one base directory: each job is proposed and applied by
// one of them.
func TestServeBesideChat(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "workers: {max: 2}\n")
	h.add(h.local())
	var all []string
	for range 3 {
		all = append(all, h.ask())
	}
	both := func() {
		t.Helper()
		talks, end := h.talks()
		defer end()
		work, stop := talks.alone(), make(chan struct{})
		race(func() {
			ctx, cancel := contextUntil(t.Context(), stop)
			defer cancel()
			work(ctx)
		}, func() {
			defer close(stop)
			h.must(h.once())
		})
		h.must(h.once()) // with what the chat put down as it ended
	}
	both()
	for _, id := range all {
		h.status(id, task.AwaitingApproval)
		h.must(h.decide(id, true))
	}
	both()
	for _, id := range all {
		h.status(id, task.Completed)
		j, v := h.job(id)
		lines, err := readLines(j.Dir, "application.jsonl")
		if err != nil || strings.Count(lines, `"delivered"`) != 1 || strings.Count(lines, `"step":"worktree"`) != 1 || v.State.LLMCallCount != 2 {
			t.Errorf("%v\n%s", err, lines)
		}
	}
}

// Nothing to serve is said with what may be set.
func TestNothingToServe(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "")
	err := h.once()
	for _, want := range []string{"repositories of github, gitlab or gitea", "GITLAB_TOKEN", "folder.path", "chat.repositories"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}

// What tori serve shows of itself without a forge: it is ready, and tells how many jobs
// wait. What tori rollback began is left to who did.
func TestServeShowsChats(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "")
	h.add(h.local())
	id := h.ask()
	h.must(h.once())
	j, _ := h.job(id)
	var undo string
	h.approvals(func(a *Approvals) {
		var err error
		undo, err = a.Store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "terminal", Owner: "hanako", Repo: "repo", Type: "chat", ID: "20260304-120000-00000001"},
			Run: []byte(`{"repo":"` + h.repo + `","rollback":"` + j.Job + `"}`)})
		h.must(err)
	})
	h.must(h.once())
	raw, err := os.ReadFile(h.config)
	h.must(err)
	h.write("config.yaml", strings.Replace(string(raw), "listen: ''", "listen: '127.0.0.1:0'", 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at := make(chan ServeStarted, 1)
	var ended error
	race(func() {
		ended = Serve(ctx, h.environment(), ServeOptions{Config: h.config, AllowUnsandboxed: true, Quiet: true}, func(s ServeStarted) { at <- s })
		close(at)
	}, func() {
		defer cancel()
		s := <-at
		if len(s.Sources) != 1 || s.Sources[0] != "chat" || len(s.Patterns) != 1 || s.Patterns[0] != "tools" {
			t.Errorf("%+v", s)
		}
		for page, want := range map[string]string{"/readyz": "ok\n", "/metrics": `tori_chat_jobs{channel="terminal",status="awaiting_approval"} 1` + "\n"} {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Listen+page, nil)
			h.must(err)
			a, err := http.DefaultClient.Do(req)
			h.must(err)
			b, err := io.ReadAll(a.Body)
			_ = a.Body.Close()
			if err != nil || a.StatusCode != http.StatusOK || !strings.Contains(string(b), want) {
				t.Errorf("%s: %d %v\n%s", page, a.StatusCode, err, b)
			}
		}
	})
	if ended != nil {
		t.Error(ended)
	}
	h.approvals(func(a *Approvals) {
		if v, err := a.Store.View(undo); err != nil || v.Status() != task.Queued {
			t.Errorf("%v, %v", v.Status(), err)
		}
	})
}
