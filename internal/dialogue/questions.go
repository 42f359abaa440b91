package dialogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/tool"
)

// Files of a context: what a run asked and what came of it, and what people
// answered by tori answer.
const (
	questionsFile contextstore.Records[questionLine] = "questions.jsonl"
	answersFile   contextstore.Records[Reply]        = "answers.jsonl"
)

// questionLine is a line of questionsFile: a question, or what came of one.
type questionLine struct {
	Question *planning.Question `json:"question,omitempty"`
	Answer   *planning.Answer   `json:"answer,omitempty"`
}

// questions are what a run asked people, oldest first.
type questions struct {
	all     []planning.Question
	answers map[string]planning.Answer // by question
}

// readQuestions reads what the run of a context asked. A torn line is passed over:
// the question is put once more.
func readQuestions(dir string) (q questions, err error) {
	q.answers = map[string]planning.Answer{}
	_, err = questionsFile.Each(dir, func(l questionLine) {
		if l.Question != nil {
			q.all = append(q.all, *l.Question)
		}
		if l.Answer != nil {
			q.answers[l.Answer.ID] = *l.Answer
		}
	})
	return q, err
}

// find is the question with the same words, or the id.
func (q questions) find(id string, texts []string) (planning.Question, bool) {
	for _, known := range q.all {
		if id != "" && known.ID == id || id == "" && slices.Equal(known.Questions, texts) {
			return known, true
		}
	}
	return planning.Question{}, false
}

// pending is the question that people owe an answer to.
func (q questions) pending() (planning.Question, bool) {
	for _, known := range slices.Backward(q.all) {
		if _, over := q.answers[known.ID]; !over {
			return known, true
		}
	}
	return planning.Question{}, false
}

// Ask puts a question to people and returns what came of it. Where they owe the
// answer it is a *tool.WaitError: the run is to wait without a process, and to ask
// again when it is taken up. The time for an answer begins when it is put.
func (d *Dialogue) Ask(ctx context.Context, q planning.Question) (planning.Answer, error) {
	known, before := d.questions.find(q.ID, nil)
	if a, ok := d.questions.answers[q.ID]; ok {
		d.tellAgain(ctx, known)
		return a, nil
	}
	waits := &tool.WaitError{For: strings.Join(q.Questions, " / ")}
	if !before {
		if err := d.record(q); err != nil {
			return planning.Answer{}, err
		}
		return planning.Answer{}, waits
	}
	replies, put, err := d.replies(ctx, known)
	if err != nil {
		waits.Cause = fmt.Errorf("look for an answer: %w", err)
		return planning.Answer{}, waits
	}
	a := planning.Answer{ID: known.ID}
	switch until := known.Deadline.Add(max(put.Sub(known.AskedAt.Time), 0)); {
	case len(replies) > 0:
		a.By, a.Text = joined(d.run.Lang, replies)
		a.Text = Chosen(known.Options, progress.Head(d.run.Store.Redact(a.Text), maxAnswer))
		a.At = contextstore.Time{Time: replies[0].Created}
		d.inbox = append(d.inbox, replies...) // the model reads them in people's own words
	case d.Asking == nil, !known.Deadline.IsZero() && !d.run.Now().Before(until):
		a.TimedOut = true
	default:
		return planning.Answer{}, waits
	}
	if err := d.putDown(questionLine{Answer: &a}); err != nil {
		return planning.Answer{}, err
	}
	d.questions.answers[a.ID] = a
	return a, nil
}

// record records a question; nobody is asked twice.
func (d *Dialogue) record(q planning.Question) error {
	q.AskedAt, q.Deadline = contextstore.Time{Time: d.run.Now()}, contextstore.Time{}
	if d.Asking != nil && d.Asking.Timeout > 0 {
		q.Deadline = contextstore.Time{Time: d.run.Now().Add(d.Asking.Timeout)}
	}
	for i, text := range q.Questions {
		q.Questions[i] = d.run.Store.Redact(text)
	}
	if err := d.putDown(questionLine{Question: &q}); err != nil {
		return err
	}
	d.questions.all = append(d.questions.all, q)
	return nil
}

// tellAgain has the model told what people answered where an interruption came
// before it was. What it was told already it is not told again; a forge is read
// as a whole when a run is taken up.
func (d *Dialogue) tellAgain(ctx context.Context, q planning.Question) {
	replies, _, err := d.replies(ctx, q)
	if err != nil {
		d.run.Log.Warn("What people answered is known in short only: " + d.run.Store.Redact(err.Error()))
		return
	}
	d.inbox = append(d.inbox, replies...)
}

