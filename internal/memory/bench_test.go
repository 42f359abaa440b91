package memory

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// grown is a context with so many turns behind a window of some 32,000 tokens,
// kept by a policy with stubs and, where asked for, summaries.
func grown(tb testing.TB, turns int, summaries bool) (*contextstore.Context, *Window, llm.Client, Policy) {
	tb.Helper()
	client, err := openai.New(openai.Config{Provider: "openai", Model: "m", BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		tb.Fatal(err)
	}
	store, err := contextstore.Open(tb.Context(), contextstore.Options{BaseDir: tb.TempDir(), NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		tb.Fatal(err)
	}
	id, err := store.Enqueue(tb.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "1"}})
	if err != nil {
		tb.Fatal(err)
	}
	c, _, err := store.Claim(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _, _ = c.Close(), store.Close() })
	asked := 0
	p := Policy{Limit: 32_000, Context: 45_000, Threshold: 0.7, MinMessages: 10, KeepRecent: 5, Masking: Masking{true, 10, 0.1}}
	if summaries {
		p.Summarizer = scribe(&asked)
	}
	w, err := Open(c, client.Open(llm.Settings{}), p)
	if err != nil {
		tb.Fatal(err)
	}
	put := func(all ...contextstore.Message) {
		written, err := c.Append(all...)
		if err != nil {
			tb.Fatal(err)
		}
		for _, m := range written {
			w.Add(m)
		}
	}
	put(contextstore.Message{Role: "system", Content: strings.Repeat("s", 4000)}, contextstore.Message{Role: "user", Content: "REQUEST"})
	for i := range turns {
		if err := w.Fit(tb.Context()); err != nil {
			tb.Fatal(err)
		}
		call := redact.Opaque(fmt.Sprint("call_", i))
		put(contextstore.Message{Role: "assistant", Content: "step", ToolCalls: []contextstore.ToolCall{{ID: call, Name: "shell", Arguments: `{"command":"go test ./..."}`}}})
		put(contextstore.Message{Role: "tool", ToolCallID: call, ToolName: "shell", Content: strings.Repeat("o", 1000)})
	}
	return c, w, client, p
}

// A context takes no more memory after 1,000 calls than after 100, and no more
// than store-v2 §7.1 allows; reading it again takes what it shows.
func TestMemoryOfAContext(t *testing.T) {
	heap := func(turns int, summaries bool) float64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&before)
		c, w, _, _ := grown(t, turns, summaries)
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		n := float64(after.HeapAlloc) - float64(before.HeapAlloc)
		runtime.KeepAlive(c)
		runtime.KeepAlive(w)
		return n / 1e6
	}
	_ = heap(1, false) // what is made once
	few, many, short := heap(100, false), heap(1000, false), heap(1000, true)
	t.Logf("MB after 100 calls %.2f, after 1,000 %.2f, with summaries %.2f", few, many, short)
	if few > 1.5 || many > 2 || short > 1 {
		t.Errorf("MB after 100 calls %.2f, after 1,000 %.2f, with summaries %.2f", few, many, short)
	}
}

// BenchmarkOpen assembles a window of about 32,000 tokens behind a long history.
func BenchmarkOpen(b *testing.B) {
	for _, turns := range []int{200, 2000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			c, w, client, p := grown(b, turns, false)
			b.SetBytes(int64(len(w.Conversation().Serialized())))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Open(c, client.Open(llm.Settings{}), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTurn is what a turn adds to a window: nothing of it grows with the
// history.
func BenchmarkTurn(b *testing.B) {
	l := &ledger{}
	w, err := Open(l, &transcript{}, Policy{Limit: 1 << 40, Masking: Masking{true, 10, 0.1}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		story(l, w, 1, 1000)
		if err := w.Fit(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
