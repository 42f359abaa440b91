package githubtest

import (
	"cmp"
	"encoding/json"
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
	{"POST /repos/{owner}/{repo}/issues", "user", (*call).createIssue},
	{"GET /repos/{owner}/{repo}/issues/{issue_number}", "anyone", withIssue(func(c *call, i *issue) *answer {
		return ok(c.s.issueAlone(i)).at(i.updated)
	})},
	{"PATCH /repos/{owner}/{repo}/issues/{issue_number}", "user", withIssue((*call).editIssue)},
	{"GET /repos/{owner}/{repo}/issues/{issue_number}/labels", "anyone", withIssue((*call).listIssueLabels)},
	{"POST /repos/{owner}/{repo}/issues/{issue_number}/labels", "user", withIssue((*call).addLabels)},
	{"PUT /repos/{owner}/{repo}/issues/{issue_number}/labels", "user", withIssue((*call).setLabels)},
	{"DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels", "user", withIssue((*call).clearLabels)},
	{"DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}", "user", withIssue((*call).removeLabel)},
	{"POST /repos/{owner}/{repo}/issues/{issue_number}/assignees", "user", withIssue((*call).addAssignees)},
	{"DELETE /repos/{owner}/{repo}/issues/{issue_number}/assignees", "user", withIssue((*call).removeAssignees)},
	{"GET /repos/{owner}/{repo}/issues/{issue_number}/timeline", "anyone", withIssue((*call).listTimeline)},
	{"GET /repos/{owner}/{repo}/issues/{issue_number}/events", "anyone", withIssue((*call).listEvents)},
	{"GET /repos/{owner}/{repo}/labels", "anyone", func(c *call) *answer {
		return c.list(len(c.repo.labels), func(i int) object { return c.s.label(c.repo, c.repo.labels[i]) })
	}},
	{"POST /repos/{owner}/{repo}/labels", "user", (*call).createLabel},
	{"GET /repos/{owner}/{repo}/labels/{name}", "anyone", withLabel(func(c *call, l *label) *answer { return ok(c.s.label(c.repo, l)) })},
	{"PATCH /repos/{owner}/{repo}/labels/{name}", "user", withLabel((*call).editLabel)},
	{"DELETE /repos/{owner}/{repo}/labels/{name}", "user", withLabel((*call).deleteLabel)},
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

func withLabel(do func(*call, *label) *answer) func(*call) *answer {
	return func(c *call) *answer {
		l := c.repo.label(c.r.PathValue("name"))
		if l == nil {
			return notFound()
		}
		return do(c, l)
	}
}

// issueFilter is what a list of issues leaves out.
func (c *call) issueFilter() (func(*issue) bool, *answer) {
	q := c.r.URL.Query()
	for _, name := range []string{"milestone", "mentioned", "type", "issue_field_values"} {
		if q.Has(name) && !c.s.o.Loose {
			c.s.t.Errorf("githubtest: lists of issues do not know the parameter %s", name)
		}
	}
	since, a := c.since()
	if a != nil {
		return nil, a
	}
	state := cmp.Or(q.Get("state"), "open")
	assignee, creator := q.Get("assignee"), q.Get("creator")
	if assignee != "" && assignee != "*" && assignee != "none" && c.s.account(assignee) == nil {
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
		if creator != "" && !strings.EqualFold(i.author.login, creator) {
			return false
		}
		switch assignee {
		case "":
			return true
		case "none":
			return len(i.assignees) == 0
		case "*":
			return len(i.assignees) > 0
		}
		return slices.ContainsFunc(i.assignees, func(a *account) bool { return strings.EqualFold(a.login, assignee) })
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
		switch by {
		case "updated":
			n = a.updated.Compare(b.updated)
		case "comments":
			n = cmp.Compare(len(a.comments), len(b.comments))
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

// names are labels as strings or as objects.
type names []string

func (n *names) UnmarshalJSON(b []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*n = names{}
	for _, raw := range all {
		var s string
		var o struct{ Name string }
		if json.Unmarshal(raw, &s) != nil {
			if err := json.Unmarshal(raw, &o); err != nil {
				return err
			}
			s = o.Name
		}
		*n = append(*n, s)
	}
	return nil
}

func (c *call) createIssue() *answer {
	var in struct {
		Title     string
		Body      string
		Labels    names
		Assignees []string
	}
	if a := c.read(&in); a != nil {
		return a
	}
	if c.repo.o.NoIssues {
		return failed(http.StatusGone, "Issues has been disabled in this repository.")
	}
	if a := texts("Issue", &in.Title, &in.Body); a != nil {
		return a
	}
	i := c.repo.open(c.me(), in.Title, in.Body)
	i.changed("opened", c.me(), nil)
	if c.role >= roleTriage { // of others they are dropped without a word
		i.setLabels(in.Labels, c.me())
		for _, login := range in.Assignees {
			if who := c.s.account(login); who != nil {
				i.assign(who, c.me())
			}
		}
	}
	return created(c.s.issueAlone(i))
}

func (c *call) editIssue(i *issue) *answer {
	var in struct {
		Title       *string
		Body        *string
		State       *string
		StateReason *string `json:"state_reason"`
		Labels      *names
		Assignees   *[]string
	}
	if a := c.read(&in); a != nil {
		return a
	}
	if c.role < roleTriage && i.author != c.me() {
		return forbidden()
	}
	if a := texts("Issue", in.Title, in.Body); a != nil {
		return a
	}
	c.retitle(i, in.Title, in.Body, in.State, in.StateReason)
	if c.role < roleTriage {
		return ok(c.s.issueAlone(i))
	}
	if in.Labels != nil {
		i.setLabels(*in.Labels, c.me())
	}
	if in.Assignees != nil {
		for _, old := range slices.Clone(i.assignees) {
			if !slices.ContainsFunc(*in.Assignees, func(l string) bool { return strings.EqualFold(l, old.login) }) {
				i.unassign(old, c.me())
			}
		}
		for _, login := range *in.Assignees {
			if who := c.s.account(login); who != nil {
				i.assign(who, c.me())
			}
		}
	}
	return ok(c.s.issueAlone(i))
}

// retitle is the part of an edit that issues and pull requests share.
func (c *call) retitle(i *issue, title, body, state, reason *string) {
	if title != nil {
		i.setTitle(*title, c.me())
	}
	if body != nil {
		i.setBody(*body, c.me())
	}
	switch {
	case state == nil:
	case *state == "closed":
		why := "completed"
		if reason != nil {
			why = *reason
		}
		if i.pull != nil {
			why = ""
		}
		i.close(c.me(), why, "")
	case *state == "open":
		i.reopen(c.me())
	}
}

func (c *call) listIssueLabels(i *issue) *answer {
	return c.list(len(i.labels), func(n int) object { return c.s.label(c.repo, i.labels[n]) })
}

// readLabels takes {"labels": [...]} and the bare list that the words of the
// description allow, though its schema does not.
func (c *call) readLabels() (names, *answer) {
	var bare names
	if json.Unmarshal(c.body, &bare) == nil {
		return bare, nil
	}
	var in struct{ Labels names }
	if a := c.read(&in); a != nil {
		return nil, a
	}
	return in.Labels, nil
}

func (c *call) changeLabels(do func(names) *answer) *answer {
	if c.role < roleTriage {
		return forbidden()
	}
	all, a := c.readLabels()
	if a != nil {
		return a
	}
	for _, n := range all {
		if n == "" || utf8.RuneCountInString(n) > 50 {
			return invalid("Label", "name", "invalid", "")
		}
	}
	return do(all)
}

func (c *call) addLabels(i *issue) *answer {
	return c.changeLabels(func(all names) *answer {
		for _, n := range all {
			i.putLabel(n, c.me())
		}
		return ok(c.s.labels(c.repo, i.labels))
	})
}

func (c *call) setLabels(i *issue) *answer {
	return c.changeLabels(func(all names) *answer {
		i.setLabels(all, c.me())
		return ok(c.s.labels(c.repo, i.labels))
	})
}

func (c *call) clearLabels(i *issue) *answer {
	if c.role < roleTriage {
		return forbidden()
	}
	i.setLabels(nil, c.me())
	return &answer{status: http.StatusNoContent}
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

func (c *call) assignees(do func(who *account)) *answer {
	var in struct{ Assignees []string }
	if a := c.read(&in); a != nil {
		return a
	}
	if c.role < roleTriage {
		return forbidden()
	}
	for _, login := range in.Assignees {
		if who := c.s.account(login); who != nil {
			do(who)
		}
	}
	return nil
}

func (c *call) addAssignees(i *issue) *answer {
	if a := c.assignees(func(who *account) { i.assign(who, c.me()) }); a != nil {
		return a
	}
	return created(c.s.issue(i))
}

func (c *call) removeAssignees(i *issue) *answer {
	if a := c.assignees(func(who *account) { i.unassign(who, c.me()) }); a != nil {
		return a
	}
	return ok(c.s.issue(i))
}

func (c *call) listTimeline(i *issue) *answer {
	all := c.s.timeline(i)
	return c.list(len(all), func(n int) object { return all[n] })
}

func (c *call) listEvents(i *issue) *answer {
	all := slices.DeleteFunc(slices.Clone(i.events), func(e *event) bool { return e.kind == "cross-referenced" })
	return c.list(len(all), func(n int) object { return c.s.event(i, all[n]) })
}

type labelInput struct {
	Name        *string
	NewName     *string `json:"new_name"`
	Color       *string
	Description *string
}

var sixDigits = regexp.MustCompile(`^[0-9a-fA-F]{6}$`)

func (in labelInput) check() *answer {
	switch {
	case in.Name != nil && (*in.Name == "" || utf8.RuneCountInString(*in.Name) > 50):
		return invalid("Label", "name", "invalid", "")
	case in.Color != nil && !sixDigits.MatchString(*in.Color):
		return invalid("Label", "color", "invalid", "")
	case in.Description != nil && utf8.RuneCountInString(*in.Description) > 100:
		return invalid("Label", "description", "custom", "description is too long (maximum is 100 characters)")
	}
	return nil
}

func (c *call) createLabel() *answer {
	if c.role < roleWrite {
		return forbidden()
	}
	var in labelInput
	if a := c.read(&in); a != nil {
		return a
	}
	if in.Name == nil {
		return invalid("Label", "name", "missing_field", "")
	}
	if a := in.check(); a != nil {
		return a
	}
	if c.repo.label(*in.Name) != nil {
		return invalid("Label", "name", "already_exists", "")
	}
	l := c.repo.addLabel(*in.Name, "ededed", "")
	l.set(in)
	return created(c.s.label(c.repo, l))
}

func (l *label) set(in labelInput) {
	if in.NewName != nil {
		l.name = *in.NewName
	}
	if in.Color != nil {
		l.color = strings.ToLower(*in.Color)
	}
	if in.Description != nil {
		l.description = *in.Description
	}
}

func (c *call) editLabel(l *label) *answer {
	if c.role < roleWrite {
		return forbidden()
	}
	var in labelInput
	if a := c.read(&in); a != nil {
		return a
	}
	if a := in.check(); a != nil {
		return a
	}
	l.set(in)
	return ok(c.s.label(c.repo, l))
}

func (c *call) deleteLabel(l *label) *answer {
	if c.role < roleWrite {
		return forbidden()
	}
	is := func(o *label) bool { return o == l }
	c.repo.labels = slices.DeleteFunc(c.repo.labels, is)
	for _, i := range c.repo.issues {
		i.labels = slices.DeleteFunc(slices.Clone(i.labels), is)
	}
	return &answer{status: http.StatusNoContent}
}
