package cloud

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/openai"
)

// names is a resolver for which a name's addresses are what lookup says,
// without a network.
func names(t *testing.T, lookup func(name string) []string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		go serveDNS(there, lookup)
		return here, nil
	}}
}

// serveDNS answers the questions that come over a stream (RFC 1035 §4.2.2).
func serveDNS(c net.Conn, lookup func(string) []string) {
	defer func() { _ = c.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		var labels []string
		at := 12
		for q[at] != 0 {
			labels = append(labels, string(q[at+1:at+1+int(q[at])]))
			at += 1 + int(q[at])
		}
		kind := binary.BigEndian.Uint16(q[at+1:])
		var records [][]byte
		for _, s := range lookup(strings.ToLower(strings.Join(labels, "."))) {
			if a := netip.MustParseAddr(s); a.Is4() == (kind == 1) && (kind == 1 || kind == 28) {
				records = append(records, a.AsSlice())
			}
		}
		// The header says: an answer, recursion available, one question.
		r := append([]byte{0, 0, q[0], q[1], 0x81, 0x80, 0, 1, 0, byte(len(records)), 0, 0, 0, 0}, q[12:at+5]...)
		for _, data := range records {
			r = append(r, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(data)))
			r = append(r, data...)
		}
		binary.BigEndian.PutUint16(r, uint16(len(r)-2))
		if _, err := c.Write(r); err != nil {
			return
		}
	}
}

// at is the address of server under another host name.
func at(t *testing.T, server *httptest.Server, host string) string {
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = net.JoinHostPort(host, u.Port())
	return u.String()
}

func get(c *http.Client, address string) (string, error) {
	res, err := c.Get(address)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return res.Proto + " " + string(b), err
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// refused checks that err is the one of a connection that was not made.
func refused(t *testing.T, err error, host, address string) {
	t.Helper()
	var e *i18n.Error
	if !errors.As(err, &e) || e.Key != "cloud.not_local" {
		t.Fatalf("not refused: %v", err)
	}
	for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
		if s := l.Error(e); !strings.Contains(s, host) || !strings.Contains(s, address) || !strings.Contains(s, "security.local_hosts") {
			t.Error(s)
		}
	}
}

// public is an address for documentation (RFC 5737): nobody has it.
const public = "203.0.113.5"

func TestNamesMustBeLocal(t *testing.T) {
	t.Parallel()
	s := serve(t, says("hello"))
	var asked atomic.Int32
	hosts := map[string][]string{"good.lan": {"127.0.0.1"}, "evil.lan": {public}, "both.lan": {public, "127.0.0.1"}, "six.lan": {"2001:db8::1", "::ffff:203.0.113.5"}}
	p := policy(t)
	p.resolver = names(t, func(name string) []string {
		if name == "moves.lan" { // answers of a name server that is an attacker's
			if asked.Add(1) <= 2 { // A and AAAA
				return []string{"127.0.0.1"}
			}
			return []string{public}
		}
		return hosts[name]
	})
	client := func(host string) (*http.Client, string) {
		address := at(t, s, host)
		return p.HTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, address), address
	}
	for _, host := range []string{"good.lan", "GOOD.lan.", "both.lan", "127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0"} {
		c, address := client(host)
		if got, err := get(c, address); got != "HTTP/1.1 hello" {
			t.Errorf("%s: %q, %v", host, got, err)
		}
	}
	c, address := client("evil.lan")
	_, err := get(c, address)
	refused(t, err, "evil.lan", public)
	c, address = client("six.lan")
	_, err = get(c, address)
	refused(t, err, "six.lan", "")

	c, address = client("moves.lan")
	if got, err := get(c, address); got != "HTTP/1.1 hello" {
		t.Errorf("%q, %v", got, err)
	}
	_, err = get(c, address)
	refused(t, err, "moves.lan", public)

	// What a conversation's user reads.
	model, err := openai.New(openai.Config{BaseURL: at(t, s, "evil.lan"), Model: "m", HTTP: p.HTTPClient(nil, at(t, s, "evil.lan"))})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Open(llm.Settings{}).Send(t.Context(), nil)
	refused(t, err, "evil.lan", public)
	if s := i18n.Japanese.Error(err); !strings.Contains(s, "ローカルネットワークの外") {
		t.Error(s)
	}
}

