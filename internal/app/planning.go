package app

import (
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/config"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
)

// planned is how runs are led by the settings of planning; nil for the plain
// loop.
func planned(cfg *config.Config) *agent.Planning {
	p := cfg.Planning
	if !p.Enabled {
		return nil
	}
	interval := p.Reflection.TriggerInterval
	if !p.Reflection.Enabled {
		interval = 0
	}
	r, in := p.Replanning, cfg.ContextInheritance.Planning
	return &agent.Planning{
		Settings: planning.Settings{
			MaxSubtasks: p.MaxSubtasks, Reflect: p.Reflection.Enabled, ReflectOnError: p.Reflection.TriggerOnError, ReflectionInterval: interval,
			MaxRevisions: p.Revision.MaxRevisions, Verify: p.Verification.Enabled, MaxRounds: p.Verification.MaxRounds,
			Pre: planning.PrePlanning{Enabled: p.PrePlanning.Enabled, Sure: p.PrePlanning.Understanding.ConfidenceThreshold,
				Collect: p.PrePlanning.Collection.Enabled, MaxRetries: p.PrePlanning.Collection.MaxRetriesPerTool,
				Assume: p.PrePlanning.Assumption.Enabled, Likely: p.PrePlanning.Assumption.ConfidenceThreshold},
			Replan: planning.ReplanLimits{
				MaxClarifications: r.GoalUnderstanding.MaxClarificationRequests, ConfirmLow: r.LLMDecision.RequireUserConfirmationOnLowConfidence, ConfirmFrom: r.LLMDecision.UserConfirmationThreshold,
				MaxRedecompositions: r.TaskDecomposition.MaxRedecompositionAttempts, MaxRegenerations: r.ActionSequence.MaxRegenerationAttempts,
				MaxActionRetries: r.Execution.MaxActionRetries, MaxPartialReplans: r.Execution.MaxPartialReplans, MaxPlanRevisions: r.Reflection.MaxPlanRevisions,
				MaxTotal: r.Global.MaxTotalReplans, DetectLoops: r.Global.InfiniteLoopDetection, SameTrigger: r.Global.SameTriggerMaxCount,
				MinConfidence: r.LLMDecision.MinConfidenceThreshold,
			},
		},
		Prompts: planning.Prompts{Lang: i18n.Lang(cfg.Language), Strategy: p.Strategy, Level: p.DecompositionLevel, MaxSubtasks: p.MaxSubtasks, ReflectionInterval: interval,
			MayAsk: r.GoalUnderstanding.MaxClarificationRequests > 0},
		Inherit: planning.Inheritance{Plans: in.InheritPlans, Verifications: in.InheritVerifications, Reflections: in.InheritReflections,
			MaxPlans: in.MaxPreviousPlans, Patterns: in.ReuseSuccessfulPatterns},
		Directory: p.History.Directory, Complete: p.Verification.OnOpenPoints == "complete",
	}
}

// asking is how runs ask people; nil where they ask nobody.
func asking(cfg *config.Config) *dialogue.Asking {
	g := cfg.Planning.Replanning.GoalUnderstanding
	if g.MaxClarificationRequests == 0 {
		return nil
	}
	a := &dialogue.Asking{Most: g.MaxClarificationRequests}
	if g.AutoAssumeOnNoResponse {
		a.Timeout = time.Duration(g.AutoAssumeTimeoutMinutes) * time.Minute
	}
	return a
}

// progress is how the progress of runs is shown by the settings.
func (s *system) progress() agent.Progress {
	c, n := s.cfg.Planning.ProgressComment, s.cfg.Planning.PrePlanning.Notification
	p := agent.Progress{MaxHistory: c.MaxHistoryEntries, Watch: s.env.Watch,
		Notify: progress.Notify{Start: n.OnStart, Understanding: n.OnUnderstandingComplete, Collection: n.OnCollectionComplete, Assumption: n.OnAssumption}}
	if c.Enabled {
		p.Interval = time.Duration(c.IntervalSeconds) * time.Second
	}
	return p
}
