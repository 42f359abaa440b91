package app

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// The diff of a proposal is read by its link at the public name of tori serve, before and after
// it is decided, over a restart; each reader is on record.
func TestProposalPage(t *testing.T) {
	t.Parallel()
	h := newVendorHouse(t)
	h.write("script.yaml", coderSays)
	h.add("chat: {deliver: branch, repositories: [{name: tools, path: " + h.repo + "}]}\n")
	id := h.ask()
	h.must(h.once())
	j, _ := h.job(id)
	var link string
	serving := func(f func(get func(host string) (int, string))) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		started := make(chan ServeStarted, 1)
		var ended error
		race(func() {
			ended = serve(ctx, h.environment(), ServeOptions{Config: h.config, AllowUnsandboxed: true}, func(d *daemon, in channel.Inbox, g *guard) ([]member, error) {
				if link == "" {
					a, err := d.talks.approvals.Request(i18n.English, j)
					h.must(err)
					link = d.pages.Link("line:U1", &a)
				}
				return withVendor(filepath.Join(h.dir, "posts"))(d, in, g)
			}, func(s ServeStarted) { started <- s })
			close(started)
		}, func() {
			defer cancel()
			s, ok := <-started
			if !ok {
				return
			}
			f(func(host string) (int, string) {
				u, err := url.Parse(link)
				h.must(err)
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Listen+u.RequestURI(), nil)
				h.must(err)
				r.Host = host
				a, err := http.DefaultClient.Do(r)
				h.must(err)
				defer func() { _ = a.Body.Close() }()
				b, err := io.ReadAll(a.Body)
				h.must(err)
				return a.StatusCode, string(b)
			})
		})
		h.must(ended)
	}
	serving(func(get func(string) (int, string)) {
		if code, page := get("bot.example"); code != 200 || !strings.Contains(page, "Waiting for a decision") || !strings.Contains(page, `<span class="a">+42</span>`) {
			t.Errorf("%d %s", code, page)
		}
		if code, _ := get("elsewhere.example"); code != http.StatusMisdirectedRequest {
			t.Errorf("by another name: %d", code)
		}
	})
	h.must(h.decide(id, false))
	serving(func(get func(string) (int, string)) {
		if code, page := get("bot.example"); code != 200 || !strings.Contains(page, "denied by "+hanako) || !strings.Contains(page, `<span class="d">-41</span>`) {
			t.Errorf("%d %s", code, page)
		}
	})
	if audit, err := readLines(h.base, "audit.jsonl"); err != nil || strings.Count(audit, `"actor":"line:U1","action":"read","uuid":"`+j.Run+`","what":"diff","detail":"`+id+" "+j.Short()) != 2 {
		t.Errorf("%v %s", err, audit)
	}
	key := filepath.Join(h.base, "links.key")
	if st, err := os.Stat(key); err != nil || st.Mode().Perm() != 0o600 || st.Size() != 32 {
		t.Errorf("%v %v", st, err)
	}
	h.must(os.Remove(key)) // as people do who want all links to end
	serving(func(get func(string) (int, string)) {
		if code, _ := get("bot.example"); code != http.StatusForbidden {
			t.Errorf("by a link of an older key: %d", code)
		}
	})
	h.must(os.WriteFile(key, []byte("short"), 0o600))
	err := serve(t.Context(), h.environment(), ServeOptions{Config: h.config, AllowUnsandboxed: true}, channels, func(ServeStarted) { t.Error("it began") })
	if err == nil || !strings.Contains(i18n.Japanese.Error(err), "署名鍵") {
		t.Error(err)
	}
	if j, _ := h.job(id); j.State.Status != approval.Denied {
		t.Errorf("%+v", j.State)
	}
}
