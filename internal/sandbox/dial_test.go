package sandbox

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"toritsugi/internal/i18n"
)

// turncoat is a world in which a name leads elsewhere each time that it is asked for.
type turncoat struct {
	*world
	asked int
}

func (w *turncoat) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	w.asked++
	if w.asked > 1 {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// A client of this process reaches what commands do, and nothing else.
func TestDialer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dial, err := Network{AllowHosts: []string{"registry.example", "*.mirror.example", "inside.example:443", "inside.example", "mixed.example", "meta.example", "six.example", "home.example:80", "10.0.0.5:8080"}, dial: w}.Dialer()
	if err != nil {
		t.Fatal(err)
	}
	for address, key := range map[string]string{
		"registry.example:443": "", "Registry.Example.:443": "", "sub.mirror.example:80": "", "inside.example:443": "", "10.0.0.5:8080": "",
		"registry.example:8080": "sandbox.not_listed", "other.example:443": "sandbox.not_listed", "169.254.169.254:80": "sandbox.not_listed", "registry.example:x": "sandbox.not_listed", "[::1]:80": "sandbox.not_listed",
		"inside.example:80": "sandbox.not_public", "mixed.example:443": "sandbox.not_public", "meta.example:80": "sandbox.not_public", "six.example:443": "sandbox.not_public", "home.example:80": "sandbox.not_public",
	} {
		c, err := dial(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		var e *i18n.Error
		if errors.As(err, &e); (err == nil) != (key == "") || e != nil && e.Key != key {
			t.Errorf("%s: %v, want %q", address, err, key)
		}
	}
	moves := &turncoat{world: newWorld(t)}
	if dial, err = (Network{AllowHosts: []string{"moves.example"}, dial: moves}).Dialer(); err != nil {
		t.Fatal(err)
	}
	c, err := dial(t.Context(), "tcp", "moves.example:443")
	if err != nil || moves.asked != 1 || !slices.Equal(moves.dialled, []string{"93.184.216.34:443"}) {
		t.Fatalf("%v, asked %d times, %v", err, moves.asked, moves.dialled)
	}
	_ = c.Close()
	if _, err = dial(t.Context(), "tcp", "moves.example:443"); err == nil {
		t.Error("an address of this machine is reached by a name")
	}
	if _, err := (Network{AllowHosts: []string{"http://x"}}).Dialer(); err == nil {
		t.Error("an entry that is no host is taken")
	}
}
