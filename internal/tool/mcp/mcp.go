// Package mcp gives a run the tools of other programs by the Model Context Protocol: one lasting
// connection per server. What a server says is untrusted: bounded, cleaned and pinned before a
// model reads it. A server that fails harms its own calls only.
package mcp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Server says how one server is reached: by a Command that speaks the protocol
// on its standard input and output, or by the URL of its streamable HTTP
// endpoint.
type Server struct {
	Name    string            // unique among the servers of a Manager; the first part of its tools' names
	Command []string          // argv; no shell reads it
	Env     map[string]string // besides PATH and HOME, which it may replace
	Home    string            // a directory that HOME names in every run, absolute, made where missing; "" for one in Options.Homes
	URL     string            // http or https
	Header  map[string]string // of every request to URL
	OAuth   OAuth             // of a login at URL
	Timeout time.Duration     // of one call; 0 means DefaultTimeout
	// Allow and Deny are patterns of the server's own names of tools, in which
	// * stands for any characters and ? for one. Without Allow every tool is
	// allowed; Deny wins.
	Allow, Deny []string
	// TrustHints takes the server's word on which tools only read. A stranger's
	// word would let calls be repeated silently.
	TrustHints bool
}

// OAuth is what a login at a server needs besides what the server itself tells.
type OAuth struct {
	// ClientID and ClientSecret are of this program, where it was registered by hand,
	// or the address (https) of a document about it, for servers that fetch such.
	// Without, each login registers it.
	ClientID, ClientSecret string
	Scopes                 []string // to ask for; nil asks for those that the server names
	RedirectPort           int      // of this machine, for the browser to come back to; 0 takes a free one
}

// Defaults and bounds.
const (
	DefaultTimeout    = 60 * time.Second
	DefaultHandshake  = 30 * time.Second
	DefaultFirstWait  = 5 * time.Second
	DefaultGrace      = 2 * time.Second
	DefaultMaxMessage = 16 << 20
	// maxValues is how many values a message may have: a decoder makes hundreds of
	// bytes of one that is two bytes long.
	maxValues = 100_000
)

// Restart says how long a server that died, or would not start, is left alone.
// The pause doubles from First up to Max and is spread over its upper half. A
// connection that lasted Max clears the count. After Limit failures in a row
// only a call starts the server again, at most once per Max.
type Restart struct {
	First time.Duration // 0 means 500 ms
	Max   time.Duration // 0 means 30 s
	Limit int           // 0 means 5
}

