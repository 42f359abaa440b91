// Package gitlabtest is a GitLab for tests: it speaks the vendor's wire format over HTTP,
// breaks in the ways the real one does, and holds both sides to the vendor's published
// description.
package gitlabtest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/forge/gittest"
)

// T is what the server needs of a test; testing.TB has it all. Fatalf does not return.
type T interface {
	Helper()
	Cleanup(func())
	TempDir() string
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Options are the server's settings; the zero Options is gitlab.com's behaviour.
type Options struct {
	// Now is the clock of everything that the server dates; nil is time.Now. As on the
	// real server times are cut to milliseconds.
	Now func() time.Time
	// Path is what the server lies below: "/gitlab".
	Path string
	// Rate is how many requests a token has per minute; 0 is without a limit.
	Rate int
	// Counted is how long a list may be for its length to be told; 0 is 10,000.
	Counted int
	// Signing is a server of 19.0 or later, which signs webhooks.
	Signing bool
	// Licensed is a server with more than one reviewer for each merge request.
	Licensed bool
	// OnViolation takes what the description does not allow instead of the test, which it
	// fails otherwise.
	OnViolation func(text string)
}

// Server is a GitLab. Its methods are safe for concurrent use; those that are given a
// name or number that does not exist fail the test.
//
// It leaves out what no client of ours asks for: milestones, epics, boards, wikis, content
// and pipelines by the API. Members are those of the project itself, and GraphQL is not there.
type Server struct {
	URL string // of the web pages, with the path below which they lie

	t       T
	o       Options
	web     *httptest.Server
	doc     *description
	dir     string // of the bare repositories
	backend string // git's http-backend

	mu       sync.Mutex // guards all below
	wrap     func(http.Handler) http.Handler
	users    []*user
	projects []*project
	groups   map[string]bool
	tokens   map[string]*token
	lastID   int64
	fault    func(*http.Request) *Answer
	log      []string
	used     int // of the rate
	window   time.Time
}

// token is a login of an account.
type token struct {
	id     int64
	user   *user
	scopes []string
}

// Answer is one that is given in place of the server's own.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	// Lost says that the request is carried out and its answer does not arrive.
	Lost bool
}

// New starts a server that ends with the test.
func New(t T, o Options) *Server {
	t.Helper()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Counted == 0 {
		o.Counted = 10_000
	}
	backend, err := gittest.Backend()
	if err != nil {
		t.Fatalf("gitlabtest: find git: %v", err)
	}
	s := &Server{t: t, backend: backend, o: o, dir: t.TempDir(), doc: described(t), groups: map[string]bool{}, tokens: map[string]*token{}, lastID: 1000}
	mux := http.NewServeMux()
	for pattern, h := range routes() {
		method, at, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+o.Path+"/api/v4"+at, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, pattern, h) })
	}
	mux.HandleFunc(o.Path+"/api/", func(w http.ResponseWriter, r *http.Request) {
		s.t.Errorf("gitlabtest: no such operation: %s %s", r.Method, r.URL)
		http.Error(w, `{"error":"404 Not Found"}`, http.StatusNotFound)
	})
	all := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gitPath(r.URL.Path) {
			s.git(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
	s.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		wrap := s.wrap
		s.mu.Unlock()
		if wrap == nil {
			all(w, r)
			return
		}
		wrap(all).ServeHTTP(w, r)
	}))
	s.URL = s.web.URL + o.Path
	t.Cleanup(func() {
		s.web.CloseClientConnections()
		s.web.Close()
	})
	return s
}

func (s *Server) now() time.Time { return s.o.Now().UTC().Truncate(time.Millisecond) }

func (s *Server) id() int64 {
	s.lastID++
	return s.lastID
}

// Wrap puts something before the server; nil takes it away.
func (s *Server) Wrap(f func(http.Handler) http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrap = f
}

// Break lets a function answer requests in place of the server; it returns nil for those
// that go on. nil ends it.
func (s *Server) Break(f func(*http.Request) *Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// BreakLocked is Break for use within such a function.
func (s *Server) BreakLocked(f func(*http.Request) *Answer) { s.fault = f }

// Requests are the operations asked for since the last call of it, without queries; of one
// that was answered "not modified" it ends in " 304".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.log
	s.log = nil
	return all
}

type object = map[string]any

// call is a request under way; the server's mutex is held.
type call struct {
	s      *Server
	r      *http.Request
	user   *user
	token  *token
	p      *project // of paths below one
	body   object
	header http.Header
}

// handler answers a request: a status, and what becomes JSON; a string is sent as it is.
type handler func(c *call) (int, any)

// refuse is an answer that is an error.
func refuse(status int, message string) (int, any) { return status, object{"message": message} }

