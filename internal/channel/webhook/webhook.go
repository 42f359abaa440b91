// Package webhook is the channel for what has no member of its own: a bridge sends what
// people say as signed JSON and is sent posts the same way (docs/http.md). It knows nothing
// of models and keeps no files.
package webhook

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/wire"
)

// Options are what a Webhook needs to know.
type Options struct {
	Secret string // "whsec_BASE64": both sides sign with it
	URL    string // where posts go
	// Allowed reports whether a person is answered, by the id that the bridge gives.
	Allowed func(user string) bool
	HTTP    *http.Client // nil has a time limit of 20 seconds
	Inbox   channel.Inbox
	// AtOnce reports whether a text is a command that acts while a turn goes on.
	AtOnce func(text string) bool
	Mask   func(string) string // hides secrets in what the bridge says of a failure
	Now    func() time.Time
	Log    *slog.Logger
}

// Webhook implements channel.Receiver, and http.Handler for what comes in.
type Webhook struct {
	opt    Options
	key    signer
	http   *http.Client
	turns  channel.Turns // posts of a session go out one after another
	forged channel.Throttle

	mu    sync.Mutex
	said  channel.Recent[bool] // ids of posts that were taken
	until time.Time            // nothing is sent before: the bridge is busy or away
	pause time.Duration        // the latest that it did not ask for itself; 0 once it took something
	// refused is why the bridge takes nothing at all.
	refused error
}

const (
	// maxSaid is how many posts are known to be taken, at least.
	maxSaid = 4096
	// minKey is the least bytes of a secret, as the Standard Webhooks have it.
	minKey = 24
	// timeout is for one request, where Options.HTTP says nothing else.
	timeout = 20 * time.Second
)

// New returns a Webhook, which does nothing before it is called.
func New(opt Options) (*Webhook, error) {
	key, ok := strings.CutPrefix(opt.Secret, "whsec_")
	raw, err := base64.StdEncoding.DecodeString(key)
	if !ok || err != nil || len(raw) < minKey {
		return nil, i18n.E("webhook.secret")
	}
	if u, err := url.Parse(opt.URL); err != nil || u.Host == "" {
		return nil, i18n.E("webhook.url")
	}
	if opt.Allowed == nil || opt.Inbox == nil || opt.AtOnce == nil || opt.Mask == nil || opt.Now == nil || opt.Log == nil {
		return nil, errors.New("webhook: Allowed, Inbox, AtOnce, Mask, Now and Log are needed")
	}
	client := wire.SingleHop(opt.HTTP)
	if opt.HTTP == nil {
		client.Timeout = timeout
	}
	return &Webhook{opt: opt, key: raw, http: client, said: channel.Recent[bool]{Most: maxSaid}}, nil
}

// Ready says why the bridge takes nothing, nil where it does.
func (w *Webhook) Ready() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

// Kind implements channel.Channel.
func (w *Webhook) Kind() channel.Kind { return channel.HTTP }

var _ channel.Receiver = (*Webhook)(nil)
