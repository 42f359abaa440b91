package github

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/forge/rest"
)

// Who changed the text or the title of an issue or a pull request after a time is
// told by number; one who left by none.
func TestEditedSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	ken, eve, mal := w.Person("ken", forge.Write), w.Person("eve", forge.Read), w.Person("mal", forge.Read)
	w.Push("fix")
	n := w.repo.OpenIssue("eve", "t", "b")
	p := w.repo.OpenPull("ken", "fix", "main", "t", "b")
	f := w.open(nil)
	since := w.clock.now()
	told := func(n int, want ...forge.Person) {
		t.Helper()
		k := issue(n)
		got, err := f.EditedSince(t.Context(), k, since)
		if err != nil || len(got) != len(want) {
			t.Fatalf("#%d: %+v, %v", n, got, err)
		}
		for i := range want {
			if got[i].ID != want[i].ID || got[i].Login != want[i].Login || got[i].Bot != want[i].Bot {
				t.Errorf("#%d: %+v, not %+v", n, got[i], want[i])
			}
		}
	}
	w.clock.add(-time.Minute)
	w.repo.Edit(n, "eve", "t", "earlier")
	w.clock.add(2 * time.Minute)
	told(n)
	w.repo.Edit(n, "eve", "t", "later")
	w.repo.Edit(n, "ken", "t", "and later")
	w.repo.Edit(n, "eve", "t", "again")
	told(n, eve, ken)
	w.repo.Edit(n, "mal", "another title", "again")
	told(n, eve, ken, mal)
	w.repo.Edit(p, "mal", "t", "later")
	told(p, mal)
	w.DeleteUser("mal")
	told(p, forge.Person{Login: rest.Ghost})
	w.repo.Rename("acme/other")
	told(p, forge.Person{Login: rest.Ghost})
	if _, err := f.EditedSince(t.Context(), issue(99), since); !forge.Is(err, forge.NotFound) || !strings.Contains(err.Error(), "number of 99") {
		t.Errorf("%v", err)
	}
	if text := w.Log(); text[len(text)-1].Path != "/graphql" {
		t.Errorf("%+v", text[len(text)-1])
	}
	for _, c := range []struct {
		fault githubtest.Fault
		kind  forge.Kind
	}{
		{githubtest.NotFound(), forge.NotFound}, {githubtest.Forbidden(), forge.Forbidden}, {githubtest.Broken(502), forge.Unavailable},
		{githubtest.RateLimited(403, w.clock.now().Add(time.Hour)), forge.RateLimited},
	} {
		w.OnRequest(func(*githubtest.Request) *githubtest.Fault { return &c.fault })
		if _, err := f.EditedSince(t.Context(), issue(n), since); !forge.Is(err, c.kind) {
			t.Errorf("%+v: %v", c.fault, err)
		}
	}
}

// What servers say in the words of GraphQL, and what is no answer at all.
func TestEditsThatAreRefused(t *testing.T) {
	t.Parallel()
	for body, kind := range map[string]forge.Kind{
		`{"errors":[{"message":"Field 'userContentEdits' doesn't exist on type 'Issue'","extensions":{"code":"undefinedField"}}]}`: forge.Invalid,
		`{"data":{"repository":null},"errors":[{"type":"FORBIDDEN","message":"Resource not accessible by integration"}]}`:          forge.Forbidden,
		`{"data":null,"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`:                                     forge.RateLimited,
		`<html>proxy</html>`:          forge.Unavailable,
		`{"data":{"repository":"x"}}`: forge.Unavailable,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		f, err := New(Options{Login: rest.Login{URL: server.URL, Token: "secret", RetryDelay: time.Millisecond}, WriteSpacing: -1})
		if err != nil {
			t.Fatal(err)
		}
		if all, err := f.EditedSince(t.Context(), issue(1), time.Time{}); !forge.Is(err, kind) || all != nil {
			t.Errorf("%s: %+v, %v", body, all, err)
		}
		server.Close()
	}
	// Of more edits than are shown the rest counts as somebody's.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data":{"repository":{"issueOrPullRequest":{"lastEditedAt":"2026-01-02T00:00:00Z","userContentEdits":{"totalCount":101,"nodes":[]},"timelineItems":{"nodes":[]}}}}}`))
	}))
	defer server.Close()
	f, err := New(Options{Login: rest.Login{URL: server.URL, Token: "secret"}, WriteSpacing: -1})
	if err != nil {
		t.Fatal(err)
	}
	for day, want := range map[int]int{1: 1, 3: 0} {
		if all, err := f.EditedSince(t.Context(), issue(1), time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)); err != nil || len(all) != want {
			t.Errorf("%+v, %v", all, err)
		}
	}
}
