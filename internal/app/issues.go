package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/conversation"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/models"
	"toritsugi/internal/order"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
)

// desk is where conversations ask for runs of forges.
type desk struct {
	asking channel.Turns // by person: a slow forge holds up nobody else

	deskMu sync.Mutex
	unread channel.Throttle                // for complaints that it cannot be read who follows runs
	own    channel.Recent[*dispatch.Watch] // of the forges whose issues may be asked for, by forge and person; whoever has the person's turn uses it
	told   map[string]*toldSession
}

// mostAsking is how many people's views of a forge are kept, at least.
const mostAsking = 32

// watched are the forges whose issues are asked for in conversations. A folder of issues has no
// accounts that people could be linked to.
func (t *talks) watched() (sources []string) {
	for _, f := range t.cfg.Forges() {
		if t.hosts[f.Source] != nil && len(f.Repositories) > 0 {
			sources = append(sources, f.Source)
		}
	}
	return sources
}

// intake judges for a person as the daemon's does of a forge, until the caller leaves.
func (t *talks) intake(ctx context.Context, source, user string) (i *dispatch.Intake, w *dispatch.Watch, leave func(), err error) {
	if leave, err = t.asking.Enter(ctx, user); err != nil {
		return nil, nil, nil, err
	}
	t.deskMu.Lock()
	w, known := t.own.Get(source + " " + user)
	t.deskMu.Unlock()
	if !known {
		spec, err := t.models.Spec(ctx, models.Use{Role: t.opt.Role, Model: t.opt.Model, Script: t.opt.Script, LocalOnly: t.opt.LocalOnly, Who: "tori serve"})
		if err != nil {
			leave()
			return nil, nil, nil, err
		}
		w = t.watch(t.hosts[source])
		w.Config = t.ofModel(spec)
		w.StayPaused = t.delivery().StayPaused
		t.deskMu.Lock()
		t.own.Put(source+" "+user, w)
		t.deskMu.Unlock()
	}
	return &dispatch.Intake{Store: t.store, Lang: i18n.Lang(t.cfg.Language), Log: t.log, Now: t.env.Now, Wake: t.wake, Stats: &dispatch.Stats{}}, w, leave, nil
}

// Watched implements conversation.Issues. A name that two forges have is the first one's, in
// the order of the settings; the forge may stand before it.
func (t *talks) Watched(ctx context.Context, user, name string) (url string, ok bool) {
	sources := t.watched()
	if source, rest, has := strings.Cut(name, ":"); has {
		sources = slices.DeleteFunc(sources, func(s string) bool { return !strings.EqualFold(s, source) })
		name = rest
	}
	r, is := forge.ParseRepo(name)
	if !is {
		return "", false
	}
	for _, source := range sources {
		i, w, leave, err := t.intake(ctx, source, user)
		known := r
		if err == nil {
			known, ok, err = i.Watched(ctx, w, r)
			leave()
		}
		if ok {
			return source + ":" + known.String(), true
		}
		if err != nil {
			t.log.Warn("Which repositories are watched cannot be told: " + t.env.Lang.Error(err))
		}
	}
	return "", false
}

