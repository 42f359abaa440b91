package memory

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm/price"
)

// recorded is a run of n turns as trajectories are written.
func recorded(t *testing.T, n int) Trajectory {
	t.Helper()
	type m map[string]any
	var turns []m
	for i := range n {
		turn := m{"text": fmt.Sprint("step ", i), "observations": []m{{"role": "tool", "content": text(i, 300+i*131%2500)}}}
		if i%3 > 0 {
			turn["tool_calls"] = []m{{"id": "x", "name": "edit_file", "arguments": m{"path": fmt.Sprintf("pkg/f%d.go", i%5), "new_text": text(i, 600)}}}
		}
		turns = append(turns, turn)
	}
	line, err := json.Marshal(m{"source": "made", "opening": []m{{"role": "system", "content": "SYSTEM"}, {"role": "user", "content": "Repair pkg/f1.go, see #12."}}, "turns": turns})
	if err != nil {
		t.Fatal(err)
	}
	all, err := ReadTrajectories(strings.NewReader("\n" + string(line) + "\n"))
	if err != nil || len(all) != 1 {
		t.Fatal(err)
	}
	return all[0]
}

// tenth is a list price as most are: cached input at a tenth, and nothing for
// writing to the cache.
var tenth = price.Price{Rates: price.Rates{Input: 3, CachedInput: 0.3, CacheWrite: 3, Output: 15}}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What a request costs is what the table says: what is new to a cache that
// charges for writing is dearer, what is free has no ratio, and a long prompt has
// prices of its own.
func TestReplayAtOtherPrices(t *testing.T) {
	t.Parallel()
	tr := recorded(t, 30)
	costs := func(p price.Price) (all []Replayed) {
		c, err := Replay(t.Context(), tr, ReplayOptions{System: 3000, Price: p, Policy: Policy{Limit: 14_000, Context: 20_000, Threshold: 0.7, MinMessages: 10, KeepRecent: 5, Masking: Masking{KeepTurns: 5, MinShare: 0.1}}})
		if err != nil {
			t.Fatal(err)
		}
		return c.Policies
	}
	plain, written := costs(tenth), costs(price.Price{Rates: price.Rates{Input: 3, CachedInput: 0.3, CacheWrite: 3.75, Output: 15}})
	for i, r := range plain {
		fresh := float64(r.Tokens - r.Cached)
		if want := (fresh*3 + float64(r.Cached)*0.3) / 1e6; r.Summaries == 0 && math.Abs(r.Cost-want) > 1e-9 || r.Cost <= 0 {
			t.Errorf("%s: %f dollars, want %f", r.Policy, r.Cost, want)
		}
		if d := written[i].Cost - r.Cost; math.Abs(d-fresh*0.75e-6) > 1e-9 || written[i].Tokens != r.Tokens {
			t.Errorf("%s: writing costs %f dollars", r.Policy, d)
		}
	}
	if free := costs(price.Price{}); free[0].CostRatio != nil || free[1].CostRatio != nil || free[1].Cost != 0 {
		t.Errorf("free: %+v", free[1])
	}
	long := tenth
	long.Above, long.Long = 1, price.Rates{Input: 6, CachedInput: 0.6, CacheWrite: 6, Output: 30}
	if dear := costs(long); math.Abs(dear[1].Cost-2*plain[1].Cost) > 1e-9 {
		t.Errorf("long: %f and %f", dear[1].Cost, plain[1].Cost)
	}
}

