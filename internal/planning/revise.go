package planning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
)

// maxChanges is how much one answer may bring to a plan: more than any plan has,
// and few enough to compare each with each.
const maxChanges = 1000

// Apply returns the plan as a revision changes it; p stays as it is. done are
// the subtasks that have their result: they stay, as they are. A revision that
// removes or changes one of them, leaves a circle or a dependency that nobody
// has, or no subtask at all, is refused with a *ContractError. So is one that
// names what is not there.
//
// The changes come first. An updated action plan then replaces the order of
// what is not done; what it does not mention stays. A change that names no subtask
// is a remark and changes nothing: the plan "changes: […]" without more, as plan §3
// shows it, is never emptied. The outcome is checked as by Check.
func (p *Plan) Apply(rev PlanRevision, done map[string]bool, most int) (Plan, error) {
	var order []string
	if rev.Actions != nil {
		order = rev.Actions.ExecutionOrder
	}
	if n := len(rev.Changes) + len(order); n > maxChanges {
		return Plan{}, refusal("changes: expected at most %d, found %d", maxChanges, n)
	}
	e := edit{Plan: p.clone(), done: done}
	e.Actions.ExecutionOrder = p.Order()
	for i, c := range rev.Changes {
		e.path = fmt.Sprintf("changes[%d]", i)
		e.change(c)
	}
	e.path = "updated_action_plan"
	for i, id := range order {
		if e.index(id) < 0 {
			e.wrong(fmt.Sprintf("execution_order[%d]", i), "no subtask has the id %q; add it in changes", id)
		}
	}
	before := e.Order()
	e.Actions.ExecutionOrder = slices.Concat(kept(before, func(id string) bool { return done[id] }), order, before)
	if len(e.problems) > 0 {
		return Plan{}, &ContractError{e.problems}
	}
	return e.Plan, e.Check(most)
}

// edit is a plan that is being changed.
type edit struct {
	Plan
	done     map[string]bool
	path     string // of the change at hand
	problems []string
}

func (e *edit) wrong(field, problem string, args ...any) {
	e.problems = append(e.problems, e.path+"."+field+": "+fmt.Sprintf(problem, args...))
}

func (e *edit) change(c Change) {
	id, all := c.about(), &e.Decomposition.Subtasks
	switch {
	case c.Type == "add":
		e.add(c)
	case c.Type != "remove" && c.Type != "modify":
		e.wrong("type", "expected one of add, remove, modify, found %q", brief(c.Type, maxID))
	case c.Type == "modify" && id == "" && c.Subtask == nil: // a remark
	case id == "":
		e.wrong("task_id", "say which subtask to %s", c.Type)
	case e.index(id) < 0:
		e.wrong("task_id", "no subtask has the id %q", id)
	case e.done[id]:
		e.wrong("task_id", "%q is done and stays as it is; add a subtask for what is still to be changed", id)
	case c.Type == "remove":
		*all = slices.DeleteFunc(*all, func(s Subtask) bool { return s.ID == id })
	default:
		e.modify(&(*all)[e.index(id)], c)
	}
}

// add adds the subtask of a change, which may tell of it in words alone.
func (e *edit) add(c Change) {
	var s Subtask
	if c.Subtask != nil {
		s = *c.Subtask
	}
	if s.ID, s.Description = cmp.Or(s.ID, c.ID), cmp.Or(s.Description, c.Details); s.ID == "" {
		s.ID = e.freeID("", nil)
	}
	after := len(e.Decomposition.Subtasks) - 1
	if c.After != "" {
		after = e.index(c.After)
	}
	switch order := &e.Actions.ExecutionOrder; {
	case strings.TrimSpace(s.Description) == "":
		e.wrong("subtask.description", "must not be empty")
	case e.index(s.ID) >= 0:
		e.wrong("subtask.id", "%q is the id of another subtask already", s.ID)
	case after < 0 && c.After != "":
		e.wrong("after", "no subtask has the id %q", c.After)
	default:
		e.Decomposition.Subtasks = slices.Insert(e.Decomposition.Subtasks, after+1, s)
		if c.After == "" {
			*order = append(*order, s.ID)
		} else {
			*order = slices.Insert(*order, slices.Index(*order, c.After)+1, s.ID)
		}
	}
}