// Begin implements conversation.Issues.
func (t *talks) Begin(ctx context.Context, a conversation.AskedIssue) (told, run string, err error) {
	source, name, _ := strings.Cut(a.URL, ":")
	r, _ := forge.ParseRepo(name)
	k := task.Key{Source: source, Owner: r.Owner, Repo: r.Name, Type: task.TypeIssue, ID: a.Number}
	if !slices.Contains(t.watched(), source) { // a repository of chat.repositories
		return "", "", i18n.E("app.retry_unwatched", order.Ref(k))
	}
	login, err := t.login(ctx, a.User, source)
	if err != nil {
		return "", "", err
	}
	refused := t.refusal(ctx, a.User, k)
	if login == "" {
		return "", "", refused
	}
	i, w, leave, err := t.intake(ctx, source, a.User)
	if err != nil {
		return "", "", err
	}
	defer leave()
	by, err := w.Host.Code.Person(ctx, r, login)
	if forge.Is(err, forge.NotFound) {
		return "", "", refused
	}
	may := false
	if err == nil { // to be told of a run that goes on takes no less
		may, err = w.Host.May(ctx, r, by)
	}
	if err != nil {
		return "", "", t.unreachable(err)
	}
	if !may {
		return "", "", refused
	}
	thread := &order.Thread{Session: a.SessionID, User: a.User, ReplyTo: a.ReplyTo, Language: string(t.lang)}
	v, last, err := i.Ask(ctx, w, k, order.Act{By: by, At: a.At, Event: "chat-" + a.ReplyTo, How: order.ByChat, Thread: thread})
	if err != nil {
		return "", "", t.unreachable(err)
	}
	switch v {
	case dispatch.Refused:
		return "", "", refused
	case dispatch.Stopped, dispatch.Often:
		return "", "", i18n.E("app.issue_"+string(v), order.Ref(k))
	case dispatch.Begun, dispatch.Resumed, dispatch.InHand:
	}
	run = last.Metadata.UUID
	ref := order.Ref(last.Metadata.TaskKey)
	if v == dispatch.InHand && last.Status().Final() {
		return t.lang.T("app.issue_over", ref, t.status(last)), run, nil
	}
	if v == dispatch.InHand {
		if o, err := order.Parse(last.Metadata); err == nil && o.Act != nil && o.Act.Thread != nil && *o.Act.Thread == *thread {
			v = dispatch.Begun // by this very message, before the program ended
		}
	}
	if err := t.store.Follow(ctx, contextstore.Follower{UUID: run, Session: a.SessionID, ReplyTo: a.ReplyTo, Language: string(t.lang)}); err != nil {
		return "", "", err
	}
	t.speaks(a.SessionID)
	if v == dispatch.InHand {
		return t.lang.T("app.issue_in_hand", ref, t.status(last), contextstore.Short(run)), run, nil
	}
	t.auditBy(a.User, "ask", run, ref)
	return t.lang.T("app.issue_"+string(v), ref, contextstore.Short(run)), run, nil
}

// unreachable is the error of a forge as it is told in a conversation.
func (t *talks) unreachable(err error) error {
	if errors.As(err, new(*forge.Error)) {
		return i18n.E("app.issue_forge", err)
	}
	return err
}

// auditBy puts on record what somebody in a conversation did about a run.
func (t *talks) auditBy(who, action, uuid, what string) {
	t.auditOf(contextstore.AuditEntry{Actor: who, Action: action, UUID: uuid, What: what})
}

// adopt has the conversation that asked for a run be told of it, though the program ended between
// the one and the other.
func (t *talks) adopt(ctx context.Context, m contextstore.Metadata) error {
	o, err := order.Parse(m)
	if err != nil || o.Act == nil || o.Act.Thread == nil {
		return nil //nolint:nilerr // whoever works on it says so
	}
	th := o.Act.Thread
	return t.store.Follow(ctx, contextstore.Follower{UUID: m.UUID, Session: th.Session, ReplyTo: th.ReplyTo, Language: th.Language})
}

// openQuestion is one that was put to a conversation.
type openQuestion struct {
	view     contextstore.View
	question dialogue.Exchange
}

// questionKey is that of the post that puts a question to a conversation.
func questionKey(uuid, question string) string { return uuid + "/question/" + question }

