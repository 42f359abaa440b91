package contextstore

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// spent is what a call took, with every figure in it; an odd one has no price.
func spent(n int) *Usage {
	u := &Usage{Prompt: 100 * n, Completion: 10 * n, Cached: 7 * n, CacheWrite: 5 * n, Reasoning: 3 * n}
	if n%2 == 0 {
		cost := int64(1001 * n)
		u.Cost = &cost
	}
	return u
}

// spentIn is what the answers of a log took, added up the plain way.
func spentIn(messages []byte) (s Spending) {
	for line := range bytes.Lines(messages) {
		m, err := DecodeMessage(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil || m.Role != "assistant" || m.Usage == nil {
			continue
		}
		s.PromptTokens += int64(m.Usage.Prompt)
		s.CachedTokens += int64(m.Usage.Cached)
		s.CacheWriteTokens += int64(m.Usage.CacheWrite)
		s.CompletionTokens += int64(m.Usage.Completion)
		s.ReasoningTokens += int64(m.Usage.Reasoning)
		if m.Usage.Cost == nil {
			s.UnpricedCalls++
		} else {
			s.CostMicroUSD += *m.Usage.Cost
		}
	}
	return s
}

// What a run took is the same in state.json, in the row, after a kill, after
// state.json was lost, and in an index that was made anew.
func TestSpendingIsCountedOnce(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	free := int64(0)
	for n, u := range []*Usage{spent(1), spent(2), nil, spent(4), {Prompt: 9, Completion: 1, Estimated: true}, {Prompt: 8, Cost: &free}} {
		_, err := c.Append(Message{Role: "user", Content: "x", Usage: spent(99)}, Message{Role: "assistant", Content: fmt.Sprint(n), Usage: u})
		must(t, err)
		if n == 3 { // the answers after it are known by their lines alone
			must(t, c.Activity(Processing, "llm_call"))
		}
	}
	want := Spending{PromptTokens: 717, CachedTokens: 49, CacheWriteTokens: 35, CompletionTokens: 71, ReasoningTokens: 21, CostMicroUSD: 6006, UnpricedCalls: 2}
	same := func(what string, got Spending) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	same("live", c.State().Spending)
	abandon(c)
	c, _, err := s.Claim(t.Context(), c.UUID())
	must(t, err)
	same("after a kill", c.State().Spending)
	must(t, c.TurnDone(t.Context()))
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "s"}))
	same("row", rowIn(t, s.index, c.UUID()).Spending)
	must(t, s.Close())
	state := filepath.Join(s.BaseDir, DirCompleted, c.UUID(), StateFile)
	for _, spoil := range []func(){
		func() { edit(t, state, `{`, `torn`) },
		func() { query(t, s.BaseDir, `UPDATE tasks SET cost_micro_usd=1, reasoning_tokens=2`) },
		func() { query(t, s.BaseDir, `DELETE FROM tasks`) },
	} {
		spoil()
		if r := check(t, s.BaseDir, true); r.Mended == 0 || r.Left != 0 {
			t.Errorf("%+v", r.Findings)
		}
		v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
		must(t, err)
		same("mended", v.State.Spending)
		same("mended row", indexed(t, s.BaseDir)[c.UUID()].Spending)
	}
	query(t, s.BaseDir, `UPDATE tasks SET prompt_tokens=1`)
	must(t, ReindexBase(t.Context(), s.BaseDir))
	same("reindexed", indexed(t, s.BaseDir)[c.UUID()].Spending)
	l, err := List(t.Context(), s.BaseDir, Viewer{Admin: true}, Filter{})
	if err != nil || l.Scanned {
		t.Fatal(l.Scanned, err)
	}
	same("listed by the index", l.Views[0].State.Spending)
}

