package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestClients: the clients of all vendors, measured little, answer all that the
// report prints of them; that both sides get the right answers is checked while
// they are measured.
func TestClients(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{self: self}
	all, err := b.llm(t.Context(), llmSize{rounds: 2, talks: 3, messages: 4, bytes: 400, answers: 3, tokens: 300})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{"anthropic", "ollama", "openai"}) {
		t.Errorf("measured %v", got)
	}
	var out strings.Builder
	(&report{w: &out}).llm(all)
	for name, s := range all {
		for _, unit := range []string{callCPU, callWall, tokenCPU, tokenWall} {
			for _, prefix := range []string{rawPrefix, oursPrefix, timesPrefix} {
				if s[prefix+unit] <= 0 {
					t.Errorf("%s: %s is %v", name, prefix+unit, s[prefix+unit])
				}
			}
		}
		for _, part := range []string{": a call ", ": a token "} {
			if strings.Count(out.String(), name+part) != 1 {
				t.Errorf("%s%sis not told once:\n%s", name, part, &out)
			}
		}
	}
	if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") || strings.Count(out.String(), "≤ 1.2 ×") != 6 {
		t.Errorf("%v gives\n%s", all, &out)
	}
}

// TestClientReport: each budget that is exceeded is marked and counted, and no
// other.
func TestClientReport(t *testing.T) {
	t.Parallel()
	within := sample{timesPrefix + callCPU: 1.2, timesPrefix + callWall: 1.2, timesPrefix + tokenCPU: 1.2, timesPrefix + tokenWall: 0.3}
	for name, over := range map[string]int{"": 0, callCPU: 1, callWall: 1, tokenCPU: 1, tokenWall: 1} {
		s := maps.Clone(within)
		if name != "" {
			s[timesPrefix+name] = 1.21
		}
		var out strings.Builder
		r := &report{w: &out}
		r.llm(map[string]sample{"openai": s, "ollama": within})
		if r.over != over || strings.Count(out.String(), "OVER") != over || strings.Count(out.String(), "×  ok") != 4-over {
			t.Errorf("%s: %d over, want %d:\n%s", name, r.over, over, &out)
		}
	}
}

// TestWrongAnswersAreNoFigures: a side that gets another answer than it asked
// for is not measured.
func TestWrongAnswersAreNoFigures(t *testing.T) {
	t.Parallel()
	text := strings.Join(answerPieces(3), "")
	for _, c := range []struct {
		text      string
		tokens, n int
		ok        bool
	}{{text, 3, 3, true}, {text, 2, 3, false}, {text[1:], 3, 3, false}, {"The", 1, 1, true}, {"", 1, 1, false}} {
		if err := answerOf(c.n).check(c.text, c.tokens); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args    string
		runs    bool
		clients bool
		parts   int
		fails   bool
	}{
		{args: "", runs: true, clients: true, parts: 5},
		{args: "-llm-only", clients: true},
		{args: "-chat-only", runs: true},
		{args: "-ledger-only -ledger idle", parts: 1},
		{args: "-llm=false", runs: true, parts: 5},
		{args: "-memory-only", parts: 2},
		{args: "-memory-only -ledger-only", fails: true},
		{args: "-llm-only -ledger-only", fails: true},
		{args: "-runs 0", fails: true},
		{args: "more", fails: true},
	} {
		o, err := parseOptions(strings.Fields(c.args))
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.args, err)
		}
		if err == nil && ((o.tori != "") != c.runs || o.clients != c.clients || len(o.parts) != c.parts) {
			t.Errorf("%s: %+v", c.args, o)
		}
	}
}
