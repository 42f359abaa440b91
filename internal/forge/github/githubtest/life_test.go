package githubtest

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// A whole life over the wire: issue, label, comment, push, draft, review, merge.
func TestLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	n := w.repo.OpenIssue("alice", "It is broken", "Please mend it.")
	w.clock.add(time.Minute)
	w.repo.Label(n, "agent", "alice")

	list := w.do("GET", "repos/acme/app/issues?labels=agent&state=open&sort=updated&direction=asc&per_page=100", nil).list(200)
	if len(list) != 1 || list[0]["title"] != "It is broken" || list[0]["updated_at"] != "2026-03-01T12:01:00Z" {
		t.Fatalf("issues: %v", list)
	}
	events := w.do("GET", "repos/acme/app/issues/1/events", nil).list(200)
	if len(events) != 1 || events[0]["event"] != "labeled" || events[0]["actor"].(map[string]any)["login"] != "alice" {
		t.Fatalf("events: %v", events)
	}
	w.do("DELETE", "repos/acme/app/issues/1/labels/agent", nil).list(200)
	w.do("POST", "repos/acme/app/issues/1/labels", map[string]any{"labels": []string{"agent processing"}}).list(200)
	c := w.do("POST", "repos/acme/app/issues/1/comments", map[string]any{"body": "On it."}).ok(201)
	w.do("PATCH", "repos/acme/app/issues/comments/"+number(c["id"]), map[string]any{"body": "Still on it."}).ok(200)

	tree := w.clone(w.bot)
	sha := push(t, tree, "agent/1", map[string]string{"a.txt": "one\n2\nthree\n"})
	in := map[string]any{"title": "Mend it", "head": "agent/1", "base": "main", "body": "Closes #1\n<!-- mark -->", "draft": true}
	p := w.do("POST", "repos/acme/app/pulls", in).ok(201)
	if p["number"] != 2.0 || p["draft"] != true || p["head"].(map[string]any)["sha"] != sha {
		t.Fatalf("pull request: %v", p)
	}
	if e := w.do("POST", "repos/acme/app/pulls", in).ok(422); e["errors"].([]any)[0].(map[string]any)["message"] != "A pull request already exists for acme:agent/1." {
		t.Fatalf("second: %v", e)
	}
	w.graphql(`mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft number}}}`, map[string]any{"id": p["node_id"]})
	w.do("POST", "repos/acme/app/pulls/2/requested_reviewers", map[string]any{"reviewers": []string{"alice"}}).ok(201)
	p = w.do("GET", "repos/acme/app/pulls/2", nil).ok(200)
	if p["draft"] != false || p["mergeable"] != true || p["mergeable_state"] != "clean" || p["commits"] != 1.0 {
		t.Fatalf("pull request: %v", p)
	}

	w.repo.Review(2, "alice", "CHANGES_REQUESTED", "Nearly.", Line{Path: "a.txt", Line: 2, Body: "Write two."})
	if l := w.do("GET", "repos/acme/app/pulls/2/comments", nil).list(200); len(l) != 1 || l[0]["line"] != 2.0 || l[0]["path"] != "a.txt" {
		t.Fatalf("remarks: %v", l)
	}
	head := push(t, tree, "agent/1", map[string]string{"a.txt": "one\ntwo!\nthree\n"})
	if got := w.repo.Issue(2).Pull; got.HeadSHA != head || !got.Lines[0].Outdated {
		t.Fatalf("after the push: %+v", got)
	}
	merge := w.repo.Merge(2, "alice")
	if p, i := w.repo.Issue(2), w.repo.Issue(1); !p.Pull.Merged || p.Open || i.Open || i.Reason != "completed" || w.repo.Branches()["main"] != merge {
		t.Fatalf("after the merge: %+v\n%+v", p, i)
	}
	if text, _ := w.repo.File("main", "a.txt"); text != "one\ntwo!\nthree" {
		t.Errorf("merged file: %q", text)
	}
	i := w.repo.Issue(1)
	if !slices.Equal(i.Labels, []string{"agent processing"}) || len(i.Comments) != 1 || i.Comments[0].Body != "Still on it." {
		t.Errorf("issue: %+v", i)
	}
}

func number(v any) string { return jsonNumber(v.(float64)) }

func (w *world) graphql(query string, variables map[string]any) map[string]any {
	w.t.Helper()
	return w.do(http.MethodPost, w.URL+"/api/graphql", map[string]any{"query": query, "variables": variables}).ok(200)
}
