package gitea

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/forgetest"
	"toritsugi/internal/forge/gitea/giteatest"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// world is a server with a repository, and what people do there: by its API, whether it is a
// real one or the fake.
type world struct {
	t     *testing.T
	url   string // of the server
	admin string // a token of its administrator
	repo  forge.Repo
	token string                // ours
	pass  func(d time.Duration) // lets time go by at the server
	now   func() time.Time
	fake  *giteatest.Server // nil for a real one

	mu    sync.Mutex
	files map[string]string // what Push last made on a branch
}

const bot = "tori-bot"

// numbers are for names: a real server has those of all tests.
var numbers atomic.Int64

// newWorld has a fake server with a private repository of an organization that tori-bot
// administers.
func newWorld(t *testing.T) *world {
	t.Helper()
	c := &clock{at: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	fake := giteatest.New(t, c.now)
	w := &world{t: t, url: fake.URL, admin: fake.Admin, repo: forge.Repo{Owner: "acme", Name: "app"}, pass: c.add, now: c.now, fake: fake}
	w.prepare()
	return w
}

func (w *world) prepare() {
	w.files = map[string]string{}
	w.do("", "POST", "orgs", sdk.CreateOrgOption{Name: w.repo.Owner, Visibility: "public"}, nil)
	w.addRepo(w.repo.Name)
	w.token = tokenOf(w, w.Person(bot, forge.Admin).Login)
}

// addRepo makes a private repository of the organization.
func (w *world) addRepo(name string) {
	w.do("", "POST", "orgs/"+w.repo.Owner+"/repos", map[string]any{"name": name, "private": true, "auto_init": true, "default_branch": "main"}, nil)
}

// tokenOf makes a token for an account.
func tokenOf(w *world, login string) string {
	var out sdk.AccessToken
	w.send(func(r *http.Request) { r.SetBasicAuth(login, password) }, "POST", "users/"+login+"/tokens", map[string]any{
		"name": fmt.Sprint("t", numbers.Add(1)), "scopes": []string{"write:repository", "write:issue", "read:user", "read:organization"},
	}, &out)
	return out.Token
}

const password = "correct horse 7 battery"

// do asks the server as a person, "" for its administrator, and returns the status; one of
// 500 and more ends the test, and each other failure that is not taken as an answer.
func (w *world) do(as, method, path string, body, v any, taken ...int) int {
	w.t.Helper()
	return w.send(func(r *http.Request) {
		r.Header.Set("Authorization", "token "+w.admin)
		if as != "" {
			r.Header.Set("Sudo", as)
		}
	}, method, path, body, v, taken...)
}

func (w *world) send(login func(*http.Request), method, path string, body, v any, taken ...int) int {
	w.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	if body == nil {
		text = nil
	}
	req, err := http.NewRequest(method, w.url+"/api/v1/"+path, bytes.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	login(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range taken {
		if resp.StatusCode == s {
			return s
		}
	}
	if resp.StatusCode >= 300 {
		w.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	if v != nil {
		if err := json.Unmarshal(answer, v); err != nil {
			w.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
		}
	}
	return resp.StatusCode
}

// at is a path in the repository.
func (w *world) at(parts ...any) string { return below(w.repo, parts...) }

func (w *world) open(change func(*Options)) *Forge {
	w.t.Helper()
	o := Options{URL: w.url, Token: w.token, HTTP: &http.Client{Transport: &http.Transport{}}, Now: w.now, RetryDelay: time.Millisecond}
	if w.fake == nil {
		o.HTTP.Transport = described{w.t, o.HTTP.Transport}
	}
	if change != nil {
		change(&o)
	}
	f, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(o.HTTP.CloseIdleConnections)
	return f
}

// described holds what is asked of a real server, and its answers, against what is published:
// what the fake is held against is true of the real one.
type described struct {
	t    *testing.T
	next http.RoundTripper
}

func (d described) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	if wrong := giteatest.Against(r, body, resp.StatusCode, answer); wrong != "" {
		d.t.Errorf("%s %s: %s\n%.2000s", r.Method, r.URL, wrong, answer)
	}
	return resp, err
}

// Person takes an account that is there; the roles that Gitea has not are the next one above.
func (w *world) Person(login string, p forge.Permission) forge.Person {
	var u sdk.User
	// A name that was given up leads to the new one.
	if w.do("", "GET", "users/"+login, nil, &u, 404) == 404 || u.UserName != login {
		o := map[string]any{"username": login, "email": fmt.Sprintf("%s-%d@people.example", login, numbers.Add(1)), "password": password, "must_change_password": false}
		if w.do("", "POST", "admin/users", o, &u, 422) == 422 { // another test was faster
			w.do("", "GET", "users/"+login, nil, &u)
		}
	}
	role := map[forge.Permission]string{forge.Read: "read", forge.Triage: "write", forge.Write: "write", forge.Maintain: "admin", forge.Admin: "admin"}[p]
	if role != "" {
		w.do("", "PUT", w.at("collaborators", login), map[string]string{"permission": role}, nil)
	}
	return forge.Person{ID: u.ID, Login: u.UserName}
}

func (w *world) Rename(p forge.Person, login string) {
	w.do("", "POST", "admin/users/"+p.Login+"/rename", map[string]string{"new_username": login}, nil)
}

func (w *world) labels() []*sdk.Label {
	var all []*sdk.Label
	for n := 1; ; n++ {
		var more []*sdk.Label
		w.do("", "GET", w.at("labels")+fmt.Sprintf("?page=%d&limit=50", n), nil, &more)
		if len(more) == 0 {
			return all
		}
		all = append(all, more...)
	}
}

// label is the number of a label, which is made where there is none of that very name.
func (w *world) label(name string) int64 {
	for _, l := range w.labels() {
		if l.Name == name {
			return l.ID
		}
	}
	var l sdk.Label
	w.do("", "POST", w.at("labels"), sdk.CreateLabelOption{Name: name, Color: "#00aabb"}, &l)
	return l.ID
}

func (w *world) Open(by forge.Person, title, body string, labels ...string) string {
	o := sdk.CreateIssueOption{Title: title, Body: body}
	for _, l := range labels {
		o.Labels = append(o.Labels, w.label(l))
	}
	var i sdk.Issue
	w.do(by.Login, "POST", w.at("issues"), map[string]any{"title": o.Title, "body": o.Body, "labels": o.Labels}, &i)
	return strconv.FormatInt(i.Index, 10)
}

func (w *world) Close(by forge.Person, id string) {
	w.do(by.Login, "PATCH", w.at("issues", id), map[string]string{"state": "closed"}, nil)
}

func (w *world) Comment(by forge.Person, id, body string) string {
	var c sdk.Comment
	w.do(by.Login, "POST", w.at("issues", id, "comments"), map[string]string{"body": body}, &c)
	return strconv.FormatInt(c.ID, 10)
}

func (w *world) note(id string) string {
	return w.at("issues", "comments", strings.TrimPrefix(id, "note/"))
}

func (w *world) Edit(by forge.Person, _, note, body string) {
	w.do(by.Login, "PATCH", w.note(note), map[string]string{"body": body}, nil)
}

// Delete is the administrator's where people may delete their own alone.
func (w *world) Delete(_ forge.Person, _, note string) { w.do("", "DELETE", w.note(note), nil, nil) }

func (w *world) React(by forge.Person, _, note, sign string) {
	w.do(by.Login, "POST", w.note(note)+"/reactions", map[string]string{"content": sign}, nil)
}

func (w *world) Label(by forge.Person, id, label string) {
	w.do(by.Login, "POST", w.at("issues", id, "labels"), sdk.IssueLabelsOption{Labels: []int64{w.label(label)}}, nil)
}

func (w *world) Unlabel(by forge.Person, id, label string) {
	w.do(by.Login, "DELETE", w.at("issues", id, "labels", w.label(label)), nil, nil)
}

func (w *world) Assign(by forge.Person, id string, to forge.Person) {
	w.do(by.Login, "PATCH", w.at("issues", id), map[string]any{"assignees": []string{to.Login}}, nil)
}

func (w *world) Notes(id string) []string {
	var list []*sdk.Comment
	w.do("", "GET", w.at("issues", id, "comments"), nil, &list)
	var all []string
	for _, c := range list {
		all = append(all, c.Body)
	}
	return all
}

func (w *world) LabelsOf(id string) []string {
	var all []*sdk.Label
	w.do("", "GET", w.at("issues", id, "labels"), nil, &all)
	return names(all)
}

func (w *world) AllLabels() []string { return names(w.labels()) }

func (w *world) Push(branch string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	file := fmt.Sprintf("work-%d.txt", len(w.files))
	o := map[string]any{"content": base64.StdEncoding.EncodeToString([]byte("line\nfile " + file + "\n")), "message": "work", "branch": "main", "new_branch": branch}
	if w.files[branch] != "" {
		o["branch"] = branch
		delete(o, "new_branch")
	}
	w.files[branch] = file
	var out struct{ Commit struct{ SHA string } }
	w.do(bot, "POST", w.at("contents", file), o, &out)
	return out.Commit.SHA
}

func (w *world) Review(by forge.Person, id, verdict, body, remark string) {
	var p sdk.PullRequest
	w.do("", "GET", w.at("pulls", id), nil, &p)
	states := map[string]string{forge.Approved: "APPROVED", forge.ChangesRequested: "REQUEST_CHANGES", forge.Commented: "COMMENT"}
	o := map[string]any{"event": states[verdict], "body": body, "comments": []any{}}
	if remark != "" {
		o["comments"] = []any{map[string]any{"path": w.files[p.Head.Name], "body": remark, "new_position": 1}}
	}
	w.do(by.Login, "POST", w.at("pulls", id, "reviews"), o, nil)
}

func (w *world) Reviewers(id string) []string {
	var p sdk.PullRequest
	w.do("", "GET", w.at("pulls", id), nil, &p)
	var all []string
	for _, u := range p.RequestedReviewers {
		all = append(all, u.UserName)
	}
	return all
}

func (w *world) Check(commit, name, state, output string) {
	states := map[string]string{forge.CheckPassed: "success", forge.CheckFailed: "failure", forge.CheckPending: "pending", forge.CheckSkipped: "skipped"}
	w.do(bot, "POST", w.at("statuses", commit), map[string]string{"context": name, "state": states[state], "description": output}, nil)
}

func (w *world) Pass(d time.Duration) { w.pass(d) }

func contract(t *testing.T, open func(t *testing.T) *world) {
	forgetest.Run(t, func(t *testing.T) forgetest.Fixture {
		w := open(t)
		f := w.open(nil)
		return forgetest.Fixture{
			Forge: f, Code: f, Reopen: func() forge.Tracker { return w.open(nil) }, Repo: w.repo, Main: "main", World: w,
			Lacks: map[forgetest.Feature]string{forgetest.Roles: "Gitea has none between read and write, nor between write and administration"},
		}
	})
}

func TestContract(t *testing.T) {
	t.Parallel()
	contract(t, newWorld)
}

// TestContractOfARealServer runs the same against a real Gitea.
func TestContractOfARealServer(t *testing.T) {
	contract(t, realWorld)
}

// everywhere runs a test on the fake and on a real server.
func everywhere(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("fake", func(t *testing.T) { test(t, newWorld(t)) })
	t.Run("RealServer", func(t *testing.T) { test(t, realWorld(t)) })
}

// realWorld is a world on the server that scripts/gitea.sh has started, in an organization of
// its own; make test-gitea does so. Time goes by there as it does.
func realWorld(t *testing.T) *world {
	t.Helper()
	url, admin := os.Getenv("TORI_GITEA"), os.Getenv("TORI_GITEA_TOKEN")
	if url == "" || admin == "" {
		t.Skip("TORI_GITEA names no server; make test-gitea starts one")
	}
	w := &world{
		t: t, url: strings.TrimRight(url, "/"), admin: admin, pass: time.Sleep, now: time.Now,
		repo: forge.Repo{Owner: fmt.Sprintf("acme-%d-%d", os.Getpid(), numbers.Add(1)), Name: "app"},
	}
	w.prepare()
	return w
}
