package line

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
	"toritsugi/internal/i18n"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Put implements channel.Inbox.
func (b *box) Put(_ context.Context, events ...channel.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
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

// rig is a Line between people who write in LINE and a handler.
type rig struct {
	*Line
	t   *testing.T
	v   *vendor
	box *box
	h   *channeltest.Handler
	log *logs
	n   int
}

// tells are what the operators were told.
func (r *rig) tells() (all []string) {
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, "level=WARN") && strings.Contains(line, "LINE: ") {
			all = append(all, line)
		}
	}
	return all
}

// logs are what was logged, from any goroutine.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func setUp(t *testing.T, change func(*Options)) *rig {
	r := &rig{t: t, v: newVendor(t), box: &box{known: map[string]bool{}}, h: &channeltest.Handler{}, log: &logs{}}
	o := Options{ChannelSecret: secret, AccessToken: token, BaseURL: "https://api.line.me", Allowed: func(id string) bool { return id == "U1" || id == "U2" }, HTTP: &http.Client{Transport: r.v},
		Inbox: r.box, MediaDir: t.TempDir(), Lang: i18n.English, Now: time.Now, Mask: func(s string) string { return strings.ReplaceAll(s, token, "[MASKED]") },
		Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&o)
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Line, r.h.Channel = l, l
	return r
}

// hook sends a request to the webhook and returns the status of its answer.
func (r *rig) hook(method string, body []byte, sign string) int {
	req := httptest.NewRequest(method, "/hooks/line", bytes.NewReader(body))
	if sign != "" {
		req.Header.Set("X-Line-Signature", sign)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w.Code
}

// happen sends events and works on what is in the inbox.
func (r *rig) happen(events ...map[string]any) {
	r.t.Helper()
	body := callback(events...)
	if code := r.hook(http.MethodPost, body, signature(secret, body)); code != http.StatusOK {
		r.t.Fatalf("the answer is %d", code)
	}
	r.box.mu.Lock()
	all := r.box.events
	r.box.events = nil
	r.box.mu.Unlock()
	for _, e := range all {
		if err := r.Receive(r.t.Context(), e, r.h); err != nil {
			r.t.Fatal(err)
		}
	}
}

// writes has a user write a text, or press a button.
func (r *rig) writes(source, text string, mentionees ...map[string]any) {
	r.t.Helper()
	r.n++
	r.happen(r.v.happens(fmt.Sprint("E", r.n), "message", source, textOf(fmt.Sprint("10", r.n), text, mentionees...)))
}

func (r *rig) post(p channel.Post) {
	r.t.Helper()
	if err := r.Post(r.t.Context(), p); err != nil {
		r.t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	for name, lang := range map[string]i18n.Lang{"en": i18n.English, "ja": i18n.Japanese} {
		t.Run(name, func(t *testing.T) {
			channeltest.Conformance(t, func(t *testing.T, f func(*testing.T)) { f(t) }, func(t *testing.T, h *channeltest.Handler) channeltest.Fixture {
				v := newVendor(t)
				server := httptest.NewServer(v) // over a real connection
				own := &http.Transport{}
				t.Cleanup(func() {
					own.CloseIdleConnections()
					server.Close()
				})
				r := setUp(t, func(o *Options) {
					o.BaseURL, o.HTTP, o.Lang = server.URL, &http.Client{Transport: own}, lang
				})
				r.v, r.h, h.Channel = v, h, r.Line
				return channeltest.Fixture{Channel: r.Line, Session: "line:user:U1",
					Say: func(text string) { r.writes("user:U1", text) },
					Decide: func(grant bool) {
						i := len(v.presses) - 2 // approve, then deny
						if !grant {
							i++
						}
						r.happen(v.happens("P1", "postback", "user:U1", map[string]any{"postback": map[string]any{"data": v.presses[i].data}}))
					}, Press: func(n int) {
						r.happen(v.happens("P1", "postback", "user:U1", map[string]any{"postback": map[string]any{"data": v.presses[n-1].data}}))
					}, Shown: v.all}
			})
		})
	}
}

func TestNewNeedsALogin(t *testing.T) {
	_, err := New(Options{AccessToken: token})
	if err == nil || !strings.Contains(i18n.Japanese.Error(err), "channels.line.channel_secret") {
		t.Error(err)
	}
}
