package progress

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/planning"
	"toritsugi/internal/turn"
)

// Kind is what an entry of the history is about.
type Kind string

// The kinds of entries.
const (
	KindPhase        Kind = "phase"        // one begins; Name is its subtask
	KindSaid         Kind = "said"         // by the model, to people
	KindTool         Kind = "tool"         // a call that ended
	KindError        Kind = "error"        // what a failed call said
	KindUnderstood   Kind = "understood"   // the task; Name is its type
	KindCollected    Kind = "collected"    // before the plan, by N calls
	KindRevision     Kind = "revision"     // of the plan, in N changes
	KindReplan       Kind = "replan"       // decision; Name is what is done, N its level
	KindVerification Kind = "verification" // by the model
	KindCheck        Kind = "check"        // Name is the command
	KindAssumption   Kind = "assumption"
	KindSummary      Kind = "summary" // of a subtask; Name is its id, Result how it ended
	KindQuestion     Kind = "question"
	KindAnswer       Kind = "answer"
)

// The results of what can go wrong.
const (
	OK     = "ok"
	Failed = "failed"
)

// Entry is a line of the history.
type Entry struct {
	At     time.Time
	Kind   Kind
	Name   string
	Result string // OK, Failed, or the status of a subtask
	Text   string
	N      int

	Parts []string // of a call: of which lines of Text it is; N calls in a row

	// Of a decision: what was wished and why it is not what is done; whether the
	// model was not sure of it.
	Wished, Why string
	Doubt       bool
}

// History is what happened last in a run.
type History struct {
	Entries []Entry // oldest first
	Dropped int64   // how many came before them and are known of
	More    bool    // there were others before those, which nobody counted
}

// How long the texts of an entry may be, in characters.
const (
	maxSaid = 200
	maxArgs = 80
	maxName = 60
)

// Notify says what of the time before the plan stands in the history.
type Notify struct{ Start, Understanding, Collection, Assumption bool }

// Tracker keeps the history of a run: it is told the messages of the run, the
// lines of its planning history and its checks as they are written. Any number of
// goroutines may use it.
type Tracker struct {
	max    int
	notify Notify
	clean  func(string) string
	lang   i18n.Lang

	mu     sync.Mutex
	h      History
	stream int                              // characters of the answer that is being written
	calls  map[string]contextstore.ToolCall // of the last answer
	before int                              // calls since the plan was asked for; -1 where nobody saw that
}

// NewTracker returns a tracker that keeps at most entries entries, for readers of a
// language; clean masks what must not be seen.
func NewTracker(entries int, n Notify, clean func(string) string, l i18n.Lang) *Tracker {
	return &Tracker{max: max(entries, 1), notify: n, clean: clean, lang: l, before: -1}
}

// History is what happened last.
func (t *Tracker) History() History {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.h
	h.Entries = slices.Clone(h.Entries)
	return h
}

// Message takes a message of the run that is on disk.
func (t *Tracker) Message(m contextstore.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.Role == llm.RoleAssistant {
		t.stream = 0
	}
	for _, e := range t.ofMessage(m) {
		t.add(e)
	}
}

// Stream takes a part of the answer that the model is writing.
func (t *Tracker) Stream(delta string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream += utf8.RuneCountInString(delta)
}

// Streamed is how many characters of an answer have come that is not on disk yet.
func (t *Tracker) Streamed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stream
}

// Recorded takes a line of the planning history.
func (t *Tracker) Recorded(e planning.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.ofEntry(e) {
		t.add(e)
	}
}

// Checked takes a check that was run at a time.
func (t *Tracker) Checked(c contextstore.CheckRun, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(t.ofCheck(c, at))
}

// Past is what is read again of a run that is taken up, each oldest first.
type Past struct {
	Messages func(func(contextstore.Message)) error // the last of them
	Entries  []planning.Entry
	Checks   []contextstore.CheckRun
	More     bool // there were messages before those
}

