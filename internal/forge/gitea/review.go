package gitea

import (
	"context"
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
	d, n, err := f.on(k, "rest.do_reviewing")
	if err != nil {
		return c, err
	}
	self, err := f.Self(ctx)
	if err != nil {
		return c, err
	}
	unlock, err := f.posts.Turns.Enter(ctx, strings.ToLower(k.String()))
	if err != nil {
		return c, d.Explain(ctx, err)
	}
	defer unlock()
	r := forge.RepoOf(k)
	at := below(r, "pulls", n, "reviews")
	list, err := pages[sdk.PullReview](ctx, d, at, nil)
	if err != nil {
		return c, d.absent(ctx, r, n, err)
	}
	for _, g := range list {
		if c, _ := review(self, g); c.Marker == p.Marker {
			return c, nil
		}
	}
	in := &sdk.CreatePullReviewOptions{State: sdk.ReviewStateComment, Body: rest.Mark(p.Body, p.Marker), CommitID: p.Commit}
	for _, r := range p.Remarks {
		in.Comments = append(in.Comments, sdk.CreatePullReviewComment{Path: r.Path, NewLineNum: int64(r.Line), Body: rest.RemarkText(r, "")})
	}
	var g sdk.PullReview
	_, err = d.send(ctx, http.MethodPost, at, in, &g)
	if forge.Is(err, forge.Invalid) {
		in.Body, in.Comments, in.CommitID = rest.Mark(rest.WithRemarks(p.Body, p.Remarks), p.Marker), nil, ""
		_, err = d.send(ctx, http.MethodPost, at, in, &g)
	}
	c, _ = review(self, &g)
	return c, err
}
