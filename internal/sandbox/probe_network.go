package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// connectWait is how long a connection may take that is meant to fail.
const connectWait = 2 * time.Second

// arrival is how long a datagram that was sent may take to be received on
// this machine.
const arrival = 500 * time.Millisecond

// networkAttempts try to speak with anybody.
func networkAttempts() []attempt {
	in := func(name string, f func(t *target) error) attempt {
		return attempt{name: name, wall: "network", inside: f}
	}
	dial := func(network string, address func(t *target) string) func(t *target) error {
		return func(t *target) error {
			if address(t) == "" {
				return unavailable("not on this machine")
			}
			c, err := net.DialTimeout(network, address(t), connectWait)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			if _, err = c.Write([]byte(t.ID)); strings.HasPrefix(network, "udp") {
				return err // the first that is heard of it
			}
			return nil
		}
	}
	paired := func(kind int) func(t *target) error {
		return func(t *target) error {
			pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer closeAll(pair[:])
			return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: filepath.Join(t.Data, "gram")})
		}
	}
	received := func(a attempt) attempt {
		a.check = func(s *stage, p *Probe) {
			// Who receives it may not have had its turn yet.
			for end := time.Now().Add(arrival); p.Outcome == OutcomeEscaped && s.datagrams.Load() == 0 && time.Now().Before(end); {
				time.Sleep(arrival / 100)
			}
			if s.datagrams.Load() > 0 {
				p.Outcome, p.Detail = OutcomeEscaped, "the datagram arrived"
			} else if p.Outcome == OutcomeEscaped {
				p.Outcome, p.Detail = OutcomeContained, "sent, and arrived nowhere"
			}
		}
		return a
	}
	return []attempt{
		in("tcp-loopback", dial("tcp", func(t *target) string { return t.TCP })),
		in("tcp6-loopback", dial("tcp", func(t *target) string { return t.TCP6 })),
		received(in("udp-loopback", dial("udp", func(t *target) string { return t.UDP }))),
		in("route-outside", func(*target) error { return routed(net.ParseIP("192.0.2.1")) }),
		in("route6-outside", func(*target) error { return routed(net.ParseIP("2001:db8::1")) }),
		in("tcp-outside", func(*target) error { return startConnect("192.0.2.1", 80) }),
		in("metadata-service", func(*target) error { return startConnect("169.254.169.254", 80) }),
		in("dns", func(t *target) error {
			if t.DNS == "" {
				return unavailable("the machine names no server")
			}
			ip := net.ParseIP(t.DNS)
			if ip == nil {
				return unavailable("the machine's server %q is no address", t.DNS)
			}
			if ip.IsLoopback() { // the sandbox has a loopback as well, with nobody there
				return startConnect(t.DNS, 53)
			}
			return routed(ip)
		}),
		in("name-lookup", func(*target) error {
			_, err := net.LookupHost("example.com")
			return err
		}),
		in("unix-socket", dial("unix", func(t *target) string { return filepath.Join(t.Data, "sock") })),
		in("unix-datagram", dial("unixgram", func(t *target) string { return filepath.Join(t.Data, "gram") })),
		in("unix-pair-datagram", paired(unix.SOCK_DGRAM)),
		in("unix-pair-raw", paired(unix.SOCK_RAW)), // the kernel makes it a datagram socket
		in("abstract-socket", dial("unix", func(t *target) string { return t.Abstract })),
		in("ssh-agent", func(t *target) error {
			if p := os.Getenv("SSH_AUTH_SOCK"); p != "" {
				return nil
			}
			if t.Agent == "" {
				return unavailable("no agent runs for this user")
			}
			return dial("unix", func(t *target) string { return t.Agent })(t)
		}),
		in("services", func(t *target) error {
			return each(t.Sockets, func(p string) error {
				c, err := net.DialTimeout("unix", p, connectWait)
				if err != nil {
					return err
				}
				return c.Close()
			})
		}),
		in("raw-socket", socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)),
		in("packet-socket", socket(unix.AF_PACKET, unix.SOCK_RAW, 0)),
		in("host-of-the-machine", socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)),
		in("crypto-socket", socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)),
		in("other-families", func(*target) error {
			var open []string
			for family := 0; family < 46; family++ {
				switch family {
				case unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
					continue
				}
				for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
					if socket(family, kind, 0)(nil) == nil {
						open = append(open, fmt.Sprintf("%d/%d", family, kind))
					}
				}
			}
			if open == nil {
				return errors.New("none can be opened")
			}
			return nil
		}),
		in("interfaces", func(*target) error {
			all, err := net.Interfaces()
			if err != nil {
				return err
			}
			for _, i := range all {
				if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
					return nil
				}
			}
			return contained("only a loopback of its own")
		}),
		in("io-uring", func(*target) error {
			params := make([]byte, 120)
			fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, addressOf(params), 0)
			if e != 0 {
				return e
			}
			return unix.Close(int(fd))
		}),
	}
}

func socket(family, kind, protocol int) func(*target) error {
	return func(*target) error {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
}

func address(ip net.IP, port int) unix.Sockaddr {
	if four := ip.To4(); four != nil {
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte(four)}
	}
	return &unix.SockaddrInet6{Port: port, Addr: [16]byte(ip)}
}

// routed asks the kernel for a route, by connecting a datagram socket. To be given
// one is enough: no packet is sent to prove it.
func routed(ip net.IP) error {
	family := unix.AF_INET
	if ip.To4() == nil {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Connect(fd, address(ip, 53))
}

// startConnect begins a connection; one that is on its way got through.
func startConnect(ip string, port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	err = unix.Connect(fd, address(net.ParseIP(ip), port))
	if errors.Is(err, unix.EINPROGRESS) {
		return nil
	}
	return err
}

// nameserver is the first server of a resolv.conf, "" for none.
func nameserver(conf string) string {
	for line := range strings.Lines(conf) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			return f[1]
		}
	}
	return ""
}
