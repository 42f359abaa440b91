package openai

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/wire"
)

// slowly gives its parts one by one, each after a pause.
type slowly struct {
	ctx   context.Context
	pause time.Duration
	parts []string
}

func (s *slowly) Read(p []byte) (int, error) {
	select {
	case <-time.After(s.pause):
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.parts[0])
	s.parts = s.parts[1:]
	return n, nil
}

func (*slowly) Close() error { return nil }

// TestLimits: each part of a call has its own, in faked time.
func TestLimits(t *testing.T) {
	t.Parallel()
	alive := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = ": keep-alive\n\n"
		}
		return out
	}
	whole := []string{event(`"content":"a"`, ""), event(`"content":"b"`, ""), event("", stop)}
	for _, c := range []struct {
		name    string
		cfg     Config
		pause   time.Duration
		parts   []string
		connect time.Duration // how long the connection takes
		kind    llm.ErrorKind
		says    string
		took    time.Duration
	}{
		{"all in time", Config{FirstTokenTimeout: time.Minute, StallTimeout: 10 * time.Second}, 9 * time.Second, whole, 5 * time.Second, "", "", 32*time.Second + wire.TailTime},
		{"no connection", Config{ConnectTimeout: 3 * time.Second}, time.Second, whole, time.Hour, llm.KindUnreachable, "no connection within 3s", 3 * time.Second},
		{"no connection, by default", Config{}, time.Second, whole, time.Hour, llm.KindUnreachable, "no connection", wire.DefaultConnectTimeout},
		{"kept open, but no token", Config{FirstTokenTimeout: time.Minute, StallTimeout: 10 * time.Second}, 9 * time.Second, alive(20), 0, llm.KindTimeout, "no token came within 1m0s", time.Minute},
		{"kept open without that limit", Config{StallTimeout: 10 * time.Second}, 7 * time.Second, append(alive(3), whole...), 0, "", "", 6*7*time.Second + wire.TailTime},
		{"kept open for too long", Config{StallTimeout: 10 * time.Second}, 9 * time.Second, append(alive(20), whole...), 0, llm.KindTimeout, "no part of the answer came within 30s", 30 * time.Second},
		{"first token may be later than a stall", Config{FirstTokenTimeout: time.Minute, StallTimeout: 10 * time.Second}, 9 * time.Second, append(alive(4), whole...), 0, "", "", 7*9*time.Second + wire.TailTime},
		{"stall after the first token", Config{FirstTokenTimeout: time.Minute, StallTimeout: 8 * time.Second}, 9 * time.Second, whole, 0, llm.KindTimeout, "no byte came within 8s", 17 * time.Second},
		{"no byte at all", Config{StallTimeout: 8 * time.Second}, 9 * time.Second, whole, 0, llm.KindTimeout, "no byte came within 8s", 8 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
				select {
				case <-time.After(c.connect):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				here, there := net.Pipe()
				go serveSlowly(there, &slowly{t.Context(), c.pause, c.parts})
				return here, nil
			}
			transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
			defer transport.CloseIdleConnections()
			cfg := c.cfg
			cfg.Provider, cfg.Model, cfg.BaseURL, cfg.HTTP = "p", "m", "http://x", &http.Client{Transport: transport}
			cl, err := newClient(cfg)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = cl.Open(llm.Settings{}).Send(t.Context(), nil)
			took := time.Since(start)
			var e *llm.Error
			if c.kind == "" && err != nil || c.kind != "" && (!errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.says)) {
				t.Errorf("%s: %v", c.name, err)
			}
			if took < c.took || took > c.took+wire.DrainTime {
				t.Errorf("%s: took %s, want %s", c.name, took, c.took)
			}
		})
	}
}

// serveSlowly answers one request on a connection with the parts of body.
func serveSlowly(conn net.Conn, body *slowly) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(body.ctx)
	defer cancel()
	body.ctx = ctx
	buf := make([]byte, 4096)
	if _, err := conn.Read(buf); err != nil {
		return
	}
	go func() { // the client leaves
		defer cancel()
		_, _ = io.Copy(io.Discard, conn)
	}()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
	_, _ = io.Copy(conn, body)
}

// TestNothingStaysBehind: after calls that were cancelled, stalled, cut or
// repeated no goroutine is left (the bubble would not end) and no answer is in
// progress at the server.
func TestNothingStaysBehind(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("word ", 400)
	for name, a := range map[string]llmtest.Answer{
		"whole": {Text: text}, "stalled": {Text: text, Stall: 900}, "at once": {Stall: llmtest.StallAtOnce},
		"cut": {Text: text, Cut: 900}, "slow": {Text: text, Delay: time.Second}, "error": {Status: 503},
	} {
		for _, cancelled := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				srv, transport := llmtest.NewMemoryServer(t, llmtest.Sequence(a))
				cl, err := newClient(Config{Provider: "p", Model: "m", BaseURL: srv.URL, HTTP: &http.Client{Transport: transport}, MaxRetries: 1,
					StallTimeout: time.Minute, Backoff: func() backoff.BackOff { return &backoff.ZeroBackOff{} }})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				if cancelled {
					time.AfterFunc(1500*time.Millisecond, cancel)
				}
				v := cl.Open(llm.Settings{})
				v.Append(llm.Message{Role: llm.RoleUser, Content: "go"})
				_, err = v.Send(ctx, nil)
				if cancelled && (name == "stalled" || name == "at once" || name == "slow") && !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", name, err)
				}
				cancel()
				synctest.Wait()
				late, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				if err := srv.Quiet(late); err != nil {
					t.Errorf("%s, cancelled %v: an answer is in progress", name, cancelled)
				}
				transport.CloseIdleConnections()
			})
		}
	}
}