// Resume makes the past of a run the beginning of its history. What it reads is
// held as entries, and no more of them than are kept of each kind of source.
func (t *Tracker) Resume(p *Past) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Entry
	recorded := map[int64]time.Time{} // when the last line of the planning history on a message was written
	for _, e := range p.Entries {
		recorded[e.Seq] = e.Timestamp.Time
	}
	var answer int64
	err := p.Messages(func(m contextstore.Message) {
		if m.Role == llm.RoleAssistant {
			answer = m.Seq
		}
		for _, e := range t.ofMessage(m) {
			if e.Kind == KindPhase { // which a result brought, follows from what was recorded of the answer
				for _, at := range []time.Time{recorded[answer], recorded[m.Seq]} {
					if m.Role == llm.RoleTool && !at.Before(e.At) {
						e.At = at.Add(time.Microsecond)
					}
				}
			}
			all = append(all, e)
		}
	})
	for _, e := range p.Entries {
		all = append(all, t.ofEntry(e)...)
	}
	for _, c := range p.Checks {
		if !c.Setup {
			all = append(all, t.ofCheck(c, c.Timestamp.Time))
		}
	}
	// What is recorded of an answer has its time, or a later one.
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Compare(a.At.UnixMicro(), b.At.UnixMicro()) })
	t.h.More = p.More
	for _, e := range all {
		t.add(e)
	}
	return err
}

// add appends an entry. A message can be older than the line of the planning
// history that it follows from: times never go back. The caller holds mu.
func (t *Tracker) add(e Entry) {
	last := &Entry{}
	if n := len(t.h.Entries); n > 0 {
		last = &t.h.Entries[n-1]
	}
	if e.At.Before(last.At) {
		e.At = last.At
	}
	switch e.Kind {
	case KindPhase:
		if e.Result == planning.PhasePlanning && t.before < 0 {
			t.before = 0
			if !t.notify.Start {
				return
			}
		}
		if last.Kind == KindPhase && last.Name == e.Name && last.Result == e.Result {
			return // asked once more
		}
	case KindTool:
		if t.before >= 0 {
			t.before++
		}
		if last.Kind == KindTool && last.Result == OK && e.Result == OK && last.Name == e.Name && last.Text == e.Text {
			last.N = max(last.N, 1) + 1
			for _, p := range e.Parts {
				if len(last.Parts) < maxParts && !slices.Contains(last.Parts, p) {
					last.Parts = append(last.Parts, p)
				}
			}
			return
		}
	case KindCollected:
		if e.N = t.before; e.N <= 0 {
			return
		}
	case KindSummary:
		if last.Kind == KindSaid && last.Text == e.Text {
			*last = e // it says the same, and more
			return
		}
	}
	if len(t.h.Entries) >= t.max {
		gone := len(t.h.Entries) - t.max + 1
		t.h.Entries = slices.Delete(t.h.Entries, 0, gone)
		t.h.Dropped += int64(gone)
	}
	t.h.Entries = append(t.h.Entries, e)
}

// ofMessage is what a message says to people. The caller holds mu.
func (t *Tracker) ofMessage(m contextstore.Message) (all []Entry) {
	at := m.Timestamp.Time
	switch m.Role {
	case llm.RoleAssistant:
		t.calls = map[string]contextstore.ToolCall{}
		for _, c := range m.ToolCalls {
			t.calls[string(c.ID)] = c
		}
		if text := t.text(turn.Words(m.Content), maxSaid); text != "" {
			all = append(all, Entry{At: at, Kind: KindSaid, Text: text})
		}
		for _, c := range m.ToolCalls {
			if text := t.text(planning.Comment(c), maxSaid); text != "" {
				all = append(all, Entry{At: at, Kind: KindSaid, Text: text})
			}
		}
	case llm.RoleTool:
		if planning.IsTool(m.ToolName) {
			return t.begins(m) // what came of it is a line of the planning history
		}
		on, part := brief(t.calls[string(m.ToolCallID)].Arguments)
		e := Entry{At: at, Kind: KindTool, Name: t.text(m.ToolName, maxName), Result: OK, Text: t.text(on, maxArgs)}
		if part != "" {
			e.Parts = []string{part}
		}
		all = append(all, e)
		if result, _ := m.Result(); m.Failed {
			all[0].Result = Failed
			all = append(all, Entry{At: at, Kind: KindError, Name: e.Name, Text: t.text(result, maxSaid)})
		}
		all = append(all, t.begins(m)...)
	case llm.RoleUser:
		all = t.begins(m)
	}
	return all
}

// begins is the phase that a message begins, if any. The caller holds mu.
func (t *Tracker) begins(m contextstore.Message) []Entry {
	phase, id := planning.PhaseOf(m.Kind)
	if phase == "" {
		return nil
	}
	return []Entry{{At: m.Timestamp.Time, Kind: KindPhase, Name: t.text(id, maxName), Result: phase}}
}

