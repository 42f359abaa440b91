package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

func issue(n any) task.Key {
	return task.Key{Source: "github", Owner: "acme", Repo: "app", Type: "issue", ID: fmt.Sprint(n)}
}

var label = forge.Trigger{Label: "coding agent"}

// asked describes the requests since the last call.
func asked(w *world) string {
	var all []string
	for _, q := range w.Log() {
		all = append(all, fmt.Sprint(strings.TrimPrefix(q.Pattern, ""), " ", q.Status))
	}
	w.ResetLog()
	return strings.Join(all, "\n")
}

func TestWhatIsUnchangedCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	ken := w.Person("ken", forge.Write)
	f := w.open(nil)
	id := w.Open(ken, "x", "x", "coding agent")
	w.Comment(ken, id, "hello")
	pr := w.repo.OpenPull("ken", func() string { w.Push("b"); return "b" }(), "main", "t", "b")
	w.repo.Review(pr, "ken", "COMMENTED", "hm")
	since := w.clock.now()
	k := issue(id)
	calls := []struct {
		name string
		call func() error
		want string // where nothing changed
	}{
		{"Triggered", func() error { _, err := f.Triggered(t.Context(), acme, label); return err }, "GET /repos/{owner}/{repo}/issues 304"},
		{"CommentsSince", func() error { _, err := f.CommentsSince(t.Context(), acme, since); return err },
			"GET /repos/{owner}/{repo}/issues/comments 304\nGET /repos/{owner}/{repo}/pulls/comments 304\nGET /repos/{owner}/{repo}/issues 304\nGET /repos/{owner}/{repo}/pulls/{pull_number}/reviews 304"},
		{"Item", func() error { _, err := f.Item(t.Context(), k); return err },
			"GET /repos/{owner}/{repo}/issues/{issue_number} 304\nGET /repos/{owner}/{repo} 304"},
		{"Comments", func() error { _, _, err := f.Comments(t.Context(), k); return err }, "GET /repos/{owner}/{repo}/issues/{issue_number}/comments 304"},
		{"Asked", func() error { _, err := f.Asked(t.Context(), k, label); return err }, "GET /repos/{owner}/{repo}/issues/{issue_number}/events 304"},
		{"Post", func() error { _, err := f.Post(t.Context(), k, "m", "text"); return err }, "GET /repos/{owner}/{repo}/issues/{issue_number}/comments 304"},
		{"SetLabels", func() error { return f.SetLabels(t.Context(), k, []string{"coding agent"}, []string{"done"}) }, "GET /repos/{owner}/{repo}/issues/{issue_number}/labels 304"},
		{"EnsureLabels", func() error { return f.EnsureLabels(t.Context(), acme, []forge.Label{{Name: "Coding Agent"}}) }, "GET /repos/{owner}/{repo}/labels 304"},
		{"Permission", func() error { _, err := f.Permission(t.Context(), acme, ken); return err }, "GET /repos/{owner}/{repo}/collaborators/{username}/permission 304"},
		{"Repositories", func() error { _, err := f.Repositories(t.Context(), []string{"acme/app"}); return err }, "GET /repos/{owner}/{repo} 304"},
		{"Remote", func() error { _, err := f.Remote(t.Context(), acme); return err }, ""},
	}
	for range 2 { // what the calls themselves change is read once more
		for _, c := range calls {
			if err := c.call(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
	}
	w.ResetLog()
	for _, c := range calls {
		if err := c.call(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := asked(w); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestNothingIsLostBetweenPages takes something out of the list, or changes its
// order, after each page.
func TestNothingIsLostBetweenPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	ken := w.Person("ken", forge.Write)
	var all []string
	for n := range 350 {
		all = append(all, w.Open(ken, fmt.Sprint(n), "x", "coding agent"))
		if n%3 > 0 {
			w.Pass(time.Second)
		}
	}
	pages, gone := 0, map[string]bool{}
	w.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if q.Pattern != "GET /repos/{owner}/{repo}/issues" {
			return nil
		}
		return &githubtest.Fault{After: func() {
			if pages++; pages > 6 {
				return
			}
			w.Pass(time.Second)
			for _, id := range all[pages*10 : pages*10+3] {
				w.Close(ken, id)
				gone[id] = true
			}
			w.Label(ken, all[pages*10+5], fmt.Sprint("touched ", pages)) // goes to the end
			w.Label(ken, all[150+pages], "touched too")
		}}
	})
	got, err := w.open(nil).Triggered(t.Context(), acme, label)
	if err != nil || pages < 4 {
		t.Fatalf("%d pages, %v", pages, err)
	}
	seen := map[string]int{}
	for _, i := range got {
		seen[i.Key.ID]++
	}
	for _, id := range all {
		if seen[id] != 1 && !gone[id] || seen[id] > 1 {
			t.Errorf("#%s is there %d times", id, seen[id])
		}
	}

	id := w.Open(ken, "x", "x")
	var notes []int64
	for n := range 350 {
		notes = append(notes, w.note(w.Comment(ken, id, fmt.Sprint(n))))
	}
	f := w.open(nil)
	if _, err := f.Self(t.Context()); err != nil {
		t.Fatal(err)
	}
	pages = 0
	w.OnRequest(func(*githubtest.Request) *githubtest.Fault {
		return &githubtest.Fault{After: func() {
			if pages++; pages <= 4 {
				w.repo.DeleteComment(notes[pages])
				w.repo.DeleteComment(notes[100+pages])
			}
		}}
	})
	comments, _, err := f.Comments(t.Context(), issue(id))
	if err != nil || pages < 4 {
		t.Fatalf("%d pages, %v", pages, err)
	}
	seen = map[string]int{}
	for _, c := range comments {
		seen[c.Body]++
	}
	for n := range notes {
		if deleted := n >= 1 && n <= 4 || n >= 101 && n <= 104; seen[fmt.Sprint(n)] != 1 && !deleted {
			t.Errorf("comment %d is there %d times", n, seen[fmt.Sprint(n)])
		}
	}
}

const (
	postComment = "POST /repos/{owner}/{repo}/issues/{issue_number}/comments"
	postPull    = "POST /repos/{owner}/{repo}/pulls"
)

func TestALostAnswerIsLookedFor(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]githubtest.Fault{
		"done, no answer": {DropAfter: true}, "not done, no answer": {Drop: true}, "done, half an answer": {Cut: true},
		"not done, 502": githubtest.Broken(502), "not done, 500": githubtest.Broken(500),
	} {
		for times := 1; times <= 3; times++ {
			t.Run(fmt.Sprint(name, " ", times), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, githubtest.Options{})
				id := w.Open(w.Person("ken", forge.Write), "x", "x")
				f := w.open(nil)
				done := fault.DropAfter || fault.Cut
				w.FailNext(postComment, times, fault)
				c, err := f.Post(t.Context(), issue(id), "m", "text")
				if lost := !done && times == 3; lost != forge.Is(err, forge.Unavailable) {
					t.Fatalf("%+v, %v", c, err)
				}
				want := times + 1
				if done {
					want = 1
				} else if times == 3 {
					want = 3
				}
				if n := w.Count(postComment); n != want {
					t.Errorf("sent %d times, want %d", n, want)
				}
				if _, err := f.Post(t.Context(), issue(id), "m", "text 2"); err != nil || len(w.Notes(id)) != 1 {
					if done || times < 3 || err != nil {
						t.Errorf("%q, %v", w.Notes(id), err)
					}
				}
				w.FailNext("", 100, githubtest.Fault{}) // what was not met
				w.Push("fix")
				w.FailNext(postPull, 1, fault)
				p := forge.Proposal{Head: "fix", Base: "main", Title: "t", Body: "b", Marker: "m", Draft: true}
				i, err := f.Propose(t.Context(), acme, p)
				if err != nil || len(w.repo.Pulls()) != 1 || !i.Pull.Draft {
					t.Errorf("%+v, %d pull requests, %v", i, len(w.repo.Pulls()), err)
				}
			})
		}
	}
}

