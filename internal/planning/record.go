package planning

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"toritsugi/internal/contextstore"
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

	Do    Do  `json:"executed_type,omitempty"` // what is done
	Level int `json:"executed_level,omitempty"`
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
func (r *ReplanRecord) Why(l i18n.Lang) string {
	var all []Override
	for word := range strings.SplitSeq(r.Override, ", ") {
		if word != "" {
			all = append(all, Override(word))
		}
	}
	return why(l, all)
}

// Percent is how sure the model was.
func (r *ReplanRecord) Percent() int { return int(max(0, min(r.Confidence, 1))*100 + 0.5) }

// SubtaskRecord is how far a subtask is.
type SubtaskRecord struct {
	ID      string `json:"task_id"`
	Status  string `json:"status"` // started, or that of a SubtaskResult
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
	Assume    []string          `json:"assumptions_to_make,omitempty"` // what holds without an answer
	Confirm   bool              `json:"confirm,omitempty"`             // whether a replanning shall be done
	AskedAt   contextstore.Time `json:"asked_at"`
	Deadline  contextstore.Time `json:"deadline"` // null where an answer is waited for without end, or the question is not put yet
}

// Answer is what became of a Question.
type Answer struct {
	ID       string `json:"question_id"`
	By       string `json:"by,omitempty"` // who answered
	Text     string `json:"answer"`
	TimedOut bool   `json:"timed_out,omitempty"` // nobody answered: what was to be assumed holds
}

// assumed is Assumption as a payload.
type assumed struct {
	Assumption *Assumption `json:"assumption"`
}

// payload is the one thing that e holds, and its type.
func (e *Entry) payload() (kind string, v any, err error) {
	n := 0
	set := func(k string, p any, there bool) {
		if there {
			kind, v = k, p
			n++
		}
	}
	set(RecordPlan, struct {
		Plan *Plan `json:"plan"`
	}{e.Plan}, e.Plan != nil)
	set(RecordRevision, e.Revision, e.Revision != nil)
	set(RecordReflection, struct {
		Evaluation *Reflection `json:"evaluation"`
	}{e.Reflection}, e.Reflection != nil)
	set(RecordVerification, struct {
		Result *Verification `json:"verification_result"`
	}{e.Verification}, e.Verification != nil)
	set(RecordReplan, e.Replan, e.Replan != nil)
	set(RecordSubtask, e.Subtask, e.Subtask != nil)
	set(RecordQuestion, e.Question, e.Question != nil)
	set(RecordAnswer, e.Answer, e.Answer != nil)
	set(RecordAssumption, assumed{e.Assumption}, e.Assumption != nil)
	set(RecordScan, e.Scan, e.Scan != nil)
	set(RecordCheckpoint, struct {
		State json.RawMessage `json:"state"`
	}{e.Checkpoint}, e.Checkpoint != nil)
	if n != 1 {
		return "", nil, fmt.Errorf("an entry of the planning history holds %d payloads, not one", n)
	}
	if e.Type != "" && e.Type != kind {
		return "", nil, fmt.Errorf("an entry of type %s holds a payload of type %s", e.Type, kind)
	}
	return kind, v, nil
}

// MarshalJSON writes the line: type, timestamp, issue_id, task_uuid, the fields
// of the payload, seq (plan §2.2).
func (e Entry) MarshalJSON() ([]byte, error) {
	kind, v, err := e.payload()
	if err != nil {
		return nil, err
	}
	head, err := marshal(struct {
		Type      string            `json:"type"`
		Timestamp contextstore.Time `json:"timestamp"`
		IssueID   string            `json:"issue_id"`
		TaskUUID  string            `json:"task_uuid"`
	}{kind, e.Timestamp, e.IssueID, e.TaskUUID})
	if err != nil {
		return nil, err
	}
	body, err := marshal(v)
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

// marshal is json.Marshal with <, > and & as they are (store-v2 §9.1).
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
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
// who has fewer fields. What is no JSON object or has no type is an error, and
// so is a payload that is none of its type: then the entry holds the rest.
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
	if raw := f["seq"]; raw != nil {
		_ = json.Unmarshal(raw, &e.Seq)
	}
	if err := e.read(f); err != nil {
		return e, fmt.Errorf("payload of type %s: %w", e.Type, err)
	}
	return e, nil
}

// read takes the payload from the fields of a line.
func (e *Entry) read(f fields) (err error) {
	whole := e.Raw
	switch e.Type {
	case RecordPlan:
		e.Plan, err = decode[Plan](f["plan"])
	case RecordRevision:
		e.Revision = &Revision{Reason: f.text("reason")}
		_ = json.Unmarshal(f["changes"], &e.Revision.Changes) // for people; the plan is what counts
		if raw := f["updated_plan"]; len(raw) > 0 && string(raw) != "null" {
			e.Revision.Plan, err = decode[Plan](raw)
		}
	case RecordReflection:
		e.Reflection, err = decode[Reflection](f["evaluation"])
		if err == nil && e.Reflection.Judged.Status == "" { // the evaluation without what was around it
			_ = json.Unmarshal(f["evaluation"], &e.Reflection.Judged)
		}
	case RecordVerification:
		e.Verification, err = decode[Verification](f["verification_result"])
	case RecordReplan:
		e.Replan, err = readReplan(f)
	case RecordSubtask:
		e.Subtask, err = decode[SubtaskRecord](whole)
	case RecordQuestion:
		e.Question, err = decode[Question](whole)
	case RecordAnswer:
		e.Answer, err = decode[Answer](whole)
	case RecordAssumption:
		e.Assumption, err = decode[Assumption](f["assumption"])
	case RecordScan:
		e.Scan, err = decode[ScanRecord](whole)
	case RecordCheckpoint:
		e.Checkpoint = f["state"]
	}
	return err
}

// readReplan reads each field for itself: what another writer counted is not
// needed to know what was decided.
func readReplan(f fields) (*ReplanRecord, error) {
	d, err := decode[ReplanDecision](f["llm_decision"])
	if err != nil {
		return nil, err
	}
	if d.Decision.Type == "" {
		_ = json.Unmarshal(f["llm_decision"], &d.Decision)
	}
	r := &ReplanRecord{Phase: f.text("phase"), Decision: *d, Override: f.text("override_reason"), Do: Do(f.text("executed_type"))}
	for name, v := range map[string]any{"confidence": &r.Confidence, "executed": &r.Executed, "replan_counts": &r.Counts, "executed_level": &r.Level} {
		_ = json.Unmarshal(f[name], v)
	}
	return r, nil
}

func decode[T any](raw json.RawMessage) (*T, error) {
	v := new(T)
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("no object")
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, err
	}
	return v, nil
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

// key tells entries of one answer apart; 0 where no answer is on record.
func (e *Entry) key() uint64 {
	if e.Seq <= 0 {
		return 0
	}
	h := fnv.New64a()
	for _, s := range append([]string{e.Type, strconv.FormatInt(e.Seq, 10)}, e.about()...) {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	return max(h.Sum64(), 1)
}

// about is what entries of one type, of which one answer may give several, differ in.
func (e *Entry) about() []string {
	switch {
	case e.Replan != nil:
		return []string{e.Replan.Phase, string(e.Replan.Do)}
	case e.Checkpoint != nil:
		return asksOf(e.Checkpoint)
	case e.Subtask != nil:
		return []string{e.Subtask.ID, e.Subtask.Status}
	case e.Question != nil:
		return []string{e.Question.ID}
	case e.Answer != nil:
		return []string{e.Answer.ID}
	case e.Assumption != nil:
		return []string{e.Assumption.ID, e.Assumption.Value}
	}
	return nil
}
