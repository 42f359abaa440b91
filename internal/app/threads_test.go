package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

// slow is a channel that shows nothing in a session until it is let.
type slow struct {
	session  string
	let      chan struct{}
	entered  chan struct{}
	told     chan string
	waitOnce sync.Once
}

func (s *slow) Kind() channel.Kind { return channel.Terminal }

func (s *slow) Post(ctx context.Context, p channel.Post) error {
	if p.SessionID == s.session {
		s.waitOnce.Do(func() { close(s.entered) })
		select {
		case <-s.let:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if p.Question != nil {
		s.told <- p.SessionID
	}
	return nil
}

// A vendor that is slow in one session keeps no other one from being told.
func TestASlowVendorHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	h := issueHouse(t, linked)
	n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
	sessions := []string{"terminal:hanako:000000000001", inSession, "terminal:hanako:ffffffffffff"}
	h.sayAs(hanako, sessions[0], "m0", fmt.Sprintf("/issue %d", n))
	h.serveIssues()
	for i, s := range sessions[1:] { // those are told of it by nobody yet
		h.sayAs(hanako, s, fmt.Sprint("m", i+1), fmt.Sprintf("/issue %d", n))
	}
	l, err := contextstore.List(t.Context(), h.base, contextstore.Viewer{Admin: true}, contextstore.Filter{Type: "issue"})
	h.must(err)
	x, end := h.talks()
	defer end()
	c := &slow{session: inSession, let: make(chan struct{}), entered: make(chan struct{}), told: make(chan string, 8)}
	x.engine.Add(c)
	race(func() { x.tellThreads(t.Context()) }, func() {
		defer close(c.let)
		<-c.entered
		if got := <-c.told; got != sessions[2] {
			t.Errorf("%s was told", got)
		}
		x.tellThreads(t.Context()) // the next round comes, and passes over who is being told
		if len(c.told) > 0 {
			t.Errorf("%s was told", <-c.told)
		}
	})
	if got := <-c.told; got != inSession || len(c.told) > 0 {
		t.Errorf("%s was told of %s", got, l.Views[0].Metadata.UUID)
	}
}

// transport holds requests for an address until it is let.
type transport struct {
	path    string
	let     chan struct{}
	entered chan struct{}
	once    sync.Once
}

func (c *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, c.path) {
		c.once.Do(func() { close(c.entered) })
		<-c.let
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A forge that is slow for one person holds up nobody else.
func TestASlowForgeHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	h := issueHouse(t, linked)
	n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
	c := &transport{path: "/users/ken", let: make(chan struct{}), entered: make(chan struct{})}
	env := h.environment()
	env.HTTP = &http.Client{Transport: c}
	s := &system{opt: RunOptions{Config: h.config, AllowUnsandboxed: true, Quiet: true}, env: env, fs: &disk.FS{}}
	h.must(s.settle())
	x, end, err := s.talk(t.Context(), nil)
	h.must(err)
	defer end()
	to := &posts{}
	x.engine.Add(to)
	say := func(user, id string) {
		h.must(x.engine.Handle(t.Context(), channel.Message{Channel: channel.Terminal, SessionID: user + ":0123456789ab", ID: id, User: user, UserText: fmt.Sprintf("/issue %d widgets", n), ReceivedAt: time.Now()}))
	}
	race(func() { say("terminal:ken", "k1") }, func() {
		defer close(c.let)
		<-c.entered
		say(hanako, "m1")
		to.mu.Lock()
		defer to.mu.Unlock()
		h.contains(strings.Join(to.all, "\n"), "acme/widgets#1 is queued")
	})
	h.contains(strings.Join(to.all, "\n"), "the account ken may not ask")
}

// doomed is a vendor whose process dies before or behind one of its posts.
type doomed struct {
	*vendor
	mu     sync.Mutex
	posts  int // until then
	before bool
}

func (d *doomed) Post(ctx context.Context, p channel.Post) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.Kind == channel.Progress {
		return nil
	}
	d.posts--
	die := func() {
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {} // nothing goes on behind this
	}
	if d.posts == 0 && d.before {
		die()
	}
	err := d.vendor.Post(ctx, p)
	if d.posts == 0 {
		die()
	}
	return err
}

func withDoomed(path string, posts int, before bool) opener {
	return func(_ *daemon, in channel.Inbox, _ *guard) ([]member, error) {
		v := &vendor{path: path, in: in}
		return []member{{Receiver: &doomed{vendor: v, posts: posts, before: before}, hooks: map[string]http.Handler{"POST /webhooks/slack/events": v}}}, nil
	}
}

