package planning

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// What is shown of the plan keeps to the room that there is, and says first what
// is needed most.
func TestStateIsBounded(t *testing.T) {
	t.Parallel()
	s := defaults()
	s.MaxSubtasks = 100
	f := newFeed(t, history(t, begin(t, newStore(t)), nil), s)
	long := strings.Repeat("長い話 ", 300)
	var subtasks, criteria []string
	for i := range 90 {
		subtasks = append(subtasks, fmt.Sprintf("s%d:%d %s", i, i, long))
		criteria = append(criteria, fmt.Sprint(i, long))
	}
	f.ask(askPlan)
	f.say(strings.Replace(plans(subtasks...), `["it works"]`, encode(criteria), 1))
	for i := range 50 {
		id := fmt.Sprintf("s%d", i)
		f.ask(askSubtask + "/" + id)
		f.say(fmt.Sprintf(`{"task_id":%q,"status":"done","summary":"%d is done: %s"}`, id, i, long))
	}
	f.ask(askSubtask + "/s50")
	if kind, text := f.lead.Remind(f.lead.s.Shown, 0, 1<<20); kind != "" {
		t.Errorf("the plan is in view, and is said again: %s", text)
	}
	for room, parts := range map[int][]string{
		500:     {"Goal: All is done\n\nAt hand: s50: 50 "},
		3_000:   {"Goal: All is done\n\nAt hand: s50: 50 ", "call report_subtask", "- s50: 50 "},
		1 << 20: {"Goal: All is done\n\nAt hand: s50: 50 ", "call report_subtask", "- s50: 50 ", "- s59: 59 ", "- … (30)\n", "- 9長い話", "- … (40)\n- s40 (done): 40 is done", "- s49 (done)"},
	} {
		kind, text := f.lead.Remind(f.seq+1, 0, room)
		if kind != askState || len(text) > room || !utf8.ValidString(text) {
			t.Errorf("room for %d: %s of %d bytes, valid %t", room, kind, len(text), utf8.ValidString(text))
		}
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("room for %d: %q is missing in\n%s", room, p, text)
			}
		}
	}
	f.ask(askState)
	if kind, _ := f.lead.Remind(f.seq, 0, 1<<20); kind != "" {
		t.Error("it is said twice")
	}
	if f.lead.s.Asked != askSubtask || f.lead.s.Current != "s50" {
		t.Errorf("what is owed was forgotten: %+v", f.lead.s)
	}
}

// A plan of one subtask that nobody made has no goal to tell.
func TestStateWithoutAGoal(t *testing.T) {
	t.Parallel()
	f := newFeed(t, history(t, begin(t, newStore(t)), nil), defaults())
	f.ask(askPlan)
	f.say("No.")
	f.ask(askNudge)
	f.say("No.")
	if _, text := f.lead.Remind(f.seq+1, 0, 1<<20); strings.Contains(text, "Goal:") || !strings.Contains(text, "- task_1: ") {
		t.Error(text)
	}
}
