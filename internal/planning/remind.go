package planning

import (
	"fmt"
	"slices"
	"strings"
)

// askState is the kind of the message that shows the plan again. It asks for
// nothing.
const askState = "plan_state"

// Remind implements turn.Director: it shows the plan as it stands where none is in view any more: from is the
// first message behind the beginning that is, masked the last whose calls are
// stubs, and room how many bytes there are.
// What was said is a message, so that it is said once, and stays as it was said
// until it leaves the view itself.
func (co *Coordinator) Remind(from, masked int64, room int) (kind, text string) {
	if co.plan == nil || co.s.Shown >= from && (co.s.Given == 0 || co.s.Given > masked) {
		return "", ""
	}
	if text = co.prompts.render("state", co.standing(from)); len(text) > room { // what is needed most comes first
		text = strings.ToValidUTF8(text[:max(room-len("…\n"), 0)], "") + "…\n"
	}
	return askState, text
}

// How much of the plan is shown: runes of an entry, and entries of a list.
const (
	shownRunes   = 160
	shownEntries = 10
)

// standing is how the plan stands.
func (co *Coordinator) standing(from int64) Ask {
	g := co.plan.Goal
	ask := Ask{Goal: brief(g.MainObjective, 4*shownRunes), Criteria: first(co.criteria()), Constraints: first(g.Constraints), Gaps: first(co.gaps())}
	if t, ok := co.plan.Subtask(co.s.Current); ok {
		ask.Current = brief(t.ID+": "+co.prompts.Lang.Translate(t.Description), 4*shownRunes)
	}
	if co.s.Posed < from {
		ask.Owed = questions[co.s.Asked].tool
	}
	var ended []string
	for _, id := range co.order {
		if r, over := co.s.Results[id]; over {
			ended = append(ended, fmt.Sprintf("%s (%s): %s", r.ID, r.Status, co.prompts.Lang.Translate(r.Summary)))
		}
	}
	ask.Pending, ask.Ended = first(co.prompts.describeSubtasks(co.pending())), last(ended)
	return ask
}

// first are the entries that a list begins with, and how many there are more.
func first(all []string) (list []string) {
	for _, s := range all[:min(len(all), shownEntries)] {
		list = append(list, brief(s, shownRunes))
	}
	if more := len(all) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("… (%d)", more))
	}
	return list
}

// last are the entries that a list ends with, and how many there are before.
func last(all []string) []string {
	slices.Reverse(all)
	all = first(all)
	slices.Reverse(all)
	return all
}
