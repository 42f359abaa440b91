package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
)

func answer(key, text string) channel.Post {
	return channel.Post{SessionID: session, Key: key, Kind: channel.Answer, Text: text}
}

func (r *rig) post(p channel.Post) {
	r.t.Helper()
	if err := r.s.Post(r.t.Context(), p); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) has(texts ...string) {
	r.t.Helper()
	s := r.f.shown()
	for _, want := range texts {
		if strings.Count(s, want) != 1 {
			r.t.Errorf("%q is there %d times in\n%s", want, strings.Count(s, want), s)
		}
	}
}

// later is a process that runs when the session's thread is old.
func later(t *testing.T, r *rig) {
	t.Helper()
	time.Sleep(time.Until(time.Unix(1700000000, 0).Add(time.Hour)))
	r.restart(nil)
}

func TestARestartSaysNothingTwice(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		later(t, r)
		r.f.page = 3
		for n := range 10 {
			r.f.messages = append(r.f.messages, &posted{message: message{Channel: "C1", ThreadTS: thread, TS: fmt.Sprintf("1700003000.%06d", n), User: "U1", Text: "chat",
				Metadata: &metadata{eventType, payload{Key: partKey(place{"C1", thread}, "k3", 0)}}}}) // somebody's
		}
		long := strings.Repeat("first half\n", 300) + "\n" + strings.Repeat("second half\n", 300)
		r.post(answer("k1", "said before"))
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if strings.Contains(c.args.Get("text"), "second half") {
				return 200, `{"ok":false,"error":"fatal_error"}`, nil
			}
			return 0, "", nil
		}
		if err := r.s.Post(t.Context(), answer("k2", long)); err == nil {
			t.Fatal("no error")
		}
		before := len(r.f.messages)
		r.f.fail = nil
		r.restart(nil)
		r.post(answer("k1", "said before"))
		r.post(answer("k2", long))
		r.post(answer("k3", "said only now"))
		r.has("said before", "said only now")
		if s := r.f.shown(); strings.Count(s, "first half") != 300 || strings.Count(s, "second half") != 300 {
			t.Errorf("%d, %d of %d messages", strings.Count(s, "first half"), strings.Count(s, "second half"), before)
		}
		if n := len(r.f.methods("conversations.replies")); n < 8 || n > 12 { // two processes, pages of 3
			t.Errorf("%d pages", n)
		}
	})
}

func TestAThreadWithoutItsFirstMessage(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		later(t, r)
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if c.method == "conversations.replies" {
				return 200, `{"ok":false,"error":"thread_not_found"}`, nil
			}
			return 0, "", nil
		}
		r.post(answer("k", "said all the same"))
		r.has("said all the same")
	})
}

func TestNoLookingBackInAThreadOfThisProcess(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		time.Sleep(time.Hour)
		ts := fmt.Sprintf("%d.000100", time.Now().Unix())
		for n := range 5 {
			r.post(channel.Post{SessionID: "slack:T1:C1:" + ts, Key: fmt.Sprint(n), Kind: channel.Answer, Text: "x"})
		}
		if n := len(r.f.methods("conversations.replies")); n != 0 {
			t.Errorf("%d looks", n)
		}
	})
}

func TestAnOutcomeThatIsUnknownIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"taken": true, "not taken": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig) {
				r.f.fail = func(c call, done func()) (int, string, map[string][]string) {
					if c.method != "chat.postMessage" {
						return 0, "", nil
					}
					if taken {
						done()
					}
					return http.StatusBadGateway, "<html>", nil
				}
				err := r.s.Post(t.Context(), answer("k", "once"))
				if taken != (err == nil) || err != nil && !strings.Contains(err.Error(), "502") {
					t.Errorf("%v", err)
				}
				if tries := len(r.f.methods("chat.postMessage")); taken && tries != 1 || !taken && tries != maxTries {
					t.Errorf("%d tries", tries)
				}
				r.f.fail = nil
				r.post(answer("k", "once"))
				r.has("once")
			})
		})
	}
}

