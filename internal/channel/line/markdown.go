package line

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"toritsugi/internal/channel"
)

// plainLine is a text of models or strangers on one line.
func plainLine(s string) string { return strings.Join(strings.Fields(channel.Clean(s)), " ") }

// plain is Markdown, as models write it, as text that reads well where nothing is rendered,
// as in LINE. Code and its fences stay as they are. It reads lines and has no tree
// (docs/decisions/055).
func plain(src string) string {
	var out []string
	all := strings.Split(channel.Clean(src), "\n")
	open, blank := "", true
	for i := 0; i < len(all); i++ {
		l := all[i]
		mark := fence(l)
		switch {
		case open != "":
			out = append(out, l)
			if closes(l, open) {
				open = ""
			}
			continue
		case mark != "":
			open = mark
			out = append(out, l)
		case strings.TrimSpace(l) == "":
			if !blank {
				out = append(out, "")
			}
		case isTable(all[i:]):
			rows, n := table(all[i:])
			out = append(out, rows...)
			i += n - 1
		default:
			out = append(out, row(l))
		}
		blank = strings.TrimSpace(l) == ""
	}
	if open != "" {
		out = append(out, open)
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}

// fence is the mark with which a block of code begins, "" for none.
func fence(l string) string {
	bare := strings.TrimLeft(l, " ")
	for _, mark := range []string{"`", "~"} {
		after := strings.TrimLeft(bare, mark)
		if n := len(bare) - len(after); n >= 3 && n <= 20 && !strings.Contains(after, "`") {
			return bare[:n]
		}
	}
	return ""
}

// closes reports whether a line ends the block of code that the mark began.
func closes(l, mark string) bool {
	bare := strings.TrimSpace(l)
	return strings.HasPrefix(bare, mark) && strings.Trim(bare, mark[:1]) == ""
}

// row is a line outside of code.
func row(l string) string {
	bare := strings.TrimLeft(l, " ")
	indent := l[:len(l)-len(bare)]
	if marks := len(bare) - len(strings.TrimLeft(bare, "#")); marks > 0 && marks <= 6 && strings.HasPrefix(bare[marks:], " ") {
		return "■ " + inline(strings.TrimSpace(strings.TrimRight(bare[marks:], "# ")))
	}
	if flat := strings.ReplaceAll(bare, " ", ""); len(flat) >= 3 && strings.IndexByte("-*_", flat[0]) >= 0 && strings.Trim(flat, flat[:1]) == "" {
		return "──────────"
	}
	if len(bare) > 1 && strings.IndexByte("-*+", bare[0]) >= 0 && bare[1] == ' ' {
		item := strings.TrimLeft(bare[2:], " ")
		for box, sign := range map[string]string{"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "} {
			if rest, found := strings.CutPrefix(item, box); found {
				return indent + sign + inline(rest)
			}
		}
		return indent + "• " + inline(item)
	}
	return indent + inline(bare)
}

// maxInline is how long a line is, in bytes, whose marks are taken out: to look for their
// ends takes the square of it.
const maxInline = 8 << 10

// inline is a text without the marks of emphasis and links.
func inline(s string) string {
	if len(s) > maxInline || !strings.ContainsAny(s, "\\`*_~[<") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if n, shown := span(s, i); n > 0 {
			b.WriteString(shown)
			i += n
			continue
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		b.WriteString(s[i : i+n])
		i += n
	}
	return b.String()
}

// span is what begins at i: how long it is, in bytes, and how it is shown; 0 for plain text.
func span(s string, i int) (n int, shown string) {
	rest := s[i:]
	switch c := rest[0]; c {
	case '\\':
		if len(rest) > 1 && strings.IndexByte("\\`*_{}[]()#+-.!~|<>", rest[1]) >= 0 {
			return 2, rest[1:2]
		}
	case '`':
		marks := rest[:len(rest)-len(strings.TrimLeft(rest, "`"))]
		if end := strings.Index(rest[len(marks):], marks); end >= 0 {
			return end + 2*len(marks), rest[:end+2*len(marks)]
		}
		return len(marks), marks
	case '<':
		if end := strings.IndexByte(rest, '>'); end > 0 && (strings.HasPrefix(rest, "<http://") || strings.HasPrefix(rest, "<https://")) {
			return end + 1, rest[1:end]
		}
	case '!', '[':
		return link(rest)
	case '*', '_', '~':
		return emphasis(s, i)
	}
	return 0, ""
}

// link is a link or an image with its address behind it.
func link(s string) (n int, shown string) {
	text, found := strings.CutPrefix(strings.TrimPrefix(s, "!"), "[")
	if !found {
		return 0, ""
	}
	text, after, found := strings.Cut(text, "](")
	if !found || strings.Contains(text, "[") {
		return 0, ""
	}
	depth, end := 1, 0
	for ; end < len(after); end++ {
		if after[end] == '(' {
			depth++
		}
		if after[end] == ')' {
			if depth--; depth == 0 {
				break
			}
		}
	}
	if depth != 0 {
		return 0, ""
	}
	address, _, _ := strings.Cut(strings.TrimSpace(after[:end]), " ")
	n = len(s) - len(after) + end + 1
	switch text = inline(text); {
	case address == "" || text == address:
		return n, text
	case text == "":
		return n, address
	}
	return n, fmt.Sprintf("%s (%s)", text, address)
}

// emphasis is what stands between marks of emphasis at i.
func emphasis(s string, i int) (n int, shown string) {
	for _, mark := range []string{"***", "**", "__", "~~", "*", "_"} {
		within, found := strings.CutPrefix(s[i:], mark)
		if !found || within == "" || within[0] == ' ' || mark[0] == '_' && word(s[:i], false) {
			continue
		}
		for from := 0; ; {
			end := strings.Index(within[from:], mark)
			if end < 0 {
				break
			}
			end += from
			if end > 0 && within[end-1] != ' ' && (mark[0] != '_' || !word(within[end+len(mark):], true)) {
				return end + 2*len(mark), inline(within[:end])
			}
			from = end + 1
		}
	}
	return 0, ""
}

// word reports whether a text begins, or ends, with a letter or digit of words that are
// written apart.
func word(s string, begins bool) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	if begins {
		r, _ = utf8.DecodeRuneInString(s)
	}
	return s != "" && r < 0x3000 && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// isTable reports whether a table begins: a row, and the line below its head.
func isTable(all []string) bool {
	if len(all) < 2 || !strings.Contains(all[0], "|") || !strings.Contains(all[1], "-") {
		return false
	}
	return strings.Contains(all[1], "|") && strings.Trim(all[1], "|:- ") == ""
}

// table is a table row by row, each cell behind the head of its column: no columns stand in
// a line where letters have different widths. n is how many lines it has.
func table(all []string) (rows []string, n int) {
	head := cells(all[0])
	for n = 2; n < len(all) && strings.Contains(all[n], "|") && strings.TrimSpace(all[n]) != ""; n++ {
		var said []string
		for i, c := range cells(all[n]) {
			if i > 0 && i < len(head) && head[i] != "" && c != "" {
				c = head[i] + ": " + c
			}
			if c != "" {
				said = append(said, c)
			}
		}
		rows = append(rows, "• "+strings.Join(said, " / "))
	}
	if len(rows) == 0 {
		rows = []string{strings.Join(head, " / ")}
	}
	return rows, n
}

// cells are the cells of a row.
func cells(l string) (all []string) {
	l = strings.TrimSpace(l)
	l = strings.TrimSuffix(strings.TrimPrefix(l, "|"), "|")
	for _, c := range strings.Split(strings.ReplaceAll(l, `\|`, "\x00"), "|") {
		all = append(all, inline(strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|"))))
	}
	return all
}