// ofEntry is what a line of the planning history says to people. The caller
// holds mu.
func (t *Tracker) ofEntry(e planning.Entry) (all []Entry) {
	add := func(x Entry) { x.At = e.Timestamp.Time; all = append(all, x) }
	switch {
	case e.Plan != nil:
		g := e.Plan.Goal
		if t.notify.Collection {
			add(Entry{Kind: KindCollected})
		}
		if t.notify.Understanding {
			add(Entry{Kind: KindUnderstood, Name: t.text(g.TaskType, maxName), Text: t.text(g.MainObjective, maxSaid)})
		}
	case e.Revision != nil:
		add(Entry{Kind: KindRevision, N: len(e.Revision.Changes), Text: t.text(e.Revision.Reason, maxSaid)})
	case e.Replan != nil:
		r := e.Replan
		x := Entry{Kind: KindReplan, Name: t.text(planning.Doing(r.Do), maxName), N: r.Level, Text: t.text(r.Decision.Decision.Reasoning, maxSaid), Why: r.Why(t.lang), Doubt: r.Doubtful()}
		if x.Why != "" {
			x.Wished = t.text(planning.Doing(r.Wished()), maxName)
		}
		add(x)
	case e.Verification != nil:
		v := Entry{Kind: KindVerification, Result: OK}
		if !e.Verification.Passed {
			v.Result, v.Text = Failed, t.text(strings.Join(e.Verification.Issues, "; "), maxSaid)
		}
		add(v)
	case e.Assumption != nil && t.notify.Assumption:
		add(Entry{Kind: KindAssumption, Text: t.text(e.Assumption.Value, maxSaid)})
	case e.Subtask != nil:
		add(Entry{Kind: KindSummary, Name: t.text(e.Subtask.ID, maxName), Result: e.Subtask.Status, Text: t.text(e.Subtask.Summary, maxSaid)})
	case e.Question != nil:
		add(Entry{Kind: KindQuestion, Text: t.text(strings.Join(e.Question.Questions, " "), maxSaid)})
	case e.Answer != nil:
		add(Entry{Kind: KindAnswer, Name: t.text(e.Answer.By, maxName), Text: t.text(e.Answer.Text, maxSaid)})
	}
	return all
}

func (t *Tracker) ofCheck(c contextstore.CheckRun, at time.Time) Entry {
	e := Entry{At: at, Kind: KindCheck, Name: t.text(c.Command, maxName), Result: OK, N: c.Round}
	if !c.Passed() {
		e.Result = Failed
	}
	return e
}

// text is a text of others as an entry holds it: masked before it is cut, so that
// no piece of a secret is left.
func (t *Tracker) text(s string, n int) string {
	if s = t.lang.Translate(t.clean(s)); len(s) > maxRead {
		s = strings.ToValidUTF8(s[:maxRead], "")
	}
	return Cut(OneLine(s), n)
}

// maxRead is how much of a masked text is looked at, in bytes: what is shown of it
// is far less.
const maxRead = 4 << 10

// maxParts is how many ranges of lines one line of the history names.
const maxParts = 5

// brief is what tells most of the arguments of a call, and of which lines it is.
func brief(arguments string) (on, part string) {
	var args map[string]any
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return arguments, ""
	}
	first := func(names ...string) string {
		for _, k := range names {
			if s, ok := args[k].(string); ok && strings.TrimSpace(s) != "" {
				return s
			}
		}
		return ""
	}
	on = strings.Join(strings.Fields(strings.Join([]string{first("command", "cmd"), strings.TrimPrefix(first("path", "file_path", "file", "filename"), "/workspace/"), first("glob")}, " ")), " ")
	if pattern := first("pattern", "query", "answer"); pattern != "" {
		on = strings.TrimPrefix(on+": "+pattern, ": ")
	}
	if args["start_line"] != nil || args["end_line"] != nil {
		part = number(args["start_line"]) + "-" + number(args["end_line"])
	}
	if on == "" && len(args) > 0 {
		return arguments, ""
	}
	return on, part
}

// number is one as models write it, also as text.
func number(v any) string {
	switch n := v.(type) {
	case float64:
		return strconv.FormatInt(int64(n), 10)
	case string:
		if _, err := strconv.Atoi(n); err == nil {
			return n
		}
	}
	return ""
}
