package giteatest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
)

// World is a private repository of an organization at a Gitea, and what people do there: by its
// API, whether it is a real one or the fake. A failure ends the test.
type World struct {
	T     T
	URL   string // of the server
	Admin string // a token of its administrator
	Repo  forge.Repo
	Skip  func(d time.Duration) // lets time go by at the server

	mu    sync.Mutex
	files map[string]string // what Push last made on a branch
}

// numbers are for names: a real server has those of all tests.
var numbers atomic.Int64

// Prepare makes the organization and the repository.
func (w *World) Prepare() {
	w.T.Helper()
	w.files = map[string]string{}
	w.Do("", "POST", "orgs", sdk.CreateOrgOption{Name: w.Repo.Owner, Visibility: "public"}, nil)
	w.AddRepo(w.Repo.Name)
}

// AddRepo makes a private repository of the organization.
func (w *World) AddRepo(name string) {
	w.Do("", "POST", "orgs/"+w.Repo.Owner+"/repos", map[string]any{"name": name, "private": true, "auto_init": true, "default_branch": "main"}, nil)
}

// Token makes a token for an account.
func (w *World) Token(login string) string {
	var out sdk.AccessToken
	w.send(func(r *http.Request) { r.SetBasicAuth(login, password) }, "POST", "users/"+login+"/tokens", map[string]any{
		"name": fmt.Sprint("t", numbers.Add(1)), "scopes": []string{"write:repository", "write:issue", "read:user", "read:organization"},
	}, &out)
	return out.Token
}

// Bot is who pushes in a world, and whose checks are shown.
const Bot = "tori-bot"

const password = "correct horse 7 battery"

// Do asks the server as a person, "" for its administrator, and returns the status; one of
// 500 and more ends the test, and each other failure that is not taken as an answer.
func (w *World) Do(as, method, path string, body, v any, taken ...int) int {
	w.T.Helper()
	return w.send(func(r *http.Request) {
		r.Header.Set("Authorization", "token "+w.Admin)
		if as != "" {
			r.Header.Set("Sudo", as)
		}
	}, method, path, body, v, taken...)
}

func (w *World) send(login func(*http.Request), method, path string, body, v any, taken ...int) int {
	w.T.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.T.Fatalf("%v", err)
	}
	if body == nil {
		text = nil
	}
	req, err := http.NewRequest(method, w.URL+"/api/v1/"+path, bytes.NewReader(text))
	if err != nil {
		w.T.Fatalf("%v", err)
	}
	req.Header.Set("Content-Type", "application/json")
	login(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.T.Fatalf("%v", err)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<24))
	_ = resp.Body.Close()
	if err != nil {
		w.T.Fatalf("%v", err)
	}
	if slices.Contains(taken, resp.StatusCode) {
		return resp.StatusCode
	}
	if resp.StatusCode >= 300 {
		w.T.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	if v != nil {
		if err := json.Unmarshal(answer, v); err != nil {
			w.T.Fatalf("%s %s: %v in %s", method, path, err, answer)
		}
	}
	return resp.StatusCode
}

// At is a path in the repository.
func (w *World) At(parts ...any) string {
	all := []string{"repos", url.PathEscape(w.Repo.Owner), url.PathEscape(w.Repo.Name)}
	for _, p := range parts {
		all = append(all, url.PathEscape(fmt.Sprint(p)))
	}
	return strings.Join(all, "/")
}

// Person takes an account that is there; the roles that Gitea has not are the next one above.
func (w *World) Person(login string, p forge.Permission) forge.Person {
	var u sdk.User
	// A name that was given up leads to the new one.
	if w.Do("", "GET", "users/"+login, nil, &u, 404) == 404 || u.UserName != login {
		o := map[string]any{"username": login, "email": fmt.Sprintf("%s-%d@people.example", login, numbers.Add(1)), "password": password, "must_change_password": false}
		if w.Do("", "POST", "admin/users", o, &u, 422) == 422 { // another test was faster
			w.Do("", "GET", "users/"+login, nil, &u)
		}
	}
	role := map[forge.Permission]string{forge.Read: "read", forge.Triage: "write", forge.Write: "write", forge.Maintain: "admin", forge.Admin: "admin"}[p]
	if role != "" {
		w.Do("", "PUT", w.At("collaborators", login), map[string]string{"permission": role}, nil)
	}
	return forge.Person{ID: u.ID, Login: u.UserName}
}

func (w *World) Rename(p forge.Person, login string) {
	w.Do("", "POST", "admin/users/"+p.Login+"/rename", map[string]string{"new_username": login}, nil)
}

func (w *World) labels() []*sdk.Label {
	var all []*sdk.Label
	for n := 1; ; n++ {
		var more []*sdk.Label
		w.Do("", "GET", w.At("labels")+fmt.Sprintf("?page=%d&limit=50", n), nil, &more)
		if len(more) == 0 {
			return all
		}
		all = append(all, more...)
	}
}

// MakeLabel is the number of a label, which is made where there is none of that very name.
func (w *World) MakeLabel(name string) int64 {
	for _, l := range w.labels() {
		if l.Name == name {
			return l.ID
		}
	}
	var l sdk.Label
	w.Do("", "POST", w.At("labels"), sdk.CreateLabelOption{Name: name, Color: "#00aabb"}, &l)
	return l.ID
}

