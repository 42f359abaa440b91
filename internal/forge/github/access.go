package github

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// access is as whom GitHub is spoken to.
type access interface {
	// client is what speaks to a repository, or to an owner's where name is "", or
	// to the server where owner is "" too.
	client(ctx context.Context, owner, name string) (*rest.API, error)
	self(ctx context.Context) (*github.User, error)
	// all lists the repositories of an owner that can be seen.
	all(ctx context.Context, owner string) ([]*github.Repository, error)
	// password is what git logs in with, valid for some minutes.
	password(ctx context.Context, r forge.Repo) (string, error)
}

// apiOf speaks over a line.
func apiOf(a address, l *rest.Line) *rest.API {
	return &rest.API{Base: a.api, Client: l.Client(), Header: map[string]string{"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}}
}

// tokenAccess is a person's token.
type tokenAccess struct {
	token   *rest.Token
	c       *rest.API
	graphql string // address
}

func newTokenAccess(at address, w *rest.Wire, token string, fresh func() []byte) (*tokenAccess, error) {
	t, err := rest.NewToken("github", token, fresh)
	if err != nil {
		return nil, err
	}
	return &tokenAccess{token: t, graphql: at.graphql, c: apiOf(at, w.Line(rest.Bearer{Token: t.Now, Next: w.Base}, "token"))}, nil
}

func (a *tokenAccess) client(context.Context, string, string) (*rest.API, error) {
	return a.c, nil
}

func (a *tokenAccess) password(context.Context, forge.Repo) (string, error) {
	return a.token.Now(), nil
}

// self asks in another way with a token of an App's installation, as each job of GitHub Actions has
// one: who that is GraphQL alone tells.
func (a *tokenAccess) self(ctx context.Context) (*github.User, error) {
	var u github.User
	d := asking(a.c, "", i18n.E("rest.do_self"))
	_, err := d.Get(ctx, path("user"), nil, &u)
	if !forge.Is(err, forge.Forbidden) {
		return &u, err
	}
	var out struct {
		Viewer struct {
			Login      string
			DatabaseID int64 `json:"databaseId"`
		}
	}
	if d.graphql(ctx, a.graphql, "query { viewer { login databaseId } }", nil, "metadata=read", &out) != nil || out.Viewer.DatabaseID == 0 {
		return nil, err
	}
	return &github.User{ID: &out.Viewer.DatabaseID, Login: &out.Viewer.Login, Type: github.Ptr("Bot")}, nil
}

// all asks in the way that shows private repositories too: what is ours, an
// organization's, or where we work with others.
func (a *tokenAccess) all(ctx context.Context, owner string) ([]*github.Repository, error) {
	d := asking(a.c, owner+"/*", i18n.E("rest.do_repositories"))
	var who github.User
	if _, err := d.Get(ctx, path("users", owner), nil, &who); err != nil {
		return nil, err
	}
	if who.GetType() == "Organization" {
		return rest.Pages[github.Repository](ctx, d, path("orgs", owner, "repos"), query("type", "all", "sort", "created", "direction", "asc"))
	}
	all, err := rest.Pages[github.Repository](ctx, d, path("user", "repos"), query("affiliation", "owner,collaborator", "sort", "created", "direction", "asc"))
	if err != nil {
		return nil, err
	}
	public, err := rest.Pages[github.Repository](ctx, d, path("users", owner, "repos"), query("sort", "created", "direction", "asc"))
	return append(all, public...), err
}

// appAccess is a GitHub App: one identity, and a token for each installation.
type appAccess struct {
	at    address
	wire  *rest.Wire
	fresh func() []byte // may be nil

	mu        sync.Mutex
	app       App
	jwt       *rest.API // as the App itself
	byOwner   map[string]int64
	clients   map[int64]*rest.API
	passwords map[string]password
}

type password struct {
	token string
	until time.Time
}

func newAppAccess(at address, w *rest.Wire, app App, fresh func() []byte) (*appAccess, error) {
	a := &appAccess{at: at, wire: w, app: app, fresh: fresh, byOwner: map[string]int64{}}
	return a, a.take(app.Key)
}

// take makes everything that is signed with the App's key; the caller holds mu.
func (a *appAccess) take(key []byte) error {
	own, err := a.signer(clean(key))
	if err != nil {
		return err
	}
	a.app.Key, a.jwt, a.clients, a.passwords = clean(key), apiOf(a.at, appLine(a.wire, own, "app")), map[int64]*rest.API{}, map[string]password{}
	return nil
}

// clean is a key as it is read: in an environment variable it often has its line
// ends spelt out.
func clean(key []byte) []byte {
	return bytes.ReplaceAll(bytes.TrimSpace(key), []byte(`\n`), []byte("\n"))
}

// signer speaks as the App itself.
func (a *appAccess) signer(key []byte) (*ghinstallation.AppsTransport, error) {
	own, err := ghinstallation.NewAppsTransport(a.wire.Base, a.app.ID, key)
	if err != nil {
		return nil, i18n.E("github.bad_key", err)
	}
	own.BaseURL = strings.TrimSuffix(a.at.api.String(), "/")
	return own, nil
}

// own is what speaks as the App itself, with its key as it is now. A key that
// cannot be read yet is none.
func (a *appAccess) own() *rest.API {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fresh != nil {
		if key := a.fresh(); len(key) > 0 && !bytes.Equal(clean(key), a.app.Key) {
			if err := a.take(key); err != nil {
				a.wire.Log.Warn("The new key of the App is not used: " + err.Error())
			}
		}
	}
	return a.jwt
}

// appLine is a line of the App.
func appLine(w *rest.Wire, next http.RoundTripper, identity string) *rest.Line {
	return w.Line(refusing{next}, identity)
}

// refusing has the answer that refuses a token for the one to what was asked with it.
type refusing struct{ next http.RoundTripper }

// noToken is the header that tells such an answer.
const noToken = "X-Tori-No-Token"

// RoundTrip implements http.RoundTripper.
func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	var e *ghinstallation.HTTPError
	if errors.As(err, &e) && e.Response != nil {
		e.Response.Header.Set(noToken, "1")
		return e.Response, nil
	}
	return resp, err
}

func (a *appAccess) client(ctx context.Context, owner, name string) (*rest.API, error) {
	a.own()
	id, err := a.installation(ctx, owner, name)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[id]; c != nil {
		return c, nil
	}
	// Each installation has an apps transport of its own: refreshing a token
	// writes to it without a lock.
	own, err := a.signer(a.app.Key)
	if err != nil {
		return nil, err
	}
	c := apiOf(a.at, appLine(a.wire, ghinstallation.NewFromAppsTransport(own, id), "app/"+strconv.FormatInt(id, 10)))
	a.clients[id] = c
	return c, nil
}

// installation finds the App's installation on an owner's account: by a
// repository where its name is given, else among all; any will do where owner is
// "".
func (a *appAccess) installation(ctx context.Context, owner, name string) (int64, error) {
	if a.app.Installation != 0 {
		return a.app.Installation, nil
	}
	a.mu.Lock()
	id := a.byOwner[strings.ToLower(owner)]
	a.mu.Unlock()
	if id != 0 {
		return id, nil
	}
	var all []*github.Installation
	var err error
	if name != "" {
		var in github.Installation
		d := asking(a.own(), owner+"/"+name, i18n.E("github.do_installation"))
		_, err = d.Get(ctx, path("repos", owner, name, "installation"), nil, &in)
		all = append(all, &in)
	} else {
		d := asking(a.own(), owner, i18n.E("github.do_installation"))
		all, err = rest.Pages[github.Installation](ctx, d, path("app", "installations"), nil)
	}
	if err != nil && !forge.Is(err, forge.NotFound) {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, in := range all {
		login := strings.ToLower(in.GetAccount().GetLogin())
		if in.GetID() == 0 || in.SuspendedAt != nil {
			continue
		}
		a.byOwner[login] = in.GetID()
		if login == strings.ToLower(owner) || owner == "" || name != "" {
			id = in.GetID()
		}
	}
	if id == 0 {
		return 0, &forge.Error{Kind: forge.NotFound, Status: http.StatusNotFound, Err: i18n.E("github.not_installed", strings.Trim(owner+"/"+name, "/"))}
	}
	return id, nil
}

// forget drops the installation of an owner and its tokens: it was removed, and
// may have been made anew, or a token was revoked.
func (a *appAccess) forget(owner string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := strings.ToLower(owner)
	id := a.byOwner[key]
	if a.app.Installation != 0 {
		id = a.app.Installation
	}
	delete(a.clients, id)
	delete(a.byOwner, key)
	for r := range a.passwords {
		if strings.HasPrefix(r, key+"/") {
			delete(a.passwords, r)
		}
	}
}

// self is the App's account, whose name is the App's with a suffix; the number
// is what counts.
func (a *appAccess) self(ctx context.Context) (*github.User, error) {
	what := i18n.E("rest.do_self")
	var app github.App
	if _, err := asking(a.own(), "", what).Get(ctx, path("app"), nil, &app); err != nil {
		return nil, err
	}
	c, err := a.client(ctx, "", "")
	if err != nil {
		return nil, err
	}
	var u github.User
	_, err = asking(c, "", what).Get(ctx, path("users", app.GetSlug()+"[bot]"), nil, &u)
	return &u, err
}

func (a *appAccess) all(ctx context.Context, owner string) ([]*github.Repository, error) {
	c, err := a.client(ctx, owner, "")
	if err != nil {
		return nil, err
	}
	d := asking(c, owner+"/*", i18n.E("rest.do_repositories"))
	d.lost = func() { a.forget(owner) }
	var all []*github.Repository
	err = rest.EachPage(ctx, d, path("installation", "repositories"), nil, func(page *github.ListRepositories) bool {
		all = append(all, page.Repositories...)
		return true
	})
	return all, err
}

// passwordLeast is how long a password for git is valid at least, so that a long
// fetch does not outlive it.
const passwordLeast = 10 * time.Minute

// password is a token for one repository's contents alone: what git is given
// reaches no further.
func (a *appAccess) password(ctx context.Context, r forge.Repo) (string, error) {
	key := strings.ToLower(r.String())
	now := a.wire.Now()
	own := a.own()
	a.mu.Lock()
	p, ok := a.passwords[key]
	a.mu.Unlock()
	if ok && p.until.Sub(now) > passwordLeast {
		return p.token, nil
	}
	id, err := a.installation(ctx, r.Owner, r.Name)
	if err != nil {
		return "", err
	}
	write := "write"
	var t github.InstallationToken
	d := asking(own, r.String(), i18n.E("rest.do_remote"))
	d.lost = func() { a.forget(r.Owner) }
	if _, err := d.Send(ctx, http.MethodPost, path("app", "installations", id, "access_tokens"), github.InstallationTokenOptions{
		Repositories: []string{r.Name}, Permissions: &github.InstallationPermissions{Contents: &write},
	}, &t); err != nil {
		return "", err
	}
	a.mu.Lock()
	a.passwords[key] = password{t.GetToken(), t.GetExpiresAt().Time}
	a.mu.Unlock()
	return t.GetToken(), nil
}
