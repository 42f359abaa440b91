package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// The kinds of effects that only a run on a forge has.
const (
	EffectPull   = "pull_request"
	EffectLabels = "labels"
)

// pullEffect is the pull request that is to be there.
type pullEffect struct {
	Head     string       `json:"head"`
	Base     string       `json:"base"`
	Title    string       `json:"title"`
	Body     string       `json:"body"`
	Ready    bool         `json:"ready"` // it was verified: no draft any more
	Reviewer forge.Person `json:"reviewer"`
}

// NotDelivered begins the result of an effect that the other side will never
// take; what follows says why.
const NotDelivered = "! "

// hostedEffects are what the world must see of the end, or the pause, of a run
// on a forge: in this order, since each speaks of what is before it.
func (r *run) hostedEffects() (all []contextstore.Effect, err error) {
	o, id := r.report.Outcome, r.ledger.UUID()
	at := stage(o.Status, r.ledger.State().Generation)
	add := func(key, kind string, data any) {
		if err == nil {
			var e contextstore.Effect
			if e, err = effect(id+"."+key, kind, data); err == nil {
				all = append(all, e)
			}
		}
	}
	if r.handed && r.report.Commit != "" {
		add(EffectPush, EffectPush, pushEffect{r.place.Branch, r.report.Commit})
		if r.proposal != nil {
			add(EffectPull, EffectPull, r.proposal)
		}
	}
	if !r.silent {
		e, err := r.commentOn(id, at, r.report.Comment)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if r.asking != nil {
		all = append(all, *r.asking)
	}
	return append(all, labelsOf(id, at)), err
}

// stage names a transition among those of its run: a run can pause more than once.
func stage(s task.Status, generation int64) string {
	if s.Final() {
		return string(s)
	}
	return fmt.Sprintf("%s.%d", s, generation)
}

// propose puts the pull request together and asks the broker about it. The
// keyword that closes the issue is added afterwards: models may not write it.
func (r *run) propose(ctx context.Context) error {
	if r.place.Pull != "" {
		return nil // it is there already
	}
	var patch limited
	if err := r.ws.CommittedText(ctx, r.report.Commit, &patch); err != nil {
		return err
	}
	l, m := r.Lang, r.ledger.Metadata()
	v, err := r.door.Judge(ctx, broker.Request{
		Kind: broker.PullRequest, Key: m.UUID + "." + EffectPull, Task: m.TaskKey, Target: broker.Target{Branch: r.place.Branch, Base: r.place.Onto},
		Title: cmp.Or(wordsOf(r.final).subject, m.Title), Text: r.description(l), Patch: patch.String(), Draft: true,
	})
	if err != nil {
		return err
	}
	if v.Decision != broker.Allow {
		if len(v.Findings) > 0 {
			return &taskError{v.Reason}
		}
		return v.Reason
	}
	r.proposal = &pullEffect{Head: r.place.Branch, Base: r.place.Onto, Title: v.Title, Body: "Closes #" + m.TaskKey.ID + "\n\n" + v.Text,
		Ready: r.settled(), Reviewer: r.job.Ask.By}
	return nil
}

// save commits what an ended run leaves in its workspace and hands the branch
// over without a pull request: nothing that was done is lost on a machine that
// who asked cannot reach. What may not go out stays where it is.
func (r *run) save(ctx context.Context) {
	if r.ws == nil || r.handed || r.door == nil {
		return
	}
	hash, err := r.commit(ctx)
	if err == nil && hash != "" {
		if r.report.Commit = hash; len(r.report.Files) == 0 {
			if changes, cerr := r.ws.ChangedFiles(ctx); cerr == nil {
				r.report.Files = workspace.Paths(changes)
			}
		}
		if err = r.mayPush(ctx); err == nil {
			err = r.mayHand(ctx)
		}
		r.handed = err == nil
	}
	if err != nil {
		r.log.Warn("What was done so far stays in the workspace: " + r.Store.Redact(err.Error()))
	}
}

// Propose delivers a pull request: one, as a draft, ready where it was verified.
func (a *Agent) Propose(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
	var p pullEffect
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return "", fmt.Errorf("effect %s: %w", e.Key, err)
	}
	h, key, err := a.hostOf(uuid)
	if err != nil {
		return "", err
	}
	if done, err := a.Store.Delivered(ctx, uuid); err != nil {
		return "", err
	} else if why, is := strings.CutPrefix(done[uuid+"."+EffectPush], NotDelivered); is {
		return NotDelivered + why, nil // there is no branch to propose
	}
	if newer, err := a.superseded(ctx, uuid, key, p.Head); err != nil || newer != "" {
		return newer, err
	}
	it, err := h.Propose(ctx, forge.RepoOf(key), forge.Proposal{Head: p.Head, Base: p.Base, Title: p.Title, Body: p.Body, Marker: uuid, Draft: true})
	if err != nil {
		return "", a.yet(ctx, uuid, err)
	}
	if !it.Open || it.Pull == nil || it.Pull.Marker == "" { // people have decided about it already, or made it theirs
		return it.URL, nil
	}
	if p.Reviewer.Login != "" {
		if err := h.RequestReview(ctx, it.Key, []forge.Person{p.Reviewer}); err != nil && !refused(err) {
			return "", err
		}
	}
	if p.Ready {
		if err := h.Ready(ctx, it.Key); err != nil && !refused(err) {
			return "", err
		}
	}
	return it.URL, nil
}

