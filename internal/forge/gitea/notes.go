package gitea

import (
	"context"
	"net/http"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
)

// notes are those on one item; they implement rest.Notes.
type notes struct {
	d    *call
	self forge.Person
	repo forge.Repo
	n    int
}

// Changed reads a list that comes whole.
func (c *notes) Changed(ctx context.Context, since time.Time) ([]forge.Comment, error) {
	q := query()
	if !since.IsZero() {
		q = query("since", stamp(since))
	}
	var list []*sdk.Comment
	if _, err := c.d.get(ctx, below(c.repo, "issues", c.n, "comments"), q, &list); err != nil {
		return nil, c.d.absent(ctx, c.repo, c.n, err)
	}
	var all []forge.Comment
	for _, g := range rest.Present(list) {
		all = append(all, note(c.self, g))
	}
	return all, nil
}

func (c *notes) at(id string) string {
	return below(c.repo, "issues", "comments", strings.TrimPrefix(id, string(forge.Note)+"/"))
}

func (c *notes) Note(ctx context.Context, id string) (forge.Comment, error) {
	var g sdk.Comment
	_, err := c.d.get(ctx, c.at(id), nil, &g)
	return note(c.self, &g), err
}

func (c *notes) Add(ctx context.Context, text string) (forge.Comment, error) {
	var g sdk.Comment
	_, err := c.d.send(ctx, http.MethodPost, below(c.repo, "issues", c.n, "comments"), sdk.CreateIssueCommentOption{Body: text}, &g)
	return note(c.self, &g), err
}

func (c *notes) Edit(ctx context.Context, id, text string) (forge.Comment, error) {
	var g sdk.Comment
	_, err := c.d.send(ctx, http.MethodPatch, c.at(id), sdk.EditIssueCommentOption{Body: text}, &g)
	return note(c.self, &g), err
}

func (c *notes) Delete(ctx context.Context, id string) error {
	_, err := c.d.send(ctx, http.MethodDelete, c.at(id), nil, nil)
	return err
}
