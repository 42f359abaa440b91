package githubtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const maxBody = 64 << 20

// call is one request while it is answered. Handlers run with the server's lock held.
type call struct {
	s    *Server
	r    *http.Request
	body []byte
	root string // "/api/v3" or ""
	// escaped is the path below root as it was sent.
	escaped string
	path    *path
	who     *token // nil for nobody
	repo    *repo  // of paths below /repos/{owner}/{repo}
	role    int    // what who may do there
}

// answer is what a handler says.
type answer struct {
	status   int
	body     any // nil for none
	link     string
	location string // of a redirect
}

// route is an operation in the words of the vendor's description.
type route struct {
	pattern string
	who     string // "user", "app", "anyone"; app is a JWT
	do      func(*call) *answer
}

func ok(body any) *answer      { return &answer{status: http.StatusOK, body: body} }
func created(body any) *answer { return &answer{status: http.StatusCreated, body: body} }

const docs = "https://docs.github.com/rest"

func failed(status int, message string) *answer {
	return &answer{status: status, body: object{"message": message, "documentation_url": docs, "status": strconv.Itoa(status)}}
}

func notFound() *answer { return failed(http.StatusNotFound, "Not Found") }

func forbidden() *answer {
	return failed(http.StatusForbidden, "Resource not accessible by personal access token")
}

// invalid is a refusal that tells what is wrong: resource, field, code and text,
// of which the last three may be empty.
func invalid(resource, field, code, text string) *answer {
	e := object{"resource": resource, "code": code}
	if field != "" {
		e["field"] = field
	}
	if text != "" {
		e["message"] = text
	}
	a := failed(http.StatusUnprocessableEntity, "Validation Failed")
	a.body.(object)["errors"] = []any{e}
	return a
}

// rest answers a request of the API.
func (s *Server) rest(w http.ResponseWriter, r *http.Request, root string) {
	escaped := s.byNumber(strings.TrimPrefix(r.URL.EscapedPath(), root))
	at := s.mux.find(r, escaped)
	r.URL.Path, r.URL.RawPath = s.byNumber(strings.TrimPrefix(r.URL.Path, root)), ""
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client went away
	}
	c := &call{s: s, r: r, body: body, root: root, escaped: escaped}
	if at == nil {
		s.record(c.request(r.Method + " " + r.URL.Path)).Status = http.StatusNotFound
		if !s.o.Loose {
			s.t.Errorf("githubtest: no operation %s %s: the server does not have it", r.Method, r.URL.Path)
		}
		o := &reply{answer: notFound(), header: http.Header{}}
		o.encode()
		o.send(w, -1)
		return
	}
	c.path = at
	s.validateRequest(c)
	s.through(w, c.request(at.pattern), func() *reply { return s.answer(c) })
}

// request is what faults and the log are told of a call.
func (c *call) request(pattern string) *Request {
	return &Request{Method: c.r.Method, Path: c.r.URL.Path, Pattern: pattern, Query: c.r.URL.Query(), Header: c.r.Header, Body: c.body}
}

// answer authenticates, counts, does and dresses one call.
func (s *Server) answer(c *call) *reply {
	out := s.run(c)
	s.validateAnswer(c.path.pattern, out)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conditional(c, out)
	s.spend(c, out)
	return out
}

// run does a call with the lock held, so that calls come one after the other.
func (s *Server) run(c *call) *reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.authenticate(c)
	if a == nil {
		if a = s.limited(c); a == nil {
			a = c.run(c.path.route)
		}
	}
	out := &reply{answer: a, header: http.Header{}, user: c.login()}
	if c.who != nil && c.who.scopes != nil {
		out.header.Set("X-OAuth-Scopes", *c.who.scopes)
	}
	out.encode()
	return out
}

// reply is an answer ready to be sent.
type reply struct {
	*answer
	header http.Header
	data   []byte
	user   string
}

