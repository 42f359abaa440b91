package planning

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
)

// The Replan types that a model may name.
const (
	TypeRetry           = "retry"
	TypePartialReplan   = "partial_replan"
	TypePlanRevision    = "plan_revision"
	TypeRegeneration    = "action_regeneration"
	TypeRedecomposition = "task_redecomposition"
	TypeGoalRevision    = "goal_revision"
	TypeFullReplan      = "full_replan"
	TypeClarification   = "clarification_request"
	TypeNone            = "none"
)

// Do is what is done about a wish to plan anew.
type Do string

// What can be done, by levels from 1 to 5; the others have none.
const (
	DoRetry       Do = "retry"                // 1: the same once more
	DoPartial     Do = "partial_replan"       // 2: the rest anew, from what failed on
	DoRevise      Do = "plan_revision"        // 2: the rest changed as a reflection has it
	DoRegenerate  Do = "action_regeneration"  // 3: the actions of the open subtasks anew
	DoRedecompose Do = "task_redecomposition" // 4: the open part cut anew
	DoRestart     Do = "goal_revision"        // 5: from the understanding of the goal on
	DoAsk         Do = "ask"                  // people, and wait
	DoAssume      Do = "assume"               // there are no questions left to ask: go on with stated assumptions
	DoNothing     Do = "nothing"              // go on, without what failed
	DoStop        Do = "stop"                 // no limit is left: the run ends, and not as a success
)

// Doing is what is done about a wish, or the type of one, as a record says it to
// people; one that there is not as it is.
func Doing[T ~string](what T) string {
	if key := "do_" + string(what); i18n.Named(key) {
		return i18n.Recorded(key)
	}
	return string(what)
}

// Override is why something else is done than the model wished.
type Override string

// The overrides; each has a text for people, see Verdict.Why.
const (
	OverrideType           Override = "unknown_type"
	OverrideConfidence     Override = "low_confidence"
	OverrideConfirm        Override = "needs_confirmation"
	OverrideFatal          Override = "fatal_error"
	OverrideNoQuestion     Override = "no_question"
	OverrideClarifications Override = "clarifications_spent"
	OverrideClarifyFirst   Override = "questions_first"
	OverrideRetries        Override = "action_retries_spent"
	OverridePartials       Override = "partial_replans_spent"
	OverrideRevisions      Override = "plan_revisions_spent"
	OverrideRegenerations  Override = "regenerations_spent"
	OverrideRedecomposed   Override = "redecompositions_spent"
	OverrideLoop           Override = "loop"
	OverrideTotal          Override = "total_spent"
)

// ReplanLimits bound replanning: the section replanning (reference §6). A limit
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

// DefaultReplanLimits are those of the reference (§6).
func DefaultReplanLimits() ReplanLimits {
	return ReplanLimits{
		MaxClarifications:   2,
		MaxRedecompositions: 3, MaxRegenerations: 3, MaxActionRetries: 3, MaxPartialReplans: 2, MaxPlanRevisions: 2,
		MaxTotal: 10, DetectLoops: true, SameTrigger: 2,
		MinConfidence: 0.5, ConfirmLow: true, ConfirmFrom: 0.3,
	}
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
	c.Triggers = nil
	if delete(c.Retries, action); len(c.Retries) == 0 {
		c.Retries = nil // as it is read back
	}
	return c
}

func (c Counts) clone() Counts {
	c.Retries, c.Triggers = maps.Clone(c.Retries), maps.Clone(c.Triggers)
	return c
}

// Verdict is what follows from a wish to plan anew.
type Verdict struct {
	Do      Do
	Level   int  // 1 to 5, 0 where nothing is planned anew
	Warn    bool // the model was not sure: say so
	Confirm bool // of DoAsk: whether the wish shall be followed; a yes is decided as Confirmed
	Trigger string
	// Overrides are why Do is not the model's wish, in the order in which they
	// came about; none where it is.
	Overrides []Override
	Counts    Counts // with this verdict, to be persisted before it is carried out
}

// Executed reports whether anything is done.
func (v Verdict) Executed() bool { return v.Do != DoNothing && v.Do != DoStop }

// Override is the reasons in one word each, for records.
func (v Verdict) Override() string {
	words := make([]string, len(v.Overrides))
	for i, o := range v.Overrides {
		words[i] = string(o)
	}
	return strings.Join(words, ", ")
}

// Why is the reasons for people, "" where the model's wish is done.
func (v Verdict) Why(l i18n.Lang) string { return why(l, v.Overrides) }

