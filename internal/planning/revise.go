package planning

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
)

// maxChanges is how many changes, or actions, one answer may bring to a plan:
// more than any plan has, and few enough to compare each with each.
const maxChanges = 1000

// tooMany refuses what brings more changes than that.
func tooMany(what string, n int) error {
	if n <= maxChanges {
		return nil
	}
	return &ContractError{[]string{fmt.Sprintf("%s: expected at most %d, found %d", what, maxChanges, n)}}
}

// Apply returns the plan as a revision changes it; p stays as it is. done are
// the subtasks that have their result: they stay, as they are. A revision that
// removes or changes one of them, leaves a circle or a dependency that nobody
// has, or no subtask at all, is refused with a *ContractError. So is one that
// names what is not there.
//
// The changes come first. An updated action plan then replaces the order of
// what is not done, and the actions of the subtasks for which it has any; what
// it does not mention stays. Its actions may bring subtasks that are new. A
// change that names no subtask is a remark and changes nothing: the plan
// "changes: […]" without more, as plan §3 shows it, is never emptied.
//
// How many subtasks the plan may have is left to Check.
func (p *Plan) Apply(rev PlanRevision, done map[string]bool) (Plan, error) {
	if err := tooMany("changes", len(rev.Changes)); err != nil {
		return Plan{}, err
	}
	if rev.Actions != nil {
		if err := tooMany("updated_action_plan", len(rev.Actions.Actions)+len(rev.Actions.ExecutionOrder)); err != nil {
			return Plan{}, err
		}
	}
	r := &revising{plan: p.clone(), done: done, taken: map[string]bool{}}
	r.plan.Actions.ExecutionOrder = p.Order()
	fresh := r.introduced(rev.Actions)
	for i, c := range rev.Changes {
		r.path = fmt.Sprintf("changes[%d]", i)
		switch c.Type {
		case "add":
			r.add(c, len(fresh) > 0)
		case "remove":
			r.remove(c)
		case "modify":
			r.modify(c)
		default:
			r.wrong("type", fmt.Sprintf("expected one of add, remove, modify, found %q", brief(c.Type, maxID)))
		}
	}
	if rev.Actions != nil {
		r.reorder(*rev.Actions, fresh)
	}
	if len(r.problems) == 0 {
		r.problems = r.plan.problems(Limits{})
	}
	if len(r.problems) > 0 {
		return Plan{}, &ContractError{r.problems}
	}
	r.plan.Actions.ExecutionOrder = r.plan.Order()
	return r.plan, nil
}

// revising is a plan that is being changed.
type revising struct {
	plan     Plan
	done     map[string]bool
	taken    map[string]bool // ids that the revision brings
	path     string          // of the change at hand
	problems []string
}

func (r *revising) wrong(field, problem string) {
	path := r.path
	if field != "" {
		path += "." + field
	}
	r.problems = append(r.problems, path+": "+problem)
}

// introduced returns the subtasks that the actions of an updated plan bring:
// ids that are not known, with a purpose that says what is to be done.
func (r *revising) introduced(updated *ActionPlan) []Subtask {
	if updated == nil {
		return nil
	}
	var fresh []Subtask
	for _, a := range updated.Actions {
		text := a.Purpose
		if text == "" {
			text = a.ExpectedOutcome
		}
		if a.TaskID == "" || text == "" || r.taken[a.TaskID] || r.plan.index(a.TaskID) >= 0 {
			continue
		}
		r.taken[a.TaskID] = true
		fresh = append(fresh, Subtask{ID: a.TaskID, Description: text, Dependencies: []string{}})
	}
	return fresh
}

// add adds the subtask of a change. Where the change only tells of it, and the
// actions bring subtasks, it is among these.
func (r *revising) add(c Change, told bool) {
	var s Subtask
	switch {
	case c.Subtask != nil:
		s = *c.Subtask
	case c.Details != "" && (c.ID != "" || !told):
		s.Description = c.Details
	case c.ID == "" && told:
		return
	}
	if s.ID == "" {
		s.ID = c.ID
	}
	if s.Description == "" {
		s.Description = c.Details
	}
	if s.ID == "" {
		s.ID = r.plan.freeID("", r.taken)
	}
	switch {
	case strings.TrimSpace(s.Description) == "":
		r.wrong("subtask.description", "must not be empty")
	case r.plan.index(s.ID) >= 0:
		r.wrong("subtask.id", fmt.Sprintf("%q is the id of another subtask already", s.ID))
	default:
		r.insert(s, c.After)
	}
}

// insert puts a subtask after another, or at the end.
func (r *revising) insert(s Subtask, after string) {
	list, order := &r.plan.Decomposition.Subtasks, &r.plan.Actions.ExecutionOrder
	if after == "" {
		*list, *order = append(*list, s), append(*order, s.ID)
		return
	}
	i := r.plan.index(after)
	if i < 0 {
		r.wrong("after", fmt.Sprintf("no subtask has the id %q", after))
		return
	}
	*order = slices.Insert(*order, slices.Index(*order, after)+1, s.ID)
	*list = slices.Insert(*list, i+1, s)
}

