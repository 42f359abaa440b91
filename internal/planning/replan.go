package planning

import (
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
)

// What a model may wish where something went wrong, and what can be done about it: by
// levels from 1 to 5; the others have none.
const (
	DoRetry       = "retry"                // 1: the same once more
	DoPartial     = "partial_replan"       // 2: the rest anew, from what failed on
	DoRevise      = "plan_revision"        // 2: the rest changed as a reflection has it
	DoRegenerate  = "action_regeneration"  // 3: the actions of the open subtasks anew
	DoRedecompose = "task_redecomposition" // 4: the open part cut anew
	DoRestart     = "goal_revision"        // 5: from the understanding of the goal on

	TypeFullReplan    = "full_replan"           // only a wish: DoRestart
	TypeClarification = "clarification_request" // DoAsk
	TypeNone          = "none"                  // DoNothing

	DoAsk     = "ask"     // people, and wait
	DoAssume  = "assume"  // there are no questions left to ask: go on with stated assumptions
	DoNothing = "nothing" // go on, without what failed
	DoStop    = "stop"    // no limit is left: the run ends, and not as a success
)

// Doing is what is done about a wish, or the type of one, as a record says it to
// people; one that there is not as it is.
func Doing(what string) string {
	if key := "do_" + what; i18n.Named(key) {
		return i18n.Recorded(key)
	}
	return what
}

// ReplanLimits bound replanning: the section planning.replanning. A limit
// of 0 forbids what it limits.
type ReplanLimits struct {
	MaxClarifications   int     // goal_understanding.max_clarification_requests
	MaxRedecompositions int     // task_decomposition.max_redecomposition_attempts
	MaxRegenerations    int     // action_sequence.max_regeneration_attempts
	MaxActionRetries    int     // execution.max_action_retries, of each action until it is done
	MaxPartialReplans   int     // execution.max_partial_replans
	MaxPlanRevisions    int     // reflection.max_plan_revisions
	MaxTotal            int     // global.max_total_replans: of everything that changes the course, retries included
	DetectLoops         bool    // global.infinite_loop_detection
	SameTrigger         int     // global.same_trigger_max_count: of one wish without progress
	MinConfidence       float64 // llm_decision.min_confidence_threshold
	ConfirmLow          bool    // llm_decision.require_user_confirmation_on_low_confidence
	ConfirmFrom         float64 // llm_decision.user_confirmation_threshold
}

// sure is the confidence from which on a wish is followed without a word.
const sure = 0.8

// Counts are what of ReplanLimits was used in a run. They are persisted with
// each decision and never cleared as a whole: a restart from the goal gives no
// limit back. Its size is bounded by ReplanLimits.MaxTotal.
type Counts struct {
	Total            int            `json:"total"`
	Clarifications   int            `json:"clarifications"`
	Retries          map[string]int `json:"retries,omitempty"` // by action, of those not done since
	Partials         int            `json:"partial_replans"`
	Revisions        int            `json:"plan_revisions"`
	Regenerations    int            `json:"regenerations"`
	Redecompositions int            `json:"redecompositions"`
	Restarts         int            `json:"restarts"`
	Triggers         map[string]int `json:"triggers,omitempty"` // by target phase and type, since the latest progress
}

// Done is the counts after an action was done: progress, so that its retries
// and the triggers so far are forgotten. What was used of the other limits stays
// used.
func (c Counts) Done(action string) Counts {
	c = c.clone()
	clear(c.Triggers)
	delete(c.Retries, action)
	return c
}

func (c Counts) clone() Counts {
	c.Retries, c.Triggers = maps.Collect(maps.All(c.Retries)), maps.Collect(maps.All(c.Triggers))
	return c
}

// Confirmed is the wish as it is decided after a person said yes to it.
func (r Replan) Confirmed() Replan {
	r.Confidence, r.Clarify = 1, false
	return r
}

// why is what is told to the model with what is done about its wish.
func (r Replan) why() string {
	all := append([]string{r.Reasoning}, r.Recommended...)
	if r.Strategy != "" {
		all = append(all, r.Strategy)
	}
	return strings.Join(all, "; ")
}

// step is a way to plan anew.
type step struct {
	do    string
	level int
	spent string                                      // the override where its limit is used up
	limit func(c *Counts, l ReplanLimits) (*int, int) // how often it was taken, and how often it may be
}

// steps are the ways to plan anew from the least to the most; one whose limit is
// spent gives way to the next higher level. A retry is counted by its action; only
// the total bounds a restart.
var steps = []step{
	{DoRetry, 1, "action_retries_spent", nil},
	{DoPartial, 2, "partial_replans_spent", func(c *Counts, l ReplanLimits) (*int, int) { return &c.Partials, l.MaxPartialReplans }},
	{DoRevise, 2, overRevisions, func(c *Counts, l ReplanLimits) (*int, int) { return &c.Revisions, l.MaxPlanRevisions }},
	{DoRegenerate, 3, "regenerations_spent", func(c *Counts, l ReplanLimits) (*int, int) { return &c.Regenerations, l.MaxRegenerations }},
	{DoRedecompose, 4, "redecompositions_spent", func(c *Counts, l ReplanLimits) (*int, int) { return &c.Redecompositions, l.MaxRedecompositions }},
	{DoRestart, 5, "total_spent", func(c *Counts, l ReplanLimits) (*int, int) { return &c.Restarts, l.MaxTotal }},
}

// The overrides that a question to people says.
const (
	overConfirm   = "needs_confirmation"
	overRevisions = "plan_revisions_spent"
)

