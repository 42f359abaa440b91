package planning

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/llm"
	"toritsugi/internal/loosejson"
)

// Comment is what a call of planning's says to people, "" for nothing.
func Comment(c contextstore.ToolCall) string {
	var f fields
	if !IsTool(c.Name) || json.Unmarshal([]byte(c.Arguments), &f) != nil {
		return ""
	}
	return f.text("comment")
}

// maxObjects is how many objects of an answer's text are looked at.
const maxObjects = 20

// Read makes calls of what an answer says as text in the form of plan §3: an
// object, in prose or in a fence, that names its phase or has its fields.
func (co *Coordinator) Read(r *llm.Reply) {
	m := &r.Message
	if r.FinishReason == llm.FinishLength || co.s.Handover != nil {
		return
	}
	rest, calls := said(m.Content)
	if len(calls) == 0 && len(m.ToolCalls) == 0 && co.s.Asked == askPlan {
		rest, calls = m.Content, listed(m.Content)
	}
	if len(calls) == 0 {
		return
	}
	m.Content = rest
	for i, c := range calls {
		c.ID = fmt.Sprintf("said_%d_%d", co.s.Seq, i)
		m.ToolCalls = append(m.ToolCalls, c)
	}
	r.FinishReason = llm.FinishToolCalls
}

// numbered finds an entry of a numbered list.
var numbered = lazyregexp.New(`(?m)^ {0,3}(?:\*\*)?(\d+)[.)]\s+(.+)$`)

// listed is the plan that words give as a numbered list, nil where there is none, or
// one of questions.
func listed(words string) []llm.ToolCall {
	var steps []string
	for i, m := range numbered().FindAllStringSubmatch(words, -1) {
		step := strings.TrimSpace(strings.ReplaceAll(m[2], "**", ""))
		if m[1] != strconv.Itoa(i+1) || strings.HasSuffix(step, "?") || strings.HasSuffix(step, "？") {
			return nil
		}
		steps = append(steps, step)
	}
	if len(steps) < 2 {
		return nil
	}
	args, _ := json.Marshal(map[string]any{"goal": brief(strings.Join(steps, "; "), maxIssue), "subtasks": steps}) // texts always encode
	return []llm.ToolCall{{Name: ToolPlan, Arguments: string(args)}}
}

// said are the calls that a text makes without being one. rest is what else it says.
func said(text string) (rest string, calls []llm.ToolCall) {
	var prose strings.Builder
	from := strings.LastIndex(text, "</think>") + 1 // thoughts are no answer
	kept := 0
	for range maxObjects {
		i := strings.IndexByte(text[from:], '{')
		if i < 0 {
			break
		}
		at := from + i
		raw, end := objectAt(text, at)
		from = end
		found := callsOf(raw, 0)
		if len(found) == 0 {
			continue
		}
		calls = append(calls, found...)
		before := strings.TrimRight(text[kept:at], " \t\r\n")
		prose.WriteString(strings.TrimSuffix(strings.TrimSuffix(before, "```json"), "```"))
		kept = end + len(text[end:]) - len(strings.TrimPrefix(strings.TrimLeft(text[end:], " \t\r\n"), "```"))
	}
	if len(calls) == 0 {
		return text, nil
	}
	return strings.TrimSpace(prose.String() + text[kept:]), calls
}

// objectAt is the JSON object that begins at a place, mended where that can be done
// without a loss, and where it ends; nil for none.
func objectAt(text string, at int) (raw json.RawMessage, end int) {
	d := json.NewDecoder(strings.NewReader(text[at:]))
	if d.Decode(&raw) == nil {
		return raw, at + int(d.InputOffset())
	}
	end = at + 1
	for _, stop := range []string{"\n```", "\n\n", ""} {
		n := len(text)
		if i := strings.Index(text[at:], stop); stop != "" && i >= 0 {
			n = at + i
		} else if stop != "" {
			continue
		}
		if fixed, whole, ok := loosejson.Repair(text[at:n]); ok && whole && strings.HasPrefix(fixed, "{") {
			return json.RawMessage(fixed), n
		}
	}
	return nil, end
}

