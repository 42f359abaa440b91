package ollama

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// Requirement is a model that must stay in a server's memory. Models that the
// server only passes on to a cloud are never in it, and belong into no requirement.
type Requirement struct {
	Model     string // as configured
	NumCtx    int    // tokens it is loaded with, as its client asks for; 0 is DefaultNumCtx
	KeepAlive string // as its client's
	// MinContext and MaxContext are between which the context length of the
	// loaded model must lie, in tokens; 0 is no limit (route §10).
	MinContext, MaxContext int
}

// CareConfig says which server is looked after and how.
type CareConfig struct {
	BaseURL string
	APIKey  string
	Models  []Requirement
	HTTP    *http.Client // nil makes one

	// Restart is the program and arguments that restart the server; none: it is
	// only warmed up. Dir then keeps count of restarts for all processes of the
	// machine; each server has files of its own in it.
	Restart []string
	Dir     string
	FS      *disk.FS // nil writes for real
	Run     Runner   // nil starts a process

	// Zero values are the defaults.
	CheckTimeout   time.Duration   // 5 s
	RestartTimeout time.Duration   // of the command: 60 s
	StartTimeout   time.Duration   // until the server answers after it: 60 s
	WarmTimeout    time.Duration   // to load one model: 5 min
	Window         time.Duration   // 10 min
	RestartLimit   int             // restarts, and warm-ups, within the window: 3
	Waits          []time.Duration // since the last restart, before the 1st, 2nd … of the window: 0, 10, 30 s

	// OnEvent, if set, is told what the care does, one event after the other.
	OnEvent func(Event)
	Now     func() time.Time // nil is time.Now
}

// Event is something that the care did or found.
type Event struct {
	Kind     EventKind
	Endpoint string
	Model    string        // of a warm-up
	Wait     time.Duration // of a wait
	Err      error         // of what failed
}

// EventKind names what happened.
type EventKind string

// The events.
const (
	EventFault EventKind = "fault" // the check found one; Err says which
	// EventMismatch is what a restart would not change, such as a context length
	// that another program has set: it is told once, until it changes.
	EventMismatch EventKind = "mismatch"
	EventWait     EventKind = "wait"    // before a restart
	EventRestart  EventKind = "restart" // the command is about to run
	EventWarmUp   EventKind = "warm_up"
	EventHealed   EventKind = "healed"
	EventGaveUp   EventKind = "gave_up" // until the next call
)

// Verdict is what came of looking after a call.
type Verdict struct {
	// Retry says that the call failed, that the server was mended since, and
	// that the call may be made once more.
	Retry  bool
	Health Health
	Err    error // why the server is not as it must be; nil where it is
}

// Supervisor looks after one server. Of any number of goroutines and processes one
// repairs, and the others wait for what comes of it. Safe for concurrent use.
type Supervisor struct {
	*server
	cfg      CareConfig
	endpoint string
	loaders  []*client // one a required model
	book     *book

	life   context.Context // of the goroutines, until Close; each is waited for
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	last     Health
	flight   *flight
	watching bool
	again    bool
	told     string // the problems that were last seen after a call
}

// flight is one repair that any number wait for.
type flight struct {
	done   chan struct{}
	health Health
	err    error
}