// Options are what the servers of a Manager share. Everything stays the caller's.
type Options struct {
	// Dir is a directory that gets pins.json, and has the logins of Login;
	// required, made where missing.
	Dir string
	// Homes is the directory that gets the homes of the servers; "" means one
	// in Dir.
	Homes string
	// Start starts the servers that have a Command; required where there is
	// one, so that a server runs without a sandbox only where somebody chose it.
	Start StartFunc
	// HTTP carries the requests to the servers that have a URL; nil means a
	// transport of the Manager's own.
	HTTP http.RoundTripper
	// Proxy is the proxy of a request of that transport, as http.Transport.Proxy;
	// nil means none.
	Proxy func(*http.Request) (*url.URL, error)

	// Look leaves the pins as they are but for Accept: a person only looks. Of a
	// server that was never seen no tool is offered then.
	Look bool

	Handshake  time.Duration // until a server has answered, and again until it has listed its tools; 0 means DefaultHandshake
	FirstWait  time.Duration // for the answer to a greeting that it is not known to understand, or no longer does; 0 means DefaultFirstWait
	Grace      time.Duration // for each step of a server's end: by itself, and after SIGTERM; 0 means DefaultGrace
	MaxMessage int           // bytes of one message of a server; 0 means DefaultMaxMessage
	Restart    Restart

	// Mask hides what may not be kept or shown in what servers say of their
	// tools; nil hides nothing.
	Mask func(string) string
	// Elicit puts what a server wants to know to people, and returns what they
	// answered. Its error is a *tool.WaitError where they owe the answer: the call ends
	// with it, and is made again. Another error says why there is none, and is told to
	// the model. ctx is that of the call. nil: servers are told that nobody is asked.
	Elicit func(ctx context.Context, e Elicitation) (answer string, err error)
	// Learn hears of each secret of a login before it is used, so that whatever
	// masks knows it; nil: nobody does.
	Learn  func(secrets ...string)
	Disk   *disk.FS       // writes the pins; nil means one that writes for real
	Logger *slog.Logger   // hears of connections made and lost; nil: nobody does
	Rand   func() float64 // in [0,1), spreads the pauses; nil means a random one
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) { *d = cmp.Or(max(*d, 0), v) }
	def(&o.Handshake, DefaultHandshake)
	def(&o.FirstWait, DefaultFirstWait)
	o.FirstWait = min(o.FirstWait, o.Handshake)
	def(&o.Grace, DefaultGrace)
	def(&o.Restart.First, 500*time.Millisecond)
	def(&o.Restart.Max, 30*time.Second)
	o.Restart.Limit = cmp.Or(max(o.Restart.Limit, 0), 5)
	o.MaxMessage = cmp.Or(max(o.MaxMessage, 0), DefaultMaxMessage)
	o.Disk = cmp.Or(o.Disk, new(disk.FS))
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Homes = cmp.Or(o.Homes, filepath.Join(o.Dir, "homes"))
	if o.Mask == nil {
		o.Mask = func(s string) string { return s }
	}
	if o.Learn == nil {
		o.Learn = func(...string) {}
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return o
}

// Manager holds the connections to the servers of one run. It is safe for
// concurrent use.
type Manager struct {
	opts    Options
	servers []*server // sorted by name
	pins    *pins
	http    *http.Transport // the Manager's own, or nil
	tools   []*remote       // as they were when it was opened, sorted by name

	// life is held while the servers are being started or ended.
	life    sync.Mutex
	stop    context.CancelFunc // nil while they are suspended
	running sync.WaitGroup
	closed  bool
}

// Open starts and greets all servers at the same time, and blocks until each
// has listed its tools or has failed to, or ctx ended. A server that fails is
// no error: Status tells why, it is tried again, and the tools that are pinned
// for it are offered and answer with the reason. It fails on servers that are
// not well described, on pins that cannot be read, and where ctx ended.
func Open(ctx context.Context, servers []Server, opts Options) (*Manager, error) {
	opts = opts.withDefaults()
	if err := check(servers, opts); err != nil {
		return nil, err
	}
	if !opts.Look {
		if err := opts.Disk.MkdirAll(opts.Dir); err != nil {
			return nil, fmt.Errorf("open MCP servers: %w", err)
		}
	}
	p, err := openPins(opts.Disk, filepath.Join(opts.Dir, "pins.json"))
	if err != nil {
		return nil, err
	}
	m := &Manager{opts: opts, pins: p}
	if opts.HTTP == nil {
		m.http = &http.Transport{Proxy: opts.Proxy, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: opts.Handshake}
		m.opts.HTTP = m.http
	}
	for _, c := range servers {
		m.servers = append(m.servers, newServer(m, c))
	}
	slices.SortFunc(m.servers, func(a, b *server) int { return strings.Compare(a.conf.Name, b.conf.Name) })
	m.start(ctx)
	for _, s := range m.servers {
		select {
		case <-s.tried:
		case <-ctx.Done():
			m.Close()
			return nil, fmt.Errorf("open MCP servers: %w", context.Cause(ctx))
		}
	}
	m.freeze()
	return m, nil
}

