package web

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"

	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
)

// utf16 reports whether a text begins with the byte order mark of UTF-16, in which NULs are no sign of
// a binary.
func utf16(body []byte) bool {
	return bytes.HasPrefix(body, []byte{0xFE, 0xFF}) || bytes.HasPrefix(body, []byte{0xFF, 0xFE})
}

// decoded is a text in UTF-8, whatever it says that it is written in: what is UTF-8 is that, then counts what it
// declares, and where it declares nothing, or what it is not written in, a Japanese encoding that it can be read in.
func decoded(body []byte, contentType string) string {
	found, name, certain := charset.DetermineEncoding(body, contentType)
	if utf8.Valid(body) && !utf16(body) && name != "iso-2022-jp" {
		return strings.TrimPrefix(string(body), "\uFEFF")
	}
	// A body that was cut may end within a character.
	whole := body[:max(0, len(body)-4)]
	tries := []encoding.Encoding{japanese.ShiftJIS, japanese.EUCJP}
	if certain {
		tries = append([]encoding.Encoding{found}, tries...)
	}
	for _, e := range tries {
		if text, err := e.NewDecoder().Bytes(whole); err == nil && !bytes.ContainsRune(text, utf8.RuneError) {
			return decode(e, body)
		}
	}
	return decode(found, body)
}

func decode(e encoding.Encoding, body []byte) string {
	text, err := e.NewDecoder().Bytes(body)
	if err != nil {
		text = body // the encodings of x/text put a mark in place of what they cannot read
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(text), "\uFFFD"), "\uFEFF")
}

// html makes the text of a page of HTML: Markdown of what a reader would see of its main part.
func (p *page) html(source string, at *url.URL) error {
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return i18n.E("web.html", err)
	}
	if t := first(doc, func(n *html.Node) bool {
		return n.DataAtom == atom.Title && n.Parent != nil && n.Parent.DataAtom == atom.Head
	}); t != nil {
		p.title = line(plain(t), maxTitle)
	}
	if b := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Base && attribute(n, "href") != "" }); b != nil {
		if base, err := at.Parse(attribute(b, "href")); err == nil {
			at = base
		}
	}
	for _, root := range roots(doc) {
		r := &renderer{at: at}
		r.children(root)
		p.text, p.links = visible(r.text()), r.links
		if len(p.text) >= leastMain {
			break
		}
	}
	if p.text == "" {
		return i18n.E("web.no_text")
	}
	return nil
}

// leastMain is how much text makes a part of a page its main one, in bytes.
const leastMain = 250

// roots are the elements that may hold what a page is about, the likeliest first.
func roots(doc *html.Node) (all []*html.Node) {
	main := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Main || attribute(n, "role") == "main" })
	if main != nil {
		all = append(all, main)
	} else if a := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Article }); a != nil {
		all = append(all, a)
	}
	return append(all, doc)
}

// first is the first element of a tree for which f holds, nil for none. The depth of a tree is bounded by
// html.Parse.
func first(n *html.Node, f func(*html.Node) bool) *html.Node {
	if n.Type == html.ElementNode && f(n) {
		return n
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if found := first(c, f); found != nil {
			return found
		}
	}
	return nil
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

// plain is the text below a node.
func plain(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// Elements that no reader sees as text, or that lead about a site.
var unseen = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Iframe: true, atom.Object: true, atom.Svg: true,
	atom.Canvas: true, atom.Audio: true, atom.Video: true, atom.Button: true, atom.Input: true, atom.Select: true, atom.Textarea: true, atom.Nav: true, atom.Dialog: true, atom.Head: true,
	atom.Aside: true, atom.Footer: true}

// Elements that stand on lines of their own.
var blocks = map[atom.Atom]bool{atom.P: true, atom.Div: true, atom.Section: true, atom.Article: true, atom.Main: true, atom.Header: true, atom.Blockquote: true, atom.Pre: true,
	atom.Ul: true, atom.Ol: true, atom.Dl: true, atom.Dt: true, atom.Dd: true, atom.Table: true, atom.Figure: true, atom.Figcaption: true, atom.Details: true, atom.Summary: true,
	atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true, atom.H5: true, atom.H6: true, atom.Form: true, atom.Fieldset: true, atom.Address: true, atom.Hr: true}

var hiddenStyle = lazyregexp.New(`(?i)display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0\s*(?:;|$)`)

// shown reports whether a reader of the page sees an element.
func shown(n *html.Node) bool {
	if unseen[n.DataAtom] || attribute(n, "aria-hidden") == "true" {
		return false
	}
	for _, a := range n.Attr {
		if a.Key == "hidden" || a.Key == "style" && hiddenStyle().MatchString(a.Val) {
			return false
		}
	}
	return true
}

// renderer writes Markdown of a tree.
type renderer struct {
	at    *url.URL
	links []string

	b     strings.Builder
	lines int   // that are owed before the next text
	space bool  // is owed before the next text
	pre   int   // within how many pre elements
	lists []int // how many items each list has so far, the outermost first
}

func (r *renderer) text() string { return strings.TrimSpace(r.b.String()) }

// block begins a new line, after an empty one where n is 2.
func (r *renderer) block(n int) {
	r.lines, r.space = max(r.lines, n), false
}

// write adds text, behind the lines or the space that are owed.
func (r *renderer) write(s string) {
	if s == "" {
		return
	}
	if r.b.Len() > 0 {
		for ; r.lines > 0; r.lines-- {
			r.b.WriteByte('\n')
		}
		if r.space {
			r.b.WriteByte(' ')
		}
	}
	r.lines, r.space = 0, false
	r.b.WriteString(s)
}

func (r *renderer) children(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		r.node(c)
	}
}