// open returns the subtask that a change is about, which must not be done.
func (r *revising) open(id, verb string) *Subtask {
	i := r.plan.index(id)
	switch {
	case id == "":
		r.wrong("task_id", fmt.Sprintf("say which subtask to %s", verb))
	case i < 0:
		r.wrong("task_id", fmt.Sprintf("no subtask has the id %q", id))
	case r.done[id]:
		r.wrong("task_id", fmt.Sprintf("%q is done and stays as it is; add a subtask for what is still to be changed", id))
	default:
		return &r.plan.Decomposition.Subtasks[i]
	}
	return nil
}

func (r *revising) remove(c Change) {
	id := c.about()
	if r.open(id, "remove") == nil {
		return
	}
	has := func(other string) bool { return other == id }
	r.plan.Decomposition.Subtasks = slices.DeleteFunc(r.plan.Decomposition.Subtasks, func(s Subtask) bool { return s.ID == id })
	r.plan.Actions.ExecutionOrder = slices.DeleteFunc(r.plan.Actions.ExecutionOrder, has)
	r.plan.Actions.Actions = slices.DeleteFunc(r.plan.Actions.Actions, func(a Action) bool { return a.TaskID == id })
}

// modify changes the fields of a subtask that are given. Words alone are added
// to what it says, or are a remark where they name no subtask.
func (r *revising) modify(c Change) {
	id := c.about()
	if id == "" && c.Subtask == nil {
		return
	}
	s := r.open(id, "modify")
	if s == nil {
		return
	}
	if c.Subtask == nil {
		if c.Details != "" {
			s.Description += "\n" + c.Details
		}
		return
	}
	if c.Subtask.ID != "" && c.Subtask.ID != id {
		r.wrong("subtask.id", fmt.Sprintf("the id of %q cannot change", id))
		return
	}
	if c.Subtask.Description != "" {
		s.Description = c.Subtask.Description
	}
	if c.Subtask.Complexity != "" {
		s.Complexity = c.Subtask.Complexity
	}
	if c.Subtask.Dependencies != nil {
		s.Dependencies = c.Subtask.Dependencies
	}
	if c.Subtask.RequiredTools != nil {
		s.RequiredTools = c.Subtask.RequiredTools
	}
}

// reorder follows an updated action plan. fresh are the subtasks that it brings
// and that no change has added.
func (r *revising) reorder(updated ActionPlan, fresh []Subtask) {
	r.path = "updated_action_plan"
	for _, s := range fresh {
		if r.plan.index(s.ID) < 0 {
			r.plan.Decomposition.Subtasks = append(r.plan.Decomposition.Subtasks, s)
		}
	}
	before := r.plan.Order()
	order := slices.DeleteFunc(slices.Clone(before), func(id string) bool { return !r.done[id] })
	for i, id := range updated.ExecutionOrder {
		switch {
		case r.plan.index(id) < 0:
			r.wrong(fmt.Sprintf("execution_order[%d]", i), fmt.Sprintf("no subtask has the id %q; add it in changes", id))
		case !slices.Contains(order, id):
			order = append(order, id)
		}
	}
	for _, id := range before {
		if !slices.Contains(order, id) {
			order = append(order, id)
		}
	}
	r.plan.Actions.ExecutionOrder = order
	r.replaceActions(updated.Actions)
}

// replaceActions takes the actions that a revision brings in the place of those
// that the plan has for the same subtasks.
func (r *revising) replaceActions(updated []Action) {
	brings := map[string]bool{}
	for i, a := range updated {
		switch {
		case a.TaskID == "" || r.done[a.TaskID]:
		case r.plan.index(a.TaskID) < 0:
			r.wrong(fmt.Sprintf("actions[%d].task_id", i), fmt.Sprintf("no subtask has the id %q; add it in changes", a.TaskID))
		default:
			brings[a.TaskID] = true
		}
	}
	next := slices.DeleteFunc(r.plan.Actions.Actions, func(a Action) bool { return brings[a.TaskID] })
	for _, a := range updated {
		if brings[a.TaskID] {
			next = append(next, a)
		}
	}
	r.plan.Actions.Actions = next
}

// changes are how next differs from p, whoever made it: subtasks that come, go or
// are others, then the order and the actions of those that stay. said is what the
// model said of it, whose details are kept where there is such a change.
func (p *Plan) changes(next *Plan, said []Change) []Change {
	all := []Change{}
	add := func(kind, id string, c Change) {
		for _, s := range said {
			if s.Type == kind && s.about() == id && c.Details == "" {
				c.Details = s.Details
			}
		}
		c.Type = kind
		all = append(all, c)
	}
	order := next.Order()
	stays := func(id string) bool { return p.index(id) >= 0 && next.index(id) >= 0 }
	for _, s := range p.Decomposition.Subtasks {
		if next.index(s.ID) < 0 {
			add("remove", s.ID, Change{ID: s.ID})
		}
	}
	for i, id := range order {
		s, _ := next.Subtask(id)
		was, known := p.Subtask(id)
		switch {
		case !known:
			c := Change{Subtask: &s}
			if i > 0 && i < len(order)-1 {
				c.After = order[i-1]
			}
			add("add", id, c)
		case !was.equal(s):
			add("modify", id, Change{ID: id, Subtask: &s})
		case !sameActions(p.ActionsOf(id), next.ActionsOf(id)):
			add("modify", id, Change{ID: id, Details: i18n.Recorded("actions")})
		}
	}
	if !slices.Equal(kept(p.Order(), stays), kept(order, stays)) {
		add("modify", "", Change{Details: i18n.Recorded("order", strings.Join(order, ", "))})
	}
	return all
}

