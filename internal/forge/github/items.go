package github

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Repositories implements forge.Tracker.
func (f *Forge) Repositories(ctx context.Context, patterns []string) ([]forge.Repository, error) {
	return rest.Repositories(ctx, patterns, "github.unseen", f.matching)
}

func (f *Forge) matching(ctx context.Context, r forge.Repo) (found []forge.Repository, err error) {
	var all []*github.Repository
	if r.Name == "*" {
		all, err = f.access.all(ctx, r.Owner)
	} else {
		var d *call
		if d, err = f.at(ctx, r, i18n.E("rest.do_repository")); err == nil {
			all = append(all, &github.Repository{})
			_, err = d.Get(ctx, below(r), nil, all[0])
		}
	}
	if err != nil {
		return nil, err
	}
	for _, g := range all {
		if !g.GetArchived() && (r.Name != "*" || strings.EqualFold(g.GetOwner().GetLogin(), r.Owner)) {
			found = append(found, repository(g))
		}
	}
	return found, nil
}

func repository(g *github.Repository) forge.Repository {
	return forge.Repository{
		Repo:          forge.Repo{Owner: g.GetOwner().GetLogin(), Name: g.GetName()},
		DefaultBranch: g.GetDefaultBranch(), Private: g.GetPrivate(),
	}
}

// mostItems bounds a list of items that bear the trigger.
const mostItems = 10_000

// Triggered implements forge.Tracker. Where nothing changed it costs one request
// for each of label and assignee and for each hundred items, which are answered
// "not modified" and not counted.
func (f *Forge) Triggered(ctx context.Context, r forge.Repo, t forge.Trigger) ([]forge.Item, error) {
	d, err := f.at(ctx, r, i18n.E("rest.do_list"))
	if err != nil {
		return nil, err
	}
	var queries [][]string
	switch {
	case strings.Contains(t.Label, ","): // the query takes a comma for the end of a name
		queries = append(queries, []string{"state", "open"})
	case t.Label != "":
		queries = append(queries, []string{"state", "open", "labels", t.Label})
	}
	if t.Assignee.Login != "" {
		queries = append(queries, []string{"state", "open", "assignee", t.Assignee.Login})
	}
	var items []forge.Item
	for _, q := range queries {
		all, err := since(ctx, d, below(r, "issues"), query(q...), time.Time{}, mostItems, (*github.Issue).GetID, updated)
		if err != nil {
			return nil, err
		}
		for _, g := range all {
			items = append(items, item(r, g))
		}
	}
	return rest.Bearing(items, t), nil
}

// Changed implements forge.Changes.
func (f *Forge) Changed(ctx context.Context, r forge.Repo, since time.Time) (bool, error) {
	d, err := f.at(ctx, r, i18n.E("rest.do_list"))
	if err != nil {
		return false, err
	}
	var some []*github.Issue
	_, err = d.Get(ctx, below(r, "issues"), query("state", "all", "since", stamp(since), "per_page", "1"), &some)
	return len(some) > 0, err
}

func updated(g *github.Issue) time.Time { return g.GetUpdatedAt().Time }

func item(r forge.Repo, g *github.Issue) forge.Item {
	i := forge.Item{
		Key:   task.Key{Source: "github", Owner: r.Owner, Repo: r.Name, Type: task.TypeIssue, ID: strconv.Itoa(g.GetNumber())},
		Title: g.GetTitle(), Body: g.GetBody(), Author: person(g.GetUser()), Assignees: rest.Each(g.Assignees, person),
		Open: g.GetState() == "open", URL: g.GetHTMLURL(),
		Created: g.GetCreatedAt().UTC(), Updated: g.GetUpdatedAt().UTC(), Labels: labels(g.Labels),
	}
	if g.PullRequestLinks != nil {
		i.Key.Type, i.Pull = task.TypePull, &forge.Pull{}
	}
	return i
}

func labels(all []*github.Label) []string {
	return rest.Each(all, (*github.Label).GetName)
}

// Item implements forge.Tracker.
func (f *Forge) Item(ctx context.Context, k task.Key) (forge.Item, error) {
	d, n, err := f.on(ctx, k, "rest.do_item")
	if err != nil {
		return forge.Item{}, err
	}
	r := forge.RepoOf(k)
	var g github.Issue
	if _, err := d.Get(ctx, below(r, "issues", n), nil, &g); err != nil {
		return forge.Item{}, err
	}
	if g.PullRequestLinks != nil {
		var p github.PullRequest
		if _, err := d.Get(ctx, below(r, "pulls", n), nil, &p); err != nil {
			return forge.Item{}, err
		}
		return pullItem(r, &p), nil
	}
	var at github.Repository
	if _, err := d.Get(ctx, below(r), nil, &at); err != nil {
		return forge.Item{}, err
	}
	moved := func() bool {
		return g.GetNumber() != n || !strings.HasSuffix(strings.ToLower(g.GetRepositoryURL()), "/repos/"+strings.ToLower(at.GetFullName()))
	}
	if moved() { // unless the repository was renamed between the two answers
		g = github.Issue{}
		if _, err := d.Get(ctx, below(r, "issues", n), nil, &g); err != nil {
			return forge.Item{}, err
		}
	}
	// What was moved to another repository is answered from there.
	if moved() {
		return forge.Item{}, d.Moved(g.GetHTMLURL())
	}
	i := item(r, &g)
	i.Repository = repository(&at)
	return i, nil
}

// pullItem is a pull request as its own page has it.
func pullItem(r forge.Repo, p *github.PullRequest) forge.Item {
	return forge.Item{
		Key:   task.Key{Source: "github", Owner: r.Owner, Repo: r.Name, Type: task.TypePull, ID: strconv.Itoa(p.GetNumber())},
		Title: p.GetTitle(), Body: p.GetBody(), Author: person(p.GetUser()), Assignees: rest.Each(p.Assignees, person),
		Open: p.GetState() == "open", URL: p.GetHTMLURL(),
		Created: p.GetCreatedAt().UTC(), Updated: p.GetUpdatedAt().UTC(), Labels: labels(p.Labels),
		Repository: repository(p.GetBase().GetRepo()),
		Pull: &forge.Pull{
			Draft: p.GetDraft(), Merged: p.GetMerged() || p.MergedAt != nil,
			Marker: rest.MarkerIn(p.GetBody()), Ref: "refs/pull/" + strconv.Itoa(p.GetNumber()) + "/head",
			Head: branch(p.GetHead()), Base: branch(p.GetBase()),
			Conflicts: p.Mergeable != nil && !*p.Mergeable && p.GetState() == "open",
			Reviewers: rest.Each(p.RequestedReviewers, person),
		},
	}
}

func branch(b *github.PullRequestBranch) forge.Branch {
	return forge.Branch{
		Repo: forge.Repo{Owner: b.GetRepo().GetOwner().GetLogin(), Name: b.GetRepo().GetName()},
		Name: b.GetRef(), Commit: b.GetSHA(),
	}
}
