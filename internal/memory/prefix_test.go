package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/llm/ollama"
	scripted "toritsugi/internal/llm/script"
	"toritsugi/internal/llm/texttool"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

var update = flag.Bool("update", false, "write the golden files anew")

// clients are one of each kind, none of which can reach a server.
func clients(t *testing.T) map[string]llm.Client {
	t.Helper()
	all := map[string]llm.Client{"openai": openaiClient(t)}
	var err error
	if all["anthropic"], err = anthropic.New(anthropic.Config{Provider: "anthropic", Model: "m", BaseURL: "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if all["ollama"], err = ollama.New(ollama.Config{Provider: "ollama", Model: "m", BaseURL: "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if all["script"], err = scripted.Parse("steps.yaml", []byte("- say: x\n")); err != nil {
		t.Fatal(err)
	}
	all["texttool"] = texttool.New(all["openai"])
	return all
}

// scribe writes summaries that keep what they are told to keep.
func scribe(asked *int) func(context.Context) (Summarizer, error) {
	return func(context.Context) (Summarizer, error) {
		return Summarizer{Name: "test/scribe", Window: 8000, Ask: func(_ context.Context, prompt string, limit int) (Answer, error) {
			*asked++
			var kept []string
			for line := range strings.Lines(prompt) {
				if id, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
					kept = append(kept, id)
				}
				if strings.HasPrefix(line, "=== ") {
					break
				}
			}
			return Answer{Text: fmt.Sprintf("要約 %d: files %s were worked on.", *asked, strings.Join(kept, ", ")),
				Usage: &contextstore.Usage{Prompt: len(prompt) / 4, Completion: 20}}, nil
		}}, nil
	}
}

// owner is a run on a real context that can be killed and taken up again.
type owner struct {
	t     *testing.T
	base  string
	id    string
	store *contextstore.Store
	ctx   *contextstore.Context
	win   *Window
	open  func() llm.Conversation
	p     Policy
}

func (o *owner) claim() {
	o.t.Helper()
	var err error
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o.store, err = contextstore.Open(o.t.Context(), contextstore.Options{BaseDir: o.base, NoSync: true, Redact: func(s string) string { return s },
		Now: func() time.Time { now = now.Add(time.Millisecond); return now }})
	if err == nil && o.id == "" {
		o.id, err = o.store.Enqueue(o.t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "1"}})
	}
	if err == nil {
		o.ctx, _, err = o.store.Claim(o.t.Context(), o.id)
	}
	if err == nil {
		o.win, err = Open(o.ctx, o.open(), o.p)
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *owner) kill() {
	_ = o.ctx.Close()
	_ = o.store.Close()
}

func (o *owner) append(all ...contextstore.Message) {
	o.t.Helper()
	written, err := o.ctx.Append(all...)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, m := range written {
		o.win.Add(m)
	}
}

// text is n bytes of lines that follow from seed.
func text(seed, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d:%d the quick brown fox 速い茶色の狐 <&>\n", seed, i)
	}
	return b.String()[:strings.LastIndexByte(b.String()[:n], '\n')+1]
}

// turn is the messages of the n-th turn: one call, or two side by side, some
// with bulky arguments and long results, and now and then somebody speaks.
func turnOf(n int) [][]contextstore.Message {
	call := func(k int, name, args string) contextstore.ToolCall {
		return contextstore.ToolCall{ID: redact.Opaque(fmt.Sprintf("call_%d_%d", n, k)), Name: name, Arguments: args}
	}
	a := contextstore.Message{Role: "assistant", Content: fmt.Sprint("step ", n), Reasoning: "thought " + fmt.Sprint(n)}
	if n%3 == 0 {
		a.Provider = redact.Opaque(fmt.Sprintf(`[{"type":"thinking","thinking":"t%d","signature":"sig%d"}]`, n, n))
	}
	body, _ := json.Marshal(text(n, 900))
	switch n % 4 {
	case 0:
		a.ToolCalls = append(a.ToolCalls, call(0, "write_file", fmt.Sprintf(`{"path":"pkg/file%d.go","content":%s}`, n%7, body)))
	case 1:
		a.ToolCalls = append(a.ToolCalls, call(0, "read_file", fmt.Sprintf(`{"path":"a%d.go"}`, n)), call(1, "grep", `{"pattern":"x"}`))
	default:
		a.ToolCalls = append(a.ToolCalls, call(0, "shell", fmt.Sprintf(`{"command":"go test ./p%d"}`, n)))
	}
	var results []contextstore.Message
	for i, c := range a.ToolCalls {
		results = append(results, contextstore.Message{Role: "tool", ToolCallID: c.ID, ToolName: c.Name, Content: text(n+i, 300+n*131%2500), Failed: n%11 == 0})
	}
	all := [][]contextstore.Message{{a}, results}
	if n%23 == 22 {
		all = append(all, []contextstore.Message{{Role: "user", Content: fmt.Sprintf("Comment %d: see pkg/file3.go and #%d.", n, n), Pinned: n%2 == 0}})
	}
	return all
}

// golden is what was sent at a turn.
type golden struct {
	Turn     int
	Bytes    int
	SHA256   string
	Decision string
}

