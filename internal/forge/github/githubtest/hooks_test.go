package githubtest

import (
	"strings"
	"testing"
)

// All that is delivered is as GitHub describes it, which the server checks itself, and says what happened.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	s := New(t, Options{})
	s.AddUser(User{Login: "ken"})
	r := s.AddRepo("acme", "widgets", RepoOptions{}, map[string]string{"a": "1"})
	r.Allow("ken", "admin")
	r.AddHook(Hook{URL: "http://127.0.0.1:1/", Secret: "s", ContentType: "json", Active: true, Events: []string{"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment"}})
	var all []string
	s.OnDelivery(func(d Delivery) {
		if len(d.Header.Get("X-Hub-Signature-256")) != len("sha256=")+64 || d.Header.Get("X-GitHub-Delivery") == "" || d.Header.Get("X-GitHub-Event") != d.Event {
			t.Errorf("%v", d.Header)
		}
		all = append(all, d.Event+"."+d.Action)
	})
	n := r.OpenIssue("ken", "Title", "Body", "bug")
	r.Unlabel(n, "bug", "ken")
	r.Assign(n, "ken", "ken")
	r.Unassign(n, "ken", "ken")
	r.Edit(n, "ken", "Other", "Other")
	c := r.Comment(n, "ken", "Hello")
	r.EditComment(c, "Hello again")
	r.Close(n, "ken")
	r.Reopen(n, "ken")
	r.Commit("topic", "ken", "Work", map[string]string{"a": "2"})
	p := r.OpenPull("ken", "topic", "main", "Pull", "Text")
	r.Label(p, "bug", "ken")
	r.SetDraft(p, true, "ken")
	r.SetDraft(p, false, "ken")
	r.Review(p, "ken", "COMMENTED", "Well", Line{Path: "a", Line: 1, Body: "Why?"})
	r.Close(p, "ken")
	want := "issues.opened issues.labeled issues.unlabeled issues.assigned issues.unassigned issues.edited issues.edited issue_comment.created issue_comment.edited issues.closed issues.reopened " +
		"pull_request.opened pull_request.labeled pull_request.converted_to_draft pull_request.ready_for_review pull_request_review.submitted pull_request_review_comment.created pull_request.closed"
	if got := strings.Join(all, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
