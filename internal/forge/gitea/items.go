package gitea

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/task"
)

// Repositories implements forge.Tracker.
func (f *Forge) Repositories(ctx context.Context, patterns []string) ([]forge.Repository, error) {
	return rest.Repositories(ctx, patterns, "gitea.unseen", f.matching)
}

func (f *Forge) matching(ctx context.Context, r forge.Repo) (found []forge.Repository, err error) {
	add := func(g *sdk.Repository) {
		if !g.Archived {
			found = append(found, repository(g))
		}
	}
	if r.Name != "*" {
		d, err := f.at(r, i18n.E("rest.do_repository"))
		if err != nil {
			return nil, err
		}
		var g sdk.Repository
		_, err = d.Get(ctx, below(r), nil, &g)
		add(&g)
		return found, err
	}
	d, err := f.at(forge.Repo{Owner: r.Owner, Name: "x"}, i18n.E("rest.do_repositories"))
	if err != nil {
		return nil, err
	}
	d.Repo = r.String()
	var who sdk.User // or an organization
	if _, err := d.Get(ctx, path("users", r.Owner), nil, &who); err != nil {
		return nil, err
	}
	err = eachPage(ctx, d, path("repos", "search"), query("uid", strconv.FormatInt(who.ID, 10), "exclusive", "true", "sort", "id", "order", "asc"),
		func(p *struct{ Data []*sdk.Repository }) int {
			for _, g := range p.Data {
				if g != nil && g.Owner != nil && g.Owner.ID == who.ID {
					add(g)
				}
			}
			return len(p.Data)
		})
	return found, err
}

func repository(g *sdk.Repository) forge.Repository {
	return forge.Repository{Repo: repo(g), DefaultBranch: g.DefaultBranch, Private: g.Private}
}

func repo(g *sdk.Repository) forge.Repo {
	if g == nil || g.Owner == nil {
		return forge.Repo{}
	}
	return forge.Repo{Owner: g.Owner.UserName, Name: g.Name}
}

// Triggered implements forge.Tracker. Gitea orders its list by creation alone, tells labels
// that differ in case apart, and takes a name that is no label of the repository for none:
// so its labels are read before the items that bear one of them.
func (f *Forge) Triggered(ctx context.Context, r forge.Repo, t forge.Trigger) ([]forge.Item, error) {
	d, err := f.at(r, i18n.E("rest.do_list"))
	if err != nil {
		return nil, err
	}
	var queries [][]string
	if t.Label != "" {
		all, err := f.labels(ctx, d, r)
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			switch {
			case !strings.EqualFold(l.Name, t.Label):
			case l.shared || strings.Contains(l.Name, ","): // by such a name nothing is found
				queries = append(queries, nil)
			default:
				queries = append(queries, []string{"labels", l.Name})
			}
		}
	}
	if t.Assignee.Login != "" {
		queries = append(queries, []string{"assigned_by", t.Assignee.Login})
	}
	var items []forge.Item
	for _, pairs := range queries {
		all, err := pages[sdk.Issue](ctx, d, below(r, "issues"), query(append(pairs, "state", "open")...))
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
	d, err := f.at(r, i18n.E("rest.do_list"))
	if err != nil {
		return false, err
	}
	var some []*sdk.Issue
	_, err = d.Get(ctx, below(r, "issues"), query("state", "all", "since", stamp(since), "limit", "1"), &some)
	return len(some) > 0, err
}

func item(r forge.Repo, g *sdk.Issue) forge.Item {
	i := forge.Item{
		Key:   task.Key{Source: "gitea", Owner: r.Owner, Repo: r.Name, Type: task.TypeIssue, ID: strconv.FormatInt(g.Index, 10)},
		Title: g.Title, Body: g.Body, Author: writer(g.Poster, g.OriginalAuthor), Assignees: rest.Each(g.Assignees, person),
		Open: g.State == sdk.StateOpen, URL: g.HTMLURL,
		Created: g.Created.UTC(), Updated: g.Updated.UTC(), Labels: names(g.Labels),
	}
	if g.PullRequest != nil {
		i.Key.Type, i.Pull, i.Title = task.TypePull, &forge.Pull{}, plainTitle(g.Title)
	}
	return i
}

func names(all []*sdk.Label) []string {
	return rest.Each(all, func(l *sdk.Label) string { return l.Name })
}

// Item implements forge.Tracker.
func (f *Forge) Item(ctx context.Context, k task.Key) (forge.Item, error) {
	d, n, err := f.on(k, "rest.do_item")
	if err != nil {
		return forge.Item{}, err
	}
	r := forge.RepoOf(k)
	var g sdk.Issue
	if _, err := d.Get(ctx, below(r, "issues", n), nil, &g); err != nil {
		return forge.Item{}, err
	}
	if g.PullRequest != nil {
		var p sdk.PullRequest
		_, err := d.Get(ctx, below(r, "pulls", n), nil, &p)
		return pullItem(r, &p), err
	}
	var at sdk.Repository
	if _, err := d.Get(ctx, below(r), nil, &at); err != nil {
		return forge.Item{}, err
	}
	i := item(r, &g)
	i.Repository = repository(&at)
	return i, nil
}

// draftPrefix is what makes a draft: of the server's default prefixes the one that we put
// before a title.
const draftPrefix = "WIP: "

// draftTitle is a title that the server's default prefixes make one of a draft.
var draftTitle = lazyregexp.New(`(?i)^\s*(?:WIP:|\[WIP\])\s*`)

// plainTitle is a title without the mark of a draft.
func plainTitle(s string) string { return draftTitle().ReplaceAllString(s, "") }

// pullItem is a pull request. Gitea says that one cannot be merged also while it looks, and
// of each draft: whether there are conflicts it does not tell.
func pullItem(r forge.Repo, p *sdk.PullRequest) forge.Item {
	i := forge.Item{
		Key:   task.Key{Source: "gitea", Owner: r.Owner, Repo: r.Name, Type: task.TypePull, ID: strconv.FormatInt(p.Index, 10)},
		Title: plainTitle(p.Title), Body: p.Body, Author: person(p.Poster), Assignees: rest.Each(p.Assignees, person),
		Open: p.State == sdk.StateOpen, URL: p.HTMLURL, Labels: names(p.Labels),
		Pull: &forge.Pull{
			Draft: p.Draft, Merged: p.HasMerged, Marker: rest.MarkerIn(p.Body), Ref: fmt.Sprintf("refs/pull/%d/head", p.Index),
			Head: branch(p.Head), Base: branch(p.Base), Reviewers: rest.Each(p.RequestedReviewers, person),
		},
	}
	if p.Created != nil && p.Updated != nil {
		i.Created, i.Updated = p.Created.UTC(), p.Updated.UTC()
	}
	if p.Base != nil && p.Base.Repository != nil {
		i.Repository = repository(p.Base.Repository)
	}
	return i
}

// branch is a branch by its name; what the server calls its ref may be one of its own.
func branch(b *sdk.PRBranchInfo) forge.Branch {
	if b == nil {
		return forge.Branch{}
	}
	return forge.Branch{Repo: repo(b.Repository), Name: b.Name, Commit: b.Sha}
}
