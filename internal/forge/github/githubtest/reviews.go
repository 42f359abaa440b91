package githubtest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

var reviewRoutes = []route{
	{"GET /repos/{owner}/{repo}/pulls/{pull_number}/reviews", "anyone", withPull(func(c *call, i *issue) *answer {
		return c.list(len(i.pull.reviews), func(n int) object { return c.s.review(i, i.pull.reviews[n]) })
	})},
	{"POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews", "user", withPull((*call).createReview)},
	{"GET /repos/{owner}/{repo}/pulls/{pull_number}/comments", "anyone", withPull(func(c *call, i *issue) *answer {
		return c.listLines(i.pull.lines)
	})},
	{"POST /repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies", "user", withPull((*call).reply)},
	{"GET /repos/{owner}/{repo}/pulls/comments", "anyone", func(c *call) *answer {
		var all []*lineComment
		for _, i := range c.repo.issues {
			if i.pull != nil && !i.deleted {
				all = append(all, i.pull.lines...)
			}
		}
		return c.listLines(all)
	}},
}

func (c *call) listLines(of []*lineComment) *answer {
	since, a := c.since()
	if a != nil {
		return a
	}
	all := slices.DeleteFunc(slices.Clone(of), func(l *lineComment) bool { return l.updated.Before(since) })
	byDate(c, all, func(l *lineComment) dated { return dated{l.id, l.created, l.updated} })
	return c.list(len(all), func(n int) object { return c.s.line(all[n]) })
}

// reply answers a remark that began its thread; the answer is a review of its own.
func (c *call) reply(i *issue) *answer {
	body, a := c.readText("PullRequestReviewComment")
	if a != nil {
		return a
	}
	for _, l := range i.pull.lines {
		if strconv.FormatInt(l.id, 10) == c.r.PathValue("comment_id") && l.replyTo == 0 {
			text := Line{Path: l.path, Line: l.line, Body: body, ReplyTo: l.id}
			return created(c.s.line(i.line(i.review(c.me(), "COMMENTED", "", l.commit), c.me(), text)))
		}
	}
	return failed(http.StatusNotFound, "Not Found")
}

// The verdicts as they are asked for and as they are told.
var verdicts = map[string]string{"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}

func (c *call) createReview(i *issue) *answer {
	var in struct {
		Body, Event string
		Commit      string `json:"commit_id"`
		Comments    []struct {
			Path, Body string
			Line       int
			Start      int `json:"start_line"`
		}
	}
	if a := c.read(&in); a != nil {
		return a
	}
	refuse := func(why string) *answer {
		a := failed(http.StatusUnprocessableEntity, "Unprocessable Entity")
		a.body.(object)["errors"] = []any{why}
		return a
	}
	switch {
	case in.Event == "":
		return refuse("reviews that are pending are not part of this server")
	case in.Event != "COMMENT" && i.author == c.me():
		return refuse("Can not " + strings.ToLower(strings.ReplaceAll(in.Event, "_", " ")) + " your own pull request")
	case in.Event != "APPROVE" && strings.TrimSpace(in.Body) == "" && len(in.Comments) == 0:
		return refuse("Body can't be blank")
	}
	for _, l := range in.Comments {
		text, err := i.repo.gitOut("show", cmp.Or(in.Commit, i.pull.headSHA)+":"+l.Path)
		if lines := strings.Count(text, "\n") + 1; err != nil || l.Line < 1 || l.Line > lines || l.Start != 0 && l.Start >= l.Line {
			return refuse("Pull request review thread line must be part of the diff")
		}
	}
	v := i.review(c.me(), verdicts[in.Event], in.Body, in.Commit)
	for _, l := range in.Comments {
		i.line(v, c.me(), Line{Path: l.Path, Line: l.Line, Body: l.Body})
	}
	return ok(c.s.review(i, v))
}

func (i *issue) review(by *account, state, body, commit string) *review {
	v := &review{id: i.repo.s.id(), author: by, state: state, body: body, commit: cmp.Or(commit, i.pull.headSHA), at: i.repo.s.now()}
	i.pull.reviews = append(i.pull.reviews, v)
	i.pull.reviewers = slices.DeleteFunc(slices.Clone(i.pull.reviewers), func(a *account) bool { return a == by })
	i.touch()
	i.told("pull_request_review", "submitted", by, object{"review": i.repo.s.told(i, v), "pull_request": i.repo.s.pull(i)})
	return v
}

func (i *issue) line(v *review, by *account, l Line) *lineComment {
	now := i.repo.s.now()
	c := &lineComment{id: i.repo.s.id(), issue: i, review: v, author: by, body: l.Body, path: l.Path, line: l.Line,
		commit: v.commit, original: v.commit, replyTo: l.ReplyTo, created: now, updated: now}
	i.pull.lines = append(i.pull.lines, c)
	i.touch()
	i.told("pull_request_review_comment", "created", by, object{"comment": i.repo.s.line(c), "pull_request": i.repo.s.pull(i)})
	return c
}
