package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/i18n"
)

const (
	maxConnections = 128              // of one command at once; more wait
	maxAnswered    = 64               // refusals of one command that are told why
	headerTime     = 30 * time.Second // for a request's head to come
	connectTime    = 30 * time.Second
	idleTime       = 5 * time.Minute // without a byte either way
	lingerTime     = time.Second
)

// dialer is how the proxy reaches the world.
type dialer interface {
	// LookupNetIP is net.Resolver's.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Dial connects to an address that was looked up.
	Dial(ctx context.Context, address netip.AddrPort) (net.Conn, error)
}

type machine struct{ net.Resolver }

// Dial implements dialer.
func (m *machine) Dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	return (&net.Dialer{Timeout: connectTime}).DialContext(ctx, "tcp", address.String())
}

// pattern is one allowed host.
type pattern struct {
	host  string     // lower case, without the point that may end it
	below bool       // names below host
	port  int        // 0 for 80 and 443
	exact netip.Addr // host, where it is an address with a port
}

// parsePattern reads an entry of Network.AllowHosts.
func parsePattern(s string) (pattern, error) {
	p := pattern{host: strings.ToLower(s)}
	if a, err := netip.ParseAddrPort(p.host); err == nil && a.Port() != 0 {
		p.exact = a.Addr().Unmap().WithZone("")
		p.host, p.port = p.exact.String(), int(a.Port())
		return p, nil
	}
	if host, port, ok := strings.Cut(p.host, ":"); ok {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return p, fmt.Errorf("%q has no port between 1 and 65535", s)
		}
		p.host, p.port = host, int(n)
	}
	p.host, p.below = strings.CutPrefix(p.host, "*.")
	p.host = strings.TrimSuffix(p.host, ".")
	if !validHost(p.host) {
		return p, fmt.Errorf("%q is not a host's name, such as registry.npmjs.org or *.example.org", s)
	}
	if _, err := netip.ParseAddr(p.host); err == nil && p.below {
		return p, fmt.Errorf("%q: nothing lies below an address", s)
	}
	return p, nil
}

// validHost reports whether h is a host's name (RFC 1123) or an IPv4 address.
func validHost(h string) bool {
	if h == "" || len(h) > 253 {
		return false
	}
	for label := range strings.SplitSeq(h, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// reaches reports whether an address of the host may be connected to: a public
// one; any in a network of the operator's where the entry names one host and a
// port, but none of this machine and its link, where its own services and those of
// a cloud listen; and the very address that the entry is.
func (p pattern) reaches(a netip.Addr) bool {
	switch {
	case p.exact.IsValid():
		return a == p.exact
	case p.port != 0 && !p.below:
		return a.IsGlobalUnicast() && !embedded(a)
	}
	return Public(a)
}

func (p pattern) allows(host string, port int) bool {
	if p.port != port && (p.port != 0 || port != 80 && port != 443) {
		return false
	}
	if p.below {
		return strings.HasSuffix(host, "."+p.host) && validHost(host)
	}
	return host == p.host
}

// proxy is an HTTP proxy for one command: CONNECT, and requests with a whole
// address. It looks at names only; what is said inside a connection to an
// allowed host is that host's affair.
type proxy struct {
	allowed []pattern
	refused *refusals
	through func(*url.URL) (*url.URL, error)
	dial    dialer
	ctx     context.Context
	cancel  context.CancelFunc
	slots   chan struct{}

	mu    sync.Mutex
	open  map[io.Closer]struct{}
	told  int // how many refusals
	ended bool
	wg    sync.WaitGroup
}

func newProxy(n Network) (*proxy, error) {
	x := &proxy{refused: cmp.Or(n.refused, &refusals{report: n.Report}), through: n.Through, dial: n.dial, slots: make(chan struct{}, maxConnections), open: map[io.Closer]struct{}{}}
	if x.dial == nil {
		x.dial = &machine{}
	}
	for _, h := range n.AllowHosts {
		p, err := parsePattern(h)
		if err != nil {
			return nil, err
		}
		x.allowed = append(x.allowed, p)
	}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x, nil
}

// keep has c closed when the proxy is; false where it was already.
func (x *proxy) keep(c io.Closer) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		_ = c.Close()
		return false
	}
	x.open[c] = struct{}{}
	return true
}

