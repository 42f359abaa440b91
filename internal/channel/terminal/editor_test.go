package terminal

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEditor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, keys, want string }{
		"backspace takes a character":  {"a👨‍👩‍👧|b", "backspace", "a|b"},
		"combined ones too":            {"ka\u3099|", "backspace", "k|"},
		"over a line's end":            {"a\n|b", "backspace", "a|b"},
		"left and right":               {"日本|語", "left left right delete", "日|語"},
		"left over a line's end":       {"a\n|b", "left left", "|a\nb"},
		"home and end":                 {"a\nb|c\nd", "home ctrl+k end", "a\n|\nd"},
		"words":                        {"one two_x, three|", "alt+b alt+b ctrl+w", "|two_x, three"},
		"words forward":                {"|one two", "alt+f alt+d", "one|"},
		"kill and yank":                {"one two|", "ctrl+w ctrl+a ctrl+y", "two|one "},
		"to the beginning of the line": {"a\nbc|d", "ctrl+u", "a\n|d"},
		"a new line":                   {"a|b", "alt+enter shift+enter ctrl+j", "a\n\n\n|b"},
		"the very beginning":           {"a\nb|", "ctrl+home delete", "|\nb"},
	} {
		at := strings.Index(c.text, "|")
		e := editor{text: strings.Replace(c.text, "|", "", 1), at: at}
		for k := range strings.FieldsSeq(c.keys) {
			if !e.edit(k) {
				t.Errorf("%s: %s is no key", name, k)
			}
		}
		if got := e.text[:e.at] + "|" + e.text[e.at:]; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestEditorRows(t *testing.T) {
	t.Parallel()
	e := editor{text: "abcdefgh日本語\n\nlast"}
	rows, _, _ := e.layout(8)
	var got []string
	for _, r := range rows {
		got = append(got, e.text[r.from:r.to])
	}
	if s := strings.Join(got, "|"); s != "abcdefgh|日本語||last" {
		t.Error(s)
	}
	e.at = len("abcd")
	for _, want := range []string{"abcdefgh日本", "abcdefgh日本語\n", "abcdefgh日本語\n\n", "abcdefgh日本語\n\n"} {
		e.vertical(1, 8)
		if got := e.text[:e.at]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if e.vertical(1, 8); e.vertical(1, 8) {
		t.Error("below the last row there is one")
	}
}

// Whatever keys come, the cursor stands between characters and on a row that is shown.
func TestEditorLaws(t *testing.T) {
	t.Parallel()
	keys := []string{"left", "right", "home", "end", "alt+b", "alt+f", "backspace", "delete", "ctrl+w", "alt+d", "ctrl+u", "ctrl+k", "ctrl+y", "ctrl+j"}
	texts := []string{"a", "日本", "🙂", "e\u0301", " ", "word_1", "\n"}
	rapid.Check(t, func(t *rapid.T) {
		var e editor
		width := rapid.IntRange(4, 20).Draw(t, "width")
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				e.insert(rapid.SampledFrom(texts).Draw(t, "text"))
			case 1:
				e.vertical(rapid.SampledFrom([]int{-1, 1}).Draw(t, "by"), width)
			default:
				e.edit(rapid.SampledFrom(keys).Draw(t, "key"))
			}
			rows, y, x := e.layout(width)
			if e.at < 0 || e.at > len(e.text) || y < 0 || y >= len(rows) || x < 0 || x > width {
				t.Fatalf("cursor at %d of %q, row %d of %d, column %d of %d", e.at, e.text, y, len(rows), x, width)
			}
			if e.at < rows[y].from || e.at > rows[y].to {
				t.Fatalf("cursor at %d, row from %d to %d of %q", e.at, rows[y].from, rows[y].to, e.text)
			}
		}
	})
}
