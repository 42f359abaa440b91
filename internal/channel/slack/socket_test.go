package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// running is Socket Mode under way; what it returns stops it, and tells its error.
func running(t *testing.T, r *rig) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.s.Run(ctx) }()
	var once error
	done := false
	stop = func() error {
		if !done {
			cancel()
			once, done = <-ended, true
		}
		return once
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// send sends an envelope by Socket Mode.
func (r *rig) send(c *websocket.Conn, id, kind, payload string) {
	r.t.Helper()
	if err := c.WriteJSON(map[string]any{"envelope_id": id, "type": kind, "accepts_response_payload": false, "payload": json.RawMessage(payload)}); err != nil {
		r.t.Fatal(err)
	}
}

// acknowledged are the envelopes that were acknowledged by now.
func (r *rig) acknowledged() (all []string) {
	synctest.Wait()
	for len(r.f.acked) > 0 {
		all = append(all, <-r.f.acked)
	}
	return all
}

func TestSocketMode(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		stop := running(t, r)
		c := <-r.f.opened
		for n := range 40 {
			r.send(c, fmt.Sprint("e", n), "events_api", r.envelope(in(fmt.Sprintf("1700000002.%06d", n), fmt.Sprint("text ", n))))
		}
		r.send(c, "c1", "slash_commands", `{"command":"/tori","text":"by command","user_id":"U1","channel_id":"C1","trigger_id":"1.1"}`)
		r.send(c, "i1", "interactive", `{"type":"message_action","callback_id":"work_on_this","trigger_id":"1.2","user":{"id":"U1"},"channel":{"id":"C1"},"message":{"ts":"1700000001.1","text":"by shortcut"}}`)
		r.send(c, "bad", "events_api", `{"type":"event_callback","event":{"type":"message","files":7}}`)
		acked := r.acknowledged()
		if len(acked) != 43 || acked[0] != "e0" || acked[42] != "bad" {
			t.Errorf("%q", acked)
		}
		r.work()
		told := r.h.Told()
		if len(told) != 42 || told[39].UserText != "text 39" || told[40].UserText != "by command" || told[41].UserText != "by shortcut" {
			t.Fatalf("%d messages", len(told))
		}
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestWhatIsNotKeptIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		running(t, r)
		c := <-r.f.opened
		r.inbox.mu.Lock()
		r.inbox.fail = errors.New("disk full")
		r.inbox.mu.Unlock()
		body := r.envelope(in("1700000002.1", "hello"))
		r.send(c, "e1", "events_api", body)
		if acked := r.acknowledged(); len(acked) != 0 {
			t.Errorf("%q", acked)
		}
		r.inbox.mu.Lock()
		r.inbox.fail = nil
		r.inbox.mu.Unlock()
		r.send(c, "e2", "events_api", body)
		r.send(c, "e3", "events_api", body)
		if acked := r.acknowledged(); len(acked) != 2 || len(r.inbox.wait) != 1 {
			t.Errorf("%q, %d events", acked, len(r.inbox.wait))
		}
	})
}

func TestReconnects(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		running(t, r)
		c := <-r.f.opened
		time.Sleep(time.Minute / 2) // it held
		r.send(c, "e1", "events_api", r.envelope(in("1700000002.1", "one")))
		if err := c.WriteJSON(map[string]any{"type": "disconnect", "reason": "refresh_requested"}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		c = <-r.f.opened
		if d := time.Since(began); d > 0 {
			t.Errorf("it waited for %v though Slack asked for it", d)
		}
		r.send(c, "e2", "events_api", r.envelope(in("1700000002.2", "two")))
		synctest.Wait()
		_ = c.Close() // an outage
		r.f.mu.Lock()
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if time.Since(began) < time.Minute {
				return 200, `{"ok":false,"error":"fatal_error"}`, nil
			}
			if time.Since(began) < 10*time.Minute {
				return http.StatusServiceUnavailable, "", nil
			}
			return 0, "", nil
		}
		r.f.mu.Unlock()
		c = <-r.f.opened
		if d := time.Since(began); d > 12*time.Minute {
			t.Errorf("it took %v", d)
		}
		if n := len(r.f.methods("apps.connections.open")); n > 30 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		r.send(c, "e3", "events_api", r.envelope(in("1700000002.3", "three")))
		if acked := r.acknowledged(); strings.Join(acked, " ") != "e1 e2 e3" {
			t.Errorf("%q", acked)
		}
		r.f.mu.Lock()
		r.f.fail = nil
		r.f.mu.Unlock()
		r.work()
		var said []string
		for _, m := range r.h.Told() {
			said = append(said, m.UserText)
		}
		if strings.Join(said, " ") != "one two three" {
			t.Errorf("%q", said)
		}
		if strings.Contains(r.log.String(), "secret-ticket") {
			t.Error("the ticket is in the log")
		}
	})
}

