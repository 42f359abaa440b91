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

// definitions are what the model is told of them. submit_plan and report_subtask
// show the parts of plan §3 without which nothing can be done; the form of the
// others comes with the question that they answer, since most runs never need it.
// What else the model gives is read as well, and what is required is told where it is missing.
var definitions = []tool.Definition{
	{Name: ToolPlan, Description: "Gives the plan.",
		Schema: json.RawMessage(`{"type":"object","properties":{"goal_understanding":` + goalSchema + `},` +
			`"task_decomposition":{"type":"object","properties":{"subtasks":{"type":"array","items":` + subtaskSchema + `}}}}}}`),
		Reads: json.RawMessage(`{"type":"object","properties":{"goal_understanding":` + goalSchema + `,"required":["main_objective"]},` +
			`"task_decomposition":{"type":"object","properties":{"subtasks":{"type":"array","items":` + subtaskSchema + `,"required":["description"]}}},"required":["subtasks"]}},` +
			`"required":["goal_understanding","task_decomposition"]}`)},
	{Name: ToolReport, Description: "Ends the subtask at hand.",
		Schema: json.RawMessage(reportSchema), Reads: json.RawMessage(strings.NewReplacer(`"evidence":{"type":"string"}`, `"evidence":{}`, `"items":{"type":"object"`, `"items":{"type":["object","string"]`).Replace(reportSchema)), // see Criterion.UnmarshalJSON
		Aliases: map[string]string{"id": "task_id", "result": "summary", "outcome": "summary"}},
	{Name: ToolReflect, Description: "Only when asked.",
		Schema: json.RawMessage(openSchema),
		Reads:  json.RawMessage(`{"type":"object","properties":{"evaluation":{"type":"string"},"plan_revision_needed":{"type":"boolean"},"plan_revision":{"type":"object"}}}`)},
	{Name: ToolReplan, Description: "Only when asked.",
		Schema: json.RawMessage(openSchema),
		Reads:  json.RawMessage(`{"type":"object","properties":{"replan_decision":{"type":"object","properties":{"replan_needed":{"type":"boolean"},"confidence":{"type":"number"},"reasoning":{"type":"string"},"replan_type":{"type":"string"}},"required":["replan_needed","confidence","replan_type"]}},"required":["replan_decision"]}`)},
	{Name: ToolVerify, Description: "Only when asked.",
		Schema: json.RawMessage(openSchema),
		Reads: json.RawMessage(`{"type":"object","properties":{"verification_passed":{"type":"boolean"},"criteria":{"type":"array","items":{"type":"object","properties":{"criterion":{"type":"string"},"met":{"type":"boolean"},"evidence":{}}}},` +
			`"issues_found":{"type":"array","items":{"type":"string"}},"additional_actions":{"type":"array","items":{"type":"object"}}},"required":["verification_passed"]}`),
		Aliases: map[string]string{"passed": "verification_passed", "issues": "issues_found"}},
}

// openSchema takes whatever the question asks for. Servers that let a model write only what a
// schema names (llama.cpp) must be told so; others want properties to be there (OpenAI).
const openSchema = `{"type":"object","properties":{},"additionalProperties":true}`

// The objects of submit_plan, each without its last brace, and what report_subtask takes.
const (
	goalSchema    = `{"type":"object","properties":{"main_objective":{"type":"string"},"success_criteria":{"type":"array","items":{"type":"string"}}}`
	subtaskSchema = `{"type":"object","properties":{"id":{"type":"string"},"description":{"type":"string"},"dependencies":{"type":"array","items":{"type":"string"}},"complexity":{"type":"string"}}`
	reportSchema  = `{"type":"object","properties":{"status":{"type":"string","description":"done, failed, blocked or skipped"},"summary":{"type":"string"},` +
		`"criteria":{"type":"array","items":{"type":"object","properties":{"criterion":{"type":"string"},"evidence":{"type":"string"}}}},"comment":{"type":"string"}},"required":["status"]}`
)

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
// What they are answered is the Coordinator's to say (turn.Director.Results), which reads
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
		_ = decodeLoosely(json.RawMessage(c.Arguments), &v) // what is good of it
		return v, &ContractError{[]string{problem}}
	}
	if problem != "" {
		args = json.RawMessage(c.Arguments)
	}
	return v, decodeLoosely(args, &v)
}
