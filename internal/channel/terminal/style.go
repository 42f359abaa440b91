package terminal

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/uax29/v2/graphemes"

	"toritsugi/internal/redact"
)

// style is how a piece of text looks: attributes, and one of the sixteen colours
// that the user's own theme defines.
type style uint16

const (
	bold style = 1 << iota
	faint
	italic
	underline
	reverse

	red    style = 1 << 8
	green  style = 2 << 8
	yellow style = 3 << 8
	cyan   style = 6 << 8

	colours style = 7 << 8
)

var attributes = [...]struct {
	of  style
	sgr string
}{{bold, "1"}, {faint, "2"}, {italic, "3"}, {underline, "4"}, {reverse, "7"}}

// span is a text in one style, without line breaks.
type span struct {
	style style
	text  string
}

// line is one row of the terminal.
type line []span

func plain(text string) line           { return line{{0, text}} }
func styled(s style, text string) line { return line{{s, text}} }

func (l line) width() (n int) {
	for _, s := range l {
		n += ansi.StringWidth(s.text)
	}
	return n
}

// paint is a line with the codes of a terminal, each span closed by itself; no other gets
// through, whoever forgot to clean a text.
func (l line) paint(colour bool) string {
	var b strings.Builder
	for _, s := range l {
		var codes []string
		for _, a := range attributes {
			if s.style&a.of != 0 {
				codes = append(codes, a.sgr)
			}
		}
		if c := s.style & colours; c != 0 && colour {
			codes = append(codes, strconv.Itoa(30+int(c>>8)))
		}
		text := redact.Printable(s.text)
		if len(codes) == 0 || text == "" {
			b.WriteString(text)
			continue
		}
		b.WriteString("\x1b[" + strings.Join(codes, ";") + "m" + text + "\x1b[m")
	}
	return b.String()
}

// cell is one character as people count them, which takes zero, one or two columns.
type cell struct {
	text  string
	width int
	style style
}

func cells(l line) []cell {
	var all []cell
	for _, s := range l {
		for g := graphemes.FromString(s.text); g.Next(); {
			all = append(all, cell{g.Value(), ansi.StringWidth(g.Value()), s.style})
		}
	}
	return all
}

func joined(all []cell) (l line) {
	for _, c := range all {
		if n := len(l); n > 0 && l[n-1].style == c.style {
			l[n-1].text += c.text
			continue
		}
		l = append(l, span{c.style, c.text})
	}
	return l
}

// What Japanese does not begin, and does not end, a line with.
const (
	noStart = "、。，．・：；？！）］｝」』】〕〉》〟ー々ゝゞっゃゅょァィゥェォッャュョぁぃぅぇぉ…‥,.;:!?)]}"
	noEnd   = "（［｛「『【〔〈《〝([{"
)

// mayBreak reports whether a line may begin with b, behind a.
func mayBreak(a, b cell) bool {
	if a.text == " " {
		return b.text != " "
	}
	return (a.width == 2 || b.width == 2) && !strings.Contains(noStart, b.text) && !strings.Contains(noEnd, a.text)
}

// wrap lays a text out in rows of at most width columns, the first behind first and
// the others behind rest. A "\n" within the text begins a new row.
func wrap(text, first, rest line, width int) (rows []line) {
	all := cells(text)
	lead := first
	emit := func(row []cell) {
		for len(row) > 0 && row[len(row)-1].text == " " {
			row = row[:len(row)-1]
		}
		rows = append(rows, append(append(line{}, lead...), joined(row)...))
		lead = rest
	}
	for start := 0; ; {
		room := max(width-lead.width(), 2)
		end, used, at := start, 0, -1
		for end < len(all) && all[end].text != "\n" && used+all[end].width <= room {
			if end > start && mayBreak(all[end-1], all[end]) {
				at = end
			}
			used += all[end].width
			end++
		}
		switch {
		case end == len(all):
			emit(all[start:])
			return rows
		case all[end].text == "\n":
			emit(all[start:end])
			start = end + 1
			continue
		case all[end].text == " ":
			at = end
		case end > start && mayBreak(all[end-1], all[end]):
			at = end
		case at < 0:
			at = max(end, start+1)
		}
		emit(all[start:at])
		for start = at; start < len(all) && all[start].text == " "; {
			start++
		}
	}
}

// fit shortens a line to width columns.
func fit(l line, width int) line {
	if l.width() <= width {
		return l
	}
	all, used := cells(l), 0
	for i, c := range all {
		if used += c.width; used > width-2 {
			return append(joined(all[:i]), span{0, ".."})
		}
	}
	return l
}
