package githubtest

import (
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// needDescription skips a test where setup.sh has not been run.
func needDescription(t *testing.T) *description {
	t.Helper()
	d, err := readOnce()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("GitHub's description is not installed: run scripts/setup.sh")
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Every operation of the server is one of GitHub's, and its schemas compile.
func TestDescriptionHasEveryOperation(t *testing.T) {
	t.Parallel()
	d := needDescription(t)
	w := newWorld(t, Options{})
	if w.ops == nil {
		t.Fatal("the description is installed and nothing is validated")
	}
	n := 0
	for _, paths := range w.mux.routes {
		for _, p := range paths {
			if p.pattern == graphqlPattern {
				continue
			}
			n++
			op, err := d.operation(p.pattern)
			if err != nil {
				t.Error(err)
			} else if op == nil {
				t.Errorf("GitHub describes no %s", p.pattern)
			} else if len(op.answers) == 0 {
				t.Errorf("%s has no answers", p.pattern)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d operations", n)
	}
}

// violations collects what a server reports instead of failing.
type violations struct {
	mu  sync.Mutex
	all []Violation
}

func (v *violations) add(one Violation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, one)
}

func (v *violations) take() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for _, one := range v.all {
		out = append(out, one.String())
	}
	v.all = nil
	return out
}

func TestWrongRequestsAreSeen(t *testing.T) {
	t.Parallel()
	needDescription(t)
	var seen violations
	w := newWorld(t, Options{OnViolation: seen.add})
	w.repo.OpenIssue("alice", "t", "b")
	w.repo.Commit("x", "alice", "x", map[string]string{"x": "x"})
	for _, c := range []struct {
		name, method, path string
		body               any
		want               []string // parts of the one violation; nil for none
	}{
		{"good", "GET", "repos/acme/app/issues?state=all&per_page=5&page=1&sort=updated&since=2026-01-01T00:00:00Z", nil, nil},
		{"parameter that is not there", "GET", "repos/acme/app/issues/1/comments?sort=updated", nil, []string{"comments: query: sort: the operation has no such parameter", `["updated"]`}},
		{"parameter of another type", "GET", "repos/acme/app/issues?per_page=many", nil, []string{"query: per_page", "integer", `"many"`}},
		{"parameter out of its list", "GET", "repos/acme/app/issues?state=ajar", nil, []string{"query: state", `"ajar"`}},
		{"date that is none", "GET", "repos/acme/app/issues?since=yesterday", nil, []string{"query: since", "date-time", `"yesterday"`}},
		{"number in the path", "GET", "repos/acme/app/issues/one", nil, []string{"path: issue_number", "integer"}},
		{"field of another type", "POST", "repos/acme/app/pulls", map[string]any{"title": "t", "head": "x", "base": "main", "draft": "yes"}, []string{"body: /draft", "boolean", `"yes"`}},
		{"field missing", "POST", "repos/acme/app/pulls", map[string]any{"title": "t", "head": "x"}, []string{"body", "missing property 'base'"}},
		{"field that is not there", "POST", "repos/acme/app/issues/1/comments", map[string]any{"body": "b", "text": "t"}, []string{"body: /text: the operation has no such field", `"t"`}},
		{"body where none is", "GET", "repos/acme/app", map[string]any{"a": 1}, []string{"takes no body"}},
		{"no body where one is", "POST", "repos/acme/app/issues/1/comments", nil, []string{"the body is required"}},
	} {
		w.do(c.method, c.path, c.body)
		got := seen.take()
		if c.want == nil && len(got) > 0 || c.want != nil && len(got) != 1 {
			t.Errorf("%s: %d violations, want %d: %v", c.name, len(got), min(1, len(c.want)), got)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(got[0], part) {
				t.Errorf("%s: %s, want %q in it", c.name, got[0], part)
			}
		}
	}
}

// Answers are validated too: each of these is a true answer with one thing spoilt.
func TestWrongAnswersAreSeen(t *testing.T) {
	t.Parallel()
	needDescription(t)
	var seen violations
	w := newWorld(t, Options{OnViolation: seen.add})
	w.repo.OpenIssue("alice", "t", "b", "agent")
	w.repo.Comment(1, "bob", "c")
	issue := w.do("GET", "repos/acme/app/issues/1", nil).ok(200)
	comment := w.do("GET", "repos/acme/app/issues/1/comments", nil).list(200)[0]
	event := w.do("GET", "repos/acme/app/issues/1/events", nil).list(200)[0]
	with := func(o map[string]any, name string, v any) any {
		o = maps.Clone(o)
		if o[name] = v; v == nil {
			delete(o, name)
		}
		return o
	}
	if got := seen.take(); got != nil {
		t.Fatalf("true answers: %v", got)
	}
	for _, c := range []struct {
		name, pattern string
		status        int
		body          any
		want          []string
	}{
		{"true", "GET /repos/{owner}/{repo}/issues/{issue_number}", 200, issue, nil},
		{"a type", "GET /repos/{owner}/{repo}/issues/{issue_number}", 200, with(issue, "number", "1"), []string{"/number", "integer", `"1"`}},
		{"a field", "GET /repos/{owner}/{repo}/issues/{issue_number}", 200, with(issue, "user", nil), []string{"missing property 'user'"}},
		{"a date", "GET /repos/{owner}/{repo}/issues/{issue_number}", 200, with(issue, "updated_at", "now"), []string{"/updated_at", "date-time"}},
		{"an address", "GET /repos/{owner}/{repo}/issues/comments/{comment_id}", 200, with(comment, "html_url", "issues/1"), []string{"/html_url", "uri"}},
		{"deep in a list", "GET /repos/{owner}/{repo}/issues/{issue_number}/comments", 200,
			[]any{comment, with(comment, "user", with(comment["user"].(map[string]any), "id", "x"))}, []string{"/1/user/id", `"x"`}},
		{"an event's own field", "GET /repos/{owner}/{repo}/issues/{issue_number}/events", 200, []any{with(event, "label", nil)}, []string{"/0", "missing property 'label'"}},
		{"a status", "GET /repos/{owner}/{repo}/issues/{issue_number}", 202, issue, []string{"answer 202", "no such answer"}},
		{"a body too many", "DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}", 204, comment, []string{"the answer has no body"}},
		{"a refusal", "GET /repos/{owner}/{repo}/issues/{issue_number}", 403, map[string]any{"message": 1}, []string{"/message", "string"}},
	} {
		o := &reply{answer: &answer{status: c.status, body: c.body}, header: http.Header{}}
		o.encode()
		w.validateAnswer(c.pattern, o)
		got := seen.take()
		if (len(got) > 0) != (c.want != nil) {
			t.Errorf("%s: violations %v, want %v", c.name, got, c.want)
			continue
		}
		for _, part := range c.want {
			if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, part) }) {
				t.Errorf("%s: %v, want %q in it", c.name, got, part)
			}
		}
	}
}

// What is not taken by the test fails it, and says what, where and why.
func TestViolationsFailTheTest(t *testing.T) {
	t.Parallel()
	needDescription(t)
	f := &failing{T: t}
	s := New(f, Options{})
	s.AddUser(User{Login: "alice"})
	s.AddRepo("acme", "app", RepoOptions{}, nil)
	w := &world{Server: s, t: t, bot: s.Token("alice")}
	w.do("GET", "repos/acme/app/issues?colour=red", nil).ok(200)
	w.do("GET", "repos/acme/app/wiki", nil).ok(404)
	got := strings.Join(f.errors, "\n")
	for _, want := range []string{"GET /repos/{owner}/{repo}/issues", "colour", "red", "no operation GET /repos/acme/app/wiki"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// Away from the module there is no description, and that is no error of its own.
func TestDescriptionIsNotInstalled(t *testing.T) {
	t.Chdir(t.TempDir())
	if d, err := readDescription(); !errors.Is(err, fs.ErrNotExist) || d != nil {
		t.Errorf("%v %v", d, err)
	}
}
