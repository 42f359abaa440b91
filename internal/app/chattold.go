package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contract"
	"toritsugi/internal/conversation"
	"toritsugi/internal/job"
	"toritsugi/internal/order"
	"toritsugi/internal/routing"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// standing is how a job stands, for those who are told of it.
type standing struct {
	order  order.Chat
	job    approval.Job // its Job is "" where nothing was proposed
	status task.Status
	reason string // of the status
	err    error  // why there is no proposal, nil for the reason
}

// tell tells the people of a session how a job stands, as far as its log does not say that
// they know.
func (t *talks) tell(ctx context.Context, s standing) {
	o, j := s.order, s.job
	defer t.progress(o, "")
	waits := j.Grantable() && j.State.Status == approval.Pending
	if waits { // at once: what Chat has to say of it takes a model a while
		t.event(ctx, o.Session, j)
		t.request(ctx, o.Session, j)
	}
	switch {
	case j.Job != "" && j.Reverts == "" && (waits || !j.Grantable() || j.State.Status == approval.AutoApproved): // else people know it, and decided
		c, err := job.Coder(t.approvals, j, t.lang)
		if err != nil {
			t.log.Error("A proposal is not told: "+err.Error(), "job_id", o.Job)
			return
		}
		t.finish(ctx, o, c, nil)
	case j.Job == "" && s.status == task.Stopped:
		t.finished(ctx, conversation.Finished{SessionID: o.Session, ReplyTo: o.ReplyTo, ID: o.Job, Stopped: true})
	case j.Job == "" && s.status == task.Failed:
		t.finish(ctx, o, nil, cmp.Or(s.err, errors.New(s.reason)))
	}
	switch {
	case !j.Grantable(), waits:
	case s.status.Final():
		switch {
		case j.State.Status == approval.Denied && j.State.Approver != approval.System:
			if last, err := t.engine.LastOf(o.Session, j.Job); err == nil && last.Kind == channel.Decided {
				return // whoever denied it told
			}
		case j.State.Status == approval.AutoApproved:
			t.event(ctx, o.Session, j)
			s.reason = t.lang.T("app.auto_approved") + "\n" + s.reason
		case j.State.Approver == approval.System && j.State.Status == approval.Denied:
			t.event(ctx, o.Session, j)
			if j.State.Reason == approval.ReasonStale {
				s.reason = t.anew(ctx, j)
			}
		}
		switch s.status {
		case task.Completed:
			s.reason += "\n" + t.lang.T("job.take_back", j.Job)
		case task.Failed:
			s.reason = t.lang.T("job.not_applied", j.Title, j.Job, s.reason)
		}
		t.decided(ctx, o.Session, j, s.reason, "over")
	}
}

func (t *talks) finish(ctx context.Context, o order.Chat, c *contract.Coder, err error) {
	t.finished(ctx, conversation.Finished{SessionID: o.Session, ReplyTo: o.ReplyTo, ID: o.Job, Title: o.Title, Route: routing.Route(o.Route), Proposal: c, Err: err})
}

func (t *talks) finished(ctx context.Context, f conversation.Finished) {
	if err := t.engine.Finish(ctx, f); err != nil && ctx.Err() == nil {
		t.log.Error("What became of a job is not told: "+err.Error(), "job_id", f.ID)
	}
}

// mostOpened is how many sessions wait to be caught up with; of more than a person opens
// the rest is told when they are opened again.
const mostOpened = 16

// opens notes that somebody looks at a session again.
func (t *talks) opens(session string) {
	t.mu.Lock()
	t.sessions[session] = true
	t.mu.Unlock()
	select {
	case t.opened <- session:
	default:
	}
}

// tellOpened tells each session that is opened how the jobs stand that ended while nobody
// spoke with it, until ctx ends.
func (t *talks) tellOpened(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case session := <-t.opened:
			t.tellUntold(ctx, session)
		}
	}
}

// gaveUp notes that a run ended that nobody works on: the people of a chat are to be told.
func (t *talks) gaveUp(v contextstore.View) {
	o, err := order.Parse(v.Metadata)
	if err != nil || o.Chat == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.givenUp == nil {
		t.givenUp = map[string]bool{}
	}
	t.givenUp[o.Chat.Session] = true
}

