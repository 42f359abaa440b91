package planning

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/texttool"
	"toritsugi/internal/turn"
)

// reduce takes a message of the run into what is known, once, in order: when it is
// on disk, and again with those behind the last decision when the run is taken up.
func (co *Coordinator) reduce(m contextstore.Message) error {
	s := &co.s
	if m.Role == llm.RoleAssistant {
		co.taking = taking{calls: map[string]contextstore.ToolCall{}, taken: map[string]bool{}, owed: map[string]bool{}}
		for _, c := range m.ToolCalls {
			co.calls[string(c.ID)], co.owed[string(c.ID)] = c, true
		}
	}
	if m.Seq <= s.Seq {
		return nil
	}
	s.Seq, s.Offset = m.Seq, m.Offset
	var err error
	switch {
	case m.Role == llm.RoleTool:
		err = co.resulted(m)
	case m.Role == llm.RoleAssistant:
		if s.Answer = m.Seq; s.Handover != nil {
			s.Handover.Given, s.Handover.Words = true, cut(m.Content, maxSaid) // whatever calls come with it
			co.enter()
			err = co.record()
		} else if turn.Final(m) {
			co.worded(m)
			co.settle()
			err = co.record()
		} // with calls it is taken by their results; one that is empty or cut off is asked on by the loop
	case m.Role == llm.RoleUser && m.Kind != "":
		co.asked(m.Kind)
	case m.Role == llm.RoleUser && s.Asked == "" && s.Want == "" && co.plan != nil:
		s.Why = byPeople
		co.asked(askRemark)
	}
	co.show()
	return err
}

// resulted takes the result of a call that is on disk, with what the model is
// asked by the last of an answer.
func (co *Coordinator) resulted(m contextstore.Message) error {
	id := string(m.ToolCallID)
	if !co.taken[id] {
		co.late = append(co.late, m)
	}
	if delete(co.owed, id); len(co.owed) > 0 {
		return nil
	}
	co.takeAll(nil)
	co.settle()
	if m.Kind != "" {
		co.asked(m.Kind)
	}
	return co.record()
}

// Results implements turn.Director: it fills in the results of planning's own calls, and says what the model
// is asked next with the last result of an answer.
func (co *Coordinator) Results(results []contextstore.Message, whole bool) (kind, text string) {
	co.takeAll(results)
	if !whole {
		return "", ""
	}
	if co.settle(); co.s.judged() {
		return "", "" // what is done about it is for whoever asked
	}
	return co.next()
}

// takeAll takes in what is on record and not taken yet, and results: planning's own behind all
// others, wherever they stand.
func (co *Coordinator) takeAll(results []contextstore.Message) {
	for _, own := range []bool{false, true} {
		for _, all := range [][]contextstore.Message{co.late, results} {
			for i := range all {
				if IsTool(all[i].ToolName) == own {
					co.take(&all[i])
					co.taken[string(all[i].ToolCallID)] = true
				}
			}
		}
	}
	co.late = nil
}

// take takes in the result of a call, which it fills in where it is one of
// planning's.
func (co *Coordinator) take(m *contextstore.Message) {
	c, known := co.calls[string(m.ToolCallID)]
	switch {
	case co.s.Handover != nil: // no call counts any more
	case !known || !IsTool(c.Name):
		own := *m
		own.Content, _ = m.Result()
		co.acted(own, c.Arguments)
	default:
		if said := Comment(c); said != "" {
			co.log.Info("Planning: "+c.Name, "said", brief(said, maxIssue))
		}
		text, err := co.submitted(c)
		if m.Content, m.Failed = text, err != nil; err != nil {
			m.Content = err.Error()
			co.observe(*m, c.Arguments)
		}
	}
}

