package github

import (
	"net"
	"net/url"
	"strings"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

// address is where the parts of one GitHub are; all end in a slash but graphql.
type address struct {
	web, api *url.URL
	graphql  string
}

// parseAddress finds the parts: github.com and *.ghe.com have their API on a
// host of its own, an Enterprise Server below /api.
func parseAddress(s string) (address, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		s = "https://github.com"
	}
	u, err := url.Parse(s)
	local := err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return address{}, i18n.E("github.url")
	}
	host := strings.ToLower(u.Host)
	web := &url.URL{Scheme: u.Scheme, Host: host, Path: "/"}
	switch {
	case host == "github.com" || host == "api.github.com" || host == "www.github.com":
		web.Host = "github.com"
		return hosted(web), nil
	case strings.HasSuffix(host, ".ghe.com"):
		web.Host = strings.TrimPrefix(host, "api.")
		return hosted(web), nil
	}
	path := strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v3"), "/api")
	web.Path = path + "/"
	return address{web: web, api: web.JoinPath("api/v3/"), graphql: web.JoinPath("api/graphql").String()}, nil
}

func hosted(web *url.URL) address {
	api := &url.URL{Scheme: web.Scheme, Host: "api." + web.Host, Path: "/"}
	return address{web: web, api: api, graphql: api.JoinPath("graphql").String()}
}

// git is where git finds a repository.
func (a address) git(r forge.Repo) string {
	return a.web.JoinPath(url.PathEscape(r.Owner), url.PathEscape(r.Name)+".git").String()
}
