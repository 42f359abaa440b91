package cloud

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"toritsugi/internal/i18n"
)

// HTTPClient returns the client for the endpoint at address, a base URL: for a
// cloud base itself, which may be nil; for what is local one that uses no proxy.
//
// Where the host is local by its form, not by the user's list, the client also
// connects to local addresses only, whatever the name resolves to and wherever
// an answer redirects; a connection refused is an i18n error. It dials by itself
// then. A transport of base that is no *http.Transport cannot be watched: every
// call fails.
//
// What is not base is a copy that keeps base's other settings, such as TLS and
// time limits, with connections of its own: its CloseIdleConnections closes them,
// base's does not; idle ones are closed after 90 seconds where base says nothing
// else.
func (p *Policy) HTTPClient(base *http.Client, address string) *http.Client {
	where := p.place(address)
	if where == elsewhere {
		return base
	}
	var c http.Client
	if base != nil {
		c = *base
	}
	var t *http.Transport
	switch given := c.Transport.(type) {
	case nil:
		t = &http.Transport{
			ForceAttemptHTTP2: true, MaxIdleConns: 100, MaxIdleConnsPerHost: 16,
			TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
		}
	case *http.Transport:
		if where == listed && given.Proxy == nil {
			return base
		}
		t = given.Clone()
		// A copy that has a TLS configuration or a dialer has no HTTP/2 unless
		// it is asked for; its original may have had it by itself.
		t.ForceAttemptHTTP2 = t.ForceAttemptHTTP2 || t.TLSClientConfig != nil && slices.Contains(t.TLSClientConfig.NextProtos, "h2")
	default:
		if where == listed {
			return base
		}
		c.Transport = unwatchable{given}
		return &c
	}
	t.Proxy = nil
	t.IdleConnTimeout = cmp.Or(t.IdleConnTimeout, 90*time.Second)
	if where == byForm {
		p.watch(t)
	}
	c.Transport = t
	return &c
}

// watch makes a transport, which nobody else uses, connect to local addresses only.
func (p *Policy) watch(t *http.Transport) {
	t.Dial, t.DialTLS, t.DialTLSContext = nil, nil, nil //nolint:staticcheck // they would be used instead
	t.DialContext = func(ctx context.Context, network, host string) (net.Conn, error) {
		d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Resolver: p.resolver}
		// Control sees each address just before it is connected to, after the
		// name was resolved, so that nothing can change in between.
		d.Control = func(_, address string, _ syscall.RawConn) error { return p.checkDial(host, address) }
		return d.DialContext(ctx, network, host)
	}
}

// checkDial refuses an address, IP:PORT, that host led to and that is not local.
func (p *Policy) checkDial(host, address string) error {
	a, err := netip.ParseAddrPort(address)
	if err == nil && (ownAddress(plain(a.Addr())) || p.listsAddress(plain(a.Addr()))) {
		return nil
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return notLocal{i18n.E("cloud.not_local", host, address)}
}

// notLocal is a connection that was refused; llm/wire knows it by its method.
type notLocal struct{ error }

func (notLocal) Forbidden() bool { return true }
func (n notLocal) Unwrap() error { return n.error }

// unwatchable is a transport whose connections cannot be seen.
type unwatchable struct{ http.RoundTripper }

func (u unwatchable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close() // as a RoundTripper must
	}
	return nil, fmt.Errorf("call %s: whether it is local cannot be seen through a %T", r.URL.Host, u.RoundTripper)
}
