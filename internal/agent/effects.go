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
	o := r.report.Outcome
	if o.Status == task.Completed && r.report.Commit != "" {
		e, err := effect(r.ledger.UUID()+"."+EffectPush, EffectPush, pushEffect{r.report.Branch, r.report.Commit})
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if r.job.Issue != "" && !r.silent {
		e, err := r.commentOn(r.ledger.UUID(), o.Status, r.report.Comment)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// commentOn is the comment about the end of a run. Its key is the marker it leaves.
func (a *Agent) commentOn(uuid string, s task.Status, text string) (contextstore.Effect, error) {
	return effect(uuid+"."+string(s), EffectComment,
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
	ws, err := workspace.Open(a.Store.WorkspaceDir(uuid))
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
	return p.Branch + " " + p.Commit, ws.Deliver(ctx)
}

// Comment delivers a comment, once: the comments file holds its key.
func (a *Agent) Comment(_ context.Context, uuid string, e contextstore.Effect) (string, error) {
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
	return folder.CommentsPath(job.Issue), folder.AppendComment(job.Issue, folder.Comment{Author: c.Author, Time: c.Time, Body: c.Body, Marker: e.Key})
}

// Ended is the final summary and the comment of a run that somebody stopped
// while no process worked on it.
func (a *Agent) Ended(ctx context.Context, v contextstore.View, o task.Outcome) (string, []contextstore.Effect, error) {
	key := v.Metadata.TaskKey
	summary := fmt.Sprintf("Task: %s (#%s)\nOutcome: %s. %s\n", v.Metadata.Title, key.ID, o.Status, o.Reason)
	job, err := ParseJob(v.Metadata)
	if err != nil || job.Issue == "" {
		return summary, nil, nil // without a job there is nobody to tell
	}
	text := a.Lang.T("agent.comment_"+string(o.Status)) + "\n\n" + o.Reason + "\n\n" + a.Lang.T("agent.comment_run", v.Metadata.UUID, v.Metadata.UUID[:8]) + "\n"
	said, err := a.mayComment(ctx, v, o.Status, text)
	if err == nil {
		err = said.Reason
	}
	if err != nil { // it is stopped all the same
		return summary + i18n.E("agent.not_told", err).Error() + "\n", nil, nil
	}
	e, err := a.commentOn(v.Metadata.UUID, o.Status, said.Text)
	return summary, []contextstore.Effect{e}, err
}
