// Package openai speaks the chat-completions wire format, and so reaches
// OpenAI, DeepSeek, LM Studio, vLLM, Ollama's /v1 and every gateway like them.
// It encodes each message once, streams the answer in bounded memory, classifies
// failures and repeats those that pass. It keeps nothing and logs nothing.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// Defaults and limits of a client.
const (
	DefaultStallTimeout = 5 * time.Minute // a local model may read a long prompt for minutes before its first byte

	maxEvent  = 16 << 20 // bytes of one event of a stream
	maxAnswer = 64 << 20 // bytes of one answer's text, reasoning and arguments
	maxError  = 64 << 10 // bytes read of an error's body
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
	// StallTimeout is how long no byte may come, before the answer or within
	// it; 0 is DefaultStallTimeout.
	StallTimeout time.Duration
	MaxRetries   int // calls after the first that failed; 0 makes one call only
	MaxTokens    int // output limit sent with each call; 0 sends none

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
	return fmt.Sprintf("%s %s at %s", c.Provider, c.Model, endpoint(c.BaseURL))
}

// GoString is String, so that %#v shows no key either.
func (c Config) GoString() string { return c.String() }

// client is one model at one endpoint; safe for concurrent use.
type client struct {
	provider, model string
	endpoint        string        // what may be shown of the address
	address         func() string // all of it; like authorize, a function, which no printing looks into
	maxTokensField  string
	maxTokens       int
	maxEvent        int
	maxAnswer       int

	http       *http.Client
	authorize  func(*http.Request) // holds the key
	scrub      func(string) string // takes the key out of a text
	stall      time.Duration
	maxRetries int
	onRetry    func(*llm.Error, time.Duration)
	backoff    func() backoff.BackOff
	now        func() time.Time
}

// New returns a client, or an i18n error where the configuration cannot work.
// It does not call the endpoint.
func New(cfg Config) (llm.Client, error) { return newClient(cfg) }

func newClient(cfg Config) (*client, error) {
	u, err := resolve(cfg.Provider, cfg.BaseURL, "chat/completions")
	if err != nil {
		return nil, err
	}
	key, err := checkKey(cfg.Provider, cfg.APIKey)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(cfg.Model) == "" {
		return nil, i18n.E("llm.model", cfg.Provider)
	}
	c := &client{
		provider: cfg.Provider, model: cfg.Model,
		address: u.String, endpoint: endpoint(u.String()),
		maxTokens: cfg.MaxTokens, maxTokensField: "max_tokens",
		maxEvent: maxEvent, maxAnswer: maxAnswer,
		http: singleHop(cfg.HTTP), authorize: bearer(key), scrub: scrubber(key),
		stall: cfg.StallTimeout, maxRetries: max(cfg.MaxRetries, 0),
		onRetry: cfg.OnRetry, backoff: cfg.Backoff, now: cfg.Now,
	}
	// OpenAI's newer models refuse max_tokens; the other vendors know no other name.
	if h := u.Hostname(); h == "api.openai.com" || strings.HasSuffix(h, ".openai.azure.com") {
		c.maxTokensField = "max_completion_tokens"
	}
	if c.stall <= 0 {
		c.stall = DefaultStallTimeout
	}
	if c.backoff == nil {
		c.backoff = exponential
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

func (c *client) Provider() string { return c.provider }
func (c *client) Model() string    { return c.model }

// String names the client; it has no key to show.
func (c *client) String() string { return c.provider + " " + c.model + " at " + c.endpoint }

// resolve returns the address of a method below base, whose query stays.
func resolve(provider, base, method string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, i18n.E("llm.base_url", provider, endpoint(base))
	}
	u.Fragment = ""
	// People paste the address of the call itself.
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/chat/completions")
	u.RawPath = ""
	return u.JoinPath(method), nil
}

// endpoint is what may be shown of an address: no credentials, no query.
func endpoint(raw string) string {
	raw, _, _ = strings.Cut(strings.TrimSpace(raw), "#")
	raw, _, _ = strings.Cut(raw, "?")
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		scheme, rest = "", raw
	} else {
		scheme += "://"
	}
	return scheme + rest[strings.LastIndexByte(rest, '@')+1:]
}

// checkKey trims the line end that keys read from files have, and refuses what
// no header can carry.
func checkKey(provider, key string) (string, error) {
	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", i18n.E("llm.api_key", provider)
	}
	return key, nil
}

func bearer(key string) func(*http.Request) {
	return func(r *http.Request) {
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
	}
}

// scrubber removes key from what a server says. Short keys are the
// placeholders of local servers ("ollama"), which are words, not secrets.
func scrubber(key string) func(string) string {
	if len(key) < 8 {
		return func(s string) string { return s }
	}
	return func(s string) string { return strings.ReplaceAll(s, key, "[api key]") }
}

// singleHop returns h, or a client of its own, that follows no redirect: a
// redirected POST loses its body or carries the conversation to another host.
func singleHop(h *http.Client) *http.Client {
	var c http.Client
	if h != nil {
		c = *h
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.MaxIdleConnsPerHost = 16
		c.Transport = t
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

func exponential() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.Multiplier = 2
	b.MaxInterval = 30 * time.Second
	return b
}

// maxWait is the longest pause a server may ask for that is waited out here; a
// longer one is the caller's to plan with.
const maxWait = 2 * time.Minute

// pacing waits as its BackOff says, but not less than the server asked for.
type pacing struct {
	backoff.BackOff
	asked time.Duration
}

func (p *pacing) NextBackOff() time.Duration {
	d := p.BackOff.NextBackOff()
	if d == backoff.Stop || p.asked > maxWait {
		return backoff.Stop
	}
	return max(d, p.asked)
}

// retry makes the call until it succeeds, fails for good, was made maxRetries
// times more, or ctx ends, whose error is then returned.
func (c *client) retry(ctx context.Context, call func() (*llm.Reply, *llm.Error)) (*llm.Reply, error) {
	attempts := 0
	pace := &pacing{BackOff: c.backoff()}
	reply, err := backoff.Retry(ctx, func() (*llm.Reply, error) {
		attempts++
		reply, e := call()
		if e == nil {
			return reply, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, backoff.Permanent(err)
		}
		e.Attempts = attempts
		pace.asked = e.RetryAfter
		if !e.Retryable() {
			return nil, backoff.Permanent(e)
		}
		return nil, e
	},
		backoff.WithBackOff(pace),
		backoff.WithMaxTries(uint(c.maxRetries)+1),
		backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, wait time.Duration) {
			var e *llm.Error
			if c.onRetry != nil && errors.As(err, &e) {
				c.onRetry(e, wait)
			}
		}))
	if err == nil {
		return reply, nil
	}
	if ended := ctx.Err(); ended != nil {
		return nil, ended
	}
	var e *llm.Error
	if errors.As(err, &e) { // backoff wraps some of them
		return nil, e
	}
	return nil, err
}
