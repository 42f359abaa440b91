package github

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Repositories implements forge.Tracker. A pattern that fails keeps none of the
// others back; the errors are joined, that of the names which cannot be seen last.
func (f *Forge) Repositories(ctx context.Context, patterns []string) ([]forge.Repository, error) {
	var found []forge.Repository
	var unseen []string
	var errs []error
	seen := map[string]bool{}
	for _, p := range patterns {
		r, ok := forge.ParseRepo(p)
		if !ok {
			unseen = append(unseen, p)
			continue
		}
		all, err := f.matching(ctx, r)
		if forge.Is(err, forge.NotFound) {
			unseen = append(unseen, p)
			continue
		}
		if forge.Is(err, forge.RateLimited) || forge.Is(err, forge.Unauthorized) || ctx.Err() != nil {
			return found, errors.Join(append([]error{err}, errs...)...) // the others are not to be asked
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, g := range all {
			x := repository(g)
			if key := strings.ToLower(x.String()); !g.GetArchived() && !seen[key] {
				seen[key] = true
				found = append(found, x)
			}
		}
	}
	if unseen != nil {
		errs = append(errs, &forge.Error{Kind: forge.NotFound, Status: http.StatusNotFound, Err: i18n.E("github.unseen", strings.Join(unseen, ", "))})
	}
	if len(errs) == 1 {
		return found, errs[0]
	}
	return found, errors.Join(errs...)
}

func (f *Forge) matching(ctx context.Context, r forge.Repo) ([]*github.Repository, error) {
	if r.Name != "*" {
		d, err := f.at(ctx, r, i18n.E("rest.do_repository"))
		if err != nil {
			return nil, err
		}
		var g github.Repository
		_, err = d.get(ctx, below(r), nil, &g)
		return []*github.Repository{&g}, err
	}
	all, err := f.access.all(ctx, r.Owner)
	if err != nil {
		return nil, err
	}
	var theirs []*github.Repository
	for _, g := range all {
		if strings.EqualFold(g.GetOwner().GetLogin(), r.Owner) {
			theirs = append(theirs, g)
		}
	}
	return theirs, nil
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
	byID := map[int64]bool{}
	var items []forge.Item
	for _, q := range queries {
		all, err := since(ctx, d, below(r, "issues"), query(q...), time.Time{}, mostItems, (*github.Issue).GetID, updated)
		if err != nil {
			return nil, err
		}
		for _, g := range all {
			// Paging shows how an item was; one may have been closed, or lost its label, since.
			i := item(r, g)
			bears := t.Label != "" && i.Has(t.Label) || t.Assignee.Login != "" && i.AssignedTo(t.Assignee)
			if byID[g.GetID()] || !i.Open || !bears {
				continue
			}
			byID[g.GetID()] = true
			items = append(items, i)
		}
	}
	rest.ByUpdate(items)
	return items, nil
}

func updated(g *github.Issue) time.Time { return g.GetUpdatedAt().Time }

func item(r forge.Repo, g *github.Issue) forge.Item {
	i := forge.Item{
		Key:   task.Key{Source: "github", Owner: r.Owner, Repo: r.Name, Type: "issue", ID: strconv.Itoa(g.GetNumber())},
		Title: g.GetTitle(), Body: g.GetBody(), Author: person(g.GetUser()), Assignees: people(g.Assignees),
		Open: g.GetState() == "open", Locked: g.GetLocked(), URL: g.GetHTMLURL(),
		Created: g.GetCreatedAt().UTC(), Updated: g.GetUpdatedAt().UTC(), Labels: labels(g.Labels),
	}
	if g.PullRequestLinks != nil {
		i.Key.Type, i.Pull = "pull_request", &forge.Pull{}
	}
	return i
}

func labels(all []*github.Label) []string {
	var names []string
	for _, l := range all {
		names = append(names, l.GetName())
	}
	return names
}

// Item implements forge.Tracker.
func (f *Forge) Item(ctx context.Context, k task.Key) (forge.Item, error) {
	d, n, err := f.on(ctx, k, "rest.do_item")
	if err != nil {
		return forge.Item{}, err
	}
	r := forge.RepoOf(k)
	var g github.Issue
	if _, err := d.get(ctx, below(r, "issues", n), nil, &g); err != nil {
		return forge.Item{}, err
	}
	if g.PullRequestLinks != nil {
		var p github.PullRequest
		if _, err := d.get(ctx, below(r, "pulls", n), nil, &p); err != nil {
			return forge.Item{}, err
		}
		return pullItem(r, &p), nil
	}
	var at github.Repository
	if _, err := d.get(ctx, below(r), nil, &at); err != nil {
		return forge.Item{}, err
	}
	moved := func() bool {
		return g.GetNumber() != n || !strings.HasSuffix(strings.ToLower(g.GetRepositoryURL()), "/repos/"+strings.ToLower(at.GetFullName()))
	}
	if moved() { // unless the repository was renamed between the two answers
		g = github.Issue{}
		if _, err := d.get(ctx, below(r, "issues", n), nil, &g); err != nil {
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
		Key:   task.Key{Source: "github", Owner: r.Owner, Repo: r.Name, Type: "pull_request", ID: strconv.Itoa(p.GetNumber())},
		Title: p.GetTitle(), Body: p.GetBody(), Author: person(p.GetUser()), Assignees: people(p.Assignees),
		Open: p.GetState() == "open", Locked: p.GetLocked(), URL: p.GetHTMLURL(),
		Created: p.GetCreatedAt().UTC(), Updated: p.GetUpdatedAt().UTC(), Labels: labels(p.Labels),
		Repository: repository(p.GetBase().GetRepo()),
		Pull: &forge.Pull{
			Draft: p.GetDraft(), Merged: p.GetMerged() || p.MergedAt != nil,
			Marker: rest.MarkerIn(p.GetBody()), Ref: "refs/pull/" + strconv.Itoa(p.GetNumber()) + "/head",
			Head: branch(p.GetHead()), Base: branch(p.GetBase()),
			Conflicts: p.Mergeable != nil && !*p.Mergeable && p.GetState() == "open",
			Editable:  p.GetMaintainerCanModify(), Reviewers: people(p.RequestedReviewers),
		},
	}
}

func branch(b *github.PullRequestBranch) forge.Branch {
	return forge.Branch{
		Repo: forge.Repo{Owner: b.GetRepo().GetOwner().GetLogin(), Name: b.GetRepo().GetName()},
		Name: b.GetRef(), Commit: b.GetSHA(),
	}
}
