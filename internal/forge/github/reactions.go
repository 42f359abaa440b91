package github

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/task"
)

var _ forge.Reactions = (*Forge)(nil)

// reactionsAt is where the signs on an item or a comment are; a review takes none, and
// those of its item stand for them.
func (f *Forge) reactionsAt(ctx context.Context, k task.Key, comment, what string) (d *call, at string, err error) {
	d, n, err := f.on(ctx, k, what)
	if err != nil {
		return nil, "", err
	}
	r := forge.RepoOf(k)
	switch kind, id, _ := strings.Cut(comment, "/"); forge.CommentKind(kind) {
	case forge.Note:
		return d, below(r, "issues", "comments", id, "reactions"), nil
	case forge.Line:
		return d, below(r, "pulls", "comments", id, "reactions"), nil
	}
	return d, below(r, "issues", n, "reactions"), nil
}

// React implements forge.Reactions.
func (f *Forge) React(ctx context.Context, k task.Key, comment, sign string) error {
	d, at, err := f.reactionsAt(ctx, k, comment, "rest.do_react")
	if err == nil {
		_, err = d.Send(ctx, http.MethodPost, at, &github.Reaction{Content: &sign}, nil)
	}
	return err
}

// Reactions implements forge.Reactions.
func (f *Forge) Reactions(ctx context.Context, k task.Key, comment string) ([]forge.Reaction, error) {
	d, at, err := f.reactionsAt(ctx, k, comment, "rest.do_reactions")
	if err != nil {
		return nil, err
	}
	list, err := rest.Pages[github.Reaction](ctx, d, at, nil)
	var all []forge.Reaction
	for _, g := range list {
		switch g.GetContent() {
		case forge.Seen, forge.Yes, forge.No:
			all = append(all, forge.Reaction{By: person(g.GetUser()), Sign: g.GetContent(), At: g.GetCreatedAt().UTC()})
		}
	}
	slices.SortStableFunc(all, func(a, b forge.Reaction) int { return a.At.Compare(b.At) })
	return all, err
}
