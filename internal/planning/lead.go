package planning

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/turn"
)

// The kinds of what a model is asked for; they are the kinds of our messages.
const (
	askPlan    = "plan"
	askSubtask = "subtask" // subtask/ID in a message
	askReflect = "reflect"
	askRevise  = "revise"
	askReplan  = "replan"
	askNudge   = "nudge"
	askVerify  = "verify"
	askRemark  = AskRemark

	askHandover = "handover" // handover/BUDGET in a message
	askOnward   = "onward"   // takes that back
)

// AskRemark is the kind of what a run tells the model when nothing of the plan
// was left to do: by people, or by checks that fail.
const AskRemark = "remark"

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
	Guard              GuardLimits
	Facts              []string // what is known of the repository
	Past               *Past    // what earlier runs left; nil for nothing

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

// Lead leads one run. It is a fold over the messages of the run: what it knows
// follows from them, and each decision is a line of the planning history with
// what was known then. A run that is taken up reads the last of these and the
// messages behind it, and goes on as if nothing had been. It is used by one
// goroutine, but for View.
type Lead struct {
	settings Settings
	prompts  Prompts
	loop     *turn.Loop
	history  *History
	log      *slog.Logger
	s        state
	watched  viewer

	plan  *Plan
	order []string
	taking
}

// taking is the model's last answer with its calls, and what follows from their
// results so far. It is never looked at once it is whole and on record.
type taking struct {
	calls   map[string]contextstore.ToolCall // without a result on record
	taken   map[string]bool                  // results that are taken in, and not on record yet
	whole   bool                             // all of them are taken in
	did     bool                             // a call was made that was none of planning's
	failed  bool                             // one of these did
	edits   int                              // that were tried
	made    int                              // of edits
	decides bool                             // something follows that is to be recorded
	entries []Entry                          // of the history, to be written
}

