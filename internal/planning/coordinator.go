package planning

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/telemetry"
	"toritsugi/internal/turn"
)

// Settings are how a run is led (plan §4).
type Settings struct {
	MaxSubtasks        int
	Reflect            bool
	ReflectOnError     bool
	ReflectionInterval int // actions
	MaxRevisions       int // by reflections
	Verify             bool
	MaxRounds          int // of verification
	Replan             ReplanLimits
	Pre                PrePlanning
	Earlier            *EarlierRuns // what earlier runs left; nil for nothing

	// Hands is a tool that hands the whole of the work in: a call of it that is taken ends
	// the last subtask. "" where reports alone do.
	Hands string

	// ReadOnly reports whether a tool changes nothing; nil where none does.
	ReadOnly func(tool string) bool

	// Ask puts a question to people and returns what became of it. It does not
	// wait: while they owe the answer the error is a *tool.WaitError, and it is
	// called again when the run is taken up. nil where nobody can be asked.
	Ask func(ctx context.Context, q Question) (Answer, error)
}

// Ledger is where the messages of a run are read again. *contextstore.Context is
// one.
type Ledger interface {
	Messages(offset int64, f func(contextstore.Message) bool) error
}

// Coordinator leads one run. It is a state machine over the messages of the run: what it knows
// follows from them, and each decision is a line of the planning history with
// what was known then. A run that is taken up reads the last of these and the
// messages behind it, and goes on as if nothing had been. It is used by one
// goroutine, but for View. It is the turn.Director of the run's loop.
type Coordinator struct {
	turn.Director // which decides what a plan does not
	settings      Settings
	prompts       Prompts
	history       *History
	log           *slog.Logger
	s             state
	recorded      int64 // the message at which that was recorded
	watched       atomic.Pointer[View]

	plan  *Plan
	order []string
	taking
}

// taking is the model's last answer with its calls, and what follows from their
// results so far. It is never looked at once it is whole and on record.
type taking struct {
	calls   map[string]contextstore.ToolCall // by their ids
	owed    map[string]bool                  // those without a result on record
	taken   map[string]bool                  // results that are taken in, and not on record yet
	late    []contextstore.Message           // results on record that are not taken in yet
	whole   bool                             // all of them are taken in
	did     bool                             // a call was made that was none of planning's
	failed  bool                             // one of these did
	made    bool                             // an edit was made
	handed  bool                             // the work was handed in (Settings.Hands)
	decides bool                             // something follows that is to be recorded
	entries []Entry                          // of the history, to be written
}

// The ends of a subtask.
const (
	Done    = "done"
	Failed  = "failed"
	Blocked = "blocked"
	Skipped = "skipped"
)

// maxTries is how often in a row an answer that cannot be used is told so.
const maxTries = 1

// StuckError ends a run that tries the same things again and again, or has spent
// every way to plan anew.
type StuckError struct {
	Loop  turn.Circle // what it tries
	Spent string      // or what it has spent, as ReplanRecord.Override
}

// What says why, for people.
func (e *StuckError) What(l i18n.Lang) string {
	if e.Spent != "" {
		return why(l, e.Spent)
	}
	return e.Loop.What(l)
}

func (e *StuckError) Error() string { return "the run is stuck: " + e.What(i18n.English) }

// Open prepares to lead a run: it reads the latest lines of the history and the
// messages behind them. The loop that it leads is directed by it; base directs what a
// plan does not: what people say, and whoever watches.
func Open(ledger Ledger, h *History, base turn.Director, p Prompts, s Settings, log *slog.Logger) (*Coordinator, error) {
	co := &Coordinator{Director: base, settings: s, prompts: p, history: h, log: log}
	if err := co.recall(); err != nil {
		return nil, err
	}
	var taken error
	err := ledger.Messages(co.s.Offset, func(m contextstore.Message) bool {
		taken = co.reduce(m)
		return taken == nil
	})
	if err := errors.Join(err, taken); err != nil {
		return nil, fmt.Errorf("read how far the plan is: %w", err)
	}
	co.show()
	return co, nil
}

// Before implements turn.Director: an answer of people that is waited for, what the
// base has to say, and what of planning goes with it.
func (co *Coordinator) Before(ctx context.Context) ([]contextstore.Message, error) {
	if err := co.inquire(ctx); err != nil { // the answer is among what the base has to say
		return nil, err
	}
	if v := co.watched.Load(); v != nil {
		telemetry.Phase(ctx, v.Phase, v.number())
	}
	all, err := co.Director.Before(ctx)
	if err != nil || co.s.Told == "" {
		return all, err
	}
	if kind, text := co.next(); kind != "" {
		all = append(all, contextstore.Message{Role: llm.RoleUser, Kind: kind, Content: text})
	}
	return all, nil
}

// After implements turn.Director. What ends by a message is recorded before others hear of
// what begins with it.
func (co *Coordinator) After(m contextstore.Message) error {
	return errors.Join(co.reduce(m), co.Director.After(m))
}

