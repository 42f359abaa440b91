package eval

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/llm/script"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
	"toritsugi/internal/sandbox"
)

var update = flag.Bool("update", false, "write what the pairs take to testdata/pairs.json")

// pairModes are those of which each pair has the same edits.
var pairModes = []Mode{Plan, Plain, Bare}

const pairsGolden = "testdata/pairs.json"

func pairs(t *testing.T) []Case {
	t.Helper()
	all, err := LoadDir("pairs")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// prices are the golden figures, by case and mode.
func prices(t *testing.T) map[string]memory.TokenUsage {
	t.Helper()
	data, err := os.ReadFile(pairsGolden)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]memory.TokenUsage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// flat are the figures of a bill by their names.
func flat(t *testing.T, b memory.TokenUsage) map[string]string {
	t.Helper()
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for k, v := range tree {
		var below map[string]json.RawMessage
		if json.Unmarshal(v, &below) != nil {
			out[k] = string(v)
		}
		for name, n := range below {
			out[k+"."+name] = string(n)
		}
	}
	return out
}

// priceChanges says which figures differ, one to a line, before -> after.
func priceChanges(t *testing.T, before, after map[string]memory.TokenUsage) string {
	t.Helper()
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(after)) {
		was, is := flat(t, before[key]), flat(t, after[key])
		for _, name := range slices.Sorted(maps.Keys(is)) {
			if was[name] != is[name] {
				fmt.Fprintf(&b, "%-18s %-28s %8s -> %s\n", key, name, was[name], is[name])
			}
		}
	}
	for key := range before {
		if _, there := after[key]; !there {
			fmt.Fprintf(&b, "%s is gone\n", key)
		}
	}
	return b.String()
}

// A change of a prompt, a tool or of how a run is led shows its price here, and in
// the diff of the golden file: go test ./internal/eval -run TestWhatThePairsTake -update.
func TestWhatThePairsTake(t *testing.T) {
	t.Parallel()
	if _, err := sandbox.Detect(t.Context()); err != nil {
		t.Skip("what commands print differs without a sandbox: ", err)
	}
	all, _, err := Run(t.Context(), pairs(t), options(t, pairModes...))
	got := map[string]memory.TokenUsage{}
	for _, r := range ran(t, all, err) {
		if !r.Resolved || r.Outcome != "completed" {
			t.Errorf("%s (%s): %s: %s\n%s", r.Case, r.Mode, r.Outcome, r.Reason, r.Verdict.Output)
		}
		if r.Estimated.Requests != r.Turns {
			t.Errorf("%s (%s): %d requests are counted and %d were made", r.Case, r.Mode, r.Estimated.Requests, r.Turns)
		}
		got[r.Case+"/"+string(r.Mode)] = r.Estimated
	}
	if t.Failed() {
		return
	}
	if *update {
		data, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(pairsGolden, append(data, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := priceChanges(t, prices(t), got); diff != "" {
		t.Errorf("what the pairs take has changed; -update writes it down:\n%s", diff)
	}
}

// The three scripts of a pair act alike: the same calls in the same turns, as far
// as the tools of a mode have them.
func TestPairsDifferInNothingButTheirMode(t *testing.T) {
	t.Parallel()
	for _, c := range pairs(t) {
		calls := map[Mode][]string{}
		for _, m := range pairModes {
			name, data := c.answers(Answers, m)
			if _, err := script.Parse(name, data); err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			var answers []stepped
			if err := json.Unmarshal(data, &answers); err != nil {
				t.Fatal(err)
			}
			for _, a := range answers {
				for _, k := range a.Calls {
					if planning.IsTool(k.Tool) {
						continue // what planning asks
					}
					call := fmt.Sprint(k.Tool, k.Args)
					if m == Bare {
						call = "shell"
					}
					calls[m] = append(calls[m], call)
				}
			}
		}
		if diff := cmp.Diff(calls[Plain], calls[Plan]); diff != "" || len(calls[Bare]) != len(calls[Plain]) {
			t.Errorf("%s: %d calls in a shell, %d of tools\n%s", c.Name, len(calls[Bare]), len(calls[Plain]), diff)
		}
	}
}
