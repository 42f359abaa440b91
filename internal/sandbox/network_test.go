package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
	"software.sslmate.com/src/go-pkcs12"

	"toritsugi/internal/disk/disktest"
)

// world is a machine's network in which every public address is a test server.
type world struct {
	names   map[string]string
	address string
	mu      sync.Mutex
	dialled []string
}

func (w *world) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var all []netip.Addr
	for a := range strings.SplitSeq(w.names[host], " ") {
		if ip, err := netip.ParseAddr(a); err == nil {
			all = append(all, ip)
		}
	}
	if all == nil {
		return nil, errors.New("no such host")
	}
	return all, nil
}

func (w *world) Dial(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, a.String())
	w.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, "tcp", w.address)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Host, r.URL.Path, b)
	}))
	t.Cleanup(s.Close)
	return &world{address: s.Listener.Addr().String(), names: map[string]string{
		"registry.example": "93.184.216.34", "sub.mirror.example": "93.184.216.35 2606:2800:220:1::1", "mirror.example": "93.184.216.36",
		"inside.example": "10.0.0.1", "mixed.example": "93.184.216.34 127.0.0.1", "meta.example": "169.254.169.254", "six.example": "::ffff:127.0.0.1",
		"corp.example": "10.1.0.9", "home.example": "127.0.0.1", "10.0.0.5": "10.0.0.5", "fd00::5": "fd00::5",
		"other.example": "93.184.216.37", "127.0.0.1": "127.0.0.1", "93.184.216.34": "93.184.216.34",
	}}
}

func startProxy(t *testing.T, n Network) string {
	t.Helper()
	x, err := newProxy(n)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); x.serve(l, x.answer) }()
	t.Cleanup(func() { x.close(); <-done })
	return l.Addr().String()
}

// ask sends one request to a proxy and returns the status and what follows.
func ask(t *testing.T, proxy, head string) string {
	t.Helper()
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(3 * time.Minute))
	if _, err := io.WriteString(c, head); err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(c)
	return string(b)
}

func TestProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	var told []Refusal
	n := Network{AllowHosts: []string{"Registry.Example", "*.mirror.example", "inside.example", "mixed.example", "meta.example", "six.example", "missing.example",
		"127.0.0.1", "ported.example:8443", "corp.example:8081", "home.example:8081", "meta.example:8081", "10.0.0.5:8080", "127.0.0.1:4873", "[fd00::5]:8080"}, dial: w, Report: func(a Refusal) { mu.Lock(); told = append(told, a); mu.Unlock() }}
	proxy := startProxy(t, n)
	tunnel := "GET /in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for _, c := range []struct{ head, want string }{
		{"CONNECT registry.example:443 HTTP/1.1\r\nHost: registry.example:443\r\n\r\n" + tunnel, "200 Connection established"},
		{"CONNECT REGISTRY.example.:443 HTTP/1.1\r\nHost: x\r\n\r\n" + tunnel, "GET x /in"},
		{"CONNECT sub.mirror.example:443 HTTP/1.1\r\n\r\n" + tunnel, "GET x /in"},
		{"GET http://registry.example/a?b HTTP/1.1\r\nHost: other.example\r\nProxy-Connection: keep-alive\r\n\r\n", "GET registry.example /a"},
		{"POST http://registry.example/p HTTP/1.1\r\nHost: registry.example\r\nContent-Length: 3\r\n\r\nabc", "POST registry.example /p abc"},
		{"CONNECT mirror.example:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT evilmirror.example:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT other.example:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT registry.example:22 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT ported.example:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT inside.example:443 HTTP/1.1\r\n\r\n", "not a public one"},
		{"CONNECT mixed.example:443 HTTP/1.1\r\n\r\n", "not a public one"},
		{"CONNECT meta.example:80 HTTP/1.1\r\n\r\n", "not a public one"},
		{"CONNECT six.example:80 HTTP/1.1\r\n\r\n", "not a public one"},
		{"CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", "not a public one"},
		{"CONNECT 93.184.216.34:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT corp.example:8081 HTTP/1.1\r\n\r\n" + tunnel, "GET x /in"},
		{"CONNECT corp.example:443 HTTP/1.1\r\n\r\n", "not on the list"},
		{"CONNECT home.example:8081 HTTP/1.1\r\n\r\n", "(home.example:8081) allows one of your own network"},
		{"CONNECT meta.example:8081 HTTP/1.1\r\n\r\n", "169.254.169.254 is not a public one"},
		{"GET http://10.0.0.5:8080/a HTTP/1.1\r\nHost: x\r\n\r\n", "GET 10.0.0.5:8080 /a"},
		{"CONNECT 127.0.0.1:4873 HTTP/1.1\r\n\r\n" + tunnel, "GET x /in"},
		{"CONNECT [fd00::5]:8080 HTTP/1.1\r\n\r\n" + tunnel, "GET x /in"},
		{"CONNECT 10.0.0.5:8081 HTTP/1.1\r\n\r\n", "not on the list"},
		{"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT missing.example:443 HTTP/1.1\r\n\r\n", "not resolved"},
		{"CONNECT registry.example HTTP/1.1\r\n\r\n", "400"},
		{"CONNECT registry.example:99999 HTTP/1.1\r\n\r\n", "400"},
		{"GET / HTTP/1.1\r\nHost: registry.example\r\n\r\n", "400"},
		{"GET ftp://registry.example/ HTTP/1.1\r\nHost: registry.example\r\n\r\n", "400"},
		{"nonsense\r\n\r\n", "400"},
		{"GET /" + strings.Repeat("a", 70<<10) + " HTTP/1.1\r\n\r\n", "400"},
	} {
		if got := ask(t, proxy, c.head); !strings.Contains(got, c.want) {
			t.Errorf("%.60q: got %.200q, want %q", c.head, got, c.want)
		}
	}
	const refused = "CONNECT other.example:443 HTTP/1.1\r\n\r\n"
	for range maxAnswered {
		ask(t, proxy, refused)
	}
	if got := ask(t, proxy, refused); got != "" {
		t.Errorf("a client that asks for ever is answered: %q", got)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.dialled {
		if !Public(netip.MustParseAddrPort(a).Addr()) && !slices.Contains([]string{"10.1.0.9:8081", "10.0.0.5:8080", "127.0.0.1:4873", "[fd00::5]:8080"}, a) {
			t.Errorf("dialled %s", a)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 17 {
		t.Errorf("%d refusals: %+v", len(told), told)
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"0.0.0.0", "10.1.2.3", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.1.1", "100.64.0.1", "192.0.2.1", "198.18.0.1",
		"224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "ff02::1", "64:ff9b::a00:1", "2002:a00:1::", "2001:db8::1", "::7f00:1"} {
		if Public(netip.MustParseAddr(s)) {
			t.Errorf("%s is public", s)
		}
	}
	for _, s := range []string{"93.184.216.34", "8.8.8.8", "2606:4700::1111"} {
		if !Public(netip.MustParseAddr(s)) {
			t.Errorf("%s is not public", s)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "*", "*.", "a b", "http://x", "x/y", "x:0", "x:y", "-x", "x..y", "*.*.x", "*.127.0.0.1", "x:70000", "é.example", strings.Repeat("a", 64)} {
		if p, err := parsePattern(s); err == nil {
			t.Errorf("%q: %+v", s, p)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.StringMatching(`[a-z0-9]{1,5}(\.[a-z0-9]{1,5}){0,3}`).Draw(t, "host")
		below := rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "below")
		exact, err := parsePattern(host)
		if err != nil || !exact.allows(host, 443) || !exact.allows(host, 80) || exact.allows(host, 22) || exact.allows(below+"."+host, 443) || exact.allows(below+host, 443) {
			t.Fatalf("%q: %+v, %v", host, exact, err)
		}
		if _, err := netip.ParseAddr(host); err == nil {
			return
		}
		wide, err := parsePattern("*." + host)
		if err != nil || wide.allows(host, 443) || !wide.allows(below+"."+host, 443) || wide.allows(below+host, 443) {
			t.Fatalf("*.%q: %+v, %v", host, wide, err)
		}
	})
}

// Where the machine goes through a proxy, so do its commands: the name is that
// proxy's to look up, and its login is not for them to see.
func TestThroughAProxy(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, "%s of the target", r.URL.Path) }))
	t.Cleanup(target.Close)
	var heads []string
	via := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heads = append(heads, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
		if strings.HasPrefix(r.Host, "denied.") {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		if r.Method != http.MethodConnect {
			_, _ = fmt.Fprint(w, "plain")
			return
		}
		up, err := net.Dial("tcp", target.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		w.WriteHeader(http.StatusOK)
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		exchange(c, rw, up)
	}))
	t.Cleanup(via.Close)
	address, _ := url.Parse(strings.Replace(via.URL, "http://", "http://me:secret@", 1))
	proxy := startProxy(t, Network{AllowHosts: []string{"*.example"}, Through: func(u *url.URL) (*url.URL, error) {
		if u.Hostname() == "direct.example" {
			return nil, nil
		}
		return address, nil
	}, dial: &machine{}})
	for head, want := range map[string]string{
		"CONNECT a.example:443 HTTP/1.1\r\n\r\nGET /in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": "/in of the target",
		"GET http://b.example/x HTTP/1.1\r\nHost: b.example\r\n\r\n":                                     "plain",
		"CONNECT denied.example:443 HTTP/1.1\r\n\r\n":                                                    "me:xxxxx@127.0.0.1",
		"CONNECT direct.example:443 HTTP/1.1\r\n\r\n":                                                    "not resolved",
		"CONNECT elsewhere.org:443 HTTP/1.1\r\n\r\n":                                                     "not on the list",
	} {
		if got := ask(t, proxy, head); !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%q: %q, want %q", head, got, want)
		}
	}
	slices.Sort(heads)
	const login = " Basic bWU6c2VjcmV0"
	if want := []string{"CONNECT a.example:443" + login, "CONNECT denied.example:443" + login, "GET http://b.example/x" + login}; !slices.Equal(heads, want) {
		t.Errorf("%q", heads)
	}
}

