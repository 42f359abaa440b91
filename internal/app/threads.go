package app

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/order"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
)

// toldSession is what this process told a session of the runs that it follows, so that no log is
// read for it each time. One at a time tells a session.
type toldSession struct {
	busy bool // somebody does; guarded by deskMu
	runs map[string]*toldRun
}

type toldRun struct {
	shown string          // how far it is, as it was shown last
	told  map[string]bool // keys of what was told
}

// threads tells conversations of the runs of forges that they follow, until ctx ends.
func (t *talks) threads(ctx context.Context) {
	var going sync.WaitGroup
	look := func(ctx context.Context) { t.eachThread(ctx, &going, t.tellThread) }
	look(ctx)
	every(ctx, hearEvery, look)
	going.Wait()
}

// tellThreads tells conversations what they were not told of the runs that they follow. What is
// told follows from the files of a run, and each post has a key: whenever this is cut
// short, the next round says the rest.
func (t *talks) tellThreads(ctx context.Context) {
	var going sync.WaitGroup
	t.eachThread(ctx, &going, t.tellThread)
	going.Wait()
}

// showThreads shows to the people of this process how far such runs are, which tori serve works
// on and tells of.
func (t *talks) showThreads(ctx context.Context) {
	var going sync.WaitGroup
	t.eachThread(ctx, &going, func(ctx context.Context, f contextstore.Follower, v contextstore.View, r *toldRun) error {
		t.mu.Lock()
		_, here := t.sessions[f.Session]
		t.mu.Unlock()
		if here {
			t.showThread(ctx, f, v, r)
		}
		return nil
	})
	going.Wait()
}

// eachThread has each session be told of its runs, one after another; sessions do not wait for
// each other, and one that is still being told is passed over.
func (t *talks) eachThread(ctx context.Context, going *sync.WaitGroup, do func(context.Context, contextstore.Follower, contextstore.View, *toldRun) error) {
	all, err := t.store.Followers(ctx)
	if err != nil {
		if ctx.Err() == nil && t.unread.Due(t.env.Now(), time.Minute) {
			t.log.Error(err.Error())
		}
		return
	}
	t.deskMu.Lock()
	defer t.deskMu.Unlock()
	sessions := map[string][]contextstore.Follower{}
	for session := range t.told { // runs of some are followed no more
		sessions[session] = nil
	}
	for _, f := range all {
		sessions[f.Session] = append(sessions[f.Session], f)
	}
	for session, runs := range sessions {
		s := t.told[session]
		if s == nil {
			s = &toldSession{runs: map[string]*toldRun{}}
			t.told[session] = s
		}
		if s.busy {
			continue
		}
		s.busy = true
		going.Go(func() {
			t.eachRun(ctx, session, s, runs, do)
			t.deskMu.Lock()
			defer t.deskMu.Unlock()
			if s.busy = false; len(s.runs) == 0 {
				delete(t.told, session)
			}
		})
	}
}

// eachRun is eachThread of one session.
func (t *talks) eachRun(ctx context.Context, session string, s *toldSession, runs []contextstore.Follower, do func(context.Context, contextstore.Follower, contextstore.View, *toldRun) error) {
	for _, f := range runs {
		if s.runs[f.UUID] == nil {
			s.runs[f.UUID] = &toldRun{told: map[string]bool{}}
		}
		v, err := t.store.View(f.UUID)
		if errors.Is(err, contextstore.ErrNotFound) {
			err = t.store.Unfollow(ctx, f)
		} else if err == nil {
			err = do(ctx, f, v, s.runs[f.UUID])
		}
		if err != nil && ctx.Err() == nil {
			t.log.Error("A conversation is not told of a run: "+err.Error(), "session_id", session, "uuid", f.UUID)
		}
	}
	for uuid, r := range s.runs {
		if !slices.ContainsFunc(runs, func(f contextstore.Follower) bool { return f.UUID == uuid }) {
			delete(s.runs, uuid)
			if r.shown != "" {
				t.goesSo(ctx, session, uuid, "")
			}
		}
	}
}

