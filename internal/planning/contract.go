// Package planning leads a run: a plan, work through its subtasks, reflection,
// revision, replanning, verification (plan; inherit §10). What the model says of
// these is data that is checked here; what follows from it is decided here.
package planning

import "encoding/json"

// The phases that an answer of the model names.
const (
	PhasePlanning     = "planning"
	PhaseExecution    = "execution"
	PhaseReflection   = "reflection"
	PhaseReplan       = "replan_decision"
	PhaseVerification = "verification"
	PhaseCompletion   = "completion"
)

// Plan is what a run is to do (plan §3). Its subtasks form a graph without
// cycles.
type Plan struct {
	Phase         string        `json:"phase"`
	Goal          Goal          `json:"goal_understanding"`
	Decomposition Decomposition `json:"task_decomposition"`
	Actions       ActionPlan    `json:"action_plan"`
	Previous      *Previous     `json:"previous_plan,omitempty"` // where an earlier run left a plan
	Comment       string        `json:"comment,omitempty"`       // for people
	Fallback      bool          `json:"fallback,omitempty"`      // the model gave none that can be used
}

// Goal is how the model understands what is asked for.
type Goal struct {
	MainObjective   string   `json:"main_objective"`
	SuccessCriteria []string `json:"success_criteria"`
	Constraints     []string `json:"constraints"`

	// What is understood before the plan is made.
	TaskType     string       `json:"task_type,omitempty"`
	Deliverables []string     `json:"expected_deliverables,omitempty"`
	Scope        *Scope       `json:"scope,omitempty"`
	Confidence   *float64     `json:"understanding_confidence,omitempty"` // 0 to 1; nil was not said
	Ambiguities  []Ambiguity  `json:"ambiguities,omitempty"`
	Assumptions  []Assumption `json:"assumptions,omitempty"`
	Gaps         []Gap        `json:"information_gaps,omitempty"`
	Questions    []string     `json:"clarification_questions,omitempty"` // without whose answers the work should not begin
}

// Scope is what belongs to a task and what does not.
type Scope struct {
	In  []string `json:"in_scope"`
	Out []string `json:"out_of_scope"`
}

// Ambiguity is what can be understood in more than one way.
type Ambiguity struct {
	Item      string `json:"item"`
	Selected  string `json:"selected_interpretation"`
	Reasoning string `json:"reasoning,omitempty"`
}

// Assumption is what is taken to be so, because nobody said it.
type Assumption struct {
	ID         string   `json:"info_id,omitempty"`
	Value      string   `json:"assumed_value"`
	Reasoning  string   `json:"reasoning,omitempty"`
	Confidence *float64 `json:"confidence,omitempty"` // 0 to 1; nil was not said
}

// Gap is what is not known and may not be assumed.
type Gap struct {
	ID          string `json:"info_id,omitempty"`
	Description string `json:"description"`
	Impact      string `json:"impact,omitempty"`
}

// Decomposition cuts a task into subtasks.
type Decomposition struct {
	Reasoning string    `json:"reasoning"`
	Subtasks  []Subtask `json:"subtasks"`
}

// Subtask is a part of the work that can be ticked off by its result.
type Subtask struct {
	ID            string   `json:"id"` // unique in a plan and over its revisions
	Description   string   `json:"description"`
	Dependencies  []string `json:"dependencies"`         // ids that must be done before
	Complexity    string   `json:"complexity,omitempty"` // low, medium or high; "estimated_complexity" is read, too
	RequiredTools []string `json:"required_tools,omitempty"`
}

// ActionPlan is the order of the work, and the calls that are thought of for it,
// which are recorded as the model gave them.
type ActionPlan struct {
	ExecutionOrder []string `json:"execution_order"` // ids of subtasks; each after its dependencies
	Actions        []Action `json:"actions"`
}

// Action is a call that the plan thinks of. It is advice to the model, not a
// script: what a call needs is known when it is made.
type Action struct {
	TaskID          string          `json:"task_id"`
	Type            string          `json:"action_type,omitempty"` // tool_call
	Tool            string          `json:"tool,omitempty"`
	Parameters      json.RawMessage `json:"parameters,omitempty"` // an object
	Purpose         string          `json:"purpose,omitempty"`
	ExpectedOutcome string          `json:"expected_outcome,omitempty"`
	Fallback        string          `json:"fallback_strategy,omitempty"`
}

// Previous is what the model makes of the plan that an earlier run left
// (inherit §10.3).
type Previous struct {
	Use       string `json:"applicability,omitempty"` // continue or reference_only; "" where that was not said
	Reasoning string `json:"reasoning,omitempty"`
	// Done are the subtasks of this plan that the earlier run has done.
	Done []string `json:"done,omitempty"`
}

