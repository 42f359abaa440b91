package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/wire"
)

const secret = "sk-very-secret-0123456789"

// roundTrip is a transport without a network, so that time can be faked.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answerWith(status int, body string, headers ...string) *http.Response {
	res := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i < len(headers); i += 2 {
		res.Header.Set(headers[i], headers[i+1])
	}
	return res
}

func TestGoldenRequest(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/request.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	var length int64
	c := testClient(t, Config{Provider: "p", Model: "m", BaseURL: "http://x/v1", MaxTokens: 99, APIKey: secret,
		HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got, _ = io.ReadAll(r.Body)
			length = r.ContentLength
			if r.Header.Get("Authorization") != "Bearer "+secret || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("headers %v", r.Header)
			}
			return answerWith(200, event(`"content":"a"`, stop)), nil
		})}})
	v := c.Open(llm.Settings{Tools: []llm.Tool{{Name: "f", Description: `Does "it" <fast>.`, Schema: json.RawMessage(`{ "type": "object" }`)}, {Name: "g.h"}}})
	v.Append(llm.Message{Role: llm.RoleSystem, Content: "S"})
	v.Append(llm.Message{Role: llm.RoleUser, Content: "行け\n"})
	v.Append(llm.Message{Role: llm.RoleAssistant, Reasoning: "R", ToolCalls: []llm.ToolCall{
		{ID: "call_1", Name: "f", Arguments: `{ "a": 1 }`}, {ID: "call_2", Name: "g.h", Arguments: `{"a":`}, {ID: "call_3", Name: "not.offered!"}}})
	v.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_1", ToolName: "f"})
	v.Append(llm.Message{Role: llm.RoleAssistant, Reasoning: "left out"})
	if _, err := v.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" || length != int64(len(got)) {
		t.Errorf("length %d, body (-want +got):\n%s", length, diff)
	}
}

func TestMaxTokensByHost(t *testing.T) {
	t.Parallel()
	for url, field := range map[string]string{
		"https://api.openai.com/v1": "max_completion_tokens", "https://x.openai.azure.com/openai": "max_completion_tokens",
		"https://api.deepseek.com": "max_tokens", "http://localhost:1234/v1": "max_tokens",
	} {
		if c := testClient(t, Config{Provider: "p", Model: "m", BaseURL: url}); c.dialect.maxTokens != field {
			t.Errorf("%s: %s", url, c.dialect.maxTokens)
		}
	}
}

// TestPrefixLaw: messages of any content only ever add to the end, and stay
// one JSON array.
func TestPrefixLaw(t *testing.T) {
	t.Parallel()
	c := testClient(t, Config{BaseURL: "http://x"})
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`\{"a":.{0,9}`), rapid.Just("\xff"), rapid.Just(`{"a":1}`))
	rapid.Check(t, func(t *rapid.T) {
		v := c.Open(llm.Settings{})
		var before []byte
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			m := llm.Message{Role: rapid.SampledFrom([]string{"system", "user", "assistant", "tool"}).Draw(t, "role"), Content: text.Draw(t, "content")}
			if m.Role == llm.RoleAssistant && rapid.Bool().Draw(t, "calls") {
				m.ToolCalls = []llm.ToolCall{{ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "args")}}
			}
			v.Append(m)
			now := v.Serialized()
			if !strings.HasPrefix(string(now), string(before)) {
				t.Fatalf("%q does not begin with %q", now, before)
			}
			var all []struct {
				ToolCalls []struct{ Function function } `json:"tool_calls"`
			}
			if err := json.Unmarshal([]byte("["+string(now)+"]"), &all); err != nil {
				t.Fatalf("%v: %s", err, now)
			}
			for _, m := range all {
				for _, call := range m.ToolCalls {
					if json.Unmarshal([]byte(call.Function.Arguments), &map[string]any{}) != nil {
						t.Fatalf("arguments %q", call.Function.Arguments)
					}
				}
			}
			before = append([]byte(nil), now...)
		}
	})
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	good := Config{Provider: "p", Model: "m", BaseURL: "https://h/v1"}
	for _, c := range []struct {
		key  string
		edit func(*Config)
	}{
		{"llm.base_url", func(c *Config) { c.BaseURL = "" }},
		{"llm.base_url", func(c *Config) { c.BaseURL = "localhost:11434/v1" }},
		{"llm.base_url", func(c *Config) { c.BaseURL = "file:///etc/passwd" }},
		{"llm.base_url", func(c *Config) { c.BaseURL = "ftp://me:" + secret + "@h/v1?key=" + secret }},
		{"llm.base_url", func(c *Config) { c.BaseURL = "http://me:" + secret + "@[bad/v1" }},
		{"llm.api_key", func(c *Config) { c.APIKey = secret + "\nX: y" }},
		{"llm.api_key", func(c *Config) { c.APIKey = secret + "鍵" }},
		{"llm.model", func(c *Config) { c.Model = " " }},
	} {
		cfg := good
		c.edit(&cfg)
		_, err := New(cfg)
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != c.key {
			t.Errorf("%s: got %v", c.key, err)
		} else if both := i18n.English.Error(err) + i18n.Japanese.Error(err); strings.Contains(both, secret) {
			t.Errorf("shows a secret: %s", both)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"http://h:1/v1":                        "http://h:1/v1/chat/completions",
		" http://h:1/v1/ ":                     "http://h:1/v1/chat/completions",
		"https://h":                            "https://h/chat/completions",
		"https://h/v1/chat/completions":        "https://h/v1/chat/completions",
		"https://u:p@h/d/x?api-version=1#frag": "https://u:p@h/d/x/chat/completions?api-version=1",
	} {
		u, err := resolve("p", base, "chat/completions")
		c := testClient(t, Config{Provider: "p", Model: "m", BaseURL: base})
		if err != nil || u.String() != want || strings.ContainsAny(c.wire.Endpoint(), "@?#") {
			t.Errorf("%q: %s, shown as %s", base, u, c.wire.Endpoint())
		}
	}
}

