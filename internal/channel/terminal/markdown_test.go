package terminal

import (
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"toritsugi/internal/redact"
)

// marked shows rows with their styles: B bold, F faint, I italic, U underlined, R
// reverse, and r g y b c for colours.
func marked(rows []line) string {
	var b strings.Builder
	for _, r := range rows {
		for _, s := range r {
			mark := ""
			for i, of := range []style{bold, faint, italic, underline, reverse} {
				if s.style&of != 0 {
					mark += "BFIUR"[i : i+1]
				}
			}
			if c := s.style & colours; c != 0 {
				mark += " rgyb c"[c>>8 : c>>8+1]
			}
			if mark != "" {
				b.WriteString("{" + mark + ":" + s.text + "}")
				continue
			}
			b.WriteString(s.text)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ src, want string }{
		"emphasis":             {"a *b* **c** ***d*** _e_ snake_case_word 2*3*4 ** x", "a {I:b} {B:c} {BI:d} {I:e} snake_case_word 2{I:3}4 ** x\n"},
		"Japanese emphasis":    {"これは**「強調」**です。**太字（注）**と", "これは{B:「強調」}です。{B:太字（注）}と\n"},
		"nested emphasis":      {"**bold *and* more**", "{B:bold }{BI:and}{B: more}\n"},
		"unfinished":           {"**bold and `code", "**bold and `code\n"},
		"code":                 {"`a` ``b`c`` `<>&amp;`", "{g:a} {g:b`c} {g:<>&amp;}\n"},
		"escapes":              {`\*not\* \` + "`" + `x\_y a\b`, "*not* `x_y a\\b\n"},
		"entities":             {"&lt;b&gt; &#27;[2J &copy &amp;", "<b> [2J &copy &\n"},
		"link":                 {"[a](https://e.x/b_c_d) ![i](p.png) <https://e.x> [https://e.x](https://e.x) [x] [y](", "{U:a}{F: (https://e.x/b_c_d)} {U:i}{F: (p.png)}\n{U:https://e.x} {U:https://e.x} [x] [y](\n"},
		"headings":             {"# A\n## B *c* ##\n#no\n####### no", "{Bc:A}\n\n{Bc:B }{BIc:c}\n\n#no\n####### no\n"},
		"lines stay":           {"one\ntwo\\\nthree", "one\ntwo\nthree\n"},
		"paragraphs":           {"one\n\n\n\ntwo\n", "one\n\ntwo\n"},
		"rule":                 {"a\n\n---\n***\nb", "a\n\n{F:────────────────────────────────────────}\n\n{F:────────────────────────────────────────}\n\nb\n"},
		"list":                 {"- a\n- b\n  c\n\n- d\n\ntext", "{F:• }a\n{F:• }b\n  c\n\n{F:• }d\n\ntext\n"},
		"numbers":              {"9. a\n10. b\n    - c\n    - d\n11. e", "{F:9. }a\n{F:10. }b\n    {F:• }c\n    {F:• }d\n{F:11. }e\n"},
		"list, then another":   {"- a\n1. b", "{F:• }a\n\n{F:1. }b\n"},
		"a list with code":     {"1. do\n\n   ```sh\n   ls\n   ```\n2. then", "{F:1. }do\n   \n     {g:ls}\n{F:2. }then\n"},
		"list below a line":    {"The steps:\n- a\n- b", "The steps:\n\n{F:• }a\n{F:• }b\n"},
		"no list":              {"-5 degrees\n1.5 m\n*x*", "-5 degrees\n1.5 m\n{I:x}\n"},
		"empty items":          {"-\n- a", "{F:• }\n{F:• }a\n"},
		"quote":                {"> a\n> - b\n>> c\nd", "{F:│ }a\n{F:│ }{F:• }b\n{F:│ }{F:│ }c\n\nd\n"},
		"fence":                {"```go\nif a {\n\tb()\n\n}\n```\nx", "  {g:if a {}\n  {g:    b()}\n  \n  {g:}}\n\nx\n"},
		"unfinished fence":     {"~~~\na\n```\nb", "  {g:a}\n  {g:```}\n  {g:b}\n"},
		"diff":                 {"```diff\n-an old bone\n+an new bone\n```", "  {r:-an }{Rr:old}{r: bone}\n  {g:+an }{Rg:new}{g: bone}\n"},
		"table":                {"| a | b |\n|:--|--:|\n| `x` \\| y | 日本 |\n| z |", "{B:a}    {F: │ }{B:b}\n{F:─────}{F:─┼─}{F:────}\n{g:x} | y{F: │ }日本\nz    {F: │ }\n"},
		"no table":             {"a | b\nc | d", "a | b\nc | d\n"},
		"table below a line":   {"See:\n| a |\n|---|\n| b |", "See:\n\n{B:a}\n{F:─}\nb\n"},
		"nothing":              {"\n \n", ""},
		"control characters":   {"a\x1b[31mb\u202ec\x00", "a[31mbc\n"},
		"a wide table wrapped": {"| name | text |\n|---|---|\n| n | " + strings.Repeat("word ", 20) + "|", "{B:name}{F: │ }{B:text}\n{F:────}{F:─┼─}{F:─────────────────────────────────}\nn   {F: │ }word word word word word word\n    {F: │ }word word word word word word\n    {F: │ }word word word word word word\n    {F: │ }word word\n"},
	} {
		if got := marked(markdown(c.src, 40)); got != c.want {
			t.Errorf("%s: %q\nwant %q", name, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"one two three":          "one two|three",
		"日本語の文章です。":              "日本語の|文章で|す。",
		"あいうえ。おか":                "あいう|え。おか",
		"あいう「えお」":                "あいう|「えお」",
		"verylongwordwithoutend": "verylong|wordwith|outend",
		"a  b":                   "a  b",
		"":                       "",
		"abcdefgh ijk":           "abcdefgh|ijk",
		"👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧": "👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧|👨‍👩‍👧",
	} {
		var got []string
		for _, r := range wrap(plain(src), nil, nil, 8) {
			got = append(got, strings.Trim(marked([]line{r}), "\n"))
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q: %q, want %q", src, s, want)
		}
	}
}

// pieces are what Markdown is made of, good and bad.
var pieces = []string{"# ", "- ", "1. ", "> ", "```", "```\n", "~~~", "|", "|---|---|", "\n", "\n\n", "  ", "    ", "*", "**", "_", "`", "[", "](", ")", "<", "&lt;", "\\", "word", "日本語、", "長い文章です。", "🙂", "\x1b[2J", "\t", "\u202e", "\xff", "+a", "-b", "@@ -1 +1 @@"}

// Whatever a model writes, each row fits, nothing steers, and no letter is lost.
func TestMarkdownLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "src"), "")
		width := rapid.IntRange(20, 90).Draw(t, "width")
		letters := func(s string) (n int) {
			for _, r := range s {
				if unicode.In(r, unicode.Han, unicode.Hiragana) || r == 'w' || r == 'd' {
					n++
				}
			}
			return n
		}
		shown := 0
		for _, r := range markdown(src, width) {
			text := r.paint(true)
			if w := ansi.StringWidth(text); w > width && r.width() > 28 { // 12 levels deep there may be no room
				t.Fatalf("%d columns of %d: %q", w, width, text)
			}
			if bare := ansi.Strip(text); strings.ContainsFunc(bare, func(c rune) bool { return redact.Steers(c) || c == '\n' }) {
				t.Fatalf("%q", bare)
			}
			shown += letters(ansi.Strip(text))
		}
		if !strings.ContainsAny(src, "`~|[<") && shown != letters(src) { // languages of code, surplus cells and addresses go
			t.Fatalf("%d letters of %d", shown, letters(src))
		}
	})
}

// What is settled looks the same whatever follows, and as in the whole.
func TestSettled(t *testing.T) {
	t.Parallel()
	docs := []string{answer, "a\n\nb\n\n```\nx\n\ny\n```\n\nc", "- a\n\n- b\n\n  c\n\nd\n\n> e\n\n> f\n\ng", "text\n\n    code\n\n    more\n\nend", "```\na\n\n\nb"}
	for _, doc := range docs {
		for cut := range len(doc) {
			n := settled(doc[:cut])
			if n == 0 {
				continue
			}
			apart := marked(markdown(doc[:n], 40)) + "\n" + marked(markdown(doc[n:], 40))
			if whole := marked(markdown(doc, 40)); apart != whole {
				t.Fatalf("at %d of %q:\n%s\nwant\n%s", n, doc[:cut], apart, whole)
			}
		}
	}
	if n := settled("one\n\ntwo"); n != 5 {
		t.Errorf("%d", n)
	}
	if n := settled("```\none\n\ntwo"); n != 0 {
		t.Errorf("%d", n)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	diff := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@ func f\n same\n-call(a, b)\n-gone\n+call(a, c)\n+come\n-quite other words here\n+nothing of that\n-one\n+one\n+two\n-日本語の文\n+日本語な文\n\\ No newline at end of file\n"
	want := "{B:diff --git a/x b/x}\n{F:--- a/x}\n{F:+++ b/x}\n{c:@@ -1,4 +1,4 @@ func f}\n same\n" +
		"{r:-call(a, }{Rr:b}{r:)}\n{r:-gone}\n{g:+call(a, }{Rg:c}{g:)}\n{g:+come}\n" +
		"{r:-quite other words here}\n{g:+nothing of that}\n{r:-one}\n{g:+one}\n{g:+two}\n" +
		"{r:-日本語}{Rr:の}{r:文}\n{g:+日本語}{Rg:な}{g:文}\n\\ No newline at end of file\n"
	var rows []line
	for _, l := range diffLines(diff) {
		rows = append(rows, joined(cells(l)))
	}
	if got := marked(rows); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Lines of thousands of words take no long time.
func TestDiffOfLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 100_000)
	if n := len(diffLines("@@ -1 +1 @@\n-" + long + "x\n+" + long + "y\n")); n != 3 {
		t.Errorf("%d rows", n)
	}
}
