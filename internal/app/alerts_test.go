package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// What is wrong is told once when it begins and once when it is over, whatever is restarted or
// killed meanwhile; what comes and goes is one alert, and what is over at once is none.
func TestAlertsAreToldOnce(t *testing.T) {
	t.Parallel()
	for lang, says := range map[i18n.Lang][2]string{
		i18n.English:  {"🚨 github: not reached yet\nLook at the network", "✅ Over: github: not reached yet\n(alert unreachable github)"},
		i18n.Japanese: {"🚨 github: まだ接続できていません\nネットワーク", "✅ 解消しました: github: まだ接続できていません\n（アラート unreachable github）"},
	} {
		t.Run(string(lang), func(t *testing.T) {
			t.Parallel()
			dir, now := t.TempDir(), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
			var wrong []alert
			var told []string
			var unknown, deaf error
			var log bytes.Buffer
			keys := map[string]bool{}
			open := func() *alarms {
				s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: dir, Redact: func(s string) string { return s }})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				return &alarms{store: s, now: func() time.Time { return now }, lang: lang, log: slog.New(slog.NewTextHandler(&log, nil)),
					mask:  func(s string) string { return strings.ReplaceAll(s, "hunter2", "[SECRET]") },
					wrong: func(context.Context) ([]alert, error) { return wrong, unknown },
					ways: []teller{{name: "chat", once: true, tell: func(_ context.Context, n news) error {
						if deaf == nil && !keys[n.Key] {
							keys[n.Key], told = true, append(told, n.Text)
						}
						return deaf
					}}}}
			}
			a := open()
			for _, step := range []struct {
				name string
				wait time.Duration
				do   func()
				told int // texts by then
				open int
			}{
				{"it begins", 0, func() {
					wrong = []alert{{Name: "unreachable", About: "github", Why: i18n.E("alert.not_reached", "github")}}
				}, 0, 0},
				{"it is over at once", 30 * time.Second, func() { wrong = nil }, 0, 0},
				{"it begins again", 45 * time.Second, func() {
					wrong = []alert{{Name: "unreachable", About: "github", Why: i18n.E("alert.not_reached", "github")}}
				}, 0, 0},
				{"it lasts, and nobody can be told", time.Minute, func() { deaf = errors.New("no room") }, 0, 1},
				{"killed before it is told", time.Minute, func() { deaf, a = nil, open() }, 1, 1},
				{"killed behind", time.Minute, func() {
					all, err := a.store.Alerts(t.Context())
					if err != nil || len(all) != 1 || !all[0].Told {
						t.Fatal(all, err)
					}
					all[0].Told = false // as it stood before
					if err := a.store.PutAlert(t.Context(), all[0]); err != nil {
						t.Fatal(err)
					}
					a = open()
				}, 1, 1},
				{"it goes", time.Minute, func() { wrong = nil }, 1, 1},
				{"and comes", alertOver - time.Second, func() {
					wrong = []alert{{Name: "unreachable", About: "github", Why: i18n.E("alert.not_reached", "github")}}
				}, 1, 1},
				{"what is wrong is not known", alertOver, func() { wrong, unknown = nil, errors.New("no database") }, 1, 1},
				{"it is known again", alertOver, func() { unknown = nil }, 1, 1},
				{"another one begins", alertOver - time.Second, func() { wrong = []alert{{Name: "disk_full", Why: errors.New("hunter2"), After: 5 * time.Minute}} }, 1, 1},
				{"it is over while nobody can be told", time.Second, func() { deaf = errors.New("no room") }, 1, 0},
				{"a restart", time.Second, func() { deaf, a = nil, open() }, 2, 0},
				{"the other one lasts", 5 * time.Minute, func() {}, 3, 1},
			} {
				now = now.Add(step.wait)
				step.do()
				if err := a.look(t.Context()); err != nil && deaf == nil && unknown == nil {
					t.Fatal(step.name, err)
				}
				n := 0
				for _, v := range a.counts() {
					n += v
				}
				if len(told) != step.told || n != step.open {
					t.Fatalf("%s: %d open, told %q", step.name, n, told)
				}
			}
			if !strings.HasPrefix(told[0], says[0]) || told[1] != says[1] || !strings.Contains(told[2], "[SECRET]") {
				t.Errorf("%q", told)
			}
			if n := strings.Count(log.String(), "Alert: github: not reached yet"); n != 1 || strings.Count(log.String(), "An alert is over") != 1 {
				t.Error(log.String())
			}
		})
	}
}

// vendorDaemon is a daemon in the hands of a test, with a channel whose posts stand in a file.
// now is its clock.
func (h *chatHouse) vendorDaemon(posts string, now func() time.Time, change func(*member)) *daemon {
	h.t.Helper()
	env := h.environment()
	env.Now = now
	return h.daemonIn(env, posts, change)
}

