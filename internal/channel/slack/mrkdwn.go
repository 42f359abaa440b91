package slack

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"toritsugi/internal/channel"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/redact"
)

// clean is a text of models or strangers without what hides or turns it.
func clean(s string) string {
	return redact.Printable(s)
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Escape writes a text so that Slack shows it as it is: nobody is called by it.
func Escape(s string) string { return escapes.Replace(s) }

var (
	fenceLine = lazyregexp.New("^ {0,3}(```+|~~~+)([^`]*)$")
	headLine  = lazyregexp.New(`^ {0,3}#{1,6}[ \t]+(.*?)[ \t#]*$`)
	ruleLine  = lazyregexp.New(`^ {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$`)
	itemLine  = lazyregexp.New(`^([ \t]*)[-*+][ \t]+(.*)$`)
	quoteLine = lazyregexp.New(`^ {0,3}>[ \t]?(.*)$`)
	tableRule = lazyregexp.New(`^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
)

// mrkdwn writes Markdown, as models write it, in the markup of Slack, line by line. It is
// read by rules of ours for the reasons of docs/decisions/055.
func mrkdwn(src string) string {
	lines, out := strings.Split(clean(src), "\n"), []string(nil)
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		if m := fenceLine().FindStringSubmatch(l); m != nil {
			n := fenced(lines[i:], m[1])
			out = append(out, block(lines[i+1:min(i+n, len(lines))])...)
			i += n
			continue
		}
		if i+1 < len(lines) && strings.Contains(l, "|") && tableRule().MatchString(lines[i+1]) && strings.Contains(lines[i+1], "|") {
			n := i + 2
			for n < len(lines) && strings.Contains(lines[n], "|") {
				n++
			}
			out = append(out, block(table(append([]string{l}, lines[i+2:n]...)))...)
			i = n - 1
			continue
		}
		out = append(out, row(l))
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}

// fenced is how many lines after the first a fenced block has, its last fence included.
func fenced(lines []string, mark string) int {
	for n, l := range lines[1:] {
		if bare := strings.TrimSpace(l); strings.HasPrefix(bare, mark) && strings.Trim(bare, mark[:1]) == "" {
			return n + 1
		}
	}
	return len(lines)
}

// fence is how Slack marks a block of code.
const fence = "```"

// block is a block of code. A mark within it would end it: it is taken apart by a space
// that is not seen.
func block(lines []string) []string {
	out := []string{fence}
	for _, l := range lines {
		if strings.Contains(l, fence) {
			l = strings.ReplaceAll(l, "``", "`\u200b`")
		}
		out = append(out, Escape(l))
	}
	return append(out, fence)
}

// row is a line that is no block.
func row(l string) string {
	if m := headLine().FindStringSubmatch(l); m != nil {
		return "*" + strings.ReplaceAll(inline(m[1]), "*", "") + "*"
	}
	if ruleLine().MatchString(l) {
		return "———"
	}
	if m := itemLine().FindStringSubmatch(l); m != nil {
		return m[1] + "• " + inline(m[2])
	}
	if m := quoteLine().FindStringSubmatch(l); m != nil {
		return "> " + inline(m[1])
	}
	return inline(l)
}

// table is a table as text in columns.
func table(lines []string) []string {
	var rows [][]string
	var widths []int
	for _, l := range lines {
		cells := strings.Split(strings.ReplaceAll(strings.Trim(strings.TrimSpace(l), "|"), `\|`, "\x00"), "|")
		for i, c := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|"))
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cells[i]))
		}
		rows = append(rows, cells)
	}
	var out []string
	for n, cells := range rows {
		var b strings.Builder
		for i, c := range cells {
			b.WriteString(c + strings.Repeat(" ", widths[i]-ansi.StringWidth(c)+2))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
		if n == 0 {
			total := 2 * (len(widths) - 1)
			for _, w := range widths {
				total += w
			}
			out = append(out, strings.Repeat("-", min(total, 120)))
		}
	}
	return out
}

// spans are the marks within a line, the first that matches at a place counts. Emphasis has
// no blank within its edge, and underscores stand at the edge of words.
var spans = []struct {
	re   func() *regexp.Regexp
	mark string // of Slack; "" is code or a link
}{
	{lazyregexp.New("^`+"), ""},
	{lazyregexp.New(`^!?\[([^\]\n]*)\]\(<?([^()\s<>]+(?:\([^()\s]*\)[^()\s<>]*)*)>?(?:[ \t]+"[^"]*")?\)`), ""},
	{lazyregexp.New(`^<((?:https?://|mailto:)[^\s<>|]+)>`), ""},
	{lazyregexp.New(`^\*\*\*([^\s*](?:[^*]*[^\s*])?)\*\*\*`), "*_"},
	{lazyregexp.New(`^\*\*([^\s*](?:.*?[^\s])?)\*\*`), "*"},
	{lazyregexp.New(`^__([^\s_](?:.*?[^\s])?)__`), "*"},
	{lazyregexp.New(`^~~([^\s~](?:.*?[^\s])?)~~`), "~"},
	{lazyregexp.New(`^\*([^\s*](?:[^*]*[^\s*])?)\*`), "_"},
	{lazyregexp.New(`^_([^\s_](?:[^_]*[^\s_])?)_`), "_"},
}

// bare is an address that stands for itself; Slack makes a link of it.
var bare = lazyregexp.New(`^https?://[^\s<>()\[\]"|、。「」（）` + "`]+")

// maxInline is how long a line is, in bytes, whose marks are read: to look for their ends
// takes the square of it.
const maxInline = 8 << 10

// inline is the text of a line.
func inline(s string) string {
	if len(s) > maxInline {
		return Escape(strings.ReplaceAll(s, "``", "`\u200b`"))
	}
	var out strings.Builder
	last := func() rune { r, _ := utf8.DecodeLastRuneInString(out.String()); return r }
	apart := func(next string) { // three backquotes would begin a block of code wherever they stand
		if next[0] == '`' && last() == '`' {
			out.WriteString("\u200b")
		}
	}
	for s != "" {
		switch s[0] {
		case '\\':
			if len(s) > 1 && s[1] < utf8.RuneSelf && unicode.IsPunct(rune(s[1])) || len(s) > 1 && strings.IndexByte("`|~<>", s[1]) >= 0 {
				apart(s[1:])
				out.WriteString(Escape(s[1:2]))
				s = s[2:]
				continue
			}
		case 'h':
			if address := bare().FindString(s); address != "" && !word(last()) {
				out.WriteString(Escape(address))
				s = s[len(address):]
				continue
			}
		case '`', '!', '[', '<', '*', '_', '~':
			if text, n := span(s, last()); n > 0 {
				apart(text)
				out.WriteString(text)
				s = s[n:]
				continue
			}
		}
		apart(s)
		_, n := utf8.DecodeRuneInString(s)
		out.WriteString(Escape(s[:n]))
		s = s[n:]
	}
	return out.String()
}

// span is what begins s in Slack's markup, and how many bytes of s it is; 0 for nothing.
func span(s string, before rune) (string, int) {
	for _, k := range spans {
		m := k.re().FindStringSubmatch(s)
		switch {
		case m == nil:
			continue
		case k.mark != "":
			after, _ := utf8.DecodeRuneInString(s[len(m[0]):])
			if s[0] == '_' && (word(before) || word(after)) {
				return "", 0
			}
			back := reversed(k.mark)
			return edge(before) + k.mark + inline(m[1]) + back + edge(after), len(m[0])
		case s[0] == '`':
			end := strings.Index(s[len(m[0]):], m[0])
			if end <= 0 {
				return "", 0
			}
			code := strings.TrimSpace(s[len(m[0]) : len(m[0])+end])
			if code == "" {
				return "", 0
			}
			return "`" + Escape(strings.ReplaceAll(code, "`", "ˋ")) + "`", end + 2*len(m[0])
		case s[0] == '<':
			return link("", m[1]), len(m[0])
		}
		return link(m[1], m[2]), len(m[0])
	}
	return "", 0
}

var anywhere = lazyregexp.New(`^(?:https?://|mailto:)`)

// link is a link where Slack can follow it, else its text.
func link(text, address string) string {
	if !anywhere().MatchString(address) {
		address = strings.ReplaceAll(address, "``", "`\u200b`")
		if text == "" || text == address {
			return Escape(address)
		}
		return inline(text) + " (" + Escape(address) + ")"
	}
	address = strings.NewReplacer("|", "%7C", "<", "%3C", ">", "%3E", "`", "%60").Replace(address)
	if text == "" {
		return "<" + Escape(address) + ">"
	}
	return "<" + Escape(address) + "|" + Escape(strings.Map(func(r rune) rune {
		if r == '|' || r == '`' || r == '*' {
			return -1
		}
		return r
	}, text)) + ">"
}

func reversed(mark string) string {
	if len(mark) == 2 {
		return mark[1:] + mark[:1]
	}
	return mark
}

func word(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r)) }