// refusedMark is the mark of when a forge first refused a run's pull request as
// invalid.
const refusedMark = "pull_refused"

// refusedTime is how long a pull request that is refused as invalid is tried
// again: a forge that has just taken a branch may not know it everywhere yet.
const refusedTime = 10 * time.Minute

// yetError is a refusal as forge.Invalid that is tried again, though Invalid lasts
// elsewhere (Lasting).
type yetError struct{ said string }

func (e *yetError) Error() string { return e.said }

// yet returns the error of a pull request that was refused: a *yetError for
// refusedTime after the first refusal as forge.Invalid, err itself after that and for
// every other kind.
func (a *Agent) yet(ctx context.Context, uuid string, err error) error {
	if !forge.Is(err, forge.Invalid) {
		return err
	}
	mark, merr := a.Store.Mark(ctx, uuid, refusedMark)
	if merr != nil {
		return merr
	}
	since, perr := time.Parse(time.RFC3339, mark)
	if perr != nil {
		since = a.Now()
		if merr := a.Store.SetMark(ctx, uuid, refusedMark, since.UTC().Format(time.RFC3339)); merr != nil {
			return merr
		}
	}
	if a.Now().Sub(since) < refusedTime {
		return &yetError{a.Lang.Error(err)}
	}
	return err
}

// refused reports that a forge rejects an optional step, such as a label or a
// reviewer: the delivery goes on without it.
func refused(err error) bool {
	return forge.Is(err, forge.Invalid) || forge.Is(err, forge.Unsupported) || forge.Is(err, forge.Forbidden)
}

// hostOf is the forge of a run, and its task.
func (a *Agent) hostOf(uuid string) (*Host, task.Key, error) {
	m, err := a.Store.Metadata(uuid)
	if err != nil {
		return nil, task.Key{}, err
	}
	h, err := a.host(m.TaskKey)
	return h, m.TaskKey, err
}

func (a *Agent) host(k task.Key) (*Host, error) {
	if h := a.Hosts[k.Source]; h != nil {
		return h, nil
	}
	return nil, i18n.E("agent.no_host", ref(k), k.Source)
}

// pushHosted delivers a branch to the forge.
func (a *Agent) pushHosted(ctx context.Context, uuid string, ws *workspace.Workspace, p pushEffect) (string, error) {
	h, key, err := a.hostOf(uuid)
	if err != nil {
		return "", err
	}
	v, err := a.Store.View(uuid)
	if err != nil {
		return "", err
	}
	at, _, err := readPlace(v.Dir)
	if err != nil {
		return "", err
	}
	opt, err := h.pushing(ctx, key, at)
	if err != nil {
		return "", err
	}
	_, err = ws.Push(ctx, opt)
	return p.Branch + " " + p.Commit, err
}

