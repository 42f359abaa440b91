package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/tool/mcp"
	"toritsugi/internal/tool/mcp/mcptest"
)

// newAuthority guards the tools of the tests' server.
func newAuthority(t testing.TB) *mcptest.Authority {
	s := webServer(make(chan struct{}))
	return mcptest.NewAuthority(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
}

func remoteServer(a *mcptest.Authority) mcp.Server {
	return mcp.Server{Name: "remote", URL: a.URL + "/mcp"}
}

// secrets takes down what a login tells of.
type secrets struct {
	mu  sync.Mutex
	all []string
}

func (s *secrets) learn(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, values...)
}

// loginOptions are those of a login by a browser on this machine.
func loginOptions(t testing.TB, dir string) mcp.LoginOptions {
	return mcp.LoginOptions{Dir: dir, Disk: &disk.FS{}, Lang: i18n.English, Learn: func(...string) {}, Strange: func() {}, Show: func(address string) {
		go func() {
			if resp, err := client(t).Get(address); err == nil {
				_ = resp.Body.Close()
			}
		}()
	}}
}

// client is a browser.
func client(t testing.TB) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func loginFile(t testing.TB, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "logins", "*.json"))
	if err != nil || len(all) != 1 {
		t.Fatalf("login files %q: %v", all, err)
	}
	return all[0]
}

// expire puts the end of the kept access token into the past.
func expire(t testing.TB, dir string) {
	t.Helper()
	var l map[string]any
	raw, err := os.ReadFile(loginFile(t, dir))
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	if err != nil {
		t.Fatal(err)
	}
	l["token"].(map[string]any)["expiry"] = "2001-01-01T00:00:00Z"
	raw, _ = json.Marshal(l)
	if err := os.WriteFile(loginFile(t, dir), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustLogin(t testing.TB, a *mcptest.Authority, dir string) {
	t.Helper()
	if n, err := mcp.Login(t.Context(), remoteServer(a), loginOptions(t, dir)); err != nil || n != 3 {
		t.Fatalf("login: %d tools, %v", n, err)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	m := mustOpen(t, mcp.Options{Dir: dir}, remoteServer(a))
	if s := status(t, m, "remote"); !strings.Contains(s.Reason, "it wants a login, or a key in mcp_servers[].headers; a person must run: tori mcp login remote") {
		t.Errorf("without a login: %+v", s)
	}
	m.Close()

	var learned secrets
	o := loginOptions(t, dir)
	o.Learn = learned.learn
	if n, err := mcp.Login(t.Context(), remoteServer(a), o); err != nil || n != 3 {
		t.Fatalf("login: %d tools, %v", n, err)
	}
	file := loginFile(t, dir)
	raw, err := os.ReadFile(file)
	if st, serr := os.Stat(file); err != nil || serr != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v, %v", st, serr, err)
	}
	var kept struct{ Token map[string]string }
	_ = json.Unmarshal(raw, &kept)
	for _, name := range []string{"access_token", "refresh_token"} {
		if !slices.Contains(learned.all, kept.Token[name]) {
			t.Errorf("%s was not learned", name)
		}
	}
	if a.Scopes[0] != "offline_access read" && a.Scopes[0] != "read offline_access" {
		t.Errorf("scopes %q", a.Scopes)
	}

	var log bytes.Buffer
	m = open(t, mcp.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))}, remoteServer(a))
	says(t, call(t, m, "remote__echo", `{"text":"hi"}`), false, "echo hi")
	m.Close()
	if s := log.String(); strings.Contains(s, "access-") || strings.Contains(s, "refresh-") {
		t.Errorf("a token was logged: %s", s)
	}

	// It is for that address alone.
	other := newAuthority(t)
	other.Trust(a)
	m = mustOpen(t, mcp.Options{Dir: dir}, mcp.Server{Name: "remote", URL: other.URL + "/mcp"})
	if s := status(t, m, "remote"); s.State == mcp.Ready {
		t.Error("a token went to another address")
	}
	m.Close()

	for i, want := range []bool{true, false} {
		if was, err := mcp.Logout(&disk.FS{}, dir, "remote"); err != nil || was != want {
			t.Errorf("logout %d: %t, %v", i, was, err)
		}
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("the login is still there")
	}
}

