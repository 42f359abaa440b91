package delivery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// Salvage commits what an ended run leaves in its workspace and has the branch handed
// over without a pull request: nothing that was done is lost on a machine that who
// asked cannot reach. What may not go out stays where it is. The hash is of the
// commit, "" where there is none.
func (r *Run) Salvage(ctx context.Context, said string) (hash string, err error) {
	if r.Workspace == nil || r.Delivers || r.Broker == nil {
		return "", nil
	}
	if hash, err = r.Commit(ctx, said); err == nil && hash != "" {
		err = r.MayDeliver(ctx, hash)
		r.Delivers = err == nil
	}
	return hash, err
}

// salvage is Salvage for a run that nobody works on: it returns the effect that hands
// the branch over, with what is said about it; nil where there is nothing. The caller
// holds the run's locks.
func (s *Service) salvage(ctx context.Context, v contextstore.View) (e *contextstore.Effect, said string, err error) {
	m := v.Metadata
	h := s.Hosts[m.TaskKey.Source]
	if h != nil && h.Code == nil {
		return nil, "", nil // it is on this machine already
	}
	p, ok, err := readPlace(v.Dir)
	if err != nil || !ok || s.Secrets == nil {
		return nil, "", err
	}
	ws, err := s.openWorkspace(ctx, m.UUID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = ws.Close() }()
	hash, err := s.commit(ctx, ws, m, "")
	if err != nil || hash == "" {
		return nil, "", err
	}
	b, err := s.brokerOf(v, p)
	if err == nil {
		err = mayPush(ctx, b, m, p, ws, hash)
	}
	if err == nil {
		err = s.held(ctx, m, v.Dir, p, ws, hash)
	}
	if err != nil {
		return nil, "", err
	}
	if h != nil {
		if err := h.wouldTake(ctx, m.TaskKey, p, ws); err != nil && !silent(err) {
			return nil, "", err
		}
	}
	changes, err := ws.ChangedFiles(ctx)
	if err != nil {
		return nil, "", err
	}
	push, err := NewEffect(m.UUID+"."+EffectPush, EffectPush, pushEffect{p.Branch, hash})
	return &push, p.Saved(s.Lang) + "\n" + List(s.Lang, workspace.Paths(changes)) + "\n", err
}

// Saved says where the work of an ended run is that was salvaged, and what a /retry does
// with it.
func (p Place) Saved(l i18n.Lang) string {
	if p.Exists {
		return l.T("agent.comment_saved", p.Branch) + l.T("agent.retry_onward")
	}
	return l.T("agent.comment_saved", p.Branch) + l.T("agent.retry_beside")
}

// Changed is what the world must see of a change that somebody made of a run that no
// process works on, and the final summary of one that is over by that; left is what
// the run left to later ones, as its record tells.
func (s *Service) Changed(ctx context.Context, v contextstore.View, out task.Outcome, left func() string) (summary string, effects []contextstore.Effect, err error) {
	key, id := v.Metadata.TaskKey, v.Metadata.UUID
	if out.Status.Final() {
		reason := ""                    // of a failure: that stands in the state, in the language of the comments
		if out.Status == task.Stopped { // no person is named to later runs
			reason = " " + i18n.English.T("agent.asked_stop", i18n.English.T("agent.somebody"))
		}
		summary = fmt.Sprintf("Task: %s (%s)\nOutcome: %s.%s\n", progress.OneLine(v.Metadata.Title), key.Number(), out.Status, reason) + left()
	}
	o, err := order.Parse(v.Metadata)
	if err != nil || o.Silent() {
		return summary, nil, nil //nolint:nilerr // without an order there is nobody to tell
	}
	if o.ByHand() && !out.Status.Final() {
		return summary, nil, nil // its file hears of ends only
	}
	at, saved := stage(out.Status, v.State.Generation), ""
	if !o.ByHand() && out.Status == task.Stopped && key.Type != task.TypeReview {
		e, said, err := s.salvage(ctx, v)
		if err != nil { // it is stopped all the same
			summary += s.Store.Redact(err.Error()) + "\n"
		} else if e != nil {
			effects, saved = append(effects, *e), said
		}
	}
	if out.Status != task.Queued {
		text := s.Lang.T("agent.comment_"+string(out.Status)) + "\n\n" + out.Reason + "\n\n" + saved + s.Lang.T("agent.comment_run", id, contextstore.Short(id)) + "\n"
		text, err := s.mayCommentOf(ctx, v, out.Status, text)
		if err != nil { // it is stopped all the same
			summary += i18n.E("agent.not_told", err).Error() + "\n"
		} else if e, err := s.commentOn(id, at, commentEffect{Body: text}); err == nil {
			effects = append(effects, e)
		}
	}
	if !o.ByHand() {
		effects = append(effects, labelsOf(id, at))
	}
	return summary, effects, nil
}

// MaxListed is how many files a list shows.
const MaxListed = 20

// List are the first of some files, as a list.
func List(l i18n.Lang, files []string) string {
	var b strings.Builder
	for _, f := range progress.Some(files, MaxListed, progress.More(l)) {
		b.WriteString("- " + f + "\n")
	}
	return b.String()
}

// Short is a commit's hash for people.
func Short(hash string) string { return hash[:min(10, len(hash))] }

// Plain is a text of others on one line, of at most so many characters, with nothing
// in it that would be more than text.
func (s *Service) Plain(text string, most int) string {
	return progress.Plain(progress.Cut(progress.OneLine(s.Store.Redact(text)), most))
}
