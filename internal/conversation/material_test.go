package conversation

import (
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
			if !strings.Contains(got, "the first one") || strings.Contains(got, "the last one") || strings.Count(got, "### ANALYZE\n") > maxItems-1 {
				t.Error(got)
			}
		}
	}
}
