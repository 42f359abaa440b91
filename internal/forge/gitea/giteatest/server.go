// Package giteatest is a Gitea for tests: its API below a path, with the git of its
// repositories, as far as tori and the people of its tests call it. Each request and answer is
// held against what Gitea publishes of its API.
package giteatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge/gittest"
)

// T is what a test gives.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	TempDir() string
	Cleanup(func())
}

// Server is a Gitea. It is safe for concurrent use.
type Server struct {
	URL string // as people type it into a browser
	// Admin is a token of the administrator, who may do as others: "Sudo".
	Admin string
	// Most is the setting MAX_RESPONSE_ITEMS, elements of a page at most.
	Most int

	t       T
	now     func() time.Time
	dir     string
	backend string
	api     *description

	mu        sync.Mutex
	wrap      func(http.Handler) http.Handler
	last      int64
	users     []*user
	repos     []*repo
	labels    map[int64][]*sdk.Label  // of organizations
	reactions map[any][]*sdk.Reaction // by issue or comment
	tokens    map[string]*user
}

type user struct {
	sdk.User
	password string
	org      bool
	before   string // a name that was given up
}

type repo struct {
	sdk.Repository
	owner    *user
	roles    map[int64]string // by the number of a user
	labels   []*sdk.Label
	issues   []*issue
	hooks    []*Hook
	statuses map[string][]*sdk.Status
	before   string // owner/name that leads here
	dir      string
}

type issue struct {
	sdk.Issue
	repo     *repo
	edits    int
	comments []*sdk.Comment
	events   []*event
	pull     *pull
}

type pull struct {
	head, base, commit string
	reviewers          []*user
	reviews            []*review
}

type review struct {
	sdk.PullReview
	lines []*sdk.PullReviewComment
}

// event is one of the timeline as the server has it, which the library does not.
type event struct {
	ID              int64      `json:"id"`
	Type            string     `json:"type"`
	User            *sdk.User  `json:"user"`
	Body            string     `json:"body"`
	Created         time.Time  `json:"created_at"`
	Updated         time.Time  `json:"updated_at"`
	Label           *sdk.Label `json:"label"`
	Assignee        *sdk.User  `json:"assignee"`
	RemovedAssignee bool       `json:"removed_assignee"`
	OldTitle        string     `json:"old_title"`
	NewTitle        string     `json:"new_title"`
}

// New starts a server that ends with the test; now is its clock.
func New(t T, now func() time.Time) *Server {
	t.Helper()
	s := &Server{t: t, now: now, dir: t.TempDir(), Most: 50, last: 100, labels: map[int64][]*sdk.Label{}, reactions: map[any][]*sdk.Reaction{}, tokens: map[string]*user{}}
	var err error
	if s.backend, err = gittest.Backend(); err != nil {
		t.Fatalf("giteatest: %v", err)
	}
	if s.api, err = described(); err != nil {
		t.Fatalf("giteatest: the description: %v", err)
	}
	admin := s.addUser("root", "secret")
	admin.IsAdmin = true
	s.Admin = s.token(admin)
	mux := http.NewServeMux()
	mux.HandleFunc("/git/api/v1/", func(w http.ResponseWriter, q *http.Request) {
		r, known := find(q)
		if !known {
			t.Errorf("giteatest: there is no %s %s", q.Method, q.URL.Path)
			http.NotFound(w, q)
			return
		}
		s.serve(w, q, r)
	})
	mux.HandleFunc("/git/{owner}/{name}/{tail...}", s.git)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		wrap := s.wrap
		s.mu.Unlock()
		if wrap == nil {
			mux.ServeHTTP(w, q)
			return
		}
		wrap(mux).ServeHTTP(w, q)
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	s.URL = web.URL + "/git"
	return s
}

// Wrap puts something before the server; nil takes it away.
func (s *Server) Wrap(f func(http.Handler) http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrap = f
}

// Git runs git in a repository.
func (s *Server) Git(owner, name string, args ...string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.repos {
		if r.is(owner, name) {
			return gittest.Run(r.dir, "", s.second(), args...)
		}
	}
	return "", fmt.Errorf("there is no %s/%s", owner, name)
}