func TestCheckDial(t *testing.T) {
	t.Parallel()
	p := policy(t, "198.51.100.0/24", "gpu.example.com")
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "[::1]:80": true, "10.0.0.1:1": true, "100.100.1.1:1": true, "[fe80::1%eth0]:80": true, "[::ffff:10.0.0.1]:1": true, "[fd00::1]:1": true,
		"198.51.100.3:1": true, "[::ffff:198.51.100.3]:1": true, // a network of the user's
		"198.51.101.3:1": false, "8.8.8.8:53": false, "[::ffff:8.8.8.8]:1": false, "[2001:db8::1]:1": false, "[64:ff9b::a00:1]:1": false, "": false, "127.0.0.1": false, "localhost:1": false, "@socket": false,
	} {
		if err := p.checkDial("gpu.lan:1", address); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestLocalUsesNoProxyAndStays(t *testing.T) {
	t.Parallel()
	var proxied atomic.Int32
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { proxied.Add(1) })
	proxyURL, _ := url.Parse(proxy.URL)
	away := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+public+"/collect", http.StatusTemporaryRedirect)
	})
	s := serve(t, says("hello"))
	base := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxyURL)}}
	for _, p := range []*Policy{policy(t), policy(t, "127.0.0.0/8")} {
		c := p.HTTPClient(base, s.URL)
		if got, err := get(c, s.URL); got != "HTTP/1.1 hello" || proxied.Load() != 0 {
			t.Errorf("%q, %v, %d by proxy", got, err, proxied.Load())
		}
		c.CloseIdleConnections()
	}
	c := policy(t).HTTPClient(base, away.URL)
	_, err := get(c, away.URL)
	refused(t, err, public, public)
	if proxied.Load() != 0 {
		t.Error("by proxy")
	}
	if _, err := get(base, s.URL); err != nil || proxied.Load() != 1 {
		t.Errorf("the base has lost its proxy: %v", err)
	}
}

func TestHTTPClientOfOthersIsTheBase(t *testing.T) {
	t.Parallel()
	p := policy(t, "gpu.example.com", "*.internal")
	own := &http.Client{Transport: &http.Transport{}}
	foreign := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })}
	for _, base := range []*http.Client{nil, own, foreign} {
		for _, address := range []string{"https://api.openai.com/v1", "", "nonsense", "http://localhost@example.com"} {
			if p.HTTPClient(base, address) != base {
				t.Errorf("%s has another client", address)
			}
		}
	}
	for _, address := range []string{"http://gpu.example.com", "http://api.internal"} {
		if p.HTTPClient(own, address) != own || p.HTTPClient(foreign, address) != foreign {
			t.Errorf("%s has another client", address)
		}
		made, ok := p.HTTPClient(nil, address).Transport.(*http.Transport)
		if !ok || made.Proxy != nil || made.DialContext != nil || made.IdleConnTimeout != 90*time.Second {
			t.Errorf("%s: %+v", address, made)
		}
	}
	_, err := get(p.HTTPClient(foreign, "http://localhost"), "http://localhost")
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "roundTrip") {
		t.Errorf("a transport that cannot be watched is used: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestSettingsOfTheBaseStay(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(says("hello"))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the certificate refused below
	closed := make(chan struct{}, 8)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	p := policy(t)
	certified, ok := s.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("no transport")
	}
	wrong := func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("the dialer of the base")
	}
	base := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: certified.TLSClientConfig.Clone(), ForceAttemptHTTP2: true, TLSHandshakeTimeout: time.Second, ResponseHeaderTimeout: 2 * time.Second,
		MaxIdleConnsPerHost: 3, DialContext: wrong, DialTLSContext: wrong,
	}}
	c := p.HTTPClient(base, s.URL)
	made, ok := c.Transport.(*http.Transport)
	if !ok || c.Timeout != time.Minute || made.TLSHandshakeTimeout != time.Second || made.ResponseHeaderTimeout != 2*time.Second || made.MaxIdleConnsPerHost != 3 {
		t.Errorf("%+v", made)
	}
	if got, err := get(c, s.URL); got != "HTTP/2.0 hello" {
		t.Errorf("%q, %v", got, err)
	}
	c.CloseIdleConnections()
	<-closed
	if _, err := get(base, s.URL); err == nil || !strings.Contains(err.Error(), "the dialer of the base") {
		t.Errorf("the base was changed: %v", err)
	}
	// A base that has HTTP/2 without having asked for it.
	plain := &http.Transport{}
	c = p.HTTPClient(&http.Client{Transport: plain}, s.URL)
	if made, ok := c.Transport.(*http.Transport); !ok || !made.ForceAttemptHTTP2 || plain.DialContext != nil {
		t.Errorf("%+v", made)
	}
	if _, err := get(c, s.URL); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("the certificate was not checked: %v", err)
	}
}
