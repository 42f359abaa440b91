package gitlab

import (
	"context"
	"net/http"
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
	d, at, err := f.on(k, "gitlab.do_post")
	if err != nil {
		return forge.Comment{}, err
	}
	self, err := f.Self(ctx)
	if err != nil {
		return forge.Comment{}, err
	}
	n := &notes{talk{f: f, d: d, self: self, at: at, kind: k.Type, iid: k.ID}}
	return f.posts.Post(ctx, &d.Call, k, n, marker, harmless(body))
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

// notes implements rest.Notes on one item.
type notes struct{ talk }

func (c *notes) Changed(ctx context.Context, from time.Time) (all []forge.Comment, err error) {
	var list []*gitlab.Note
	if from.IsZero() {
		_, err = backward(ctx, c.d, c.at+"/notes", query("sort", "asc", "order_by", "created_at", "activity_filter", "only_comments"), func(page []*gitlab.Note) bool {
			list = append(list, page...)
			return true
		})
	} else {
		list, err = c.d.changed(ctx, c.at, from)
	}
	for _, n := range list {
		if !n.System {
			all = append(all, c.comment(n))
		}
	}
	return all, err
}

func (c *notes) note(id string) string {
	return c.at + "/" + path("notes", strings.TrimPrefix(id, string(forge.Note)+"/"))
}

func (c *notes) Note(ctx context.Context, id string) (forge.Comment, error) {
	var n gitlab.Note
	_, err := c.d.get(ctx, c.note(id), nil, &n)
	return c.comment(&n), err
}

func (c *notes) Add(ctx context.Context, text string) (forge.Comment, error) {
	var n gitlab.Note
	err := c.d.send(ctx, http.MethodPost, c.at+"/notes", map[string]string{"body": text}, &n)
	return c.comment(&n), err
}

func (c *notes) Edit(ctx context.Context, id, text string) (forge.Comment, error) {
	var n gitlab.Note
	err := c.d.send(ctx, http.MethodPut, c.note(id), map[string]string{"body": text}, &n)
	return c.comment(&n), err
}

func (c *notes) Delete(ctx context.Context, id string) error {
	return c.d.send(ctx, http.MethodDelete, c.note(id), nil, nil)
}

var _ rest.Notes = (*notes)(nil)
