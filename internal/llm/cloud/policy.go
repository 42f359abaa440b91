package cloud

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
)

// Policy knows which endpoints are clouds. It is immutable; any number of
// goroutines may use it.
type Policy struct {
	names    []string // of the user's list, in lower case
	suffixes []string // of it, with the dot that they begin with
	nets     []netip.Prefix
	resolver *net.Resolver // nil is the system's
}

// New returns a Policy for which the hosts of localHosts count as local besides
// those that do by their form. An entry is a host name, an IP address, *.suffix
// (everything below it, not itself) or a CIDR that is not everything; a CIDR
// means hosts that are given by address, and what a name local by its form may
// lead to. Any other entry is an i18n error. Source: security.local_hosts.
func New(localHosts []string) (*Policy, error) {
	p := &Policy{}
	for _, raw := range localHosts {
		entry := strings.TrimSpace(raw)
		suffix, wild := strings.CutPrefix(entry, "*.")
		name, isName := hostName(suffix)
		a, notAddress := netip.ParseAddr(entry)
		cidr, isCIDR := network(entry)
		switch {
		case isName && wild:
			p.suffixes = append(p.suffixes, "."+name)
		case isName:
			p.names = append(p.names, name)
		case notAddress == nil && a.Zone() == "":
			a = plain(a)
			p.nets = append(p.nets, netip.PrefixFrom(a, a.BitLen()))
		case isCIDR:
			p.nets = append(p.nets, cidr)
		default:
			return nil, i18n.E("cloud.local_host", raw)
		}
	}
	return p, nil
}

// IsCloud reports whether what is sent to model at address, a base URL, leaves
// the user's own machines: true unless the host is local, and also for what
// cannot be parsed. Local are those of New's list; addresses of loopback, of
// private networks (RFC 1918, RFC 4193), link-local ones, 100.64.0.0/10 of
// Tailscale (route §13.4), and 0.0.0.0 and ::, which mean this machine;
// localhost and other names of one label; names below .local, .internal, .lan,
// .home.arpa, .localhost and .ts.net. Names are in ASCII, and addresses in
// their usual spelling: what resolvers read in different ways is a cloud.
//
// A model that an Ollama server passes on to a cloud is one at any address.
func (p *Policy) IsCloud(address, model string) bool {
	return passedOn(model) || p.place(address) == elsewhere
}

// passedOn reports whether a model's tag says that its server only passes it on
// to a cloud: gpt-oss:120b-cloud, qwen3-coder:cloud. A copy under another name
// does not say so. Source: model references of Ollama.
func passedOn(model string) bool {
	model, _, _ = strings.Cut(strings.ToLower(model), "@")
	tags := strings.Split(model, ":")
	return slices.ContainsFunc(tags[1:], func(tag string) bool {
		tag = strings.TrimSpace(tag)
		return tag == "cloud" || strings.HasSuffix(tag, "-cloud") && !strings.Contains(tag, "/")
	})
}

type place int

const (
	elsewhere place = iota // a cloud
	byForm                 // local as far as the name tells
	listed                 // local because the user says so
)

// place reads an address as the clients of the providers do (wire.Resolve).
func (p *Policy) place(address string) place {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return elsewhere
	}
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		switch a = plain(a); {
		case p.listsAddress(a):
			return listed
		case ownAddress(a):
			return byForm
		}
		return elsewhere
	}
	name, ok := hostName(host)
	switch {
	case !ok:
		return elsewhere
	case p.listsName(name):
		return listed
	case ownName(name):
		return byForm
	}
	return elsewhere
}

func (p *Policy) listsName(name string) bool {
	return slices.Contains(p.names, name) ||
		slices.ContainsFunc(p.suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

func (p *Policy) listsAddress(a netip.Addr) bool {
	return slices.ContainsFunc(p.nets, func(n netip.Prefix) bool { return n.Contains(a) })
}

// plain is an address without its zone, and as IPv4 where it is one.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// ownAddress reports whether a plain address is of a network that the internet
// does not route.
func ownAddress(a netip.Addr) bool {
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10) // RFC 6598
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified() || shared.Contains(a)
}

// ownName reports whether a name is one that the public DNS does not give away,
// or one of Tailscale's.
func ownName(name string) bool {
	own := []string{".local", ".internal", ".lan", ".home.arpa", ".localhost", ".ts.net"}
	return !strings.Contains(name, ".") || slices.ContainsFunc(own, func(s string) bool { return strings.HasSuffix(name, s) })
}

// hostName returns a host's name in lower case without the dot at its end;
// false where it is none in ASCII, or may be an IPv4 address in an unusual
// spelling (127.1, 0x7f000001), which the resolvers of some systems read as one.
func hostName(host string) (string, bool) {
	host = strings.TrimSuffix(host, ".")
	if len(host) > 253 {
		return "", false
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		odd := func(r rune) bool {
			return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.ContainsFunc(l, odd) {
			return "", false
		}
	}
	last := strings.ToLower(labels[len(labels)-1])
	digits := "0123456789"
	if hex, found := strings.CutPrefix(last, "0x"); found {
		last, digits = hex, "0123456789abcdef"
	}
	if strings.Trim(last, digits) == "" {
		return "", false
	}
	return strings.ToLower(host), true
}

// network reads a CIDR; false also for one that holds every address.
func network(s string) (netip.Prefix, bool) {
	n, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, false
	}
	if n.Addr().Is4In6() {
		n = netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-96)
	}
	return n, n.Bits() > 0
}
