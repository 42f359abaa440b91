package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/config"
	"toritsugi/internal/routing"
)

// said1 is an event of the vendor of a test.
type said1 struct{ Session, ID, User, Text string }

// pressed1 is one of a button.
type pressed1 struct {
	said1
	Question string
}

// vendor is a member of the family whose events are those of said1. What it is to post
// stands in a file, a line each.
type vendor struct {
	path   string
	in     channel.Inbox
	refuse func() error // why it takes no post; nil for always

	mu sync.Mutex
}

func (v *vendor) Kind() channel.Kind { return channel.Slack }

func (v *vendor) Post(_ context.Context, p channel.Post) error {
	if v.refuse != nil {
		if err := v.refuse(); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	f, err := os.OpenFile(v.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	line, err := json.Marshal(p)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
	}
	return err
}

func (v *vendor) Receive(ctx context.Context, e channel.Event, h channel.EventHandler) error {
	var s pressed1
	if err := json.Unmarshal(e.Body, &s); err != nil {
		return nil
	}
	return h.Handle(ctx, channel.Message{Channel: channel.Slack, SessionID: s.Session, ID: s.ID, User: s.User, UserText: s.Text, ReceivedAt: e.ReceivedAt, Question: s.Question})
}

// ServeHTTP takes an event.
func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var s said1
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if err == nil {
		err = v.in.Put(r.Context(), channel.Event{Channel: channel.Slack, ID: s.ID, Queue: s.Session, Body: body, ReceivedAt: time.Now()})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// withVendor is the opener of a daemon with one.
func withVendor(path string) opener {
	return func(_ *daemon, in channel.Inbox, _ *guard) ([]member, error) {
		v := &vendor{path: path, in: in}
		return []member{{Receiver: v, hooks: map[string]http.Handler{"POST /webhooks/slack/events": v}}}, nil
	}
}

// posted are the posts so far.
func posted(t *testing.T, path string) (all []channel.Post) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		var p channel.Post
		if json.Unmarshal(line, &p) != nil {
			continue // it is being written
		}
		all = append(all, p)
	}
	return all
}

// send has the vendor send an event, and returns the status.
func send(t *testing.T, at, host string, s any) int {
	t.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/webhooks/slack/events", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	_ = a.Body.Close()
	return a.StatusCode
}

const slackSettings = "serve: {listen: '127.0.0.1:0', public_url: 'https://bot.example'}\nchannels: {slack: {bot_token: xoxb-test, app_token: xapp-test, allow_from: [U1, U3], entry: chat}}\n"

// newVendorHouse is a house whose Chat answers after a moment.
func newVendorHouse(t *testing.T) *chatHouse {
	t.Helper()
	h := newChatHouse(t, slackSettings)
	raw, err := os.ReadFile(h.config)
	h.must(err)
	h.write("config.yaml", strings.Replace(string(raw), "serve: {listen: ''}\n", "", 1))
	h.write("script.yaml", strings.Repeat("- {say: As you say., delay_ms: 20}\n", 200))
	return h
}

// until waits until ok says so, a file at a time.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 9000 {
		if ok() {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// tori serve answers in a channel those who are on its list, by events that reach it at its
// public name, each once.
func TestServeSpeaks(t *testing.T) {
	t.Parallel()
	h := newVendorHouse(t)
	path := filepath.Join(h.dir, "posts")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan ServeStarted, 1)
	var log bytes.Buffer
	env := h.environment()
	env.Log = &log
	var ended error
	race(func() {
		ended = serve(ctx, env, ServeOptions{Config: h.config, AllowUnsandboxed: true}, withVendor(path), func(s ServeStarted) { started <- s })
		close(started)
	}, func() {
		defer cancel()
		s := <-started
		if !slices.Contains(s.Sources, "slack") {
			t.Errorf("%+v", s)
			return
		}
		for i, say := range []said1{
			{"slack:T1:C1:1", "m1", "slack:U1", "Good morning."}, {"slack:T1:C1:1", "m1", "slack:U1", "Good morning."},
			{"slack:T1:C1:1", "m2", "slack:U2", "Let me in."}, {"slack:T1:C1:1", "m3", "slack:U2", "Please."}, {"slack:T1:C1:1", "m4", "line:U1", "Or me."},
			{"slack:T1:C2:1", "m5", "slack:U3", "/show channel"},
		} {
			if code := send(t, s.Listen, "bot.example", say); code != http.StatusOK {
				t.Errorf("%d: %d", i, code)
			}
		}
		for host, want := range map[string]int{"other.example": http.StatusMisdirectedRequest, s.Listen: http.StatusServiceUnavailable} {
			if code := send(t, s.Listen, host, said1{Text: strings.Repeat("a", 2<<20)}); code != want {
				t.Errorf("%s: %d", host, code)
			}
		}
		until(t, "two answers", func() bool { return len(posted(t, path)) >= 2 })
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Listen+"/metrics", nil)
		h.must(err)
		a, err := http.DefaultClient.Do(r)
		h.must(err)
		b, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if err != nil || !strings.Contains(string(b), "tori_inbox_events ") || !strings.Contains(string(b), `tori_chat_jobs{channel="slack",status="queued"} 0`) {
			t.Errorf("%v %s", err, b)
		}
	})
	if ended != nil {
		t.Error(ended)
	}
	all := posted(t, path)
	got := map[string]string{}
	for _, p := range all {
		got[p.ReplyTo] = p.Text
	}
	if len(all) != 2 || got["m1"] != "As you say." || got["m5"] != "Channel slack, session slack:T1:C2:1" {
		t.Errorf("%+v", all)
	}
	if n := strings.Count(log.String(), "channels.slack.allow_from"); n != 1 || !strings.Contains(log.String(), "U2") {
		t.Errorf("the log says %d times how to add them: %s", n, log.String())
	}
	sessions, err := filepath.Glob(filepath.Join(h.base, "sessions", "*"))
	if err != nil || len(sessions) != 2 {
		t.Errorf("%q %v", sessions, err)
	}
}

