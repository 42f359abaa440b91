package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/job"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

const (
	// hearEvery is how often what other processes said, and did, is looked for.
	hearEvery = 2 * time.Second
	// toldWithin is how long whoever worked on a job has to say how it ended; a model
	// writes that.
	toldWithin = time.Minute
)

// followed is a job of which a session is shown how far it is, while another process works
// on it.
type followed struct {
	session string
	since   time.Time
	shown   string
	ended   time.Time // when that was seen first; zero while it goes on
	told    bool
}

// speaks notes that somebody in a session waits for what is said there.
func (t *talks) speaks(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions[session] = t.sessions[session] || false
}

// follow notes that somebody in a session waits for what becomes of a job, whoever works on it.
func (t *talks) follow(session, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.following != nil && t.following[id] == nil {
		t.following[id] = &followed{session: session, since: t.env.Now()}
	}
}

// look shows what other processes, such as tori serve, said to the sessions that this one
// speaks with, and how far they are with its jobs. Whether a job was told of is looked at
// before what was said is shown, and its end is shown behind that.
func (t *talks) look(ctx context.Context) {
	going, err := t.goesOn(ctx)
	if err != nil {
		if ctx.Err() == nil {
			t.log.Warn("How far other processes are with jobs: " + err.Error())
		}
		return
	}
	t.mu.Lock()
	sessions, jobs := slices.Collect(maps.Keys(t.sessions)), maps.Clone(t.following)
	t.mu.Unlock()
	for id, f := range jobs {
		if going[id] {
			f.ended = time.Time{}
			continue
		}
		if f.ended.IsZero() {
			f.ended = t.env.Now()
		}
		if f.told, err = t.isTold(ctx, f.session, id); err != nil && ctx.Err() == nil {
			t.log.Warn("What became of a job: "+err.Error(), "job_id", id)
		}
	}
	for _, session := range sessions {
		t.engine.PostOwed(ctx, session)
	}
	t.showThreads(ctx)
	for id, f := range jobs {
		switch {
		case f.ended.IsZero():
		case f.told:
			t.engine.ShowJob(ctx, f.session, id, f.since)
			t.progress(order.Chat{Session: f.session, Job: id}, "")
			t.mu.Lock()
			delete(t.following, id)
			t.mu.Unlock()
		case t.env.Now().Sub(f.ended) > toldWithin: // whoever worked on it died
			f.ended = t.env.Now()
			t.opens(f.session)
		}
	}
}

// goesOn shows how far the jobs are that go on, and returns them: those of sessions that are
// looked at, and those that are followed.
func (t *talks) goesOn(ctx context.Context) (going map[string]bool, err error) {
	going = map[string]bool{}
	goes := func(s task.Status) bool { return s == task.Queued || s == task.Running }
	err = t.live(ctx, func(r contextstore.Row) bool { return goes(r.Status) }, func(v contextstore.View, o order.Chat) error {
		here := t.works(v.Metadata.UUID) // who works on it tells how far it is
		t.mu.Lock()
		f := t.following[o.Job]
		if f == nil && t.sessions[o.Session] && goes(v.Status()) {
			f = &followed{session: o.Session, since: t.env.Now()}
			t.following[o.Job] = f
		}
		if here {
			delete(t.following, o.Job)
			f = nil
		}
		t.mu.Unlock()
		if f == nil || !goes(v.Status()) {
			return nil
		}
		going[o.Job] = true
		if text := t.standingOf(v); text != f.shown {
			f.shown = text
			t.progress(o, text)
		}
		return nil
	})
	return going, err
}

// standingOf says how far a job is that this process does not work on.
func (t *talks) standingOf(v contextstore.View) string {
	if v.Status() == task.Running && v.Held {
		return t.lang.T("job.elsewhere", job.Stage(v, t.lang), v.Owner.ProcessID, v.Owner.Hostname)
	}
	return t.status(v)
}

// status is how a job stands, in a word or two.
func (t *talks) status(v contextstore.View) string {
	if v.Interrupted() && !t.works(v.Metadata.UUID) {
		return t.lang.T("job.status_interrupted")
	}
	if v.Status() == task.AwaitingApproval {
		if _, asks, err := dialogue.Pending(v.Dir); err == nil && asks {
			return t.lang.T("job.status_asks")
		}
	}
	return t.lang.T("job.status_" + string(v.Status()))
}

// isTold reports whether the people of a session were told how a job stands that nobody works on.
func (t *talks) isTold(ctx context.Context, session, id string) (bool, error) {
	v, ok, err := t.jobView(ctx, id)
	if err != nil || !ok {
		return !ok, err
	}
	if v.Status() == task.Paused {
		return true, nil
	}
	j, err := approval.Read(v.Dir)
	if err == nil && v.Status() == task.AwaitingApproval {
		return t.engine.Said(session, requestKey(j))
	}
	grantable := err == nil && j.Grantable()
	p, err := t.engine.LastOf(session, id)
	switch p.Kind {
	case channel.Answer:
		return !grantable, err
	case channel.Decided:
		return p.Key == id+"/over" || p.Approval != nil && p.Approval.Status == string(approval.Denied), err
	}
	return false, err
}