// Run leads the work until nothing of the plan is left to do, and returns the
// model's last answer; loop is the one that l directs. The errors are those of turn.Loop and *StuckError.
func (co *Coordinator) Run(ctx context.Context, loop *turn.Loop) (none contextstore.Message, err error) {
	s := &co.s
	if s.Handover != nil { // an earlier owner was interrupted at it
		if err := co.takeBack(ctx, loop); err != nil {
			return none, err
		}
	}
	for {
		if err := loop.CloseOpenCalls(ctx); err != nil {
			return none, err
		}
		if s.Want == askPeople {
			if _, err := loop.Hear(ctx); err != nil {
				return none, err
			}
		}
		if co.stuck() {
			return none, &StuckError{Spent: s.Stuck, Loop: s.Loop}
		}
		kind, text := "", ""
		if s.Asked == "" || s.Want != "" || s.Told != "" && s.Asked != askVerify { // else all that is to be asked was, with the last results
			kind, text = co.next()
		}
		if kind == "" && (s.Asked == "" || s.Asked == askVerify) && !loop.Owes() {
			return loop.Window.Last(), nil
		}
		if kind != "" {
			if err := loop.Ask(ctx, kind, text); err != nil {
				return none, err
			}
		}
		if err := co.turns(ctx, loop); err != nil {
			return none, err
		}
	}
}

func (co *Coordinator) stuck() bool { return co.s.Stuck != "" || co.s.Loop.Stage == turn.StageStop }

// Ends implements turn.Director: the model owes nothing, and there is nothing to ask it.
func (co *Coordinator) Ends(contextstore.Message) bool {
	if co.stuck() || co.s.judged() {
		return true
	} else if co.s.Asked != "" || co.s.Want == askPeople {
		return false
	}
	kind, _ := co.next()
	return kind == ""
}

// Ending reports whether nothing but the last subtask is left to do, so that the work may be
// handed in; the model is not asked to judge it.
func (co *Coordinator) Ending() bool {
	return co.s.Asked != askVerify && co.s.Handover == nil && (co.plan == nil || co.left() <= 1)
}

// due is the tool that answers a question: the one that hands the work in ends the last subtask.
func (co *Coordinator) due(asked string) string {
	if asked == askSubtask && co.settings.Hands != "" && co.left() == 1 {
		return co.settings.Hands
	}
	return questions[asked].tool
}

// pick is the next subtask: the first that did not end and whose dependencies are
// met; "" where nothing is left.
func (co *Coordinator) pick() string {
	for _, t := range co.pending() { // in an order in which dependencies come first
		if co.blockedBy(t.ID) == "" {
			return t.ID
		}
	}
	return ""
}

// blockedBy is a dependency of a subtask that is not met, "" for none. One that
// turned out not to be needed stands in nobody's way.
func (co *Coordinator) blockedBy(id string) string {
	t, _ := co.plan.Subtask(id)
	for _, dep := range t.Dependencies {
		if status := co.s.Results[dep].Status; status != Done && status != Skipped {
			return dep
		}
	}
	return ""
}

// block ends what depends on what did not end well: it cannot be done.
func (co *Coordinator) block() {
	for _, id := range co.order {
		_, over := co.s.Results[id]
		by, failed := co.s.Results[co.blockedBy(id)]
		if over || !failed {
			continue
		}
		co.log.Info("Subtask "+id+": blocked", "by", by.ID)
		co.ends(SubtaskRecord{ID: id, Status: Blocked, Summary: i18n.Recorded("needs_"+by.Status, by.ID)})
	}
}

// ends notes and records how a subtask ended.
func (co *Coordinator) ends(r SubtaskRecord) {
	co.s.Results[r.ID] = r
	co.enter(Entry{Subtask: &r})
}

// subtasks are those of the plan that ended in a way that is wanted, in their order; the status
// of an open one is "".
func (co *Coordinator) subtasks(wanted func(status string) bool) (all []Subtask) {
	for _, id := range co.order {
		if t, _ := co.plan.Subtask(id); wanted(co.s.Results[id].Status) {
			all = append(all, t)
		}
	}
	return all
}

// pending are the subtasks that did not end.
func (co *Coordinator) pending() []Subtask {
	return co.subtasks(func(status string) bool { return status == "" })
}

func (co *Coordinator) left() int { return len(co.pending()) }

// parts are the subtasks that are done and those that are open or did not end
// well; those that are not needed are in neither.
func (co *Coordinator) parts() (done, open []Subtask) {
	return co.subtasks(func(status string) bool { return status == Done }), co.subtasks(func(status string) bool { return status != Done && status != Skipped })
}

// done are the ids of the subtasks that are done.
func (co *Coordinator) done() map[string]bool {
	done := map[string]bool{}
	for id, r := range co.s.Results {
		done[id] = r.Status == Done
	}
	return done
}

func firstLine(s string) string {
	head, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line(head)
}
