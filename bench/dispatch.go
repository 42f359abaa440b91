package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/github"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/memory"
	"toritsugi/internal/task"
	tools "toritsugi/internal/tool"
	"toritsugi/internal/turn"
)

// What a daemon is measured by: tasks worked on at once, tasks that wait, and a
// look at many repositories where nothing changed.
const (
	tasksAtOnce  = 1000
	tasksQueued  = 10_000
	pollRepos    = 1000
	pollTime     = 5 * time.Hour // that it is looked for
	dispatchTurn = 10            // turns of each task
	maxAtOnce    = 1024          // MiB of memory (DESIGN §9)
	maxPolls     = 1             // requests per minute and repository
	maxPollHeap  = 1.1           // memory at the end, as a share of that after three hours
)

// The parts of the measurement, each in a process of its own.
const (
	partAtOnce = "at once"
	partQueued = "queued"
	partPoll   = "poll"
	partHooks  = "webhooks"
)

// The figures of a daemon.
const (
	enqueueRate = "enqueued per second"
	taskRate    = "tasks per second"
	turnRate    = "turns per second"
	mostAtOnce  = "at once, most"
	wrongTasks  = "lost or ended twice"
	pollFirst   = "first poll"
	pollAgain   = "poll"
	pollAsked   = "requests"
	pollMinute  = "requests per minute and repository"
	pollPaid    = "requests that count"
	pollHeap    = "growth of memory"
)

