// Package ollama speaks Ollama's native /api/chat, which obeys num_ctx and keep_alive, and
// looks after a local server: checks after calls, warm-ups and restarts within limits for
// the whole machine. It keeps one small state file and logs nothing.
package ollama

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// Defaults and limits of a client.
const (
	DefaultBaseURL   = "http://localhost:11434"
	DefaultNumCtx    = 8192 // tokens; route §10
	DefaultKeepAlive = "-1" // for ever; route §10
)

// Config says which model to call and how.
type Config struct {
	Provider string // the name in errors and records; empty is "ollama"
	Model    string // "name", "name:tag", or either after "ollama/" (route §13.4)
	BaseURL  string // http(s) address of the server; empty is DefaultBaseURL
	APIKey   string // sent as a bearer token; empty sends none

	// NumCtx is the context length in tokens that is asked for with every call;
	// 0 is DefaultNumCtx. Two clients of one model should agree on it: Ollama
	// loads the model anew where it changes.
	NumCtx int
	// KeepAlive is how long the model stays in memory after a call: seconds, a
	// duration such as "30m", a negative number for ever; empty is DefaultKeepAlive.
	KeepAlive   string
	MaxTokens   int      // output limit of each call (num_predict); 0 sends none
	Temperature *float64 // nil leaves it to the model
	// Think is "true" or "false", or for models that know levels "low", "medium",
	// "high" or, from Ollama 0.22 on, "max"; empty leaves it to the model.
	Think string

	// HTTP makes the calls; nil makes a client of its own. It should have no
	// Timeout, which would end long answers.
	HTTP *http.Client
	// ConnectTimeout, FirstTokenTimeout and StallTimeout are as in wire.Config;
	// 0 is wire.DefaultConnectTimeout, no limit, and wire.DefaultStallTimeout. A
	// model is loaded, and a long prompt read, before the first token.
	ConnectTimeout, FirstTokenTimeout, StallTimeout time.Duration
	CallTimeout                                     time.Duration // of each call that is made, in all; 0 is no limit

	MaxRetries int // calls after the first that failed; 0 makes one call only

	// OnRetry, if set, is told of each failure that will be repeated after
	// wait. Text that the failed call streamed is streamed anew.
	OnRetry func(err *llm.Error, wait time.Duration)
	// Care looks after the server after each failed call that will be repeated;
	// nil for nobody. What it does after the last one is Care.Watch's.
	Care *Supervisor
	// Backoff makes the waits of one Send; nil is exponential with jitter from
	// half a second to 30 seconds.
	Backoff func() backoff.BackOff
	// Now tells the time that Retry-After dates are compared with; nil is time.Now.
	Now func() time.Time
}

// String shows the configuration without its key.
func (c Config) String() string {
	return fmt.Sprintf("%s %s at %s", c.Provider, c.Model, wire.Endpoint(c.BaseURL))
}

// GoString is String, so that %#v shows no key either.
func (c Config) GoString() string { return c.String() }

// client is one model at one server; safe for concurrent use.
type client struct {
	provider          string
	configured, model string // as configured, and as the server knows it
	wire              *wire.Caller
	server            *server
	numCtx, maxTokens int
	keepAlive, think  string // as JSON
	temperature       *float64
	maxLine           int
	maxAnswer         int
}

// New returns a client, or an i18n error where the configuration cannot work.
// It does not call the server.
func New(cfg Config) (llm.Client, error) { return newClient(cfg) }

func newClient(cfg Config) (*client, error) {
	s, err := newServer(cfg)
	if err != nil {
		return nil, err
	}
	c := &client{
		provider: s.provider, configured: cfg.Model, model: ModelName(cfg.Model), wire: s.at("api/chat"), server: s,
		numCtx: cmp.Or(cfg.NumCtx, DefaultNumCtx), maxTokens: max(cfg.MaxTokens, 0), temperature: cfg.Temperature,
		maxLine: wire.MaxEvent, maxAnswer: wire.MaxAnswer,
	}
	if c.model == "" {
		return nil, i18n.E("llm.model", c.provider)
	}
	if c.numCtx < minNumCtx {
		return nil, i18n.E("ollama.num_ctx", cfg.Model, cfg.NumCtx, minNumCtx)
	}
	if c.keepAlive, err = keepAliveJSON(cfg.KeepAlive); err != nil {
		return nil, err
	}
	switch cfg.Think {
	case "", "true", "false":
		c.think = cfg.Think
	case "low", "medium", "high", "max":
		c.think = strconv.Quote(cfg.Think)
	default:
		return nil, i18n.E("ollama.think", cfg.Think)
	}
	return c, nil
}

// minNumCtx is less than any model can work in; Ollama raises smaller ones in silence.
const minNumCtx = 64

func (c *client) Provider() string { return c.provider }
func (c *client) Model() string    { return c.configured }

// String names the client; it has no key to show.
func (c *client) String() string {
	return c.provider + " " + c.configured + " at " + c.wire.Endpoint()
}

// GoString is String, so that %#v looks into nothing.
func (c *client) GoString() string { return c.String() }

// ModelName is a configured model as the server knows it: without the provider
// that the seeds write before it (route §13.4).
func ModelName(configured string) string {
	return strings.TrimPrefix(strings.TrimSpace(configured), "ollama/")
}

// SameModel reports whether two names mean one model: the tag defaults to
// latest, the registry and the library may be left out, case does not count, and
// local at the end says only that it is no cloud's.
// Source: types/model (ParseName, EqualFold) and internal/modelref of Ollama.
func SameModel(a, b string) bool { return fullName(a) == fullName(b) }

func fullName(name string) string {
	name = strings.TrimSuffix(strings.ToLower(ModelName(name)), ":local")
	name = strings.TrimPrefix(name, "registry.ollama.ai/")
	name = strings.TrimPrefix(name, "library/")
	if !strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		name += ":latest"
	}
	return name
}

// keepAliveJSON is a keep_alive as Ollama takes it: a number of seconds, or the
// text of a duration. A number in quotes would be refused.
func keepAliveJSON(s string) (string, error) {
	s = cmp.Or(strings.TrimSpace(s), DefaultKeepAlive)
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return strconv.FormatInt(n, 10), nil
	}
	if _, err := time.ParseDuration(s); err != nil {
		return "", i18n.E("ollama.keep_alive", s)
	}
	return strconv.Quote(s), nil
}
