package githubtest

import (
	"slices"
	"time"
)

// reaction is a sign on an issue or a comment.
type reaction struct {
	id      int64
	by      *account
	content string
	created time.Time
}

func (c *call) listReactions(all []*reaction) *answer {
	return c.list(len(all), func(n int) object { return c.s.reaction(all[n]) })
}

// react puts a sign on something, once for each account.
func (c *call) react(all *[]*reaction) *answer {
	var in struct {
		Content string `json:"content"`
	}
	if a := c.read(&in); a != nil {
		return a
	}
	if !slices.Contains([]string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}, in.Content) {
		return invalid("Reaction", "content", "invalid", "content is not a reaction")
	}
	r, is := c.s.reactTo(all, c.me(), in.Content)
	if is {
		return ok(c.s.reaction(r))
	}
	return created(c.s.reaction(r))
}

func (s *Server) reactTo(all *[]*reaction, by *account, content string) (r *reaction, is bool) {
	for _, r := range *all {
		if r.by == by && r.content == content {
			return r, true
		}
	}
	r = &reaction{s.id(), by, content, s.now()}
	*all = append(*all, r)
	return r, false
}

func (s *Server) reaction(r *reaction) object {
	return object{"id": r.id, "node_id": nodeID("Reaction", r.id), "user": s.userOrNull(r.by), "content": r.content, "created_at": stamp(r.created)}
}

// React puts a sign on a comment: "+1", "-1", "eyes" and so on.
func (r *Repo) React(comment int64, by, content string) {
	r.s.t.Helper()
	defer r.lock()()
	m := r.r.comment(comment)
	if m == nil {
		r.s.t.Fatalf("githubtest: no comment %d in %s", comment, r.r.full())
		return
	}
	r.s.reactTo(&m.signs, r.s.must(by), content)
}

// Signs are those on an issue, and on its comments by their ids: "login sign".
func (r *Repo) Signs(n int) (all []string, comments map[int64][]string) {
	r.s.t.Helper()
	defer r.lock()()
	named := func(list []*reaction) (s []string) {
		for _, one := range list {
			s = append(s, one.by.login+" "+one.content)
		}
		return s
	}
	i := r.mustIssue(n)
	comments = map[int64][]string{}
	for _, m := range i.comments {
		comments[m.id] = named(m.signs)
	}
	return named(i.signs), comments
}
