package slack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
	"toritsugi/internal/i18n"
)

const (
	secret  = "8f742231b10e8888abcd99yyyzzz85a5"
	thread  = "1700000000.000100"
	session = "slack:T1:C1:" + thread
)

// inbox keeps events in memory.
type inbox struct {
	mu    sync.Mutex
	known map[string]bool
	wait  []channel.Event
	fail  error
	puts  int
}

func (b *inbox) Put(_ context.Context, all ...channel.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	b.puts++
	for _, e := range all {
		if len(e.Body) > channel.MaxEvent {
			return errors.New("too large")
		}
		if !b.known[e.ID] {
			b.known[e.ID] = true
			b.wait = append(b.wait, e)
		}
	}
	return nil
}

// rig is a Slack in a workspace.
type rig struct {
	t     *testing.T
	f     *fake
	s     *Slack
	inbox *inbox
	h     *channeltest.Handler
	log   *strings.Builder
	n     int
}

func newRig(t *testing.T, h *channeltest.Handler, change func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, f: newFake(t), h: h, inbox: &inbox{known: map[string]bool{}}, log: &strings.Builder{}}
	r.restart(change)
	return r
}

// restart begins a process anew.
func (r *rig) restart(change func(*Options)) {
	r.t.Helper()
	opt := Options{BotToken: botToken, AppToken: appToken, SigningSecret: secret, Allowed: func(user string) bool { return user == "U1" || user == "U2" }, BaseURL: "http://slack.test/api", HTTP: r.f.http, Inbox: r.inbox,
		Known: func(id string) bool { return id == session }, Mask: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[SECRET]") }, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(r.log, nil)), Lang: i18n.English}
	if change != nil {
		change(&opt)
	}
	s, err := New(opt)
	if err != nil {
		r.t.Fatal(err)
	}
	r.s, r.h.Channel = s, s
	r.t.Cleanup(s.Close)
}

// call posts to a webhook as Slack does.
func (r *rig) call(path, contentType, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	sign(req, body, time.Now())
	if change != nil {
		change(req)
	}
	w := httptest.NewRecorder()
	mux := http.NewServeMux()
	for pattern, h := range r.s.Handlers() {
		mux.Handle(pattern, h)
	}
	mux.ServeHTTP(w, req)
	return w
}

func sign(req *http.Request, body string, at time.Time) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, "v0:"+stamp+":"+body)
	req.Header.Set("X-Slack-Request-Timestamp", stamp)
	req.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}

// event sends an event by HTTP; its envelope is Slack's.
func (r *rig) event(event map[string]any) *httptest.ResponseRecorder {
	r.t.Helper()
	return r.call("/webhooks/slack/events", "application/json", r.envelope(event), nil)
}

func (r *rig) envelope(event map[string]any) string {
	r.n++
	b, err := json.Marshal(map[string]any{"token": "verification", "team_id": "T9", "enterprise_id": "E1", "api_app_id": "A1", "is_ext_shared_channel": true, "type": "event_callback", "event_id": fmt.Sprint("Ev", r.n),
		"event_time": time.Now().Unix(), "authorizations": []any{map[string]any{"enterprise_id": "E1", "team_id": "T1", "user_id": bot, "is_bot": true}}, "event": event})
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// interact sends an interaction by HTTP.
func (r *rig) interact(payload map[string]any) {
	r.t.Helper()
	r.n++
	if payload["trigger_id"] == nil {
		payload["trigger_id"] = fmt.Sprint("13345224609.738474920.", r.n)
	}
	payload["response_url"] = "https://hooks.slack.com/actions/secret"
	b, err := json.Marshal(payload)
	if err != nil {
		r.t.Fatal(err)
	}
	if w := r.call("/webhooks/slack/interactive", "application/x-www-form-urlencoded", url.Values{"payload": {string(b)}}.Encode(), nil); w.Code != http.StatusOK || w.Body.Len() > 0 {
		r.t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// work works on what is in the inbox, as its owner would.
func (r *rig) work() {
	r.t.Helper()
	for {
		r.inbox.mu.Lock()
		if len(r.inbox.wait) == 0 {
			r.inbox.mu.Unlock()
			return
		}
		e := r.inbox.wait[0]
		r.inbox.wait = r.inbox.wait[1:]
		r.inbox.mu.Unlock()
		if err := r.s.Receive(r.t.Context(), e, r.h); err != nil {
			r.t.Fatal(err)
		}
	}
}

// says sends a message and works on it.
func (r *rig) says(event map[string]any) {
	r.t.Helper()
	if w := r.event(event); w.Code != http.StatusOK {
		r.t.Fatalf("%d %s", w.Code, w.Body)
	}
	r.work()
}

// in is a message of U1 in the session's thread.
func in(ts, text string) map[string]any {
	return map[string]any{"type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": text, "ts": ts, "thread_ts": thread}
}

func with(event map[string]any, more ...any) map[string]any {
	for i := 0; i < len(more); i += 2 {
		event[more[i].(string)] = more[i+1]
	}
	return event
}

// press presses a button of the latest request.
func (r *rig) press(user, action string, change func(payload map[string]any)) {
	r.t.Helper()
	r.f.mu.Lock()
	var m *posted
	for _, x := range r.f.messages {
		if strings.Contains(x.blocks, `"actions"`) && !x.deleted {
			m = x
		}
	}
	r.f.mu.Unlock()
	if m == nil {
		r.t.Fatal("no message has buttons")
	}
	var blocks []struct {
		BlockID  string `json:"block_id"`
		Elements []struct {
			ActionID string `json:"action_id"`
			Value    string
		}
	}
	if err := json.Unmarshal([]byte(m.blocks), &blocks); err != nil {
		r.t.Fatal(err)
	}
	var actions []any
	for _, b := range blocks {
		for _, e := range b.Elements {
			if e.ActionID == action {
				actions = append(actions, map[string]any{"type": "button", "block_id": b.BlockID, "action_id": e.ActionID, "value": e.Value, "action_ts": "1.1"})
			}
		}
	}
	payload := map[string]any{"type": "block_actions", "user": map[string]any{"id": user, "team_id": "T1"}, "team": map[string]any{"id": "T1"}, "channel": map[string]any{"id": m.Channel},
		"container": map[string]any{"type": "message", "message_ts": m.TS, "channel_id": m.Channel, "thread_ts": m.ThreadTS},
		"message":   map[string]any{"type": "message", "user": bot, "bot_id": "BBOT", "ts": m.TS, "thread_ts": m.ThreadTS, "text": m.Text}, "actions": actions}
	if change != nil {
		change(payload)
	}
	r.interact(payload)
	r.work()
}

func TestConformance(t *testing.T) {
	t.Parallel()
	channeltest.Conformance(t, synctest.Test, func(t *testing.T, h *channeltest.Handler) channeltest.Fixture {
		r := newRig(t, h, nil)
		return channeltest.Fixture{Channel: r.s, Session: session,
			Say: func(text string) { r.says(in(fmt.Sprintf("1700000001.%06d", r.n), Escape(text))) },
			Decide: func(grant bool) {
				action := "deny"
				if grant {
					action = "approve"
				}
				r.press("U1", action, nil)
			},
			Press: func(n int) { r.press("U1", fmt.Sprint("choice", n), nil) },
			Shown: func() string { time.Sleep(throttle); synctest.Wait(); return r.f.shown() },
		}
	})
}
