package planning

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// askPeople is wanted where people owe an answer, and not the model.
const askPeople = "people"

// What people are asked about.
const (
	aboutPlan    = "plan"    // before there is one: the model plans with the answer
	aboutWork    = "work"    // the subtask goes on with the answer
	aboutCourse  = "course"  // the model decides with the answer what to do
	aboutWish    = "wish"    // whether what the model wants shall be done
	aboutRevised = "revised" // whether the plan may be revised beyond the limit
)

// inquiry is what people are asked, and what it is for.
type inquiry struct {
	About    string   `json:"about"`
	Question Question `json:"question"`
	At       string   `json:"at,omitempty"`   // the subtask
	Why      string   `json:"why,omitempty"`  // what went wrong, for the model
	Wish     *Replan  `json:"wish,omitempty"` // what a yes has carried out; nil for a revision
}

// mayAsk reports whether people may be asked once more.
func (co *Coordinator) mayAsk() bool {
	return co.s.Counts.Clarifications < co.limits().MaxClarifications
}

// limits are those of replanning.
func (co *Coordinator) limits() ReplanLimits {
	r := co.settings.Replan
	if co.settings.Ask == nil {
		r.MaxClarifications, r.ConfirmLow = 0, false
	}
	return r
}

// inquires has people asked before anything else. The question is counted by who decided on it.
func (co *Coordinator) inquires(q inquiry, questions []string) {
	s := &co.s
	q.Question.ID = fmt.Sprintf("q%d", s.Counts.Clarifications)
	for _, text := range questions[:min(len(questions), maxQuestions)] {
		if text = line(text); text != "" {
			q.Question.Questions = append(q.Question.Questions, text)
		}
	}
	q.Question.AskedAt = contextstore.Time{Time: co.history.o.Now()}
	s.Inquiry, s.Want, s.Why, s.Where = &q, askPeople, "", ""
	co.log.Info("People are asked: "+line(strings.Join(q.Question.Questions, " / ")), "question", q.Question.ID)
	co.enter(Entry{Question: &q.Question})
}

// maxReason is how much of the model's reasons stands in a question of ours, in runes.
const maxReason = 300

// maxQuestions is how many questions people are asked at once.
const maxQuestions = 10

// uncertain reports whether a plan asks people for something before it is worked
// on. One that is sure of what is asked goes on.
func (co *Coordinator) uncertain(g Goal) bool {
	asks := slices.ContainsFunc(g.Questions, func(q string) bool { return strings.TrimSpace(q) != "" })
	return asks && co.mayAsk() && (g.Confidence == nil || *g.Confidence < co.settings.Pre.Sure)
}

// asksFor has people answer what a decision about what went wrong leaves to them.
func (co *Coordinator) asksFor(v ReplanRecord, at string) {
	r := v.Decision.Decision
	q := inquiry{About: aboutCourse, At: at, Why: line(r.Reasoning), Question: Question{Assume: r.Assume}}
	questions := r.Questions
	switch {
	case strings.Contains(v.Override, overRevisions):
		q.About, q.Wish, q.Question.Confirm = aboutRevised, &r, true
		questions = []string{moreRevisions(co.s.Counts.Revisions, r.Reasoning)}
	case strings.Contains(v.Override, overConfirm):
		q.About, q.Wish, q.Question.Confirm = aboutWish, &r, true
		questions = []string{i18n.Recorded("unsure", Doing(r.Type), brief(r.Reasoning, maxReason))}
	case r.Type == TypeClarification:
		q.About = aboutWork
	}
	co.inquires(q, questions)
}

// moreRevisions asks for one revision beyond the limit.
func moreRevisions(limit int, why string) string {
	return i18n.Recorded("revisions_spent", strconv.Itoa(limit), brief(why, maxReason))
}

// inquire asks people where that is wanted, and goes by their answer. The error
// is that of Settings.Ask: a *tool.WaitError where they owe it.
func (co *Coordinator) inquire(ctx context.Context) error {
	s := &co.s
	if s.Want != askPeople || s.Inquiry == nil {
		return nil
	}
	q := *s.Inquiry
	a := Answer{TimedOut: true} // where nobody can be asked any more
	if co.settings.Ask != nil {
		var err error
		if a, err = co.settings.Ask(ctx, q.Question); err != nil {
			return err
		}
	}
	a.ID = q.Question.ID
	co.log.Info("An answer", "question", a.ID, "by", a.By, "timed_out", a.TimedOut)
	s.Inquiry, s.Want = nil, ""
	s.Told = co.prompts.render("answer", Ask{Question: q.Question, Answer: a})
	co.enter(Entry{Answer: &a})
	switch yes := !a.TimedOut && plainYes().MatchString(a.Text); {
	case q.About == aboutPlan:
		s.wants(askPlan, "")
	case q.About == aboutWork:
		delete(s.Results, q.At)
		s.Current = q.At
		s.wants(askSubtask, "")
	case yes && q.Wish != nil:
		limits := co.limits()
		if q.About == aboutRevised {
			limits.MaxPlanRevisions = s.Counts.Revisions + 1
		}
		co.carryOut(ReplanDecision{Decision: q.Wish.Confirmed()}, q.At, limits)
	case yes && q.About == aboutRevised:
		s.wants(askRevise, q.Why)
	case q.About == aboutWish && a.TimedOut, co.settings.Replan.MaxTotal == 0: // then it is not done
		if s.Asked == "" && s.Current != "" {
			s.wants(askSubtask, "")
		}
	default:
		s.Where = q.At
		s.wants(askReplan, q.Why)
	}
	if s.Want != "" && s.Want != askPeople && (s.Want != askSubtask || s.Asked != askSubtask) {
		s.Asked = ""
	}
	return co.record()
}

// told puts what came of a question before what the model is asked next.
func (co *Coordinator) told(text string) string {
	if co.s.Told == "" {
		return text
	}
	return co.s.Told + "\n" + text
}

// plainYes is an answer that says yes to whether something shall be done, and nothing
// else. All else is for the model: people say what they want instead, or that they
// will look into it.
var plainYes = sync.OnceValue(func() *regexp.Regexp {
	const yes = `yes|y|yep|ok|okay|sure|approve|approved|\+1|👍|はい|ええ|うん|了解|了解です|了解しました|承認|承認します|お願いします|どうぞ|良いです|いいです|いいですよ|進めて|進めてください`
	const polite = `please|thanks|thank|you|go|ahead|do|it|that|this|ありがとう|ありがとうございます|それで`
	const between = `[^\pL\pN+👍?？]`
	return regexp.MustCompile(`(?i)^` + between + `*(?:` + yes + `)(?:` + between + `+(?:` + yes + `|` + polite + `))*` + between + `*$`)
})
