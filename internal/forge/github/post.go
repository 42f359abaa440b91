package github

import (
	"context"
	"net/http"
	"time"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/task"
)

// Post implements forge.Tracker.
func (f *Forge) Post(ctx context.Context, k task.Key, marker, body string) (forge.Comment, error) {
	d, n, err := f.talk(ctx, k, "rest.do_post")
	if err != nil {
		return forge.Comment{}, err
	}
	r := forge.RepoOf(k)
	at := below(r, "issues", n, "comments")
	return f.posts.Post(ctx, &d.Call, k, &rest.NotesOf[github.IssueComment]{On: d, List: at, Each: below(r, "issues", "comments"), Method: http.MethodPatch, Comment: d.note,
		Read: func(ctx context.Context, since time.Time) (all []*github.IssueComment, err error) {
			_, err = rest.Backward(ctx, d, at, rest.From(since), func(page []*github.IssueComment) bool {
				all = append(all, page...)
				return true
			})
			return all, err
		}}, marker, body)
}