// check finds what is wrong with a description before anything is started.
func check(servers []Server, opts Options) error {
	if opts.Dir == "" {
		return i18n.E("mcp.dir")
	}
	seen := map[string]bool{}
	for _, s := range servers {
		switch {
		case strings.TrimSpace(s.Name) == "" || len(s.Name) > maxName:
			return i18n.E("mcp.name", s.Name, maxName)
		case seen[s.Name]:
			return i18n.E("mcp.twice", s.Name)
		case (len(s.Command) == 0) == (s.URL == ""):
			return i18n.E("mcp.how", s.Name)
		case s.URL == "" && (s.Command[0] == "" || strings.ContainsRune(strings.Join(s.Command, ""), 0)):
			return i18n.E("mcp.command", s.Name)
		case s.URL == "" && opts.Start == nil:
			return i18n.E("mcp.start", s.Name)
		}
		seen[s.Name] = true
		if s.URL != "" {
			u, err := url.Parse(s.URL)
			if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
				return i18n.E("mcp.url", s.Name) // an address may hold a token: it is not repeated
			}
		}
		for k, v := range s.Env {
			if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
				return i18n.E("mcp.env", s.Name, k)
			}
		}
	}
	return nil
}

// start starts the servers; what ctx ends ends none of them.
func (m *Manager) start(ctx context.Context) {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	for _, s := range m.servers {
		m.running.Go(func() { s.run(life) })
	}
}

// end ends the servers, and waits until nothing of them is left.
func (m *Manager) end(state State, reason string) {
	if m.stop != nil {
		m.stop()
		m.running.Wait()
		m.stop = nil
	}
	for _, s := range m.servers {
		s.turn(state, nil, func() { s.reason = reason })
	}
}

// Suspend ends every server and waits until all of them, and all that was
// started for them, have ended, up to three times the grace: nothing of them
// changes anything until Resume. Calls meanwhile are answered with a result that
// says so, as are those that still run.
func (m *Manager) Suspend() {
	m.life.Lock()
	defer m.life.Unlock()
	if !m.closed && m.stop != nil {
		m.end(Suspended, "the servers are suspended while the work is looked at")
	}
}

// Resume starts the servers that Suspend ended, and does not wait for them: a
// call does. What they held in their memory is gone.
func (m *Manager) Resume(ctx context.Context) {
	m.life.Lock()
	defer m.life.Unlock()
	if m.closed || m.stop != nil {
		return
	}
	for _, s := range m.servers {
		s.turn(Starting, nil, func() { s.reason, s.failures = "", 0 })
	}
	m.start(ctx)
}

// Close ends every server and waits until all of them, and all that was
// started for them, have ended: up to three times the grace. Calls that still
// run end with a result that says so. It may be called again.
func (m *Manager) Close() {
	m.life.Lock()
	defer m.life.Unlock()
	if m.closed {
		return
	}
	m.closed = true
	m.end(Closed, "the run has ended")
	if m.http != nil {
		m.http.CloseIdleConnections()
	}
}

// Status is how one server stands, for people.
type Status struct {
	Server   string
	State    State
	Reason   string // why it is not ready, in one line
	Stderr   string // the end of what it said there
	Program  string // name and version that it gives itself
	Protocol string // version agreed on
}

// Status returns how the servers stand, sorted by name.
func (m *Manager) Status() []Status {
	all := make([]Status, len(m.servers))
	for i, s := range m.servers {
		all[i] = s.status()
	}
	return all
}

// home makes the directory that a server gets as its HOME.
func (m *Manager) home(c Server) (string, error) {
	dir := cmp.Or(c.Home, filepath.Join(m.opts.Homes, sanitise(c.Name)+"-"+short(c.Name)))
	if err := m.opts.Disk.MkdirAll(dir); err != nil {
		return "", fmt.Errorf("make the home of MCP server %s: %w", c.Name, err)
	}
	return filepath.Abs(dir)
}

// environment is all that a server gets: nothing of the caller's.
func environment(c Server, home string) []string {
	env := map[string]string{"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin"}
	maps.Copy(env, c.Env)
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}
