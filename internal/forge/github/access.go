package github

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

// access is as whom GitHub is spoken to.
type access interface {
	// client is what speaks to a repository, or to an owner's where name is "", or
	// to the server where owner is "" too.
	client(ctx context.Context, owner, name string) (*github.Client, error)
	self(ctx context.Context) (*github.User, error)
	// all lists the repositories of an owner that can be seen.
	all(ctx context.Context, owner string) ([]*github.Repository, error)
	// password is what git logs in with, valid for some minutes.
	password(ctx context.Context, r forge.Repo) (string, error)
}

// clientOf speaks over a line. The client's own idea of limits is switched off:
// it counts by the machine's clock and shares one limit among all credentials.
func clientOf(l *line) (*github.Client, error) {
	api := l.address.api.String()
	return github.NewClient(
		github.WithHTTPClient(&http.Client{Transport: l, CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 5 || r.URL.Host != l.address.api.Host {
				return http.ErrUseLastResponse
			}
			return nil
		}}),
		github.WithURLs(&api, &api), github.WithUserAgent("toritsugi"), github.WithDisableRateLimitCheck(),
	)
}

// bearer adds a token to requests.
type bearer struct {
	token func() string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token())
	return b.next.RoundTrip(r)
}

// tokenAccess is a person's token.
type tokenAccess struct {
	fresh func() []byte // may be nil
	c     *github.Client

	mu   sync.Mutex
	last string
}

func newTokenAccess(w *wire, token string, fresh func() []byte) (a *tokenAccess, err error) {
	if !isToken(token) {
		return nil, i18n.E("github.bad_token")
	}
	a = &tokenAccess{last: token, fresh: fresh}
	a.c, err = clientOf(w.line(bearer{a.token, w.base}, "token"))
	return a, err
}

func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// token is the token as it is now, or as it was last where that is none.
func (a *tokenAccess) token() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fresh != nil {
		if t := strings.TrimSpace(string(a.fresh())); isToken(t) {
			a.last = t
		}
	}
	return a.last
}

func (a *tokenAccess) client(context.Context, string, string) (*github.Client, error) {
	return a.c, nil
}

func (a *tokenAccess) password(context.Context, forge.Repo) (string, error) { return a.token(), nil }

func (a *tokenAccess) self(ctx context.Context) (*github.User, error) {
	var u github.User
	_, err := (&call{client: a.c, what: i18n.E("github.do_self")}).get(ctx, path("user"), nil, &u)
	return &u, err
}

// all asks in the way that shows private repositories too: what is ours, an
// organization's, or where we work with others.
func (a *tokenAccess) all(ctx context.Context, owner string) ([]*github.Repository, error) {
	d := &call{client: a.c, repo: owner + "/*", what: i18n.E("github.do_repositories")}
	var who github.User
	if _, err := d.get(ctx, path("users", owner), nil, &who); err != nil {
		return nil, err
	}
	if who.GetType() == "Organization" {
		return pages[github.Repository](ctx, d, path("orgs", owner, "repos"), query("type", "all", "sort", "created", "direction", "asc"))
	}
	all, err := pages[github.Repository](ctx, d, path("user", "repos"), query("affiliation", "owner,collaborator", "sort", "created", "direction", "asc"))
	if err != nil {
		return nil, err
	}
	public, err := pages[github.Repository](ctx, d, path("users", owner, "repos"), query("sort", "created", "direction", "asc"))
	return append(all, public...), err
}

// appAccess is a GitHub App: one identity, and a token for each installation.
type appAccess struct {
	wire  *wire
	fresh func() []byte // may be nil

	mu        sync.Mutex
	app       App
	jwt       *github.Client // as the App itself
	byOwner   map[string]int64
	clients   map[int64]*github.Client
	passwords map[string]password
}

type password struct {
	token string
	until time.Time
}

func newAppAccess(w *wire, app App, fresh func() []byte) (*appAccess, error) {
	a := &appAccess{wire: w, app: app, fresh: fresh, byOwner: map[string]int64{}}
	return a, a.take(app.Key)
}

