package githubtest

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// Who asks for a repository by a former name is sent on: what reads for good,
// what writes with its method and body, git to the new address.
func TestRenamedRepositories(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	n := w.repo.OpenIssue("alice", "t", "b")
	secret := w.AddRepo("acme", "hidden", RepoOptions{Private: true}, map[string]string{"x": "x\n"})
	w.repo.Rename("acme/gadgets")
	secret.Rename("acme/veiled")
	token := w.Token("alice")
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, c := range []struct {
		method, path, body string
		status             int
		to                 string
	}{
		{"GET", "repos/acme/app", "", 301, fmt.Sprintf("repositories/%d", w.repo.ID())},
		{"GET", "repos/ACME/App/issues?state=open&labels=a%20b", "", 301, fmt.Sprintf("repositories/%d/issues?state=open&labels=a%%20b", w.repo.ID())},
		{"POST", fmt.Sprintf("repos/acme/app/issues/%d/comments", n), `{"body":"hello"}`, 307, fmt.Sprintf("repositories/%d/issues/%d/comments", w.repo.ID(), n)},
		{"DELETE", fmt.Sprintf("repos/acme/app/issues/%d/labels/a%%2Fb", n), "", 307, fmt.Sprintf("repositories/%d/issues/%d/labels/a%%2Fb", w.repo.ID(), n)},
		{"GET", "repos/acme/gadgets", "", 200, ""},
		{"GET", "repos/acme/hidden", "", 404, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, w.API()+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := stay.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if to := strings.TrimPrefix(resp.Header.Get("Location"), w.API()); resp.StatusCode != c.status || to != c.to {
			t.Errorf("%s %s: %d to %q", c.method, c.path, resp.StatusCode, to)
		}
		if c.to == "" || c.method == http.MethodDelete {
			continue
		}
		var body any
		if c.body != "" {
			body = map[string]any{"body": "hello"}
		}
		if got := w.as(token, c.method, c.to, body); got.StatusCode >= 300 {
			t.Errorf("%s %s: %d %s", c.method, c.to, got.StatusCode, got.body)
		}
	}
	if all := w.repo.Issue(n).Comments; len(all) != 1 {
		t.Errorf("%d comments", len(all))
	}
	out, err := exec.Command("git", "-c", "credential.helper=", "ls-remote", w.URL+"/acme/app.git", "main").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "refs/heads/main") {
		t.Errorf("git: %v %s", err, out)
	}
	// Somebody takes the name.
	w.AddRepo("acme", "app", RepoOptions{}, map[string]string{"x": "x\n"})
	if got := w.as(token, "GET", "repos/acme/app", nil).ok(200); got["full_name"] != "acme/app" {
		t.Error("the former name leads to the old repository")
	}
}
