package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/llm"
	"toritsugi/internal/planning"
)

// The server says what a run with a plan is asked for, in a form that counts.
func TestServerLeadsThroughAPlan(t *testing.T) {
	t.Parallel()
	s, end := serve(t, 4)
	s.planned = true
	c := open(t, s)
	c.Append(llm.Message{Role: llm.RoleUser, Content: prompt})
	var texts []string
	calls := 0
	for range 7 {
		r, err := c.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Append(r.Message)
		if r.Message.Content != "" {
			texts = append(texts, r.Message.Content)
		}
		for _, call := range r.Message.ToolCalls {
			calls++
			c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: call.ID, ToolName: call.Name, Content: "0"})
		}
		if len(r.Message.ToolCalls) == 0 {
			c.Append(llm.Message{Role: llm.RoleUser, Content: "Go on."})
		}
	}
	if f := end(); calls != 4 || len(f.Overheads) != 4 || len(texts) != 4 {
		t.Fatalf("%d calls, %d turns, said %q", calls, len(f.Overheads), texts)
	}
	var plan planning.Plan
	var reflection planning.Reflection
	var result planning.SubtaskRecord
	var v planning.Verification
	for i, answer := range []any{&plan, &reflection, &result, &v} {
		if err := json.Unmarshal([]byte(texts[i]), answer); err != nil {
			t.Fatalf("%s: %v", texts[i], err)
		}
	}
	if plan.Check(0) != nil || reflection.Judged.Status == "" || result.Status != planning.Done || !v.Passed {
		t.Errorf("%q", texts)
	}
}

func TestReportOfPlans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(late sample)
		over   int
	}{
		"within":             {func(sample) {}, 0},
		"grows":              {func(s sample) { s[ownLast] = 3 }, 1},
		"syncs":              {func(s sample) { s[syncs] = 2500 }, 1},
		"rows":               {func(s sample) { s[rows] = 1500 }, 1},
		"files":              {func(s sample) { s[fileRatio] = 2.6 }, 1},
		"memory":             {func(s sample) { s[peak] = 41 }, 1},
		"dearer, as a whole": {func(s sample) { s[cpu] = 9000 }, 0},
	} {
		run := func(n float64) sample {
			return sample{own: 1, ownLast: 1, ownMean: 1, cpu: n, peak: 10, wall: 200, kept: 1, appended: n, syncs: 2 * n, rows: n, fileRatio: 2}
		}
		late := run(1000)
		c.change(late)
		v := &results{disk: "d", syncs: []time.Duration{time.Millisecond}, start: pair{sample{cpu: 1}, sample{cpu: 1}}, turns: []int{10, 100, 1000},
			pairs: map[int]pair{}, planned: map[int]sample{100: run(100), 1000: late}}
		for _, n := range v.turns {
			v.pairs[n] = pair{run(float64(n)), maps.Clone(run(float64(n)))}
		}
		var out strings.Builder
		r := &report{w: &out}
		r.ledByPlan(v)
		if r.over != c.over || strings.Count(out.String(), "OVER") != c.over || !strings.Contains(out.String(), "a turn between 100 and 1000") {
			t.Errorf("%s: %d over, want %d:\n%s", name, r.over, c.over, &out)
		}
	}
}
