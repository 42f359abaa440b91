package gitea

import (
	"context"
	"net/http"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
)

// notes are those on one item. The list comes whole.
func (d *call) notes(r forge.Repo, n int) *rest.NotesOf[sdk.Comment] {
	at := below(r, "issues", n, "comments")
	return &rest.NotesOf[sdk.Comment]{On: d, List: at, Each: below(r, "issues", "comments"), Method: http.MethodPatch, Comment: d.note,
		Read: func(ctx context.Context, since time.Time) (list []*sdk.Comment, err error) {
			if _, err := d.Get(ctx, at, rest.From(since), &list); err != nil {
				return nil, d.absent(ctx, r, n, err)
			}
			return rest.Present(list), nil
		}}
}
