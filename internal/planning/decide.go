package planning

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
)

// planned takes the plan, or the one that replaces what is left of it.
func (co *Coordinator) planned(c contextstore.ToolCall) error {
	s := &co.s
	p, err := readPlan(c, s.Tried > 0)
	if err == nil {
		err = p.Check(co.settings.MaxSubtasks)
	}
	co.settings.Pre.settle(&p.Goal)
	if err != nil {
		if g := p.Goal; co.plan == nil && strings.TrimSpace(g.MainObjective+strings.Join(g.SuccessCriteria, "")) != "" {
			s.Goal = &g
		}
		return err
	}
	if co.plan != nil {
		was := co.plan.Goal // of which holds what the new one does not say
		p.Goal.MainObjective = cmp.Or(strings.TrimSpace(p.Goal.MainObjective), was.MainObjective)
		if len(p.Goal.SuccessCriteria) == 0 {
			p.Goal.SuccessCriteria = was.SuccessCriteria
		}
		if p, err = co.plan.Replace(p, co.done(), 0); err != nil {
			return err
		}
	}
	if co.resume(); co.plan == nil && co.uncertain(p.Goal) {
		s.Counts.Clarifications++
		co.inquires(inquiry{About: aboutPlan}, p.Goal.Questions)
		return nil
	}
	co.adopt(p)
	return nil
}

// adopt makes a plan of the model the one in force.
func (co *Coordinator) adopt(p Plan) {
	s := &co.s
	s.Current, s.Fresh, s.Missed, s.Without, s.Shown, s.Given, s.Goal = "", true, nil, "", s.Answer, s.Answer, nil
	if co.plan == nil {
		done := co.settings.Earlier.take(&p)
		co.enter(Entry{Plan: &p})
		for _, r := range done {
			co.ends(r)
		}
	} else {
		co.alter(s.For, p, nil)
	}
	for _, a := range p.Goal.Assumptions {
		co.enter(Entry{Assumption: &a})
	}
	co.hold(p)
	co.forget()
	co.log.Info("Plan: "+firstLine(p.Goal.MainObjective), "subtasks", len(co.order))
	if co.settings.Pre.uncertain(&p.Goal) {
		co.log.Warn("The task is not surely understood", "confidence", *p.Goal.Confidence, "threshold", co.settings.Pre.Sure)
	}
}

// forget drops the results of subtasks that are to be done anew, and of those
// that the plan no longer has.
func (co *Coordinator) forget() {
	for id, r := range co.s.Results {
		if _, there := co.plan.Subtask(id); !there || r.Status != Done && r.Status != Skipped {
			delete(co.s.Results, id)
		}
	}
}

// reflected takes a reflection, and does what it says of the plan.
func (co *Coordinator) reflected(c contextstore.ToolCall) error {
	s := &co.s
	r, err := read[Reflection](c, true)
	r.Phase = PhaseReflection
	if err == nil && strings.TrimSpace(r.Judged.Evaluation) == "" && r.Revision == nil {
		err = refusal("reflection.evaluation is missing")
	}
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"success", "failure", "partial"}, r.Judged.Status) {
		r.Judged.Status = "partial"
	}
	if s.Asked == askReflect {
		co.resume()
	}
	s.Trouble, s.Since = 0, 0
	co.entries = append(co.entries, Entry{Reflection: &r}) // alone it decides nothing
	var next Plan
	if r.Revision != nil {
		if next, err = co.plan.Apply(*r.Revision, co.done(), co.settings.MaxSubtasks); err == nil && len(co.plan.changes(&next, nil)) == 0 {
			return nil // costs nothing
		}
	}
	why := firstLine(r.Judged.Evaluation)
	switch { // what has to be decided first goes before it
	case !r.Judged.Revise || s.Want == askReplan || s.Asked != askSubtask:
	case s.Revisions >= co.settings.MaxRevisions && co.mayAsk():
		s.Counts.Clarifications++
		co.inquires(inquiry{About: aboutRevised, At: s.Current, Why: why, Question: Question{Confirm: true}}, []string{moreRevisions(s.Revisions, why)})
	case s.Revisions >= co.settings.MaxRevisions:
		if co.settings.Replan.MaxTotal > 0 {
			s.wants(askReplan, co.prompts.word("the revisions of the plan are spent, and it needs another one: ", "計画の修正の上限に達しましたが、さらに修正が必要です: ")+why)
		}
	case r.Revision == nil:
		s.wants(askRevise, why)
	case err != nil:
		s.wants(askRevise, firstLine(err.Error()))
	default:
		co.revise(*r.Revision, next)
	}
	return nil
}