// state is what a Lead knows, beside the plan.
type state struct {
	Seq    int64 `json:"seq"`    // the last message that is in it
	Offset int64 `json:"offset"` // where it begins in messages.jsonl
	Answer int64 `json:"answer"` // the last answer of the model

	Noted int64 `json:"noted"` // Seq of the last decision

	Shown int64 `json:"shown,omitempty"` // the last message that shows the whole plan
	Given int64 `json:"given,omitempty"` // the same, where that is the model's call
	Posed int64 `json:"posed,omitempty"` // the message that asks for what is owed

	Asked   string                   `json:"asked,omitempty"` // what the model owes an answer to
	Under   string                   `json:"under,omitempty"` // what it is in the middle of, where that is asked in between
	Current string                   `json:"current,omitempty"`
	Tried   int                      `json:"tried,omitempty"` // answers in a row that could not be used
	Again   string                   `json:"again,omitempty"` // what is asked once more since no call came
	Ends    map[string]string        `json:"ends,omitempty"`  // status of each subtask that ended
	Results map[string]SubtaskResult `json:"-"`               // with the words, which are lines of their own

	Actions   int      `json:"actions,omitempty"`   // since the model was last asked something
	Since     int      `json:"since,omitempty"`     // turns that acted on subtasks since the last reflection
	Looks     int      `json:"looks,omitempty"`     // commands in a row that looked for something and found none
	Well      bool     `json:"well,omitempty"`      // the last call was a command, and it ended well
	Trouble   int      `json:"trouble,omitempty"`   // turns in a row in which something failed
	Unmade    bool     `json:"unmade,omitempty"`    // the last edits of the subtask at hand all failed
	Objected  bool     `json:"objected,omitempty"`  // its word that it is done was objected to
	Ran       []string `json:"ran,omitempty"`       // commands that ended well since the last edit
	Erred     string   `json:"erred,omitempty"`     // the tool that failed last since then
	Errors    []string `json:"errors,omitempty"`    // what it said
	Revisions int      `json:"revisions,omitempty"` // that reflections asked for
	Replanned bool     `json:"replanned,omitempty"` // the revision that comes next follows from a replan decision, which has limits of its own
	Counts    Counts   `json:"replans"`
	Guard     Guard    `json:"guard"`
	Loop      Found    `json:"loop"` // found, and not yet told

	Missed  map[string]int `json:"missed,omitempty"`  // failed calls before the plan, by tool
	Without string         `json:"without,omitempty"` // the tool to be done without, not yet told
	Fresh   bool           `json:"fresh,omitempty"`   // no subtask ended since the plan was made

	Rounds   int         `json:"rounds,omitempty"` // of verification
	Judged   bool        `json:"judged,omitempty"` // the answer of the last round has come
	Found    *findings   `json:"found,omitempty"`
	Verified bool        `json:"verified,omitempty"` // the last one passed, and nothing was to be done since
	Green    bool        `json:"green,omitempty"`    // the checks had passed when it was asked for
	Shows    []Criterion `json:"shows,omitempty"`    // what subtasks' reports showed, with their evidence
	Redone   bool        `json:"redone,omitempty"`   // what did not end well was to be mended by later subtasks

	Inquiry   *inquiry `json:"inquiry,omitempty"`         // what people are asked, while askPeople is wanted
	Inquiries int      `json:"inquiries,omitempty"`       // how often they were
	Granted   int      `json:"granted,omitempty"`         // revisions for reflections that they allowed beyond the limit
	Replans   int      `json:"granted_replans,omitempty"` // and for replan decisions
	Told      string   `json:"told,omitempty"`            // what came of it, until the model is told

	Want  string     `json:"want,omitempty"`  // what is to be asked next, out of turn
	Why   string     `json:"why,omitempty"`   // for its text
	For   string     `json:"for,omitempty"`   // why what is asked was asked
	Where string     `json:"where,omitempty"` // the subtask that a decision is about
	Stuck []Override `json:"spent,omitempty"` // why the run has to end; none where it goes on
	Said  string     `json:"said,omitempty"`  // the model's last words to people

	Lessons    []string `json:"lessons,omitempty"`     // that the model draws from the run
	Handover   string   `json:"handover,omitempty"`    // the budget that is used up, once the words to whoever goes on are asked for
	HandedOver bool     `json:"handed_over,omitempty"` // the answer has come
	Left       string   `json:"left,omitempty"`        // those words
	Put        *put     `json:"put,omitempty"`         // what was owed as they were asked for
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
	Loop  Found      // what it tries
	Spent []Override // or what it has spent
}

// What says why, for people.
func (e *StuckError) What(l i18n.Lang) string {
	if e.Spent != nil {
		return why(l, e.Spent)
	}
	return e.Loop.What(l)
}

func (e *StuckError) Error() string { return "the run is stuck: " + e.What(i18n.English) }

// Open prepares to lead a run: it reads the latest lines of the history and the
// messages behind them.
func Open(ledger Ledger, h *History, loop *turn.Loop, p Prompts, s Settings, log *slog.Logger) (*Lead, error) {
	l := &Lead{settings: s, prompts: p, loop: loop, history: h, log: log}
	if err := l.recall(); err != nil {
		return nil, err
	}
	var heeded error
	err := ledger.Messages(l.s.Offset, func(m contextstore.Message) bool {
		heeded = l.Heed(m)
		return heeded == nil
	})
	if err := errors.Join(err, heeded); err != nil {
		return nil, fmt.Errorf("read how far the plan is: %w", err)
	}
	l.show()
	loop.Read, loop.Complete, loop.Heed, loop.Over, loop.Remind, loop.KeepLast = l.Read, l.Complete, l.Heed, l.over, l.remind, true
	news := loop.News
	loop.News = func(ctx context.Context) (all []contextstore.Message, err error) {
		if err := l.inquire(ctx); err != nil { // the answer is among the news
			return nil, err
		}
		if news != nil {
			if all, err = news(ctx); err != nil {
				return nil, err
			}
		}
		if kind, text := l.afterwards(); kind != "" {
			all = append(all, contextstore.Message{Role: llm.RoleUser, Kind: kind, Content: text})
		}
		return all, nil
	}
	return l, nil
}

