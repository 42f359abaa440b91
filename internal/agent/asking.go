package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/tool"
)

// Asking is how a run asks people. While they owe an answer the run waits in
// status awaiting_approval, without a process.
type Asking struct {
	Timeout time.Duration // after which a run goes on without an answer; 0 waits for as long as it takes
	Most    int           // questions of the tool ask_user in one run
}

// Files of a context: what a run asked and what came of it, and what people
// answered by tori answer.
const (
	questionsFile = "questions.jsonl"
	answersFile   = "answers.jsonl"
)

// askedLine is a line of questionsFile: a question, or what came of one.
type askedLine struct {
	Question *planning.Question `json:"question,omitempty"`
	Answer   *planning.Answer   `json:"answer,omitempty"`
}

// reply is a line of answersFile.
type reply struct {
	ID   string            `json:"question_id"`
	By   string            `json:"by"`
	At   contextstore.Time `json:"at"`
	Text string            `json:"text"`
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
	err = eachLine(filepath.Join(dir, questionsFile), func(l askedLine) {
		if l.Question != nil {
			q.all = append(q.all, *l.Question)
		}
		if l.Answer != nil {
			q.answers[l.Answer.ID] = *l.Answer
		}
	})
	return q, err
}

// eachLine reads the lines of a small file of ours; a missing one has none.
func eachLine[T any](path string, f func(T)) error {
	raw, err := disk.Read(path, disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		var v T
		if json.Unmarshal([]byte(line), &v) == nil {
			f(v)
		}
	}
	return nil
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

// open is the question that people owe an answer to.
func (q questions) open() (planning.Question, bool) {
	for _, known := range slices.Backward(q.all) {
		if _, over := q.answers[known.ID]; !over {
			return known, true
		}
	}
	return planning.Question{}, false
}

// ask puts a question to people and returns what came of it. Where they owe the
// answer it is a *tool.WaitError: the run is to wait without a process, and to ask
// again when it is taken up. The time for an answer begins when it is put.
func (r *run) ask(ctx context.Context, q planning.Question) (planning.Answer, error) {
	known, before := r.questions.find(q.ID, nil)
	if a, ok := r.questions.answers[q.ID]; ok {
		r.heardAgain(ctx, known)
		return a, nil
	}
	waits := &tool.WaitError{For: strings.Join(q.Questions, " / ")}
	if !before {
		if err := r.asks(q); err != nil {
			return planning.Answer{}, err
		}
		return planning.Answer{}, waits
	}
	replies, put, err := r.replies(ctx, known)
	if err != nil && (r.Host != nil || known.Deadline.IsZero() || r.Now().Before(known.Deadline.Time)) {
		waits.Cause = fmt.Errorf("look for an answer: %w", err)
		return planning.Answer{}, waits
	}
	a := planning.Answer{ID: known.ID}
	switch until := known.Deadline.Add(max(put.Sub(known.AskedAt.Time), 0)); {
	case len(replies) > 0:
		a.By, a.Text = joined(r.Lang, replies)
		a.Text = cut(r.Store.Redact(a.Text), maxAnswer)
		r.inbox = append(r.inbox, replies...) // the model reads them in people's own words
	case r.Asking == nil, !known.Deadline.IsZero() && !r.Now().Before(until):
		a.TimedOut = true
	default:
		return planning.Answer{}, waits
	}
	if err := r.putDown(questionsFile, askedLine{Answer: &a}); err != nil {
		return planning.Answer{}, err
	}
	r.questions.answers[a.ID] = a
	return a, nil
}

// asks records a question; nobody is asked twice.
func (r *run) asks(q planning.Question) error {
	q.AskedAt, q.Deadline = contextstore.Time{Time: r.Now()}, contextstore.Time{}
	if r.Asking != nil && r.Asking.Timeout > 0 {
		q.Deadline = contextstore.Time{Time: r.Now().Add(r.Asking.Timeout)}
	}
	for i, text := range q.Questions {
		q.Questions[i] = r.Store.Redact(text)
	}
	if err := r.putDown(questionsFile, askedLine{Question: &q}); err != nil {
		return err
	}
	r.questions.all = append(r.questions.all, q)
	return nil
}

// heardAgain has the model told what people answered where an interruption came
// before it was. What it was told already it is not told again; a forge is read
// as a whole when a run is taken up.
func (r *run) heardAgain(ctx context.Context, q planning.Question) {
	replies, _, err := r.replies(ctx, q)
	if err != nil {
		r.log.Warn("What people answered is known in short only: " + r.Store.Redact(err.Error()))
		return
	}
	r.inbox = append(r.inbox, replies...)
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
func (r *run) replies(ctx context.Context, q planning.Question) (all []forge.Comment, put time.Time, err error) {
	n := 0
	err = eachLine(filepath.Join(r.ledger.Dir(), answersFile), func(a reply) {
		n++
		if a.ID == q.ID {
			all = append(all, forge.Comment{ID: fmt.Sprintf("%s%d", localAnswer, n), Body: a.Text, Author: forge.Person{Login: a.By}, Created: a.At.Time, Edited: a.At.Time})
		}
	})
	if err != nil {
		return nil, put, err
	}
	var said []forge.Comment
	switch {
	case r.Host != nil:
		said, put, err = r.repliesAt(ctx, q)
	case r.job.Issue != "":
		said, err = r.repliesIn(q)
	}
	if err != nil && len(all) > 0 { // one answer is enough to go on with
		r.log.Warn("What else was answered cannot be read: " + r.Store.Redact(err.Error()))
		err = nil
	}
	return append(all, said...), put, err
}

// repliesAt are those at the forge.
func (r *run) repliesAt(ctx context.Context, q planning.Question) (said []forge.Comment, put time.Time, err error) {
	all, _, err := r.Host.Comments(ctx, r.ledger.Metadata().TaskKey)
	if err != nil {
		return nil, put, err
	}
	since, after := q.AskedAt.Time, -1
	for i, c := range all { // the oldest first
		if c.Marker == r.questionKey(q.ID) {
			since, put, after = c.Created, c.Created, i
		}
	}
	for i, c := range all {
		if i <= after || c.Created.Before(since) {
			continue
		}
		h, err := r.heard(ctx, c)
		if err != nil {
			return nil, put, err
		}
		if h != nil && !h.untrusted && h.text != "" {
			c.Body = h.text
			said = append(said, c)
		}
	}
	return said, put, nil
}

// repliesIn are those in the comments file of the issue, behind the question.
func (r *run) repliesIn(q planning.Question) (said []forge.Comment, err error) {
	is, err := folder.ReadIssue(r.job.Issue)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(is.Comments, func(c folder.Comment) bool { return c.Marker == r.questionKey(q.ID) })
	if at < 0 {
		r.log.Warn("The question is not in the comments file as it was put there; answer with tori answer", "file", folder.CommentsPath(r.job.Issue))
		return nil, nil
	}
	for _, c := range folder.People(is.Comments[at+1:]) {
		note := ofNote(c)
		if note.Body = strings.TrimSpace(broker.Visible(c.Body)); note.Body != "" {
			said = append(said, note)
		}
	}
	return said, nil
}

// questionKey is the marker of the comment that puts a question to people.
func (r *run) questionKey(id string) string { return questionKey(r.ledger.UUID(), id) }

func questionKey(uuid, id string) string { return uuid + "." + questionStage + id }

const questionStage = "question."

// questionText is the comment that puts a question to people.
func (r *run) questionText(l i18n.Lang, q planning.Question) string {
	var b strings.Builder
	b.WriteString(l.T("agent.question_title") + "\n\n")
	for _, text := range q.Questions {
		b.WriteString(quote(r.public(l.Retold(text))) + "\n\n")
	}
	if !q.Deadline.IsZero() && len(q.Assume) > 0 {
		for _, text := range q.Assume {
			b.WriteString("- " + l.T("agent.question_assume", r.plainLine(text)) + "\n")
		}
		b.WriteString("\n")
	}
	how := "agent.question_how"
	if r.Host == nil {
		how = "agent.question_how_here"
	}
	b.WriteString(l.T(how, r.ledger.UUID()[:8]) + " ")
	switch {
	case q.Deadline.IsZero():
		b.WriteString(l.T("agent.question_waits"))
	case q.Confirm:
		b.WriteString(l.T("agent.question_until_not", clock(q.Deadline.Time)))
	default:
		b.WriteString(l.T("agent.question_until", clock(q.Deadline.Time)))
	}
	return b.String() + "\n\n" + l.T("agent.comment_run", r.ledger.UUID(), r.ledger.UUID()[:8]) + "\n"
}

// asked tells what people were asked and what came of it, for the report.
func (r *run) askedText(l i18n.Lang) string {
	if len(r.questions.all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + l.T("agent.comment_asked") + "\n\n")
	for _, q := range r.questions.all {
		for _, text := range q.Questions {
			b.WriteString("- ❓ " + r.plainLine(l.Retold(text)) + "\n")
		}
		switch a, over := r.questions.answers[q.ID]; {
		case !over:
			b.WriteString("  - " + l.T("agent.asked_open") + "\n")
		case a.TimedOut && q.Confirm:
			b.WriteString("  - " + l.T("agent.asked_not_done") + "\n")
		case a.TimedOut:
			b.WriteString("  - " + l.T("agent.asked_timed_out") + "\n")
		default:
			b.WriteString("  - " + l.T("agent.asked_answered", cmp.Or(r.plainLine(a.By), l.T("agent.somebody")), r.plainLine(a.Text)) + "\n")
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
	open, ok := q.open()
	return open, ok, nil
}

// Overdue reports whether a run that waits for an answer is to go on without.
// While its question is not delivered nobody can answer it.
func (a *Agent) Overdue(ctx context.Context, v contextstore.View) (bool, error) {
	q, ok, err := Pending(v.Dir)
	answered := false
	if ok && err == nil { // by tori answer, while the run was on its way to wait
		err = eachLine(filepath.Join(v.Dir, answersFile), func(a reply) { answered = answered || a.ID == q.ID })
	}
	if answered {
		return true, err
	}
	if err != nil || !ok || q.Deadline.IsZero() || a.Now().Before(q.Deadline.Time) {
		return false, err
	}
	owed, err := a.Store.Undelivered(ctx, v.Metadata.UUID)
	asking := func(e contextstore.Effect) bool { return strings.HasPrefix(e.Key, questionKey(v.Metadata.UUID, q.ID)) }
	return !slices.ContainsFunc(owed, asking), err
}

// Answer puts down what somebody answers to the question that a run waits for; it
// is on disk when it returns. ok is false where the run waits for none.
func Answer(store *contextstore.Store, uuid, by, text string, at time.Time) (q planning.Question, ok bool, err error) {
	v, err := store.View(uuid)
	if err != nil {
		return q, false, err
	}
	if q, ok, err = Pending(v.Dir); err != nil || !ok {
		return q, ok, err
	}
	line, err := json.Marshal(reply{ID: q.ID, By: store.Redact(by), At: contextstore.Time{Time: at}, Text: store.Redact(text)})
	if err != nil {
		return q, true, err
	}
	return q, true, appendLine(store.FS, filepath.Join(v.Dir, answersFile), line, true)
}

// put puts the question that the run waits for an answer to into its report, and
// has the broker judge the comment that asks it, where there is a place for one.
func (r *run) put(ctx context.Context) error {
	q, ok := r.questions.open()
	if !ok {
		return errors.New("the run waits, and asked nothing")
	}
	r.report.Question = &q
	if r.job.Issue == "" && r.Host == nil {
		return nil
	}
	key := r.questionKey(q.ID)
	v, err := r.door.Judge(ctx, broker.Request{
		Kind: broker.Comment, Key: key, Task: r.ledger.Metadata().TaskKey, Target: broker.Target{Item: r.ledger.Metadata().TaskKey.ID},
		Text: r.questionText(r.Lang, q),
	})
	if err == nil && v.Decision != broker.Allow {
		err = v.Reason
	}
	if err != nil {
		return err
	}
	stage := questionStage + q.ID
	if r.Host != nil { // one that came too late for its wait must not count for the next
		stage += fmt.Sprintf(".%d", r.ledger.State().Generation)
	}
	e, err := r.commentOn(r.ledger.UUID(), stage, v.Text)
	r.asking = &e
	return err
}
