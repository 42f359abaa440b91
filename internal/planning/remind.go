package planning

import (
	"fmt"
	"strings"
)

// askState is the kind of the message that shows the plan again. It asks for
// nothing.
const askState = "plan_state"

// remind shows the plan as it stands where none is in view any more: from is the
// first message behind the beginning that is, masked the last whose calls are
// stubs, and room how many bytes there are.
// What was said is a message, so that it is said once, and stays as it was said
// until it leaves the view itself.
func (l *Lead) remind(from, masked int64, room int) (kind, text string) {
	if l.plan == nil || l.s.Shown >= from && (l.s.Given == 0 || l.s.Given > masked) {
		return "", ""
	}
	for _, d := range []detail{{400, maxEntries - 1}, {160, 30}, {60, 12}, {40, 4}} { // the most that there is room for
		if text = l.prompts.State(l.standing(from, d)); len(text) <= room {
			return askState, text
		}
	}
	return askState, strings.ToValidUTF8(text[:max(room-len("…\n"), 0)], "") + "…\n"
}

// detail is how much of the plan is shown: runes of an entry, and entries of a
// list.
type detail struct{ runes, entries int }

// standing is how the plan stands.
func (l *Lead) standing(from int64, d detail) StateAsk {
	g := l.plan.Goal
	ask := StateAsk{Goal: brief(g.MainObjective, 4*d.runes), Criteria: d.first(l.criteria()), Constraints: d.first(g.Constraints), Gaps: d.first(l.gaps())}
	if t, ok := l.plan.Subtask(l.s.Current); ok {
		ask.Current = brief(t.ID+": "+t.Description, 4*d.runes)
	}
	if l.s.Posed < from {
		ask.Owed = toolOf[l.s.Asked]
	}
	var open, ended []string
	for _, id := range l.order {
		if r, over := l.s.Results[id]; over {
			ended = append(ended, describeResults([]SubtaskResult{r})[0])
			continue
		}
		t, _ := l.plan.Subtask(id)
		open = append(open, l.prompts.describeSubtasks([]Subtask{t})[0])
	}
	ask.Open, ask.Ended = d.first(open), d.last(ended)
	return ask
}

// first are the entries that a list begins with, and how many there are more.
func (d detail) first(all []string) (list []string) {
	for _, s := range all[:min(len(all), d.entries)] {
		list = append(list, brief(s, d.runes))
	}
	if more := len(all) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("… (%d)", more))
	}
	return list
}

// last are the entries that a list ends with, and how many there are before.
func (d detail) last(all []string) (list []string) {
	before := max(len(all)-d.entries, 0)
	if before > 0 {
		list = append(list, fmt.Sprintf("… (%d)", before))
	}
	for _, s := range all[before:] {
		list = append(list, brief(s, d.runes))
	}
	return list
}
