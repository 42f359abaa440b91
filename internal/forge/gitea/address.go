package gitea

import (
	"net"
	"net/url"
	"strings"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

// address is where the parts of one server are; both end in a slash.
type address struct{ web, api *url.URL }

// parseAddress finds the parts; a server may lie below a path.
func parseAddress(s string) (address, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	local := err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return address{}, i18n.E("gitea.url")
	}
	path := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/api/v1"), "/")
	web := &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: path + "/"}
	return address{web: web, api: web.JoinPath("api/v1/")}, nil
}

// git is where git finds a repository.
func (a address) git(r forge.Repo) string {
	return a.web.JoinPath(url.PathEscape(r.Owner), url.PathEscape(r.Name)+".git").String()
}
