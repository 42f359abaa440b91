package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/openai"
)

func slots(t testing.TB, dir string, limit int) *Slots {
	t.Helper()
	s, err := OpenSlots(&disk.FS{}, dir, "http://127.0.0.1:1/v1", limit, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestConformance: what stands before a client takes nothing away from it, be
// it the one that was configured or one that it moved to.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprint("moved ", moved), func(t *testing.T) {
			t.Parallel()
			llmtest.Conformance(t, func(t *testing.T, o llmtest.Options, answers ...llmtest.Answer) llmtest.Rig {
				srv := llmtest.NewServer(t, llmtest.Sequence(answers...))
				hc := o.HTTP
				if hc == nil {
					hc = &http.Client{Transport: &http.Transport{}}
				}
				t.Cleanup(hc.CloseIdleConnections)
				inner, err := openai.New(openai.Config{Provider: "p", Model: "m", BaseURL: srv.URL, HTTP: hc, MaxRetries: o.Retries,
					ConnectTimeout: o.Connect, FirstTokenTimeout: o.FirstToken, CallTimeout: o.Call, MaxTokens: o.MaxTokens, StallTimeout: o.Stall, Backoff: func() backoff.BackOff { return &backoff.ZeroBackOff{} }})
				if err != nil {
					t.Fatal(err)
				}
				members := []Member{{Client: inner, Slots: slots(t, t.TempDir(), 1), Breaker: NewBreaker(100, time.Minute, nil)}}
				if moved {
					members = append([]Member{{Client: &fake{name: "gone", fail: []llm.ErrorKind{llm.KindAuth}}}}, members...)
				}
				c, err := New(Config{Members: members})
				if err != nil {
					t.Fatal(err)
				}
				return llmtest.Rig{Client: refilling{c, moved}, Requests: srv.Requests, Quiet: srv.Quiet, Lacks: map[llmtest.Feature]string{
					llmtest.Opaques: "chat completions have no such field",
				}}
			})
		})
	}
}

// refilling is a client whose conversations keep what they need to move; they
// move before the first message where moved is set.
type refilling struct {
	llm.Client
	moved bool
}

func (r refilling) Open(s llm.Settings) llm.Conversation {
	v := r.Client.Open(s).(*conversation)
	if r.moved {
		if n, err := v.move(&llm.Error{Kind: llm.KindAuth}, 1); n != 1 || err != nil {
			panic(fmt.Sprint(n, err))
		}
	}
	return v
}

// fake is a model that fails as often as it has kinds of failure left, and
// then answers with its name and the messages that it holds.
type fake struct {
	name string
	fail []llm.ErrorKind
	sent int
	held []string
}

func (f *fake) Provider() string                   { return f.name }
func (f *fake) Model() string                      { return "m" }
func (f *fake) Open(llm.Settings) llm.Conversation { f.held = nil; return f }
func (f *fake) Append(m llm.Message)               { f.held = append(f.held, m.Content) }
func (f *fake) Reset()                             { f.held = nil }
func (f *fake) Serialized() []byte                 { return []byte(strings.Join(f.held, ",")) }
func (f *fake) Send(_ context.Context, onText func(string)) (*llm.Reply, error) {
	f.sent++
	if onText != nil {
		onText(f.name)
	}
	if len(f.fail) > 0 {
		kind := f.fail[0]
		f.fail = f.fail[1:]
		return nil, &llm.Error{Kind: kind, Provider: f.name, Message: "broken", Endpoint: "http://" + f.name}
	}
	return &llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Content: f.name + ":" + strings.Join(f.held, ",")}}, nil
}

func always(k llm.ErrorKind) []llm.ErrorKind {
	var all []llm.ErrorKind
	for range 20 {
		all = append(all, k)
	}
	return all
}

