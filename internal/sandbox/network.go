package sandbox

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Network is what a command may reach. The zero value is nothing at all.
//
// With AllowHosts the command still has no network of its own: one address on
// its loopback leads to a proxy of ours, which connects it to the hosts of the
// list and to nothing else, by names that it looks up itself. Programs find the
// proxy by the usual variables (HTTPS_PROXY and its kin); one that does not
// heed them reaches nothing.
type Network struct {
	// AllowHosts are names such as registry.npmjs.org or *.example.org, which is
	// every name below example.org, or an address. A name is reached at ports 80
	// and 443 and at public addresses; with a port (nexus.corp:443) at that one,
	// and at private addresses, too. An address needs its port (10.0.0.5:8080,
	// 127.0.0.1:4873).
	AllowHosts []string
	// Through is the proxy by which this machine reaches an address, nil for none;
	// nil reaches all of them directly. It is httpproxy.Config.ProxyFunc's.
	Through func(*url.URL) (*url.URL, error)
	// CAFile is a file of certificates (PEM) that programs are to trust and that
	// they can read; "" for what they trust by themselves.
	CAFile string
	// Report, if set, is told of each refusal the first time. It is called from
	// several goroutines and must not block.
	Report func(Refusal)

	dial    dialer    // nil for the machine's network
	refused *refusals // of all commands of a runner
}

// Refusal is a connection that a command asked its proxy for in vain.
type Refusal struct {
	Address string // host and port as the command named them
	Reason  error  // an *i18n.Error
}

// String is what the command reads.
func (r Refusal) String() string { return "tori sandbox: " + r.Address + ": " + r.Reason.Error() }

// maxRefusals is how many refusals are remembered: a program may ask for any name.
const maxRefusals = 100

// refusals are those of the commands of one runner. It is safe for concurrent use.
type refusals struct {
	report func(Refusal)

	mu   sync.Mutex
	all  []Refusal // each once, in the order of the last time
	last []int     // when each was the last time
	now  int
}

func (r *refusals) add(refusal Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.all, func(x Refusal) bool { return x.String() == refusal.String() })
	switch {
	case i >= 0:
		r.all, r.last = slices.Delete(r.all, i, i+1), slices.Delete(r.last, i, i+1)
	case len(r.all) == maxRefusals:
		return
	case r.report != nil:
		r.report(refusal)
	}
	r.now++
	r.all, r.last = append(r.all, refusal), append(r.last, r.now)
}

// mark is a moment for since.
func (r *refusals) mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// since lists the refusals after a mark, each once.
func (r *refusals) since(mark int) []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearch(r.last, mark+1)
	return slices.Clone(r.all[i:])
}

// systemCertificates are where distributions keep the certificates that a machine
// trusts, in one file.
var systemCertificates = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"}

// Certificates returns the file of the certificates that this machine trusts, ""
// where there is none, which every sandbox shows; or, with more, the path of a file
// of certificates besides, it makes the file at path of both.
func Certificates(path, more string) (string, error) {
	from := ""
	for _, path := range systemCertificates {
		if f, err := disk.OpenPlain(path); err == nil {
			from = path
			_ = f.Close() // nothing was read
			break
		}
	}
	if more == "" {
		return from, nil
	}
	var all []byte
	if from != "" {
		var err error
		if all, err = disk.Read(from, disk.MaxWhole); err != nil {
			return "", err
		}
	}
	b, err := disk.Read(more, disk.MaxWhole)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(b) {
		err = i18n.E("sandbox.no_certificate")
	}
	if err != nil {
		return "", i18n.E("sandbox.ca_file", more, err)
	}
	if err := (&disk.FS{}).MkdirAll(filepath.Dir(path)); err != nil {
		return "", err
	}
	return path, (&disk.FS{}).Replace(path, slices.Concat(all, []byte("\n"), b), false)
}

// proxyAddress is where the proxy listens inside, in a network namespace that
// nobody else uses.
const proxyAddress = "127.0.0.1:3128"

func (n Network) open() bool { return len(n.AllowHosts) > 0 }

func (n Network) check() error {
	for _, h := range n.AllowHosts {
		if _, err := parsePattern(h); err != nil {
			return fmt.Errorf("sandbox: allowed host: %w", err)
		}
	}
	return nil
}

// environment tells programs of the proxy. The settings for working offline are
// taken back.
func (n Network) environment() map[string]string {
	env := map[string]string{"GOPROXY": "https://proxy.golang.org", "GOSUMDB": "sum.golang.org", "npm_config_update_notifier": "false", "npm_config_offline": "false",
		"npm_config_fetch_retry_mintimeout": "1000", "npm_config_fetch_retry_maxtimeout": "3000"} // milliseconds: what is refused stays so
	for _, k := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env[k], env[strings.ToLower(k)] = "http://"+proxyAddress, "http://"+proxyAddress
	}
	host, port, _ := net.SplitHostPort(proxyAddress)
	env["JAVA_TOOL_OPTIONS"] = strings.NewReplacer("HOST", host, "PORT", port).Replace("-Dhttp.proxyHost=HOST -Dhttp.proxyPort=PORT -Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT -Daether.connector.http.useSystemProperties=true")
	env["NO_PROXY"], env["no_proxy"] = "localhost,127.0.0.1,::1", "localhost,127.0.0.1,::1"
	if n.CAFile != "" {
		for _, k := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO"} {
			env[k] = n.CAFile
		}
	}
	return env
}

// proxy starts a proxy that serves the listening socket that is sent to the
// returned end. A socket belongs to the namespace that it was made in, whoever
// accepts from it. stop ends the proxy.
func (n Network) proxy() (there *os.File, stop func(), err error) {
	if !canHelp() {
		return nil, nil, errNoHelper
	}
	x, err := newProxy(n)
	if err != nil {
		return nil, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: socketpair: %w", err)
	}
	here := os.NewFile(uintptr(pair[0]), "proxy")
	there = os.NewFile(uintptr(pair[1]), "proxy")
	done := make(chan struct{})
	go func() {
		defer close(done)
		l, err := receiveListener(here)
		if err != nil {
			return // the command was not reached, which is told elsewhere
		}
		x.serve(l)
	}()
	return there, func() {
		_ = unix.Shutdown(pair[0], unix.SHUT_RDWR) // the copy that is waited at, too
		_, _ = here.Close(), there.Close()
		x.close()
		<-done
	}, nil
}

// receiveListener waits for the socket that the helper sends.
func receiveListener(f *os.File) (net.Listener, error) {
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("no unix socket")
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := u.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.New("no socket in the message")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.New("no socket in the message")
	}
	unix.CloseOnExec(fds[0])
	s := os.NewFile(uintptr(fds[0]), "listener")
	defer func() { _ = s.Close() }()
	return net.FileListener(s)
}

// sendListener listens at the proxy's address and sends the socket over fd.
func sendListener(fd int) error {
	l, err := net.Listen("tcp4", proxyAddress)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return errors.New("no TCP listener")
	}
	f, err := tcp.File()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unix.Sendmsg(fd, []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0)
}
