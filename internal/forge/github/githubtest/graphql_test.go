package githubtest

import (
	"strings"
	"testing"
)

func TestGraphQL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Loose: true})
	w.repo.Commit("x", "alice", "x", map[string]string{"x": "x"})
	w.repo.OpenPull("tori-bot", "x", "main", "t", "b")
	id := w.do("GET", "repos/acme/app/pulls/1", nil).ok(200)["node_id"].(string)
	const ready = `mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`
	for _, c := range []struct {
		name, query string
		variables   map[string]any
		want        string // in the answer
		draft       bool   // afterwards
	}{
		{"a variable", ready, map[string]any{"id": id}, `{"data":{"markPullRequestReadyForReview":{"pullRequest":{"isDraft":false}}}}`, false},
		{"other names", `mutation Go($in: ID!) { done: markPullRequestReadyForReview(input: {pullRequestId: $in}) { pullRequest { n: number state } clientMutationId } }`,
			map[string]any{"in": id}, `{"data":{"done":{"clientMutationId":null,"pullRequest":{"n":1,"state":"OPEN"}}}}`, false},
		{"written out", `mutation { markPullRequestReadyForReview(input: {pullRequestId: "` + id + `"}) { pullRequest { isDraft } } } # done`, nil, `"isDraft":false`, false},
		{"nothing there", ready, map[string]any{"id": "none"}, `"type":"NOT_FOUND"`, true},
		{"a field that is not there", strings.Replace(ready, "isDraft", "isDrafty", 1), map[string]any{"id": id}, "Field 'isDrafty' doesn't exist on type 'PullRequest'", true},
		{"no fields", strings.Replace(ready, "{ isDraft }", "", 1), map[string]any{"id": id}, "must have selections", true},
		{"no such mutation", `mutation { deleteEverything { id } }`, nil, "doesn't exist on type 'Mutation'", true},
		{"no GraphQL", `mutation {`, nil, "Parse error", true},
	} {
		w.repo.SetDraft(1, true, "alice")
		g := w.do("POST", w.URL+"/api/graphql", map[string]any{"query": c.query, "variables": c.variables})
		if g.ok(200); !strings.Contains(string(g.body), c.want) {
			t.Errorf("%s: %s, want %s", c.name, g.body, c.want)
		}
		if got := w.repo.Issue(1).Pull.Draft; got != c.draft {
			t.Errorf("%s: draft %v", c.name, got)
		}
	}
	w.repo.SetDraft(1, true, "alice")
	if g := w.as(w.Token("bob"), "POST", w.URL+"/graphql", map[string]any{"query": ready, "variables": map[string]any{"id": id}}); !strings.Contains(string(g.body), "FORBIDDEN") {
		t.Errorf("an outsider: %s", g.body)
	}
	w.as("", "POST", w.URL+"/graphql", map[string]any{"query": ready}).ok(401)
	w.FailNext(graphqlPattern, 1, RateLimited(403, w.clock.now()))
	if o := w.graphql(ready, nil); o["errors"].([]any)[0].(map[string]any)["type"] != "RATE_LIMITED" {
		t.Errorf("limited: %v", o)
	}
}

func FuzzParseGraphQL(f *testing.F) {
	for _, s := range []string{`mutation($id:ID!){a(input:{b:$id}){c{d}}}`, `query{`, `{a:b("}"){c}}`, "{a(x:1", "{{{{", `{a ...on B{c}}`, "#"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if op, err := parseGraphQL(s); err == nil && op.field.name == "" {
			t.Errorf("%q: a field without a name", s)
		}
	})
}

// Queries answer for one item, with who edited it.
func TestGraphQLQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Loose: true})
	w.repo.OpenIssue("alice", "t", "b")
	w.clock.add(1e9)
	w.repo.Edit(1, "bob", "u", "c")
	const item = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) { issueOrPullRequest(number: $number) { ... on Issue { FIELDS } ... on PullRequest { isDraft } } } }`
	ours := map[string]any{"owner": "acme", "name": "app", "number": 1}
	for _, c := range []struct {
		name, fields string
		variables    map[string]any
		want         string
	}{
		{"edits", "userContentEdits(first: 9) { totalCount nodes { editor { login ... on Bot { id } ... on User { __typename } } } }", ours,
			`{"data":{"repository":{"issueOrPullRequest":{"userContentEdits":{"nodes":[{"editor":{"__typename":"User","login":"bob"}},{"editor":{"__typename":"User","login":"alice"}}],"totalCount":2}}}}}`},
		{"titles", "timelineItems(itemTypes: [RENAMED_TITLE_EVENT], last: 9) { nodes { ... on RenamedTitleEvent { currentTitle actor { login } } } }", ours,
			`{"nodes":[{"actor":{"login":"bob"},"currentTitle":"u"}]}`},
		{"no pages", "userContentEdits { totalCount }", ours, "You must provide a `first` or `last` value"},
		{"no such field", "editedBy", ours, "Field 'editedBy' doesn't exist on type 'Issue'"},
		{"no such item", "title", map[string]any{"owner": "acme", "name": "app", "number": 7}, `"path":["repository","issueOrPullRequest"]`},
		{"no such repository", "title", map[string]any{"owner": "acme", "name": "none", "number": 1}, "Could not resolve to a Repository with the name 'acme/none'."},
	} {
		g := w.do("POST", w.URL+"/api/graphql", map[string]any{"query": strings.Replace(item, "FIELDS", c.fields, 1), "variables": c.variables})
		if g.ok(200); !strings.Contains(string(g.body), c.want) {
			t.Errorf("%s: %s, want %s", c.name, g.body, c.want)
		}
	}
}
