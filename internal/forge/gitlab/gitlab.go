// Package gitlab is the forge of gitlab.com and of GitLab servers of one's own, spoken to
// with a personal, project or group access token. It calls nothing that GitLab 17.0 has
// not, and decides nothing.
package gitlab

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
)

// Options say which GitLab to speak to and as whom: URL "" is gitlab.com, Token needs the scopes
// api and write_repository.
type Options = rest.Login

// Forge is a GitLab. It is safe for concurrent use.
type Forge struct {
	web   *url.URL // ends in a slash
	wire  *rest.Wire
	api   *rest.API
	token *rest.Token
	posts *rest.Posts
	self  rest.Self
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
	web, err := parseAddress(o.URL)
	if err != nil {
		return nil, err
	}
	token := strings.TrimSpace(o.Token)
	if token == "" {
		return nil, i18n.E("gitlab.no_login")
	}
	f := &Forge{web: web}
	if f.token, err = rest.NewToken("gitlab", token, o.Fresh); err != nil {
		return nil, err
	}
	f.wire = rest.New(rest.Options{Login: o, Name: "GitLab", Home: web})
	f.posts = rest.NewPosts(f.wire)
	line := f.wire.Line(rest.Bearer{Token: f.token.Now, Next: tailed{f.wire.Base}}, "token")
	f.api = &rest.API{Base: web.JoinPath("api/v4/"), Client: line.Client()}
	return f, nil
}

// parseAddress is the address of the web pages, which the API and git lie below.
func parseAddress(s string) (*url.URL, error) {
	u, err := rest.Address(cmp.Or(strings.TrimSpace(s), "https://gitlab.com"), "gitlab")
	if err == nil {
		u.Path = strings.TrimSuffix(u.Path, "/api/v4") + "/"
	}
	return u, err
}

// Source is "gitlab".
func (f *Forge) Source() string { return "gitlab" }

// ServerTime implements forge.Clock: by the date of the last answer.
func (f *Forge) ServerTime() time.Time { return f.wire.ServerTime() }

// Self is asked for once; what was answered stays.
func (f *Forge) Self(ctx context.Context) (forge.Person, error) {
	return f.self.Is(ctx, func(ctx context.Context) (forge.Person, error) {
		var u gitlab.User
		_, err := f.asking("", i18n.E("rest.do_self")).Get(ctx, "user", nil, &u)
		p := person(u.ID, u.Username)
		p.Bot = p.Bot || u.Bot
		return p, err
	})
}

// botName is how GitLab names the accounts of project and group access tokens, service
// accounts that were not named by people, and its own. Only an account's own page says
// whether it is a bot. Source: GitLab docs, "Project access tokens", "Service accounts",
// "Internal users".
var botName = lazyregexp.New(`^(?:(?:project|group)_\d+_bot(?:_[0-9a-f]+|\d*)|service_account_[0-9a-z_]+|(?:alert|automation|migration|security|support)-bot\d*)$`)

// person is an account as items name it. What deleted accounts wrote goes to one account
// that stands for them all: it is nobody.
func person(id int64, login string) forge.Person {
	if id == 0 || login == rest.Ghost {
		return forge.Person{Login: rest.Ghost}
	}
	return forge.Person{ID: id, Login: login, Bot: botName().MatchString(login)}
}

func user(u *gitlab.BasicUser) forge.Person {
	if u == nil {
		return person(0, "")
	}
	return person(u.ID, u.Username)
}