// tellThread tells one conversation of one run.
func (t *talks) tellThread(ctx context.Context, f contextstore.Follower, v contextstore.View, r *toldRun) error {
	t = t.to(order.Chat{Session: f.Session, Language: f.Language})
	if err := t.tellQuestions(ctx, f, v, r.told); err != nil {
		return err
	}
	if err := t.tellRequest(ctx, f, v, r.told); err != nil {
		return err
	}
	t.showThread(ctx, f, v, r)
	if !v.Status().Final() {
		return nil
	}
	text, over, err := t.ended(ctx, v)
	if err != nil || !over {
		return err
	}
	if draft, left, err := delivery.Onward(ctx, t.store, v); err != nil {
		return err
	} else if left {
		if err := t.followOn(ctx, f, draft); err != nil {
			return err
		}
		text = t.lang.T("app.thread_left", order.Ref(v.Metadata.TaskKey), order.Ref(draft))
	}
	if err := t.engine.Post(ctx, channel.Post{SessionID: f.Session, ReplyTo: f.ReplyTo, Key: f.UUID + "/over", Kind: channel.Notice, Job: f.UUID, Text: text}); err != nil {
		return err
	}
	return t.store.Unfollow(ctx, f)
}

// followOn has a conversation be told of the run on a draft that the one it is told of left its
// work to.
func (t *talks) followOn(ctx context.Context, f contextstore.Follower, draft task.Key) error {
	v, ok, err := t.store.Latest(ctx, draft)
	if err != nil || !ok {
		return err
	}
	f.UUID = v.Metadata.UUID
	return t.store.Follow(ctx, f)
}

// showThread shows how far a run is, where this process speaks with the session.
func (t *talks) showThread(ctx context.Context, f contextstore.Follower, v contextstore.View, r *toldRun) {
	text := ""
	if s := v.Status(); s == task.Queued || s == task.Running {
		text = t.lang.T("app.thread_progress", order.Ref(v.Metadata.TaskKey), t.status(v), v.State.LLMCallCount)
	}
	if r.shown == text {
		return
	}
	r.shown = text
	t.goesSo(ctx, f.Session, f.UUID, text)
}

// goesSo says how far a run is, "" where nothing goes on.
func (t *talks) goesSo(ctx context.Context, session, uuid, text string) {
	_ = t.engine.Post(ctx, channel.Post{SessionID: session, Kind: channel.Progress, Job: uuid, Text: text}) // the next one tells more
}

// tellQuestions puts what a run asks to a conversation, and tells it of what was answered elsewhere.
func (t *talks) tellQuestions(ctx context.Context, f contextstore.Follower, v contextstore.View, told map[string]bool) error {
	all, err := dialogue.Exchanges(v.Dir)
	if err != nil {
		return err
	}
	for _, q := range all {
		key := questionKey(f.UUID, q.ID)
		p := channel.Post{SessionID: f.Session, ReplyTo: f.ReplyTo, Key: key, Kind: channel.Notice, Job: f.UUID, Question: t.put(v, q)}
		switch {
		case open(v, q):
			p.Text = t.question(v, q, p.Question)
		case q.Answer == nil, q.First != nil && q.First.Session == f.Session: // it was told that its answer counts
			continue
		default:
			p.Key += "/answered"
			p.Text = t.lang.T("app.thread_answered", order.Ref(v.Metadata.TaskKey), q.Answer.By, progress.Quote(q.Answer.Text))
			if q.Answer.TimedOut {
				p.Text = t.lang.T("app.thread_unanswered", order.Ref(v.Metadata.TaskKey))
			}
			p.Question.Over, p.Question.By, p.Question.At = true, q.Answer.By, q.Answer.At.Time
		}
		if told[p.Key] {
			continue
		}
		if p.Question.Over {
			put, err := t.engine.Said(f.Session, key)
			if err != nil {
				return err
			}
			if !put {
				told[p.Key] = true // it was answered before anybody here was asked
				continue
			}
		}
		if err := t.engine.Post(ctx, p); err != nil {
			return err
		}
		told[p.Key] = true
	}
	return nil
}

