// Package githubtest is a GitHub for tests: it speaks the vendor's wire format
// over HTTP, keeps real git repositories behind it, breaks in the ways the real
// one does, and holds both sides to the vendor's published description.
package githubtest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/forge/gittest"
)

// T is what the server needs of a test or a benchmark; testing.TB has it all.
// Fatalf does not return.
type T interface {
	Helper()
	Cleanup(func())
	TempDir() string
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Options are the server's settings; the zero Options is github.com's behaviour.
type Options struct {
	// Now is the clock of everything that the server dates; nil is time.Now.
	// As on the real server all times are cut to whole seconds.
	Now func() time.Time
	// Rate is how many requests a token has per hour; 0 is 5000.
	Rate int
	// MergeableLater is how often a pull request's mergeability is answered as
	// not known yet after each change of its branches.
	MergeableLater int
	// Unchecked switches off the validation by GitHub's description: for benchmarks.
	Unchecked bool
	// OnViolation takes the violations of the description instead of the test,
	// which they fail otherwise.
	OnViolation func(Violation)
	// Loose lets requests pass that the server has no operation for: they are
	// answered 404. Otherwise they fail the test too.
	Loose bool
}

// Server is a GitHub. Its methods are safe for concurrent use; those that are
// given a name or number that does not exist fail the test.
//
// It leaves out what no client of ours asks for: milestones, teams, projects, timelines,
// reviews that are pending, search, webhooks of organizations and apps, and content by the API. Edits of comments do not date their issue, diffs of
// remarks are not told, and tokens have no scopes beyond their owner's roles.
type Server struct {
	URL string // of the web pages and of git: "http://127.0.0.1:1234"

	t       T
	o       Options
	dir     string // of the bare repositories, named by number
	backend string // git http-backend
	web     *httptest.Server
	mux     *router
	ops     *description // nil where nothing is validated
	closed  chan struct{}
	seen    answers

	mu       sync.Mutex // guards all below
	accounts []*account
	repos    []*repo
	tokens   map[string]*token
	apps     []*app
	installs []*installation
	lastID   int64
	faults   faults
	log      requestLog
	post     func(Delivery) // has a delivery sent; nil sends it at once
	posting  sync.WaitGroup
}

// New starts a server that ends with the test.
func New(t T, o Options) *Server {
	t.Helper()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rate == 0 {
		o.Rate = 5000
	}
	backend, err := gittest.Backend()
	if err != nil {
		t.Fatalf("githubtest: git --exec-path: %v", err)
	}
	s := &Server{t: t, o: o, dir: t.TempDir(), backend: backend,
		closed: make(chan struct{}), tokens: map[string]*token{}, lastID: 1000}
	s.log.counts = map[string]int{}
	if !o.Unchecked {
		s.ops = loaded(t)
	}
	s.routes()
	s.web = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.web.URL
	t.Cleanup(s.Close)
	return s
}

// API is the root of the REST API: the URL that clients of an enterprise server
// are given, with a slash at its end. GraphQL is beside it.
func (s *Server) API() string { return s.URL + "/api/v3/" }

// Close ends the server and every request that hangs in it. The test does so by itself.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closed:
		s.mu.Unlock()
		return
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	s.posting.Wait()
	s.web.CloseClientConnections()
	s.web.Close()
}

func (s *Server) now() time.Time { return s.o.Now().UTC().Truncate(time.Second) }

// id gives out a number that nothing else on the server has.
func (s *Server) id() int64 {
	s.lastID++
	return s.lastID
}

// serve tells the API from git and from the pages of people.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.now().Format(http.TimeFormat))
	path := r.URL.EscapedPath()
	switch {
	case strings.HasPrefix(path, "/api/v3/"):
		s.rest(w, r, "/api/v3")
	case path == "/api/graphql" || path == "/graphql":
		r.URL.Path, r.URL.RawPath = "/graphql", ""
		s.rest(w, r, "")
	case gitPath(path):
		s.git(w, r)
	default:
		s.rest(w, r, "")
	}
}
