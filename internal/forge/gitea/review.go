package gitea

import (
	"context"
	"errors"
	"net/http"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/task"
)

var _ forge.Reviewer = (*Forge)(nil)

// Review implements forge.Reviewer. Gitea takes a remark on one line, and knows no suggestions:
// they are code in it.
func (f *Forge) Review(ctx context.Context, k task.Key, p forge.ReviewPost) (c forge.Comment, err error) {
	d, n, err := f.talk(ctx, k, "rest.do_reviewing")
	if err != nil {
		return c, err
	}
	unlock, err := f.posts.Turns.Enter(ctx, strings.ToLower(k.String()))
	if err != nil {
		return c, d.Explain(ctx, err)
	}
	defer unlock()
	in := &sdk.CreatePullReviewOptions{State: sdk.ReviewStateComment, Body: rest.Mark(p.Body, p.Marker), CommitID: p.Commit}
	for _, r := range p.Remarks {
		in.Comments = append(in.Comments, sdk.CreatePullReviewComment{Path: r.Path, NewLineNum: int64(r.Line), Body: rest.RemarkText(r, "")})
	}
	c, err = d.review(ctx, forge.RepoOf(k), n, p.Marker, in)
	if e := (*forge.Error)(nil); errors.As(err, &e) && (e.Kind == forge.Invalid || e.Status == http.StatusInternalServerError) {
		in.Body, in.Comments, in.CommitID = rest.Mark(rest.WithRemarks(p.Body, p.Remarks), p.Marker), nil, ""
		c, err = d.review(ctx, forge.RepoOf(k), n, p.Marker, in)
	}
	return c, err
}

// review posts a review where there is none with the marker. Gitea writes the remarks before it,
// and answers 500 at one on a line that is not there (seen in 1.26.4): those before that stay as
// a draft, which the next review would publish.
func (d *call) review(ctx context.Context, r forge.Repo, n int, marker string, in *sdk.CreatePullReviewOptions) (c forge.Comment, err error) {
	at := below(r, "pulls", n, "reviews")
	list, err := pages[sdk.PullReview](ctx, d, at, nil)
	if err != nil {
		return c, d.absent(ctx, r, n, err)
	}
	for _, g := range list {
		if c, sent := d.said(g); sent && c.Marker == marker {
			return c, nil
		}
		if g.State == sdk.ReviewStatePending && g.Reviewer != nil && g.Reviewer.ID == d.self.ID {
			if _, err := d.Send(ctx, http.MethodDelete, at+"/"+path(g.ID), nil, nil); err != nil {
				return c, err
			}
		}
	}
	var g sdk.PullReview
	_, err = d.Send(ctx, http.MethodPost, at, in, &g)
	c, _ = d.said(&g)
	return c, err
}
