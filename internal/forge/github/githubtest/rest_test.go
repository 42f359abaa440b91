package githubtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestPaging(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for n := range 105 {
		w.repo.OpenIssue("alice", "t"+strconv.Itoa(n+1), "b")
	}
	for _, c := range []struct {
		query       string
		first, last float64 // numbers of the page's ends
		n           int
		rels        string
	}{
		{"", 105, 76, 30, "next last"},
		{"?per_page=500", 105, 6, 100, "next last"},
		{"?per_page=100&page=2", 5, 1, 5, "prev first"},
		{"?per_page=40&page=2&direction=asc", 41, 80, 40, "prev next last first"},
		{"?per_page=105&page=9", 0, 0, 0, "prev first"},
	} {
		g := w.do("GET", "repos/acme/app/issues"+c.query, nil)
		list := g.list(200)
		var rels []string
		for link := range strings.SplitSeq(g.Header.Get("Link"), ", ") {
			at, rel, _ := strings.Cut(link, "; rel=")
			rels = append(rels, strings.Trim(rel, `"`))
			if next := strings.Trim(at, "<>"); rel == `"next"` {
				if more := w.do("GET", next, nil).list(200); more[0]["number"] == list[0]["number"] {
					t.Errorf("%s: the next page %s is the same", c.query, next)
				}
			}
		}
		if len(list) != c.n || c.n > 0 && (list[0]["number"] != c.first || list[c.n-1]["number"] != c.last) || strings.Join(rels, " ") != c.rels {
			t.Errorf("%q: %d from %v, links %v", c.query, len(list), list[0]["number"], rels)
		}
	}
}

func TestListsOfIssues(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.repo.OpenIssue("alice", "one", "b", "agent", "bug")
	w.clock.add(time.Minute)
	w.repo.OpenIssue("bob", "two", "b", "Agent")
	w.clock.add(time.Minute)
	w.repo.OpenIssue("alice", "three", "b")
	w.repo.Close(3, "alice")
	w.repo.Commit("x", "bob", "x", map[string]string{"x": "x"})
	w.clock.add(time.Minute)
	w.repo.OpenPull("bob", "x", "main", "four", "b")
	w.repo.Assign(4, "alice", "alice")
	w.repo.Assign(4, "bob", "alice") // no collaborator: passed over
	w.clock.add(time.Minute)
	w.repo.Comment(1, "bob", "c")
	for _, c := range []struct {
		query string
		want  []float64
	}{
		{"", []float64{4, 2, 1}},
		{"labels=agent", []float64{2, 1}},
		{"labels=agent,BUG", []float64{1}},
		{"state=closed", []float64{3}},
		{"state=all&direction=asc", []float64{1, 2, 3, 4}},
		{"sort=updated", []float64{1, 4, 2}},
		{"sort=updated&direction=asc", []float64{2, 4, 1}},
		{"since=2026-03-01T12:03:00Z", []float64{4, 1}},
		{"assignee=ALICE", []float64{4}},
	} {
		if got := all[float64](w.do("GET", "repos/acme/app/issues?"+c.query, nil).list(200), "number"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.query, got, c.want)
		}
	}
	w.do("GET", "repos/acme/app/issues?assignee=nobody", nil).ok(422)
	if p := w.do("GET", "repos/acme/app/issues/4", nil).ok(200); p["pull_request"] == nil || !strings.HasSuffix(p["html_url"].(string), "/acme/app/pull/4") {
		t.Errorf("a pull request as an issue: %v", p)
	}
}