// joined are replies as one, and who gave them: where these are several, each
// is named with what they said.
func joined(l i18n.Lang, replies []forge.Comment) (by, text string) {
	var who, texts []string
	for _, c := range replies {
		if !slices.Contains(who, c.Author.Login) {
			who = append(who, c.Author.Login)
		}
	}
	for _, c := range replies {
		if text = strings.TrimSpace(c.Body); len(who) > 1 {
			text = cmp.Or(c.Author.Login, l.T("agent.somebody")) + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(slices.DeleteFunc(who, func(w string) bool { return w == "" }), ", "), strings.Join(texts, "\n\n")
}

// localAnswer begins the ids of what was answered by tori answer.
const localAnswer = "answer-"

// maxAnswer is how much of an answer is on record, in bytes.
const maxAnswer = 4000

// replies are what people who may speak said since a question was put to them,
// and when it was put, by the clock of where it was; their text is what the model
// may read.
func (d *Dialogue) replies(ctx context.Context, q planning.Question) (all []forge.Comment, put time.Time, err error) {
	n := 0
	_, err = answersFile.Each(d.run.Ledger.Dir(), func(a Reply) {
		n++
		if a.Question == q.ID && (a.Message == "" || len(all) == 0) { // in conversations the first one counts
			all = append(all, forge.Comment{ID: fmt.Sprintf("%s%d", localAnswer, n), Body: a.Text, Author: forge.Person{Login: a.By}, Created: a.At.Time, Edited: a.At.Time})
		}
	})
	if err != nil {
		return nil, put, err
	}
	said, put, err := d.repliesAt(ctx, q)
	if err != nil && len(all) > 0 { // one answer is enough to go on with
		d.run.Log.Warn("What else was answered cannot be read: " + d.run.Store.Redact(err.Error()))
		err = nil
	}
	return append(all, said...), put, err
}

// repliesAt are those where the task lies.
func (d *Dialogue) repliesAt(ctx context.Context, q planning.Question) (said []forge.Comment, put time.Time, err error) {
	all, _, err := d.comments(ctx)
	if err != nil {
		return nil, put, err
	}
	since, after := q.AskedAt.Time, -1
	for i, c := range all { // the oldest first
		if c.Marker == d.key(q.ID) {
			since, put, after = c.Created, c.Created, i
		}
	}
	for i, c := range all {
		if i <= after || after < 0 && c.Created.Before(since) {
			continue
		}
		m, err := d.remark(ctx, c)
		if err != nil {
			return nil, put, err
		}
		if m != nil && !m.Untrusted && m.Text != "" {
			c.Body = m.Text
			said = append(said, c)
		}
	}
	return said, put, nil
}

// Choices are the two answers to a question that takes no more, which a 👍 and a 👎 at it
// stand for; nil for other questions.
func Choices(l i18n.Lang, q planning.Question) []string {
	switch {
	case len(q.Options) == 2:
		return q.Options
	case q.Confirm && len(q.Options) == 0:
		return []string{l.T("agent.yes"), l.T("agent.no")}
	}
	return nil
}

// key is the marker of the comment that puts a question to people.
func (d *Dialogue) key(id string) string { return delivery.QuestionKey(d.run.Ledger.UUID(), id) }

// text is the comment that puts a question to people.
func (d *Dialogue) text(l i18n.Lang, q planning.Question) string {
	var b strings.Builder
	b.WriteString(l.T("agent.question_title") + "\n\n")
	for _, text := range q.Questions {
		b.WriteString(progress.Quote(d.run.Public(l.Translate(text))) + "\n\n")
	}
	if !q.Deadline.IsZero() && len(q.Assume) > 0 {
		for _, text := range q.Assume {
			b.WriteString("- " + l.T("agent.question_assume", d.plain(text)) + "\n")
		}
		b.WriteString("\n")
	}
	if _, takes := d.run.Host.Tracker.(forge.Reactions); takes {
		if c := Choices(l, q); c != nil {
			b.WriteString(l.T("agent.question_signs", d.plain(c[0]), d.plain(c[1])) + "\n\n")
		}
	}
	how := "agent.question_how"
	if d.run.Order.ByHand() {
		how = "agent.question_how_here"
	}
	b.WriteString(l.T(how, contextstore.Short(d.run.Ledger.UUID())) + " ")
	switch {
	case q.Deadline.IsZero():
		b.WriteString(l.T("agent.question_waits"))
	case q.Confirm:
		b.WriteString(l.T("agent.question_until_not", progress.Clock(q.Deadline.Time)))
	default:
		b.WriteString(l.T("agent.question_until", progress.Clock(q.Deadline.Time)))
	}
	return b.String() + "\n\n" + l.T("agent.comment_run", d.run.Ledger.UUID(), contextstore.Short(d.run.Ledger.UUID())) + "\n"
}

// plain is a text of the model on one line, with nothing in it that would be more
// than text.
func (d *Dialogue) plain(s string) string { return d.run.Plain(s, 100) }

// Asked tells what people were asked and what came of it, for the report.
func (d *Dialogue) Asked(l i18n.Lang) string {
	if len(d.questions.all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + l.T("agent.comment_asked") + "\n\n")
	for _, q := range d.questions.all {
		for _, text := range q.Questions {
			b.WriteString("- ❓ " + d.plain(l.Translate(text)) + "\n")
		}
		switch a, over := d.questions.answers[q.ID]; {
		case !over:
			b.WriteString("  - " + l.T("agent.asked_open") + "\n")
		case a.TimedOut && q.Confirm:
			b.WriteString("  - " + l.T("agent.asked_not_done") + "\n")
		case a.TimedOut:
			b.WriteString("  - " + l.T("agent.asked_timed_out") + "\n")
		default:
			b.WriteString("  - " + l.T("agent.asked_answered", cmp.Or(d.plain(a.By), l.T("agent.somebody")), d.plain(a.Text)) + "\n")
		}
	}
	return b.String()
}

// Pending is the question that the run of a context waits for an answer to, as it
// stands in its directory.
func Pending(dir string) (planning.Question, bool, error) {
	q, err := readQuestions(dir)
	if err != nil {
		return planning.Question{}, false, fmt.Errorf("read what was asked: %w", err)
	}
	open, ok := q.pending()
	return open, ok, nil
}

// AnswerOverdue reports whether a run that waits for an answer is to go on without.
// While its question is not delivered nobody can answer it.
func AnswerOverdue(ctx context.Context, store *contextstore.Store, now time.Time, v contextstore.View) (bool, error) {
	q, ok, err := Pending(v.Dir)
	answered := false
	if ok && err == nil { // by tori answer, while the run was on its way to wait
		_, err = answersFile.Each(v.Dir, func(a Reply) { answered = answered || a.Question == q.ID })
	}
	if answered {
		return true, err
	}
	if err != nil || !ok || q.Deadline.IsZero() || now.Before(q.Deadline.Time) {
		return false, err
	}
	owed, err := store.Undelivered(ctx, v.Metadata.UUID)
	asking := func(e contextstore.Effect) bool {
		return strings.HasPrefix(e.Key, delivery.QuestionKey(v.Metadata.UUID, q.ID))
	}
	return !slices.ContainsFunc(owed, asking), err
}

// Reply is what somebody answers, a line of answersFile. Of Answer's, Question is "" for the one that
// the run waits for an answer to. Session and Message say where, if that was in a conversation.
type Reply struct {
	Question string            `json:"question_id"`
	By       string            `json:"by"`
	At       contextstore.Time `json:"at"`
	Text     string            `json:"text"`
	Session  string            `json:"session_id,omitempty"`
	Message  string            `json:"message_id,omitempty"`
}

// Answer puts down what somebody answers to a question that a run waits for; it
// is on disk when it returns. ok is false where the run waits for none, or, of what was said in
// a conversation, where somebody else was first.
func Answer(store *contextstore.Store, uuid string, r Reply) (q planning.Question, ok bool, err error) {
	ok, err = contextstore.InDir(store.BaseDir, uuid, func(dir string) (bool, error) {
		asked, waits, err := Pending(dir)
		if q = asked; err != nil || !waits || r.Question != "" && r.Question != q.ID {
			return false, err
		}
		line := r
		line.Question = q.ID
		if err = answersFile.Append(store, dir, line, true); err != nil || r.Message == "" {
			return err == nil, err
		}
		first, err := firstReplies(dir)
		return err == nil && first[q.ID].Session == r.Session && first[q.ID].Message == r.Message, err
	})
	return q, ok, err
}

// firstReplies are the first answers of tori answer or a conversation, by question.
func firstReplies(dir string) (map[string]Reply, error) {
	first := map[string]Reply{}
	_, err := answersFile.Each(dir, func(a Reply) {
		if _, known := first[a.Question]; !known {
			first[a.Question] = a
		}
	})
	if err != nil {
		err = fmt.Errorf("read what was answered: %w", err)
	}
	return first, err
}

// Exchange is a question of a run with what came of it.
type Exchange struct {
	planning.Question
	Answer *planning.Answer // nil while nothing did
	// First is what tori answer or a conversation answered first; nil while none did.
	First *Reply
}

// Exchanges are the questions of the run of a context, the oldest first.
func Exchanges(dir string) (all []Exchange, err error) {
	q, err := readQuestions(dir)
	if err != nil {
		return nil, fmt.Errorf("read what was asked: %w", err)
	}
	first, err := firstReplies(dir)
	if err != nil {
		return nil, err
	}
	for _, one := range q.all {
		x := Exchange{Question: one}
		if r, answered := first[one.ID]; answered {
			x.First = &r
		}
		if a, over := q.answers[one.ID]; over {
			x.Answer = &a
		}
		all = append(all, x)
	}
	return all, nil
}

// Put is the question that the run waits for an answer to, and the comment that asks
// it, as the broker allows it: nil where there is no place for one.
func (d *Dialogue) Put(ctx context.Context) (q planning.Question, comment *contextstore.Effect, err error) {
	q, ok := d.questions.pending()
	if !ok {
		return q, nil, errors.New("the run waits, and asked nothing")
	}
	if d.run.Order.Silent() {
		return q, nil, nil
	}
	comment, err = d.run.Question(ctx, q.ID, d.text(d.run.Lang, q))
	return q, comment, err
}

// putDown puts a line on record that must survive a power cut.
func (d *Dialogue) putDown(l questionLine) error {
	return questionsFile.Append(d.run.Store, d.run.Ledger.Dir(), l, true)
}