// dispatch measures the parts.
func (b *bench) dispatch(ctx context.Context) (map[string]sample, error) {
	all := map[string]sample{}
	for _, part := range []string{partAtOnce, partQueued, partPoll, partHooks} {
		note("dispatch: %s", part)
		dir, err := os.MkdirTemp(b.dir, "dispatch-")
		if err != nil {
			return nil, err
		}
		s, u, err := b.part(ctx, dir, "dispatch", part, dir)
		if err != nil {
			return nil, fmt.Errorf("dispatch, %s: %w", part, err)
		}
		s[peak] = float64(u.PeakKiB) / 1024
		all[part] = s
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// dispatchMain is the process of one part.
func dispatchMain(ctx context.Context, part, dir string) (err error) {
	var s sample
	switch part {
	case partAtOnce:
		s, err = measurePool(ctx, dir, tasksAtOnce, tasksAtOnce, dispatchTurn)
	case partQueued:
		s, err = measurePool(ctx, dir, tasksQueued, 4, 1)
	case partPoll:
		s, err = measurePoll(ctx, dir)
	case partHooks:
		s, err = measureHooks(ctx, dir)
	default:
		err = fmt.Errorf("dispatch: no part named %q", part)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// measurePool has tasks worked on by a scripted model with real tools in this
// process, and counts how each of them ended, by its directory.
func measurePool(ctx context.Context, dir string, tasks, atOnce, turns int) (sample, error) {
	store, err := openStore(ctx, filepath.Join(dir, "base"), contextstore.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	s := sample{}
	ms, err := stopwatch(func() error {
		for i := range tasks {
			k := task.Key{Source: "github", Owner: "o", Repo: "r" + strconv.Itoa(i%50), Type: task.TypeIssue, ID: strconv.Itoa(i)}
			if _, err := store.Enqueue(ctx, contextstore.Metadata{TaskKey: k, User: "u" + strconv.Itoa(i%20), Title: "Task " + k.ID}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s[enqueueRate] = float64(tasks) / ms * 1000
	w, err := newScripted(dir, turns)
	if err != nil {
		return nil, err
	}
	if atOnce == tasks {
		w.crowd, w.there = tasks, make(chan struct{})
	}
	ended := map[string]int{}
	var mu sync.Mutex
	working, stop := context.WithCancel(ctx)
	defer stop()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	pool := dispatch.NewPool(dispatch.PoolOptions{Store: store, Sources: map[string]bool{"github": true}, Limits: dispatch.Limits{Max: atOnce}, Log: log, Now: time.Now,
		Work: w.work,
		Claim: func(ctx context.Context, uuid string) (*contextstore.Context, error) {
			c, _, err := store.Claim(ctx, uuid)
			return c, err
		},
		Ended: func(_ task.Key, r agent.Report, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				w.fail(err)
				stop()
			} else {
				ended[r.UUID]++
			}
			if len(ended) == tasks {
				stop()
			}
		}})
	if ms, err = stopwatch(func() error { pool.Run(working); return nil }); err != nil {
		return nil, err
	}
	if w.failed != nil {
		return nil, w.failed
	}
	s[taskRate], s[turnRate], s[mostAtOnce] = float64(tasks)/ms*1000, float64(tasks*turns)/ms*1000, float64(w.most)
	wrong := tasks
	listing, err := contextstore.List(ctx, store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{Status: task.Completed, Limit: 1})
	if err == nil && listing.Total == tasks {
		wrong = 0
	}
	for _, n := range ended {
		if n != 1 {
			wrong++
		}
	}
	s[wrongTasks] = float64(wrong)
	return s, err
}

// scripted works on tasks with a script and a tool.
type scripted struct {
	client llm.Client
	hands  *tools.Registry
	turns  int
	// The tasks begin their first turn when so many are open, where crowd is not 0.
	crowd int
	there chan struct{}

	mu     sync.Mutex
	now    int
	most   int
	failed error
}

func newScripted(dir string, turns int) (*scripted, error) {
	tree := filepath.Join(dir, "tree")
	if err := os.MkdirAll(tree, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(tree, "store.go"), []byte(typical(1).Content), 0o600); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return nil, err
	}
	limits := tools.Limits{MaxOutput: 30_000}
	hands, err := tools.NewRegistry(limits, tools.Builtins(tools.Env{Root: root, Dir: tree, Limits: limits})...)
	if err != nil {
		return nil, err
	}
	var text []byte
	for range turns - 1 {
		text = append(text, "- say: "+answerText+"\n  calls: [{tool: read_file, args: {path: store.go}}]\n"...)
	}
	client, err := script.Parse("bench.yaml", append(text, "- say: Done.\n"...))
	return &scripted{client: client, hands: hands, turns: turns}, err
}

func (w *scripted) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = errors.Join(w.failed, err)
}

func (w *scripted) work(ctx context.Context, c *contextstore.Context) (agent.Report, error) {
	w.mu.Lock()
	w.now++
	w.most = max(w.most, w.now)
	if w.crowd > 0 && w.now == w.crowd {
		close(w.there)
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.now--
		w.mu.Unlock()
	}()
	report := agent.Report{UUID: c.UUID(), Outcome: task.Outcome{Status: task.Completed, Reason: "done"}}
	if _, err := c.Append(contextstore.Message{Role: llm.RoleSystem, Content: "You work."}, contextstore.Message{Role: llm.RoleUser, Content: "Work."}); err != nil {
		return report, errors.Join(err, c.Close())
	}
	window, err := memory.Open(c, w.client.Open(llm.Settings{}), memory.Policy{Limit: smallContext})
	if err != nil {
		return report, errors.Join(err, c.Close())
	}
	if w.crowd > 0 {
		select {
		case <-w.there:
		case <-ctx.Done():
			return report, errors.Join(context.Cause(ctx), c.Close())
		}
	}
	loop := turn.New(turn.Settings{Ledger: c, Window: window, Tools: w.hands, Budget: turn.Budget{Turns: 100}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Scripted: true}, turn.NoDirector{})
	if _, err := loop.Run(ctx); err != nil {
		return report, errors.Join(err, c.Close())
	}
	return report, c.Transition(context.WithoutCancel(ctx), report.Outcome)
}

// fakeTest is what the server for tests wants of a test.
type fakeTest struct {
	dir  string
	ends []func()
	bad  error
}

func (f *fakeTest) Helper()          {}
func (f *fakeTest) Cleanup(g func()) { f.ends = append(f.ends, g) }
func (f *fakeTest) TempDir() string {
	dir, err := os.MkdirTemp(f.dir, "hub-")
	f.bad = errors.Join(f.bad, err)
	return dir
}
func (f *fakeTest) Logf(string, ...any) {}
func (f *fakeTest) Errorf(format string, args ...any) {
	f.bad = errors.Join(f.bad, fmt.Errorf(format, args...))
}
func (f *fakeTest) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// measurePoll looks at many repositories where nothing changes, as often as the
// default settings have it.
func measurePoll(ctx context.Context, dir string) (sample, error) {
	t := &fakeTest{dir: dir}
	defer func() {
		for _, f := range t.ends {
			f()
		}
	}()
	const interval = 5 * time.Minute // scheduling.interval
	var ahead time.Duration
	now := func() time.Time { return time.Now().Add(ahead) } // nothing asks while it changes
	hub := githubtest.New(t, githubtest.Options{Unchecked: true, Rate: 1_000_000, Now: now})
	hub.AddUser(githubtest.User{Login: "bot", ID: 1})
	for i := range pollRepos {
		r := hub.AddRepo("acme", fmt.Sprintf("r%d", i), githubtest.RepoOptions{}, map[string]string{"a": "b"})
		r.Allow("bot", "write")
		r.OpenIssue("bot", "An issue", "of many")
	}
	f, err := github.New(github.Options{Login: rest.Login{URL: hub.URL, Token: hub.Token("bot"), Now: now}, WriteSpacing: -1})
	if err != nil {
		return nil, err
	}
	store, err := openStore(ctx, filepath.Join(dir, "base"), contextstore.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	watch := &dispatch.Watch{Host: &delivery.Host{Tracker: f, Least: forge.Write, Labels: delivery.Labels{Review: "coding agent review"}}, Patterns: []string{"acme/*"}, Label: "coding agent", Assignment: true, MaxPerHour: 5}
	intake := &dispatch.Intake{Store: store, Watches: []*dispatch.Watch{watch}, Mailbox: &dispatch.Mailbox{}, Interval: interval, CommentsEvery: interval,
		Log: slog.New(slog.DiscardHandler), Now: now, Wake: func() {}, Stats: &dispatch.Stats{}}
	s := sample{}
	poll := func() error {
		ahead += interval
		return intake.Poll(ctx, watch, true)
	}
	if s[pollFirst], err = stopwatch(poll); err != nil {
		return nil, err
	}
	if err := poll(); err != nil { // comments are asked for from the second look on
		return nil, err
	}
	hub.ResetLog()
	looks, before := int(pollTime/interval), 0.0
	for n := range looks {
		if n == looks*3/5 { // lists of three hours, which are kept for two, have gone by
			before = heapInUse()
		}
		if s[pollAgain], err = stopwatch(poll); err != nil {
			return nil, err
		}
		for _, r := range hub.Log() {
			s[pollAsked]++
			if r.Status != 304 {
				s[pollPaid]++
			}
		}
		hub.ResetLog()
	}
	s[pollMinute], s[pollHeap] = s[pollAsked]/pollTime.Minutes()/pollRepos, heapInUse()/before
	s[pollAsked] /= float64(looks)
	s[pollPaid] /= pollTime.Hours()
	runtime.KeepAlive(intake) // until its memory was looked at
	return s, t.bad
}

// dispatch prints the figures.
func (r *report) dispatch(all map[string]sample) {
	if len(all) == 0 {
		return
	}
	once, queued, poll := all[partAtOnce], all[partQueued], all[partPoll]
	r.title("Dispatch", "1k at once", "10k queued")
	both := func(name string) []float64 { return []float64{once[name], queued[name]} }
	r.row("enqueued per second", "%.0f", both(enqueueRate), "")
	r.row("tasks per second", "%.0f", both(taskRate), "")
	r.row("turns per second", "%.0f", both(turnRate), "")
	r.row("worked on at once, at most", "%.0f", both(mostAtOnce), "")
	r.row("lost or ended twice", "%.0f", both(wrongTasks), r.verdict(0, "", both(wrongTasks)...))
	r.row("peak memory, MiB", "%.1f", both(peak), r.verdict(maxAtOnce, " MiB", both(peak)...))
	r.title(fmt.Sprintf("A look at %d repositories", pollRepos), "first", "unchanged")
	r.row("ms", "%.0f", []float64{poll[pollFirst], poll[pollAgain]}, "")
	r.row("requests", "%.0f", []float64{poll[pollAsked]}, "")
	r.row("per minute and repository", "%.2f", []float64{poll[pollMinute]}, r.verdict(maxPolls, "", poll[pollMinute]))
	r.row("that count against the limit, in an hour", "%.0f", []float64{poll[pollPaid]}, "")
	r.row("memory after 5 hours, of that after 3", "%.2f", []float64{poll[pollHeap]}, r.verdict(maxPollHeap, "", poll[pollHeap]))
	hooks := all[partHooks]
	one := func(name string) []float64 { return []float64{hooks[name]} }
	r.title("Webhooks, each on the disk before its 200", "")
	r.row("per second", "%.0f", one(hookTaken), "")
	r.row("answer, median, ms", "%.1f", one(hookMedian), "")
	r.row("answer, 99th percentile, ms", "%.1f", one(hookLate), r.verdict(maxHook, " ms", one(hookLate)...))
	r.row("answer, worst, ms", "%.1f", one(hookWorst), "")
	r.row("lost, or kept twice", "%.0f", one(hookLost), r.verdict(0, "", one(hookLost)...))
	r.row("peak memory, MiB", "%.1f", one(peak), "")
}
