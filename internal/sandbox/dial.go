package sandbox

import (
	"context"
	"net"
	"strconv"
	"strings"

	"toritsugi/internal/i18n"
)

// Dialer returns what connects a client of this process to the hosts of AllowHosts and to nothing
// else, by the rules of the proxy of commands: names are looked up here, and what was checked is
// what is connected to. network is not looked at; address is a host with its port. Refusals are
// *i18n.Error. The connections are the caller's. It fails on an entry of AllowHosts that cannot
// be read.
func (n Network) Dialer() (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	x, err := newProxy(n)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		host, text, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return nil, i18n.E("sandbox.not_listed")
		}
		c, _, err := x.connect(ctx, strings.TrimSuffix(strings.ToLower(host), "."), int(port), true)
		return c, err
	}, nil
}
