package gitea

import (
	"net/url"
	"strings"

	"toritsugi/internal/forge/rest"
)

// address is where the parts of one server are; both end in a slash.
type address struct{ web, api *url.URL }

// parseAddress finds the parts; a server may lie below a path.
func parseAddress(s string) (address, error) {
	web, err := rest.Address(s, "gitea")
	if err != nil {
		return address{}, err
	}
	web.Path = strings.TrimRight(strings.TrimSuffix(web.Path, "/api/v1"), "/") + "/"
	return address{web: web, api: web.JoinPath("api/v1/")}, nil
}
