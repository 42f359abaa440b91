package mcp

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
)

// LoginOptions are what a login is made with. Everything stays the caller's.
type LoginOptions struct {
	Dir    string                                // that of Options
	Scopes []string                              // asked for besides what the last login had and the server names
	Learn  func(secrets ...string)               // as of Options; may not be nil
	Disk   *disk.FS                              // keeps the login; nil means one that writes for real
	Lang   i18n.Lang                             // of what the browser shows at the end
	Proxy  func(*http.Request) (*url.URL, error) // that of Options
	// Show gives the person the address to open in a browser. It does not block.
	Show func(address string)
	// Pasted carries the addresses to which the browser was sent at the end, from
	// a person whose browser is on another machine. Strange tells that one was of
	// another login. Pasted may be nil.
	Pasted  <-chan string
	Strange func()
}

// Login has a person log in at a server that is reached by a URL, keeps the
// tokens for the runs, and returns how many tools the server lists on its first
// page. It finds the authorization server as the protocol says (RFC 9728, RFC
// 8414), registers this program there where no client id is set (RFC 7591), and
// asks for a code with PKCE for this one resource (RFC 8707). It blocks until
// the person is done or ctx ends.
func Login(ctx context.Context, c Server, o LoginOptions) (tools int, err error) {
	switch {
	case c.URL == "":
		return 0, i18n.E("mcp.login_program", c.Name)
	case c.authorised():
		return 0, i18n.E("mcp.login_header", c.Name)
	}
	if err := check([]Server{c}, Options{Dir: o.Dir}); err != nil {
		return 0, err
	}
	o.Disk = cmp.Or(o.Disk, new(disk.FS))
	d, err := openCallbackServer(ctx, c, o)
	if err != nil {
		return 0, err
	}
	defer d.close()
	handler, err := d.handler()
	if err != nil {
		return 0, err
	}
	base := &http.Transport{Proxy: o.Proxy, TLSHandshakeTimeout: DefaultHandshake}
	defer base.CloseIdleConnections()
	w := newWeb(c, handler, base, DefaultMaxMessage, DefaultHandshake)
	defer w.end(DefaultGrace)
	client := sdk.NewClient(implementation, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	session, err := connect(ctx, client, w, nil)
	if err == nil {
		defer func() { _ = session.Close() }()
		var page *sdk.ListToolsResult
		if page, err = list(ctx, session, &sdk.ListToolsParams{}); err == nil {
			tools = len(page.Tools)
		}
	}
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case err != nil:
		return 0, i18n.E("mcp.login", c.Name, strings.ReplaceAll(line(err.Error(), maxReason), "jsonrpc2: ", ""))
	case d.kept == nil:
		return tools, i18n.E("mcp.login_unasked", c.Name)
	}
	return tools, nil
}

// implementation is what servers are told of this program.
var implementation = &sdk.Implementation{Name: "toritsugi", Version: "1"}

// callbackServer is where a login is waited for: a server on the loopback interface for
// the browser, and what a person pastes.
type callbackServer struct {
	LoginOptions
	server  Server
	bearer  *bearer
	outside *http.Transport // to the authorization server
	web     *http.Server
	address string // to which the browser is sent back
	arrived chan arrival

	resource string
	kept     *login // once there is one
}

// arrival is a browser that came back.
type arrival struct {
	query url.Values
	ours  chan<- bool // whether it was of this login
}

func openCallbackServer(ctx context.Context, c Server, o LoginOptions) (*callbackServer, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", c.OAuth.RedirectPort))
	if err != nil {
		return nil, i18n.E("mcp.login_port", c.Name, err)
	}
	d := &callbackServer{LoginOptions: o, server: c, address: "http://" + listener.Addr().String() + "/callback", arrived: make(chan arrival)}
	d.outside = outside(c, o.Proxy)
	d.bearer = newBearer(c, Options{Dir: o.Dir, Disk: o.Disk, Learn: o.Learn, HTTP: d.outside})
	d.web = &http.Server{Handler: http.HandlerFunc(d.callback), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() { _ = d.web.Serve(listener) }() // until close
	return d, nil
}

func (d *callbackServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), DefaultGrace) // for the page that is being sent
	defer cancel()
	if d.web.Shutdown(ctx) != nil {
		_ = d.web.Close()
	}
	d.outside.CloseIdleConnections()
}

