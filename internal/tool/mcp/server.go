package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// State is where the connection to a server stands.
type State string

// The states. A server goes from Starting to Ready or Waiting, from Ready to
// Waiting when it dies, from Waiting to Starting after a pause, and to Stopped
// instead of Waiting after too many failures. From each it goes to Suspended
// and then to Starting, as it is told; Closed is the end.
const (
	Starting  State = "starting"
	Ready     State = "ready"
	Waiting   State = "waiting"   // for the next attempt
	Stopped   State = "stopped"   // only a call starts it again
	Suspended State = "suspended" // until Manager.Resume
	Closed    State = "closed"
)

// server keeps one connection up. Everything about it that changes is changed
// by run, which is its only goroutine, but for what is said otherwise.
type server struct {
	m       *Manager
	conf    Server
	bearer  *bearer
	secrets *strings.Replacer
	tried   chan struct{} // closed after the first attempt
	first   sync.Once     // closes tried
	wake    chan struct{} // holds one wish of a caller that a stopped server be started
	slow    bool          // it takes longer than the first wait, and does not know the older greeting
	leftOut string        // tools that cannot be offered, as they were last told

	mu         sync.Mutex
	state      State
	turned     chan struct{} // closed at the next change of state
	connection *connection   // where Ready
	reason     string        // why it is not Ready
	stderr     string        // of the last process
	failures   int
	live       map[string]definition // as last listed; the map is never changed
	listed     bool

	pendingMu sync.Mutex
	pending   []*pendingCall // calls that are under way
}

func newServer(m *Manager, c Server) *server {
	c.Timeout = cmp.Or(max(c.Timeout, 0), DefaultTimeout)
	return &server{
		m: m, conf: c, bearer: newBearer(c, m.opts), secrets: secrets(c), tried: make(chan struct{}), wake: make(chan struct{}, 1),
		state: Starting, turned: make(chan struct{}),
	}
}

// secrets hides what the settings of a server hold from errors, which quote
// addresses and what a program printed.
func secrets(c Server) *strings.Replacer {
	hidden := map[string]string{}
	add := func(v, instead string) {
		if len(v) >= 6 {
			hidden[v] = instead
		}
	}
	if u, err := url.Parse(c.URL); err == nil && c.URL != "" {
		add(c.URL, u.Scheme+"://"+u.Host+u.Path)
		add(u.RawQuery, "[hidden]")
		if u.User != nil {
			pass, _ := u.User.Password()
			add(pass, "[hidden]")
		}
	}
	for _, m := range []map[string]string{c.Env, c.Header, {"client_secret": c.OAuth.ClientSecret}} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			v := m[k]
			add(v, "[hidden]")
			if _, token, ok := strings.Cut(v, " "); ok { // "Bearer ..."
				add(token, "[hidden]")
			}
		}
	}
	// The first that matches is replaced: of two that begin alike the longer one,
	// or its end would stay.
	var pairs []string
	for _, v := range slices.SortedFunc(maps.Keys(hidden), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	}) {
		pairs = append(pairs, v, hidden[v])
	}
	return strings.NewReplacer(pairs...)
}

func (s *server) hide(text string) string { return s.secrets.Replace(text) }

// run keeps the connection up until ctx ends, which is no failure.
func (s *server) run(ctx context.Context) {
	told := func() { s.first.Do(func() { close(s.tried) }) }
	for ctx.Err() == nil {
		lasted, err := s.attempt(ctx, told)
		if ctx.Err() != nil {
			break
		}
		s.mu.Lock()
		if lasted >= s.m.opts.Restart.Max {
			s.failures = 0
		}
		s.failures++
		n := s.failures
		s.mu.Unlock()
		s.m.opts.Logger.Warn("MCP server lost", "server", s.conf.Name, "failures", n, "reason", err.Error())
		state := Waiting
		if n >= s.m.opts.Restart.Limit {
			state = Stopped
		}
		s.turn(state, nil, func() { s.reason = line(err.Error(), maxReason) })
		told()
		s.pause(ctx, n)
		if ctx.Err() == nil {
			s.turn(Starting, nil, func() {})
		}
	}
}

