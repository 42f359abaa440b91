package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Network is what a command may reach. The zero value is nothing at all.
//
// With AllowHosts the command still has no network of its own: one address on
// its loopback leads to a proxy of ours, which connects it to the hosts of the
// list and to nothing else, by names that it looks up itself. Programs find the
// proxy by the usual variables (HTTPS_PROXY and its kin); one that does not
// heed them reaches nothing.
type Network struct {
	// AllowHosts are names such as registry.npmjs.org or *.example.org, which
	// is every name below example.org, with a port where it is neither 80 nor
	// 443 (host:8443).
	AllowHosts []string
	// Report, if set, is told of each connection asked for. It is called from
	// several goroutines and must not block.
	Report func(Asked)

	dial dialer // nil for the machine's network
}

// Asked is one connection that a command asked its proxy for.
type Asked struct {
	Host    string // as the command named it
	Port    int
	Allowed bool
	Reason  string // why it was not, in English
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

// environment tells programs of the proxy. Go's own settings for working
// offline are taken back.
func (n Network) environment() map[string]string {
	env := map[string]string{"GOPROXY": "https://proxy.golang.org", "GOSUMDB": "sum.golang.org", "npm_config_update_notifier": "false"}
	for _, k := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env[k], env[strings.ToLower(k)] = "http://"+proxyAddress, "http://"+proxyAddress
	}
	env["NO_PROXY"], env["no_proxy"] = "localhost,127.0.0.1,::1", "localhost,127.0.0.1,::1"
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