// callback takes the browser back.
func (d *callbackServer) callback(w http.ResponseWriter, r *http.Request) {
	ours := make(chan bool, 1)
	if r.URL.Path != "/callback" {
		http.NotFound(w, r)
		return
	}
	select {
	case d.arrived <- arrival{r.URL.Query(), ours}:
	case <-r.Context().Done():
		return
	case <-time.After(DefaultGrace): // nobody waits: it came twice
		ours <- false
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Connection", "close")
	text := "mcp.login_page"
	if !<-ours {
		w.WriteHeader(http.StatusBadRequest)
		text = "mcp.login_page_strange"
	}
	_, _ = fmt.Fprintf(w, "<!doctype html><meta charset=utf-8><title>Toritsugi</title><p>%s", html.EscapeString(d.Lang.T(text)))
}

// handler is the SDK's, which speaks to the authorization server.
func (d *callbackServer) handler() (*auth.AuthorizationCodeHandler, error) {
	set := d.server.OAuth
	conf := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:              d.address,
		AuthorizationCodeFetcher: d.fetch,
		RequestRefreshToken:      true,
		ScopeFilter:              d.scopes,
		NewTokenSource:           d.keep,
		Client:                   &http.Client{Transport: d.outside, CheckRedirect: stay, Timeout: renewTimeout},
	}
	document := strings.HasPrefix(set.ClientID, "https://")
	if document {
		conf.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: set.ClientID}
	}
	if set.ClientID != "" && !document {
		conf.PreregisteredClient = &oauthex.ClientCredentials{ClientID: set.ClientID}
		if set.ClientSecret != "" {
			conf.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: set.ClientSecret}
		}
	} else {
		conf.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Toritsugi", RedirectURIs: []string{d.address}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	}
	return auth.NewAuthorizationCodeHandler(conf)
}

// scopes are those to ask for, of those that the server names.
func (d *callbackServer) scopes(named []string) []string {
	all := slices.Clone(named)
	if len(d.server.OAuth.Scopes) > 0 {
		all = slices.Clone(d.server.OAuth.Scopes)
	}
	if len(d.Scopes) > 0 {
		all = append(all, d.Scopes...)
		if last, err := d.bearer.read(); err == nil && last != nil {
			all = append(all, last.Scopes...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fetch has the person log in, and returns the code that the browser brings
// back. What is not of this login is passed over: anybody on this machine, and
// any page in the browser, can call the address.
func (d *callbackServer) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(args.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("the authorization server names an address that no browser opens: %s", line(args.URL, 200))
	}
	asked := u.Query()
	d.resource = asked.Get("resource")
	d.Show(args.URL)
	for {
		var back url.Values
		var tell func(ours bool)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case a := <-d.arrived:
			back, tell = a.query, func(ours bool) { a.ours <- ours }
		case text, open := <-d.Pasted:
			if !open {
				d.Pasted = nil
				continue
			}
			at, err := url.Parse(strings.TrimSpace(text))
			if err != nil {
				at = &url.URL{}
			}
			back, tell = at.Query(), func(ours bool) {
				if !ours {
					d.Strange()
				}
			}
		}
		ours := back.Get("state") == asked.Get("state") && (back.Get("code") != "" || back.Get("error") != "")
		tell(ours)
		switch {
		case !ours:
		case back.Get("error") != "":
			return nil, fmt.Errorf("the authorization server refused: %s", line(back.Get("error")+" "+back.Get("error_description"), 500))
		default:
			return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
		}
	}
}

// keep puts down the login that a code was exchanged for.
func (d *callbackServer) keep(_ context.Context, conf *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
	l := &login{Format: loginFormat, URL: d.server.URL, Resource: d.resource, TokenURL: conf.Endpoint.TokenURL, AuthStyle: conf.Endpoint.AuthStyle,
		ClientID: conf.ClientID, ClientSecret: conf.ClientSecret, Scopes: conf.Scopes, Token: token}
	if err := d.Disk.MkdirAll(filepath.Dir(d.bearer.path)); err != nil {
		return nil, err
	}
	unlock, err := lockFile(d.bearer.path + ".lock") // a run that renews the last login must not put it over this one
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := d.bearer.write(l); err != nil {
		return nil, err
	}
	d.kept = l
	return d.bearer, nil
}

// outside is a transport to addresses that a server names: a server of the
// internet must not have this machine look around in its own network. Where a
// proxy is asked for one, it is the proxy that says what can be reached.
func outside(c Server, proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	t := &http.Transport{Proxy: proxy, ForceAttemptHTTP2: true, TLSHandshakeTimeout: DefaultHandshake}
	if proxy != nil {
		if req, err := http.NewRequest(http.MethodGet, c.URL, http.NoBody); err == nil { //nolint:noctx // it is not sent
			if to, err := proxy(req); err == nil && to != nil {
				return t
			}
		}
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		own, _ := url.Parse(c.URL) // was checked
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", own.Hostname())
		if err != nil {
			return nil, err
		}
		near := slices.ContainsFunc(ips, func(ip netip.Addr) bool { return !sandbox.Public(ip.Unmap()) })
		d := net.Dialer{Timeout: DefaultHandshake, ControlContext: func(_ context.Context, _, at string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(at)
			if err == nil && !near && !sandbox.Public(to.Addr().Unmap()) {
				err = fmt.Errorf("the server of the internet leads to %s, an address of the own network", cmp.Or(address, at))
			}
			return err
		}}
		return d.DialContext(ctx, network, address)
	}
	return t
}
