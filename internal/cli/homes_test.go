package cli

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/gitea/giteatest"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/forge/gitlab/gitlabtest"
)

// home is a forge of any kind with a repository that says 41 where it should say 42. hanako may
// ask there for work, and tori-bot has the login. Items are written "#7", and "!7" where
// proposals are numbered on their own.
type home interface {
	section() string // of the settings
	login() string   // as a variable of the environment
	open(title, body string) (item string)
	label(item, label string)
	say(item, body string)
	review(item, body, file string, line int, remark string) (number int64) // wants changes; of the remark
	labels(item string) string
	said(item string) []string                     // all notes, people's and ours
	put(branch, file, text string)                 // from main where the branch is new
	offer(branch, title string) (item string)      // hanako's, into main
	reviews(item string) (texts, onLines []string) // the latter "file:line text"
	pulls() []pull
	git(args ...string) (string, error) // in the bare repository
	wrap(f func(http.Handler) http.Handler)
}

// pull is a pull or merge request.
type pull struct {
	item, title, body, head string
	draft                   bool
	reviewers               []string
}

// kinds of homes, by source. owner is that of the repository widgets.
var homes = map[string]func(t *testing.T, now func() time.Time, owner string) home{"github": atGitHub, "gitlab": atGitLab, "gitea": atGitea}

var grown = map[string]string{"answer.txt": "41\n", "check.sh": "grep -q 42 answer.txt\n"}

func section(source, url, owner, more string) string {
	return fmt.Sprintf("%s: {url: '%s', repositories: [%s/widgets]%s}\n", source, url, owner, more)
}

type gitHubHome struct {
	*githubtest.Server
	r     *githubtest.Repo
	owner string
}

func atGitHub(t *testing.T, now func() time.Time, owner string) home {
	s := githubtest.New(t, githubtest.Options{Now: now})
	s.AddUser(githubtest.User{Login: "hanako", ID: 101})
	s.AddUser(githubtest.User{Login: "tori-bot", ID: 103})
	r := s.AddRepo(owner, "widgets", githubtest.RepoOptions{}, grown)
	r.Allow("hanako", "write")
	r.Allow("tori-bot", "write")
	return &gitHubHome{Server: s, r: r, owner: owner}
}

func (h *gitHubHome) section() string {
	return section("github", h.URL, h.owner, ", write_spacing_ms: 0")
}
func (h *gitHubHome) login() string { return "GITHUB_TOKEN=" + h.Token("tori-bot") }
func (h *gitHubHome) open(title, body string) string {
	return fmt.Sprint("#", h.r.OpenIssue("hanako", title, body))
}
func (h *gitHubHome) label(item, label string) { h.r.Label(number(item), label, "hanako") }
func (h *gitHubHome) say(item, body string)    { h.r.Comment(number(item), "hanako", body) }
func (h *gitHubHome) review(item, body, file string, line int, remark string) int64 {
	_, all := h.r.Review(number(item), "hanako", "CHANGES_REQUESTED", body, githubtest.Line{Path: file, Line: line, Body: remark})
	return all[0]
}
func (h *gitHubHome) labels(item string) string {
	return strings.Join(h.r.Issue(number(item)).Labels, ", ")
}
func (h *gitHubHome) said(item string) (all []string) {
	for _, c := range h.r.Issue(number(item)).Comments {
		all = append(all, c.Body)
	}
	return all
}
func (h *gitHubHome) put(branch, file, text string) {
	h.r.Commit(branch, "hanako", "work", map[string]string{file: text})
}
func (h *gitHubHome) offer(branch, title string) string {
	return fmt.Sprint("#", h.r.OpenPull("hanako", branch, "main", title, "Please look."))
}
func (h *gitHubHome) reviews(item string) (texts, onLines []string) {
	p := h.r.Issue(number(item)).Pull
	for _, v := range p.Reviews {
		texts = append(texts, v.Body)
	}
	for _, l := range p.Lines {
		onLines = append(onLines, fmt.Sprintf("%s:%d %s", l.Path, l.Line, l.Body))
	}
	return texts, onLines
}
func (h *gitHubHome) pulls() (all []pull) {
	for _, p := range h.r.Pulls() {
		all = append(all, pull{fmt.Sprint("#", p.Number), p.Title, p.Body, p.Pull.Head, p.Pull.Draft, p.Pull.Reviewers})
	}
	return all
}
func (h *gitHubHome) git(args ...string) (string, error) { return h.r.Git(args...) }

