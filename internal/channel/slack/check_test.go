package slack

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
	"toritsugi/internal/i18n"
)

// wrong are the findings that are not well, a line each.
func wrong(all []channel.Finding) string {
	var b strings.Builder
	for _, f := range all {
		if !f.OK {
			b.WriteString(f.Part + ": " + f.Text + "\n")
		}
	}
	return b.String()
}

func TestCheck(t *testing.T) {
	t.Parallel()
	says := func(method, body, scopes string, behind time.Duration) func(*fake) {
		return func(f *fake) {
			f.fail = func(c call, _ func()) (int, string, map[string][]string) {
				if c.method != method {
					return 0, "", nil
				}
				return 200, body, map[string][]string{"X-Oauth-Scopes": {scopes}, "Date": {time.Now().Add(-behind).UTC().Format(http.TimeFormat)}}
			}
		}
	}
	who := `{"ok":true,"team_id":"T1","team":"Acme","user_id":"UBOT","user":"tori","bot_id":"BBOT"}`
	for name, c := range map[string]struct {
		change func(*fake)
		public string
		lang   i18n.Lang
		want   string // of what is wrong; "" for nothing
	}{
		"all is well":    {nil, "http://slack.test/well", i18n.English, ""},
		"token revoked":  {says("auth.test", `{"ok":false,"error":"token_revoked"}`, "", 0), "http://slack.test/well", i18n.English, "bot_token: Slack refused the token (auth.test: token_revoked)"},
		"app token":      {says("apps.connections.open", `{"ok":false,"error":"not_allowed_token_type"}`, "", 0), "http://slack.test/well", i18n.Japanese, "app_token: Slack がトークンを拒否しました"},
		"scopes":         {says("auth.test", who, "chat:write,commands", 0), "http://slack.test/well", i18n.English, "scopes: missing: app_mentions:read, channels:history, files:read"},
		"clock":          {says("auth.test", who, strings.Join(botScopes(), ","), 10*time.Minute), "http://slack.test/well", i18n.English, "clock: it is 10m0s apart"},
		"no public_url":  {nil, "", i18n.English, "webhook: serve.public_url is empty"},
		"something else": {nil, "http://slack.test/nothing", i18n.English, "webhook: http://slack.test/nothing/webhooks/slack/events answers with status 404"},
		"no address":     {nil, "ftp://slack.test", i18n.Japanese, "webhook: ftp://slack.test/webhooks/slack/events が応答しません"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, &channeltest.Handler{}, func(o *Options) { o.Lang = c.lang })
				if c.change != nil {
					c.change(r.f)
				}
				all := r.s.Check(t.Context(), c.public)
				got := wrong(all)
				if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") > 1 && c.want != "" {
					t.Errorf("%s", got)
				}
				if c.want == "" && (len(all) != 5 || all[0].Text != "tori in Acme") {
					t.Errorf("%+v", all)
				}
			})
		})
	}
}

func TestSend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &channeltest.Handler{}, nil)
		for range 2 {
			if err := r.s.Send(t.Context(), "slack:T1:C1", "a test"); err != nil {
				t.Error(err)
			}
		}
		if got := r.f.shown(); strings.Count(got, "a test") != 2 {
			t.Error(got)
		}
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if c.method == "chat.postMessage" {
				return 200, `{"ok":false,"error":"not_in_channel"}`, nil
			}
			return 0, "", nil
		}
		if err := r.s.Send(t.Context(), "slack:T1:C1", "a test"); err == nil || !strings.Contains(err.Error(), "/invite") {
			t.Error(err)
		}
	})
}
