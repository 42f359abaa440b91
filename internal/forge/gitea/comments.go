package gitea

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Comments implements forge.Tracker.
func (f *Forge) Comments(ctx context.Context, k task.Key) ([]forge.Comment, int, error) {
	d, n, err := f.talk(ctx, k, "rest.do_comments")
	if err != nil {
		return nil, 0, err
	}
	r := forge.RepoOf(k)
	all, err := d.notes(r, n).Changed(ctx, time.Time{})
	if err == nil && k.Type == "pull_request" {
		var more []forge.Comment
		more, err = d.reviews(ctx, r, n)
		all = append(all, more...)
	}
	if err != nil {
		return nil, 0, err
	}
	all, left := rest.Said(all, k)
	return all, left, nil
}

// note is a comment below an item.
func (d *call) note(g *sdk.Comment) forge.Comment {
	return rest.Ours(d.self, forge.Comment{
		ID: rest.CommentID(forge.Note, g.ID), Kind: forge.Note, Item: rest.LastPart(cmp.Or(g.IssueURL, g.PRURL)), Author: writer(g.Poster, g.OriginalAuthor),
		Body: g.Body, Created: g.Created.UTC(), Edited: g.Updated.UTC(), URL: g.HTMLURL,
	})
}

// reviews lists the reviews of a pull request and what they say on lines.
func (d *call) reviews(ctx context.Context, r forge.Repo, n int) ([]forge.Comment, error) {
	list, err := pages[sdk.PullReview](ctx, d, below(r, "pulls", n, "reviews"), nil)
	if err != nil {
		return nil, d.absent(ctx, r, n, err)
	}
	var all []forge.Comment
	for _, g := range list {
		c, sent := d.said(g)
		if !sent {
			continue
		}
		if c.Body != "" || c.Verdict != forge.Commented {
			all = append(all, c)
		}
		if g.CodeCommentsCount == 0 {
			continue
		}
		var lines []*sdk.PullReviewComment // come whole
		if _, err := d.Get(ctx, below(r, "pulls", n, "reviews", g.ID, "comments"), nil, &lines); err != nil {
			return nil, err
		}
		all = append(all, d.remarks(lines)...)
	}
	for i := range all {
		all[i].Item = strconv.Itoa(n)
	}
	return all, nil
}

// said is the text of a review; one that was not sent yet, or only asked for, is none. Of
// two reviews by one person the older is taken for dismissed by the server.
func (d *call) said(g *sdk.PullReview) (c forge.Comment, sent bool) {
	verdict, sent := verdicts[g.State]
	if g.Dismissed {
		verdict = forge.Dismissed
	}
	at := g.Submitted.UTC()
	return rest.Ours(d.self, forge.Comment{
		ID: rest.CommentID(forge.Review, g.ID), Kind: forge.Review, Author: person(g.Reviewer),
		Body: g.Body, Created: at, Edited: at, URL: g.HTMLURL, Verdict: verdict,
	}), sent
}

var verdicts = map[sdk.ReviewStateType]string{
	sdk.ReviewStateApproved: forge.Approved, sdk.ReviewStateRequestChanges: forge.ChangesRequested, sdk.ReviewStateComment: forge.Commented,
}

// remarks are what a review says on lines. An answer stands in the review that it answers, on
// the same line: the first one there began the conversation.
func (d *call) remarks(lines []*sdk.PullReviewComment) []forge.Comment {
	lines = rest.Present(lines)
	slices.SortFunc(lines, func(a, b *sdk.PullReviewComment) int { return int(a.ID - b.ID) })
	type place struct {
		path     string
		new, old uint64
	}
	first := map[place]string{}
	var all []forge.Comment
	for _, g := range lines {
		c := forge.Comment{
			ID: rest.CommentID(forge.Line, g.ID), Kind: forge.Line, Author: person(g.Reviewer),
			Body: g.Body, Created: g.Created.UTC(), Edited: g.Updated.UTC(), URL: g.HTMLURL, Path: g.Path, Line: int(g.LineNum), Resolved: g.Resolver != nil,
		}
		at := place{g.Path, g.LineNum, g.OldLineNum}
		if c.ReplyTo = first[at]; c.ReplyTo == "" {
			first[at] = c.ID
		}
		all = append(all, rest.Ours(d.self, c))
	}
	return all
}

// CommentsSince implements forge.Tracker. Gitea lists notes by repository; what reviews say
// it lists by review alone, so they are asked for where the pull request changed.
func (f *Forge) CommentsSince(ctx context.Context, r forge.Repo, from time.Time) ([]forge.Comment, error) {
	d, err := f.at(r, i18n.E("rest.do_news"))
	if err != nil {
		return nil, err
	}
	if d.self, err = f.Self(ctx); err != nil {
		return nil, err
	}
	q := rest.From(from)
	var all []forge.Comment
	add := func(c forge.Comment) {
		if !c.Edited.Before(from) {
			all = append(all, c)
		}
	}
	// Pages are in the order of creation: only the whole can be put in order.
	list, err := pages[sdk.Comment](ctx, d, below(r, "issues", "comments"), q)
	if err != nil {
		return nil, err
	}
	for _, g := range list {
		add(d.note(g))
	}
	q.Set("state", "all")
	q.Set("type", "pulls")
	changed, err := pages[sdk.Issue](ctx, d, below(r, "issues"), q)
	if err != nil {
		return nil, err
	}
	for _, p := range changed {
		said, err := d.reviews(ctx, r, int(p.Index))
		if err != nil {
			return nil, err
		}
		for _, c := range said {
			add(c)
		}
	}
	return rest.News(all), nil
}

// Post implements forge.Tracker.
func (f *Forge) Post(ctx context.Context, k task.Key, marker, body string) (forge.Comment, error) {
	d, n, err := f.talk(ctx, k, "rest.do_post")
	if err != nil {
		return forge.Comment{}, err
	}
	return f.posts.Post(ctx, &d.Call, k, d.notes(forge.RepoOf(k), n), marker, body)
}