// recall reads what was known with the last decision.
func (l *Lead) recall() error {
	l.s.Results = map[string]SubtaskResult{}
	last, err := l.history.Latest(func(e *Entry) bool { return e.Checkpoint != nil })
	if err != nil || last == nil {
		return err
	}
	if err := json.Unmarshal(last.Checkpoint, &l.s); err != nil {
		return fmt.Errorf("the planning history's last state: %w", err)
	}
	var was *Plan
	_, err = l.history.Latest(func(e *Entry) bool {
		if e.Seq > last.Seq {
			return false
		}
		if p := e.plan(); p != nil && was == nil {
			was = p
		}
		if t := e.Subtask; t != nil && l.s.Ends[t.ID] == t.Status {
			if _, later := l.s.Results[t.ID]; !later {
				l.s.Results[t.ID] = SubtaskResult{ID: t.ID, Status: t.Status, Summary: t.Summary}
			}
		}
		return was != nil && len(l.s.Results) == len(l.s.Ends)
	})
	if was != nil {
		l.hold(*was)
	}
	for id, status := range l.s.Ends {
		if _, there := l.s.Results[id]; !there { // its line was damaged
			l.s.Results[id] = SubtaskResult{ID: id, Status: status}
		}
	}
	return err
}

// Run leads the work until nothing of the plan is left to do, and returns the
// model's last answer. The errors are those of turn.Loop and *StuckError.
func (l *Lead) Run(ctx context.Context) (contextstore.Message, error) {
	if l.s.Handover != "" { // an earlier owner was interrupted at it
		if err := l.takeBack(ctx); err != nil {
			return contextstore.Message{}, err
		}
	}
	for {
		if err := l.loop.Settle(ctx); err != nil {
			return contextstore.Message{}, err
		}
		if l.s.Want == askPeople {
			if _, err := l.loop.Hear(ctx); err != nil {
				return contextstore.Message{}, err
			}
		}
		if l.s.Stuck != nil || l.s.Loop.Stage == StageStop {
			return contextstore.Message{}, &StuckError{Spent: l.s.Stuck, Loop: l.s.Loop}
		}
		kind, text := "", ""
		if l.s.Asked == "" || l.s.Want != "" { // else all that is to be asked was, with the last results
			kind, text = l.next()
		}
		if kind == "" && (l.s.Asked == "" || l.s.Asked == askVerify) {
			return l.loop.Window.Last(), nil
		}
		if kind != "" {
			if err := l.loop.Ask(ctx, kind, text); err != nil {
				return contextstore.Message{}, err
			}
		}
		if err := l.turns(ctx); err != nil {
			return contextstore.Message{}, err
		}
	}
}

// over reports whether the model owes nothing, and there is nothing to ask it.
func (l *Lead) over() bool {
	s := &l.s
	switch {
	case s.Stuck != nil || s.Loop.Stage == StageStop || s.Judged:
		return true
	case s.Asked != "" || s.Want == askPeople:
		return false
	}
	kind, _ := l.next()
	return kind == ""
}

// next is what the model is asked now, with the results of its calls or after an
// answer without one: nothing where it still owes an answer, or all is done.
func (l *Lead) next() (kind, text string) {
	s := &l.s
	found := s.Loop.Stage != StageNone
	switch {
	case s.Stuck != nil || s.Loop.Stage == StageStop || s.Want == askPeople:
		return "", ""
	case s.Want != "" && s.Want != askVerify && (!found || s.Want != askSubtask):
		return l.wanted()
	case found && (s.Asked != "" || l.plan != nil):
		return l.circled()
	case l.plan == nil && s.Asked == "":
		return askPlan, l.prompts.Plan(l.settings.Pre.of(PlanAsk{Facts: l.settings.Facts, Earlier: l.settings.Past.earlier(), Held: l.settings.Past.holds(), Lessons: l.settings.Past.forPlan()}))
	case s.Asked == "":
		return l.start("")
	case s.Without != "":
		return askNudge, l.prompts.Without(WithoutAsk{Tool: s.Without, Times: s.Missed[s.Without]})
	case s.Asked == askSubtask && l.settings.Reflect:
		return l.reflection()
	}
	return "", ""
}

