package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

const (
	loginsDir    = "logins" // below Options.Dir: a file for each server
	loginFormat  = 1
	maxLogin     = 256 << 10 // bytes of such a file
	maxToken     = 16 << 10  // bytes of a token
	renewTimeout = 30 * time.Second
)

// login is what a person let this program have at a server: its tokens, and
// what they are renewed with.
type login struct {
	Format       int              `json:"format"`
	URL          string           `json:"url"`      // of the server that it is for
	Resource     string           `json:"resource"` // that the tokens are for (RFC 8707)
	TokenURL     string           `json:"token_url"`
	AuthStyle    oauth2.AuthStyle `json:"auth_style"`
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"`
	Scopes       []string         `json:"scopes,omitempty"` // that were asked for
	Token        *oauth2.Token    `json:"token"`
}

// loginError is why a server cannot be used without a person.
type loginError struct{ server, why, scope string }

func (e *loginError) Error() string {
	verb := "tori mcp login " + word(e.server)
	if e.scope != "" {
		verb += " --scope " + strconv.Quote(e.scope)
	}
	return e.why + "; a person must run: " + verb
}

// word is a name as a shell takes it for one word.
func word(name string) string {
	if name = line(name, maxName); sanitise(name) == name {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// bearer authorises the requests to one server by the login that is kept for it.
// It is the SDK's OAuthHandler of a connection, and its source of tokens.
type bearer struct {
	server  Server
	path    string
	disk    *disk.FS
	http    *http.Client
	learn   func(...string) // hears of every secret before it is used
	mu      sync.Mutex
	refused string // the refresh token that was refused last, and why
	why     string
}

func newBearer(c Server, o Options) *bearer {
	b := &bearer{server: c, path: loginPath(o.Dir, c.Name), disk: o.Disk, learn: o.Learn}
	b.http = &http.Client{Transport: o.HTTP, CheckRedirect: stay, Timeout: renewTimeout}
	return b
}

func loginPath(dir, server string) string {
	name := sanitise(server)
	return filepath.Join(dir, loginsDir, name[:min(len(name), maxToolName)]+"-"+short(server)+".json")
}

// stay follows no redirect: what is sent is for the one host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// TokenSource implements auth.OAuthHandler.
func (b *bearer) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if b.server.authorised() {
		return nil, nil
	}
	return b, nil
}

// Token implements oauth2.TokenSource: the token that is kept, renewed where its
// time is over; nil where nobody logged in.
func (b *bearer) Token() (*oauth2.Token, error) {
	l, err := b.read()
	if err != nil || l == nil || l.Token.Valid() {
		return l.token(), err
	}
	return b.renew(l.Token.AccessToken)
}

func (l *login) token() *oauth2.Token {
	if l == nil {
		return nil
	}
	return l.Token
}

// Authorize implements auth.OAuthHandler: it is called where the server refused a
// request. A token that the server no longer takes is renewed, once; what else
// it wants, a person must give.
func (b *bearer) Authorize(_ context.Context, req *http.Request, resp *http.Response) error {
	defer func() {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}()
	if b.server.authorised() {
		return fmt.Errorf("it does not take the Authorization of mcp_servers[].headers: %s", http.StatusText(resp.StatusCode))
	}
	challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header["Www-Authenticate"]) // what cannot be read says nothing
	wants := func(param string) string {
		for _, c := range challenges {
			if v := c.Params[param]; c.Scheme == "bearer" && v != "" {
				return line(v, 200)
			}
		}
		return ""
	}
	if resp.StatusCode == http.StatusForbidden {
		if wants("error") != "insufficient_scope" {
			return nil // the request is made again, and its answer told
		}
		return &loginError{b.server.Name, "it wants more rights than its login has", wants("scope")}
	}
	sent := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	if sent == "" {
		return &loginError{b.server.Name, "it wants a login, or a key in mcp_servers[].headers", ""}
	}
	_, err := b.renew(sent)
	return err
}

