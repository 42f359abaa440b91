package delivery

import (
	"context"

	"toritsugi/internal/approval"
	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// Hosted is a repository of a forge as a job of a conversation finds it.
type Hosted struct {
	*workspace.Source      // its mirror, which the caller closes; Branch is the base branch
	Private           bool // as the forge says
}

// Visibility is who can see what is delivered there.
func (h Hosted) Visibility() approval.Visibility {
	if h.Private {
		return approval.Private
	}
	return approval.Public
}

// OpenHosted fetches the repository of a forge that an order is about, at the branch that its
// work is for.
func (s *Service) OpenHosted(ctx context.Context, o order.Order) (*Hosted, error) {
	k, ok := o.Hosted()
	h := s.Hosts[k.Source]
	if !ok || h == nil || h.Code == nil {
		return nil, i18n.E("delivery.no_host", o.Repo)
	}
	all, err := h.Repositories(ctx, []string{forge.RepoOf(k).String()})
	if err != nil {
		return nil, err
	}
	src, err := h.source(ctx, forge.RepoOf(k), o.Chat.Onto)
	if err != nil {
		return nil, err
	}
	return &Hosted{Source: src, Private: len(all) > 0 && all[0].Private}, nil
}

// ChatWork is what a granted proposal of a conversation became.
type ChatWork struct {
	Place       Place
	Commit      string
	Title, Text string // of the draft
}

// ChatEffects are the branch and the draft that a granted proposal owes, as the broker allows
// them; nothing is sent yet. What would have to be asked about is not asked again: people have
// granted this very patch.
func (s *Service) ChatEffects(ctx context.Context, c *contextstore.Context, ws *workspace.Workspace, w ChatWork) ([]contextstore.Effect, error) {
	m, p := c.Metadata(), w.Place
	if err := (&Run{Service: s, Ledger: c}).writePlace(p); err != nil {
		return nil, err
	}
	patch, err := Patch(ctx, ws, w.Commit)
	if err != nil {
		return nil, err
	}
	b, err := s.Rules.broker(m, p, c.Effects())
	if err != nil {
		return nil, err
	}
	var all []contextstore.Effect
	for _, req := range []broker.Request{
		{Kind: broker.Push, Key: m.UUID + "." + EffectPush, Target: broker.Target{Branch: p.Branch}},
		{Kind: broker.PullRequest, Key: m.UUID + "." + EffectPull, Target: broker.Target{Branch: p.Branch, Base: p.Onto}, Title: w.Title, Text: w.Text, Draft: true},
	} {
		req.Task, req.Patch = m.TaskKey, patch
		v, err := b.Judge(ctx, req)
		if err == nil && v.Decision == broker.Refuse {
			err = &TaskError{Err: v.Reason}
		}
		if err != nil {
			return nil, err
		}
		var data any = pushEffect{p.Branch, w.Commit}
		if req.Kind == broker.PullRequest {
			data = pullEffect{Head: p.Branch, Base: p.Onto, Title: v.Title, Body: v.Text}
		}
		e, err := NewEffect(req.Key, string(req.Kind), data)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// EffectTold is what the people of a conversation are told of what was delivered before it.
const EffectTold = "told"

// Came is what came of the draft that a run owed: its address, or why there is none.
func (s *Service) Came(ctx context.Context, uuid string) (url, why string, err error) {
	url, why, lost, err := s.came(ctx, uuid)
	if lost != "" {
		why = s.Public(why)
	}
	return url, why, err
}

// ChatMessage is the message of a commit that goes out, as it may.
func (s *Service) ChatMessage(message string) (string, error) {
	clean, _, err := s.Rules.Filter.Clean(broker.Commit, message)
	return clean, err
}

// Draft is the draft that a job of a conversation made, as it is now at its forge.
func (s *Service) Draft(ctx context.Context, job approval.Job) (*Host, forge.Item, error) {
	url, why, err := s.Came(ctx, job.Run)
	switch {
	case err != nil:
		return nil, forge.Item{}, err
	case why != "":
		return nil, forge.Item{}, i18n.E("approval.no_draft", job.Job, why)
	case url == "":
		return nil, forge.Item{}, i18n.E("approval.draft_owed", job.Job)
	}
	h, k, err := s.hostOf(job.Run)
	if err != nil {
		return nil, forge.Item{}, err
	}
	k.Type, k.ID = task.TypeProposed(k.Source), numberOf(url)
	it, err := h.Item(ctx, k)
	if err == nil && it.Pull == nil {
		err = i18n.E("approval.no_draft", job.Job, url)
	}
	return h, it, err
}
