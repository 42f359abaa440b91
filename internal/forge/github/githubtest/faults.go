package githubtest

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	primaryText   = "API rate limit exceeded for user ID 1. If you reach out to GitHub Support for help, please include the request ID and timestamp."
	secondaryText = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to GitHub Support for help, please include the request ID and timestamp."
	primaryDocs   = "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"
	secondaryDocs = "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits"
)

// Request is a request as faults and the log see it.
type Request struct {
	N       int // 1 is the server's first, of all kinds
	Nth     int // 1 is the first of its pattern
	Method  string
	Path    string // without /api/v3
	Pattern string // "GET /repos/{owner}/{repo}/issues", "git-receive-pack", "POST /graphql"
	Query   url.Values
	Header  http.Header
	Body    []byte // nil for git

	User   string // who asked, "" for nobody or who lied
	Status int    // of the answer; 0 where there was none
}

// Fault is what happens to a request. The zero Fault is none.
type Fault struct {
	// Status is answered instead of doing anything, with Message in GitHub's
	// form and Header beside the usual ones.
	Status  int
	Message string
	Docs    string // documentation_url; default GitHub's
	Errors  []any  // the body's "errors"
	Header  http.Header

	Hang bool // no answer, until the client or the test gives up; nothing is done
	Drop bool // the connection is closed; nothing is done

	// What follows happens when the thing asked for was done.
	After     func() // called before the answer is sent
	DropAfter bool   // the connection is closed instead of answering
	HangAfter bool   // no answer
	Cut       bool   // half of the body is sent and the connection closed
}

// faults are the test's wishes.
type faults struct {
	hook  func(*Request) *Fault
	queue []queued
	down  bool
}

type queued struct {
	pattern string
	fault   Fault
}

// OnRequest has f asked about every request, before it is done; nil is no fault.
// f may use the server. It takes the place of the one before; nil ends it.
func (s *Server) OnRequest(f func(*Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.hook = f
}

// FailNext has the next n requests of a pattern ("" for any) meet the fault.
func (s *Server) FailNext(pattern string, n int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.faults.queue = append(s.faults.queue, queued{pattern, f})
	}
}

// Down takes the whole forge away, git included, or brings it back: connections
// are accepted and closed.
func (s *Server) Down(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.down = down
}

// Unauthorized is the answer to a token that was revoked.
func Unauthorized() Fault { return Fault{Status: http.StatusUnauthorized, Message: "Bad credentials"} }

// Forbidden is the answer to a token that does not reach that far.
func Forbidden() Fault {
	return Fault{Status: http.StatusForbidden, Message: "Resource not accessible by integration"}
}

// NotFound is the answer about what is not there or not to be seen.
func NotFound() Fault { return Fault{Status: http.StatusNotFound, Message: "Not Found"} }

// Gone is the answer where issues are switched off.
func Gone() Fault {
	return Fault{Status: http.StatusGone, Message: "Issues has been disabled in this repository."}
}

// Unprocessable is a refusal of what was sent.
func Unprocessable(message string) Fault {
	return Fault{Status: http.StatusUnprocessableEntity, Message: message}
}

// Broken is an error of the server's own: 500, 502, 503, 504.
func Broken(status int) Fault {
	return Fault{Status: status, Message: "Server Error"}
}

// RateLimited is the primary rate limit, used up until reset; status is 403 or 429.
func RateLimited(status int, reset time.Time) Fault {
	h := http.Header{}
	rateHeaders(h, 5000, 5000, reset, "core")
	return Fault{Status: status, Message: primaryText, Docs: primaryDocs, Header: h}
}

// SecondaryLimited is a secondary rate limit; status is 403 or 429. A wait of 0
// sends no Retry-After, as the real server does at times.
func SecondaryLimited(status int, wait time.Duration) Fault {
	h := http.Header{}
	if wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
	}
	return Fault{Status: status, Message: secondaryText, Docs: secondaryDocs, Header: h}
}

// fate decides what happens to a request and enters it into the log.
func (s *Server) fate(q *Request) (entry *Request, f Fault) {
	entry = s.record(q)
	s.mu.Lock()
	hook := s.faults.hook
	if s.faults.down {
		s.mu.Unlock()
		return entry, Fault{Drop: true}
	}
	for i, w := range s.faults.queue {
		if w.pattern == "" || w.pattern == q.Pattern {
			s.faults.queue = append(s.faults.queue[:i:i], s.faults.queue[i+1:]...)
			s.mu.Unlock()
			return entry, w.fault
		}
	}
	s.mu.Unlock()
	if hook != nil {
		if p := hook(q); p != nil {
			return entry, *p
		}
	}
	return entry, f
}

// through answers a request with the faults that it is to meet.
func (s *Server) through(w http.ResponseWriter, q *Request, do func() *reply) {
	entry, f := s.fate(q)
	switch {
	case f.Drop:
		drop(w)
		return
	case f.Hang:
		s.hang(w)
		return
	case f.Status != 0:
		o := s.fault(q, f)
		s.outcome(entry, "", o.status)
		o.send(w, -1)
		return
	}
	o := do()
	if f.After != nil {
		f.After()
	}
	switch {
	case f.DropAfter:
		s.outcome(entry, o.user, 0)
		drop(w)
		return
	case f.HangAfter:
		s.outcome(entry, o.user, 0)
		s.hang(w)
		return
	case f.Cut:
		s.outcome(entry, o.user, o.status)
		o.send(w, len(o.data)/2)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // the documented way to break the connection
	}
	s.outcome(entry, o.user, o.status)
	o.send(w, -1)
}

// fault is the answer that a fault makes; of GraphQL a rate limit is an error in an answer of 200.
func (s *Server) fault(q *Request, f Fault) *reply {
	if f.Docs == "" {
		f.Docs = docs
	}
	body := object{"message": f.Message, "documentation_url": f.Docs, "status": strconv.Itoa(f.Status)}
	if f.Errors != nil {
		body["errors"] = f.Errors
	}
	o := &reply{answer: &answer{status: f.Status, body: body}, header: http.Header{}}
	if q.Pattern == graphqlPattern && f.Header.Get("X-Ratelimit-Remaining") == "0" {
		o.answer = graphqlError("RATE_LIMITED", "", f.Message, nil)
	}
	s.mu.Lock()
	o.header.Set("X-GitHub-Request-Id", "FA01:"+strconv.FormatInt(s.id(), 16))
	rateHeaders(o.header, s.o.Rate, 1, s.now().Add(time.Hour), "core")
	s.mu.Unlock()
	maps.Copy(o.header, f.Header)
	o.encode()
	if strings.Contains(q.Pattern, "/") { // none of git's
		s.validateAnswer(q.Pattern, o)
	}
	return o
}

// drop closes the connection. One line goes first: clients that got nothing at
// all ask again by themselves, behind the test's back.
func drop(w http.ResponseWriter) {
	c, b, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = b.WriteString("HTTP/1.1 500 Internal Server Error\r\n")
	_ = b.Flush()
	_ = c.Close()
}

// hang waits until the client or the test has had enough.
func (s *Server) hang(w http.ResponseWriter) {
	gone := make(chan struct{})
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	go func() {
		defer close(gone)
		var b [1]byte
		_, _ = c.Read(b[:]) // returns when the client closes
	}()
	select {
	case <-gone:
		_ = c.Close()
	case <-s.closed:
		_ = c.Close()
		<-gone
	}
}
