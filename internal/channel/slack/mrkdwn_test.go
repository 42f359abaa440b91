package slack

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/channel"
)

func TestMrkdwn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{"plain", "plain"},
		{"a & b < c > d", "a &amp; b &lt; c &gt; d"},
		{"<!channel> and <@U1>", "&lt;!channel&gt; and &lt;@U1&gt;"},
		{"**bold** and *italic* and _italic_ and ~~gone~~ and ***both***", "*bold* and _italic_ and _italic_ and ~gone~ and *_both_*"},
		{"これは**太字**です", "これは\u200b*太字*\u200bです"},
		{"snake_case_name and 2 * 3 * 4 and __init__", "snake_case_name and 2 * 3 * 4 and *init*"},
		{"# Title with **bold** #", "*Title with bold*"},
		{"- one\n  * two\n1. three", "• one\n  • two\n1. three"},
		{"> quoted *x*", "> quoted _x_"},
		{"---", "———"},
		{"`a < b` and ``c ` d`` and ` open", "`a &lt; b` and `c ˋ d` and ` open"},
		{"[text](https://x.example/a_(b)?c=1&d=2) <https://y.example>", "<https://x.example/a_(b)?c=1&amp;d=2|text> <https://y.example>"},
		{"[a|b](https://x.example/|c) ![shot](https://x.example/s.png)", "<https://x.example/%7Cc|ab> <https://x.example/s.png|shot>"},
		{"[file](internal/a.go) [bad](javascript:alert(1))", "file (internal/a.go) bad (javascript:alert(1))"},
		{`\*no\* \<b\>`, "*no* &lt;b&gt;"},
		{"```go\nif a < b && c {\n```\nafter", "```\nif a &lt; b &amp;&amp; c {\n```\nafter"},
		{"````\n```\ninner\n```\n````", "```\n`\u200b``\ninner\n`\u200b``\n```"},
		{"~~~\n**x**", "```\n**x**\n```"},
		{"| a | 日本 |\n|---|:-:|\n| `x\\|y` | 2 |\n| long cell | |\nafter", "```\na          日本\n---------------\n`x|y`      2\nlong cell\n```\nafter"},
		{"a\x1b[31m\u202eb\u200e", "a[31mb"},
		{"*", "*"},
		{"**open", "**open"},
		{"https://x.example/a_b_c?d=*e*", "https://x.example/a_b_c?d=*e*"},
	} {
		if got := mrkdwn(test.in); got != test.want {
			t.Errorf("%q is %q, want %q", test.in, got, test.want)
		}
	}
}

// Whatever the Markdown, nobody is called, parts stay within their limit, and no block of code
// is left open.
func TestMrkdwnLaws(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"```", "```\n", "````\n", "~~~\n", "`", "**", "*", "_", "~~", "<!channel>", "<@U1>", "&", "\n", "\n\n", "| a |", "\n|---|\n", "[x](", "https://x.example", ")", "> ", "- ", "# ", "語", "😀", "word ", "\\", strings.Repeat("long", 40), "\u202e"})
	rapid.Check(t, func(t *rapid.T) {
		src := strings.Join(rapid.SliceOfN(word, 0, 60).Draw(t, "words"), "")
		limit := rapid.IntRange(60, 300).Draw(t, "limit")
		out := mrkdwn(src)
		if strings.Contains(out, "<!") || strings.Contains(out, "<@") {
			t.Fatalf("somebody is called: %q", out)
		}
		for _, p := range split(out, limit) {
			if channel.Units(p) > limit || p == "" {
				t.Fatalf("a part of %d: %q", channel.Units(p), p)
			}
			if strings.Count(p, fence)%2 != 0 {
				t.Fatalf("an open block: %q of %q", p, out)
			}
		}
	})
}

func TestSplit(t *testing.T) {
	t.Parallel()
	code := "before\n\n```\n" + strings.Repeat("line of code\n", 20) + "```\nafter"
	parts := split(code, 120)
	if len(parts) < 3 || !strings.HasPrefix(parts[1], "```\nline of code") || !strings.HasSuffix(parts[1], "line of code\n```") {
		t.Errorf("%q", parts)
	}
	if got := strings.Count(strings.Join(parts, "\n"), "line of code"); got != 20 {
		t.Errorf("%d lines", got)
	}
	paragraphs := split(strings.Repeat("w ", 30)+"\n\n"+strings.Repeat("v ", 30), 100)
	if len(paragraphs) != 2 || strings.Contains(paragraphs[0], "v") || strings.Contains(paragraphs[1], "w") {
		t.Errorf("%q", paragraphs)
	}
	long := split(strings.Repeat("&amp;", 100), 60)
	for _, p := range long {
		if strings.Count(p, "&") != strings.Count(p, ";") {
			t.Errorf("an entity is cut: %q", p)
		}
	}
	if strings.ReplaceAll(strings.Join(long, ""), "\n", "") != strings.Repeat("&amp;", 100) {
		t.Errorf("%q", long)
	}
	if s := short(code, 100); channel.Units(s) > 100 || !strings.HasSuffix(s, "…") {
		t.Errorf("%q", s)
	}
}