// edge parts emphasis from a letter beside it, where Slack would show the mark: Japanese has
// no blanks there.
func edge(beside rune) string {
	if word(beside) {
		return "\u200b"
	}
	return ""
}

// split cuts markup into parts of at most limit, at an empty line where there is one in the
// second half, else between lines. A block of code that is cut is ended, and begun again.
func split(text string, limit int) []string {
	limit -= 2 * (len(fence) + 1)
	var parts, now []string
	used, blank, inside := 0, -1, false // blank is where an empty line stands in now
	flush := func(n int) {
		text, rest := strings.Join(now[:n], "\n"), append([]string(nil), now[n:]...)
		if inside && n == len(now) {
			text += "\n" + fence
			rest = []string{fence}
		}
		if strings.TrimSpace(strings.Trim(text, "`\n")) != "" {
			parts = append(parts, strings.Trim(text, "\n"))
		}
		now, used, blank = rest, 0, -1
		for _, l := range now {
			used += channel.Units(l) + 1
		}
	}
	for _, whole := range strings.Split(text, "\n") {
		for _, l := range cutLine(whole, limit-len(fence)-1) {
			if used+channel.Units(l)+1 > limit && len(now) > 0 {
				if blank > 0 {
					flush(blank)
				}
				if used+channel.Units(l)+1 > limit {
					flush(len(now))
				}
			}
			if l == fence {
				inside = !inside
			}
			if l == "" && !inside && used > limit/2 {
				blank = len(now)
			}
			now, used = append(now, l), used+channel.Units(l)+1
		}
	}
	inside = false
	flush(len(now))
	return parts
}

// cutLine cuts a line into pieces of at most limit, not within an entity or a link where
// that can be avoided.
func cutLine(l string, limit int) (all []string) {
	for channel.Units(l) > limit {
		n, units := 0, 0
		for n < len(l) {
			r, w := utf8.DecodeRuneInString(l[n:])
			if units += utf16.RuneLen(r); units > limit {
				break
			}
			n += w
		}
		if i := strings.LastIndexByte(l[:n], ' '); i > n/2 {
			n = i + 1
		}
		if i := strings.LastIndexByte(l[:n], '&'); i > max(n-6, 0) && !strings.Contains(l[i:n], ";") {
			n = i
		}
		if i := strings.LastIndexByte(l[:n], '<'); i > n/2 && !strings.Contains(l[i:n], ">") {
			n = i
		}
		all, l = append(all, l[:n]), l[n:]
	}
	return append(all, l)
}

// short is a text of one message of at most limit.
func short(text string, limit int) string {
	if parts := split(text, limit-2); len(parts) > 1 {
		return parts[0] + "\n…"
	}
	return text
}