// NewSupervisor returns the care of a server, or an i18n error where the
// configuration cannot work. It calls nobody until asked. Close ends it.
func NewSupervisor(cfg CareConfig) (*Supervisor, error) {
	cfg.defaults()
	srv, err := newServer(Config{BaseURL: cfg.BaseURL, APIKey: cfg.APIKey, HTTP: cfg.HTTP, Now: cfg.Now,
		StallTimeout: max(cfg.WarmTimeout, wire.DefaultStallTimeout)})
	if err != nil {
		return nil, err
	}
	if len(cfg.Restart) > 0 && cfg.Dir == "" {
		return nil, i18n.E("ollama.state_dir")
	}
	base := srv.base()
	c := &Supervisor{server: srv, cfg: cfg, endpoint: wire.Endpoint(base)}
	if c.loaders, err = loaders(cfg); err != nil {
		return nil, err
	}
	c.book = &book{fs: cfg.FS, dir: cfg.Dir, name: stateName(base), window: cfg.Window}
	c.last = Health{Endpoint: c.endpoint, RestartLimit: cfg.RestartLimit, Window: cfg.Window}
	c.life, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

func (cfg *CareConfig) defaults() {
	cfg.CheckTimeout = cmp.Or(max(cfg.CheckTimeout, 0), 5*time.Second)
	cfg.RestartTimeout = cmp.Or(max(cfg.RestartTimeout, 0), time.Minute)
	cfg.StartTimeout = cmp.Or(max(cfg.StartTimeout, 0), time.Minute)
	cfg.WarmTimeout = cmp.Or(max(cfg.WarmTimeout, 0), wire.DefaultStallTimeout)
	cfg.Window = cmp.Or(max(cfg.Window, 0), 10*time.Minute)
	cfg.RestartLimit = cmp.Or(max(cfg.RestartLimit, 0), 3)
	if cfg.Waits == nil {
		cfg.Waits = []time.Duration{0, 10 * time.Second, 30 * time.Second}
	}
	cfg.FS = cmp.Or(cfg.FS, &disk.FS{})
	if cfg.Run == nil {
		cfg.Run = RunCommand
	}
	if cfg.OnEvent == nil {
		cfg.OnEvent = func(Event) {}
	}
	cfg.Models = slices.Clone(cfg.Models)
	for i, r := range cfg.Models {
		cfg.Models[i].NumCtx = cmp.Or(r.NumCtx, DefaultNumCtx)
	}
}

// loaders makes what warms the models up, one for each.
func loaders(cfg CareConfig) ([]*client, error) {
	seen := map[string]int{}
	var all []*client
	for _, r := range cfg.Models {
		if r.MinContext < 0 || r.MaxContext < 0 || r.NumCtx < r.MinContext || r.MaxContext > 0 && r.NumCtx > r.MaxContext {
			return nil, i18n.E("ollama.limits", r.Model, r.NumCtx, r.MinContext, r.MaxContext)
		}
		if n, twice := seen[fullName(r.Model)]; twice && n != r.NumCtx {
			return nil, i18n.E("ollama.same_model", r.Model, n, r.NumCtx)
		}
		seen[fullName(r.Model)] = r.NumCtx
		l, err := newClient(Config{Model: r.Model, BaseURL: cfg.BaseURL, NumCtx: r.NumCtx, KeepAlive: r.KeepAlive, HTTP: cfg.HTTP})
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// stateName is a file name for a server, the same however loopback is spelled.
func stateName(base string) string {
	u, err := url.Parse(base)
	if err != nil { // it was parsed before
		u = &url.URL{Path: base}
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	switch host {
	case "127.0.0.1", "::1", "0.0.0.0":
		host = "localhost"
	}
	port = cmp.Or(port, map[string]string{"http": "80", "https": "443"}[u.Scheme])
	sum := sha256.Sum256([]byte(host + ":" + port + strings.TrimSuffix(u.Path, "/")))
	return "ollama-" + hex.EncodeToString(sum[:6])
}

// Close ends what is under way and waits for it. A restart command that runs
// is told to end.
func (c *Supervisor) Close() error {
	c.settle()
	c.mu.Lock()
	c.cancel() // nothing starts after this
	c.mu.Unlock()
	c.wg.Wait()
	if c.cfg.HTTP == nil {
		c.http.CloseIdleConnections()
	}
	return nil
}

// lastLook is how long Close waits for the look after the last call.
const lastLook = time.Second

// settle lets a look that is under way find its end, but not a repair.
func (c *Supervisor) settle() {
	c.mu.Lock()
	looking := c.watching && c.flight == nil
	c.mu.Unlock()
	if !looking {
		return
	}
	done := make(chan struct{})
	go func() {
		c.wg.Wait()
		close(done)
	}()
	t := time.NewTimer(lastLook)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// Snapshot is what was last seen, without asking anybody. Its CheckedAt is
// zero where nothing was looked at yet.
func (c *Supervisor) Snapshot() Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.clone()
}

func (h Health) clone() Health {
	h.Models = slices.Clone(h.Models)
	return h
}

// Check looks and repairs nothing. It fails only where ctx ended.
func (c *Supervisor) Check(ctx context.Context) (Health, error) {
	h, err := c.check(ctx)
	return h.clone(), err
}

// After looks after the server when a call that began at began has ended, with
// callErr or well (route §10). It repairs what it finds broken and
// waits for it, as long as ctx lasts.
func (c *Supervisor) After(ctx context.Context, began time.Time, callErr error) Verdict {
	h, err := c.check(ctx)
	if err != nil {
		return Verdict{Health: c.Snapshot(), Err: err}
	}
	// Another process may have mended it between the call and this look.
	mended := !began.IsZero() && !h.healed.Before(began)
	if h.faulty() {
		h, err = c.repair(ctx)
		mended = err == nil && !h.faulty()
	}
	if err == nil && !h.Ready() {
		err = errors.Join(h.Problems()...)
	}
	return Verdict{Retry: mended && repeatable(callErr) && ctx.Err() == nil, Health: h.clone(), Err: err}
}

func repeatable(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Retryable()
}

// repair joins the repair that is under way, or begins one, and waits for its
// end or ctx's. It goes on where those who wait leave.
func (c *Supervisor) repair(ctx context.Context) (Health, error) {
	c.mu.Lock()
	f := c.flight
	if f == nil {
		if err := c.life.Err(); err != nil {
			c.mu.Unlock()
			return c.Snapshot(), err
		}
		f = &flight{done: make(chan struct{})}
		c.flight = f
		c.wg.Go(func() {
			f.health, f.err = c.mend(c.life)
			c.mu.Lock()
			c.flight = nil
			c.mu.Unlock()
			close(f.done)
		})
	}
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.health, f.err
	case <-ctx.Done():
		return c.Snapshot(), ctx.Err()
	}
}

// notice looks after the server without keeping anyone waiting. A call that
// ends while another's look is under way is looked after next.
func (c *Supervisor) notice() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = true
	if c.watching || c.life.Err() != nil {
		return
	}
	c.watching = true
	c.wg.Go(func() {
		for c.wanted() {
			h, err := c.check(c.life)
			if err == nil && h.faulty() {
				h, err = c.repair(c.life)
			}
			if err == nil {
				c.tell(&h)
			}
		}
	})
}

// tell reports what no repair is for, once until it changes.
func (c *Supervisor) tell(h *Health) {
	problem := errors.Join(h.Problems()...)
	text := fmt.Sprint(problem)
	c.mu.Lock()
	told := c.told
	c.told = text
	c.mu.Unlock()
	if problem != nil && !h.faulty() && text != told {
		c.event(Event{Kind: EventMismatch, Err: problem})
	}
}

func (c *Supervisor) wanted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching = c.again && c.life.Err() == nil
	c.again = false
	return c.watching
}

// Wrap returns client with every call looked after: one that failed is made
// once more where the server could be mended; after one that succeeded the look
// is taken beside what comes next, so that no answer waits for it.
func (c *Supervisor) Wrap(client llm.Client) llm.Client { return &watchedClient{client, c} }

type watchedClient struct {
	llm.Client
	care *Supervisor
}

func (w *watchedClient) Open(s llm.Settings) llm.Conversation {
	return &watched{w.Client.Open(s), w.care}
}

type watched struct {
	llm.Conversation
	care *Supervisor
}

func (w *watched) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	began := w.care.now()
	reply, err := w.Conversation.Send(ctx, onText)
	if err != nil && ctx.Err() == nil && !repeatable(err) {
		// A mistake of the request or of the settings is none of the server's; and
		// where nobody may be called, the model is not loaded either.
		return nil, err
	}
	if err != nil && ctx.Err() == nil {
		if !w.care.After(ctx, began, err).Retry {
			return nil, err
		}
		reply, err = w.Conversation.Send(ctx, onText)
	}
	w.care.notice()
	return reply, err
}
