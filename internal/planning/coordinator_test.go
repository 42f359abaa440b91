package planning

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
)

// answer is what the scripted model says: text, calls, or both. A call is what the
// tool do does, or TOOL:WHAT; it fails where that begins with "!", and gives it back.
type answer struct {
	text  string
	calls []string
}

func say(text string) answer                    { return answer{text: text} }
func do(calls ...string) answer                 { return answer{calls: calls} }
func sayDo(text string, calls ...string) answer { return answer{text, calls} }

// model answers by what is on record alone: the nth answer is the nth of its list.
type model struct {
	answers []answer
	msgs    []llm.Message
	sent    [][]llm.Message
	written bool // what could be a call of planning's is text

	requests *[]string  // as they are sent
	given    func() int // how many answers there are on record
}

func (m *model) Append(x llm.Message) { m.msgs = append(m.msgs, x) }
func (m *model) Reset()               { m.msgs = nil }
func (m *model) Serialized() []byte   { b, _ := json.Marshal(m.msgs); return b }
func (m *model) Send(_ context.Context, _ func(string)) (*llm.Reply, error) {
	n := m.given()
	*m.requests = append(*m.requests, string(m.Serialized()))
	m.sent = append(m.sent, append([]llm.Message(nil), m.msgs...))
	if n >= len(m.answers) {
		return nil, &llm.Error{Kind: llm.KindScriptEnded}
	}
	a := m.answers[n]
	r := &llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Content: a.text}, FinishReason: llm.FinishStop, Usage: &llm.Usage{PromptTokens: 7, CompletionTokens: 3, TotalTokens: 10}}
	if rest, calls := said(a.text); !m.written && len(calls) > 0 {
		r.Message.Content, r.FinishReason = rest, llm.FinishToolCalls
		for i, c := range calls {
			c.ID = fmt.Sprintf("p%d_%d", n, i)
			r.Message.ToolCalls = append(r.Message.ToolCalls, c)
		}
	}
	for i, c := range a.calls {
		call := llm.ToolCall{ID: fmt.Sprintf("c%d_%d", n, i), Name: "do", Arguments: fmt.Sprintf(`{"n":%q}`, c)}
		if name, what, named := strings.Cut(c, ":"); named {
			call.Name, call.Arguments = name, fmt.Sprintf(`{"n":%q,"command":%q}`, what, strings.TrimPrefix(what, "!"))
		}
		r.Message.ToolCalls = append(r.Message.ToolCalls, call)
		r.FinishReason = llm.FinishToolCalls
	}
	return r, nil
}

// hands do what a call says. They only read, so that a call that was cut short is
// made again.
type hands struct{}

func (hands) ReadOnly(name string) bool { return name != "edit_file" }
func (hands) Waits(name string) bool    { return IsTool(name) }
func (hands) Own(name string) string    { return name }
func (hands) Call(_ context.Context, name, args string) (tool.Result, error) {
	if IsTool(name) {
		return tool.Result{}, nil
	}
	var a struct{ N string }
	err := json.Unmarshal([]byte(args), &a)
	return tool.Result{Text: "did " + a.N, IsError: strings.HasPrefix(a.N, "!")}, err
}

// case of a run that is led.
type scene struct {
	settings func(*Settings)
	budget   turn.Budget
	answers  []answer
	red      int            // how often the checks fail when the work seems done
	comments map[int]string // what people say before the nth answer, from 0
	complain map[int]string // what people say after the nth answer, when all seems done
	object   map[int]string // and when it is about to be handed over
	people   []string       // what they answer to each question, "" for nothing in time; one more is never answered
	asks     string         // kinds of what the model was asked, in order
	lines    string         // of the history, in short
	end      string         // "passed", "open: …", or the error
	words    string         // that are said to people; "" is not looked at
	prompts  []string       // what the model was told, somewhere
	scan     []string       // placeholders that it finds
	checks   []CheckEvidence
	added    []string // tests
	window   int      // tokens; 0 is plenty
}

// runs numbers the tasks, of which one has one run at a time.
var runs atomic.Int64

var errCut = errors.New("cut")

