package planning

import (
	"cmp"
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
		l.taking = taking{calls: map[string]contextstore.ToolCall{}, taken: map[string]bool{}}
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
		err = l.resulted(m)
	case m.Role == llm.RoleAssistant:
		if s.Answer = m.Seq; s.Handover != "" {
			s.HandedOver, s.Left, s.Put = true, cut(m.Content), nil // whatever calls come with it
			err = l.note(m.Seq)
		} else if turn.Final(m) {
			l.worded(m)
			l.settle()
			err = l.record()
		} // with calls it is taken by their results; one that is empty or cut off is asked on by the loop
	case m.Role == llm.RoleUser && m.Kind != "":
		l.asked(m.Kind)
	case m.Role == llm.RoleUser && s.Asked == "" && (s.Want == "" || s.Want == askVerify) && l.plan != nil:
		l.asked(askRemark)
	}
	l.show()
	return err
}

// stride is how many messages there are at most between two lines of the
// history that a resumed run can start from, and a few more: where long nothing
// is decided, it would read them all again.
const stride = 200

// resulted takes the result of a call that is on disk, with what the model is
// asked by the last of an answer.
func (l *Lead) resulted(m contextstore.Message) error {
	id := string(m.ToolCallID)
	if !l.taken[id] {
		l.take(&m)
	}
	delete(l.calls, id)
	if len(l.calls) > 0 {
		return nil
	}
	l.settle()
	if m.Kind != "" {
		l.asked(m.Kind)
	}
	return l.record()
}

// Complete fills in the results of planning's own calls, and says what the model
// is asked next with the last result of an answer.
func (l *Lead) Complete(results []contextstore.Message, whole bool) (kind, text string) {
	for i := range results {
		l.take(&results[i])
		l.taken[string(results[i].ToolCallID)] = true
	}
	if !whole {
		return "", ""
	}
	if l.settle(); l.s.Judged {
		return "", "" // what is done about it is for whoever asked
	}
	return l.next()
}

// take takes in the result of a call, which it fills in where it is one of
// planning's.
func (l *Lead) take(m *contextstore.Message) {
	if l.s.Handover != "" {
		return // no call counts any more
	}
	c, known := l.calls[string(m.ToolCallID)]
	if !known || !IsTool(c.Name) {
		own := *m
		own.Content = turn.Result(*m)
		l.acted(own, c.Arguments)
		return
	}
	if said := Comment(c); said != "" {
		l.log.Info("Planning: "+c.Name, "said", brief(said, maxIssue))
	}
	text, err := l.submitted(c)
	if m.Content, m.Failed = text, err != nil; err != nil {
		m.Content = err.Error()
		l.observe(*m, c.Arguments)
	}
}

// settle ends an answer whose results are all taken in. What was asked in the
// middle of a subtask and is not answered by now is passed over, but for a plan.
func (l *Lead) settle() {
	s := &l.s
	if l.whole {
		return
	}
	l.whole = true
	if l.did && (s.Asked == askSubtask || s.Under == askSubtask) {
		s.Since++
	}
	switch {
	case l.failed:
		s.Trouble++
	case l.did:
		s.Trouble = 0
	}
	if l.edits > 0 {
		s.Unmade = l.made == 0
	}
	if s.Under != "" && (s.Asked == askReflect || s.Asked == askReplan) {
		if s.Asked == askReplan {
			l.log.Warn("No decision about what went wrong came; the run goes on")
			s.Where = ""
		}
		s.Asked, s.Under = s.Under, ""
	}
	if l.plan != nil && s.Asked == "" && (s.Want == "" || s.Want == askSubtask) {
		if all := l.block(); len(all) > 0 {
			l.enter(all...)
		}
	}
}

