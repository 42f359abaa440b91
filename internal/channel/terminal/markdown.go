package terminal

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"toritsugi/internal/redact"
)

// clean is a text of models or strangers without what steers a terminal, with spaces
// for tabs.
func clean(s string) string {
	return strings.ReplaceAll(redact.Printable(strings.ToValidUTF8(s, "�")), "\t", "    ")
}

// markdown lays out Markdown in rows of at most width columns.
func markdown(src string, width int) []line {
	// goldmark/extension would read tables as well; what it does at import costs every
	// verb of the program a millisecond (docs/decisions/055).
	p := parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...), parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(), util.Prioritized(tables{}, 200))...))
	page := &page{src: []byte(clean(src)), width: width}
	page.children(p.Parse(text.NewReader(page.src)), nil, nil, true)
	return page.rows
}

// page is Markdown being laid out.
type page struct {
	src   []byte
	width int
	rows  []line
}

// children lays out the blocks within n, the first row behind first and the others
// behind rest; apart puts an empty row between two.
func (p *page) children(n ast.Node, first, rest line, apart bool) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c != n.FirstChild() {
			first = rest
			if apart {
				p.rows = append(p.rows, rest)
			}
		}
		p.block(c, first, rest)
	}
}

func (p *page) block(n ast.Node, first, rest line) {
	switch n := n.(type) {
	case *ast.Heading:
		p.text(p.inline(n, bold|cyan), first, rest)
	case *ast.Blockquote:
		bar := span{faint, "│ "}
		p.children(n, append(append(line{}, first...), bar), append(append(line{}, rest...), bar), true)
	case *ast.List:
		p.list(n, first, rest)
	case *ast.FencedCodeBlock:
		p.code(n, string(n.Language(p.src)), first, rest)
	case *ast.CodeBlock, *ast.HTMLBlock:
		p.code(n, "", first, rest)
	case *ast.ThematicBreak:
		p.rows = append(p.rows, append(append(line{}, first...), span{faint, strings.Repeat("─", max(min(p.width-first.width(), 40), 1))}))
	case *extast.Table:
		p.table(n, first, rest)
	default: // paragraphs, and text of tight lists
		p.text(p.inline(n, 0), first, rest)
	}
}

func (p *page) text(l, first, rest line) {
	p.rows = append(p.rows, wrap(l, first, rest, p.width)...)
}

func (p *page) list(n *ast.List, first, rest line) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + string(n.Marker) + " "
			number++
		}
		if item != n.FirstChild() {
			first = rest
			if !n.IsTight {
				p.rows = append(p.rows, rest)
			}
		}
		if !item.HasChildren() {
			p.rows = append(p.rows, append(append(line{}, first...), span{faint, mark}))
			continue
		}
		p.children(item, append(append(line{}, first...), span{faint, mark}), append(append(line{}, rest...), span{0, strings.Repeat(" ", len([]rune(mark)))}), !n.IsTight)
	}
}

// code lays out lines that are not wrapped between words.
func (p *page) code(n ast.Node, language string, first, rest line) {
	var raw strings.Builder
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		raw.Write(seg.Value(p.src))
	}
	text := strings.TrimRight(raw.String(), "\n")
	if h, ok := n.(*ast.HTMLBlock); ok && h.HasClosure() {
		text += "\n" + strings.TrimRight(string(h.ClosureLine.Value(p.src)), "\n")
	}
	var rows []line
	if language == "diff" || language == "patch" {
		rows = diffLines(text)
	} else {
		for l := range strings.SplitSeq(text, "\n") {
			rows = append(rows, styled(green, l))
		}
	}
	lead := append(append(line{}, first...), span{0, "  "})
	for _, l := range rows {
		p.rows = append(p.rows, hard(l, lead, append(append(line{}, rest...), span{0, "  "}), p.width)...)
		lead = append(append(line{}, rest...), span{0, "  "})
	}
}

// hard is wrap for text whose spaces count.
func hard(l, first, rest line, width int) (rows []line) {
	lead, all := first, cells(l)
	for {
		room, used, n := max(width-lead.width(), 2), 0, 0
		for n < len(all) && used+all[n].width <= room {
			used += all[n].width
			n++
		}
		rows = append(rows, append(append(line{}, lead...), joined(all[:n])...))
		if all, lead = all[n:], rest; len(all) == 0 {
			return rows
		}
	}
}

// inline is the text within a block.
func (p *page) inline(n ast.Node, s style) (l line) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			l = append(l, span{s, string(util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(c.Segment.Value(p.src)))))})
			if c.SoftLineBreak() || c.HardLineBreak() { // what was written on lines of its own stays there
				l = append(l, span{s, "\n"})
			}
		case *ast.String:
			l = append(l, span{s, string(c.Value)})
		case *ast.CodeSpan:
			for _, t := range p.inline(c, s|green) {
				l = append(l, span{t.style, strings.ReplaceAll(t.text, "\n", " ")})
			}
		case *ast.Emphasis:
			how := italic
			if c.Level > 1 {
				how = bold
			}
			l = append(l, p.inline(c, s|how)...)
		case *ast.Link:
			l = append(append(l, p.inline(c, s|underline)...), p.target(c, c.Destination, s)...)
		case *ast.Image:
			l = append(append(l, p.inline(c, s|underline)...), p.target(c, c.Destination, s)...)
		case *ast.AutoLink:
			l = append(l, span{s | underline, string(c.URL(p.src))})
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				seg := c.Segments.At(i)
				l = append(l, span{s, string(seg.Value(p.src))})
			}
		default:
			l = append(l, p.inline(c, s)...)
		}
	}
	// What an entity or an escape stood for may steer as well.
	for i := range l {
		l[i].text = clean(l[i].text)
	}
	return l
}