func (s Subtask) equal(o Subtask) bool {
	return s.ID == o.ID && s.Description == o.Description && s.Complexity == o.Complexity && slices.Equal(s.Dependencies, o.Dependencies) && slices.Equal(s.RequiredTools, o.RequiredTools)
}

// sameActions compares actions as they are written: space in parameters does not
// make them others.
func sameActions(a, b []Action) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func kept(all []string, keep func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !keep(id) })
}

// about is the subtask that a change is about, "" for none.
func (c Change) about() string {
	if c.ID == "" && c.Subtask != nil {
		return c.Subtask.ID
	}
	return c.ID
}

// Replace returns next as the plan that goes on where p is given up: what is
// done of p stays, before all else. A subtask of next that says the same as one
// of p that is done, under the same id, is that one; one that says something
// else under an id of p gets an id of its own, so that its work is not taken for
// done. The outcome is checked as by Check, without limits.
func (p *Plan) Replace(next Plan, done map[string]bool) (Plan, error) {
	if err := tooMany("subtasks", len(next.Decomposition.Subtasks)); err != nil {
		return Plan{}, err
	}
	merged := next.clone()
	names := p.newNames(next)
	rename := func(id string) string {
		if name, ok := names[id]; ok {
			return name
		}
		return id
	}
	var subtasks []Subtask
	var actions []Action
	for _, s := range p.Decomposition.Subtasks {
		if done[s.ID] {
			subtasks = append(subtasks, s)
			actions = append(actions, p.ActionsOf(s.ID)...)
		}
	}
	for _, s := range next.Decomposition.Subtasks {
		if s.ID = rename(s.ID); done[s.ID] && p.index(s.ID) >= 0 {
			continue
		}
		s.Dependencies = slices.Clone(s.Dependencies)
		for i, id := range s.Dependencies {
			s.Dependencies[i] = rename(id)
		}
		subtasks = append(subtasks, s)
	}
	for _, a := range next.Actions.Actions {
		if a.TaskID = rename(a.TaskID); !done[a.TaskID] {
			actions = append(actions, a)
		}
	}
	order := slices.DeleteFunc(p.Order(), func(id string) bool { return !done[id] })
	for _, id := range next.Order() {
		order = append(order, rename(id))
	}
	merged.Decomposition.Subtasks, merged.Actions.Actions, merged.Actions.ExecutionOrder = subtasks, actions, order
	if err := merged.Check(Limits{}); err != nil {
		return Plan{}, err
	}
	return merged, nil
}

// newNames returns the ids of next that cannot stay, and what they become.
func (p *Plan) newNames(next Plan) map[string]string {
	names, taken := map[string]string{}, map[string]bool{}
	for _, s := range next.Decomposition.Subtasks {
		taken[s.ID] = true
	}
	for _, s := range next.Decomposition.Subtasks {
		old, known := p.Subtask(s.ID)
		if !known || strings.Join(strings.Fields(old.Description), " ") == strings.Join(strings.Fields(s.Description), " ") {
			continue
		}
		name := p.freeID(s.ID, taken)
		names[s.ID], taken[name] = name, true
	}
	return names
}

// Extend returns the plan with the work that a verification or a decision to
// replan adds. Actions of subtasks that are not done are added to these; the
// others are new subtasks after all others, one for each task_id, or for each
// action without one: under another id where theirs is that of a subtask that is
// done. What says neither what it is for nor what comes of it is left out, and
// so is what stands behind the first thousand.
func (p *Plan) Extend(actions []Action, done map[string]bool) Plan {
	next := p.clone()
	next.Actions.ExecutionOrder = next.Order()
	names := map[string]string{}
	for _, a := range actions[:min(len(actions), maxChanges)] {
		text := strings.TrimSpace(a.Purpose + "\n" + a.ExpectedOutcome)
		if text == "" {
			continue
		}
		id, named := names[a.TaskID]
		if !named {
			id = a.TaskID
			if known := p.index(id) >= 0; id == "" || known && done[id] {
				id = next.freeID(id, nil)
			}
			if a.TaskID != "" {
				names[a.TaskID] = id
			}
		}
		if next.index(id) < 0 {
			next.Decomposition.Subtasks = append(next.Decomposition.Subtasks, Subtask{ID: id, Description: text, Dependencies: []string{}})
			next.Actions.ExecutionOrder = append(next.Actions.ExecutionOrder, id)
		}
		a.TaskID = id
		next.Actions.Actions = append(next.Actions.Actions, a)
	}
	return next
}