// TestLoginElsewhere has the browser on another machine: the address at which
// it ends is pasted. What is not of this login is passed over.
func TestLoginElsewhere(t *testing.T) {
	t.Parallel()
	a, pasted := newAuthority(t), make(chan string, 3)
	o := loginOptions(t, t.TempDir())
	o.Pasted = pasted
	strange := 0
	o.Strange = func() { strange++ }
	o.Show = func(address string) {
		c := client(t)
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		resp, err := c.Get(address)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
		ends, _ := url.Parse(resp.Header.Get("Location"))
		q := ends.Query()
		q.Set("state", "of-another")
		page, err := c.Get("http://" + ends.Host + "/")
		if err != nil || page.StatusCode != 404 {
			t.Errorf("another page: %v, %v", page, err)
		}
		_ = page.Body.Close()
		pasted <- "yes I did"
		pasted <- "http://127.0.0.1/callback?" + q.Encode()
		pasted <- "  " + ends.String() + "\n"
		close(pasted)
	}
	if _, err := mcp.Login(t.Context(), remoteServer(a), o); err != nil || strange != 2 {
		t.Errorf("%d strange ones, %v", strange, err)
	}
}

// TestLoginState has a page call the address with another state: it is told
// so, and the login goes on.
func TestLoginState(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	o := loginOptions(t, t.TempDir())
	right := o.Show
	o.Show = func(address string) {
		u, _ := url.Parse(address)
		back := u.Query().Get("redirect_uri")
		go func() {
			for _, q := range []string{"?code=stolen&state=guess", "?code=stolen", "?state=" + u.Query().Get("state")} {
				resp, err := client(t).Get(back + q)
				if err != nil || resp.StatusCode != http.StatusBadRequest {
					t.Errorf("%s: %v, %v", q, resp, err)
					continue
				}
				_ = resp.Body.Close()
			}
			right(address)
		}()
	}
	if _, err := mcp.Login(t.Context(), remoteServer(a), o); err != nil {
		t.Error(err)
	}
	for _, f := range a.Asked {
		if f.Get("code") == "stolen" {
			t.Error("the stolen code was used")
		}
	}
}

// TestLoginRefused is what a login fails on. Nothing is kept then.
func TestLoginRefused(t *testing.T) {
	t.Parallel()
	elsewhere := serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("another host got %s", r.URL) }))
	big := strings.Repeat("x", 5<<20)
	path := func(p string, f http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != p {
				return false
			}
			f(w, r)
			return true
		}
	}
	back := func(change func(q url.Values, a *mcptest.Authority)) func(a *mcptest.Authority) {
		return func(a *mcptest.Authority) {
			a.At = path("/authorize", func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				v := url.Values{"code": {"c"}, "state": {q.Get("state")}, "iss": {a.URL}}
				change(v, a)
				http.Redirect(w, r, q.Get("redirect_uri")+"?"+v.Encode(), http.StatusFound)
			})
		}
	}
	for name, tc := range map[string]struct {
		set  func(a *mcptest.Authority)
		want string
	}{
		"another issuer":   {func(a *mcptest.Authority) { a.Meta = func(m obj) { m["issuer"] = "https://evil.example" } }, "does not match issuer"},
		"no PKCE":          {func(a *mcptest.Authority) { a.Meta = func(m obj) { delete(m, "code_challenge_methods_supported") } }, "does not implement PKCE"},
		"5 MB of metadata": {func(a *mcptest.Authority) { a.Meta = func(m obj) { m["service_documentation"] = big } }, "authorization server metadata"},
		"no registration":  {func(a *mcptest.Authority) { a.Meta = func(m obj) { delete(m, "registration_endpoint") } }, "no configured client registration"},
		"a script to open": {func(a *mcptest.Authority) {
			a.Meta = func(m obj) { m["authorization_endpoint"] = "javascript:alert(1)" }
		}, "disallowed scheme"},
		"a file to open": {func(a *mcptest.Authority) {
			a.Meta = func(m obj) { m["authorization_endpoint"] = "file://localhost/etc/passwd" }
		}, "no browser opens"},
		"the person says no":  {back(func(v url.Values, _ *mcptest.Authority) { v.Del("code"); v.Set("error", "access_denied") }), "refused: access_denied"},
		"an issuer of others": {back(func(v url.Values, _ *mcptest.Authority) { v.Set("iss", "https://evil.example") }), "does not match expected issuer"},
		"no issuer":           {back(func(v url.Values, _ *mcptest.Authority) { v.Del("iss") }), "none was received"},
		"a code of others":    {back(func(url.Values, *mcptest.Authority) {}), "invalid_grant"},
		"metadata elsewhere": {func(a *mcptest.Authority) {
			a.At = path("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL+"/meta", http.StatusFound)
			})
		}, "bad status 302"},
		"the token elsewhere": {func(a *mcptest.Authority) {
			a.At = path("/token", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL+"/token", http.StatusTemporaryRedirect)
			})
		}, "token exchange failed"},
		"the registration elsewhere": {func(a *mcptest.Authority) {
			a.At = path("/register", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL+"/register", http.StatusTemporaryRedirect)
			})
		}, "registration failed with status 307"},
		"a huge token": {func(a *mcptest.Authority) {
			a.At = path("/token", func(w http.ResponseWriter, _ *http.Request) {
				mcptest.Reply(w, 200, obj{"access_token": big[:100_000], "token_type": "Bearer"})
			})
		}, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, dir := newAuthority(t), t.TempDir()
			tc.set(a)
			_, err := mcp.Login(t.Context(), remoteServer(a), loginOptions(t, dir))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
			if ja := i18n.Japanese.Error(err); !strings.HasPrefix(ja, "MCP サーバー remote へのログインに失敗しました") {
				t.Errorf("in Japanese: %s", ja)
			}
			if all, _ := filepath.Glob(filepath.Join(dir, "logins", "*.json")); len(all) > 0 {
				t.Errorf("kept %q", all)
			}
		})
	}
}

