package gitlab

import (
	"context"
	"net/http"
	"slices"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/task"
)

var _ forge.Threads = (*Forge)(nil)

// Reply implements forge.Threads.
func (f *Forge) Reply(ctx context.Context, k task.Key, remark, marker, body string) (forge.Comment, error) {
	l, err := f.talk(ctx, k, "gitlab.do_post")
	if err != nil {
		return forge.Comment{}, err
	}
	return f.posts.Reply(ctx, &l.d.Call, f, k, remark, marker, func(to forge.Comment) (forge.Comment, error) {
		thread := ""
		err := rest.Forward(ctx, l.d, l.at+"/discussions", nil, func(page []*gitlab.Discussion) bool {
			for _, t := range page {
				if slices.ContainsFunc(t.Notes, func(n *gitlab.Note) bool { return n != nil && rest.CommentID(forge.Line, n.ID) == to.ID }) {
					thread = t.ID
				}
			}
			return thread == ""
		})
		if err != nil {
			return forge.Comment{}, err
		}
		var n gitlab.Note
		text := map[string]string{"body": rest.Mark(harmless(body), marker)}
		err = l.d.send(ctx, http.MethodPost, l.at+"/"+path("discussions", thread, "notes"), text, &n)
		c := l.comment(&n)
		c.ReplyTo = to.ID
		return c, err
	})
}
