package eval

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/memory"
)

func results() []Result {
	return []Result{
		{Case: "first", Mode: House, Outcome: "completed", Resolved: true, Verdict: Verdict{Ran: true}, Checks: Checks{2, 2},
			Taken: Taken{Turns: 4, ToolCalls: 7, Millis: 12_340, Spending: contextstore.Spending{PromptTokens: 12_345, CompletionTokens: 678, CachedTokens: 9000, CostMicroUSD: 12_300}}},
		{Case: "first", Mode: Bare, Outcome: "completed", Verdict: Verdict{Ran: true, ExitCode: 1, Output: "one\ntwo\nthree\nfour [31mred\n"},
			Taken: Taken{Turns: 2, ToolCalls: 1, Millis: 700, Spending: contextstore.Spending{PromptTokens: 1_234_567, CompletionTokens: 5, UnpricedCalls: 2}}},
		{Case: "second-one", Mode: House, Outcome: "failed", Reason: "the budget is used up", Taken: Taken{Turns: 1, Millis: 1_800_000, Estimated: memory.TokenUsage{Calls: memory.Calls{Requests: 1, Sent: 2400, Answered: 60}}}},
		{Case: "second-one", Mode: Bare, Outcome: Skipped, Reason: "needs go"},
	}
}

func only(m Mode) (out []Result) {
	for _, r := range results() {
		if r.Mode == m {
			out = append(out, r)
		}
	}
	return out
}

func TestTable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		all   []Result
		modes []Mode
		by    Model
		want  string
	}{
		"house": {only(House), []Mode{House}, Model{"p/m", false}, `
CASE        OUTCOME     RESOLVED CHECKS TURNS TOOLS      IN     OUT  CACHED      COST    TIME
first       completed   yes         2/2     4     7   12345     678    9000   $0.0123   12.3s
second-one  failed      no            -     1     0       0       0       0        $0     30m
                        1/2                 5     7   12345     678    9000   $0.0123     30m

house (p/m): 1 of 2 resolved

Not resolved:
  second-one (house): failed: the budget is used up
`},
		"side by side": {results(), []Mode{House, Bare}, Model{"p/m", false}, `
            HOUSE                                                          | BARE
CASE        RESOLVED TURNS TOOLS      IN     OUT  CACHED      COST    TIME | RESOLVED TURNS TOOLS      IN     OUT  CACHED      COST    TIME
first       yes          4     7   12345     678    9000   $0.0123   12.3s | no           2     1 1234.6k       5       0         ?    0.7s
second-one  no           1     0       0       0       0        $0     30m | skipped                                                      -
            1/2          5     7   12345     678    9000   $0.0123     30m | 0/1          2     1 1234.6k       5       0         ?    0.7s

house (p/m): 1 of 2 resolved
bare (p/m): 0 of 1 resolved; 1 skipped, 0 could not be run, 0 interrupted or not begun

Not resolved:
  first (bare): hidden check: exit code 1
    two
    three
    four [31mred
  second-one (house): failed: the budget is used up

Skipped:
  second-one (bare): needs go
`},
		"a script": {only(House)[1:], []Mode{House}, Model{"script", true}, `
CASE        OUTCOME     RESOLVED CHECKS TURNS TOOLS      IN     OUT  CACHED      COST    TIME
second-one  failed      no            -     1     0   ~2400     ~60      ~0         -     30m
                        0/1                 1     0   ~2400     ~60      ~0         -     30m

house (script): 0 of 1 resolved; 0 skipped, 0 could not be run, 1 interrupted or not begun

Not resolved:
  second-one (house): failed: the budget is used up

No model was called: the answers were scripts. This tests the harness, and measures no model.
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			if err := Table(&b, tt.all, tt.by, tt.modes, 2, i18n.English); err != nil {
				t.Fatal(err)
			}
			var lines []string
			for line := range strings.Lines(b.String()) {
				lines = append(lines, strings.TrimRight(line, " \n"))
			}
			got := "\n" + strings.Join(lines, "\n") + "\n"
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	got := Sum(append(results(), Result{Case: "third", Mode: Bare, Outcome: Interrupted, Taken: Taken{Turns: 9}}, Result{Case: "fourth", Mode: Bare, Outcome: Errored}), Bare, Model{"p/m", false})
	if got.Cases != 4 || got.Ran != 1 || got.Resolved != 0 || got.Skipped != 1 || got.Errors != 1 || got.Turns != 2 || got.PromptTokens != 1_234_567 {
		t.Errorf("%+v", got)
	}
}
