package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/task"
	"toritsugi/internal/web"
)

// alertHouse is a house with everything that can be wrong, and those who are told of it.
type alertHouse struct {
	*forgeHouse
	d     *daemon
	now   time.Time
	posts string
	mails string // directory: a file for each mail
	log   bytes.Buffer
	runs  int

	down, shared error       // of the channel
	modelGone    atomic.Bool // nothing answers behind the model's address
	free         uint64      // bytes on the disk, as the kernel says

	mu    sync.Mutex
	hooks []map[string]string // what the webhook was sent
}

func newAlertHouse(t *testing.T) *alertHouse {
	t.Helper()
	h := &alertHouse{forgeHouse: newForgeHouse(t, githubtest.RepoOptions{}, ""), now: time.Now().Truncate(time.Second), free: 1 << 40}
	h.posts, h.mails = filepath.Join(h.dir, "posts"), filepath.Join(h.dir, "mails")
	h.must(os.Mkdir(h.mails, 0o700))
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var said map[string]string
		if err := json.NewDecoder(r.Body).Decode(&said); err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hooks = append(h.hooks, said)
	}))
	t.Cleanup(hook.Close)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if h.modelGone.Load() {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
	}))
	t.Cleanup(model.Close)
	sendmail := filepath.Join(h.dir, "sendmail")
	h.must(os.WriteFile(sendmail, []byte("#!/bin/sh\nexec cat > \"$(mktemp "+h.mails+"/XXXXXXXX)\"\n"), 0o700)) //nolint:gosec // it is run
	h.configured("write_spacing_ms: 0", "write_spacing_ms: 0, repositories: [acme/widgets]")
	h.configured("llm: {script:", "llm: {openai: {base_url: '"+model.URL+"/v1', api_key: k, model: m}, provider: script, script:")
	h.configured("coder2_provider: script", "coder2_provider: script, worker_provider: openai, worker_model: m")
	h.configured("chat: {", "chat: {prompts_dir: "+h.dir+"/prompts, ")
	h.write("prompts/policy.md", "Be brief.")
	h.add("channels: {slack: {bot_token: xoxb-test, app_token: xapp-test, allow_from: [U1], notify: ['slack:T1:CALERTS']}}\nbudget: {day: {max_tokens: 1000}}\n" +
		"backup: {dir: /nowhere, schedule: never}\nmonitor: {alerts: {disk_warn_gb: 0.001, disk_critical_gb: 0.002, running_tasks: 2, failure_runs: 3}, notify: {webhook_url: '" + hook.URL + "/services/secret-of-hook', " +
		"mail: {to: [ops@example.com], from: tori@example.com, sendmail: " + sendmail + "}}}\n")
	env := h.environment()
	env.Now, env.Log = func() time.Time { return h.now }, &h.log
	h.d = h.daemonIn(env, h.posts, func(m *member) {
		m.ready, m.shared = func() error { return h.down }, func() error { return h.shared }
	})
	h.d.store.StatFS = func(string) (contextstore.FileSystem, error) { return contextstore.FileSystem{Free: h.free}, nil }
	alone, err := h.d.store.Alone("serve")
	h.must(err)
	t.Cleanup(alone.Release)
	return h
}

// look measures and looks for alerts, as the daemon does every so often.
func (h *alertHouse) look() {
	h.t.Helper()
	f, err := measure(h.t.Context(), h.base, h.d.cfg.Monitor.Alerts, h.now)
	h.must(err)
	h.d.sums.Store(f)
	down := modelsDown(h.d.models.Health(h.t.Context()), h.d.ofWork)
	h.d.down.Store(&down)
	h.must(h.d.monitor.Look(h.t.Context()))
	h.must(h.d.alarms.look(h.t.Context()))
}

// poll looks for work once.
func (h *alertHouse) poll() {
	n := func() (n int64) {
		for _, p := range h.d.Counts().Polls {
			n += p.All
		}
		return n
	}
	was := n()
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.d.intake.Run(ctx) }()
	until(h.t, "a look for work", func() bool { return n() > was })
	cancel()
	<-done
}