func (s *Server) answer(w http.ResponseWriter, r *http.Request, pattern string, h handler) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &call{s: s, r: r, header: w.Header()}
	c.header.Set("Date", s.now().Format(http.TimeFormat))
	var lost bool
	if s.fault != nil {
		switch a := s.fault(r); {
		case a != nil && a.Lost:
			lost = true
		case a != nil:
			maps.Copy(c.header, a.Header)
			w.WriteHeader(a.Status)
			_, _ = io.WriteString(w, a.Body)
			s.log = append(s.log, pattern)
			return
		}
	}
	status, v := c.admit(raw, pattern, h)
	data := []byte(nil)
	switch v := v.(type) {
	case nil:
	case string:
		data = []byte(v)
		c.header.Set("Content-Type", "text/plain")
	default:
		if data, err = json.Marshal(v); err != nil {
			s.t.Errorf("gitlabtest: %v", err)
		}
		c.header.Set("Content-Type", "application/json")
	}
	if status < 300 {
		s.doc.answered(s, pattern, status, data)
	}
	if r.Method == http.MethodGet && status == http.StatusOK {
		etag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(data))[:35] + `"`
		c.header.Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			status, data = http.StatusNotModified, nil
			pattern += " 304"
		}
	}
	s.log = append(s.log, pattern)
	if lost {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// admit looks at the login, the limits and the project before the handler.
func (c *call) admit(raw []byte, pattern string, h handler) (int, any) {
	s := c.s
	if s.o.Rate > 0 {
		if s.now().Sub(s.window) >= time.Minute {
			s.window, s.used = s.now(), 0
		}
		s.used++
		left := max(0, s.o.Rate-s.used)
		reset := s.window.Add(time.Minute)
		for name, n := range map[string]int64{"Limit": int64(s.o.Rate), "Remaining": int64(left), "Reset": reset.Unix()} {
			c.header.Set("RateLimit-"+name, strconv.FormatInt(n, 10))
		}
		if s.used > s.o.Rate {
			c.header.Set("Retry-After", strconv.Itoa(int(reset.Sub(s.now()).Seconds())+1))
			return http.StatusTooManyRequests, "Retry later\n"
		}
	}
	t := s.tokens[strings.TrimPrefix(c.r.Header.Get("Authorization"), "Bearer ")]
	if t == nil {
		return http.StatusUnauthorized, object{"error": "invalid_token", "error_description": "Token was revoked. You have to re-authorize from the user."}
	}
	c.user = t.user
	c.token = t
	itself := strings.HasSuffix(pattern, "/self") // a token may look at itself whatever its scopes
	if !itself && !slices.Contains(t.scopes, "api") && (c.r.Method != http.MethodGet || !slices.Contains(t.scopes, "read_api")) {
		return http.StatusForbidden, object{"error": "insufficient_scope", "error_description": "The request requires higher privileges than provided by the access token.", "scope": "api"}
	}
	s.doc.asked(s, pattern, c.r, raw)
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c.body); err != nil {
			return refuse(http.StatusBadRequest, "400 Bad request")
		}
	}
	if strings.Contains(pattern, "/projects/{id}") {
		var moved bool
		if c.p, moved = s.find(c.r.PathValue("id")); c.p == nil || !c.p.readable(c.user) {
			return refuse(http.StatusNotFound, "404 Project Not Found")
		}
		if moved && c.r.Method != http.MethodGet {
			return refuse(http.StatusMethodNotAllowed, "405 Non GET methods are not allowed for moved projects")
		}
		if moved {
			_, rest, _ := strings.Cut(strings.TrimPrefix(c.r.URL.EscapedPath(), s.o.Path+"/api/v4/projects/"), "/")
			to := strings.TrimSuffix(fmt.Sprintf("%s/api/v4/projects/%d/%s", s.URL, c.p.id, rest), "/")
			if c.r.URL.RawQuery != "" {
				to += "?" + c.r.URL.RawQuery
			}
			c.header.Set("Location", to)
			return http.StatusMovedPermanently, "This resource has been moved permanently to " + to + "."
		}
		if c.r.Method != http.MethodGet && c.p.level(c.user) < levelReporter {
			return refuse(http.StatusForbidden, "403 Forbidden")
		}
	}
	return h(c)
}

// paged is the page of a list that is asked for.
func paged[E any](c *call, all []E) (int, any) {
	q := c.r.URL.Query()
	number := func(name string, without int) int {
		if n, err := strconv.Atoi(q.Get(name)); err == nil && n > 0 {
			return n
		}
		return without
	}
	per, n := min(number("per_page", 20), 100), number("page", 1)
	last := max(1, (len(all)+per-1)/per)
	at := func(n int) string {
		q.Set("page", strconv.Itoa(n))
		return (&url.URL{Scheme: "http", Host: c.r.Host, Path: c.r.URL.Path, RawPath: c.r.URL.RawPath, RawQuery: q.Encode()}).String()
	}
	links := []string{"<" + at(1) + `>; rel="first"`}
	if n < last {
		links = append(links, "<"+at(n+1)+`>; rel="next"`)
	}
	if len(all) <= c.s.o.Counted {
		links = append(links, "<"+at(last)+`>; rel="last"`)
	}
	c.header.Set("Link", strings.Join(links, ", "))
	from := min((n-1)*per, len(all))
	return http.StatusOK, slices.Clone(all[from:min(from+per, len(all))])
}

// text, and whole number, of the body.
func (c *call) text(name string) (string, bool) {
	v, ok := c.body[name].(string)
	return v, ok
}