// modify changes the fields of a subtask that are given. Words alone are added
// to what it says.
func (e *edit) modify(s *Subtask, c Change) {
	switch with := c.Subtask; {
	case with == nil && c.Details != "":
		s.Description += "\n" + c.Details
	case with == nil:
	case with.ID != "" && with.ID != s.ID:
		e.wrong("subtask.id", "the id of %q cannot change", s.ID)
	default:
		s.Description, s.Complexity = cmp.Or(with.Description, s.Description), cmp.Or(with.Complexity, s.Complexity)
		if with.Dependencies != nil {
			s.Dependencies = with.Dependencies
		}
		if with.RequiredTools != nil {
			s.RequiredTools = with.RequiredTools
		}
	}
}

// changes are how next differs from p, whoever made it: subtasks that come, go or
// are others, then the order of those that stay. said is what the
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
// done. The outcome is checked as by Check.
func (p *Plan) Replace(next Plan, done map[string]bool, most int) (Plan, error) {
	if n := len(next.Decomposition.Subtasks); n > maxChanges {
		return Plan{}, refusal("subtasks: expected at most %d, found %d", maxChanges, n)
	}
	names, taken := map[string]string{}, map[string]bool{}
	for _, s := range next.Decomposition.Subtasks {
		taken[s.ID] = true
	}
	for _, s := range next.Decomposition.Subtasks {
		if old, known := p.Subtask(s.ID); known && !slices.Equal(strings.Fields(old.Description), strings.Fields(s.Description)) {
			names[s.ID] = p.freeID(s.ID, taken)
			taken[names[s.ID]] = true
		}
	}
	rename := func(ids []string) []string {
		all := make([]string, 0, len(ids))
		for _, id := range ids {
			all = append(all, cmp.Or(names[id], id))
		}
		return all
	}
	merged, old := next, p.clone()
	merged.Decomposition.Subtasks = slices.DeleteFunc(old.Decomposition.Subtasks, func(s Subtask) bool { return !done[s.ID] })
	for _, s := range next.Decomposition.Subtasks {
		if s.ID = cmp.Or(names[s.ID], s.ID); !done[s.ID] || p.index(s.ID) < 0 {
			s.Dependencies = rename(s.Dependencies)
			merged.Decomposition.Subtasks = append(merged.Decomposition.Subtasks, s)
		}
	}
	merged.Actions.ExecutionOrder = append(kept(p.Order(), func(id string) bool { return done[id] }), rename(next.Order())...)
	return merged, merged.Check(most)
}

// Extend returns the plan with the work that a verification or a decision to
// replan adds. Actions of subtasks that are not done are a line more of what these
// say; the others are new subtasks after all others, at most room, one for each task_id, or
// for each action without one, which gets an id like the given one: under another
// id where theirs is that of a subtask that is done. What says neither what it is
// for nor what comes of it is left out.
func (p *Plan) Extend(actions []Action, done map[string]bool, room int, like string) Plan {
	e := edit{Plan: p.clone(), done: done}
	e.Actions.ExecutionOrder = p.Order()
	names := map[string]string{}
	for _, a := range actions[:min(len(actions), maxEntries)] {
		text := strings.TrimSpace(a.Purpose + "\n" + a.ExpectedOutcome)
		id, named := names[a.TaskID]
		if !named {
			id = a.TaskID
		}
		t, known := e.Subtask(id)
		if open := known && !done[id]; text == "" || open && strings.Contains(t.Description, line(text)) {
			continue
		} else if open {
			e.change(Change{Type: "modify", ID: id, Details: line(text)})
			continue
		}
		if known || id == "" {
			id = e.freeID(cmp.Or(id, like), nil)
		}
		if room--; room < 0 {
			break
		}
		if a.TaskID != "" {
			names[a.TaskID] = id
		}
		e.change(Change{Type: "add", Subtask: &Subtask{ID: id, Description: text, Dependencies: []string{}}})
	}
	return e.Plan
}
