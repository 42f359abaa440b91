package gitea

import (
	"net/http"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// FuzzAnswers has every question answered alike: whatever a server says, it is an error or
// data, and never a crash.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		"", "null", "{}", "[]", "[null]", `{"data":[null,{}]}`, `{"statuses":[null,{"status":"?"}]}`, `"x"`, "<html>", `{"id":-1,"login":"x"}`,
		`[{"id":1,"labels":[null],"assignees":[null],"pull_request":{},"state":"open","user":null,"label":null,"type":"label","comments_count":1}]`,
		`{"number":1,"pull_request":{},"head":null,"base":{"repo":null},"draft":true,"title":"WIP:","requested_reviewers":[null],"state":"open"}`,
		`[{"id":1,"head":{"label":"h"},"base":{},"user":{"id":1},"state":"open","name":"agent","type":"assignees","assignee":null}]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := New(Options{URL: "https://git.example", Token: "x", RetryDelay: time.Nanosecond, HTTP: &http.Client{Transport: server(func(r *http.Request) (*http.Response, error) {
			if p := r.URL.Query().Get("page"); p != "" && p != "1" {
				return reply(200, "[]")
			}
			return reply(200, text)
		})}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, r, who := t.Context(), forge.Repo{Owner: "acme", Name: "app"}, forge.Person{ID: 1, Login: "x"}
		trigger := forge.Trigger{Label: "agent", Assignee: who}
		_, _ = g.Repositories(ctx, []string{"acme/*", "acme/app"})
		_, _ = g.Triggered(ctx, r, trigger)
		_, _ = g.CommentsSince(ctx, r, time.Time{})
		_, _ = g.Permission(ctx, r, who)
		_, _ = g.Person(ctx, r, "x")
		_, _ = g.CheckRuns(ctx, r, "abc")
		_ = g.EnsureLabels(ctx, r, []forge.Label{{Name: "x"}})
		_, _ = g.Propose(ctx, r, forge.Proposal{Head: "h", Base: "b", Marker: "m", Draft: true})
		for _, kind := range []string{"issue", "pull_request"} {
			k := task.Key{Source: "gitea", Owner: "acme", Repo: "app", Type: kind, ID: "1"}
			_, _ = g.Item(ctx, k)
			_, _, _ = g.Comments(ctx, k)
			_, _ = g.Asked(ctx, k, trigger)
			_, _ = g.EditedSince(ctx, k, time.Time{})
			_, _ = g.Post(ctx, k, "m", "x")
			_ = g.SetLabels(ctx, k, []string{"x"}, []string{"agent"})
			_ = g.RequestReview(ctx, k, []forge.Person{who})
			_ = g.Ready(ctx, k)
			_ = g.Withdraw(ctx, k)
		}
	})
}
