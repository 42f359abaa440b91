package gitlab

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/task"
)

// Repositories implements forge.Tracker. "group/*" are the projects of that very group, not
// those of its subgroups.
func (f *Forge) Repositories(ctx context.Context, patterns []string) ([]forge.Repository, error) {
	return rest.Repositories(ctx, patterns, "gitlab.unseen", f.matching)
}

func (f *Forge) matching(ctx context.Context, r forge.Repo) (found []forge.Repository, err error) {
	all, err := f.projects(ctx, r)
	for _, g := range all {
		x := repository(g)
		if !g.Archived && g.MarkedForDeletionOn == nil && (r.Name != "*" || strings.EqualFold(x.Owner, r.Owner)) {
			found = append(found, x)
		}
	}
	return found, err
}

func (f *Forge) projects(ctx context.Context, r forge.Repo) ([]*gitlab.Project, error) {
	if r.Name != "*" {
		d, err := f.at(r, i18n.E("rest.do_repository"))
		if err != nil {
			return nil, err
		}
		g, err := d.read(ctx)
		return []*gitlab.Project{g}, err
	}
	d := f.asking(r.String(), i18n.E("rest.do_repositories"))
	if !rest.IsRepo(forge.Repo{Owner: r.Owner, Name: "x"}) {
		return nil, d.Unknown()
	}
	all, err := rest.Pages[gitlab.Project](ctx, d, path("groups", r.Owner, "projects"), query("archived", "false", "with_shared", "false", "order_by", "id", "sort", "asc"))
	if forge.Is(err, forge.NotFound) { // no group, but perhaps a person
		all, err = rest.Pages[gitlab.Project](ctx, d, path("users", r.Owner, "projects"), query("archived", "false", "order_by", "id", "sort", "asc"))
	}
	return all, err
}

// read reads the project itself, where it is by now.
func (d *call) read(ctx context.Context) (*gitlab.Project, error) {
	var g gitlab.Project
	_, err := d.Get(ctx, d.project, nil, &g)
	return &g, err
}

func repository(g *gitlab.Project) forge.Repository {
	r, _ := forge.ParseRepo(g.PathWithNamespace)
	return forge.Repository{Repo: r, DefaultBranch: g.DefaultBranch, Private: g.Visibility != gitlab.PublicVisibility}
}

// members reports whether only its members see a project: then they see as much of it as
// those do who see its confidential issues and internal notes, and nothing that is said
// there can come out in a merge request. Source: GitLab docs, "Roles and permissions".
func members(g *gitlab.Project) bool { return g.Visibility == gitlab.PrivateVisibility }

// mostItems bounds a list of items that bear the trigger.
const mostItems = 10_000

// Triggered implements forge.Tracker. Where nothing changed it costs one request for the
// label's name, and two for each of label and assignee, all of which are answered "not
// modified". Confidential issues of a project that others can see trigger nothing.
func (f *Forge) Triggered(ctx context.Context, r forge.Repo, t forge.Trigger) ([]forge.Item, error) {
	d, err := f.at(r, i18n.E("gitlab.do_list"))
	if err != nil {
		return nil, err
	}
	filters, err := d.filters(ctx, t)
	if err != nil {
		return nil, err
	}
	var items []forge.Item
	var at project
	for _, q := range filters {
		all, err := since(ctx, d, d.below("issues"), q, time.Time{}, mostItems, issueID, issueUpdated)
		if err != nil {
			return nil, err
		}
		for _, g := range all {
			switch hidden, err := at.hides(ctx, d, g.Confidential); {
			case err != nil:
				return nil, err
			case !hidden:
				items = append(items, item(r, g))
			}
		}
		merges, err := since(ctx, d, d.below("merge_requests"), q, time.Time{}, mostItems, mergeID, mergeUpdated)
		if err != nil {
			return nil, err
		}
		for _, g := range merges {
			i := mergeItem(r, g)
			i.Pull = &forge.Pull{}
			items = append(items, i)
		}
	}
	return rest.Bearing(items, t), nil
}

// Changed implements forge.Changes.
func (f *Forge) Changed(ctx context.Context, r forge.Repo, since time.Time) (bool, error) {
	d, err := f.at(r, i18n.E("gitlab.do_list"))
	if err != nil {
		return false, err
	}
	for _, kind := range []string{"issues", "merge_requests"} {
		var some []struct{}
		_, err := d.Get(ctx, d.below(kind), query("state", "all", "updated_after", stamp(since), "per_page", "1"), &some)
		if err != nil || len(some) > 0 {
			return len(some) > 0, err
		}
	}
	return false, nil
}

// filters are the queries that find what bears a trigger.
func (d *call) filters(ctx context.Context, t forge.Trigger) ([]url.Values, error) {
	var all []url.Values
	if t.Label != "" {
		names, err := d.labels(ctx, t.Label)
		if err != nil {
			return nil, err
		}
		for _, l := range names {
			q := query("state", "opened", "labels", l)
			if strings.EqualFold(l, "none") || strings.EqualFold(l, "any") { // words of the query's own
				q.Del("labels")
			}
			all = append(all, q)
		}
	}
	if t.Assignee.Login != "" {
		all = append(all, query("state", "opened", "assignee_id", strconv.FormatInt(t.Assignee.ID, 10)))
	}
	return all, nil
}

