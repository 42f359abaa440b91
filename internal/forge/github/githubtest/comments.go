package githubtest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

var commentRoutes = []route{
	{"GET /repos/{owner}/{repo}/issues/{issue_number}/comments", "anyone", withIssue((*call).listComments)},
	{"POST /repos/{owner}/{repo}/issues/{issue_number}/comments", "user", withIssue((*call).createComment)},
	{"GET /repos/{owner}/{repo}/issues/comments", "anyone", (*call).listAllComments},
	{"GET /repos/{owner}/{repo}/issues/comments/{comment_id}", "anyone", withComment(func(c *call, m *comment) *answer {
		return ok(c.s.comment(m))
	})},
	{"PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}", "user", withComment((*call).editComment)},
	{"DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}", "user", withComment((*call).deleteComment)},
	{"GET /repos/{owner}/{repo}/issues/comments/{comment_id}/reactions", "anyone", withComment(func(c *call, m *comment) *answer { return c.listReactions(m.signs) })},
	{"POST /repos/{owner}/{repo}/issues/comments/{comment_id}/reactions", "user", withComment(func(c *call, m *comment) *answer { return c.react(&m.signs) })},
	{"GET /repos/{owner}/{repo}/issues/{issue_number}/reactions", "anyone", withIssue(func(c *call, i *issue) *answer { return c.listReactions(i.signs) })},
	{"POST /repos/{owner}/{repo}/issues/{issue_number}/reactions", "user", withIssue(func(c *call, i *issue) *answer { return c.react(&i.signs) })},
}

func (r *repo) comment(id int64) *comment {
	for _, i := range r.issues {
		for _, m := range i.comments {
			if m.id == id && !i.deleted {
				return m
			}
		}
	}
	return nil
}

func withComment(do func(*call, *comment) *answer) func(*call) *answer {
	return func(c *call) *answer {
		id, _ := strconv.ParseInt(c.r.PathValue("comment_id"), 10, 64)
		m := c.repo.comment(id)
		if m == nil {
			return notFound()
		}
		return do(c, m)
	}
}

// listComments is always the oldest first.
func (c *call) listComments(i *issue) *answer {
	since, a := c.since()
	if a != nil {
		return a
	}
	all := slices.DeleteFunc(slices.Clone(i.comments), func(m *comment) bool { return m.updated.Before(since) })
	return c.list(len(all), func(n int) object { return c.s.comment(all[n]) })
}

func (c *call) listAllComments() *answer {
	since, a := c.since()
	if a != nil {
		return a
	}
	var all []*comment
	for _, i := range c.repo.issues {
		for _, m := range i.comments {
			if !i.deleted && !m.updated.Before(since) {
				all = append(all, m)
			}
		}
	}
	byDate(c, all, func(m *comment) dated { return dated{m.id, m.created, m.updated} })
	return c.list(len(all), func(n int) object { return c.s.comment(all[n]) })
}

// dated is what comments are sorted by.
type dated struct {
	id               int64
	created, updated time.Time
}

// byDate sorts a list as the query says: by number where it says nothing, and
// the direction counts only beside a sort.
func byDate[T any](c *call, all []T, of func(T) dated) {
	q := c.r.URL.Query()
	by := q.Get("sort")
	slices.SortStableFunc(all, func(x, y T) int {
		a, b, d := of(x), of(y), 0
		switch by {
		case "created":
			d = a.created.Compare(b.created)
		case "updated":
			d = a.updated.Compare(b.updated)
		}
		d = cmp.Or(d, cmp.Compare(a.id, b.id))
		if by != "" && q.Get("direction") != "asc" {
			return -d
		}
		return d
	})
}

// readText is the body of a comment.
func (c *call) readText(resource string) (string, *answer) {
	var in struct{ Body string }
	if a := c.read(&in); a != nil {
		return "", a
	}
	switch {
	case strings.TrimSpace(in.Body) == "":
		return "", invalid(resource, "body", "missing_field", "Body can't be blank")
	case utf8.RuneCountInString(in.Body) > maxText:
		return "", invalid(resource, "data", "unprocessable", "Body is too long (maximum is 65536 characters)")
	}
	return in.Body, nil
}

func (c *call) createComment(i *issue) *answer {
	body, a := c.readText("IssueComment")
	if a != nil {
		return a
	}
	if i.locked && c.role < roleWrite {
		return failed(http.StatusForbidden, "Unable to create comment because issue is locked.")
	}
	return created(c.s.comment(i.comment(c.me(), body)))
}

func (c *call) editComment(m *comment) *answer {
	body, a := c.readText("IssueComment")
	if a != nil {
		return a
	}
	if m.author != c.me() && c.role < roleWrite {
		return forbidden()
	}
	m.edit(body)
	return ok(c.s.comment(m))
}

// edit leaves the date of the issue alone: who wants to know of edits has to
// ask for comments.
func (m *comment) edit(body string) {
	if body != m.body {
		was := m.body
		m.body, m.updated = body, m.issue.repo.s.now()
		m.told("edited", m.author, object{"changes": object{"body": object{"from": was}}})
	}
}

func (c *call) deleteComment(m *comment) *answer {
	if m.author != c.me() && c.role < roleWrite {
		return forbidden()
	}
	m.remove()
	return &answer{status: http.StatusNoContent}
}

func (m *comment) remove() {
	i := m.issue
	i.comments = slices.DeleteFunc(i.comments, func(o *comment) bool { return o == m })
	i.touch()
}