// revised takes the revision that was asked for; some give a whole plan.
func (co *Coordinator) revised(c contextstore.ToolCall) error {
	s := &co.s
	var p Plan
	var r Reflection
	var err error
	if c.Name == ToolPlan {
		r.Revision = &PlanRevision{Reason: s.For}
		if p, err = readPlan(c, s.Tried > 0); err == nil {
			p, err = co.plan.Replace(p, co.done(), co.settings.MaxSubtasks)
		}
	} else if r, err = read[Reflection](c, true); err == nil && r.Revision == nil {
		err = refusal("plan_revision is missing")
	} else if err == nil {
		p, err = co.plan.Apply(*r.Revision, co.done(), co.settings.MaxSubtasks)
	}
	if err == nil {
		co.resume()
		co.revise(*r.Revision, p)
	}
	return err
}

// revise makes a revised plan the one in force. One that changes nothing is none,
// but where what failed is to be done again.
func (co *Coordinator) revise(rev PlanRevision, p Plan) {
	s := &co.s
	if !s.Replanned {
		if len(co.plan.changes(&p, nil)) == 0 {
			co.enter()
			return
		}
		s.Revisions++
	}
	s.Replanned = false
	co.alter(rev.Reason, p, rev.Changes)
	co.forget()
	if _, there := p.Subtask(s.Current); s.Current != "" && (!there || co.blockedBy(s.Current) != "") {
		s.Current = "" // something else comes first, or in its place
		if s.Asked == askSubtask {
			s.Asked = ""
		}
	}
	co.log.Info("The plan is revised: "+firstLine(rev.Reason), "revision", s.Revisions, "left", co.left())
}

// alter makes another plan the one in force, and records how it differs; said is
// what the model said of that.
func (co *Coordinator) alter(reason string, p Plan, said []Change) {
	co.enter(Entry{Revision: &Revision{Reason: reason, Changes: co.plan.changes(&p, said), Plan: &p}})
	co.hold(p)
}

// decided takes the model's word on what went wrong, and does what the rules
// make of it.
func (co *Coordinator) decided(c contextstore.ToolCall) error {
	d, err := read[ReplanDecision](c, co.s.Tried > 0)
	if err == nil && d.Decision.Type == "" {
		err = refusal("replan_decision.replan_type is missing")
	}
	if err != nil {
		return err
	}
	co.resume()
	co.carryOut(d, cmp.Or(co.s.Where, co.s.Current), co.limits())
	return nil
}

// carryOut decides about a wish that came up at a subtask by limits, and does what
// comes of it.
func (co *Coordinator) carryOut(d ReplanDecision, at string, limits ReplanLimits) {
	s, r := &co.s, d.Decision
	v := Decide(d, at, s.Counts, limits)
	s.Counts, s.Tried, s.Where = v.Counts, 0, ""
	co.enter(Entry{Replan: &v})
	told := co.log.Info
	if v.Doubtful() {
		told = co.log.Warn
	}
	told("Replan decision: "+v.Do, "level", v.Level, "confidence", r.Confidence, "wanted", r.Type, "override", v.Override)
	want, why := askSubtask, r.why()
	switch v.Do {
	case DoRetry:
		why = co.prompts.word("Do it once more as it was planned. ", "計画どおりもう一度行います。") + why
	case DoRegenerate:
		why = co.prompts.word("Use other actions than before. ", "これまでとは別のアクションを使います。") + why
	case DoAssume:
		why = co.prompts.word("No more questions can be asked. Go on with these assumptions, and state them: ", "これ以上は質問できません。次の仮定を明示して続けます: ") + strings.Join(r.Assume, "; ")
	case DoPartial, DoRevise:
		want, s.Replanned = askRevise, true
	case DoRedecompose, DoRestart:
		want = askPlan
		for _, a := range r.Additional[:min(len(r.Additional), maxEntries)] {
			why += strings.TrimSuffix("; "+line(cmp.Or(a.Purpose, a.ExpectedOutcome)), "; ")
		}
	case DoAsk:
		co.asksFor(v, at)
		return
	case DoStop:
		s.Stuck = v.Override
		return
	default:
		return
	}
	if want != askPlan {
		co.amend(v.Do, r, at)
	}
	if want == askSubtask {
		s.Current = at
	}
	if s.wants(want, line(why)); want != askSubtask || s.Asked != askSubtask {
		s.Asked = ""
	}
}

// amend does what a decision says of the plan itself: what it concerns and did not
// end well is open again, and additional actions join. Where the model is asked for the rest of the plan it sees them.
func (co *Coordinator) amend(do string, r Replan, at string) {
	concerned := append(slices.Clone(r.Affected), at)
	if do != DoPartial && do != DoRevise {
		maps.DeleteFunc(co.s.Results, func(id string, end SubtaskRecord) bool {
			return slices.Contains(concerned, id) && end.Status != Done && end.Status != Skipped
		})
	}
	if next := co.plan.Extend(r.Additional, co.done(), co.room(), ""); len(co.plan.changes(&next, nil)) > 0 {
		co.alter(line(r.Reasoning), next, nil)
	}
}

// room is how many further subtasks the plan may have.
func (co *Coordinator) room() int {
	if co.settings.MaxSubtasks == 0 {
		return maxChanges
	}
	return max(co.settings.MaxSubtasks-len(co.order), 0)
}
