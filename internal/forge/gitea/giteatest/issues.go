package giteatest

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"
)

// json is an issue as its page has it.
func (i *issue) json() any {
	return struct {
		sdk.Issue
		Edits int `json:"content_version"`
	}{i.Issue, i.edits}
}

func listIssues(c *call) (int, any) {
	q := c.Request.URL.Query()
	var all []any
	var by *user
	if name := q.Get("assigned_by"); name != "" {
		if by = c.user(name); by == nil {
			return notFound()
		}
	}
	var names []string // those that are no labels of the repository count for nothing
	for n := range strings.SplitSeq(q.Get("labels"), ",") {
		if slices.ContainsFunc(c.repo.labels, func(l *sdk.Label) bool { return l.Name == n }) {
			names = append(names, n)
		}
	}
	for _, i := range slices.Backward(c.repo.issues) {
		state, kind := q.Get("state"), q.Get("type")
		if state == "" {
			state = "open"
		}
		bears := func(name string) bool {
			return slices.ContainsFunc(i.Labels, func(l *sdk.Label) bool { return l.Name == name })
		}
		switch {
		case state != "all" && state != string(i.State), kind == "pulls" && i.pull == nil, kind == "issues" && i.pull != nil, i.Updated.Before(c.since()),
			by != nil && !slices.Contains(i.Assignees, &by.User), slices.ContainsFunc(names, func(n string) bool { return !bears(n) }):
			continue
		}
		all = append(all, i.json())
	}
	return 200, page(c, all)
}

// open adds an issue or a pull request.
func (c *call) open(title, body string, p *pull) *issue {
	i := &issue{repo: c.repo, pull: p}
	i.ID, i.Index, i.Title, i.Body, i.Poster, i.State = c.id(), int64(len(c.repo.issues)+1), title, body, &c.doer.User, sdk.StateOpen
	i.Created, i.Updated = c.second(), c.second()
	i.HTMLURL = c.Server.URL + "/" + c.repo.FullName + "/issues/" + strconv.FormatInt(i.Index, 10)
	i.URL = i.HTMLURL
	i.Repository = &sdk.RepositoryMeta{ID: c.repo.ID, Name: c.repo.Name, Owner: c.repo.owner.UserName, FullName: c.repo.FullName}
	if p != nil {
		i.PullRequest = &sdk.PullRequestMeta{}
		i.HTMLURL = strings.Replace(i.HTMLURL, "/issues/", "/pulls/", 1)
	}
	c.repo.issues = append(c.repo.issues, i)
	return i
}

func createIssue(c *call) (int, any) {
	var o sdk.CreateIssueOption
	c.into(&o)
	i := c.open(o.Title, o.Body, nil)
	if c.repo.role(c.doer) > 1 {
		c.put(i, o.Labels)
	}
	return 201, i.json()
}

// happened writes the history of an item, whose every entry is a change of it.
func (c *call) happened(i *issue, e event) {
	i.Updated = c.second()
	e.ID, e.User, e.Created, e.Updated = c.id(), &c.doer.User, c.second(), c.second()
	i.events = append(i.events, &e)
}

// put puts labels on by their numbers, each once.
func (c *call) put(i *issue, ids []int64) {
	for _, l := range append(slices.Clone(c.repo.labels), c.labels[c.repo.owner.ID]...) {
		if slices.Contains(ids, l.ID) && !slices.Contains(i.Labels, l) {
			i.Labels = append(i.Labels, l)
			c.happened(i, event{Type: "label", Label: l, Body: "1"})
		}
	}
}

func addLabels(c *call) (int, any) {
	var o sdk.IssueLabelsOption
	c.into(&o)
	c.put(c.issue, o.Labels)
	return 200, c.issue.Labels
}

func removeLabel(c *call) (int, any) {
	for n, l := range c.issue.Labels {
		if l.ID == c.number() {
			c.issue.Labels = slices.Delete(slices.Clone(c.issue.Labels), n, n+1)
			c.happened(c.issue, event{Type: "label", Label: l})
		}
	}
	return 204, nil
}

// editIssue edits issues and pull requests.
func editIssue(c *call) (int, any) {
	i := c.issue
	if i.Poster != &c.doer.User && c.repo.role(c.doer) < 2 {
		return fail(403, "not yours")
	}
	var o struct {
		Title, Body, State *string
		Assignees          []string
	}
	c.into(&o)
	if o.Title != nil && *o.Title != i.Title {
		c.happened(i, event{Type: "change_title", OldTitle: i.Title, NewTitle: *o.Title})
		i.Title = *o.Title
	}
	if o.Body != nil && *o.Body != i.Body {
		i.Body = *o.Body
		i.edits++
	}
	if o.State != nil {
		i.State = sdk.StateType(*o.State)
	}
	for _, name := range o.Assignees {
		u := c.user(name)
		i.Assignees = append(i.Assignees, &u.User)
		c.happened(i, event{Type: "assignees", Assignee: &u.User})
	}
	i.Updated = c.second()
	if i.pull != nil && strings.Contains(c.Pattern, "/pulls/") {
		return 201, c.pull(i)
	}
	return 201, i.json()
}