// TestLoginUnfit are servers at which nobody logs in.
func TestLoginUnfit(t *testing.T) {
	t.Parallel()
	s := webServer(make(chan struct{}))
	open := serveHTTP(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	for want, c := range map[string]mcp.Server{
		"is a program":             {Name: "a", Command: []string{"x"}},
		"Authorization header":     {Name: "a", URL: "https://h.example", Header: map[string]string{"authorization": "Bearer x"}},
		"without asking":           {Name: "a", URL: open.URL},
		"cannot come back":         {Name: "a", URL: open.URL, OAuth: mcp.OAuth{RedirectPort: 70_000}},
		"not a complete http":      {Name: "a", URL: "ftp://h.example"},
		"the handshake failed|EOF": {Name: "a", URL: "http://127.0.0.1:1"},
	} {
		if _, err := mcp.Login(t.Context(), c, loginOptions(t, t.TempDir())); err == nil || !strings.Contains(err.Error(), strings.Split(want, "|")[0]) && c.URL != "http://127.0.0.1:1" {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestLoginEnded ends where the person does.
func TestLoginEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	o := loginOptions(t, t.TempDir())
	o.Show = func(string) { cancel(gone) }
	if _, err := mcp.Login(ctx, remoteServer(newAuthority(t)), o); !errors.Is(err, gone) {
		t.Error(err)
	}
}

// TestRenewal renews a token whose time is over, or that the server takes no
// more, once for all who need it.
func TestRenewal(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	mustLogin(t, a, dir)
	expire(t, dir)
	var all []*mcp.Manager
	for range 4 {
		all = append(all, open(t, mcp.Options{Dir: dir}, remoteServer(a)))
	}
	if n := a.Renewals(); n != 1 {
		t.Errorf("%d renewals", n)
	}
	a.Withdraw(true, false)
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() { says(t, call(t, m, "remote__echo", `{"text":"hi"}`), false, "echo hi") })
	}
	wg.Wait()
	if n := a.Renewals(); n != 2 {
		t.Errorf("%d renewals", n)
	}
}

// TestLoginOver says in a run what a person must do.
func TestLoginOver(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	mustLogin(t, a, dir)
	m := open(t, mcp.Options{Dir: dir}, remoteServer(a))
	a.Withdraw(true, true)
	const verb = "its login is over (invalid_grant the refresh token is not good any more); a person must run: tori mcp login remote"
	says(t, call(t, m, "remote__echo", `{"text":"hi"}`), true, "The MCP server remote did not do it: "+verb)
	says(t, call(t, m, "remote__echo", `{"text":"hi"}`), true, "its login is over")
	if n := a.Renewals(); n != 1 {
		t.Errorf("a refused token was tried %d times", n)
	}
	if s := status(t, open(t, mcp.Options{Dir: dir}, remoteServer(a)), "remote"); !strings.Contains(s.Reason, verb) {
		t.Errorf("%+v", s)
	}
	mustLogin(t, a, dir) // who logs in again need not start the run again
	says(t, call(t, m, "remote__echo", `{"text":"hi"}`), false, "echo hi")
}

// TestMoreRights says which right a call wants; a login that asks for it keeps
// those that it had.
func TestMoreRights(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	mustLogin(t, a, dir)
	a.Needs = "write"
	m := open(t, mcp.Options{Dir: dir}, remoteServer(a))
	says(t, call(t, m, "remote__echo", `{"text":"hi"}`), true, `more rights than its login has; a person must run: tori mcp login remote --scope "write"`)
	o := loginOptions(t, dir)
	o.Scopes = []string{"write"}
	if _, err := mcp.Login(t.Context(), remoteServer(a), o); err != nil {
		t.Fatal(err)
	}
	says(t, call(t, m, "remote__echo", `{"text":"hi"}`), false, "echo hi")
	got := strings.Fields(a.Scopes[len(a.Scopes)-1])
	slices.Sort(got)
	if !slices.Equal(got, []string{"offline_access", "read", "write"}) {
		t.Errorf("asked for %q", got)
	}
}

// TestLoginKilled stops at each write: there is the login of before, or the new one.
func TestLoginKilled(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	power := errors.New("power cut")
	for _, kind := range []disk.Kind{disk.Replace, disk.ReplaceSync, disk.ReplaceRename} {
		o := loginOptions(t, dir)
		o.Disk = &disk.FS{Before: func(op disk.Op) error {
			if op.Kind == kind {
				return power
			}
			return nil
		}}
		if _, err := mcp.Login(t.Context(), remoteServer(a), o); err == nil {
			t.Errorf("%v: logged in", kind)
		}
		if all, _ := filepath.Glob(filepath.Join(dir, "logins", "*.json")); len(all) > 0 {
			t.Errorf("%v: kept %q", kind, all)
		}
	}
	mustLogin(t, a, dir)
	before, _ := os.ReadFile(loginFile(t, dir))
	expire(t, dir)
	expired, _ := os.ReadFile(loginFile(t, dir))
	failing := &disk.FS{Before: func(op disk.Op) error {
		if op.Kind == disk.ReplaceRename && strings.Contains(op.Path, "logins") {
			return power
		}
		return nil
	}}
	m := mustOpen(t, mcp.Options{Dir: dir, Disk: failing, Restart: mcp.Restart{First: time.Hour, Max: time.Hour}}, remoteServer(a))
	m.Close()
	after, _ := os.ReadFile(loginFile(t, dir))
	if !bytes.Equal(after, expired) || len(before) == 0 {
		t.Errorf("a renewal that was cut short left %s", after)
	}
	// The refresh token was good for one use, and its successor is lost.
	if s := status(t, open(t, mcp.Options{Dir: dir}, remoteServer(a)), "remote"); !strings.Contains(s.Reason, "tori mcp login remote") {
		t.Errorf("%+v", s)
	}
	mustLogin(t, a, dir)
	if s := status(t, open(t, mcp.Options{Dir: dir}, remoteServer(a)), "remote"); s.State != mcp.Ready {
		t.Errorf("%+v", s)
	}
	if err := os.WriteFile(loginFile(t, dir), []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := status(t, open(t, mcp.Options{Dir: dir}, remoteServer(a)), "remote"); !strings.Contains(s.Reason, "log in again with tori mcp login") {
		t.Errorf("%+v", s)
	}
	mustLogin(t, a, dir)
}

// Where the machine's environment names a proxy, the login and the runs go through it.
func TestLoginThroughAProxy(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	var mu sync.Mutex
	var seen []string
	through := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.In.URL.Path)
	}}
	address, err := url.Parse(serveHTTP(t, through).URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := func(*http.Request) (*url.URL, error) { return address, nil }
	o := loginOptions(t, dir)
	o.Proxy = proxy
	if n, err := mcp.Login(t.Context(), remoteServer(a), o); err != nil || n != 3 {
		t.Fatalf("login: %d tools, %v", n, err)
	}
	mu.Lock()
	login := slices.Clone(seen)
	seen = nil
	mu.Unlock()
	if !slices.Contains(login, "/mcp") || !slices.Contains(login, "/token") {
		t.Errorf("through the proxy went %q", login)
	}
	m := open(t, mcp.Options{Dir: dir, Proxy: proxy}, remoteServer(a))
	if s := status(t, m, "remote"); s.Reason != "" {
		t.Errorf("%+v", s)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(seen, "/mcp") {
		t.Errorf("through the proxy went %q", seen)
	}
}
