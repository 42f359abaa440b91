package slack

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
)

const events = "/webhooks/slack/events"

// bubble is a test within a bubble of synctest, with a rig.
func bubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t, &channeltest.Handler{}, nil)) })
}

func TestWhatIsNotSignedBySlackIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		time.Sleep(time.Hour)
		body := r.envelope(in("1700000001.1", "hello"))
		for name, test := range map[string]struct {
			change func(*http.Request)
			body   string
			want   int
		}{
			"as it is":               {nil, body, http.StatusOK},
			"no signature":           {func(q *http.Request) { q.Header.Del("X-Slack-Signature") }, body, http.StatusUnauthorized},
			"no time":                {func(q *http.Request) { q.Header.Del("X-Slack-Request-Timestamp") }, body, http.StatusUnauthorized},
			"no hex":                 {func(q *http.Request) { q.Header.Set("X-Slack-Signature", "v0=zz") }, body, http.StatusUnauthorized},
			"another body":           {func(q *http.Request) { sign(q, body+" ", time.Now()) }, body, http.StatusUnauthorized},
			"another time":           {func(q *http.Request) { q.Header.Set("X-Slack-Request-Timestamp", "1") }, body, http.StatusUnauthorized},
			"replayed":               {func(q *http.Request) { sign(q, body, time.Now().Add(-6*time.Minute)) }, body, http.StatusUnauthorized},
			"ahead":                  {func(q *http.Request) { sign(q, body, time.Now().Add(6*time.Minute)) }, body, http.StatusUnauthorized},
			"a clock that is off":    {func(q *http.Request) { sign(q, body, time.Now().Add(-4*time.Minute)) }, body, http.StatusOK},
			"GET":                    {func(q *http.Request) { q.Method = http.MethodGet }, body, http.StatusMethodNotAllowed},
			"too large":              {nil, strings.Repeat(" ", channel.MaxRequest) + body, http.StatusRequestEntityTooLarge},
			"cut":                    {nil, body[:len(body)-9], http.StatusBadRequest},
			"no event":               {nil, `{"type":"event_callback","event_id":"Ev9"}`, http.StatusBadRequest},
			"an event of no place":   {nil, `{"type":"event_callback","event_id":"Ev9","event":{"type":"message","user":"U1"}}`, http.StatusBadRequest},
			"an id that is too long": {nil, `{"type":"event_callback","event_id":"` + strings.Repeat("x", 200) + `","event":{"type":"app_mention","user":"U1"}}`, http.StatusBadRequest},
			"an event of no use":     {nil, `{"type":"event_callback","event_id":"Ev9","event":{"type":"channel_created","channel":{"id":"C9"}}}`, http.StatusOK},
		} {
			if w := r.call(events, "application/json", test.body, test.change); w.Code != test.want {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		if len(r.inbox.wait) != 1 {
			t.Errorf("%d events", len(r.inbox.wait))
		}
		if s := r.log.String(); !strings.Contains(s, "6m0s apart") {
			t.Errorf("%s", s)
		}
	})
}

func TestURLVerification(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		w := r.call(events, "application/json", `{"token":"x","challenge":"3eZbrw1aB","type":"url_verification"}`, nil)
		if w.Code != http.StatusOK || w.Body.String() != "3eZbrw1aB" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

func TestAnEventIsTakenOnceAndOnlyWhenKept(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		body := r.envelope(in("1700000001.1", "hello"))
		r.inbox.fail = errors.New("disk full, password hunter2")
		if w := r.call(events, "application/json", body, nil); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d", w.Code)
		}
		if s := r.log.String(); !strings.Contains(s, "disk full") || strings.Contains(s, "hunter2") {
			t.Errorf("%s", s)
		}
		r.inbox.fail = nil
		for n := range 3 {
			w := r.call(events, "application/json", body, func(q *http.Request) { q.Header.Set("X-Slack-Retry-Num", string(rune('1'+n))) })
			if w.Code != http.StatusOK {
				t.Errorf("%d", w.Code)
			}
		}
		// The same text as a mention has another event id.
		r.says(with(in("1700000001.1", "hello"), "type", "app_mention"))
		if told := r.h.Told(); len(told) != 1 || told[0].ID != "C1.1700000001.1" {
			t.Errorf("%+v", told)
		}
	})
}

func TestWhatIsKeptOfAnEvent(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.event(with(in("1700000001.1", strings.Repeat("あ", 40000)), "blocks", []any{strings.Repeat("x", 100000)}))
		r.interact(map[string]any{"type": "message_action", "callback_id": workOnThis, "user": map[string]any{"id": "U1"}, "channel": map[string]any{"id": "C1"}, "message": map[string]any{"ts": "1.1", "text": "t"}})
		r.call("/webhooks/slack/commands", "application/x-www-form-urlencoded", url.Values{"token": {"verification"}, "command": {"/tori"}, "text": {"fix & mend"}, "user_id": {"U1"}, "channel_id": {"C1"}, "trigger_id": {"9.9"}}.Encode(), nil)
		if len(r.inbox.wait) != 3 {
			t.Fatalf("%d events", len(r.inbox.wait))
		}
		for _, e := range r.inbox.wait {
			var b body
			if err := json.Unmarshal(e.Body, &b); err != nil || len(e.Body) > channel.MaxEvent {
				t.Errorf("%v, %d bytes", err, len(e.Body))
			}
			for _, secret := range []string{"verification", "hooks.slack.com", "trigger_id", "738474920"} {
				if strings.Contains(string(e.Body)+e.ID, secret) {
					t.Errorf("%s is kept: %.200s", secret, e.Body)
				}
			}
		}
		if q := []string{r.inbox.wait[0].Queue, r.inbox.wait[1].Queue}; q[0] != "C1:"+thread || q[1] != "" {
			t.Errorf("%q", q)
		}
		r.work()
		if told := r.h.Told(); len(told) != 3 || !strings.HasSuffix(told[0].UserText, "\n[…]") || told[2].UserText != "fix & mend" {
			t.Errorf("%d", len(told))
		}
	})
}

func TestCommandsAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.restart(func(o *Options) { o.AtOnce = func(text string) bool { return text == "/stop" } })
		r.event(in("1700000001.1", "<@UBOT> /stop"))
		r.event(in("1700000001.2", "<@UBOT> please /stop"))
		if a, b := r.inbox.wait[0].Queue, r.inbox.wait[1].Queue; a != "" || b == "" {
			t.Errorf("%q %q", a, b)
		}
	})
}

func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"type":"event_callback","event_id":"E","event":{"type":"message","subtype":"message_changed","channel":"C1","message":{"text":"x","ts":"1.1"},"previous_message":{"ts":"1.1"}}}`))
	f.Add([]byte(`{"type":"block_actions","trigger_id":"1","actions":[{"action_id":"approve","value":"a b"}]}`))
	f.Add([]byte(`{"command":"/tori","trigger_id":"1","text":"x"}`))
	f.Add([]byte(`{"type":"event_callback","event":{"type":"message","files":[{"size":1e30}]}}`))
	s := &Slack{opt: Options{AtOnce: func(string) bool { return false }}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, ok, err := s.eventOf(raw, time.Time{})
		if ok != (len(e.Body) > 0 && err == nil) || ok && (e.ID == "" || len(e.Body) > channel.MaxEvent || !json.Valid(e.Body)) {
			t.Errorf("%v %v %+v", ok, err, e)
		}
	})
}
