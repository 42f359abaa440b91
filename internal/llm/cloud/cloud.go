// Package cloud decides whether a model's endpoint is a cloud, and keeps forbidden calls
// and secrets from it, and names that only look local (route §7). It makes no call of
// its own.
package cloud

import (
	"slices"
	"strings"

	"toritsugi/internal/i18n"
)

// Allowed says why nothing may be sent to a cloud for route, nil where it may:
// never under localOnly, and else for the routes that are named, in either case
// of letters. The codes CODE and CODE1 to CODE3 are routes of their own. The
// error is an *i18n.Error. Source: route §7; security.cloud_allowed_routes.
func Allowed(route string, localOnly bool, cloudAllowedRoutes []string) error {
	route = strings.ToUpper(strings.TrimSpace(route))
	if localOnly {
		return i18n.E("cloud.local_only", route)
	}
	named := make([]string, 0, len(cloudAllowedRoutes))
	for _, r := range cloudAllowedRoutes {
		if r = strings.ToUpper(strings.TrimSpace(r)); r != "" {
			named = append(named, r)
		}
	}
	if slices.Contains(named, route) {
		return nil
	}
	return i18n.E("cloud.route", route, "["+strings.Join(named, ", ")+"]")
}