func (w *World) Open(by forge.Person, title, body string, labels ...string) string {
	var ids []int64
	for _, l := range labels {
		ids = append(ids, w.MakeLabel(l))
	}
	var i sdk.Issue
	w.Do(by.Login, "POST", w.At("issues"), map[string]any{"title": title, "body": body, "labels": ids}, &i)
	return strconv.FormatInt(i.Index, 10)
}

func (w *World) Close(by forge.Person, id string) {
	w.Do(by.Login, "PATCH", w.At("issues", id), map[string]string{"state": "closed"}, nil)
}

func (w *World) Comment(by forge.Person, id, body string) string {
	var c sdk.Comment
	w.Do(by.Login, "POST", w.At("issues", id, "comments"), map[string]string{"body": body}, &c)
	return strconv.FormatInt(c.ID, 10)
}

func (w *World) note(id string) string {
	return w.At("issues", "comments", strings.TrimPrefix(id, "note/"))
}

func (w *World) Edit(by forge.Person, _, note, body string) {
	w.Do(by.Login, "PATCH", w.note(note), map[string]string{"body": body}, nil)
}

// Delete is the administrator's where people may delete their own alone.
func (w *World) Delete(_ forge.Person, _, note string) { w.Do("", "DELETE", w.note(note), nil, nil) }

func (w *World) React(by forge.Person, _, note, sign string) {
	w.Do(by.Login, "POST", w.note(note)+"/reactions", map[string]string{"content": sign}, nil)
}

func (w *World) Label(by forge.Person, id, label string) {
	w.Do(by.Login, "POST", w.At("issues", id, "labels"), sdk.IssueLabelsOption{Labels: []int64{w.MakeLabel(label)}}, nil)
}

func (w *World) Unlabel(by forge.Person, id, label string) {
	w.Do(by.Login, "DELETE", w.At("issues", id, "labels", w.MakeLabel(label)), nil, nil)
}

func (w *World) Assign(by forge.Person, id string, to forge.Person) {
	w.Do(by.Login, "PATCH", w.At("issues", id), map[string]any{"assignees": []string{to.Login}}, nil)
}

func (w *World) Notes(id string) []string {
	var list []*sdk.Comment
	w.Do("", "GET", w.At("issues", id, "comments"), nil, &list)
	var all []string
	for _, c := range list {
		all = append(all, c.Body)
	}
	return all
}

func (w *World) LabelsOf(id string) []string {
	var all []*sdk.Label
	w.Do("", "GET", w.At("issues", id, "labels"), nil, &all)
	return namesOf(all)
}

func (w *World) AllLabels() []string { return namesOf(w.labels()) }

func (w *World) Push(branch string) string {
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
	w.Do(Bot, "POST", w.At("contents", file), o, &out)
	return out.Commit.SHA
}

// File is the file that Push changed on a branch.
func (w *World) File(branch string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files[branch]
}

func (w *World) Review(by forge.Person, id, verdict, body, remark string) {
	var p sdk.PullRequest
	w.Do("", "GET", w.At("pulls", id), nil, &p)
	w.ReviewFile(by, id, verdict, body, w.files[p.Head.Name], 1, remark)
}

// ReviewFile adds a review with a remark on a line of a file, "" for none.
func (w *World) ReviewFile(by forge.Person, id, verdict, body, file string, line int, remark string) (number int64) {
	states := map[string]string{forge.Approved: "APPROVED", forge.ChangesRequested: "REQUEST_CHANGES", forge.Commented: "COMMENT"}
	o := map[string]any{"event": states[verdict], "body": body, "comments": []any{}}
	if remark != "" {
		o["comments"] = []any{map[string]any{"path": file, "body": remark, "new_position": line}}
	}
	var r sdk.PullReview
	w.Do(by.Login, "POST", w.At("pulls", id, "reviews"), o, &r)
	var lines []*sdk.PullReviewComment
	w.Do(by.Login, "GET", w.At("pulls", id, "reviews", r.ID, "comments"), nil, &lines)
	for _, l := range lines {
		number = l.ID
	}
	return number
}

// Pulls are the pull requests, those that are closed too, the newest first.
func (w *World) Pulls() (all []*sdk.PullRequest) {
	w.Do("", "GET", w.At("pulls")+"?state=all", nil, &all)
	return all
}

// Commit makes a new file on a branch that is there.
func (w *World) Commit(branch, file, text string) {
	o := map[string]any{"content": base64.StdEncoding.EncodeToString([]byte(text)), "message": "work on " + file, "branch": branch}
	w.Do(Bot, "POST", w.At("contents", file), o, nil)
}

func (w *World) Reviewers(id string) []string {
	var p sdk.PullRequest
	w.Do("", "GET", w.At("pulls", id), nil, &p)
	var all []string
	for _, u := range p.RequestedReviewers {
		all = append(all, u.UserName)
	}
	return all
}

func (w *World) Check(commit, name, state, output string) {
	states := map[string]string{forge.CheckPassed: "success", forge.CheckFailed: "failure", forge.CheckPending: "pending", forge.CheckSkipped: "skipped"}
	w.Do(Bot, "POST", w.At("statuses", commit), map[string]string{"context": name, "state": states[state], "description": output}, nil)
}

func (w *World) Pass(d time.Duration) { w.Skip(d) }

func namesOf(all []*sdk.Label) (names []string) {
	for _, l := range all {
		names = append(names, l.Name)
	}
	return names
}
