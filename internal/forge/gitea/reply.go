package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/task"
)

var _ forge.Threads = (*Forge)(nil)

// Reply implements forge.Threads. Gitea takes answers from 1.27 on, Forgejo none: there they
// are notes that name the remark.
func (f *Forge) Reply(ctx context.Context, k task.Key, remark, marker, body string) (forge.Comment, error) {
	d, n, err := f.talk(ctx, k, "rest.do_post")
	if err != nil {
		return forge.Comment{}, err
	}
	return f.posts.Reply(ctx, &d.Call, f, k, remark, marker, func(to forge.Comment) (forge.Comment, error) {
		at := below(forge.RepoOf(k), "pulls", n, "comments", strings.TrimPrefix(to.ID, string(forge.Line)+"/"), "replies")
		var g sdk.PullReviewComment
		_, err := d.Send(ctx, http.MethodPost, at, map[string]string{"body": rest.Mark(body, marker)}, &g)
		if e := (*forge.Error)(nil); errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
			return f.Post(ctx, k, marker, fmt.Sprintf("[%s](%s): %s", to.Path, to.URL, body))
		}
		c := d.remarks([]*sdk.PullReviewComment{&g})[0]
		c.ReplyTo = to.ID
		return c, err
	})
}
