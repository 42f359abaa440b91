package dialogue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/tool"
)

// Tools are the tools by which the model speaks to people: it asks where somebody can be asked,
// and answers where it was told remarks on lines.
func (d *Dialogue) Tools() (all []tool.Tool) {
	if d.Asking != nil || d.ownQuestions() > 0 {
		all = append(all, askUser{d})
	}
	if len(d.RemarkAnswers()) > 0 {
		all = append(all, d.answerRemark())
	}
	return all
}

// askUser lets the model ask the people who wait for its work. It only reads, in
// the sense that a call that was cut short can be made again.
type askUser struct{ d *Dialogue }

const askSchema = `{"type":"object","properties":{"question":{"type":"string"},"options":{"type":"array","items":{"type":"string"},"maxItems":10},` +
	`"assumption":{"type":"string"}},"required":["question"],"additionalProperties":false}`

// Definition implements tool.Tool.
func (askUser) Definition() tool.Definition {
	return tool.Definition{Name: "ask_user", ReadOnly: true, Waits: true,
		Description: "Ask the people who wait for your work one question; the answer can take long. Only where a wrong guess would spoil the work and neither code nor task tells.",
		Help:        "question is complete in itself, in the language of the task: what you found out, and which choices you see. options are choices to pick from, assumption what you will take to be so if nobody answers.",
		Schema:      tool.Told(askSchema), Reads: json.RawMessage(askSchema)}
}

// Call implements tool.Tool.
func (t askUser) Call(ctx context.Context, args json.RawMessage) (tool.Result, error) {
	var in struct {
		Question, Assumption string
		Options              []string
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return tool.Failf("The arguments cannot be read: %v", err), nil
	}
	text := strings.TrimSpace(broker.Visible(in.Question))
	if text == "" {
		return tool.Failf("The question is empty."), nil
	}
	// Masked before it is cut: the filter does not recognise half a secret.
	q := planning.Question{Options: t.d.options(in.Options)}
	q.Questions = []string{progress.Head(t.d.run.Store.Redact(text+numbered(q.Options)), maxAnswer)}
	if a := progress.OneLine(t.d.run.Store.Redact(in.Assumption)); a != "" {
		q.Assume = []string{progress.Cut(a, 100)}
	}
	q, a, err := t.d.pose(ctx, q)
	var most *tooManyError
	switch {
	case errors.As(err, &most):
		return tool.Text(fmt.Sprintf("Not asked: %d questions were asked in this run, which is as many as there may be. Take the reading that does the least harm, and state it as an assumption.", most.n)), nil
	case err != nil:
		return tool.Result{}, err
	}
	if a.TimedOut {
		return tool.Text("Nobody answered in time. Take the reading that does the least harm" + assumed(q) + ", go on, and state it as an assumption in your result."), nil
	}
	return tool.Text(fmt.Sprintf("%s answered:\n%s", cmp.Or(a.By, "Somebody"), a.Text)), nil
}

// maxOption is how long a choice is, in runes.
const maxOption = 300

// options are the choices of a question, masked, each on a line.
func (d *Dialogue) options(all []string) (some []string) {
	for _, o := range all {
		if o = progress.OneLine(d.run.Store.Redact(broker.Visible(o))); o != "" {
			some = append(some, progress.Cut(o, maxOption))
		}
	}
	return some
}

// numbered lists choices below a question.
func numbered(options []string) string {
	var b strings.Builder
	for i, o := range options {
		fmt.Fprintf(&b, "\n%d. %s", i+1, o)
	}
	return b.String()
}

// Chosen is the choice that an answer names by its number, else the answer.
func Chosen(choices []string, answer string) string {
	text := strings.TrimSpace(answer)
	if n, err := strconv.Atoi(strings.TrimSuffix(text, ".")); err == nil && n > 0 && n <= len(choices) && !slices.Contains(choices, text) {
		return choices[n-1]
	}
	return answer
}

// tooManyError says that as many questions were asked as there may be.
type tooManyError struct{ n int }

func (e *tooManyError) Error() string { return fmt.Sprintf("%d questions were asked", e.n) }

// pose puts a question of a tool to people, as ask does, and returns it as it was
// put. One that has no id is the same as another with the same words.
func (d *Dialogue) pose(ctx context.Context, q planning.Question) (planning.Question, planning.Answer, error) {
	if known, ok := d.questions.find(q.ID, q.Questions); ok {
		q = known
	} else if n := d.ownQuestions(); d.Asking == nil || n >= d.Asking.Most {
		return q, planning.Answer{}, &tooManyError{n}
	} else {
		q.ID = cmp.Or(q.ID, fmt.Sprintf("%s%d", ownQuestion, n+1))
		q.AskedAt = contextstore.Time{Time: d.run.Now()}
		if err := d.Record(planning.Entry{Question: &q}); err != nil {
			return q, planning.Answer{}, err
		}
	}
	a, err := d.Ask(ctx, q)
	if err == nil {
		err = d.Record(planning.Entry{Answer: &a})
	}
	return q, a, err
}

func assumed(q planning.Question) string {
	if len(q.Assume) == 0 {
		return ""
	}
	return " (" + q.Assume[0] + ")"
}

// ownQuestion begins the ids of questions of the tool; those of the plan's
// coordinator have others.
const ownQuestion = "ask"

// ownQuestions is how many questions the tool has asked.
func (d *Dialogue) ownQuestions() (n int) {
	for _, q := range d.questions.all {
		if strings.HasPrefix(q.ID, ownQuestion) {
			n++
		}
	}
	return n
}
