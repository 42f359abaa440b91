package github

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Propose implements forge.CodeHost. One of ours that people have pointed at
// another base stays there; one with this very marker that was closed or merged
// is what was delivered, and is left as it is.
func (f *Forge) Propose(ctx context.Context, r forge.Repo, p forge.Proposal) (forge.Item, error) {
	d, err := f.at(ctx, r, i18n.E("rest.do_propose", p.Head, p.Base))
	if err != nil {
		return forge.Item{}, err
	}
	return f.posts.Propose(ctx, &d.Call, r, &proposals{f: f, d: d, r: r}, p)
}

// proposals are the pull requests of a repository.
type proposals struct {
	f *Forge
	d *call
	r forge.Repo
	// owner is whose the repository is, by which the server looks for its branches;
	// "" as long as that was not asked.
	owner string
}

// Ours implements rest.Pulls. What others opened from the branch is theirs.
func (x *proposals) Ours(ctx context.Context, branch string) ([]forge.Item, error) {
	if x.owner == "" {
		// The branches of a repository that was given away are found by its new owner.
		var at github.Repository
		if _, err := x.d.Get(ctx, below(x.r), nil, &at); err != nil {
			return nil, err
		}
		x.owner = at.GetOwner().GetLogin()
	}
	self, err := x.f.Self(ctx)
	if err != nil {
		return nil, err
	}
	all, err := rest.Pages[github.PullRequest](ctx, x.d, below(x.r, "pulls"), query("state", "all", "head", x.owner+":"+branch))
	if err != nil {
		return nil, err
	}
	var ours []forge.Item
	for _, g := range all {
		// The server takes a filter that it does not understand for none.
		if g.GetHead().GetRef() == branch && g.GetHead().GetRepo().GetID() == g.GetBase().GetRepo().GetID() && g.GetUser().GetID() == self.ID {
			ours = append(ours, pullItem(x.r, g))
		}
	}
	return ours, nil
}

// Open implements rest.Pulls.
func (x *proposals) Open(ctx context.Context, p forge.Proposal) (forge.Item, error) {
	for draft := p.Draft; ; draft = false {
		var out github.PullRequest
		_, err := x.d.Send(ctx, http.MethodPost, below(x.r, "pulls"), &github.NewPullRequest{
			Title: &p.Title, Head: &p.Head, Base: &p.Base, Body: &p.Body, Draft: &draft,
		}, &out)
		var e *forge.Error
		switch {
		case draft && said(err, http.StatusUnprocessableEntity, "draft pull requests are not supported", "draft pull request is not supported"):
			continue
		case said(err, http.StatusUnprocessableEntity, "already exists") && errors.As(err, &e):
			e.Kind = forge.Conflict
		}
		return pullItem(x.r, &out), err
	}
}

func (x *proposals) at(i forge.Item) string { return below(x.r, "pulls", i.Key.ID) }

// Edit implements rest.Pulls.
func (x *proposals) Edit(ctx context.Context, i forge.Item, title, body string) (forge.Item, error) {
	var out github.PullRequest
	_, err := x.d.Send(ctx, http.MethodPatch, x.at(i), map[string]string{"title": title, "body": body}, &out)
	return pullItem(x.r, &out), err
}

// Whole implements rest.Pulls.
func (x *proposals) Whole(ctx context.Context, i forge.Item) (forge.Item, error) {
	var out github.PullRequest
	_, err := x.d.Get(ctx, x.at(i), nil, &out)
	return pullItem(x.r, &out), err
}

// pull reads a pull request.
func (f *Forge) pull(ctx context.Context, k task.Key, what string) (*call, *github.PullRequest, error) {
	d, n, err := f.on(ctx, k, what)
	if err != nil {
		return nil, nil, err
	}
	var p github.PullRequest
	_, err = d.Get(ctx, below(forge.RepoOf(k), "pulls", n), nil, &p)
	return d, &p, err
}

// ready is the one change that only GraphQL can make.
const ready = `mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`

// Ready implements forge.CodeHost.
func (f *Forge) Ready(ctx context.Context, k task.Key) error {
	d, p, err := f.pull(ctx, k, "rest.do_ready")
	if err != nil || !p.GetDraft() {
		return err
	}
	return d.graphql(ctx, f.address.graphql, ready, map[string]any{"id": p.GetNodeID()}, "pull_requests=write", nil)
}

// Withdraw implements forge.CodeHost.
func (f *Forge) Withdraw(ctx context.Context, k task.Key) error {
	d, p, err := f.pull(ctx, k, "rest.do_withdraw")
	if err != nil || p.GetState() != "open" {
		return err
	}
	_, err = d.Send(ctx, http.MethodPatch, below(forge.RepoOf(k), "pulls", p.GetNumber()), map[string]string{"state": "closed"}, nil)
	return err
}

// RequestReview implements forge.CodeHost. Who was asked already, and has not
// answered, is not asked again.
func (f *Forge) RequestReview(ctx context.Context, k task.Key, of []forge.Person) error {
	if len(of) == 0 {
		return nil
	}
	d, p, err := f.pull(ctx, k, "rest.do_review")
	if err != nil {
		return err
	}
	asked := rest.Each(p.RequestedReviewers, (*github.User).GetLogin)
	var names []string
	for _, w := range of {
		if w.Login != "" && w.ID != p.GetUser().GetID() && !rest.Contains(asked, w.Login) && !rest.Contains(names, w.Login) {
			names = append(names, w.Login)
		}
	}
	if len(names) == 0 {
		return nil
	}
	request := func(names []string) error {
		_, err := d.Send(ctx, http.MethodPost, below(forge.RepoOf(k), "pulls", p.GetNumber(), "requested_reviewers"), github.ReviewersRequest{Reviewers: names}, nil)
		return err
	}
	if err = request(names); !refused(err) || len(names) == 1 {
		return passed(err)
	}
	// One who cannot review makes the whole request fail.
	for _, name := range names {
		if err := passed(request([]string{name})); err != nil {
			return err
		}
	}
	return nil
}

func refused(err error) bool { return forge.Is(err, forge.Invalid) }

// passed is an error that is not about the person.
func passed(err error) error {
	if refused(err) {
		return nil
	}
	return err
}
