package githubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

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

// world is a server with one repository and the people around it.
type world struct {
	*Server
	t     *testing.T
	clock *clock
	repo  *Repo
	bot   string // token of tori-bot, who may write
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	w := &world{t: t, clock: newClock()}
	o.Now = w.clock.now
	w.Server = New(t, o)
	w.repo = w.AddRepo("acme", "app", RepoOptions{}, map[string]string{"README.md": "hello\n", "a.txt": "one\ntwo\nthree\n"})
	for _, u := range []User{{Login: "alice", ID: 1, Roles: map[string]string{"acme/app": "write"}}, {Login: "bob", ID: 2},
		{Login: "tori-bot", ID: 3, Roles: map[string]string{"acme/app": "write"}}} {
		w.AddUser(u)
	}
	w.bot = w.Token("tori-bot")
	return w
}

// got is an answer.
type got struct {
	t *testing.T
	*http.Response
	body []byte
}

// do asks as the bot; body may be nil, and header are pairs.
func (w *world) do(method, path string, body any, header ...string) got {
	w.t.Helper()
	return w.as(w.bot, method, path, body, header...)
}

func (w *world) as(token, method, path string, body any, header ...string) got {
	w.t.Helper()
	g, err := w.try(token, method, path, body, header...)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return g
}

func (w *world) try(token, method, path string, body any, header ...string) (got, error) {
	w.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	if !strings.HasPrefix(path, "http") {
		path = w.API() + strings.TrimPrefix(path, "/")
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, path, in)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return got{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return got{w.t, res, b}, err
}

// ok fails the test unless the answer has that status, and decodes it.
func (g got) ok(status int) map[string]any {
	g.t.Helper()
	if g.StatusCode != status {
		g.t.Fatalf("%s %s: status %d, want %d: %s", g.Request.Method, g.Request.URL, g.StatusCode, status, g.body)
	}
	var o map[string]any
	_ = json.Unmarshal(g.body, &o)
	return o
}

func (g got) list(status int) []map[string]any {
	g.t.Helper()
	g.ok(status)
	var o []map[string]any
	if err := json.Unmarshal(g.body, &o); err != nil {
		g.t.Fatalf("%v in %s", err, g.body)
	}
	return o
}

// all collects one field of a list's elements.
func all[V any](list []map[string]any, field string) []V {
	out := []V{}
	for _, o := range list {
		v, _ := o[field].(V)
		out = append(out, v)
	}
	return out
}

// gitIn runs git as a person does, away from the machine's settings.
func gitIn(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false",
		"GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.org", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.org")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := gitIn(t, dir, args...)
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return out
}

// remote is the repository's address with a login.
func (w *world) remote(token string) string {
	return strings.Replace(w.URL, "http://", "http://x-access-token:"+token+"@", 1) + "/acme/app.git"
}

// clone gives a working copy with a login.
func (w *world) clone(token string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	git(w.t, dir, "clone", "-q", w.remote(token), "tree")
	return dir + "/tree"
}

// push commits files in a working copy and pushes them to a branch.
func push(t *testing.T, tree, branch string, files map[string]string) string {
	t.Helper()
	git(t, tree, "checkout", "-q", "-B", branch)
	for name, text := range files {
		if err := os.WriteFile(tree+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, tree, "add", "-A")
	git(t, tree, "commit", "-q", "-m", "change")
	git(t, tree, "push", "-q", "origin", branch)
	return git(t, tree, "rev-parse", "HEAD")
}

func jsonNumber(f float64) string {
	b, _ := json.Marshal(int64(f))
	return string(b)
}

// failing keeps the errors that a server reports.
type failing struct {
	*testing.T
	mu     sync.Mutex
	errors []string
}

func (f *failing) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}