// tellGivenUp tells the people of jobs that were given up.
func (t *talks) tellGivenUp(ctx context.Context) {
	t.mu.Lock()
	all := t.givenUp
	t.givenUp = nil
	t.mu.Unlock()
	for session := range all {
		t.tellUntold(ctx, session)
	}
}

// tellUntold tells a session what it was not told.
func (t *talks) tellUntold(ctx context.Context, session string) {
	ids, err := t.engine.Untold(ctx, session)
	for _, id := range ids {
		err = errors.Join(err, t.tellOf(ctx, id))
	}
	if err != nil && ctx.Err() == nil {
		t.log.Error("Not all that became of jobs is told: "+err.Error(), "session_id", session)
	}
}

// tellOf tells how a job stands that nobody works on.
func (t *talks) tellOf(ctx context.Context, id string) error {
	v, ok, err := t.jobView(ctx, id)
	if err != nil || !ok {
		return err
	}
	if !v.Status().Final() && v.Status() != task.AwaitingApproval {
		return nil // whoever works on it tells
	}
	o, err := order.Parse(v.Metadata)
	if err != nil || o.Chat == nil {
		return err
	}
	t = t.to(*o.Chat)
	s := standing{order: *o.Chat, status: v.Status()}
	if v.State.Error != nil {
		s.reason = *v.State.Error
	}
	if s.job, err = approval.Read(v.Dir); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	switch {
	case err != nil:
	case s.status == task.Completed && s.job.Grantable():
		s.reason, err = job.Applied(v, s.job, t.lang)
	case s.job.State.Status == approval.Denied: // the run has it in the language of who denied it
		s.reason = s.job.Denial(t.lang)
	}
	if err == nil {
		t.tell(ctx, s)
	}
	return err
}

// jobView is the run of a job id.
func (t *talks) jobView(ctx context.Context, id string) (v contextstore.View, ok bool, err error) {
	l, err := contextstore.List(ctx, t.store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{Type: "chat", ID: id, Limit: 1})
	if err != nil || len(l.Views) == 0 {
		return v, false, err
	}
	v, err = t.store.View(l.Views[0].Metadata.UUID) // of what has ended the list tells less
	return v, err == nil, err
}

// anew has a stale proposal made anew, once, and says so. The id of the new job follows from
// the old one, so that it is one however often this is cut short.
func (t *talks) anew(ctx context.Context, j approval.Job) (said string) {
	id, err := t.again(ctx, j)
	switch {
	case err != nil:
		return j.Denial(t.lang) + "\n" + t.lang.Error(err)
	case id == "":
		return t.lang.T("app.stale_again")
	}
	return t.lang.T("app.stale", id)
}

// again enqueues a job for the request of a stale one; id is "" where that was made anew
// itself.
func (t *talks) again(ctx context.Context, j approval.Job) (id string, err error) {
	v, err := t.store.View(j.Run)
	if err != nil {
		return "", err
	}
	o, err := order.Parse(v.Metadata)
	if err != nil || o.Chat == nil || o.Chat.Again != "" {
		return "", err
	}
	src, err := workspace.Inspect(ctx, o.Repo, workspace.InspectOptions{NoStatus: true})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(j.Job))
	if id, err = approval.NewJob(j.State.Decided, time.Local, bytes.NewReader(sum[:])); err != nil {
		return "", err
	}
	if _, there, err := t.jobView(ctx, id); err != nil || there {
		return id, err
	}
	o.Base, o.Chat.Job, o.Chat.Again = src.Head, id, j.Job
	m := contextstore.Metadata{TaskKey: v.Metadata.TaskKey, Title: v.Metadata.Title, User: v.Metadata.User, Config: v.Metadata.Config}
	m.TaskKey.ID = id
	if m.Run, err = json.Marshal(o); err != nil {
		return "", err
	}
	t.progress(*o.Chat, t.lang.T("job.begins"))
	if _, err = t.store.Enqueue(ctx, m); errors.As(err, new(*contextstore.LiveError)) {
		err = nil
	}
	if err != nil {
		t.progress(*o.Chat, "")
	}
	t.follow(o.Chat.Session, id)
	t.wake()
	return id, err
}