// afterwards is what the model is told with people's answer to a question.
func (l *Lead) afterwards() (kind, text string) {
	switch s := &l.s; {
	case s.Want != "" && s.Want != askVerify && s.Want != askPeople:
		return l.wanted()
	case s.Told != "" && s.Asked != "":
		return askNudge, s.Told
	}
	return "", ""
}

// circled is what the model is asked where it goes round in circles.
func (l *Lead) circled() (kind, text string) {
	s := &l.s
	what := s.Loop.What(l.prompts.Lang)
	if working := s.Asked == askSubtask || s.Asked == "" && s.Current != ""; s.Loop.Stage == StageReplan && working && l.settings.Replan.MaxTotal > 0 {
		return askReplan, l.told(l.replanAsk(what))
	}
	nudge := l.prompts.Nudge(NudgeAsk{What: what, Times: s.Loop.Count})
	if s.Asked != "" {
		return askNudge, nudge
	}
	if kind, text = l.start(""); kind != "" {
		text = nudge + "\n" + text
	}
	return kind, text
}

// reflection asks how it goes, where something failed or it was not asked for long.
// A command that has just ended well needs no reflection, nor does a small plan
// before it is in trouble.
func (l *Lead) reflection() (kind, text string) {
	s := &l.s
	erred := s.Erred != "" && l.settings.ReflectOnError
	due := l.settings.ReflectionInterval > 0 && s.Since >= l.settings.ReflectionInterval && !s.Well
	if l.small() {
		erred, due = erred && s.Trouble > 1, false
	}
	if !erred && !due {
		return "", ""
	}
	ask := ReflectionAsk{OnError: erred, Action: s.Erred, Actions: s.Since, Lessons: l.settings.Past.forReflection()}
	return askReflect, l.told(l.prompts.Reflection(ask))
}

// small reports whether the plan is one subtask that the model finds easy: then it
// works as without a plan.
func (l *Lead) small() bool {
	return len(l.order) == 1 && l.plan.Decomposition.Subtasks[0].Complexity == "low"
}

// start is how work on the next subtask begins, or goes on; why is said first.
func (l *Lead) start(why string) (kind, text string) {
	id := l.s.Current
	if id == "" {
		if id = l.pick(); id == "" {
			return "", ""
		}
	}
	t, _ := l.plan.Subtask(id)
	ask := SubtaskAsk{K: len(l.order) - l.left() + 1, N: len(l.order), Subtask: t, Actions: l.plan.ActionsOf(id), Last: l.left() == 1, Small: l.small()}
	ask.Lessons = l.settings.Past.forSubtask(t, ask.Actions)
	if l.s.Fresh {
		ask.Uncertain, ask.Gaps = l.settings.Pre.uncertain(&l.plan.Goal), l.gaps()
	}
	for _, dep := range t.Dependencies {
		if r, ok := l.s.Results[dep]; ok {
			ask.Before = append(ask.Before, r)
		}
	}
	ask.Actions = slices.DeleteFunc(ask.Actions, func(a Action) bool { return a.Tool == "" && strings.Contains(t.Description, a.Purpose) })
	text = l.prompts.Subtask(ask)
	if why != "" {
		text = line(why) + "\n\n" + text
	}
	return askSubtask + "/" + id, l.told(text)
}