func (o *reply) encode() {
	if o.body == nil {
		return
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o.body); err != nil {
		panic(err) // a mistake of this package
	}
	o.data = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// conditional dates and tags an answer, and shortens it to 304 for who has it already.
func (s *Server) conditional(c *call, o *reply) {
	h := o.header
	h.Set("X-GitHub-Request-Id", fmt.Sprintf("%04X:%06X:0:0", s.log.n&0xffff, s.log.n))
	h.Set("X-GitHub-Media-Type", "github.v3; format=json")
	h.Set("X-GitHub-Api-Version-Selected", "2022-11-28")
	if o.link != "" {
		h.Set("Link", o.link)
	}
	if o.location != "" {
		h.Set("Location", o.location)
	}
	if o.status != http.StatusOK || c.r.Method != http.MethodGet {
		return
	}
	h.Set("Cache-Control", "private, max-age=60, s-maxage=60")
	h.Set("Vary", "Accept, Authorization, Cookie, X-GitHub-OTP")
	// The tag is as good as the whole answer, its links included.
	sum := sha256.Sum256(append([]byte(o.link), o.data...))
	tag := fmt.Sprintf(`W/"%x"`, sum)
	h.Set("Etag", tag)
	if matches(c.r.Header.Get("If-None-Match"), tag) {
		o.status, o.data, o.body = http.StatusNotModified, nil, nil
	}
}

// matches compares tags weakly.
func matches(header, tag string) bool {
	for t := range strings.SplitSeq(header, ",") {
		if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == strings.TrimPrefix(tag, "W/") {
			return header != ""
		}
	}
	return false
}

// window begins another hour of a token where the last one is over.
func (s *Server) window(t *token) {
	if now := s.now(); !now.Before(t.reset) {
		t.used, t.reset = 0, now.Add(time.Hour)
	}
}

// limited refuses who used up the hour.
func (s *Server) limited(c *call) *answer {
	if c.who == nil {
		return nil
	}
	s.window(c.who)
	if c.who.used < s.o.Rate {
		return nil
	}
	if c.path.pattern == graphqlPattern {
		return graphqlError("RATE_LIMITED", "", primaryText, nil)
	}
	a := failed(http.StatusForbidden, primaryText)
	a.body.(object)["documentation_url"] = primaryDocs
	return a
}

// spend counts the call, unless nothing had changed, and tells what is left.
func (s *Server) spend(c *call, o *reply) {
	if c.who == nil {
		return
	}
	s.window(c.who)
	if o.status != http.StatusNotModified && c.who.used < s.o.Rate {
		c.who.used++
	}
	resource := "core"
	if c.r.URL.Path == "/graphql" {
		resource = "graphql"
	}
	rateHeaders(o.header, s.o.Rate, c.who.used, c.who.reset, resource)
}

func rateHeaders(h http.Header, limit, used int, reset time.Time, resource string) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, limit-used)))
	h.Set("X-RateLimit-Used", strconv.Itoa(used))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
	h.Set("X-RateLimit-Resource", resource)
}

// send writes the answer; of its body at most the first n bytes, -1 for all.
func (o *reply) send(w http.ResponseWriter, n int) {
	maps.Copy(w.Header(), o.header)
	if len(o.data) > 0 {
		if o.header.Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(o.data)))
	}
	w.WriteHeader(o.status)
	if n < 0 {
		n = len(o.data)
	}
	_, _ = w.Write(o.data[:n])
}

// page cuts a list as the query asks and links the pages around it. One of the
// n elements is made by element, as far as it is asked for.
func (c *call) page(n int, element func(i int) object) ([]any, string) {
	per := c.number("per_page", 30)
	if per < 1 {
		per = 30
	}
	per = min(per, 100)
	page := max(1, c.number("page", 1))
	last := max(1, (n+per-1)/per)
	out := []any{}
	for i := min((page-1)*per, n); i < min(page*per, n); i++ {
		out = append(out, element(i))
	}
	var links []string
	link := func(rel string, to int) {
		q := c.r.URL.Query()
		q.Set("page", strconv.Itoa(to))
		u := url.URL{Scheme: "http", Host: c.r.Host, Path: c.root + c.r.URL.Path, RawQuery: q.Encode()}
		links = append(links, fmt.Sprintf(`<%s>; rel="%s"`, u.String(), rel))
	}
	if page > 1 {
		link("prev", min(page-1, last))
	}
	if page < last {
		link("next", page+1)
		link("last", last)
	}
	if page > 1 {
		link("first", 1)
	}
	return out, strings.Join(links, ", ")
}

// list answers a page of n elements.
func (c *call) list(n int, element func(i int) object) *answer {
	all, link := c.page(n, element)
	a := ok(all)
	a.link = link
	return a
}

// number is a parameter of the query; what is no number counts as not given.
func (c *call) number(name string, otherwise int) int {
	n, err := strconv.Atoi(c.r.URL.Query().Get(name))
	if err != nil {
		return otherwise
	}
	return n
}

// since is the parameter of that name; it is zero where it is not given.
func (c *call) since() (time.Time, *answer) {
	v := c.r.URL.Query().Get("since")
	if v == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return t, invalid("Issue", "since", "invalid", "")
	}
	return t, nil
}

// read decodes the body, which must be a JSON object.
func (c *call) read(into any) *answer {
	if err := json.Unmarshal(c.body, into); err != nil {
		return failed(http.StatusBadRequest, "Problems parsing JSON")
	}
	return nil
}
