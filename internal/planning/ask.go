package planning

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
func (l *Lead) mayAsk() bool {
	return l.s.Counts.Clarifications < l.limits().MaxClarifications
}

// limits are those of replanning, with what people allowed beyond them.
func (l *Lead) limits() ReplanLimits {
	r := l.settings.Replan
	r.MaxPlanRevisions += l.s.Replans
	if l.settings.Ask == nil {
		r.MaxClarifications, r.ConfirmLow = 0, false
	}
	return r
}

// inquires has people asked before anything else, and returns the line of the
// history that says so. The question is counted by who decided on it.
func (l *Lead) inquires(q inquiry, questions []string) Entry {
	s := &l.s
	s.Inquiries++
	q.Question.ID = fmt.Sprintf("q%d", s.Inquiries)
	for _, text := range questions[:min(len(questions), maxQuestions)] {
		if text = line(text); text != "" {
			q.Question.Questions = append(q.Question.Questions, text)
		}
	}
	q.Question.AskedAt = contextstore.Time{Time: l.history.o.Now()}
	s.Inquiry, s.Want, s.Why, s.Where = &q, askPeople, "", ""
	l.log.Info("People are asked: "+line(strings.Join(q.Question.Questions, " / ")), "question", q.Question.ID)
	return Entry{Question: &q.Question}
}

// maxReason is how much of the model's reasons stands in a question of ours, in runes.
const maxReason = 300

// maxQuestions is how many questions people are asked at once.
const maxQuestions = 10

// uncertain reports whether a plan asks people for something before it is worked
// on. One that is sure of what is asked goes on.
func (l *Lead) uncertain(g Goal) bool {
	asks := slices.ContainsFunc(g.Questions, func(q string) bool { return strings.TrimSpace(q) != "" })
	return asks && l.mayAsk() && (g.Confidence == nil || *g.Confidence < l.settings.Pre.Sure)
}

// asksFor has people answer what a decision about what went wrong leaves to them.
func (l *Lead) asksFor(v Verdict, r Replan, at string) Entry {
	q := inquiry{About: aboutCourse, At: at, Why: line(r.Reasoning), Question: Question{Assume: r.Assume}}
	questions := r.Questions
	switch {
	case slices.Contains(v.Overrides, OverrideRevisions):
		q.About, q.Wish, q.Question.Confirm = aboutRevised, &r, true
		questions = []string{moreRevisions(l.limits().MaxPlanRevisions, r.Reasoning)}
	case v.Confirm:
		q.About, q.Wish, q.Question.Confirm = aboutWish, &r, true
		questions = []string{i18n.Recorded("unsure", Doing(r.Type), brief(r.Reasoning, maxReason))}
	case r.Type == TypeClarification:
		q.About = aboutWork
	}
	return l.inquires(q, questions)
}

// moreRevisions asks for one revision beyond the limit.
func moreRevisions(limit int, why string) string {
	return i18n.Recorded("revisions_spent", strconv.Itoa(limit), brief(why, maxReason))
}

// inquire asks people where that is wanted, and goes by their answer. The error
// is that of Settings.Ask: a *tool.WaitError where they owe it.
func (l *Lead) inquire(ctx context.Context) error {
	s := &l.s
	if s.Want != askPeople || s.Inquiry == nil {
		return nil
	}
	q := *s.Inquiry
	a := Answer{TimedOut: true} // where nobody can be asked any more
	if l.settings.Ask != nil {
		var err error
		if a, err = l.settings.Ask(ctx, q.Question); err != nil {
			return err
		}
	}
	a.ID = q.Question.ID
	l.log.Info("An answer", "question", a.ID, "by", a.By, "timed_out", a.TimedOut)
	s.Inquiry, s.Want = nil, ""
	s.Told = l.prompts.Answer(AnswerAsk{Question: q.Question, Answer: a})
	entries := []Entry{{Answer: &a}}
	switch yes := !a.TimedOut && agrees(a.Text); {
	case q.About == aboutPlan:
		s.Want = askPlan
	case q.About == aboutWork:
		delete(s.Results, q.At)
		s.Want, s.Current = askSubtask, q.At
	case yes && q.Wish != nil:
		if q.About == aboutRevised {
			s.Replans++
		}
		sure := q.Wish.Confirmed()
		v := Decide(sure, q.At, s.Counts, l.limits())
		entries = append(append(entries, Entry{Replan: v.Record(PhaseExecution, ReplanDecision{Decision: sure})}), l.carryOut(v, sure, q.At)...)
	case yes && q.About == aboutRevised:
		s.Granted++
		s.Want, s.Why = askRevise, q.Why
	case q.About == aboutWish && a.TimedOut, l.settings.Replan.MaxTotal == 0: // then it is not done
		if s.Asked == "" && s.Current != "" {
			s.Want = askSubtask
		}
	default:
		s.Want, s.Where, s.Why = askReplan, q.At, q.Why
	}
	if s.Want != "" && s.Want != askPeople && (s.Want != askSubtask || s.Asked != askSubtask) {
		s.Asked = ""
	}
	return l.note(s.Seq, entries...)
}

// told puts what came of a question before what the model is asked next.
func (l *Lead) told(text string) string {
	if l.s.Told == "" {
		return text
	}
	return l.s.Told + "\n" + text
}

// asksOf tells the states of a run apart that differ in what people were asked
// and answered, and in nothing that the model said.
func asksOf(state json.RawMessage) []string {
	var s struct {
		Inquiries int
		Inquiry   *struct{}
	}
	if json.Unmarshal(state, &s) != nil || s.Inquiries == 0 {
		return nil
	}
	return []string{strconv.Itoa(s.Inquiries), strconv.FormatBool(s.Inquiry == nil)}
}

// agrees reports whether an answer is a plain yes to whether something shall be
// done, and nothing else. All else is for the model: people say what they want
// instead, or that they will look into it.
func agrees(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+👍?？", r)
	})
	yes := func(w string) bool {
		return slices.Contains([]string{"yes", "y", "yep", "ok", "okay", "sure", "approve", "approved", "+1", "👍",
			"はい", "ええ", "うん", "了解", "了解です", "了解しました", "承認", "承認します", "お願いします", "どうぞ", "良いです", "いいです", "いいですよ", "進めて", "進めてください"}, w)
	}
	polite := func(w string) bool {
		return slices.Contains([]string{"please", "thanks", "thank", "you", "go", "ahead", "do", "it", "that", "this", "do it", "ありがとう", "ありがとうございます", "それで"}, w)
	}
	return len(words) > 0 && yes(words[0]) && !slices.ContainsFunc(words, func(w string) bool { return !yes(w) && !polite(w) })
}
