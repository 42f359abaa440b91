package ops

import (
	"strings"
	"testing"
)

// What was found is on the screen however far behind in its line it stands; a wide character takes two columns.
func TestWhatWasFoundIsSeen(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", "so ", strings.Repeat("word ", 30), strings.Repeat("日本語", 30)} {
		text := before + "hello" + strings.Repeat(" after", 30)
		got := fit(marked(text, [][2]int{{len(before), len(before) + 5}}, 60), 60)
		if !strings.Contains(got, "«hello»") || columns(got) > 60 || strings.HasPrefix(got, "…") != (len(before) > 30) {
			t.Errorf("%q: %q, %d columns", before, got, columns(got))
		}
	}
}
