// Package gitea is the forge of a Gitea or a Forgejo, spoken to with a token. It decides nothing.
package gitea

import (
	"context"
	"strings"
	"sync"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// Options say which server to speak to and as whom.
type Options = rest.Login

// Forge is a Gitea. It is safe for concurrent use.
type Forge struct {
	address address
	wire    *rest.Wire
	api     *rest.API
	token   *rest.Token
	posts   *rest.Posts
	self    rest.Self

	users sync.Map // the owners that are no organizations, in lower case
}

var (
	_ forge.Forge   = (*Forge)(nil)
	_ forge.Clock   = (*Forge)(nil)
	_ forge.Changes = (*Forge)(nil)
	_ forge.Editors = (*Forge)(nil)
)

// New returns a Forge; nothing is sent yet. The errors are i18n errors about the settings.
func New(o Options) (*Forge, error) {
	at, err := parseAddress(o.URL)
	if err != nil {
		return nil, err
	}
	token := strings.TrimSpace(o.Token)
	if token == "" {
		return nil, i18n.E("gitea.no_login")
	}
	f := &Forge{address: at}
	if f.token, err = rest.NewToken("gitea", token, o.Fresh); err != nil {
		return nil, err
	}
	f.wire = rest.New(rest.Options{Login: o, Name: "Gitea", Home: at.web})
	f.api = &rest.API{Base: at.api, Client: f.wire.Line(rest.Bearer{Token: f.token.Now, Next: f.wire.Base}, "token").Client()}
	f.posts = rest.NewPosts(f.wire)
	return f, nil
}

// Source is "gitea".
func (f *Forge) Source() string { return "gitea" }

// ServerTime implements forge.Clock: by the date of the last answer.
func (f *Forge) ServerTime() time.Time { return f.wire.ServerTime() }

// Self is asked for once; what was answered stays.
func (f *Forge) Self(ctx context.Context) (forge.Person, error) {
	return f.self.Is(ctx, func(ctx context.Context) (forge.Person, error) {
		var u sdk.User
		_, err := f.asking("", i18n.E("rest.do_self")).Get(ctx, path("user"), nil, &u)
		return person(&u), err
	})
}

// person is an account. Those without a number of their own, a deleted one (-1) and the
// server's own runners (-2), have none with us either, and so no permission.
func person(u *sdk.User) forge.Person {
	switch {
	case u == nil || u.ID == 0 || u.ID == -1:
		return forge.Person{Login: rest.Ghost}
	case u.ID < 0:
		return forge.Person{Login: u.UserName, Bot: true}
	}
	return forge.Person{ID: u.ID, Login: u.UserName}
}

// writer is who wrote something. What was brought from another server stands under the name
// of whoever brought it: it is nobody's whom we know.
func writer(u *sdk.User, original string) forge.Person {
	if original != "" {
		return forge.Person{Login: rest.Ghost}
	}
	return person(u)
}
