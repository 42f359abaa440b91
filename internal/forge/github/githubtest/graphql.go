package githubtest

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
)

const graphqlPattern = "POST /graphql"

var graphqlRoutes = []route{{graphqlPattern, "user", (*call).graphql}}

// graphql does the one mutation that it knows, or answers one query about an item.
func (c *call) graphql() *answer {
	var in struct {
		Query     string
		Variables map[string]any
	}
	if a := c.read(&in); a != nil {
		return a
	}
	op, err := parseGraphQL(in.Query)
	if err != nil {
		return graphqlError("", "", fmt.Sprintf("Parse error: %v", err), nil)
	}
	if op.kind == "query" && op.field.name == "viewer" {
		out, bad := op.field.render("User", object{"login": c.login(), "databaseId": c.me().id})
		if bad != "" {
			return graphqlError("undefinedField", "", bad, nil)
		}
		return ok(object{"data": object{op.field.key(): out}})
	}
	if op.kind == "query" && op.field.name == "repository" {
		return c.query(op.field, in.Variables)
	}
	if op.kind != "mutation" || op.field.name != "markPullRequestReadyForReview" {
		if !c.s.o.Loose {
			c.s.t.Errorf("githubtest: GraphQL knows no %s %s", op.kind, op.field.name)
		}
		return graphqlError("undefinedField", "", fmt.Sprintf("Field '%s' doesn't exist on type 'Mutation'", op.field.name), nil)
	}
	id := argument(op.field.args, "pullRequestId", in.Variables)
	i := c.s.node(id)
	if i == nil || c.who.role(i.repo) < roleRead {
		return graphqlError("NOT_FOUND", op.field.name, fmt.Sprintf("Could not resolve to a node with the global id of '%s'", id), object{op.field.name: nil})
	}
	if c.who.role(i.repo) < roleWrite && i.author != c.me() {
		return graphqlError("FORBIDDEN", op.field.name, fmt.Sprintf("%s does not have the correct permissions to execute `%s`", c.login(), op.field.name), object{op.field.name: nil})
	}
	const payload = "MarkPullRequestReadyForReviewPayload"
	// What is asked for is looked at before anything is done.
	if _, bad := op.field.render(payload, object{"clientMutationId": nil, "pullRequest": pullNode{i}}); bad != "" {
		return graphqlError("undefinedField", "", bad, nil)
	}
	i.setDraft(false, c.me())
	out, _ := op.field.render(payload, object{"clientMutationId": nil, "pullRequest": pullNode{i}})
	return ok(object{"data": object{op.field.key(): out}})
}

// setDraft does nothing where the pull request is what it is to be.
func (i *issue) setDraft(draft bool, by *account) {
	if i.pull.draft == draft {
		return
	}
	i.pull.draft = draft
	kind := "ready_for_review"
	if draft {
		kind = "convert_to_draft"
	}
	i.happened(kind, by)
	i.touch()
	i.changed(strings.Replace(kind, "convert_to", "converted_to", 1), by, nil)
}

func graphqlError(kind, path, message string, data object) *answer {
	e := object{"message": message, "locations": []any{object{"line": 1, "column": 1}}}
	if kind != "" {
		e["type"] = kind
	}
	if path != "" {
		e["path"] = []any{path}
	}
	o := object{"errors": []any{e}}
	if data != nil {
		o["data"] = data
	}
	return &answer{status: http.StatusOK, body: o}
}

// node is the pull request with a global id.
func (s *Server) node(id string) *issue {
	for _, r := range s.repos {
		for _, i := range r.issues {
			if i.pull != nil && !i.deleted && nodeID("PullRequest", i.id) == id {
				return i
			}
		}
	}
	return nil
}

// pullNode answers the fields of a pull request that were selected.
type pullNode struct{ i *issue }

func (n pullNode) kind() string { return "PullRequest" }

func (n pullNode) fields() object {
	i := n.i
	state := strings.ToUpper(i.state())
	if !i.pull.merged.IsZero() {
		state = "MERGED"
	}
	o := object{"__typename": "PullRequest", "id": nodeID("PullRequest", i.id), "databaseId": i.id, "fullDatabaseId": fmt.Sprint(i.id), "number": i.number,
		"isDraft": i.pull.draft, "state": state, "title": i.title, "url": i.page(), "updatedAt": stamp(i.updated), "merged": !i.pull.merged.IsZero(),
		"headRefName": i.pull.head, "baseRefName": i.pull.base, "headRefOid": i.pull.headSHA}
	maps.Copy(o, i.history())
	var threads []node
	for _, l := range i.pull.lines {
		if l.replyTo == 0 {
			first := connection{"PullRequestReviewCommentConnection", []node{thing{"PullRequestReviewComment", object{"databaseId": l.id}}}}
			threads = append(threads, thing{"PullRequestReviewThread", object{"isResolved": l.resolved, "comments": first}})
		}
	}
	o["reviewThreads"] = connection{"PullRequestReviewThreadConnection", threads}
	return o
}