// Refusals are remembered once each, in the order of the last time, and no more
// than a bounded number of them.
func TestRefusedHosts(t *testing.T) {
	t.Parallel()
	told := 0
	r := &refusals{report: func(Refusal) { told++ }}
	refusal := func(host string) Refusal { return Refusal{host + ":443", errors.New("no")} }
	r.add(refusal("a"))
	r.add(refusal("b"))
	mark := r.mark()
	if got := r.since(mark); len(got) != 0 {
		t.Errorf("%v", got)
	}
	r.add(refusal("a"))
	if got := r.since(mark); len(got) != 1 || got[0].Address != "a:443" || told != 2 {
		t.Errorf("%v, told %d", got, told)
	}
	for i := range 2 * maxRefusals {
		r.add(refusal(fmt.Sprint(i)))
	}
	if got := r.since(0); len(got) != maxRefusals || told != maxRefusals || got[1].Address != "a:443" {
		t.Errorf("%d, told %d, %v", len(got), told, got[:2])
	}
}

// A file of certificates is the machine's and those of the settings.
func TestCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, more := filepath.Join(dir, "run", "all.pem"), filepath.Join(dir, "corp.pem")
	if got, err := Certificates(path, more); err == nil || got != "" {
		t.Errorf("a missing file: %q, %v", got, err)
	}
	for _, text := range []string{"", "no certificate\n"} {
		if err := os.WriteFile(more, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Certificates(path, more); err == nil || !strings.Contains(err.Error(), "holds no certificate") {
			t.Errorf("%q: %v", text, err)
		}
	}
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(more, own, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Certificates(path, more)
	if err != nil || got != path {
		t.Fatalf("%q, %v", got, err)
	}
	all, err := os.ReadFile(path)
	machine, _ := Certificates("", "")
	theirs, _ := os.ReadFile(machine)
	if err != nil || !bytes.HasSuffix(all, own) || !bytes.HasPrefix(all, theirs) {
		t.Errorf("%v, %d bytes", err, len(all))
	}
	// Java is given the same.
	store, err := os.ReadFile(path + javaStore)
	if err != nil {
		t.Fatal(err)
	}
	if certs, err := pkcs12.DecodeTrustStore(store, javaPassword); err != nil || len(certs) != strings.Count(string(all), "BEGIN CERTIFICATE") || !certs[len(certs)-1].Equal(s.Certificate()) {
		t.Errorf("%d certificates, %v", len(certs), err)
	}
	n := Network{AllowHosts: []string{"a.example"}, CAFile: got}
	if options := n.environment()["JAVA_TOOL_OPTIONS"]; !strings.Contains(options, "-Djavax.net.ssl.trustStore="+path+javaStore+" ") {
		t.Error(options)
	}
	if spec, err := (Spec{Workspace: dir, Network: n}).check(); err != nil || !slices.Contains(spec.ReadOnly, path+javaStore) {
		t.Errorf("%v %v", spec.ReadOnly, err)
	}
	if n.CAFile = machine; strings.Contains(n.environment()["JAVA_TOOL_OPTIONS"], "trustStore") {
		t.Error("Java has a store of its own for what the machine trusts")
	}
	if tool, err := exec.LookPath("keytool"); err == nil {
		out, err := exec.Command(tool, "-list", "-keystore", path+javaStore, "-storepass", javaPassword).CombinedOutput()
		if err != nil || strings.Count(string(out), "trustedCertEntry") != strings.Count(string(all), "BEGIN CERTIFICATE") {
			t.Errorf("%v %.300s", err, out)
		}
	}
}

func FuzzProxyRequest(f *testing.F) {
	f.Add("CONNECT a.example:443 HTTP/1.1\r\n\r\n")
	f.Add("GET http://a.example/ HTTP/1.1\r\nHost: b\r\n\r\n")
	f.Fuzz(func(t *testing.T, head string) {
		defer disktest.Bounded(t, len(head))()
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head)))
		if err != nil {
			return
		}
		host, port, err := destination(req)
		if err == nil && (port < 1 || port > 65535 || host != strings.ToLower(host)) {
			t.Errorf("%q: %q %d", head, host, port)
		}
	})
}

