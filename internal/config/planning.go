package config

// Planning is the section planning (plan §4): how a task is led.
type Planning struct {
	Enabled            bool   `yaml:"enabled" default:"true" doc:"Plan, reflect, revise and verify; false runs the plain loop of model and tools."`
	Strategy           string `yaml:"strategy" default:"chain_of_thought" check:"enum=chain_of_thought|direct|test_first" doc:"How the model is asked to plan: chain_of_thought has it reason step by step first, direct does not, test_first begins with a test that fails."`
	MaxSubtasks        int    `yaml:"max_subtasks" default:"100" check:"min=1,max=1000" doc:"Most subtasks of a plan, revisions included."`
	DecompositionLevel string `yaml:"decomposition_level" default:"moderate" check:"enum=coarse|moderate|fine" doc:"How finely a task is cut into subtasks."`

	PrePlanning     PrePlanning     `yaml:"pre_planning" doc:"What comes before the plan."`
	Reflection      Reflection      `yaml:"reflection" doc:"Looking back while the work goes on."`
	Revision        Revision        `yaml:"revision" doc:"Changing the plan after a reflection."`
	History         History         `yaml:"history" doc:"Where plans and what became of them are kept."`
	Verification    Verification    `yaml:"verification" doc:"Judging the result before it counts as done."`
	Replanning      Replanning      `yaml:"replanning" doc:"What is done where the work is stuck."`
	ProgressComment ProgressComment `yaml:"progress_comment" doc:"The one comment that shows how far a run is."`
}

// PrePlanning is the section planning.pre_planning.
type PrePlanning struct {
	Enabled       bool `yaml:"enabled" default:"true" doc:"Have the model understand the task and look things up before it plans; false asks for the plan alone."`
	Understanding struct {
		ConfidenceThreshold float64 `yaml:"confidence_threshold" default:"0.7" check:"min=0,max=1" doc:"Below it, an understanding is shown as uncertain, and the model is told to look before it changes anything."`
	} `yaml:"understanding" doc:"How the task is understood."`
	Collection struct {
		Enabled           bool `yaml:"enabled" default:"true" doc:"Look things up with the tools before the plan; false has the model plan from what it was given."`
		MaxRetriesPerTool int  `yaml:"max_retries_per_tool" default:"2" check:"min=0,max=100" doc:"Failed calls of one tool beyond the first, before the plan, after which the model is told to go on without it."`
	} `yaml:"collection" doc:"Looking things up."`
	Assumption struct {
		Enabled             bool    `yaml:"enabled" default:"true" doc:"Let the plan assume what is not known; false makes an information gap of each assumption."`
		ConfidenceThreshold float64 `yaml:"confidence_threshold" default:"0.5" check:"min=0,max=1" doc:"Below it, an assumption is an information gap."`
	} `yaml:"assumption" doc:"What is taken to be so."`
	Notification Notification `yaml:"notification" doc:"What of it stands in the history of the progress."`
}

// Reflection is the section planning.reflection.
type Reflection struct {
	Enabled         bool `yaml:"enabled" default:"true" doc:"Have the model look back at all."`
	TriggerOnError  bool `yaml:"trigger_on_error" default:"true" doc:"When a tool call failed."`
	TriggerInterval int  `yaml:"trigger_interval" default:"3" check:"min=1,max=1000" doc:"After so many actions."`
}

// Revision is the section planning.revision.
type Revision struct {
	MaxRevisions int `yaml:"max_revisions" default:"3" check:"min=0,max=100" doc:"How often a plan may be changed; after that a person is asked."`
}

// History is the section planning.history.
type History struct {
	StorageType string `yaml:"storage_type" default:"jsonl" check:"enum=jsonl" doc:"How it is stored."`
	Directory   string `yaml:"directory" doc:"Directory of the histories, relative to context_storage.base_dir; empty keeps each in its context, in planning/."`
}

// Verification is the section planning.verification.
type Verification struct {
	Enabled      bool   `yaml:"enabled" default:"true" doc:"Have the model judge each success criterion with evidence when the checks have passed."`
	MaxRounds    int    `yaml:"max_rounds" default:"2" check:"min=1,max=20" doc:"How often at most."`
	OnOpenPoints string `yaml:"on_open_points" default:"fail" check:"enum=fail|complete" doc:"What becomes of a run that leaves points open: fail, or complete, which names them."`
}