// find is the operation that a request is for, whose names it is given; of several the one with
// the fewest names in its path.
func find(q *http.Request) (found route, known bool) {
	_, path, _ := strings.Cut(q.URL.EscapedPath(), "/api/v1")
	parts := strings.Split(path, "/")
	var values map[string]string
	for _, r := range routes {
		method, path, _ := strings.Cut(r.pattern, " ")
		template := strings.Split(path, "/")
		if method != q.Method || len(template) != len(parts) {
			continue
		}
		got, fits := map[string]string{}, true
		for i, p := range template {
			v, err := url.PathUnescape(parts[i])
			if name, is := strings.CutPrefix(p, "{"); is && err == nil {
				got[strings.TrimSuffix(name, "}")] = v
			} else {
				fits = fits && p == parts[i]
			}
		}
		if fits && (!known || len(got) < len(values)) {
			found, known, values = r, true, got
		}
	}
	for name, v := range values {
		q.SetPathValue(name, v)
	}
	q.Pattern = found.pattern
	return found, known
}

func (s *Server) id() int64 { s.last++; return s.last }

// second is the time as the server dates with it.
func (s *Server) second() time.Time { return s.now().UTC().Truncate(time.Second) }

func (s *Server) addUser(login, password string) *user {
	u := &user{password: password}
	u.ID, u.UserName, u.Created, u.LastLogin, u.IsActive, u.Visibility = s.id(), login, s.second(), s.second(), true, "public"
	s.users = append(s.users, u)
	return u
}

func (s *Server) token(u *user) string {
	t := fmt.Sprintf("%040x", 1<<40+s.id())
	s.tokens[t] = u
	return t
}

func (s *Server) user(login string) *user {
	for _, u := range s.users {
		if strings.EqualFold(u.UserName, login) && u.ID > 0 {
			return u
		}
	}
	return nil
}

func (r *repo) is(owner, name string) bool {
	return strings.EqualFold(r.owner.UserName, owner) && strings.EqualFold(r.Name, name)
}

// role is what a user may do: 0 nothing, 1 read, 2 write, 3 administer.
func (r *repo) role(u *user) int {
	role := 0
	if !r.Private {
		role = 1
	}
	switch {
	case u == nil:
		return role
	case u.IsAdmin || r.owner == u:
		return 3
	}
	return max(role, slices.Index([]string{"", "read", "write", "admin"}, r.roles[u.ID]))
}

// call is a request that is being answered; the server is locked.
type call struct {
	*Server
	*http.Request
	doer   *user // nil for nobody
	repo   *repo
	issue  *issue
	body   []byte
	header http.Header // of the answer
}

// failure is an answer that says what went wrong.
type failure struct {
	status  int
	message string
}

func fail(status int, message string) (int, any) { return 0, failure{status, message} }

func notFound() (int, any) {
	return fail(http.StatusNotFound, "The target couldn't be found.")
}