// timeline leaves remarks on lines out of a page that was made with them, and says how long
// the page is then, as the real one.
func timeline(c *call) (int, any) {
	all := slices.Clone(c.issue.events)
	add := func(kind string, id int64, by *sdk.User, body string, created, updated time.Time) {
		all = append(all, &event{ID: id, Type: kind, User: by, Body: body, Created: created, Updated: updated})
	}
	for _, n := range c.issue.comments {
		add("comment", n.ID, n.Poster, n.Body, n.Created, n.Updated)
	}
	if c.issue.pull != nil {
		for _, r := range c.issue.pull.reviews {
			for _, l := range r.lines {
				add("code", l.ID, l.Reviewer, l.Body, l.Created, l.Updated)
			}
		}
	}
	slices.SortFunc(all, func(a, b *event) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	all = page(c, slices.DeleteFunc(all, func(e *event) bool { return e.Updated.Before(c.since()) }))
	all = slices.DeleteFunc(slices.Clone(all), func(e *event) bool { return e.Type == "code" })
	c.header.Set("X-Total-Count", strconv.Itoa(len(all)))
	return 200, all
}

// changed lists notes in the order that they were written in.
func (c *call) changed(of ...*issue) []*sdk.Comment {
	var all []*sdk.Comment
	for _, i := range of {
		for _, n := range i.comments {
			if !n.Updated.Before(c.since()) {
				all = append(all, n)
			}
		}
	}
	slices.SortFunc(all, func(a, b *sdk.Comment) int { return int(a.ID - b.ID) })
	return all
}

// comment finds the note of the path; n is less than 0 where there is none.
func (c *call) comment() (i *issue, n int) {
	for _, i := range c.repo.issues {
		for n, x := range i.comments {
			if x.ID == c.number() {
				return i, n
			}
		}
	}
	return nil, -1
}

func createComment(c *call) (int, any) {
	var o sdk.CreateIssueCommentOption
	c.into(&o)
	n := &sdk.Comment{ID: c.id(), Body: o.Body, Poster: &c.doer.User, Created: c.second(), Updated: c.second()}
	if c.issue.pull != nil {
		n.PRURL = c.issue.HTMLURL
	} else {
		n.IssueURL = c.issue.HTMLURL
	}
	n.HTMLURL = c.issue.HTMLURL + "#issuecomment-" + strconv.FormatInt(n.ID, 10)
	c.issue.comments = append(c.issue.comments, n)
	c.issue.Updated = c.second()
	return 201, n
}

func editComment(c *call) (int, any) {
	i, n := c.comment()
	switch {
	case n < 0:
		return notFound()
	case i.comments[n].Poster != &c.doer.User && c.repo.role(c.doer) < 3:
		return fail(403, "not yours")
	}
	var o sdk.EditIssueCommentOption
	c.into(&o)
	i.comments[n].Body, i.comments[n].Updated = o.Body, c.second()
	return 200, i.comments[n]
}

var draftTitle = regexp.MustCompile(`(?i)^(WIP:|\[WIP\])`)

// pull is a pull request as its page has it.
func (c *call) pull(i *issue) *sdk.PullRequest {
	p := i.pull
	if sha, there := c.repo.git(c, "", "rev-parse", "-q", "--verify", "refs/heads/"+p.head); there && i.State == sdk.StateOpen {
		p.commit = sha
	}
	base, _ := c.repo.git(c, "", "rev-parse", "-q", "--verify", "refs/heads/"+p.base)
	out := &sdk.PullRequest{
		ID: i.ID, Index: i.Index, URL: i.HTMLURL, HTMLURL: i.HTMLURL, Poster: i.Poster, Title: i.Title, Body: i.Body, Labels: i.Labels, Assignees: i.Assignees,
		State: i.State, Draft: draftTitle.MatchString(i.Title), IsLocked: i.IsLocked, Created: &i.Created, Updated: &i.Updated,
		Head: &sdk.PRBranchInfo{Name: p.head, Ref: p.head, Sha: p.commit, RepoID: c.repo.ID, Repository: &c.repo.Repository},
		Base: &sdk.PRBranchInfo{Name: p.base, Ref: p.base, Sha: base, RepoID: c.repo.ID, Repository: &c.repo.Repository},
	}
	for _, u := range p.reviewers {
		out.RequestedReviewers = append(out.RequestedReviewers, &u.User)
	}
	return out
}

func listPulls(c *call) (int, any) {
	q := c.Request.URL.Query()
	if q.Get("poster") != "" && c.user(q.Get("poster")) == nil {
		return fail(400, "user does not exist")
	}
	var all []*sdk.PullRequest
	for _, i := range slices.Backward(c.repo.issues) {
		if i.pull != nil && (q.Get("poster") == "" || i.Poster.UserName == q.Get("poster")) && (q.Get("state") == "all" || i.State == sdk.StateOpen) {
			all = append(all, c.pull(i))
		}
	}
	return 200, page(c, all)
}

func createPull(c *call) (int, any) {
	var o sdk.CreatePullRequestOption
	c.into(&o)
	for _, b := range []string{o.Head, o.Base} {
		if _, there := c.repo.git(c, "", "rev-parse", "-q", "--verify", "refs/heads/"+b); !there {
			return notFound()
		}
	}
	for _, i := range c.repo.issues {
		if i.pull != nil && i.State == sdk.StateOpen && i.pull.head == o.Head && i.pull.base == o.Base {
			return fail(409, "pull request already exists for these targets")
		}
	}
	return 201, c.pull(c.open(o.Title, o.Body, &pull{head: o.Head, base: o.Base}))
}

func requestReviewers(c *call) (int, any) {
	var o sdk.PullReviewRequestOptions
	c.into(&o)
	var all []*user
	for _, name := range o.Reviewers {
		u := c.user(name)
		switch {
		case u == nil:
			return fail(404, "user does not exist")
		case c.repo.role(u) == 0:
			return fail(422, "Reviewer can't read")
		case &u.User == c.issue.Poster:
			return fail(422, "poster of pr can't be reviewer")
		}
		all = append(all, u)
	}
	for _, u := range all {
		if !slices.Contains(c.issue.pull.reviewers, u) {
			c.issue.pull.reviewers = append(c.issue.pull.reviewers, u)
		}
	}
	return 201, []*sdk.PullReview{}
}

func createReview(c *call) (int, any) {
	var o sdk.CreatePullReviewOptions
	c.into(&o)
	r := &review{PullReview: sdk.PullReview{
		ID: c.id(), Reviewer: &c.doer.User, State: o.State, Body: o.Body, Submitted: c.second(), HTMLURL: c.issue.HTMLURL, HTMLPullURL: c.issue.HTMLURL,
	}}
	for _, old := range c.issue.pull.reviews { // a draft becomes part of it
		if old.State == sdk.ReviewStatePending && old.Reviewer == r.Reviewer {
			r.lines = old.lines
		}
	}
	for _, l := range o.Comments {
		text, _ := c.repo.git(c, "", "show", "refs/heads/"+c.issue.pull.head+":"+l.Path)
		if l.NewLineNum > int64(strings.Count(text, "\n")+1) { // the real one's blame fails
			r.State, r.Body = sdk.ReviewStatePending, ""
			c.issue.pull.reviews = append(c.issue.pull.reviews, r)
			return fail(500, "")
		}
		r.lines = append(r.lines, &sdk.PullReviewComment{
			ID: c.id(), Body: l.Body, Reviewer: &c.doer.User, ReviewID: r.ID, Created: c.second(), Updated: c.second(), Path: l.Path,
			LineNum: uint64(max(l.NewLineNum, 0)), OldLineNum: uint64(max(l.OldLineNum, 0)), HTMLURL: c.issue.HTMLURL, HTMLPullURL: c.issue.HTMLURL,
		})
	}
	c.issue.pull.reviews = slices.DeleteFunc(c.issue.pull.reviews, func(old *review) bool { return old.State == sdk.ReviewStatePending && old.Reviewer == r.Reviewer })
	r.CodeCommentsCount = len(r.lines)
	for _, old := range c.issue.pull.reviews {
		if old.Reviewer == r.Reviewer && old.State != sdk.ReviewStateComment && r.State != sdk.ReviewStateComment {
			old.Dismissed = true
		}
	}
	c.issue.pull.reviews = append(c.issue.pull.reviews, r)
	c.issue.Updated = c.second()
	return 200, &r.PullReview
}

// reply answers a remark in its review, as servers do from 1.27 on.
func reply(c *call) (int, any) {
	var o struct {
		Body string `json:"body"`
	}
	c.into(&o)
	for _, r := range c.issue.pull.reviews {
		for _, l := range r.lines {
			if l.ID == c.number() {
				n := *l
				n.ID, n.Body, n.Reviewer, n.Created, n.Updated = c.id(), o.Body, &c.doer.User, c.second(), c.second()
				r.lines = append(r.lines, &n)
				c.issue.Updated = c.second()
				return 201, &n
			}
		}
	}
	return notFound()
}