// Replanning is the section planning.replanning.
type Replanning struct {
	GoalUnderstanding struct {
		MaxClarificationRequests int  `yaml:"max_clarification_requests" default:"2" check:"min=0,max=100" doc:"How often a run asks people about its plan or what went wrong, and at most so many questions it asks while it works; 0 asks nobody."`
		AutoAssumeOnNoResponse   bool `yaml:"auto_assume_on_no_response" default:"true" doc:"Go on with a stated assumption where nobody answers; false waits for as long as it takes."`
		AutoAssumeTimeoutMinutes int  `yaml:"auto_assume_timeout_minutes" default:"30" check:"min=1,max=525600" doc:"How long an answer is waited for, in minutes."`
	} `yaml:"goal_understanding" doc:"When people must be asked."`
	TaskDecomposition struct {
		MaxRedecompositionAttempts int `yaml:"max_redecomposition_attempts" default:"3" check:"min=0,max=100" doc:"How often the rest of the work is cut anew."`
	} `yaml:"task_decomposition" doc:"When the subtasks do not fit."`
	ActionSequence struct {
		MaxRegenerationAttempts int `yaml:"max_regeneration_attempts" default:"3" check:"min=0,max=100" doc:"How often the actions of a subtask are thought of anew."`
	} `yaml:"action_sequence" doc:"When the actions do not fit."`
	Execution struct {
		MaxActionRetries  int `yaml:"max_action_retries" default:"3" check:"min=0,max=100" doc:"How often a subtask is tried again as it is."`
		MaxPartialReplans int `yaml:"max_partial_replans" default:"2" check:"min=0,max=100" doc:"How often the rest of the plan is made anew."`
	} `yaml:"execution" doc:"When the work fails."`
	Reflection struct {
		MaxPlanRevisions int `yaml:"max_plan_revisions" default:"2" check:"min=0,max=100" doc:"How often a replan decision may revise the plan."`
	} `yaml:"reflection" doc:"When a reflection wants it otherwise."`
	Global struct {
		MaxTotalReplans       int  `yaml:"max_total_replans" default:"10" check:"min=0,max=1000" doc:"Of all kinds together."`
		InfiniteLoopDetection bool `yaml:"infinite_loop_detection" default:"true" doc:"Notice that the same thing is tried again and again."`
		SameTriggerMaxCount   int  `yaml:"same_trigger_max_count" default:"2" check:"min=1,max=100" doc:"How often the same reason may lead to the same kind of replan."`
	} `yaml:"global" doc:"Limits of all replans."`
	LLMDecision struct {
		MinConfidenceThreshold float64 `yaml:"min_confidence_threshold" default:"0.5" check:"min=0,max=1" doc:"From here on the model's decision is followed."`

		RequireUserConfirmationOnLowConfidence bool    `yaml:"require_user_confirmation_on_low_confidence" default:"true" doc:"Ask people about one that is less sure."`
		UserConfirmationThreshold              float64 `yaml:"user_confirmation_threshold" default:"0.3" check:"min=0,max=1" doc:"Below this it is not even asked about."`
	} `yaml:"llm_decision" doc:"How sure the model must be."`
}

// ProgressComment is the section planning.progress_comment.
type ProgressComment struct {
	Enabled         bool `yaml:"enabled" default:"true" doc:"Show the progress in a comment while the run goes on; its end is told there in any case."`
	IntervalSeconds int  `yaml:"interval_seconds" default:"30" check:"min=5,max=3600" doc:"How often it is edited at most, in seconds."`

	MaxHistoryEntries int `yaml:"max_history_entries" default:"100" check:"min=1,max=1000" doc:"Most entries of its history; the oldest go first, and their number is said."`
}

// Notification is the section planning.pre_planning.notification.
type Notification struct {
	OnStart                 bool `yaml:"notify_on_start" default:"true" doc:"That the plan is being made."`
	OnUnderstandingComplete bool `yaml:"notify_on_understanding_complete" default:"true" doc:"How the task is understood."`
	OnCollectionComplete    bool `yaml:"notify_on_collection_complete" default:"true" doc:"How much was looked at before the plan."`
	OnAssumption            bool `yaml:"notify_on_assumption" default:"false" doc:"Each thing that is assumed."`
}
