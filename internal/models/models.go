// Package models makes the clients of models from the configuration: which model fills which
// role, its limits, care, price, and whether a cloud is allowed. No other package makes
// clients. What it does besides calls, it logs.
package models

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/llm/cloud"
	"toritsugi/internal/llm/endpoint"
	"toritsugi/internal/llm/gauge"
	"toritsugi/internal/llm/image"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/llm/price"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/llm/texttool"
)

// How often an endpoint may fail in a row before it is left alone, and for how
// long at first. Each of these failures has been repeated as often as
// llm.max_retries says.
const (
	breakerFailures = 3
	breakerPause    = 30 * time.Second
)

// Options are what the models are made of.
type Options struct {
	Config *config.Config
	HTTP   *http.Client        // nil makes clients
	Redact func(string) string // masks secrets and addresses, and what is bound for a cloud on the routes of code
	// Personal masks numbers of people, too: what is bound there with security.mask_pii_on_code.
	Personal func(string) string
	Strict   func(string) string        // what is bound there on all other routes
	Log      *slog.Logger               // of calls, and what is done about failed ones
	Lang     i18n.Lang                  // of notices
	Notice   func(key string, a ...any) // tells the user of a choice made for them; nil for nobody
	Getenv   func(string) string
	FS       *disk.FS // nil writes for real
	Traced   bool     // calls are spans (telemetry)
	Now      func() time.Time
}

// Models makes the clients of one process. Safe for concurrent use.
type Models struct {
	Options
	resolver
	prices func() *price.Table // asked for when the first price is: the built-in table is parsed then
	state  string              // directory of what processes share; "" where there is none

	mu       sync.Mutex
	breakers map[string]*endpoint.Breaker
	slots    map[string]*endpoint.Slots
	kept     *kept
}

