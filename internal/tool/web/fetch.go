package web

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"toritsugi/internal/i18n"
	"toritsugi/internal/tool"
)

//go:embed web_fetch.md
var fetchPage string

const fetchSchema = `{"type":"object","properties":{"url":{"type":"string","minLength":1},"from":{"$comment":"untold","type":"integer","minimum":0}},"required":["url"],"additionalProperties":false}`

// maxAddress is the longest address that is used, in bytes.
const maxAddress = 2048

type fetchArgs struct {
	URL  string      `json:"url"`
	From tool.Number `json:"from"`
}

// fetchTool is web_fetch.
func fetchTool(u *Lookup) tool.Tool {
	return tool.Of(tool.Describe("web_fetch", fetchPage, fetchSchema, true, "address", "url", "link", "url", "uri", "url", "page", "url", "offset", "from", "start", "from"), u.fetch)
}

// fetch reads a page, or goes on in one that was read.
func (u *Lookup) fetch(ctx context.Context, a fetchArgs) (tool.Result, error) {
	at, problem := address(a.URL)
	if problem != "" {
		return tool.Failf("%s", problem), nil
	}
	if p := u.known(at.String()); p != nil {
		return u.part(p, int(a.From)), nil
	}
	if problem := u.may("address", at.String()); problem != "" {
		return tool.Failf("%s", problem), nil
	}
	if u.invented(at.String()) {
		return tool.Failf("The page was not read: after text of strangers was shown, an address has to be one that the person, a search or a page named, letter by letter. Search for it."), nil
	}
	p, err := u.w.fetch(ctx, at)
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if err != nil {
		u.w.log.Info("web_fetch of " + at.Hostname() + ": " + err.Error())
		return tool.Failf("The page was not read: %v.", err), nil
	}
	u.keep(p)
	return u.part(p, int(a.From)), nil
}

// address reads one as a model wrote it: of the web, without a login and a fragment, its host in ASCII.
func address(s string) (*url.URL, string) {
	s = strings.Trim(strings.TrimSpace(s), "<>")
	if len(s) > maxAddress {
		return nil, fmt.Sprintf("The address has %d bytes, of at most %d.", len(s), maxAddress)
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, "That is no address of the web: https://HOST/PATH is expected."
	}
	if u.User != nil {
		return nil, "An address with a login in it is not used. Give it without."
	}
	host, err := idna.Lookup.ToASCII(strings.TrimSuffix(u.Hostname(), "."))
	if err != nil && !strings.Contains(u.Hostname(), ":") {
		return nil, "The host in the address is no name that can be looked up."
	}
	if err == nil {
		u.Host = strings.Replace(u.Host, u.Hostname(), host, 1)
	}
	u.Fragment, u.RawFragment = "", ""
	return u, ""
}

// page is one that was read.
type page struct {
	asked string // the address that was asked for
	at    string // where it was in the end
	title string
	text  string // valid UTF-8
	links []string
	cut   bool // it goes on behind text
}

// known is a page of before.
func (u *Lookup) known(address string) *page {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.IndexFunc(u.pages, func(p *page) bool {
		return plainAddress(p.asked) == plainAddress(address) || plainAddress(p.at) == plainAddress(address)
	})
	if i < 0 {
		return nil
	}
	return u.pages[i]
}

// keep notes a page that was read, and what it names.
func (u *Lookup) keep(p *page) {
	u.name(p.at)
	u.name(p.links...)
	u.found(Source{URL: p.at, Title: p.title, Read: true}, Source{URL: p.asked, Title: p.title, Read: true})
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pages = append(u.pages, p)
	u.pages = u.pages[max(0, len(u.pages)-maxPages):]
}

// part is a page from a byte on, as much as a result may have.
func (u *Lookup) part(p *page, from int) tool.Result {
	if from > len(p.text) {
		return tool.Failf("The page ends at %d.", len(p.text))
	}
	for from < len(p.text) && !utf8.RuneStart(p.text[from]) {
		from++
	}
	end := min(len(p.text), from+room(u.leg.Limits)-len(p.title)-2*len(p.at))
	if end < len(p.text) {
		for end > from && !utf8.RuneStart(p.text[end]) {
			end--
		}
		if i := strings.LastIndexByte(p.text[from:end], '\n'); i > (end-from)/2 {
			end = from + i + 1
		}
	}
	head := "Read: " + p.at + "\n"
	switch {
	case end < len(p.text):
		head += fmt.Sprintf("[from %d to %d of %d; for what follows call web_fetch again with \"from\": %d]\n", from, end, len(p.text), end)
	case p.cut:
		head += "[the page is longer than what is read of one; this is the last part of that]\n"
	}
	text := p.text[from:end]
	if p.title != "" && from == 0 {
		text = "# " + p.title + "\n\n" + text
	}
	return tool.Text(head + marked(text))
}

// fetch reads a page of an allowed host.
func (w *Web) fetch(ctx context.Context, at *url.URL) (*page, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/html, text/markdown, text/plain, application/json, */*;q=0.1")
	res, err := w.reads.Do(req)
	if err != nil {
		return nil, w.unreached(ctx, at, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, i18n.E("web.status", res.Request.URL.Host, res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxFetched+1))
	if err != nil && ctx.Err() != nil {
		return nil, reason(ctx, err)
	}
	// What came before a connection broke is of use, as it is for a browser.
	p := &page{asked: at.String(), at: res.Request.URL.String(), cut: err != nil || len(body) > maxFetched}
	return p, p.read(body[:min(len(body), maxFetched)], res.Header.Get("Content-Type"), res.Request.URL)
}

// unreached says why a host did not answer, and which setting says what may be reached.
func (w *Web) unreached(ctx context.Context, at *url.URL, err error) error {
	host := at.Host
	if e := new(url.Error); errors.As(err, &e) {
		if u, perr := url.Parse(e.URL); perr == nil && u.Host != "" {
			host = u.Host // where a redirect led to
		}
	}
	var said *i18n.Error
	if errors.As(err, &said) && said.Key == "sandbox.not_listed" {
		return i18n.E("web.not_listed", host, strings.Join(w.hosts, ", "))
	}
	return i18n.E("web.unreached", host, reason(ctx, err))
}

// follow judges each redirect as the address that was asked for.
func (w *Web) follow(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	if len(via) > maxRedirects {
		return i18n.E("web.redirects", maxRedirects)
	}
	if _, problem := address(req.URL.String()); problem != "" {
		return i18n.E("web.leads_on")
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return i18n.E("web.downgrade", req.URL.Host)
	}
	return w.filter.Lookup(req.URL.String())
}

// read makes the text of what came.
func (p *page) read(body []byte, contentType string, at *url.URL) error {
	kind, _, _ := mime.ParseMediaType(contentType)
	if kind == "" || kind == "application/octet-stream" {
		contentType = http.DetectContentType(body)
		kind, _, _ = mime.ParseMediaType(contentType)
	}
	switch {
	case kind == "text/html", kind == "application/xhtml+xml":
		return p.html(decoded(body, contentType), at)
	case !readable(kind):
		return i18n.E("web.kind", kind)
	case bytes.IndexByte(body, 0) >= 0 && !utf16(body):
		return i18n.E("web.binary", kind)
	}
	p.text = visible(decoded(body, contentType))
	p.links = addressesIn(p.text)
	return nil
}

// readable reports whether a media type is text.
func readable(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") ||
		slices.Contains([]string{"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript", "application/x-ndjson"}, kind)
}