// forms are the objects of plan §3 and the calls that they stand for: by the phase that they name,
// or fields that they have together.
var forms = []struct {
	phase, tool string
	fields      []string
}{
	{PhasePlanning, ToolPlan, []string{"task_decomposition", "subtasks"}},
	{PhaseVerification, ToolVerify, []string{"verification_passed"}},
	{PhaseReplan, ToolReplan, []string{"replan_decision"}},
	{PhaseReflection, ToolReflect, []string{"reflection", "plan_revision", "changes"}},
	{PhaseCompletion, ToolReport, []string{"done comment", "done summary"}},
	{PhaseExecution, ToolReport, []string{"task_id status", "status summary"}},
}

// callsOf are the calls that an object of plan §3 stands for, also where it is
// wrapped in another one.
func callsOf(raw json.RawMessage, depth int) []llm.ToolCall {
	var f fields
	if json.Unmarshal(raw, &f) != nil || len(f) == 0 || f["call_tool"] != nil {
		return nil
	}
	if name := f.text("name"); IsTool(name) && len(f["arguments"]) > 0 { // the call itself
		args := f.text("arguments")
		if args == "" {
			args = string(f["arguments"])
		}
		return []llm.ToolCall{{Name: name, Arguments: args}}
	}
	phase := strings.ToLower(f.text("phase"))
	for _, form := range forms {
		if phase == form.phase || slices.ContainsFunc(form.fields, func(names string) bool {
			return !slices.ContainsFunc(strings.Fields(names), func(name string) bool { return f[name] == nil })
		}) {
			return []llm.ToolCall{{Name: form.tool, Arguments: string(raw)}}
		}
	}
	for _, inner := range f {
		if len(f) == 1 && depth == 0 {
			return callsOf(inner, 1)
		}
	}
	return nil
}

// report is what report_subtask takes: the result of a subtask, or the word that
// everything is done (plan §3, Completion).
type report struct {
	SubtaskRecord
	Comment  string      `json:"comment"`
	Criteria []Criterion `json:"criteria"`
	Over     bool        `json:"-"` // it is the word that everything is done
	Failed   []string    `json:"-"` // subtasks that this names as failed
}

// ends are the words for how a subtask ended.
var ends = map[string]string{Done: Done, "completed": Done, "complete": Done, "success": Done, "finished": Done, "完了": Done,
	Failed: Failed, "failure": Failed, "error": Failed, "失敗": Failed, Blocked: Blocked, Skipped: Skipped}

// readReport reads a report, in either form.
func readReport(call contextstore.ToolCall) (r report, err error) {
	var c Completion
	args, _, problem := readers()[ToolReport].Read(call.Arguments)
	if args == nil {
		return r, refusal("%s", problem)
	}
	_ = decodeLoosely(args, &r)
	if _ = decodeLoosely(json.RawMessage(call.Arguments), &c); r.Status == "" && c.Done {
		r.Over, r.Status, r.Summary = true, Done, c.words()
		if c.Summary != nil {
			r.Failed, r.Lessons = c.Summary.TasksFailed, append(r.Lessons, c.Summary.Lessons...)
		}
		return r, nil
	}
	if r.Status = ends[strings.ToLower(strings.TrimSpace(r.Status))]; r.Status == "" {
		return r, refusal("%s", cmp.Or(problem, "status: expected done, failed, blocked or skipped"))
	}
	r.Summary = cmp.Or(r.Summary, r.Comment)
	return r, nil
}

// readPlan reads a plan.
func readPlan(c contextstore.ToolCall, told bool) (Plan, error) {
	p, err := read[Plan](c, told)
	for i := range p.Decomposition.Subtasks {
		if t := &p.Decomposition.Subtasks[i]; strings.TrimSpace(t.ID) == "" {
			t.ID = p.freeID(fmt.Sprintf("task_%d", i+1), nil)
		}
	}
	g, _ := read[struct {
		Goal fields `json:"goal_understanding"`
	}](c, true)
	p.Phase, p.Fallback, p.Goal.Confidence = PhasePlanning, false, nil
	if n, err := strconv.ParseFloat(g.Goal.text("understanding_confidence"), 64); err == nil { // of a word nothing is made
		p.Goal.Confidence = &n
	}
	return p, err
}

// decodeLoosely is json.Unmarshal that leaves out a field of another type.
func decodeLoosely(raw json.RawMessage, v any) error {
	err := json.Unmarshal(raw, v)
	if errors.As(err, new(*json.UnmarshalTypeError)) {
		return nil
	}
	return err
}
