// Package anthropic speaks the wire format of Anthropic's Messages API. Each message is
// encoded once into a body that only grows; what the vendor is to cache is marked when
// it is sent; the answer is read as it streams. It keeps nothing and logs nothing.
package anthropic

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// DefaultBaseURL is where Anthropic itself answers.
const DefaultBaseURL = "https://api.anthropic.com"

// version is the version of the format that is spoken here.
// Source: "Versions" of Anthropic's API.
const version = "2023-06-01"

// Adaptive as Config.Thinking lets the model decide how much it thinks.
const Adaptive = -1

// minThinking is the least budget of thinking that the API accepts, in tokens.
const minThinking = 1024

// Config says which model to call and how.
type Config struct {
	Provider string // the name in errors and records, e.g. "anthropic"
	Model    string // e.g. "claude-sonnet-4-5"; a dot in a version is sent as the dash that the API expects
	BaseURL  string // http(s) address without /v1/messages; empty is DefaultBaseURL; a query is kept
	APIKey   string // sent as x-api-key; empty sends none

	// MaxTokens is the output limit of each call beside its thinking, in
	// tokens. The API demands one; 0 is 4,096 for Claude 2 and 3, 8,192 for
	// Claude 3.5 and for models of other makers, 16,000 for every later Claude:
	// the most that each family answers, or ample for one step of an agent.
	MaxTokens int
	// Temperature is sent with each call, from 0 to 1; nil sends none. A model
	// that thinks takes none, so it is left out then.
	Temperature *float64
	// Thinking is the budget of a model's thinking, in tokens and at least
	// 1,024, or Adaptive; 0 asks for none.
	Thinking int

	// HTTP makes the calls; nil makes a client of its own. It should have no
	// Timeout, which would end long answers.
	HTTP *http.Client
	// ConnectTimeout, FirstTokenTimeout and StallTimeout limit the parts of a
	// call; see wire.Config.
	ConnectTimeout    time.Duration
	FirstTokenTimeout time.Duration
	StallTimeout      time.Duration
	CallTimeout       time.Duration

	MaxRetries int // calls after the first that failed; 0 makes one call only

	// OnRetry, if set, is told of each failure that will be repeated after
	// wait. Text that the failed call streamed is streamed anew.
	OnRetry func(err *llm.Error, wait time.Duration)
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

// client is one model at one endpoint; safe for concurrent use.
type client struct {
	provider, model string
	sent            string // the model's name on the wire
	wire            *wire.Caller
	maxTokens       int
	thinking        int
	temperature     *float64
	maxEvent        int
	maxAnswer       int
}

// New returns a client, or an i18n error where the configuration cannot work.
// It does not call the endpoint.
func New(cfg Config) (llm.Client, error) { return newClient(cfg) }

func newClient(cfg Config) (*client, error) {
	u, err := wire.Resolve(cfg.Provider, cmp.Or(strings.TrimSpace(cfg.BaseURL), DefaultBaseURL), "v1/messages", "/v1/messages", "/v1")
	if err != nil {
		return nil, err
	}
	key, err := wire.CheckKey(cfg.Provider, cfg.APIKey)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(cfg.Model) == "" {
		return nil, i18n.E("llm.model", cfg.Provider)
	}
	c := &client{
		provider: cfg.Provider, model: cfg.Model, sent: ModelID(cfg.Model),
		wire: wire.New(wire.Config{Provider: cfg.Provider, URL: u, Key: key, Header: header(key), HTTP: cfg.HTTP,
			ConnectTimeout: cfg.ConnectTimeout, FirstTokenTimeout: cfg.FirstTokenTimeout, StallTimeout: cfg.StallTimeout, CallTimeout: cfg.CallTimeout,
			MaxRetries: cfg.MaxRetries, OnRetry: cfg.OnRetry, Backoff: cfg.Backoff, Now: cfg.Now}),
		maxTokens: cfg.MaxTokens, thinking: cfg.Thinking, temperature: cfg.Temperature,
		maxEvent: wire.MaxEvent, maxAnswer: wire.MaxAnswer,
	}
	if t := cfg.Temperature; t != nil && !(0 <= *t && *t <= 1) {
		return nil, i18n.E("anthropic.temperature", cfg.Provider, *t)
	}
	c.maxTokens = cmp.Or(max(c.maxTokens, 0), defaultMaxTokens(c.sent))
	if c.thinking > 0 {
		c.thinking = max(c.thinking, minThinking)
	}
	return c, nil
}

func (c *client) Provider() string { return c.provider }
func (c *client) Model() string    { return c.model }

// String names the client; it has no key to show.
func (c *client) String() string { return c.provider + " " + c.model + " at " + c.wire.Endpoint() }

func header(key string) func(http.Header) {
	return func(h http.Header) {
		h.Set("Anthropic-Version", version)
		if key != "" {
			h.Set("X-Api-Key", key)
		}
	}
}

// ModelID is how the API writes a model's name. The specification, like
// people, writes claude-sonnet-4.5; only the names of Claude 2 have a dot.
func ModelID(name string) string {
	if !strings.HasPrefix(name, "claude-") || strings.HasPrefix(name, "claude-2") || strings.HasPrefix(name, "claude-instant") {
		return name
	}
	return strings.ReplaceAll(name, ".", "-")
}

// defaultMaxTokens is the output limit for a model that none was set for.
// Source: "Models overview" of Anthropic's documentation (max output).
func defaultMaxTokens(model string) int {
	older := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(model, p) })
	}
	switch {
	case !strings.Contains(model, "claude"):
		return 8192
	case older("claude-2", "claude-instant", "claude-3-opus", "claude-3-sonnet", "claude-3-haiku"):
		return 4096
	case older("claude-3-5"):
		return 8192
	}
	return 16000
}