// TestALateAnswer has the comment appear only after it was looked for and sent again.
func TestALateAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	id := w.Open(w.Person("ken", forge.Write), "x", "x")
	late := "text\n\n<!-- tori:m -->"
	sent := 0
	w.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if q.Pattern != postComment {
			return nil
		}
		if sent++; sent == 1 {
			return &githubtest.Fault{Drop: true}
		}
		return &githubtest.Fault{After: func() { w.repo.Comment(w.number(id), "tori-bot", late) }}
	})
	f := w.open(nil)
	first, err := f.Post(t.Context(), issue(id), "m", "text")
	if err != nil || len(w.Notes(id)) != 2 {
		t.Fatalf("%q, %v", w.Notes(id), err)
	}
	w.OnRequest(nil)
	again, err := w.open(nil).Post(t.Context(), issue(id), "m", "text")
	if err != nil || len(w.Notes(id)) != 1 || again.ID != first.ID {
		t.Errorf("%q, %+v, %v", w.Notes(id), again, err)
	}
}

func TestProposeWhereItIsHard(t *testing.T) {
	t.Parallel()
	p := forge.Proposal{Head: "fix", Base: "main", Title: "t", Body: "b", Marker: "m", Draft: true}
	t.Run("no drafts", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, githubtest.Options{})
		w.repo.Set(func(o *githubtest.RepoOptions) { o.NoDrafts = true })
		w.Push("fix")
		if i, err := w.open(nil).Propose(t.Context(), acme, p); err != nil || i.Pull.Draft {
			t.Errorf("%+v, %v", i, err)
		}
	})
	t.Run("another process is faster", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, githubtest.Options{})
		w.Push("fix")
		listed := false
		w.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
			if listed || q.Pattern != "GET /repos/{owner}/{repo}/pulls" {
				return nil
			}
			listed = true
			return &githubtest.Fault{After: func() { w.repo.OpenPull("tori-bot", "fix", "main", "other", "b\n\n<!-- tori:n -->") }}
		})
		i, err := w.open(nil).Propose(t.Context(), acme, p)
		if err != nil || len(w.repo.Pulls()) != 1 || i.Title != "t" || w.repo.Pulls()[0].Body != "b\n\n<!-- tori:m -->" {
			t.Errorf("%+v, %v", i, err)
		}
	})
	t.Run("pointed at another base", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, githubtest.Options{})
		w.Push("release")
		w.Push("fix")
		old := p
		old.Base = "release"
		f := w.open(nil)
		first, err := f.Propose(t.Context(), acme, old)
		if err != nil {
			t.Fatal(err)
		}
		second, err := f.Propose(t.Context(), acme, p)
		if err != nil || second.Key != first.Key || second.Pull.Base.Name != "release" {
			t.Errorf("%+v, %v", second, err)
		}
		p := p
		p.Marker = "other"
		if third, err := f.Propose(t.Context(), acme, p); err != nil || third.Key == first.Key {
			t.Errorf("%+v, %v", third, err)
		}
	})
	t.Run("the repository was given away since", func(t *testing.T) {
		t.Parallel()
		for _, closed := range []bool{false, true} {
			w := newWorld(t, githubtest.Options{})
			w.Push("fix")
			f := w.open(nil)
			first, err := f.Propose(t.Context(), acme, p)
			if err != nil {
				t.Fatal(err)
			}
			if closed {
				w.repo.Close(1, "tori-bot")
			}
			w.repo.Rename("others/thing")
			second, err := f.Propose(t.Context(), acme, p)
			if err != nil || second.Key.ID != first.Key.ID || second.Open == closed || len(w.repo.Pulls()) != 1 {
				t.Errorf("closed %v: %+v, %v, %d pull requests", closed, second, err, len(w.repo.Pulls()))
			}
		}
	})
	t.Run("people added to its text", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, githubtest.Options{})
		w.Push("fix")
		f := w.open(nil)
		first, err := f.Propose(t.Context(), acme, p)
		if err != nil {
			t.Fatal(err)
		}
		w.repo.Edit(w.number(first.Key.ID), "tori-bot", "t", "b\r\n\r\n<!-- tori:m -->\r\n\r\nRelease note: none")
		for marker, text := range map[string]string{"m": "b", "other": "more"} {
			p := p
			p.Marker, p.Body = marker, text
			again, err := f.Propose(t.Context(), acme, p)
			if body := w.repo.Pulls()[0].Body; err != nil || again.Key != first.Key || again.Pull.Marker != marker ||
				strings.ReplaceAll(body, "\r", "") != text+"\n\n<!-- tori:"+marker+" -->\n\nRelease note: none" {
				t.Errorf("%+v, %v, %q", again, err, body)
			}
		}
	})
	t.Run("people wrote another text", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, githubtest.Options{})
		w.Push("fix")
		f := w.open(nil)
		first, err := f.Propose(t.Context(), acme, p)
		if err != nil {
			t.Fatal(err)
		}
		w.repo.Edit(w.number(first.Key.ID), "tori-bot", "mine", "Another text.")
		if again, err := f.Propose(t.Context(), acme, p); err != nil || again.Key != first.Key || w.repo.Pulls()[0].Body != "Another text." || w.repo.Pulls()[0].Title != "mine" {
			t.Errorf("%+v, %v, %+v", again, err, w.repo.Pulls()[0])
		}
	})
	t.Run("somebody else proposes the same branch", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, githubtest.Options{})
		w.Push("fix")
		w.Person("eve", forge.Write)
		w.repo.OpenPull("eve", "fix", "main", "mine", "b\n\n<!-- tori:m -->")
		if i, err := w.open(nil).Propose(t.Context(), acme, p); !forge.Is(err, forge.Invalid) || w.repo.Pulls()[0].Title != "mine" {
			t.Errorf("%+v, %v, %+v", i, err, w.repo.Pulls()[0])
		}
	})
	t.Run("somebody's copy has the same branch", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, githubtest.Options{})
		w.Push("fix")
		eve := w.Person("eve", forge.Read)
		w.repo.Fork(eve.Login)
		n := w.repo.OpenPull("eve", "eve:fix", "main", "t", "b\n\n<!-- tori:m -->")
		if i, err := w.open(nil).Propose(t.Context(), acme, p); err != nil || i.Key.ID == fmt.Sprint(n) {
			t.Errorf("%+v, %v", i, err)
		}
	})
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	with := func(f githubtest.Fault, header ...string) githubtest.Fault {
		f.Header = http.Header{}
		for i := 0; i < len(header); i += 2 {
			f.Header.Set(header[i], header[i+1])
		}
		return f
	}
	for _, c := range []struct {
		fault githubtest.Fault
		kind  forge.Kind
		text  string
	}{
		{githubtest.Unauthorized(), forge.Unauthorized, "set github.token"},
		{with(githubtest.Forbidden(), "X-Accepted-GitHub-Permissions", "issues=read"), forge.Forbidden, "give it issues=read"},
		{with(githubtest.Fault{Status: 403, Message: "Must have admin rights to Repository."}, "X-Accepted-OAuth-Scopes", "repo", "X-OAuth-Scopes", "public_repo, user"), forge.Forbidden, "one of: repo"},
		{with(githubtest.Fault{Status: 403, Message: "Must have admin rights to Repository."}, "X-Accepted-OAuth-Scopes", "repo", "X-OAuth-Scopes", "repo"), forge.Forbidden, "locked"},
		{with(githubtest.Fault{Status: 403, Message: "Resource protected by organization SAML enforcement."}, "X-GitHub-SSO", "required; url=https://github.com/orgs/acme/sso?x=1"), forge.Forbidden, "https://github.com/orgs/acme/sso?x=1"},
		{githubtest.NotFound(), forge.NotFound, "private"},
		{githubtest.Gone(), forge.Gone, "switched off"},
		{githubtest.Unprocessable("Validation Failed"), forge.Invalid, "Validation Failed"},
		{githubtest.Fault{Status: 409, Message: "Conflict"}, forge.Conflict, "changed meanwhile"},
		{githubtest.Broken(503), forge.Unavailable, "503"},
		{githubtest.Fault{Drop: true}, forge.Unavailable, "no answer"},
		{githubtest.Fault{Cut: true}, forge.Unavailable, "no answer"},
		{with(githubtest.SecondaryLimited(403, 0)), forge.RateLimited, "slow down"},
		{githubtest.SecondaryLimited(429, 90*time.Second), forge.RateLimited, "1m30s"},
	} {
		w := newWorld(t, githubtest.Options{OnViolation: func(githubtest.Violation) {}})
		f := w.open(nil)
		w.OnRequest(func(*githubtest.Request) *githubtest.Fault { return &c.fault })
		_, err := f.Triggered(t.Context(), acme, label)
		var e *forge.Error
		if !errors.As(err, &e) || e.Kind != c.kind || e.Status != c.fault.Status || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "acme/app") {
			t.Errorf("%d: %v, want %s and %q", c.fault.Status, err, c.kind, c.text)
			continue
		}
		if ja := i18n.Japanese.Error(err); ja == err.Error() || strings.Contains(ja, "%!") || strings.Contains(err.Error()+ja, w.token) {
			t.Errorf("%s", ja)
		}
		if c.kind == forge.RateLimited && e.Wait < time.Minute {
			t.Errorf("%v: wait %s", err, e.Wait)
		}
	}
}

