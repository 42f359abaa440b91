package planning

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/i18n"
	"toritsugi/internal/turn"
)

// scenes are all ways that a run can take.
func scenes() map[string]scene {
	none := func(s *Settings) { s.Reflect = false }
	return map[string]scene{
		"the last turn is the handover": {
			budget:  turn.Budget{Turns: 4},
			answers: []answer{say(plans("a", "b")), say(done("a")), do("1"), sayDo("a is done, b is not.", "2", "3"), say("too many")},
			asks:    "plan subtask/a subtask/b handover/turns", lines: "plan:a,b a=done", end: "the budget is used up: 4 of 4 (budget.max_turns)", words: "a is done, b is not.",
			prompts: []string{"its budget of turns is used up", "Done:\n- a", "Not done:\n- b"}},
		"the last turn of a verification is the handover": {
			budget:  turn.Budget{Turns: 3},
			answers: []answer{say(plans("a")), say(done("a")), say("It is not verified."), say("too many")},
			asks:    "plan subtask/a verify handover/turns", lines: "plan:a a=done", end: "the budget is used up: 3 of 3 (budget.max_turns)", words: "It is not verified."},
		"the last turn is the handover, also of a reflection, and says nothing": {
			budget:  turn.Budget{Turns: 3},
			answers: []answer{say(plans("a")), do("!1"), do("2"), say("too many")},
			asks:    "plan subtask/a reflect handover/turns", lines: "plan:a", end: "the budget is used up: 3 of 3 (budget.max_turns)"},
		"the last tokens are the handover": {
			budget:  turn.Budget{Tokens: 2600},
			answers: []answer{say(plans("a", "b")), say("Nothing is done."), say("too many")},
			asks:    "plan subtask/a handover/tokens", lines: "plan:a,b", end: "the budget leaves no room for another call: 20 of 2600 are taken, and one takes about …", words: "Nothing is done.", prompts: []string{"its budget of tokens is used up"}},
		"the last turn is the handover, not the plan in its form": {
			budget:  turn.Budget{Turns: 2},
			answers: []answer{say("I will do it."), say("Nothing is planned.")},
			asks:    "plan nudge handover/turns", end: "the budget is used up: 2 of 2 (budget.max_turns)", words: "Nothing is planned."},
		"one turn is no handover": {
			budget:  turn.Budget{Turns: 1},
			answers: []answer{say(plans("a")), say("too many")},
			asks:    "plan subtask/a", lines: "plan:a", end: "the budget is used up: 1 of 1 (budget.max_turns)"},
		"straight, dependencies before the order of execution": {
			answers: []answer{do("look"), say(strings.Replace(plans("b<a", "a"), `"execution_order":[]`, `"execution_order":["b","a"]`, 1)), do("1"), say(done("a")), say(done("b") + `{"phase":"completion","done":true,"comment":"All done."}`), say(pass)},
			asks:    "plan subtask/a subtask/b verify", lines: "plan:a,b a=done b=done verification:true", end: "passed", words: "All done."},
		"a call fails, the reflection comes beside the next call": {
			answers: []answer{say(plans("a")), do("!1"), sayDo(fine, "2"), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect verify", lines: "plan:a reflection:partial a=done verification:true", end: "passed", prompts: []string{"did !1"}},
		"a reflection every three actions, answered without a call": {
			answers: []answer{say(plans("a")), do("1", "2"), do("2"), do("3"), say(fine), do("4"), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect verify", lines: "plan:a reflection:partial a=done verification:true", end: "passed"},
		"a reflection every three actions, over the end of a subtask": {
			answers: []answer{say(plans("a", "b")), do("1", "2"), do("2"), say(done("a")), do("3"), sayDo(fine, "4"), say(done("b")), say(pass)},
			asks:    "plan subtask/a subtask/b reflect verify", lines: "plan:a,b a=done reflection:partial b=done verification:true", end: "passed", prompts: []string{"does the plan still lead to the goal?"}},
		"a reflection every three actions, over a question": {
			people: []string{"By hand."}, answers: []answer{say(plans("a")), do("1", "2"), do("2"), say(ended("a", "blocked")), say(clarify(TypeClarification, "How?")), do("3"), sayDo(fine, "4"), say(done("a")), say(pass)},
			asks: "plan subtask/a replan subtask/a reflect verify", lines: "plan:a a=blocked replan:ask question:q1 answer:q1(false) reflection:partial a=done verification:true", end: "passed", prompts: []string{"does the plan still lead to the goal?"}},
		"a verification that cannot be read is none, also after one that passed": {
			object: map[int]string{3: "Not so."}, answers: []answer{say(plans("a")), say(done("a")), say(pass), say("Otherwise."), say("fine"), say("fine")},
			asks: "plan subtask/a verify verify nudge", lines: "plan:a a=done verification:true verification:false", end: "open: the model gave no verification that can be read"},
		"reflect gives what is asked: a decision, a verification": {
			answers: []answer{say(plans("a")), say(ended("a", "blocked")), say(`{"name":"reflect","arguments":` + replan("retry", 1, 0.9) + `}`), say(done("a")), say(`{"name":"reflect","arguments":` + pass + `}`)},
			asks:    "plan subtask/a replan subtask/a verify", lines: "plan:a a=blocked replan:retry a=done verification:true", end: "passed", prompts: []string{"Call reflect with replan_decision", "Call reflect with verification_passed"}},
		"a verdict and its criteria as texts": {
			answers: []answer{say(plans("a")), say(done("a")), say(`{"verification_passed":"true","criteria":[{"criterion":"it works","met":"true","evidence":"a_test.go:1"}],"issues_found":["none"]}`)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"a verdict that names nothing is asked for more, and makes no work": {
			answers: []answer{say(plans("a")), say(done("a")), say(`{"verification_passed":false}`), say(`{"verification_passed":false,"issues_found":["None."]}`)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:false", end: "open: the verification did not pass"},
		"a verification that cannot be read resolves nothing": {
			answers: []answer{say(plans("a")), say(done("a")), say(fail("Mend it")), say(done("verification_fix_1")), say("fine"), say("fine")},
			asks:    "plan subtask/a verify subtask/verification_fix_1 verify nudge", lines: "plan:a a=done verification:false revision:a,verification_fix_1 verification_fix_1=done verification:false",
			end: "open: the model gave no verification that can be read; it does not work"},
		"other actions: additional ones and what they concern come": {
			settings: none, answers: []answer{say(acts(plans("a", "b", "c"), `{"task_id":"a","tool":"do","purpose":"the old way"},{"task_id":"b","tool":"do","purpose":"stays"}`)), say(ended("a", "failed")), say(replan(TypeNone, 0, 0.9)), say(ended("b", "failed")),
				say(wants(DoRegenerate, 3, `"affected_actions":["a"],"additional_actions":[{"task_id":"b","tool":"do","purpose":"the new way"},{"task_id":"fix","purpose":"Clean up"}]`)), say(done("b")), say(done("a")), say(done("c")), say(done("fix")), say(pass)},
			asks: "plan subtask/a replan subtask/b replan subtask/b subtask/a subtask/c subtask/fix verify", lines: "plan:a,b,c a=failed replan:nothing b=failed replan:action_regeneration revision:a,b,c,fix b=done a=done c=done fix=done verification:true", end: "passed",
			prompts: []string{"Use other actions than before. because", "Do b\nthe new way", "Clean up"}},
		"an additional action of a small plan's subtask": {
			settings: none, answers: []answer{say(small("a")), say(ended("a", "failed")), say(wants(DoRetry, 1, `"additional_actions":[{"task_id":"a","purpose":"and so"}]`)), say(done("a")), say(pass)},
			asks: "plan subtask/a replan subtask/a verify", lines: "plan:a a=failed replan:retry revision:a a=done verification:true", end: "passed", prompts: []string{"Work on it now.", "Do a\nand so"}},
		"the same actions once more": {
			settings: none, answers: []answer{say(acts(plans("a"), `{"task_id":"a","tool":"do","purpose":"the old way"}`)), say(ended("a", "failed")), say(replan(DoRetry, 1, 0.9)), say(done("a")), say(pass)},
			asks: "plan subtask/a replan subtask/a verify", lines: "plan:a a=failed replan:retry a=done verification:true", end: "passed", prompts: []string{"Do it once more as it was planned. because"}},
		"additional actions stand in the plan before the rest is changed": {
			settings: none, answers: []answer{say(plans("a")), say(ended("a", "failed")), say(wants(DoPartial, 2, `"additional_actions":[{"task_id":"fix","purpose":"Clean up"}]`)), say(`{"reason":"r","changes":[{"type":"remove","task_id":"a"}]}`), say(done("fix")), say(pass)},
			asks: "plan subtask/a replan revise subtask/fix verify", lines: "plan:a a=failed replan:partial_replan revision:a,fix revision:fix fix=done verification:true", end: "passed", prompts: []string{"- fix: Clean up"}},
		"additional actions are told with a plan that is made anew": {
			settings: none, answers: []answer{say(plans("a")), say(ended("a", "failed")), say(wants(DoRedecompose, 4, `"additional_actions":[{"purpose":"Clean up"}]`)), say(plans("b")), say(done("b")), say(pass)},
			asks: "plan subtask/a replan plan subtask/b verify", lines: "plan:a a=failed replan:task_redecomposition revision:b b=done verification:true", end: "passed", prompts: []string{"because; Clean up"}},
		"a plan grows by additional actions as far as it may": {
			settings: func(s *Settings) { s.Reflect, s.MaxSubtasks = false, 2 }, answers: []answer{say(plans("a")), say(ended("a", "failed")), say(wants(DoRegenerate, 3, `"additional_actions":[{"task_id":"x","purpose":"X"},{"task_id":"y","purpose":"Y"}]`)), say(done("a")), say(done("x")), say(pass)},
			asks: "plan subtask/a replan subtask/a subtask/x verify", lines: "plan:a a=failed replan:action_regeneration revision:a,x a=done x=done verification:true", end: "passed"},
		"a reflection that is passed over": {
			answers: []answer{say(plans("a")), do("!1"), do("2"), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect verify", lines: "plan:a a=done verification:true", end: "passed"},
		"a reflection with the result": {
			answers: []answer{say(plans("a", "b")), do("!1"), say(revise(add("c", "")) + done("a")), say(done("b")), say(done("c")), say(pass)},
			asks:    "plan subtask/a reflect subtask/b subtask/c verify", lines: "plan:a,b reflection:failure revision:a,b,c a=done b=done c=done verification:true", end: "passed"},
		"a revision in the reflection, beside calls": {
			answers: []answer{say(plans("a", "b")), do("!1"), sayDo(revise(add("c", `,"after":"a"`)), "2"), say(done("a")), say(done("c")), say(done("b")), say(pass)},
			asks:    "plan subtask/a reflect subtask/c subtask/b verify", lines: "plan:a,b reflection:failure revision:a,c,b a=done c=done b=done verification:true", end: "passed"},
		"a revision that is asked for, beside calls": {
			answers: []answer{say(plans("a", "b")), do("!1"), sayDo(revise(""), "2"), do("3"), say(`{"reason":"r","changes":[{"type":"remove","task_id":"b"}]}`), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect revise verify", lines: "plan:a,b reflection:failure revision:a a=done verification:true", end: "passed"},
		"a revision that is asked for comes beside calls, too": {
			answers: []answer{say(plans("a", "b")), do("!1"), sayDo(revise(""), "2"), sayDo(`{"reason":"r","changes":[{"type":"remove","task_id":"b"}]}`, "3"), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect revise verify", lines: "plan:a,b reflection:failure revision:a a=done verification:true", end: "passed"},
		"a revision that is asked for, and the result comes": {
			answers: []answer{say(plans("a", "b")), do("!1"), sayDo(revise(""), "2"), say(done("a")), say(done("b")), say(pass)},
			asks:    "plan subtask/a reflect revise subtask/b verify", lines: "plan:a,b reflection:failure a=done b=done verification:true", end: "passed"},
		"a revision that is asked for, said at the top": {
			answers: []answer{say(plans("a", "b")), do("!1"), say(`{"phase":"reflection","reflection":{"status":"failure","evaluation":"e"},"plan_revision_needed":true}`), say(`{"reason":"r","changes":[` + add("c", "") + `]}`), say(done("a")), say(done("b")), say(done("c")), say(pass)},
			asks:    "plan subtask/a reflect revise subtask/b subtask/c verify", lines: "plan:a,b reflection:failure revision:a,b,c a=done b=done c=done verification:true", end: "passed"},
		"a revision removes the subtask at hand, beside calls": {
			answers: []answer{say(plans("a", "b")), do("!1"), sayDo(revise(`{"type":"remove","task_id":"a"}`), "2"), say(done("b")), say(pass)},
			asks:    "plan subtask/a reflect subtask/b verify", lines: "plan:a,b reflection:failure revision:b b=done verification:true", end: "passed"},
		"a revision puts something before the subtask at hand, beside calls": {
			answers: []answer{say(plans("a")), do("!1"), sayDo(revise(add("c", "")+`,{"type":"modify","task_id":"a","subtask":{"dependencies":["c"]}}`), "2"), say(done("c")), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect subtask/c subtask/a verify", lines: "plan:a reflection:failure revision:c,a c=done a=done verification:true", end: "passed"},
		"a revision is refused, asked for again, and given": {
			answers: []answer{say(plans("a")), do("!1"), say(revise(`{"type":"remove","task_id":"zz"}`)), say(`{"reason":"r","changes":[{"type":"remove","task_id":"a"}]}`), say(`{"reason":"r","changes":[` + add("b", "") + `]}`), say(done("a")), say(done("b")), say(pass)},
			asks:    "plan subtask/a reflect revise subtask/b verify", lines: "plan:a reflection:failure revision:a,b a=done b=done verification:true", end: "passed", prompts: []string{`no subtask has the id "zz"`, "Call reflect once more"}},
		"a plan is never emptied": {
			answers: []answer{say(plans("a")), do("!1"), say(revise(`{"type":"remove","task_id":"a"}`)), say(`{"reason":"r","changes":[{"type":"remove","task_id":"a"}]}`), say("no"), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect revise nudge verify", lines: "plan:a reflection:failure a=done verification:true", end: "passed"},
		"revisions are spent": {
			settings: func(s *Settings) { s.MaxRevisions = 1 },
			answers:  []answer{say(plans("a")), do("!1"), sayDo(revise(add("b", "")), "2"), do("!3"), sayDo(revise(add("c", "")), "4"), say(replan(DoRedecompose, 4, 0.9)), say(plans("d")), say(done("d")), say(pass)},
			asks:     "plan subtask/a reflect reflect replan plan subtask/d verify", lines: "plan:a reflection:failure revision:a,b reflection:failure replan:task_redecomposition revision:d d=done verification:true", end: "passed", prompts: []string{"the revisions of the plan are spent"}},
		"a subtask failed: retry": {
			settings: none, answers: []answer{say(plans("a", "b<a")), say(ended("a", "failed")), say(replan(DoRetry, 1, 0.9)), do("1"), say(done("a")), say(done("b")), say(pass)},
			asks: "plan subtask/a replan subtask/a subtask/b verify", lines: "plan:a,b a=failed replan:retry a=done b=done verification:true", end: "passed"},
		"a subtask failed: the rest is changed": {
			settings: none, answers: []answer{say(plans("a", "b<a")), say(ended("a", "failed")), say(replan(DoPartial, 2, 0.9)), say(`{"reason":"r","changes":[` + add("c", "") + `,{"type":"remove","task_id":"a"},{"type":"modify","task_id":"b","subtask":{"dependencies":["c"]}}]}`), say(done("c")), say(done("b")), say(pass)},
			asks: "plan subtask/a replan revise subtask/c subtask/b verify", lines: "plan:a,b a=failed replan:partial_replan revision:c,b c=done b=done verification:true", end: "passed"},
		"a subtask failed: the rest is changed, beside calls": {
			settings: none, answers: []answer{say(plans("a")), say(ended("a", "failed")), say(replan(DoPartial, 2, 0.9)), sayDo(`{"reason":"r","changes":[`+add("c", "")+`,{"type":"remove","task_id":"a"}]}`, "1"), say(done("c")), say(pass)},
			asks: "plan subtask/a replan revise subtask/c verify", lines: "plan:a a=failed replan:partial_replan revision:c c=done verification:true", end: "passed"},
		"a subtask failed: other actions": {
			settings: none, answers: []answer{say(plans("a")), say(ended("a", "blocked")), say(replan(DoRegenerate, 3, 0.6)), say(done("a")), say(pass)},
			asks: "plan subtask/a replan subtask/a verify", lines: "plan:a a=blocked replan:action_regeneration a=done verification:true", end: "passed"},
		"a subtask failed: cut anew, with ids that were used for other work": {
			settings: none, answers: []answer{say(plans("a", "b")), say(done("a")), say(ended("b", "failed")), say(replan(DoRedecompose, 4, 0.9)), say(plans("a:Something else", "b:And another<a", "c")), say(done("task_3")), say(done("task_4")), say(done("c")), say(pass)},
			asks: "plan subtask/a subtask/b replan plan subtask/task_3 subtask/task_4 subtask/c verify", lines: "plan:a,b a=done b=failed replan:task_redecomposition revision:a,task_3,task_4,c task_3=done task_4=done c=done verification:true", end: "passed"},
		"a subtask failed: from the goal on": {
			settings: none, answers: []answer{say(plans("a")), say(ended("a", "failed")), say(replan(DoRestart, 5, 0.9)), say(plans("a", "b")), say(done("a")), say(done("b")), say(pass)},
			asks: "plan subtask/a replan plan subtask/a subtask/b verify", lines: "plan:a a=failed replan:goal_revision revision:a,b a=done b=done verification:true", end: "passed"},
		"a subtask failed: the run goes on without, and what depends on it is blocked": {
			settings: func(s *Settings) { s.MaxRounds = 1 }, answers: []answer{say(plans("a", "b<a", "c<b", "d")), say(ended("a", "failed")), say(replan(TypeNone, 0, 0.9)), say(done("d")), say(pass)},
			asks: "plan subtask/a replan subtask/d verify", lines: "plan:a,b,c,d a=failed replan:nothing b=blocked c=blocked d=done verification:false",
			end: "open: subtask a failed: a is failed; subtask b is blocked: it needs a, which failed; subtask c is blocked: it needs b, which is blocked"},
		"what is not needed stands in nobody's way": {
			answers: []answer{say(plans("a", "b<a")), say(ended("a", "skipped")), say(done("b")), say(pass)},
			asks:    "plan subtask/a subtask/b verify", lines: "plan:a,b a=skipped b=done verification:true", end: "passed"},
		"low confidence: nothing is done about it": {
			settings: func(s *Settings) { s.MaxRounds = 1 }, answers: []answer{say(plans("a")), say(ended("a", "failed")), say(replan(DoRetry, 1, 0.2)), say(pass)},
			asks: "plan subtask/a replan verify", lines: "plan:a a=failed replan:nothing verification:false", end: "open: subtask a failed: a is failed"},
		"retries are spent: one level higher, then stop": {
			settings: func(s *Settings) { s.Replan.MaxActionRetries, s.Replan.MaxTotal = 1, 2 },
			answers:  []answer{say(plans("a")), say(ended("a", "failed")), say(replan(DoRetry, 1, 0.9)), say(ended("a", "failed")), say(replan(DoRetry, 1, 0.9)), say(`{"reason":"r","changes":[]}`), say(ended("a", "failed")), say(replan(DoRetry, 1, 0.9))},
			asks:     "plan subtask/a replan subtask/a replan revise subtask/a replan", lines: "plan:a a=failed replan:retry a=failed replan:partial_replan revision:a a=failed replan:stop", end: "the run is stuck: …"},
		"no decision comes": {
			settings: func(s *Settings) { s.MaxRounds = 1 }, answers: []answer{say(plans("a", "b")), say(ended("a", "failed")), say("hm"), say("hm"), say(done("b")), say(pass)},
			asks: "plan subtask/a replan nudge subtask/b verify", lines: "plan:a,b a=failed b=done verification:false", end: "open: subtask a failed: a is failed"},
		"no replanning at all": {
			settings: func(s *Settings) { s.Replan.MaxTotal, s.MaxRounds = 0, 1 }, answers: []answer{say(plans("a", "b<a")), say(ended("a", "failed")), say(pass)},
			asks: "plan subtask/a verify", lines: "plan:a,b a=failed b=blocked verification:false", end: "open: subtask a failed: a is failed; subtask b is blocked: it needs a, which failed"},
		"no usable plan": {
			answers: []answer{say("I will do it."), say(plans("a<b", "b<a")), say("I have done it."), say("Really."), say("fine"), say("fine")},
			asks:    "plan nudge subtask/task_1 nudge verify nudge", lines: "plan:task_1 task_1=done verification:false", end: "open: the model gave no verification that can be read"},
		"a subtask without an id": {
			answers: []answer{say(`{"goal_understanding":{"main_objective":"g","success_criteria":["c"]},"subtasks":[{"description":"x"},{"id":"task_1","description":"y"}]}`), say(done("task_2")), say(done("task_1")), say(pass)},
			asks:    "plan subtask/task_2 subtask/task_1 verify", lines: "plan:task_2,task_1 task_2=done task_1=done verification:true", end: "passed"},
		"the goal of a plan that cannot be used": {
			answers: []answer{say(`{"goal_understanding":{"main_objective":"g","success_criteria":["pipes are escaped"]},"subtasks":[{"id":"a","description":"x","dependencies":["b"]}]}`), say("hm"), say("I have done it."), say("fine"), say("fine")},
			asks:    "plan subtask/task_1 verify nudge", lines: "plan:task_1 task_1=done verification:false", end: "open: the model gave no verification that can be read", prompts: []string{"- pipes are escaped"}},
		"words without a call, a directory that is not there": {
			answers: []answer{say(plans("a")), do("shell:!\nbash: line 1: cd: /workspace: No such file or directory"), do("!1"), say("I think about it."), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect nudge verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"An answer without a call does not end the run. Go on, or end the subtask with report_subtask."}},
		"a plan as text beside another call": {
			answers: []answer{sayDo(`I plan. {"name":"submit_plan","arguments":`+plans("a")+`}`, "1"), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"the commit message comes with the verification": {
			answers: []answer{say(plans("a")), say(`{"task_id":"a","status":"completed","summary":"escaped pipes."}`), say(strings.Replace(pass, "{", `{"comment":"Escape pipes\n\nThey ended a cell.",`, 1))},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", words: "Escape pipes\n\nThey ended a cell.", prompts: []string{"The commit message has no body"}},
		"a plan that is mended": {
			answers: []answer{say(plans("a<b", "b<a")), say(plans("a")), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"the dependencies go in a circle"}},
		"a result that cannot be read is no success": {
			settings: func(s *Settings) { s.Replan.MaxTotal, s.MaxRounds = 0, 1 },
			answers:  []answer{say(plans("a")), say(ended("a", "half")), say(ended("a", "half")), say(ended("a", "half")), say(ended("a", "half")), say(ended("a", "half")), say(ended("a", "half")), say(ended("a", "half")), say(ended("a", "half"))},
			asks:     "plan subtask/a nudge nudge", lines: "plan:a", end: "the run is stuck: …", prompts: []string{"status: expected done, failed, blocked or skipped"}},
		"an object that is no result is no success": {
			settings: func(s *Settings) { s.Replan.MaxTotal, s.MaxRounds = 0, 1 },
			answers:  []answer{say(plans("a")), say(fail("Mend it")), say("{\"foo\":1}"), say("```json\n{\"foo\":\"bar\"}\n```"), say(pass)},
			asks:     "plan subtask/a nudge verify", lines: "plan:a a=failed verification:false", end: "open: subtask a failed: its result could not be read", prompts: []string{"That is not asked for now. What is: report_subtask"}},
		"two subtasks are reported in one answer": {
			answers: []answer{say(plans("a", "b")), say(`{"name":"report_subtask","arguments":{"subtask_id":"a","status":"done","summary":"a is done"}}` + "\n" + `{"name":"report_subtask","arguments":{"subtask_id":"b","status":"done","summary":"b is done"}}`), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a,b a=done b=done verification:true", end: "passed"},
		"a summary that is too long for a subject stands behind the goal": {
			answers: []answer{say(plans("a")), say(`{"status":"done","summary":"` + strings.Repeat("a.go: pipes; ", 8) + `a_test.go"}`), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", words: "All is done\n\n" + strings.Repeat("a.go: pipes; ", 8) + "a_test.go\n"},
		"completion is claimed early": {
			answers: []answer{say(plans("a", "b", "c")), say(`{"done":true,"comment":"All done."}`), say(`{"done":true,"comment":"All of it."}`), say(done("c")), say(pass)},
			asks:    "plan subtask/a subtask/b subtask/c verify", lines: "plan:a,b,c a=done b=done c=done verification:true", end: "passed", words: "All is done\n\n- All done.\n- All of it.\n- c is done\n"},
		"completion names the subtask as failed": {
			settings: func(s *Settings) { s.Replan.MaxTotal, s.MaxRounds = 0, 1 },
			answers:  []answer{say(plans("a")), say(`{"done":true,"summary":{"goal_achieved":false,"tasks_failed":["a"]},"comment":"Not all."}`), say(pass)},
			asks:     "plan subtask/a verify", lines: "plan:a a=failed verification:false", end: "open: subtask a failed: Not all."},
		"the result of another subtask": {
			answers: []answer{say(plans("a", "b")), say(done("b")), say(done("a")), say(done("b")), say(pass)},
			asks:    "plan subtask/a subtask/b verify", lines: "plan:a,b a=done b=done verification:true", end: "passed", prompts: []string{"That was the result of b; the subtask at hand is a."}},
		"the result of another subtask, again": {
			settings: func(s *Settings) { s.Replan.MaxTotal, s.MaxRounds = 0, 1 },
			answers:  []answer{say(plans("a", "b")), say(done("b")), say(done("b")), say(done("b")), say(pass)},
			asks:     "plan subtask/a subtask/b verify", lines: "plan:a,b a=failed b=done verification:false", end: "open: subtask a failed: no result was given for it, but one for b: b is done"},
		"round and round: nudge, replan, stop": {
			settings: func(s *Settings) { s.Reflect = false },
			answers:  []answer{say(plans("a")), do("x"), do("x"), do("x"), do("x"), do("x"), sayDo(replan(TypeNone, 0, 0.9), "x"), do("x"), do("x"), do("x")},
			asks:     "plan subtask/a nudge replan", lines: "plan:a replan:nothing", end: "the run is stuck: …"},
		"round and round, and out of it": {
			settings: func(s *Settings) { s.Reflect = false },
			answers:  []answer{say(plans("a")), do("x"), do("x"), do("x"), do("y"), say(done("a")), say(pass)},
			asks:     "plan subtask/a nudge verify", lines: "plan:a a=done verification:true", end: "passed"},
		"round and round, which is not looked for": {
			settings: func(s *Settings) { s.Reflect, s.Replan.DetectLoops = false, false },
			answers:  []answer{say(plans("a")), do("x"), do("x"), do("x"), do("x"), do("x"), do("x"), do("x"), say("Done."), say(pass)},
			asks:     "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"round and round before there is a plan": {
			answers: []answer{do("x"), do("x"), do("x"), do("x"), do("x"), do("x"), do("x"), do("x"), do("x"), do("x")},
			asks:    "plan nudge nudge", lines: "", end: "the run is stuck: …"},
		"a verification does not pass, its fix does": {
			answers: []answer{say(plans("a")), say(done("a")), say(fail("Mend it")), do("1"), say(done("verification_fix_1")), say(pass)},
			asks:    "plan subtask/a verify subtask/verification_fix_1 verify", lines: "plan:a a=done verification:false revision:a,verification_fix_1 verification_fix_1=done verification:true", end: "passed"},
		"a verification does not pass to the end": {
			answers: []answer{say(plans("a")), say(done("a")), say(fail()), say(done("verification_fix_1")), say(fail("Mend it"))},
			asks:    "plan subtask/a verify subtask/verification_fix_1 verify", lines: "plan:a a=done verification:false revision:a,verification_fix_1 verification_fix_1=done verification:false", end: "open: it does not work"},
		"a failed subtask is mended in verification": {
			answers: []answer{say(plans("a")), say(ended("a", "failed")), say(replan(TypeNone, 0, 0.9)), say(pass), say(done("verification_fix_1")), say(pass)},
			asks:    "plan subtask/a replan verify subtask/verification_fix_1 verify", lines: "plan:a a=failed replan:nothing verification:false revision:a,verification_fix_1 verification_fix_1=done verification:true", end: "passed"},
		"a verification without its criteria is asked for again": {
			answers: []answer{say(plans("a")), say(done("a")), say(`{"phase":"verification","verification_passed":true,"issues_found":[]}`), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"no evidence is given for: it works"}},
		"that checks pass which passed before shows nothing new": {
			checks: idleChecks, answers: []answer{say(plans("a")), say(done("a")), say(strings.Replace(pass, "a.go:1", "pytest exit 0", 1)), say(strings.Replace(pass, "a.go:1", "python3 -m pytest -q exit 0", 1))},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "unshown: no evidence is given for: it works",
			prompts: []string{"they show nothing of what is new.", "they show nothing of it"}},
		"that checks pass is evidence for a criterion that asks for it": {
			checks: idleChecks, answers: []answer{say(strings.Replace(plans("a"), "it works", "all tests pass", 1)), say(done("a")), say(strings.NewReplacer("a.go:1", "pytest exit 0", "it works", "all tests pass").Replace(pass))},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"a command that the model ran shows something, though checks do not": {
			checks: idleChecks, answers: []answer{say(plans("a")), do("shell:python try.py"), say(done("a")), say(strings.Replace(pass, "a.go:1", "python try.py exit 0", 1))},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"a commit message stays where a later subtask ends in words": {
			answers: []answer{say(plans("a")), say(tells("Mend it", "It was broken.")), say(fail("Test it")), do("1"), say("All is done now."), say(pass)},
			asks:    "plan subtask/a verify subtask/verification_fix_1 verify", lines: "plan:a a=done verification:false revision:a,verification_fix_1 verification_fix_1=done verification:true", end: "passed", words: "Mend it\n\nIt was broken."},
		"a commit message stays where failing checks are mended in words": {
			red: 1, answers: []answer{say(plans("a")), say(tells("Mend it", "It was broken.")), do("1"), say("Mended."), say(pass)},
			asks: "plan subtask/a remark verify", lines: "plan:a a=done verification:true", end: "passed", words: "Mend it\n\nIt was broken."},
		"people are answered, whatever was said before": {
			complain: map[int]string{2: "Why so?"}, answers: []answer{say(plans("a")), say(tells("Mend it", "It was broken.")), say("Because."), say(pass)},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", words: "Because."},
		"a criterion that is not met needs no evidence for the others": {
			settings: func(s *Settings) { s.MaxRounds = 1 },
			answers:  []answer{say(plans("a")), say(done("a")), say(`{"verification_passed":"true","criteria":[{"criterion":"it works","met":"true"},{"criterion":"a test shows it","met":"false","evidence":"none was added"}]}`)},
			asks:     "plan subtask/a verify", lines: "plan:a a=done verification:false", end: "open: not met: a test shows it"},
		"a commit message gives way to another one": {
			answers: []answer{say(plans("a")), say(tells("Mend it", "It was broken.")), say(fail("Test it")), do("1"), say(strings.Replace(tells("Mend and test it", "It was."), `"a"`, `"verification_fix_1"`, 1)), say(pass)},
			asks:    "plan subtask/a verify subtask/verification_fix_1 verify", lines: "plan:a a=done verification:false revision:a,verification_fix_1 verification_fix_1=done verification:true", end: "passed", words: "Mend and test it\n\nIt was."},
		"a commit message that comes with a verdict that is refused": {
			answers: []answer{say(plans("a")), say(done("a")), say(strings.NewReplacer("a.go:1", "I checked it", `"issues_found"`, `"comment":"Mend it\n\nIt was broken.","issues_found"`).Replace(pass)), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", words: "Mend it\n\nIt was broken."},
		"a commit message without a body is completed": {
			answers: []answer{say(plans("a")), say(tells("Mend it", "")), say(strings.Replace(pass, `"issues_found"`, `"comment":"Mend it\n\nIt was broken.","issues_found"`, 1))},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", words: "Mend it\n\nIt was broken.", prompts: []string{"The commit message has no body: give it whole as comment"}},
		"a plan as a numbered list in words": {
			answers: []answer{say("Here is my plan:\n\n1. **Mend** it\n2. Test it\n\nI begin now."), say(done("task_1")), say(done("task_2")), say(pass)},
			asks:    "plan subtask/task_1 subtask/task_2 verify", lines: "plan:task_1,task_2 task_1=done task_2=done verification:true", end: "passed", prompts: []string{"Mend it"}},
		"a numbered list of questions is no plan": {
			answers: []answer{say("1. Which file?\n2. Which test?"), say(plans("a")), say(done("a")), say(pass)},
			asks:    "plan nudge subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"Words alone are no answer here."}},
		"a program that is not there says nothing of the plan": {
			answers:  []answer{say(plans("a")), do("shell:!pytest: command not found"), do("1"), do("shell:!python: No module named pytest"), do("2"), say(done("a")), say(pass)},
			settings: func(s *Settings) { s.ReflectionInterval = 0 },
			asks:     "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"but twice in a row it does": {
			answers: []answer{say(plans("a")), do("shell:!pytest: command not found"), do("shell:!python: No module named pytest"), sayDo(fine, "1"), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect verify", lines: "plan:a reflection:partial a=done verification:true", end: "passed"},
		"an edit that finds no text says nothing of the plan": {
			answers: []answer{say(plans("a")), do("look_edit:!old_text was not found"), do("1"), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"done, where nothing was changed": {
			answers: []answer{say(plans("a:Add a test")), do("shell:go test ./... 2>&1 | tail -3"), say(done("a")), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"Nothing was changed in this subtask."}},
		"done, where a command may have changed something": {
			answers: []answer{say(plans("a:Add a test")), do("shell:cat >> a_test.go <<E"), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"done, where nothing was to be changed": {
			answers: []answer{say(plans("a:Run the tests that were added")), do("shell:go test ./..."), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"a criterion without evidence is asked for once, and stays open": {
			answers: []answer{say(plans("a")), say(done("a")), say(strings.Replace(pass, "a.go:1", "", 1)), say(strings.Replace(pass, "a.go:1", "", 1))},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "unshown: no evidence is given for: it works", prompts: []string{"no evidence is given for: it works. criteria is a list of {criterion, met, evidence}"}},
		"the checks fail when the plan is done": {
			red: 1, answers: []answer{say(plans("a")), say(done("a")), do("1"), say("Mended."), say(pass)},
			asks: "plan subtask/a remark verify", lines: "plan:a a=done verification:true", end: "passed", words: "Mended."},
		"the end is told as an object after the checks have failed": {
			red: 1, answers: []answer{say(plans("a")), say(done("a")), do("1"), say(`{"phase": "completion", "done": true, "summary": {"goal_achieved": true}, "comment": "Mended."}`), say(pass)},
			asks: "plan subtask/a remark verify", lines: "plan:a a=done verification:true", end: "passed", words: "Mended."},
		"somebody says something in the middle": {
			comments: map[int]string{2: "And please also that."}, answers: []answer{say(plans("a")), do("1"), do("2"), say(done("a")), say(pass)},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"And please also that."}},
		"somebody says something after the last subtask": {
			complain: map[int]string{2: "Not so."}, answers: []answer{say(plans("a")), say(done("a")), do("1"), say("Done otherwise."), say(pass)},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", words: "Done otherwise."},
		"the checks fail twice": {
			red: 2, answers: []answer{say(plans("a")), say(done("a")), say("One."), say("Two."), say(pass)},
			asks: "plan subtask/a remark remark verify", lines: "plan:a a=done verification:true", end: "passed"},
		"what is done about a remark is judged, though the rounds are used up": {
			settings: func(s *Settings) { s.MaxRounds = 1 }, object: map[int]string{3: "Not so."},
			answers: []answer{say(plans("a")), say(done("a")), say(pass), say("Otherwise."), say(fail("Mend it"))},
			asks:    "plan subtask/a verify verify", lines: "plan:a a=done verification:true verification:false", end: "open: it does not work"},
		"somebody says something as a revision is due": {
			comments: map[int]string{3: "And please also that."}, answers: []answer{say(plans("a")), do("!1"), sayDo(revise(""), "2"), say(`{"reason":"r","changes":[` + add("b", "") + `]}`), say(done("a")), say(done("b")), say(pass)},
			asks: "plan subtask/a reflect revise subtask/b verify", lines: "plan:a reflection:failure revision:a,b a=done b=done verification:true", end: "passed"},
		"a plan asks, and people answer": {
			people: []string{"The red one."}, answers: []answer{do("look"), say(asking("Which one?", 0.4, "a")), say(plans("b")), say(done("b")), say(pass)},
			asks: "plan plan subtask/b verify", lines: "question:q1 answer:q1(false) plan:b b=done verification:true", end: "passed", prompts: []string{"Which one?", "The red one."}},
		"a plan alone asks, and is asked for alone again": {
			settings: func(s *Settings) { s.Pre = PrePlanning{Sure: 0.7} },
			people:   []string{"The red one."}, answers: []answer{say(asking("Which one?", 0.4, "a")), say(plans("b")), say(done("b")), say(pass)},
			asks: "plan plan subtask/b verify", lines: "question:q1 answer:q1(false) plan:b b=done verification:true", end: "passed", prompts: []string{"The red one.\n</answer>\n\nPhase 1: call submit_plan at once, with the plan alone"}},
		"a plan asks, and nobody answers": {
			people: []string{""}, answers: []answer{say(asking("Which one?", 0.4, "a")), say(asking("Which one?", 0.8, "a")), say(done("a")), say(pass)},
			asks: "plan plan subtask/a verify", lines: "question:q1 answer:q1(true) plan:a a=done verification:true", end: "passed", prompts: []string{"Nobody answered in time. Take the reading"}},
		"a plan asks as often as it may": {
			people: []string{"", ""}, answers: []answer{say(asking("Which?", 0.1, "a")), say(asking("Which?", 0.1, "a")), say(asking("Which?", 0.1, "a")), say(done("a")), say(pass)},
			asks: "plan plan plan subtask/a verify", lines: "question:q1 answer:q1(true) question:q2 answer:q2(true) plan:a a=done verification:true", end: "passed"},
		"a plan that is sure asks nobody": {
			people: []string{}, answers: []answer{say(asking("Which?", 0.7, "a")), say(done("a")), say(pass)},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"nobody can be asked": {
			answers: []answer{say(asking("Which?", 0.1, "a")), say(ended("a", "failed")), say(clarify(TypeClarification, "How?")), say(done("a")), say(pass)},
			asks:    "plan subtask/a replan subtask/a verify", lines: "plan:a a=failed replan:assume a=done verification:true", end: "passed", prompts: []string{"the small one"}},
		"a failed subtask asks, and goes on with the answer": {
			people: []string{"By hand."}, answers: []answer{say(plans("a", "b<a")), say(ended("a", "blocked")), say(clarify(TypeClarification, "How?")), do("1"), say(done("a")), say(done("b")), say(pass)},
			asks: "plan subtask/a replan subtask/a subtask/b verify", lines: "plan:a,b a=blocked replan:ask question:q1 answer:q1(false) a=done b=done verification:true", end: "passed", prompts: []string{"By hand."}},
		"a failed subtask asks, and nobody answers": {
			people: []string{""}, answers: []answer{say(plans("a")), say(ended("a", "blocked")), say(clarify(TypeClarification, "How?")), say(done("a")), say(pass)},
			asks: "plan subtask/a replan subtask/a verify", lines: "plan:a a=blocked replan:ask question:q1 answer:q1(true) a=done verification:true", end: "passed", prompts: []string{"the small one"}},
		"questions first, then the model decides again": {
			people: []string{"Anew."}, answers: []answer{say(plans("a")), say(ended("a", "failed")), say(clarify(DoRedecompose, "How?")), say(replan(DoRedecompose, 4, 0.9)), say(plans("c")), say(done("c")), say(pass)},
			asks: "plan subtask/a replan replan plan subtask/c verify", lines: "plan:a a=failed replan:ask question:q1 answer:q1(false) replan:task_redecomposition revision:c c=done verification:true", end: "passed", prompts: []string{"Anew."}},
		"a doubtful wish that people confirm": {
			people: []string{"Yes, please"}, answers: []answer{say(plans("a")), say(ended("a", "failed")), say(replan(DoRetry, 1, 0.4)), say(done("a")), say(pass)},
			asks: "plan subtask/a replan subtask/a verify", lines: "plan:a a=failed replan:ask question:q1 answer:q1(false) replan:retry a=done verification:true", end: "passed"},
		"a doubtful wish that people do not confirm": {
			people: []string{"No, do it otherwise."}, answers: []answer{say(plans("a")), say(ended("a", "failed")), say(replan(DoRetry, 1, 0.4)), say(replan(DoRegenerate, 3, 0.9)), say(done("a")), say(pass)},
			asks: "plan subtask/a replan replan subtask/a verify", lines: "plan:a a=failed replan:ask question:q1 answer:q1(false) replan:action_regeneration a=done verification:true", end: "passed", prompts: []string{"No, do it otherwise."}},
		"a doubtful wish, and nobody answers": {
			settings: func(s *Settings) { s.MaxRounds = 1 },
			people:   []string{""}, answers: []answer{say(plans("a", "b")), say(ended("a", "failed")), say(replan(DoRetry, 1, 0.4)), say(done("b")), say(pass)},
			asks: "plan subtask/a replan subtask/b verify", lines: "plan:a,b a=failed replan:ask question:q1 answer:q1(true) b=done verification:false", end: "open: subtask a failed: a is failed", prompts: []string{"so it is not done"}},
		"a doubtful wish in the middle of a subtask, beside calls": {
			settings: func(s *Settings) { s.Reflect = false },
			people:   []string{""}, answers: []answer{say(plans("a")), do("x"), do("x"), do("x"), do("x"), do("x"), sayDo(replan(DoRetry, 1, 0.4), "y"), do("z"), say(done("a")), say(pass)},
			asks: "plan subtask/a nudge replan nudge verify", lines: "plan:a replan:ask question:q1 answer:q1(true) a=done verification:true", end: "passed"},
		"revisions are spent, and people allow another": {
			settings: func(s *Settings) { s.MaxRevisions = 1 },
			people:   []string{"はい"}, answers: []answer{say(plans("a")), do("!1"), sayDo(revise(add("b", "")), "2"), do("!3"), sayDo(revise(add("c", "")), "4"), say(`{"reason":"r","changes":[` + add("c", "") + `]}`), say(done("a")), say(done("b")), say(done("c")), say(pass)},
			asks: "plan subtask/a reflect reflect revise subtask/a subtask/b subtask/c verify", lines: "plan:a reflection:failure revision:a,b reflection:failure question:q1 answer:q1(false) revision:a,b,c a=done b=done c=done verification:true", end: "passed"},
		"revisions are spent, and people want something else": {
			settings: func(s *Settings) { s.MaxRevisions = 0 },
			people:   []string{"Give it up."}, answers: []answer{say(plans("a")), do("!3"), sayDo(revise(add("c", "")), "4"), say(replan(TypeNone, 0, 0.9)), say(done("a")), say(pass)},
			asks: "plan subtask/a reflect replan subtask/a verify", lines: "plan:a reflection:failure question:q1 answer:q1(false) replan:nothing a=done verification:true", end: "passed", prompts: []string{"Give it up."}},
		"revisions of replanning are spent, and people allow another": {
			settings: func(s *Settings) { s.Replan.MaxPlanRevisions = 0 },
			people:   []string{"ok"}, answers: []answer{say(plans("a")), say(ended("a", "failed")), say(replan(DoRevise, 2, 0.9)), say(`{"reason":"r","changes":[` + add("b", "") + `,{"type":"remove","task_id":"a"}]}`), say(done("b")), say(pass)},
			asks: "plan subtask/a replan revise subtask/b verify", lines: "plan:a a=failed replan:ask question:q1 answer:q1(false) replan:plan_revision revision:b b=done verification:true", end: "passed"},
		"what a replan decision revises is not counted as a reflection's": {
			settings: func(s *Settings) { s.MaxRevisions = 1 },
			answers:  []answer{say(plans("a")), say(ended("a", "failed")), say(replan(DoPartial, 2, 0.9)), say(`{"reason":"r","changes":[` + add("c", "") + `,{"type":"remove","task_id":"a"}]}`), do("!1"), sayDo(revise(add("d", "")), "2"), say(done("c")), say(done("d")), say(pass)},
			asks:     "plan subtask/a replan revise subtask/c reflect subtask/d verify", lines: "plan:a a=failed replan:partial_replan revision:c reflection:failure revision:c,d c=done d=done verification:true", end: "passed"},
		"what may not be assumed, or is unlikely, is a gap": {
			answers: []answer{say(goal(plans("a", "b"), `"assumptions":[{"info_id":"port","assumed_value":"8080","confidence":0.8},{"info_id":"os","assumed_value":"BeOS","confidence":0.2},{"info_id":"db_password","assumed_value":"hunter2"}],"information_gaps":[{"description":"who reads it"}]`)),
				say(done("a")), say(done("b")), say(pass)},
			asks: "plan subtask/a subtask/b verify", lines: "plan:a,b assumption:8080 a=done b=done verification:true", end: "passed",
			prompts: []string{"- who reads it\n- too unlikely to be assumed (0.2): BeOS\n- db_password: nothing about password may be assumed"}},
		"nothing is to be assumed": {
			settings: func(s *Settings) { s.Pre.Assume = false },
			answers:  []answer{say(goal(plans("a"), `"assumptions":[{"info_id":"port","assumed_value":"8080","confidence":1}]`)), say(done("a")), say(pass)},
			asks:     "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"assume nothing", "- not assumed: 8080"}},
		"an uncertain understanding is told with the first subtask": {
			answers: []answer{say(goal(plans("a", "b"), `"understanding_confidence":0.6`)), do("1"), say(done("a")), say(done("b")), say(pass)},
			asks:    "plan subtask/a subtask/b verify", lines: "plan:a,b a=done b=done verification:true", end: "passed", prompts: []string{"Do a\n\nThe understanding is uncertain", "Do b\n\nIt is the last one"}},
		"a tool fails while things are looked up": {
			answers: []answer{do("!1"), do("!2", "3"), do("!4"), do("!5"), do("!6"), say(plans("a")), do("!7"), sayDo(fine, "8"), say(done("a")), say(pass)},
			asks:    "plan nudge subtask/a reflect verify", lines: "plan:a reflection:partial a=done verification:true", end: "passed", prompts: []string{"do failed 4 times"}},
		"a tool fails, and nothing was to be looked up": {
			settings: func(s *Settings) { s.Pre.Collect = false },
			answers:  []answer{do("!1"), do("!2"), do("!4"), do("!5"), do("!6"), say(plans("a")), say(done("a")), say(pass)},
			asks:     "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"from what you were given"}},
		"the plan alone": {
			settings: func(s *Settings) { s.Pre = PrePlanning{Sure: 0.7} },
			answers:  []answer{say(goal(plans("a"), `"understanding_confidence":0.1,"assumptions":[{"assumed_value":"8080","confidence":0.1},{"assumed_value":"The APIトークン is x"}]`)), say(done("a")), say(pass)},
			asks:     "plan subtask/a verify", lines: "plan:a assumption:8080 a=done verification:true", end: "passed", prompts: []string{"with the plan alone", "Do a\n\nNot known, and not to be assumed:\n- nothing about token may be assumed\n\nIt is the last one"}},
		"the plan left the view, twice, and is shown again": {
			window: 5000, settings: none,
			answers: []answer{say(goal(plans("a", "b<a", "c"), `"constraints":["no new dependency"],"information_gaps":[{"description":"which port"}]`)), say(done("a")), do(bulk("1")), do(bulk("2")), do(bulk("3")), do(bulk("4")), do(bulk("5")), do(bulk("6")), do(bulk("7")), do(bulk("8")), do(bulk("9")), say(done("b")), say(done("c")), say(pass)},
			asks:    "plan subtask/a subtask/b plan_state plan_state subtask/c verify", lines: "plan:a,b,c a=done b=done c=done verification:true", end: "passed",
			prompts: []string{"Goal: All is done\n\nAt hand: b: Do b\n\nWhat you were asked last left the view, too. When the work on it is done, call report_subtask.\n\nOpen, in this order:\n- b: Do b (after a)\n- c: Do c\n\nThe goal is reached when:\n- it works\n\nConstraints:\n- no new dependency\n\nNot known, and not to be assumed:\n- which port\n\nEnded, with the results:\n- a (done): a is done"}},
		"talk in the place of work: nudge, replan, stop": {
			answers: []answer{say(plans("a", "b", "c")), say("Hm."), say("Well."), say("So."), say("Then."), say("Now."), say(replan(TypeNone, 0, 0.9)), say("Yes."), say("No.")},
			asks:    "plan subtask/a nudge subtask/b nudge subtask/c replan nudge", lines: "plan:a,b,c a=done b=done replan:nothing c=done", end: "the run is stuck: answers came without a call…",
			prompts: []string{"going round in circles: answers came without a call where work was to be done (3 times)", "Stop and think", "Phase 2, subtask 2 of 3: Do b"}},
		"the same talk, and out of it": {
			answers: []answer{say(plans("a", "b")), say("Done."), say("Done."), say("Done."), do("1"), say("Done."), say(pass)},
			asks:    "plan subtask/a nudge subtask/b nudge verify", lines: "plan:a,b a=done b=done verification:true", end: "passed"},
		"talk is no circle where work is done": {
			settings: none, answers: []answer{say(plans("a", "b", "c")), do("1"), say("Done."), do("2"), say("Done."), do("3"), say("Done."), say(pass)},
			asks: "plan subtask/a subtask/b subtask/c verify", lines: "plan:a,b,c a=done b=done c=done verification:true", end: "passed"},
		"lessons of the completion, and what a scan finds": {
			scan: []string{"a.go:1:TODO"},
			answers: []answer{say(plans("a", "b")), say(`{"done":true,"summary":{"goal_achieved":true,"lessons_learned":["early"]}}`),
				say(done("b") + `{"phase":"completion","done":true,"comment":"All done.","summary":{"goal_achieved":true,"lessons_learned":["use-make"," ","use-make"]}}`), say(fail("Mend it")), say(done("verification_fix_1")), say(pass)},
			asks:  "plan subtask/a subtask/b verify subtask/verification_fix_1 verify",
			lines: "plan:a,b a=done+early b=done+use-make scan:a.go:1:TODO verification:false revision:a,b,verification_fix_1 verification_fix_1=done scan:a.go:1:TODO verification:true", end: "passed", words: "All done."},
		"a yes for a reflection's revision lifts no other limit": {
			settings: func(s *Settings) { s.MaxRevisions, s.Replan.MaxPlanRevisions, s.Replan.MaxClarifications = 0, 0, 1 },
			people:   []string{"yes, please do it"}, answers: []answer{say(plans("a")), do("!1"), sayDo(revise(add("b", "")), "2"), say(`{"reason":"r","changes":[` + add("b", "") + `]}`), say(ended("a", "failed")), say(replan(DoRevise, 2, 0.9)), say(done("a")), say(done("b")), say(pass)},
			asks: "plan subtask/a reflect revise subtask/a replan subtask/a subtask/b verify", lines: "plan:a reflection:failure question:q1 answer:q1(false) revision:a,b a=failed replan:action_regeneration a=done b=done verification:true", end: "passed"},
		"that nobody answered is said at once": {
			settings: func(s *Settings) { s.ReflectOnError, s.ReflectionInterval = false, 6 },
			people:   []string{""}, answers: []answer{say(plans("a")), do("x"), do("x"), do("x"), do("x"), do("x"), sayDo(replan(DoRetry, 1, 0.4), "y", "z", "w"), do("v"), sayDo(fine, "u"), say(done("a")), say(pass)},
			asks: "plan subtask/a nudge replan nudge reflect verify", lines: "plan:a replan:ask question:q1 answer:q1(true) reflection:partial a=done verification:true", end: "passed", prompts: []string{"so it is not done. Go on without it."}},
		"that a search finds nothing is an answer": {
			settings: func(s *Settings) { s.ReflectionInterval = 0 },
			answers:  []answer{say(plans("a")), do("shell:!cd x && git grep y"), do("shell:ls"), do("shell:!test -f x"), say(done("a")), say(pass)},
			asks:     "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"that it finds nothing twice in a row is none": {
			answers: []answer{say(plans("a")), do("shell:!grep x y"), do("shell:!ls z"), sayDo(fine, "1"), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect verify", lines: "plan:a reflection:partial a=done verification:true", end: "passed"},
		"a command that looks for nothing fails": {
			answers: []answer{say(plans("a")), do("shell:!grep x y && make"), sayDo(fine, "1"), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect verify", lines: "plan:a reflection:partial a=done verification:true", end: "passed"},
		"done, beside a call that failed": {
			settings: none, answers: []answer{say(plans("a")), sayDo(done("a"), "!1"), say(done("a")), say(pass)},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"A call beside this report failed."}},
		"a reflection is due, and the last step ended well": {
			answers: []answer{say(plans("a")), do("1"), do("2"), do("shell:go vet"), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"a small plan is worked on without reflections": {
			answers: []answer{say(small("a")), do("!1"), do("2"), do("3"), do("4"), do("5"), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"a small plan in trouble": {
			answers: []answer{say(small("a")), do("!1"), do("!2"), sayDo(fine, "3"), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect verify", lines: "plan:a reflection:partial a=done verification:true", end: "passed"},
		"a revision that changes nothing takes none of their number": {
			settings: func(s *Settings) { s.MaxRevisions = 1 },
			answers: []answer{say(plans("a")), do("!1"), sayDo(revise(`{"type":"modify","task_id":"a","subtask":{"description":"Do a"}}`), "2"),
				do("!3"), sayDo(revise(""), "4"), say(`{"reason":"r","changes":[{"type":"modify","task_id":"a","subtask":{"description":"Do a"}}]}`),
				do("!5"), sayDo(revise(add("b", "")), "6"), do("!7"), sayDo(revise(`{"type":"modify","task_id":"a","subtask":{"description":"Do a"}}`), "8"), say(done("a")), say(done("b")), say(pass)},
			asks: "plan subtask/a reflect reflect revise reflect reflect subtask/b verify", lines: "plan:a reflection:failure reflection:failure reflection:failure revision:a,b reflection:failure a=done b=done verification:true", end: "passed"},
		"a plan without criteria is judged by what is asked for": {
			answers: []answer{say(strings.Replace(plans("a"), `["it works"]`, "[]", 1)), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"- the behaviour that the task asks for is there, shown by a test"}},
		"an empty answer is no end": {
			answers: []answer{say(plans("a")), say(" "), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
	}
}

// idleChecks passed before any change as well.
var idleChecks = []CheckEvidence{{Name: "check", Command: "python3 -m pytest -q", HasBase: true}}

// tells is a report of a with a commit message.
func tells(subject, body string) string {
	return encode(map[string]string{"task_id": "a", "status": "done", "summary": "s", "comment": strings.TrimSpace(subject + "\n\n" + body)})
}

// edits are ways with calls that change something: what became of one that is cut
// short is not known, so that such a run is not the same.
func edits() map[string]scene {
	none := func(s *Settings) { s.Reflect = false }
	return map[string]scene{
		"done, after edits that all failed": {
			settings: none, answers: []answer{say(plans("a")), do("edit_file:!x", "edit_file:!y"), do("1"), say(done("a")), say(done("a")), say(pass)},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"Your last edits all failed"}},
		"done in words, after edits that all failed": {
			settings: none, answers: []answer{say(plans("a")), do("edit_file:!x"), say("Done."), do("edit_file:x"), say("Done."), say(pass)},
			asks: "plan subtask/a nudge verify", lines: "plan:a a=done verification:true", end: "passed", prompts: []string{"Your last edits all failed"}},
		"done, after the edit that the subtask asks for": {
			settings: none, answers: []answer{say(plans("a:Add a test")), do("edit_file:y"), say(done("a")), say(pass)},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
		"done, after an edit that was made": {
			settings: none, answers: []answer{say(plans("a")), do("edit_file:!x", "edit_file:y"), say(done("a")), say(pass)},
			asks: "plan subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"},
	}
}

// Every way that a run can take: what the model is asked, what is recorded, and
// how it ends agree.
func TestPaths(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	all := scenes()
	maps.Copy(all, edits())
	for name, sc := range all {
		for _, written := range []bool{false, true} {
			t.Run(fmt.Sprint(name, map[bool]string{true: ", in text"}[written]), func(t *testing.T) {
				t.Parallel()
				s := newStage(t, store, sc)
				s.written = written
				end := s.live()
				defer s.close()
				messages, asks := s.messages()
				_, lines := s.entries()
				if got := strings.Join(asks, " "); got != sc.asks {
					t.Errorf("asked %s\nwant  %s", got, sc.asks)
				}
				if got := strings.Join(lines, " "); got != sc.lines {
					t.Errorf("recorded %s\nwant     %s", got, sc.lines)
				}
				if begins, long := strings.CutSuffix(sc.end, "…"); end != sc.end && (!long || !strings.HasPrefix(end, begins)) {
					t.Errorf("end %q, want %q", end, sc.end)
				}
				if sc.words != "" && s.lead.Words(i18n.English) != sc.words {
					t.Errorf("words %q, want %q", s.lead.Words(i18n.English), sc.words)
				}
				for _, p := range sc.prompts {
					if !slices.ContainsFunc(messages, func(m string) bool { return !strings.HasPrefix(m, "assistant/") && strings.Contains(m, p) }) {
						t.Errorf("the model was never told %q", p)
					}
				}
				if t.Failed() {
					t.Log(s.log.String())
				}
			})
		}
	}
}

// What subtasks report takes the place of the verification where the checks are green
// and the evidence is a command that ended well since the last edit, or a check.
func TestAReportThatShowsIt(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	shown := func(evidence string) answer {
		return say(fmt.Sprintf(`{"task_id":"a","status":"done","summary":"s","criteria":[{"criterion":"it works","evidence":%q}]}`, evidence))
	}
	green := []CheckEvidence{{Name: "check", Command: "make test", HasBase: true, BaseExitCode: 2}}
	idle := []CheckEvidence{{Name: "check", Command: "make test", HasBase: true}}
	for name, c := range map[string]struct {
		scene
		asked bool
	}{
		"by a command":                   {scene{checks: green, answers: []answer{say(plans("a")), do("shell:go run ."), shown("go run . prints 1")}}, false},
		"by a check":                     {scene{checks: green, answers: []answer{say(plans("a")), shown("make test passes")}}, false},
		"by a check that passed before":  {scene{checks: idle, answers: []answer{say(plans("a")), do("shell:make test"), shown("make test passes")}}, true},
		"by a text that names a command": {scene{checks: green, answers: []answer{say(plans("a")), do("shell:go run ."), say(`{"task_id":"a","status":"done","summary":"s","criteria":"it works: go run . exit 0"}`)}}, false},
		"by a command, beside such":      {scene{checks: idle, answers: []answer{say(plans("a")), do("shell:go run ."), shown("go run . prints 1")}}, false},
		"by a part of a command":         {scene{checks: green, answers: []answer{say(plans("a")), do("shell:cd /workspace && go run . 2>&1 | tail -3"), shown("go run . prints 1")}}, false},
		"by one of many commands":        {scene{checks: green, answers: []answer{say(plans("a")), do("shell:go run . ; true"), shown("go run . prints 1")}}, true},
		"by words":                       {scene{checks: green, answers: []answer{say(plans("a")), do("shell:go run ."), shown("I looked at it")}}, true},
		"by nothing":                     {scene{checks: green, answers: []answer{say(plans("a")), do("shell:go run ."), shown(" ")}}, true},
		"by a command that failed":       {scene{checks: green, answers: []answer{say(plans("a")), do("shell:!go run ."), shown("go run . prints 1"), shown("go run . prints 1")}}, true},
		"by a command before an edit":    {scene{checks: green, answers: []answer{say(plans("a")), do("shell:go run ."), do("edit_file:x"), shown("go run . prints 1")}}, true},
		"where something stands out":     {scene{checks: green, scan: []string{"a.go:1:TODO"}, answers: []answer{say(plans("a")), do("shell:go run ."), shown("go run . prints 1")}}, true},
		"by a test that did not run":     {scene{checks: []CheckEvidence{{Name: "check", Command: "make test", HasBase: true, BaseExitCode: 2, Ran: 3, BaseRan: 3}}, added: []string{"TestB"}, answers: []answer{say(plans("a")), do("shell:go run ."), shown("go run . prints 1")}}, true},
		"by a test that ran":             {scene{checks: []CheckEvidence{{Name: "check", Command: "make test", HasBase: true, BaseExitCode: 2, Ran: 4, BaseRan: 3}}, added: []string{"TestB"}, answers: []answer{say(plans("a")), do("shell:go run ."), shown("go run . prints 1")}}, false},
		"without checks":                 {scene{answers: []answer{say(plans("a")), do("shell:go run ."), shown("go run . prints 1")}}, true},
		"with a check that fails":        {scene{checks: []CheckEvidence{{Command: "make test", ExitCode: 1}}, answers: []answer{say(plans("a")), do("shell:go run ."), shown("go run . prints 1")}}, true},
		"by the second of two":           {scene{checks: green, answers: []answer{say(plans("b", "a")), say(done("b")), do("shell:go run ."), shown("go run . prints 1")}}, false},
		"where it did not end well":      {scene{checks: green, settings: func(s *Settings) { s.Replan.MaxTotal = 0 }, answers: []answer{say(plans("a")), do("shell:go run ."), say(ended("a", "failed"))}}, true},
		"where nothing is to be judged":  {scene{checks: green, settings: func(s *Settings) { s.Verify = false }, answers: []answer{say(plans("a")), do("shell:go run ."), shown("go run . prints 1")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			none := c.settings
			c.settings = func(s *Settings) {
				if s.Reflect = false; none != nil {
					none(s)
				}
			}
			s := newStage(t, store, c.scene)
			defer s.close()
			end := s.live()
			_, asks := s.messages()
			_, lines := s.entries()
			if asked := slices.Contains(asks, askVerify) || slices.Contains(asks, askVerify+"/green"); asked != c.asked || !asked && end != "passed" {
				t.Errorf("asked %v, recorded %v, end %q", asks, lines, end)
			}
			if v := s.lead.View(); !c.asked && v.Verified == (name == "where nothing is to be judged") {
				t.Errorf("people see %+v", v)
			}
			if judged := slices.Contains(lines, "verification:true"); judged == c.asked && name != "where nothing is to be judged" {
				t.Errorf("recorded %v", lines)
			}
		})
	}
}

// Evidence names something that can be looked at: a command, which is on record with how
// it ended, in whatever form a model gives it, a place, a test. What does not is none.
func TestEvidenceNamesACommand(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	for name, c := range map[string]struct{ ran, criterion, want string }{
		"in words":           {"go run . 2>&1 | tail -3", `"evidence":"go run . prints 1"`, "go run . prints 1 (exit code 0)"},
		"with its exit code": {"go run .", `"evidence":"go run . ended with exit code 0"`, "go run . ended with exit code 0"},
		"as an object":       {"go run .", `"evidence":{"command":"go run .","exit_code":0}`, "command: go run .; exit code: 0"},
		"as a list":          {"go run .", `"evidence":["go run .","a.go:3"]`, "go run .; a.go:3 (exit code 0)"},
		"in a field":         {"go run .", `"command":"go run ."`, "go run . (exit code 0)"},
		"in other words":     {"cd pkg && go run -race ./cmd/a", `"evidence":"go run prints 1"`, "go run prints 1"},
		"by its argument":    {"go run ./cmd/a", `"evidence":"cmd/a、./cmd/aが1を出力"`, "cmd/a、./cmd/aが1を出力"},
		"that is one word":   {"pytest", `"evidence":"pytest: 3 passed"`, "pytest: 3 passed (exit code 0)"},
		"as a test":          {"ls", `"evidence":"test_adds covers it"`, "test_adds covers it"},
		"as a case of it":    {"ls", `"evidence":"pkg/a.py::test_adds/one"`, "pkg/a.py::test_adds/one"},
		"as a file":          {"ls", `"evidence":"see a.py"`, "see a.py"},
		"that was not run":   {"go vet .", `"evidence":"go run . prints 1"`, ""},
		"that failed":        {"!go run .", `"evidence":"go run . prints 1"`, ""},
		"a test of nowhere":  {"ls", `"evidence":"TestAdds passes"`, ""},
		"a word":             {"go test .", `"evidence":"verified"`, ""},
		"a word, in ja":      {"go test .", `"evidence":"動作を確認した"`, ""},
		"words":              {"go test ./a -count 3", `"evidence":"I checked it, all 3 tests are good to go."`, ""},
		"in the criterion":   {"it works", `"met":true`, "it works (exit code 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judged := `{"verification_passed":true,"criteria":[{"criterion":"it works",` + c.criterion + `}]}`
			s := newStage(t, store, scene{answers: []answer{say(plans("a")), do("shell:" + c.ran), say(done("a")), say(judged), say(judged)}})
			defer s.close()
			end, got := s.live(), ""
			must(t, eachOf(s.h, func(e Entry) bool {
				if e.Verification != nil {
					got = e.Verification.Criteria[0].Evidence
				}
				return true
			}))
			if (end == "passed") != (c.want != "") || got != c.want {
				t.Errorf("%s: %q, want %q", end, got, c.want)
			}
		})
	}
}

// A run that is cut after each of its messages, before or after what is recorded
// of it, is the same run.
func TestCutAfterEveryMessage(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	for name, sc := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := newStage(t, store, sc)
			wantEnd := whole.live()
			defer whole.close()
			wantMessages, _ := whole.messages()
			wantEntries, _ := whole.entries()
			for _, early := range []bool{true, false} {
				s := newStage(t, store, sc)
				s.early = &early
				end, cuts := "", 0
				for cut := true; cut; cuts++ {
					s.open()
					if end, cut = s.drive(); cut {
						s.close()
					}
				}
				messages, _ := s.messages()
				entries, _ := s.entries()
				s.close()
				if end != wantEnd {
					t.Errorf("early %t: end %q, want %q", early, end, wantEnd)
				}
				differ(t, "message", messages, wantMessages)
				differ(t, "line", entries, wantEntries)
				differ(t, "request", s.requests, whole.requests)
				if cuts < len(wantMessages)-2 {
					t.Errorf("%d cuts for %d messages", cuts, len(wantMessages))
				}
			}
		})
	}
}

// differ tells the first difference.
func differ(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "(none)", "(none)"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("%s %d is\n%s\nwant\n%s", what, i, g, w)
			return
		}
	}
}

// Whatever a model answers, in whatever order: a run that is cut after each of its
// messages is the same run, it ends, and what it calls passed was judged.
func TestCutWhateverIsAnswered(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	texts := []string{"", "Well.", plans("a", "b<a"), plans("a", "b", "c<a,b"), plans("a<a"), done("a"), done("b"), done("c"), ended("a", "failed"), ended("b", "blocked"), ended("a", "half"), ended("c", "skipped"),
		`{"done":true,"comment":"All."}`, fine, revise(""), revise(add("d", `,"after":"a"`)), revise(`{"type":"remove","task_id":"a"}`), `{"reason":"r","changes":[` + add("e", "") + `]}`,
		replan(DoRetry, 1, 0.9), replan(DoPartial, 2, 0.9), replan(DoRedecompose, 4, 0.9), replan(DoRestart, 5, 0.7), replan(TypeNone, 0, 0.9), replan(TypeClarification, 2, 0.9), replan(DoRetry, 1, 0.4), clarify(TypeClarification, "How?"), clarify(TypeFullReplan, "Why?"), asking("Which?", 0.2, "a", "b"), pass, fail("Mend"), fail(), done("verification_fix_1")}
	answers := rapid.Custom(func(rt *rapid.T) answer {
		a := answer{rapid.SampledFrom(texts).Draw(rt, "text"), rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "!x", "z"}), 0, 2).Draw(rt, "calls")}
		if a.text == "" && len(a.calls) == 0 {
			a.text = "Nothing." // how many empty answers in a row are too many is the loop's to count
		}
		return a
	})
	rapid.Check(t, func(rt *rapid.T) {
		sc := scene{people: rapid.SliceOfN(rapid.SampledFrom([]string{"", "yes", "Otherwise."}), 0, 3).Draw(rt, "people"), answers: rapid.SliceOfN(answers, 1, 12).Draw(rt, "answers"), red: rapid.IntRange(0, 2).Draw(rt, "red")}
		if rapid.Bool().Draw(rt, "begins with a plan") {
			sc.answers = slices.Insert(sc.answers, 0, say(plans("a", "b<a")))
		}
		whole := newStage(t, store, sc)
		wantEnd := whole.live()
		wantMessages, _ := whole.messages()
		wantEntries, short := whole.entries()
		whole.close()
		if wantEnd == "passed" && !slices.Contains(short, "verification:true") {
			rt.Errorf("passed, recorded %v", short)
		}
		early := rapid.Bool().Draw(rt, "early")
		s := newStage(t, store, sc)
		s.early = &early
		end, cut := "", true
		for cut {
			s.open()
			if end, cut = s.drive(); cut {
				s.close()
			}
		}
		messages, _ := s.messages()
		entries, _ := s.entries()
		s.close()
		if end != wantEnd || !slices.Equal(messages, wantMessages) || !slices.Equal(entries, wantEntries) {
			differ(t, "message", messages, wantMessages)
			differ(t, "line", entries, wantEntries)
			rt.Errorf("end %q, want %q\n%v", end, wantEnd, short)
		}
	})
}

// A line of the history that revises the plan says what changed, whoever changed it:
// a reflection, a new plan, a decision, a verification.
func TestARevisionSaysWhatChanged(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a revision in the reflection, beside calls":                         "add c after a",
		"a revision is refused, asked for again, and given":                  "add b",
		"a subtask failed: the rest is changed":                              "remove a, add c after , modify b",
		"a subtask failed: cut anew, with ids that were used for other work": "remove b, add task_3 after a, add task_4 after task_3, add c",
		"other actions: additional ones and what they concern come":          "modify b, add fix",
		"additional actions stand in the plan before the rest is changed":    "add fix; remove a",
		"a verification does not pass, its fix does":                         "add verification_fix_1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, newStore(t), scenes()[name])
			s.live()
			defer s.close()
			var got []string
			must(t, eachOf(s.h, func(e Entry) bool {
				if e.Revision == nil {
					return true
				}
				var all []string
				for _, c := range e.Revision.Changes {
					text := c.Type + " " + c.about()
					if c.After != "" || c.Type == "add" && e.Revision.Plan.Order()[0] == c.about() {
						text += " after " + c.After
					}
					if c.Details != "" {
						text += " (" + c.Details + ")"
					}
					all = append(all, text)
				}
				got = append(got, strings.Join(all, ", "))
				return true
			}))
			if got := strings.Join(got, "; "); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
	var p Plan
	must(t, json.Unmarshal([]byte(plans("a", "b", "c")), &p))
	next, err := p.Apply(PlanRevision{Changes: []Change{{Type: "modify", Details: "the last one first"}, {Type: "modify", ID: "b", Details: "and twice"}}, Actions: &ActionPlan{ExecutionOrder: []string{"c", "a", "b"}}}, nil, 0)
	must(t, err)
	got, err := json.Marshal(p.changes(&next, []Change{{Type: "modify", Details: "the last one first"}, {Type: "modify", ID: "b", Details: "and twice"}}))
	must(t, err)
	if want := `[{"type":"modify","task_id":"b","subtask":{"id":"b","description":"Do b\nand twice","dependencies":[]},"details":"and twice"},{"type":"modify","details":"the order is now c, a, b"}]`; string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
