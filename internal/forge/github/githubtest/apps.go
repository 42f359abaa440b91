package githubtest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// App is a GitHub App.
type App struct {
	ID          int64
	Slug        string // its account is "slug[bot]"
	ClientID    string
	Permissions map[string]string // default: what an agent needs
}

type app struct {
	App
	bot *account
	key *rsa.PrivateKey
}

type installation struct {
	id        int64
	app       *app
	owner     *account
	repos     []*repo // nil: all of the owner's
	suspended bool
	created   time.Time
}

// key is the one key of all apps: to make one takes long, and nothing here is secret.
var key = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func (n *installation) covers(r *repo) bool {
	return !n.suspended && n.owner == r.owner && (n.repos == nil || slices.Contains(n.repos, r))
}

// role is what an installation may do, by the permission that it has for contents.
func (n *installation) role() int {
	if n.app.Permissions["contents"] == "write" {
		return roleWrite
	}
	return roleRead
}

// AddApp makes an app and gives its private key in PEM.
func (s *Server) AddApp(a App) (keyPEM []byte) {
	s.t.Helper()
	k, err := key()
	if err != nil {
		s.t.Fatalf("githubtest: make a key: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Permissions == nil {
		a.Permissions = map[string]string{"contents": "write", "issues": "write", "pull_requests": "write", "metadata": "read", "checks": "read", "statuses": "read"}
	}
	if a.ClientID == "" {
		a.ClientID = fmt.Sprintf("Iv23li%014d", a.ID)
	}
	bot := s.addAccount(s.id(), a.Slug+"[bot]", "Bot")
	s.apps = append(s.apps, &app{App: a, bot: bot, key: k})
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)})
}

// RotateKey gives an app another private key, in PEM; its tokens of installations
// and what the former key signs are worthless.
func (s *Server) RotateKey(slug string) (keyPEM []byte) {
	s.t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		s.t.Fatalf("githubtest: make a key: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.apps {
		if a.Slug != slug {
			continue
		}
		a.key = k
		for _, t := range s.tokens {
			t.revoked = t.revoked || t.install != nil && t.app == a
		}
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)})
}

// Install installs an app at an owner, for the repositories of those names or,
// without any, for all of the owner's. It returns the installation's number.
func (s *Server) Install(slug, owner string, names ...string) int64 {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.apps, func(a *app) bool { return a.Slug == slug })
	if i < 0 {
		s.t.Fatalf("githubtest: no app %q", slug)
	}
	n := &installation{id: s.id(), app: s.apps[i], owner: s.must(owner), created: s.now()}
	for _, name := range names {
		r := s.repo(owner, name)
		if r == nil {
			s.t.Fatalf("githubtest: no repository %s/%s", owner, name)
		}
		n.repos = append(n.repos, r)
	}
	s.installs = append(s.installs, n)
	return n.id
}

// Suspend takes an installation's rights away; its tokens are refused from now on.
func (s *Server) Suspend(installation int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.installs {
		if n.id == installation {
			n.suspended = true
		}
	}
	for _, t := range s.tokens {
		if t.install != nil && t.install.id == installation {
			t.install.suspended = true
		}
	}
}

func (s *Server) integration(a *app) object {
	began := stamp(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	return object{"id": a.ID, "slug": a.Slug, "client_id": a.ClientID, "node_id": nodeID("App", a.ID), "owner": s.user(a.bot), "name": a.Slug, "description": nil,
		"external_url": s.URL, "html_url": s.URL + "/apps/" + a.Slug, "created_at": began, "updated_at": began, "permissions": a.Permissions, "events": []any{},
		"installations_count": len(s.installs)}
}

func (n *installation) selection() string {
	if n.repos == nil {
		return "all"
	}
	return "selected"
}

func (s *Server) installation(n *installation) object {
	o := object{"id": n.id, "account": s.user(n.owner), "repository_selection": n.selection(), "access_tokens_url": s.api("/app/installations/%d/access_tokens", n.id),
		"repositories_url": s.api("/installation/repositories"), "html_url": fmt.Sprintf("%s/settings/installations/%d", s.URL, n.id), "app_id": n.app.ID,
		"app_slug": n.app.Slug, "client_id": n.app.ClientID, "target_id": n.owner.id, "target_type": n.owner.kind, "permissions": n.app.Permissions, "events": []any{},
		"created_at": stamp(n.created), "updated_at": stamp(n.created), "single_file_name": nil, "suspended_by": nil, "suspended_at": nil}
	if n.suspended {
		o["suspended_by"], o["suspended_at"] = s.user(n.owner), stamp(s.now())
	}
	return o
}

func (c *call) installations() *answer {
	var all []*installation
	for _, n := range c.s.installs {
		if n.app == c.who.app {
			all = append(all, n)
		}
	}
	return c.list(len(all), func(i int) object { return c.s.installation(all[i]) })
}

func (c *call) installation() *answer {
	for _, n := range c.s.installs {
		if n.app == c.who.app && (n.covers(c.repo) || n.suspended && n.owner == c.repo.owner) {
			return ok(c.s.installation(n))
		}
	}
	return notFound()
}

// accessToken gives a token for an hour.
func (c *call) accessToken() *answer {
	id := c.r.PathValue("installation_id")
	var in struct {
		Repositories  []string `json:"repositories"`
		RepositoryIDs []int64  `json:"repository_ids"`
	}
	if len(c.body) > 0 {
		if a := c.read(&in); a != nil {
			return a
		}
	}
	for _, n := range c.s.installs {
		if n.app != c.who.app || strconv.FormatInt(n.id, 10) != id {
			continue
		}
		if n.suspended {
			return failed(http.StatusForbidden, "This installation has been suspended")
		}
		scoped := *n
		for _, r := range c.s.repos {
			byName := slices.ContainsFunc(in.Repositories, func(name string) bool { return strings.EqualFold(name, r.name) })
			if (byName || slices.Contains(in.RepositoryIDs, r.id)) && n.covers(r) {
				scoped.repos = append(slices.Clone(scoped.repos), r)
			}
		}
		if asked := len(in.Repositories) + len(in.RepositoryIDs); asked > 0 {
			if len(scoped.repos)-len(n.repos) != asked {
				return failed(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
			}
			scoped.repos = scoped.repos[len(n.repos):]
		}
		secret := fmt.Sprintf("ghs_%036d", c.s.id())
		expires := c.s.now().Add(time.Hour)
		c.s.tokens[secret] = &token{user: n.app.bot, app: n.app, install: &scoped, expires: expires}
		return created(object{"token": secret, "expires_at": stamp(expires), "permissions": n.app.Permissions, "repository_selection": scoped.selection()})
	}
	return notFound()
}

// installed lists the repositories of an installation token.
func (c *call) installed() *answer {
	if c.who.install == nil {
		return forbidden()
	}
	var all []*repo
	for _, r := range c.s.repos {
		if c.who.install.covers(r) {
			all = append(all, r)
		}
	}
	page, link := c.page(len(all), func(i int) object { return c.s.repository(all[i], c.who.role(all[i]), false) })
	a := ok(object{"total_count": len(all), "repository_selection": c.who.install.selection(), "repositories": page})
	a.link = link
	return a
}
