package githubtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.repo.OpenIssue("alice", "t", "b")
	const path = "repos/acme/app/issues/1/comments"
	reset := w.clock.now().Add(30 * time.Minute)
	for _, c := range []struct {
		name    string
		fault   Fault
		status  int // 0: no answer
		message string
		done    bool // the comment was written
		header  string
	}{
		{"revoked", Unauthorized(), 401, "Bad credentials", false, ""},
		{"forbidden", Forbidden(), 403, "Resource not accessible by integration", false, ""},
		{"not found", NotFound(), 404, "Not Found", false, ""},
		{"gone", Gone(), 410, "Issues has been disabled", false, ""},
		{"unprocessable", Unprocessable("Validation Failed"), 422, "Validation Failed", false, ""},
		{"broken", Broken(502), 502, "Server Error", false, ""},
		{"primary limit", RateLimited(403, reset), 403, "API rate limit exceeded", false, fmt.Sprintf("X-Ratelimit-Remaining: 0, X-Ratelimit-Reset: %d", reset.Unix())},
		{"primary limit, newer", RateLimited(429, reset), 429, "API rate limit exceeded", false, "X-Ratelimit-Remaining: 0"},
		{"secondary limit", SecondaryLimited(403, time.Minute), 403, "You have exceeded a secondary rate limit", false, "Retry-After: 60"},
		{"secondary limit, silent", SecondaryLimited(429, 0), 429, "secondary rate limit", false, ""},
		{"dropped before", Fault{Drop: true}, 0, "", false, ""},
		{"dropped after", Fault{DropAfter: true}, 0, "", true, ""},
		{"cut", Fault{Cut: true}, 0, "", true, ""},
	} {
		before := len(w.repo.Issue(1).Comments)
		w.FailNext("POST /repos/{owner}/{repo}/issues/{issue_number}/comments", 1, c.fault)
		w.ResetLog()
		g, err := w.try(w.bot, "POST", path, map[string]any{"body": c.name})
		switch {
		case c.status == 0 && err == nil:
			t.Errorf("%s: answered %d %s", c.name, g.StatusCode, g.body)
		case c.status != 0 && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.status != 0 && (g.StatusCode != c.status || !strings.Contains(string(g.body), c.message)):
			t.Errorf("%s: %d %s", c.name, g.StatusCode, g.body)
		}
		for want := range strings.SplitSeq(c.header, ", ") {
			if k, v, is := strings.Cut(want, ": "); is && g.Header.Get(k) != v {
				t.Errorf("%s: %s is %q, want %q", c.name, k, g.Header.Get(k), v)
			}
		}
		if done := len(w.repo.Issue(1).Comments) > before; done != c.done {
			t.Errorf("%s: done %v, want %v", c.name, done, c.done)
		}
		if w.Count("") != 1 {
			t.Errorf("%s: %d requests, want 1: %v", c.name, w.Count(""), w.Counts())
		}
	}
	w.do("POST", path, map[string]any{"body": "well again"}).ok(201)
	last := w.Log()[len(w.Log())-1]
	if last.User != "tori-bot" || last.Status != 201 || last.Nth != 2 || last.Path != "/repos/acme/app/issues/1/comments" || !strings.Contains(string(last.Body), "well again") {
		t.Errorf("log: %+v", last)
	}
}

func TestHooksSeeEveryRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.repo.OpenIssue("alice", "t", "b")
	var mu sync.Mutex
	var seen []string
	w.OnRequest(func(q *Request) *Fault {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%d %s", q.N, q.Pattern))
		if q.N != 2 {
			return nil
		}
		return &Fault{DropAfter: true, After: func() { w.repo.Label(1, "after", "alice") }}
	})
	w.do("GET", "user", nil).ok(200)
	if _, err := w.try(w.bot, "POST", "repos/acme/app/issues/1/labels", map[string]any{"labels": []string{"x"}}); err == nil {
		t.Error("answered")
	}
	w.OnRequest(nil)
	w.do("GET", "user", nil).ok(200)
	if got := strings.Join(seen, ", "); got != "1 GET /user, 2 POST /repos/{owner}/{repo}/issues/{issue_number}/labels" {
		t.Errorf("seen: %s", got)
	}
	if got := strings.Join(w.repo.Issue(1).Labels, " "); got != "after x" {
		t.Errorf("labels: %s", got)
	}
	if w.Count("GET /user") != 2 || w.Count("") != 3 {
		t.Errorf("counts: %v", w.Counts())
	}
}

func TestHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.repo.OpenIssue("alice", "t", "b")
	for _, f := range []Fault{{Hang: true}, {HangAfter: true}} {
		ctx, cancel := context.WithCancel(t.Context())
		w.OnRequest(func(*Request) *Fault {
			after := f
			if f.Hang {
				cancel()
			} else {
				after.After = cancel
			}
			return &after
		})
		r, err := http.NewRequestWithContext(ctx, "POST", w.API()+"repos/acme/app/issues/1/labels", strings.NewReader(`{"labels":["x"]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "token "+w.bot)
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if got := w.repo.Issue(1).Labels; len(got) != 1 {
		t.Errorf("labels: %v", got)
	}
	// One that hangs when the server ends does not hold it up.
	w.OnRequest(func(*Request) *Fault {
		go w.Close()
		return &Fault{Hang: true}
	})
	if _, err := w.try(w.bot, "GET", "user", nil); err == nil {
		t.Error("answered")
	}
}

func TestDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	tree := w.clone(w.bot)
	w.Down(true)
	if _, err := w.try(w.bot, "GET", "user", nil); err == nil {
		t.Error("answered")
	}
	if out, err := gitIn(t, tree, "fetch", "origin"); err == nil {
		t.Errorf("fetched: %s", out)
	}
	w.Down(false)
	w.do("GET", "user", nil).ok(200)
	git(t, tree, "fetch", "origin")
}

// A push whose answer is lost was a push all the same.
func TestGitFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	tree := w.clone(w.bot)
	git(t, tree, "commit", "-q", "--allow-empty", "-m", "x")
	for _, c := range []struct {
		fault Fault
		done  bool
	}{{Fault{Drop: true}, false}, {Broken(503), false}, {Forbidden(), false}, {Fault{Cut: true}, true}, {Fault{DropAfter: true}, true}} {
		before := w.repo.Branches()["x"]
		git(t, tree, "commit", "-q", "--allow-empty", "-m", "x")
		w.FailNext("git-receive-pack", 1, c.fault)
		if out, err := gitIn(t, tree, "push", "origin", "HEAD:x"); err == nil {
			t.Errorf("%+v: pushed: %s", c.fault, out)
		}
		if done := w.repo.Branches()["x"] != before; done != c.done {
			t.Errorf("%+v: done %v, want %v", c.fault, done, c.done)
		}
	}
	git(t, tree, "push", "-q", "origin", "HEAD:x")
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.repo.OpenIssue("alice", "t", "b")
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			for m := range 3 {
				body := map[string]any{"body": fmt.Sprintf("%d %d", n, m)}
				if g, err := w.try(w.bot, "POST", "repos/acme/app/issues/1/comments", body); err != nil || g.StatusCode != 201 {
					t.Errorf("%v %s", err, g.body)
				}
				w.repo.Comment(1, "alice", "meanwhile")
				if g, err := w.try(w.bot, "GET", "repos/acme/app/issues/1/events?per_page=5", nil); err != nil || g.StatusCode != 200 {
					t.Errorf("%v %s", err, g.body)
				}
			}
		})
	}
	wg.Wait()
	if n := len(w.repo.Issue(1).Comments); n != 36 {
		t.Errorf("%d comments, want 36", n)
	}
}
