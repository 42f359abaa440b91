package conversation

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
)

// away is a channel whose vendor asks for patience until a time, and is waited for.
type away struct {
	*stage
	until time.Time
	tries int
}

func (a *away) Stream() {}

func (a *away) Post(ctx context.Context, p channel.Post) error {
	a.tries++
	select {
	case <-time.After(time.Until(a.until)):
	case <-ctx.Done():
		return ctx.Err()
	}
	return a.stage.Post(ctx, p)
}

// owing has PostOwing go on as tori serve has, every so often, for a time.
func (h *house) owing(every, long time.Duration) {
	h.t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(every) {
		if err := h.PostOwing(h.t.Context()); err != nil {
			h.t.Error(err)
		}
	}
}

// A vendor that asks for an hour's patience keeps no turn and no other channel waiting; then all
// is said, once and in order.
func TestAnHourWithoutAVendor(t *testing.T) {
	vendor(t, func(t *testing.T, h *house) {
		c := &away{stage: h.stage, until: time.Now().Add(time.Hour)}
		h.Add(c)
		line := &stage{kind: "line", fail: 1}
		h.Add(line)
		began := time.Now()
		notice := func(session, text string) {
			t.Helper()
			if err := h.Post(t.Context(), channel.Post{SessionID: session, Key: text, Kind: channel.Notice, Text: text}); err != nil {
				t.Error(err)
			}
		}
		notice(h.id, "a job stands")
		if err := h.Post(t.Context(), channel.Post{SessionID: h.id, Kind: channel.Progress, Job: "J", Text: "step 1"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		h.plays("chat", "Hello.")
		if got := h.hears("hello"); len(got) != 0 || time.Since(began) > 4*postTime {
			t.Errorf("%q after %s", got, time.Since(began))
		}
		notice("line:user:U1", "to another channel")
		ended := make(chan struct{})
		go func() { defer close(ended); h.owing(15*time.Second, 75*time.Minute) }()
		synctest.Wait()
		if got := line.seen(); !slices.Equal(got, []string{"notice: to another channel"}) {
			t.Errorf("%q while the vendor is waited for", got)
		}
		<-ended
		if got := h.stage.seen(); !slices.Equal(got, []string{"notice: a job stands", "answer: Hello."}) || c.tries > 60 {
			t.Errorf("%q after %d tries", got, c.tries)
		}
		h.postsOwing()
	})
}

// Where nothing can be said any more, as where the channel was thrown out, it is tried less and
// less often, and given up after a week; what is said later is shown where that ends.
func TestNothingCanBeSaid(t *testing.T) {
	vendor(t, func(t *testing.T, h *house) {
		var log strings.Builder
		h.Log = slog.New(slog.NewTextHandler(&log, nil))
		h.stage.fail = 1 << 20
		say := func(text string) {
			t.Helper()
			if err := h.Post(t.Context(), channel.Post{SessionID: h.id, Key: text, Kind: channel.Notice, Text: text}); err != nil {
				t.Error(err)
			}
		}
		say("never told")
		h.owing(time.Minute, 8*24*time.Hour)
		h.postsOwing()
		if tries := 1<<20 - h.stage.fail; tries < 100 || tries > 1200 || strings.Count(log.String(), "A post is given up") != 1 {
			t.Errorf("%d tries: %s", tries, log.String()[max(0, log.Len()-500):])
		}
		say("told later")
		h.owing(time.Minute, time.Hour)
		h.stage.fail = 0
		h.owing(time.Minute, 20*time.Minute)
		if got := h.stage.seen(); !slices.Equal(got, []string{"notice: told later"}) {
			t.Errorf("%q", got)
		}
		said, err := h.History(t.Context(), h.id, 5)
		if err != nil || len(said) != 2 || said[0].Text != "never told" {
			t.Errorf("%+v, %v", said, err)
		}
	})
}

// picky is a channel that never takes one text.
type picky struct {
	*stage
	text string
}

func (p *picky) Stream() {}

func (p *picky) Post(ctx context.Context, c channel.Post) error {
	if c.Text == p.text {
		return errors.New("invalid_blocks")
	}
	return p.stage.Post(ctx, c)
}

// One post that is never taken delays no other one for more than a round.
func TestOneIsNeverTaken(t *testing.T) {
	vendor(t, func(t *testing.T, h *house) {
		h.Add(&picky{h.stage, "bad"})
		if err := h.Post(t.Context(), channel.Post{SessionID: h.id, Key: "bad", Kind: channel.Notice, Text: "bad"}); err != nil {
			t.Fatal(err)
		}
		h.owing(15*time.Second, 12*time.Hour)
		for _, text := range []string{"one", "two"} {
			h.plays("chat", text)
			h.hears("hello")
			h.owing(15*time.Second, 15*time.Second)
		}
		if got := h.stage.seen(); !slices.Equal(got, []string{"answer: one", "answer: two"}) {
			t.Errorf("%q", got)
		}
		h.postsOwing(h.id)
	})
}
