package planning

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/i18n"
)

// maxID is how long the id of a subtask may be, in bytes: it stands in each line
// that says how far a run is.
const maxID = 64

// refusal is a *ContractError of one problem.
func refusal(format string, args ...any) error {
	return &ContractError{[]string{fmt.Sprintf(format, args...)}}
}

// Check says what is wrong with a plan: no subtasks or more than most (0 for no
// bound), ids that are missing or stand twice, dependencies that nobody has or
// that go in a circle. The error is a *ContractError with all of it. Where
// nothing is wrong, Check completes the order of execution, so that it names
// every subtask once, each after its dependencies.
func (p *Plan) Check(most int) error {
	all := p.Decomposition.Subtasks
	switch {
	case len(all) == 0:
		return refusal("the plan has no subtask; a small task has one")
	case most > 0 && len(all) > most:
		return refusal("the plan has %d subtasks; at most %d are allowed", len(all), most)
	}
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	at := make(map[string]int, len(all))
	for i, s := range all {
		switch first, twice := at[s.ID]; {
		case strings.TrimSpace(s.ID) == "":
			wrong("subtasks[%d].id must not be empty", i)
		case len(s.ID) > maxID:
			wrong("subtasks[%d].id is %d bytes long; at most %d are allowed", i, len(s.ID), maxID)
		case twice:
			wrong("subtasks[%d].id: %q is the id of subtasks[%d] already", i, s.ID, first)
		default:
			at[s.ID] = i
		}
	}
	for i, s := range all {
		for _, id := range s.Dependencies {
			if _, known := at[id]; !known {
				wrong("subtasks[%d].dependencies: %q needs %q, and no subtask has that id", i, s.ID, id)
			}
		}
	}
	if len(problems) > 0 {
		return &ContractError{problems}
	}
	order, sorted := p.sort()
	if circle := order[sorted:]; len(circle) > 0 {
		return refusal("the dependencies go in a circle among these subtasks: %s", strings.Join(circle[:min(len(circle), maxEntries)], ", "))
	}
	p.Actions.ExecutionOrder = order
	return nil
}

// Order returns the ids of the subtasks in the order in which they are to be
// done: each after its dependencies, else as the order of execution has them,
// else as they stand in the plan. Every subtask is in it once, also where the
// plan was not checked.
func (p *Plan) Order() []string {
	order, _ := p.sort()
	return order
}

// sort is Order; the first sorted of them come after all their dependencies,
// the others stand in a circle, or need one that does.
func (p *Plan) sort() (order []string, sorted int) {
	needs, open, listed := map[string][]string{}, map[string]bool{}, map[string]bool{}
	left := slices.Clone(p.Actions.ExecutionOrder)
	for _, s := range p.Decomposition.Subtasks {
		if !open[s.ID] {
			needs[s.ID], open[s.ID] = s.Dependencies, true
		}
		left = append(left, s.ID)
	}
	left = slices.DeleteFunc(left, func(id string) bool {
		again := listed[id]
		listed[id] = true
		return again || !open[id]
	})
	for {
		i := slices.IndexFunc(left, func(id string) bool {
			return !slices.ContainsFunc(needs[id], func(d string) bool { return open[d] })
		})
		if i < 0 {
			return slices.Concat(order, left), len(order)
		}
		order, open[left[i]] = append(order, left[i]), false
		left = slices.Delete(left, i, i+1)
	}
}

// Subtask returns the subtask with an id.
func (p *Plan) Subtask(id string) (Subtask, bool) {
	i := p.index(id)
	if i < 0 {
		return Subtask{}, false
	}
	return p.Decomposition.Subtasks[i], true
}

// index returns where a subtask stands in the plan; -1 for nowhere.
func (p *Plan) index(id string) int {
	return slices.IndexFunc(p.Decomposition.Subtasks, func(s Subtask) bool { return s.ID == id })
}

// Single is the plan of one subtask, for where the model gives none: what the
// request asks for. Its title is none of it: that of an issue names what is wrong.
func Single() Plan {
	return Plan{
		Phase:         PhasePlanning,
		Fallback:      true,
		Goal:          Goal{SuccessCriteria: []string{}, Constraints: []string{}},
		Decomposition: Decomposition{Subtasks: []Subtask{{ID: "task_1", Description: i18n.Recorded("request"), Dependencies: []string{}}}},
		Actions:       ActionPlan{ExecutionOrder: []string{"task_1"}, Actions: []Action{}},
	}
}

// clone returns a plan that shares nothing with p that a revision changes.
func (p *Plan) clone() Plan {
	next := *p
	next.Decomposition.Subtasks = slices.Clone(p.Decomposition.Subtasks)
	next.Actions.ExecutionOrder = slices.Clone(p.Actions.ExecutionOrder)
	return next
}

// freeID returns an id like the given one that no subtask of the plan has, and
// none that is taken: the given one or the next number of it, or, where it has no
// number, task_4 where there are three.
func (p *Plan) freeID(like string, taken map[string]bool) string {
	stem := strings.TrimRight(like, "0123456789")
	n, err := strconv.Atoi(like[len(stem):])
	if err != nil || stem == "" {
		stem, n = "task_", len(p.Decomposition.Subtasks)+1
	}
	for ; ; n++ {
		if id := fmt.Sprintf("%s%d", stem, n); !taken[id] && p.index(id) < 0 {
			return id
		}
	}
}
