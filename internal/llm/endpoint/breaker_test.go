package endpoint

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"toritsugi/internal/llm"
)

func failed(kind llm.ErrorKind) error { return fmt.Errorf("call: %w", &llm.Error{Kind: kind}) }

var outcomes = map[outcome][]error{
	works: {nil, failed(llm.KindAuth), failed(llm.KindRateLimited), failed(llm.KindBadRequest), failed(llm.KindContext), failed(llm.KindQuota), failed(llm.KindNotFound), failed(llm.KindNoTools)},
	fails: {failed(llm.KindUnreachable), failed(llm.KindServer), failed(llm.KindTimeout)},
	unknown: {context.Canceled, context.DeadlineExceeded, errors.New("x"), failed(llm.KindCutStream), failed(llm.KindInvalid),
		failed(llm.KindSuspended), failed(llm.KindScriptEnded), failed(llm.KindForbidden)},
}

// TestBreakerLaws drives a breaker with any sequence of calls, side by side,
// and a clock, against what it must do.
func TestBreakerLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1e9, 0)
		n := rapid.IntRange(1, 4).Draw(t, "threshold")
		b := NewBreaker(n, time.Minute, func() time.Time { return now })
		type call struct {
			done  func(error) EventKind
			trial bool
		}
		var calls []call
		row, pauses := 0, 0
		var until time.Time // the model: zero is closed
		trial := false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				now = now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
			case 1, 2:
				done, r := b.begin()
				open := !until.IsZero()
				refuse := open && (now.Before(until) || trial)
				if (r != nil) != refuse || (done == nil) != refuse {
					t.Fatalf("refused %v, must be %v", r, refuse)
				}
				if r != nil {
					want := until
					if !now.Before(until) {
						want = time.Time{}
					}
					if !r.until.Equal(want) || r.failures != row || r.last == nil || !b.OpenUntil().Equal(want) {
						t.Fatalf("refusal %+v, want until %v after %d", r, want, row)
					}
					continue
				}
				calls = append(calls, call{done, open})
				trial = trial || open
			case 3:
				if len(calls) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(calls)-1).Draw(t, "call")
				c := calls[i]
				calls = append(calls[:i], calls[i+1:]...)
				o := outcome(rapid.IntRange(0, 2).Draw(t, "outcome"))
				got := c.done(rapid.SampledFrom(outcomes[o]).Draw(t, "error"))
				want := EventKind("")
				if c.trial {
					trial = false
				}
				switch o {
				case works:
					if !until.IsZero() {
						want = Closed
					}
					row, pauses, until = 0, 0, time.Time{}
				case fails:
					row++
					if until.IsZero() && row >= n || !until.IsZero() && c.trial {
						pauses = min(max(2*pauses, 1), maxPauses)
						until, want = now.Add(time.Duration(pauses)*time.Minute), Opened
					}
				}
				if got != want {
					t.Fatalf("outcome %d of trial %v: %q, want %q", o, c.trial, got, want)
				}
			}
		}
	})
}
