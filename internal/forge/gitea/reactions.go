package gitea

import (
	"context"
	"net/http"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

var _ forge.Reactions = (*Forge)(nil)

// reactionsAt is where the signs on an item or a comment are; a review takes none, and
// those of its item stand for them.
func (f *Forge) reactionsAt(k task.Key, comment, what string) (d *call, at string, err error) {
	d, n, err := f.on(k, what)
	if err != nil {
		return nil, "", err
	}
	switch kind, id, _ := strings.Cut(comment, "/"); forge.CommentKind(kind) {
	case forge.Note, forge.Line: // which are comments of one kind there
		return d, below(forge.RepoOf(k), "issues", "comments", id, "reactions"), nil
	}
	return d, below(forge.RepoOf(k), "issues", n, "reactions"), nil
}

// React implements forge.Reactions. Which signs there are a server's settings say; those
// that are used are among them where nobody changed that.
func (f *Forge) React(ctx context.Context, k task.Key, comment, sign string) error {
	d, at, err := f.reactionsAt(k, comment, "rest.do_react")
	if err == nil {
		_, err = d.Send(ctx, http.MethodPost, at, map[string]string{"content": sign}, nil)
	}
	return err
}

// Reactions implements forge.Reactions. The list of a comment comes whole.
func (f *Forge) Reactions(ctx context.Context, k task.Key, comment string) ([]forge.Reaction, error) {
	d, at, err := f.reactionsAt(k, comment, "rest.do_reactions")
	if err != nil {
		return nil, err
	}
	var list []*sdk.Reaction
	if comment == "" {
		list, err = pages[sdk.Reaction](ctx, d, at, nil)
	} else {
		_, err = d.Get(ctx, at, nil, &list)
	}
	var all []forge.Reaction
	for _, g := range list {
		if g == nil || g.Reaction != forge.Seen && g.Reaction != forge.Yes && g.Reaction != forge.No {
			continue
		}
		all = append(all, forge.Reaction{By: person(g.User), Sign: g.Reaction, At: g.Created.UTC()})
	}
	slices.SortStableFunc(all, func(a, b forge.Reaction) int { return a.At.Compare(b.At) })
	return all, err
}