// settle ends an answer whose results are all taken in. What was asked in the
// middle of a subtask and is not answered by now is passed over, but for a plan.
func (co *Coordinator) settle() {
	s := &co.s
	if co.whole {
		return
	}
	co.whole = true
	if co.did && s.working() {
		s.Since++
	}
	switch {
	case co.failed:
		s.Trouble++
	case co.did:
		s.Trouble = 0
	}
	if s.Under != "" && (s.Asked == askReflect || s.Asked == askReplan) {
		if s.Asked == askReplan {
			co.log.Warn("No decision about what went wrong came; the run goes on")
			s.Where = ""
		}
		co.resume()
	}
	if co.handed {
		co.handedIn()
	}
	if co.plan != nil && s.Asked == "" && (s.Want == "" || s.Want == askSubtask) {
		co.block()
	}
}

// handedIn takes the work that was handed in for the end of the last subtask, where nothing
// else is owed. A model that made no plan before had one subtask.
func (co *Coordinator) handedIn() {
	s := &co.s
	switch s.Asked {
	case askRemark:
		s.Asked = ""
		co.enter()
	case askPlan:
		if co.plan != nil {
			return
		}
		co.resume()
		co.adopt(Single())
	case askSubtask, "":
	default:
		return
	}
	if co.plan == nil || co.left() != 1 || s.Want != "" && s.Want != askSubtask {
		return
	}
	if s.Current = co.pick(); s.Current != "" {
		co.end(report{SubtaskRecord: SubtaskRecord{ID: s.Current, Status: Done, Summary: i18n.Recorded("handed_in")}})
	}
}

// acted takes in what was done.
func (co *Coordinator) acted(m contextstore.Message, args string) {
	s := &co.s
	co.did, s.Well = true, m.ToolName == shellTool && !m.Failed
	command := commandOf(m.ToolName, args)
	looking := looks().MatchString(command)
	switch {
	case m.Failed && !s.Looked && (looking || slip().MatchString(m.Content)): // that nothing is found is an answer, and a slip says nothing of the plan
		s.Looked, co.failed = true, co.failed || !looking
	case m.Failed:
		s.Erred, co.failed = m.ToolName, true
		co.missed(m.ToolName)
		s.Errors = latest(append(s.Errors, line(m.Content)), 3)
	default:
		s.Looked, co.handed = false, co.handed || co.settings.Hands != "" && m.ToolName == co.settings.Hands
		for _, part := range provenBy(command) {
			s.Ran = latest(appendNew(s.Ran, brief(part, maxIssue)), maxRan)
		}
	}
	s.Changed = s.Changed || m.ToolName == shellTool && !harmless().MatchString(command)             // also where its end failed
	if m.ToolName != shellTool && co.settings.ReadOnly != nil && !co.settings.ReadOnly(m.ToolName) { // it changes files, and not by a command
		if !m.Failed {
			co.made, s.Changed, s.Ran = true, true, nil
		}
		s.Unmade = !co.made
	}
	co.observe(m, args)
}

// slip finds what explains itself and is tried in another way: a text that an edit did
// not find, a directory, a program or a module that is not there.
var slip = lazyregexp.New(`(?m)^\S*sh: .*cd: (?:can't cd to |.*: No such file or directory$)|\bold_text\b|No module named|(?:command )?not found$`)

// harmless finds a command that only looks, or runs what the project has.
var harmless = sync.OnceValue(func() *regexp.Regexp {
	const part = `\s*(?:\w+=\S+\s+)*(?:\S*/)?(?:cd|ls|cat|head|tail|grep|egrep|rg|find|wc|stat|which|diff|cmp|test|pwd|echo|true|pytest|tox|go (?:test|vet|build|run|doc)|cargo (?:test|check)|(?:npm|yarn|pnpm) (?:run )?test|make (?:test|check|lint)|python[\d.]* -m (?:pytest|unittest)|git (?:status|log|diff|show|grep|blame))\b(?:[^|&;\n<>]|2>&1|2?>\s*/dev/null)*`
	return regexp.MustCompile(`^(?:` + part + `(?:\|\|?|&&|;|\n|$))+$`)
})

