package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/netutil"
)

// What one client may take of the daemon, and how many there may be at once. A
// page is small, and is there within ten seconds.
const (
	maxClients = 100
	maxHeader  = 16 << 10 // bytes
	readTime   = 10 * time.Second
	writeTime  = 30 * time.Second
	idleTime   = 30 * time.Second
)

// Serve answers at l until ctx ends. Who comes when there are as many clients as
// there may be waits until others have gone, which those have to that say nothing.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := srv.Serve(netutil.LimitListener(l, maxClients)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// called lets in who calls the daemon by an address, by localhost or by one of
// names. A page in somebody's browser can have a name of its own lead here and
// would then read what is shown; an address cannot be led elsewhere. Programs of
// HTTP/1.0 need not say how they call it, which no browser is.
func called(names []string, h http.Handler) http.Handler {
	names = append([]string{"", "localhost"}, names...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.ToLower((&url.URL{Host: r.Host}).Hostname())
		if _, err := netip.ParseAddr(name); err != nil && !slices.Contains(names, name) {
			say(w, http.StatusMisdirectedRequest, "not called by that name; serve.hosts lists the names that are answered to")
			return
		}
		h.ServeHTTP(w, r)
	})
}