func why(l i18n.Lang, all []Override) string {
	words := make([]string, len(all))
	for i, o := range all {
		words[i] = l.T("planning.override." + string(o))
	}
	return strings.Join(words, l.T("planning.override.join"))
}

// Record is the verdict as the history keeps it.
func (v Verdict) Record(phase string, d ReplanDecision) *ReplanRecord {
	return &ReplanRecord{Phase: phase, Decision: d, Confidence: confidence(d.Decision), Executed: v.Executed(), Override: v.Override(), Counts: v.Counts, Do: v.Do, Level: v.Level}
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

// purposesOf are what actions are for, in a line each.
func purposesOf(all []Action) (list []string) {
	for _, a := range all[:min(len(all), maxEntries)] {
		if s := cmp.Or(a.Purpose, a.ExpectedOutcome); strings.TrimSpace(s) != "" {
			list = append(list, line(s))
		}
	}
	return list
}

// step is one way to plan anew, with its limit.
type step struct {
	do    Do
	level int
	why   Override // why it is passed over where its limit is spent
	used  func(*Counts, string) int
	limit func(ReplanLimits) int
	use   func(*Counts, string)
}

// steps are the ways to plan anew from the least to the most; one whose limit
// is spent gives way to the next higher level. Only the total bounds a restart.
func steps() []step {
	return []step{
		{DoRetry, 1, OverrideRetries, func(c *Counts, a string) int { return c.Retries[a] }, func(l ReplanLimits) int { return l.MaxActionRetries }, func(c *Counts, a string) {
			if c.Retries == nil {
				c.Retries = map[string]int{}
			}
			c.Retries[a]++
		}},
		{DoPartial, 2, OverridePartials, func(c *Counts, _ string) int { return c.Partials }, func(l ReplanLimits) int { return l.MaxPartialReplans }, func(c *Counts, _ string) { c.Partials++ }},
		{DoRevise, 2, OverrideRevisions, func(c *Counts, _ string) int { return c.Revisions }, func(l ReplanLimits) int { return l.MaxPlanRevisions }, func(c *Counts, _ string) { c.Revisions++ }},
		{DoRegenerate, 3, OverrideRegenerations, func(c *Counts, _ string) int { return c.Regenerations }, func(l ReplanLimits) int { return l.MaxRegenerations }, func(c *Counts, _ string) { c.Regenerations++ }},
		{DoRedecompose, 4, OverrideRedecomposed, func(c *Counts, _ string) int { return c.Redecompositions }, func(l ReplanLimits) int { return l.MaxRedecompositions }, func(c *Counts, _ string) { c.Redecompositions++ }},
		{DoRestart, 5, OverrideTotal, func(c *Counts, _ string) int { return c.Total }, func(l ReplanLimits) int { return l.MaxTotal }, func(c *Counts, _ string) { c.Restarts++ }},
	}
}

// Decide says what is done about a wish to plan anew that came up at an action
// (a subtask's id). It is pure: the counts that hold from then on are in the
// verdict. Whatever the model answers, at most MaxTotal verdicts change the
// course and at most MaxClarifications ask; after that it is nothing or stop.
//
// A wish that the model is sure of from 0.8 on is followed, from MinConfidence
// on with a warning; from ConfirmFrom on people are asked, below that nothing is
// done. A spent limit leads to the next higher level. The same wish (target
// phase and type) more often than SameTrigger without progress is a loop: each
// time more, it is met one level higher; retries count as a loop only beyond
// their own limit. Source: reference §6.
func Decide(r Replan, action string, used Counts, l ReplanLimits) Verdict {
	v := Verdict{Counts: used.clone(), Do: DoNothing, Trigger: trigger(r)}
	if !r.Needed {
		return v
	}
	wish, known := wished(r)
	belief := v.trusted(r, l)
	switch {
	case !known:
		v.over(OverrideType)
		return v
	case belief == unsure:
		v.over(OverrideConfidence)
		return v
	case r.Type == TypeClarification || r.Clarify && len(r.Questions) > 0:
		if done := v.clarify(r, l); done {
			return v
		}
	}
	if belief == doubtful {
		v.over(OverrideConfirm)
		if v.Confirm = v.ask(l); !v.Confirm { // the model does not know, and nobody can be asked
			v.over(OverrideClarifications)
		}
		return v
	}
	v.climb(wish, action, r.Classification == "fatal", l)
	v.Overrides = slices.Compact(v.Overrides)
	return v
}

func (v *Verdict) over(o Override) { v.Overrides = append(v.Overrides, o) }

// How far a wish is trusted.
type trust int

const (
	unsure trust = iota
	doubtful
	trusted
)

func (v *Verdict) trusted(r Replan, l ReplanLimits) trust {
	switch c := confidence(r); {
	case c >= l.MinConfidence:
		v.Warn = c < sure
		return trusted
	case c >= l.ConfirmFrom && l.ConfirmLow:
		return doubtful
	}
	return unsure
}

// confidence is how sure the model says it is, from 0 to 1; models that answer
// in percent are understood, what is no confidence is none.
func confidence(r Replan) float64 {
	switch c := r.Confidence; {
	case math.IsNaN(c) || c < 0 || c > 100:
		return 0
	case c > 1:
		return c / 100
	default:
		return c
	}
}

// ask uses up a question to people; false where none is left.
func (v *Verdict) ask(l ReplanLimits) bool {
	if v.Counts.Clarifications >= l.MaxClarifications {
		return false
	}
	v.Counts.Clarifications++
	v.Do = DoAsk
	return true
}

// clarify decides about questions to people; false where the rest of the wish
// is still to be decided.
func (v *Verdict) clarify(r Replan, l ReplanLimits) (done bool) {
	only := r.Type == TypeClarification
	switch {
	case len(r.Questions) == 0: // of a clarification that asks nothing
		v.over(OverrideNoQuestion)
		return true
	case v.ask(l):
		if !only {
			v.over(OverrideClarifyFirst)
		}
		return true
	}
	v.over(OverrideClarifications)
	if !only {
		return false
	}
	if v.Counts.Total >= l.MaxTotal {
		v.over(OverrideTotal)
		v.Do = DoStop
		return true
	}
	v.Counts.Total++ // or a model could ask for ever
	v.Do = DoAssume
	return true
}

// climb does the first step from the wish on that its limit allows. A plan that
// was revised as often as it may be is for a person to look at.
func (v *Verdict) climb(wish Do, action string, fatal bool, l ReplanLimits) {
	all := steps()
	if wish == DoRevise && v.Counts.Revisions >= l.MaxPlanRevisions && v.ask(l) {
		v.over(OverrideRevisions)
		return
	}
	at := slices.IndexFunc(all, func(s step) bool { return s.do == wish })
	next := func(why Override) {
		v.over(why)
		from := all[at].level
		for at < len(all) && all[at].level == from {
			at++
		}
	}
	if all[at].do == DoRetry && fatal {
		next(OverrideFatal)
	}
	for range v.loops(wish, l) {
		if at < len(all) {
			next(OverrideLoop)
		}
	}
	for at < len(all) && all[at].used(&v.Counts, action) >= all[at].limit(l) {
		next(all[at].why)
	}
	if at < len(all) && v.Counts.Total >= l.MaxTotal {
		v.over(OverrideTotal)
		at = len(all)
	}
	if at == len(all) {
		v.Do, v.Level = DoStop, 0
		return
	}
	v.Do, v.Level = all[at].do, all[at].level
	all[at].use(&v.Counts, action)
	v.Counts.Total++
}

// loops counts the wish and returns how often it came too often.
func (v *Verdict) loops(wish Do, l ReplanLimits) int {
	if v.Counts.Triggers == nil {
		v.Counts.Triggers = map[string]int{}
	}
	v.Counts.Triggers[v.Trigger]++
	if !l.DetectLoops {
		return 0
	}
	most := l.SameTrigger
	if wish == DoRetry {
		most = max(most, l.MaxActionRetries)
	}
	return min(max(v.Counts.Triggers[v.Trigger]-most, 0), len(steps()))
}

// wished is the step that a type asks for, or the level where the type is none
// that there is. Where both are given the type counts, since it says more.
func wished(r Replan) (d Do, known bool) {
	switch r.Type {
	case TypeRetry:
		return DoRetry, true
	case TypePartialReplan:
		return DoPartial, true
	case TypePlanRevision:
		return DoRevise, true
	case TypeRegeneration:
		return DoRegenerate, true
	case TypeRedecomposition:
		return DoRedecompose, true
	case TypeGoalRevision, TypeFullReplan:
		return DoRestart, true
	case TypeClarification:
		return DoAsk, true
	case TypeNone:
		return DoNothing, false
	}
	for _, s := range steps() {
		if s.level == r.Level {
			return s.do, true
		}
	}
	return DoNothing, false
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