func TestTheTokenStaysAtItsHost(t *testing.T) {
	t.Parallel()
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r.Header.Get("Authorization")) }))
	defer other.Close()
	for _, status := range []int{301, 302, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, status)
		}))
		f, err := New(Options{Login: rest.Login{URL: server.URL, Token: "secret", RetryDelay: time.Millisecond}, WriteSpacing: -1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Item(t.Context(), issue(1))
		lerr := f.SetLabels(t.Context(), issue(1), []string{"x"}, nil)
		server.Close()
		if !forge.Is(err, forge.Unavailable) || lerr == nil || seen != nil {
			t.Errorf("%d: %v, %v, the other host saw %q", status, err, lerr, seen)
		}
	}
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"<html>proxy</html>", `{"message":`, `"x"`, `[null]`, `[{"user":null,"labels":[null],"assignees":[null],"state":"open"}]`, "", "null"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		f, err := New(Options{Login: rest.Login{URL: server.URL, Token: "secret", RetryDelay: time.Millisecond}, WriteSpacing: -1})
		if err != nil {
			t.Fatal(err)
		}
		calls := map[string]error{}
		_, calls["Triggered"] = f.Triggered(t.Context(), acme, label)
		_, calls["Item"] = f.Item(t.Context(), issue(1))
		_, _, calls["Comments"] = f.Comments(t.Context(), task.Key{Owner: "acme", Repo: "app", Type: "pull_request", ID: "1"})
		_, calls["CommentsSince"] = f.CommentsSince(t.Context(), acme, time.Time{})
		_, calls["Asked"] = f.Asked(t.Context(), issue(1), label)
		_, calls["CheckRuns"] = f.CheckRuns(t.Context(), acme, "abc")
		_, calls["Propose"] = f.Propose(t.Context(), acme, forge.Proposal{Head: "a", Base: "b", Marker: "m"})
		for name, err := range calls {
			var e *forge.Error
			if err != nil && !errors.As(err, &e) && !errors.Is(err, forge.ErrNotAsked) {
				t.Errorf("%s of %q: %v", name, body, err)
			}
		}
		server.Close()
	}
}