func (r *renderer) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		r.words(n.Data)
	case html.ElementNode:
		if shown(n) {
			r.element(n)
		}
	case html.DocumentNode:
		r.children(n)
	case html.ErrorNode, html.CommentNode, html.DoctypeNode, html.RawNode:
	}
}

// words adds text, whose blanks mean nothing but within pre.
func (r *renderer) words(s string) {
	if r.pre > 0 {
		r.write(s)
		return
	}
	for i, w := range strings.Fields(s) {
		if i > 0 || strings.TrimLeft(s, " \t\r\n\f") != s {
			r.space = r.space || r.lines == 0
		}
		r.write(w)
	}
	if strings.TrimRight(s, " \t\r\n\f") != s {
		r.space = r.lines == 0
	}
}

// maxIndent is how deep lists are shown.
const maxIndent = 6

func (r *renderer) element(n *html.Node) {
	switch n.DataAtom {
	case atom.Br:
		r.block(1)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		r.block(2)
		r.write(strings.Repeat("#", int(n.Data[1]-'0')))
		r.space = true
		r.children(n)
		r.block(2)
	case atom.Ul, atom.Ol:
		r.block(1)
		r.lists = append(r.lists, 0)
		r.children(n)
		r.lists = r.lists[:len(r.lists)-1]
		r.block(2)
	case atom.Li:
		r.item(n)
	case atom.Pre:
		r.block(2)
		r.write("```\n")
		r.pre++
		r.children(n)
		r.pre--
		r.block(1)
		r.write("```")
		r.block(2)
	case atom.Tr:
		r.block(1)
		r.children(n)
		r.block(1)
	case atom.Td, atom.Th:
		if r.lines == 0 {
			r.write(" |")
			r.space = true
		}
		r.children(n)
	case atom.A:
		r.link(n)
	case atom.Code:
		r.code(n)
	default:
		if blocks[n.DataAtom] {
			r.block(2)
			defer r.block(2)
		}
		r.children(n)
	}
}

// item is one of a list, with its number where the list has numbers.
func (r *renderer) item(n *html.Node) {
	r.block(1)
	mark := "-"
	if depth := len(r.lists); depth > 0 {
		r.lists[depth-1]++
		if n.Parent != nil && n.Parent.DataAtom == atom.Ol {
			mark = strconv.Itoa(r.lists[depth-1]) + "."
		}
	}
	r.write(strings.Repeat("  ", min(max(0, len(r.lists)-1), maxIndent)) + mark)
	r.space = true
	r.children(n)
	r.block(1)
}

// code is a piece of code within a line.
func (r *renderer) code(n *html.Node) {
	text := strings.Join(strings.Fields(plain(n)), " ")
	if r.pre > 0 || text == "" || strings.ContainsRune(text, '`') {
		r.children(n)
		return
	}
	r.write("`" + text + "`")
}

// maxLink is the longest address that is shown, in bytes: those that are longer serve to watch readers.
const maxLink = 300

// link is one with its address, which may be read next.
func (r *renderer) link(n *html.Node) {
	href := attribute(n, "href")
	u, err := r.at.Parse(strings.TrimSpace(href))
	text := line(plain(n), maxTitle)
	if err != nil || text == "" || r.pre > 0 || strings.HasPrefix(href, "#") || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || len(u.String()) > maxLink {
		r.children(n)
		return
	}
	u.Fragment = ""
	r.write("[" + text + "](" + u.String() + ")")
	if len(r.links) < maxNamed {
		r.links = append(r.links, u.String())
	}
}