// wrap is by the server's own faults: it has the request done, and looks at what f does to it.
func (h *gitHubHome) wrap(f func(http.Handler) http.Handler) {
	h.OnRequest(func(q *githubtest.Request) (fault *githubtest.Fault) {
		fault = &githubtest.Fault{Drop: true}
		defer func() { _ = recover() }() // the connection is closed
		f(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fault = nil })).ServeHTTP(nil, &http.Request{Method: q.Method, URL: &url.URL{Path: q.Path}})
		return fault
	})
}

type gitLabHome struct {
	*gitlabtest.Server
	p     *gitlabtest.Project
	owner string
}

func atGitLab(t *testing.T, now func() time.Time, owner string) home {
	s := gitlabtest.New(t, gitlabtest.Options{Now: now, Path: "/gitlab"})
	p := s.AddProject(owner+"/widgets", "private")
	for login, level := range map[string]int{"hanako": 30, "tori-bot": 30} {
		s.AddUser(login, false)
		p.Member(login, level)
	}
	for file, text := range grown {
		p.Commit("main", file, text)
	}
	return &gitLabHome{s, p, owner}
}

func (h *gitLabHome) section() string { return section("gitlab", h.URL, h.owner, "") }
func (h *gitLabHome) login() string {
	return "GITLAB_TOKEN=" + h.Token("tori-bot", "api", "write_repository")
}
func (h *gitLabHome) open(title, body string) string {
	return fmt.Sprint("#", h.p.Open("hanako", title, body))
}
func (h *gitLabHome) label(item, label string) { h.p.Label(iid(item), "hanako", label, true) }
func (h *gitLabHome) say(item, body string)    { h.p.Comment(iid(item), "hanako", body) }
func (h *gitLabHome) review(item, body, file string, line int, remark string) (number int64) {
	h.say(item, body)
	number = h.p.Remark(iid(item), "hanako", file, line, remark, 0)
	h.p.Verdict(iid(item), "hanako", "requested_changes")
	return number
}
func (h *gitLabHome) labels(item string) string     { return strings.Join(h.p.LabelsOf(iid(item)), ", ") }
func (h *gitLabHome) said(item string) []string     { return h.p.Notes(iid(item)) }
func (h *gitLabHome) put(branch, file, text string) { h.p.Commit(branch, file, text) }
func (h *gitLabHome) offer(branch, title string) string {
	return fmt.Sprint("!", h.p.Merge("hanako", h.p, branch, "main", title, "Please look."))
}
func (h *gitLabHome) reviews(item string) (texts, onLines []string) {
	onLines = h.p.Remarks(item)
	for _, n := range h.said(item) {
		if !slices.ContainsFunc(onLines, func(l string) bool { return strings.HasSuffix(l, n) }) {
			texts = append(texts, n)
		}
	}
	return texts, onLines
}
func (h *gitLabHome) pulls() (all []pull) {
	for n, source := range h.p.Merges() {
		item := fmt.Sprint("!", n+1)
		title, draft := strings.CutPrefix(h.p.Title(item), "Draft: ")
		all = append(all, pull{item, title, h.p.Body(item), source, draft, h.p.Reviewers(item)})
	}
	return all
}
func (h *gitLabHome) git(args ...string) (string, error)     { return h.p.Git(args...) }
func (h *gitLabHome) wrap(f func(http.Handler) http.Handler) { h.Wrap(f) }

type giteaHome struct {
	*giteatest.World
	s      *giteatest.Server
	hanako forge.Person
}

func atGitea(t *testing.T, now func() time.Time, owner string) home {
	s := giteatest.New(t, now)
	w := &giteatest.World{T: t, URL: s.URL, Admin: s.Admin, Repo: forge.Repo{Owner: owner, Name: "widgets"}}
	w.Prepare()
	w.Person(giteatest.Bot, forge.Admin) // who may ask others' permissions
	for file, text := range grown {
		w.Commit("main", file, text)
	}
	return &giteaHome{w, s, w.Person("hanako", forge.Write)}
}