// ledgerOf writes one message at a time where it is to be cut.
type cutting struct {
	*contextstore.Context
	early *bool // the process dies before anybody heeds the message
}

func (c cutting) Append(m ...contextstore.Message) ([]contextstore.Message, error) {
	if c.early == nil {
		return c.Context.Append(m...)
	}
	w, err := c.Context.Append(m[0])
	if err == nil && *c.early {
		err = errCut
	}
	return w, err
}

type stage struct {
	t     *testing.T
	sc    scene
	store *contextstore.Store
	id    string
	m     *model
	log   bytes.Buffer
	early *bool           // nil for a run that is not cut
	asked map[string]bool // questions that wait for an answer

	written bool // by the model, what could be calls

	requests []string
	watch    bool     // what people see where nobody works on the plan is kept
	seen     []string // that

	c    *contextstore.Context
	h    *History
	loop *turn.Loop
	lead *Coordinator
}

// newStore is a ledger for runs of a test.
func newStore(t *testing.T) *contextstore.Store {
	t.Helper()
	store, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Now: clock, Redact: func(s string) string { return s }})
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func newStage(t *testing.T, store *contextstore.Store, sc scene) *stage {
	t.Helper()
	id, err := store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: fmt.Sprint(runs.Add(1))}})
	must(t, err)
	return &stage{t: t, sc: sc, store: store, id: id}
}

func defaults() Settings {
	r := defaultLimits()
	r.MaxClarifications, r.ConfirmLow = 0, false
	return Settings{MaxSubtasks: 10, Reflect: true, ReflectOnError: true, ReflectionInterval: 3, MaxRevisions: 2, Verify: true, MaxRounds: 2, Replan: r,
		Pre: PrePlanning{Enabled: true, Sure: 0.7, Collect: true, MaxRetries: 2, Assume: true, Likely: 0.5}}
}

// open takes the run up as a process does.
func (s *stage) open() {
	s.t.Helper()
	var err error
	if s.c == nil {
		s.c, _, err = s.store.Claim(s.t.Context(), s.id)
		must(s.t, err)
		s.t.Cleanup(func() { _ = s.c.Close() })
	}
	if s.c.LastSeq() == 0 {
		_, err := s.c.Append(contextstore.Message{Role: "system", Content: "S"}, contextstore.Message{Role: "user", Content: "Do it."})
		must(s.t, err)
	}
	s.h, _, err = OpenHistory(s.c, HistoryOptions{File: HistoryFile("", "", s.id), Now: clock, Warn: func(d error) { s.t.Error(d) }})
	must(s.t, err)
	s.m = &model{answers: s.sc.answers, written: s.written, requests: &s.requests, given: s.answered}
	w, err := memory.Open(s.c, s.m, memory.Policy{Limit: cmp.Or(s.sc.window, 10_000_000)})
	must(s.t, err)
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	set := defaults()
	if s.sc.people != nil {
		set.Ask, set.Replan.ConfirmLow = s.people, true
		set.Replan.MaxClarifications = 2
	}
	if s.sc.settings != nil {
		s.sc.settings(&set)
	}
	set.ReadOnly = hands{}.ReadOnly
	s.lead, err = Open(s.c, s.h, people{s: s}, Prompts{MaxSubtasks: set.MaxSubtasks, ReflectionInterval: set.ReflectionInterval}, set, log)
	must(s.t, err)
	s.loop = turn.New(turn.Settings{Ledger: cutting{s.c, s.early}, Window: w, Tools: hands{}, Log: log, Now: clock, Budget: s.sc.budget, KeepLast: true}, s.lead)
}

// people is what a plan does not direct: they speak, and where the stage is cut each
// message that is taken in ends the loop.
type people struct {
	turn.NoDirector
	s *stage
}

func (p people) Before(context.Context) ([]contextstore.Message, error) {
	return p.s.heard(p.s.sc.comments), nil
}

func (p people) After(contextstore.Message) error {
	if p.s.early != nil {
		return errCut
	}
	return nil
}

