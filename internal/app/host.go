package app

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/github"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// openHosts makes the forges that the settings name; nothing is asked of them
// yet.
func (s *system) openHosts() error {
	g := s.cfg.GitHub
	if g.Token == "" && g.TokenFile == "" && g.AppID == 0 {
		return i18n.E("app.no_door")
	}
	o := github.Options{URL: g.URL, Token: g.Token, HTTP: s.env.HTTP, Now: s.env.Now, Log: s.log, WriteSpacing: time.Duration(g.WriteSpacingMS) * time.Millisecond}
	if o.WriteSpacing == 0 {
		o.WriteSpacing = -1 // none
	}
	switch {
	case g.AppID != 0:
		key, err := readCredential(g.AppPrivateKeyFile)
		if err != nil {
			return i18n.E("app.app_key", g.AppPrivateKeyFile, err)
		}
		o.Token, o.Fresh = "", s.fresh(g.AppPrivateKeyFile, key)
		o.App = github.App{ID: int64(g.AppID), Key: key, Installation: int64(g.AppInstallationID)}
	case g.TokenFile != "":
		token, err := readCredential(g.TokenFile)
		if err == nil && len(token) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			return i18n.E("app.token_file", g.TokenFile, err)
		}
		o.Token, o.Fresh = string(token), s.fresh(g.TokenFile, token)
	}
	f, err := github.New(o)
	if err != nil {
		return err
	}
	least, _ := forge.ParsePermission(g.MinPermission)
	s.hosts = map[string]*delivery.Host{f.Source(): {Tracker: f, Code: f, CAFile: s.env.Getenv("SSL_CERT_FILE"), Proxy: proxyFor(g.URL, s.env.Getenv), Least: least, Omit: g.UntrustedComments == "omit", FollowUp: g.FollowUp,
		Labels: delivery.Labels{Trigger: g.BotLabel, Create: g.CreateLabels, Status: map[task.Status]string{
			task.Queued: g.ProcessingLabel, task.Running: g.ProcessingLabel, task.Paused: g.PausedLabel, task.AwaitingApproval: g.WaitingLabel,
			task.Completed: g.DoneLabel, task.Stopped: g.StoppedLabel, task.Failed: g.FailedLabel}}}}
	return nil
}

// proxyFor is the proxy that the environment names for a forge, as the forge's
// own client finds it; "" for none.
func proxyFor(address string, getenv func(string) string) string {
	if address == "" {
		address = "https://github.com"
	}
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

// forgeHosts are the hosts of the forges, which texts may link to.
func forgeHosts(address string) []string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return []string{u.Hostname()}
}
