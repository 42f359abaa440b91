package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
	"toritsugi/internal/i18n"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	channeltest.Conformance(t, func(t *testing.T, f func(*testing.T)) { f(t) }, func(t *testing.T, h *channeltest.Handler) channeltest.Fixture {
		b := newBridge(t)
		server := httptest.NewServer(b) // over a real connection
		own := &http.Transport{}
		t.Cleanup(func() {
			own.CloseIdleConnections()
			server.Close()
		})
		r := setUp(t, func(o *Options) { o.URL, o.HTTP = server.URL, &http.Client{Transport: own} })
		r.b, r.h, h.Channel = b, h, r.Webhook
		n := 0
		return channeltest.Fixture{Channel: r.Webhook, Session: session, Shown: b.all,
			Say: func(text string) {
				n++
				r.happen(said("message", fmt.Sprint("m", n), map[string]any{"text": text}))
			},
			Decide: func(grant bool) {
				a := b.posts[len(b.posts)-1].Approval
				r.happen(said("decision", "", map[string]any{"id": "d1", "decision": map[string]any{"job": a.Job, "hash": a.Hash, "grant": grant}}))
			},
			Press: func(n int) {
				q := b.posts[len(b.posts)-1].Question
				r.happen(said("message", "p1", map[string]any{"question": q.ID, "text": fmt.Sprint(n)}))
			}}
	})
}

// The example of the specification of the Standard Webhooks' libraries.
func TestSignsAsTheStandardSays(t *testing.T) {
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	signer(key).sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got := h.Get("webhook-signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
}

func TestTakesWhatTheBridgeSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, nil)
		body := []byte(`{"kind":"message","id":"m1","conversation":"c","user":{"id":"U1"},"text":"hello"}`)
		at := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).Unix(), 10) }
		now := at(0)
		sign := hand(secret, "E1", now, body)
		large := append(bytes.Clone(body), bytes.Repeat([]byte(" "), channel.MaxEvent)...)
		for name, c := range map[string]struct {
			method, id, stamp, sign string
			body                    []byte
			want                    int
			says                    string
		}{
			"a look by GET":            {http.MethodGet, "E1", now, sign, nil, http.StatusMethodNotAllowed, "POST"},
			"no signature":             {http.MethodPost, "E1", now, "", body, http.StatusUnauthorized, "signature"},
			"no id":                    {http.MethodPost, "", now, hand(secret, "", now, body), body, http.StatusUnauthorized, "signature"},
			"no time":                  {http.MethodPost, "E1", "", hand(secret, "E1", "", body), body, http.StatusUnauthorized, "signature"},
			"another secret":           {http.MethodPost, "E1", now, hand("whsec_Zm9yZ2Vk", "E1", now, body), body, http.StatusUnauthorized, "signature"},
			"another version":          {http.MethodPost, "E1", now, strings.Replace(sign, "v1,", "v2,", 1), body, http.StatusUnauthorized, "signature"},
			"a signature cut short":    {http.MethodPost, "E1", now, sign[:20], body, http.StatusUnauthorized, "signature"},
			"no base64":                {http.MethodPost, "E1", now, "v1,%%%", body, http.StatusUnauthorized, "signature"},
			"a body cut short":         {http.MethodPost, "E1", now, sign, body[:len(body)-3], http.StatusUnauthorized, "signature"},
			"another id":               {http.MethodPost, "E2", now, sign, body, http.StatusUnauthorized, "signature"},
			"another time":             {http.MethodPost, "E1", at(time.Second), sign, body, http.StatusUnauthorized, "signature"},
			"replayed after a while":   {http.MethodPost, "E1", at(-6 * time.Minute), hand(secret, "E1", at(-6*time.Minute), body), body, http.StatusUnauthorized, "6m0s away"},
			"a clock that is ahead":    {http.MethodPost, "E1", at(6 * time.Minute), hand(secret, "E1", at(6*time.Minute), body), body, http.StatusUnauthorized, "-6m0s away"},
			"a time that is no number": {http.MethodPost, "E1", "now", hand(secret, "E1", "now", body), body, http.StatusUnauthorized, "signature"},
			"too much":                 {http.MethodPost, "E1", now, hand(secret, "E1", now, large), large, http.StatusRequestEntityTooLarge, "65536 bytes"},
		} {
			if got, said := r.hook(c.method, c.id, c.stamp, c.sign, c.body); got != c.want || !strings.Contains(said, c.says) {
				t.Errorf("%s: %d %s, want %d", name, got, said, c.want)
			}
		}
		if len(r.box.events) > 0 {
			t.Errorf("in the inbox are %v", r.box.events)
		}
		if n := strings.Count(r.log.String(), "was refused"); n != 1 { // not for each try
			t.Errorf("complained of %d times:\n%s", n, r.log)
		}
		old := at(-4 * time.Minute)
		for range 3 { // one of two signatures is right: the bridge changes its secret. It sends again what took long
			if code, said := r.hook(http.MethodPost, "E9", old, hand("whsec_Zm9yZ2Vk", "E9", old, body)+" "+hand(secret, "E9", old, body), body); code != http.StatusOK {
				t.Errorf("%d %s", code, said)
			}
		}
		if len(r.box.events) != 1 || r.box.events[0].ID != "E9" || r.box.events[0].Queue != "http:c" || string(r.box.events[0].Body) != string(body) {
			t.Errorf("%+v", r.box.events)
		}
	})
}

