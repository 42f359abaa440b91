package planning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/llm"
)

// View is how far a run is, for those who watch it. It is not changed any more.
type View struct {
	Goal      string
	Phase     string // that the run is in; "" before the plan is asked for
	Current   string // id of the subtask that is worked on
	Items     []Item
	Revisions int
	Rounds    int // of verification
	Passed    bool
	Unread    bool     // the last verification could not be read
	Issues    []string // of the last verification
	Worked    bool     // all subtasks are over, and nothing is to be done about them
	Verified  bool     // the last verification passed, and nothing was to be done since
	Replans   int
	Plan      *Plan  // in force; nil where there is none yet
	Uncertain bool   // the model is not sure that it understands the task
	Failed    string // what a tool said that failed last, since the last reflection
	Handover  string // the model's words to whoever goes on, where a budget ended the run
}

// number is that of the subtask that is worked on, from 1; 0 for none.
func (v *View) number() int {
	if v.Phase != PhaseExecution {
		return 0
	}
	return 1 + slices.IndexFunc(v.Items, func(i Item) bool { return i.ID == v.Current })
}

// Item is a line of the checklist, ticked by what became of it.
type Item struct {
	ID, Text, Status string // Status is "" while it is open
	Summary          string // of how it ended
}

// Title is what people are shown for the id of a subtask: its own, where it is none that
// the program gave.
func Title(lang i18n.Lang, id string) string {
	if n, ours := strings.CutPrefix(id, fixes); ours {
		return lang.T("planning.fix", n)
	}
	if m := counting().FindStringSubmatch(id); m != nil {
		return lang.T("planning.subtask", m[1])
	}
	return id
}

// counting is the id of a subtask that has none of its own, and that of models which count.
var counting = lazyregexp.New(`^(?i:task|subtask|step)?[_ -]?([0-9]+)$`)

// View is how far the run is. It may be called from any goroutine.
func (co *Coordinator) View() (v View) {
	if latest := co.watched.Load(); latest != nil {
		v = *latest
	}
	return v
}

// LastView is how far a run is, for those who tell of it while nobody leads it: what
// its history holds, and what the model was asked since then. What it reads does not
// grow with the length of the run.
func LastView(ledger Ledger, h *History, s Settings) (View, error) {
	co := &Coordinator{settings: s, history: h}
	if err := co.recall(); err != nil {
		return View{}, err
	}
	err := ledger.Messages(co.s.Offset, func(m contextstore.Message) bool {
		if m.Seq > co.s.Seq && (m.Role == llm.RoleUser || m.Role == llm.RoleTool) && m.Kind != "" {
			co.asked(m.Kind)
		}
		return true
	})
	if err != nil {
		return View{}, fmt.Errorf("read how far the plan is: %w", err)
	}
	co.show()
	return co.View(), nil
}

// show makes what is known the latest view.
func (co *Coordinator) show() {
	s := &co.s
	v := &View{Current: s.Current, Revisions: s.Revisions, Rounds: s.Rounds, Replans: s.Counts.Total, Plan: co.plan, Verified: s.judged() && s.Found.Passed && len(s.Found.Unshown) == 0}
	if s.Handover != nil {
		v.Handover = s.Handover.Words
	}
	if n := len(s.Errors); n > 0 {
		v.Failed = s.Erred + ": " + s.Errors[n-1]
	}
	at := cmp.Or(s.Asked, s.Want) // what the model is at, or is asked next
	if at == askHandover {
		at = "" // and owes nothing of the plan any more
	}
	v.Worked = co.plan != nil && co.left() == 0 && (at == "" || at == askVerify) && s.Stuck == ""
	switch phase, _ := PhaseOf(at); {
	case phase == PhasePlanning, phase == PhaseReflection, phase == PhaseReplan:
		v.Phase = phase
	case co.plan == nil && s.Asked+s.Want != "":
		v.Phase = PhasePlanning
	case v.Worked && v.Verified:
		v.Phase = PhaseCompletion
	case v.Worked:
		v.Phase = PhaseVerification // by the checks, then by the model
	case co.plan != nil:
		v.Phase = PhaseExecution
	}
	if f := s.Found; f != nil {
		v.Passed, v.Unread, v.Issues = f.Passed && len(f.Unshown) == 0, f.Unread, append(f.unshown(), f.Issues...)
	}
	if co.plan != nil {
		v.Goal, v.Uncertain = co.plan.Goal.MainObjective, co.settings.Pre.uncertain(&co.plan.Goal)
		for _, id := range co.order {
			t, _ := co.plan.Subtask(id)
			v.Items = append(v.Items, Item{ID: id, Text: t.Description, Status: s.Results[id].Status, Summary: s.Results[id].Summary})
		}
	}
	co.watched.Store(v)
}
