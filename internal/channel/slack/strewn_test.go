package slack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
)

// Whatever comes between, each message is answered once, in order within its thread, in its
// thread: events that come twice, as a mention too, or with a wrong signature; an inbox that
// fails; calls that are refused for now, or fail with an outcome that is unknown; restarts.
func TestEachMessageIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { strewn(t, rand.New(rand.NewPCG(seed, 1))) }) //nolint:gosec // repeatable on purpose
		})
	}
}

func strewn(t *testing.T, dice *rand.Rand) {
	h := &channeltest.Handler{}
	r := newRig(t, h, func(o *Options) { o.Known = func(string) bool { return true } })
	later(t, r)
	known := func(o *Options) { o.Known = func(string) bool { return true } }
	r.restart(known)
	answered := map[string]bool{} // as the sessions remember it
	h.Reply = func(ctx context.Context, m channel.Message) error {
		if answered[m.ID] {
			return nil
		}
		if err := r.s.Post(ctx, channel.Post{SessionID: m.SessionID, ReplyTo: m.ID, Key: m.ID, Kind: channel.Answer, Text: "re: " + m.UserText}); err != nil {
			return err
		}
		answered[m.ID] = true
		return nil
	}
	r.f.fail = func(c call, done func()) (int, string, map[string][]string) {
		switch dice.IntN(10) {
		case 0:
			return http.StatusTooManyRequests, "", map[string][]string{"Retry-After": {"7"}}
		case 1:
			if c.method == "chat.postMessage" {
				done()
			}
			return http.StatusBadGateway, "", nil
		case 2:
			return http.StatusInternalServerError, "", nil
		}
		return 0, "", nil
	}
	const messages = 60
	for n := range messages {
		event := map[string]any{"type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": fmt.Sprintf("<@UBOT> text-%02d.", n), "ts": fmt.Sprintf("17000040%02d.000001", n), "thread_ts": fmt.Sprintf("170000000%d.000100", n%3)}
		deliver(r, event, dice)
		if dice.IntN(3) == 0 {
			deliver(r, with(event, "type", "app_mention"), dice)
		}
		if dice.IntN(8) == 0 {
			r.restart(known)
		}
		worked(r)
	}
	threads := map[string][]string{}
	for _, m := range r.f.messages {
		threads[m.ThreadTS] = append(threads[m.ThreadTS], m.Text)
	}
	for n := range 3 {
		var want []string
		for k := n; k < messages; k += 3 {
			want = append(want, fmt.Sprintf("re: text-%02d.", k))
		}
		if got := threads[fmt.Sprintf("170000000%d.000100", n)]; strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("thread %d: %d of %d\n%s", n, len(got), len(want), strings.Join(got, "\n"))
		}
	}
}

// deliver sends an event until it is taken, and now and then once more.
func deliver(r *rig, event map[string]any, dice *rand.Rand) {
	r.t.Helper()
	body := r.envelope(event)
	if dice.IntN(4) == 0 {
		r.call(events, "application/json", body, func(q *http.Request) { q.Header.Set("X-Slack-Signature", "v0=00") })
	}
	for taken := 0; taken < 1+dice.IntN(2); {
		r.inbox.fail = nil
		if dice.IntN(4) == 0 {
			r.inbox.fail = errors.New("disk full")
		}
		if r.call(events, "application/json", body, nil).Code == http.StatusOK {
			taken++
		}
	}
	r.inbox.fail = nil
}

// worked works on what waits until nothing does, trying again what failed.
func worked(r *rig) {
	r.t.Helper()
	for len(r.inbox.wait) > 0 {
		if err := r.s.Receive(r.t.Context(), r.inbox.wait[0], r.h); err != nil {
			time.Sleep(time.Second)
			continue
		}
		r.inbox.wait = r.inbox.wait[1:]
	}
}