func (x *proxy) drop(c io.Closer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.open, c)
	_ = c.Close()
}

// close ends everything and waits.
func (x *proxy) close() {
	x.cancel()
	x.mu.Lock()
	x.ended = true
	for c := range x.open {
		_ = c.Close()
	}
	x.mu.Unlock()
	x.wg.Wait()
}

// serve accepts until the proxy is closed.
func (x *proxy) serve(l net.Listener, answer func(net.Conn)) {
	if !x.keep(l) {
		return
	}
	defer x.drop(l)
	for {
		c, err := l.Accept()
		if err != nil || !x.keep(c) {
			return
		}
		select {
		case x.slots <- struct{}{}:
		case <-x.ctx.Done():
			return
		}
		x.wg.Go(func() {
			defer func() { x.drop(c); <-x.slots }()
			answer(c)
		})
	}
}

// way is an address inside that leads to a service: what programs reach that are
// no proxy's clients.
type way struct {
	host  string
	port  int
	at    netip.AddrPort
	named bool // /etc/hosts gives the host at's address
}

func (w way) address() string { return net.JoinHostPort(w.host, strconv.Itoa(w.port)) }

// ways are those of the entries with a port: for an address itself, for a name one
// that /etc/hosts gives it. "localhost" is left what it is.
func ways(allowed []pattern) (all []way) {
	for i, p := range allowed {
		w := way{host: p.host, port: p.port}
		if p.port == 0 || p.below || w.address() == proxyAddress || slices.ContainsFunc(all, func(o way) bool { return o.address() == w.address() }) {
			continue
		}
		a := p.exact
		switch j := slices.IndexFunc(all, func(o way) bool { return o.host == p.host }); {
		case a.IsValid():
		case p.host == "localhost":
			a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		case j >= 0:
			a = all[j].at.Addr()
		default:
			n := i + 1
			a, w.named = netip.AddrFrom4([4]byte{127, 77, byte(n >> 8), byte(n)}), true
		}
		w.at = netip.AddrPortFrom(a, uint16(p.port))
		all = append(all, w)
	}
	return all
}

// lead connects a program to a service.
func (x *proxy) lead(c net.Conn, w way) {
	up, _, err := x.connect(x.ctx, w.host, w.port, true)
	if err != nil {
		x.refused.add(Refusal{Address: w.address(), Reason: err})
		return
	}
	if !x.keep(up) {
		return
	}
	defer x.drop(up)
	exchange(c, c, up)
}

// answer serves one connection: one request, as a proxy's client expects after
// "Connection: close".
func (x *proxy) answer(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(headerTime))
	head := &io.LimitedReader{R: c, N: 64 << 10}
	r := bufio.NewReader(head)
	req, err := http.ReadRequest(r)
	if err != nil {
		refuse(c, http.StatusBadRequest, "the request cannot be read")
		return
	}
	head.N = 1 << 62 // what follows is the body
	host, port, err := destination(req)
	if err != nil {
		refuse(c, http.StatusBadRequest, err.Error())
		return
	}
	up, plain, err := x.connect(x.ctx, host, port, req.Method == http.MethodConnect)
	if err != nil {
		r := Refusal{Address: net.JoinHostPort(host, strconv.Itoa(port)), Reason: err}
		x.refused.add(r)
		x.mu.Lock()
		x.told++
		silent := x.told > maxAnswered
		x.mu.Unlock()
		if silent { // npm asks anew for ever where requests wait behind one that is answered so, and ends where it is not answered
			return
		}
		refuse(c, http.StatusForbidden, strings.TrimPrefix(r.String(), "tori sandbox: "))
		return
	}
	if !x.keep(up) {
		return
	}
	defer x.drop(up)
	if req.Method == http.MethodConnect {
		if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return
		}
		exchange(c, r, up)
		return
	}
	x.forward(c, up, req, plain)
}

