package slack

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel/channeltest"
)

// A person who opens the app's home sees what is told of them, at most every few seconds;
// others see nothing, and a home that cannot be shown keeps nothing waiting.
func TestHome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		var fails error
		r := newRig(t, &channeltest.Handler{}, func(o *Options) {
			o.Home = func(_ context.Context, who string) (string, error) {
				asked = append(asked, who)
				return "# Waiting\n- **a < b & c** `/approve x y`\n" + strings.Repeat("- more\n", 40_000), fails
			}
		})
		opens := func(user, tab string) {
			t.Helper()
			if w := r.event(map[string]any{"type": "app_home_opened", "user": user, "channel": "D1", "tab": tab, "event_ts": "1.1"}); w.Code != http.StatusOK {
				t.Fatal(w.Code)
			}
			r.work()
		}
		opens("U1", "home")
		opens("U1", "home")
		opens("U1", "messages")
		opens("U9", "home")
		opens("U2", "home")
		time.Sleep(homeEvery)
		opens("U1", "home")
		if got := strings.Join(asked, " "); got != "slack:U1 slack:U2 slack:U1" || len(r.f.homes) != 3 || !strings.HasPrefix(r.f.homes[1], "U2 ") || !strings.Contains(r.f.homes[0], `a \u0026lt; b \u0026amp; c`) {
			t.Errorf("%s: %.300s", got, r.f.homes)
		}
		time.Sleep(homeEvery)
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			return 200, `{"ok":false,"error":"not_enabled"}`, nil
		}
		opens("U1", "home")
		fails = errors.New("hunter2 is no database")
		opens("U2", "home")
		if log := r.log.String(); !strings.Contains(log, "not_enabled") || !strings.Contains(log, "[SECRET] is no database") {
			t.Error(log)
		}
	})
}
