package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/planning"
	"toritsugi/internal/tool"
)

// askUser lets the model ask the people who wait for its work. It only reads, in
// the sense that a call that was cut short can be made again.
type askUser struct{ r *run }

// Definition implements tool.Tool.
func (askUser) Definition() tool.Definition {
	return tool.Definition{Name: "ask_user", ReadOnly: true, Waits: true,
		Description: "Ask the people who wait for your work one question, and wait for their answer, which can take long. Only where a wrong guess would spoil the work and neither the code nor the task tells.",
		Help:        "question is complete in itself, in the language of the task: what you found out, and which choices you see. options are choices to pick from, assumption what you will take to be so if nobody answers.",
		Schema: json.RawMessage(`{"type":"object","properties":{"question":{"type":"string"},` +
			`"options":{"type":"array","items":{"type":"string"},"maxItems":10},` +
			`"assumption":{"type":"string"}},"required":["question"],"additionalProperties":false}`)}
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
	for _, o := range in.Options {
		text += "\n- " + oneLine(o)
	}
	// Masked before it is cut: half a secret is none that anybody knows.
	q := planning.Question{Questions: []string{cut(t.r.Store.Redact(text), maxAnswer)}}
	if a := oneLine(t.r.Store.Redact(in.Assumption)); a != "" {
		q.Assume = []string{cutLine(a)}
	}
	if known, ok := t.r.questions.find("", q.Questions); ok {
		q = known
	} else if n := t.r.ownQuestions(); t.r.Asking == nil || n >= t.r.Asking.Most {
		return tool.Text(fmt.Sprintf("Not asked: %d questions were asked in this run, which is as many as there may be. Take the reading that does the least harm, and state it as an assumption.", n)), nil
	} else {
		q.ID = fmt.Sprintf("%s%d", ownQuestion, n+1)
		q.AskedAt = contextstore.Time{Time: t.r.Now()}
		if err := t.r.chronicle(planning.Entry{Question: &q}); err != nil {
			return tool.Result{}, err
		}
	}
	a, err := t.r.ask(ctx, q)
	if err != nil {
		return tool.Result{}, err
	}
	if err := t.r.chronicle(planning.Entry{Answer: &a}); err != nil {
		return tool.Result{}, err
	}
	if a.TimedOut {
		return tool.Text("Nobody answered in time. Take the reading that does the least harm" + assumed(q) + ", go on, and state it as an assumption in your result."), nil
	}
	return tool.Text(fmt.Sprintf("%s answered:\n%s", cmp.Or(a.By, "Somebody"), a.Text)), nil
}

// chronicle puts a line into the planning history, where there is one.
func (r *run) chronicle(e planning.Entry) error {
	if r.history == nil {
		return nil
	}
	e.Seq = r.ledger.LastSeq()
	_, err := r.history.Append(e)
	return err
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
func (r *run) ownQuestions() (n int) {
	for _, q := range r.questions.all {
		if strings.HasPrefix(q.ID, ownQuestion) {
			n++
		}
	}
	return n
}
