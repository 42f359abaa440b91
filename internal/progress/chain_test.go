package progress

import (
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
)

// A phase is said to be over only where it happened as it should, however the run
// ended.
func TestChain(t *testing.T) {
	t.Parallel()
	item := func(status string) []planning.Item { return []planning.Item{{ID: "a", Status: status}} }
	plan := &planning.Plan{Goal: planning.Goal{MainObjective: "m"}}
	done, failed, open := item(planning.Done), item(planning.Failed), item("")
	for name, c := range map[string]struct {
		v     planning.View
		ended task.Status
		want  string
	}{
		"being planned":                     {planning.View{Phase: planning.PhasePlanning}, "", "▶️ Plan → Work → Verification → Done"},
		"a plan was never made":             {planning.View{Phase: planning.PhasePlanning}, task.Failed, "❌ Plan → Work → Verification → Done"},
		"asked about the plan":              {planning.View{Phase: planning.PhasePlanning}, task.AwaitingApproval, "❓ Plan → Work → Verification → Done"},
		"planned anew":                      {planning.View{Phase: planning.PhasePlanning, Plan: plan, Items: open}, "", "▶️ Plan → Work → Verification → Done"},
		"at work, without a plan":           {planning.View{Phase: planning.PhaseExecution, Plan: &planning.Plan{Fallback: true}, Items: open}, "", "⚠️ Plan → ▶️ Work → Verification → Done"},
		"at work":                           {planning.View{Phase: planning.PhaseExecution, Plan: plan, Items: open}, "", "✅ Plan → ▶️ Work → Verification → Done"},
		"reflecting":                        {planning.View{Phase: planning.PhaseReflection, Plan: plan, Items: open}, "", "✅ Plan → ▶️ Work (Reflection) → Verification → Done"},
		"paused at work":                    {planning.View{Phase: planning.PhaseExecution, Plan: plan, Items: open}, task.Paused, "✅ Plan → ⏸️ Work → Verification → Done"},
		"stopped at work":                   {planning.View{Phase: planning.PhaseExecution, Plan: plan, Items: open}, task.Stopped, "✅ Plan → ⏹️ Work → Verification → Done"},
		"failed at work, with nothing open": {planning.View{Phase: planning.PhaseExecution, Plan: plan, Items: failed}, task.Failed, "✅ Plan → ❌ Work → Verification → Done"},
		"being checked":                     {planning.View{Phase: planning.PhaseVerification, Plan: plan, Items: done, Worked: true}, "", "✅ Plan → ✅ Work → ▶️ Verification → Done"},
		"the checks failed":                 {planning.View{Phase: planning.PhaseVerification, Plan: plan, Items: done, Worked: true}, task.Failed, "✅ Plan → ✅ Work → ❌ Verification → Done"},
		"checked, without a subtask":        {planning.View{Phase: planning.PhaseVerification, Plan: plan, Items: failed, Worked: true}, "", "✅ Plan → ⚠️ Work → ▶️ Verification → Done"},
		"to be mended after it passed":      {planning.View{Phase: planning.PhaseExecution, Plan: plan, Items: done, Rounds: 1, Passed: true}, "", "✅ Plan → ▶️ Work → Verification → Done"},
		"about to be handed over":           {planning.View{Phase: planning.PhaseCompletion, Plan: plan, Items: done, Worked: true, Verified: true, Rounds: 1, Passed: true}, "", "✅ Plan → ✅ Work → ✅ Verification → ▶️ Done"},
		"not handed over":                   {planning.View{Phase: planning.PhaseCompletion, Plan: plan, Items: done, Worked: true, Verified: true, Rounds: 1, Passed: true}, task.Paused, "✅ Plan → ✅ Work → ✅ Verification → ⏸️ Done"},
		"completed":                         {planning.View{Phase: planning.PhaseCompletion, Plan: plan, Items: done, Worked: true, Verified: true, Rounds: 1, Passed: true}, task.Completed, "✅ Plan → ✅ Work → ✅ Verification → ✅ Done"},
		"completed with open points":        {planning.View{Phase: planning.PhaseVerification, Plan: plan, Items: done, Worked: true, Rounds: 2}, task.Completed, "✅ Plan → ✅ Work → ⚠️ Verification → ✅ Done"},
		"completed unverified":              {planning.View{Phase: planning.PhaseVerification, Plan: plan, Items: done, Worked: true}, task.Completed, "✅ Plan → ✅ Work → ⏭️ Verification → ✅ Done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Report{Ended: c.ended}
			r.Plan(c.v, same)
			if got := r.Chain(i18n.English); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if text := r.PlanText(i18n.English, false); name == "completed" && strings.Contains(text, "round 1") || strings.Contains(name, "open points") && !strings.Contains(text, "round 2") {
				t.Errorf("of a verification the phases tell, the text tells once more:\n%s", text)
			}
		})
	}
}

// What a model judged to be done is not called verified where the run is not.
func TestJudgedAndUnverified(t *testing.T) {
	t.Parallel()
	r := &Report{Ended: task.Completed, Unverified: true}
	r.Plan(planning.View{Phase: planning.PhaseCompletion, Plan: &planning.Plan{Goal: planning.Goal{TaskType: "bug_fix"}}, Worked: true, Verified: true, Rounds: 1, Passed: true}, same)
	for l, want := range map[i18n.Lang][]string{
		i18n.English:  {"⚠️ Verification", "the run is unverified", "bug fix"},
		i18n.Japanese: {"⚠️ 検証", "実行は未検証", "不具合の修正"},
	} {
		text := r.PlanText(l, false)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is not in\n%s", w, text)
			}
		}
	}
}
