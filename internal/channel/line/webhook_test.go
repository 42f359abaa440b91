package line

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
)

func TestWebhookTakesWhatLINESigned(t *testing.T) {
	r := setUp(t, nil)
	body := callback(r.v.happens("E1", "message", "user:U1", textOf("1", "hello")))
	sign := signature(secret, body)
	for name, c := range map[string]struct {
		method string
		body   []byte
		sign   string
		want   int
	}{
		"a look by GET":               {http.MethodGet, nil, "", http.StatusMethodNotAllowed},
		"no signature":                {http.MethodPost, body, "", http.StatusForbidden},
		"another secret":              {http.MethodPost, body, signature("guessed", body), http.StatusForbidden},
		"no base64":                   {http.MethodPost, body, "%%%", http.StatusForbidden},
		"a signature cut short":       {http.MethodPost, body, sign[:20], http.StatusForbidden},
		"a body cut short":            {http.MethodPost, body[:len(body)-4], sign, http.StatusForbidden},
		"a body with a space more":    {http.MethodPost, append([]byte(" "), body...), sign, http.StatusForbidden},
		"no JSON":                     {http.MethodPost, []byte("{"), signature(secret, []byte("{")), http.StatusBadRequest},
		"too much":                    {http.MethodPost, make([]byte, channel.MaxRequest+1), signature(secret, make([]byte, channel.MaxRequest+1)), http.StatusRequestEntityTooLarge},
		"the console's check":         {http.MethodPost, callback(), signature(secret, callback()), http.StatusOK},
		"no events at all":            {http.MethodPost, []byte("{}"), signature(secret, []byte("{}")), http.StatusOK},
		"an event without any fields": {http.MethodPost, []byte(`{"events":[{}]}`), signature(secret, []byte(`{"events":[{}]}`)), http.StatusOK},
		"an event that is a number":   {http.MethodPost, []byte(`{"events":[7]}`), signature(secret, []byte(`{"events":[7]}`)), http.StatusOK},
	} {
		if got := r.hook(c.method, c.body, c.sign); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if len(r.box.events) > 0 {
		t.Errorf("in the inbox are %v", r.box.events)
	}
	if n := strings.Count(r.log.String(), "wrong signature"); n != 1 { // not for each try
		t.Errorf("complained of %d times:\n%s", n, r.log)
	}
}

func TestWebhookPutsEventsInOrder(t *testing.T) {
	r := setUp(t, nil)
	body := callback(
		r.v.happens("E1", "message", "user:U1", textOf("1", "one")),
		r.v.happens("E2", "message", "group:C1:U1", textOf("2", "nobody is meant")),
		r.v.happens("E3", "unsend", "user:U1", map[string]any{"unsend": map[string]any{"messageId": "1"}}),
		r.v.happens("E4", "message", "group:C1:U2", textOf("4", "@bot x", map[string]any{"index": 0, "length": 4, "type": "user", "isSelf": true})),
		r.v.happens("E5", "memberJoined", "group:C1", nil),
		r.v.happens("E6", "message", "user:../U1", textOf("6", "a path")),
		r.v.happens("E7", "message", "user:U1", map[string]any{"mode": "standby", "message": map[string]any{"id": "7", "type": "text", "text": "for another program"}}),
		r.v.happens("E8", "message", "user:U1", textOf("8", strings.Repeat("x", channel.MaxEvent))),
		r.v.happens("E9", "message", "room:R1:U1", textOf("9", "@all y", map[string]any{"index": 0, "length": 4, "type": "all"})))
	for range 2 { // LINE sends again what took long
		if code := r.hook(http.MethodPost, body, signature(secret, body)); code != http.StatusOK {
			t.Fatal(code)
		}
	}
	var got []string
	for _, e := range r.box.events {
		got = append(got, e.ID+" "+e.Queue)
	}
	if s := strings.Join(got, ", "); s != "E1 line:user:U1, E3 , E4 line:group:C1, E9 line:room:R1" {
		t.Error(s)
	}
}

// LINE signs no time of sending: what is older than ids are known is taken from nobody.
func TestWebhookTakesNothingOfLastWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, nil)
		body := callback(r.v.happens("E1", "message", "user:U1", textOf("1", "hello")))
		for _, c := range []struct {
			after time.Duration
			taken int
		}{{-time.Hour, 1}, {0, 1}, {6 * 24 * time.Hour, 1}, {channel.KeepIDs, 0}, {90 * 24 * time.Hour, 0}} {
			r.opt.Now = func() time.Time { return time.Now().Add(c.after) }
			r.box.events, r.box.known = nil, map[string]bool{}
			if code := r.hook(http.MethodPost, body, signature(secret, body)); code != http.StatusOK || len(r.box.events) != c.taken {
				t.Errorf("after %s: %d, %d taken", c.after, code, len(r.box.events))
			}
		}
	})
}

func TestWebhookSaysWhenTheInboxIsFull(t *testing.T) {
	r := setUp(t, nil)
	body := callback(r.v.happens("E1", "message", "user:U1", textOf("1", "hello")))
	r.box.err = errors.New("no space left")
	if code := r.hook(http.MethodPost, body, signature(secret, body)); code != http.StatusServiceUnavailable {
		t.Error(code)
	}
	r.box.err = nil
	if code := r.hook(http.MethodPost, body, signature(secret, body)); code != http.StatusOK || len(r.box.events) != 1 {
		t.Error(code, r.box.events)
	}
}

func TestForgeriesAreToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, nil)
		for range 120 {
			r.hook(http.MethodPost, []byte("{}"), "x")
			time.Sleep(time.Second)
		}
		if n := strings.Count(r.log.String(), "wrong signature"); n != 2 {
			t.Errorf("%d times", n)
		}
	})
}

func FuzzReadAnEvent(f *testing.F) {
	f.Add([]byte(`{"type":"message","webhookEventId":"E","source":{"type":"group","groupId":"C"},"message":{"id":"1","type":"text","text":"😀@b x","mention":{"mentionees":[{"index":2,"length":2,"isSelf":true}]}}}`))
	f.Add([]byte(`{"type":"message","webhookEventId":"E","source":{"type":"user","userId":"U"},"message":{"text":"a","mention":{"mentionees":[{"index":-1,"length":99,"type":"all"},{"index":9223372036854775807,"length":9223372036854775807,"type":"all"}]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := read(raw)
		if err != nil {
			return
		}
		if chatOf(e.session()) != e.chat() {
			t.Errorf("%q", e.session())
		}
		if e.addressed() {
			_ = e.Message.said()
		}
	})
}
