package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose clients are in this process.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	go func() { p <- theirs }()
	return ours
}

// Clients that say nothing keep nobody out for long, whatever they said before,
// and there are never more of them than may be.
func TestIdleClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, says string }{
		{"nothing", ""},
		{"half a request", "GET /healthz HTTP/1.1\r\nHost: x"},
		{"a request", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"},
		{"a request, its body never", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"},
		{"a request, and reads no answer", "GET /long HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				l, ended := make(pipes), make(chan error)
				mux := http.NewServeMux()
				mux.Handle("/", New(stub{}, nil))
				mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
				go func() { ended <- Serve(ctx, l, mux) }()
				reading := !strings.Contains(c.says, "/long")
				for range maxClients {
					idle := l.dial()
					defer func() { _ = idle.Close() }()
					go func() {
						_, _ = io.WriteString(idle, c.says)
						if reading {
							_, _ = io.Copy(io.Discard, idle)
						}
					}()
				}
				synctest.Wait()
				one, answer := l.dial(), make(chan string, 1)
				go func() {
					_, _ = io.WriteString(one, "GET /healthz HTTP/1.0\r\n\r\n")
					status, _ := bufio.NewReader(one).ReadString('\n')
					answer <- status
				}()
				synctest.Wait()
				select {
				case a := <-answer:
					t.Errorf("beside %d clients one was answered: %q", maxClients, a)
				default:
				}
				select {
				case a := <-answer:
					if !strings.Contains(a, "200") {
						t.Errorf("answered %q", a)
					}
				case <-time.After(time.Minute):
					t.Error("not answered within a minute")
				}
				_ = one.Close()
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	h := New(stub{}, nil, "tori.example")
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8420": 200, "127.0.0.1:8420": 200, "[::1]:8420": 200, "192.0.2.7": 200, "[fe80::1%25eth0]": 200, "": 200,
		"tori.example:8420": 200, "attacker.example": 421, "tori.example.attacker.example:8420": 421, "127.0.0.1.attacker.example": 421, "localhost.attacker.example": 421,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d %s", host, w.Code, w.Body)
		}
	}
}
