package github

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// Post implements forge.Tracker.
func (f *Forge) Post(ctx context.Context, k task.Key, marker, body string) (forge.Comment, error) {
	d, n, err := f.on(ctx, k, "rest.do_post")
	if err != nil {
		return forge.Comment{}, err
	}
	self, err := f.Self(ctx)
	if err != nil {
		return forge.Comment{}, err
	}
	return f.posts.Post(ctx, &d.Call, k, &notes{d: d, self: self, repo: forge.RepoOf(k), n: n}, marker, body)
}

// notes are those on one item.
type notes struct {
	d    *call
	self forge.Person
	repo forge.Repo
	n    int
}

func (c *notes) Changed(ctx context.Context, since time.Time) ([]forge.Comment, error) {
	q := query()
	if !since.IsZero() {
		q = query("since", stamp(since))
	}
	var all []forge.Comment
	_, err := backward(ctx, c.d, below(c.repo, "issues", c.n, "comments"), q, func(page []*github.IssueComment) bool {
		for _, g := range page {
			all = append(all, note(c.self, g))
		}
		return true
	})
	return all, err
}

func (c *notes) at(id string) string {
	return below(c.repo, "issues", "comments", strings.TrimPrefix(id, string(forge.Note)+"/"))
}

func (c *notes) Note(ctx context.Context, id string) (forge.Comment, error) {
	var g github.IssueComment
	_, err := c.d.get(ctx, c.at(id), nil, &g)
	return note(c.self, &g), err
}

func (c *notes) Add(ctx context.Context, text string) (forge.Comment, error) {
	var g github.IssueComment
	_, err := c.d.send(ctx, http.MethodPost, below(c.repo, "issues", c.n, "comments"), &github.IssueComment{Body: &text}, &g)
	return note(c.self, &g), err
}

func (c *notes) Edit(ctx context.Context, id, text string) (forge.Comment, error) {
	var g github.IssueComment
	_, err := c.d.send(ctx, http.MethodPatch, c.at(id), &github.IssueComment{Body: &text}, &g)
	return note(c.self, &g), err
}

func (c *notes) Delete(ctx context.Context, id string) error {
	_, err := c.d.send(ctx, http.MethodDelete, c.at(id), nil, nil)
	return err
}
