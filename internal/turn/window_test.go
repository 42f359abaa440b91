package turn

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
)

// A provider that refuses a request is sent shorter ones; where it refuses those,
// too, the run ends cleanly and is not tried for ever.
func TestOverflowIsMet(t *testing.T) {
	t.Parallel()
	tooLong := func() (*llm.Reply, error) { return nil, &llm.Error{Kind: llm.KindContext} }
	var answers []func() (*llm.Reply, error)
	for i := range 8 {
		answers = append(answers, say("", call(fmt.Sprint(i), "write")))
	}
	b := setup(t, hands{"write": ok(strings.Repeat("x", 2000))}, append(answers, tooLong, tooLong, tooLong, tooLong, say("too late"))...)
	_, err := b.loop.Run(t.Context())
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindContext || len(b.model.sent) != 12 {
		t.Fatalf("%v after %d requests", err, len(b.model.sent))
	}
	if event, n := b.loop.Window.Decision(); n != 3 || event.Reason != "the provider found the request too long" {
		t.Errorf("%d decisions, %+v", n, event)
	}
	// The ledger is whole: the next owner goes on.
	if r := b.roles(t); r != "su"+strings.Repeat("at", 8) {
		t.Errorf("messages %s", r)
	}
}

// A drop of what the provider reads from its cache is logged once, with its cause.
func TestCacheDropIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	used := func(id string, prompt, cached int, by string, pause time.Duration) func() (*llm.Reply, error) {
		return func() (*llm.Reply, error) {
			now = now.Add(pause)
			r, _ := say("", call(id, "write"))()
			r.Usage, r.By = &llm.Usage{PromptTokens: prompt, CachedTokens: cached, CompletionTokens: 1, TotalTokens: prompt + 1}, by
			return r, nil
		}
	}
	b := setup(t, hands{"write": ok("w")},
		used("1", 1000, 0, "", 0), used("2", 1100, 1000, "", 0), used("3", 1200, 1100, "", 0),
		used("4", 1300, 0, "", 0), used("5", 1400, 1300, "", 0),
		used("6", 1500, 0, "b/m", 0), used("7", 1600, 1500, "b/m", 0),
		used("8", 1700, 100, "b/m", time.Hour), used("9", 1800, 1700, "b/m", 0), say("done"))
	b.loop.Log, b.loop.Now = slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now }
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var causes []string
	for line := range strings.Lines(log.String()) {
		if _, cause, found := strings.Cut(line, "cause="); found {
			causes = append(causes, strings.TrimSpace(cause))
		}
	}
	if got, want := strings.Join(causes, "|"), `"not known: the request only grew at its end"|"another model answered"|"the request before was 1h0m0s ago"|"another model answered"`; got != want {
		t.Errorf("%s\n%s", got, want)
	}
}

// A mask costs the cache, and the log says so.
func TestCacheDropByTheWindow(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var answers []func() (*llm.Reply, error)
	var b *bench
	var before []byte
	for i := range 40 {
		answers = append(answers, func() (*llm.Reply, error) {
			r, _ := say("", call(fmt.Sprint(i), "write"))()
			r.Usage = &llm.Usage{PromptTokens: 1000, CachedTokens: 100}
			now := bytes.TrimSuffix(b.model.Serialized(), []byte("]"))
			if bytes.HasPrefix(now, before) {
				r.Usage.CachedTokens = 900
			}
			before = bytes.Clone(now)
			return r, nil
		})
	}
	b = setup(t, hands{"write": ok(strings.Repeat("x", 2000))}, answers...)
	w, err := memory.Open(b.ctx, b.model, memory.Policy{Limit: 100_000, Masking: memory.Masking{Enabled: true, KeepTurns: 10, MinShare: 0.05}})
	if err != nil {
		t.Fatal(err)
	}
	b.loop.Window, b.loop.Log = w, slog.New(slog.NewTextHandler(&log, nil))
	var ended *llm.Error
	if _, err := b.loop.Run(t.Context()); !errors.As(err, &ended) || ended.Kind != llm.KindScriptEnded {
		t.Fatal(err)
	}
	if event, n := w.Decision(); n < 1 || event.Type != contextstore.WindowMask || !strings.Contains(log.String(), "the window was rewritten (mask 1:") {
		t.Errorf("%d decisions, %+v\n%s", n, event, log.String())
	}
}

// A server that reads less than it is sent ends the run: making room would hide
// that it does not hold what it was asked for.
func TestACutPromptEndsTheRun(t *testing.T) {
	t.Parallel()
	b := setup(t, hands{"write": ok("w")}, say("", call("1", "write")), func() (*llm.Reply, error) { return nil, &llm.Error{Kind: llm.KindCutPrompt} }, say("too late"))
	_, err := b.loop.Run(t.Context())
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindCutPrompt || len(b.model.sent) != 2 {
		t.Errorf("%v after %d requests", err, len(b.model.sent))
	}
	if _, n := b.loop.Window.Decision(); n != 0 || b.roles(t) != "suat" {
		t.Errorf("%d decisions, messages %s", n, b.roles(t))
	}
}

// A server that was seen to read only a part is sent what it read at most; where that
// cannot hold even the beginning, the run ends with what the server is, not with a
// window that is too small.
func TestAPartReadIsWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ read, sent int }{{2000, 3}, {20, 2}} {
		part := func() (*llm.Reply, error) {
			return nil, &llm.Error{Kind: llm.KindContext, Read: c.read, Message: "reads a part"}
		}
		b := setup(t, hands{"write": ok(strings.Repeat("x", 20_000))}, say("", call("1", "write")), part, say("Done."))
		_, err := b.loop.Run(t.Context())
		var e *llm.Error
		if (err == nil) != (c.sent == 3) || err != nil && (!errors.As(err, &e) || e.Message != "reads a part") || len(b.model.sent) != c.sent {
			t.Errorf("%d read: %v after %d requests", c.read, err, len(b.model.sent))
		}
		if c.sent == 3 && b.loop.Window.Tokens() > c.read {
			t.Errorf("%d read: about %d tokens were sent", c.read, b.loop.Window.Tokens())
		}
	}
}
