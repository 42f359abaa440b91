package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/llm"
)

// sentence is words whose "stop" is all but the end of the stream.
type sentence struct{ words }

func (s *sentence) Finished() bool { return slices.Contains(s.words, "stop") }

// beats is a body that begins with start, goes on with beat every now and then,
// and ends after n of them, where that is not 0. An empty beat is silence.
type beats struct {
	ctx         context.Context
	start, beat string
	every       time.Duration
	n, given    int
}

func (b *beats) Read(p []byte) (int, error) {
	if b.given++; b.given == 1 && b.start != "" {
		return copy(p, b.start), nil
	}
	if b.n > 0 && b.given == b.n+2 {
		return copy(p, "{\"w\":\"end\"}\n"), nil
	}
	every := time.After(b.every)
	if b.beat == "" {
		every = nil
	}
	select {
	case <-every:
		return copy(p, b.beat), nil
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

func (*beats) Close() error { return nil }

type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestSignsOfLife: what only keeps a connection open does not keep a call going.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	const stall, blank = time.Minute, "\n"
	word := func(s string) string { return fmt.Sprintf("{\"w\":%q}\n", s) }
	for _, c := range []struct {
		name    string
		first   time.Duration // the limit for the first token
		body    beats
		want    string
		problem string
		took    time.Duration
	}{
		{"nothing else from the start", 0, beats{beat: blank}, "", "no part of the answer came within 3m0s", 3 * stall},
		{"nothing else after a part", 0, beats{start: word("a"), beat: blank}, "a", "no part of the answer came within 3m0s", 3 * stall},
		{"parts that hold nothing", 0, beats{start: word("a"), beat: word("")}, "a", "no part of the answer came within 3m0s", 3 * stall},
		{"with a limit for the first token", 10 * time.Second, beats{beat: blank}, "", "no token came within 10s", 10 * time.Second},
		{"silence after a part", 0, beats{start: word("a")}, "a", "no byte came within 1m0s", stall},
		{"a slow answer", 0, beats{start: word("a"), beat: blank + word("b"), n: 30}, "a" + strings.Repeat(" b", 30) + " end", "", 30 * 20 * time.Second},
		{"a finished answer kept open", 0, beats{start: word("a") + word("stop"), beat: blank}, "a stop", "", TailTime},
		{"a finished answer and silence", 0, beats{start: word("a") + word("stop")}, "a stop", "", TailTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			caller := New(Config{Provider: "test", URL: &url.URL{Scheme: "http", Host: "x"}, StallTimeout: stall, FirstTokenTimeout: c.first,
				HTTP: &http.Client{Transport: transport(func(r *http.Request) *http.Response {
					c.body.ctx, c.body.every = r.Context(), 20*time.Second
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: &c.body}
				})}})
			var got sentence
			began := time.Now()
			e := caller.Once(t.Context(), caller.Get, func(ctx context.Context, _ *http.Response, in io.Reader) (*llm.Error, error) {
				return Format{Name: "a sentence", MaxEvent: 1 << 10}.ReadLines(ctx, &got, "", in)
			})
			took := time.Since(began)
			said := strings.Join(slices.DeleteFunc(slices.Clone([]string(got.words)), func(s string) bool { return s == "" }), " ")
			if said != c.want {
				t.Errorf("%s: it said %q, not %q", c.name, said, c.want)
			}
			if c.problem == "" && e != nil || c.problem != "" && (e == nil || e.Kind != llm.KindTimeout || e.Message != c.problem) {
				t.Errorf("%s: %v, not %q", c.name, e, c.problem)
			}
			if took < c.took || took > c.took+DrainTime {
				t.Errorf("%s: took %s, not %s", c.name, took, c.took)
			}
		})
	}
}
