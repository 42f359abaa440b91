package gitlab

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/task"
)

// Post implements forge.Tracker.
func (f *Forge) Post(ctx context.Context, k task.Key, marker, body string) (forge.Comment, error) {
	l, err := f.talk(ctx, k, "gitlab.do_post")
	if err != nil {
		return forge.Comment{}, err
	}
	return f.posts.Post(ctx, &l.d.Call, k, l.posted(), marker, harmless(body))
}

var quickAction = lazyregexp.New(`(?m)^/([A-Za-z])`)

// harmless keeps the server from carrying out lines like "/merge" with our rights: it does
// so at the beginning of a line, and what it takes for code is not what Markdown does. A
// space before it changes nothing for readers. Source: GitLab,
// lib/gitlab/quick_actions/extractor.rb.
func harmless(text string) string {
	text = strings.TrimLeft(strings.ReplaceAll(text, "\r", ""), " \t\n")
	if quickAction().MatchString(text) && strings.HasPrefix(text, "/") {
		text = `\` + text // a space at the very beginning may be stripped
	}
	return quickAction().ReplaceAllString(text, " /$1")
}

// posted are the notes of the item as they are posted, without the server's.
func (l *talk) posted() *rest.NotesOf[gitlab.Note] {
	return &rest.NotesOf[gitlab.Note]{On: l.d, List: l.at + "/notes", Each: l.at + "/notes", Method: http.MethodPut, Comment: l.comment,
		Read: func(ctx context.Context, from time.Time) (all []*gitlab.Note, err error) {
			if from.IsZero() {
				_, err = rest.Backward(ctx, l.d, l.at+"/notes", query("sort", "asc", "order_by", "created_at", "activity_filter", "only_comments"), func(page []*gitlab.Note) bool {
					all = append(all, page...)
					return true
				})
			} else {
				all, err = l.d.changed(ctx, l.at, from)
			}
			return slices.DeleteFunc(all, func(n *gitlab.Note) bool { return n.System }), err
		}}
}
