package wire

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// TestLongWaitIsTold: a call that is given up because of what the server asks
// for says so.
func TestLongWaitIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  llm.ErrorKind
		after time.Duration
		calls int
		told  bool
	}{
		{llm.KindRateLimited, 2 * time.Hour, 1, true},
		{llm.KindServer, maxWait + time.Second, 1, true},
		{llm.KindRateLimited, time.Nanosecond, 3, false},
		{llm.KindQuota, 2 * time.Hour, 1, false}, // no wait would help
	} {
		caller := New(Config{Provider: "p", URL: &url.URL{Scheme: "http", Host: "x"}, MaxRetries: 2,
			Backoff: func() backoff.BackOff { return &backoff.ZeroBackOff{} }})
		calls := 0
		err := caller.Repeat(t.Context(), func() *llm.Error {
			calls++
			return &llm.Error{Kind: c.kind, RetryAfter: c.after, Message: "slow down"}
		})
		var e *llm.Error
		if !errors.As(err, &e) || calls != c.calls || strings.Contains(e.Message, "asks for a wait of "+c.after.String()) != c.told || !strings.HasPrefix(e.Message, "slow down") || strings.Contains(e.Explain(i18n.Japanese), "再試行しません") != c.told {
			t.Errorf("%s, %s: %v after %d calls", c.kind, c.after, err, calls)
		}
	}
}

// TestAwaited: where a person waits, no connection is given up after one more try; a server
// that answers is as patiently asked as ever.
func TestAwaited(t *testing.T) {
	t.Parallel()
	caller := New(Config{Provider: "p", URL: &url.URL{Scheme: "http", Host: "x"}, MaxRetries: 5, Backoff: func() backoff.BackOff { return &backoff.ZeroBackOff{} }})
	for _, c := range []struct {
		kind    llm.ErrorKind
		awaited bool
		calls   int
	}{{llm.KindUnreachable, false, 6}, {llm.KindUnreachable, true, 2}, {llm.KindServer, true, 6}} {
		ctx, calls := t.Context(), 0
		if c.awaited {
			ctx = llm.Awaited(ctx)
		}
		err := caller.Repeat(ctx, func() *llm.Error { calls++; return &llm.Error{Kind: c.kind} })
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != c.kind || e.Attempts != c.calls || calls != c.calls {
			t.Errorf("%+v: %v after %d calls", c, err, calls)
		}
	}
}