// asked notes what the model owes an answer to.
func (l *Lead) asked(kind string) {
	s := &l.s
	kind, id, _ := strings.Cut(kind, "/")
	switch kind {
	case askHandover:
		s.Put = &put{s.Asked, s.Under, s.Want, s.Posed}
		s.Handover, s.Asked, s.Under, s.Want, s.Posed = id, kind, "", "", s.Seq
		return
	case askOnward:
		if p := s.Put; p != nil {
			s.Asked, s.Under, s.Want, s.Posed = p.Asked, p.Under, p.Want, p.Posed
		}
		s.Handover, s.Put = "", nil
		return
	case askNudge: // it still owes what it owed
		if s.Loop.Stage == StageNone {
			s.Without = ""
		}
		s.Loop, s.Told = Found{}, ""
		return
	case askState:
		s.Shown, s.Given = s.Seq, 0
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
			s.Current, s.Unmade, s.Objected = id, false, false
		}
		s.Under = ""
	case askVerify:
		s.Green = id == "green"
	case askRemark:
		// What is done about it is judged, too, however often that was done before.
		s.Rounds = min(s.Rounds, max(l.settings.MaxRounds-1, 0))
	}
	if s.Again != kind {
		s.For, s.Tried = s.Why, 0
	}
	s.Judged, s.Verified, s.Posed = false, false, s.Seq
	s.Erred, s.Errors, s.Loop = "", nil, Found{}
	if kind != askRemark {
		s.Told = "" // it was said with this
	}
	s.Asked, s.Want, s.Why, s.Again = kind, "", "", ""
}

// acted takes in what was done.
func (l *Lead) acted(m contextstore.Message, args string) {
	s := &l.s
	l.did, l.s.Well = true, m.ToolName == shellTool && !m.Failed
	switch command, looks := lookedBy(m.ToolName, args); {
	case m.Failed && looks && s.Looks == 0:
		s.Looks++ // that nothing is found is an answer
	case m.Failed:
		s.Erred, l.failed = m.ToolName, true
		l.missed(m.ToolName)
		if s.Errors = append(s.Errors, line(m.Content)); len(s.Errors) > 3 {
			s.Errors = s.Errors[1:]
		}
	default:
		s.Looks = 0
		if command != "" {
			if s.Ran = appendNew(s.Ran, brief(command, maxIssue)); len(s.Ran) > maxRan {
				s.Ran = slices.Delete(s.Ran, 0, 1)
			}
		}
	}
	if l.changes(m.ToolName) {
		if l.edits++; !m.Failed {
			l.made++
			s.Ran = nil
		}
	}
	l.observe(m, args)
}

// maxRan is how many commands are kept in mind that ended well.
const maxRan = 8

// changes reports whether a tool changes files, and not by a command.
func (l *Lead) changes(name string) bool {
	return name != shellTool && l.loop.Tools != nil && !l.loop.Tools.ReadOnly(name)
}

// observe looks whether the run goes round in circles.
func (l *Lead) observe(m contextstore.Message, args string) {
	f := l.s.Guard.Observe(l.s.Answer, m.ToolName, []byte(args), HashText(m.Content), m.Failed, l.settings.Guard)
	if f.Stage != StageNone {
		l.s.Loop = f
	}
}

const shellTool = "shell"

// lookedBy is the command of a call of the shell, and whether its last part looks
// for something or compares, so that an exit code of 1 is an answer.
func lookedBy(name, args string) (command string, looks bool) {
	var a struct{ Command string }
	if name != shellTool || json.Unmarshal([]byte(args), &a) != nil {
		return "", false
	}
	parts := strings.FieldsFunc(a.Command, func(r rune) bool { return strings.ContainsRune("|&;\n(", r) })
	if len(parts) == 0 {
		return a.Command, false
	}
	words := strings.Fields(parts[len(parts)-1])
	if len(words) > 1 && words[0] == "git" {
		words = words[1:]
	}
	return a.Command, len(words) > 0 && slices.Contains([]string{"grep", "egrep", "rg", "diff", "cmp", "test", "[", "ls", "find", "which", "command", "stat"}, words[0])
}

// worded takes an answer that calls nothing.
func (l *Lead) worded(m contextstore.Message) {
	s := &l.s
	asked := s.Asked
	switch {
	case asked == askPlan:
		_, _ = l.unplanned(nil)
	case asked == askRevise:
		_, _ = l.unrevised(nil)
	case asked == askReflect || asked == askReplan && s.Under != "": // it stopped to think, and is told to go on
		s.Asked, s.Under, s.Want, s.Where = "", "", askSubtask, ""
		l.talked(m)
	case asked == askReplan:
		_, _ = l.undecided(nil)
	case asked == askSubtask:
		l.finished(m)
	case asked == askVerify:
		_, _ = l.unjudged(nil)
	case asked == askRemark:
		s.Asked, s.Said = "", cut(m.Content)
		l.enter()
	}
	switch {
	case s.Tried > 0 && s.Asked == asked:
		s.Asked, s.Want, s.Again = "", asked, asked
	case s.Asked == askSubtask: // it is told to go on
		s.Asked, s.Want = "", askSubtask
	}
}