func TestFallback(t *testing.T) {
	t.Parallel()
	refill := func(v *conversation) func() error {
		return func() error {
			for _, s := range []string{"a", "b"} {
				v.Append(llm.Message{Role: llm.RoleUser, Content: s})
			}
			return nil
		}
	}
	for _, c := range []struct {
		name            string
		first, second   []llm.ErrorKind
		explicit, alone bool   // alone: nobody refills
		want            string // of two calls, or the kinds of their errors
		events          string
	}{
		{"works", nil, nil, false, false, "one:a,b one:a,b", ""},
		{"no key", always(llm.KindAuth), nil, false, false, "two:a,b two:a,b", "moved"},
		{"no such model", always(llm.KindNotFound), nil, false, false, "two:a,b two:a,b", "moved"},
		{"no money", always(llm.KindQuota), nil, false, false, "two:a,b two:a,b", "moved"},
		{"may not be sent", always(llm.KindForbidden), nil, false, false, "two:a,b two:a,b", "moved"},
		{"gone", always(llm.KindUnreachable), nil, false, false, "two:a,b two:a,b", "moved"},
		{"asked for", always(llm.KindAuth), nil, true, false, "auth auth", "declined declined"},
		{"nobody refills", always(llm.KindAuth), nil, false, true, "two:a,b two:a,b", "moved"},
		{"too long is the caller's", always(llm.KindContext), nil, false, false, "context context", ""},
		{"slow down is no reason", always(llm.KindRateLimited), nil, false, false, "rate_limited rate_limited", ""},
		{"a server's fault is the breaker's", []llm.ErrorKind{llm.KindServer}, nil, false, false, "server one:a,b", ""},
		{"both fail, and the first works again", []llm.ErrorKind{llm.KindUnreachable}, always(llm.KindUnreachable), false, false, "unreachable one:a,b", "moved moved"},
		{"both fail for good", always(llm.KindAuth), always(llm.KindQuota), false, false, "auth quota", "moved moved"},
		{"the second is asked to be shorter", always(llm.KindAuth), []llm.ErrorKind{llm.KindContext}, false, false, "auth two:a,b", "moved"},
	} {
		one, two := &fake{name: "one", fail: c.first}, &fake{name: "two", fail: c.second}
		var events, got []string
		client, err := New(Config{Members: []Member{{Client: one}, {Client: two}}, Explicit: c.explicit, OnEvent: func(e Event) { events = append(events, string(e.Kind)) }})
		if err != nil {
			t.Fatal(err)
		}
		v := client.Open(llm.Settings{}).(*conversation)
		if !c.alone {
			v.OnMove(refill(v))
		}
		_ = refill(v)()
		for range 2 {
			reply, err := v.Send(t.Context(), nil)
			var e *llm.Error
			switch {
			case errors.As(err, &e):
				got = append(got, string(e.Kind))
			case err != nil:
				t.Errorf("%s: %v", c.name, err)
			default:
				got = append(got, reply.Message.Content)
				if by := map[bool]string{true: "two/m"}[strings.HasPrefix(reply.Message.Content, "two")]; reply.By != by {
					t.Errorf("%s: answered by %q", c.name, reply.By)
				}
			}
		}
		if strings.Join(got, " ") != c.want || strings.Join(events, " ") != c.events {
			t.Errorf("%s: %q, events %q", c.name, got, events)
		}
		if client.Provider() != "one" || client.Model() != "m" || string(v.Serialized()) != "a,b" {
			t.Errorf("%s: %s %s %s", c.name, client.Provider(), client.Model(), v.Serialized())
		}
	}
}

// What answered keeps no messages for a move, unless it begins anew.
func TestNothingIsKeptAfterAnAnswer(t *testing.T) {
	t.Parallel()
	one, two := &fake{name: "one"}, &fake{name: "two"}
	client, _ := New(Config{Members: []Member{{Client: one}, {Client: two}}})
	v := client.Open(llm.Settings{}).(*conversation)
	for _, again := range []bool{false, true} {
		if again {
			v.Reset()
		}
		one.fail = nil
		v.Append(llm.Message{Content: "a"})
		if again {
			one.fail = always(llm.KindAuth)
		}
		reply, err := v.Send(t.Context(), nil)
		if err != nil || again && reply.Message.Content != "two:a" || v.kept != nil {
			t.Fatalf("%+v, %v, %d kept", reply, err, len(v.kept))
		}
		v.Append(llm.Message{Content: "b"})
		one.fail = always(llm.KindAuth)
		if _, err := v.Send(t.Context(), nil); !again && (err == nil || two.sent != 0 || v.kept != nil) {
			t.Errorf("%v, %d sent, %d kept", err, two.sent, len(v.kept))
		}
	}
}

func TestFallbackTellsBothErrors(t *testing.T) {
	t.Parallel()
	one, two := &fake{name: "one", fail: always(llm.KindAuth)}, &fake{name: "two", fail: always(llm.KindQuota)}
	client, _ := New(Config{Members: []Member{{Client: one}, {Client: two}}})
	_, err := client.Open(llm.Settings{}).Send(t.Context(), nil)
	if s := fmt.Sprint(err); !strings.Contains(s, "one http://one: auth") || !strings.Contains(s, "two http://two: quota") {
		t.Error(s)
	}
}