// followed are the runs that a session is told of.
func (t *talks) followed(ctx context.Context, session string) (all []contextstore.View, err error) {
	followers, err := t.store.Followers(ctx)
	for _, f := range followers {
		if f.Session != session {
			continue
		}
		v, err := t.store.View(f.UUID)
		if errors.Is(err, contextstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, err
}

// asked lists the questions that a message may answer: they were put to its session before it was
// said, and wait. taken is the one that it answered before.
func (t *talks) asked(ctx context.Context, m channel.Message) (all []openQuestion, taken *openQuestion, err error) {
	runs, err := t.followed(ctx, m.SessionID)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range runs {
		questions, err := dialogue.Exchanges(v.Dir)
		if err != nil {
			return nil, nil, err
		}
		for _, q := range questions {
			if q.First != nil && q.First.Session == m.SessionID && q.First.Message == m.ID {
				return nil, &openQuestion{v, q}, nil
			}
			key := questionKey(v.Metadata.UUID, q.ID)
			if !open(v, q) || m.Question != "" && m.Question != key || m.Question == "" && m.ReceivedAt.Before(q.AskedAt.Time) {
				continue
			}
			put, err := t.engine.Said(m.SessionID, key)
			if err != nil {
				return nil, nil, err
			}
			if put {
				all = append(all, openQuestion{v, q})
			}
		}
	}
	return all, nil, nil
}

// open reports whether a question of a run waits for an answer.
func open(v contextstore.View, q dialogue.Exchange) bool {
	return q.Answer == nil && q.First == nil && v.Status() == task.AwaitingApproval
}

// mayAnswer reports whether somebody may answer a run, or stop it: whoever may ask for it.
func (t *talks) mayAnswer(ctx context.Context, user string, v contextstore.View) (by forge.Person, may bool, err error) {
	k := v.Metadata.TaskKey
	h := t.hosts[k.Source]
	login, err := t.login(ctx, user, k.Source)
	if err != nil || login == "" || h == nil || h.Code == nil {
		return by, false, err
	}
	if by, err = h.Code.Person(ctx, forge.RepoOf(k), login); err == nil {
		may, err = h.May(ctx, forge.RepoOf(k), by)
	}
	if forge.Is(err, forge.NotFound) {
		return by, false, nil
	}
	return by, may, err
}

// refusal tells somebody that they may not have a say in the run of a task.
func (t *talks) refusal(ctx context.Context, user string, k task.Key) error {
	h := t.hosts[k.Source]
	login, err := t.login(ctx, user, k.Source)
	if err != nil {
		return err
	}
	if login == "" || h == nil {
		return i18n.E("app.issue_not_linked", user, order.Ref(k))
	}
	return i18n.E("app.issue_refused", login, order.Ref(k), h.Least.String())
}

// Awaited implements conversation.Issues. Where a forge cannot be asked who may answer, a message
// counts as an answer: Answer says why it is none.
func (t *talks) Awaited(ctx context.Context, m channel.Message) bool {
	if strings.TrimSpace(m.UserText) == "" {
		return false
	}
	all, taken, err := t.asked(ctx, m)
	if taken != nil {
		return true
	}
	for _, o := range all {
		_, may, merr := t.mayAnswer(ctx, m.User, o.view)
		if may {
			return true
		}
		err = errors.Join(err, merr)
	}
	if err != nil && ctx.Err() == nil {
		t.log.Warn("Whether a message answers a run cannot be told: "+t.env.Lang.Error(err), "session_id", m.SessionID)
	}
	return err != nil && len(all) > 0
}

// Answer implements conversation.Issues.
func (t *talks) Answer(ctx context.Context, m channel.Message) (p channel.Post, err error) {
	all, taken, err := t.asked(ctx, m)
	if err != nil {
		return p, err
	}
	text := m.UserText
	if taken == nil && len(all) > 1 {
		first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		var refs []string
		all = slices.DeleteFunc(all, func(o openQuestion) bool {
			k := o.view.Metadata.TaskKey
			refs = append(refs, order.Ref(k))
			return first != k.Number() && first != order.Ref(k)
		})
		if len(all) != 1 {
			return p, i18n.E("app.answer_which", strings.Join(refs, ", "))
		}
		text = rest
	}
	if taken == nil {
		if len(all) == 0 {
			return p, i18n.E("app.answer_late")
		}
		if taken, err = t.answer(ctx, m, all[0], text); err != nil {
			return p, err
		}
	}
	k, run := taken.view.Metadata.TaskKey, taken.view.Metadata.UUID
	if _, err := t.store.Control(ctx, run, contextstore.Resume, m.User); err != nil && !errors.Is(err, task.ErrIllegalTransition) {
		return p, err
	}
	t.wake()
	p.Job, p.Text = run, t.lang.T("app.answer_taken", order.Ref(k))
	if r := taken.question.First; m.Question != "" { // nobody saw what was pressed
		p.Text = t.lang.T("app.thread_answered", order.Ref(k), r.By, progress.Quote(r.Text))
	}
	p.Question = t.put(taken.view, taken.question)
	p.Question.Over, p.Question.By, p.Question.At = true, m.User, taken.question.First.At.Time
	return p, nil
}

// answer puts down what somebody answers.
func (t *talks) answer(ctx context.Context, m channel.Message, o openQuestion, text string) (*openQuestion, error) {
	by, may, err := t.mayAnswer(ctx, m.User, o.view)
	if err != nil {
		return nil, t.unreachable(err)
	}
	if !may {
		return nil, t.refusal(ctx, m.User, o.view.Metadata.TaskKey)
	}
	r := dialogue.Reply{Question: o.question.ID, By: by.Login, Text: dialogue.Chosen(t.choices(o.question), text), At: contextstore.Time{Time: m.ReceivedAt}, Session: m.SessionID, Message: m.ID}
	uuid := o.view.Metadata.UUID
	_, first, err := dialogue.Answer(t.store, uuid, r)
	if err != nil {
		return nil, err
	}
	if !first {
		return nil, i18n.E("app.answer_late")
	}
	t.auditBy(m.User, "answer", uuid, r.Question)
	r.Text = t.store.Redact(r.Text)
	o.question.First = &r
	return &o, nil
}

// stopRun stops a run that a session is told of, for somebody who might have begun it.
func (t *talks) stopRun(ctx context.Context, session, id, user string) (found bool, err error) {
	runs, err := t.followed(ctx, session)
	for _, v := range runs {
		uuid, k := v.Metadata.UUID, v.Metadata.TaskKey
		if id != uuid && id != contextstore.Short(uuid) {
			continue
		}
		if _, may, err := t.mayAnswer(ctx, user, v); err != nil {
			return true, t.unreachable(err)
		} else if !may {
			return true, t.refusal(ctx, user, k)
		}
		if _, err := t.store.Control(ctx, uuid, contextstore.Stop, user); err != nil && !errors.Is(err, task.ErrIllegalTransition) {
			return true, err
		}
		t.auditBy(user, "stop", uuid, order.Ref(k))
		t.wake()
		return true, nil
	}
	return false, err
}

// permitted is how somebody decides about a proposal: of a run of a forge as their account there,
// whose permission to write counts.
func (t *talks) permitted(ctx context.Context, user, job string) (by string, permitted bool, err error) {
	j, err := t.approvals.Find(ctx, job, contextstore.Viewer{Admin: true})
	if err != nil {
		return user, false, nil //nolint:nilerr // whoever decides says so
	}
	v, err := t.store.View(j.Run)
	if err != nil {
		return user, false, err
	}
	if o, err := order.Parse(v.Metadata); err != nil || o.Act == nil {
		return user, false, err
	}
	k := v.Metadata.TaskKey
	p, may, err := t.mayAnswer(ctx, user, v)
	if err != nil || !may {
		return user, false, err
	}
	have, err := t.hosts[k.Source].Permission(ctx, forge.RepoOf(k), p)
	if err != nil || have < forge.Write {
		return user, false, err
	}
	return delivery.Requester(k.Source, p), true, nil
}