// talked takes in an answer without a call where work was to be done.
func (l *Lead) talked(m contextstore.Message) {
	if f := l.s.Guard.Said(m.Seq, HashText(m.Content), l.settings.Guard); f.Stage != StageNone {
		l.s.Loop = f
	}
}

// again reports whether the model may try once more what it was asked.
func (l *Lead) again() bool {
	if l.s.Tried >= maxTries {
		l.s.Tried = 0
		return false
	}
	l.s.Tried++
	return true
}

// submitted takes a call of planning's own tools and says what became of it. The
// error is for the model, too: what is wrong with the call, and what to do.
func (l *Lead) submitted(c contextstore.ToolCall) (text string, err error) {
	s := &l.s
	working := s.Asked == askSubtask || s.Under == askSubtask
	switch {
	case c.Name == ToolPlan && s.Asked == askPlan:
		p, err := readPlan(c, s.Tried > 0)
		return l.planned(p, err)
	case c.Name == ToolPlan && s.Asked == askRevise:
		whole, err := readPlan(c, s.Tried > 0)
		return l.revised(PlanRevision{Reason: s.For}, &whole, err)
	case c.Name == ToolReport:
		return l.reported(c)
	case c.Name == ToolReflect && (working || s.Asked == askRevise):
		return l.reflected(c)
	case c.Name == ToolReplan && s.Asked == askReplan:
		return l.decided(c)
	case c.Name == ToolVerify && s.Asked == askVerify:
		return l.judged(c)
	}
	return "", l.outOfTurn()
}

// outOfTurn tells the model what it owes instead.
func (l *Lead) outOfTurn() error {
	owed := toolOf[l.s.Asked]
	if owed == "" {
		return errors.New(l.prompts.word("Nothing of this is asked for now. Go on.", "今はこの回答を求めていません。先へ進んでください。"))
	}
	return errors.New(l.prompts.word("That is not asked for now. What is: ", "今はこの回答を求めていません。求めているもの: ") + owed)
}

// noted is what the model is told of a call that was taken.
func (l *Lead) noted() string { return l.prompts.word("Noted.", "記録しました。") }

// refused tells the model why a call was not taken.
func (l *Lead) refused(c string, err error) error {
	return errors.New(l.prompts.Retry(RetryAsk{Tool: c, Problems: err.Error()}))
}

// planned takes the plan, or the one that replaces what is left of it.
func (l *Lead) planned(p Plan, err error) (string, error) {
	s := &l.s
	if err == nil {
		err = p.Check(Limits{MaxSubtasks: l.settings.MaxSubtasks})
	}
	if err == nil {
		l.settings.Pre.settle(&p.Goal)
		if l.plan != nil {
			p.Goal.keep(l.plan.Goal)
			p, err = l.plan.Replace(p, l.done())
		}
	}
	if err != nil {
		return l.unplanned(err)
	}
	s.Asked, s.Under, s.Tried = "", "", 0
	if l.plan == nil && l.uncertain(p.Goal) {
		s.Counts.Clarifications++
		l.enter(l.inquires(inquiry{About: aboutPlan}, p.Goal.Questions))
		return l.noted(), nil
	}
	l.adopt(p)
	return l.noted(), nil
}

// unplanned is what is done where no plan comes: the model is asked once more, and
// then the run goes on with the old one, or with the request as one subtask. err
// is what is wrong with the plan that came, nil for none.
func (l *Lead) unplanned(err error) (string, error) {
	s := &l.s
	if l.again() {
		if err == nil {
			return "", nil
		}
		return "", l.refused(ToolPlan, err)
	}
	s.Asked, s.Under = "", ""
	if l.plan != nil {
		l.log.Warn("No usable plan came; the old one stays", "error", err)
		l.enter()
		return l.prompts.word("The plan cannot be used; the old one stays.", "この計画は使えません。以前の計画のまま進めます。"), nil
	}
	l.log.Warn("The model gives no usable plan: the whole request is one subtask", "error", err)
	l.adopt(Single())
	return l.prompts.word("The plan cannot be used: the whole task is one subtask.", "この計画は使えません。タスク全体を1つのサブタスクとします。"), nil
}

