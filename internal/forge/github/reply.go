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

var _ forge.Threads = (*Forge)(nil)

// Reply implements forge.Threads.
func (f *Forge) Reply(ctx context.Context, k task.Key, id, marker, body string) (forge.Comment, error) {
	d, n, err := f.talk(ctx, k, "rest.do_post")
	if err != nil {
		return forge.Comment{}, err
	}
	return f.posts.Reply(ctx, &d.Call, f, k, id, marker, func(to forge.Comment) (forge.Comment, error) {
		text := rest.Mark(body, marker)
		at := below(forge.RepoOf(k), "pulls", n, "comments", strings.TrimPrefix(to.ID, string(forge.Line)+"/"), "replies")
		var g github.PullRequestComment
		_, err := d.Send(ctx, http.MethodPost, at, &github.PullRequestComment{Body: &text}, &g)
		return d.remark(&g), err
	})
}
