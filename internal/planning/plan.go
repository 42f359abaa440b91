package planning

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/i18n"
)

// Limits bounds a plan.
type Limits struct {
	MaxSubtasks int // 0 for no bound
}

// Check says what is wrong with a plan: no subtasks or more than the limits
// allow, ids that are missing or stand twice, dependencies that nobody has or
// that go in a circle. The error is a *ContractError with all of it. Where
// nothing is wrong, Check completes the order of execution, so that it names
// every subtask once, each after its dependencies.
func (p *Plan) Check(limits Limits) error {
	if problems := p.problems(limits); len(problems) > 0 {
		return &ContractError{problems}
	}
	p.Actions.ExecutionOrder = p.Order()
	return nil
}

// maxID is how long the id of a subtask may be, in bytes: it stands in each line
// that says how far a run is.
const maxID = 64

func (p *Plan) problems(limits Limits) []string {
	all := p.Decomposition.Subtasks
	switch {
	case len(all) == 0:
		return []string{"the plan has no subtask; a small task has one"}
	case limits.MaxSubtasks > 0 && len(all) > limits.MaxSubtasks:
		return []string{fmt.Sprintf("the plan has %d subtasks; at most %d are allowed", len(all), limits.MaxSubtasks)}
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
		return problems
	}
	if circle := p.cycle(); circle != nil {
		wrong("the dependencies go in a circle: %s", strings.Join(circle, " needs "))
	}
	return problems
}

// cycle returns ids that need each other in a circle, the first again at the
// end; nil if there are none. All dependencies are known.
func (p *Plan) cycle() []string {
	needs := make(map[string][]string, len(p.Decomposition.Subtasks))
	for _, s := range p.Decomposition.Subtasks {
		needs[s.ID] = s.Dependencies
	}
	order, sorted := p.sort()
	if sorted == len(order) {
		return nil
	}
	// What was not sorted needs something that was not sorted: going on from
	// one to the next comes back.
	left := make(map[string]bool)
	for _, id := range order[sorted:] {
		left[id] = true
	}
	var path []string
	seen := map[string]int{}
	for id := order[sorted]; ; {
		if i, again := seen[id]; again {
			return append(path[i:], id)
		}
		seen[id] = len(path)
		path = append(path, id)
		i := slices.IndexFunc(needs[id], func(d string) bool { return left[d] })
		if i < 0 {
			return path // not reached
		}
		id = needs[id][i]
	}
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
	wish := make(map[string]int, len(p.Actions.ExecutionOrder))
	for i, id := range p.Actions.ExecutionOrder {
		if _, twice := wish[id]; !twice {
			wish[id] = i
		}
	}
	var all []*waiting
	byID := map[string]*waiting{}
	for i, s := range p.Decomposition.Subtasks {
		if byID[s.ID] != nil {
			continue
		}
		w := &waiting{id: s.ID, list: i, wish: len(p.Actions.ExecutionOrder)}
		if at, ok := wish[s.ID]; ok {
			w.wish = at
		}
		all = append(all, w)
		byID[s.ID] = w
	}
	for i, s := range p.Decomposition.Subtasks {
		w := byID[s.ID]
		if w.list != i {
			continue
		}
		for _, id := range slices.Compact(slices.Sorted(slices.Values(s.Dependencies))) {
			if before := byID[id]; before != nil {
				before.after = append(before.after, w)
				w.open++
			}
		}
	}
	ready := &queue{}
	for _, w := range all {
		if w.open == 0 {
			heap.Push(ready, w)
		}
	}
	for ready.Len() > 0 {
		w := heap.Pop(ready).(*waiting)
		order = append(order, w.id)
		w.sorted = true
		for _, next := range w.after {
			if next.open--; next.open == 0 {
				heap.Push(ready, next)
			}
		}
	}
	sorted = len(order)
	slices.SortFunc(all, compareWaiting)
	for _, w := range all {
		if !w.sorted {
			order = append(order, w.id)
		}
	}
	return order, sorted
}

// waiting is a subtask that is not in the order yet.
type waiting struct {
	id         string
	wish, list int // its places in the order of execution and in the plan
	open       int // dependencies that are not in the order
	after      []*waiting
	sorted     bool
}

func compareWaiting(a, b *waiting) int {
	return cmp.Or(cmp.Compare(a.wish, b.wish), cmp.Compare(a.list, b.list))
}

// queue has those first that may be next.
type queue []*waiting

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return compareWaiting(q[i], q[j]) < 0 }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(w any)        { *q = append(*q, w.(*waiting)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
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

// ActionsOf returns the actions that are thought of for a subtask.
func (p *Plan) ActionsOf(id string) []Action {
	var found []Action
	for _, a := range p.Actions.Actions {
		if a.TaskID == id {
			found = append(found, a)
		}
	}
	return found
}

// Single is the plan of one subtask, for where the model gives none: what the
// request asks for. Its title is none of it: that of an issue names what is wrong.
func Single() Plan {
	return Plan{
		Phase:         PhasePlanning,
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
	next.Actions.Actions = slices.Clone(p.Actions.Actions)
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