// Calls that wrote summaries, or were to, are calls: the files tell what all of
// them took, so that a state.json that is made anew has the same totals.
func TestARebuiltStateHasTheSameTotals(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	cost := int64(11)
	aside := []*Usage{{Prompt: 100, Completion: 10, Cost: &cost}, {Prompt: 50, Completion: 5, Total: 60, Cached: 7}, nil, spent(3)}
	for n := range len(aside) + 1 {
		for name, gone := range map[string]func(t *testing.T, base, state string){
			"missing": func(t *testing.T, _, state string) { must(t, kernel.Remove(state)) },
			"torn":    func(t *testing.T, _, state string) { edit(t, state, `{`, `torn`) },
			"missing, and the row": func(t *testing.T, base, state string) {
				must(t, kernel.Remove(state))
				query(t, base, `DELETE FROM tasks`)
			},
		} {
			s := open(t, Options{})
			c := begin(t, s)
			for k := range 3 {
				_, err := c.Append(Message{Role: "user", Content: "please go on with it"}, Message{Role: "assistant", Content: "it goes on, it is going on", Usage: spent(k + 1)})
				must(t, err)
			}
			for _, u := range aside[:n] {
				c.Spent(u)
			}
			_, err := c.AppendSummary(Summary{StartSeq: 2, EndSeq: 4, Summary: "short"})
			must(t, err)
			c.Spent(&Usage{Prompt: 9, Completion: 9}) // one that gave nothing
			must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "Outcome: completed."}))
			must(t, s.AppendFinal(t.Context(), c.UUID(), Summary{Summary: "Outcome: completed. It is over.", AnsweredBy: "p/m", Usage: spent(5)}))
			must(t, s.Close())
			dir := filepath.Join(s.BaseDir, DirCompleted, c.UUID())
			want, err := ReadState(dir)
			must(t, err)
			calls := int64(3 + 2)
			for _, u := range aside[:n] {
				if u != nil { // what one took of which nothing is known counts nowhere
					calls++
				}
			}
			if want.LLMCallCount != calls {
				t.Errorf("%d calls are counted, there were %d", want.LLMCallCount, calls)
			}
			gone(t, s.BaseDir, filepath.Join(dir, StateFile))
			r := check(t, s.BaseDir, true)
			if r.Left > 0 || r.Mended == 0 {
				t.Errorf("%s: %+v", name, r.Findings)
			}
			_, err = kernel.Stat(filepath.Join(dir, StateFile+".cut"))
			if said := r.Findings[0].Does(i18n.English); strings.Contains(said, "state.json.cut") != (err == nil) {
				t.Errorf("%s: it says %q: %v", name, said, err)
			}
			got, err := ReadState(dir)
			must(t, err)
			totals := func(s State) []any {
				return []any{s.LLMCallCount, s.TotalTokensUsed, s.Spending, s.ToolCallCount, s.CompressionCount, s.MessageCount, s.Bytes, s.Status, s.TaskStatus}
			}
			if d := cmp.Diff(totals(want), totals(got)); d != "" {
				t.Errorf("%s, %d calls aside: %s", name, n, d)
			}
		}
	}
}

func TestImagesAndWhoAnsweredAreRedacted(t *testing.T) {
	t.Parallel()
	c := begin(t, open(t, Options{}))
	saved, err := c.SaveImage(redPicture, "image/png")
	must(t, err)
	saved.Source = "shots/" + canary + ".png"
	images := []Image{saved, {Dropped: "read_failed"}}
	got, err := c.Append(Message{Role: "user", Content: "look", Images: images}, Message{Role: "assistant", AnsweredBy: "openai/" + canary},
		Message{Role: "tool", Content: "no", Failed: true})
	must(t, err)
	saved.Source = "shots/[SECRET].png"
	want := []Image{saved, {Dropped: "read_failed"}}
	if d := cmp.Diff(want, got[0].Images); d != "" || got[1].AnsweredBy != "openai/[SECRET]" || !got[2].Failed {
		t.Errorf("%s %+v", d, got)
	}
	if images[0].Source != "shots/"+canary+".png" {
		t.Error("the caller's own message was changed")
	}
	if d := cmp.Diff(got, all(t, c), sameMessages, cmpopts.IgnoreFields(Message{}, "Offset")); d != "" {
		t.Error("read again:", d)
	}
}

func TestDollars(t *testing.T) {
	t.Parallel()
	for micro, want := range map[int64]string{
		0: "$0", 1: "$0.000001", 99: "$0.000099", 100: "$0.0001", 12_345: "$0.0123", 12_350: "$0.0124", 999_999: "$1.0000",
		1_000_000: "$1.0000", 12_345_678: "$12.3457", -2_500_000: "-$2.5000", math.MaxInt64: "$9223372036854.7758", math.MinInt64: "-$9223372036854.7758",
	} {
		if got := Dollars(micro); got != want {
			t.Errorf("%d is %s, want %s", micro, got, want)
		}
	}
}
