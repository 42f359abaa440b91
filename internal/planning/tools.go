package planning

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/tool"
)

// The tools by which the model gives what a phase asks for (plan §3).
const (
	ToolPlan    = "submit_plan"
	ToolReport  = "report_subtask"
	ToolReflect = "reflect"
	ToolReplan  = "decide_replan"
	ToolVerify  = "submit_verification"
)

// definitions are what the model is told of them: the parts of plan §3 without
// which nothing can be done. What else it gives is read as well.
var definitions = []tool.Definition{
	{Name: ToolPlan, Description: "Gives the plan. A small task is one subtask of low complexity.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"goal_understanding":{"type":"object","properties":{"main_objective":{"type":"string"},"success_criteria":{"type":"array","items":{"type":"string"}}},"required":["main_objective"]},` +
			`"task_decomposition":{"type":"object","properties":{"subtasks":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"description":{"type":"string"},"dependencies":{"type":"array","items":{"type":"string"}},"complexity":{"type":"string"}},"required":["id","description"]}}},"required":["subtasks"]}},` +
			`"required":["goal_understanding","task_decomposition"]}`)},
	{Name: ToolReport, Description: "Ends the subtask at hand: done, failed, blocked or skipped.",
		Schema: json.RawMessage(`{"type":"object","properties":{"task_id":{"type":"string"},"status":{"type":"string"},"summary":{"type":"string"},` +
			`"criteria":{"type":"array","items":{"type":"object","properties":{"criterion":{"type":"string"},"evidence":{"type":"string","description":"command that showed it"}}}}},"required":["status"]}`),
		Aliases: map[string]string{"id": "task_id", "result": "summary", "outcome": "summary"}},
	{Name: ToolReflect, Description: "Judges how the work goes, and changes the plan if it must.",
		Schema: json.RawMessage(`{"type":"object","properties":{"reflection":{"type":"object"},"plan_revision":{"type":"object","description":"changes: [{type: add, remove or modify, task_id, subtask, after}]"}}}`)},
	{Name: ToolReplan, Description: "Decides about what went wrong, when asked.",
		Schema: json.RawMessage(`{"type":"object","properties":{"replan_decision":{"type":"object","properties":{"replan_needed":{"type":"boolean"},"confidence":{"type":"number"},"reasoning":{"type":"string"},"replan_type":{"type":"string"}},"required":["replan_needed","confidence","replan_type"]}},"required":["replan_decision"]}`)},
	{Name: ToolVerify, Description: "Judges the result, when asked.",
		Schema: json.RawMessage(`{"type":"object","properties":{"verification_passed":{"type":"boolean"},"criteria":{"type":"array","items":{"type":"object","properties":{"criterion":{"type":"string"},"met":{"type":"boolean"},"evidence":{"type":"string","description":"file:line, or a command and its exit code"}}}},` +
			`"issues_found":{"type":"array","items":{"type":"string"}},"additional_actions":{"type":"array","description":"[{purpose}] of the work that is left","items":{"type":"object"}}},"required":["verification_passed"]}`),
		Aliases: map[string]string{"passed": "verification_passed", "issues": "issues_found"}},
}

// readers read the arguments of the tools. An error is one of the build.
var readers = sync.OnceValue(func() map[string]*tool.Arguments {
	all := map[string]*tool.Arguments{}
	for _, d := range definitions {
		r, err := tool.NewArguments(d)
		if err != nil {
			panic(fmt.Sprintf("planning: schema of %s: %v", d.Name, err))
		}
		all[d.Name] = r
	}
	return all
})

// IsTool reports whether a tool is one of planning's.
func IsTool(name string) bool { return readers()[name] != nil }

// Tools are the tools of planning, for the registry of a run that a plan leads.
// What they are answered is the Lead's to say (turn.Loop.Complete), which reads
// the calls from the record.
func Tools() (all []tool.Tool) {
	for _, d := range definitions {
		d.ReadOnly, d.Waits = true, true // after the other calls of an answer, and again after a crash
		all = append(all, answered{d})
	}
	return all
}

type answered struct{ def tool.Definition }

func (a answered) Definition() tool.Definition { return a.def }

func (answered) Call(context.Context, json.RawMessage) (tool.Result, error) {
	return tool.Result{}, nil
}

// ContractError lists what is wrong with an answer: it breaks its schema, or makes
// no sense.
type ContractError struct{ Problems []string }

// maxProblems is how many problems the model is told at once.
const maxProblems = 20

func (e *ContractError) Error() string {
	all := e.Problems[:min(len(e.Problems), maxProblems)]
	if more := len(e.Problems) - len(all); more > 0 {
		all = append(all[:len(all):len(all)], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "\n")
}

// read decodes the arguments of a call. A field of another type than ours that its
// schema does not name is left out; all of these, where the model was told already
// what is wrong.
func read[T any](c contextstore.ToolCall, told bool) (v T, err error) {
	args, _, problem := readers()[c.Name].Read(c.Arguments)
	if problem != "" && (!told || !json.Valid([]byte(c.Arguments))) {
		return v, &ContractError{[]string{problem}}
	}
	if problem != "" {
		args = json.RawMessage(c.Arguments)
	}
	return v, decodeLoosely(args, &v)
}