// postHosted delivers what is said about a run: in its one comment, which is
// edited from stage to stage. What came of the effects before it is added.
func (a *Agent) postHosted(ctx context.Context, m contextstore.Metadata, key, text string) (string, error) {
	h, err := a.host(m.TaskKey)
	if err != nil {
		return "", err
	}
	v, err := a.Store.View(m.UUID)
	if err != nil {
		return "", err
	}
	stage, marker := strings.TrimPrefix(key, m.UUID+"."), m.UUID
	is := strings.HasPrefix(stage, string(v.Status()))
	if strings.HasPrefix(stage, questionStage) { // a comment of its own, so that people are notified
		is, marker = v.Status() == task.AwaitingApproval, key[:strings.LastIndexByte(key, '.')]
	}
	if !is {
		return "what came after says more", nil
	}
	if marker != m.UUID {
		c, err := h.Post(ctx, m.TaskKey, marker, text)
		return c.URL, err
	}
	done, err := a.Store.Delivered(ctx, m.UUID)
	if err != nil {
		return "", err
	}
	for _, kind := range []string{EffectPush, EffectPull} {
		came := done[m.UUID+"."+kind]
		if why, is := strings.CutPrefix(came, NotDelivered); is {
			if text, err = a.undelivered(kind, why, text); err != nil {
				return "", err
			}
			break
		} else if kind == EffectPull && came != "" {
			shown, folded, folds := strings.Cut(text, "\n<details>") // a line that only ours begin
			text = shown + "\n" + a.Lang.T("agent.comment_pull", came) + "\n"
			if folds {
				text += "\n<details>" + folded
			}
		}
	}
	c, err := h.Post(ctx, m.TaskKey, m.UUID, text)
	return c.URL, err
}

// undelivered puts above what is said of a run that its work did not arrive: who
// reads on may take the rest for a success.
func (a *Agent) undelivered(kind, why, text string) (string, error) {
	key := "agent.comment_undelivered"
	if kind == EffectPull {
		key = "agent.comment_not_proposed"
	}
	said, _, err := a.Door.Filter.Clean(broker.Markdown, a.Lang.T(key, a.public(why))) // a stranger's words
	return said + "\n\n" + text, err
}

// CommentMeanwhile says on a run's item what its comment will say, and why the
// branch or the pull request is not there yet.
func (a *Agent) CommentMeanwhile(ctx context.Context, uuid string, e contextstore.Effect, why error) error {
	var c commentEffect
	if err := json.Unmarshal(e.Data, &c); err != nil {
		return fmt.Errorf("effect %s: %w", e.Key, err)
	}
	m, err := a.Store.Metadata(uuid)
	if err != nil {
		return err
	}
	if job, err := ParseJob(m); err != nil || job.Ask == nil {
		return err // a folder hears of it when it is there
	}
	_, err = a.postHosted(ctx, m, e.Key, c.Body+"\n"+a.Store.Redact(a.Lang.T("agent.comment_meanwhile", a.public(a.Lang.Error(why))))+"\n")
	return err
}

// Held reports whether an effect that failed like this waits, while the forge still
// takes comments: the forge refuses it until somebody changes our permissions, git
// alone cannot reach the forge, or it waits for what another run of the task made.
func Held(err error) bool {
	return barred(err) || workspace.Denied(err) || workspace.Unreachable(err) || errors.As(err, new(*yetError)) || errors.As(err, new(*owedError))
}

// Lasting reports whether an effect that failed like this will never be taken,
// so that what stands behind it in the outbox need not wait.
func Lasting(err error) bool {
	return forge.Is(err, forge.Gone) || forge.Is(err, forge.Invalid) || workspace.Refused(err)
}
