package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

const (
	// linkLives is how long a link to a diff is good (spec/chat §7).
	linkLives = 72 * time.Hour
	// maxPage is how much of a diff is shown, in bytes.
	maxPage = 4 << 20
	// LinkKey is how long the key is that links are signed with, in bytes.
	LinkKey = 32
)

// Proposals are the pages of proposals' diffs. Whoever has a link may read: it is signed, for
// one proposal as it was when it was put to somebody, and for a time.
type Proposals struct {
	Key  []byte
	URL  string    // at which others reach the pages
	Lang i18n.Lang // of readers whose browser asks for no language
	Now  func() time.Time
	Find func(ctx context.Context, l i18n.Lang, job string) (Proposal, error)
	// Gone says that an error of Find is that there is no such proposal any more.
	Gone func(error) bool
	// Read is told before somebody reads a proposal; with its error nothing is shown.
	Read func(who string, a Proposal) error
}

// Proposal is a proposal, redacted.
type Proposal struct {
	channel.Approval
	Run    string // its uuid
	Stands string // how it stands, in one line
}

// Link is the address of a proposal's diff for somebody, or for a conversation.
func (p *Proposals) Link(who string, a *channel.Approval) string {
	until := strconv.FormatInt(p.Now().Add(linkLives).Unix(), 10)
	q := url.Values{"hash": {a.Hash}, "for": {who}, "until": {until}, "sig": {base64.RawURLEncoding.EncodeToString(p.sign(a.Job, a.Hash, who, until))}}
	return strings.TrimSuffix(p.URL, "/") + "/proposals/" + url.PathEscape(a.Job) + "/diff?" + q.Encode()
}

func (p *Proposals) sign(fields ...string) []byte {
	mac := hmac.New(sha256.New, p.Key)
	for _, f := range append([]string{"diff"}, fields...) {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(f), f)
	}
	return mac.Sum(nil)
}

// Hook is the page.
func (p *Proposals) Hook() Hook {
	return Hook{Pattern: "GET /proposals/{job}/diff", Handler: p}
}

// ServeHTTP shows a diff.
func (p *Proposals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := reader(r, p.Lang)
	job, q := r.PathValue("job"), r.URL.Query()
	hash, who, until := q.Get("hash"), q.Get("for"), q.Get("until")
	given, err := base64.RawURLEncoding.DecodeString(q.Get("sig"))
	if err != nil || !hmac.Equal(given, p.sign(job, hash, who, until)) {
		page(w, l, http.StatusForbidden, l.T("web.link_forged"), "")
		return
	}
	if end, err := strconv.ParseInt(until, 10, 64); err != nil || p.Now().Unix() >= end {
		page(w, l, http.StatusGone, l.T("web.link_expired"), "")
		return
	}
	a, err := p.Find(r.Context(), l, job)
	switch {
	case err != nil && p.Gone(err):
		page(w, l, http.StatusGone, l.T("web.link_gone"), "")
	case err != nil:
		page(w, l, http.StatusInternalServerError, l.T("web.link_failed"), "")
	case a.Hash != hash:
		page(w, l, http.StatusGone, l.T("web.link_superseded"), "")
	case p.Read(who, a) != nil:
		page(w, l, http.StatusInternalServerError, l.T("web.link_failed"), "")
	default:
		page(w, l, http.StatusOK, a.Title, body(l, &a))
	}
}

// reader is the language that a browser asks for first of those that the program speaks.
func reader(r *http.Request, otherwise i18n.Lang) i18n.Lang {
	for tag := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		tag = strings.ToLower(strings.TrimSpace(tag))
		for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
			if strings.HasPrefix(tag, string(l)) {
				return l
			}
		}
	}
	return otherwise
}

// style is all that the pages look like.
const style = `:root{color-scheme:light dark}` +
	`body{font:16px/1.5 system-ui,sans-serif;margin:1rem auto;max-width:72rem;padding:0 .75rem}` +
	`h1{font-size:1.2rem;overflow-wrap:anywhere}li,p{overflow-wrap:anywhere}ul{padding-left:1.2rem}` +
	`pre{font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;tab-size:4}` +
	`.h{font-weight:bold}.m{opacity:.7}.a{background:#2da04433}.d{background:#f8514933}.r{color:#c62828}`

// policy lets a page load nothing and send nothing, and be shown in no other page. Its one
// style is named by its sum.
func policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// page writes one; inner is HTML.
func page(w http.ResponseWriter, l i18n.Lang, code int, title, inner string) {
	for k, v := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Content-Security-Policy": policy(),
		"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex, nofollow"} {
		w.Header().Set(k, v)
	}
	w.WriteHeader(code)
	title = shown(title)
	_, _ = fmt.Fprintf(w, `<!DOCTYPE html><html lang="%s"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>%s</title><style>%s</style></head><body><h1>%s</h1>%s</body></html>`+"\n",
		l, title, style, title, inner) // who asked is gone
}

// shown is a text of models or strangers as HTML, without what hides or turns it.
func shown(s string) string {
	return html.EscapeString(redact.Printable(strings.ToValidUTF8(s, "\uFFFD")))
}

// body is a proposal below its title: how it stands, its files, its diff.
func body(l i18n.Lang, a *Proposal) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<p class="m">%s</p><p>%s</p><ul>`, shown(l.T("approval.job", a.Job)+" · "+a.Hash), shown(a.Stands))
	for _, f := range a.Files {
		class := ""
		if f.Risky() {
			class = ` class="r"`
		}
		fmt.Fprintf(&b, "<li%s>%s %s (+%d −%d)</li>", class, shown(l.T("approval.action_"+f.Action)), shown(f.Name()), f.Added, f.Removed)
	}
	b.WriteString("</ul><pre>")
	diff, end := a.Diff, min(len(a.Diff), maxPage)
	for end < len(diff) && !utf8.RuneStart(diff[end]) {
		end--
	}
	cut := len(diff) - end
	diff = diff[:end]
	within := false // a hunk
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\r\n")
		class := ""
		switch {
		case strings.HasPrefix(line, "@@"):
			within, class = true, "m"
		case strings.HasPrefix(line, "diff --git "):
			within, class = false, "h"
		case !within:
			class = "m"
		case strings.HasPrefix(line, "+"):
			class = "a"
		case strings.HasPrefix(line, "-"):
			class = "d"
		}
		if class == "" {
			b.WriteString(shown(line) + "\n")
			continue
		}
		fmt.Fprintf(&b, "<span class=%q>%s</span>\n", class, shown(line))
	}
	b.WriteString("</pre>")
	if cut > 0 {
		fmt.Fprintf(&b, "<p>%s</p>", shown(l.T("web.diff_cut", cut, a.Job)))
	}
	return b.String()
}