// TestKeyIsNeverShown prints everything there is to print.
func TestKeyIsNeverShown(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 500} {
		srv := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Status: status, ErrorText: "wrong key " + secret}))
		url := strings.Replace(srv.URL, "http://", "http://user:"+secret+"@", 1) + "?k=" + secret
		cfg := Config{Provider: "p", Model: "m", BaseURL: url, APIKey: secret + "\n"}
		c := testClient(t, cfg)
		v := c.Open(llm.Settings{})
		v.Append(llm.Message{Role: llm.RoleUser, Content: "hi"})
		_, err := v.Send(t.Context(), nil)
		dead := testClient(t, Config{Provider: "p", Model: "m", BaseURL: "http://u:" + secret + "@127.0.0.1:1/?k=" + secret, APIKey: secret})
		_, refused := dead.Open(llm.Settings{}).Send(t.Context(), nil)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			for _, x := range []any{cfg, &cfg, c, v, err, refused, errors.Unwrap(refused)} {
				if s := fmt.Sprintf(verb, x); strings.Contains(s, secret) {
					t.Errorf("%s of %T: %s", verb, x, s)
				}
			}
		}
		if !strings.Contains(err.Error(), "[api key]") {
			t.Errorf("got %v", err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	c := testClient(t, Config{BaseURL: gone.URL, MaxRetries: 1})
	_, err := c.Open(llm.Settings{}).Send(t.Context(), nil)
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindUnreachable || e.Status != 0 || e.Attempts != 2 || e.Message == "" {
		t.Errorf("got %v", err)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.RedirectHandler("https://u:p@elsewhere.example/v1/chat/completions?t=1", http.StatusMovedPermanently))
	t.Cleanup(srv.Close)
	_, err := testClient(t, Config{BaseURL: srv.URL}).Open(llm.Settings{}).Send(t.Context(), nil)
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindNotFound || !strings.Contains(e.Message, "https://elsewhere.example/v1/chat/completions;") {
		t.Errorf("got %v", err)
	}
}

// TestWaits: the pauses between calls, in faked time.
func TestWaits(t *testing.T) {
	t.Parallel()
	ok := event(`"content":"ok"`, stop)
	for _, c := range []struct {
		name     string
		first    []*http.Response
		min, max time.Duration
		calls    int
		kind     llm.ErrorKind
	}{
		{"no failure", nil, 0, 0, 1, ""},
		{"backoff grows", []*http.Response{answerWith(500, "a"), answerWith(500, "b"), answerWith(500, "c")}, 1750 * time.Millisecond, 5300 * time.Millisecond, 4, ""},
		{"asked to wait", []*http.Response{answerWith(429, "a", "Retry-After", "20")}, 20 * time.Second, 20 * time.Second, 2, ""},
		{"asked for less than backoff", []*http.Response{answerWith(429, "a", "Retry-After-Ms", "1")}, 250 * time.Millisecond, 750 * time.Millisecond, 2, ""},
		{"asked for too long", []*http.Response{answerWith(429, "a", "Retry-After", "3600")}, 0, 0, 1, llm.KindRateLimited},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			var told time.Duration
			cl, err := newClient(Config{Provider: "p", Model: "m", BaseURL: "http://x", MaxRetries: 5,
				OnRetry: func(e *llm.Error, wait time.Duration) {
					told += wait
					if e.Attempts != n {
						t.Errorf("%s: attempt %d told as %d", c.name, n, e.Attempts)
					}
				},
				HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
					if n++; n <= len(c.first) {
						return c.first[n-1], nil
					}
					return answerWith(200, ok), nil
				})}})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = cl.Open(llm.Settings{}).Send(t.Context(), nil)
			took := time.Since(start)
			if took < c.min || took > c.max || n != c.calls || told != took {
				t.Errorf("%s: %d calls in %s, told %s", c.name, n, took, told)
			}
			var e *llm.Error
			if c.kind != "" && (!errors.As(err, &e) || e.Kind != c.kind || e.RetryAfter != time.Hour) || c.kind == "" && err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}

// stuck is a body that gives what it has and then nothing until ctx ends.
type stuck struct {
	io.Reader
	ctx context.Context
}

func (s stuck) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); err == nil {
		return n, nil
	}
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

func (stuck) Close() error { return nil }

