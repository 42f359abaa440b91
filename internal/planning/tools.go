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
// show the parts of plan §3 without which nothing can be done; reflect answers what else is asked,
// in the form that comes with the question, since most runs never need it. The last two are
// the forms of text that it is then read by; calls of them are read, too.
// What else the model gives is read as well, and what is required is told where it is missing.
var definitions = []tool.Definition{
	{Name: ToolPlan, Description: "Gives the plan.", Prose: true,
		Schema: schema(`"goal_understanding":` + object(goalFields) + `,"task_decomposition":` + object(`"subtasks":`+list(object(`"description":`+words+`,"complexity":`+words)))),
		Reads: schema(`"goal_understanding":`+object(goalFields+understood, `"main":"main_objective","required":["main_objective"]`)+
			`,"task_decomposition":`+object(`"subtasks":`+list(object(subtaskFields, `"main":"description","required":["description"]`)), `"required":["subtasks"]`),
			`"required":["goal_understanding","task_decomposition"]`),
		Aliases: map[string]string{"goal": "main_objective", "objective": "main_objective", "criteria": "success_criteria", "steps": "subtasks", "tasks": "subtasks", "title": "description", "name": "description", "task": "description"}},
	{Name: ToolReport, Description: "Ends the subtask at hand.", Prose: true,
		Schema:  reportSchema(`{"type":"string","enum":["done","failed","blocked","skipped"]}`, object(criterionFields), ""),
		Reads:   reportSchema(words, object(criterionFields, `"main":"criterion"`), `,"task_id":`+words),
		Aliases: map[string]string{"id": "task_id", "subtask_id": "task_id", "result": "summary", "outcome": "summary", "command": "evidence", "commit_message": "comment", "message": "comment"}},
	{Name: ToolReflect, Description: "Only when asked.", Prose: true, Schema: openSchema,
		Reads: schema(`"reflection":` + object(`"status":`+words+`,"evaluation":`+words+`,"issues_identified":`+list(words)+`,"root_cause":`+words+`,"plan_revision_needed":`+yesNo, `"main":"evaluation"`) +
			`,"plan_revision":` + object(`"reason":`+words+`,"changes":`+list(object(`"type":`+words+`,"details":`+words+`,"subtask":`+object(subtaskFields, `"main":"description"`), `"main":"details"`)), `"main":"reason"`))},
	{Name: ToolReplan, Deferred: true, Prose: true, Schema: openSchema,
		Reads: schema(`"replan_decision":`+object(`"replan_needed":`+yesNo+`,"confidence":{"type":"number"},"reasoning":`+words+`,"replan_type":`+words+`,"clarification_questions":`+list(words)+
			`,"affected_actions":`+list(words)+`,"additional_actions":`+actions, `"required":["replan_needed","confidence","replan_type"]`), `"required":["replan_decision"]`),
		Aliases: map[string]string{"action": "purpose", "description": "purpose"}},
	{Name: ToolVerify, Deferred: true, Prose: true, Schema: openSchema,
		Reads: schema(`"verification_passed":`+yesNo+`,"criteria":`+list(object(criterionFields+`,"met":`+yesNo, `"main":"criterion"`))+
			`,"issues_found":`+list(words)+`,"additional_actions":`+actions, `"required":["verification_passed"]`),
		Aliases: map[string]string{"passed": "verification_passed", "issues": "issues_found", "command": "evidence", "action": "purpose", "description": "purpose"}},
}

// Parts of schemas. "main" names the property that a text stands for (tool.Definition.Prose).
const (
	words      = `{"type":"string"}`
	yesNo      = `{"type":"boolean"}`
	goalFields = `"main_objective":` + words + `,"success_criteria":{"type":"array","items":` + words + `}`
	understood = `,"ambiguities":{"type":"array","items":{"type":"object","properties":{"selected_interpretation":` + words + `},"main":"selected_interpretation"}}` +
		`,"assumptions":{"type":"array","items":{"type":"object","properties":{"assumed_value":` + words + `},"main":"assumed_value"}}` +
		`,"information_gaps":{"type":"array","items":{"type":"object","properties":{"description":` + words + `},"main":"description"}}`
	subtaskFields   = `"id":` + words + `,"description":` + words + `,"dependencies":{"type":"array","items":` + words + `},"complexity":` + words
	criterionFields = `"criterion":` + words + `,"evidence":` + words
	actions         = `{"type":"array","items":{"type":"object","properties":{"purpose":` + words + `},"main":"purpose"}}`
)

// object is the schema of an object: its properties, and what else is said of it.
func object(properties string, more ...string) string {
	return `{"type":"object","properties":{` + properties + `}` + strings.Join(append([]string{""}, more...), ",") + `}`
}

func list(items string) string { return `{"type":"array","items":` + items + `}` }

func schema(properties string, more ...string) json.RawMessage {
	return json.RawMessage(object(properties, more...))
}

func reportSchema(status, criterion, more string) json.RawMessage {
	return schema(`"status":`+status+`,"summary":`+words+`,"criteria":`+list(criterion)+`,"comment":`+words+more, `"required":["status"]`)
}

// openSchema takes whatever the question asks for. Servers that let a model write only what a
// schema names (llama.cpp) must be told so; others want properties to be there (OpenAI).
var openSchema = schema("", `"additionalProperties":true`)

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
// schema does not name is left out. What is wrong is told once; then what is good counts.
func read[T any](c contextstore.ToolCall, told bool) (v T, err error) {
	args, _, problem := readers()[c.Name].Read(c.Arguments)
	if args != nil {
		err = decodeLoosely(args, &v)
	}
	if problem != "" && (!told || args == nil) {
		err = &ContractError{[]string{problem}}
	}
	return v, err
}