func TestAnotherProgramHasTheAppToken(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		running(t, r)
		var c *websocket.Conn
		for _, step := range []struct {
			held      time.Duration // by the connection before
			strangers int           // as the hello of the next one counts them
			shared    bool
		}{{0, 0, false}, {time.Hour, 1, false}, {time.Hour, 2, true}, {time.Hour, 2, true}, {time.Hour, 0, false}} {
			r.f.mu.Lock()
			r.f.strangers = step.strangers
			r.f.mu.Unlock()
			for c != nil && step.held > 0 { // pings keep it
				time.Sleep(silence / 2)
				step.held -= silence / 2
				if err := c.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if c != nil {
				if err := c.WriteJSON(map[string]any{"type": "disconnect", "reason": "refresh_requested"}); err != nil {
					t.Fatal(err)
				}
			}
			c = <-r.f.opened
			synctest.Wait()
			if err := r.s.Shared(); (err != nil) != step.shared {
				t.Errorf("%+v: %v", step, err)
			}
		}
		if n := strings.Count(r.log.String(), "for the app token"); n != 1 {
			t.Errorf("the log says so %d times", n)
		}
	})
}

func TestAConnectionThatSaysNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		running(t, r)
		c := <-r.f.opened
		for range 5 { // pings keep it
			time.Sleep(silence / 2)
			if err := c.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := len(r.f.methods("apps.connections.open")); n != 1 {
			t.Errorf("%d connections", n)
		}
		<-r.f.opened
	})
}

func TestConnectionsThatEndAtOnceAreNotOpenedInALoop(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		stop := running(t, r)
		began := time.Now()
		for time.Since(began) < time.Hour {
			c := <-r.f.opened
			if err := c.WriteJSON(map[string]any{"type": "disconnect", "reason": "warning"}); err != nil {
				break
			}
		}
		if n := len(r.f.methods("apps.connections.open")); n > 120 {
			t.Errorf("%d connections in an hour", n)
		}
		_ = stop()
	})
}

func TestATokenThatWasRevokedEndsSocketMode(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.f.fail = func(call, func()) (int, string, map[string][]string) {
			return 200, `{"ok":false,"error":"token_revoked"}`, nil
		}
		err := r.s.Run(t.Context())
		if code(err) != "token_revoked" || !strings.Contains(err.Error(), "issue it anew") {
			t.Errorf("%v", err)
		}
		if err := r.s.Ready(); code(err) != "token_revoked" {
			t.Errorf("ready: %v", err)
		}
		r.f.fail = nil
		running(t, r)
		<-r.f.opened
		if err := r.s.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
	})
}

func TestOneWayInIsEnough(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		for name, test := range map[string]struct {
			change func(*Options)
			want   string
		}{
			"both":             {func(*Options) {}, ""},
			"no way":           {func(o *Options) { o.AppToken, o.SigningSecret = "", "" }, "no way in"},
			"a user's token":   {func(o *Options) { o.BotToken = "xoxp-1" }, "bot_token"},
			"another token":    {func(o *Options) { o.AppToken = "xoxb-1" }, "app_token"},
			"no address":       {func(o *Options) { o.BaseURL = "slack" }, "address"},
			"HTTP alone":       {func(o *Options) { o.AppToken = "" }, ""},
			"Socket Mode only": {func(o *Options) { o.SigningSecret = "" }, ""},
		} {
			opt := r.s.opt
			test.change(&opt)
			s, err := New(opt)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: %v", name, err)
			}
			if err != nil {
				continue
			}
			if got := len(s.Handlers()); (got == 3) != (opt.SigningSecret != "") {
				t.Errorf("%s: %d handlers", name, got)
			}
			if opt.AppToken == "" {
				if err := s.Run(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}
