package planning

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/turn"
)

// Heed takes a message of the run into what is known, once, in order: when it is
// on disk, and again with those behind the last decision when the run is taken up.
func (l *Lead) Heed(m contextstore.Message) error {
	s := &l.s
	if m.Role == llm.RoleAssistant {
		l.calls = map[string]contextstore.ToolCall{}
		for _, c := range m.ToolCalls {
			l.calls[string(c.ID)] = c
		}
	}
	if m.Seq <= s.Seq {
		return nil
	}
	s.Seq, s.Offset = m.Seq, m.Offset
	var err error
	switch {
	case m.Role == llm.RoleTool:
		l.acted(m)
	case m.Role == llm.RoleAssistant:
		s.Answer, s.Form = m.Seq, "" // it is asked for once
		err = l.answered(m)
	case m.Role == llm.RoleUser && m.Kind != "":
		l.asked(m.Kind)
	case m.Role == llm.RoleUser && s.Asked == "" && (s.Want == "" || s.Want == askVerify) && l.plan != nil:
		l.asked(askRemark)
	}
	if err == nil && m.Role == llm.RoleAssistant && s.Seq-s.Noted >= stride && l.wrong == nil {
		err = l.record(m) // where long nothing is decided, a resumed run would read it all again
	}
	l.show()
	return err
}

// stride is how many messages there are at most between two lines of the
// history that a resumed run can start from, and a few more.
const stride = 200

// asked notes what the model owes an answer to.
func (l *Lead) asked(kind string) {
	s := &l.s
	kind, id, _ := strings.Cut(kind, "/")
	switch kind {
	case askHandover:
		s.Put = &put{s.Asked, s.Under, s.Want, s.Form, s.Posed}
		s.Handover, s.Asked, s.Under, s.Want, s.Form, s.Posed = id, kind, "", "", "", s.Seq
		return
	case askOnward:
		if p := s.Put; p != nil {
			s.Asked, s.Under, s.Want, s.Form, s.Posed = p.Asked, p.Under, p.Want, p.Form, p.Posed
		}
		s.Handover, s.Put = "", nil
		return
	case askNudge: // it still owes what it owed
		if s.Loop.Stage == StageNone {
			s.Without = ""
		}
		s.Actions, s.Loop = 0, Found{}
		return
	case askState:
		s.Shown = s.Seq
		return
	case askReflect, askReplan, askRevise, askPlan:
		if s.Asked == askSubtask {
			s.Under = s.Asked
		}
		if kind == askReflect {
			s.Since = 0
		}
	case askSubtask:
		if s.Current != id {
			s.Current, s.Tried = id, 0
		}
		s.Under = ""
	case askRemark:
		// What is done about it is judged, too, however often that was done before.
		s.Rounds = min(s.Rounds, max(l.settings.MaxRounds-1, 0))
		s.Tried = 0
	}
	if l.wrong == nil {
		s.For = s.Why
	}
	s.Judged, s.Verified, s.Form, s.Posed = false, false, l.formed(kind), s.Seq
	s.Actions, s.Erred, s.Errors, s.Loop = 0, "", nil, Found{}
	if kind != askRemark {
		s.Told = "" // it was said with this
	}
	s.Asked, s.Want, s.Why, l.wrong = kind, "", "", nil
}

// acted counts what was done.
func (l *Lead) acted(m contextstore.Message) {
	s := &l.s
	s.Actions++
	if s.Asked == askSubtask || s.Under == askSubtask {
		s.Since++
	}
	if m.Failed {
		s.Erred = m.ToolName
		l.missed(m.ToolName)
		if s.Errors = append(s.Errors, line(m.Content)); len(s.Errors) > 3 {
			s.Errors = s.Errors[1:]
		}
	}
	f := s.Guard.Observe(s.Answer, m.ToolName, []byte(l.calls[string(m.ToolCallID)].Arguments), HashText(m.Content), m.Failed, l.settings.Guard)
	if f.Stage != StageNone {
		s.Loop = f
	}
}

// answered takes an answer of the model.
func (l *Lead) answered(m contextstore.Message) error {
	s := &l.s
	if s.Handover != "" {
		return l.handedOver(m)
	}
	final := turn.Final(m)
	if !final && len(m.ToolCalls) == 0 {
		return nil // empty or cut off: the loop asks on
	}
	if s.Under != "" {
		return l.interjected(m, final)
	}
	if !final {
		if s.Asked == askRevise {
			if _, err := Parse[PlanRevision](KindRevision, m.Content); err == nil {
				return l.revised(m) // beside the next calls
			}
		}
		return nil
	}
	switch s.Asked {
	case askPlan:
		return l.planned(m)
	case askRevise:
		return l.revised(m)
	case askReplan:
		s.Asked = ""
		return l.decided(m)
	case askSubtask:
		return l.worked(m)
	case askVerify:
		return l.judged(m)
	case askRemark:
		s.Asked, s.Said = "", cut(m.Content)
		if c, err := Parse[Completion](KindCompletion, m.Content); err == nil && c.words() != "" {
			s.Said = c.words()
		}
		return l.record(m)
	}
	return nil
}

