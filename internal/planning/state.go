package planning

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

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

// questions are what the model can be asked: the tool that answers it, the phase of
// the run that people are told, and whether it may come in the middle of a subtask,
// which goes on behind the answer. What is not in it owes no call of planning's.
var questions = map[string]struct {
	tool, phase string
	between     bool
}{
	askPlan:    {ToolPlan, PhasePlanning, true},
	askSubtask: {ToolReport, PhaseExecution, false},
	askReflect: {ToolReflect, PhaseReflection, true},
	askRevise:  {ToolReflect, PhaseReflection, true},
	askReplan:  {ToolReflect, PhaseReplan, true},
	askVerify:  {ToolReflect, PhaseVerification, false},
}

// PhaseOf is the phase that a message of a kind begins, and the subtask that it is
// about, "" for none; phase is "" where it begins none.
func PhaseOf(kind string) (phase, subtask string) {
	kind, id, _ := strings.Cut(kind, "/")
	if kind != askSubtask {
		id = ""
	}
	return questions[kind].phase, id
}

// AskRemark is the kind of what a run tells the model when nothing of the plan
// was left to do: by people, or by checks that fail.
const AskRemark = "remark"

// state is what a Coordinator knows, beside the plan: the phase, the counters, and what is
// still to be told. All of it follows from the messages.
type state struct {
	Seq    int64 `json:"seq"`             // the last message that is in it
	Offset int64 `json:"offset"`          // where it begins in messages.jsonl
	Answer int64 `json:"answer"`          // the last answer of the model
	Shown  int64 `json:"shown,omitempty"` // the last message that shows the whole plan
	Given  int64 `json:"given,omitempty"` // the same, where that is the model's call

	phase
	Handover *handover `json:"handover,omitempty"` // nil until the budget is used up
	Why      string    `json:"why,omitempty"`      // what is wanted is asked, for its text
	For      string    `json:"for,omitempty"`      // why what is asked was
	Tried    int       `json:"tried,omitempty"`    // answers in a row that could not be used
	Goal     *Goal     `json:"goal,omitempty"`     // of a first plan that could not be used
	Where    string    `json:"where,omitempty"`    // the subtask that a decision is about
	Stuck    string    `json:"stuck,omitempty"`    // why the run has to end, as ReplanRecord.Override
	Inquiry  *inquiry  `json:"inquiry,omitempty"`  // what people are asked, while askPeople is wanted

	Current string  `json:"current,omitempty"` // the subtask at hand
	Results results `json:"ends,omitempty"`    // of the subtasks that ended
	Fresh   bool    `json:"fresh,omitempty"`   // none did since the plan was made
	Redone  bool    `json:"redone,omitempty"`  // what did not end well was to be mended by later ones

	Since    int         `json:"since,omitempty"`    // turns that acted on subtasks since the last reflection
	Trouble  int         `json:"trouble,omitempty"`  // turns in a row in which something failed
	Looked   bool        `json:"looked,omitempty"`   // the last command looked for something and found none
	Well     bool        `json:"well,omitempty"`     // the last call was a command, and it ended well
	Unmade   bool        `json:"unmade,omitempty"`   // the last edits of the subtask at hand all failed
	Changed  bool        `json:"changed,omitempty"`  // something was changed since the last subtask ended, or may have been
	Objected bool        `json:"objected,omitempty"` // its word that it is done was objected to
	Ran      []string    `json:"ran,omitempty"`      // commands that ended well since the last edit
	Erred    string      `json:"erred,omitempty"`    // the tool that failed last since something was asked
	Errors   []string    `json:"errors,omitempty"`   // what it said
	Guard    turn.Guard  `json:"guard,omitzero"`
	Loop     turn.Circle `json:"loop,omitzero"` // found, and not yet told

	Missed  map[string]int `json:"missed,omitempty"`  // failed calls before the plan, by tool
	Without string         `json:"without,omitempty"` // the tool to be done without, not yet told

	Revisions int    `json:"revisions,omitempty"` // that reflections asked for
	Replanned bool   `json:"replanned,omitempty"` // the revision that comes next follows from a replan decision, which has limits of its own
	Counts    Counts `json:"replans"`             // of replan decisions
	Told      string `json:"told,omitempty"`      // what the model is to be told with what it is asked next, or by itself

	Rounds int         `json:"rounds,omitempty"` // of verification
	Found  *findings   `json:"found,omitempty"`  // by the last one
	Green  bool        `json:"green,omitempty"`  // when it was asked for, the checks had passed and could show something of the work (Evidence.Shows)
	Idle   []string    `json:"idle,omitempty"`   // checks that show nothing of what is new (Evidence.idle)
	Names  []string    `json:"names,omitempty"`  // Evidence.names of the verification that is asked for
	Shows  []Criterion `json:"shows,omitempty"`  // what subtasks' reports showed, with their evidence

	Said    string   `json:"said,omitempty"`    // the model's last words to people
	Lessons []string `json:"lessons,omitempty"` // that the model draws from the run
}

// phase is what the model is at.
type phase struct {
	Asked string `json:"asked,omitempty"` // what it owes an answer to
	Under string `json:"under,omitempty"` // what it is in the middle of, where that is asked in between
	Want  string `json:"want,omitempty"`  // what is to be asked next, out of turn
	Posed int64  `json:"posed,omitempty"` // the message that asks for what is owed
}

