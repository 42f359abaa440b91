package githubtest

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// thing is an object of a type with the fields that the server knows of it.
type thing struct {
	name string
	have object
}

func (t thing) kind() string   { return t.name }
func (t thing) fields() object { return t.have }

// connection is a list that is read by pages; here one page is all of it.
type connection struct {
	of    string
	nodes []node
}

// query answers for a repository's issue or pull request.
func (c *call) query(f selection, variables map[string]any) *answer {
	owner, name := argument(f.args, "owner", variables), argument(f.args, "name", variables)
	r := c.s.repo(owner, name)
	if r == nil {
		r = c.s.moved(owner, name) // followRenames is true where it is not given
	}
	if r == nil || c.who.role(r) < roleRead {
		return graphqlError("NOT_FOUND", f.name, fmt.Sprintf("Could not resolve to a Repository with the name '%s/%s'.", owner, name), object{f.key(): nil})
	}
	have := object{"id": nodeID("Repository", r.id), "databaseId": r.id, "name": r.name, "nameWithOwner": r.full()}
	for _, want := range f.of {
		if want.name != "issueOrPullRequest" {
			continue
		}
		n, _ := strconv.Atoi(argument(want.args, "number", variables))
		i := r.issue(n)
		if i == nil || i.deleted {
			a := graphqlError("NOT_FOUND", "", fmt.Sprintf("Could not resolve to an issue or pull request with the number of %d.", n), object{f.key(): object{want.key(): nil}})
			a.body.(object)["errors"].([]any)[0].(object)["path"] = []any{f.key(), want.key()}
			return a
		}
		have[want.name] = i.node()
	}
	out, bad := f.render("Repository", have)
	if bad != "" {
		return graphqlError("", "", bad, nil)
	}
	return &answer{status: http.StatusOK, body: object{"data": object{f.key(): out}}}
}

// argument is the text of an argument that is written there or in a variable.
func argument(args, name string, variables map[string]any) string {
	m := regexp.MustCompile(`(?:^|\W)` + name + ` : (?:"([^"]*)"|(\d+)|\$ (\w+))`).FindStringSubmatch(args)
	switch {
	case m == nil:
		return ""
	case m[3] == "":
		return m[1] + m[2]
	}
	if n, is := variables[m[3]].(float64); is {
		return strconv.FormatInt(int64(n), 10)
	}
	s, _ := variables[m[3]].(string)
	return s
}

func (i *issue) node() node {
	if i.pull != nil {
		return pullNode{i}
	}
	have := i.history()
	maps.Copy(have, object{"__typename": "Issue", "id": nodeID("Issue", i.id), "databaseId": i.id, "number": i.number, "title": i.title,
		"state": strings.ToUpper(i.state()), "url": i.page(), "updatedAt": stamp(i.updated)})
	return thing{"Issue", have}
}

// history is what issues and pull requests tell of their edits: the newest edit
// of the text comes first, changes of the title in their order. Of other events
// nothing is told.
func (i *issue) history() object {
	o := object{"lastEditedAt": nil, "editor": nil}
	var texts, titles []node
	for n, e := range i.edits {
		texts = append([]node{thing{"UserContentEdit", object{"editedAt": stamp(e.at), "createdAt": stamp(e.at), "editor": actor(e.by)}}}, texts...)
		if n > 0 {
			o["lastEditedAt"], o["editor"] = stamp(e.at), actor(e.by)
		}
	}
	for _, e := range i.events {
		if e.kind == "renamed" {
			titles = append(titles, thing{"RenamedTitleEvent", object{"createdAt": stamp(e.at), "previousTitle": e.from, "currentTitle": e.to, "actor": actor(e.actor)}})
		}
	}
	o["userContentEdits"] = connection{"UserContentEditConnection", texts}
	o["timelineItems"] = connection{"IssueTimelineItemsConnection", titles}
	return o
}

// actor is an account as GraphQL has it; null where it is gone.
func actor(a *account) any {
	if a == nil || a.gone {
		return nil
	}
	return thing{a.kind, object{"__typename": a.kind, "login": strings.TrimSuffix(a.login, "[bot]"), "databaseId": a.id}}
}
