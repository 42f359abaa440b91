package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// server answers in the process.
type server func(r *http.Request) *http.Response

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r), nil }

func reply(status int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("{}"))}
}

func clientOf(o Options, s server) *http.Client {
	o.Home = &url.URL{Scheme: "https", Host: "forge.example"}
	o.HTTP, o.RetryDelay = &http.Client{Transport: s}, time.Microsecond
	w := New(o)
	return w.Line(Bearer{Token: func() string { return "secret" }, Next: w.Base}, "token").Client()
}

func ask(t *testing.T, c *http.Client, method string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, "https://forge.example/a", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()
	return resp.StatusCode, nil
}

// The token goes nowhere else, and what writes is not made a question.
func TestRedirects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method, to string
		status, want     int
		asked            int
	}{
		{"renamed", "GET", "/b", 301, 200, 2},
		{"renamed, to what writes", "POST", "/b", 301, 301, 1},
		{"renamed, to be sent again", "POST", "/b", 307, 200, 2},
		{"elsewhere", "GET", "https://other.example/", 302, 302, 1},
		{"in the clear", "GET", "http://forge.example/", 301, 0, 1},
		{"round and round", "GET", "/a", 301, 301, 6},
	} {
		asked := 0
		client := clientOf(Options{}, func(r *http.Request) *http.Response {
			asked++
			if r.URL.Host != "forge.example" || r.URL.Scheme != "https" || r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("%s: %s", c.name, r.URL)
			}
			if r.URL.Path == "/b" {
				return reply(200)
			}
			return reply(c.status, "Location", c.to)
		})
		got, err := ask(t, client, c.method)
		if got != c.want || asked != c.asked || (c.want == 0) != errors.Is(err, ErrForeign) {
			t.Errorf("%s: %d, asked %d times, %v", c.name, got, asked, err)
		}
	}
}

// Headers of limits as GitLab has them, and what is no limit.
func TestLimits(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		name   string
		answer func() *http.Response
		wait   time.Duration
	}{
		{"GitLab", func() *http.Response {
			return reply(429, "RateLimit-Remaining", "0", "RateLimit-Reset", strconv.FormatInt(now.Unix()+30, 10))
		}, 31 * time.Second},
		{"a proxy", func() *http.Response { return reply(429, "Retry-After", "9") }, 9 * time.Second},
		{"a proxy that says nothing", func() *http.Response { return reply(429) }, LeastPause},
		{"a permission", func() *http.Response { return reply(403) }, 0},
	} {
		asked := 0
		client := clientOf(Options{Login: Login{Now: func() time.Time { return now }}}, func(*http.Request) *http.Response { asked++; return c.answer() })
		_, err := ask(t, client, "GET")
		_, again := ask(t, client, "POST")
		var lim *Limited
		switch {
		case c.wait == 0 && (err != nil || again != nil || asked != 2):
			t.Errorf("%s: %v, %v", c.name, err, again)
		case c.wait != 0 && (!errors.As(err, &lim) || lim.Wait != c.wait || !errors.As(again, &lim) || asked != 1):
			t.Errorf("%s: %v, %v, asked %d times", c.name, err, again, asked)
		}
	}
}
