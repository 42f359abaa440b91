package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
)

// server answers in the process, so that waiting costs no time.
type server func(r *http.Request) (*http.Response, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func reply(status int, body string, header ...string) (*http.Response, error) {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ProtoMajor: 1}, nil
}

func open(t *testing.T, s server) *Forge {
	t.Helper()
	f, err := New(Options{Login: rest.Login{Token: "secret", HTTP: &http.Client{Transport: s}}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestReadsAreRepeated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fail  func(r *http.Request) (*http.Response, error)
		times int
		asked int
		kind  forge.Kind // "" is none
		most  time.Duration
	}{
		{"503 for a moment", func(*http.Request) (*http.Response, error) { return reply(503, "") }, 3, 4, "", 10 * time.Second},
		{"503 for long", func(*http.Request) (*http.Response, error) { return reply(503, "") }, 99, 4, forge.Unavailable, 10 * time.Second},
		{"no connection", func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }, 2, 3, "", 10 * time.Second},
		{"half an answer", func(*http.Request) (*http.Response, error) {
			r, err := reply(200, "")
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`[{"num`), broken{}))
			return r, err
		}, 1, 2, "", 10 * time.Second},
		{"no answer", func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }, 1, 2, "", 35 * time.Second},
		{"404", func(*http.Request) (*http.Response, error) { return reply(404, "{}") }, 99, 1, forge.NotFound, 0},
		{"403", func(*http.Request) (*http.Response, error) { return reply(403, "{}") }, 99, 1, forge.Forbidden, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				f := open(t, func(r *http.Request) (*http.Response, error) {
					if asked++; asked <= c.times {
						return c.fail(r)
					}
					return reply(200, "[]")
				})
				began := time.Now()
				_, err := f.Triggered(t.Context(), acme, label)
				if asked != c.asked || (c.kind == "") != (err == nil) || c.kind != "" && !forge.Is(err, c.kind) || time.Since(began) > c.most {
					t.Errorf("asked %d times in %s: %v", asked, time.Since(began), err)
				}
			})
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return reply(502, "")
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := f.Triggered(ctx, acme, label)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		// One writes and gets no answer; the other waits for its turn.
		d, err := f.at(t.Context(), acme, nil)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				if _, err := d.Send(ctx, http.MethodPost, below(acme, "issues", 1, "labels"), []string{}, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 6*time.Second {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		}
		wg.Wait()
	})
}

func TestWritesAreOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ends []time.Time
		writing := 0
		f := open(t, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return reply(200, "[]")
			}
			mu.Lock()
			writing++
			if writing > 1 || len(ends) > 0 && time.Since(ends[len(ends)-1]) < time.Second {
				t.Errorf("%d at once, %s after the last", writing, time.Since(ends[len(ends)-1]))
			}
			mu.Unlock()
			time.Sleep(200 * time.Millisecond)
			mu.Lock()
			writing--
			ends = append(ends, time.Now())
			mu.Unlock()
			return reply(200, "[]")
		})
		began := time.Now()
		var wg sync.WaitGroup
		for n := range 10 {
			wg.Go(func() {
				if err := f.SetLabels(t.Context(), issue(n+1), []string{"x"}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); len(ends) != 10 || took > 12*time.Second {
			t.Errorf("%d writes in %s", len(ends), took)
		}
	})
}