// wants has the model asked next, with why; what it could not answer before is no
// matter of that.
func (s *state) wants(kind, why string) { s.Want, s.Why, s.Tried = kind, why, 0 }

// judged reports whether the verification that was asked for last is answered.
func (s *state) judged() bool { return s.Found != nil && s.Found.Seq > s.Posed }

// Judged reports whether the result is judged, and nothing was done since.
func (co *Coordinator) Judged() bool { return co.s.judged() }

// working reports whether the model is at a subtask.
func (p phase) working() bool { return p.Asked == askSubtask || p.Under == askSubtask }

// results are what became of subtasks. Their words are lines of their own.
type results map[string]SubtaskRecord

func (r results) MarshalJSON() ([]byte, error) {
	ends := map[string]string{}
	for id, end := range r {
		ends[id] = end.Status
	}
	return json.Marshal(ends)
}

func (r *results) UnmarshalJSON(raw []byte) error {
	var ends map[string]string
	err := json.Unmarshal(raw, &ends)
	*r = results{}
	for id, status := range ends {
		(*r)[id] = SubtaskRecord{ID: id, Status: status}
	}
	return err
}

// asked notes what the model owes an answer to.
func (co *Coordinator) asked(kind string) {
	s := &co.s
	kind, id, _ := strings.Cut(kind, "/")
	switch kind {
	case askHandover:
		s.Handover, s.phase = &handover{Budget: id, Aside: s.phase}, phase{Asked: kind, Posed: s.Seq}
		return
	case askOnward:
		if s.Handover != nil {
			s.phase, s.Handover = s.Handover.Aside, nil
		}
		return
	case askNudge: // it still owes what it owed
		if s.Loop.Stage == turn.StageNone && s.Told == "" {
			s.Without = ""
		}
		s.Loop, s.Told = turn.Circle{}, ""
		return
	case askState:
		s.Shown, s.Given = s.Seq, 0
		return
	case askReflect:
		s.Since = 0
	case askSubtask:
		if s.Current != id {
			s.Current, s.Unmade, s.Objected = id, false, false
		}
		s.Under = ""
	case askVerify:
		s.Green = id == "green"
	case askRemark:
		// What is done about it is judged, too, however often that was done before.
		s.Rounds = min(s.Rounds, max(co.settings.MaxRounds-1, 0))
	}
	if questions[kind].between && s.Asked == askSubtask {
		s.Under = s.Asked
	}
	s.For, s.Tried = s.Why, 0
	s.Posed, s.Erred, s.Errors, s.Loop = s.Seq, "", nil, turn.Circle{}
	if kind != askRemark {
		s.Told = "" // it was said with this
	}
	s.Asked, s.Want, s.Why = kind, "", ""
}

// stride is how many messages there are at most between two lines of the
// history that a resumed run can start from, and a few more: where long nothing
// is decided, it would read them all again.
const stride = 200

// recall reads what was known with the last decision.
func (co *Coordinator) recall() error {
	co.s.Results = results{}
	last, err := co.history.Latest(func(e *Entry) bool { return e.Checkpoint != nil })
	if err != nil || last == nil {
		return err
	}
	if err := json.Unmarshal(last.Checkpoint, &co.s); err != nil {
		return fmt.Errorf("the planning history's last state: %w", err)
	}
	if co.recorded = co.s.Seq; co.s.Want == askVerify {
		co.s.Want = "" // an older build asked once more so; now it is asked anew
	}
	wordless := maps.Clone(co.s.Results)
	_, err = co.history.Latest(func(e *Entry) bool {
		if e.Seq > last.Seq {
			return false
		}
		if p := e.plan(); p != nil && co.plan == nil {
			co.hold(*p)
		}
		if t := e.Subtask; t != nil {
			if r, is := wordless[t.ID]; is && r.Status == t.Status {
				delete(wordless, t.ID)
				co.s.Results[t.ID] = *t
			}
		}
		return co.plan != nil && len(wordless) == 0
	})
	return err
}

// resume goes back to the subtask at hand, where there is one.
func (co *Coordinator) resume() { co.s.Asked, co.s.Under, co.s.Tried = co.s.Under, "", 0 }

// enter puts lines into the history once the answer is whole, and behind them one
// that says how far the run is.
func (co *Coordinator) enter(entries ...Entry) {
	co.entries, co.decides = append(co.entries, entries...), true
}

// record writes what was entered, and what is known now, where that was decided or
// long was not written.
func (co *Coordinator) record() error {
	if co.decides || co.s.Seq-co.recorded >= stride {
		co.recorded = co.s.Seq
		raw, err := json.Marshal(co.s)
		if err != nil {
			return err
		}
		co.entries = append(co.entries, Entry{Checkpoint: raw})
	}
	if len(co.entries) == 0 {
		return nil
	}
	entries := co.entries
	for i := range entries {
		entries[i].Seq = co.s.Seq
	}
	co.entries, co.decides = nil, false
	_, err := co.history.Append(entries...)
	return err
}

// hold makes a plan the one in force.
func (co *Coordinator) hold(p Plan) { co.plan, co.order = &p, p.Order() }
