package line

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/i18n"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v *vendor)
		public string
		lang   i18n.Lang
		want   string // of what is wrong; "" for nothing
	}{
		"all is well":    {func(*vendor) {}, "https://tori.example/", i18n.English, ""},
		"a plan's limit": {func(v *vendor) { v.limit, v.used = 200, 20 }, "https://tori.example", i18n.English, ""},
		"token": {func(v *vendor) {
			v.faults = []fault{{path: "/v2/bot/info", status: 401, body: "Authentication failed"}}
		}, "https://tori.example", i18n.Japanese, "access_token: LINE がアクセストークンを受け付けません"},
		"used up":       {func(v *vendor) { v.limit, v.used = 200, 200 }, "https://tori.example", i18n.English, "quota: LINE pushes nothing more in this month"},
		"no public_url": {func(*vendor) {}, "", i18n.English, "webhook: serve.public_url is empty"},
		"no webhook":    {func(v *vendor) { v.endpoint = "" }, "https://tori.example", i18n.English, "webhook: LINE has no webhook address: set https://tori.example/webhooks/line"},
		"another one":   {func(v *vendor) { v.endpoint = "https://old.example/line" }, "https://tori.example", i18n.English, "webhook: LINE sends to https://old.example/line, and not to https://tori.example/webhooks/line"},
		"switched off":  {func(v *vendor) { v.off = true }, "https://tori.example", i18n.English, "webhook: the webhook is switched off"},
		"not reached":   {func(v *vendor) { v.unreached = true }, "https://tori.example", i18n.Japanese, "webhook: LINE から https://tori.example/webhooks/line に届きません（状態 0、COULD_NOT_CONNECT"},
		"clock":         {func(v *vendor) { v.behind = 10 * time.Minute }, "https://tori.example", i18n.English, "clock: it is 10m0s apart"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setUp(t, func(o *Options) { o.Lang = c.lang })
				c.change(r.v)
				var wrong []string
				for _, f := range r.Check(t.Context(), c.public) {
					if !f.OK {
						wrong = append(wrong, f.Part+": "+f.Text)
					}
				}
				if got := strings.Join(wrong, "\n"); (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) || len(wrong) > 1 {
					t.Errorf("%s", got)
				}
			})
		})
	}
}

func TestSend(t *testing.T) {
	r := setUp(t, nil)
	if err := r.Send(t.Context(), user, "a test"); err != nil || r.v.all() != "a test" {
		t.Errorf("%v %q", err, r.v.all())
	}
	r.v.faults = []fault{{path: "/v2/bot/message/push", status: http.StatusBadRequest, body: "Failed to send messages"}}
	if err := r.Send(t.Context(), user, "a test"); err == nil || !strings.Contains(i18n.Japanese.Error(err), "受け付けません") {
		t.Errorf("what LINE drops counts as sent: %v", err)
	}
}

// Whether LINE takes the token is asked until that is known; a fault of the way says nothing.
func TestWatch(t *testing.T) {
	r := setUp(t, nil)
	r.v.faults = []fault{{path: "/v2/bot/info", status: 500, body: "later"}, {path: "/v2/bot/info", status: 401, body: "Authentication failed"}}
	for n, ready := range []bool{true, false, false} {
		r.Watch(t.Context())
		if err := r.Ready(); (err == nil) != ready {
			t.Errorf("%d: %v", n, err)
		}
	}
	if n := r.v.count("/v2/bot/info"); n != 2 {
		t.Errorf("asked %d times", n)
	}
	r = setUp(t, nil)
	for range 2 {
		r.Watch(t.Context())
	}
	if n := r.v.count("/v2/bot/info"); n != 1 || r.Ready() != nil {
		t.Errorf("asked %d times, %v", n, r.Ready())
	}
}