// serve answers a request to the API.
func (s *Server) serve(w http.ResponseWriter, q *http.Request, r route) {
	body, err := io.ReadAll(io.LimitReader(q.Body, 1<<24))
	if err != nil {
		return
	}
	if wrong := s.api.request(r.pattern, q, body); wrong != "" {
		s.t.Errorf("giteatest: %s: the request is not as Gitea describes it: %s\n%s?%s\n%.500s", r.pattern, wrong, q.URL.Path, q.URL.RawQuery, body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &call{Server: s, Request: q, body: body, header: w.Header()}
	status, v := c.admit(r)
	if status == 0 && v == nil {
		status, v = r.answer(c)
	}
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	var text []byte
	switch v := v.(type) {
	case failure:
		status = v.status
		text, _ = json.Marshal(map[string]string{"message": v.message, "url": s.URL + "/api/swagger"})
	case nil:
	default:
		if text, err = json.Marshal(v); err != nil {
			s.t.Errorf("giteatest: %v", err)
		}
	}
	if wrong := s.api.answer(r.pattern, status, text); wrong != "" {
		s.t.Errorf("giteatest: %s: the answer is not as Gitea describes it: %s\n%.1000s", r.pattern, wrong, text)
	}
	if text != nil {
		w.Header().Set("Content-Type", "application/json;charset=utf-8")
	}
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may be gone
}

// admit finds who asks and for what, and whether they may.
func (c *call) admit(r route) (int, any) {
	if name, password, is := c.BasicAuth(); is {
		if c.doer = c.user(name); c.doer == nil || c.doer.password != password {
			return fail(http.StatusUnauthorized, "invalid username, password or token")
		}
	} else if given := c.Header.Get("Authorization"); given != "" {
		_, t, _ := strings.Cut(given, " ")
		if c.doer = c.tokens[t]; c.doer == nil {
			return fail(http.StatusUnauthorized, "invalid username, password or token")
		}
	}
	if as := c.Header.Get("Sudo"); as != "" {
		if c.doer == nil || !c.doer.IsAdmin || c.user(as) == nil {
			return fail(http.StatusForbidden, "Only administrators allowed to sudo.")
		}
		c.doer = c.user(as)
	}
	owner, name := c.PathValue("owner"), c.PathValue("repo")
	if owner == "" {
		if c.doer == nil || r.needs > 2 && !c.doer.IsAdmin {
			return fail(http.StatusUnauthorized, "token is required")
		}
		return 0, nil
	}
	for _, x := range c.repos {
		if x.is(owner, name) {
			c.repo = x
		}
	}
	for _, x := range c.repos {
		if c.repo == nil && x.before == owner+"/"+name && x.role(c.doer) > 0 {
			to := strings.Replace(c.Request.URL.EscapedPath(), "/repos/"+x.before, "/repos/"+x.FullName, 1)
			c.header.Set("Location", to+"?"+c.Request.URL.RawQuery)
			return fail(http.StatusMovedPermanently, "")
		}
	}
	switch {
	case c.repo == nil || c.repo.role(c.doer) == 0:
		return notFound()
	case c.Method != http.MethodGet && c.doer == nil:
		return fail(http.StatusUnauthorized, "token is required")
	case c.repo.role(c.doer) < r.needs:
		return fail(http.StatusForbidden, "user should have a permission to write to a repo")
	}
	if c.Method != http.MethodGet && c.repo.Archived && c.Method != http.MethodPatch {
		return fail(http.StatusLocked, c.repo.FullName+" is archived")
	}
	if n := c.PathValue("index"); n != "" {
		for _, i := range c.repo.issues {
			if strconv.FormatInt(i.Index, 10) == n {
				c.issue = i
			}
		}
		if c.issue == nil || strings.Contains(r.pattern, "/pulls/") && c.issue.pull == nil {
			if strings.HasSuffix(r.pattern, "/comments") || strings.HasSuffix(r.pattern, "/timeline") {
				return fail(http.StatusInternalServerError, "") // as the real one
			}
			return notFound()
		}
		if c.Method == http.MethodPost && c.issue.IsLocked && c.repo.role(c.doer) < 2 {
			return fail(http.StatusForbidden, "locked")
		}
	}
	return 0, nil
}

// into decodes the body.
func (c *call) into(v any) {
	if len(c.body) > 0 {
		if err := json.Unmarshal(c.body, v); err != nil {
			c.t.Errorf("giteatest: %v", err)
		}
	}
}

// number is the id in the path.
func (c *call) number() int64 {
	n, _ := strconv.ParseInt(c.PathValue("id"), 10, 64)
	return n
}

// since is the time of the query that what is listed was changed at or after.
func (c *call) since() time.Time {
	at, _ := time.Parse(time.RFC3339, c.Request.URL.Query().Get("since"))
	return at
}

// page is the part of a list that is asked for; the header says how long it is.
// Without a page it is the first, as of Gitea 1.26.
func page[T any](c *call, all []T) []T {
	c.header.Set("X-Total-Count", strconv.Itoa(len(all)))
	n, _ := strconv.Atoi(c.Request.URL.Query().Get("page"))
	size, _ := strconv.Atoi(c.Request.URL.Query().Get("limit"))
	if size <= 0 || size > c.Most {
		size = min(30, c.Most)
		if v := c.Request.URL.Query().Get("limit"); v != "" {
			size = c.Most
		}
	}
	from := min(max(n-1, 0)*size, len(all))
	return all[from:min(from+size, len(all))]
}

// git answers git's smart protocol with git's own http-backend.
func (s *Server) git(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	_, password, _ := r.BasicAuth()
	doer := s.tokens[password]
	var at *repo
	for _, x := range s.repos {
		if x.is(r.PathValue("owner"), strings.TrimSuffix(r.PathValue("name"), ".git")) {
			at = x
		}
	}
	needs := 1
	if r.URL.Query().Get("service") == "git-receive-pack" || strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
		needs = 2
	}
	status := 0
	switch {
	case doer == nil && (at == nil || at.Private || needs > 1):
		w.Header().Set("WWW-Authenticate", `Basic realm="Gitea"`)
		status = http.StatusUnauthorized
	case at == nil || at.role(doer) == 0:
		status = http.StatusNotFound
	case at.role(doer) < needs || needs > 1 && at.Archived:
		status = http.StatusForbidden
	}
	s.mu.Unlock()
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	name := ""
	if doer != nil {
		name = doer.UserName
	}
	rec, err := gittest.Serve(s.backend, s.dir, filepath.Base(at.dir), r.PathValue("tail"), name, r)
	if err != nil {
		return
	}
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = io.Copy(w, bytes.NewReader(rec.Body.Bytes())) // the client may be gone
}

// git runs git in the repository.
func (r *repo) git(c *call, in string, args ...string) (string, bool) {
	out, err := gittest.Run(r.dir, in, c.second(), args...)
	return out, err == nil
}
