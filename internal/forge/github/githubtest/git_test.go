package githubtest

import (
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestGitLogins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.AddRepo("acme", "secret", RepoOptions{Private: true}, map[string]string{"a": "b"})
	w.Repo("acme/secret").Allow("tori-bot", "read")
	bob, old := w.Token("bob"), w.Token("tori-bot")
	w.Revoke(old)
	at := func(token, repo string) string {
		return strings.Replace(w.URL, "http://", "http://x-access-token:"+token+"@", 1) + "/" + repo
	}
	dir := t.TempDir()
	for _, c := range []struct {
		name, remote, want string
	}{
		{"nobody, public", w.URL + "/acme/app.git", ""},
		{"without the ending", w.URL + "/ACME/app", ""},
		{"who may", at(w.bot, "acme/secret.git"), ""},
		{"revoked", at(old, "acme/secret.git"), "Authentication failed"},
		{"nobody, private", w.URL + "/acme/secret.git", "could not read Username"},
		{"an outsider, private", at(bob, "acme/secret.git"), "not found"},
		{"nothing there", at(bob, "acme/none.git"), "not found"},
	} {
		out, err := gitIn(t, dir, "ls-remote", c.remote)
		if (err == nil) != (c.want == "") || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v: %s", c.name, err, out)
		}
	}
	tree := w.clone(bob)
	git(t, tree, "checkout", "-q", "-b", "x")
	git(t, tree, "commit", "-q", "--allow-empty", "-m", "x")
	if out, err := gitIn(t, tree, "push", "origin", "x"); err == nil || !strings.Contains(out, "403") {
		t.Errorf("an outsider pushes: %v: %s", err, out)
	}
	git(t, tree, "remote", "set-url", "origin", w.remote(w.bot))
	if out, err := gitIn(t, tree, "push", "origin", "x:refs/pull/1/head"); err == nil {
		t.Errorf("the server's own names are pushed to: %s", out)
	}
	git(t, tree, "push", "-q", "origin", "x")
	w.repo.Set(func(o *RepoOptions) { o.Archived = true })
	if out, err := gitIn(t, tree, "push", "origin", ":x"); err == nil || !strings.Contains(out, "403") {
		t.Errorf("an archive is pushed to: %v: %s", err, out)
	}
}

// A pack of more than git's buffer is sent in chunks.
func TestBigPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	tree := w.clone(w.bot)
	var noise [2 << 20]byte
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(noise[:])
	sha := push(t, tree, "big", map[string]string{"noise": string(noise[:])})
	if got := w.repo.Branches()["big"]; got != sha {
		t.Errorf("big is at %s, want %s", got, sha)
	}
	other := t.TempDir()
	git(t, other, "clone", "-q", "--depth", "1", "--branch", "big", w.remote(w.bot), "tree")
	if b, err := os.ReadFile(other + "/tree/noise"); err != nil || string(b) != string(noise[:]) {
		t.Errorf("what comes back differs: %v", err)
	}
	if n := w.Count("git-receive-pack"); n < 1 || w.Count("git-upload-pack refs") < 2 {
		t.Errorf("counted: %v", w.Counts())
	}
}

func TestPushMovesPullRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{MergeableLater: 1})
	tree := w.clone(w.bot)
	first := push(t, tree, "work", map[string]string{"a.txt": "1\ntwo\nthree\n", "b.txt": "b\n"})
	n := w.repo.OpenPull("tori-bot", "work", "main", "Work", "Fixes #9")
	_, ids := w.repo.Review(n, "alice", "COMMENTED", "", Line{Path: "a.txt", Line: 1, Body: "why"}, Line{Path: "b.txt", Line: 1, Body: "fine"})
	w.repo.Review(n, "bob", "COMMENTED", "", Line{Path: "b.txt", Body: "so it is", ReplyTo: ids[1]})
	asked := func() (any, string) {
		o := w.do("GET", "repos/acme/app/pulls/1", nil).ok(200)
		return o["mergeable"], o["mergeable_state"].(string)
	}
	if m, s := asked(); m != nil || s != "unknown" {
		t.Errorf("first asked: %v %s", m, s)
	}
	if m, s := asked(); m != true || s != "clean" {
		t.Errorf("asked again: %v %s", m, s)
	}
	w.repo.Commit("main", "alice", "other", map[string]string{"a.txt": "eins\ntwo\nthree\n"})
	asked()
	if m, s := asked(); m != false || s != "dirty" {
		t.Errorf("in conflict: %v %s", m, s)
	}
	if got := w.repo.Issue(n).Pull; got.HeadSHA != first || got.Mergeable || !got.Outcome {
		t.Errorf("pull request: %+v", got)
	}
	git(t, tree, "fetch", "-q", "origin")
	git(t, tree, "merge", "-q", "-X", "ours", "origin/main")
	second := push(t, tree, "work", map[string]string{"c.txt": "c\n", "a.txt": "uno\ntwo\nthree\n"})
	asked()
	if m, s := asked(); m != true || s != "clean" {
		t.Errorf("after the conflict was solved: %v %s", m, s)
	}
	lines := w.do("GET", "repos/acme/app/pulls/1/comments", nil).list(200)
	if lines[0]["line"] != nil || lines[0]["original_commit_id"] != first || lines[1]["line"] != 1.0 || lines[1]["commit_id"] != second ||
		lines[2]["subject_type"] != "file" || lines[2]["in_reply_to_id"] != float64(ids[1]) {
		t.Errorf("remarks: %v", lines)
	}
	if o := w.do("GET", "repos/acme/app/pulls/1", nil).ok(200); o["commits"] != 3.0 {
		t.Errorf("pull request: %v", o)
	}
	git(t, tree, "push", "-q", "origin", ":work")
	if got := w.repo.Issue(n); got.Open || got.Pull.Merged {
		t.Errorf("after the branch was deleted: %+v", got)
	}
	w.do("PATCH", "repos/acme/app/pulls/1", map[string]any{"state": "open"}).ok(422)
	if got, err := w.repo.Git("rev-parse", "refs/pull/1/head"); err != nil || got != second {
		t.Errorf("kept head: %s %v", got, err)
	}
}