func (h *giteaHome) section() string { return section("gitea", h.URL, h.Repo.Owner, "") }
func (h *giteaHome) login() string   { return "GITEA_TOKEN=" + h.Token(giteatest.Bot) }
func (h *giteaHome) open(title, body string) string {
	return "#" + h.Open(h.hanako, title, body)
}
func (h *giteaHome) label(item, label string) { h.Label(h.hanako, iid(item), label) }
func (h *giteaHome) say(item, body string)    { h.Comment(h.hanako, iid(item), body) }
func (h *giteaHome) review(item, body, file string, line int, remark string) int64 {
	return h.ReviewFile(h.hanako, iid(item), forge.ChangesRequested, body, file, line, remark)
}
func (h *giteaHome) labels(item string) string { return strings.Join(h.LabelsOf(iid(item)), ", ") }
func (h *giteaHome) said(item string) []string { return h.Notes(iid(item)) }
func (h *giteaHome) put(branch, file, text string) {
	o := map[string]any{"content": base64.StdEncoding.EncodeToString([]byte(text)), "message": "work", "branch": branch}
	if _, err := h.git("rev-parse", "--verify", "-q", "refs/heads/"+branch); err != nil {
		o["branch"], o["new_branch"] = "main", branch
	}
	h.Do("hanako", "POST", h.At("contents", file), o, nil)
}
func (h *giteaHome) offer(branch, title string) string {
	var p struct{ Number int }
	h.Do("hanako", "POST", h.At("pulls"), map[string]any{"head": branch, "base": "main", "title": title, "body": "Please look."}, &p)
	return fmt.Sprint("#", p.Number)
}
func (h *giteaHome) reviews(item string) (texts, onLines []string) {
	var all []struct {
		ID   int64
		Body string
	}
	h.Do("hanako", "GET", h.At("pulls", iid(item), "reviews"), nil, &all)
	for _, v := range all {
		texts = append(texts, v.Body)
		var lines []struct {
			Path, Body string
			Position   int
		}
		h.Do("hanako", "GET", h.At("pulls", iid(item), "reviews", v.ID, "comments"), nil, &lines)
		for _, l := range lines {
			onLines = append(onLines, fmt.Sprintf("%s:%d %s", l.Path, l.Position, l.Body))
		}
	}
	return texts, onLines
}
func (h *giteaHome) pulls() (all []pull) {
	for _, p := range h.Pulls() {
		item := fmt.Sprint("#", p.Index)
		title, draft := strings.CutPrefix(p.Title, "WIP: ")
		all = append(all, pull{item, title, p.Body, p.Head.Name, draft, h.Reviewers(iid(item))})
	}
	return all
}
func (h *giteaHome) git(args ...string) (string, error) {
	return h.s.Git(h.Repo.Owner, h.Repo.Name, args...)
}

// wrap leaves alone what people do: they come by the same door.
func (h *giteaHome) wrap(f func(http.Handler) http.Handler) {
	h.s.Wrap(func(next http.Handler) http.Handler {
		wrapped := f(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "token "+h.Admin {
				next.ServeHTTP(w, r)
				return
			}
			wrapped.ServeHTTP(w, r)
		})
	})
}

// iid is an item as the servers take it, number what it is for GitHub's.
func iid(item string) string { return strings.TrimPrefix(item, "#") }

func number(item string) int {
	n, _ := strconv.Atoi(iid(item))
	return n
}

// newHomes is a town of several forges, with a tori that serves all of them.
func newHomes(t *testing.T, settings string, owner string, sources ...string) (*town, []home) {
	t.Helper()
	skipShort(t, "it is served")
	w := &town{t: t, dir: t.TempDir()}
	w.config = filepath.Join(w.dir, "config.yaml")
	settings += "checks: [sh check.sh]\nscheduling: {interval: 5, comments_interval: 5}\nserve: {listen: '127.0.0.1:0'}\npause_resume: {signal_file: " + filepath.Join(w.dir, "pause") + "}\n"
	var all []home
	for _, source := range sources {
		h := homes[source](t, func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }, owner)
		settings += h.section()
		w.env = append(w.env, h.login())
		all = append(all, h)
	}
	write(t, w.config, settings)
	write(t, filepath.Join(w.dir, "script.yaml"), mends)
	return w, all
}

// inBranch is what a branch of a forge says in a file, "" where it is not there.
func inBranch(h home, branch, name string) string {
	text, err := h.git("show", branch+":"+name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// countBranches counts the branches of a forge.
func countBranches(t *testing.T, h home) int {
	t.Helper()
	out, err := h.git("for-each-ref", "--format=%(refname)", "refs/heads")
	if err != nil {
		t.Fatal(err)
	}
	return len(strings.Fields(out))
}
