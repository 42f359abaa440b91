package sandbox

import (
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"software.sslmate.com/src/go-pkcs12"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Network is what a command may reach. The zero value is nothing at all.
//
// With AllowHosts the command still has no network of its own: one address on
// its loopback leads to a proxy of ours, which connects it to the hosts of the
// list and to nothing else, by names that it looks up itself. Programs find the
// proxy by the usual variables (HTTPS_PROXY and its kin); one that does not
// heed them reaches what ways lists.
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
	hosts   string    // a file in place of /etc/hosts; "" for that
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

// javaStore ends the name of a store for Java beside a file of certificates, whose
// password keeps no secret.
const (
	javaStore    = ".p12"
	javaPassword = "changeit"
)

// javaStore is where the network's certificates are as a store for Java, "" where
// they are the machine's, for which it has one.
func (n Network) javaStore() string {
	if n.CAFile == "" {
		return ""
	}
	if _, err := os.Stat(n.CAFile + javaStore); err != nil {
		return ""
	}
	return n.CAFile + javaStore
}

// encodeStore makes PEM certificates a store for Java. Those that cannot be read are
// left out, as OpenSSL does.
func encodeStore(all []byte) ([]byte, error) {
	var entries []pkcs12.TrustStoreEntry
	for b, rest := pem.Decode(all); b != nil; b, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(b.Bytes); err == nil && b.Type == "CERTIFICATE" {
			entries = append(entries, pkcs12.TrustStoreEntry{Cert: c, FriendlyName: strconv.Itoa(len(entries))})
		}
	}
	return pkcs12.Modern2023.EncodeTrustStoreEntries(entries, javaPassword)
}

// Certificates returns the file of the certificates that this machine trusts, ""
// where there is none, which every sandbox shows; or, with more, the path of a file
// of certificates besides, it makes the file at path of both, and the store for Java.
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
	all = slices.Concat(all, []byte("\n"), b)
	store, err := encodeStore(all)
	if err == nil {
		err = (&disk.FS{}).Replace(path+javaStore, store, false)
	}
	if err != nil {
		return "", err
	}
	return path, (&disk.FS{}).Replace(path, all, false)
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
	for _, k := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"} {
		env[k], env[strings.ToLower(k)] = "http://"+proxyAddress, "http://"+proxyAddress
	}
	host, port, _ := net.SplitHostPort(proxyAddress)
	env["JAVA_TOOL_OPTIONS"] = strings.NewReplacer("HOST", host, "PORT", port).Replace("-Dhttp.proxyHost=HOST -Dhttp.proxyPort=PORT -Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT -Daether.connector.http.useSystemProperties=true")
	if store := n.javaStore(); store != "" {
		env["JAVA_TOOL_OPTIONS"] += " -Djavax.net.ssl.trustStore=" + store + " -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=" + javaPassword
	}
	env["NO_PROXY"], env["no_proxy"] = "localhost,127.0.0.1,::1", "localhost,127.0.0.1,::1"
	if n.CAFile != "" {
		for _, k := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO"} {
			env[k] = n.CAFile
		}
	}
	return env
}

// outlet is a proxy that serves the sockets that the helper makes at addresses and
// sends to an end of a pair. A socket belongs to the namespace that it was made in,
// whoever accepts from it.
type outlet struct {
	there  *os.File
	listen []netip.AddrPort
	hosts  string // lines of /etc/hosts
	stop   func()
}

// outlet starts it.
func (n Network) outlet() (*outlet, error) {
	x, err := newProxy(n)
	if err != nil {
		return nil, err
	}
	here, there, err := socketpair()
	if err != nil {
		return nil, err
	}
	ways := ways(x.allowed)
	o := &outlet{there: there, listen: []netip.AddrPort{netip.MustParseAddrPort(proxyAddress)}}
	for _, w := range ways {
		o.listen = append(o.listen, w.at)
		if w.named {
			o.hosts += w.at.Addr().String() + " " + w.host + "\n"
		}
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for i := range o.listen {
			answer, name := x.answer, ""
			if i > 0 {
				answer, name = func(c net.Conn) { x.lead(c, ways[i-1]) }, ways[i-1].address()
			}
			l, err := receiveListener(here)
			switch why := (notListening{}); {
			case errors.As(err, &why):
				x.refused.add(Refusal{Address: name, Reason: i18n.E("sandbox.no_listener", why)})
			case err != nil:
				return // the command was not reached, which is told elsewhere
			default:
				serving.Go(func() { x.serve(l, answer) })
			}
		}
	})
	o.stop = func() {
		_ = unix.Shutdown(int(here.Fd()), unix.SHUT_RDWR) // it may be waited at
		x.close()
		serving.Wait()
		_, _ = here.Close(), there.Close()
	}
	return o, nil
}

// notListening is why the helper has no socket.
type notListening struct{ error }

// receiveListener waits for the next socket that the helper sends.
func receiveListener(f *os.File) (net.Listener, error) {
	said, fds, err := receive(f)
	if err != nil {
		return nil, err
	}
	if len(fds) != 1 {
		closeAll(fds)
		return nil, notListening{errors.New(string(said))}
	}
	s := os.NewFile(uintptr(fds[0]), "listener")
	defer func() { _ = s.Close() }()
	return net.FileListener(s)
}

// sendListener listens at an address, which becomes this machine's, and sends the
// socket over fd, or why there is none.
func sendListener(fd int, at netip.AddrPort) error {
	if !at.Addr().IsLoopback() {
		if err := addAddress(at.Addr()); err != nil {
			return unix.Sendmsg(fd, []byte(err.Error()), nil, nil, 0)
		}
	}
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return unix.Sendmsg(fd, []byte(err.Error()), nil, nil, 0)
	}
	defer func() { _ = l.Close() }()
	f, err := l.File()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unix.Sendmsg(fd, []byte{saidDone}, unix.UnixRights(int(f.Fd())), nil, 0)
}

// addAddress gives the loopback an address (rtnetlink(7), RTM_NEWADDR).
func addAddress(a netip.Addr) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	family := uint8(unix.AF_INET)
	if a.Is6() {
		family = unix.AF_INET6
	}
	raw := a.AsSlice()
	size := unix.SizeofNlMsghdr + unix.SizeofIfAddrmsg + unix.SizeofRtAttr + len(raw)
	m, err := binary.Append(nil, binary.NativeEndian, unix.NlMsghdr{Len: uint32(size), Type: unix.RTM_NEWADDR, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_REPLACE})
	if err == nil {
		m, err = binary.Append(m, binary.NativeEndian, unix.IfAddrmsg{Family: family, Prefixlen: uint8(a.BitLen()), Flags: unix.IFA_F_NODAD, Index: 1}) // the loopback is first
	}
	if err == nil {
		m, err = binary.Append(m, binary.NativeEndian, unix.RtAttr{Len: uint16(unix.SizeofRtAttr + len(raw)), Type: unix.IFA_LOCAL})
	}
	if err == nil {
		err = unix.Sendto(s, append(m, raw...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err != nil {
		return err
	}
	answer := make([]byte, 4<<10)
	n, _, err := unix.Recvfrom(s, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return errors.New("a short answer")
	}
	if e := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); e != 0 { // struct nlmsgerr
		return fmt.Errorf("add the address: %w", unix.Errno(-e))
	}
	return nil
}