// TestCursors has a server that points to the next page by a cursor and does not
// tell the last.
func TestCursors(t *testing.T) {
	t.Parallel()
	const many = 230
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		first := 0
		if since, err := time.Parse(time.RFC3339, q.Get("since")); err == nil {
			first = int(since.Sub(start) / time.Second)
		}
		if page, err := strconv.Atoi(q.Get("page")); err == nil {
			first = (page - 1) * 100
		}
		last := min(first+100, many)
		if last < many {
			next := "after=abc"
			if strings.HasSuffix(r.URL.Path, "/events") {
				next = fmt.Sprint("page=", first/100+2)
			}
			w.Header().Set("Link", "<http://"+r.Host+r.URL.Path+"?"+next+`>; rel="next"`)
		}
		var all []map[string]any
		for n := first; n < last; n++ {
			e := map[string]any{"id": n + 1, "number": n + 1, "state": "open", "updated_at": start.Add(time.Duration(n) * time.Second), "labels": []any{map[string]any{"name": label.Label}}}
			if strings.HasSuffix(r.URL.Path, "/events") {
				e = map[string]any{"id": n + 1, "event": "labeled", "label": map[string]any{"name": label.Label}, "actor": map[string]any{"id": n + 1, "login": "x"}}
			}
			all = append(all, e)
		}
		_ = json.NewEncoder(w).Encode(all)
	}))
	defer server.Close()
	f, err := New(Options{Login: rest.Login{URL: server.URL, Token: "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Triggered(t.Context(), acme, label); err != nil || len(got) != many {
		t.Errorf("%d items, %v", len(got), err)
	}
	if a, err := f.Asked(t.Context(), issue(1), label); err != nil || a.By.ID != many {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestPeopleWhoAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	ken := w.Person("ken", forge.Admin)
	id := w.Open(ken, "x", "x", "coding agent")
	w.Comment(ken, id, "said")
	w.DeleteUser("ken")
	f := w.open(nil)
	all, _, err := f.Comments(t.Context(), issue(id))
	if err != nil || len(all) != 1 || all[0].Author.Login != rest.Ghost || all[0].Author.ID == ken.ID {
		t.Errorf("%+v, %v", all, err)
	}
	if a, err := f.Asked(t.Context(), issue(id), label); err != nil || a.By.Login != rest.Ghost || a.By.ID == ken.ID {
		t.Errorf("%+v, %v", a, err)
	}
	if p := person(nil); p.Login != rest.Ghost || p.ID != 0 {
		t.Errorf("%+v", p)
	}
}

func TestAMovedIssueIsGone(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, "/api/v3") {
		case "/repos/acme/app/issues/5":
			http.Redirect(w, r, "/api/v3/repositories/9/issues/5", http.StatusMovedPermanently)
		case "/repositories/9/issues/5":
			_, _ = w.Write([]byte(`{"number":5,"state":"open","html_url":"https://x/acme/other/issues/5","repository_url":"https://x/repos/acme/other"}`))
		case "/repos/acme/app/issues/6": // of the repository under its new name
			_, _ = w.Write([]byte(`{"number":6,"state":"open","repository_url":"https://x/repos/Acme/app2"}`))
		case "/repos/acme/app/issues/7": // renamed behind the first answer
			name := "app2"
			if reads.Add(1) == 1 {
				name = "app"
			}
			_, _ = w.Write([]byte(`{"number":7,"state":"open","repository_url":"https://x/repos/acme/` + name + `"}`))
		case "/repos/acme/app":
			name := "app"
			if r.Header.Get("X-Test") == "" {
				name = "app2"
			}
			_, _ = w.Write([]byte(`{"name":"` + name + `","full_name":"acme/` + name + `","owner":{"login":"acme"}}`))
		}
	}))
	defer server.Close()
	f, err := New(Options{Login: rest.Login{URL: server.URL, Token: "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Item(t.Context(), issue(5)); !forge.Is(err, forge.Gone) || !strings.Contains(err.Error(), "acme/other/issues/5") {
		t.Errorf("%v", err)
	}
	for _, id := range []int{6, 7} {
		if i, err := f.Item(t.Context(), issue(id)); err != nil || i.Repository.Name != "app2" {
			t.Errorf("%d: %+v, %v", id, i, err)
		}
	}
}

func TestAppsOfSeveralOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	for _, name := range []string{"beta/one", "beta/two", "gamma/x"} {
		owner, repo, _ := strings.Cut(name, "/")
		w.AddRepo(owner, repo, githubtest.RepoOptions{Private: true, Archived: repo == "two"}, map[string]string{"a": "b"})
	}
	app := App{ID: 7, Key: w.AddApp(githubtest.App{ID: 7, Slug: "tori"})}
	app.Key = []byte(strings.ReplaceAll(string(app.Key), "\n", `\n`)) // as from an environment
	w.Install("tori", "acme")
	beta := w.Install("tori", "beta")
	f := w.open(func(o *Options) { o.Token, o.App = "", app })
	all, err := f.Repositories(t.Context(), []string{"acme/app", "beta/*", "gamma/x"})
	var names []string
	for _, r := range all {
		names = append(names, r.String())
	}
	if !slices.Equal(names, []string{"acme/app", "beta/one"}) || !forge.Is(err, forge.NotFound) || !strings.Contains(err.Error(), "gamma/x") {
		t.Errorf("%q, %v", names, err)
	}
	self, err := f.Self(t.Context())
	if err != nil || self.Login != "tori[bot]" || !self.Bot || self.ID == 0 {
		t.Errorf("%+v, %v", self, err)
	}
	one := forge.Repo{Owner: "beta", Name: "one"}
	r, err := f.Remote(t.Context(), one)
	if err != nil || r.URL != w.URL+"/beta/one.git" || r.User != "x-access-token" || !slices.Contains(w.Tokens(), r.Password) {
		t.Fatalf("%+v, %v", r, err)
	}
	w.ResetLog()
	if again, err := f.Remote(t.Context(), one); err != nil || again != r || asked(w) != "" {
		t.Errorf("%+v, %v", again, err)
	}
	w.clock.add(55 * time.Minute) // five are left of the hour
	if again, err := f.Remote(t.Context(), one); err != nil || again.Password == r.Password {
		t.Errorf("%+v, %v", again, err)
	}
	// A token that was revoked fails one call, not all until it would have expired.
	for _, secret := range w.Tokens() {
		w.Revoke(secret)
	}
	if _, err := f.Triggered(t.Context(), one, label); !forge.Is(err, forge.Unauthorized) {
		t.Errorf("%v", err)
	}
	if _, err := f.Triggered(t.Context(), one, label); err != nil {
		t.Errorf("%v", err)
	}
	w.Suspend(beta)
	for _, secret := range w.Tokens() {
		w.Revoke(secret)
	}
	_, _ = f.Triggered(t.Context(), one, label) // it learns that the token is gone
	if _, err := f.Triggered(t.Context(), one, label); err == nil || !strings.Contains(err.Error(), "nstall") {
		t.Errorf("%v", err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	r := forge.Repo{Owner: "o", Name: "r"}
	for in, want := range map[string]string{
		"": "https://api.github.com/ https://api.github.com/graphql https://github.com/o/r.git", "https://github.com/": "https://api.github.com/ https://api.github.com/graphql https://github.com/o/r.git",
		"https://GitHub.com":               "https://api.github.com/ https://api.github.com/graphql https://github.com/o/r.git",
		"https://api.github.com":           "https://api.github.com/ https://api.github.com/graphql https://github.com/o/r.git",
		"https://ghe.example":              "https://ghe.example/api/v3/ https://ghe.example/api/graphql https://ghe.example/o/r.git",
		"https://ghe.example:8443/api/v3/": "https://ghe.example:8443/api/v3/ https://ghe.example:8443/api/graphql https://ghe.example:8443/o/r.git",
		"https://x.example/github/":        "https://x.example/github/api/v3/ https://x.example/github/api/graphql https://x.example/github/o/r.git",
		"https://octo.ghe.com":             "https://api.octo.ghe.com/ https://api.octo.ghe.com/graphql https://octo.ghe.com/o/r.git",
		"http://127.0.0.1:80":              "http://127.0.0.1:80/api/v3/ http://127.0.0.1:80/api/graphql http://127.0.0.1:80/o/r.git",
		"http://ghe.example":               "", "ghe.example": "", "https://me:secret@ghe.example": "", "https://ghe.example?x=1": "", "ssh://ghe.example": "", "https://": "", "http://127.evil.example": "",
	} {
		a, err := parseAddress(in)
		got := ""
		if err == nil {
			got = a.api.String() + " " + a.graphql + " " + rest.Git(a.web, r)
		}
		if got != want || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for key, o := range map[string]Options{
		"github.no_login": {}, "github.both_logins": {Login: rest.Login{Token: "x"}, App: App{ID: 1}}, "rest.bad_token": {Login: rest.Login{Token: "a b"}},
		"github.bad_key": {App: App{ID: 1, Key: []byte("secret words")}}, "rest.url": {Login: rest.Login{Token: "x", URL: "ftp://x"}},
	} {
		_, err := New(o)
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != key || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A pattern that fails keeps none of the others back.
func TestAPatternThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	w.AddRepo("acme", "shut", githubtest.RepoOptions{}, map[string]string{"a": "b\n"}).Allow("tori-bot", "write")
	w.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if strings.HasSuffix(q.Path, "/repos/acme/shut") {
			f := githubtest.Forbidden()
			return &f
		}
		return nil
	})
	all, err := w.open(nil).Repositories(t.Context(), []string{"acme/shut", "acme/nowhere", acme.String()})
	if len(all) != 1 || all[0].Repo != acme || !forge.Is(err, forge.Forbidden) || !strings.Contains(err.Error(), "acme/nowhere") {
		t.Errorf("%v, %v", all, err)
	}
}

// Who took a label off is told from a label that nobody ever put on, and our pull
// requests from others of the account.
func TestWhatIsOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	ken := w.Person("ken", forge.Write)
	f := w.open(nil)
	id := w.Open(ken, "x", "x", "coding agent")
	n, _ := strconv.Atoi(id)
	w.repo.Unlabel(n, "coding agent", "ken")
	_, err := f.Asked(t.Context(), issue(id), label)
	var taken *forge.TriggerRemoved
	if !errors.As(err, &taken) || taken.By.Login != "ken" || taken.At.IsZero() || !errors.Is(err, forge.ErrNotAsked) {
		t.Errorf("taken off: %v", err)
	}
	if _, err := f.Asked(t.Context(), issue(id), forge.Trigger{Label: "other"}); !errors.Is(err, forge.ErrNotAsked) || errors.As(err, &taken) {
		t.Errorf("never on it: %v", err)
	}
	if age := w.clock.now().Sub(f.ServerTime()); age < 0 || age > 2*time.Second {
		t.Errorf("%s behind the server", age)
	}
}

// GitHub tells by GraphQL alone which threads are settled: those are marked with all that was
// said in them, and not answered.
func TestSettledThreads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	ken := w.Person("ken", forge.Write)
	w.repo.Commit("fix", "ken", "x", map[string]string{"a.txt": "1\n2\n"})
	n := w.repo.OpenPull("ken", "fix", "main", "x", "x")
	_, first := w.repo.Review(n, ken.Login, "COMMENTED", "", githubtest.Line{Path: "a.txt", Line: 1, Body: "why?"}, githubtest.Line{Path: "a.txt", Line: 2, Body: "typo"})
	w.repo.Review(n, ken.Login, "COMMENTED", "", githubtest.Line{Path: "a.txt", Line: 2, Body: "ah", ReplyTo: first[1]})
	w.repo.Resolve(n, first[1])
	f := w.open(nil)
	k := task.Key{Source: "github", Owner: "acme", Repo: "app", Type: task.TypePull, ID: strconv.Itoa(n)}
	all, _, err := f.Comments(t.Context(), k)
	settled := ""
	for _, c := range all {
		settled += fmt.Sprintf("%s %t ", c.Body, c.Resolved)
	}
	if err != nil || settled != "why? false typo true ah true " {
		t.Errorf("%q %v", settled, err)
	}
	for i, want := range []bool{true, false} {
		c, err := f.Reply(t.Context(), k, fmt.Sprint("line/", first[i]), fmt.Sprint("m.", i), "because")
		if (err == nil) != want || want != (c.ID != "") || !want && !forge.Is(err, forge.Gone) {
			t.Errorf("%+v %v", c, err)
		}
	}
}
