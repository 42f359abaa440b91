package conversation

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
)

// Material keeps to its limits, with the headings and notes that it has; what is left out
// is named (spec/facts §4).
func TestMaterialLimits(t *testing.T) {
	t.Parallel()
	for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
		for _, room := range []int{maxMaterial + 1, maxMaterial, 9_000, leastContext / 2} {
			items := []Item{{Route: routing.Chat, Text: "the last one"}}
			for range 9 {
				items = append(items, Item{Route: routing.Analyze, Task: "数える", Text: strings.Repeat(strings.Repeat("行", 39)+"\n", 200)})
			}
			items = append(items, Item{Route: routing.Code2, Text: "the first one"})
			got := material(lang, items, room)
			tags := utf8.RuneCountInString(material(lang, nil, room))
			if n := utf8.RuneCountInString(got) - tags; n > min(room, maxMaterial) || n < min(room, maxMaterial)*3/4 {
				t.Errorf("%s: %d characters in %d", lang, n, room)
			}
			for _, note := range []string{lang.T("conversation.cut", 999_999), lang.T("conversation.left_out", 99)} { // what is left out is named
				if before, _, _ := strings.Cut(note, "9"); !strings.Contains(got, before) {
					t.Errorf("%s: no %q in %s", lang, note, got)
				}
			}
			if !strings.Contains(got, "the first one") || strings.Contains(got, "the last one") || strings.Count(got, "### ANALYZE\n") > maxItems-1 {
				t.Error(got)
			}
		}
	}
}

// Of a diff Chat is given the files and a piece, by lines or by characters, and told that
// it is one.
func TestMaterialOfADiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line        string
		lines, most int // most of the piece's lines
	}{{"+行", 500, maxDiffLines - 3}, {"+" + strings.Repeat("長", 99), 150, maxDiff / 101}, {"+x", 100, 100}} {
		it := Item{Route: routing.Code2, Diff: fmt.Sprintf("--- /dev/null\n+++ b/x.txt\n@@ -0,0 +1,%d @@\n", c.lines) + strings.Repeat(c.line+"\n", c.lines)}
		got := it.render(i18n.English)
		if n := strings.Count(got, c.line); n > c.most || n < c.most-2 || !strings.Contains(got, fmt.Sprintf("- x.txt (+%d -0)", c.lines)) ||
			strings.Contains(got, fmt.Sprintf("[a piece of the patch; it has %d lines]", c.lines+4)) != (c.most < c.lines) {
			t.Errorf("%d of %d lines: %s", n, c.lines, got)
		}
	}
}