// people answer when a question is put to them once more.
func (s *stage) people(_ context.Context, q Question) (Answer, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(q.ID, "q"))
	must(s.t, err)
	switch {
	case n > len(s.sc.people):
		return Answer{}, errors.New("waiting for good")
	case !s.asked[q.ID]:
		if s.asked == nil {
			s.asked = map[string]bool{}
		}
		s.asked[q.ID] = true
		return Answer{}, &tool.WaitError{For: strings.Join(q.Questions, "; ")}
	}
	a := Answer{By: "hanako", Text: s.sc.people[n-1]}
	a.TimedOut = a.Text == ""
	return a, nil
}

// close ends what a process would have held but the lock, which is the ledger's
// matter.
func (s *stage) close() {
	s.t.Helper()
	must(s.t, s.h.Close())
}

// answered is how many answers there are on record.
func (s *stage) answered() (n int) {
	must(s.t, s.c.Messages(0, func(m contextstore.Message) bool {
		if m.Role == llm.RoleAssistant {
			n++
		}
		return true
	}))
	return n
}

// heard is what people say now and did not say before.
func (s *stage) heard(all map[int]string) []contextstore.Message {
	said := map[string]bool{}
	must(s.t, s.c.Messages(0, func(m contextstore.Message) bool {
		said[m.Content] = true
		return true
	}))
	if text := all[s.answered()]; text != "" && !said[text] {
		return []contextstore.Message{{Role: llm.RoleUser, Content: text}}
	}
	return nil
}

// drive leads the run to its end, as the agent does, or to the next cut.
func (s *stage) drive() (end string, cut bool) {
	s.t.Helper()
	end, err := s.work()
	s.look()
	if errors.Is(err, errCut) || errors.As(err, new(*tool.WaitError)) {
		return "", true
	}
	if err != nil {
		return err.Error(), false
	}
	return end, false
}

// live takes the run up as often as it waits for people, to its end.
func (s *stage) live() string {
	s.t.Helper()
	for {
		s.open()
		end, waits := s.drive()
		if !waits {
			return end
		}
		s.close()
	}
}

func (s *stage) work() (string, error) {
	ctx := s.t.Context()
	for {
		if _, err := s.lead.Run(ctx, s.loop); err != nil {
			return "", err
		}
		s.look()
		for _, m := range s.heard(s.sc.complain) {
			if err := s.loop.Tell(ctx, m.Content); err != nil {
				return "", err
			}
		}
		if len(s.heard(s.sc.complain)) == 0 && s.lead.s.Asked == askRemark {
			continue
		}
		failed := 0
		must(s.t, s.c.Messages(0, func(m contextstore.Message) bool {
			if m.Kind == AskRemark {
				failed++
			}
			return true
		}))
		if failed < s.sc.red {
			if err := s.loop.Ask(ctx, AskRemark, fmt.Sprint("check failed, round ", failed+1)); err != nil {
				return "", err
			}
			s.look()
			continue
		}
		r, err := s.lead.Verify(ctx, s.loop, Evidence{Added: s.sc.added, Findings: s.sc.scan, Placeholders: s.sc.scan, Checks: s.sc.checks, Changed: []string{"pkg/a.py"}, Diff: "+++ b/pkg/a.py\n+def test_adds():\n"})
		switch {
		case err != nil:
			return "", err
		case r.Again:
		case r.Fails:
			return "open: " + strings.Join(r.Open, "; "), nil
		case len(r.Open) > 0:
			return "unshown: " + strings.Join(r.Open, "; "), nil
		default:
			said := s.heard(s.sc.object)
			if len(said) == 0 {
				return "passed", nil
			}
			if err := s.loop.Tell(ctx, said[0].Content); err != nil {
				return "", err
			}
		}
	}
}

// look keeps what people see now.
func (s *stage) look() {
	if !s.watch {
		return
	}
	v := s.lead.View()
	text := v.Phase
	if v.Worked {
		text += " worked"
	}
	if v.Verified {
		text += " verified"
	}
	s.seen = append(s.seen, text)
}

// messages are the messages in short, and what the model was asked.
func (s *stage) messages() (all, asks []string) {
	must(s.t, s.c.Messages(0, func(m contextstore.Message) bool {
		all = append(all, m.Role+"/"+m.Kind+" "+m.Content)
		if m.Kind != "" {
			asks = append(asks, m.Kind)
		}
		return true
	}))
	return all, asks
}