// interjected takes an answer to what was asked in the middle of a subtask. One
// with calls goes on with the subtask at once; where it says nothing of what was
// asked, that is passed over.
func (l *Lead) interjected(m contextstore.Message, final bool) error {
	s := &l.s
	asked := s.Asked
	switch asked {
	case askRevise, askPlan:
		if _, err := Parse[PlanRevision](KindRevision, m.Content); !final && (asked == askPlan || err != nil) {
			return nil // it looks things up first
		}
		s.Under = ""
		if asked == askPlan {
			return l.planned(m)
		}
		return l.revised(m)
	}
	s.Asked, s.Under = s.Under, ""
	if final {
		if r, err := l.result(m.Content); err == nil {
			entries := []Entry{l.end(r)}
			if asked == askReflect {
				entries = append(entries, l.reflect(m)...)
			}
			return l.record(m, entries...)
		}
		s.Asked, s.Want = "", askSubtask // it stopped to think, and is told to go on
	}
	switch asked {
	case askReflect:
		if entries := l.reflect(m); entries != nil {
			return l.record(m, entries...)
		}
		if final {
			l.talked(m)
		}
	case askReplan:
		return l.decided(m)
	}
	return nil
}

// again asks once more for an answer that cannot be used; false where that was
// done already.
func (l *Lead) again(kind string, err error) bool {
	s := &l.s
	if s.Tried >= maxTries || !errors.As(err, &l.wrong) {
		l.wrong = nil
		s.Tried = 0
		return false
	}
	s.Tried++
	s.Asked, s.Want = "", kind
	return true
}

// planned takes the plan, or the one that replaces what is left of it.
func (l *Lead) planned(m contextstore.Message) error {
	s := &l.s
	p, err := Parse[Plan](KindPlan, m.Content)
	if err == nil {
		err = p.Check(Limits{MaxSubtasks: l.settings.MaxSubtasks})
	}
	l.settings.Pre.settle(&p.Goal)
	if err == nil && l.plan != nil {
		p.Goal.keep(l.plan.Goal)
		p, err = l.plan.Replace(p, l.done())
	}
	if err != nil && l.again(askPlan, err) {
		return nil
	}
	s.Asked, s.Tried = "", 0
	if err == nil && l.plan == nil && l.uncertain(p.Goal) {
		s.Counts.Clarifications++
		return l.record(m, l.inquires(inquiry{About: aboutPlan}, p.Goal.Questions))
	}
	switch {
	case err != nil && l.plan != nil:
		l.log.Warn("No usable plan came; the old one stays", "error", err)
		return l.record(m)
	case err != nil:
		l.log.Warn("The model gives no usable plan: the whole request is one subtask", "error", err)
		p = Single(l.request)
	}
	s.Current, s.Fresh, s.Missed, s.Without, s.Shown = "", true, nil, "", m.Seq
	entries := []Entry{{Plan: &p}}
	if l.plan == nil {
		for _, r := range l.settings.Past.take(&p) {
			s.Results[r.ID] = r
			entries = append(entries, Entry{Subtask: &SubtaskRecord{ID: r.ID, Status: r.Status, Summary: r.Summary}})
		}
	} else {
		entries = []Entry{l.altered(s.For, p, nil)}
	}
	for _, a := range p.Goal.Assumptions {
		entries = append(entries, Entry{Assumption: &a})
	}
	l.hold(p)
	l.forget()
	l.log.Info("Plan: "+firstLine(p.Goal.MainObjective), "subtasks", len(l.order))
	if l.settings.Pre.uncertain(&p.Goal) {
		l.log.Warn("The task is not surely understood", "confidence", *p.Goal.Confidence, "threshold", l.settings.Pre.Sure)
	}
	return l.record(m, entries...)
}

// keep takes over what a new understanding of the goal does not say.
func (g *Goal) keep(old Goal) {
	if strings.TrimSpace(g.MainObjective) == "" {
		g.MainObjective = old.MainObjective
	}
	if len(g.SuccessCriteria) == 0 {
		g.SuccessCriteria = old.SuccessCriteria
	}
}

// forget drops the results of subtasks that are to be done anew, and of those
// that the plan no longer has.
func (l *Lead) forget() {
	for id, r := range l.s.Results {
		if _, there := l.plan.Subtask(id); !there || r.Status != Done && r.Status != Skipped {
			delete(l.s.Results, id)
		}
	}
}

