package web

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"toritsugi/internal/disk/disktest"
)

// Pages are read in whatever they are written in, also where they do not say, or say something else.
func TestCharacterSets(t *testing.T) {
	t.Parallel()
	const text = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
	in := func(e encoding.Encoding, s string) string {
		out, err := e.NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	html := func(head string) string {
		return "<html><head>" + head + "</head><body><p>" + text + "</p></body></html>"
	}
	late := strings.Repeat("<!-- "+strings.Repeat("x", 90)+" -->", 20) // behind what encodings are guessed from
	for name, c := range map[string]struct{ kind, body, want string }{
		"by header":             {"text/html; charset=Shift_JIS", in(japanese.ShiftJIS, html("")), text},
		"by meta":               {"text/html", in(japanese.EUCJP, html(`<meta charset="euc-jp">`)), text},
		"by http-equiv":         {"text/html", in(japanese.ShiftJIS, html(`<meta http-equiv="Content-Type" content="text/html; charset=x-sjis">`)), text},
		"ISO-2022-JP":           {"text/html; charset=iso-2022-jp", in(japanese.ISO2022JP, html("")), text},
		"undeclared Shift_JIS":  {"text/html", in(japanese.ShiftJIS, html("")), text},
		"undeclared EUC-JP":     {"text/plain", in(japanese.EUCJP, text), text},
		"undeclared, far below": {"text/html", html(late), text},
		"wrong header":          {"text/html; charset=ISO-8859-1", html(""), text},
		"wrong meta":            {"text/html", in(japanese.ShiftJIS, html(`<meta charset="utf-8">`)), text},
		"UTF-16":                {"text/plain", in(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), text), text},
		"BOM":                   {"text/plain", "\uFEFF" + text, text},
		"Latin":                 {"text/plain; charset=iso-8859-1", in(charmap.ISO8859_1, "Ça déjà vu, señor"), "Ça déjà vu, señor"},
		"an unknown one":        {"text/plain; charset=klingon", text, text},
		"none":                  {"text/plain", "a\xff\xfe\xfdb", ""},
	} {
		address, host := pages(t, map[string]http.HandlerFunc{"/": says(c.kind, c.body)})
		got := fetched(t, opened(t, "", []string{host}, Leg{}), address+"/")
		if c.want != "" && got != c.want || !utf8.ValidString(got) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What a page is about is told from what leads about its site.
func TestMainParts(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("What it is about. ", 20)
	for source, want := range map[string]string{
		"<div>menu</div><main>" + body + "</main><div>more</div>":                                       body,
		"<div>menu</div><div role=main>" + body + "</div>":                                              body,
		"<div>menu</div><article>" + body + "</article>":                                                body,
		"<nav>menu</nav><p>" + body + "<aside>ad</aside><footer>c</footer>":                             body,
		"<main>short</main><p>" + body:                                                                  "short\n\n" + body,
		"<p>a<span>b</span> <i>c</i>\n d<br>e":                                                          "ab c d\ne",
		"<p><a href='//b.example/x'>\n b </a>, <a href='javascript:x'>c</a> <a href=#x>d":               "[b](https://b.example/x), c d",
		"<base href='https://c.example/d/'><a href=e>f</a>":                                             "[f](https://c.example/d/e)",
		"<a href='/" + strings.Repeat("x", maxLink) + "'>far</a>":                                       "far",
		"<p>x\u200b\u202ey\U000e0041 &#8203;z":                                                          "xy z",
		"<p>write <code>&lt;!--</code> and &lt;!-- stays":                                               "write `<!--` and <!-- stays",
		"<p aria-hidden=true>a</p><p style='opacity:0'>b</p><p style='font-size:0px'>c<p>d":             "d",
		"<select><option>a</select><textarea>b</textarea><noscript>c</noscript><template>d</template>e": "e",
	} {
		p := &page{}
		if err := p.html(source, &url.URL{Scheme: "https", Host: "a.example", Path: "/"}); err != nil || p.text != strings.TrimSpace(want) {
			t.Errorf("%.100s: %q, %v", source, p.text, err)
		}
	}
}

// A body that never ends is given up after a while.
func TestSlowPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, done := opened(t, "", []string{"slow.example"}, Leg{}), make(chan struct{})
		u.w.reads.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				defer close(done)
				_, _ = io.CopyN(io.Discard, there, 16)
				go func() { _, _ = io.Copy(io.Discard, there) }()
				_, err := io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
				for err == nil {
					time.Sleep(time.Second)
					_, err = io.WriteString(there, "x")
				}
			}()
			return here, nil
		}
		began := time.Now()
		raw, _ := json.Marshal(map[string]string{"url": "http://slow.example/"})
		res, err := fetchTool(u).Call(t.Context(), raw)
		if err != nil || !res.IsError || !strings.Contains(res.Text, "longer than 20 seconds") || time.Since(began) != maxTime {
			t.Errorf("%v after %v, %v", res.Text, time.Since(began), err)
		}
		<-done
	})
}