// attempt makes a connection and keeps it until it is over. It returns how
// long it lasted, and why it did not last longer.
func (s *server) attempt(ctx context.Context, ready func()) (time.Duration, error) {
	l, older, err := s.greet(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	defer func() {
		l.close(s.m.opts.Grace)
		s.keep(l.transport)
	}()
	lctx, cancel := context.WithTimeout(ctx, s.m.opts.Handshake)
	defer cancel()
	stopped := context.AfterFunc(lctx, func() { l.abandon(ctx) })
	if err := s.relist(lctx, l); err != nil {
		if l.transport.fault() != nil {
			err = l.why()
		}
		return 0, s.explain(err, l.transport)
	}
	stopped()
	s.remember(older)
	s.turn(Ready, l, func() { s.reason = "" })
	s.m.opts.Logger.Info("MCP server ready", "server", s.conf.Name)
	ready()
	for {
		select {
		case <-ctx.Done():
			// Calls that come now are not for a connection that is being closed.
			s.turn(Suspended, nil, func() { s.reason = "it is being ended" })
			return 0, ctx.Err()
		case <-l.done:
			return time.Since(began), s.explain(l.why(), l.transport)
		case <-l.changed:
			if err := s.noteChange(ctx, l); err != nil {
				return time.Since(began), err
			}
		}
	}
}

// remember keeps how the server is greeted. Where that fails the next greeting
// may take longer, and that is all.
func (s *server) remember(older bool) {
	if s.m.opts.Look {
		return
	}
	if err := s.m.pins.remember(s.conf.Name, greeting{Of: s.conf.of(), Older: older}); err != nil {
		s.m.opts.Logger.Warn("MCP server: how it is greeted is not kept", "server", s.conf.Name, "reason", err.Error())
	}
}

// greet connects to the server in the way that it is known to answer; where it
// stays mute, at once in the other way. It reports which one it was.
func (s *server) greet(ctx context.Context) (l *connection, older bool, err error) {
	o := s.m.opts
	older, known := s.m.pins.greeted(s.conf.Name, s.conf.of())
	wait, then := o.FirstWait, o.Handshake
	if known || s.slow {
		wait, then = o.Handshake, o.FirstWait
	}
	if l, err = s.dialWithin(ctx, older, wait); !errors.Is(err, errNoAnswer) {
		return l, older, err
	}
	o.Logger.Info("MCP server is greeted in another way", "server", s.conf.Name, "older", !older, "reason", err.Error())
	l, again := s.dialWithin(ctx, !older, then)
	if again == nil {
		return l, !older, nil
	}
	if errors.Is(again, errNoAnswer) {
		return nil, false, again
	}
	// It does answer: it needs more time for the first one.
	s.slow = !older
	return nil, false, fmt.Errorf("%w; greeted in another way: %w", err, again)
}

func (s *server) dialWithin(ctx context.Context, older bool, wait time.Duration) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return s.dial(ctx, older, wait)
}

// of tells whether a server is still the one that it was.
func (c Server) of() string {
	return short(strings.Join(append([]string{c.URL}, c.Command...), "\x00"))
}

// keep keeps the last words of a process that has ended.
func (s *server) keep(c transport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stderr = s.hide(c.said())
}

// abandon ends what waits for a server that does not list its tools in time.
func (l *connection) abandon(ctx context.Context) {
	if ctx.Err() == nil {
		l.transport.abort()
	}
}

// listPause is how long after a listing the next change is looked at, so that
// a server that announces changes without end is listed now and then only.
const listPause = time.Second

// noteChange lists the tools again. What is offered stays as it is.
func (s *server) noteChange(ctx context.Context, l *connection) error {
	lctx, cancel := context.WithTimeout(ctx, s.m.opts.Handshake)
	defer cancel()
	if err := s.relist(lctx, l); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.explain(err, l.transport)
	}
	timer := time.NewTimer(listPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-l.done:
	case <-timer.C:
	}
	return nil
}