// Open reads the price table of the settings and the lists of hosts. It calls no model.
// The error is an i18n error of a setting.
func Open(o Options) (*Models, error) {
	if o.FS == nil {
		o.FS = &disk.FS{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Notice == nil {
		o.Notice = func(string, ...any) {}
	}
	policy, err := cloud.New(o.Config.Security.LocalHosts)
	if err != nil {
		return nil, err
	}
	m := &Models{Options: o, resolver: resolver{o.Config, policy}, prices: sync.OnceValue(price.Builtin),
		breakers: map[string]*endpoint.Breaker{}, slots: map[string]*endpoint.Slots{}, kept: &kept{}}
	if file := o.Config.LLM.PricesFile; file != "" {
		own, err := price.Load(file)
		if err != nil {
			return nil, err
		}
		m.prices = sync.OnceValue(func() *price.Table { return price.Merge(own, price.Builtin()) })
	}
	if m.state = o.Config.LLM.StateDir; m.state == "" {
		m.state = config.StateDir(o.Getenv)
	}
	return m, nil
}

// Prices is the table in force.
func (m *Models) Prices() *price.Table { return m.prices() }

// Close ends what looks after servers, and closes idle connections.
func (m *Models) Close() error {
	cares, idle := m.kept.take()
	var all []error
	for _, c := range cares {
		all = append(all, c.Close())
	}
	for _, c := range idle {
		if c != nil && c != m.HTTP {
			c.CloseIdleConnections()
		}
	}
	return errors.Join(all...)
}

// Client returns a client for u and what it is. A server of Ollama is asked
// for the limits of the model, again as calls are; one that does not answer is no
// error here. The error is an i18n error of a setting, or of a model that the server
// does not have, or ctx's.
func (m *Models) Client(ctx context.Context, u Use) (llm.Client, Spec, error) {
	c, s, err := m.client(ctx, u)
	if err == nil && m.Traced {
		c = traced{c, m.Config.Telemetry.Traces.Content, m.Strict}
	}
	return c, s, err
}

func (m *Models) client(ctx context.Context, u Use) (llm.Client, Spec, error) {
	s, err := m.Spec(ctx, u)
	if err != nil {
		return nil, s, err
	}
	if s.Provider == script.Provider {
		c, err := script.Open(s.scriptFile)
		if err == nil {
			m.Notice("app.scripted", s.scriptFile)
		}
		return c, s, err
	}
	if err := m.allowed(&s, u); err != nil { // said before the work begins
		return nil, s, err
	}
	all := append([]Spec{s}, s.Fallbacks...)
	members := make([]endpoint.Member, len(all))
	for i := range all {
		if members[i], err = m.member(ctx, &all[i], u, len(all) == 1); err != nil {
			return nil, s, err
		}
	}
	s.Context, s.Cloud = all[0].Context, all[0].Cloud
	if err := m.allowed(&s, u); err != nil { // its server says that it passes the model on
		return nil, s, err
	}
	c, err := endpoint.New(endpoint.Config{Members: members, Priority: priority(s.Role), Who: u.Who, Explicit: s.Explicit, OnEvent: m.endpointEvent, Now: m.Now})
	if err != nil {
		return nil, s, err
	}
	s.Priced = true
	for i := range all {
		_, known := m.price(&all[i])
		s.Priced = s.Priced && known
	}
	return price.Priced(&cleanIDs{c, m.Redact, func(sent int) (func(string), func()) { return m.alive(s.Name(), sent) }}, func(by string) (price.Price, bool) {
		for i := range all {
			if asked := members[i].Client; asked.Provider()+"/"+asked.Model() == by { // as configured, as by is
				return m.price(&all[i])
			}
		}
		return price.Price{}, false
	}), s, nil
}

// Spec settles who answers, without making a client.
func (m *Models) Spec(ctx context.Context, u Use) (Spec, error) {
	found, err := m.detect(ctx, u)
	if err != nil {
		return Spec{}, err
	}
	return m.spec(u, found)
}

func (m *Models) price(s *Spec) (price.Price, bool) {
	return m.prices().Price(s.Provider, ollama.ModelName(s.Model), !s.Cloud)
}

// priority is who goes first at a busy server: chat, where somebody waits.
func priority(role string) endpoint.Priority {
	switch role {
	case Chat:
		return endpoint.PriorityChat
	case Worker:
		return endpoint.PriorityWorker
	}
	return endpoint.PriorityCoder
}

// allowed returns why a model in a cloud may not be called for u, nil where it may.
func (m *Models) allowed(s *Spec, u Use) error {
	if !s.Cloud {
		return nil
	}
	return cloud.Allowed(route(u), u.LocalOnly || m.cfg.Security.LocalOnly, m.cfg.Security.CloudAllowedRoutes)
}

// route of an issue, of a message to tori run, and of all that serves them, is
// CODE (spec/README "cloud rule").
func route(u Use) string { return cmp.Or(u.Route, "CODE") }

// member makes the client of one model. From the inside: the wire format, the
// bar to clouds, images, care, tools as text. A model that its server does not have
// is an error where it is alone.
func (m *Models) member(ctx context.Context, s *Spec, u Use, alone bool) (endpoint.Member, error) {
	none := endpoint.Member{}
	hc := m.httpClient(s)
	var shown *ollama.Model
	if s.Provider == "ollama" && m.allowed(s, u) == nil {
		var unknown error
		shown, unknown = m.show(ctx, s, hc)
		switch err := ctx.Err(); {
		case err != nil:
			return none, err
		case unknown != nil && alone:
			return none, unknown
		case unknown != nil:
			m.Log.Warn(m.Lang.Error(unknown))
		}
	}
	var care *ollama.Supervisor
	var err error
	if s.Provider == "ollama" && !s.Cloud {
		if care, err = m.care(s, hc); err != nil {
			return none, err
		}
	}
	c, err := m.provider(s, hc, care)
	if err != nil {
		return none, err
	}
	if s.Provider != "ollama" {
		advice := m.advice(ctx, s, hc)
		if advice != nil {
			m.Log.Warn(m.Lang.Error(advice))
		}
		c = gauge.DetectTruncation(c, advice)
	}
	mask := m.Strict
	if strings.HasPrefix(route(u), "CODE") {
		if mask = m.Redact; m.cfg.Security.MaskPIIOnCode {
			mask = m.Personal
		}
	}
	c = cloud.Guard(c, cloud.Rule{Cloud: s.Cloud, Allow: func() error { return m.allowed(s, u) }, Redact: mask, Log: m.Log})
	urlType := image.Base64
	if s.openAI() {
		urlType = image.DataURI
	}
	c = image.Audited(c, image.Options{URLType: urlType, Allow: imageRule(s, shown), Log: m.Log})
	if s.Provider == "ollama" && !s.Cloud && shown == nil {
		c = &seenFirst{Client: c, look: func(ctx context.Context) (*ollama.Model, error) { return ollama.Show(ctx, m.showConfig(s, hc)) }}
	}
	if care != nil {
		c = care.Wrap(c)
	}
	switch {
	case s.TextTools == "false", s.TextTools == "auto" && shown != nil && !shown.Tools:
		c = texttool.New(c)
	case s.TextTools == "auto":
		c = texttool.Detect(texttool.Lift(c), func(because error) {
			m.Log.Warn(m.Lang.T("models.text_tools", s.Name(), because))
		})
	default:
		c = texttool.Lift(c)
	}
	return endpoint.Member{Client: c, Slots: m.slotsOf(s), Breaker: m.breakerOf(s)}, nil
}

// openAI reports whether the model is called by the chat-completions format.
func (s *Spec) openAI() bool { return s.Provider != "anthropic" && s.Provider != "ollama" }

// httpClient is the client that calls a server: one that cannot leave the
// local network where the server is local.
func (m *Models) httpClient(s *Spec) *http.Client {
	return m.kept.client(s.Address, func() *http.Client { return m.policy.HTTPClient(m.HTTP, s.Address) })
}

func (m *Models) provider(s *Spec, hc *http.Client, care *ollama.Supervisor) (llm.Client, error) {
	l := &m.cfg.LLM
	switch s.Provider {
	case "ollama":
		think := s.think
		if think == "auto" {
			think = ""
		}
		return ollama.New(ollama.Config{Provider: s.Provider, Model: s.Model, BaseURL: s.Address, APIKey: s.key, NumCtx: s.NumCtx, KeepAlive: s.KeepAlive, MaxTokens: s.MaxTokens,
			Temperature: s.Temperature, Think: think, HTTP: hc, ConnectTimeout: l.ConnectTimeout(), FirstTokenTimeout: l.FirstTokenTimeout(), StallTimeout: l.Timeout(),
			CallTimeout: s.Timeout, MaxRetries: s.Retries, OnRetry: m.retried, Care: care, Now: m.Now})
	case "anthropic":
		return anthropic.New(anthropic.Config{Provider: s.Provider, Model: s.Model, BaseURL: s.Address, APIKey: s.key, MaxTokens: s.MaxTokens,
			Temperature: s.Temperature, Thinking: s.thinkTokens, HTTP: hc, ConnectTimeout: l.ConnectTimeout(), FirstTokenTimeout: l.FirstTokenTimeout(), StallTimeout: l.Timeout(),
			CallTimeout: s.Timeout, MaxRetries: s.Retries, OnRetry: m.retried, Now: m.Now})
	}
	return openai.New(openai.Config{Provider: s.Provider, Model: s.Model, BaseURL: s.Address, APIKey: s.key, MaxTokens: s.MaxTokens,
		Temperature: s.Temperature, HTTP: hc, ConnectTimeout: l.ConnectTimeout(), FirstTokenTimeout: l.FirstTokenTimeout(), StallTimeout: l.Timeout(),
		CallTimeout: s.Timeout, MaxRetries: s.Retries, OnRetry: m.retried, Now: m.Now})
}

func (m *Models) retried(e *llm.Error, wait time.Duration) {
	m.Log.Warn("LLM call failed and will be repeated: "+e.Error(), "wait", wait.Round(time.Millisecond))
}

func (m *Models) endpointEvent(e endpoint.Event) { m.Log.Warn(e.Text(m.Lang)) }

// breakerOf is the breaker of a model's server, one for all its models.
func (m *Models) breakerOf(s *Spec) *endpoint.Breaker {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.breakers[s.Address]
	if !ok {
		b = endpoint.NewBreaker(breakerFailures, breakerPause, m.Now)
		m.breakers[s.Address] = b
	}
	return b
}

// slotsOf is how many calls a server gets at once from this machine; nil for
// any number, and where the directory for it cannot be had.
func (m *Models) slotsOf(s *Spec) *endpoint.Slots {
	if s.parallel == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if slots, ok := m.slots[s.Address]; ok {
		return slots
	}
	slots, err := endpoint.OpenSlots(m.FS, m.slotsDir(), serverName(s.Address), s.parallel, m.Now)
	if err != nil {
		m.Log.Warn(m.Lang.T("models.no_slots", s.Provider, m.state, err))
		slots = nil
	}
	m.slots[s.Address] = slots
	return slots
}

func (m *Models) slotsDir() string { return filepath.Join(m.state, "slots") }

// care looks after the server of one model.
func (m *Models) care(s *Spec, hc *http.Client) (*ollama.Supervisor, error) {
	argv, err := ollama.Argv(m.cfg.Providers.OllamaRestartCommand)
	if err != nil {
		return nil, err
	}
	role := s.Role
	w := supervisedModel{role: role, address: s.Address, key: s.key, need: s.requirement()}
	c, evicted, err := m.kept.careOf(w, func() (*ollama.Supervisor, error) {
		told := map[ollama.EventKind]string{} // used by the events, which come one after the other
		return ollama.NewSupervisor(ollama.CareConfig{BaseURL: w.address, APIKey: w.key, HTTP: hc, Restart: argv, Dir: filepath.Join(m.state, "ollama"), FS: m.FS, Now: m.Now,
			Models:  []ollama.Requirement{w.need},
			OnEvent: func(e ollama.Event) { m.careEvent(role, told, e) }})
	})
	if err != nil {
		return nil, err
	}
	if evicted != nil {
		if err := evicted.Close(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (s *Spec) requirement() ollama.Requirement {
	return ollama.Requirement{Model: s.Model, NumCtx: s.NumCtx, KeepAlive: s.KeepAlive, MinContext: s.MinContext, MaxContext: s.MaxContext}
}

// careEvent logs what the care of a server does. A fault that stays is told
// once, not after every call.
func (m *Models) careEvent(role string, told map[ollama.EventKind]string, e ollama.Event) {
	text := m.Lang.T("models.care_"+string(e.Kind), e.Endpoint)
	if e.Model != "" {
		text += ": " + e.Model
	}
	if e.Wait > 0 {
		text += ": " + e.Wait.Round(time.Millisecond).String()
	}
	if e.Err != nil {
		text += ": " + m.Lang.Error(e.Err)
	}
	switch again := told[e.Kind] == text; e.Kind {
	case ollama.EventHealed:
		clear(told)
	case ollama.EventFault, ollama.EventGaveUp:
		if told[e.Kind] = text; again {
			return
		}
	}
	m.Log.Warn(text, "role", role)
}

// showTimeout is how long a server may take to tell what it knows of a model.
const showTimeout = 5 * time.Second

// showConfig is how that is asked: as often as a call is made.
func (m *Models) showConfig(s *Spec, hc *http.Client) ollama.Config {
	return ollama.Config{Model: s.Model, BaseURL: s.Address, APIKey: s.key, HTTP: hc, ConnectTimeout: showTimeout, StallTimeout: showTimeout,
		MaxRetries: s.Retries, OnRetry: m.retried, Now: m.Now}
}

// show asks a server of Ollama what it knows of a model, lowers the context
// length to what the model was made for, and lets it think only where it can. It
// returns nil where the server does not tell, and an error where it has no such model.
func (m *Models) show(ctx context.Context, s *Spec, hc *http.Client) (*ollama.Model, error) {
	shown, err := ollama.Show(ctx, m.showConfig(s, hc))
	if missing(err) {
		return nil, m.unknown(ctx, s, hc)
	}
	if err != nil {
		return nil, nil
	}
	s.Cloud = s.Cloud || shown.RemoteHost != ""
	if was := s.NumCtx; s.fit(shown.ContextLength) {
		m.Log.Warn(m.Lang.T("models.context", s.Name(), s.NumCtx, was))
	}
	if !shown.Thinking && s.think != "auto" && s.think != "false" {
		m.Log.Warn(m.Lang.T("models.no_thinking", s.Name(), s.think))
		s.think = "auto"
	}
	return shown, nil
}

// fit lowers the context length to what a model was made for, in tokens, and
// reports whether it had to; 0 is not known.
func (s *Spec) fit(made int) bool {
	if made < 1 || made >= s.NumCtx {
		return false
	}
	s.NumCtx, s.Context, s.MinContext = made, made, min(s.MinContext, made)
	return true
}

// unknown is the error of a model that an Ollama says it does not have, nil where
// it lists it or lists none: such a server only stands in for an Ollama.
func (m *Models) unknown(ctx context.Context, s *Spec, hc *http.Client) error {
	list, err := ollama.ListModels(ctx, m.showConfig(s, hc))
	if err != nil || slices.ContainsFunc(list, func(l ollama.Listed) bool { return ollama.SameModel(l.Name, s.Model) }) {
		return nil
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return i18n.E("models.unknown_model", serverName(s.Address), ollama.ModelName(s.Model), cmp.Or(strings.Join(names, ", "), "-"))
}

// adviceTimeout is how long a local server may take to say whether it is an Ollama.
const adviceTimeout = 2 * time.Second

// advice is what is to be said of a local server that is an Ollama, and called in
// another format: nil for every other.
func (m *Models) advice(ctx context.Context, s *Spec, hc *http.Client) error {
	if s.Cloud || !m.kept.isOllama(s.Address, func() (yes, sure bool) {
		_, err := ollama.Version(ctx, ollama.Config{BaseURL: s.Address, HTTP: hc, ConnectTimeout: adviceTimeout, StallTimeout: adviceTimeout, CallTimeout: adviceTimeout})
		return err == nil, err == nil || answered(err)
	}) {
		return nil
	}
	native := strings.TrimSuffix(strings.TrimSuffix(serverName(s.Address), "/"), "/v1")
	return i18n.E("models.is_ollama", serverName(s.Address), s.Provider, native)
}