// TestRefillFails: a conversation that lost its messages is not sent.
func TestRefillFails(t *testing.T) {
	t.Parallel()
	one, two := &fake{name: "one", fail: always(llm.KindAuth)}, &fake{name: "two"}
	client, _ := New(Config{Members: []Member{{Client: one}, {Client: two}}})
	v := client.Open(llm.Settings{}).(*conversation)
	broken := errors.New("disk on fire")
	v.OnMove(func() error {
		v.Append(llm.Message{Content: "half"})
		return broken
	})
	v.Append(llm.Message{Content: "a"})
	for range 2 {
		if _, err := v.Send(t.Context(), nil); !errors.Is(err, broken) || two.sent != 0 {
			t.Errorf("%v, %d sent", err, two.sent)
		}
	}
	v.OnMove(func() error { return nil })
	if _, err := v.Send(t.Context(), nil); err == nil || two.sent != 0 {
		t.Errorf("nothing appended: %v, %d sent", err, two.sent)
	}
	v.OnMove(func() error { v.Append(llm.Message{Content: "a"}); return nil })
	reply, err := v.Send(t.Context(), nil)
	if err != nil || reply.Message.Content != "two:a" || v.Client() != llm.Client(two) || one.sent != 1 {
		t.Errorf("%v, %+v, %d sent", err, reply, one.sent)
	}
}

// TestSuspended: an endpoint that fails is left alone, its error says until
// when, and another model answers meanwhile.
func TestSuspended(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	one := &fake{name: "one", fail: always(llm.KindServer)[:3]}
	b := NewBreaker(2, time.Minute, clock)
	var events []Event
	client, _ := New(Config{Members: []Member{{Client: one, Breaker: b}}, Now: clock, OnEvent: func(e Event) { events = append(events, e) }})
	v := client.Open(llm.Settings{})
	send := func() *llm.Error {
		_, err := v.Send(t.Context(), nil)
		var e *llm.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		return e
	}
	for range 2 {
		if e := send(); e.Kind != llm.KindServer {
			t.Fatal(e)
		}
	}
	now = now.Add(20 * time.Second)
	e := send()
	if e.Kind != llm.KindSuspended || e.RetryAfter != 40*time.Second || e.Endpoint != "http://one" || one.sent != 2 || !strings.Contains(e.Error(), "2026-01-02T03:05:05Z") {
		t.Errorf("%+v after %d calls", e, one.sent)
	}
	if ja := i18n.Japanese.Error(e); !strings.Contains(ja, "呼び出しを控えます") || !strings.Contains(ja, "03:05:05") {
		t.Error(ja)
	}
	two := &fake{name: "two"}
	other, _ := New(Config{Members: []Member{{Client: one, Breaker: b}, {Client: two}}, Now: clock})
	if reply, err := other.Open(llm.Settings{}).Send(t.Context(), nil); err != nil || reply.Message.Content != "two:" || one.sent != 2 {
		t.Errorf("%v %+v", err, reply)
	}
	now = now.Add(40 * time.Second)
	if e := send(); e.Kind != llm.KindServer { // the trial call fails: twice as long
		t.Error(e)
	}
	now = now.Add(119 * time.Second)
	if e := send(); e.Kind != llm.KindSuspended || e.RetryAfter != time.Second {
		t.Errorf("%+v", e)
	}
	now = now.Add(time.Second)
	if e := send(); e != nil {
		t.Error(e)
	}
	var kinds []EventKind
	for _, e := range events {
		kinds = append(kinds, e.Kind)
		for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
			if s := e.Text(l); !strings.Contains(s, "one m") || strings.Contains(s, "%!") {
				t.Error(s)
			}
		}
	}
	if !reflect.DeepEqual(kinds, []EventKind{Opened, Opened, Closed}) || !events[0].Until.Equal(time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC)) {
		t.Errorf("%v", events)
	}
}

