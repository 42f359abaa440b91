package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// The kinds of outward effects of a run on a folder of issues.
const (
	EffectPush    = "push"
	EffectComment = "comment"
)

// EffectSummary is the final summary that a model writes of a run that is over,
// once the world has seen what came of it.
const EffectSummary = "summary"

// pushEffect is the branch that goes into the user's repository.
type pushEffect struct {
	Branch string `json:"branch"`
	Commit string `json:"commit"`
}

// commentEffect is the entry in the comments file of the run's issue, whose path
// stands in metadata.json: here it would be masked if it held an address.
type commentEffect struct {
	Author string    `json:"author"`
	Time   time.Time `json:"time"`
	Body   string    `json:"body"`
}

// effects are what the world must see of the end of this run, the branch
// before the comment that speaks of it. The broker has allowed both.
func (r *run) effects() (all []contextstore.Effect, err error) {
	if r.Host != nil {
		return r.hostedEffects()
	}
	o := r.report.Outcome
	if o.Status == task.Completed && r.report.Commit != "" {
		e, err := effect(r.ledger.UUID()+"."+EffectPush, EffectPush, pushEffect{r.report.Branch, r.report.Commit})
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if o.Status == task.AwaitingApproval {
		if r.asking != nil {
			all = append(all, *r.asking)
		}
		return all, nil
	}
	if r.job.Issue != "" && !r.silent {
		e, err := r.commentOn(r.ledger.UUID(), string(o.Status), r.report.Comment)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// commentOn is the comment about the end of a run, or another stage of it. In a
// folder its key is the marker it leaves.
func (a *Agent) commentOn(uuid, stage, text string) (contextstore.Effect, error) {
	return effect(uuid+"."+stage, EffectComment,
		commentEffect{a.AuthorName, a.Now().UTC(), redact.Printable(a.Store.Redact(text))})
}

func effect(key, kind string, data any) (contextstore.Effect, error) {
	raw, err := json.Marshal(data)
	return contextstore.Effect{Key: key, Kind: kind, Data: raw}, err
}

// Push delivers a branch; the branch that is there already at its commit is the
// delivery's own marker.
func (a *Agent) Push(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
	var p pushEffect
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return "", fmt.Errorf("effect %s: %w", e.Key, err)
	}
	m, err := a.Store.Metadata(uuid)
	if err != nil {
		return "", err
	}
	job, err := ParseJob(m)
	if err != nil {
		return "", fmt.Errorf("effect %s: %w", e.Key, err)
	}
	ws, err := workspace.Open(a.Store.WorkspaceDir(uuid), a.box())
	if err != nil {
		return "", err
	}
	defer func() { _ = ws.Close() }()
	head, err := ws.Head(ctx)
	if err != nil {
		return "", err
	}
	if head != p.Commit {
		return "", i18n.E("agent.not_the_commit", p.Branch, a.Store.WorkspaceDir(uuid), short(head), short(p.Commit))
	}
	if job.Ask != nil {
		return a.pushHosted(ctx, uuid, ws, p)
	}
	return p.Branch + " " + p.Commit, ws.Deliver(ctx)
}

// Comment delivers a comment, once: the comments file holds its key.
func (a *Agent) Comment(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
	var c commentEffect
	if err := json.Unmarshal(e.Data, &c); err != nil {
		return "", fmt.Errorf("effect %s: %w", e.Key, err)
	}
	m, err := a.Store.Metadata(uuid)
	if err != nil {
		return "", fmt.Errorf("effect %s: %w", e.Key, err)
	}
	job, err := ParseJob(m)
	if err != nil {
		return "", fmt.Errorf("effect %s: %w", e.Key, err)
	}
	if job.Ask != nil {
		return a.postHosted(ctx, m, e.Key, c.Body)
	}
	return folder.CommentsPath(job.Issue), folder.AppendComment(job.Issue, folder.Comment{Author: c.Author, Time: c.Time, Body: c.Body, Marker: e.Key})
}

// Changed is the final summary of a run that somebody stopped while no process
// worked on it, and what the world must see of a change that somebody made.
func (a *Agent) Changed(ctx context.Context, v contextstore.View, o task.Outcome) (summary string, effects []contextstore.Effect, err error) {
	key, id := v.Metadata.TaskKey, v.Metadata.UUID
	if !a.DayLimits.None() { // what its owner held, who may have died, is free again
		if err := a.Store.SettleDay(ctx, contextstore.DayRun{UUID: id}, v.State.Taken(), nil); err != nil {
			a.Log.Warn("What a run held of its day stays held until the day is over: "+a.Store.Redact(err.Error()), "uuid", id) // the change is made all the same
		}
	}
	if o.Status.Final() {
		reason := ""                  // of a failure: that stands in the state, in the language of the comments
		if o.Status == task.Stopped { // no person is named to later runs
			reason = " " + i18n.English.T("agent.asked_stop", i18n.English.T("agent.somebody"))
		}
		summary = fmt.Sprintf("Task: %s (#%s)\nOutcome: %s.%s\n", oneLine(v.Metadata.Title), key.ID, o.Status, reason) + a.lastWordsOf(v)
	}
	job, err := ParseJob(v.Metadata)
	if err != nil || job.Issue == "" && job.Ask == nil {
		return summary, nil, nil //nolint:nilerr // without a job there is nobody to tell
	}
	if job.Ask == nil && !o.Status.Final() {
		return summary, nil, nil // a folder hears of ends only
	}
	at, saved := stage(o.Status, v.State.Generation), ""
	if job.Ask != nil && o.Status == task.Stopped {
		e, said, err := a.keep(ctx, v)
		if err != nil { // it is stopped all the same
			summary += a.Store.Redact(err.Error()) + "\n"
		} else if e != nil {
			effects, saved = append(effects, *e), said
		}
	}
	if o.Status != task.Queued {
		text := a.Lang.T("agent.comment_"+string(o.Status)) + "\n\n" + o.Reason + "\n\n" + saved + a.Lang.T("agent.comment_run", id, id[:8]) + "\n"
		said, err := a.mayComment(ctx, v, o.Status, text)
		if err == nil {
			err = said.Reason
		}
		if err != nil { // it is stopped all the same
			summary += i18n.E("agent.not_told", err).Error() + "\n"
		} else if e, err := a.commentOn(id, at, said.Text); err == nil {
			effects = append(effects, e)
		}
	}
	if job.Ask != nil {
		effects = append(effects, labelsOf(id, at))
	}
	return summary, effects, nil
}
