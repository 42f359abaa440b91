package gitlab

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Propose implements forge.CodeHost.
func (f *Forge) Propose(ctx context.Context, r forge.Repo, p forge.Proposal) (forge.Item, error) {
	d, err := f.at(r, i18n.E("gitlab.do_propose", p.Head, p.Base))
	if err != nil {
		return forge.Item{}, err
	}
	p.Title, p.Body = short(p.Title), harmless(p.Body)
	return f.posts.Propose(ctx, &d.Call, r, &proposals{f: f, d: d, r: r}, p)
}

// proposals implements rest.Pulls of one project.
type proposals struct {
	f *Forge
	d *call
	r forge.Repo
}

// Ours implements rest.Pulls. What others opened from the branch is theirs.
func (x *proposals) Ours(ctx context.Context, branch string) ([]forge.Item, error) {
	self, err := x.f.Self(ctx)
	if err != nil {
		return nil, err
	}
	q := query("state", "all", "source_branch", branch, "author_id", strconv.FormatInt(self.ID, 10), "order_by", "created_at", "sort", "asc")
	all, err := rest.Pages[gitlab.BasicMergeRequest](ctx, x.d, x.d.below("merge_requests"), q)
	var ours []forge.Item
	for _, g := range all {
		if g.SourceBranch == branch && g.SourceProjectID == g.TargetProjectID && user(g.Author).ID == self.ID {
			ours = append(ours, mergeItem(x.r, g))
		}
	}
	return ours, err
}

const draft = "Draft: "

// mostTitle is how long a title may be, characters. Source: GitLab, the model Issuable.
const mostTitle = 255

// short is a title that a merge request may have, as a draft, too.
func short(title string) string {
	r := []rune(title)
	if most := mostTitle - len(draft); len(r) > most {
		return strings.TrimSpace(string(r[:most-1])) + "…"
	}
	return title
}

// Open implements rest.Pulls. GitLab opens merge requests of branches that are not there,
// too: it is looked before.
func (x *proposals) Open(ctx context.Context, p forge.Proposal) (forge.Item, error) {
	if _, err := x.d.Get(ctx, x.d.below("repository", "branches", p.Head), nil, nil); err != nil {
		if forge.Is(err, forge.NotFound) {
			err = x.d.Answered(http.StatusBadRequest, p.Head+": branch not found", nil, nil, err)
		}
		return forge.Item{}, err
	}
	title := p.Title
	if p.Draft {
		title = draft + title
	}
	return x.send(ctx, http.MethodPost, x.d.below("merge_requests"), map[string]string{
		"source_branch": p.Head, "target_branch": p.Base, "title": title, "description": p.Body,
	})
}

func (x *proposals) at(i forge.Item) string { return x.d.below("merge_requests", i.Key.ID) }

// Edit implements rest.Pulls.
func (x *proposals) Edit(ctx context.Context, i forge.Item, title, body string) (forge.Item, error) {
	if i.Pull.Draft {
		title = draft + title
	}
	return x.send(ctx, http.MethodPut, x.at(i), map[string]string{"title": title, "description": body})
}

// Whole implements rest.Pulls.
func (x *proposals) Whole(ctx context.Context, i forge.Item) (forge.Item, error) {
	var g gitlab.MergeRequest
	if _, err := x.d.Get(ctx, x.at(i), nil, &g); err != nil {
		return forge.Item{}, err
	}
	return x.d.whole(ctx, x.r, &g)
}

func (x *proposals) send(ctx context.Context, method, at string, body map[string]string) (forge.Item, error) {
	var g gitlab.MergeRequest
	if err := x.d.send(ctx, method, at, body, &g); err != nil {
		return forge.Item{}, err
	}
	return x.d.whole(ctx, x.r, &g)
}

// merge begins a call to a merge request, and reads it.
func (f *Forge) merge(ctx context.Context, k task.Key, what string) (d *call, at string, g *gitlab.MergeRequest, err error) {
	d, at, err = f.on(k, what)
	if err != nil {
		return nil, "", nil, err
	}
	if k.Type != mergeRequest {
		return nil, "", nil, d.Unknown()
	}
	g = &gitlab.MergeRequest{}
	_, err = d.Get(ctx, at, nil, g)
	return d, at, g, err
}

// Ready implements forge.CodeHost: a draft is one by its title.
func (f *Forge) Ready(ctx context.Context, k task.Key) error {
	d, at, g, err := f.merge(ctx, k, "gitlab.do_ready")
	if err != nil || !g.Draft {
		return err
	}
	return d.send(ctx, http.MethodPut, at, map[string]string{"title": undraft(g.Title)}, nil)
}

// Withdraw implements forge.CodeHost.
func (f *Forge) Withdraw(ctx context.Context, k task.Key) error {
	d, at, g, err := f.merge(ctx, k, "gitlab.do_withdraw")
	if err != nil || g.State != "opened" {
		return err
	}
	return d.send(ctx, http.MethodPut, at, map[string]string{"state_event": "close"}, nil)
}

// RequestReview implements forge.CodeHost. Who reviews already stays; a GitLab without a
// licence takes one reviewer only, and passes over the rest.
func (f *Forge) RequestReview(ctx context.Context, k task.Key, of []forge.Person) error {
	if len(of) == 0 {
		return nil
	}
	d, at, g, err := f.merge(ctx, k, "gitlab.do_review")
	if err != nil {
		return err
	}
	ids := rest.Each(g.Reviewers, func(u *gitlab.BasicUser) int64 { return user(u).ID })
	asked := len(ids)
	for _, w := range of {
		if w.ID == 0 || w.ID == user(g.Author).ID || slices.Contains(ids, w.ID) {
			continue
		}
		// One who may not read it would take the place of one who may.
		p, err := f.Permission(ctx, forge.RepoOf(k), w)
		if err != nil {
			return err
		}
		if p >= forge.Read {
			ids = append(ids, w.ID)
		}
	}
	if len(ids) == asked {
		return nil
	}
	return d.send(ctx, http.MethodPut, at, map[string]any{"reviewer_ids": ids}, nil)
}