func TestLimitsAreWaitedFor(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		began, n := time.Now(), 0
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if c.method == "chat.postMessage" && c.args.Get("channel") == "C1" && n < 2 {
				n++
				return http.StatusTooManyRequests, "", map[string][]string{"Retry-After": {"1800"}}
			}
			return 0, "", nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var l *limited
		if err := r.s.Post(ctx, answer("k", "late")); !errors.As(err, &l) || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		r.post(channel.Post{SessionID: "slack:T1:C2:" + thread, Key: "other", Kind: channel.Answer, Text: "another channel"})
		if d := time.Since(began); d > time.Second {
			t.Errorf("another channel waited for %v", d)
		}
		r.post(answer("k", "late"))
		if d := time.Since(began); d < time.Hour || d > time.Hour+time.Minute {
			t.Errorf("it waited for %v", d)
		}
		r.has("late", "another channel")
	})
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for refused, want := range map[string]string{
		"invalid_auth": "issue it anew", "token_revoked": "issue it anew", "not_in_channel": "/invite", "channel_not_found": "/invite", "is_archived": "archived",
		"missing_scope": "chat.postMessage: missing_scope chat:write): add the scope", "other": "Slack refused: chat.postMessage: other chat:write",
	} {
		bubble(t, func(t *testing.T, r *rig) {
			r.f.fail = func(call, func()) (int, string, map[string][]string) {
				return 200, `{"ok":false,"error":"` + refused + `","needed":"chat:write"}`, nil
			}
			err := r.s.Post(t.Context(), answer("k", "x"))
			var e *Error
			if err == nil || !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", refused, err)
			}
		})
	}
}

func progressOf(text string) channel.Post {
	return channel.Post{SessionID: session, Key: "p" + text, Kind: channel.Progress, Job: channeltest.Proposal("").Job, Text: text}
}

func TestProgressIsOneMessage(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		for n := range 20 {
			r.post(progressOf(fmt.Sprint("step ", n)))
			time.Sleep(time.Second)
		}
		time.Sleep(throttle)
		synctest.Wait()
		r.has("step 19")
		if n := len(r.f.messages); n != 1 || r.f.messages[0].edits < 5 || r.f.messages[0].edits > 8 {
			t.Errorf("%d messages, %d edits", n, r.f.messages[0].edits)
		}
		r.post(progressOf("pending"))
		r.post(progressOf("never shown"))
		r.post(progressOf(""))
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := r.f.shown(); s != "" {
			t.Errorf("%s", s)
		}
	})
}

func TestProgressKeepsNothingWaiting(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.post(progressOf("one"))
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if c.method == "chat.update" {
				return http.StatusTooManyRequests, "", map[string][]string{"Retry-After": {"3600"}}
			}
			return 0, "", nil
		}
		time.Sleep(throttle)
		began := time.Now()
		r.post(progressOf("two"))
		r.post(answer("k", "an answer"))
		if d := time.Since(began); d > time.Second {
			t.Errorf("it waited for %v", d)
		}
		r.has("an answer")
	})
}

func TestProgressGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		later(t, r)
		r.post(progressOf("before"))
		r.restart(nil)
		r.post(progressOf("after"))
		if len(r.f.messages) != 1 {
			t.Errorf("%d messages", len(r.f.messages))
		}
		r.has("after")
	})
}

func granted() channel.Post {
	p := channeltest.Proposal(session)
	p.Kind, p.Key, p.Text = channel.Decided, "d1", "Granted: "+p.Job
	p.Approval.Status, p.Approval.Approver, p.Approval.DecidedAt = "granted", "slack:U2", time.Unix(1700000500, 0)
	return p
}

func TestARequestIsRewrittenWithWhoAndWhen(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"at once": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig) {
				later(t, r)
				p := channeltest.Proposal(session)
				r.post(p)
				if again {
					r.restart(nil)
				}
				r.post(p)
				r.has("[Approve]", "[Deny]")
				r.post(granted())
				r.post(granted())
				if len(r.f.messages) != 1 {
					t.Errorf("%d messages", len(r.f.messages))
				}
				r.has("Granted", "<@U2> · <!date^1700000500^{date_short_pretty} {time}|")
				if s := r.f.shown(); strings.Contains(s, "[") {
					t.Errorf("%s", s)
				}
			})
		})
	}
}

func TestADecisionWithoutItsRequestIsSaid(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.post(granted())
		r.post(granted())
		r.has("Granted: ")
	})
}

func TestANewerRequestTakesTheButtonsOfTheOlder(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		p := channeltest.Proposal(session)
		r.post(p)
		newer := channeltest.Proposal(session)
		newer.Key, newer.Approval.Hash = "req-2", "abcdefabcdef"
		r.post(newer)
		r.has("a newer request stands below", "*Proposal: Greet politely*", "[Approve]")
	})
}