// renew returns another token than stale: what another process renewed
// meanwhile, or what the refresh token gives. Only one process at a time asks
// for it, since a refresh token is often good for one use.
func (b *bearer) renew(stale string) (*oauth2.Token, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	over := &loginError{b.server.Name, "its login is over", ""}
	unlock, err := lockFile(b.path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("lock its login: %w", err)
	}
	defer unlock()
	l, err := b.read()
	switch {
	case err != nil:
		return nil, err
	case l == nil:
		return nil, over
	case l.Token.AccessToken != stale:
		return l.Token, nil
	case l.Token.RefreshToken == b.refused: // as where there is none
		over.why += b.why
		return nil, over
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), oauth2.HTTPClient, b.http), renewTimeout)
	defer cancel()
	// As oauth2.Config does it, which does not say for which resource.
	grant := clientcredentials.Config{ClientID: l.ClientID, ClientSecret: l.ClientSecret, TokenURL: l.TokenURL, AuthStyle: l.AuthStyle,
		EndpointParams: url.Values{"grant_type": {"refresh_token"}, "refresh_token": {l.Token.RefreshToken}, "resource": {l.Resource}}}
	token, err := grant.Token(ctx)
	var refusal *oauth2.RetrieveError
	switch {
	case errors.As(err, &refusal) && (refusal.Response.StatusCode == http.StatusBadRequest || refusal.Response.StatusCode == http.StatusUnauthorized):
		b.refused, b.why = l.Token.RefreshToken, " ("+line(refusal.ErrorCode+" "+refusal.ErrorDescription, 200)+")"
		over.why += b.why
		return nil, over
	case errors.As(err, &refusal):
		return nil, fmt.Errorf("its login cannot be renewed: %s answers %s", host(l.TokenURL), refusal.Response.Status)
	case err != nil:
		return nil, fmt.Errorf("its login cannot be renewed: %w", err)
	}
	token.RefreshToken = cmp.Or(token.RefreshToken, l.Token.RefreshToken)
	l.Token = token
	return token, b.write(l)
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the authorization server"
	}
	return u.Host
}

// read returns the login that is kept; nil where there is none for the address
// that the server has now.
func (b *bearer) read() (*login, error) {
	raw, err := disk.Read(b.path, maxLogin)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var l login
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	switch {
	case err != nil:
		return nil, i18n.E("mcp.login_file", b.path, err)
	case l.Format != loginFormat:
		return nil, i18n.E("mcp.login_file", b.path, fmt.Errorf("format %d", l.Format))
	case l.URL != b.server.URL || l.Token == nil:
		return nil, nil
	}
	b.secrets(&l)
	return &l, nil
}

// secrets tells of what may not be shown.
func (b *bearer) secrets(l *login) {
	b.learn(slices.DeleteFunc([]string{l.Token.AccessToken, l.Token.RefreshToken, l.ClientSecret}, func(s string) bool { return s == "" })...)
}

// write keeps a login; it is on the disk when it returns. The lock is held.
func (b *bearer) write(l *login) error {
	if len(l.Token.AccessToken) > maxToken || len(l.Token.RefreshToken) > maxToken {
		return fmt.Errorf("a token is longer than %d bytes", maxToken)
	}
	b.secrets(l)
	raw, err := json.MarshalIndent(l, "", "  ")
	if err == nil {
		err = b.disk.Replace(b.path, append(raw, '\n'), true)
	}
	if err != nil {
		return fmt.Errorf("keep the login at the MCP server %s: %w", b.server.Name, err)
	}
	return nil
}

// Logout forgets the login at a server, and reports whether there was one. Its
// tokens stay good at the server until their time is over.
func Logout(d *disk.FS, dir, server string) (bool, error) {
	path := loginPath(dir, server)
	if _, err := disk.Read(path, maxLogin); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	unlock, err := lockFile(path + ".lock") // who renews it now must not write it again
	if err != nil {
		return false, fmt.Errorf("forget the login at the MCP server %s: %w", server, err)
	}
	defer unlock()
	if err = d.Remove(path); err == nil {
		err = d.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return false, fmt.Errorf("forget the login at the MCP server %s: %w", server, err)
	}
	return true, nil
}