// Over 300 turns with masks, summaries and kills, the request of every provider
// only grows at its end between decisions, is the same to the byte after a
// kill, and is what it was when the golden file was written.
func TestPrefixOfThreeHundredTurns(t *testing.T) {
	t.Parallel()
	for name, client := range clients(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			o := &owner{t: t, base: t.TempDir(), open: func() llm.Conversation { return client.Open(llm.Settings{}) },
				p: Policy{Limit: 7000, Context: 10_000, Threshold: 0.7, MinMessages: 10, KeepRecent: 5, Masking: Masking{true, 10, 0.1}, Summarizer: scribe(&asked)}}
			o.claim()
			defer func() { o.kill() }()
			o.append(contextstore.Message{Role: "system", Content: "SYSTEM"}, contextstore.Message{Role: "user", Content: "Repair pkg/file1.go, see #12."})
			var before []byte
			var all []golden
			kinds := map[string]int{}
			event := int64(0)
			for n := range 300 {
				if err := o.win.Fit(t.Context()); err != nil {
					t.Fatalf("turn %d: %v", n, err)
				}
				now := bytes.Clone(o.win.Conversation().Serialized())
				e, _ := o.win.Decision()
				if e.ID == event && !bytes.HasPrefix(now, before) {
					t.Fatalf("turn %d: the prefix changed without a decision", n)
				}
				if e.ID != event {
					kinds[e.Type]++
					all = append(all, golden{n, len(now), fmt.Sprintf("%x", sha256.Sum256(now)), e.Type})
				}
				if o.win.Tokens() > o.p.Limit {
					t.Fatalf("turn %d: %d tokens", n, o.win.Tokens())
				}
				event, before = e.ID, now
				if n%17 == 16 {
					o.kill()
					o.claim()
					if again := o.win.Conversation().Serialized(); !bytes.Equal(now, again) {
						t.Fatalf("turn %d: other bytes after a kill\n%.2000s\n%.2000s", n, now, again)
					}
				}
				for _, m := range turnOf(n) {
					o.append(m...)
				}
			}
			if kinds[contextstore.WindowMask] < 10 || kinds[contextstore.WindowSummary] < 3 || kinds[contextstore.WindowTruncate] > 0 {
				t.Errorf("decisions: %v", kinds)
			}
			for _, s := range []string{"SYSTEM", "Repair pkg/file1.go", "Summary", "Comment 22: see pkg/file3.go and #22."} {
				if !bytes.Contains(before, []byte(s)) {
					t.Errorf("%q is not in the last request", s)
				}
			}
			st := o.ctx.State()
			if int(st.CompressionCount) != kinds[contextstore.WindowSummary] || st.CurrentContextTokens < 1000 || st.CurrentContextTokens > 7500 || st.Failures != 0 {
				t.Errorf("compressions %d of %d, context tokens %d, failures %d", st.CompressionCount, kinds[contextstore.WindowSummary], st.CurrentContextTokens, st.Failures)
			}
			compareGolden(t, filepath.Join("testdata", "prefix-"+name+".json"), all)
		})
	}
}

func compareGolden(t *testing.T, path string, got []golden) {
	t.Helper()
	b, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(want, b) {
		t.Errorf("what is sent is not what it was (%v): run the test with -update if that is meant, resumed runs lose the provider's cache by it\n%.600s", err, b)
	}
}

// However the window was cut, each result follows its call and each call has
// its results: providers refuse anything else.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	client := openaiClient(t)
	asked := 0
	o := &owner{t: t, base: t.TempDir(), open: func() llm.Conversation { return client.Open(llm.Settings{}) },
		p: Policy{Limit: 5000, Context: 7000, Threshold: 0.7, MinMessages: 10, KeepRecent: 4, Masking: Masking{true, 3, 0.05}, Summarizer: scribe(&asked)}}
	o.claim()
	defer func() { o.kill() }()
	o.append(contextstore.Message{Role: "system", Content: "SYSTEM"}, contextstore.Message{Role: "user", Content: "REQUEST"})
	for n := range 120 {
		if n == 60 {
			o.win.policy.Summarizer = nil // what is over the cap is dropped from now on
		}
		if err := o.win.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
		var sent []struct {
			Role       string `json:"role"`
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(fmt.Appendf(nil, "[%s]", o.win.Conversation().Serialized()), &sent); err != nil {
			t.Fatal(err)
		}
		open := map[string]bool{}
		for i, m := range sent {
			if m.Role == "tool" {
				if !open[m.ToolCallID] {
					t.Fatalf("turn %d, message %d: a result without its call", n, i)
				}
				delete(open, m.ToolCallID)
				continue
			}
			if len(open) > 0 {
				t.Fatalf("turn %d, message %d: no results of %v", n, i, slices.Collect(maps.Keys(open)))
			}
			for _, c := range m.ToolCalls {
				open[c.ID] = true
				if !json.Valid([]byte(c.Function.Arguments)) {
					t.Fatalf("turn %d: arguments %s", n, c.Function.Arguments)
				}
			}
		}
		for _, m := range turnOf(n) {
			o.append(m...)
		}
	}
}