func TestStallAndCancelInFakedTime(t *testing.T) {
	t.Parallel()
	part := event(`"content":"a"`, "")
	for _, c := range []struct {
		name, body string
		ctx        time.Duration // 0 is none
		want       error
		kind       llm.ErrorKind
		took       time.Duration
	}{
		{"stalls", part, 0, nil, llm.KindTimeout, time.Minute},
		{"stalls after the reason", part + event("", stop), 0, nil, "", wire.TailTime},
		{"deadline while stalled", part, 10 * time.Second, context.DeadlineExceeded, "", 10 * time.Second},
		{"finished, but left open", part + event("", stop) + "data: [DONE]\n\n", 0, nil, "", wire.DrainTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl, err := newClient(Config{Provider: "p", Model: "m", BaseURL: "http://x", StallTimeout: time.Minute,
				HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: stuck{strings.NewReader(c.body), r.Context()}}, nil
				})}})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if c.ctx > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.ctx)
				defer cancel()
			}
			start := time.Now()
			_, err = cl.Open(llm.Settings{}).Send(ctx, nil)
			var e *llm.Error
			switch {
			case c.want != nil && err != c.want,
				c.kind != "" && (!errors.As(err, &e) || e.Kind != c.kind),
				c.want == nil && c.kind == "" && err != nil:
				t.Errorf("%s: %v", c.name, err)
			}
			if took := time.Since(start); took != c.took {
				t.Errorf("%s: took %s", c.name, took)
			}
		})
	}
}

func TestCancelDuringTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cl, err := newClient(Config{Provider: "p", Model: "m", BaseURL: "http://x", MaxRetries: 5,
			OnRetry: func(*llm.Error, time.Duration) { time.AfterFunc(time.Millisecond, cancel) },
			HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				return answerWith(429, "a", "Retry-After", "60"), nil
			})}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := cl.Open(llm.Settings{}).Send(ctx, nil); err != context.Canceled || time.Since(start) != time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// TestBodyStaysReadable: a transport that reads late, after the answer and
// after further messages or a reset, still reads what was sent.
func TestBodyStaysReadable(t *testing.T) {
	t.Parallel()
	var late []io.ReadCloser
	c := testClient(t, Config{BaseURL: "http://x", HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		again, err := r.GetBody()
		if err != nil {
			t.Error(err)
		}
		late = append(late, r.Body, again)
		return answerWith(200, event(`"content":"a"`, stop)), nil
	})}})
	v := c.Open(llm.Settings{})
	v.Append(llm.Message{Role: llm.RoleUser, Content: "first"})
	want := string(v.Serialized())
	if _, err := v.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v.Append(llm.Message{Role: llm.RoleUser, Content: "second"})
	v.Reset()
	v.Append(llm.Message{Role: llm.RoleUser, Content: "FIRST"})
	for _, body := range late {
		got, err := io.ReadAll(body)
		if err != nil || !strings.HasSuffix(string(got), `"messages":[`+want+"]}") {
			t.Errorf("%v: %s", err, got)
		}
	}
}

func TestListModels(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, nil)
	ids, err := ListModels(t.Context(), srv.URL, secret, nil)
	if err != nil || !cmp.Equal(ids, []Model{{ID: "model-a"}, {ID: "model-b"}}) {
		t.Errorf("%v, %v", ids, err)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	t.Cleanup(page.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for url, kind := range map[string]llm.ErrorKind{page.URL: llm.KindInvalid, gone.URL: llm.KindUnreachable} {
		var e *llm.Error
		if _, err := ListModels(t.Context(), url, "", nil); !errors.As(err, &e) || e.Kind != kind || !strings.HasSuffix(e.Endpoint, "/models") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ListModels(ended, srv.URL, "", nil); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	var text *i18n.Error
	if _, err := ListModels(t.Context(), "nowhere", "", nil); !errors.As(err, &text) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkAnswer reads an answer of 200 events.
func BenchmarkAnswer(b *testing.B) {
	body := strings.Repeat(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"some text"},"finish_reason":null}]}`+"\n\n", 200) + event("", stop)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	c := &client{maxEvent: wire.MaxEvent, maxAnswer: wire.MaxAnswer}
	for b.Loop() {
		a := &answer{maxSize: wire.MaxAnswer}
		if e, err := c.read(context.Background(), a, "", strings.NewReader(body)); e != nil || err != nil {
			b.Fatal(e, err)
		}
	}
}

// TestCancelOfAnAnswerThatIsHere: giving up counts also where nothing is left
// to wait for.
func TestCancelOfAnAnswerThatIsHere(t *testing.T) {
	t.Parallel()
	c := testClient(t, Config{BaseURL: "http://x", MaxRetries: 3, HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return answerWith(200, event(`"content":"a"`, "")+event(`"content":"b"`, stop)+"data: [DONE]\n\n"), nil
	})}})
	ctx, cancel := context.WithCancel(t.Context())
	var got string
	_, err := c.Open(llm.Settings{}).Send(ctx, func(s string) { got += s; cancel() })
	if err != context.Canceled || got != "a" {
		t.Errorf("%q, %v", got, err)
	}
}