// relist takes down what the server lists now, and pins it where nothing is.
func (s *server) relist(ctx context.Context, l *connection) error {
	tools, leftOut, err := l.tools(ctx, s.m.opts.Mask)
	if err == nil {
		err = l.besides(tools, s.conf.Name, s.m.opts.Mask)
	}
	if err != nil {
		return err
	}
	s.tellLeftOut(leftOut)
	if !s.m.opts.Look {
		if err := s.m.pins.first(s.conf.Name, tools); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live, s.listed = tools, true
	return nil
}

// maxLeftOut is how many tools that cannot be offered are told by name.
const maxLeftOut = 20

// tellLeftOut logs which tools cannot be offered, once.
func (s *server) tellLeftOut(all []string) {
	now := strings.Join(all, "\n")
	if now == s.leftOut {
		return
	}
	s.leftOut = now
	for _, what := range all[:min(len(all), maxLeftOut)] {
		s.m.opts.Logger.Warn("MCP tool left out", "server", s.conf.Name, "tool", s.hide(what))
	}
	if more := len(all) - maxLeftOut; more > 0 {
		s.m.opts.Logger.Warn("MCP tools left out", "server", s.conf.Name, "more", more)
	}
}

// turn changes the state and wakes who waits for that.
func (s *server) turn(to State, l *connection, also func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.connection = to, l
	also()
	close(s.turned)
	s.turned = make(chan struct{})
}

// pause waits before the attempt after n failures.
func (s *server) pause(ctx context.Context, n int) {
	r := s.m.opts.Restart
	wait := r.Max
	if n < 30 {
		wait = min(r.Max, r.First<<(n-1))
	}
	wait = wait/2 + time.Duration(s.m.opts.Rand()*float64(wait/2))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	if n < r.Limit {
		return
	}
	select {
	case <-ctx.Done():
	case <-s.wake:
	}
}

const (
	maxReason = 1000 // bytes of the reason why a server is not ready
	maxSaid   = 500  // of them, from its standard error
)

// explain adds to err what the process has to say about it.
func (s *server) explain(err error, c transport) error {
	text := strings.ReplaceAll(line(s.hide(err.Error()), maxReason-maxSaid-100), "jsonrpc2: ", "")
	if d := c.diagnosis(); d != "" {
		text += " (" + d + ")"
	}
	if said := line(lastLines(s.hide(c.said()), maxSaid), maxSaid); said != "" {
		text += "; it last said: " + said
	}
	return errors.New(text)
}

// lastLines returns the end of s, from the beginning of a line where there is one.
func lastLines(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = s[len(s)-limit:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		return rest
	}
	return s
}

// listing returns the tools as last listed, and whether they ever were.
func (s *server) listing() (map[string]definition, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live, s.listed
}

// allows reports whether the settings leave a tool in. What a server says of its
// tools is left in with them.
func (s *server) allows(tool string) bool {
	return (len(s.conf.Allow) == 0 || tool == instructionsName || matches(s.conf.Allow, tool)) && !matches(s.conf.Deny, tool)
}

// server returns the server of that name, or nil.
func (m *Manager) server(name string) *server {
	for _, s := range m.servers {
		if s.conf.Name == name {
			return s
		}
	}
	return nil
}

func (s *server) status() Status {
	s.mu.Lock()
	st := Status{Server: s.conf.Name, State: s.state, Reason: s.reason, Stderr: s.stderr}
	l := s.connection
	s.mu.Unlock()
	if l != nil {
		st.Stderr = s.hide(l.transport.said())
		if r := l.session.InitializeResult(); r != nil {
			st.Protocol = line(r.ProtocolVersion, 40)
			if r.ServerInfo != nil {
				st.Program = line(r.ServerInfo.Name+" "+r.ServerInfo.Version, 120)
			}
		}
	}
	return st
}