// What is signed and is no event is refused with the reason, by the published schema, too.
func TestEventsAreOfTheirForm(t *testing.T) {
	r := setUp(t, nil)
	for _, c := range []struct{ body, says string }{
		{`{`, "no event as JSON"},
		{`[]`, "no event as JSON"},
		{`{"kind":7}`, "no event as JSON"},
		{`{}`, "conversation"},
		{`{"kind":"message","conversation":"c","user":{"id":"U1"},"text":"x"}`, "id where the kind is no decision"},
		{`{"kind":"message","id":"m","user":{"id":"U1"},"text":"x"}`, "conversation"},
		{`{"kind":"message","id":"m","conversation":"c","text":"x"}`, "user.id"},
		{`{"kind":"message","id":"m","conversation":"a b","user":{"id":"U1"},"text":"x"}`, "without spaces"},
		{`{"kind":"message","id":"m","conversation":"c\u202e","user":{"id":"U1"},"text":"x"}`, "ASCII"},
		{`{"kind":"message","id":"m","conversation":"c","user":{"id":"` + strings.Repeat("u", channel.MaxPlainID+1) + `"},"text":"x"}`, "1 to 100"},
		{`{"kind":"message","id":"m","conversation":"c","user":{"id":"U1"},"text":" "}`, "text or attachments"},
		{`{"kind":"message","id":"m","conversation":"c","user":{"id":"U1"},"attachments":[]}`, "text or attachments"},
		{`{"kind":"message","id":"m","conversation":"c","user":{"id":"U1"},"text":"x","question":"a b"}`, "question"},
		{`{"kind":"message","id":"m","conversation":"c","user":{"id":"U1"},"attachments":[{"name":"a","content":""}],"question":"q"}`, "question"},
		{`{"kind":"edit","id":"m","conversation":"c","user":{"id":"U1"},"text":"x","question":"q"}`, "question"},
		{`{"kind":"shout","id":"m","conversation":"c","user":{"id":"U1"},"text":"x"}`, "kind is message"},
		{`{"kind":"decision","conversation":"c","user":{"id":"U1"}}`, "decision.job"},
		{`{"kind":"decision","conversation":"c","user":{"id":"U1"},"decision":{"job":"J","hash":"","grant":true}}`, "decision.hash"},
	} {
		if code, said := r.send("E1", []byte(c.body)); code != http.StatusBadRequest || !strings.Contains(said, c.says) {
			t.Errorf("%s: %d %s", c.body, code, said)
		}
		if against(r.schema, []byte(c.body)) == nil {
			t.Errorf("the schema takes %s", c.body)
		}
	}
	page, err := os.ReadFile("../../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```json\n")
	example, _, _ = strings.Cut(example, "\n```")
	if err := against(r.schema, []byte(example)); err != nil {
		t.Errorf("the example of the documentation: %v", err)
	}
	if code, said := r.send("E2", []byte(example)); code != http.StatusOK || len(r.box.events) != 1 {
		t.Errorf("%d %s", code, said)
	}
	r.box.events = nil
	if code, said := r.send(strings.Repeat("i", channel.MaxPlainID+1), []byte(`{"kind":"message","id":"m","conversation":"c","user":{"id":"U1"},"text":"x"}`)); code != http.StatusBadRequest {
		t.Errorf("%d %s", code, said)
	}
	if len(r.box.events) > 0 {
		t.Errorf("%v", r.box.events)
	}
}