// tori serve is killed at any moment while conversations ask for runs of a forge, are asked by
// them, answer by a button and are told of the end: before and behind each post, and in between.
// Nothing is lost, and nothing said or done twice.
func TestThreadsKilledAnywhere(t *testing.T) {
	if config := os.Getenv("THREADS_TEST_CONFIG"); config != "" {
		h := &chatHouse{t: t, env: map[string]string{"GITHUB_TOKEN": os.Getenv("THREADS_TEST_TOKEN")}}
		var doom struct {
			Posts  int
			Before bool
		}
		h.must(json.Unmarshal([]byte(os.Getenv("THREADS_TEST_DOOM")), &doom))
		env := h.environment()
		env.Log = os.Stderr
		err := serve(t.Context(), env, ServeOptions{Config: config, Script: filepath.Join(filepath.Dir(config), "task.yaml"), AllowUnsandboxed: true},
			withDoomed(os.Getenv("THREADS_TEST_POSTS"), doom.Posts, doom.Before), func(s ServeStarted) {
				h.must(os.WriteFile(os.Getenv("THREADS_TEST_AT"), []byte(s.Listen), 0o600))
			})
		t.Fatal(err)
	}
	if testing.Short() {
		t.Skip("processes, one after the other")
	}
	t.Parallel()
	h := issueHouse(t, slackSettings+"access: {people: {'slack:U1': 'github:hanako'}}\nrecovery: {max_attempts: 1000}\n")
	h.configured("serve: {listen: ''}\n", "")
	h.write("task.yaml", offers)
	path, at := filepath.Join(h.dir, "posts"), filepath.Join(h.dir, "at")
	log, err := os.Create(filepath.Join(h.dir, "processes"))
	h.must(err)
	t.Cleanup(func() {
		_ = log.Close()
		if raw, _ := os.ReadFile(log.Name()); t.Failed() { //nolint:gosec // of this test
			t.Logf("%s", raw[max(0, len(raw)-8<<10):])
		}
	})
	const threads = 3
	var end sync.WaitGroup
	over := make(chan struct{})
	var kills atomic.Int64
	end.Go(func() { // one process follows the other
		for n := 0; ; n++ {
			doom := map[string]any{"Posts": 1, "Before": n%3 == 0}
			var timer <-chan time.Time
			if n%3 == 2 || n > 60 {
				doom = map[string]any{}
			}
			if n%3 == 2 && n < 60 {
				timer = time.After(rand.N(500 * time.Millisecond))
			}
			raw, _ := json.Marshal(doom)
			p := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestThreadsKilledAnywhere$") //nolint:gosec // this program
			p.Env = append(os.Environ(), "THREADS_TEST_CONFIG="+h.config, "THREADS_TEST_POSTS="+path, "THREADS_TEST_AT="+at, "THREADS_TEST_DOOM="+string(raw), "THREADS_TEST_TOKEN="+h.env["GITHUB_TOKEN"])
			p.Stdout, p.Stderr = log, log
			if err := p.Start(); err != nil {
				t.Error(err)
				return
			}
			ended := make(chan struct{})
			go func() { _ = p.Wait(); close(ended) }()
			select {
			case <-ended:
				kills.Add(1)
				continue
			case <-timer:
				kills.Add(1)
			case <-over:
			}
			_ = p.Process.Kill()
			<-ended
			select {
			case <-over:
				return
			default:
			}
		}
	})
	defer end.Wait()
	defer close(over)
	take := func(e any) { // as a vendor does
		until(t, "an event is taken", func() bool {
			raw, err := os.ReadFile(at)
			return err == nil && send(t, string(raw), "bot.example", e) == http.StatusOK
		})
	}
	find := func(session string, f func(channel.Post) bool) (all []channel.Post) {
		for _, p := range posted(t, path) {
			if p.SessionID == session && f(p) && !slices.ContainsFunc(all, func(q channel.Post) bool { return q.Key == p.Key }) {
				all = append(all, p)
			}
		}
		return all
	}
	var issues [threads]int
	session := func(i int) string { return fmt.Sprint("slack:T1:C1:", i) }
	asked := func(p channel.Post) bool { return p.Question != nil && !p.Question.Over }
	for i := range issues {
		issues[i] = h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
	}
	for i, n := range issues {
		take(said1{session(i), fmt.Sprint("ask", i), "slack:U1", fmt.Sprintf("/issue %d widgets", n)})
	}
	for i := range issues {
		until(t, "a question", func() bool { return len(find(session(i), asked)) > 0 })
		q := find(session(i), asked)[0].Question.ID
		for k := range 2 { // it is pressed twice
			take(pressed1{said1{session(i), fmt.Sprint("press", i, "-", k), "slack:U1", "2"}, q})
		}
	}
	for i, n := range issues {
		ended := func(p channel.Post) bool { return strings.HasSuffix(p.Key, "/over") }
		until(t, "the end is told", func() bool { return len(find(session(i), ended)) > 0 })
		h.runs(n, task.Completed)
		for what, f := range map[string]func(channel.Post) bool{
			"a question": asked, "an end": ended,
			"an answer to who asked": func(p channel.Post) bool {
				return p.ReplyTo == fmt.Sprint("ask", i) && strings.Contains(p.Text, "run ") && p.Question == nil && !ended(p)
			},
			"an answer that counts":   func(p channel.Post) bool { return p.Question != nil && p.Question.Over },
			"an answer that is late":  func(p channel.Post) bool { return strings.Contains(p.Text, "no question waits") },
			"an answer to the first":  func(p channel.Post) bool { return p.ReplyTo == fmt.Sprint("press", i, "-0") },
			"an answer to the second": func(p channel.Post) bool { return p.ReplyTo == fmt.Sprint("press", i, "-1") },
		} {
			if all := find(session(i), f); len(all) != 1 {
				t.Errorf("session %d: %d times %s: %+v", i, len(all), what, all)
			}
		}
	}
	if got := len(h.repo.Pulls()); got != threads {
		t.Errorf("%d drafts", got)
	}
	l, err := contextstore.List(t.Context(), h.base, contextstore.Viewer{Admin: true}, contextstore.Filter{Type: "issue"})
	h.must(err)
	for _, v := range l.Views {
		raw, err := readLines(v.Dir, "questions.jsonl")
		h.must(err)
		if strings.Count(raw, `"answer":"42"`) != 1 {
			t.Errorf("%s", raw)
		}
	}
	t.Logf("%d kills, %d posts", kills.Load(), len(posted(t, path)))
}
