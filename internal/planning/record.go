package planning

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/i18n"
)

// The types of the lines of a planning history: those of plan §2.2 and inherit
// §10.2, then ours.
const (
	RecordPlan         = "plan"
	RecordRevision     = "revision"
	RecordReflection   = "reflection"
	RecordVerification = "verification"
	RecordReplan       = "replan_decision"

	RecordSubtask    = "subtask"
	RecordQuestion   = "question"
	RecordAnswer     = "answer"
	RecordAssumption = "assumption"
	RecordScan       = "scan"
	RecordCheckpoint = "checkpoint"
)

// Entry is a line of a planning history. It holds one payload, which says of
// what type it is; one that was read and is of a type that is not known here
// holds none.
type Entry struct {
	Type      string            // of the payload
	Timestamp contextstore.Time // zero where it cannot be read
	IssueID   string
	TaskUUID  string
	Seq       int64 // of the message whose answer it records; 0 where that is not on record

	Plan         *Plan
	Revision     *Revision
	Reflection   *Reflection
	Verification *Verification
	Replan       *ReplanRecord
	Subtask      *SubtaskRecord
	Question     *Question
	Answer       *Answer
	Assumption   *Assumption
	Scan         *ScanRecord
	Checkpoint   json.RawMessage // what the coordinator wants to find again, an object

	// Raw is the line as it was read; it is valid as long as the entry is.
	Raw json.RawMessage
}

// Revision is how a plan was changed, and what it is from then on.
type Revision struct {
	Reason  string   `json:"reason"`
	Changes []Change `json:"changes"`
	Plan    *Plan    `json:"updated_plan"`
}

// ReplanRecord is a wish of the model to plan anew and what was decided about
// it, before it is done.
type ReplanRecord struct {
	Phase      string         `json:"phase"` // in which the model was asked
	Decision   ReplanDecision `json:"llm_decision"`
	Confidence float64        `json:"confidence"`
	Executed   bool           `json:"executed"`        // something is done, be it what the model wished or not
	Override   string         `json:"override_reason"` // why it is not what the model wished, "" if it is
	Counts     Counts         `json:"replan_counts"`   // with this decision

	Do    string `json:"executed_type,omitempty"` // what is done
	Level int    `json:"executed_level,omitempty"`
}

// Doubtful reports whether something was done although the model was not sure of
// it, so that people are warned.
func (r *ReplanRecord) Doubtful() bool { return r.Executed && r.Do != DoAsk && r.Confidence < sure }

// Wished is what the model wished, where something else was done or nothing; ""
// where its wish was done.
func (r *ReplanRecord) Wished() string {
	if r.Override == "" {
		return ""
	}
	return r.Decision.Decision.Type
}

// Why is why something else was done than the model wished, for people.
func (r *ReplanRecord) Why(l i18n.Lang) string { return why(l, r.Override) }

// why tells overrides to people: each has a text, planning.override.NAME.
func why(l i18n.Lang, overrides string) string {
	var words []string
	for _, o := range strings.FieldsFunc(overrides, func(r rune) bool { return r == ',' || r == ' ' }) {
		words = append(words, l.T("planning.override."+o))
	}
	return strings.Join(words, l.T("planning.override.join"))
}

// Percent is how sure the model was.
func (r *ReplanRecord) Percent() int { return int(max(0, min(r.Confidence, 1))*100 + 0.5) }

// SubtaskRecord is how work on a subtask ended.
type SubtaskRecord struct {
	ID      string `json:"task_id"`
	Status  string `json:"status"` // done, failed, blocked or skipped
	Summary string `json:"summary"`

	Lessons []string `json:"lessons_learned,omitempty"` // of the completion that came with it
}

// ScanRecord is what a scan of the change found that the model is not asked about.
type ScanRecord struct {
	Placeholders []string `json:"placeholders_found"` // where, and the line
}

// Question is something that people were asked.
type Question struct {
	ID        string            `json:"question_id"`
	Questions []string          `json:"questions"`
	Options   []string          `json:"options,omitempty"`             // answers to pick from; others are good, too
	Assume    []string          `json:"assumptions_to_make,omitempty"` // what holds without an answer
	Confirm   bool              `json:"confirm,omitempty"`             // whether a replanning shall be done
	Call      string            `json:"call,omitempty"`                // that is made again with the answer: a server of tools asks (tool.CallID)
	AskedAt   contextstore.Time `json:"asked_at"`
	Deadline  contextstore.Time `json:"deadline"` // null where an answer is waited for without end, or the question is not put yet
}

// Answer is what became of a Question.
type Answer struct {
	ID       string `json:"question_id"`
	By       string `json:"by,omitempty"` // who answered
	Text     string `json:"answer"`
	TimedOut bool   `json:"timed_out,omitempty"` // nobody answered: what was to be assumed holds

	At contextstore.Time `json:"at,omitzero"` // of the first answer
}

// part is a payload that an entry can hold: its type, the field of the line in which
// it stands, "" where its fields are those of the line, and its place in the entry.
type part struct {
	kind, field string
	at          any // a pointer to it
	held        bool
}

