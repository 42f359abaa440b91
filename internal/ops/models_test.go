package ops

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/endpoint"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/models"
)

func mask(s string) string { return strings.ReplaceAll(s, "s3cret", "[MASK]") }

func sample() models.Health {
	return models.Health{
		Models: []models.Row{
			{Role: "task", Provider: "openai", Model: "gpt-4o", Endpoint: "https://h/v1", Cloud: true, Reachable: models.Yes, Present: models.Yes, Context: 128000, Tools: models.Yes, Images: models.Unknown, Price: &models.Prices{Input: 2.5, CachedInput: 1.25, Output: 10}},
			{Role: "task", Fallback: 1, Provider: "ollama", Model: "ollama/q", Endpoint: "http://127.0.0.1:1", Reachable: models.No, Present: models.Unknown, Context: 8192, Tools: models.No, Images: models.No, Price: &models.Prices{}, Problem: errors.New("refused \x1b[31ms3cret")},
			{Role: "coder3", Alias: "Claude", Provider: "anthropic", Model: "c", Endpoint: "https://a", Cloud: true, Reachable: models.Unknown, Present: models.Unknown, Forbidden: errors.New("forbidden")},
		},
		Ollama: []ollama.Health{{
			Endpoint: "http://127.0.0.1:1", CheckedAt: time.Unix(1, 0), Reachable: true, Version: "0.1", RestartLimit: 3, Restarts: 1, Window: 10 * time.Minute, LastError: "it failed with s3cret",
			Models: []ollama.ModelHealth{{Model: "ollama/q", Loaded: true, ContextLength: 8192, MaxContext: 8192, ContextOK: true, SizeVRAM: 5 << 20}, {Model: "w"}},
		}},
		Queues: []endpoint.Queue{{Endpoint: "http://127.0.0.1:1", Parties: []endpoint.Party{
			{Who: "tori run 1", PID: 7, Holding: true, Since: time.Unix(0, 0)}, {Who: "tori run 2", PID: 8, Since: time.Unix(0, 0)}}}},
		Err: errors.New("also \x1bthis"),
	}
}

// What people read, in both languages: nothing that a server says gets to the
// terminal as it is, and no text has values that do not fit it.
func TestHealthText(t *testing.T) {
	t.Parallel()
	const want = `OK: nothing is wrong
not ready
task        openai/gpt-4o
            https://h/v1, cloud, reachable
            context 128000, tools yes, images unknown, $2.50 in / $10.00 out per million tokens
  2         ollama/q
            http://127.0.0.1:1, local, not reachable
            context 8192, tools no, images no, no cost
            refused [31m[MASK]
coder3      anthropic/c (Claude)
            https://a, cloud, not asked
            context 0, tools , images , price unknown
            forbidden
Ollama http://127.0.0.1:1 0.1
  q                               loaded, context 8192 (allowed 0 to 8192, 0 for no limit), 5 MiB on the graphics card
  w                               not loaded
  restarts: 1 of at most 3 within 10m0s
  The model w is not in the memory of Ollama at http://127.0.0.1:1. Check that it was pulled or created (ollama list) and that it fits.
  the last repair failed: it failed with [MASK]
http://127.0.0.1:1: tori run 1 (process 7) calls it since 1970-01-01 00:00:00
http://127.0.0.1:1: tori run 2 (process 8) waits since 1970-01-01 00:00:00
also this
`
	h := sample()
	h.Models[2].Tools, h.Models[2].Images = models.Unknown, models.Unknown
	for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
		var b bytes.Buffer
		if err := PrintHealth(&b, Health{Status: "ok", Models: h}, ModelsOptions{Lang: lang, Mask: mask}); err != nil {
			t.Fatal(err)
		}
		got := b.String()
		if strings.Contains(got, "%!") || strings.ContainsRune(got, 0x1b) || strings.Contains(got, "models.") {
			t.Errorf("%s", got)
		}
		if w := strings.Replace(want, "tools , images ,", "tools unknown, images unknown,", 1); lang == i18n.English && got != w {
			t.Error(cmp.Diff(w, got))
		}
	}
}

func TestHealthJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := PrintHealth(&b, Health{Status: "ok", Models: sample()}, ModelsOptions{JSON: true, Lang: i18n.English, Mask: mask}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Ready  bool
		Error  string
		Models []struct{ Role, Problem, Forbidden string }
		Ollama []struct {
			Ready    bool
			Problems []string
		}
		Queues []struct{ Parties []struct{ Who string } }
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Ready || got.Error != "also \x1bthis" || len(got.Models) != 3 || got.Models[1].Problem == "" || got.Models[2].Forbidden != "forbidden" ||
		len(got.Ollama) != 1 || got.Ollama[0].Ready || len(got.Ollama[0].Problems) != 1 || got.Queues[0].Parties[1].Who != "tori run 2" || strings.Contains(b.String(), "s3cret") {
		t.Errorf("%s", b.String())
	}
}

func TestTrialText(t *testing.T) {
	t.Parallel()
	cost := int64(1234)
	trial := models.Trial{Role: "task", AnsweredBy: "openai/gpt-4o", Named: "gpt-4o-2024", First: 1500 * time.Millisecond, Total: 3 * time.Second, PerSecond: 41.26,
		Usage: &llm.Usage{PromptTokens: 10, CachedTokens: 4, CompletionTokens: 60, ReasoningTokens: 2, Cost: &cost}, Text: "1 2 3 s3cret\nmore"}
	var b bytes.Buffer
	if err := Trial(&b, trial, ModelsOptions{Lang: i18n.English, Mask: mask}); err != nil {
		t.Fatal(err)
	}
	const want = `task: openai/gpt-4o answered (gpt-4o-2024)
first token after 1.5s, all after 3s
41.3 tokens per second
prompt 10 tokens (4 cached), answer 60 (2 reasoning), $0.0012
it said: 1 2 3 [MASK]
`
	if got := b.String(); got != want {
		t.Error(cmp.Diff(want, got))
	}
	for _, u := range []*llm.Usage{nil, {}} {
		trial.Usage = u
		b.Reset()
		if err := Trial(&b, trial, ModelsOptions{Lang: i18n.Japanese, Mask: mask}); err != nil || strings.Contains(b.String(), "%!") {
			t.Errorf("%v: %s", err, b.String())
		}
	}
}
