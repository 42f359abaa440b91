package line

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"toritsugi/internal/channel"
)

func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"short":                  {"one\n\ntwo", []string{"one\n\ntwo"}},
		"nothing":                {"\n \n", nil},
		"at a paragraph":         {"one two\nthree\n\nfour five\nsix seven eight", []string{"one two\nthree", "four five\nsix seven eight"}},
		"at a line":              {"one two three four\nfive six seven", []string{"one two three four", "five six seven"}},
		"at a word":              {"one two three four five six seven", []string{"one two three four five", "six seven"}},
		"between characters":     {strings.Repeat("字", 30), []string{strings.Repeat("字", 25), strings.Repeat("字", 5)}},
		"emoji of two units":     {strings.Repeat("🎉", 13), []string{strings.Repeat("🎉", 12), "🎉"}},
		"no family is torn":      {strings.Repeat("👨‍👩‍👧‍👦", 3), []string{strings.Repeat("👨‍👩‍👧‍👦", 2), "👨‍👩‍👧‍👦"}},
		"a fence stays whole":    {"text before\n```go\na\nb\nc\n```\nafter", []string{"text before", "```go\na\nb\nc\n```\nafter"}},
		"a fence of many lines":  {"```\naaaaaaaa\nbbbbbbbb\ncccccccc\n```", []string{"```\naaaaaaaa\nbbbbbbbb\n```", "```\ncccccccc\n```"}},
		"a fence of a long line": {"```\n" + strings.Repeat("x", 30) + "\n```", []string{"```\n" + strings.Repeat("x", 17) + "\n```", "```\n" + strings.Repeat("x", 13) + "\n```"}},
	} {
		got := split(c.text, 25)
		if strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What is split is within the limit, has whole fences, and says what was said.
func TestSplitKeepsEverything(t *testing.T) {
	words := rapid.SampledFrom([]string{"a", "word", "日本語の文。", "🎉", "👨‍👩‍👧‍👦", " ", "  ", "\n", "\n\n", "\n```\n", "\n```go\n", "\n~~~\n", "\n````\n", "e\u0301", "\u200b", strings.Repeat("x", 70), strings.Repeat("長", 90), "z" + strings.Repeat("\u0301", 300)})
	marks := func(s string) string { // what splitting may add or take away
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune("`~ \n", r) {
				return -1
			}
			return r
		}, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := plain(strings.Join(rapid.SliceOfN(words, 0, 200).Draw(t, "words"), ""))
		limit := rapid.IntRange(40, 200).Draw(t, "limit")
		parts := split(text, limit)
		for _, p := range parts {
			if channel.Units(p) > limit || strings.TrimSpace(p) == "" || !utf8.ValidString(p) {
				t.Fatalf("a part of %d units, of %d: %q", channel.Units(p), limit, p)
			}
			open := ""
			for l := range strings.SplitSeq(p, "\n") {
				switch mark := fence(l); {
				case open != "" && closes(l, open):
					open = ""
				case open == "" && mark != "":
					open = mark
				}
			}
			if open != "" {
				t.Fatalf("a fence is left open: %q of %q", p, text)
			}
		}
		got, want := strings.ReplaceAll(marks(strings.Join(parts, "\n")), "go", ""), strings.ReplaceAll(marks(text), "go", "")
		if got != want {
			t.Fatalf("%q\n  became %q", want, got)
		}
	})
}