func TestRateLimits(t *testing.T) {
	t.Parallel()
	unix := func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
	const secondary = `{"message":"You have exceeded a secondary rate limit."}`
	for _, c := range []struct {
		name string
		say  func() (*http.Response, error)
		wait time.Duration
		ok   bool // the answer itself is good
	}{
		{"primary, 403", func() (*http.Response, error) {
			return reply(403, `{"message":"API rate limit exceeded"}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix(time.Now().Add(10*time.Minute)))
		}, 10*time.Minute + time.Second, false},
		{"primary, 429", func() (*http.Response, error) {
			return reply(429, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix(time.Now().Add(10*time.Minute)))
		}, 10*time.Minute + time.Second, false},
		{"the last of the hour", func() (*http.Response, error) {
			return reply(200, `[]`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix(time.Now().Add(10*time.Minute)))
		}, 10*time.Minute + time.Second, true},
		{"a server of another time", func() (*http.Response, error) {
			there := time.Now().Add(-26 * time.Hour)
			return reply(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix(there.Add(10*time.Minute)), "Date", there.UTC().Format(http.TimeFormat))
		}, 10*time.Minute + time.Second, false},
		{"nonsense", func() (*http.Response, error) {
			return reply(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "99999999999")
		}, rest.MostWait, false},
		{"secondary with a time", func() (*http.Response, error) { return reply(403, secondary, "Retry-After", "77") }, 77 * time.Second, false},
		{"secondary with a date", func() (*http.Response, error) {
			return reply(429, `{}`, "Retry-After", time.Now().Add(77*time.Second).UTC().Format(http.TimeFormat))
		}, 77 * time.Second, false},
		{"secondary without a time", func() (*http.Response, error) { return reply(403, secondary) }, time.Minute, false},
		{"429 without a word", func() (*http.Response, error) { return reply(429, "") }, time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				f := open(t, func(*http.Request) (*http.Response, error) {
					if asked++; asked == 1 {
						return c.say()
					}
					return reply(200, "[]")
				})
				_, err := f.Triggered(t.Context(), acme, label)
				if c.ok {
					if err != nil {
						t.Fatal(err)
					}
					_, err = f.Triggered(t.Context(), acme, label)
				}
				for range 3 {
					var e *forge.Error
					if !errors.As(err, &e) || e.Kind != forge.RateLimited || e.Wait > c.wait || e.Wait < c.wait-2*time.Second || asked != 1 {
						t.Fatalf("%v, %+v, asked %d times", err, e, asked)
					}
					err = f.SetLabels(t.Context(), issue(1), []string{"x"}, nil)
				}
				time.Sleep(c.wait - 3*time.Second)
				if _, err := f.Triggered(t.Context(), acme, label); !forge.Is(err, forge.RateLimited) || asked != 1 {
					t.Errorf("%v, asked %d times", err, asked)
				}
				time.Sleep(4 * time.Second)
				if _, err := f.Triggered(t.Context(), acme, label); err != nil || asked != 2 {
					t.Errorf("%v, asked %d times", err, asked)
				}
			})
		})
	}
}

func TestSecondaryLimitsGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t, func(*http.Request) (*http.Response, error) {
			return reply(403, `{"message":"You have exceeded a secondary rate limit."}`)
		})
		var waits []string
		for range 6 {
			_, err := f.Triggered(t.Context(), acme, label)
			var e *forge.Error
			if !errors.As(err, &e) || e.Kind != forge.RateLimited {
				t.Fatal(err)
			}
			waits = append(waits, fmt.Sprint(e.Wait))
			time.Sleep(e.Wait)
		}
		if got := strings.Join(waits, " "); got != "1m0s 2m0s 4m0s 8m0s 16m0s 16m0s" {
			t.Error(got)
		}
		time.Sleep(time.Hour)
		if _, err := f.Triggered(t.Context(), acme, label); !strings.Contains(err.Error(), "1m0s") {
			t.Error(err)
		}
	})
}

// TestALimitStopsTheQueue has one write refused while others wait for their turn.
func TestALimitStopsTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		writes := 0
		f := open(t, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return reply(200, "[]")
			}
			writes++
			return reply(403, "{}", "Retry-After", "60")
		})
		var wg sync.WaitGroup
		for n := range 5 {
			wg.Go(func() {
				if err := f.SetLabels(t.Context(), issue(n+1), []string{"x"}, nil); !forge.Is(err, forge.RateLimited) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if writes != 1 {
			t.Errorf("%d writes were sent", writes)
		}
	})
}

func TestGraphQLIsCountedOnItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return reply(200, `{"number":1,"draft":true,"node_id":"n","state":"open"}`)
			}
			return reply(200, `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`,
				"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10))
		})
		for range 2 {
			if err := f.Ready(t.Context(), issue(1)); !forge.Is(err, forge.RateLimited) {
				t.Error(err)
			}
		}
		if _, err := f.Item(t.Context(), issue(1)); forge.Is(err, forge.RateLimited) {
			t.Error(err)
		}
	})
}
