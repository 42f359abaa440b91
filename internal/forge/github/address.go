package github

import (
	"cmp"
	"net/url"
	"strings"

	"toritsugi/internal/forge/rest"
)

// address is where the parts of one GitHub are; all end in a slash but graphql.
type address struct {
	web, api *url.URL
	graphql  string
}

// parseAddress finds the parts: github.com and *.ghe.com have their API on a
// host of its own, an Enterprise Server below /api.
func parseAddress(s string) (address, error) {
	u, err := rest.Address(cmp.Or(strings.TrimSpace(s), "https://github.com"), "github")
	if err != nil {
		return address{}, err
	}
	host := u.Host
	web := &url.URL{Scheme: u.Scheme, Host: host, Path: "/"}
	switch {
	case host == "github.com" || host == "api.github.com" || host == "www.github.com":
		web.Host = "github.com"
		return hosted(web), nil
	case strings.HasSuffix(host, ".ghe.com"):
		web.Host = strings.TrimPrefix(host, "api.")
		return hosted(web), nil
	}
	web.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/v3"), "/api") + "/"
	return address{web: web, api: web.JoinPath("api/v3/"), graphql: web.JoinPath("api/graphql").String()}, nil
}

func hosted(web *url.URL) address {
	api := &url.URL{Scheme: web.Scheme, Host: "api." + web.Host, Path: "/"}
	return address{web: web, api: api, graphql: api.JoinPath("graphql").String()}
}