func TestWhatPeopleDo(t *testing.T) {
	r := setUp(t, nil)
	r.happen(said("message", "m1", map[string]any{"thread": "t:1", "text": "look", "attachments": []map[string]any{{"name": "a\u202e.txt", "content": []byte("hello")}}}))
	r.happen(said("edit", "m1", map[string]any{"text": "look again"}))
	r.happen(said("delete", "m1", nil))
	r.happen(said("decision", "", map[string]any{"id": "any", "decision": map[string]any{"job": "J", "hash": "H", "grant": false, "reason": "no"}}))
	for _, e := range []map[string]any{said("message", "x", map[string]any{"text": "let me in"}), said("delete", "m1", nil), said("edit", "m1", map[string]any{"text": "x"}),
		said("decision", "any", map[string]any{"decision": map[string]any{"job": "J", "hash": "H", "grant": true}})} {
		e["user"] = map[string]any{"id": "U9"} // who is not on the list
		r.happen(e)
	}
	told := r.h.Told()
	if len(told) != 2 {
		t.Fatalf("%+v", told)
	}
	m, d := told[0], told[1]
	if m.SessionID != session+":t%3A1" || m.User != "http:U1" || m.ID != "m1" || m.UserText != "look" || len(m.Attachments) != 1 {
		t.Errorf("%+v", m)
	}
	if a := m.Attachments[0]; a.Name != "a.txt" || a.MediaType != "text/plain; charset=utf-8" || string(a.Content) != "hello" {
		t.Errorf("%+v", a)
	}
	if d.SessionID != session || d.ID != "decision/E4" || *d.Decision != (channel.Decision{Job: "J", Hash: "H", Reason: "no"}) {
		t.Errorf("%+v", d)
	}
	if w, e := r.h.Withdrawn(), r.h.Revised(); len(w) != 1 || w[0] != session+" m1" || len(e) != 1 || e[0].UserText != "look again" || e[0].ID != "m1" {
		t.Errorf("%v, %+v", w, e)
	}
}

// What ends or takes back what goes on waits for nothing.
func TestWhatDoesNotWait(t *testing.T) {
	r := setUp(t, nil)
	for i, e := range []map[string]any{said("message", "m1", map[string]any{"text": "hello"}), said("message", "m2", map[string]any{"text": "/stop"}),
		said("edit", "m1", map[string]any{"text": "x"}), said("delete", "m1", nil), said("decision", "d", map[string]any{"decision": map[string]any{"job": "J", "hash": "H", "grant": true}}), said("message", "m3", map[string]any{"text": "1", "question": "q"})} {
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		r.send(fmt.Sprint("E", i), body)
	}
	for i, e := range r.box.events {
		if (e.Queue == session) != (i == 0) {
			t.Errorf("%d: %q", i, e.Queue)
		}
	}
	r.box.err = errors.New("no space left")
	if code, said := r.send("E9", r.box.events[0].Body); code != http.StatusServiceUnavailable || strings.Contains(said, "space") {
		t.Errorf("%d %s", code, said)
	}
}

