// Package github is the forge of github.com and of GitHub Enterprise, spoken to
// as a person's token or as a GitHub App. It sends one write at a time, asks
// again only for what reading may repeat, and decides nothing.
package github

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

// Options say which GitHub to speak to and as whom: either Token or App is given.
type Options struct {
	// URL is the server as people type it into a browser, "" for github.com;
	// its API and where git finds it follow from that.
	URL   string
	Token string // a personal access token, classic or fine-grained
	App   App
	// Fresh returns Token, or App.Key, as it is now; nothing where that cannot be
	// told. It is asked before each request, so that who changes a credential need
	// not restart us; nil for one that does not change. The account stays the same.
	Fresh func() []byte
	// HTTP speaks to the server; nil is a client of the package's own. Of a
	// given one only the transport is used.
	HTTP *http.Client
	Now  func() time.Time // nil is time.Now
	Log  *slog.Logger     // nil says nothing
	// CacheBytes bounds the answers that are kept to ask for news only; 0 is
	// 32 MiB, less than 0 keeps none.
	CacheBytes int64
	// WriteSpacing is the least time between two writes, as GitHub asks for; 0
	// is a second, less than 0 none.
	WriteSpacing time.Duration
	// RetryDelay is the wait before the first repetition, the next ones are
	// longer; 0 is half a second.
	RetryDelay time.Duration
	// Timeout bounds one request, its answer included; 0 is 30 s.
	Timeout time.Duration
}

// App is a GitHub App's own identity.
type App struct {
	ID  int64
	Key []byte // private key, PEM
	// Installation is the only one that is used; 0 finds that of each
	// repository's owner.
	Installation int64
}

// Forge is a GitHub. It is safe for concurrent use.
type Forge struct {
	address address
	wire    *wire
	access  access
	now     func() time.Time
	log     *slog.Logger
	delay   time.Duration

	mu    sync.Mutex
	self  *forge.Person
	items map[string]*memory // what is known of our comments, by item
	posts locks
}

var (
	_ forge.Forge   = (*Forge)(nil)
	_ forge.Clock   = (*Forge)(nil)
	_ forge.Editors = (*Forge)(nil)
)

// New returns a Forge; nothing is sent yet. The errors are i18n errors about the
// settings.
func New(o Options) (*Forge, error) {
	addr, err := parseAddress(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.RetryDelay == 0 {
		o.RetryDelay = 500 * time.Millisecond
	}
	f := &Forge{
		address: addr, now: o.Now, log: o.Log, delay: o.RetryDelay,
		wire: newWire(addr, o), items: map[string]*memory{},
	}
	token := strings.TrimSpace(o.Token)
	switch {
	case token != "" && o.App.ID != 0:
		return nil, i18n.E("github.both_logins")
	case token != "":
		f.access, err = newTokenAccess(f.wire, token, o.Fresh)
	case o.App.ID != 0:
		f.access, err = newAppAccess(f.wire, o.App, o.Fresh)
	default:
		return nil, i18n.E("github.no_login")
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Source is "github".
func (f *Forge) Source() string { return "github" }

// ServerTime implements forge.Clock: by the date of the last answer.
func (f *Forge) ServerTime() time.Time {
	return f.now().Add(time.Duration(f.wire.ahead.Load()))
}

// Self is asked for once; what was answered stays.
func (f *Forge) Self(ctx context.Context) (forge.Person, error) {
	f.mu.Lock()
	known := f.self
	f.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	u, err := f.access.self(ctx)
	if err != nil {
		return forge.Person{}, err
	}
	p := person(u)
	f.mu.Lock()
	f.self = &p
	f.mu.Unlock()
	return p, nil
}

// ghost is who stands for an account that was deleted; it has no number, so it
// has no permission either.
const ghost = "ghost"

func person(u *github.User) forge.Person {
	if u.GetID() == 0 {
		return forge.Person{Login: ghost}
	}
	return forge.Person{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}

func people(users []*github.User) []forge.Person {
	var all []forge.Person
	for _, u := range users {
		if u != nil {
			all = append(all, person(u))
		}
	}
	return all
}
