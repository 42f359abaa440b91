// Package openai speaks the chat-completions format: OpenAI, DeepSeek, LM Studio, vLLM and
// every server like them. Each message is encoded once; answers stream in bounded memory;
// failures are classified, and repeated where they pass. It keeps and logs nothing.
package openai

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// Config says which model to call and how.
type Config struct {
	Provider string // the name in errors and records, e.g. "openai"
	Model    string // as the endpoint knows it
	BaseURL  string // http(s) address without /chat/completions; a query is kept
	APIKey   string // sent as a bearer token; empty sends none

	// HTTP makes the calls; nil makes a client of its own. It should have no
	// Timeout, which would end long answers.
	HTTP *http.Client
	// ConnectTimeout, FirstTokenTimeout and StallTimeout are as in wire.Config;
	// 0 is wire.DefaultConnectTimeout, no limit, and wire.DefaultStallTimeout.
	ConnectTimeout, FirstTokenTimeout, StallTimeout time.Duration
	CallTimeout                                     time.Duration // of each call that is made, in all; 0 is no limit

	MaxRetries int // calls after the first that failed; 0 makes one call only
	MaxTokens  int // output limit sent with each call, as llm.LimitAnswer lowers it; 0 sends none
	// Temperature is sent with each call, from 0 to 2; nil sends none, which
	// some models demand.
	Temperature *float64

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
	wire            *wire.Caller
	dialect         dialect
	maxTokens       int
	temperature     *float64
	maxEvent        int
	maxAnswer       int
}

// New returns a client, or an i18n error where the configuration cannot work.
// It does not call the endpoint.
func New(cfg Config) (llm.Client, error) { return newClient(cfg) }

func newClient(cfg Config) (*client, error) {
	u, err := resolve(cfg.Provider, cfg.BaseURL, "chat/completions")
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
	if t := cfg.Temperature; t != nil && !(0 <= *t && *t <= 2) {
		return nil, i18n.E("openai.temperature", cfg.Provider, *t)
	}
	return &client{
		provider: cfg.Provider, model: cfg.Model,
		wire: wire.New(wire.Config{Provider: cfg.Provider, URL: u, Key: key, Header: bearer(key), HTTP: cfg.HTTP,
			ConnectTimeout: cfg.ConnectTimeout, FirstTokenTimeout: cfg.FirstTokenTimeout, StallTimeout: cfg.StallTimeout, CallTimeout: cfg.CallTimeout, MaxRetries: cfg.MaxRetries, OnRetry: cfg.OnRetry, Backoff: cfg.Backoff, Now: cfg.Now}),
		maxTokens: cfg.MaxTokens, temperature: cfg.Temperature, dialect: dialectOf(u.Hostname()),
		maxEvent: wire.MaxEvent, maxAnswer: wire.MaxAnswer,
	}, nil
}

func (c *client) Provider() string { return c.provider }
func (c *client) Model() string    { return c.model }

// String names the client; it has no key to show.
func (c *client) String() string { return c.provider + " " + c.model + " at " + c.wire.Endpoint() }

// resolve returns the address of a method below base, whose query stays.
func resolve(provider, base, method string) (*url.URL, error) {
	return wire.Resolve(provider, base, method, "/chat/completions")
}

func bearer(key string) func(http.Header) {
	return func(h http.Header) {
		if key != "" {
			h.Set("Authorization", "Bearer "+key)
		}
	}
}
