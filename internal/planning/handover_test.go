package planning

import (
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/turn"
)

// A run that was interrupted at its handover goes on with what it owed before
// where the budget was raised meanwhile, and with the handover where it was not.
func TestARaisedBudgetTakesTheHandoverBack(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	for name, c := range map[string]struct {
		scene
		raised turn.Budget
	}{
		"a subtask": {raised: turn.Budget{Turns: 9}, scene: scene{
			budget:  turn.Budget{Turns: 4},
			answers: []answer{say(plans("a", "b")), say(done("a")), do("1"), say(done("b")), say(pass)},
			asks:    "plan subtask/a subtask/b handover/turns onward verify", lines: "plan:a,b a=done b=done verification:true", end: "passed", prompts: []string{"The budget was raised"}}},
		"a verification": {raised: turn.Budget{}, scene: scene{
			budget:  turn.Budget{Turns: 3},
			answers: []answer{say(plans("a")), say(done("a")), say(pass)},
			asks:    "plan subtask/a verify handover/turns onward", lines: "plan:a a=done verification:true", end: "passed"}},
		"a reflection": {raised: turn.Budget{Turns: 9}, scene: scene{
			budget:  turn.Budget{Turns: 4},
			answers: []answer{say(plans("a")), do("!1"), do("2"), say(done("a")), say(pass)},
			asks:    "plan subtask/a reflect handover/turns onward verify", lines: "plan:a a=done verification:true", end: "passed"}},
		"a plan in its form": {raised: turn.Budget{Turns: 9}, scene: scene{
			budget:  turn.Budget{Turns: 2},
			answers: []answer{say("I will do it."), say(plans("a")), say(done("a")), say(pass)},
			asks:    "plan nudge handover/turns onward subtask/a verify", lines: "plan:a a=done verification:true", end: "passed"}},
		"raised by too little": {raised: turn.Budget{Tokens: 2610}, scene: scene{
			budget:  turn.Budget{Tokens: 2600},
			answers: []answer{say(plans("a")), say("Nothing is done."), say("too many")},
			asks:    "plan subtask/a handover/tokens", lines: "plan:a", end: "the budget leaves no room for another call: 20 of 2610 are taken, and one takes about …", words: "Nothing is done."}},
		"not raised": {raised: turn.Budget{Turns: 2}, scene: scene{
			budget:  turn.Budget{Turns: 2},
			answers: []answer{say(plans("a")), say("Nothing is done."), say("too many")},
			asks:    "plan subtask/a handover/turns", lines: "plan:a", end: "the budget is used up: 2 of 2 (budget.max_turns)", words: "Nothing is done."}},
	} {
		for _, early := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, store, c.scene)
				s.early = &early
				for handover := false; !handover; {
					s.open()
					end, cut := s.drive()
					if !cut {
						t.Fatalf("no handover: %s", end)
					}
					s.close()
					_, asks := s.messages()
					handover = slices.ContainsFunc(asks, func(a string) bool { return strings.HasPrefix(a, askHandover) })
				}
				s.sc.budget = c.raised
				end := ""
				for cut := true; cut; { // also after each message that follows
					s.open()
					if end, cut = s.drive(); cut {
						s.close()
					}
				}
				defer s.close()
				messages, asks := s.messages()
				_, lines := s.entries()
				if begins, _ := strings.CutSuffix(c.end, "…"); strings.Join(asks, " ") != c.asks || strings.Join(lines, " ") != c.lines || !strings.HasPrefix(end, begins) {
					t.Errorf("asked %s\nrecorded %s\nend %q", asks, lines, end)
				}
				if c.words != "" && s.lead.Words(i18n.English) != c.words {
					t.Errorf("words %q", s.lead.Words(i18n.English))
				}
				for _, p := range c.prompts {
					if !strings.Contains(strings.Join(messages, "\n"), p) {
						t.Errorf("the model was never told %q", p)
					}
				}
			})
		}
	}
}
