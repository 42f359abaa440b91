package gitea

import (
	"context"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Comments implements forge.Tracker.
func (f *Forge) Comments(ctx context.Context, k task.Key) ([]forge.Comment, int, error) {
	d, n, err := f.on(k, "rest.do_comments")
	if err != nil {
		return nil, 0, err
	}
	self, err := f.Self(ctx)
	if err != nil {
		return nil, 0, err
	}
	r := forge.RepoOf(k)
	all, err := (&notes{d: d, self: self, repo: r, n: n}).Changed(ctx, time.Time{})
	if err == nil && k.Type == "pull_request" {
		var more []forge.Comment
		more, err = d.reviews(ctx, self, r, n)
		all = append(all, more...)
	}
	if err != nil {
		return nil, 0, err
	}
	rest.ByTime(all, func(c forge.Comment) time.Time { return c.Created })
	left := max(0, len(all)-forge.MaxComments)
	for i := range all {
		all[i].Item = k.ID
	}
	return all[left:], left, nil
}

// note is a comment below an item; our own is told by its author, then its
// marker: others can copy the marker.
func note(self forge.Person, g *sdk.Comment) forge.Comment {
	at := g.IssueURL
	if at == "" {
		at = g.PRURL
	}
	c := forge.Comment{
		ID: rest.CommentID(forge.Note, g.ID), Kind: forge.Note, Item: lastPart(at), Author: writer(g.Poster, g.OriginalAuthor),
		Body: g.Body, Created: g.Created.UTC(), Edited: g.Updated.UTC(), URL: g.HTMLURL,
	}
	return ours(self, c)
}

// ours takes the marker off a comment of ours.
func ours(self forge.Person, c forge.Comment) forge.Comment {
	if c.Author.ID == self.ID && self.ID != 0 {
		c.Body, c.Marker = rest.Unmark(c.Body)
	}
	return c
}

func lastPart(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// reviews lists the reviews of a pull request and what they say on lines.
func (d *call) reviews(ctx context.Context, self forge.Person, r forge.Repo, n int) ([]forge.Comment, error) {
	list, err := pages[sdk.PullReview](ctx, d, below(r, "pulls", n, "reviews"), nil)
	if err != nil {
		return nil, d.absent(ctx, r, n, err)
	}
	var all []forge.Comment
	for _, g := range list {
		c, sent := review(self, g)
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
		if _, err := d.get(ctx, below(r, "pulls", n, "reviews", g.ID, "comments"), nil, &lines); err != nil {
			return nil, err
		}
		all = append(all, remarks(self, lines)...)
	}
	for i := range all {
		all[i].Item = lastPart(path(n))
	}
	return all, nil
}

// review is the text of a review; one that was not sent yet, or only asked for, is none. Of
// two reviews by one person the older is taken for dismissed by the server.
func review(self forge.Person, g *sdk.PullReview) (c forge.Comment, sent bool) {
	verdict, sent := verdicts[g.State]
	if g.Dismissed {
		verdict = forge.Dismissed
	}
	at := g.Submitted.UTC()
	return ours(self, forge.Comment{
		ID: rest.CommentID(forge.Review, g.ID), Kind: forge.Review, Author: person(g.Reviewer),
		Body: g.Body, Created: at, Edited: at, URL: g.HTMLURL, Verdict: verdict,
	}), sent
}

var verdicts = map[sdk.ReviewStateType]string{
	sdk.ReviewStateApproved: forge.Approved, sdk.ReviewStateRequestChanges: forge.ChangesRequested, sdk.ReviewStateComment: forge.Commented,
}

// remarks are what a review says on lines. An answer stands in the review that it answers, on
// the same line: the first one there began the conversation.
func remarks(self forge.Person, lines []*sdk.PullReviewComment) []forge.Comment {
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
		all = append(all, ours(self, c))
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
	self, err := f.Self(ctx)
	if err != nil {
		return nil, err
	}
	q := query()
	if !from.IsZero() {
		q = query("since", stamp(from))
	}
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
		add(note(self, g))
	}
	q.Set("state", "all")
	q.Set("type", "pulls")
	changed, err := pages[sdk.Issue](ctx, d, below(r, "issues"), q)
	if err != nil {
		return nil, err
	}
	for _, p := range changed {
		said, err := d.reviews(ctx, self, r, int(p.Index))
		if err != nil {
			return nil, err
		}
		for _, c := range said {
			add(c)
		}
	}
	rest.ByTime(all, func(c forge.Comment) time.Time { return c.Edited })
	all = slices.CompactFunc(all, func(a, b forge.Comment) bool { return a.ID == b.ID })
	return all[:min(len(all), forge.MaxComments)], nil
}

// Post implements forge.Tracker.
func (f *Forge) Post(ctx context.Context, k task.Key, marker, body string) (forge.Comment, error) {
	d, n, err := f.on(k, "rest.do_post")
	if err != nil {
		return forge.Comment{}, err
	}
	self, err := f.Self(ctx)
	if err != nil {
		return forge.Comment{}, err
	}
	return f.posts.Post(ctx, &d.Call, k, &notes{d: d, self: self, repo: forge.RepoOf(k), n: n}, marker, body)
}