// reflect takes a reflection, and does what it says of the plan; nil where the
// answer holds none. What has to be decided first goes before it.
func (l *Lead) reflect(m contextstore.Message) []Entry {
	s := &l.s
	r, err := Parse[Reflection](KindReflection, m.Content)
	if err != nil {
		l.log.Debug("No reflection came", "error", err)
		return nil
	}
	entries := []Entry{{Reflection: &r}}
	switch {
	case !r.Judged.Revise || s.Want == askReplan:
	case s.Revisions >= l.settings.MaxRevisions+s.Granted:
		switch {
		case l.mayAsk():
			s.Counts.Clarifications++
			why := firstLine(r.Judged.Evaluation)
			entries = append(entries, l.inquires(inquiry{About: aboutRevised, At: s.Current, Why: why, Question: Question{Confirm: true}}, []string{moreRevisions(s.Revisions, why)}))
		case l.settings.Replan.MaxTotal > 0:
			s.Want, s.Why = askReplan, l.prompts.word("the revisions of the plan are spent, and it needs another one: ", "計画の修正の上限に達しましたが、さらに修正が必要です: ")+firstLine(r.Judged.Evaluation)
		}
	case r.Revision == nil:
		s.Want, s.Why = askRevise, firstLine(r.Judged.Evaluation)
	default:
		p, err := l.changed(*r.Revision)
		if err != nil {
			s.Want, s.Why = askRevise, firstLine(err.Error())
			break
		}
		entries = append(entries, l.revise(*r.Revision, p))
	}
	return entries
}

// changed is the plan after a revision.
func (l *Lead) changed(rev PlanRevision) (Plan, error) {
	p, err := l.plan.Apply(rev, l.done())
	if err == nil {
		err = p.Check(Limits{MaxSubtasks: l.settings.MaxSubtasks})
	}
	var wrong *ContractError
	if errors.As(err, &wrong) {
		wrong.Kind = KindRevision // whose form is to be kept where it is asked for again
	}
	return p, err
}

// revised takes the revision that was asked for; some answer with a whole plan.
func (l *Lead) revised(m contextstore.Message) error {
	s := &l.s
	rev, err := Parse[PlanRevision](KindRevision, m.Content)
	var p Plan
	if err == nil {
		p, err = l.changed(rev)
	} else if whole, perr := Parse[Plan](KindPlan, m.Content); perr == nil {
		rev = PlanRevision{Reason: s.For}
		if p, err = l.plan.Replace(whole, l.done()); err == nil {
			err = p.Check(Limits{MaxSubtasks: l.settings.MaxSubtasks})
		}
	}
	if err != nil && s.Current != "" {
		if r, rerr := l.result(m.Content); rerr == nil {
			s.Replanned = false
			return l.record(m, l.end(r)) // it is done with it as the plan is
		}
	}
	if err != nil && l.again(askRevise, err) {
		return nil
	}
	s.Asked, s.Tried = "", 0
	if len(m.ToolCalls) > 0 {
		s.Want = askSubtask // once these calls have their results
	}
	if err != nil {
		s.Replanned = false
		l.log.Warn("No usable revision came; the plan stays as it is", "error", err)
		return l.record(m)
	}
	return l.record(m, l.revise(rev, p))
}

// revise makes a revised plan the one in force.
func (l *Lead) revise(rev PlanRevision, p Plan) Entry {
	s := &l.s
	if !s.Replanned {
		s.Revisions++
	}
	s.Replanned = false
	e := l.altered(rev.Reason, p, rev.Changes)
	l.forget()
	if _, there := p.Subtask(s.Current); s.Current != "" && (!there || l.blockedBy(s.Current) != "") {
		// Something else comes first, or in its place.
		s.Current = ""
		if s.Asked == askSubtask {
			s.Asked, s.Want, s.Why = "", askSubtask, ""
		}
	}
	l.log.Info("The plan is revised: "+firstLine(rev.Reason), "revision", s.Revisions, "left", l.left())
	return e
}

// altered makes another plan the one in force, and is the line of the history that
// says how it differs; said is what the model said of that.
func (l *Lead) altered(reason string, p Plan, said []Change) Entry {
	changes := l.plan.changes(&p, said)
	l.hold(p)
	return Entry{Revision: &Revision{Reason: reason, Changes: changes, Plan: &p}}
}

// decided takes the model's word on what went wrong, and does what the rules
// make of it.
func (l *Lead) decided(m contextstore.Message) error {
	s := &l.s
	d, err := Parse[ReplanDecision](KindReplan, m.Content)
	if err != nil {
		if s.Asked == "" && l.again(askReplan, err) {
			return nil
		}
		l.log.Warn("No decision about what went wrong came; the run goes on", "error", err)
		s.Where = ""
		return l.record(m)
	}
	at := s.Where
	if at == "" {
		at = s.Current
	}
	v := Decide(d.Decision, at, s.Counts, l.limits())
	return l.record(m, append([]Entry{{Replan: v.Record(PhaseExecution, d)}}, l.carryOut(v, d.Decision, at)...)...)
}

