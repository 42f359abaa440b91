package github

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Propose implements forge.CodeHost. One of ours that people have pointed at
// another base stays there; one with this very marker that was closed or merged
// is what was delivered, and is left as it is.
func (f *Forge) Propose(ctx context.Context, r forge.Repo, p forge.Proposal) (forge.Item, error) {
	d, err := f.at(ctx, r, i18n.E("github.do_propose", p.Head, p.Base))
	if err != nil {
		return forge.Item{}, err
	}
	if !markerName().MatchString(p.Marker) {
		return forge.Item{}, d.failed(forge.Invalid, 0, i18n.E("github.said_marker", p.Marker), i18n.E("github.advice_invalid"), nil)
	}
	unlock, err := f.posts.lock(ctx, "pulls of "+r.String())
	if err != nil {
		return forge.Item{}, d.explain(ctx, err)
	}
	defer unlock()
	// The branches of a repository that was given away are found by its new owner.
	var at github.Repository
	if _, err := d.get(ctx, below(r), nil, &at); err != nil {
		return forge.Item{}, err
	}
	x := &proposing{f: f, d: d, r: r, p: p, owner: at.GetOwner().GetLogin(), text: mark(p.Body, p.Marker)}
	g, err := x.put(ctx)
	if err != nil {
		return forge.Item{}, err
	}
	return pullItem(r, g), nil
}

// proposing is one pull request that is to be there.
type proposing struct {
	f    *Forge
	d    *call
	r    forge.Repo
	p    forge.Proposal
	text string
	// owner is whose the repository is, by which the server looks for its branches.
	owner string
}

func (x *proposing) put(ctx context.Context) (*github.PullRequest, error) {
	draft := x.p.Draft
	for try := 1; ; try++ {
		g, err := x.find(ctx)
		if err != nil {
			return nil, err
		}
		if g != nil && g.GetState() != "open" {
			return g, nil
		}
		if g != nil {
			return x.edit(ctx, g)
		}
		var out github.PullRequest
		_, err = x.d.send(ctx, http.MethodPost, below(x.r, "pulls"), &github.NewPullRequest{
			Title: &x.p.Title, Head: &x.p.Head, Base: &x.p.Base, Body: &x.text, Draft: &draft,
		}, &out)
		switch {
		case err == nil:
			return &out, nil
		case try == postTries:
			return nil, err
		case draft && said(err, http.StatusUnprocessableEntity, "draft pull requests are not supported", "draft pull request is not supported"):
			draft = false
		case said(err, http.StatusUnprocessableEntity, "already exists"): // another process was faster
		case forge.Is(err, forge.Unavailable): // it may be there
			if serr := sleep(ctx, x.f.delay<<try); serr != nil {
				return nil, x.d.explain(ctx, serr)
			}
		default:
			return nil, err
		}
	}
}

// find returns our open pull request from the head to the base, or else the one
// with the marker, wherever it goes to and whether or not it is open, or else one
// that people wrote another text for, or opened by our account; nil where there
// is none. What others opened from the branch is theirs.
func (x *proposing) find(ctx context.Context) (*github.PullRequest, error) {
	self, err := x.f.Self(ctx)
	if err != nil {
		return nil, err
	}
	all, err := pages[github.PullRequest](ctx, x.d, below(x.r, "pulls"), query("state", "all", "head", x.owner+":"+x.p.Head))
	if err != nil {
		return nil, err
	}
	var moved, closed, theirs *github.PullRequest
	for _, g := range all {
		// The server takes a filter that it does not understand for none.
		if g.GetHead().GetRef() != x.p.Head || g.GetHead().GetRepo().GetID() != g.GetBase().GetRepo().GetID() || g.GetUser().GetID() != self.ID {
			continue
		}
		m := markerIn(g.GetBody())
		switch open, here := g.GetState() == "open", g.GetBase().GetRef() == x.p.Base; {
		case m == "" && open && here:
			theirs = g
		case m == "":
		case open && here:
			return g, nil
		case m != x.p.Marker:
		case open && moved == nil:
			moved = g
		case !open && closed == nil:
			closed = g
		}
	}
	return cmp.Or(moved, closed, theirs), nil
}

// edit puts our text into a pull request, above what people have added to it. A
// text without our marker is theirs, and stays.
func (x *proposing) edit(ctx context.Context, g *github.PullRequest) (*github.PullRequest, error) {
	var out github.PullRequest
	at := below(x.r, "pulls", g.GetNumber())
	text := x.text + added(g.GetBody())
	if markerIn(g.GetBody()) == "" || g.GetTitle() == x.p.Title && same(g.GetBody(), text) {
		_, err := x.d.get(ctx, at, nil, &out) // a list does not tell everything
		return &out, err
	}
	_, err := x.d.send(ctx, http.MethodPatch, at, map[string]string{"title": x.p.Title, "body": text}, &out)
	return &out, err
}

// added is what stands below our marker in a text.
func added(body string) string {
	body = lf(body)
	at := markerLine().FindStringIndex(body)
	if at == nil {
		return ""
	}
	return strings.TrimRight(body[at[1]:], " \t\n")
}

// pull reads a pull request.
func (f *Forge) pull(ctx context.Context, k task.Key, what string) (*call, *github.PullRequest, error) {
	d, n, err := f.on(ctx, k, what)
	if err != nil {
		return nil, nil, err
	}
	var p github.PullRequest
	_, err = d.get(ctx, below(forge.RepoOf(k), "pulls", n), nil, &p)
	return d, &p, err
}

// ready is the one change that only GraphQL can make.
const ready = `mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`

// Ready implements forge.CodeHost.
func (f *Forge) Ready(ctx context.Context, k task.Key) error {
	d, p, err := f.pull(ctx, k, "github.do_ready")
	if err != nil || !p.GetDraft() {
		return err
	}
	return d.graphql(ctx, f.address.graphql, ready, map[string]any{"id": p.GetNodeID()}, "pull_requests=write", nil)
}

// Withdraw implements forge.CodeHost.
func (f *Forge) Withdraw(ctx context.Context, k task.Key) error {
	d, p, err := f.pull(ctx, k, "github.do_withdraw")
	if err != nil || p.GetState() != "open" {
		return err
	}
	_, err = d.send(ctx, http.MethodPatch, below(forge.RepoOf(k), "pulls", p.GetNumber()), map[string]string{"state": "closed"}, nil)
	return err
}

// RequestReview implements forge.CodeHost. Who was asked already, and has not
// answered, is not asked again.
func (f *Forge) RequestReview(ctx context.Context, k task.Key, of []forge.Person) error {
	if len(of) == 0 {
		return nil
	}
	d, p, err := f.pull(ctx, k, "github.do_review")
	if err != nil {
		return err
	}
	var asked, names []string
	for _, u := range p.RequestedReviewers {
		asked = append(asked, u.GetLogin())
	}
	for _, w := range of {
		if w.Login != "" && w.ID != p.GetUser().GetID() && !contains(asked, w.Login) && !contains(names, w.Login) {
			names = append(names, w.Login)
		}
	}
	if len(names) == 0 {
		return nil
	}
	request := func(names []string) error {
		_, err := d.send(ctx, http.MethodPost, below(forge.RepoOf(k), "pulls", p.GetNumber(), "requested_reviewers"), github.ReviewersRequest{Reviewers: names}, nil)
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