// bombs are pages that are small to send and dear to read.
func bombs() []string {
	all := []string{"<table><tr><td colspan=100000000 rowspan=65000>x"}
	for _, s := range []string{"<div>", "<b><i>", "<p>x", "<a href=x>y", "<ul><li>x", "<table><tr><td>x", "<tr><td>x", "a=1 ", "<", "&amp;", "&", "<!--x-->", "<br>", "`", "<code>`x</code>", "<h1>x</h1>", "<em></em>",
		"<template>", "<svg>", "<select><option>x", "</p>", "<nobr>x", "<b><p>", "</b></i>", "<pre>", "\u200b", "<p style='display:none'>", "<ol>", "<base href=x>", "<main>", "<title>", "\xff", "漢", "\x1b$B"} {
		all = append(all, strings.Repeat(s, 20_000/len(s)), strings.Repeat("<blockquote>", 100)+strings.Repeat(s, 20_000/len(s)), "<table>"+strings.Repeat(s, 20_000/len(s)), "<div "+strings.Repeat(s, 20_000/len(s)))
	}
	return all
}

func TestBombs(t *testing.T) { // not beside others: what is allocated is counted
	for _, s := range bombs() {
		check := disktest.Bounded(t, len(s))
		reads(t, s, "text/html")
		check()
	}
}

// reads reads a page and holds it against what is promised of it.
func reads(t *testing.T, body, kind string) {
	t.Helper()
	at := &url.URL{Scheme: "https", Host: "a.example", Path: "/"}
	p := &page{at: at.String()}
	if err := p.read([]byte(body), kind, at); err != nil {
		return
	}
	if !utf8.ValidString(p.text) || strings.ContainsAny(p.text, "\x00\x1b\u200b\u202e\r") {
		t.Errorf("%.200q", p.text)
	}
	for _, l := range p.links {
		if u, err := url.Parse(l); err == nil && u.User != nil && strings.Contains(kind, "html") {
			t.Errorf("a login in %q", l)
		}
	}
}

func FuzzPage(f *testing.F) {
	for _, kind := range []string{"text/html", "text/html; charset=shift_jis", "text/plain", "", "application/json; charset=\"utf-16\""} {
		f.Add("<title>t</title><main><h1>x</h1><a href=y>z</a><ul><li><pre>a", kind)
		f.Add("\x82\xa0\x1b$B", kind)
	}
	f.Fuzz(func(t *testing.T, body, kind string) {
		defer disktest.Bounded(t, len(body)+len(kind))()
		reads(t, body, kind)
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"results":[{"url":"https://a.example","title":"t","content":"c","publishedDate":null}],"answers":["a",{"answer":"b","url":"c"}],"corrections":["d"],"unresponsive_engines":[["e","f"]]}`, 8)
	f.Add(`{"results":[{"url":"http://","title":null},{}],"answers":[1,null,[]]}`, 0)
	f.Fuzz(func(t *testing.T, body string, limit int) {
		defer disktest.Bounded(t, len(body))()
		a, err := readAnswer([]byte(body), "x")
		if err != nil {
			return
		}
		u := (&Web{}).Open(Leg{})
		res := u.shown(a, limit)
		if len(res.Text) > 30_000 || !utf8.ValidString(res.Text) || strings.Count(res.Text, "</untrusted_web>") > 1 {
			t.Errorf("%d bytes: %.300q", len(res.Text), res.Text)
		}
		for _, s := range u.Sources() {
			if !strings.HasPrefix(strings.ToLower(s.URL), "http") {
				t.Error(s)
			}
		}
	})
}
