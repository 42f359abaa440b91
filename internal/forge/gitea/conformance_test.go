package gitea

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/forgetest"
	"toritsugi/internal/forge/gitea/giteatest"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// world is a repository, and what people do there.
type world struct {
	*giteatest.World
	t     *testing.T
	url   string // of the server
	repo  forge.Repo
	token string // ours
	now   func() time.Time
	fake  *giteatest.Server // nil for a real one
}

// newWorld has a fake server with a private repository of an organization that tori-bot
// administers.
func newWorld(t *testing.T) *world {
	t.Helper()
	c := &clock{at: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	fake := giteatest.New(t, c.now)
	return newlyMade(t, &giteatest.World{T: t, URL: fake.URL, Admin: fake.Admin, Repo: forge.Repo{Owner: "acme", Name: "app"}, Skip: c.add}, c.now, fake)
}

func newlyMade(t *testing.T, in *giteatest.World, now func() time.Time, fake *giteatest.Server) *world {
	in.Prepare()
	return &world{World: in, t: t, url: in.URL, repo: in.Repo, token: in.Token(in.Person(giteatest.Bot, forge.Admin).Login), now: now, fake: fake}
}

func (w *world) do(as, method, path string, body, v any, taken ...int) int {
	w.t.Helper()
	return w.Do(as, method, path, body, v, taken...)
}

// at is a path in the repository.
func (w *world) at(parts ...any) string { return below(w.repo, parts...) }

func (w *world) open(change func(*Options)) *Forge {
	w.t.Helper()
	o := Options{URL: w.url, Token: w.token, HTTP: &http.Client{Transport: &http.Transport{}}, Now: w.now, RetryDelay: time.Millisecond}
	if w.fake == nil {
		o.HTTP.Transport = described{w.t, o.HTTP.Transport}
	}
	if change != nil {
		change(&o)
	}
	f, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(o.HTTP.CloseIdleConnections)
	return f
}

// described holds what is asked of a real server, and its answers, against what is published:
// what the fake is held against is true of the real one.
type described struct {
	t    *testing.T
	next http.RoundTripper
}

func (d described) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	if wrong := giteatest.Against(r, body, resp.StatusCode, answer); wrong != "" {
		d.t.Errorf("%s %s: %s\n%.2000s", r.Method, r.URL, wrong, answer)
	}
	return resp, err
}

func contract(t *testing.T, open func(t *testing.T) *world) {
	forgetest.Run(t, func(t *testing.T) forgetest.Fixture {
		w := open(t)
		f := w.open(nil)
		lacks := map[forgetest.Feature]string{forgetest.Roles: "Gitea has none between read and write, nor between write and administration"}
		if w.do("", "POST", w.at("pulls", 1, "comments", 1, "replies"), map[string]string{"body": "x"}, nil, 404, 405) == 405 {
			lacks[forgetest.Threads] = "Gitea takes answers to remarks from 1.27 on"
		}
		return forgetest.Fixture{Forge: f, Code: f, Reopen: func() forge.Tracker { return w.open(nil) }, Repo: w.repo, Main: "main", World: w, Lacks: lacks}
	})
}

func TestContract(t *testing.T) {
	t.Parallel()
	contract(t, newWorld)
}

// TestContractOfARealServer runs the same against a real Gitea.
func TestContractOfARealServer(t *testing.T) {
	contract(t, realWorld)
}

// everywhere runs a test on the fake and on a real server.
func everywhere(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("fake", func(t *testing.T) { test(t, newWorld(t)) })
	t.Run("RealServer", func(t *testing.T) { test(t, realWorld(t)) })
}

// organizations are for names: a real server has those of all tests.
var organizations atomic.Int64

// realWorld is a world on the server that scripts/gitea.sh has started, in an organization of
// its own; make test-gitea does so. Time goes by there as it does.
func realWorld(t *testing.T) *world {
	t.Helper()
	url, admin := os.Getenv("TORI_GITEA"), os.Getenv("TORI_GITEA_TOKEN")
	if url == "" || admin == "" {
		t.Skip("TORI_GITEA names no server; make test-gitea starts one")
	}
	return newlyMade(t, &giteatest.World{T: t, URL: strings.TrimRight(url, "/"), Admin: admin, Skip: time.Sleep,
		Repo: forge.Repo{Owner: fmt.Sprintf("acme-%d-%d", os.Getpid(), organizations.Add(1)), Name: "app"}}, time.Now, nil)
}