// maxRan is how many commands are kept in mind that ended well.
const maxRan = 16

// provenBy are the commands that ended well where a whole one did: its last statement, what
// that is joined of by "&&", and the first of a pipe (which fails with any part of it). What
// stands before a ";", in an "||" or in the background may have failed.
func provenBy(command string) (all []string) {
	file, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) == 0 {
		return nil
	}
	last := file.Stmts[len(file.Stmts)-1]
	if joined, ok := last.Cmd.(*syntax.BinaryCmd); len(file.Stmts) == 1 && !last.Negated && !last.Background && (!ok || joined.Op != syntax.OrStmt) {
		all = append(all, command)
	}
	for ended := []*syntax.Stmt{last}; len(ended) > 0; ended = ended[1:] {
		s := ended[0]
		if s.Negated || s.Background {
			continue
		}
		switch c := s.Cmd.(type) {
		case *syntax.BinaryCmd:
			switch c.Op {
			case syntax.AndStmt:
				ended = append(ended, c.X, c.Y)
			case syntax.Pipe, syntax.PipeAll:
				ended = append(ended, c.X)
			}
		case *syntax.CallExpr:
			if len(c.Args) > 1 && c.Args[0].Lit() != "cd" {
				all = appendNew(all, command[c.Pos().Offset():c.End().Offset()])
			}
		}
	}
	return all
}

// latest are the last n of a list.
func latest[T any](all []T, n int) []T { return slices.Delete(all, 0, max(len(all)-n, 0)) }

// observe looks whether the run goes round in circles.
func (co *Coordinator) observe(m contextstore.Message, args string) {
	co.circles(co.s.Guard.Observe(co.s.Answer, m.ToolName, args, m.Content, m.Failed))
}

func (co *Coordinator) circles(f turn.Circle) {
	if f.Stage != turn.StageNone && co.settings.Replan.DetectLoops {
		co.s.Loop = f
	}
}

const shellTool = "shell"

// commandOf is the command of a call of the shell, "" for none.
func commandOf(name, args string) string {
	var a struct{ Command string }
	if name != shellTool || json.Unmarshal([]byte(args), &a) != nil {
		return ""
	}
	return a.Command
}

// looks finds a command whose last part looks for something or compares, so that an
// exit code of 1 is an answer.
var looks = lazyregexp.New(`(?:^|[|&;\n(])\s*(?:git\s+)?(?:e?grep|rg|diff|cmp|test|\[|ls|find|which|command|stat)(?:\s(?:[^|&;\n(]|2>&1)*)?[|&;\n(\s]*$`)

// byPeople is why something was said that the model has to answer: people said it.
const byPeople = "people"

// worded takes an answer that calls nothing.
func (co *Coordinator) worded(m contextstore.Message) {
	s := &co.s
	asked := s.Asked
	switch {
	case asked != "" && asked != askRemark && texttool.Unread(m.Content) && co.again():
		s.Told = co.prompts.render("retry", Ask{Tool: co.due(asked), AsText: true})
	case asked == askReflect || asked == askReplan && s.Under != "": // it stopped to think, and is told to go on
		co.resume()
		s.Where = ""
		co.circles(s.Guard.Said(m.Seq, m.Content))
	case asked == askSubtask:
		co.finished(m)
	case asked == askRemark:
		if s.Asked = ""; s.For == byPeople { // who are answered
			s.Said = ""
		}
		s.says(m.Content)
		co.enter()
	case asked != "":
		_, _ = co.unusable(nil)
	}
	switch { // it still owes what it owed
	case s.Told != "":
	case s.Tried > 0 && s.Asked == asked:
		s.Told = co.prompts.render("retry", Ask{Tool: co.due(asked)})
	case s.Asked == askSubtask:
		s.Told = fmt.Sprintf(co.prompts.word("An answer without a call does not end the run. Go on, or end the subtask with %s.", "呼び出しのない回答では実行は終わりません。作業を続けるか、%sでサブタスクを終えてください。"), co.due(askSubtask))
	}
}