// carryOut does what was decided about what went wrong at a subtask.
func (l *Lead) carryOut(v Verdict, r Replan, at string) (entries []Entry) {
	s := &l.s
	s.Counts, s.Tried, s.Where = v.Counts, 0, ""
	told := l.log.Info
	if v.Warn {
		told = l.log.Warn
	}
	told("Replan decision: "+string(v.Do), "level", v.Level, "confidence", r.Confidence, "wanted", r.Type, "override", v.Override())
	why := r.why()
	want := ""
	switch v.Do {
	case DoRetry:
		want, s.Current = askSubtask, at
		why = l.prompts.word("Do it once more as it was planned. ", "計画どおりもう一度行います。") + why
	case DoRegenerate:
		want, s.Current = askSubtask, at
		why = l.prompts.word("Use other actions than before; those that the plan thought of are dropped. ", "これまでとは別のアクションを使います。計画にあったものは取り下げました。") + why
	case DoPartial, DoRevise:
		want, s.Replanned = askRevise, true
	case DoRedecompose, DoRestart:
		want, why = askPlan, strings.Join(append([]string{why}, purposesOf(r.Additional)...), "; ")
	case DoAsk:
		return []Entry{l.asksFor(v, r, at)}
	case DoAssume:
		want, s.Current = askSubtask, at
		why = l.prompts.word("No more questions can be asked. Go on with these assumptions, and state them: ", "これ以上は質問できません。次の仮定を明示して続けます: ") + strings.Join(r.Assume, "; ")
	case DoStop:
		s.Stuck = v.Overrides
	}
	entries = l.amend(v.Do, r, at)
	why = line(why)
	if want != "" {
		s.Want, s.Why = want, why
		if want != askSubtask || s.Asked != askSubtask {
			s.Asked = ""
		}
	}
	return entries
}

// amend does what a decision says of the plan itself: what it concerns and did not
// end well is open again, its actions give way where others are to be used, and
// additional ones join. Where the model is asked for the rest of the plan it sees them.
func (l *Lead) amend(do Do, r Replan, at string) []Entry {
	next := l.plan.clone()
	concerned := append(slices.Clone(r.Affected), at)
	switch do {
	case DoRetry, DoRegenerate, DoAssume:
		maps.DeleteFunc(l.s.Results, func(id string, end SubtaskResult) bool {
			return slices.Contains(concerned, id) && end.Status != Done && end.Status != Skipped
		})
		if do == DoRegenerate {
			done := l.done()
			next.Actions.Actions = slices.DeleteFunc(next.Actions.Actions, func(a Action) bool { return slices.Contains(concerned, a.TaskID) && !done[a.TaskID] })
		}
	case DoPartial, DoRevise:
	default:
		return nil
	}
	next = next.Extend(l.fitting(r.Additional), l.done())
	if len(l.plan.changes(&next, nil)) == 0 {
		return nil
	}
	return []Entry{l.altered(line(r.Reasoning), next, nil)}
}

// room is how many further subtasks the plan may have.
func (l *Lead) room() int {
	if l.settings.MaxSubtasks == 0 {
		return maxChanges
	}
	return max(l.settings.MaxSubtasks-len(l.order), 0)
}

// fitting are the first actions that a plan has room for: those of subtasks that it
// has, and of as many new ones as it may have.
func (l *Lead) fitting(all []Action) (some []Action) {
	room, fresh := l.room(), map[string]bool{}
	for _, a := range all[:min(len(all), maxEntries)] {
		if _, known := l.plan.Subtask(a.TaskID); (!known || l.done()[a.TaskID]) && (a.TaskID == "" || !fresh[a.TaskID]) {
			if room--; room < 0 {
				break
			}
			fresh[a.TaskID] = true
		}
		some = append(some, a)
	}
	return some
}

// record writes what follows from an answer, and what is known now.
func (l *Lead) record(m contextstore.Message, entries ...Entry) error {
	return l.note(m.Seq, entries...)
}

// note writes what follows from the messages up to one, and what is known now.
func (l *Lead) note(seq int64, entries ...Entry) error {
	if l.plan != nil && l.s.Asked == "" && (l.s.Want == "" || l.s.Want == askSubtask) {
		entries = append(entries, l.block()...)
	}
	l.s.Noted, l.s.Ends = seq, map[string]string{}
	for id, r := range l.s.Results {
		l.s.Ends[id] = r.Status
	}
	raw, err := json.Marshal(l.s)
	if err != nil {
		return err
	}
	entries = append(entries, Entry{Checkpoint: raw})
	for i := range entries {
		entries[i].Seq = seq
	}
	_, err = l.history.Append(entries...)
	return err
}
