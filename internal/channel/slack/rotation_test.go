package slack

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
)

// safe is where the tokens of a test are kept.
type safe struct {
	kept Tokens
	err  error
}

func (s *safe) rotation() *Rotation {
	return &Rotation{ClientID: "1.2", ClientSecret: "hunter2", Refresh: freshRefresh(0), Kept: func() (Tokens, error) { return s.kept, nil },
		Keep: func(t Tokens) error {
			if s.err == nil {
				s.kept = t
			}
			return s.err
		}}
}

// Tokens are renewed once shortly before they end, or when Slack says that one has; what was
// kept is used over restarts, and a call goes on with the new one.
func TestTokensRotate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		where := &safe{}
		r := newRig(t, &channeltest.Handler{}, nil)
		r.f.rotates = true
		rotating := func(o *Options) { o.BotToken, o.Rotation = freshToken(0), where.rotation() }
		r.restart(rotating)
		n := 0
		says := func(renewed int) {
			t.Helper()
			n++
			if err := r.s.Post(t.Context(), channel.Post{SessionID: session, Key: string(rune('a' + n)), Kind: channel.Answer, Text: "hello"}); err != nil {
				t.Error(err)
			}
			if r.f.renewed != renewed || where.kept.Access != freshToken(renewed) || where.kept.Refresh != freshRefresh(renewed) || r.s.Ready() != nil {
				t.Errorf("renewed %d times, kept %+v, ready: %v", r.f.renewed, where.kept, r.s.Ready())
			}
		}
		says(1) // the end of the first one is not known
		says(1)
		if until := time.Until(where.kept.Ends); until < 11*time.Hour || until > 12*time.Hour {
			t.Error(where.kept.Ends)
		}
		r.restart(rotating)
		says(1)
		time.Sleep(9 * time.Hour)
		r.s.Watch(t.Context())
		says(1)
		time.Sleep(2 * time.Hour)
		r.s.Watch(t.Context())
		says(2)
		r.f.renewed++ // Slack ended it before its time
		where.kept.Refresh = freshRefresh(3)
		r.restart(rotating)
		says(4)
		if got := r.log.String(); strings.Contains(got, "xoxe") {
			t.Error(got)
		}
	})
}

// What keeps tokens from being renewed is told while the present one is good, and tried again;
// one that cannot be kept is used, and kept when that can be.
func TestTokensThatAreNotRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		where := &safe{}
		r := newRig(t, &channeltest.Handler{}, nil)
		r.f.rotates, r.f.renewed = true, 1
		where.kept = Tokens{Access: freshToken(1), Refresh: freshRefresh(1), Ends: time.Now().Add(renewBefore)}
		r.restart(func(o *Options) { o.BotToken, o.Rotation = freshToken(0), where.rotation() })
		away := true
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if away && c.method == "oauth.v2.access" {
				return http.StatusServiceUnavailable, "", nil
			}
			return 0, "", nil
		}
		call := func() error { return r.s.api.call(t.Context(), freshToken(0), "auth.test", nil, nil) }
		is := func(renewed int, works bool, trouble string) {
			t.Helper()
			for range 3 {
				if err := call(); (err == nil) != works || err != nil && !undone(err) {
					t.Error(err)
				}
			}
			if err := r.s.Ready(); r.f.renewed != renewed || (err == nil) != (trouble == "") || err != nil && !strings.Contains(err.Error(), trouble) {
				t.Errorf("renewed %d times, ready: %v", r.f.renewed, err)
			}
		}
		is(1, true, "is not renewed")
		if n := len(r.f.methods("oauth.v2.access")); n != 1 {
			t.Errorf("tried %d times at once", n)
		}
		time.Sleep(renewBefore)
		r.f.mu.Lock()
		r.f.renewed++ // as Slack counts it: the token has ended
		r.f.mu.Unlock()
		is(2, false, "is not renewed")
		r.f.renewed--
		away, where.err = false, errors.New("no room")
		time.Sleep(renewAgain)
		is(2, true, "cannot be kept")
		where.err = nil
		time.Sleep(renewAgain)
		is(2, true, "")
		if where.kept.Access != freshToken(2) {
			t.Errorf("%+v", where.kept)
		}
	})
}

func TestCheckTellsTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			kept Tokens
			want string
		}{
			"renewed":     {Tokens{Access: freshToken(1), Ends: time.Now().Add(time.Hour)}, ""},
			"over":        {Tokens{Access: freshToken(2), Ends: time.Now().Add(-time.Hour)}, "bot_token: Slack refused the token (auth.test: token_expired)"},
			"not renewed": {Tokens{}, "bot_token: Slack refused the token (auth.test: token_expired)"},
		} {
			where := &safe{kept: c.kept}
			r := newRig(t, &channeltest.Handler{}, func(o *Options) {
				o.BotToken, o.Rotation = freshToken(0), where.rotation()
				o.Rotation.Keep = nil
			})
			r.f.rotates, r.f.renewed = true, 1
			all := r.s.Check(t.Context(), "http://slack.test/well")
			got := wrong(all)
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || (c.want != "") != strings.Contains(got, "rotation: ") || r.f.renewed != 1 {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}

func TestATokenThatEndsTakesARefreshToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opt := newRig(t, &channeltest.Handler{}, nil).s.opt
		opt.BotToken = freshToken(0)
		if _, err := New(opt); err == nil || !strings.Contains(err.Error(), "channels.slack.refresh_token") {
			t.Error(err)
		}
	})
}
