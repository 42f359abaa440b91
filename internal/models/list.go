package models

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/llm/image"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/llm/wire"
)

// Answer is yes, no, or not known.
type Answer string

// The answers.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

func answer(b bool) Answer {
	if b {
		return Yes
	}
	return No
}

// Row is one role, who fills it, and what is known of it right now.
type Row struct {
	Role      string  `json:"role"`
	Alias     string  `json:"alias,omitempty"`
	Provider  string  `json:"provider,omitempty"`
	Model     string  `json:"model,omitempty"`
	Fallback  int     `json:"fallback,omitempty"` // its place among those that answer where the first cannot; 0 is the first
	Endpoint  string  `json:"endpoint,omitempty"` // without credentials
	Cloud     bool    `json:"cloud"`
	Forbidden error   `json:"-"` // why it is never called
	Reachable Answer  `json:"reachable"`
	Present   Answer  `json:"present"`                  // the server offers the model
	Context   int     `json:"context_length,omitempty"` // tokens
	Tools     Answer  `json:"tools"`
	Images    Answer  `json:"images"`
	Price     *Prices `json:"price,omitempty"` // nil where none is known
	Problem   error   `json:"-"`               // why it cannot be used
	Advice    error   `json:"-"`               // what would be better, where it can be used
}

// Prices are those of a model, in US dollars per million tokens.
type Prices struct {
	Input       float64 `json:"input"`
	CachedInput float64 `json:"cached_input"`
	Output      float64 `json:"output"`
}

// listTimeout is how long a server may take to be counted as reachable.
const listTimeout = 5 * time.Second

// List looks at every role: who fills it, and what its server says right now.
// Servers that may not be called are not. It returns when all have answered or
// timed out, after listTimeout at most.
func (m *Models) List(ctx context.Context) []Row {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	quiet := m.quiet()
	var rows []Row
	var specs []Spec
	for _, role := range config.RoleNames() {
		u := Use{Role: role, Route: routeOf(role)}
		s, err := quiet.Spec(ctx, u)
		rows, specs = append(rows, m.row(&s, 0, u, err)), append(specs, s)
		for i := range s.Fallbacks {
			rows, specs = append(rows, m.row(&s.Fallbacks[i], i+1, u, nil)), append(specs, s.Fallbacks[i])
		}
	}
	look := m.looker()
	var wg sync.WaitGroup
	for i := range rows {
		if rows[i].Problem == nil && rows[i].Forbidden == nil && specs[i].Provider != script.Provider {
			wg.Go(func() { look(ctx, &specs[i], &rows[i]) })
		}
	}
	wg.Wait()
	return rows
}

// routeOf is the route that a role is asked on where nothing else is said: by
// coders and tasks CODE, by the others CHAT.
func routeOf(role string) string {
	switch role {
	case Chat, Worker:
		return "CHAT"
	}
	return "CODE"
}

// quiet is m without notices, for those who only look.
func (m *Models) quiet() *Models {
	o := m.Options
	o.Notice = func(string, ...any) {}
	return &Models{Options: o, resolver: m.resolver, prices: m.prices, state: m.state, kept: m.kept}
}

func (m *Models) row(s *Spec, place int, u Use, err error) Row {
	r := Row{Role: u.Role, Alias: s.Alias, Provider: s.Provider, Model: s.Model, Fallback: place, Endpoint: serverName(s.Address), Cloud: s.Cloud,
		Reachable: Unknown, Present: Unknown, Context: s.Context, Tools: Unknown, Images: Unknown, Problem: err}
	if err != nil {
		return r
	}
	r.Tools, r.Images = calls(s, nil), sees(s, nil)
	if s.Provider == script.Provider {
		r.Reachable, r.Present, r.Tools = Yes, Yes, Yes
	}
	m.place(s, &r)
	return r
}

// place fills in what depends on where a model runs.
func (m *Models) place(s *Spec, r *Row) {
	r.Cloud, r.Forbidden, r.Price = s.Cloud, m.allowed(s, Use{Route: routeOf(r.Role)}), nil
	if p, ok := m.price(s); ok {
		r.Price = &Prices{p.Input, p.CachedInput, p.Output}
	}
}

// seen is what a server offers, or an Ollama says of one model.
type seen struct {
	once   sync.Once
	models []openai.Model
	shown  *ollama.Model
	err    error
}