func TestComments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.repo.OpenIssue("alice", "one", "b")
	w.repo.OpenIssue("alice", "two", "b")
	a := w.repo.Comment(1, "bob", "first")
	w.clock.add(time.Minute)
	b := w.repo.Comment(2, "bob", "second")
	w.clock.add(time.Minute)
	updated := w.repo.Issue(1).Updated
	w.repo.EditComment(a, "first, edited")
	if !w.repo.Issue(1).Updated.Equal(updated) {
		t.Error("an edited comment dates the issue")
	}
	ids := func(query string) []float64 {
		return all[float64](w.do("GET", "repos/acme/app/issues/comments"+query, nil).list(200), "id")
	}
	for query, want := range map[string][]int64{"": {a, b}, "?sort=updated&direction=asc": {b, a}, "?sort=updated": {a, b}, "?sort=created&direction=desc": {b, a},
		"?direction=desc": {a, b}, "?since=2026-03-01T12:01:30Z": {a}, "?since=2026-03-01T12:02:00Z": {a}, "?since=2026-03-01T12:02:01Z": {}} {
		got := ids(query)
		if len(got) != len(want) || slices.ContainsFunc(want, func(id int64) bool { return !slices.Contains(got, float64(id)) }) || len(got) == 2 && got[0] != float64(want[0]) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	c := fmt.Sprintf("repos/acme/app/issues/comments/%d", a)
	if o := w.do("GET", c, nil).ok(200); o["body"] != "first, edited" || o["created_at"] == o["updated_at"] {
		t.Errorf("comment: %v", o)
	}
	w.as(w.Token("bob"), "PATCH", fmt.Sprintf("repos/acme/app/issues/comments/%d", b), map[string]any{"body": "mine"}).ok(200)
	w.AddUser(User{Login: "eve"})
	w.as(w.Token("eve"), "PATCH", c, map[string]any{"body": "taken"}).ok(403)
	w.do("DELETE", c, nil).ok(204)
	w.do("GET", c, nil).ok(404)
	for body, want := range map[string]string{" ": "Body can't be blank", strings.Repeat("あ", 65537): "Body is too long (maximum is 65536 characters)"} {
		o := w.do("POST", "repos/acme/app/issues/1/comments", map[string]any{"body": body}).ok(422)
		if got := o["errors"].([]any)[0].(map[string]any)["message"]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	w.do("POST", "repos/acme/app/issues/1/comments", map[string]any{"body": strings.Repeat("あ", 65536)}).ok(201)
	w.repo.Lock(1, "alice")
	w.as(w.Token("eve"), "POST", "repos/acme/app/issues/1/comments", map[string]any{"body": "x"}).ok(403)
	w.do("POST", "repos/acme/app/issues/1/comments", map[string]any{"body": "x"}).ok(201)
	w.repo.DeleteIssue(1)
	w.do("POST", "repos/acme/app/issues/1/comments", map[string]any{"body": "x"}).ok(410)
	w.repo.Set(func(o *RepoOptions) { o.NoIssues = true })
	w.do("GET", "repos/acme/app/issues/2", nil).ok(410)
}

func TestConditionalRequestsAreFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Rate: 5})
	w.repo.OpenIssue("alice", "one", "b")
	g := w.do("GET", "repos/acme/app/issues", nil)
	g.list(200)
	tag, left := g.Header.Get("Etag"), g.Header.Get("X-Ratelimit-Remaining")
	if !strings.HasPrefix(tag, `W/"`) || left != "4" || g.Header.Get("X-Github-Request-Id") == "" {
		t.Fatalf("headers: %v", g.Header)
	}
	for range 10 {
		g = w.do("GET", "repos/acme/app/issues", nil, "If-None-Match", tag)
		if g.ok(304); len(g.body) != 0 || g.Header.Get("X-Ratelimit-Remaining") != "4" {
			t.Fatalf("unchanged: %v %s", g.Header, g.body)
		}
	}
	w.clock.add(time.Second)
	w.repo.Label(1, "agent", "alice")
	if g = w.do("GET", "repos/acme/app/issues", nil, "If-None-Match", tag); g.ok(200) == nil && g.Header.Get("Etag") == tag {
		t.Error("a change keeps its tag")
	}
	w.do("GET", "repos/acme/app/issues/1", nil).ok(200)
	w.do("GET", "user", nil).ok(200)
	w.do("GET", "user", nil).ok(200)
	g = w.do("GET", "user", nil)
	if o := g.ok(403); !strings.Contains(o["message"].(string), "API rate limit exceeded") || g.Header.Get("X-Ratelimit-Remaining") != "0" {
		t.Errorf("used up: %v %v", o, g.Header)
	}
	if o := w.do("POST", w.URL+"/api/graphql", map[string]any{"query": "mutation{a}"}).ok(200); o["errors"].([]any)[0].(map[string]any)["type"] != "RATE_LIMITED" {
		t.Errorf("GraphQL used up: %v", o)
	}
	if reset := g.Header.Get("X-Ratelimit-Reset"); reset != strconv.FormatInt(newClock().at.Add(time.Hour).Unix(), 10) {
		t.Errorf("reset at %s", reset)
	}
	w.clock.add(time.Hour)
	w.do("GET", "user", nil).ok(200)
}

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	private := w.AddRepo("acme", "secret", RepoOptions{Private: true, Archived: true}, nil)
	private.Allow("alice", "triage")
	private.OpenIssue("alice", "t", "b")
	alice, bob := w.Token("alice"), w.Token("bob")

	w.as("", "GET", "repos/acme/app", nil).ok(200)
	w.as("", "GET", "user", nil).ok(401)
	w.as("ghp_wrong", "GET", "repos/acme/app", nil).ok(401)
	w.as(bob, "GET", "repos/acme/secret", nil).ok(404)
	w.as(bob, "GET", "repos/acme/secret/issues/1", nil).ok(404)
	w.as(alice, "GET", "repos/acme/secret", nil).ok(200)
	w.as(alice, "POST", "repos/acme/secret/issues/1/labels", map[string]any{"labels": []string{"x"}}).ok(403) // archived
	w.as(bob, "POST", "repos/acme/app/labels", map[string]any{"name": "x"}).ok(403)
	if got := all[string](w.as(alice, "GET", "user/repos", nil).list(200), "full_name"); !slices.Equal(got, []string{"acme/app", "acme/secret"}) {
		t.Errorf("alice's: %v", got)
	}
	if got := all[string](w.as(bob, "GET", "orgs/acme/repos?type=all", nil).list(200), "full_name"); !slices.Equal(got, []string{"acme/app"}) {
		t.Errorf("bob sees: %v", got)
	}
	w.do("GET", "orgs/alice/repos", nil).ok(404)
	w.do("GET", "users/alice/repos", nil).ok(200)
	w.Revoke(alice)
	w.as(alice, "GET", "user", nil).ok(401)
}

func TestPermissionGoesByNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	ask := func(login string) (string, string, float64) {
		o := w.do("GET", "repos/acme/app/collaborators/"+login+"/permission", nil).ok(200)
		return o["permission"].(string), o["role_name"].(string), o["user"].(map[string]any)["id"].(float64)
	}
	for role, legacy := range map[string]string{"read": "read", "triage": "read", "write": "write", "maintain": "write", "admin": "admin"} {
		w.repo.Allow("alice", role)
		if p, r, id := ask("alice"); p != legacy || r != role || id != 1 {
			t.Errorf("%s: %s %s %v", role, p, r, id)
		}
	}
	w.repo.Allow("alice", "admin")
	w.Rename("alice", "alicia")
	if o := w.do("GET", "repos/acme/app/collaborators/alice/permission", nil).ok(404); o["message"] != "alice is not a user" {
		t.Errorf("nobody: %v", o)
	}
	w.AddUser(User{Login: "alice", ID: 99})
	if p, _, id := ask("alice"); p != "read" || id != 99 {
		t.Errorf("who took the name: %s %v", p, id)
	}
	if p, _, id := ask("alicia"); p != "admin" || id != 1 {
		t.Errorf("renamed: %s %v", p, id)
	}
	w.as(w.Token("bob"), "GET", "repos/acme/app/collaborators/alicia/permission", nil).ok(403)
}

func TestLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.repo.OpenIssue("alice", "t", "b")
	in := map[string]any{"name": "needs/work: あ", "color": "0E8A16", "description": "d"}
	if o := w.do("POST", "repos/acme/app/labels", in).ok(201); o["color"] != "0e8a16" {
		t.Errorf("label: %v", o)
	}
	if o := w.do("POST", "repos/acme/app/labels", in).ok(422); o["errors"].([]any)[0].(map[string]any)["code"] != "already_exists" {
		t.Errorf("twice: %v", o)
	}
	w.do("POST", "repos/acme/app/labels", map[string]any{"name": "x", "color": "#fff"}).ok(422)
	w.do("POST", "repos/acme/app/labels", map[string]any{"name": "x", "description": strings.Repeat("d", 101)}).ok(422)
	at := "repos/acme/app/issues/1/labels/needs%2Fwork:%20%E3%81%82"
	w.do("POST", "repos/acme/app/issues/1/labels", map[string]any{"labels": []string{"NEEDS/work: あ", "fresh"}}).list(200)
	w.do("POST", "repos/acme/app/issues/1/labels", map[string]any{"labels": []string{"fresh"}}).list(200)
	if l := w.do("DELETE", at, nil).list(200); len(l) != 1 || l[0]["name"] != "fresh" {
		t.Errorf("left: %v", l)
	}
	if o := w.do("DELETE", at, nil).ok(404); o["message"] != "Label does not exist" {
		t.Errorf("again: %v", o)
	}
	var kinds []string
	for _, e := range w.repo.Issue(1).Events {
		kinds = append(kinds, e.Kind+" "+e.Label)
	}
	want := []string{"labeled needs/work: あ", "labeled fresh", "unlabeled needs/work: あ"}
	if !slices.Equal(kinds, want) {
		t.Errorf("events: %v, want %v", kinds, want)
	}
	if got := w.repo.Labels(); len(got) != 2 || got[1].Color != "ededed" {
		t.Errorf("labels of the repository: %v", got)
	}
	if l := w.do("GET", "repos/acme/app/issues/1/labels", nil).list(200); len(l) != 1 {
		t.Errorf("labels of the issue: %v", l)
	}
}

func TestIssuesAndTheirHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.AddUser(User{Login: "helper[bot]", Type: "Bot"})
	w.repo.OpenIssue("bob", "mine", "b")
	w.clock.add(time.Minute)
	w.repo.OpenIssue("alice", "see #1", "and #1")
	if i := w.repo.Issue(1); !i.Updated.Equal(w.clock.now()) {
		t.Errorf("an issue that another one names: %v", i.Updated)
	}
	w.repo.Edit(1, "tori-bot", "ours", "b")
	w.repo.Close(1, "tori-bot")
	w.repo.Label(1, "x", "helper[bot]")
	w.repo.Assign(1, "alice", "tori-bot")
	w.repo.Reopen(1, "tori-bot")
	w.repo.Assign(1, "tori-bot", "tori-bot")
	w.repo.Unassign(1, "alice", "tori-bot")
	w.repo.Comment(1, "helper[bot]", "beep")
	w.repo.Lock(1, "alice")

	events := w.do("GET", "repos/acme/app/issues/1/events?per_page=100", nil).list(200)
	want := []string{"renamed", "closed", "labeled", "assigned", "reopened", "assigned", "unassigned", "locked"}
	if got := all[string](events, "event"); !slices.Equal(got, want) {
		t.Errorf("events: %v, want %v", got, want)
	}
	if events[0]["id"] == 0.0 || events[2]["actor"].(map[string]any)["type"] != "Bot" || events[3]["actor"].(map[string]any)["id"] != 3.0 || events[3]["assignee"].(map[string]any)["login"] != "alice" {
		t.Errorf("events: %v", events)
	}
	w.DeleteUser("bob")
	if i := w.do("GET", "repos/acme/app/issues/1", nil).ok(200); i["user"].(map[string]any)["login"] != "ghost" || i["state_reason"] != "reopened" || i["locked"] != true {
		t.Errorf("issue: %v", i)
	}
	w.do("GET", "users/bob", nil).ok(404)
	w.do("GET", "users/helper%5Bbot%5D", nil).ok(200)
	w.do("GET", "repos/acme/app/issues/99", nil).ok(404)
	if g := w.do("POST", "repos/acme/app/issues/1/comments", map[string]any{"body": "x"}); g.StatusCode != http.StatusCreated || g.Header.Get("Etag") != "" {
		t.Errorf("comment: %v", g.Header)
	}
}
