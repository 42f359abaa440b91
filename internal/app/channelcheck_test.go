package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// vendors answers as LINE and Slack do whose tokens are right.
type vendors struct{ sent bytes.Buffer }

func (v *vendors) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	answer := map[string]string{
		"/v2/bot/info":                     `{"userId":"U0","basicId":"@tori","displayName":"tori","chatMode":"bot","markAsReadMode":"auto"}`,
		"/v2/bot/message/quota":            `{"type":"none"}`,
		"/v2/bot/channel/webhook/endpoint": `{"endpoint":"https://bot.example/webhooks/line","active":true}`,
		"/v2/bot/channel/webhook/test":     `{"success":true,"timestamp":"2026-01-02T03:04:05Z","statusCode":200,"reason":"OK","detail":"200"}`,
		"/v2/bot/message/push":             `{"sentMessages":[{"id":"1"}]}`,
		"/api/auth.test":                   `{"ok":true,"team":"Acme","team_id":"T1","user":"tori","user_id":"U0","bot_id":"B0"}`,
		"/api/apps.connections.open":       `{"ok":true,"url":"wss://slack.test/x"}`,
		"/api/conversations.history":       `{"ok":true,"messages":[]}`,
		"/api/chat.postMessage":            `{"ok":false,"error":"not_in_channel"}`,
	}[r.URL.Path]
	if answer == "" {
		return nil, fmt.Errorf("%s %s", r.Method, r.URL)
	}
	if strings.HasSuffix(r.URL.Path, "push") {
		v.sent.WriteString(body)
	}
	return &http.Response{StatusCode: 200, Request: r, Body: io.NopCloser(strings.NewReader(answer)), Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}, "Content-Type": {"application/json"},
		"X-Oauth-Scopes": {"app_mentions:read,channels:history,chat:write,commands,files:read,files:write,groups:history,im:history,mpim:history,reactions:write"}}}, nil
}

// What the settings say of channels is looked over: with --send each conversation that is told
// of trouble gets a test, and files of a tori serve that runs stay.
func TestCheckChannels(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "channels: {line: {channel_secret: s, access_token: t, allow_from: [U1], notify: ['line:user:U1']}, slack: {bot_token: xoxb-test, app_token: xapp-test, notify: ['slack:T1:C1']}}\n")
	h.write("base/media/line/image.png", "of tori serve")
	raw, err := readLines(h.dir, "config.yaml")
	h.must(err)
	h.write("config.yaml", strings.Replace(raw, "serve: {listen: ''}", "serve: {listen: '', public_url: 'https://bot.example'}", 1))
	v := &vendors{}
	env := h.environment()
	env.HTTP = &http.Client{Transport: v}
	look := func(send bool) string {
		all, err := CheckChannels(t.Context(), env, h.config, send)
		h.must(err)
		var b strings.Builder
		for _, f := range all {
			fmt.Fprintln(&b, f.Channel, f.Part, f.OK)
		}
		return b.String()
	}
	want := "line access_token true\nline clock true\nline quota true\nline webhook true\nline allow_from true\n%sslack bot_token true\nslack scopes true\nslack clock true\nslack app_token true\nslack allow_from false\n%s"
	if got := look(false); got != fmt.Sprintf(want, "", "") || v.sent.Len() > 0 {
		t.Errorf("%s\n%s", got, v.sent.String())
	}
	if got := look(true); got != fmt.Sprintf(want, "line send true\n", "slack send false\n") || !strings.Contains(v.sent.String(), "This is a test") {
		t.Errorf("%s\n%s", got, v.sent.String())
	}
	if text, err := readLines(filepath.Join(h.base, "media", "line"), "image.png"); err != nil || text != "of tori serve" {
		t.Errorf("%v %q", err, text)
	}
	none := newChatHouse(t, "")
	if _, err := CheckChannels(t.Context(), none.environment(), none.config, false); !errors.As(err, new(*ConfigError)) || !strings.Contains(err.Error(), "no channel is set up") {
		t.Error(err)
	}
}
