package github

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/task"
)

var _ forge.Reviewer = (*Forge)(nil)

// Review implements forge.Reviewer. GitHub takes a review whole or not at all: where it refuses
// one of the remarks all go into the text.
func (f *Forge) Review(ctx context.Context, k task.Key, p forge.ReviewPost) (forge.Comment, error) {
	d, n, err := f.talk(ctx, k, "rest.do_reviewing")
	if err != nil {
		return forge.Comment{}, err
	}
	unlock, err := f.posts.Turns.Enter(ctx, strings.ToLower(k.String()))
	if err != nil {
		return forge.Comment{}, d.Explain(ctx, err)
	}
	defer unlock()
	at := below(forge.RepoOf(k), "pulls", n, "reviews")
	var found forge.Comment
	_, err = rest.Backward(ctx, d, at, nil, func(page []*github.PullRequestReview) bool {
		for _, g := range page {
			if c, _ := d.said(g); c.Marker == p.Marker {
				found = c
			}
		}
		return found.ID == ""
	})
	if err != nil || found.ID != "" {
		return found, err
	}
	body, event, right := rest.Mark(p.Body, p.Marker), "COMMENT", "RIGHT"
	in := &github.PullRequestReviewRequest{Body: &body, Event: &event, CommitID: &p.Commit}
	for _, r := range p.Remarks {
		text := rest.RemarkText(r, "suggestion")
		c := &github.DraftReviewComment{Path: &r.Path, Line: &r.Line, Side: &right, Body: &text}
		if r.First < r.Line {
			c.StartLine, c.StartSide = &r.First, &right
		}
		in.Comments = append(in.Comments, c)
	}
	var g github.PullRequestReview
	_, err = d.Send(ctx, http.MethodPost, at, in, &g)
	if forge.Is(err, forge.Invalid) {
		body = rest.Mark(rest.WithRemarks(p.Body, p.Remarks), p.Marker)
		in.Comments, in.CommitID = nil, nil // which may be gone
		_, err = d.Send(ctx, http.MethodPost, at, in, &g)
	}
	c, _ := d.said(&g)
	return c, err
}