// destination is where a request wants to go.
func destination(req *http.Request) (host string, port int, err error) {
	address, otherwise := req.URL.Host, "80"
	if req.Method == http.MethodConnect {
		address, otherwise = req.Host, ""
	} else if req.URL.Scheme != "http" || req.URL.Host == "" {
		return "", 0, errors.New("this is a proxy: it takes CONNECT and whole http:// addresses")
	}
	host, text, err := net.SplitHostPort(address)
	if err != nil && otherwise != "" {
		host, text, err = strings.Trim(address, "[]"), otherwise, nil
	}
	n, e := strconv.ParseUint(text, 10, 16)
	if err != nil || e != nil || n == 0 {
		return "", 0, fmt.Errorf("%q is not a host with a port", address)
	}
	return strings.TrimSuffix(strings.ToLower(host), "."), int(n), nil
}

// connect checks the name and leads to it. Where the machine itself goes through a
// proxy to reach it that proxy looks the name up; else it is looked up here, and
// the address that was checked is the one that is dialled: a name that changes its
// mind in between gains nothing. plain is the proxy that takes the one request of a
// connection that is no tunnel; nil for the host itself.
func (x *proxy) connect(ctx context.Context, host string, port int, tunnel bool) (c net.Conn, plain *url.URL, err error) {
	i := slices.IndexFunc(x.allowed, func(p pattern) bool { return p.allows(host, port) })
	if i < 0 {
		return nil, nil, i18n.E("sandbox.not_listed")
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	address := net.JoinHostPort(host, strconv.Itoa(port))
	if x.through != nil {
		scheme := "https"
		if !tunnel {
			scheme = "http"
		}
		via, err := x.through(&url.URL{Scheme: scheme, Host: address})
		if err != nil {
			return nil, nil, i18n.E("sandbox.host_proxy", err)
		}
		if via != nil {
			if c, err = x.viaProxy(ctx, via, address, tunnel); err != nil {
				err = i18n.E("sandbox.host_proxy", err)
			}
			return c, via, err
		}
	}
	c, err = x.direct(ctx, host, port, func(a netip.Addr) bool {
		return slices.ContainsFunc(x.allowed, func(p pattern) bool { return p.allows(host, port) && p.reaches(a) })
	})
	return c, nil, err
}

// direct looks host up and connects to one of its addresses, each of which may be
// reached.
func (x *proxy) direct(ctx context.Context, host string, port int, reaches func(netip.Addr) bool) (net.Conn, error) {
	all, err := x.dial.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, i18n.E("sandbox.no_lookup", err)
	}
	err = i18n.E("sandbox.no_address")
	for _, a := range all {
		if a = a.Unmap().WithZone(""); !reaches(a) {
			return nil, i18n.E("sandbox.not_public", a, net.JoinHostPort(host, strconv.Itoa(port)))
		}
	}
	for _, a := range all {
		var c net.Conn
		if c, err = x.dial.Dial(ctx, netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(port))); err == nil {
			return c, nil
		}
		err = i18n.E("sandbox.no_connection", err)
	}
	return nil, err
}