// A run of this house is replayed from its messages.jsonl: what was inherited is
// no answer, what people said stays theirs, and a torn last line is passed over.
func TestReplayOfOurOwnRun(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	seq := 0
	put := func(m contextstore.Message) {
		seq++
		m.Seq = int64(seq)
		b.WriteString(asJSON(t, m) + "\n")
	}
	put(contextstore.Message{Role: "system", Content: "SYSTEM"})
	put(contextstore.Message{Role: "assistant", Content: InheritedPrefix + "before"})
	put(contextstore.Message{Role: "user", Content: "Repair pkg/file1.go, see #12."})
	for n := range 120 {
		for _, group := range turnOf(n) {
			for _, m := range group {
				m.Usage = &contextstore.Usage{Prompt: 9, Completion: 9}
				put(m)
			}
		}
	}
	put(contextstore.Message{Role: "assistant", Content: "It is done."})
	b.WriteString(`{"seq":9999,"role":"assis`)
	all, err := ReadTrajectories(strings.NewReader(b.String()))
	if err != nil || len(all) != 1 || len(all[0].recorded.turns) != 121 || len(all[0].recorded.opening) != 3 {
		t.Fatalf("%d runs, %v", len(all), err)
	}
	c, err := Replay(t.Context(), all[0], ReplayOptions{System: 3000, Price: tenth, Policy: Policy{Limit: 14_000, Context: 20_000, Threshold: 0.7, MinMessages: 10, KeepRecent: 5, Masking: Masking{KeepTurns: 10, MinShare: 0.1}}})
	if err != nil {
		t.Fatal(err)
	}
	if m := c.Policies[1]; m.Masked < 3 || *m.CostRatio > 0.7 || m.PinnedLost != 0 || m.Turns != 121 || c.Policies[2].Summarised < 2 {
		t.Errorf("%s", asJSON(t, c))
	}
	for in, want := range map[string]string{b.String() + "\n" + `{"seq":10000,"role":"user","content":"x"}`: "line ", `{"seq":1,"role":"user","content":"x"}`: "no answer"} {
		if _, err := ReadTrajectories(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}

// On a long run masks cost less than half of the full history, summaries come
// only with the threshold, and no pinned identifier is lost.
func TestReplay(t *testing.T) {
	t.Parallel()
	o := ReplayOptions{System: 3000, Price: tenth, Policy: Policy{Limit: 14_000, Context: 20_000, Threshold: 0.7, MinMessages: 10, KeepRecent: 5, Masking: Masking{KeepTurns: 10, MinShare: 0.1}}}
	tr := recorded(t, 300)
	all, err := Replay(t.Context(), tr, o)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]Replayed{}
	for _, r := range all.Policies {
		by[r.Policy] = r
		if r.PinnedLost > 0 || r.PinnedSeen+r.PinnedKept != r.Pinned || r.Pinned < 6 || r.CachedShare <= 0.5 || r.CachedShare >= 1 {
			t.Errorf("%+v", r)
		}
	}
	none, mask, summary, hybrid := by["none"], by["mask"], by["summary"], by["hybrid"]
	if *none.CostRatio != 1 || none.OutOfView != 0 || none.Masked+none.Summarised+none.Truncated != 0 {
		t.Errorf("none: %+v", none)
	}
	if *mask.CostRatio > 0.5 || mask.Masked < 3 || mask.Summarised+mask.Truncated != 0 {
		t.Errorf("mask: %+v", mask)
	}
	if summary.Summarised < 3 || summary.Masked != 0 || summary.Summaries < int64(summary.Summarised) || summary.TokensRatio > 0.5 {
		t.Errorf("summary: %+v", summary)
	}
	if hybrid.Masked < 3 || hybrid.Summarised < 1 || hybrid.Summarised >= summary.Summarised {
		t.Errorf("hybrid: %+v", hybrid)
	}
	again, err := Replay(t.Context(), tr, o)
	if a, b := asJSON(t, again), asJSON(t, all); err != nil || a != b {
		t.Errorf("a second replay differs: %v\n%s\n%s", err, a, b)
	}
	if all.Answers < 10_000 || all.AnswersCost != float64(all.Answers)*15e-6 {
		t.Errorf("answers: %d tokens, %f", all.Answers, all.AnswersCost)
	}
}

func TestReadTrajectoriesRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "no recorded run", "\n \n": "no recorded run", "{}": "line 1: no turns", "{\"turns\":[{}]}\n{\"seq\":1,\"role\":\"user\"}": "line 2: no turns", "{\"turns\":[{}]}\nx": "line 2: ", "[1]": "line 1: "} {
		if _, err := ReadTrajectories(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// FuzzReplay: whatever a recorded run holds, a replay ends without a panic.
func FuzzReplay(f *testing.F) {
	f.Add(`{"opening":[{"role":"user","content":"x"}],"turns":[{"text":"a","tool_calls":[{"name":"write","arguments":"{"}],"observations":[{"content":"b"},{"content":"c"}]},{}]}`)
	f.Fuzz(func(t *testing.T, line string) {
		defer disktest.Bounded(t, len(line))()
		all, err := ReadTrajectories(strings.NewReader(line))
		if err != nil {
			return
		}
		for _, tr := range all {
			_, _ = Replay(t.Context(), tr, ReplayOptions{Policy: Policy{Limit: 50, Context: 60, Threshold: 0.5, MinMessages: 2, KeepRecent: 1, Masking: Masking{KeepTurns: 1, MinShare: 0.01}}})
		}
	})
}

func TestO200k(t *testing.T) {
	t.Parallel()
	count := O200k()
	for in, want := range map[string]int{"": 0, "hello world": 2, "日本語の文章": 4} {
		if n := count([]byte(in)); n < want-1 || n > want+1 {
			t.Errorf("%q: %d tokens, want about %d", in, n, want)
		}
	}
	// What has no space in it is counted in bounded time, and bytes that are no
	// UTF-8 are counted, too.
	if n := count([]byte(strings.Repeat("a", 100_000) + "\xff\xfe\x00")); n < 5000 || n > 60_000 {
		t.Errorf("%d tokens", n)
	}
	l := &ledger{}
	w := window(t, l, Policy{Limit: 10_000, Count: count})
	story(l, w, 10, 300)
	if n := w.Tokens(); n < 300 || n > len(w.Conversation().Serialized())/3 {
		t.Errorf("%d tokens of %d bytes", n, len(w.Conversation().Serialized()))
	}
}