// Reflection is what the model thinks of how it goes (plan §3).
type Reflection struct {
	Phase    string        `json:"phase"`
	Judged   Judgement     `json:"reflection"`
	Revision *PlanRevision `json:"plan_revision,omitempty"`
	Comment  string        `json:"comment,omitempty"`
}

// Judgement is the evaluation in a Reflection.
type Judgement struct {
	Status     string   `json:"status"` // success, failure or partial
	Evaluation string   `json:"evaluation"`
	Issues     []string `json:"issues_identified,omitempty"`
	RootCause  string   `json:"root_cause,omitempty"`
	Revise     bool     `json:"plan_revision_needed"` // read beside "reflection", too
	Reasoning  string   `json:"reasoning,omitempty"`
}

// PlanRevision is how a plan is changed. What was done stays done.
type PlanRevision struct {
	Reason  string      `json:"reason"`
	Changes []Change    `json:"changes"`
	Actions *ActionPlan `json:"updated_action_plan,omitempty"` // of which the order counts
}

// Change is one change of a plan.
type Change struct {
	Type    string   `json:"type"`              // add, remove or modify; add_action … are read, too
	ID      string   `json:"task_id,omitempty"` // of remove and modify
	Subtask *Subtask `json:"subtask,omitempty"` // of add and modify
	After   string   `json:"after,omitempty"`   // of add: the subtask that it comes after; "" for the end
	Details string   `json:"details,omitempty"`
}

// Verification is what the model says, with evidence, of whether the goal is
// reached.
type Verification struct {
	Phase       string            `json:"phase"`
	Passed      bool              `json:"verification_passed"`
	Criteria    []Criterion       `json:"criteria,omitempty"`
	Issues      []string          `json:"issues_found"`
	Placeholder PlaceholderReport `json:"placeholder_detected"`
	More        bool              `json:"additional_work_needed"`
	Additional  []Action          `json:"additional_actions,omitempty"` // TaskID is verification_fix_n
	Confidence  float64           `json:"completion_confidence"`        // 0 to 1
	Comment     string            `json:"comment,omitempty"`
}

// Criterion is one success criterion of the plan as it is met, or not.
type Criterion struct {
	Criterion string `json:"criterion"`
	Met       bool   `json:"met"`
	Evidence  string `json:"evidence"` // file:line, or a command and its exit code
}

// PlaceholderReport is what looks unfinished.
type PlaceholderReport struct {
	Count     int      `json:"count"`
	Locations []string `json:"locations"`
}

// ReplanDecision is what the model wants done about what went wrong.
type ReplanDecision struct {
	Decision Replan `json:"replan_decision"`
	Comment  string `json:"comment,omitempty"`
}

// Replan is the body of a ReplanDecision.
type Replan struct {
	Needed         bool     `json:"replan_needed"`
	Confidence     float64  `json:"confidence"` // 0 to 1
	Reasoning      string   `json:"reasoning"`
	Type           string   `json:"replan_type"`            // one of the Replan types
	Target         string   `json:"target_phase,omitempty"` // goal_understanding, task_decomposition, action_sequence, execution or reflection
	Level          int      `json:"replan_level"`           // 1 to 5; 0 where nothing is to be done
	Issues         []string `json:"issues_found,omitempty"`
	Recommended    []string `json:"recommended_actions,omitempty"`
	Clarify        bool     `json:"clarification_needed,omitempty"`
	Questions      []string `json:"clarification_questions,omitempty"`
	Classification string   `json:"error_classification,omitempty"` // transient, persistent or fatal
	Strategy       string   `json:"recovery_strategy,omitempty"`
	Affected       []string `json:"affected_actions,omitempty"`
	Result         string   `json:"evaluation_result,omitempty"` // success, partial_success or failure
	Achievement    float64  `json:"achievement_rate,omitempty"`  // 0 to 100
	Additional     []Action `json:"additional_actions,omitempty"`
	Assume         []string `json:"assumptions_to_make,omitempty"`
}

// Completion is the model's word that everything is done (plan §3).
type Completion struct {
	Done    bool               `json:"done"`
	Summary *CompletionSummary `json:"summary,omitempty"`
	Comment string             `json:"comment,omitempty"`
}

// CompletionSummary is what was reached, as far as anything is made of it.
type CompletionSummary struct {
	TasksFailed []string `json:"tasks_failed,omitempty"`
	KeyOutcomes []string `json:"key_outcomes,omitempty"`
	Lessons     []string `json:"lessons_learned,omitempty"`
}
