package web

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

var errGone = errors.New("gone")

// shelf is a house with one proposal, and what was read of it.
type shelf struct {
	a    Proposal
	read []string
	err  error // of the record of who reads
	now  time.Time
}

func (s *shelf) pages() *Proposals {
	return &Proposals{Key: []byte(strings.Repeat("k", LinkKey)), URL: "https://tori.example/", Lang: i18n.Japanese, Now: func() time.Time { return s.now },
		Find: func(_ context.Context, _ i18n.Lang, job string) (Proposal, error) {
			if job != s.a.Job {
				return Proposal{}, errGone
			}
			return s.a, nil
		},
		Gone: func(err error) bool { return errors.Is(err, errGone) },
		Read: func(who string, a Proposal) error {
			if s.err == nil {
				s.read = append(s.read, who+" "+a.Run+" "+a.Hash)
			}
			return s.err
		}}
}

const someDiff = "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,2 @@\n-if a <b> {\n+if a &lt; b { // \u202egnihton\n--- a remark\n context\n"

func newShelf() *shelf {
	return &shelf{now: time.Unix(1_800_000_000, 0), a: Proposal{Run: "uuid-1", Stands: "Waiting.", Approval: channel.Approval{Job: "20270115-080000-0a1b2c3d", Hash: "0123456789ab", Title: "Fix <script>alert(1)</script>",
		Diff: someDiff, Files: []channel.File{{Path: "new.txt", From: "old.txt", Action: "rename"}}}}}
}

func open(t *testing.T, h *Proposals, link, accept string) *httptest.ResponseRecorder {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", u.RequestURI(), nil)
	r.Host = "tori.example"
	r.Header.Set("Accept-Language", accept)
	w := httptest.NewRecorder()
	New(stub{}, []Hook{h.Hook()}, "tori.example").ServeHTTP(w, r)
	return w
}

func TestADiffBehindItsLink(t *testing.T) {
	t.Parallel()
	s := newShelf()
	h := s.pages()
	link := h.Link("line:U1", &s.a.Approval)
	if !strings.HasPrefix(link, "https://tori.example/proposals/20270115-080000-0a1b2c3d/diff?") {
		t.Fatal(link)
	}
	w := open(t, h, link, "en-GB,en;q=0.9")
	page := w.Body.String()
	for _, want := range []string{`<html lang="en">`, "Fix &lt;script&gt;alert(1)", "Waiting.", "old.txt → new.txt", `<span class="d">-if a &lt;b&gt; {</span>`, `<span class="d">--- a remark</span>`,
		`<span class="m">--- a/a.go</span>`, "&amp;lt; b", "\n context\n", "width=device-width"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
	if w.Code != 200 || strings.Contains(page, "\u202e") || strings.Contains(page, "<script") || strings.Contains(page, " src=") || strings.Contains(page, "http://") {
		t.Errorf("%d\n%s", w.Code, page)
	}
	for k, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex", "Content-Security-Policy": "default-src 'none'; style-src 'sha256-", "X-Content-Type-Options": "nosniff"} {
		if got := w.Header().Get(k); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", k, got)
		}
	}
	if len(s.read) != 1 || s.read[0] != "line:U1 uuid-1 0123456789ab" {
		t.Errorf("on record: %q", s.read)
	}
	s.a.Diff = "x" + strings.Repeat("é", maxPage)
	if page := open(t, h, link, "ja").Body.String(); !strings.Contains(page, "あと 4194306 バイト") || len(page) > maxPage+4096 || strings.Contains(page, "\uFFFD") {
		t.Errorf("a diff of 8 MiB is %d bytes: %s", len(page), page[len(page)-300:])
	}
}

func TestLinksThatLeadNowhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *shelf, q url.Values, path *string)
		code   int
		want   string // in Japanese
	}{
		"nothing is changed": {func(*shelf, url.Values, *string) {}, 200, "Waiting"},
		"another reader":     {func(_ *shelf, q url.Values, _ *string) { q.Set("for", "line:U2") }, 403, "無効"},
		"a later end":        {func(_ *shelf, q url.Values, _ *string) { q.Set("until", "9"+q.Get("until")) }, 403, "無効"},
		"another hash":       {func(_ *shelf, q url.Values, _ *string) { q.Set("hash", "ba9876543210") }, 403, "無効"},
		"another job":        {func(_ *shelf, _ url.Values, p *string) { *p = strings.Replace(*p, "0a1b", "0a1c", 1) }, 403, "無効"},
		"no signature":       {func(_ *shelf, q url.Values, _ *string) { q.Del("sig") }, 403, "無効"},
		"half a signature":   {func(_ *shelf, q url.Values, _ *string) { q.Set("sig", q.Get("sig")[:20]) }, 403, "無効"},
		"fields moved":       {func(_ *shelf, q url.Values, _ *string) { q.Set("hash", "0123456789abline"); q.Set("for", ":U1") }, 403, "無効"},
		"72 hours later":     {func(s *shelf, _ url.Values, _ *string) { s.now = s.now.Add(linkLives) }, 410, "72 時間"},
		"just before":        {func(s *shelf, _ url.Values, _ *string) { s.now = s.now.Add(linkLives - time.Second) }, 200, "Waiting"},
		"it was removed":     {func(s *shelf, _ url.Values, _ *string) { s.a.Job = "" }, 410, "削除"},
		"it was made anew":   {func(s *shelf, _ url.Values, _ *string) { s.a.Hash = "ba9876543210" }, 410, "作り直され"},
		"no record":          {func(s *shelf, _ url.Values, _ *string) { s.err = errors.New("disk full") }, 500, "ログ"},
		"it was decided":     {func(s *shelf, _ url.Values, _ *string) { s.a.Status, s.a.Stands = "granted", "Waiting no more" }, 200, "Waiting no more"},
	} {
		s := newShelf()
		h := s.pages()
		u, err := url.Parse(h.Link("line:U1", &s.a.Approval))
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		c.change(s, q, &u.Path)
		u.RawQuery = q.Encode()
		w := open(t, h, u.String(), "fr, *;q=0.5")
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) || !strings.Contains(w.Body.String(), `lang="ja"`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if (w.Code == 200) != strings.Contains(w.Body.String(), "<pre>") || (w.Code == 200) != (len(s.read) == 1) {
			t.Errorf("%s: shown to %q: %s", name, s.read, w.Body)
		}
		if w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: may be kept", name)
		}
	}
	other := newShelf()
	h := other.pages()
	link := h.Link("line:U1", &other.a.Approval)
	h.Key = []byte(strings.Repeat("x", LinkKey))
	if w := open(t, h, link, "en"); w.Code != 403 {
		t.Errorf("by another key: %d", w.Code)
	}
}
