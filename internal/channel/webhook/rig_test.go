package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
)

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// hand signs as the Standard Webhooks say, by hand.
func hand(secret, id, stamp string, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// published is a schema of the documentation.
func published(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile("../../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// against is what a schema has against a value, nil for nothing.
func against(s *jsonschema.Schema, raw []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// bridge is the other side: it verifies each request and shows each post once.
type bridge struct {
	t      *testing.T
	schema *jsonschema.Schema
	now    func() time.Time

	mu    sync.Mutex
	calls int
	ids   map[string]bool
	posts []post
	// answer says what a request is answered, by its number from 1 on; nil takes all.
	answer func(n int) (status int, header http.Header)
}

func newBridge(t *testing.T) *bridge {
	return &bridge{t: t, schema: published(t, "http-post.schema.json"), now: time.Now, ids: map[string]bool{}}
}

func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		b.t.Error(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	id, stamp := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if off := b.now().Sub(time.Unix(seconds, 0)); err != nil || off.Abs() > time.Minute || r.Header.Get("webhook-signature") != hand(secret, id, stamp, body) {
		b.t.Errorf("not signed: %v", r.Header)
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		b.t.Errorf("%s %v", r.Method, r.Header)
	}
	if err := against(b.schema, body); err != nil {
		b.t.Errorf("%v\n%s", err, body)
	}
	var p post
	if err := json.Unmarshal(body, &p); err != nil || p.ID != id {
		b.t.Errorf("%v: %s, of the request %s", err, body, id)
	}
	if b.answer != nil {
		if status, header := b.answer(b.calls); status/100 != 2 {
			for k := range header {
				w.Header().Set(k, header.Get(k))
			}
			http.Error(w, "not now", status)
			return
		}
	}
	if !b.ids[id] {
		b.ids[id] = true
		b.posts = append(b.posts, p)
	}
}

// all is what people see, in the order of the posts.
func (b *bridge) all() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var s strings.Builder
	for _, p := range b.posts {
		fmt.Fprintln(&s, p.Text)
		if a := p.Approval; a != nil && p.Kind == "request" {
			fmt.Fprintln(&s, a.Title, a.Job, a.Summary, a.Files, a.Commands, a.Risks, a.Why, a.Diff)
		}
	}
	return s.String()
}

// RoundTrip lets the bridge be called without a connection.
func (b *bridge) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w.Result(), nil
}

// box is an inbox that knows ids.
type box struct {
	known  map[string]bool
	events []channel.Event
	err    error
}

// Put implements channel.Inbox.
func (b *box) Put(_ context.Context, events ...channel.Event) error {
	if b.err != nil {
		return b.err
	}
	for _, e := range events {
		if !b.known[e.ID] {
			b.known[e.ID] = true
			b.events = append(b.events, e)
		}
	}
	return nil
}

// rig is a Webhook between a bridge and a handler.
type rig struct {
	*Webhook
	t      *testing.T
	b      *bridge
	box    *box
	h      *channeltest.Handler
	log    *bytes.Buffer
	schema *jsonschema.Schema
	n      int
}

func setUp(t *testing.T, change func(*Options)) *rig {
	r := &rig{t: t, b: newBridge(t), box: &box{known: map[string]bool{}}, h: &channeltest.Handler{}, log: &bytes.Buffer{}, schema: published(t, "http-event.schema.json")}
	o := Options{Secret: secret, URL: "http://bridge.example/posts", HTTP: &http.Client{Transport: r.b}, Inbox: r.box, Allowed: func(id string) bool { return id == "U1" || id == "U2" },
		AtOnce: func(text string) bool { return text == "/stop" }, Mask: func(s string) string { return strings.ReplaceAll(s, "not now", "[MASKED]") },
		Now: time.Now, Log: slog.New(slog.NewTextHandler(r.log, nil))}
	if change != nil {
		change(&o)
	}
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Webhook, r.h.Channel = w, w
	return r
}

// hook sends a request with the given headers and returns the answer.
func (r *rig) hook(method, id, stamp, sign string, body []byte) (code int, said string) {
	req := httptest.NewRequest(method, "/webhooks/http", bytes.NewReader(body))
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", stamp)
	req.Header.Set("webhook-signature", sign)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

// send sends an event properly signed.
func (r *rig) send(id string, body []byte) (code int, said string) {
	stamp := strconv.FormatInt(r.opt.Now().Unix(), 10)
	return r.hook(http.MethodPost, id, stamp, hand(secret, id, stamp, body), body)
}

// happen sends an event and works on what is in the inbox.
func (r *rig) happen(e map[string]any) {
	r.t.Helper()
	r.n++
	body, err := json.Marshal(e)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := against(r.schema, body); err != nil {
		r.t.Errorf("%v\n%s", err, body)
	}
	if code, said := r.send(fmt.Sprint("E", r.n), body); code != http.StatusOK {
		r.t.Fatalf("%d %s", code, said)
	}
	all := r.box.events
	r.box.events = nil
	for _, in := range all {
		if err := r.Receive(r.t.Context(), in, r.h); err != nil {
			r.t.Fatal(err)
		}
	}
}

// said is an event of U1 in the room !r:example.org.
func said(kind, id string, more map[string]any) map[string]any {
	e := map[string]any{"kind": kind, "id": id, "conversation": "!r:example.org", "user": map[string]any{"id": "U1", "name": "Hanako"}}
	for k, v := range more {
		e[k] = v
	}
	return e
}

const session = "http:!r%3Aexample.org"
