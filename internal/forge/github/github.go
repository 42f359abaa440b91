// Package github is the forge of github.com and of GitHub Enterprise, spoken to
// as a person's token or as a GitHub App. It sends one write at a time, asks
// again only for what reading may repeat, and decides nothing.
package github

import (
	"context"
	"strings"
	"time"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// Options say which GitHub to speak to and as whom: either Token or App is given. URL "" is github.com,
// Fresh is for Token or App.Key.
type Options struct {
	rest.Login
	App App
	// WriteSpacing is the least time between two writes, as GitHub asks for; 0
	// is a second, less than 0 none.
	WriteSpacing time.Duration
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
	wire    *rest.Wire
	access  access
	posts   *rest.Posts
	self    rest.Self
}

var (
	_ forge.Forge   = (*Forge)(nil)
	_ forge.Clock   = (*Forge)(nil)
	_ forge.Changes = (*Forge)(nil)
	_ forge.Editors = (*Forge)(nil)
)

// New returns a Forge; nothing is sent yet. The errors are i18n errors about the
// settings.
func New(o Options) (*Forge, error) {
	addr, err := parseAddress(o.URL)
	if err != nil {
		return nil, err
	}
	if o.WriteSpacing == 0 {
		o.WriteSpacing = time.Second
	}
	w := rest.New(rest.Options{Login: o.Login, Name: "GitHub", Home: addr.api, WriteSpacing: o.WriteSpacing, Counted: addr.counted, SlowDown: aboutLimits})
	f := &Forge{address: addr, wire: w, posts: rest.NewPosts(w)}
	token := strings.TrimSpace(o.Token)
	switch {
	case token != "" && o.App.ID != 0:
		return nil, i18n.E("github.both_logins")
	case token != "":
		f.access, err = newTokenAccess(addr, w, token, o.Fresh)
	case o.App.ID != 0:
		f.access, err = newAppAccess(addr, w, o.App, o.Fresh)
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
func (f *Forge) ServerTime() time.Time { return f.wire.ServerTime() }

// counted is what a request to a path is counted under.
func (a address) counted(path string) string {
	if strings.HasSuffix(a.graphql, a.api.Host+path) {
		return "graphql"
	}
	return "core"
}

// aboutLimits tells a secondary limit from a permission that lacks.
func aboutLimits(body []byte) bool {
	s := strings.ToLower(string(body[:min(len(body), 64<<10)]))
	return strings.Contains(s, "secondary rate limit") || strings.Contains(s, "secondary-rate-limits") ||
		strings.Contains(s, "abuse detection") || strings.Contains(s, "#abuse-rate-limits") || strings.Contains(s, "api rate limit exceeded")
}

// Self is asked for once; what was answered stays.
func (f *Forge) Self(ctx context.Context) (forge.Person, error) {
	return f.self.Is(ctx, func(ctx context.Context) (forge.Person, error) {
		u, err := f.access.self(ctx)
		return person(u), err
	})
}

func person(u *github.User) forge.Person {
	if u.GetID() == 0 {
		return forge.Person{Login: rest.Ghost}
	}
	return forge.Person{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}