// entries are the lines of the history without what differs between runs, and
// the same in short.
func (s *stage) entries() (all []string, short []string) {
	must(s.t, eachOf(s.h, func(e Entry) bool {
		b, err := e.MarshalJSON()
		must(s.t, err)
		var f map[string]any
		must(s.t, json.Unmarshal(b, &f))
		delete(f, "task_uuid")
		delete(f, "issue_id")
		if st, ok := f["state"].(map[string]any); ok {
			delete(st, "offset") // a message longer by a digit of a clock
		}
		b, err = json.Marshal(f)
		must(s.t, err)
		all = append(all, string(b))
		switch {
		case e.Plan != nil:
			short = append(short, "plan:"+strings.Join(e.Plan.Order(), ","))
		case e.Revision != nil:
			kind := "revision:"
			if e.Revision.Reason == "" {
				kind = "revision without a reason:"
			}
			short = append(short, kind+strings.Join(e.Revision.Plan.Order(), ","))
		case e.Reflection != nil:
			short = append(short, "reflection:"+e.Reflection.Judged.Status)
		case e.Subtask != nil:
			short = append(short, strings.Join(append([]string{e.Subtask.ID + "=" + e.Subtask.Status}, e.Subtask.Lessons...), "+"))
		case e.Scan != nil:
			short = append(short, "scan:"+strings.Join(e.Scan.Placeholders, ","))
		case e.Replan != nil:
			short = append(short, "replan:"+e.Replan.Do)
		case e.Verification != nil:
			short = append(short, fmt.Sprint("verification:", e.Verification.Passed))
		case e.Question != nil:
			short = append(short, "question:"+e.Question.ID)
		case e.Answer != nil:
			short = append(short, fmt.Sprintf("answer:%s(%t)", e.Answer.ID, e.Answer.TimedOut))
		case e.Assumption != nil:
			short = append(short, "assumption:"+e.Assumption.Value)
		}
		return true
	}))
	return all, short
}

// Answers of the model.

// plans is a plan: each subtask is an id, or id<dependency,dependency.
func plans(subtasks ...string) string {
	var all []map[string]any
	for _, s := range subtasks {
		id, deps, _ := strings.Cut(s, "<")
		need := []string{}
		if deps != "" {
			need = strings.Split(deps, ",")
		}
		id, text, said := strings.Cut(id, ":")
		if !said {
			text = "Do " + id
		}
		all = append(all, map[string]any{"id": id, "description": text, "dependencies": need})
	}
	return encode(map[string]any{"phase": "planning", "goal_understanding": map[string]any{"main_objective": "All is done", "success_criteria": []string{"it works"}, "constraints": []string{}},
		"task_decomposition": map[string]any{"reasoning": "r", "subtasks": all}, "action_plan": map[string]any{"execution_order": []string{}, "actions": []string{}}})
}

// small is a plan of one subtask that is easy.
func small(id string) string {
	return strings.Replace(plans(id), `"dependencies"`, `"complexity":"Low","dependencies"`, 1)
}

// bulk is a call of which there is much to see.
func bulk(name string) string { return name + strings.Repeat(" and so on", 150) }

