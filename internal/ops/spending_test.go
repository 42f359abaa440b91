package ops

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

func TestSpendingIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls  int64
		spent  contextstore.Spending
		en, ja string
	}{
		"scripted": {3, contextstore.Spending{}, "", ""},
		"priced": {3, contextstore.Spending{PromptTokens: 40_000, CachedTokens: 30_000, CompletionTokens: 5678, ReasoningTokens: 1200, CostMicroUSD: 12_345},
			"Prompt tokens: 40,000 (30,000 cached)|Completion tokens: 5,678 (1,200 reasoning)|Cost: $0.0123",
			"入力トークン: 40,000（うちキャッシュから 30,000）|出力トークン: 5,678（うち推論 1,200）|費用: $0.0123"},
		"one without a price": {3, contextstore.Spending{PromptTokens: 4, CostMicroUSD: 2_000_000, UnpricedCalls: 1},
			"Prompt tokens: 4|Completion tokens: 0|Cost: $2.0000 (1 call without a price)", "入力トークン: 4|出力トークン: 0|費用: $2.0000（価格のわからない呼び出し 1 回を除く）"},
		"many without a price": {3000, contextstore.Spending{PromptTokens: 4, CostMicroUSD: 7, UnpricedCalls: 2000},
			"Prompt tokens: 4|Completion tokens: 0|Cost: $0.000007 (2,000 calls without a price)", "入力トークン: 4|出力トークン: 0|費用: $0.000007（価格のわからない呼び出し 2,000 回を除く）"},
		"no price": {2, contextstore.Spending{PromptTokens: 4, UnpricedCalls: 2},
			"Prompt tokens: 4|Completion tokens: 0|Cost: no price known", "入力トークン: 4|出力トークン: 0|費用: 価格がわかりません"},
		"free": {2, contextstore.Spending{PromptTokens: 4}, "Prompt tokens: 4|Completion tokens: 0|Cost: $0", "入力トークン: 4|出力トークン: 0|費用: $0"},
		"free but for one": {2, contextstore.Spending{PromptTokens: 4, UnpricedCalls: 1},
			"Prompt tokens: 4|Completion tokens: 0|Cost: $0 (1 call without a price)", "入力トークン: 4|出力トークン: 0|費用: $0（価格のわからない呼び出し 1 回を除く）"},
	} {
		s := contextstore.State{LLMCallCount: c.calls, Spending: c.spent}
		for l, want := range map[i18n.Lang]string{i18n.English: c.en, i18n.Japanese: c.ja} {
			if got := strings.Join(spending(s, false, l), "|"); got != want {
				t.Errorf("%s, %v: %s, want %s", name, l, got, want)
			}
		}
	}
}

// Both verbs give programs the sums as they are, and people a few lines.
func TestSpendingIsShown(t *testing.T) {
	t.Parallel()
	base, uuid := example(t)
	path := filepath.Join(base, "completed", uuid, "state.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spent := contextstore.Spending{PromptTokens: 40_000, CachedTokens: 30_000, CacheWriteTokens: 3, CompletionTokens: 5678, ReasoningTokens: 1200, CostMicroUSD: 12_345, UnpricedCalls: 2}
	more, err := json.Marshal(spent)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, slices.Concat(more[:len(more)-1], []byte(","), b[1:]), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := contextstore.Find(base, uuid, contextstore.Viewer{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Show(&out, v, ShowOptions{Last: 2, Lang: i18n.English, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if want := "  Total tokens: 45,678\n  Prompt tokens: 40,000 (30,000 cached)\n  Completion tokens: 5,678 (1,200 reasoning)\n" +
		"  Cost: $0.0123 (2 calls without a price)\n  Compressions: 2\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s", out.String())
	}
	out.Reset()
	if err := Show(&out, v, ShowOptions{Last: -1, JSON: true}); err != nil {
		t.Fatal(err)
	}
	var shown struct{ State contextstore.Spending }
	if err := json.Unmarshal(out.Bytes(), &shown); err != nil || shown.State != spent {
		t.Errorf("%+v, %v: %s", shown, err, out.String())
	}
	out.Reset()
	if err := Tasks(t.Context(), &out, base, TasksOptions{JSON: true, Limit: 10, Viewer: contextstore.Viewer{Admin: true}}); err != nil {
		t.Fatal(err)
	}
	var listed contextstore.Spending
	if err := json.Unmarshal(out.Bytes(), &listed); err != nil || listed != spent {
		t.Errorf("%+v, %v: %s", listed, err, out.String())
	}
}

// TestReplaySpends: what a recording took is not taken again, and that is said.
func TestReplaySpends(t *testing.T) {
	t.Parallel()
	s := contextstore.State{Spending: contextstore.Spending{PromptTokens: 4}}
	for lang, want := range map[i18n.Lang]string{i18n.English: "called no model", i18n.Japanese: "モデルを呼び出していません"} {
		if got := strings.Join(spending(s, true, lang), "|"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", lang, got)
		}
	}
}