func (h *chatHouse) daemonIn(env Env, posts string, change func(*member)) *daemon {
	h.t.Helper()
	d := newDaemon(env, ServeOptions{Config: h.config, AllowUnsandboxed: true, Quiet: true})
	h.must(d.prepareDaemon(h.t.Context()))
	d.store.StatFS = func(string) (contextstore.FileSystem, error) { return contextstore.FileSystem{Free: 1 << 40}, nil }
	h.must(d.openChannels(h.t.Context(), func(d *daemon, in channel.Inbox, g *guard) ([]member, error) {
		all, err := withVendor(posts)(d, in, g)
		if change != nil {
			change(&all[0])
		}
		return all, err
	}))
	h.t.Cleanup(func() {
		d.inbox.Close()
		d.endTalks()
		_ = d.store.Close()
		_ = d.models.Close()
	})
	return d
}

// What can be wrong with a daemon is found, and told to channels.*.notify, also while it is quiet.
func TestWhatIsWrongIsTold(t *testing.T) {
	t.Parallel()
	h := newVendorHouse(t)
	const rules = "version: 1\nrules:\n- {name: plan, route: PLAN, priority: 10, match: {any: [{words: [plan]}]}, evidence_label: plan}\n"
	h.write("rules.yaml", rules)
	h.write("prompts/policy.md", "Be brief.")
	h.write("config.yaml", "language: en\nsandbox: {mode: none}\nllm: {script: {file: "+filepath.Join(h.dir, "script.yaml")+"}}\npause_resume: {enabled: false}\n"+
		"routing: {rules_file: "+filepath.Join(h.dir, "rules.yaml")+", llm: {chat_provider: script, coder_provider: script, coder2_provider: script}}\n"+
		"chat: {prompts_dir: "+filepath.Join(h.dir, "prompts")+"}\ncontext_storage: {base_dir: "+h.base+", durability: os}\n"+
		"channels: {slack: {bot_token: xoxb-test, app_token: xapp-test, allow_from: [U1], entry: chat, notify: ['slack:T1:CALERTS'], quiet: '00:00-23:59'}}\n")
	posts, now := filepath.Join(h.dir, "posts"), time.Now()
	var down, shared error
	d := h.vendorDaemon(posts, func() time.Time { return now }, func(m *member) {
		m.ready, m.shared = func() error { return down }, func() error { return shared }
	})
	names := func() (all []string) {
		wrong, err := d.wrong(t.Context())
		h.must(err)
		for _, w := range wrong {
			all = append(all, w.Name+" "+strings.TrimPrefix(w.About, h.dir))
		}
		slices.Sort(all)
		return all
	}
	if all := names(); len(all) != 0 {
		t.Errorf("%q", all)
	}
	down, shared = errors.New("token_revoked"), errors.New("2 connections")
	h.write("rules.yaml", "version: what\n")
	h.write("prompts/policy.md", "\x00")
	h.must(d.inbox.Put(t.Context(), channel.Event{Channel: channel.Slack, ID: "Ev1", Body: []byte("x"), ReceivedAt: now}))
	waiting, err := d.store.WaitingInbox(t.Context())
	h.must(err)
	_, err = d.store.ChangeInbox(t.Context(), nil, []contextstore.Settled{{Seq: waiting[0].Seq, Failed: "broken"}})
	h.must(err)
	want := []string{"channel_down slack", "channel_shared slack", "given_up slack", "not_loaded /prompts/policy.md", "not_loaded /rules.yaml"}
	if all := names(); !slices.Equal(all, want) {
		t.Errorf("%q", all)
	}
	if why := d.Ready(); len(why) != 1 || why[0] != "channels.slack: token_revoked" {
		t.Errorf("%q", why)
	}
	told := func() (all []string) {
		h.must(d.alarms.look(t.Context()))
		for _, p := range posted(t, posts) {
			if p.SessionID == "slack:T1:CALERTS" {
				all = append(all, p.Text)
			}
		}
		return all
	}
	told()
	now = now.Add(alertAfter)
	for range 2 {
		if all := told(); len(all) != len(want) || !strings.Contains(strings.Join(all, "\n"), "1 events of slack could not be worked on and were given up, the latest is Ev1") {
			t.Errorf("%q", all)
		}
	}
	all, err := d.store.Alerts(t.Context())
	h.must(err)
	for _, a := range all { // as a kill behind the posts leaves it
		a.Told = false
		h.must(d.store.PutAlert(t.Context(), a))
	}
	if n := len(told()); n != len(want) {
		t.Errorf("told %d times", n)
	}
	down, shared = nil, nil
	h.write("rules.yaml", rules)
	h.write("prompts/policy.md", "Be quick.")
	now = now.Add(givenUpFor)
	told()
	now = now.Add(alertOver)
	if all := told(); len(all) != 2*len(want) || len(names()) != 0 || len(d.Alerts()) != 0 {
		t.Errorf("%q %q %v", all, names(), d.Alerts())
	}
}
