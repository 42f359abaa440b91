package githubtest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

var pullRoutes = []route{
	{"GET /repos/{owner}/{repo}/pulls", "anyone", (*call).listPulls},
	{"POST /repos/{owner}/{repo}/pulls", "user", (*call).createPull},
	{"GET /repos/{owner}/{repo}/pulls/{pull_number}", "anyone", withPull(func(c *call, i *issue) *answer {
		return ok(c.s.pullAlone(i, true))
	})},
	{"PATCH /repos/{owner}/{repo}/pulls/{pull_number}", "user", withPull((*call).editPull)},
	{"POST /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers", "user", withPull((*call).requestReviewers)},
}

func withPull(do func(*call, *issue) *answer) func(*call) *answer {
	return func(c *call) *answer {
		n, _ := strconv.Atoi(c.r.PathValue("pull_number"))
		i := c.repo.issue(n)
		if i == nil || i.pull == nil || i.deleted {
			return notFound()
		}
		return do(c, i)
	}
}

func (c *call) listPulls() *answer {
	q := c.r.URL.Query()
	state, head, base := cmp.Or(q.Get("state"), "open"), q.Get("head"), q.Get("base")
	owner, branch, qualified := strings.Cut(head, ":")
	var all []*issue
	for _, i := range c.repo.issues {
		p := i.pull
		if p == nil || i.deleted || state != "all" && i.state() != state || base != "" && p.base != base {
			continue
		}
		// A head without an owner filters nothing, as on the real server.
		if qualified && (p.head != branch || !strings.EqualFold(p.headUser.login, owner)) {
			continue
		}
		all = append(all, i)
	}
	direction := "desc"
	if s := q.Get("sort"); s != "" && s != "created" {
		direction = "asc"
	}
	sortIssues(all, q.Get("sort"), cmp.Or(q.Get("direction"), direction))
	return c.list(len(all), func(n int) object { return c.s.pull(all[n]) })
}

// head finds the repository and branch that a pull request is from: "branch" or "owner:branch".
func (r *repo) head(name string) (from *repo, branch string) {
	owner, branch, qualified := strings.Cut(name, ":")
	if !qualified {
		return r, name
	}
	if strings.EqualFold(owner, r.owner.login) {
		return r, branch
	}
	for _, f := range r.s.repos {
		if f.fork == r && strings.EqualFold(f.owner.login, owner) {
			return f, branch
		}
	}
	return nil, branch
}

func (c *call) createPull() *answer {
	var in struct {
		Title, Head, Base string
		Body              string
		Draft             bool
		Editable          *bool `json:"maintainer_can_modify"`
	}
	if a := c.read(&in); a != nil {
		return a
	}
	if a := texts("PullRequest", &in.Title, &in.Body); a != nil {
		return a
	}
	r := c.repo
	from, branch := r.head(in.Head)
	if from == nil || c.who.role(from) < roleRead {
		return invalid("PullRequest", "head", "invalid", "")
	}
	r.sync()
	from.sync()
	switch {
	case c.who.role(from) < roleWrite && c.role < roleWrite:
		return forbidden()
	case from.refs["refs/heads/"+branch] == "":
		return invalid("PullRequest", "head", "invalid", "")
	case r.refs["refs/heads/"+in.Base] == "":
		return invalid("PullRequest", "base", "invalid", "")
	}
	for _, i := range r.issues {
		if p := i.pull; p != nil && !i.closed && p.headRepo == from && p.head == branch && p.base == in.Base {
			return invalid("PullRequest", "", "custom", fmt.Sprintf("A pull request already exists for %s:%s.", from.owner.login, branch))
		}
	}
	if r.bring(from, branch); len(r.commits(r.refs["refs/heads/"+in.Base], from.refs["refs/heads/"+branch])) == 0 {
		return invalid("PullRequest", "", "custom", fmt.Sprintf("No commits between %s and %s", in.Base, branch))
	}
	if in.Draft && r.o.NoDrafts {
		return failed(http.StatusUnprocessableEntity, "Draft pull requests are not supported in this repository.")
	}
	i := r.propose(c.me(), from, branch, in.Base, in.Title, in.Body)
	i.pull.draft = in.Draft
	i.pull.editable = from != r && (in.Editable == nil || *in.Editable)
	return created(c.s.pullAlone(i, false))
}

// propose opens a pull request; its branches exist.
func (r *repo) propose(by *account, from *repo, branch, base, title, body string) *issue {
	i := r.open(by, title, body)
	i.pull = &pull{base: base, head: branch, headRepo: from, headUser: from.owner, unknown: r.s.o.MergeableLater,
		baseSHA: r.refs["refs/heads/"+base], headSHA: from.refs["refs/heads/"+branch]}
	r.keep(i)
	i.changed("opened", by, nil)
	return i
}

func (c *call) editPull(i *issue) *answer {
	var in struct {
		Title, Body, State, Base *string
		Editable                 *bool `json:"maintainer_can_modify"`
	}
	if a := c.read(&in); a != nil {
		return a
	}
	if c.role < roleWrite && i.author != c.me() {
		return forbidden()
	}
	if a := texts("PullRequest", in.Title, in.Body); a != nil {
		return a
	}
	p := i.pull
	if in.State != nil && *in.State == "open" && !p.merged.IsZero() {
		return invalid("PullRequest", "state", "invalid", "state cannot be changed. The pull request is already merged.")
	}
	if in.State != nil && *in.State == "open" && i.closed && (p.headRepo == nil || p.headRepo.refs["refs/heads/"+p.head] == "") {
		return invalid("PullRequest", "state", "invalid", fmt.Sprintf("state cannot be changed. The %s branch has been deleted.", p.head))
	}
	if in.Base != nil && *in.Base != p.base {
		sha := c.repo.refs["refs/heads/"+*in.Base]
		if sha == "" {
			return invalid("PullRequest", "base", "invalid", "")
		}
		p.base, p.baseSHA, p.unknown = *in.Base, sha, c.s.o.MergeableLater
		i.touch()
	}
	if in.Editable != nil && p.headRepo != c.repo {
		p.editable = *in.Editable
	}
	if in.Title != nil {
		i.setTitle(*in.Title, c.me())
	}
	if in.Body != nil {
		i.setBody(*in.Body, c.me())
	}
	switch {
	case in.State == nil:
	case *in.State == "closed":
		i.close(c.me(), "", "")
	case *in.State == "open":
		i.reopen(c.me())
	}
	return ok(c.s.pullAlone(i, false))
}

func (c *call) requestReviewers(i *issue) *answer {
	var in struct{ Reviewers []string }
	if a := c.read(&in); a != nil {
		return a
	}
	if c.role < roleTriage && i.author != c.me() {
		return forbidden()
	}
	var who []*account
	for _, login := range in.Reviewers {
		a := c.s.account(login)
		switch {
		case a == i.author:
			return failed(http.StatusUnprocessableEntity, "Review cannot be requested from pull request author.")
		case a == nil || !c.repo.collaborator(a):
			return failed(http.StatusUnprocessableEntity, fmt.Sprintf(
				"Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the %s repository.", c.repo.full()))
		}
		who = append(who, a)
	}
	for _, a := range who {
		if !slices.Contains(i.pull.reviewers, a) {
			i.pull.reviewers = append(i.pull.reviewers, a)
			i.happened("review_requested", c.me()).assignee = a
			i.touch()
		}
	}
	return created(c.s.pull(i))
}
