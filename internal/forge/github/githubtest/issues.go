package githubtest

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var mentioned = regexp.MustCompile(`(?:^|[\s(\[,:])#(\d{1,9})\b`)

// maxText is how many characters a body may have.
const maxText = 65536

var issueRoutes = []route{
	{"GET /repos/{owner}/{repo}/issues", "anyone", (*call).listIssues},
	{"GET /repos/{owner}/{repo}/issues/{issue_number}", "anyone", withIssue(func(c *call, i *issue) *answer {
		return ok(c.s.issueAlone(i))
	})},
	{"GET /repos/{owner}/{repo}/issues/{issue_number}/labels", "anyone", withIssue((*call).listIssueLabels)},
	{"POST /repos/{owner}/{repo}/issues/{issue_number}/labels", "user", withIssue((*call).addLabels)},
	{"DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}", "user", withIssue((*call).removeLabel)},
	{"GET /repos/{owner}/{repo}/issues/{issue_number}/events", "anyone", withIssue((*call).listEvents)},
	{"GET /repos/{owner}/{repo}/labels", "anyone", func(c *call) *answer {
		return c.list(len(c.repo.labels), func(i int) object { return c.s.label(c.repo, c.repo.labels[i]) })
	}},
	{"POST /repos/{owner}/{repo}/labels", "user", (*call).createLabel},
}

// withIssue looks up the issue of the path.
func withIssue(do func(*call, *issue) *answer) func(*call) *answer {
	return func(c *call) *answer {
		n, _ := strconv.Atoi(c.r.PathValue("issue_number"))
		i := c.repo.issue(n)
		switch {
		case i == nil:
			return notFound()
		case i.deleted:
			return failed(http.StatusGone, "This issue was deleted")
		case c.repo.o.NoIssues && i.pull == nil:
			return failed(http.StatusGone, "Issues has been disabled in this repository.")
		}
		return do(c, i)
	}
}

// issueFilter is what a list of issues leaves out.
func (c *call) issueFilter() (func(*issue) bool, *answer) {
	q := c.r.URL.Query()
	for _, name := range []string{"milestone", "mentioned", "type", "issue_field_values", "creator"} {
		if q.Has(name) && !c.s.o.Loose {
			c.s.t.Errorf("githubtest: lists of issues do not know the parameter %s", name)
		}
	}
	since, a := c.since()
	if a != nil {
		return nil, a
	}
	state := cmp.Or(q.Get("state"), "open")
	assignee := q.Get("assignee")
	if assignee != "" && c.s.account(assignee) == nil {
		return nil, invalid("Issue", "assignee", "invalid", "")
	}
	var labels []string
	if v := q.Get("labels"); v != "" {
		labels = strings.Split(v, ",")
	}
	return func(i *issue) bool {
		if i.deleted || state != "all" && i.state() != state || !since.IsZero() && i.updated.Before(since) || c.repo.o.NoIssues && i.pull == nil {
			return false
		}
		for _, l := range labels {
			if !i.has(l) {
				return false
			}
		}
		return assignee == "" || slices.ContainsFunc(i.assignees, func(a *account) bool { return strings.EqualFold(a.login, assignee) })
	}, nil
}

func (c *call) listIssues() *answer {
	keep, a := c.issueFilter()
	if a != nil {
		return a
	}
	var all []*issue
	for _, i := range c.repo.issues {
		if keep(i) {
			all = append(all, i)
		}
	}
	q := c.r.URL.Query()
	sortIssues(all, q.Get("sort"), cmp.Or(q.Get("direction"), "desc"))
	return c.list(len(all), func(i int) object { return c.s.issue(all[i]) })
}

func sortIssues(all []*issue, by, direction string) {
	slices.SortStableFunc(all, func(a, b *issue) int {
		n := 0
		if by == "updated" {
			n = a.updated.Compare(b.updated)
		}
		return cmp.Or(n, cmp.Compare(a.number, b.number))
	})
	if direction == "desc" {
		slices.Reverse(all)
	}
}

// texts checks a title and a body.
func texts(resource string, title, body *string) *answer {
	switch {
	case title != nil && strings.TrimSpace(*title) == "":
		return invalid(resource, "title", "missing_field", "")
	case title != nil && utf8.RuneCountInString(*title) > 256:
		return invalid(resource, "title", "custom", "title is too long (maximum is 256 characters)")
	case body != nil && utf8.RuneCountInString(*body) > maxText:
		return invalid(resource, "body", "custom", "body is too long (maximum is 65536 characters)")
	}
	return nil
}

func (c *call) listIssueLabels(i *issue) *answer {
	return c.list(len(i.labels), func(n int) object { return c.s.label(c.repo, i.labels[n]) })
}

func (c *call) addLabels(i *issue) *answer {
	if c.role < roleTriage {
		return forbidden()
	}
	var in struct{ Labels []string }
	if a := c.read(&in); a != nil {
		return a
	}
	for _, n := range in.Labels {
		if n == "" || utf8.RuneCountInString(n) > 50 {
			return invalid("Label", "name", "invalid", "")
		}
	}
	for _, n := range in.Labels {
		i.putLabel(n, c.me())
	}
	return ok(c.s.labels(c.repo, i.labels))
}

func (c *call) removeLabel(i *issue) *answer {
	if c.role < roleTriage {
		return forbidden()
	}
	if !i.takeLabel(c.r.PathValue("name"), c.me()) {
		return failed(http.StatusNotFound, "Label does not exist")
	}
	return ok(c.s.labels(c.repo, i.labels))
}

func (c *call) listEvents(i *issue) *answer {
	return c.list(len(i.events), func(n int) object { return c.s.event(i, i.events[n]) })
}

var sixDigits = regexp.MustCompile(`^[0-9a-fA-F]{6}$`)

func (c *call) createLabel() *answer {
	if c.role < roleWrite {
		return forbidden()
	}
	in := struct{ Name, Color, Description string }{Color: "ededed"}
	if a := c.read(&in); a != nil {
		return a
	}
	switch {
	case in.Name == "" || utf8.RuneCountInString(in.Name) > 50:
		return invalid("Label", "name", "invalid", "")
	case !sixDigits.MatchString(in.Color):
		return invalid("Label", "color", "invalid", "")
	case utf8.RuneCountInString(in.Description) > 100:
		return invalid("Label", "description", "custom", "description is too long (maximum is 100 characters)")
	case c.repo.label(in.Name) != nil:
		return invalid("Label", "name", "already_exists", "")
	}
	return created(c.s.label(c.repo, c.repo.addLabel(in.Name, strings.ToLower(in.Color), in.Description)))
}