// wanted is what is to be asked out of turn.
func (l *Lead) wanted() (kind, text string) {
	s := &l.s
	kind = s.Want
	if s.Again == kind {
		text = l.prompts.Retry(RetryAsk{Tool: toolOf[kind]})
		if kind == askSubtask {
			kind += "/" + s.Current
		}
		return kind, text
	}
	if kind == askPlan && l.plan == nil {
		return kind, l.told(l.prompts.Plan(l.settings.Pre.of(PlanAsk{Facts: l.settings.Facts})))
	}
	done, open := l.parts()
	switch kind {
	case askPlan:
		lessons := []string{l.prompts.word("why a new plan is asked for: ", "新しい計画を求める理由: ") + s.Why}
		for _, t := range done {
			lessons = append(lessons, fmt.Sprintf(l.prompts.word("%s is done and stays so: %s", "%s は完了しており、そのまま残ります: %s"), t.ID, l.prompts.Lang.Retold(l.s.Results[t.ID].Summary)))
		}
		return kind, l.told(l.prompts.Plan(l.settings.Pre.of(PlanAsk{Facts: l.settings.Facts, Lessons: lessons})))
	case askRevise:
		left := l.settings.MaxRevisions + s.Granted - s.Revisions - 1
		if s.Replanned {
			left = l.settings.Replan.MaxTotal - s.Counts.Total
		}
		return kind, l.told(l.prompts.Revision(RevisionAsk{Reason: s.Why, Done: done, Open: open, Left: max(left, 0)}))
	case askReplan:
		return kind, l.told(l.replanAsk(s.Why))
	}
	return l.start(s.Why)
}

// toolOf is the tool by which what is asked is answered.
var toolOf = map[string]string{askPlan: ToolPlan, askSubtask: ToolReport, askReflect: ToolReflect, askRevise: ToolReflect, askReplan: ToolReplan, askVerify: ToolVerify}

func (l *Lead) replanAsk(what string) string {
	done, open := l.parts()
	return l.prompts.Replan(ReplanAsk{Where: cmp.Or(l.s.Where, l.s.Current), Errors: append([]string{what}, l.s.Errors...), Done: done, Open: open, Left: max(l.settings.Replan.MaxTotal-l.s.Counts.Total-1, 0)})
}

// pick is the next subtask: the first that did not end and whose dependencies are
// met; "" where nothing is left.
func (l *Lead) pick() string {
	for _, id := range l.order { // an order in which dependencies come first
		if _, over := l.s.Results[id]; !over && l.blockedBy(id) == "" {
			return id
		}
	}
	return ""
}

// blockedBy is a dependency of a subtask that is not met, "" for none. One that
// turned out not to be needed stands in nobody's way.
func (l *Lead) blockedBy(id string) string {
	t, _ := l.plan.Subtask(id)
	for _, dep := range t.Dependencies {
		if status := l.s.Results[dep].Status; status != Done && status != Skipped {
			return dep
		}
	}
	return ""
}

// block ends what depends on what did not end well: it cannot be done.
func (l *Lead) block() (entries []Entry) {
	for _, id := range l.order {
		if _, over := l.s.Results[id]; over {
			continue
		}
		by := l.blockedBy(id)
		if _, over := l.s.Results[by]; !over {
			continue
		}
		r := SubtaskResult{ID: id, Status: Blocked, Summary: i18n.Recorded("needs_"+l.s.Results[by].Status, by)}
		l.s.Results[id] = r
		l.log.Info("Subtask "+id+": blocked", "by", by)
		entries = append(entries, Entry{Subtask: &SubtaskRecord{ID: id, Status: Blocked, Summary: r.Summary}})
	}
	return entries
}

// left is how many subtasks did not end.
func (l *Lead) left() (n int) {
	for _, id := range l.order {
		if _, over := l.s.Results[id]; !over {
			n++
		}
	}
	return n
}

// parts are the subtasks that are done and those that are open or did not end
// well; those that are not needed are in neither.
func (l *Lead) parts() (done, open []Subtask) {
	for _, id := range l.order {
		t, _ := l.plan.Subtask(id)
		switch l.s.Results[id].Status {
		case Done:
			done = append(done, t)
		case Skipped:
		default:
			open = append(open, t)
		}
	}
	return done, open
}

// done are the ids of the subtasks that are done.
func (l *Lead) done() map[string]bool {
	done := map[string]bool{}
	for id, r := range l.s.Results {
		if r.Status == Done {
			done[id] = true
		}
	}
	return done
}

// hold makes a plan the one in force.
func (l *Lead) hold(p Plan) { l.plan, l.order = &p, p.Order() }

func firstLine(s string) string {
	head, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line(head)
}