func issueID(g *gitlab.Issue) int64                      { return g.ID }
func issueUpdated(g *gitlab.Issue) time.Time             { return when(g.UpdatedAt) }
func mergeID(g *gitlab.BasicMergeRequest) int64          { return g.ID }
func mergeUpdated(g *gitlab.BasicMergeRequest) time.Time { return when(g.UpdatedAt) }

// project is the project of a call, read when it is needed.
type project struct{ g *gitlab.Project }

// hides reports whether what is confidential is hidden from people who see the project.
func (p *project) hides(ctx context.Context, d *call, confidential bool) (bool, error) {
	if !confidential {
		return false, nil
	}
	if p.g == nil {
		g, err := d.read(ctx)
		if err != nil {
			return true, err
		}
		p.g = g
	}
	return !members(p.g), nil
}

func item(r forge.Repo, g *gitlab.Issue) forge.Item {
	i := forge.Item{
		Key:   task.Key{Source: "gitlab", Owner: r.Owner, Repo: r.Name, Type: issue, ID: strconv.FormatInt(g.IID, 10)},
		Title: g.Title, Body: g.Description, Author: person(0, ""),
		Open: g.State == "opened", URL: g.WebURL,
		Created: when(g.CreatedAt), Updated: when(g.UpdatedAt), Labels: g.Labels,
	}
	if g.Author != nil {
		i.Author = person(g.Author.ID, g.Author.Username)
	}
	i.Assignees = rest.Each(g.Assignees, func(a *gitlab.IssueAssignee) forge.Person { return person(a.ID, a.Username) })
	return i
}

// draftTitle is what makes a draft of a merge request. Source: GitLab docs, "Draft merge
// requests".
var draftTitle = lazyregexp.New(`(?i)^(?:\s*(?:\[draft\]|\(draft\)|draft:))+\s*`)

func undraft(title string) string { return draftTitle().ReplaceAllString(title, "") }

// mergeItem is a merge request as lists have it, but for the other project of one that
// comes from there.
func mergeItem(r forge.Repo, g *gitlab.BasicMergeRequest) forge.Item {
	i := forge.Item{
		Key:   task.Key{Source: "gitlab", Owner: r.Owner, Repo: r.Name, Type: mergeRequest, ID: strconv.FormatInt(g.IID, 10)},
		Title: g.Title, Body: g.Description, Author: user(g.Author), Assignees: rest.Each(g.Assignees, user),
		// While it is being merged it is locked.
		Open: g.State == "opened" || g.State == "locked", URL: g.WebURL,
		Created: when(g.CreatedAt), Updated: when(g.UpdatedAt), Labels: g.Labels,
		Pull: &forge.Pull{
			Draft: g.Draft, Merged: g.State == "merged", Marker: rest.MarkerIn(g.Description), Ref: fmt.Sprintf("refs/merge-requests/%d/head", g.IID),
			Head:      forge.Branch{Name: g.SourceBranch, Commit: g.SHA},
			Base:      forge.Branch{Repo: r, Name: g.TargetBranch},
			Conflicts: g.HasConflicts && g.State == "opened",
			Reviewers: rest.Each(g.Reviewers, user),
		},
	}
	if g.Draft {
		i.Title = undraft(g.Title)
	}
	if g.SourceProjectID == g.TargetProjectID {
		i.Pull.Head.Repo = r
	}
	return i
}

// Item implements forge.Tracker. A confidential issue of a project that others can see is
// not found.
func (f *Forge) Item(ctx context.Context, k task.Key) (forge.Item, error) {
	d, at, err := f.on(k, "gitlab.do_item")
	if err != nil {
		return forge.Item{}, err
	}
	if k.Type == mergeRequest {
		var g gitlab.MergeRequest
		if _, err := d.Get(ctx, at, nil, &g); err != nil {
			return forge.Item{}, err
		}
		return d.whole(ctx, forge.RepoOf(k), &g)
	}
	var g gitlab.Issue
	if _, err := d.Get(ctx, at, nil, &g); err != nil {
		return forge.Item{}, err
	}
	p, err := d.read(ctx)
	switch {
	case err != nil:
		return forge.Item{}, err
	case g.MovedToID != 0:
		return forge.Item{}, d.Moved(g.WebURL)
	case g.Confidential && !members(p):
		return forge.Item{}, d.Failed(forge.NotFound, 0, i18n.E("gitlab.said_confidential"), i18n.E("gitlab.advice_confidential"), nil)
	}
	i := item(forge.RepoOf(k), &g)
	i.Repository = repository(p)
	return i, nil
}

// whole is all that is to be known of a merge request.
func (d *call) whole(ctx context.Context, r forge.Repo, g *gitlab.MergeRequest) (forge.Item, error) {
	p, err := d.read(ctx)
	if err != nil {
		return forge.Item{}, err
	}
	i := mergeItem(r, &g.BasicMergeRequest)
	i.Repository = repository(p)
	i.Pull.Base.Commit = g.DiffRefs.StartSha
	if i.Pull.Head.Repo == (forge.Repo{}) && g.SourceProjectID != 0 {
		var from gitlab.Project
		switch _, err := d.Get(ctx, path("projects", g.SourceProjectID), nil, &from); {
		case err == nil:
			i.Pull.Head.Repo = repository(&from).Repo
		case !forge.Is(err, forge.NotFound) && !forge.Is(err, forge.Forbidden): // it is gone, or hidden
			return forge.Item{}, err
		}
	}
	return i, nil
}