func TestForks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	fork := w.repo.Fork("bob")
	first := fork.Commit("idea", "bob", "idea\n\nCloses #1", map[string]string{"idea": "1\n"})
	w.repo.OpenIssue("alice", "t", "b")
	bob := w.Token("bob")
	w.as(bob, "POST", "repos/acme/app/pulls", map[string]any{"title": "t", "head": "bob:idea", "base": "main", "maintainer_can_modify": true}).ok(201)
	o := w.do("GET", "repos/acme/app/pulls/2", nil).ok(200)
	if o["maintainer_can_modify"] != true || o["mergeable"] != true || o["head"].(map[string]any)["label"] != "bob:idea" || o["head"].(map[string]any)["sha"] != first {
		t.Errorf("from a fork: %v", o)
	}
	if n := len(w.do("GET", "repos/acme/app/pulls?head=bob:idea&base=main", nil).list(200)); n != 1 {
		t.Errorf("%d with that head", n)
	}
	if n := len(w.do("GET", "repos/acme/app/pulls?head=acme:idea", nil).list(200)); n != 0 {
		t.Errorf("%d with another's head", n)
	}
	remote := strings.Replace(w.remote(w.bot), "acme/app", "bob/app", 1)
	dir := t.TempDir()
	git(t, dir, "clone", "-q", "--branch", "idea", remote, "tree")
	second := push(t, dir+"/tree", "idea", map[string]string{"idea": "2\n"})
	if got := w.repo.Issue(2).Pull.HeadSHA; got != second {
		t.Errorf("head %s, want %s", got, second)
	}
	w.repo.SetEditable(2, false)
	git(t, dir+"/tree", "commit", "-q", "--allow-empty", "-m", "x")
	if out, err := gitIn(t, dir+"/tree", "push", "origin", "idea"); err == nil || !strings.Contains(out, "403") {
		t.Errorf("pushed where it may not: %v: %s", err, out)
	}
	w.repo.Merge(2, "alice")
	if i := w.repo.Issue(1); i.Open {
		t.Error("the commit's text closes nothing")
	}
	fork.Delete()
	if o := w.do("GET", "repos/acme/app/pulls/2", nil).ok(200); o["head"].(map[string]any)["repo"] != nil || o["merged"] != true || o["merged_by"].(map[string]any)["login"] != "alice" {
		t.Errorf("of a fork that is gone: %v", o)
	}
}

func TestRefusedPullRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.repo.Commit("same", "alice", "same", nil)
	w.repo.Reset("same", w.repo.Branches()["main"])
	w.repo.Commit("work", "alice", "work", map[string]string{"w": "w"})
	w.repo.Set(func(o *RepoOptions) { o.NoDrafts = true })
	for _, c := range []struct {
		name string
		in   map[string]any
		want string
	}{
		{"nothing in it", map[string]any{"title": "t", "head": "same", "base": "main"}, "No commits between main and same"},
		{"no such branch", map[string]any{"title": "t", "head": "none", "base": "main"}, `"field":"head"`},
		{"no such base", map[string]any{"title": "t", "head": "work", "base": "none"}, `"field":"base"`},
		{"no title", map[string]any{"title": "", "head": "work", "base": "main"}, "missing_field"},
		{"a draft", map[string]any{"title": "t", "head": "work", "base": "main", "draft": true}, "Draft pull requests are not supported in this repository."},
	} {
		g := w.do("POST", "repos/acme/app/pulls", c.in)
		if g.ok(422); !strings.Contains(string(g.body), c.want) {
			t.Errorf("%s: %s", c.name, g.body)
		}
	}
	n := w.repo.OpenPull("tori-bot", "work", "main", "t", "b")
	for login, want := range map[string]string{"tori-bot": "Review cannot be requested from pull request author.", "bob": "Reviews may only be requested from collaborators."} {
		o := w.do("POST", "repos/acme/app/pulls/1/requested_reviewers", map[string]any{"reviewers": []string{"alice", login}}).ok(422)
		if !strings.HasPrefix(o["message"].(string), want) {
			t.Errorf("%s: %v", login, o)
		}
	}
	if got := w.repo.Issue(n).Pull.Reviewers; len(got) != 0 {
		t.Errorf("refused and yet asked: %v", got)
	}
	w.do("POST", "repos/acme/app/pulls/1/requested_reviewers", map[string]any{"reviewers": []string{"alice"}}).ok(201)
	if g := w.do("POST", "repos/acme/app/pulls/1/reviews", map[string]any{"event": "APPROVE"}); g.ok(422) == nil || !strings.Contains(string(g.body), "Can not approve your own pull request") {
		t.Errorf("own approval: %s", g.body)
	}
	alice := w.Token("alice")
	w.as(alice, "POST", "repos/acme/app/pulls/1/reviews", map[string]any{"event": "REQUEST_CHANGES", "body": "no", "comments": []any{map[string]any{"path": "w", "line": 1, "body": "this"}}}).ok(200)
	if got := w.repo.Issue(n).Pull; len(got.Reviewers) != 0 || len(got.Reviews) != 1 || len(got.Lines) != 1 {
		t.Errorf("reviewed: %+v", got)
	}
	w.repo.EditComment(w.repo.Issue(n).Pull.Lines[0].ID, "that")
	if l := w.do("GET", "repos/acme/app/pulls/comments?sort=updated&direction=asc&since=2026-03-01T12:00:00Z", nil).list(200); len(l) != 1 || l[0]["body"] != "that" {
		t.Errorf("remarks: %v", l)
	}
	if l := w.do("GET", "repos/acme/app/pulls/1/reviews", nil).list(200); l[0]["state"] != "CHANGES_REQUESTED" {
		t.Errorf("reviews: %v", l)
	}
	w.do("PATCH", "repos/acme/app/pulls/1", map[string]any{"title": "new", "body": "nb", "base": "same"}).ok(200)
	if i := w.repo.Issue(n); i.Title != "new" || i.Body != "nb" || i.Pull.Base != "same" {
		t.Errorf("edited: %+v", i)
	}
	w.repo.Reset("same", w.repo.Issue(n).Pull.HeadSHA)
	if i := w.repo.Issue(n); !i.Pull.Merged {
		t.Errorf("merged by hand: %+v", i)
	}
}

func TestChecksOfCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	sha := w.repo.Commit("feature/x", "alice", "x", map[string]string{"x": "x"})
	w.repo.AddCheckRun(sha, CheckRun{Name: "build", Conclusion: "failure"})
	w.repo.AddCheckRun(sha, CheckRun{Name: "build", Conclusion: "success"})
	w.repo.AddCheckRun(sha, CheckRun{Name: "lint"})
	w.repo.AddCheckRun(sha, CheckRun{Name: "test", Conclusion: "failure", Title: "2 failed", Summary: "TestA, TestB"})
	for _, ref := range []string{sha, "feature%2Fx"} {
		o := w.do("GET", "repos/acme/app/commits/"+ref+"/check-runs?filter=latest&per_page=2", nil)
		if body := o.ok(200); body["total_count"] != 3.0 || len(body["check_runs"].([]any)) != 2 || !strings.Contains(o.Header.Get("Link"), `rel="next"`) {
			t.Errorf("%s: %s", ref, o.body)
		}
	}
	status := "repos/acme/app/commits/" + sha + "/status"
	if o := w.do("GET", status, nil).ok(200); o["state"] != "pending" || o["total_count"] != 0.0 {
		t.Errorf("no status: %v", o)
	}
	w.repo.AddCheckRun(sha, CheckRun{Name: "ci/old", Conclusion: "success", Old: true})
	w.repo.AddCheckRun(sha, CheckRun{Name: "ci/older", Conclusion: "error", Old: true, Summary: "broke", URL: "http://ci.example/1"})
	if o := w.do("GET", status, nil).ok(200); o["state"] != "failure" || o["total_count"] != 2.0 {
		t.Errorf("statuses: %v", o)
	}
	if g := w.do("GET", "repos/acme/app/commits/"+strings.Repeat("0", 40)+"/check-runs", nil); g.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("no such commit: %d", g.StatusCode)
	}
}