// A command reaches what is on the list by way of the proxy, and nothing else.
func TestAllowList(t *testing.T) {
	t.Parallel()
	const client = `
connect() { exec 3<>/dev/tcp/127.0.0.1/3128 && printf "CONNECT $1 HTTP/1.1\r\n\r\nGET /in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" >&3 && cat <&3; }
connect registry.example:443; echo; connect other.example:443; echo; echo "$HTTPS_PROXY $https_proxy $YARN_HTTPS_PROXY"
exec 3<>/dev/tcp/93.184.216.34/443 || echo no way`
	for _, kind := range []string{KindBwrap, KindNamespaces} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := boxOf(t, kind)
			spec := newSpec(t)
			spec.Network = Network{AllowHosts: []string{"registry.example"}, dial: newWorld(t)}
			r, err := s.Runner(spec)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // each command has its own
				out, exit := sh(t, r, client)
				if !strings.Contains(out, "GET x /in") || !strings.Contains(out, "other.example:443: it is not on the list") || !strings.Contains(out, "no way") ||
					!strings.Contains(out, "http://127.0.0.1:3128 http://127.0.0.1:3128 http://127.0.0.1:3128") {
					t.Errorf("%+v\n%s", exit, out)
				}
				// One that fails tells at its end what it was refused, whatever it printed itself.
				out, exit = sh(t, r, client[:strings.Index(client, "connect registry")]+"connect other.example:443 >/dev/null; exit 3")
				if exit.Code != 3 || !strings.HasSuffix(out, "tori sandbox: other.example:443: it is not on the list of allowed hosts\n") {
					t.Errorf("%+v\n%s", exit, out)
				}
			}
			if got := outcomes(t, s, func(spec Spec) (Runner, error) {
				spec.Network = Network{AllowHosts: []string{"registry.example"}, dial: newWorld(t)}
				return s.Runner(spec)
			}, []string{"tcp-loopback", "udp-loopback", "tcp-outside", "route-outside", "dns", "unix-socket", "abstract-socket", "interfaces", "descriptors-inherited", "raw-socket"}); true {
				for name, p := range got {
					if p.Outcome == OutcomeEscaped {
						t.Errorf("%s: %s", name, p.Detail)
					}
				}
			}
		})
	}
	t.Run("landlock", func(t *testing.T) {
		t.Parallel()
		spec := newSpec(t)
		spec.Network.AllowHosts = []string{"registry.example"}
		if _, err := boxOf(t, KindLandlock).Runner(spec); err == nil {
			t.Error("a list that cannot be kept was taken")
		}
		spec.Network.AllowHosts = []string{"http://x"}
		if _, err := box(t).Runner(spec); err == nil {
			t.Error("an address was taken for a host")
		}
	})
}

