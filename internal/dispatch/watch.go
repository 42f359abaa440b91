package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/order"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
)

// Watch is one forge that is watched for work. Its exported fields are set once; the
// rest is of Intake, which is the only one to use it, but for the time of hold.
type Watch struct {
	Host        *delivery.Host
	Patterns    []string // of repositories
	Label       string   // that asks for work
	Assignment  bool     // so does assigning the account
	FollowUp    bool     // so does a review that asks for changes of one of its own pull requests
	StopRemoved bool     // taking either away stops the run
	MaxPerHour  int      // runs of one task
	Config      contextstore.MetadataConfig
	// Settings is Config of the runs of one user; nil for Config.
	Settings func(ctx context.Context, login string) contextstore.MetadataConfig
	// Only is the one item that is looked at; its Type is "" where the number tells. The zero
	// Key is for all.
	Only task.Key
	// StayPaused forgets what a paused run waits for to go on by itself; may be nil.
	StayPaused func(ctx context.Context, uuid string) error

	mu       sync.Mutex
	known    map[forge.Repo]bool // names of repos, for Watches
	account  forge.Person        // self, for Own
	calls    []*call             // that wait to be answered
	rings    bell                // where there are some
	round    bell                // where it is time for a look (Intake.Round)
	hooked   map[forge.Repo]*hooked
	quiet    map[forge.Repo]quiet // watched ones in which the last look left nothing
	self     forge.Person
	repos    []forge.Repository
	listed   time.Time       // when repos was asked for
	sought   time.Time       // when it was asked for because of a call
	looked   time.Time       // for work, the last time that this succeeded
	answered map[string]bool // acts that were refused and answered
	hold     time.Time       // until when the forge is left alone
	deferred map[string]answers
	next     forge.Repo          // where the next round begins
	failing  retries             // repositories and items that fail
	blind    bool                // it does not tell who edits; that was logged
	labelled map[forge.Repo]bool // where the labels that ask are, or cannot be made

	queued     map[string]bool // queued runs whose items are looked at this time
	lastQueued string          // the last of them that was looked at
}

// passes reports whether an item is not looked at.
func (w *Watch) passes(typ, number string) bool {
	return w.Only.ID != "" && (number != w.Only.ID || typ != "" && w.Only.Type != "" && typ != w.Only.Type)
}

const (
	// relist is how long a list of repositories is believed.
	relist = 10 * time.Minute
	// againList is how long one is that not all could be asked for.
	againList = time.Minute
)

// maxRefused bounds what is remembered of refused acts; one that was forgotten
// is judged once more, and its answer is there already.
const maxRefused = 10_000

// trigger is what sets an item before us.
func (w *Watch) trigger() forge.Trigger {
	t := forge.Trigger{Label: w.Label}
	if w.Assignment {
		t.Assignee = w.self
	}
	return t
}

// repositories lists the repositories that are watched. What cannot be seen is logged, and
// does not keep the rest away.
func (w *Watch) repositories(ctx context.Context, now time.Time, log *slog.Logger) ([]forge.Repository, error) {
	if w.self.ID == 0 && w.self.Login == "" {
		self, err := w.Host.Self(ctx)
		if err != nil {
			return nil, err
		}
		w.self = self
		w.mu.Lock()
		w.account = self
		w.mu.Unlock()
	}
	if w.repos != nil && now.Sub(w.listed) < relist {
		return w.repos, nil
	}
	repos, err := w.Host.Repositories(ctx, w.Patterns)
	defer w.name()
	if err == nil {
		w.repos, w.listed = repos, now
		return repos, nil
	}
	if refusesAll(err) || len(repos)+len(w.repos) == 0 {
		return w.repos, err
	}
	log.Warn("Not all repositories can be seen: " + err.Error())
	w.listed = now.Add(againList - relist)
	if forge.Is(err, forge.NotFound) {
		w.listed = now // nothing but names that are not there
	} else {
		known := namesOf(repos)
		for _, r := range w.repos {
			if !known[lower(r.Repo)] {
				repos = append(repos, r)
			}
		}
	}
	w.repos = repos
	return repos, nil
}

