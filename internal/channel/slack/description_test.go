package slack

import (
	"net/http"
	"strings"
	"testing"
)

// The description refuses what Slack does not take; else the fake would take anything.
func TestTheDescriptionRefuses(t *testing.T) {
	t.Parallel()
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, body string
		ok           bool
	}{
		{"chat.postMessage", "channel=C1&text=x&thread_ts=1.2&unfurl_links=false&metadata=%7B%7D", true},
		{"chat.postMessage", "channel=C1&blocks=%5B%5D", true},
		{"chat.postMessage", "channel=C1", false},
		{"chat.postMessage", "text=x", false},
		{"chat.postMessage", "channel=&text=x", false},
		{"chat.postMessage", "channel=C1&text=x&unfurl_links=no", false},
		{"chat.postMessage", "channel=C1&text=x&text=y", false},
		{"chat.postMessage", "channel=C1&text=x&colour=red", false},
		{"chat.postMessage", "channel=C1&text=x&token=xoxb-1", false},
		{"chat.update", "channel=C1&ts=1.2&text=x", true},
		{"chat.update", "channel=C1&ts=1.2&text=x&unfurl_links=false", false},
		{"chat.delete", "channel=C1", false},
		{"conversations.replies", "channel=C1&ts=1.2&oldest=1&limit=200&include_all_metadata=true", true},
		{"conversations.replies", "channel=C1&ts=1.2&limit=all", false},
		{"conversations.replies", "channel=C1&ts=yesterday", false},
		{"conversations.history", "limit=200", false},
		{"files.getUploadURLExternal", "filename=a&length=12", true},
		{"files.getUploadURLExternal", "filename=a&length=12.5", false},
		{"files.completeUploadExternal", "channel_id=C1", false},
		{"auth.test", "", true},
		{"auth.test", "team=T1", false},
		{"chat.shout", "channel=C1&text=x", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://slack.com/api/"+c.method, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if said := d.Check(r, "/"+c.method, []byte(c.body)); (said == "") != c.ok {
			t.Errorf("%s %s: %q", c.method, c.body, said)
		}
		r.Header.Set("Content-Type", "text/plain")
		if said := d.Check(r, "/"+c.method, []byte(c.body)); said == "" {
			t.Errorf("%s %s as a text", c.method, c.body)
		}
	}
}