// A program that is no proxy's client reaches each entry with a port where it looks
// for it; a connection that an entry does not cover is told.
func TestAllowListWithoutAProxy(t *testing.T) {
	t.Parallel()
	const client = `
connect() { exec 3<>"/dev/tcp/$1/$2" && printf "GET /$1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" >&3 && cat <&3; echo; }
trap "" PIPE; for h in "10.0.0.5 5432" "127.0.0.1 4873" "corp.example 443" "CORP.example 8081" "fd00::5 8080"; do connect $h; done
connect home.example 8081; connect 127.0.0.1 3128; (exec 3<>/dev/tcp/10.0.0.6/5432) || echo no way; grep ' localhost' /etc/hosts; exit 3`
	for _, kind := range []string{KindBwrap, KindNamespaces} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			spec := newSpec(t)
			spec.Network = Network{AllowHosts: []string{"10.0.0.5:5432", "127.0.0.1:4873", "corp.example:443", "Corp.example.:8081", "corp.example:8081", "home.example:8081", "[fd00::5]:8080",
				"localhost:81", "*.corp.example:82", "127.0.0.1:3128", "registry.example"}, dial: newWorld(t)}
			r, err := boxOf(t, kind).Runner(spec)
			if err != nil {
				t.Fatal(err)
			}
			out, exit := sh(t, r, client)
			for _, want := range []string{"GET x /10.0.0.5", "GET x /127.0.0.1", "GET x /corp.example", "GET x /CORP.example", "GET x /fd00::5", "no way"} {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing", want)
				}
			}
			if t.Failed() || exit.Code != 3 || strings.Contains(out, "GET x /home") || !strings.Contains(out, "400 Bad Request") || !strings.Contains(out, "tori sandbox: home.example:8081: its address 127.0.0.1 is not a public one") ||
				regexp.MustCompile(`(?m)^127\.[1-9].* localhost`).MatchString(out) {
				t.Errorf("%+v\n%s", exit, out)
			}
		})
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		spec := newSpec(t)
		r := make(spec)
		p, err := r.Start(t.Context(), Command{Args: []string{"sh", "-c", `while read -r l; do echo "got $l"; echo "err $l" >&2; done; exit 7`}})
		if err != nil {
			t.Fatal(err)
		}
		out, errs := bufio.NewReader(p.Stdout), bufio.NewReader(p.Stderr)
		for _, word := range []string{"one", "two"} {
			if _, err := fmt.Fprintln(p.Stdin, word); err != nil {
				t.Fatal(err)
			}
			if line, err := out.ReadString('\n'); line != "got "+word+"\n" {
				t.Errorf("%q, %v", line, err)
			}
			if line, err := errs.ReadString('\n'); line != "err "+word+"\n" {
				t.Errorf("%q, %v", line, err)
			}
		}
		select {
		case <-p.done:
			t.Error("over already")
		default:
		}
		_ = p.Stdin.Close()
		if exit, err := p.Wait(); err != nil || exit.Code != 7 {
			t.Errorf("%+v, %v", exit, err)
		}
		if _, err := out.ReadByte(); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}

		// A job in the background, ended with all that it started.
		got := &lines{c: make2()}
		p, err = r.Start(t.Context(), Command{Script: "exec 9>>alive; flock -s 9; sleep 1000 & echo up; wait", Output: got})
		if err != nil {
			t.Fatal(err)
		}
		<-got.c
		if p.Stdout != nil || !flocked(t, spec.Workspace+"/alive") {
			t.Error("no job that writes to Output")
		}
		p.Kill()
		if exit, err := p.Wait(); err != nil || exit.Code == 0 {
			t.Errorf("killed: %+v, %v", exit, err)
		}
		if flocked(t, spec.Workspace+"/alive") {
			t.Error("a process of the killed job lives on")
		}

		ctx, cancel := context.WithCancel(t.Context())
		p, err = r.Start(ctx, Command{Args: []string{"sleep", "1000"}})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := p.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if _, err := r.Start(t.Context(), Command{Dir: ".."}); err == nil {
			t.Error("started outside the workspace")
		}
		if _, err := r.Start(t.Context(), Command{Args: []string{"a"}, Script: "b"}); err == nil {
			t.Error("a script and arguments at once")
		}
		p, err = r.Start(t.Context(), Command{Args: []string{"/no/such/program"}})
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(); err != nil || exit.Code != 127 {
			t.Errorf("no program: %+v, %v", exit, err)
		}
	})
}

func make2() chan struct{} { return make(chan struct{}, 100) }

type lines struct{ c chan struct{} }

func (l *lines) Write(b []byte) (int, error) {
	for range bytes.Count(b, []byte("\n")) {
		l.c <- struct{}{}
	}
	return len(b), nil
}