// Decide says what is done about a wish to plan anew that came up at an action
// (a subtask's id). It is pure: the counts that hold from then on are in the
// record. Whatever the model answers, at most MaxTotal decisions change the
// course and at most MaxClarifications ask; after that it is nothing or stop.
//
// A wish that the model is sure of from 0.8 on is followed, from MinConfidence
// on with a warning; from ConfirmFrom on people are asked, below that nothing is
// done. A wish to ask people is followed however unsure the model is. A spent limit leads to the next higher level. The same wish (target
// phase and type) more often than SameTrigger without progress is a loop: each
// time more, it is met one level higher; retries count as a loop only beyond
// their own limit.
func Decide(d ReplanDecision, action string, used Counts, l ReplanLimits) ReplanRecord {
	r := d.Decision
	v := ReplanRecord{Phase: PhaseExecution, Decision: d, Confidence: confidence(r), Counts: used.clone(), Do: DoNothing}
	wish, known := wished(r)
	doubtful := v.Confidence < l.MinConfidence
	asks := r.Type == TypeClarification || r.Clarify && len(r.Questions) > 0
	switch {
	case !r.Needed:
	case !known:
		v.over("unknown_type")
	case doubtful && r.Type != TypeClarification && (v.Confidence < l.ConfirmFrom || !l.ConfirmLow):
		v.over("low_confidence")
	case r.Type == TypeClarification && len(r.Questions) == 0:
		v.over("no_question")
	case asks && v.ask(l):
		if r.Type != TypeClarification {
			v.over("questions_first")
		}
	case r.Type == TypeClarification && v.Counts.Total >= l.MaxTotal:
		v.over("total_spent")
		v.Do = DoStop
	case r.Type == TypeClarification:
		v.Counts.Total++ // or a model could ask for ever
		v.Do = DoAssume
	case doubtful:
		v.over(overConfirm)
		v.ask(l) // else the model does not know, and nobody can be asked
	default:
		v.climb(wish, action, l)
	}
	v.Executed = v.Do != DoNothing && v.Do != DoStop
	return v
}

func (r *ReplanRecord) over(why string) {
	if !strings.HasSuffix(r.Override, why) {
		r.Override = strings.TrimPrefix(r.Override+", "+why, ", ")
	}
}

// confidence is how sure the model says it is, from 0 to 1; models that answer
// in percent are understood, what is no confidence is none.
func confidence(r Replan) float64 {
	c := r.Confidence
	if c > 1 {
		c /= 100
	}
	if c >= 0 && c <= 1 { // a number
		return c
	}
	return 0
}

// ask uses up a question to people; false where none is left.
func (r *ReplanRecord) ask(l ReplanLimits) bool {
	if r.Counts.Clarifications >= l.MaxClarifications {
		r.over("clarifications_spent")
		return false
	}
	r.Counts.Clarifications++
	r.Do = DoAsk
	return true
}

// climb takes the first step from the wish on that its limit allows. A plan that
// was revised as often as it may be is for a person to look at.
func (r *ReplanRecord) climb(wish string, action string, l ReplanLimits) {
	c := &r.Counts
	if wish == DoRevise && c.Revisions >= l.MaxPlanRevisions && c.Clarifications < l.MaxClarifications {
		r.over(overRevisions)
		r.ask(l)
		return
	}
	at := slices.IndexFunc(steps, func(s step) bool { return s.do == wish })
	up := func(why string) { // to the next level
		r.over(why)
		for level := steps[at].level; at < len(steps) && steps[at].level == level; at++ {
		}
	}
	if wish == DoRetry && r.Decision.Decision.Classification == "fatal" {
		up("fatal_error")
	}
	for n := r.loops(wish, l); n > 0 && at < len(steps); n-- {
		up("loop")
	}
	spent := func(s step) bool {
		if s.do == DoRetry {
			return c.Retries[action] >= l.MaxActionRetries
		}
		used, most := s.limit(c, l)
		return *used >= most
	}
	for at < len(steps) && spent(steps[at]) {
		up(steps[at].spent)
	}
	if at < len(steps) && c.Total >= l.MaxTotal {
		r.over("total_spent")
		at = len(steps)
	}
	if at == len(steps) {
		r.Do = DoStop
		return
	}
	r.Do, r.Level = steps[at].do, steps[at].level
	if c.Total++; r.Do == DoRetry {
		c.Retries[action]++
		return
	}
	used, _ := steps[at].limit(c, l)
	*used++
}

// loops counts the wish and returns how often it came too often.
func (r *ReplanRecord) loops(wish string, l ReplanLimits) int {
	t, most := trigger(r.Decision.Decision), l.SameTrigger
	r.Counts.Triggers[t]++
	if !l.DetectLoops {
		return 0
	}
	if wish == DoRetry {
		most = max(most, l.MaxActionRetries)
	}
	return max(r.Counts.Triggers[t]-most, 0)
}

// wished is the step that a type asks for, or the level where the type is none
// that there is. Where both are given the type counts, since it says more.
func wished(r Replan) (do string, known bool) {
	switch r.Type {
	case TypeClarification:
		return DoAsk, true
	case TypeFullReplan:
		return DoRestart, true
	case TypeNone:
		return DoNothing, false
	}
	i := slices.IndexFunc(steps, func(s step) bool { return s.do == r.Type })
	if i < 0 {
		i = slices.IndexFunc(steps, func(s step) bool { return s.level == r.Level })
	}
	if i < 0 {
		return DoNothing, false
	}
	return steps[i].do, true
}

// trigger is the name of a wish for loop detection: of the words that we know,
// so that a model cannot make up ever new ones.
func trigger(r Replan) string {
	target := r.Target
	if !slices.Contains([]string{"goal_understanding", "task_decomposition", "action_sequence", "execution", "reflection"}, target) {
		target = "other"
	}
	kind := r.Type
	if _, known := wished(Replan{Type: kind}); !known {
		kind = "other"
	}
	return target + ":" + kind
}