// heldUntil is when the forge may be asked again.
func (w *Watch) heldUntil() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hold
}

// holdOff keeps still for as long as an error of the forge as a whole asks for it.
func (w *Watch) holdOff(err error, now time.Time) {
	var e *forge.Error
	if !errors.As(err, &e) {
		return
	}
	wait := e.Wait
	switch e.Kind {
	case forge.RateLimited:
		wait = max(wait, time.Second)
	case forge.Unavailable, forge.Unauthorized:
		wait = max(wait, 15*time.Second)
	default:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if until := now.Add(wait); until.After(w.hold) {
		w.hold = until
	}
}

// The pauses between two looks at a repository or an item that fails.
const (
	firstRest = 15 * time.Second
	lastRest  = 5 * time.Minute
)

// backOff leaves something that failed alone, each time for longer.
func (w *Watch) backOff(what string, now time.Time) time.Duration {
	w.failing.most = lastRest
	return w.failing.failed(what, now, firstRest, 0)
}

// called is how texts name a person.
func (w *Watch) called(p forge.Person) string {
	if w.Host.Code == nil { // nobody is notified
		return p.Login
	}
	return "@" + p.Login
}

// candidate is somebody asking for work, as far as it was looked into.
type candidate struct {
	key  task.Key
	item forge.Item
	act  order.Act
}

// Verdict is what becomes of somebody's asking.
type Verdict string

// The verdicts. Whoever asked may, but for Refused.
const (
	Refused Verdict = "refused" // who asked may not
	Begun   Verdict = "begun"
	Resumed Verdict = "resumed" // a paused run was asked for again
	InHand  Verdict = "in_hand" // there is a run of this act, or one that has not ended
	Stopped Verdict = "stopped" // a later /stop took it back
	Often   Verdict = "often"   // too many runs within the hour
)

// consider begins a run for an act, unless there is one already, or who asks may
// not.
func (i *Intake) consider(ctx context.Context, w *Watch, a candidate) (Verdict, error) {
	last, ok, err := i.latest(ctx, a.key)
	if err != nil {
		return "", err
	}
	if ok {
		taken, err := order.LastAct(ctx, i.Store, last)
		if err != nil || !taken.Before(a.act) {
			return InHand, err // it was begun for this very act, whose label is still being taken away
		}
	}
	may, err := w.may(ctx, a.key, a.act.By)
	if err != nil {
		return "", err
	}
	if !may {
		return Refused, i.refuse(ctx, w, a)
	}
	if ok && last.Status() == task.Paused {
		return i.resume(ctx, w, last, a)
	}
	if ok && !last.Status().Final() {
		return InHand, nil // asked for again: it waits until the run has ended
	}
	if stopped, err := i.stopped(ctx, a); stopped || err != nil {
		return Stopped, err
	}
	if often, err := i.tooOften(ctx, w, a); often || err != nil {
		return Often, err
	}
	return i.begin(ctx, w, a, last)
}

// resume lets a paused run go on for which somebody asks again. One who asked
// before it was seen to be paused wants another run, after this one.
// A review shows no label, and each of them is the same.
func (i *Intake) resume(ctx context.Context, w *Watch, last contextstore.View, a candidate) (_ Verdict, err error) {
	if a.key.Type != task.TypeReview {
		var shown forge.Asked
		shown, err = w.Host.Asked(ctx, a.key, forge.Trigger{Label: w.Host.Labels.Status[task.Paused]})
		if errors.Is(err, forge.ErrNotAsked) || err == nil && a.act.At.Before(shown.At) {
			return InHand, nil
		}
	}
	if err == nil {
		err = order.TakeUp(ctx, i.Store, last.Metadata.UUID, a.act)
	}
	if err == nil {
		_, err = i.Store.Control(ctx, last.Metadata.UUID, contextstore.Resume, a.act.By.Login)
		i.Wake()
	}
	return Resumed, err
}

// may reports whether a person may ask for work on a task; we ourselves do not.
func (w *Watch) may(ctx context.Context, k task.Key, p forge.Person) (bool, error) {
	if p.ID == w.self.ID && p.ID != 0 {
		return false, nil
	}
	return w.Host.May(ctx, forge.RepoOf(k), p)
}

// refuse answers somebody who may not ask. On an item each of them gets one
// comment, however often they ask.
func (i *Intake) refuse(ctx context.Context, w *Watch, a candidate) error {
	id := a.key.String() + " " + a.act.Event
	if w.answered[id] {
		return nil
	}
	i.Log.Warn("Not begun: who asked may not", "task", a.key.String(), "by", a.act.By.Login, "bot", a.act.By.Bot)
	// Only who can set labels or assign is answered: anybody can comment and
	// review, and an answer would let strangers make us talk.
	act := a.act.How == order.ByLabel || a.act.How == order.ByAssignment
	if act && !a.act.By.Bot && a.act.By.ID != w.self.ID {
		text := i.Lang.T("dispatch.refused", a.act.By.Login, w.Host.Least)
		if _, err := w.Host.Post(ctx, a.key.Item(), fmt.Sprint("refused-", a.act.By.ID), text); err != nil && (atLarge(err) || passing(err)) {
			return err
		} else if err != nil {
			i.Log.Warn("Not answered: "+err.Error(), "task", a.key.String())
		}
	}
	if w.answered == nil || len(w.answered) >= maxRefused {
		w.answered = map[string]bool{}
	}
	w.answered[id] = true
	return nil
}

// begin enqueues a run, with the labels that show it; last is the newest one before it.
func (i *Intake) begin(ctx context.Context, w *Watch, a candidate, last contextstore.View) (v Verdict, err error) {
	a.act.Text = order.TextOf(a.item)
	if a.act.EditedBy, err = i.editedBy(ctx, w, a); err != nil {
		return "", err
	}
	o := order.Order{Act: &a.act}
	if last.Metadata.TaskKey == a.key {
		if before, err := order.Parse(last.Metadata); err == nil && before.For != nil {
			o.For = before.For
			o.For.Run = ""
		}
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	user, err := w.userOf(ctx, a)
	if err != nil {
		return "", err
	}
	set := w.Config
	if w.Settings != nil {
		set = w.Settings(ctx, user)
	}
	id, err := i.Store.Enqueue(ctx, contextstore.Metadata{TaskKey: a.key, User: user, Title: progress.OneLine(a.item.Title), Config: set, Run: raw}, delivery.QueuedLabels)
	if errors.As(err, new(*contextstore.LiveError)) {
		return InHand, nil // somebody else was quicker
	}
	if err != nil {
		return "", fmt.Errorf("enqueue %s: %w", a.key, err)
	}
	i.Log.Info("Task queued: "+a.key.String(), "uuid", id, "by", a.act.By.Login, "how", a.act.How)
	i.Wake()
	return Begun, nil
}

// userOf is whose run an asking begins: the author's of the item, of a pull request of our own
// the first who is asked to review it; whoever asked, where there is no such person.
//
// Source: reference "task_key and queue message".
func (w *Watch) userOf(ctx context.Context, a candidate) (string, error) {
	p := a.item.Author
	if a.item.Pull != nil && p.Is(w.self) {
		it, err := w.Host.Item(ctx, a.key.Item()) // lists do not tell it
		if err != nil {
			return "", err
		}
		p = forge.Person{}
		if it.Pull != nil && len(it.Pull.Reviewers) > 0 {
			p = it.Pull.Reviewers[0]
		}
	}
	if p.Login == "" || p.Bot || p.Is(w.self) {
		p = a.act.By
	}
	return p.Login, nil
}
