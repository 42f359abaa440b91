package cloud

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cenkalti/backoff/v5"
	"pgregory.net/rapid"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/openai"
)

func quick() backoff.BackOff { return &backoff.ZeroBackOff{} }

// wiretap is a model's server that counts every connection and byte.
type wiretap struct {
	net.Listener
	conns, bytes atomic.Int64
	mu           sync.Mutex
	last         []byte
}

type tapped struct {
	net.Conn
	w *wiretap
}

func (w *wiretap) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err == nil {
		w.conns.Add(1)
	}
	return tapped{c, w}, err
}

func (c tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.w.bytes.Add(int64(n))
	return n, err
}

func (w *wiretap) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	w.last = body
	w.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(out, `{"model":"m","choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
}

func (w *wiretap) body() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.last)
}

// TestNothingForbiddenLeaves: for any rule and any use of a conversation, not a
// byte nor a connection reaches the server where the rule forbids it, and where
// it allows it no secret does, in a prefix that never changes.
func TestNothingForbiddenLeaves(t *testing.T) {
	t.Parallel()
	w := &wiretap{}
	s := httptest.NewUnstartedServer(w)
	w.Listener = s.Listener
	s.Listener = w
	s.Start()
	t.Cleanup(s.Close)
	inner, err := openai.New(openai.Config{Provider: "openai", Model: "m", BaseURL: s.URL, MaxRetries: 2, Backoff: quick})
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{key, mail, "hunter2-known-value", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "AKIAIOSFODNN7EXAMPLE"}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(append([]string{"hello", "\n", `"`, "[EMAIL]", "日本", "\\", "=", "x"}, secrets...)), 0, 6)
		text := rapid.Custom(func(t *rapid.T) string { return strings.Join(words.Draw(t, "words"), " ") })
		cloud := rapid.Bool().Draw(t, "cloud")
		localOnly, route := false, ""
		routes := rapid.SliceOf(rapid.SampledFrom([]string{"CODE", "code1", "CHAT"})).Draw(t, "routes")
		asked := 0
		v := Guard(inner, Rule{Cloud: cloud, Redact: sanitize, Allow: func() error {
			asked++
			return Allowed(route, localOnly, routes)
		}}).Open(llm.Settings{Tools: []llm.Tool{{Name: "f", Description: text.Draw(t, "description"), Schema: quoted(text.Draw(t, "schema"))}}})
		var before []byte
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "messages") {
				role := rapid.SampledFrom([]string{llm.RoleSystem, llm.RoleUser, llm.RoleAssistant, llm.RoleTool}).Draw(t, "role")
				m := llm.Message{Role: role, Content: text.Draw(t, "content"), Reasoning: text.Draw(t, "reasoning")}
				if role == llm.RoleAssistant {
					m.ToolCalls = []llm.ToolCall{{ID: "c", Name: text.Draw(t, "name"), Arguments: string(quoted(text.Draw(t, "arguments")))}}
				}
				v.Append(m)
			}
			if rapid.IntRange(0, 5).Draw(t, "reset") == 0 {
				v.Reset()
				before = nil
			}
			if !bytes.HasPrefix(v.Serialized(), before) {
				t.Fatal("what was serialized has changed")
			}
			before = bytes.Clone(v.Serialized())
			localOnly = rapid.Bool().Draw(t, "local only")
			route = rapid.SampledFrom([]string{"CODE", "CODE1", "chat", "PLAN"}).Draw(t, "route")
			conns, sent, times := w.conns.Load(), w.bytes.Load(), asked
			_, err := v.Send(t.Context(), nil)
			forbidden := cloud && Allowed(route, localOnly, routes) != nil
			var e *llm.Error
			var said *i18n.Error
			switch {
			case forbidden && (!errors.As(err, &e) || e.Kind != llm.KindForbidden || !errors.As(err, &said)):
				t.Fatalf("not forbidden: %v", err)
			case forbidden && (w.conns.Load() != conns || w.bytes.Load() != sent):
				t.Fatal("something was sent")
			case !forbidden && (err != nil || w.bytes.Load() == sent):
				t.Fatalf("nothing was sent: %v", err)
			case cloud && asked == times:
				t.Fatal("nobody asked")
			}
			for _, secret := range secrets {
				if cloud && !forbidden && strings.Contains(w.body(), secret) {
					t.Fatalf("sent %s in %s", secret, w.body())
				}
			}
		}
	})
}

// quoted is a JSON document that holds a text.
func quoted(s string) json.RawMessage {
	b, err := json.Marshal(map[string]string{"description": s})
	if err != nil {
		panic(err) // a test's own mistake
	}
	return b
}