// run makes a run that somebody works on.
func (h *alertHouse) run() *contextstore.Context {
	h.t.Helper()
	c, _, err := h.d.store.Claim(h.t.Context(), h.queue("folder"))
	h.must(err)
	return c
}

func (h *alertHouse) queue(source string) string {
	h.t.Helper()
	h.runs++
	k := task.Key{Source: source, Owner: "acme", Repo: "widgets", Type: "issue", ID: fmt.Sprint(h.runs)}
	uuid, err := h.d.store.Enqueue(h.t.Context(), contextstore.Metadata{TaskKey: k, Title: "one", Run: []byte("{}")})
	h.must(err)
	return uuid
}

// end makes n runs that take so long and end so.
func (h *alertHouse) end(n int, took time.Duration, s task.Status) (uuid string) {
	h.t.Helper()
	for range n {
		c := h.run()
		h.now = h.now.Add(took)
		h.must(c.Transition(h.t.Context(), task.Outcome{Status: s, Summary: "done", Reason: "so"}))
		uuid = c.UUID()
	}
	return uuid
}

// told is how often each way told the begin and the end of an alert so far.
func (h *alertHouse) told(name, about string) (times [3][2]int) {
	h.t.Helper()
	id := alertID{name, about}.String()
	count := func(way int, text string) {
		switch {
		case strings.Contains(text, "(alert "+id+", docs/operations.md#"+name+")"):
			times[way][0]++
		case strings.Contains(text, "(alert "+id+")"):
			times[way][1]++
		}
	}
	for _, p := range posted(h.t, h.posts) {
		count(0, p.Text)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, said := range h.hooks {
		if count(1, said["text"]); said["alert"] == name && said["about"] == about && (said["level"] != levelOf(name) || said["docs"] != alertDocs(name) || said["state"] != "begun" && said["state"] != "over") {
			h.t.Errorf("%v", said)
		}
	}
	all, err := filepath.Glob(h.mails + "/*")
	h.must(err)
	for _, path := range all {
		f, err := os.Open(path)
		h.must(err)
		m, err := mail.ReadMessage(f)
		h.must(err)
		text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		h.must(errors.Join(err, f.Close()))
		subject, err := (&mime.WordDecoder{}).DecodeHeader(m.Header.Get("Subject"))
		if count(2, string(text)); m.Header.Get("To") != "<ops@example.com>" || !strings.HasPrefix(string(text), strings.TrimPrefix(subject, "[tori] ")) || err != nil {
			h.t.Errorf("%v\n%s", m.Header, text)
		}
	}
	return times
}

// shown is where an alert is seen while it is open: /metrics, and tori health of another process.
func (h *alertHouse) shown(name, about string) (metrics, health bool) {
	h.t.Helper()
	w := httptest.NewRecorder()
	web.New(h.d, nil).ServeHTTP(w, httptest.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://localhost/metrics", nil))
	metrics = strings.Contains(w.Body.String(), fmt.Sprintf("tori_alerts{level=%q,name=%q} ", levelOf(name), name))
	env := h.environment()
	env.Now = func() time.Time { return h.now }
	r, err := Health(h.t.Context(), env, "", h.config)
	h.must(err)
	for _, a := range r.Alerts {
		if a.Name == name && a.About == about {
			health = true
			if a.Level == levelCritical && r.Status != levelCritical || r.Status == "ok" || a.Text == "" {
				h.t.Errorf("%s: %+v", r.Status, a)
			}
		}
	}
	return metrics, health
}

// provocation is how an alert is brought about for real, and how it is mended.
type provocation struct {
	name, about string
	begin, mend func()
}

func (h *alertHouse) provocations() []provocation {
	must := h.must
	ctx := h.t.Context()
	var c *contextstore.Context
	var files []string
	claim := func() { c = h.run() }
	finish := func() { must(c.Transition(ctx, task.Outcome{Status: task.Completed, Summary: "done"})) }
	grow := func(n int) func() {
		return func() {
			path := filepath.Join(h.base, "completed", h.end(1, 0, task.Completed), "spill-of-a-tool")
			must(os.WriteFile(path, make([]byte, n), 0o600))
			files = append(files, path)
		}
	}
	shrink := func() {
		for _, f := range files {
			must(os.Remove(f))
		}
		files = nil
	}
	backup := func(success, verified time.Duration, why string) {
		for name, value := range map[string]string{"made": h.now.Add(-success).UTC().Format(time.RFC3339), "verified": h.now.Add(-verified).UTC().Format(time.RFC3339), damageMark(h.d.cfg.Backup.Dir): why} {
			must(h.d.store.SetMark(h.t.Context(), backupScope, name, value))
		}
	}
	well := func() { backup(time.Hour, time.Hour, "") }
	well()
	var broken, was string
	week := func() { h.now = h.now.AddDate(0, 0, 8) }
	var waiting []string
	owed := contextstore.Effect{Key: "k.comment", Kind: "comment", Data: json.RawMessage(`{}`)}
	var owes string
	return []provocation{
		{"slow", "", func() {
			h.end(3, time.Minute, task.Completed)
			week()
			h.end(3, 3*time.Minute, task.Completed)
		}, week},
		{"failures", "", func() { h.end(3, time.Second, task.Failed) }, week},
		{"disk_used", "", grow(1_500_000), shrink},
		{"disk_critical", "", grow(2_500_000), shrink},
		{"disk_room", "", func() { h.free = 900_000_000 }, func() { h.free = 1 << 40 }},
		{"disk_full", "", func() { h.free = 1 << 20 }, func() { h.free = 1 << 40 }},
		{"waiting", "", func() {
			for range 3 {
				waiting = append(waiting, h.queue("folder"))
			}
		}, func() {
			for _, uuid := range waiting {
				_, err := h.d.store.Control(ctx, uuid, contextstore.Stop, "hanako")
				must(err)
			}
		}},
		{"long_running", "RUN", func() { claim(); h.now = h.now.Add(6*time.Hour + time.Minute) }, func() { finish() }},
		{"stale_owner", "RUN", func() { claim(); h.now = h.now.Add(2 * time.Minute) }, func() { finish() }},
		{"unreachable", "github", func() { h.hub.Down(true); h.now = h.now.Add(time.Hour); h.poll() }, func() { h.hub.Down(false); h.now = h.now.Add(time.Hour); h.poll() }},
		{"login_refused", "github", func() {
			h.hub.OnRequest(func(*githubtest.Request) *githubtest.Fault {
				return &githubtest.Fault{Status: 401, Message: "Bad credentials"}
			})
			h.now = h.now.Add(time.Hour)
			h.poll()
		}, func() { h.hub.OnRequest(nil); h.now = h.now.Add(time.Hour); h.poll() }},
		{"channel_down", "slack", func() { h.down = errors.New("token_revoked") }, func() { h.down = nil }},
		{"channel_shared", "slack", func() { h.shared = errors.New("2 connections") }, func() { h.shared = nil }},
		{"models_down", "MODEL", func() { h.modelGone.Store(true) }, func() { h.modelGone.Store(false) }},
		{"undelivered", "", func() {
			owes = h.queue("github")
			run, _, err := h.d.store.Claim(ctx, owes)
			must(err)
			must(run.Transition(ctx, task.Outcome{Status: task.Completed, Summary: "done"}, owed))
			h.now = h.now.Add(61 * time.Minute)
		}, func() { must(h.d.store.Acknowledge(ctx, owes, owed, "there")) }},
		{"given_up", "slack", func() {
			must(h.d.inbox.Put(ctx, channel.Event{Channel: channel.Slack, ID: "Ev1", Body: []byte("x"), ReceivedAt: h.now}))
			all, err := h.d.store.WaitingInbox(ctx)
			must(err)
			_, err = h.d.store.ChangeInbox(ctx, nil, []contextstore.Settled{{Seq: all[0].Seq, Failed: "broken"}})
			must(err)
		}, func() { h.now = h.now.Add(givenUpFor) }},
		{"not_loaded", h.dir + "/prompts/policy.md", func() { h.write("prompts/policy.md", "\x00") }, func() { h.write("prompts/policy.md", "Be quick.") }},
		{"backup_failed", "", func() { backup(time.Hour, time.Hour, "no such bucket") }, well},
		{"backup_late", "", func() { backup(37*time.Hour, time.Hour, "") }, well},
		{"backup_unverified", "", func() { backup(time.Hour, 37*time.Hour, "") }, well},
		{"budget_near", "budget.day.max_tokens", func() {
			_, err := h.d.store.ReserveDay(ctx, contextstore.DayRun{UUID: "r", User: "ken"}, dayLimits(h.d.cfg), contextstore.Amount{}, contextstore.Amount{}, contextstore.Amount{Tokens: 900})
			must(err)
			must(h.d.store.SettleDay(ctx, contextstore.DayRun{UUID: "r", User: "ken"}, contextstore.Amount{Tokens: 900}, nil))
		}, func() { h.now = h.now.AddDate(0, 0, 1) }},
		{"maintenance_failed", "index", func() {
			broken = filepath.Join(h.base, "completed", h.end(1, 0, task.Completed), contextstore.MetadataFile)
			raw, err := os.ReadFile(broken)
			must(err)
			was = string(raw)
			must(os.WriteFile(broken, []byte("no JSON"), 0o600))
			must(h.d.night().do(ctx, h.d.night().steps(), true, func(NightStep) {}))
		}, func() {
			must(os.WriteFile(broken, []byte(was), 0o600))
			must(h.d.night().do(ctx, h.d.night().steps(), true, func(s NightStep) { must(s.Err) }))
		}},
	}
}

// Each alert is provoked for real: it begins, is told once by each way and seen wherever alerts are
// seen, and ends, which is told once.
func TestEachAlertBeginsIsToldAndEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("a forge that is down is tried again for some seconds")
	}
	t.Parallel()
	h := newAlertHouse(t)
	var names []string
	for _, p := range h.provocations() {
		h.poll()
		p.begin()
		switch p.about {
		case "RUN":
			all, err := filepath.Glob(filepath.Join(h.base, "running", "*"))
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			p.about = contextstore.Short(filepath.Base(all[0]))
		case "MODEL":
			p.about = h.d.cfg.LLM.OpenAI.BaseURL
		}
		names = append(names, p.name)
		before := h.told(p.name, p.about) // while something else was provoked
		since := func() (times [3][2]int) {
			for i, n := range h.told(p.name, p.about) {
				times[i] = [2]int{n[0] - before[i][0], n[1] - before[i][1]}
			}
			return times
		}
		h.look()
		if times := since(); times != [3][2]int{} {
			t.Errorf("%s: told at once: %v", p.name, times)
		}
		for range 3 {
			h.now = h.now.Add(alertAfter)
			h.look()
		}
		if times := since(); times != [3][2]int{{1, 0}, {1, 0}, {1, 0}} {
			t.Errorf("%s %s begins: %v", p.name, p.about, times)
		}
		if metrics, health := h.shown(p.name, p.about); !metrics || !health {
			t.Errorf("%s: in /metrics %v, in tori health %v", p.name, metrics, health)
		}
		if !strings.Contains(h.log.String(), "alert="+p.name+" ") {
			t.Errorf("%s is not in the log", p.name)
		}
		p.mend()
		h.look()
		h.now = h.now.Add(alertOver)
		for range 2 {
			h.look()
		}
		if times := since(); times != [3][2]int{{1, 1}, {1, 1}, {1, 1}} {
			t.Errorf("%s %s ends: %v", p.name, p.about, times)
		}
		if metrics, health := h.shown(p.name, p.about); metrics || health {
			t.Errorf("%s is over: in /metrics %v, in tori health %v", p.name, metrics, health)
		}
	}
	if n, err := h.d.store.Marks(t.Context(), toldScope); err != nil || len(n) > 2*2*len(names) {
		t.Error(n, err)
	}
	if strings.Contains(h.log.String(), "secret-of-hook") {
		t.Error("the log has the address of the webhook")
	}
	page, err := os.ReadFile("../../docs/operations.md")
	h.must(err)
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^### ([a-z_]+)$`).FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, m[1])
	}
	slices.Sort(names)
	slices.Sort(documented)
	if !slices.Equal(names, documented) {
		t.Errorf("provoked are\n%q\ndocumented are\n%q", names, documented)
	}
}