// target is where a link leads, unless that is what it says: a reader sees it
// before he opens it.
func (p *page) target(n ast.Node, to []byte, s style) line {
	var said strings.Builder
	for _, t := range p.inline(n, 0) {
		said.WriteString(t.text)
	}
	if said.String() == string(to) || len(to) == 0 {
		return nil
	}
	return line{{s | faint, " (" + string(to) + ")"}}
}

// tables turns paragraphs that hold a table of GitHub's Markdown into one.
type tables struct{}

// Transform implements parser.ParagraphTransformer.
func (tables) Transform(n *ast.Paragraph, r text.Reader, _ parser.Context) {
	lines, src := n.Lines(), r.Source()
	for i := 1; i < lines.Len(); i++ {
		rule, head := lines.At(i), lines.At(i-1)
		columns := row(src, rule)
		if len(columns) == 0 || len(columns) != len(row(src, head)) || !bytes.ContainsRune(head.Value(src), '|') || !isRule(src, columns) {
			continue
		}
		table := extast.NewTable()
		for j := i - 1; j < lines.Len(); j++ {
			if j == i {
				continue
			}
			tr := extast.NewTableRow(nil)
			for k, seg := range row(src, lines.At(j)) {
				if k == len(columns) {
					break
				}
				c := extast.NewTableCell()
				c.Lines().Append(seg)
				tr.AppendChild(tr, c)
			}
			table.AppendChild(table, tr)
		}
		n.Parent().InsertAfter(n.Parent(), n, table)
		if i == 1 {
			n.Parent().RemoveChild(n.Parent(), n)
			return
		}
		lines.SetSliced(0, i-1)
		return
	}
}

// row cuts a row of a table into its cells.
func row(src []byte, seg text.Segment) (all []text.Segment) {
	seg = seg.TrimLeftSpace(src)
	seg = seg.TrimRightSpace(src)
	start, stop := seg.Start, seg.Stop
	if start < stop && src[start] == '|' {
		start++
	}
	for i, from := start, start; i <= stop; i++ {
		switch {
		case i < stop && src[i] == '\\':
			i++
		case i == stop && from == stop && len(all) > 0: // a row may end with a bar
		case i == stop || src[i] == '|':
			c := text.NewSegment(from, i)
			c = c.TrimLeftSpace(src)
			all = append(all, c.TrimRightSpace(src))
			from = i + 1
		}
	}
	return all
}

func isRule(src []byte, columns []text.Segment) bool {
	for _, c := range columns {
		s := strings.TrimSuffix(strings.TrimPrefix(string(c.Value(src)), ":"), ":")
		if s == "" || strings.Trim(s, "-") != "" {
			return false
		}
	}
	return true
}

// table lays out a table; where it is too wide its widest columns are wrapped.
func (p *page) table(n *extast.Table, first, rest line) {
	var rows [][]line
	var widths []int
	for tr := n.FirstChild(); tr != nil; tr = tr.NextSibling() {
		how := style(0)
		if tr == n.FirstChild() {
			how = bold
		}
		var r []line
		for c := tr.FirstChild(); c != nil; c = c.NextSibling() {
			r = append(r, p.inline(c, how))
			if len(r) > len(widths) {
				widths = append(widths, 1)
			}
			widths[len(r)-1] = max(widths[len(r)-1], r[len(r)-1].width())
		}
		rows = append(rows, r)
	}
	const gap = " │ "
	for room := p.width - rest.width() - (len(widths)-1)*3; ; {
		sum, widest := 0, 0
		for i, w := range widths {
			if sum += w; w > widths[widest] {
				widest = i
			}
		}
		if sum <= room || widths[widest] <= 4 {
			break
		}
		widths[widest] -= min(sum-room, max(widths[widest]/8, 1))
	}
	for i, r := range rows {
		var wrapped [][]line
		tall := 1
		for j, w := range widths {
			var c []line
			if j < len(r) {
				c = wrap(r[j], nil, nil, w)
			}
			wrapped = append(wrapped, c)
			tall = max(tall, len(c))
		}
		for k := range tall {
			out := append(line{}, first...)
			first = rest
			for j, w := range widths {
				var c line
				if k < len(wrapped[j]) {
					c = wrapped[j][k]
				}
				out = append(out, c...)
				if j < len(widths)-1 {
					out = append(out, span{0, strings.Repeat(" ", max(w-c.width(), 0))}, span{faint, gap})
				}
			}
			p.rows = append(p.rows, fit(out, p.width))
		}
		if i == 0 {
			out := append(line{}, rest...)
			for j, w := range widths {
				if j > 0 {
					out = append(out, span{faint, "─┼─"})
				}
				out = append(out, span{faint, strings.Repeat("─", w)})
			}
			p.rows = append(p.rows, fit(out, p.width))
		}
	}
}

// settled is how much of Markdown that is still being written, in bytes, will look
// the same whatever follows: blocks before the last, up to a place where nothing
// goes on.
func settled(src string) (n int) {
	fence, blank, at := "", false, 0
	for l := range strings.SplitAfterSeq(src, "\n") {
		bare := strings.TrimSpace(l)
		switch {
		case fence != "":
			if strings.HasPrefix(bare, fence) && strings.Trim(bare, fence[:1]) == "" {
				fence = ""
			}
		case bare == "":
		default:
			if blank && l[0] != ' ' && l[0] != '\t' && !strings.ContainsAny(l[:1], "-*+>|0123456789") {
				n = at
			}
			if marks := bare[:len(bare)-len(strings.TrimLeft(bare, bare[:1]))]; len(marks) >= 3 && (bare[0] == '`' || bare[0] == '~') {
				fence = marks
			}
		}
		blank = bare == "" && fence == ""
		at += len(l)
	}
	return n
}
