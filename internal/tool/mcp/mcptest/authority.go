// Package mcptest is the server of tools, and the authorization server before
// it, that tests log in at.
package mcptest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"toritsugi/internal/disk"
)

// Authority is an authorization server (RFC 6749, 7591, 7636, 8414, 8707, 9207)
// and a server of tools that takes its tokens (RFC 6750, 9728).
type Authority struct {
	URL string // of all of it; the tools are at /mcp

	// What a test sets before the first request: Meta changes the metadata, and At
	// answers instead of it where it returns true.
	Meta func(m map[string]any)
	At   func(w http.ResponseWriter, r *http.Request) bool
	// Needs is the scope without which calls of tools are refused; "" is none.
	Needs string

	// What was asked of it, to be read between requests: forms at the token
	// endpoint, and the scopes of each login.
	Asked  []url.Values
	Scopes []string

	t       testing.TB
	mu      sync.Mutex
	clients map[string][]string // redirect addresses
	codes   map[string]url.Values
	access  map[string][]string // scopes by token that is good
	refresh map[string][]string
}

// NewAuthority starts an Authority that lets requests to /mcp with its tokens
// through to tools, until the test ends.
func NewAuthority(t testing.TB, tools http.Handler) *Authority {
	a := &Authority{t: t, clients: map[string][]string{}, codes: map[string]url.Values{}, access: map[string][]string{}, refresh: map[string][]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		Reply(w, 200, map[string]any{"resource": a.URL + "/mcp", "authorization_servers": []string{a.URL}, "scopes_supported": []string{"read"}, "bearer_methods_supported": []string{"header"}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		m := map[string]any{"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token", "registration_endpoint": a.URL + "/register",
			"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token"},
			"token_endpoint_auth_methods_supported": []string{"none"}, "code_challenge_methods_supported": []string{"S256"},
			"scopes_supported": []string{"read", "write", "offline_access"}, "authorization_response_iss_parameter_supported": true}
		if a.Meta != nil {
			a.Meta(m)
		}
		Reply(w, 200, m)
	})
	mux.HandleFunc("POST /register", a.register)
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", a.token)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		body, _ := disk.ReadAll(r.Body, "a request", disk.MaxWhole)
		r.Body = io.NopCloser(bytes.NewReader(body))
		a.mu.Lock()
		scopes, good := a.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		needs := a.Needs
		a.mu.Unlock()
		challenge := `Bearer resource_metadata="` + a.URL + `/.well-known/oauth-protected-resource/mcp"`
		switch {
		case !good:
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
		case needs != "" && !slices.Contains(scopes, needs) && bytes.Contains(body, []byte(`"tools/call"`)):
			w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope", scope="`+needs+`"`)
			w.WriteHeader(http.StatusForbidden)
		default:
			tools.ServeHTTP(w, r)
		}
	})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.At == nil || !a.At(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	a.URL = web.URL
	return a
}

// Reply answers in JSON.
func Reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func (a *Authority) register(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
		Grants    []string `json:"grant_types"`
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil || len(m.Redirects) != 1 || m.Method != "none" || !slices.Contains(m.Grants, "refresh_token") {
		Reply(w, 400, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	id := rand.Text()
	a.mu.Lock()
	a.clients[id] = m.Redirects
	a.mu.Unlock()
	Reply(w, 201, map[string]any{"client_id": id, "redirect_uris": m.Redirects, "token_endpoint_auth_method": "none", "grant_types": m.Grants})
}

func (a *Authority) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.clients[q.Get("client_id")], q.Get("redirect_uri")) || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("resource") != a.URL+"/mcp" {
		a.t.Errorf("authorize %v", q)
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	a.Scopes = append(a.Scopes, q.Get("scope"))
	code := rand.Text()
	a.codes[code] = q
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {a.URL}}.Encode(), http.StatusFound)
}

func (a *Authority) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Asked = append(a.Asked, r.PostForm)
	var scopes []string
	switch f := r.PostForm; f.Get("grant_type") {
	case "authorization_code":
		q, ok := a.codes[f.Get("code")]
		delete(a.codes, f.Get("code"))
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || f.Get("redirect_uri") != q.Get("redirect_uri") || f.Get("client_id") != q.Get("client_id") || f.Get("resource") != q.Get("resource") {
			Reply(w, 400, map[string]any{"error": "invalid_grant"})
			return
		}
		scopes = strings.Fields(q.Get("scope"))
	case "refresh_token":
		var ok bool
		if scopes, ok = a.refresh[f.Get("refresh_token")]; !ok || f.Get("resource") != a.URL+"/mcp" || f.Get("client_id") == "" {
			Reply(w, 400, map[string]any{"error": "invalid_grant", "error_description": "the refresh token is not good any more"})
			return
		}
		delete(a.refresh, f.Get("refresh_token")) // good for one use
	default:
		Reply(w, 400, map[string]any{"error": "unsupported_grant_type"})
		return
	}
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	a.access[access], a.refresh[refresh] = scopes, scopes
	Reply(w, 200, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh, "scope": strings.Join(scopes, " ")})
}

// Withdraw makes the tokens good no more.
func (a *Authority) Withdraw(access, refresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if access {
		clear(a.access)
	}
	if refresh {
		clear(a.refresh)
	}
}

// Renewals is how often a refresh token was used.
func (a *Authority) Renewals() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.Asked {
		if f.Get("grant_type") == "refresh_token" {
			n++
		}
	}
	return n
}

// Trust makes a take the tokens of another.
func (a *Authority) Trust(other *Authority) { a.access = other.access }