// adopt makes a plan of the model the one in force.
func (l *Lead) adopt(p Plan) {
	s := &l.s
	s.Current, s.Fresh, s.Missed, s.Without, s.Shown, s.Given = "", true, nil, "", s.Answer, s.Answer
	if l.plan == nil {
		done := l.settings.Past.take(&p)
		l.enter(Entry{Plan: &p})
		for _, r := range done {
			s.Results[r.ID] = r
			l.enter(Entry{Subtask: &SubtaskRecord{ID: r.ID, Status: r.Status, Summary: r.Summary}})
		}
	} else {
		l.enter(l.altered(s.For, p, nil))
	}
	for _, a := range p.Goal.Assumptions {
		l.enter(Entry{Assumption: &a})
	}
	l.hold(p)
	l.forget()
	l.log.Info("Plan: "+firstLine(p.Goal.MainObjective), "subtasks", len(l.order))
	if l.settings.Pre.uncertain(&p.Goal) {
		l.log.Warn("The task is not surely understood", "confidence", *p.Goal.Confidence, "threshold", l.settings.Pre.Sure)
	}
}

// keep takes over what a new understanding of the goal does not say.
func (g *Goal) keep(old Goal) {
	g.MainObjective = cmp.Or(strings.TrimSpace(g.MainObjective), old.MainObjective)
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

// reflected takes a reflection, and does what it says of the plan; or the revision
// that was asked for.
func (l *Lead) reflected(c contextstore.ToolCall) (string, error) {
	s := &l.s
	type given struct {
		Reflection
		Given  json.RawMessage `json:"reflection"`
		Needed bool            `json:"plan_revision_needed"` // beside the reflection
	}
	g, err := read[given](c, true)
	r := g.Reflection
	r.Phase = PhaseReflection
	if err == nil {
		_ = decodeLoosely(g.Given, &r.Judged)
		r.Judged.Revise = r.Judged.Revise || g.Needed
	}
	switch {
	case s.Asked == askRevise:
		if err == nil && r.Revision == nil {
			err = &ContractError{[]string{"plan_revision is missing"}}
		}
		if err != nil {
			return l.unrevised(err)
		}
		return l.revised(*r.Revision, nil, nil)
	case err == nil && strings.TrimSpace(r.Judged.Evaluation) == "" && r.Revision == nil:
		err = &ContractError{[]string{"reflection.evaluation is missing"}}
	}
	if err != nil {
		return "", l.refused(ToolReflect, err)
	}
	if !slices.Contains([]string{"success", "failure", "partial"}, r.Judged.Status) {
		r.Judged.Status = "partial"
	}
	if s.Asked == askReflect {
		s.Asked, s.Under = s.Under, ""
	}
	s.Trouble, s.Since = 0, 0
	l.enter(Entry{Reflection: &r})
	return l.reflect(r)
}

// reflect does what a reflection says of the plan. What has to be decided first
// goes before it.
func (l *Lead) reflect(r Reflection) (string, error) {
	s := &l.s
	var next Plan
	var err error
	if r.Revision != nil {
		if next, err = l.changed(*r.Revision); err == nil && len(l.plan.changes(&next, nil)) == 0 {
			return l.noted(), nil // costs nothing
		}
	}
	switch {
	case !r.Judged.Revise || s.Want == askReplan || s.Asked != askSubtask:
	case s.Revisions >= l.settings.MaxRevisions+s.Granted:
		switch why := firstLine(r.Judged.Evaluation); {
		case l.mayAsk():
			s.Counts.Clarifications++
			l.enter(l.inquires(inquiry{About: aboutRevised, At: s.Current, Why: why, Question: Question{Confirm: true}}, []string{moreRevisions(s.Revisions, why)}))
		case l.settings.Replan.MaxTotal > 0:
			s.Want, s.Why = askReplan, l.prompts.word("the revisions of the plan are spent, and it needs another one: ", "計画の修正の上限に達しましたが、さらに修正が必要です: ")+why
		}
	case r.Revision == nil:
		s.Want, s.Why = askRevise, firstLine(r.Judged.Evaluation)
	case err != nil:
		s.Want, s.Why = askRevise, firstLine(err.Error())
	default:
		l.revise(*r.Revision, next)
	}
	return l.noted(), nil
}

// changed is the plan after a revision.
func (l *Lead) changed(rev PlanRevision) (Plan, error) {
	p, err := l.plan.Apply(rev, l.done())
	if err == nil {
		err = p.Check(Limits{MaxSubtasks: l.settings.MaxSubtasks})
	}
	return p, err
}

// revised takes the revision that was asked for; some give a whole plan.
func (l *Lead) revised(rev PlanRevision, whole *Plan, err error) (string, error) {
	var p Plan
	switch {
	case err != nil:
	case whole == nil:
		p, err = l.changed(rev)
	default:
		if p, err = l.plan.Replace(*whole, l.done()); err == nil {
			err = p.Check(Limits{MaxSubtasks: l.settings.MaxSubtasks})
		}
	}
	if err != nil {
		return l.unrevised(err)
	}
	l.resume()
	l.revise(rev, p)
	return l.noted(), nil
}

// unrevised is what is done where no revision comes that can be used.
func (l *Lead) unrevised(err error) (string, error) {
	if l.again() {
		if err == nil {
			return "", nil
		}
		return "", l.refused(ToolReflect, err)
	}
	l.resume()
	l.s.Replanned = false
	l.log.Warn("No usable revision came; the plan stays as it is", "error", err)
	l.enter()
	return l.prompts.word("The plan stays as it is. Go on.", "計画はそのままです。先へ進んでください。"), nil
}

// resume goes back to the subtask at hand, where there is one.
func (l *Lead) resume() {
	l.s.Asked, l.s.Under, l.s.Tried = l.s.Under, "", 0
}

// revise makes a revised plan the one in force. One that changes nothing is none,
// but where what failed is to be done again.
func (l *Lead) revise(rev PlanRevision, p Plan) {
	s := &l.s
	if !s.Replanned {
		if len(l.plan.changes(&p, nil)) == 0 {
			l.enter()
			return
		}
		s.Revisions++
	}
	s.Replanned = false
	l.enter(l.altered(rev.Reason, p, rev.Changes))
	l.forget()
	if _, there := p.Subtask(s.Current); s.Current != "" && (!there || l.blockedBy(s.Current) != "") {
		s.Current = "" // something else comes first, or in its place
		if s.Asked == askSubtask {
			s.Asked = ""
		}
	}
	l.log.Info("The plan is revised: "+firstLine(rev.Reason), "revision", s.Revisions, "left", l.left())
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
func (l *Lead) decided(c contextstore.ToolCall) (string, error) {
	s := &l.s
	d, err := read[ReplanDecision](c, s.Tried > 0)
	if err == nil && d.Decision.Type == "" {
		err = &ContractError{[]string{"replan_decision.replan_type is missing"}}
	}
	if err != nil {
		return l.undecided(err)
	}
	s.Asked, s.Under = s.Under, ""
	at := cmp.Or(s.Where, s.Current)
	v := Decide(d.Decision, at, s.Counts, l.limits())
	l.enter(Entry{Replan: v.Record(PhaseExecution, d)})
	l.enter(l.carryOut(v, d.Decision, at)...)
	return l.noted(), nil
}

// undecided is what is done where no decision comes that can be read.
func (l *Lead) undecided(err error) (string, error) {
	s := &l.s
	if l.again() {
		if err == nil {
			return "", nil
		}
		return "", l.refused(ToolReplan, err)
	}
	l.log.Warn("No decision about what went wrong came; the run goes on", "error", err)
	s.Asked, s.Under, s.Where = s.Under, "", ""
	l.enter()
	return l.noted(), nil
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

// enter puts lines into the history once the answer is whole, and behind them one
// that says how far the run is.
func (l *Lead) enter(entries ...Entry) { l.entries, l.decides = append(l.entries, entries...), true }

// record writes what follows from an answer, where anything does or long nothing did.
func (l *Lead) record() error {
	if !l.decides && l.s.Seq-l.s.Noted < stride {
		return nil
	}
	entries := l.entries
	l.entries, l.decides = nil, false
	return l.note(l.s.Seq, entries...)
}

// note writes what follows from the messages up to one, and what is known now.
func (l *Lead) note(seq int64, entries ...Entry) error {
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
