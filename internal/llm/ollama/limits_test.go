package ollama

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// waits is a line without any part of an answer.
const waits = `{"model":"m","message":{"role":"assistant","content":""},"done":false}` + "\n"

// slowly is a transport that takes its time for the connection and before each
// part of the body, in faked time.
type slowly struct {
	connect, pause time.Duration
	parts          []string
}

func (s *slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	trace.GetConn("x")
	if err := wire.Sleep(r.Context(), s.connect); err != nil {
		return nil, err
	}
	trace.GotConn(httptrace.GotConnInfo{})
	res := answerWith(200, "")
	res.Body = io.NopCloser(&slowBody{slowly: s, ctx: r.Context()})
	return res, nil
}

type slowBody struct {
	*slowly
	ctx context.Context // of the request
	at  int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.at == len(b.parts) {
		return 0, io.EOF
	}
	if err := wire.Sleep(b.ctx, b.pause); err != nil {
		return 0, err
	}
	b.at++
	return copy(p, b.parts[b.at-1]), nil
}

// TestLimits: each part of a call has its own, in faked time.
func TestLimits(t *testing.T) {
	t.Parallel()
	some := func(n int, parts ...string) []string {
		out := make([]string, n, n+len(parts))
		for i := range out {
			out[i] = waits
		}
		return append(out, parts...)
	}
	thought := `{"model":"m","message":{"role":"assistant","content":"","thinking":"h"},"done":false}` + "\n"
	for _, c := range []struct {
		name  string
		cfg   Config
		world slowly
		kind  llm.ErrorKind // "" is none
		says  string
		took  time.Duration
	}{
		{"all in time", Config{FirstTokenTimeout: time.Minute, StallTimeout: 10 * time.Second},
			slowly{5 * time.Second, 9 * time.Second, []string{said, said, done}}, "", "", 32 * time.Second},
		{"no connection", Config{ConnectTimeout: 3 * time.Second},
			slowly{connect: time.Hour}, llm.KindUnreachable, "no connection within 3s", 3 * time.Second},
		{"no connection, by default", Config{}, slowly{connect: time.Hour}, llm.KindUnreachable, "no connection", wire.DefaultConnectTimeout},
		{"a slow load is no slow connection", Config{ConnectTimeout: 3 * time.Second},
			slowly{0, 4 * time.Minute, []string{said, done}}, "", "", 8 * time.Minute},
		{"no byte at all, by default", Config{}, slowly{0, time.Hour, []string{said}}, llm.KindTimeout, "no byte came", wire.DefaultStallTimeout},
		{"kept open, but no token", Config{FirstTokenTimeout: time.Minute, StallTimeout: 10 * time.Second},
			slowly{0, 9 * time.Second, some(20)}, llm.KindTimeout, "no token came within 1m0s", time.Minute},
		{"kept open without that limit", Config{StallTimeout: 10 * time.Second}, slowly{0, 9 * time.Second, some(2, said, done)}, "", "", 4 * 9 * time.Second},
		{"kept open for too long", Config{StallTimeout: 10 * time.Second},
			slowly{0, 9 * time.Second, some(20, said, done)}, llm.KindTimeout, "no part of the answer came within 30s", 30 * time.Second},
		{"first token later than a stall", Config{FirstTokenTimeout: time.Minute, StallTimeout: 10 * time.Second},
			slowly{0, 9 * time.Second, some(4, said, done)}, "", "", 6 * 9 * time.Second},
		{"a thought is a token", Config{FirstTokenTimeout: time.Minute, StallTimeout: 10 * time.Second},
			slowly{0, 9 * time.Second, append([]string{thought}, some(2, done)...)}, "", "", 4 * 9 * time.Second},
		{"stall after the first token", Config{FirstTokenTimeout: time.Minute, StallTimeout: 8 * time.Second},
			slowly{0, 9 * time.Second, []string{said, said}}, llm.KindTimeout, "no byte came within 8s", 17 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.cfg.BaseURL, c.cfg.HTTP = "http://x", &http.Client{Transport: &c.world}
			began := time.Now()
			_, err := ask(testClient(t, c.cfg), user("x"))
			var e *llm.Error
			if c.kind == "" && err != nil || c.kind != "" && (!errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.says)) {
				t.Errorf("%s: %v", c.name, err)
			}
			if took := time.Since(began); took < c.took || took > c.took+wire.DrainTime {
				t.Errorf("%s: took %s, want %s", c.name, took, c.took)
			}
		})
	}
}
