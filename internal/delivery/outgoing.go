package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// pushEffect is the branch that is to be there.
type pushEffect struct {
	Branch string `json:"branch"`
	Commit string `json:"commit"`
}

// pullEffect is the pull request that is to be there.
type pullEffect struct {
	Head     string       `json:"head"`
	Base     string       `json:"base"`
	Title    string       `json:"title"`
	Body     string       `json:"body"`
	Ready    bool         `json:"ready"` // it was verified: no draft any more
	Reviewer forge.Person `json:"reviewer"`
}

// commentEffect is the comment that is to be there.
type commentEffect struct {
	Body   string `json:"body"`
	Thread string `json:"thread,omitempty"` // id of the remark on a line that it answers; "" for none
}

// MayDeliver makes sure that the branch can be handed over at a commit: that the
// broker allows it, and that repository or forge would take it. Nothing is pushed here: the
// outbox does that after the transition.
func (r *Run) MayDeliver(ctx context.Context, commit string) error {
	if r.Here() {
		if err := r.Workspace.CheckDeliver(ctx); err != nil {
			return err
		}
	}
	if err := mayPush(ctx, r.Broker, r.Ledger.Metadata(), r.Place, r.Workspace, commit); err != nil || r.Here() {
		return err
	}
	if err := r.taken(ctx); err != nil {
		return err // people are not asked about what cannot go out as it is
	}
	return r.held(ctx, r.Ledger.Metadata(), r.Ledger.Dir(), r.Place, r.Workspace, commit)
}

// Propose has the branch handed over, puts the pull request together and asks the
// broker about it; a title of the model is used before the task's. The keyword that
// closes the issue is added afterwards: models may not write it.
func (r *Run) Propose(ctx context.Context, commit, title, text string, ready bool) error {
	r.Delivers = true
	issue := r.key()
	if r.Place.Pull != "" {
		if r.Order.For == nil {
			return nil // it is there already
		}
		if done, err := r.described(ctx); err != nil || done && r.Order.For.Run == "" {
			return err
		}
		issue = r.Order.For.Issue
	}
	patch, err := Patch(ctx, r.Workspace, commit)
	if err != nil {
		return err
	}
	m := r.Ledger.Metadata()
	v, err := r.Broker.Judge(ctx, broker.Request{
		Kind: broker.PullRequest, Key: m.UUID + "." + EffectPull, Task: m.TaskKey, Target: broker.Target{Branch: r.Place.Branch, Base: r.Place.Onto},
		Title: cmp.Or(title, m.Title), Text: text, Patch: patch, Draft: true,
	})
	if err = denied(v, err); err != nil {
		return err
	}
	r.proposal = &pullEffect{Head: r.Place.Branch, Base: r.Place.Onto, Title: v.Title, Body: "Closes #" + issue.ID + "\n\n" + v.Text,
		Ready: ready, Reviewer: r.Order.Act.By}
	return nil
}

// End is what a run leaves as it ends, pauses or waits.
type End struct {
	Status   task.Status
	Commit   string               // "" for none
	Comment  string               // "" where none may be posted
	Question *contextstore.Effect // the comment that asks people; nil for none
}

// Effects are what the world must see of the end of this run, in this order, since
// each speaks of what is before it. The broker has allowed them.
func (r *Run) Effects(end End) (all []contextstore.Effect, err error) {
	id := r.Ledger.UUID()
	add := func(kind string, data any) {
		if err == nil {
			var e contextstore.Effect
			if e, err = NewEffect(id+"."+kind, kind, data); err == nil {
				all = append(all, e)
			}
		}
	}
	at, leaves := stage(end.Status, r.Ledger.State().Generation), r.onward != nil && end.Status == task.Completed
	if r.onward != nil && !leaves {
		end.Commit = "" // it holds no work
	}
	if end.Commit != "" && (r.Delivers || r.Here() && end.Status == task.Completed) {
		add(EffectPush, pushEffect{r.Place.Branch, end.Commit})
		if r.proposal != nil {
			add(EffectPull, r.proposal)
		}
	}
	if leaves {
		add(EffectTask, r.onward)
	}
	if r.review != nil && end.Status == task.Completed {
		add(EffectReview, r.review)
	}
	asks := r.Order.ByHand() && end.Status == task.AwaitingApproval // the question says enough
	if end.Comment != "" && !asks && !r.Order.Silent() {
		e, cerr := r.commentOn(id, at, commentEffect{Body: end.Comment})
		if cerr != nil {
			return nil, cerr
		}
		all = append(all, e)
	}
	if end.Question != nil {
		all = append(all, *end.Question)
	}
	all = append(all, r.answers...)
	if !r.Order.ByHand() && !r.Reviews() {
		all = append(all, labelsOf(id, at))
	}
	return all, err
}

// stage names a transition among those of its run: a run can pause more than once.
func stage(s task.Status, generation int64) string {
	if s.Final() {
		return string(s)
	}
	return fmt.Sprintf("%s.%d", s, generation)
}

// commentOn is the comment about the end of a run, or another stage of it. In a
// folder its key is the marker it leaves.
func (s *Service) commentOn(uuid, stage string, c commentEffect) (contextstore.Effect, error) {
	c.Body = redact.Printable(s.Store.Redact(c.Body))
	return NewEffect(uuid+"."+stage, EffectComment, c)
}

// QuestionKey is the marker of the comment that puts a question to people.
func QuestionKey(uuid, id string) string { return uuid + "." + questionStage + id }

const questionStage = "question."

// Question is the comment that puts a question to people, as the broker allows it.
func (r *Run) Question(ctx context.Context, id, text string) (*contextstore.Effect, error) {
	stage := questionStage + id
	text, err := allowed(ctx, r.Broker, comment(r.Ledger.Metadata(), stage, text))
	if err != nil {
		return nil, err
	}
	stage += fmt.Sprintf(".%d", r.Ledger.State().Generation) // one that came too late for its wait must not count for the next
	e, err := r.commentOn(r.Ledger.UUID(), stage, commentEffect{Body: text})
	return &e, err
}

// answerStage begins the stages of answers to remarks. A marker of two parts is none of a
// review's remark.
const answerStage = "answer-"

// Answer has a remark on a line answered in its thread, as the broker allows it, once the run is
// completed. All answers of a run count as one comment.
func (r *Run) Answer(ctx context.Context, thread, text string) error {
	text, err := allowed(ctx, r.Broker, comment(r.Ledger.Metadata(), "answers", text))
	if err != nil {
		return err
	}
	e, err := r.commentOn(r.Ledger.UUID(), answerStage+thread[strings.LastIndexByte(thread, '/')+1:], commentEffect{text, thread})
	r.answers = append(r.answers, e)
	return err
}

// readEffect reads the data of an effect.
func readEffect[T any](e contextstore.Effect) (data T, err error) {
	if err = json.Unmarshal(e.Data, &data); err != nil {
		err = fmt.Errorf("effect %s: %w", e.Key, err)
	}
	return data, err
}
