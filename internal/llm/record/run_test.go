package record

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/llm/price"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/memory"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
)

// hands answer every call alike.
type hands struct{}

func (hands) Call(_ context.Context, name, _ string) (tool.Result, error) {
	return tool.Result{Text: "result of " + name}, nil
}
func (hands) ReadOnly(string) bool   { return false }
func (hands) Waits(string) bool      { return false }
func (hands) Own(name string) string { return name }

// run is a run of the loop on client; it returns its ledger.
func run(t *testing.T, client llm.Client, mask func(string) string) *contextstore.Context {
	t.Helper()
	store, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: mask})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	id, err := store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := store.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Append(contextstore.Message{Role: "system", Content: "S"}, contextstore.Message{Role: "assistant", Content: "An inherited summary."},
		contextstore.Message{Role: "user", Content: "U"}); err != nil {
		t.Fatal(err)
	}
	w, err := memory.Open(c, client.Open(llm.Settings{}), memory.Policy{Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	loop := turn.New(turn.Settings{Ledger: c, Window: w, Tools: hands{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: time.Now,
		Scripted: client.Provider() == script.Provider}, turn.NoDirector{})
	if _, err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func messages(t *testing.T, c *contextstore.Context) (all []contextstore.Message) {
	t.Helper()
	if err := c.Messages(0, func(m contextstore.Message) bool { all = append(all, m); return true }); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestReplayGivesTheSameLedger: a run, the replay of its record, that of its
// messages.jsonl and that of a record made of them afterwards write the same
// messages but for their times.
func TestReplayGivesTheSameLedger(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	all := answers("")
	for i := range all {
		if all[i].Usage == nil { // what was estimated is not the provider's word, and not replayed
			all[i].Usage = &llm.Usage{PromptTokens: 1000 + i, CompletionTokens: 5, TotalTokens: 2000}
		}
		all[i].Finish = strings.ReplaceAll(all[i].Finish, llm.FinishContentFilter, llm.FinishLength) // else the run would end there
	}
	all[0].Text += " password is " + secret
	all[0].Reasoning += secret
	all[0].Calls[0].Arguments = `{"command":"login ` + secret + `"}`
	srv := llmtest.NewServer(t, llmtest.Sequence(all...))
	client, err := openai.New(openai.Config{Provider: "openai", Model: "m", BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	client = price.Priced(client, func(string) (price.Price, bool) { return price.Price{Rates: price.Rates{Input: 3, Output: 15}}, true })
	mask := redact.New([]string{secret}, nil).String
	var file, seeded bytes.Buffer
	live := run(t, New(client, NewWriter(&file, mask, mustNot(t))), mask)
	want := messages(t, live)
	if strings.Contains(file.String(), secret) || strings.Count(file.String(), "cost_micro_usd") != len(all) || len(want) < 12 {
		t.Errorf("%d messages, recorded\n%s", len(want), file.Bytes())
	}
	if err := NewWriter(&seeded, mask, mustNot(t)).Seed(Answers(func(f func(contextstore.Message) bool) error { return live.Messages(0, f) })); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(file.String(), seeded.String()); diff != "" {
		t.Errorf("a record and one of its ledger (-record +ledger):\n%s", diff)
	}
	ledger, err := os.ReadFile(filepath.Join(live.Dir(), "messages.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"record": file.Bytes(), "messages.jsonl": ledger, "record of the ledger": seeded.Bytes()} {
		c, err := script.Parse("r.jsonl", data)
		if err != nil {
			t.Fatal(err)
		}
		got := messages(t, run(t, c, mask))
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(contextstore.Message{}, "Timestamp")); diff != "" {
			t.Errorf("%s (-live +replayed):\n%s", name, diff)
		}
	}
}