// goal is a plan that says more of the goal.
func goal(plan, fields string) string {
	return strings.Replace(plan, `"main_objective"`, fields+`,"main_objective"`, 1)
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func done(id string) string { return ended(id, "done") }
func ended(id, status string) string {
	return fmt.Sprintf(`{"phase":"execution","task_id":%q,"status":%q,"summary":"%s is %s"}`, id, status, id, status)
}

// asking is a plan with a question, by a model that is so sure of the task.
func asking(question string, confidence float64, subtasks ...string) string {
	return strings.Replace(plans(subtasks...), `"constraints":[]`, fmt.Sprintf(`"constraints":[],"clarification_questions":[%q],"understanding_confidence":%v`, question, confidence), 1)
}

// clarify is a decision that asks first.
func clarify(kind, question string) string {
	return strings.Replace(replan(kind, 2, 0.9), `"replan_level"`, fmt.Sprintf(`"clarification_needed":true,"clarification_questions":[%q],"assumptions_to_make":["the small one"],"replan_level"`, question), 1)
}

const fine = `{"phase":"reflection","reflection":{"status":"partial","evaluation":"it goes on","plan_revision_needed":false}}`

// revise is a reflection that wants the plan changed; where says where it says so.
func revise(changes string) string {
	rev := ""
	if changes != "" {
		rev = `,"plan_revision":{"reason":"it is otherwise","changes":[` + changes + `]}`
	}
	return `{"phase":"reflection","reflection":{"status":"failure","evaluation":"the plan is wrong","plan_revision_needed":true}` + rev + `}`
}

func add(id, rest string) string {
	return fmt.Sprintf(`{"type":"add","subtask":{"id":%q,"description":"Do %s","dependencies":[]}%s}`, id, id, rest)
}

func replan(kind string, level int, confidence float64) string {
	return fmt.Sprintf(`{"replan_decision":{"replan_needed":%t,"confidence":%v,"reasoning":"because","replan_type":%q,"target_phase":"execution","replan_level":%d}}`, kind != TypeNone, confidence, kind, level)
}

// wants is a decision that says more.
func wants(kind string, level int, fields string) string {
	return strings.Replace(replan(kind, level, 0.9), `"replan_level"`, fields+`,"replan_level"`, 1)
}

// acts is a plan that thinks of actions.
func acts(plan, actions string) string {
	return strings.Replace(plan, `"actions":[]`, `"actions":[`+actions+`]`, 1)
}

const pass = `{"phase":"verification","verification_passed":true,"criteria":[{"criterion":"it works","met":true,"evidence":"a.go:1"}],"issues_found":[],"placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":false,"completion_confidence":0.9}`

// fail is a verification that does not pass and wants work, if there is any to name.
func fail(work ...string) string {
	more := []map[string]string{}
	for i, w := range work {
		more = append(more, map[string]string{"task_id": fmt.Sprint("verification_fix_", i+1), "purpose": w})
	}
	return encode(map[string]any{"phase": "verification", "verification_passed": false, "criteria": []any{map[string]any{"criterion": "it works", "met": false, "evidence": "a.go:1"}},
		"issues_found": []string{"it does not work"}, "placeholder_detected": map[string]any{"count": 0, "locations": []string{}}, "additional_work_needed": true, "additional_actions": more, "completion_confidence": 0.2})
}

// Only a plain yes is one; what says more is for the model.
func TestAgrees(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"yes", "Yes, please.", "OK", "ok, go ahead", "👍", "はい", "はい、お願いします。", "+1 thanks", "\n> yes\n"} {
		if !plainYes().MatchString(text) {
			t.Errorf("%q is no yes", text)
		}
	}
	for _, text := range []string{"", "no", "Yes?", "ok, let me look", "sure? no", "yes but not the tests", "はい？", "いいえ", "ok\n\nNo, don't", "いいですか", "not yes"} {
		if plainYes().MatchString(text) {
			t.Errorf("%q is a yes", text)
		}
	}
}

// Where asking is switched off while a run waits, it goes on without an answer.
func TestAskingIsSwitchedOff(t *testing.T) {
	t.Parallel()
	sc := scenes()["a plan asks, and nobody answers"]
	s := newStage(t, newStore(t), sc)
	s.open()
	if _, waits := s.drive(); !waits {
		t.Fatal("it does not wait")
	}
	s.close()
	s.sc.people = nil
	if end := s.live(); end != "passed" {
		t.Error(end)
	}
	s.close()
}

// The log says what became of an answer by a call: that is known once it is judged.
func TestLogOfPlanningCalls(t *testing.T) {
	t.Parallel()
	s := newStage(t, newStore(t), scene{answers: []answer{say(`{"phase":"planning","goal_understanding":{"main_objective":"o"}}`), say(plans("a")), say(done("a")), say(pass)}})
	defer s.close()
	s.live()
	refused, taken := strings.Index(s.log.String(), `"Tool execution: submit_plan" status=error`), strings.Index(s.log.String(), `"Tool execution: submit_plan" status=success`)
	if refused < 0 || taken < refused || strings.Contains(s.log.String(), "error=<nil>") {
		t.Error(s.log.String())
	}
}