// put is a question as it is put to a conversation.
func (t *talks) put(v contextstore.View, q dialogue.Exchange) *channel.Question {
	var all []string
	for _, text := range q.Questions {
		all = append(all, progress.Quote(t.lang.Translate(text)))
	}
	put := &channel.Question{ID: questionKey(v.Metadata.UUID, q.ID), Text: t.engine.Strict(strings.Join(all, "\n\n"))}
	for _, c := range t.choices(q) {
		put.Choices = append(put.Choices, t.engine.Strict(c))
	}
	return put
}

// choices are the answers to pick from.
func (t *talks) choices(q dialogue.Exchange) []string {
	if q.Confirm && len(q.Options) == 0 {
		return []string{t.lang.T("agent.yes"), t.lang.T("agent.no")}
	}
	return q.Options
}

// question is what a run asks, as a conversation sees it.
func (t *talks) question(v contextstore.View, q dialogue.Exchange, put *channel.Question) string {
	parts := []string{t.lang.T("app.thread_asks", order.Ref(v.Metadata.TaskKey), v.Metadata.Title), put.Text}
	for _, text := range q.Assume {
		if !q.Deadline.IsZero() {
			parts = append(parts, "- "+t.lang.T("agent.question_assume", progress.Plain(text)))
		}
	}
	return strings.Join(append(parts, t.lang.T("app.thread_how", v.Metadata.TaskKey.Number())), "\n\n")
}

// tellRequest asks a conversation for the approval that a run waits for, and tells it of one that
// was decided elsewhere.
func (t *talks) tellRequest(ctx context.Context, f contextstore.Follower, v contextstore.View, all map[string]bool) error {
	j, err := approval.Read(v.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	told := j.Short() + "/" + string(j.State.Status)
	if all[told] {
		return nil
	}
	if j.State.Status == approval.Pending {
		if v.Status() == task.AwaitingApproval && j.State.Hash == j.Hash() {
			t.request(ctx, f.Session, j)
			all[told] = true
		}
		return nil
	}
	all[told] = true
	last, err := t.engine.LastOf(f.Session, j.Job)
	if err != nil || last.Kind != channel.Request {
		return err
	}
	text := t.lang.T("conversation.decided_"+string(j.State.Status), j.Title, j.Job)
	if j.State.Status == approval.Denied {
		text = j.Denial(t.lang)
	}
	t.decided(ctx, f.Session, j, text, "decided/"+j.Short())
	return nil
}

// ended is how a run ended, for a conversation; over is false while its draft is on its way.
func (t *talks) ended(ctx context.Context, v contextstore.View) (text string, over bool, err error) {
	uuid, ref := v.Metadata.UUID, order.Ref(v.Metadata.TaskKey)
	owed, err := t.store.Undelivered(ctx, uuid)
	if err != nil {
		return "", false, err
	}
	if v.Status() != task.Completed {
		reason := ""
		if v.State.Error != nil {
			reason = *v.State.Error
		}
		return t.lang.T("app.thread_"+string(v.Status()), ref, reason), true, nil
	}
	if slices.ContainsFunc(owed, func(e contextstore.Effect) bool {
		return e.Kind == delivery.EffectPush || e.Kind == delivery.EffectPull || e.Kind == delivery.EffectTask
	}) {
		return "", false, nil
	}
	url, why, err := t.delivery().Came(ctx, uuid)
	switch {
	case err != nil:
		return "", false, err
	case why != "":
		return t.lang.T("app.thread_undelivered", ref, why), true, nil
	case url == "":
		return t.lang.T("app.thread_unchanged", ref), true, nil
	}
	return t.lang.T("app.thread_completed", ref, url), true, nil
}
