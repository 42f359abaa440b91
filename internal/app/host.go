package app

import (
	"errors"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"

	"toritsugi/internal/agent"
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
	s.hosts = map[string]*agent.Host{f.Source(): {Forge: f, CAFile: s.env.Getenv("SSL_CERT_FILE"), Proxy: proxyFor(g.URL, s.env.Getenv), Least: least, Omit: g.UntrustedComments == "omit", FollowUp: g.FollowUp,
		Labels: agent.Labels{Trigger: g.BotLabel, Create: g.CreateLabels, Status: map[task.Status]string{
			task.Queued: g.ProcessingLabel, task.Running: g.ProcessingLabel, task.Paused: g.PausedLabel, task.AwaitingApproval: g.WaitingLabel,
			task.Completed: g.DoneLabel, task.Stopped: g.StoppedLabel, task.Failed: g.FailedLabel}}}}
	return nil
}

// proxyFor is the proxy that the environment names for a forge, as the forge's
// own client finds it; "" for none.
func proxyFor(address string, getenv func(string) string) string {
	first := func(names ...string) string {
		for _, n := range names {
			if v := getenv(n); v != "" {
				return v
			}
		}
		return ""
	}
	if address == "" {
		address = "https://github.com"
	}
	u, err := url.Parse(address)
	if err != nil {
		return "" // the forge's client says what is wrong with it
	}
	c := httpproxy.Config{HTTPSProxy: first("HTTPS_PROXY", "https_proxy"), NoProxy: first("NO_PROXY", "no_proxy")}
	proxy, err := c.ProxyFunc()(u)
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.String()
}

// forgeHosts are the hosts of the forges, which texts may link to.
func forgeHosts(address string) []string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return []string{u.Hostname()}
}