func TestALongDiffIsAFile(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		later(t, r)
		p := channeltest.Proposal(session)
		p.Approval.Diff = strings.Repeat("+a line of the diff\u202e\n", 61)
		p.Approval.Title = "Mend <!channel> *now*"
		p.Approval.Files = nil
		for n := range 500 {
			p.Approval.Files = append(p.Approval.Files, channel.File{Path: fmt.Sprintf("dir/`file`%d.go", n), Action: "modify", Added: 1})
		}
		fail := true
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if c.method == "files.completeUploadExternal" && fail {
				return 500, "", nil
			}
			return 0, "", nil
		}
		if err := r.s.Post(t.Context(), p); err == nil {
			t.Error("no error")
		}
		fail = false
		r.post(p)
		r.post(p)
		r.restart(nil)
		r.post(p)
		if s := r.f.shown(); strings.Count(s, "+a line of the diff\n") != 61 || strings.Count(s, "[Approve]") != 1 {
			t.Errorf("%s", s)
		}
		r.has("and 460 more files")
		if b := r.f.messages[0].blocks; strings.Contains(b, "<!channel>") {
			t.Errorf("%s", b)
		}
	})
}

func TestWhatIsNotShownWholeHasNoButtons(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		p := channeltest.Proposal(session)
		for range 200 {
			p.Approval.Commands = append(p.Approval.Commands, strings.Repeat("x", 1000))
		}
		r.post(p)
		if s := r.f.shown(); strings.Contains(s, "[Approve]") || !strings.Contains(s, "tori approvals") {
			t.Errorf("%.500s", s)
		}
	})
}

func TestNobodyIsCalledAndNothingUnfurled(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.post(answer("k", "hey <!channel> <@U1> https://x.example"))
		c := r.f.methods("chat.postMessage")[0]
		if text := c.args.Get("text"); text != "hey &lt;!channel&gt; &lt;@U1&gt; https://x.example" || c.args.Get("unfurl_links") != "false" || c.args.Get("unfurl_media") != "false" {
			t.Errorf("%v", c.args)
		}
	})
}

func TestSessionsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		for _, id := range []string{"", "line:user:U1", "slack:T1", "slack:T1::", "slack:T1:C1:1.1:x"} {
			if err := r.s.Post(t.Context(), channel.Post{SessionID: id, Key: "k", Kind: channel.Answer, Text: "x"}); err == nil {
				t.Errorf("%q was taken", id)
			}
		}
	})
}

// Whoever looks after tori is told by Ready that nothing goes out, until something does.
func TestReadyTellsOfARevokedToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &channeltest.Handler{}, nil)
		revoked := true
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if revoked && c.method != "apps.connections.open" {
				return 200, `{"ok":false,"error":"token_revoked"}`, nil
			}
			return 0, "", nil
		}
		say := func() error {
			return r.s.Post(t.Context(), channel.Post{SessionID: session, Key: "k1", Kind: channel.Answer, Text: "hello"})
		}
		if err := say(); err == nil || code(r.s.Ready()) != "token_revoked" {
			t.Errorf("%v, ready: %v", err, r.s.Ready())
		}
		if err := r.s.api.call(t.Context(), appToken, "apps.connections.open", nil, nil); err != nil || r.s.Ready() == nil {
			t.Errorf("%v: the app token's call says nothing of the bot token", err)
		}
		revoked = false
		if err := say(); err != nil || r.s.Ready() != nil {
			t.Errorf("%v, ready: %v", err, r.s.Ready())
		}
	})
}

// In a thread of thousands of messages an answer to what is said now costs no look at them; what
// an earlier process may have said costs one.
func TestAThreadOfThousands(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		later(t, r)
		for n := range 5000 {
			r.f.messages = append(r.f.messages, &posted{message: message{Channel: "C1", ThreadTS: thread, TS: fmt.Sprintf("1700003000.%06d", n), User: "U1", Text: "chat"}})
		}
		looks := func() int { return len(r.f.methods("conversations.replies")) }
		now := fmt.Sprintf("C1.%d.000100", time.Now().Add(time.Hour).Unix())
		for n := range 3 {
			r.post(channel.Post{SessionID: session, ReplyTo: now, Key: fmt.Sprint("now", n), Kind: channel.Answer, Text: fmt.Sprint("answer ", n)})
		}
		if n := looks(); n != 0 {
			t.Errorf("%d looks", n)
		}
		for n := range 3 {
			r.post(answer(fmt.Sprint("k", n), fmt.Sprint("report ", n)))
		}
		if n := looks(); n != 26 { // pages of 200, with what was just said
			t.Errorf("%d looks", n)
		}
		r.has("answer 2", "report 2")
	})
}