// TestSkipsWhatIsSuspended: a conversation is not encoded anew for a model
// that would not be called.
func TestSkipsWhatIsSuspended(t *testing.T) {
	t.Parallel()
	b := NewBreaker(1, time.Hour, nil)
	if done, _ := b.begin(); done(failed(llm.KindServer)) != Opened {
		t.Fatal("not open")
	}
	one, two, three := &fake{name: "one", fail: always(llm.KindAuth)}, &fake{name: "two"}, &fake{name: "three"}
	var events []string
	c, _ := New(Config{Members: []Member{{Client: one}, {Client: two, Breaker: b}, {Client: three}}, OnEvent: func(e Event) { events = append(events, e.Text(i18n.English)) }})
	reply, err := c.Open(llm.Settings{}).Send(t.Context(), nil)
	if err != nil || reply.Message.Content != "three:" || len(events) != 1 || !strings.Contains(events[0], "three m answers from now on") {
		t.Errorf("%v %+v %q", err, reply, events)
	}
	c, _ = New(Config{Members: []Member{{Client: one}, {Client: two, Breaker: b}}})
	var e *llm.Error
	if _, err := c.Open(llm.Settings{}).Send(t.Context(), nil); !errors.As(err, &e) || e.Kind != llm.KindAuth {
		t.Error(err)
	}
}

// TestPanicClosesTheTrial: a caller that panics in onText leaves neither a
// slot nor a trial call behind.
func TestPanicClosesTheTrial(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	b := NewBreaker(1, time.Minute, func() time.Time { return now })
	s := slots(t, t.TempDir(), 1)
	one := &fake{name: "one", fail: always(llm.KindServer)[:1]}
	c, _ := New(Config{Members: []Member{{Client: one, Slots: s, Breaker: b}}, Now: func() time.Time { return now }})
	v := c.Open(llm.Settings{})
	_, _ = v.Send(t.Context(), nil)
	now = now.Add(time.Minute)
	func() {
		defer func() { _ = recover() }()
		_, _ = v.Send(t.Context(), func(string) { panic("x") })
	}()
	if _, err := v.Send(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestWaitIsToldAndCancelled in faked time: a call that waits for its slot says
// so, and gives up at once.
func TestWaitIsToldAndCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slots(t, t.TempDir(), 1)
		held, err := s.Acquire(t.Context(), PriorityCoder, "coder1 of run x", nil)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		one := &fake{name: "one"}
		c, _ := New(Config{Members: []Member{{Client: one, Slots: s}}, Priority: PriorityChat, Who: "chat", OnEvent: func(e Event) { told = append(told, e.Text(i18n.English)) }})
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.Open(llm.Settings{}).Send(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 65*time.Second || one.sent != 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if len(told) != 3 || told[1] != "Waiting for one m since 30s; 0 are ahead" {
			t.Errorf("told %q", told)
		}
		held.Release()
		held.Release()
		if _, err := c.Open(llm.Settings{}).Send(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

func TestNoMember(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("a client without a model")
	}
}

// BenchmarkOverhead is the cost of a call beyond the client's own.
func BenchmarkOverhead(b *testing.B) {
	one := &fake{name: "one"}
	for name, m := range map[string]Member{
		"bare":  {Client: one},
		"whole": {Client: one, Slots: slots(b, b.TempDir(), 4), Breaker: NewBreaker(3, time.Minute, nil)},
	} {
		c, err := New(Config{Members: []Member{m}, Who: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		v := c.Open(llm.Settings{})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Send(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A call beside the work that fails, however often, keeps nobody from the
// endpoint; one that is answered shows that it works.
func TestCallsBesideTheWorkOpenNoBreaker(t *testing.T) {
	t.Parallel()
	f := &fake{name: "a", fail: always(llm.KindServer)}
	b := NewBreaker(2, time.Minute, nil)
	c, err := New(Config{Members: []Member{{Client: f, Breaker: b}}})
	if err != nil {
		t.Fatal(err)
	}
	aside := llm.Aside(t.Context())
	for range 9 {
		if _, err := c.Open(llm.Settings{}).Send(aside, nil); err == nil {
			t.Fatal("it answers")
		}
	}
	if f.sent != 9 || !b.OpenUntil().IsZero() {
		t.Errorf("%d calls; open until %v", f.sent, b.OpenUntil())
	}
	_, _ = c.Open(llm.Settings{}).Send(t.Context(), nil)
	f.fail = nil
	if _, err := c.Open(llm.Settings{}).Send(aside, nil); err != nil {
		t.Fatal(err)
	}
	f.fail = always(llm.KindServer)
	if _, _ = c.Open(llm.Settings{}).Send(t.Context(), nil); !b.OpenUntil().IsZero() {
		t.Error("an answer was not counted")
	}
	if _, _ = c.Open(llm.Settings{}).Send(t.Context(), nil); b.OpenUntil().IsZero() {
		t.Error("the work's own failures were not counted")
	}
}
