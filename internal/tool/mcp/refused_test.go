package mcp_test

import (
	"net/http"
	"strings"
	"testing"

	"toritsugi/internal/tool/mcp"
)

// TestUnauthorized: of a server that wants to know who asks it is said what to set.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	for header, want := range map[string]string{
		"X-Key":         "it wants a login, or a key in mcp_servers[].headers; a person must run: tori mcp login web",
		"Authorization": "it does not take the Authorization of mcp_servers[].headers: Unauthorized",
	} {
		m := open(t, mcp.Options{}, mcp.Server{Name: "web", URL: web.URL, Header: map[string]string{header: "Bearer wr0ng-wr0ng"}})
		if s := status(t, m, "web"); !strings.Contains(s.Reason, want) {
			t.Errorf("%s: %s", header, s.Reason)
		}
	}
}