// viaProxy connects to a proxy of the machine and, for a tunnel, has it connect to
// address (RFC 9110 §9.3.6).
func (x *proxy) viaProxy(ctx context.Context, via *url.URL, address string, tunnel bool) (net.Conn, error) {
	port := via.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[via.Scheme]
	}
	number, err := strconv.ParseUint(cmp.Or(port, "80"), 10, 16)
	if err != nil || via.Scheme != "http" && via.Scheme != "https" {
		return nil, fmt.Errorf("%s is no proxy that can be used: an http:// or https:// address is", via.Redacted())
	}
	c, err := x.direct(ctx, via.Hostname(), int(number), func(netip.Addr) bool { return true })
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if via.Scheme == "https" {
		t := tls.Client(c, &tls.Config{ServerName: via.Hostname(), MinVersion: tls.VersionTLS12})
		if err := t.HandshakeContext(ctx); err != nil {
			_ = c.Close()
			return nil, err
		}
		c = t
	}
	if !tunnel {
		return c, nil
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	authorize(req, via)
	r := bufio.NewReader(&io.LimitedReader{R: c, N: 64 << 10})
	if err = req.Write(c); err == nil {
		var res *http.Response
		if res, err = http.ReadResponse(r, req); err == nil && res.StatusCode != http.StatusOK { //nolint:bodyclose // what follows is the tunnel, and c is closed with an error
			err = fmt.Errorf("%s answers %s", via.Redacted(), res.Status)
		}
	}
	if err == nil && r.Buffered() > 0 {
		err = fmt.Errorf("%s says more than its answer", via.Redacted())
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// authorize gives a proxy of the machine the login of its address.
func authorize(req *http.Request, via *url.URL) {
	if u := via.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
}

// The networks of the IANA special-purpose registries that netip.Addr has no
// method for: special ones, and those whose addresses stand for one of IPv4.
const (
	specialNetworks = "0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 " +
		"100::/64 2001::/23 2001:db8::/32 3fff::/20 5f00::/16 fec0::/10 " + mappedNetworks
	mappedNetworks = "0.0.0.0/8 64:ff9b::/96 64:ff9b:1::/48 2001::/32 2002::/16 ::/96"
)

// inNetworks reports whether a lies in one of networks.
func inNetworks(a netip.Addr, networks string) bool {
	for s := range strings.SplitSeq(networks, " ") {
		if netip.MustParsePrefix(s).Contains(a) {
			return true
		}
	}
	return false
}

// embedded reports an address behind which another machine may stand, this one among them.
func embedded(a netip.Addr) bool { return inNetworks(a, mappedNetworks) }

// Public reports whether an address is one of the internet at large: no own,
// neighbouring, or internal machine.
func Public(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	return !inNetworks(a, specialNetworks)
}

// forward sends one plain request on, to the host or to a proxy of the machine, and
// its answer back.
func (x *proxy) forward(c, up net.Conn, req *http.Request, via *url.URL) {
	defer func() { _ = req.Body.Close() }()
	_, _ = c.SetDeadline(time.Time{}), up.SetDeadline(time.Time{})
	for _, h := range []string{"Proxy-Connection", "Proxy-Authorization", "Connection", "Keep-Alive", "Te", "Upgrade"} {
		req.Header.Del(h)
	}
	req.Host = req.URL.Host // not what a Host header says besides
	req.Close = true
	write := req.Write
	if via != nil {
		authorize(req, via)
		write = req.WriteProxy
	}
	if write(&writer{up}) != nil {
		return
	}
	_, _ = io.Copy(&writer{c}, &reader{up, up})
}

// exchange passes bytes both ways until both ends are done. r holds what came
// from c already.
func exchange(c net.Conn, r io.Reader, up net.Conn) {
	_, _ = c.SetDeadline(time.Time{}), up.SetDeadline(time.Time{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&writer{up}, &reader{r, c})
		half(up)
	}()
	_, _ = io.Copy(&writer{c}, &reader{up, up})
	half(c)
	<-done
}

// half tells the other side that nothing more comes.
func half(c net.Conn) {
	if t, ok := c.(interface{ CloseWrite() error }); ok {
		_ = t.CloseWrite()
		return
	}
	_ = c.Close()
}

// writer writes to a connection, and fails when nothing is taken for idleTime.
type writer struct{ c net.Conn }

// Write implements io.Writer.
func (w *writer) Write(b []byte) (int, error) {
	_ = w.c.SetWriteDeadline(time.Now().Add(idleTime))
	return w.c.Write(b)
}

// reader reads from r, which reads from c, and fails when nothing comes for idleTime.
type reader struct {
	r io.Reader
	c net.Conn
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	_ = r.c.SetReadDeadline(time.Now().Add(idleTime))
	return r.r.Read(b)
}

func refuse(c net.Conn, status int, why string) {
	_ = c.SetWriteDeadline(time.Now().Add(headerTime))
	body := "tori sandbox: " + why + "\n"
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(body), body)
	// What the client still says is taken for a moment: closed upon it, the
	// connection would be reset and the answer with it.
	half(c)
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
}
