package gitea

import (
	"context"
	"errors"
	"net/http"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Propose implements forge.CodeHost. A draft is one by its title.
func (f *Forge) Propose(ctx context.Context, r forge.Repo, p forge.Proposal) (forge.Item, error) {
	d, err := f.at(r, i18n.E("rest.do_propose", p.Head, p.Base))
	if err != nil {
		return forge.Item{}, err
	}
	return f.posts.Propose(ctx, &d.Call, r, &proposals{f: f, d: d, r: r}, p)
}

// proposals are the pull requests of a repository; they implement rest.Pulls.
type proposals struct {
	f *Forge
	d *call
	r forge.Repo
}

// Ours lists by author; older servers list all, and a name that we had does not count.
func (x *proposals) Ours(ctx context.Context, branch string) ([]forge.Item, error) {
	self, err := x.f.Self(ctx)
	if err != nil {
		return nil, err
	}
	all, err := pages[sdk.PullRequest](ctx, x.d, below(x.r, "pulls"), query("state", "all", "poster", self.Login))
	if forge.Is(err, forge.Invalid) {
		all, err = pages[sdk.PullRequest](ctx, x.d, below(x.r, "pulls"), query("state", "all"))
	}
	if err != nil {
		return nil, err
	}
	var ours []forge.Item
	for _, g := range all {
		if g.Head != nil && g.Base != nil && g.Head.Name == branch && g.Head.RepoID == g.Base.RepoID && person(g.Poster).ID == self.ID {
			ours = append(ours, pullItem(x.r, g))
		}
	}
	return ours, nil
}

// Open opens one. The server says "not found" of a branch, too.
func (x *proposals) Open(ctx context.Context, p forge.Proposal) (forge.Item, error) {
	title := p.Title
	if p.Draft {
		title = draftPrefix + title
	}
	var out sdk.PullRequest
	_, err := x.d.Send(ctx, http.MethodPost, below(x.r, "pulls"), map[string]string{"title": title, "head": p.Head, "base": p.Base, "body": p.Body}, &out)
	var e *forge.Error
	if forge.Is(err, forge.NotFound) && errors.As(err, &e) {
		e.Kind = forge.Invalid
	}
	return pullItem(x.r, &out), err
}

func (x *proposals) at(i forge.Item) string { return below(x.r, "pulls", i.Key.ID) }

// Edit keeps the mark of a draft.
func (x *proposals) Edit(ctx context.Context, i forge.Item, title, body string) (forge.Item, error) {
	if i.Pull.Draft {
		title = draftPrefix + title
	}
	var out sdk.PullRequest
	_, err := x.d.Send(ctx, http.MethodPatch, x.at(i), map[string]string{"title": title, "body": body}, &out)
	return pullItem(x.r, &out), err
}

// Whole reads one: a list does not tell everything.
func (x *proposals) Whole(ctx context.Context, i forge.Item) (forge.Item, error) {
	var out sdk.PullRequest
	_, err := x.d.Get(ctx, x.at(i), nil, &out)
	return pullItem(x.r, &out), err
}

// pull reads a pull request.
func (f *Forge) pull(ctx context.Context, k task.Key, what string) (d *call, at string, p *sdk.PullRequest, err error) {
	d, n, err := f.on(k, what)
	if err != nil {
		return nil, "", nil, err
	}
	p, at = &sdk.PullRequest{}, below(forge.RepoOf(k), "pulls", n)
	_, err = d.Get(ctx, at, nil, p)
	return d, at, p, err
}

// Ready implements forge.CodeHost. Of a server with prefixes of its own the mark cannot be
// taken off.
func (f *Forge) Ready(ctx context.Context, k task.Key) error {
	d, at, p, err := f.pull(ctx, k, "rest.do_ready")
	if err != nil {
		return err
	}
	if title := plainTitle(p.Title); title != p.Title {
		draft := *p
		p = &sdk.PullRequest{}
		if _, err := d.Send(ctx, http.MethodPatch, at, map[string]string{"title": title}, p); err != nil {
			return err
		}
		p.Title = draft.Title
	}
	if p.Draft {
		return d.Failed(forge.Unsupported, 0, i18n.E("gitea.said_draft", p.Title), i18n.E("gitea.advice_draft"), nil)
	}
	return nil
}

// Withdraw implements forge.CodeHost.
func (f *Forge) Withdraw(ctx context.Context, k task.Key) error {
	d, at, p, err := f.pull(ctx, k, "rest.do_withdraw")
	if err != nil || p.State != sdk.StateOpen {
		return err
	}
	_, err = d.Send(ctx, http.MethodPatch, at, map[string]string{"state": string(sdk.StateClosed)}, nil)
	return err
}

// RequestReview implements forge.CodeHost. Who was asked already, and has not
// answered, is not asked again. One who cannot review makes a whole request fail, so each
// is asked alone.
func (f *Forge) RequestReview(ctx context.Context, k task.Key, of []forge.Person) error {
	if len(of) == 0 {
		return nil
	}
	d, at, p, err := f.pull(ctx, k, "rest.do_review")
	if err != nil {
		return err
	}
	asked := rest.Each(p.RequestedReviewers, func(u *sdk.User) string { return person(u).Login })
	for _, w := range of {
		if w.Login == "" || w.ID == person(p.Poster).ID || rest.Contains(asked, w.Login) {
			continue
		}
		asked = append(asked, w.Login)
		_, err := d.Send(ctx, http.MethodPost, at+"/requested_reviewers", sdk.PullReviewRequestOptions{Reviewers: []string{w.Login}}, nil)
		if err != nil && !forge.Is(err, forge.Invalid) && !forge.Is(err, forge.NotFound) {
			return err
		}
	}
	return nil
}
