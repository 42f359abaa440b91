package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/disk"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/forge/gitea"
	"toritsugi/internal/forge/github"
	"toritsugi/internal/forge/gitlab"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// openHosts makes the hosts that the settings name; nothing is asked of them yet.
func (s *system) openHosts(ctx context.Context) error {
	s.hosts = map[string]*delivery.Host{}
	if s.cfg.Folder.Path != "" {
		if err := s.openFolder(ctx); err != nil {
			return err
		}
	}
	for _, f := range s.cfg.Forges() {
		if !f.Login() || f.URL == "" { // a token of the environment alone names no server of Gitea
			continue
		}
		if err := s.openForge(f); err != nil {
			return err
		}
	}
	return nil
}

// openHosted makes them where the run to be resumed lies at one.
func (s *system) openHosted(ctx context.Context) error {
	if s.hosted == nil {
		return nil
	}
	err := s.openHosts(ctx)
	if err == nil && s.hosts[s.hosted.Source] == nil {
		err = i18n.E("agent.no_host", order.Ref(*s.hosted), s.hosted.Source)
	}
	return err
}

// byHand is the host of a run of tori run: its issue's file, or its message, and a
// repository of this machine.
func (s *system) byHand(m contextstore.Metadata, o order.Order) *delivery.Host {
	k := m.TaskKey
	is := &folder.Issue{ID: k.ID, Path: o.Issue}
	if o.Issue == "" {
		is.Title, is.Body, is.Author = m.Title, o.Message, m.User
	}
	f := folder.OpenIssue(folder.Options{Issue: is, Repo: forge.RepoOf(k), Login: s.cfg.Workspace.AuthorName, Now: s.env.Now})
	if s.store != nil {
		f.Remember(s.store)
	}
	return &delivery.Host{Tracker: f, Repository: o.Repo, Least: forge.Write}
}

// openFolder makes the folder of issues. Who can write in it may ask for work.
func (s *system) openFolder(ctx context.Context) error {
	c := s.cfg.Folder
	src, err := workspace.Inspect(ctx, cmp.Or(c.Repository, c.Path), workspace.InspectOptions{NoStatus: true})
	if err != nil {
		return i18n.E("app.folder", err)
	}
	f, err := folder.Open(folder.Options{Dir: c.Path, Repo: forge.Repo{Owner: src.Owner(), Name: src.Name()}, Branch: src.Branch,
		Login: s.cfg.Workspace.AuthorName, Owner: LocalUser(), Now: s.env.Now})
	if err != nil {
		return i18n.E("app.folder", err)
	}
	labels := delivery.Labels{Trigger: c.BotLabel, Status: map[task.Status]string{}}
	for status, name := range map[task.Status]string{task.Queued: "processing", task.Running: "processing", task.Paused: "paused", task.AwaitingApproval: "waiting",
		task.Completed: "done", task.Stopped: "stopped", task.Failed: "failed"} {
		labels.Status[status] = c.BotLabel + " " + name
	}
	s.folder = f
	s.hosts[f.Source()] = &delivery.Host{Tracker: f, Repository: src.Path, Least: forge.Write, Labels: labels}
	return nil
}

// openForge makes the forge that a section of the settings names.
func (s *system) openForge(f config.Forge) error {
	client, err := forgeClient(s.env.HTTP, f)
	if err != nil {
		return err
	}
	token, fresh := f.Token, (func() []byte)(nil)
	if f.TokenFile != "" && !f.App {
		b, err := readCredential(f.TokenFile)
		if err == nil && len(b) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			return i18n.E("app.token_file", f.Source, f.TokenFile, err)
		}
		token, fresh = string(b), s.fresh(f.TokenFile, b)
	}
	login := rest.Login{URL: f.URL, Token: token, Fresh: fresh, HTTP: client, Now: s.env.Now, Log: s.log}
	var made forge.Forge
	switch f.Source {
	case "github":
		made, err = s.openGitHub(login)
	case "gitlab":
		made, err = gitlab.New(login)
	case "gitea":
		made, err = gitea.New(login)
	}
	if err != nil {
		return err
	}
	least, _ := forge.ParsePermission(f.MinPermission)
	s.hosts[f.Source] = &delivery.Host{Tracker: made, Code: made, CAFile: cmp.Or(f.CAFile, s.env.Getenv("SSL_CERT_FILE")), Proxy: proxyFor(f.URL, s.env.Getenv), Least: least, Omit: f.UntrustedComments == "omit", FollowUp: f.FollowUp,
		Labels: delivery.Labels{Trigger: f.BotLabel, Review: f.ReviewLabel, Create: f.CreateLabels, Status: map[task.Status]string{
			task.Queued: f.ProcessingLabel, task.Running: f.ProcessingLabel, task.Paused: f.PausedLabel, task.AwaitingApproval: f.WaitingLabel,
			task.Completed: f.DoneLabel, task.Stopped: f.StoppedLabel, task.Failed: f.FailedLabel}}}
	return nil
}

func (s *system) openGitHub(login rest.Login) (forge.Forge, error) {
	g := s.cfg.GitHub
	o := github.Options{Login: login, WriteSpacing: time.Duration(g.WriteSpacingMS) * time.Millisecond}
	if o.WriteSpacing == 0 {
		o.WriteSpacing = -1 // none
	}
	if g.AppID != 0 {
		key, err := readCredential(g.AppPrivateKeyFile)
		if err != nil {
			return nil, i18n.E("app.app_key", g.AppPrivateKeyFile, err)
		}
		o.Token, o.Fresh = "", s.fresh(g.AppPrivateKeyFile, key)
		o.App = github.App{ID: int64(g.AppID), Key: key, Installation: int64(g.AppInstallationID)}
	}
	return github.New(o)
}

// forgeClient is the client by which a forge is asked: base, with the certificates that are
// trusted there.
func forgeClient(base *http.Client, f config.Forge) (*http.Client, error) {
	if f.CAFile == "" {
		return base, nil
	}
	pool := x509.NewCertPool()
	pem, err := disk.Read(f.CAFile, disk.MaxWhole)
	if err == nil && !pool.AppendCertsFromPEM(pem) {
		err = i18n.E("app.no_certificates")
	}
	if err != nil {
		return nil, i18n.E("app.ca_file", f.Source, f.CAFile, err)
	}
	c := *cmp.Or(base, &http.Client{})
	t, ok := c.Transport.(*http.Transport)
	if !ok {
		t = http.DefaultTransport.(*http.Transport)
	}
	t = t.Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	c.Transport = t
	return &c, nil
}

// proxyFor is the proxy that the environment names for a forge, as the forge's
// own client finds it; "" for none.
func proxyFor(address string, getenv func(string) string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "" // the forge's client says what is wrong with it
	}
	proxy, err := proxies(getenv)(u)
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.String()
}

// proxies finds the proxy that the environment names for an address, nil for none.
func proxies(getenv func(string) string) func(*url.URL) (*url.URL, error) {
	either := func(name string) string { return cmp.Or(getenv(name), getenv(strings.ToLower(name))) }
	c := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	return c.ProxyFunc()
}

// requestProxy is proxies for requests.
func requestProxy(getenv func(string) string) func(*http.Request) (*url.URL, error) {
	find := proxies(getenv)
	return func(r *http.Request) (*url.URL, error) { return find(r.URL) }
}

// forgeHosts are the hosts of the forges in use, which texts may link to.
func forgeHosts(all []config.Forge) (hosts []string) {
	for _, f := range all {
		if u, err := url.Parse(f.URL); err == nil && u.Hostname() != "" && f.Login() {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}
