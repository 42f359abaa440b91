package app

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/order"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
)

// threads tells conversations of the runs of forges that they follow, until ctx ends.
func (t *talks) threads(ctx context.Context) {
	t.tellThreads(ctx)
	every(ctx, hearEvery, t.tellThreads)
}

// tellThreads tells conversations what they were not told of the runs that they follow. What is
// told follows from the files of a run, and each post has a key: whenever this is cut
// short, the next round says the rest.
func (t *talks) tellThreads(ctx context.Context) { t.eachThread(ctx, t.tellThread) }

// showThreads shows to the people of this process how far such runs are, which tori serve works
// on and tells of.
func (t *talks) showThreads(ctx context.Context) {
	t.eachThread(ctx, func(_ context.Context, f contextstore.Follower, v contextstore.View) error {
		t.mu.Lock()
		_, here := t.sessions[f.Session]
		t.mu.Unlock()
		if here {
			t.showThread(f, v)
		}
		return nil
	})
}

func (t *talks) eachThread(ctx context.Context, do func(context.Context, contextstore.Follower, contextstore.View) error) {
	t.showing.Lock()
	defer t.showing.Unlock()
	all, err := t.store.Followers(ctx)
	if err != nil && ctx.Err() == nil {
		t.log.Error(err.Error())
	}
	for _, f := range all {
		v, err := t.store.View(f.UUID)
		if errors.Is(err, contextstore.ErrNotFound) {
			err = t.store.Unfollow(ctx, f)
		} else if err == nil {
			err = do(ctx, f, v)
		}
		if err != nil && ctx.Err() == nil {
			t.log.Error("A conversation is not told of a run: "+err.Error(), "session_id", f.Session, "uuid", f.UUID)
		}
	}
	for key := range t.shown { // of those that are followed no more
		if !slices.ContainsFunc(all, func(f contextstore.Follower) bool { return key == f.UUID+" "+f.Session }) {
			delete(t.shown, key)
			uuid, session, _ := strings.Cut(key, " ")
			t.progress(order.Chat{Session: session, Job: uuid}, "")
		}
	}
}

// tellThread tells one conversation.
func (t *talks) tellThread(ctx context.Context, f contextstore.Follower, v contextstore.View) error {
	t = t.to(order.Chat{Session: f.Session, Language: f.Language})
	if err := t.tellQuestions(ctx, f, v); err != nil {
		return err
	}
	if err := t.tellRequest(ctx, f, v); err != nil {
		return err
	}
	t.showThread(f, v)
	if !v.Status().Final() {
		return nil
	}
	text, over, err := t.ended(ctx, v)
	if err != nil || !over {
		return err
	}
	if err := t.engine.Post(ctx, channel.Post{SessionID: f.Session, ReplyTo: f.ReplyTo, Key: f.UUID + "/over", Kind: channel.Notice, Job: f.UUID, Text: text}); err != nil {
		return err
	}
	return t.store.Unfollow(ctx, f)
}

// showThread shows how far a run is, where this process speaks with the session.
func (t *talks) showThread(f contextstore.Follower, v contextstore.View) {
	text := ""
	if s := v.Status(); s == task.Queued || s == task.Running {
		text = t.lang.T("app.thread_progress", order.Ref(v.Metadata.TaskKey), t.status(v), v.State.LLMCallCount)
	}
	key := f.UUID + " " + f.Session
	if t.shown[key] == text {
		return
	}
	t.shown[key] = text
	t.progress(order.Chat{Session: f.Session, Job: f.UUID}, text)
}

// tellQuestions puts what a run asks to a conversation, and tells it of what was answered elsewhere.
func (t *talks) tellQuestions(ctx context.Context, f contextstore.Follower, v contextstore.View) error {
	all, err := dialogue.Exchanges(v.Dir)
	if err != nil {
		return err
	}
	for _, q := range all {
		key := questionKey(f.UUID, q.ID)
		p := channel.Post{SessionID: f.Session, ReplyTo: f.ReplyTo, Kind: channel.Notice, Job: f.UUID}
		if q.Answer == nil && v.Status() == task.AwaitingApproval {
			if t.told[f.Session+key] {
				continue
			}
			p.Key, p.Text = key, t.question(v, q)
			if err := t.engine.Post(ctx, p); err != nil {
				return err
			}
			t.told[f.Session+key] = true
			continue
		}
		if t.told[f.Session+key+"/answered"] || q.Answer == nil || slices.Contains(slices.Collect(maps.Values(q.Sessions)), f.Session) { // it was told that its answer counts
			continue
		}
		put, err := t.engine.Said(f.Session, key)
		if err != nil {
			return err
		}
		if !put {
			t.told[f.Session+key+"/answered"] = true // it was answered before anybody here was asked
			continue
		}
		p.Key = key + "/answered"
		p.Text = t.lang.T("app.thread_answered", order.Ref(v.Metadata.TaskKey), q.Answer.By, progress.Quote(q.Answer.Text))
		if q.Answer.TimedOut {
			p.Text = t.lang.T("app.thread_unanswered", order.Ref(v.Metadata.TaskKey))
		}
		if err := t.engine.Post(ctx, p); err != nil {
			return err
		}
		t.told[f.Session+p.Key] = true
	}
	return nil
}

// question is what a run asks, as a conversation sees it.
func (t *talks) question(v contextstore.View, q dialogue.Exchange) string {
	ref := order.Ref(v.Metadata.TaskKey)
	parts := []string{t.lang.T("app.thread_asks", ref, v.Metadata.Title)}
	for _, text := range q.Questions {
		parts = append(parts, progress.Quote(t.lang.Translate(text)))
	}
	for _, text := range q.Assume {
		if !q.Deadline.IsZero() {
			parts = append(parts, "- "+t.lang.T("agent.question_assume", progress.Plain(text)))
		}
	}
	return strings.Join(append(parts, t.lang.T("app.thread_how", "#"+v.Metadata.TaskKey.ID)), "\n\n")
}

// tellRequest asks a conversation for the approval that a run waits for, and tells it of one that
// was decided elsewhere.
func (t *talks) tellRequest(ctx context.Context, f contextstore.Follower, v contextstore.View) error {
	j, err := approval.Read(v.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	told := f.Session + f.UUID + "/" + j.Short() + "/" + string(j.State.Status)
	if t.told[told] {
		return nil
	}
	if j.State.Status == approval.Pending {
		if v.Status() == task.AwaitingApproval && j.State.Hash == j.Hash() {
			t.request(ctx, f.Session, j)
			t.told[told] = true
		}
		return nil
	}
	t.told[told] = true
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
		return e.Kind == delivery.EffectPush || e.Kind == delivery.EffectPull
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