// tori serve is killed at any moment: between an event and its turn, in an answer, between the
// answer and its post. Each event that it took is answered once, in order; a vendor shows a
// post once whose key it knows.
func TestServeKilledWhileSpeaking(t *testing.T) {
	if config := os.Getenv("SERVE_TEST_CONFIG"); config != "" {
		h := &chatHouse{t: t, env: map[string]string{}}
		err := serve(t.Context(), h.environment(), ServeOptions{Config: config, AllowUnsandboxed: true, Quiet: true}, withVendor(os.Getenv("SERVE_TEST_POSTS")), func(s ServeStarted) { fmt.Println("at", s.Listen) })
		t.Fatal(err)
	}
	if testing.Short() {
		t.Skip("processes, one after the other")
	}
	t.Parallel()
	h := newVendorHouse(t)
	path := filepath.Join(h.dir, "posts")
	const sessions = 4
	taken := [sessions][]string{}
	n := 0
	start := func() (p *exec.Cmd, at string) {
		p = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServeKilledWhileSpeaking$") //nolint:gosec // this program
		p.Env = append(os.Environ(), "SERVE_TEST_CONFIG="+h.config, "SERVE_TEST_POSTS="+path)
		out, err := p.StdoutPipe()
		h.must(err)
		h.must(p.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if a, ok := strings.CutPrefix(lines.Text(), "at "); ok {
				return p, a
			}
		}
		t.Fatal("it does not start")
		return nil, ""
	}
	count := 0
	for round := 0; round < 12 || count < 20 && round < 60; round++ { // on a machine that does much besides, few a round
		p, at := start()
		kill := time.AfterFunc(rand.N(150*time.Millisecond), func() { _ = p.Process.Kill() })
		for range 200 {
			i := n % sessions
			n++
			s := said1{fmt.Sprint("slack:T1:C1:", i), fmt.Sprint("m", n), "slack:U1", fmt.Sprint("message ", n)}
			code := send(t, at, "bot.example", s)
			if code != http.StatusOK {
				break // killed: the vendor would send it again
			}
			taken[i] = append(taken[i], s.ID)
			count++
		}
		_ = p.Wait()
		kill.Stop()
	}
	p, at := start()
	for i := range taken { // one that was answered is sent again
		if len(taken[i]) > 0 && send(t, at, "bot.example", said1{fmt.Sprint("slack:T1:C1:", i), taken[i][0], "slack:U1", "again"}) != http.StatusOK {
			t.Error("not taken again")
		}
	}
	answers := func() (all [sessions][]string) {
		seen := map[string]bool{}
		for _, p := range posted(t, path) {
			if !seen[p.Key] {
				seen[p.Key] = true
				if p.Text != "As you say." {
					t.Errorf("%+v", p)
				}
				i := p.SessionID[len(p.SessionID)-1] - '0'
				all[i] = append(all[i], p.ReplyTo)
			}
		}
		return all
	}
	until(t, "an answer to each message", func() bool {
		got := answers()
		for i := range taken {
			for _, id := range taken[i] {
				if !slices.Contains(got[i], id) {
					return false
				}
			}
		}
		return true
	})
	_ = p.Process.Kill()
	_ = p.Wait()
	for i, got := range answers() {
		rest := got
		for _, id := range taken[i] { // one that was taken while the answer to its sender got lost is there besides
			at := slices.Index(rest, id)
			if at < 0 {
				t.Errorf("session %d: %s is not answered in order: %v", i, id, got)
				break
			}
			rest = rest[at+1:]
		}
		unique := slices.Compact(slices.Sorted(slices.Values(got)))
		if len(unique) != len(got) {
			t.Errorf("session %d: something is answered twice: %v", i, got)
		}
	}
	if count < 20 {
		t.Errorf("%d messages", count)
	}
	t.Logf("%d messages, %d posts", count, len(posted(t, path)))
}

// Each channel that the settings know is one of the contract of messages (route §4.1), and has
// jobs that are worked on.
func TestKindsOfChannels(t *testing.T) {
	t.Parallel()
	sources := chatSources()
	for _, c := range (config.Channels{}).Served() {
		m, err := json.Marshal(channel.Message{Channel: channel.Kind(c.Kind), SessionID: c.Kind + ":1", UserText: "x", ReceivedAt: time.Now(), ID: "1", User: c.Kind + ":u"})
		if err == nil {
			err = routing.InputMessage().Check(m)
		}
		if err != nil || !slices.Contains(sources, c.Kind) {
			t.Errorf("%s: internal/routing/schemas/input_message.json: %v", c.Kind, err)
		}
	}
}