// looker returns what asks a server about a model; a server that several roles
// use is asked for its list once, an Ollama once for each model.
func (m *Models) looker() func(context.Context, *Spec, *Row) {
	var mu sync.Mutex
	servers := map[string]*seen{}
	return func(ctx context.Context, s *Spec, r *Row) {
		hc, key := m.httpClient(s), s.Provider+" "+s.Address
		if s.Provider == "ollama" {
			key += " " + s.Model
		}
		mu.Lock()
		server, ok := servers[key]
		if !ok {
			server = &seen{}
			servers[key] = server
		}
		mu.Unlock()
		server.once.Do(func() {
			switch s.Provider {
			case "ollama":
				server.shown, server.err = ollama.Show(ctx, ollama.Config{Model: s.Model, BaseURL: s.Address, APIKey: s.key, HTTP: hc})
				return
			case "anthropic":
				server.models, server.err = anthropicModels(ctx, s, hc)
				return
			}
			server.models, server.err = openai.ListModels(ctx, s.Address, s.key, hc)
			if e, ok := errors.AsType[*llm.Error](server.err); ok {
				e.Provider = s.Provider // of all that speak the format
			}
		})
		if s.Provider == "ollama" {
			m.lookOllama(server, s, r)
			return
		}
		look(server, s, r)
		if r.Reachable == Yes {
			r.Advice = m.advice(ctx, s, hc)
		}
	}
}

func anthropicModels(ctx context.Context, s *Spec, hc *http.Client) ([]openai.Model, error) {
	ids, err := anthropic.ListModels(ctx, s.Address, s.key, hc)
	all := make([]openai.Model, len(ids))
	for i, id := range ids {
		all[i].ID = id
	}
	return all, err
}

// look fills in what a list of models tells.
func look(server *seen, s *Spec, r *Row) {
	if server.err != nil {
		r.Reachable, r.Problem = answer(answered(server.err)), server.err
		return
	}
	r.Reachable, r.Present = Yes, No
	for _, offered := range server.models {
		if !sameModel(s.Provider, offered.ID, s.Model) {
			continue
		}
		r.Present = Yes
		if n := offered.MaxModelLen; n > 0 && n < r.Context {
			r.Context = n
		}
	}
}

// sameModel reports whether an id of a list is the model of the settings.
func sameModel(provider, id, model string) bool {
	if provider != "anthropic" {
		return id == model
	}
	return anthropic.SameModel(id, model)
}

func (m *Models) lookOllama(server *seen, s *Spec, r *Row) {
	shown, err := server.shown, server.err
	if err != nil {
		r.Reachable, r.Problem = answer(answered(err)), err
		if missing(err) {
			r.Present = No
		}
		return
	}
	r.Reachable, r.Present = Yes, Yes
	r.Tools, r.Images = calls(s, shown), sees(s, shown)
	if shown.RemoteHost != "" {
		s.Cloud = true
		m.place(s, r)
	}
	if n := shown.ContextLength; n > 0 && n < r.Context {
		r.Context = n
	}
}

// answered reports whether a failed call reached a server.
func answered(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Status != 0
}

func missing(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Kind == llm.KindNotFound
}

// calls reports whether a model calls tools by itself.
func calls(s *Spec, shown *ollama.Model) Answer {
	switch {
	case s.TextTools == "false":
		return No
	case s.TextTools == "true":
		return Yes
	case shown != nil:
		return answer(shown.Tools)
	case s.Provider == "anthropic", s.Provider == "openai" && s.Cloud, s.Provider == "deepseek":
		return Yes
	}
	return Unknown
}

// sees reports whether a model is shown images.
func sees(s *Spec, shown *ollama.Model) Answer {
	switch {
	case shown != nil:
		return answer(shown.Vision)
	case s.Provider == "anthropic":
		return answer(!strings.HasPrefix(s.Model, "claude-2") && !strings.HasPrefix(s.Model, "claude-instant"))
	}
	return Unknown
}

// maxAnthropic is the longest image of a request, in characters of base64.
// Source: "Vision" of Anthropic's documentation.
const maxAnthropic = 5 << 20

// imageRule says which images a model is shown; an endpoint that is not known
// says so itself.
func imageRule(s *Spec, shown *ollama.Model) func(llm.Image) string {
	switch {
	case sees(s, shown) == No:
		return image.None
	case s.Provider == "ollama": // its server reads no GIF
		return image.Only(0, image.PNG, image.JPEG, image.WebP)
	case s.Provider == "anthropic":
		return image.Only(maxAnthropic, image.PNG, image.JPEG, image.GIF, image.WebP)
	}
	return image.Only(0, image.PNG, image.JPEG, image.GIF, image.WebP)
}

// serverName is an address without credentials and query.
func serverName(address string) string {
	if u, err := url.Parse(address); err == nil {
		u.User, u.RawQuery = nil, ""
		return u.String()
	}
	return wire.Endpoint(address)
}