// A bridge that is busy or away is left alone for as long as it asks, and waited for where that is
// seconds; nothing is lost, and what it will never take is not offered for ever.
func TestTheBridgeIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, nil)
		try := func(key string) error {
			return r.Post(t.Context(), channel.Post{SessionID: session, Key: key, Kind: channel.Answer, Text: key})
		}
		for _, c := range []struct {
			status int
			after  string
			wait   time.Duration
			tries  int
		}{{429, "120", 2 * time.Minute, 1}, {503, "", 8 * time.Second, maxTries}, {500, "900000", longestWait, 1}, {429, "86400", longestWait, 1}, {401, "", defaultWait, 1}, {404, "", defaultWait, 1}} {
			calls := r.b.calls
			r.b.answer = func(int) (int, http.Header) { return c.status, http.Header{"Retry-After": {c.after}} }
			err := try("late")
			if s := i18n.Japanese.Error(err); err == nil || !strings.Contains(s, strconv.Itoa(c.status)) || strings.Contains(s, "not now") {
				t.Errorf("%d: %v", c.status, s)
			}
			if ready := r.Ready(); (ready != nil) != (c.status == 401) {
				t.Errorf("%d: ready %v", c.status, ready)
			}
			r.b.answer = nil
			time.Sleep(c.wait - maxPatience - time.Second)
			if err := try("late"); err == nil || r.b.calls != calls+c.tries {
				t.Errorf("%d: called %d times, %v", c.status, r.b.calls-calls, err)
			}
			time.Sleep(maxPatience + time.Second)
		}
		if err := try("late"); err != nil || strings.Count(r.b.all(), "late") != 1 {
			t.Errorf("%v %s", err, r.b.all())
		}
		began, calls := time.Now(), r.b.calls
		r.b.answer = func(n int) (int, http.Header) {
			return map[bool]int{true: 502, false: 200}[n <= calls+2], nil
		}
		if err := try("soon"); err != nil || time.Since(began) != 3*time.Second || !strings.Contains(r.b.all(), "soon") {
			t.Errorf("%v after %s: %s", err, time.Since(began), r.b.all())
		}
		r.b.answer = func(int) (int, http.Header) { return 500, nil }
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := r.Post(ctx, channel.Post{SessionID: session, Key: "ends", Kind: channel.Answer, Text: "x"}); err == nil || ctx.Err() == nil {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
		for _, status := range []int{400, 410, 413, 422} {
			calls := r.b.calls
			r.b.answer = func(int) (int, http.Header) { return status, nil }
			for range 2 {
				if err := try(fmt.Sprint("never", status)); err != nil || r.b.calls != calls+1 {
					t.Errorf("%d: %v, called %d times", status, err, r.b.calls-calls)
				}
			}
		}
		if n := strings.Count(r.log.String(), "it is dropped"); n != 4 {
			t.Errorf("%s", r.log)
		}
	})
}

// An answer that got lost on its way is sent again with the id that it had, by another
// process, too.
func TestAPostHasOneID(t *testing.T) {
	b := newBridge(t)
	for range 2 {
		r := setUp(t, func(o *Options) { o.HTTP = &http.Client{Transport: b} })
		if err := r.Post(t.Context(), channel.Post{SessionID: session, Key: "k", Kind: channel.Answer, Text: "said"}); err != nil {
			t.Fatal(err)
		}
	}
	if b.calls != 2 || len(b.posts) != 1 {
		t.Errorf("%d calls, %+v", b.calls, b.posts)
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range [][2]string{{"c", ""}, {"c", "t"}, {"!a:b%25", "$x:y"}, {"%3A", "%"}} {
		e := event{Conversation: c[0], Thread: c[1]}
		if conversation, thread, ok := placeOf(e.session()); !ok || conversation != c[0] || thread != c[1] {
			t.Errorf("%q: %q, %q, %v", c, conversation, thread, ok)
		}
	}
	r := setUp(t, nil)
	for _, id := range []string{"line:user:U1", "http:", "http", "http:a:b:c", "http:%zz", "http:a:"} {
		if err := r.Post(t.Context(), channel.Post{SessionID: id, Key: "k", Kind: channel.Answer, Text: "x"}); err == nil || r.b.calls > 0 {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	for want, o := range map[string]Options{
		"channels.http.secret": {Secret: "password", URL: "http://127.0.0.1/"},
		"24":                   {Secret: "whsec_c2hvcnQ=", URL: "http://127.0.0.1/"},
		"channels.http.url":    {Secret: secret},
	} {
		if _, err := New(o); err == nil || !strings.Contains(i18n.Japanese.Error(err), want) || !strings.Contains(i18n.English.Error(err), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func FuzzReadAnEvent(f *testing.F) {
	f.Add([]byte(`{"kind":"message","id":"m1","conversation":"!a:b","thread":"%3A","user":{"id":"U1"},"text":"x"}`))
	f.Add([]byte(`{"kind":"decision","conversation":"c","user":{"id":"U1"},"decision":{"job":"J","hash":"H","grant":true}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := read(raw)
		if err != nil {
			return
		}
		if conversation, thread, ok := placeOf(e.session()); !ok || conversation != e.Conversation || thread != e.Thread {
			t.Errorf("%q: %q, %q", e.session(), conversation, thread)
		}
	})
}