// take makes everything that is signed with the App's key; the caller holds mu.
func (a *appAccess) take(key []byte) error {
	own, err := a.signer(clean(key))
	if err != nil {
		return err
	}
	jwt, err := clientOf(a.wire.line(own, "app"))
	if err != nil {
		return err
	}
	a.app.Key, a.jwt, a.clients, a.passwords = clean(key), jwt, map[int64]*github.Client{}, map[string]password{}
	return nil
}

// clean is a key as it is read: in an environment variable it often has its line
// ends spelt out.
func clean(key []byte) []byte {
	return bytes.ReplaceAll(bytes.TrimSpace(key), []byte(`\n`), []byte("\n"))
}

// signer speaks as the App itself.
func (a *appAccess) signer(key []byte) (*ghinstallation.AppsTransport, error) {
	own, err := ghinstallation.NewAppsTransport(a.wire.base, a.app.ID, key)
	if err != nil {
		return nil, i18n.E("github.bad_key", err)
	}
	own.BaseURL = strings.TrimSuffix(a.wire.address.api.String(), "/")
	return own, nil
}

// own is what speaks as the App itself, with its key as it is now. A key that
// cannot be read yet is none.
func (a *appAccess) own() *github.Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fresh != nil {
		if key := a.fresh(); len(key) > 0 && !bytes.Equal(clean(key), a.app.Key) {
			if err := a.take(key); err != nil {
				a.wire.log.Warn("The new key of the App is not used: " + err.Error())
			}
		}
	}
	return a.jwt
}

func (a *appAccess) client(ctx context.Context, owner, name string) (*github.Client, error) {
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
	c, err := clientOf(a.wire.line(ghinstallation.NewFromAppsTransport(own, id), "app/"+strconv.FormatInt(id, 10)))
	if err != nil {
		return nil, err
	}
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
		d := &call{client: a.own(), repo: owner + "/" + name, what: i18n.E("github.do_installation")}
		_, err = d.get(ctx, path("repos", owner, name, "installation"), nil, &in)
		all = append(all, &in)
	} else {
		d := &call{client: a.own(), repo: owner, what: i18n.E("github.do_installation")}
		all, err = pages[github.Installation](ctx, d, path("app", "installations"), nil)
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
	what := i18n.E("github.do_self")
	var app github.App
	if _, err := (&call{client: a.own(), what: what}).get(ctx, path("app"), nil, &app); err != nil {
		return nil, err
	}
	c, err := a.client(ctx, "", "")
	if err != nil {
		return nil, err
	}
	var u github.User
	_, err = (&call{client: c, what: what}).get(ctx, path("users", app.GetSlug()+"[bot]"), nil, &u)
	return &u, err
}

func (a *appAccess) all(ctx context.Context, owner string) ([]*github.Repository, error) {
	c, err := a.client(ctx, owner, "")
	if err != nil {
		return nil, err
	}
	d := &call{client: c, repo: owner + "/*", what: i18n.E("github.do_repositories"), lost: func() { a.forget(owner) }}
	var all []*github.Repository
	err = eachPage(ctx, d, path("installation", "repositories"), nil, func(page *github.ListRepositories) {
		all = append(all, page.Repositories...)
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
	now := a.wire.now()
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
	d := &call{client: own, repo: r.String(), what: i18n.E("github.do_remote"), lost: func() { a.forget(r.Owner) }}
	if _, err := d.send(ctx, http.MethodPost, path("app", "installations", id, "access_tokens"), github.InstallationTokenOptions{
		Repositories: []string{r.Name}, Permissions: &github.InstallationPermissions{Contents: &write},
	}, &t); err != nil {
		return "", err
	}
	a.mu.Lock()
	a.passwords[key] = password{t.GetToken(), t.GetExpiresAt().Time}
	a.mu.Unlock()
	return t.GetToken(), nil
}