// submitted takes a call of planning's own tools and says what became of it. The
// error is for the model, too: what is wrong with the call, and what to do.
func (co *Coordinator) submitted(c contextstore.ToolCall) (text string, err error) {
	asked, owed := co.s.Asked, true // owed is what was asked, in its own form
	if c.Name == ToolReflect {      // it answers whatever is asked of the work
		switch asked {
		case askReplan:
			c.Name = ToolReplan
		case askVerify:
			c.Name = ToolVerify
		}
	}
	switch {
	case c.Name == ToolPlan && asked == askPlan:
		err = co.planned(c)
	case c.Name == ToolReplan && asked == askReplan:
		err = co.decided(c)
	case c.Name == ToolVerify && asked == askVerify:
		err = co.judged(c)
	case (c.Name == ToolReflect || c.Name == ToolPlan) && asked == askRevise:
		err = co.revised(c)
	case c.Name == ToolReflect && co.s.working():
		err, owed = co.reflected(c), false
	case c.Name == ToolReport:
		err, owed = co.reported(c), false
	default:
		err = co.outOfTurn()
	}
	switch {
	case err == nil:
		return co.noted(), nil
	case !errors.As(err, new(*ContractError)):
		return "", err
	case owed:
		return co.unusable(err)
	}
	return "", co.refused(c.Name, err)
}

// outOfTurn tells the model what it owes instead.
func (co *Coordinator) outOfTurn() error {
	owed := questions[co.s.Asked].tool
	if owed == "" {
		return errors.New(co.prompts.word("Nothing of this is asked for now. Go on.", "今はこの回答を求めていません。先へ進んでください。"))
	}
	return errors.New(co.prompts.word("That is not asked for now. What is: ", "今はこの回答を求めていません。求めているもの: ") + owed)
}

// noted is what the model is told of a call that was taken.
func (co *Coordinator) noted() string { return co.prompts.word("Noted.", "記録しました。") }

// refused tells the model why a call was not taken.
func (co *Coordinator) refused(tool string, err error) error {
	return errors.New(co.prompts.render("retry", Ask{Tool: tool, Problems: err.Error()}))
}

// again reports whether the model may try once more what it was asked.
func (co *Coordinator) again() bool {
	co.s.Tried = (co.s.Tried + 1) % (maxTries + 1)
	return co.s.Tried > 0
}

// unusable is what is done where no answer comes that can be used: the model is asked
// once more, and then the run goes on without it, and in place of a first plan with
// the request as one subtask. err is what is wrong with what came, nil for nothing.
func (co *Coordinator) unusable(err error) (string, error) {
	s, asked := &co.s, co.s.Asked
	if co.again() {
		if err == nil {
			return "", nil
		}
		return "", co.refused(questions[asked].tool, err)
	}
	why := []any{"asked", asked}
	if err != nil {
		why = append(why, "error", err)
	}
	co.log.Warn("No answer by "+questions[asked].tool+" can be used; the run goes on without", why...)
	co.resume()
	s.Replanned, s.Where = false, ""
	co.enter()
	switch {
	case asked == askPlan && co.plan == nil:
		p, why := Single(), ""
		if s.Goal != nil {
			p.Goal = *s.Goal
		}
		if err != nil {
			why = "\n" + err.Error()
		}
		co.adopt(p)
		return co.prompts.word("The plan cannot be used: the whole task is one subtask. The goal and the criteria that you gave stand.", "この計画は使えません。タスク全体を1つのサブタスクとします。示された目標と基準はそのまま使います。") + why, nil
	case asked == askPlan || asked == askRevise:
		return co.prompts.word("The plan stays as it is. Go on.", "計画はそのままです。先へ進んでください。"), nil
	case asked == askVerify:
		co.unjudged()
	}
	return co.noted(), nil
}