func (e *Entry) parts() []part {
	return []part{
		{RecordPlan, "plan", &e.Plan, e.Plan != nil},
		{RecordRevision, "", &e.Revision, e.Revision != nil},
		{RecordReflection, "evaluation", &e.Reflection, e.Reflection != nil},
		{RecordVerification, "verification_result", &e.Verification, e.Verification != nil},
		{RecordReplan, "", &e.Replan, e.Replan != nil},
		{RecordSubtask, "", &e.Subtask, e.Subtask != nil},
		{RecordQuestion, "", &e.Question, e.Question != nil},
		{RecordAnswer, "", &e.Answer, e.Answer != nil},
		{RecordAssumption, "assumption", &e.Assumption, e.Assumption != nil},
		{RecordScan, "", &e.Scan, e.Scan != nil},
		{RecordCheckpoint, "state", &e.Checkpoint, e.Checkpoint != nil},
	}
}

// MarshalJSON writes the line: type, timestamp, issue_id, task_uuid, the fields
// of the payload, seq (plan §2.2).
func (e Entry) MarshalJSON() ([]byte, error) {
	held := slices.DeleteFunc(e.parts(), func(p part) bool { return !p.held })
	if len(held) != 1 || e.Type != "" && e.Type != held[0].kind {
		return nil, fmt.Errorf("an entry of the planning history, type %q, holds %d payloads, not its one", e.Type, len(held))
	}
	p := held[0]
	head, err := jsonl.Marshal(struct {
		Type      string            `json:"type"`
		Timestamp contextstore.Time `json:"timestamp"`
		IssueID   string            `json:"issue_id"`
		TaskUUID  string            `json:"task_uuid"`
	}{p.kind, e.Timestamp, e.IssueID, e.TaskUUID})
	if err != nil {
		return nil, err
	}
	if p.field != "" {
		p.at = map[string]any{p.field: p.at}
	}
	body, err := jsonl.Marshal(p.at)
	if err != nil {
		return nil, err
	}
	line := append(bytes.TrimSuffix(head, []byte("}")), ',')
	line = append(line, bytes.TrimSuffix(bytes.TrimPrefix(body, []byte("{")), []byte("}"))...)
	if e.Seq > 0 {
		line = strconv.AppendInt(append(line, `,"seq":`...), e.Seq, 10)
	}
	return append(line, '}'), nil
}

// fields are those of a line, as they stand there.
type fields map[string]json.RawMessage

// text is a field that is a text, or a number as other writers have it.
func (f fields) text(name string) (s string) {
	raw := f[name]
	if json.Unmarshal(raw, &s) != nil && len(raw) > 0 && raw[0] != '{' && raw[0] != '[' {
		s = string(raw)
	}
	return s
}

// DecodeEntry reads a line of a planning history, also one of another writer,
// who has fewer fields, or others of the same name, which are left out. What is no
// JSON object, has no type, or a payload that is none, is an error; then the entry
// holds the rest.
func DecodeEntry(line []byte) (Entry, error) {
	var f fields
	if err := json.Unmarshal(line, &f); err != nil {
		return Entry{}, err
	}
	e := Entry{Type: f.text("type"), IssueID: f.text("issue_id"), TaskUUID: f.text("task_uuid"), Raw: bytes.Clone(line)}
	if e.Type == "" {
		return e, errors.New("no type")
	}
	if raw := f["timestamp"]; raw != nil {
		_ = e.Timestamp.UnmarshalJSON(raw) // of a time that nobody can read, the rest counts
	}
	_ = json.Unmarshal(f["seq"], &e.Seq)
	f[""] = e.Raw
	for _, p := range e.parts() {
		if p.kind != e.Type {
			continue
		}
		raw := f[p.field]
		if p.field != "" && (len(raw) == 0 || raw[0] != '{') {
			return e, fmt.Errorf("payload of type %s: no object", e.Type)
		}
		if err := decodeLoosely(raw, p.at); err != nil {
			return e, fmt.Errorf("payload of type %s: %w", e.Type, err)
		}
	}
	if r := e.Reflection; r != nil && r.Judged.Status == "" { // the evaluation without what was around it
		_ = decodeLoosely(f["evaluation"], &r.Judged)
	}
	return e, nil
}

// plan is the plan that holds from this entry on, nil where it says none. A
// plan of nothing is none: a run that "revised" its plan away has done nothing.
func (e *Entry) plan() *Plan {
	p := e.Plan
	if e.Revision != nil {
		p = e.Revision.Plan
	}
	if p == nil || len(p.Decomposition.Subtasks) == 0 && len(p.Actions.Actions) == 0 {
		return nil
	}
	return p
}

// key tells entries of one answer apart, "" where none is on record. What a
// checkpoint holds is on record with it.
func (e *Entry) key() string {
	if e.Seq <= 0 || e.Checkpoint != nil {
		return ""
	}
	var about []string
	switch {
	case e.Replan != nil:
		about = []string{e.Replan.Phase, e.Replan.Do}
	case e.Subtask != nil:
		about = []string{e.Subtask.ID, e.Subtask.Status}
	case e.Question != nil:
		about = []string{e.Question.ID}
	case e.Answer != nil:
		about = []string{e.Answer.ID}
	case e.Assumption != nil:
		about = []string{e.Assumption.ID, e.Assumption.Value}
	}
	return fmt.Sprintf("%s %d %q", e.Type, e.Seq, about)
}
