package planning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	request  string // what is asked for, in short
	s        state
	watched  viewer

	plan  *Plan
	order []string
	calls map[string]contextstore.ToolCall // of the last answer
	drawn []string                         // lessons of the last answer
	wrong *ContractError                   // why the last answer could not be used
}

// state is what a Lead knows, beside the plan.
type state struct {
	Seq    int64 `json:"seq"`    // the last message that is in it
	Offset int64 `json:"offset"` // where it begins in messages.jsonl
	Answer int64 `json:"answer"` // the last answer of the model

	Noted int64 `json:"noted"` // Seq of the last decision

	Shown int64 `json:"shown,omitempty"` // the last message that shows the whole plan
	Posed int64 `json:"posed,omitempty"` // the message that asks for what is owed

	Asked   string                   `json:"asked,omitempty"` // what the model owes an answer to
	Under   string                   `json:"under,omitempty"` // what it is in the middle of, where that is asked in between
	Current string                   `json:"current,omitempty"`
	Tried   int                      `json:"tried,omitempty"` // answers in a row that could not be used
	Form    AnswerKind               `json:"form,omitempty"`  // that the next answer must have
	Ends    map[string]string        `json:"ends,omitempty"`  // status of each subtask that ended
	Results map[string]SubtaskResult `json:"-"`               // with the words, which are lines of their own

	Actions   int      `json:"actions,omitempty"`   // since the model was last asked something
	Since     int      `json:"since,omitempty"`     // actions of subtasks since the last reflection
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

	Rounds   int       `json:"rounds,omitempty"` // of verification
	Judged   bool      `json:"judged,omitempty"` // the answer of the last round has come
	Found    *findings `json:"found,omitempty"`
	Verified bool      `json:"verified,omitempty"` // the last one passed, and nothing was to be done since
	Redone   bool      `json:"redone,omitempty"`   // what did not end well was to be mended by later subtasks

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

// maxTries is how often an answer that cannot be used is asked for again.
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
// messages behind them. request is what the run is about, in short.
func Open(ledger Ledger, h *History, loop *turn.Loop, p Prompts, s Settings, request string, log *slog.Logger) (*Lead, error) {
	l := &Lead{settings: s, prompts: p, loop: loop, history: h, log: log, request: request}
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
	loop.Heed, loop.Form, loop.Remind, loop.KeepLast = l.Heed, l.form, l.remind, true
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
		kind, text, err := l.between()
		if kind != "" {
			all = append(all, contextstore.Message{Role: llm.RoleUser, Kind: kind, Content: text})
		}
		return all, err
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
		if l.loop.Window.Last().Role == llm.RoleTool {
			// In the middle of an answer's calls, where between is what is next.
			if err := l.turns(ctx); err != nil {
				return contextstore.Message{}, err
			}
		}
		if l.s.Want == askPeople {
			if _, err := l.loop.Hear(ctx); err != nil {
				return contextstore.Message{}, err
			}
		}
		kind, text, err := l.next()
		if err != nil {
			return contextstore.Message{}, err
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

// next is what the model is asked now: nothing where it still owes an answer, or
// all is done.
func (l *Lead) next() (kind, text string, err error) {
	s := &l.s
	if s.Stuck != nil {
		return "", "", &StuckError{Spent: s.Stuck}
	}
	if kind, text, err = l.circled(); kind != "" || err != nil {
		return kind, text, err
	}
	switch {
	case s.Want != "" && s.Want != askVerify:
		return l.wanted()
	case s.Asked != "":
		return "", "", nil
	case l.plan == nil:
		return askPlan, l.prompts.Plan(l.settings.Pre.of(PlanAsk{Facts: l.settings.Facts, Earlier: l.settings.Past.earlier(), Held: l.settings.Past.holds(), Lessons: l.settings.Past.forPlan()})), nil
	}
	return l.start("")
}

// start is how work on the next subtask begins, or goes on; why is said first.
func (l *Lead) start(why string) (kind, text string, err error) {
	id := l.s.Current
	if id == "" {
		if id = l.pick(); id == "" {
			return "", "", nil
		}
	}
	t, _ := l.plan.Subtask(id)
	ask := SubtaskAsk{K: len(l.order) - l.left() + 1, N: len(l.order), Subtask: t, Actions: l.plan.ActionsOf(id), Last: l.left() == 1}
	ask.Lessons = l.settings.Past.forSubtask(t, ask.Actions)
	if l.s.Fresh {
		ask.Uncertain, ask.Gaps = l.settings.Pre.uncertain(&l.plan.Goal), l.gaps()
	}
	for _, dep := range t.Dependencies {
		if r, ok := l.s.Results[dep]; ok {
			ask.Before = append(ask.Before, r)
		}
	}
	text = l.prompts.Subtask(ask)
	if why != "" {
		text = line(why) + "\n\n" + text
	}
	return askSubtask + "/" + id, l.told(text), nil
}

// wanted is what is to be asked out of turn.
func (l *Lead) wanted() (kind, text string, err error) {
	s := &l.s
	kind = s.Want
	if l.wrong != nil {
		if kind == askSubtask {
			kind += "/" + s.Current
		}
		return kind, l.prompts.Retry(l.wrong), nil
	}
	if kind == askPlan && l.plan == nil {
		return kind, l.told(l.prompts.Plan(l.settings.Pre.of(PlanAsk{Facts: l.settings.Facts}))), nil
	}
	done, open := l.parts()
	switch kind {
	case askPlan:
		lessons := []string{l.prompts.word("why a new plan is asked for: ", "新しい計画を求める理由: ") + s.Why}
		for _, t := range done {
			lessons = append(lessons, fmt.Sprintf(l.prompts.word("%s is done and stays so: %s", "%s は完了しており、そのまま残ります: %s"), t.ID, l.prompts.Lang.Retold(l.s.Results[t.ID].Summary)))
		}
		return kind, l.told(l.prompts.Plan(l.settings.Pre.of(PlanAsk{Facts: l.settings.Facts, Lessons: lessons}))), nil
	case askRevise:
		left := l.settings.MaxRevisions + s.Granted - s.Revisions - 1
		if s.Replanned {
			left = l.settings.Replan.MaxTotal - s.Counts.Total
		}
		return kind, l.told(l.prompts.Revision(RevisionAsk{Reason: s.Why, Done: done, Open: open, Left: max(left, 0)})), nil
	case askReplan:
		return kind, l.told(l.replanAsk(s.Why)), nil
	case askSubtask:
		return l.start(s.Why)
	}
	return "", "", fmt.Errorf("planning wants %q", kind)
}

func (l *Lead) replanAsk(what string) string {
	done, open := l.parts()
	where := l.s.Where
	if where == "" {
		where = l.s.Current
	}
	return l.prompts.Replan(ReplanAsk{Where: where, Errors: append([]string{what}, l.s.Errors...), Done: done, Open: open, Left: max(l.settings.Replan.MaxTotal-l.s.Counts.Total-1, 0)})
}

// between is what is said to the model in the middle of a subtask: it reads it
// with the results of its calls.
func (l *Lead) between() (kind, text string, err error) {
	s := &l.s
	switch {
	case s.Stuck != nil:
		return "", "", &StuckError{Spent: s.Stuck}
	case s.Loop.Stage == StageStop:
		return "", "", &StuckError{Loop: s.Loop}
	case s.Actions == 0:
		return "", "", nil
	case s.Want != "" && s.Want != askVerify:
		return l.wanted()
	case s.Asked == "":
		return "", "", nil
	}
	if f := s.Loop; f.Stage != StageNone {
		what := f.What(l.prompts.Lang)
		if f.Stage == StageReplan && s.Asked == askSubtask && l.settings.Replan.MaxTotal > 0 {
			return askReplan, l.told(l.replanAsk(what)), nil
		}
		return askNudge, l.prompts.Nudge(NudgeAsk{What: what, Times: f.Count}), nil
	}
	if s.Without != "" {
		return askNudge, l.prompts.Without(WithoutAsk{Tool: s.Without, Times: s.Missed[s.Without]}), nil
	}
	erred := s.Erred != "" && l.settings.ReflectOnError
	due := l.settings.ReflectionInterval > 0 && s.Since >= l.settings.ReflectionInterval
	if l.settings.Reflect && s.Asked == askSubtask && (erred || due) {
		ask := ReflectionAsk{Subtask: s.Current, OnError: erred, Actions: s.Since, Lessons: l.settings.Past.forReflection()}
		if erred {
			ask.Action, ask.Errors = s.Erred, s.Errors
		}
		_, open := l.parts()
		for _, t := range open {
			ask.Open = append(ask.Open, t.ID)
		}
		return askReflect, l.told(l.prompts.Reflection(ask)), nil
	}
	return "", "", nil
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
